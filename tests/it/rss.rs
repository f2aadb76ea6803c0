//! RSS, accelerated RFS and `xps_rxqs`: planned, set, checked and restored. A tree holds a recorded answer; `tests/vm`
//! tests on running kernels that traffic follows.

use nix::errno::Errno;
use serde_json::{Value, json};
use snapbox::{assert_data_eq, str};

use crate::support::host::read_and_plan;
use crate::support::run::{
    MachineTree, assert_line, codes, document, expect, good, nicpin, note, text,
};
use crate::support::two_node::atomic;
use crate::support::{host, temporary};
use nicpin::apply;
use nicpin::cpuset::CpuSet;
use nicpin::machine::Rss;
use nicpin::root::faults::FileAction;

const ETH0: &str = "/nicpin/ethtool/eth0/rss";
/// As igb sets it: in blocks, which is not the kernel's default.
const BLOCKS: &str = "{\"function\":1,\"table\":\"queues 16, entries 128, \
    table 0*8 1*8 2*8 3*8 4*8 5*8 6*8 7*8 8*8 9*8 10*8 11*8 12*8 13*8 14*8 15*8\"}\n";
const DEFAULT: &str = "{\"function\":1,\"table\":\"queues 16, entries 128, \
    table 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15\"}\n";

/// A recorded table, with a hash function of `ETH_RSS_HASH_*`.
fn recorded(function: u8, table: &str) -> String {
    format!("{{\"function\":{function},\"table\":\"{table}\"}}\n")
}

/// dl980, where eth0 has 16 queues on the 8 cores of node 0, with this table.
fn machine(table: &str) -> MachineTree {
    let machine = MachineTree::of("dl980");
    machine.write(ETH0, table);
    machine
}

/// The plan of the one selected interface.
fn planned(machine: &MachineTree, args: &[&str]) -> Value {
    document(machine, &[&["plan"], args].concat())["interfaces"][0].take()
}

/// The only difference: its kind, both values and the reason.
fn difference(machine: &MachineTree, args: &[&str]) -> [Value; 4] {
    let run = machine.nicpin(&[&["check", "--json"], args].concat());
    let check = run.json();
    let [of] = check["differs"].as_array().unwrap().as_slice() else {
        panic!("{check}");
    };
    assert_eq!(run.code, 2, "{check}");
    ["kind", "current", "value", "reason"].map(|key| of[key].clone())
}

#[test]
fn a_table_stays_as_it_is_unless_asked() {
    let machine = machine(BLOCKS);
    let without = MachineTree::of("dl980");
    let plan = |machine: &MachineTree| document(machine, &["plan", "eth0"]);
    let (with, without) = (plan(&machine), plan(&without));
    assert_eq!(
        (&with["hash"], &with["writes"]),
        (&without["hash"], &without["writes"])
    );
    assert_eq!(without["interfaces"][0].get("rss"), None);
    let rss = &with["interfaces"][0]["rss"];
    assert_eq!(
        (&rss["now"], &rss["queues"]),
        (&"0-15".into(), &Value::Null)
    );
    good(&machine, &["apply", "eth0"]);
    assert!(!machine.read("/run/nicpin/state.json").contains(" rss\""));
    // Somebody else's table outlives a restore of what nicpin has set.
    let other = BLOCKS.replace("15*8", "0*8");
    machine.write(ETH0, &other);
    good(&machine, &["restore"]);
    assert_eq!(machine.read(ETH0), other);
}

#[test]
fn the_first_queues_take_all_flows_and_restore_undoes_it() {
    for table in [BLOCKS, DEFAULT] {
        let machine = machine(table);
        let args = |command| [command, "eth0", "--rss", "4"];
        let rss = planned(&machine, &args("plan")[1..])["rss"].take();
        assert_eq!(
            (&rss["now"], &rss["queues"]),
            (&"0-15".into(), &"0-3".into())
        );
        let script = good(&machine, &[&args("plan")[..], &["--format", "sh"]].concat());
        assert!(script.contains(" ethtool -X eth0 equal 4 # "), "{script}");
        assert_eq!(machine.nicpin(&args("check")).code, 2);
        good(&machine, &args("apply"));
        assert_eq!(
            machine.read(ETH0),
            recorded(1, "queues 16, entries 128, table 0 1 2 3")
        );
        good(&machine, &args("check"));
        assert_eq!(document(&machine, &args("apply"))["changed"], 0);
        let status = document(&machine, &args("status"));
        assert_eq!(status["interfaces"][0]["rss"]["now"], "0-3");
        assert!(
            machine
                .read("/run/nicpin/state.json")
                .contains("0000:0b:00.0 port 0 rss")
        );
        good(&machine, &["restore"]);
        assert_eq!(machine.read(ETH0), table);
    }
}

/// More queues than cores: a second queue on a core takes no load off it.
#[test]
fn candidates_are_a_queue_on_each_core() {
    let machine = machine(DEFAULT);
    let queues = |args: &[&str]| {
        let eth0 = planned(&machine, &[&["eth0", "--rss", "candidates"], args].concat());
        assert!(!codes(&eth0).contains(&"queues-exceed-cores"), "{eth0}");
        eth0["rss"]["queues"].clone()
    };
    let few = ["--irq-cores", "2"];
    assert_eq!([queues(&[]), queues(&few)], ["0-7", "0-1"]);
    // What is told to do about it, and where there is no table.
    let advice = || {
        let eth0 = planned(&machine, &["eth0", "--irq-cores", "2"]);
        note(&eth0, "queues-exceed-cores").clone()
    };
    let with = advice();
    // What was given stands on the screen once.
    let screen = machine.nicpin(&["plan", "eth0", "--irq-cores", "2"]).stdout;
    expect("rss-advice.txt", screen);
    machine.remove(ETH0);
    let without = advice();
    assert_eq!(
        [&with["fix"], &without["fix"]],
        [
            "nicpin apply --irq-cores 2 --rss candidates eth0",
            "nicpin apply --channels 2 eth0"
        ]
    );
    assert_line(
        text(&with, "text"),
        str![[r"
16 queues for 2 cores. The RSS table can limit flows to one queue per core, with the link up

"]],
    );
    assert_line(
        text(&without, "text"),
        str![[r"
16 queues for 2 cores; one queue for each core is enough, and a change takes the link down for a moment

"]],
    );
}

#[test]
fn another_hand_is_named() {
    let machine = machine(DEFAULT);
    let args = |command| [command, "eth0", "--rss", "4"];
    let screen = |args: &[&str]| machine.nicpin(args).stdout;
    let plan = screen(&args("plan"));
    good(&machine, &args("apply"));
    let status = screen(&args("status"));
    let other = "queues 16, entries 128, table 9*4 4 5 6 7 8 9 10 11 12 13 14 15";
    machine.write(ETH0, &recorded(1, other));
    let planned = "queues 16, entries 128, table 0 1 2 3";
    assert_eq!(
        difference(&machine, &args("check")[1..]),
        ["rss", other, planned, "moved-by-other"]
    );
    let check = screen(&[&args("check")[..], &["-v"]].concat());
    expect("rss.txt", [plan, status, check].join("\n"));
    good(&machine, &args("apply"));
    good(&machine, &args("check"));
}

/// The interface is unknown and stays as it is; where the answer is known not to change, it is an error of usage.
#[test]
fn a_table_that_cannot_be_set_is_refused() {
    let strange = recorded(8, "queues 16, entries 128, table 0 1");
    let mut said = String::new();
    for (table, wish, code) in [
        (None, "4", 1),
        (None, "candidates", 1),
        (Some(&*strange), "4", 64),
        (Some(DEFAULT), "99", 64),
    ] {
        let machine = MachineTree::of("dl980");
        if let Some(table) = table {
            machine.write(ETH0, table);
        }
        let before = machine.texts();
        for command in [
            &["plan"][..],
            &["plan", "--format", "sh"],
            &["apply"],
            &["check"],
        ] {
            let args = [command, &["eth0", "--rss", wish]].concat();
            let run = machine.nicpin(&args);
            assert_eq!(run.code, code, "{command:?} {wish}: {}", run.stderr);
            said += &format!("$ nicpin {}\n{}{}", args.join(" "), run.stdout, run.stderr);
        }
        let mut after = machine.texts();
        after.retain(|path, _| !path.starts_with("run/"));
        assert_eq!(after, before, "{wish}");
        // Others are applied.
        let args = |command| [command, "eth0", "eth1", "--rss", wish];
        machine.write("/nicpin/ethtool/eth1/rss", DEFAULT);
        if code == 1 {
            assert_eq!(machine.nicpin(&args("apply")).code, 1);
            assert_ne!(machine.read("/nicpin/ethtool/eth1/rss"), DEFAULT);
            let check = machine.nicpin(&[&args("check")[..], &["--json"]].concat());
            let unknown = &check.json()["unknown"];
            let [eth0] = unknown.as_array().unwrap().as_slice() else {
                panic!("{unknown}");
            };
            assert_eq!(check.code, 1);
            assert_eq!(
                [&eth0["interface"], &eth0["code"]],
                ["eth0", "rss-unchanged"]
            );
        }
        // A rule of the policy concerns what it matches.
        let rule = format!("[defaults]\nrss = '{wish}'\n").replace("'99'", "99");
        machine.put("etc/nicpin.toml", &rule.replace("'4'", "4"));
        assert_eq!(machine.nicpin(&["check", "eth0"]).code, 1, "{rule}");
    }
    expect("rss-refused.txt", said);
    // Nor by more queues than channels that are asked for beside it.
    let contradiction = ["apply", "eth0", "--channels", "2", "--rss", "3"];
    assert_data_eq!(
        machine(DEFAULT).fails(&contradiction, 64),
        str![[r"
nicpin: --rss: RSS over 3 queues requested, but its table can reach 2 at most

"]]
    );
    // XOR and CRC32 select an entry as Toeplitz does.
    let machine = machine(&DEFAULT.replace("\"function\":1", "\"function\":2"));
    good(&machine, &["apply", "eth0", "--rss", "2"]);
    assert_eq!(
        machine.read(ETH0),
        recorded(2, "queues 16, entries 128, table 0 1")
    );
    machine.write(ETH0, &recorded(1, "queues 16, entries 0, table 0"));
    assert_data_eq!(
        machine.fails(&["plan", "eth0"], 1),
        str![[r"
nicpin: ROOT/nicpin/ethtool/eth0/rss: not an RSS table; expected `queues 4, entries 128, table 0 1 2 3`

"]]
    );
}

/// A default table follows the channels: it is not what it was with other ones.
#[test]
fn channels_and_table_are_restored_together() {
    let machine = machine(DEFAULT);
    let before = machine.texts();
    let run = document(
        &machine,
        &["apply", "eth0", "--channels", "4", "--rss", "2"],
    );
    let set = json!([{"interface": "eth0", "wanted": "combined 4", "refused": null}]);
    assert_eq!(run["channels"], set);
    assert!(machine.read(ETH0).ends_with("table 0 1\"}\n"));
    // The driver has its own table for the channels.
    good(&machine, &["restore"]);
    assert_eq!(machine.texts(), before);
}

/// What cannot be restored is known before any write.
#[test]
fn a_dry_run_of_restore_names_what_restore_refuses() {
    let machine = machine(BLOCKS);
    good(&machine, &["apply", "eth0", "--rss", "4"]);
    let fewer = |queues: u32, table| recorded(1, &format!("queues {queues}, entries 128, {table}"));
    machine.write(ETH0, &fewer(8, "table 0 1 2 3 4 5 6 7"));
    let state = "/run/nicpin/state.json";
    let record = machine.read(state);
    let zeros = "rx-0 rps_cpus\": \"00000000,00000000,00000000,00000000";
    machine.write(state, &record.replacen(zeros, "rx-0 rps_cpus\": \"x", 1));
    let mut screens = String::new();
    for (many, already) in [(32, 32), (0, 64)] {
        let planned = machine.nicpin(&["restore", "-n", "--json"]).json();
        let refusals = &planned["refusals"]["results"];
        let count = |of: &Value| of.as_array().unwrap().len();
        assert_eq!(
            (count(&planned["writes"]), count(refusals)),
            (many, 2),
            "{planned}"
        );
        assert_eq!(planned["unchanged"], already);
        let dry = machine.nicpin(&["restore", "-n"]);
        let restored = machine.nicpin(&["restore"]);
        assert_eq!((dry.code, restored.code), (1, 1));
        screens += &(dry.stdout + &restored.stdout);
    }
    expect("refused.restore.txt", screens);
    let dry = machine.nicpin(&["restore", "-n", "--quiet"]);
    assert_eq!((dry.code, dry.stderr.lines().count()), (1, 2));
    // With the channels that are restored first the table fits.
    machine.write(ETH0, BLOCKS);
    machine.write(state, &record);
    good(&machine, &["restore"]);
    good(
        &machine,
        &["apply", "eth0", "--channels", "4", "--rss", "2"],
    );
    machine.write(ETH0, &fewer(4, "table 0 1"));
    let dry = document(&machine, &["restore", "-n"]);
    assert_eq!(dry["channels"], json!({"eth0": "combined 16"}));
}

#[test]
fn a_trial_and_an_atomic_apply_undo_the_table() {
    let machine = machine(BLOCKS);
    let before = machine.texts();
    good(&machine, &["apply", "eth0", "--rss", "4", "--try", "1"]);
    crate::support::trial::watched_to_the_end(&machine);
    assert_eq!(machine.read(ETH0), BLOCKS);
    // What comes after the table is refused, and then the table itself.
    for (refused, at) in [
        (
            "/sys/class/net/",
            "/sys/class/net/eth0/queues/tx-0/xps_cpus",
        ),
        (ETH0, ETH0),
    ] {
        let root = machine.refusing(Errno::EACCES, move |access| {
            access.action == FileAction::Write
                && access.path.starts_with(refused)
                && !access.value.contains("*8")
        });
        let done = apply::apply(&root, atomic(), |root| {
            read_and_plan(root, &[("rss", "4")], &["eth0"])
        });
        let done = done.unwrap();
        assert!(done.failed() && done.undone.as_ref().unwrap().complete());
        let mut refusals = done
            .results
            .iter()
            .filter(|result| result.failed())
            .map(|result| &*result.path);
        assert_eq!(refusals.next_back(), Some(at));
        let now = machine.texts();
        assert!(
            before.iter().all(|(path, text)| now[path] == *text),
            "{refused}"
        );
    }
}

#[test]
fn a_stored_plan_fits_the_table_that_is_there() {
    let machine = machine(DEFAULT);
    let plan = machine
        .nicpin(&["plan", "eth0", "--rss", "4", "--json"])
        .stdout;
    machine.write("/plan.json", &plan);
    let stored = machine.path("/plan.json");
    let apply = |more: &[&str]| {
        machine.nicpin(&[&["apply", "--plan", stored.to_str().unwrap()], more].concat())
    };
    let small = recorded(0, "queues 2, entries 128, table 0 1");
    machine.write(ETH0, &small);
    let report = apply(&["--force", "--json"]).json();
    let [changed] = report["changes"].as_array().unwrap().as_slice() else {
        panic!("{report}");
    };
    assert_eq!(
        (&changed["code"], &changed["left_out"]),
        (&json!("rss-table-changed"), &json!(true))
    );
    assert_data_eq!(
        text(changed, "text"),
        str!["the RSS table was planned for queues 0-3, and can reach 0-1"]
    );
    assert_eq!(machine.read(ETH0), small);
    machine.write(ETH0, DEFAULT);
    assert_eq!(apply(&[]).code, 0);
    assert!(machine.read(ETH0).ends_with("table 0 1 2 3\"}\n"));
    // A value that is not what the plan says of the interface.
    machine.write(
        "/plan.json",
        &plan.replace("table 0 1 2 3\"", "table 0 1 2 9\""),
    );
    assert_eq!(apply(&[]).code, 1);
}

/// ixgbevf reports its table, and has no function to set one.
#[test]
fn a_table_that_can_only_be_read_is_not_advised() {
    for (driver, is_advised) in [("ixgbe", true), ("ixgbevf", false)] {
        let mut machine = host::machine(2, 4, 1, 4);
        host::add(&mut machine, "eth0", Some(0), 4);
        let eth0 = &mut machine.interfaces[0];
        eth0.driver = Some(driver.to_owned());
        eth0.rss = Rss::parse("queues 4, entries 128, table 0 1 2 3");
        eth0.vectors[1].movable = false;
        eth0.vectors[1].effective = Some(CpuSet::single(6));
        for (options, note) in [
            (&[("irq-cores", "2")][..], "queues-exceed-cores"),
            (&[], "rss-beyond-candidates"),
        ] {
            let plan = host::plan_with(&machine, options, &[]);
            let mut notes = host::of(&plan, "eth0").notes.iter();
            let note = notes.find(|found| found.code() == note).unwrap();
            let command = note.command().map(|command| command.to_string());
            assert_eq!(
                command.is_some_and(|command| command.contains("--rss candidates")),
                is_advised,
                "{driver}: {note}"
            );
        }
        let plan = host::plan_with(&machine, &[("rss", "2")], &[]);
        let eth0 = host::of(&plan, "eth0");
        let is_planned = eth0.rss.as_ref().unwrap().queues.is_some();
        let mut notes = eth0.notes.iter();
        let note = notes.find(|note| note.code() == "rss-unchanged");
        assert_eq!((is_planned, note.is_none()), (is_advised, is_advised));
        if let Some(note) = note {
            assert_data_eq!(
                note.to_string(),
                str!["RSS over 2 queues requested, but the driver cannot set its RSS table"]
            );
        }
    }
}

/// As of ice with more queues than vectors (`TxRx-0-1`): a vector serves two queues that follow each other.
#[test]
fn the_first_queues_are_on_vectors_of_their_own_while_there_are_any() {
    let mut machine = host::machine(1, 8, 1, 8);
    host::add(&mut machine, "eth0", Some(0), 16);
    let eth0 = &mut machine.interfaces[0];
    eth0.vectors.truncate(8);
    for (vector, queue) in eth0.vectors.iter_mut().zip(0..) {
        vector.queue = Some(2 * queue);
    }
    eth0.rss = Some(Rss {
        table: (0..128).map(|at| at % 16).collect(),
        queues: 16,
        function: 1,
    });
    let first = |count| {
        let plan = host::plan_with(&machine, &[("rss", count)], &[]);
        let rss = host::of(&plan, "eth0").rss.clone().unwrap();
        rss.queues.unwrap().to_string()
    };
    assert_eq!(first("8"), "0,2,4,6,8,10,12,14");
    assert_eq!(first("3"), "0,2,4");
    assert_eq!(first("10"), "0-4,6,8,10,12,14");
}

/// A queue whose vector cannot be moved from an isolated or remote CPU gets no flows, and is a finding without `--rss`.
#[test]
fn vectors_that_cannot_be_moved_are_left_out() {
    let mut machine = host::machine(2, 4, 1, 4);
    host::add(&mut machine, "eth0", Some(0), 4);
    let eth0 = &mut machine.interfaces[0];
    eth0.rss = Some(Rss {
        table: (0..128).map(|at| at % 4).collect(),
        queues: 4,
        function: 1,
    });
    eth0.vectors[1].movable = false;
    eth0.vectors[1].effective = Some(CpuSet::single(6));
    let codes = |options: &[(&str, &str)]| {
        let plan = host::plan_with(&machine, options, &[]);
        let eth0 = host::of(&plan, "eth0").clone();
        let notes: Vec<String> = eth0.notes.iter().map(nicpin::plan::Note::code).collect();
        (
            eth0.rss.unwrap().queues.map(|queues| queues.to_string()),
            notes.contains(&"rss-beyond-candidates".to_owned()),
        )
    };
    assert_eq!(codes(&[]), (None, true));
    assert_eq!(
        codes(&[("rss", "candidates")]),
        (Some("0,2-3".to_owned()), false)
    );
    assert_eq!(codes(&[("rss", "4")]), (Some("0-3".to_owned()), true));
    assert_eq!(codes(&[("rss", "1")]), (Some("0".to_owned()), false));
    let plan = host::plan_with(&machine, &[("rss", "candidates")], &[]);
    let script = crate::screen::shell::script(&plan);
    assert!(
        script.contains("ethtool -X eth0 weight 1 0 1 1  #"),
        "{script}"
    );
}

#[test]
fn a_capture_has_the_table() {
    let machine = machine(BLOCKS);
    let out = temporary();
    let file = out.path().join("c.tar.gz");
    let to = ["-o", file.to_str().unwrap()];
    good(
        &machine,
        &[&["capture", "--redact-names"], &to[..]].concat(),
    );
    let plan =
        |root: &str| nicpin(&["plan", "--root", root, "--rss", "candidates", "--json"]).json();
    let (there, here) = (
        plan(file.to_str().unwrap()),
        plan(machine.path("/").to_str().unwrap()),
    );
    assert_eq!(there["interfaces"][0]["rss"], here["interfaces"][0]["rss"]);
    assert_eq!(there["interfaces"][0]["rss"]["queues"], "0-7");
}

/// The switch of accelerated RFS, of drivers that have it and only with RFS.
#[test]
fn ntuple_filters_come_with_rfs_and_go_with_restore() {
    const FEATURES: &str = "/nicpin/ethtool/eth2/features";
    let machine = MachineTree::of("two-socket-mlx4");
    let ntuple = |on: Option<bool>| json!({ "ntuple": on }).to_string() + "\n";
    let (off, on) = (ntuple(Some(false)), ntuple(Some(true)));
    machine.write(FEATURES, &off);
    assert_eq!(planned(&machine, &["eth2"]).get("ntuple"), None);
    let options = ["eth2", "--rfs", "32768"];
    let args = |command| [&[command], &options[..]].concat();
    assert_eq!(planned(&machine, &options)["ntuple"], true);
    let plan = machine.nicpin(&args("plan")).stdout;
    let script = machine.nicpin(&[&args("plan")[..], &["--format", "sh"]].concat());
    let last = script.stdout.lines().last().unwrap();
    assert!(last.starts_with("ethtool -K eth2 ntuple on  # "), "{last}");
    good(&machine, &args("apply"));
    assert_eq!(machine.read(FEATURES), on);
    good(&machine, &args("check"));
    machine.write(FEATURES, &off);
    assert_eq!(
        difference(&machine, &options),
        ["ntuple", "off", "on", "moved-by-other"]
    );
    let check = machine.nicpin(&[&args("check")[..], &["-v"]].concat());
    expect("ntuple.txt", plan + "\n" + &check.stdout);
    good(&machine, &args("apply"));
    good(&machine, &["restore"]);
    assert_eq!(machine.read(FEATURES), off);
    // Where the driver does not allow it, or it was on before.
    for text in [&ntuple(None), &on] {
        machine.write(FEATURES, text);
        good(&machine, &args("apply"));
        good(&machine, &["restore"]);
        assert_eq!(machine.read(FEATURES), *text);
    }
    // ixgbe has such filters, and no accelerated RFS.
    let other = MachineTree::of("dl980");
    other.write("/nicpin/ethtool/eth0/features", &off);
    let eth0 = planned(&other, &["eth0", "--rfs", "32768"]);
    assert_eq!(eth0.get("ntuple"), None);
}

#[test]
fn transmit_queues_for_receive_queues() {
    let machine = MachineTree::of("dl980");
    let before = machine.texts();
    let file = |queue: usize| format!("/sys/class/net/eth0/queues/tx-{queue}/xps_rxqs");
    let rxqs = |queue: usize| machine.read(&file(queue)).trim().to_owned();
    let args = |command| [command, "eth0", "--xps", "rxqs"];
    assert_eq!((rxqs(0), rxqs(15)), ("0000".to_owned(), "0000".to_owned()));
    let other = MachineTree::of("two-socket-mlx4");
    for command in ["plan", "check", "apply", "status"] {
        assert_data_eq!(
            other.fails(&[command, "--xps", "rxqs"], 64),
            str![[r"
nicpin: --xps: xps_rxqs requested, but the kernel has none for some of its queues

"]]
        );
    }
    let plan = machine.nicpin(&args("plan")).stdout;
    good(&machine, &args("apply"));
    assert_eq!(
        (rxqs(0), rxqs(5), rxqs(15)),
        ("0001".to_owned(), "0020".to_owned(), "8000".to_owned())
    );
    good(&machine, &args("check"));
    assert_eq!(document(&machine, &args("apply"))["changed"], 0);
    machine.write(&file(5), "0100\n");
    assert_eq!(
        difference(&machine, &args("check")[1..]),
        ["xps_rxqs", "0100", "0020", "moved-by-other"]
    );
    let check = machine.nicpin(&[&args("check")[..], &["-v"]].concat());
    expect("xps-rxqs.txt", plan + "\n" + &check.stdout);
    // The same CPUs as without it, and no note that xps_rxqs takes precedence.
    let json = |xps: &str| document(&machine, &["plan", "eth0", "--xps", xps]);
    let (with, without) = (json("rxqs"), json("auto"));
    assert_ne!(with["hash"], without["hash"]);
    for (a, b) in with["interfaces"][0]["tx_queues"]
        .as_array()
        .unwrap()
        .iter()
        .zip(without["interfaces"][0]["tx_queues"].as_array().unwrap())
    {
        assert_eq!(a["xps_cpus"], b["xps_cpus"]);
        assert_eq!(
            (&a["xps_rxqs"], b.get("xps_rxqs")),
            (&a["queue"].to_string().into(), None)
        );
    }
    let has_note = |plan: &Value| codes(&plan["interfaces"][0]).contains(&"xps-rxqs-set");
    assert!(!has_note(&with) && has_note(&without));
    good(&machine, &["restore"]);
    assert_eq!(machine.texts(), before);
}

/// Every receive queue has one transmit queue, whichever are more.
#[test]
fn receive_queues_are_dealt_to_fewer_transmit_queues() {
    let mut machine = host::machine(1, 8, 1, 8);
    host::add(&mut machine, "eth0", Some(0), 6);
    machine.interfaces[0].tx_queues.truncate(4);
    let plan = host::plan_with(&machine, &[("xps", "rxqs")], &[]);
    let rxqs = host::of(&plan, "eth0")
        .tx_queues
        .iter()
        .map(|tx| tx.xps_rxqs.as_ref().unwrap().to_string());
    assert_eq!(rxqs.collect::<Vec<_>>(), ["0,4", "1,5", "2", "3"]);
}
