//! `nicpin fleet`: many hosts from what they printed, from captures and from trees.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use itertools::Itertools as _;
use serde_json::{Value, json};
use snapbox::{assert_data_eq, str};
use tempfile::TempDir;

use crate::support::machine::{MachineSpec, Port, card};
use crate::support::run::{MachineTree, Run, assert_line, expect, fixture, nicpin, text};
use crate::support::schema::meets;
use crate::support::{is_full, temporary};

/// What `check --json` prints of a machine, whatever its exit code.
fn checked(machine: &MachineTree) -> Value {
    machine.nicpin(&["check", "--json"]).json()
}

/// A machine in the planned state.
fn planned() -> MachineTree {
    let machine = MachineTree::of("two-socket-mlx4");
    assert_eq!(machine.nicpin(&["apply"]).code, 0);
    machine
}

/// A directory with files.
fn files(files: &[(&str, String)]) -> TempDir {
    let dir = temporary();
    for (name, text) in files {
        std::fs::write(dir.path().join(name), text).unwrap();
    }
    dir
}

fn fleet(paths: &[&Path]) -> Run {
    let paths: Vec<&str> = paths.iter().map(|path| path.to_str().unwrap()).collect();
    nicpin(&[&["fleet"], &paths[..]].concat())
}

/// The report as JSON, and the exit code.
fn report(paths: &[&Path]) -> (Value, i32) {
    let paths: Vec<&str> = paths.iter().map(|path| path.to_str().unwrap()).collect();
    let run = nicpin(&[&["fleet", "--json"], &paths[..]].concat());
    (
        serde_json::from_str(&run.stdout).unwrap_or_else(|error| panic!("{error}: {}", run.stderr)),
        run.code,
    )
}

/// What fleet reports of a stream on standard input.
fn streamed(args: &[&str], stream: &str) -> Run {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nicpin"));
    command.arg("fleet").args(args).arg("-");
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let stream = stream.to_owned();
    let writer = std::thread::spawn(move || input.write_all(stream.as_bytes()));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    let run = Run::ended(output);
    meets(&run.stdout);
    run
}

/// A document in which one value is another.
fn with(document: &Value, pointer: &str, value: Value) -> Value {
    let mut document = document.clone();
    *document.pointer_mut(pointer).unwrap() = value;
    document
}

#[test]
fn hosts_are_grouped_by_state_and_reason_worst_first() {
    let machine = planned();
    let good = checked(&machine);
    machine.write("/sys/class/net/eth2/queues/tx-0/xps_cpus", "000\n");
    let moved = checked(&machine);
    let not_applied = checked(&MachineTree::of("two-socket-mlx4"));
    assert_eq!(
        (&moved["state"], &not_applied["state"]),
        (&"drifted".into(), &"remote".into())
    );
    let mut balanced = moved.clone();
    balanced["other_tools"] = json!(["irqbalance"]);
    let mut stream = String::new();
    for host in 1..=20 {
        let document = match host {
            3 | 10 => &balanced,
            4 => &moved,
            7 => &not_applied,
            _ => &good,
        };
        stream += &format!("h{host}: {document}\n");
    }
    let run = streamed(&[], &stream);
    assert_eq!((run.code, run.stderr.as_str()), (2, ""), "{}", run.stdout);
    expect("fleet.txt", run.stdout);
    let all = streamed(&["--json"], &stream).json();
    assert_eq!(all["schema"], "nicpin.fleet/1");
    assert_eq!(
        (&all["hosts"], &all["planned"], &all["differ"]),
        (&20.into(), &16.into(), &4.into())
    );
    let drift = json!([
        {"state": "remote", "reason": "not-applied", "by": [], "count": 1, "hosts": ["h7"]},
        {"state": "drifted", "reason": "moved-by-other", "by": ["irqbalance"], "count": 2, "hosts": ["h3", "h10"]},
        {"state": "drifted", "reason": "moved-by-other", "by": [], "count": 1, "hosts": ["h4"]},
    ]);
    assert_eq!(all["drift"], drift);
    assert_eq!(
        all["classes"][0]["plans"][0]["hosts"]
            .as_array()
            .unwrap()
            .len(),
        20
    );
    // And all of them as planned.
    let run = streamed(&["--json"], &format!("h1: {good}\nh2: {good}\n"));
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    let all = run.json();
    assert_eq!((&all["planned"], &all["drift"]), (&json!(2), &json!([])));
}

/// A list that is long even folded ends with the number of others, and -v has the whole.
#[test]
fn a_long_list_of_hosts_is_cut_and_whole_on_request() {
    let document = checked(&MachineTree::of("two-socket-mlx4"));
    let lines: Vec<String> = (1..=600)
        .map(|n| format!("h{}: {document}\n", 2 * n))
        .collect();
    let stream = lines.concat();
    let lists = |args: &[&str]| {
        let run = streamed(args, &stream).stdout;
        let drift = run
            .split("not-applied\n")
            .nth(1)
            .unwrap_or_default()
            .to_owned();
        drift.split("\n\n").next().unwrap_or_default().to_owned()
    };
    let (short, whole) = (lists(&[]), lists(&["-v"]));
    assert!(
        short.starts_with("    h[2,4,6,") && short.len() < 900,
        "{short}"
    );
    let (list, rest) = short.split_once('\n').unwrap();
    let listed = list.split(',').count();
    let left_out = (600 - listed).to_string();
    assert!(rest.split(' ').any(|word| word == left_out), "{rest}");
    assert_eq!(whole.split(',').count(), 600, "{whole}");
}

/// Each is a class of its own, with the hosts and what differs from the class with most hosts.
#[test]
fn machines_that_differ_from_their_class_are_named_with_what_differs() {
    let ordinary = MachineTree::of("dl980");
    let pci = |address: &str| {
        let found = glob::glob(
            ordinary
                .path("/sys/devices")
                .join(format!("**/{address}"))
                .to_str()
                .unwrap(),
        );
        let path = found.unwrap().find_map(Result::ok).unwrap();
        path.strip_prefix(ordinary.path("/"))
            .unwrap()
            .to_str()
            .unwrap()
            .to_owned()
    };
    let base = checked(&ordinary);
    let interface = base["interfaces"]
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["driver"] == "i40e")
        .unwrap();
    let (name, device) = (
        interface["name"].as_str().unwrap(),
        interface["device"].as_str().unwrap(),
    );
    let device = format!("/{}", pci(device));
    let other = |change: &dyn Fn(&MachineTree)| {
        let machine = MachineTree::of("dl980");
        change(&machine);
        machine
    };
    let riser = other(&|machine| machine.write(&format!("{device}/numa_node"), "0\n"));
    let smt = other(&|machine| machine.write("/sys/devices/system/cpu/online", "0-63\n"));
    let memory = other(&|machine| machine.write("/sys/devices/system/node/has_memory", "0-5,7\n"));
    let node_gone = other(&|machine| machine.remove("/sys/devices/system/node/node7"));
    let mut stream = String::new();
    for host in 1..=5 {
        stream += &format!("h{host}: {base}\n");
    }
    let odd = [
        ("riser", &riser),
        ("smt", &smt),
        ("memory", &memory),
        ("gone", &node_gone),
    ];
    for (host, machine) in odd {
        stream += &format!("{host}: {}\n", checked(machine));
    }
    // What a plan depends on and the class does not.
    stream += &format!(
        "quiet: {}\n",
        checked(&other(
            &|machine| machine.write("/sys/devices/system/cpu/isolated", "8-9\n")
        ))
    );
    let run = streamed(&["--json"], &stream);
    let report = run.json();
    let classes = report["classes"].as_array().unwrap();
    assert_eq!(
        (classes.len(), &classes[0]["count"], &classes[0]["like"]),
        (5, &6.into(), &Value::Null),
        "{report:#}"
    );
    let of = |host: &str| {
        classes
            .iter()
            .find(|class| class["plans"][0]["hosts"][0] == host)
            .unwrap()
    };
    for (host, code, interface) in [
        ("riser", "node", json!(name)),
        ("smt", "smt", Value::Null),
        ("memory", "node-without-memory", Value::Null),
        ("gone", "node-missing", Value::Null),
    ] {
        let class = of(host);
        assert_eq!(class["like"], classes[0]["class"], "{class:#}");
        let found = class["deviations"].as_array().unwrap();
        let is_named = |one: &Value| one["code"] == code && one["interface"] == interface;
        assert!(found.iter().any(is_named), "{host}: {found:#?}");
    }
    let plans = classes[0]["plans"].as_array().unwrap();
    assert_eq!((plans.len(), &plans[1]["hosts"]), (2, &json!(["quiet"])));
    assert_eq!(plans[1]["deviations"][0]["code"], "isolated");
    expect("fleet-classes.txt", streamed(&[], &stream).stdout);
}

/// The node that takes its IRQs is not the device's.
#[test]
fn a_device_is_not_said_to_be_on_the_node_next_to_its_own() {
    let with_device_on = |node| {
        let mut machine = MachineSpec::new(&["0-3", "4-7", ""]);
        machine.set_distances(|a, b| 10 * (a.abs_diff(b) % 2 + 1));
        let names = ["mlx5_comp0@pci:0000:82:00.0"];
        let mut nic = card("mlx5_core", Port::new("eth0", 50_000, 1, 1), 30, &names);
        nic.node = node;
        machine.cards.push(nic);
        MachineTree::build(&machine)
            .nicpin(&["plan", "--json"])
            .stdout
    };
    let one_line = |text: String| serde_json::from_str::<Value>(&text).unwrap().to_string();
    let [ordinary, other] = [1, 2].map(|node| one_line(with_device_on(node)));
    let stream = format!("a: {ordinary}\nb: {ordinary}\nc: {other}\n");
    let found = streamed(&["--json"], &stream).stdout;
    let text = "eth0 is on a node near node 0, not node 1";
    assert!(found.contains(text), "{found}");
}

#[test]
fn another_driver_or_a_missing_interface_is_named() {
    let good = checked(&planned());
    let other = |change: &dyn Fn(&mut Value)| {
        let mut document = with(&good, "/class", "0dd0dd0dd0dd0dd0".into());
        change(&mut document);
        document["hash"] = "0dd0dd0dd0dd0dd0".into();
        document
    };
    let said = [
        (
            other(&|one| one["interfaces"][0]["driver"] = "vfio".into()),
            "driver",
        ),
        (
            other(&|one| one["interfaces"][0]["rx_queues"] = 3.into()),
            "queues",
        ),
        (
            other(&|one| one["interfaces"][0]["device"] = "0000:05:00.0".into()),
            "slot",
        ),
        (
            other(&|one| _ = one["interfaces"].as_array_mut().unwrap().remove(0)),
            "interface-missing",
        ),
        (
            other(&|one| one["host"]["possible"] = 512.into()),
            "possible",
        ),
    ]
    .map(|(document, code)| {
        let stream = format!("h1: {good}\nh2: {good}\nodd: {document}\n");
        let report = streamed(&["--json"], &stream).json();
        let deviation = report["classes"][1]["deviations"][0].clone();
        assert_eq!(deviation["code"], code, "{report}");
        text(&deviation, "text").to_owned()
    });
    assert_data_eq!(
        said.join("\n"),
        str![[r"
eth0 has driver vfio, not igb
eth0 has 3 receive and 4 transmit queues, not 4 receive and 4 transmit queues
eth0 is 0000:05:00.0, not 0000:01:00.0
eth0 (igb) is missing
512 possible CPUs, not 12
"]]
    );
}

#[test]
fn the_class_is_that_of_the_hardware() {
    let class = |machine: &MachineTree| checked(machine)["class"].as_str().unwrap().to_owned();
    let of = class(&MachineTree::of("two-socket-mlx4"));
    assert_eq!((of.len(), class(&planned())), (16, of.clone()));
    let machine = MachineTree::of("two-socket-mlx4");
    machine.write("/proc/irq/73/smp_affinity", "001\n");
    machine.write("/sys/devices/system/cpu/isolated", "3\n");
    assert_eq!(class(&machine), of, "settings and isolation");
    let plan = |machine: &MachineTree, args: &[&str]| -> Value {
        machine.nicpin(&[&["plan", "--json"], args].concat()).json()
    };
    assert_eq!(
        plan(&machine, &["eth2", "--scope", "all"])["class"],
        of.as_str(),
        "policy and selection"
    );
    let node = "/sys/devices/pci0000:80/0000:80:02.0/0000:82:00.0/numa_node";
    machine.write(node, "0\n");
    assert_ne!(class(&machine), of);
    let machine = MachineTree::of("two-socket-mlx4");
    machine.write("/sys/devices/system/cpu/online", "0-10\n");
    assert_ne!(class(&machine), of);
    // A capture renames what identifies a machine, and is of its class.
    let machine = MachineTree::of("two-node");
    let file = machine.path("/c.tar.gz");
    assert_eq!(
        machine
            .nicpin(&["capture", "--redact-names", "-o", file.to_str().unwrap()])
            .code,
        0
    );
    let captured = nicpin(&["plan", "--json", "--root", file.to_str().unwrap()]);
    let captured = captured.json();
    assert_eq!(captured["class"], plan(&machine, &[])["class"]);
    assert_ne!(captured["hash"], plan(&machine, &[])["hash"]);
}

#[test]
fn a_directory_without_hosts_is_said_to_have_none() {
    let dir = files(&[]);
    let run = nicpin(&["fleet", dir.path().to_str().unwrap()]);
    assert_eq!(run.code, 1);
    assert_data_eq!(
        run.stderr,
        str![[r"
nicpin: no plan, check, capture or tree was found; fix: name files or directories that hold some

"]]
    );
}

#[test]
fn a_bad_file_is_named_and_the_rest_goes_on() {
    let good = checked(&planned());
    let dir = files(&[
        ("a.json", format!("{good:#}\n")),
        (
            "b.json",
            "{\"schema\": \"nicpin.check/1\", \"hash\": 3}".to_owned(),
        ),
        ("c.json", ":true,\"channels\":[]}\n".to_owned()),
        ("d.json", "{\"schema\": \"nicpin.status/1\"}".to_owned()),
        ("e.tar.gz", "\u{1f}\u{8b} not a capture".to_owned()),
        ("f.json", String::new()),
        ("g.json", format!("{good:#}\n").split_at(200).0.to_owned()),
        ("h.json", good.to_string()),
    ]);
    std::fs::write(dir.path().join("e.tar.gz"), b"\x1f\x8b not a capture").unwrap();
    let (report, code) = report(&[dir.path()]);
    assert_eq!(code, 1);
    assert_eq!(
        (&report["hosts"], &report["planned"]),
        (&2.into(), &2.into()),
        "{report:#}"
    );
    let failed = report["failed"].as_array().unwrap();
    let bad: String = failed
        .iter()
        .map(|one| one["source"].as_str().unwrap().rsplit_once('/').unwrap().1[..1].to_owned())
        .collect();
    assert_eq!(bad, "bcdefg", "{failed:#?}");
    assert_eq!(report["classes"][0]["plans"][0]["hosts"], json!(["a", "h"]));
    let run = fleet(&[dir.path(), Path::new("/nowhere.json")]);
    assert_eq!(run.code, 1);
    let errors = run.stderr.replace(dir.path().to_str().unwrap(), "DIR");
    expect("fleet-bad-files.txt", run.stdout + &errors);
    // A broken line of a stream takes no other with it.
    let text = good.to_string();
    let stream = format!("h1: {text}\nh2: {}\nh3: {text}\n", &text[..300]);
    let run = streamed(&["--json"], &stream);
    let report = run.json();
    assert_eq!(
        (run.code, &report["hosts"], &report["failed"][0]["source"]),
        (1, &json!(2), &json!("h2"))
    );
}

#[test]
fn lines_of_hosts_alternate_and_other_lines_are_named_if_no_json_follows() {
    let good = checked(&planned());
    let text = format!("{good:#}");
    let mut stream = "h3: Warning: Permanently added 'h3' to the list of known hosts.\n".to_owned();
    for line in text.lines() {
        for host in 1..=3 {
            stream += &format!("h{host}: {line}\n");
        }
    }
    stream += "h4: ssh: connect to host h4 port 22: Connection refused\nclush: h4: exited with exit code 255\n";
    stream += "clush: h[1-2] (2): exited with exit code 2\n";
    let run = streamed(&["--json"], &stream);
    let report = run.json();
    assert_eq!(run.code, 1);
    assert_eq!(
        report["classes"][0]["plans"][0]["hosts"],
        json!(["h1", "h2", "h3"])
    );
    let failed =
        json!([{ "source": "h4", "error": "ssh: connect to host h4 port 22: Connection refused" }]);
    assert_eq!(report["failed"], failed);
}

/// A host whose check failed prints why, as JSON.
#[test]
fn the_error_of_a_host_is_what_its_command_said() {
    let machine = MachineTree::of("two-node");
    std::fs::remove_dir_all(machine.path("/sys/class/net")).unwrap();
    let printed = machine.nicpin(&["check", "--json"]).stdout;
    let said = serde_json::from_str::<Value>(&printed).unwrap()["error"].clone();
    assert!(said.as_str().unwrap().contains("/sys/class/net"), "{said}");
    let result =
        json!({ "stdout": printed, "rc": 1, "failed": true, "msg": "non-zero return code" });
    let play = json!({ "plays": [{ "tasks": [{ "hosts": { "h1": result } }] }] });
    for stream in [format!("h1: {printed}"), play.to_string()] {
        let run = streamed(&["--json"], &stream);
        let report = run.json();
        let failed = json!([{ "source": "h1", "error": said }]);
        assert_eq!((run.code, &report["failed"]), (1, &failed));
    }
}

#[test]
fn captures_trees_plans_directories_and_lists_are_read() {
    let machine = planned();
    let plan = machine.nicpin(&["plan", "--json"]).stdout;
    let dir = files(&[
        ("planned.json", plan),
        ("two.jsonl", format!("{0}\n{0}\n", checked(&machine))),
    ]);
    let capture = dir.path().join("host-7.tar.gz");
    assert_eq!(
        machine
            .nicpin(&["capture", "-o", capture.to_str().unwrap()])
            .code,
        0
    );
    let tree = fixture("two-socket-mlx4");
    let list = dir.path().join("list");
    std::fs::write(
        &list,
        format!("# machines\n{}\n\n{}\n", capture.display(), tree.display()),
    )
    .unwrap();
    let at = std::path::PathBuf::from(format!("@{}", list.display()));
    let (report, code) = report(&[
        &at,
        &dir.path().join("planned.json"),
        &dir.path().join("two.jsonl"),
    ]);
    assert_eq!((code, &report["failed"]), (2, &json!([])));
    let lines = dir.path().join("two.jsonl").display().to_string();
    let hosts = &report["classes"][0]["plans"][0]["hosts"];
    assert_eq!(report["classes"].as_array().unwrap().len(), 1);
    let mut found: Vec<&str> = hosts
        .as_array()
        .unwrap()
        .iter()
        .map(|host| host.as_str().unwrap())
        .collect();
    found.sort_unstable();
    let (first, second) = (format!("{lines}:1"), format!("{lines}:2"));
    assert_eq!(
        found,
        [&*first, &*second, "host-7", "planned", "two-socket-mlx4"]
    );
    // A host that is named in its documents, and is read twice.
    let named = with(
        &with(
            &checked(&machine),
            "/host",
            checked(&machine)["host"].clone(),
        ),
        "/verdict",
        "same".into(),
    );
    let mut named = named;
    named["host"]["name"] = "db1".into();
    let stream = format!("{named}\n{named}\n");
    let report = streamed(&["--json"], &stream).json();
    assert_eq!(report["repeated"], json!(["db1"]));
    let screen = streamed(&[], &stream).stdout;
    let (_, end) = screen.rsplit_once("\n\n").unwrap();
    assert_data_eq!(
        end,
        str![[r"
read more than once: 1 host
    db1

"]]
    );
}

#[test]
fn the_reason_of_a_difference_is_said_once_and_only_where_it_is_known() {
    let machine = MachineTree::of("two-socket-mlx4");
    let dir = files(&[]);
    let capture = dir.path().join("host-7.tar.gz");
    let run = machine.nicpin(&["capture", "-o", capture.to_str().unwrap()]);
    assert_eq!(run.code, 0);
    let reasons = |path: &Path| {
        let drift = report(&[path]).0["drift"].clone();
        let drift = drift.as_array().unwrap().iter();
        drift
            .map(|drift| drift["reason"].clone())
            .collect::<Vec<_>>()
    };
    // Without `/run`, a tree tells no more than a capture.
    assert_eq!(reasons(machine.dir()), ["not-known"]);
    assert_eq!(reasons(&capture), ["not-known"]);
    std::fs::create_dir(machine.path("/run")).unwrap();
    assert_eq!(reasons(machine.dir()), ["not-applied"]);
    std::fs::create_dir_all(machine.path("/run/nicpin")).unwrap();
    machine.write("/run/nicpin/state.json", "{");
    assert_eq!(reasons(machine.dir()), ["could-not-be-determined"]);
}

/// The result of the module or of a command on one host, and the report of a play with many.
#[test]
fn what_ansible_returns_is_read() {
    let good = checked(&planned());
    let dir = files(&[
        ("web1", json!({ "changed": false, "check": good }).to_string()),
        (
            "web2",
            json!({ "changed": true, "rc": 2, "stdout": format!("{good:#}"), "stdout_lines": ["{"] })
                .to_string(),
        ),
        ("web3", json!({ "msg": "Failed to connect to the host", "unreachable": true }).to_string()),
    ]);
    let (found, code) = report(&[dir.path()]);
    assert_eq!(
        (code, &found["hosts"], &found["planned"]),
        (1, &json!(2), &json!(2))
    );
    let failed = &found["failed"][0];
    assert!(text(failed, "source").ends_with("/web3:1"), "{failed}");
    assert_line(
        text(failed, "error"),
        str![[r"
Failed to connect to the host; expected the output of `nicpin check --json` or `nicpin plan --json`

"]],
    );
    let hosts = json!({
        "db1": { "stdout": good.to_string() }, "db2": { "check": good }, "db3": { "unreachable": true, "msg": "no route" },
    });
    let play = json!({ "plays": [{ "tasks": [{ "task": { "name": "check" }, "hosts": hosts }] }], "stats": {} });
    let run = streamed(&["--json"], &format!("{play:#}\n"));
    let found = run.json();
    assert_eq!(
        (run.code, &found["classes"][0]["plans"][0]["hosts"]),
        (1, &json!(["db1", "db2"]))
    );
    let failed = json!([{"source": "db3", "error": "no route"}]);
    assert_eq!(found["failed"], failed);
}

/// A plan that could not be made has nothing to write either.
#[test]
fn a_plan_with_an_unknown_interface_is_not_as_planned() {
    let machine = planned();
    let rule = "[[rule]]\nmatch = { name = 'eth2' }\nset = { scope = 'node:7' }\n";
    std::fs::create_dir(machine.path("/etc")).unwrap();
    machine.write("/etc/nicpin.toml", rule);
    let plan = machine.nicpin(&["plan", "--json"]);
    assert_eq!(plan.code, 1);
    let dir = files(&[("plan.json", plan.stdout)]);
    let (fleet, code) = report(&[&dir.path().join("plan.json")]);
    assert_eq!(code, 1, "{fleet:#}");
    assert_eq!(fleet["drift"][0]["reason"], "could-not-be-determined");
}

/// What differs and is as good is as planned for a plan, too, as for a check.
#[test]
fn a_plan_that_gains_nothing_is_as_planned() {
    let machine = planned();
    machine.settle();
    machine.exchange([73, 74]);
    let plan = machine.nicpin(&["plan", "--json"]);
    let parsed = plan.json();
    assert_eq!(parsed["writes"].as_array().map(Vec::len), Some(2));
    assert_eq!(machine.nicpin(&["check"]).code, 0);
    let documents = [
        plan.stdout,
        with(&parsed, "/gains", true.into()).to_string(),
    ];
    for (document, code) in documents.into_iter().zip([0, 2]) {
        let dir = files(&[("plan.json", document)]);
        let (fleet, found) = report(&[&dir.path().join("plan.json")]);
        assert_eq!(found, code, "{fleet:#}");
    }
}

#[test]
fn exit_codes() {
    let good = checked(&planned());
    let undetermined = with(&good, "/verdict", "could-not-be-determined".into());
    let run = streamed(&["--json"], &format!("h1: {good}\nh2: {undetermined}\n"));
    let found = run.json();
    assert_eq!(
        (run.code, &found["planned"], &found["undetermined"]),
        (1, &json!(1), &json!(1))
    );
    assert_eq!(streamed(&[], "").code, 1);
    for args in [
        &["fleet"][..],
        &["fleet", "--root", "fixtures/dl980", "x"],
        &["fleet", "--bad", "x"],
    ] {
        assert_eq!(nicpin(args).code, 64, "{args:?}");
    }
    let quiet = nicpin(&["fleet", "-q", fixture("dl980").to_str().unwrap()]);
    assert_eq!(
        (quiet.code, quiet.stdout.as_str(), quiet.stderr.as_str()),
        (2, "", "")
    );
    let this = nicpin(&["fleet", "/"]);
    assert_eq!(this.code, 1, "{this:?}");
    assert_data_eq!(
        this.stderr,
        str![[r"
nicpin: /: is this machine, not a copy of one; fix: use the output of `nicpin check --json`

"]]
    );
}

/// A host's texts are in one line each, and none looks like a line about another host.
#[test]
fn a_host_prints_no_line_of_another_one() {
    let good = checked(&planned());
    let forged = "x\n\nremote: 1 host, not-applied\n    h1";
    let mut document = good.clone();
    document["class"] = forged.into();
    document["other_tools"] = json!([forged]);
    document["interfaces"][0]["driver"] = format!("\u{2028}{forged}{}", "y".repeat(100_000)).into();
    document["interfaces"][0]["name"] = forged.into();
    let error = with(&good, "/verdict", forged.into());
    let stream = format!(
        "h1: {good}\nh2: {document}\nh3: {error}\nh4: {}\n",
        "z".repeat(100_000)
    );
    let run = streamed(&["-v"], &stream);
    assert_eq!(run.code, 1);
    for text in [&run.stdout, &run.stderr] {
        assert!(!text.contains("\nremote:"), "{text}");
        assert!(
            text.lines().all(|line| line.chars().count() < 2000),
            "{text}"
        );
    }
    assert_eq!(run.stderr.lines().count(), 2, "{}", run.stderr);
}

#[test]
fn what_is_no_regular_file_is_refused_at_once() {
    let directory = files(&[("good.json", checked(&planned()).to_string())]);
    let fifo = directory.path().join("fifo");
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(directory.path().join("socket")).unwrap();
    std::os::unix::fs::symlink("/dev/zero", directory.path().join("zero")).unwrap();
    std::os::unix::fs::symlink(".", directory.path().join("again")).unwrap();
    let (report, code) = report(&[directory.path()]);
    assert_eq!((code, &report["hosts"]), (1, &1.into()));
    let failed = report["failed"].as_array().unwrap();
    assert_eq!(failed.len(), 3, "{failed:#?}");
    // A socket cannot be opened.
    let said = failed.iter().map(|one| text(one, "error")).join("\n");
    let said = said.replace(directory.path().to_str().unwrap(), "DIR");
    assert_data_eq!(
        said,
        str![[r"
is a FIFO, a device or a socket, not a regular file
no such device or address (ENXIO)
is a FIFO, a device or a socket, not a regular file
"]]
    );
    let list = format!("@{}", fifo.display());
    assert_eq!(fleet(&[Path::new(&list)]).code, 1);
}

/// Thousands of interfaces, of which each has another name on the other host.
#[test]
fn many_interfaces_are_compared_in_linear_time() {
    let good = checked(&planned());
    let many = if is_full() { 100_000 } else { 5000 };
    let of = |letter: char| {
        let interfaces = (0..many).map(|at| {
            let mut interface = good["interfaces"][0].clone();
            interface["name"] = format!("{letter}{at}").into();
            interface["device"] = format!("{letter}{at}").into();
            interface["driver"] = format!("driver{at}").into();
            interface
        });
        let document = with(&good, "/interfaces", interfaces.collect());
        with(&document, "/class", letter.to_string().into())
    };
    let run = streamed(&[], &format!("h1: {}\nh2: {}\n", of('a'), of('b')));
    assert!(
        run.stdout.starts_with("2 hosts, 2 classes"),
        "{}",
        run.stdout
    );
    assert!(
        run.stdout.contains(&format!("{} more", many - 8)),
        "{}",
        run.stdout
    );
}
