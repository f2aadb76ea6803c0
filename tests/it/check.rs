//! `check` reports the reason why a setting is not as planned, and what could not be determined.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;

use itertools::Itertools as _;
use nix::errno::Errno;
use serde_json::{Value, json};
use snapbox::{assert_data_eq, str};

use crate::support::machine::{MachineSpec, Port, card, two_nodes};
use crate::support::run::{MachineTree, assert_line, codes, document, expect, good, note, text};
use nicpin::apply::{self, Options};

fn applied(name: &str) -> MachineTree {
    let machine = MachineTree::of(name);
    let run = machine.nicpin(&["apply"]);
    assert_eq!(run.code, 0, "{}{}", run.stdout, run.stderr);
    machine
}

fn json(machine: &MachineTree, args: &[&str]) -> Value {
    machine
        .nicpin(&[&["check", "--format", "json"], args].concat())
        .json()
}

/// A CPU of another node goes offline: what the kernel changes for it costs this interface nothing that the plan would
/// give back.
#[test]
fn a_change_since_apply_that_the_plan_makes_no_better_is_no_alarm() {
    let machine = applied("two-socket-mlx4");
    machine.settle();
    machine.write("/sys/devices/system/cpu/online", "0-8,10-11\n");
    machine.write("/sys/devices/system/cpu/offline", "9\n");
    let irq = "/proc/irq/74";
    machine.write(&format!("{irq}/smp_affinity"), "dff\n");
    machine.write(&format!("{irq}/effective_affinity_list"), "8\n");
    let check = document(&machine, &["check", "eth0"]);
    let eth0 = &check["interfaces"][0];
    assert_eq!(
        (&eth0["name"], &eth0["state"]),
        (&json!("eth0"), &json!("equivalent"))
    );
}

/// All differences have this reason. What `check` prints then, and the details of the differences.
fn check_reason(machine: &MachineTree, args: &[&str], reason: &str) -> (String, String) {
    let check = json(machine, args);
    assert_eq!(
        (&check["schema"], &check["verdict"]),
        (&"nicpin.check/1".into(), &"differs".into())
    );
    let differs = check["differs"].as_array().unwrap();
    assert!(!differs.is_empty());
    for difference in differs {
        assert_eq!(difference["reason"], reason, "{difference}");
    }
    let details = differs.iter().filter_map(|of| of["detail"].as_str());
    assert_quiet(machine, args, 2);
    let table = machine.nicpin(&[&["check"], args].concat());
    assert_eq!(table.code, 2, "{}", table.stdout);
    (table.stdout, details.unique().join("\n"))
}

/// A screen that has the machine's directory in it, as one line: where its lines break depends on that directory.
fn words(machine: &MachineTree, args: &[&str]) -> String {
    machine.rooted(&machine.nicpin(args).words()) + "\n"
}

/// With `-q` the exit code tells all.
fn assert_quiet(machine: &MachineTree, args: &[&str], code: i32) {
    let quiet = machine.nicpin(&[&["check", "-q"], args].concat());
    assert_eq!(
        (quiet.code, quiet.stdout.as_str(), quiet.stderr.as_str()),
        (code, "", "")
    );
}

#[test]
fn not_applied() {
    let (table, _) = check_reason(&MachineTree::of("two-node"), &[], "not-applied");
    expect("not-applied.check.txt", table);
    let machine = MachineTree::of("two-node");
    assert_eq!(machine.nicpin(&["apply", "nic0"]).code, 0);
    let (table, _) = check_reason(&machine, &[], "not-applied");
    expect("not-applied-everywhere.check.txt", table);
    // After a restore the settings are not applied.
    let machine = applied("two-node");
    assert_eq!(machine.nicpin(&["restore"]).code, 0);
    check_reason(&machine, &[], "not-applied");
}

#[test]
fn moved_by_another() {
    let machine = applied("two-socket-mlx4");
    machine.write("/proc/irq/73/smp_affinity", "001\n");
    let (table, detail) = check_reason(&machine, &[], "moved-by-other");
    assert_data_eq!(detail, str!["the last apply set CPU 8"]);
    let each = machine.nicpin(&["check", "-v"]).stdout;
    expect("moved-by-other.check.txt", table + &each);
    let check = json(&machine, &[]);
    let eth2 = &check["interfaces"][0];
    assert_eq!(
        (&eth2["name"], &eth2["state"]),
        (&json!("eth2"), &json!("remote"))
    );
    let [moved] = check["differs"].as_array().unwrap().as_slice() else {
        panic!("{check}");
    };
    let path = "/proc/irq/73/smp_affinity";
    let expected = [json!(path), json!("001"), json!("100")];
    assert_eq!(
        [&moved["path"], &moved["current"], &moved["value"]],
        expected.each_ref()
    );
    // The record keeps what apply has set, also after another apply.
    assert_eq!(machine.nicpin(&["apply"]).code, 0);
    machine.write("/sys/class/net/eth2/queues/tx-0/xps_cpus", "000\n");
    let (_, detail) = check_reason(&machine, &[], "moved-by-other");
    assert_data_eq!(detail, str!["the last apply set CPUs 0,6"]);
}

/// Who may have moved it: the tools on the machine, irqbalance with its version.
#[test]
fn other_tools_are_named() {
    let machine = applied("two-socket-mlx4");
    machine.put("/run/irqbalance/irqbalance812.sock", "");
    let stat = "812 (irqbalance) S 1 812 812 0 -1 4194560 1 0 0 0 1 1 0 0 20 0 1 0 100 1000000 100 \
                18446744073709551615 1 1 0 0 0 0 0 4096 0 0 0 0 17 0 0 0 0 0 0 0 0 0 0 0 0 0 0";
    machine.put("/proc/812/stat", stat);
    std::fs::create_dir_all(machine.path("/usr/sbin")).unwrap();
    let program = b"\x7fELF\xff\0usage\0irqbalance version 1.9.4\n\0\xfe";
    std::fs::write(machine.path("/usr/sbin/irqbalance"), program).unwrap();
    assert_eq!(json(&machine, &[])["other_tools"], json!(["irqbalance"]));
    machine.write("/proc/irq/73/smp_affinity", "001\n");
    assert_eq!(
        json(&machine, &[])["other_tools"],
        json!(["irqbalance 1.9.4"])
    );
    machine.remove("/usr/sbin/irqbalance");
    assert_eq!(json(&machine, &[])["other_tools"], json!(["irqbalance"]));
}

/// Settings that nicpin restored were not moved by another program.
#[test]
fn restored_by_a_restore_or_a_trial_that_was_refused_in_part() {
    let refused = "/sys/class/net/nic0/queues/tx-1/xps_cpus";
    let wait = Options::default().wait;
    for options in [&["apply"][..], &["apply", "--try", "3600"]] {
        let machine = MachineTree::of("two-node");
        assert_eq!(machine.nicpin(options).code, 0);
        let planned = machine.read(refused);
        let root = machine.refusing_writes(Errno::EINVAL, move |path| path == refused);
        let undone = match options.len() {
            1 => apply::restore(&root, wait).unwrap(),
            _ => apply::end_trial(&root, wait).unwrap(),
        };
        assert!(undone.unwrap().failed());
        check_reason(&machine, &[], "not-applied");
        let differs = json(&machine, &[])["differs"].clone();
        let mut paths = differs.as_array().unwrap().iter().map(|of| &of["path"]);
        assert!(paths.all(|path| path != refused), "{differs}");
        // And this one was.
        machine.write(refused, "00\n");
        let check = json(&machine, &["nic0"]);
        let differs = check["differs"].as_array().unwrap();
        let of = differs
            .iter()
            .find(|difference| difference["path"] == refused)
            .unwrap();
        assert_eq!(of["reason"], "moved-by-other", "{of}");
        machine.write(refused, &planned);
        assert_eq!(machine.nicpin(&["restore"]).code, 0);
        assert!(!machine.path("/run/nicpin/state.json").exists());
    }
}

#[test]
fn another_number_of_queues() {
    let machine = applied("two-node");
    machine.remove("/sys/class/net/nic0/queues/rx-3");
    machine.remove("/sys/class/net/nic0/queues/tx-3");
    let (table, detail) = check_reason(&machine, &["nic0"], "queue-count-changed");
    assert_data_eq!(
        detail,
        str!["4 rx and 4 tx queues at the last apply, 3 and 3 now"]
    );
    expect("queue-count-changed.check.txt", table);
    assert_eq!(machine.nicpin(&["check", "nic1"]).code, 0);
}

#[test]
fn not_taken_by_the_kernel() {
    let machine = MachineTree::of("two-node");
    machine.open_to_all();
    machine.set_mode("/sys/class/net/nic0/queues/tx-1/xps_cpus", 0o444);
    assert_eq!(machine.nicpin_as_nobody(&["apply"]).code, 1);
    // The record belongs to nobody, and is used only by nobody.
    let check = machine.nicpin_as_nobody(&["check", "--format", "json"]);
    let check = check.json();
    assert_eq!(check["differs"].as_array().unwrap().len(), 1, "{check:#}");
    assert_eq!(check["differs"][0]["reason"], "kernel-refused");
    assert_line(
        text(&check["differs"][0], "detail"),
        str![[r"
permission denied (EACCES): CAP_NET_ADMIN is needed; fix: run as root, outside any container

"]],
    );
    // To apply again would change nothing.
    for command in ["check", "status"] {
        let said = machine.nicpin_as_nobody(&[command]).stdout;
        assert!(
            said.contains("The kernel refused what apply wrote."),
            "{said}"
        );
        assert!(!said.contains("Fix: "), "{said}");
    }
}

#[test]
fn a_cpu_went_offline() {
    let machine = applied("two-node");
    machine.write("/sys/devices/system/cpu/online", "0-6\n");
    let check = json(&machine, &["nic1"]);
    let reason = |path: &str, reason: &str| {
        let differs = check["differs"].as_array().unwrap();
        let of = differs
            .iter()
            .filter(|difference| difference["path"].as_str().unwrap().contains(path));
        assert!(
            of.filter(|difference| difference["reason"] == reason)
                .count()
                > 0,
            "{path}: {check:#}"
        );
    };
    reason("smp_affinity", "cpu-offline");
    reason("xps_cpus", "cpu-offline");
}

#[test]
fn vectors_have_other_irqs() {
    let machine = applied("two-socket-mlx4");
    machine.renumber("/sys/devices/pci0000:80/0000:80:02.0/0000:82:00.0", 71, 171);
    // As planned by chance: no difference.
    assert_eq!(machine.nicpin(&["check"]).code, 0);
    machine.write("/proc/irq/171/smp_affinity", "fff\n");
    let (table, _) = check_reason(&machine, &[], "irq-recreated");
    expect("irq-recreated.check.txt", table);
}

#[test]
fn another_plan_is_wanted() {
    let machine = applied("two-node");
    let (table, _) = check_reason(&machine, &["--scope", "remote"], "plan-changed");
    expect("plan-changed.check.txt", table);
}

#[test]
fn what_could_not_be_determined() {
    let machine = applied("two-socket-mlx4");
    let interrupts = machine.read("/proc/interrupts");
    let without: Vec<&str> = interrupts
        .lines()
        .filter(|line| !line.contains("eth0"))
        .collect();
    machine.write("/proc/interrupts", &(without.join("\n") + "\n"));
    for irq in 64..69 {
        let actions = format!("/sys/kernel/irq/{irq}");
        if machine.path(&actions).exists() {
            machine.remove(&actions);
        }
    }
    let check = json(&machine, &["eth0"]);
    assert_eq!(check["verdict"], "could-not-be-determined");
    let unknown = &check["unknown"][0];
    assert_eq!(
        (&unknown["interface"], &unknown["code"]),
        (&"eth0".into(), &"no-vectors".into())
    );
    let table = machine.nicpin(&["check", "eth0"]);
    assert_eq!(table.code, 1);
    expect("no-vectors.check.txt", table.stdout);
    assert_quiet(&machine, &["eth0"], 1);
    // Without a selector, absent vectors are reported only if apply had set them.
    assert_eq!(machine.nicpin(&["check"]).code, 1);
    machine.remove("/run/nicpin/state.json");
    assert_eq!(machine.nicpin(&["check"]).code, 0);
}

/// Vectors that have exchanged their CPUs are as good as planned: no difference but with `--exact`, and apply restores them
/// once.
#[test]
fn an_equivalent_arrangement_is_no_difference() {
    let machine = applied("two-socket-mlx4");
    machine.settle();
    let exact = |code| assert_eq!(machine.nicpin(&["check", "--exact"]).code, code);
    exact(0);
    machine.exchange([72, 74]);
    let run = machine.nicpin(&["check"]);
    assert_eq!(run.code, 0, "{}", run.stdout);
    expect("equivalent.check.txt", run.stdout);
    exact(2);
    let nagios = machine.nicpin(&["check", "eth2", "--format", "nagios"]);
    assert_eq!(nagios.code, 0, "{}", nagios.stdout);
    let state = json(&machine, &[])["interfaces"][0]["state"].clone();
    assert_eq!(state, "equivalent");
    for changed in [2, 0] {
        let run = machine.nicpin(&["apply", "--format", "json"]);
        let applied = run.json();
        assert_eq!((run.code, applied["changed"].as_u64()), (0, Some(changed)));
    }
    exact(0);
}

/// An interface that was not selected is listed, and does not change the exit code.
#[test]
fn a_vector_that_is_not_understood_beside_others_is_listed() {
    let machine = MachineTree::of("two-socket-mlx4");
    let interrupts = machine.read("/proc/interrupts");
    machine.write(
        "/proc/interrupts",
        &interrupts.replace("eth0-TxRx-1", "eth0-weird"),
    );
    assert_eq!(machine.nicpin(&["apply"]).code, 0);
    for args in [&["check"][..], &["check", "eth0"]] {
        let run = machine.nicpin(&[args, &["--json"]].concat());
        let left = run.json()["left_alone"].to_string();
        assert!(run.code == 0 && left.contains("eth0-weird"), "{run:?}");
    }
}

/// Three names and a number, and with -v all.
#[test]
fn many_vectors_that_are_not_understood_are_counted() {
    let machine = MachineTree::of("dl980");
    let interrupts = machine.read("/proc/interrupts");
    machine.write(
        "/proc/interrupts",
        &interrupts.replace("eth0-TxRx-1", "eth0-weird-"),
    );
    let left = json(&machine, &[])["left_alone"].take();
    assert_eq!(left[0]["vectors"].as_array().unwrap().len(), 7, "{left}");
    let screens = [&["check", "eth0"][..], &["check", "eth0", "-v"]];
    let screens = screens.map(|args| machine.nicpin(args).stdout);
    expect("not-understood.check.txt", screens.join("\n"));
}

/// What is wrong is what the plan makes better, not what the kernel still has to move.
#[test]
fn the_cause_of_a_difference_is_a_measure_that_gets_better() {
    let machine = applied("two-socket-mlx4");
    let plan = machine.nicpin(&["plan", "--json"]).json();
    assert_eq!(plan["writes"], json!([]));
    machine.remove("/run");
    machine.write("/sys/class/net/eth0/queues/tx-0/xps_cpus", "fff\n");
    expect("untuned.check.txt", machine.nicpin(&["check"]).stdout);
    let check = json(&machine, &["eth0"]);
    assert_eq!(check["interfaces"][0]["state"], "untuned");
}

/// Queues that are new have no CPUs, while all CPUs send through those that were there before.
#[test]
fn transmit_queues_without_cpus_are_a_difference() {
    let names = ["eth0-TxRx-0", "eth0-TxRx-1", "eth0-TxRx-2", "eth0-TxRx-3"];
    let four = card("ixgbe", Port::new("eth0", 10_000, 4, 4), 31, &names);
    let tree = MachineTree::build(&two_nodes([four]));
    assert_eq!(tree.nicpin(&["apply"]).code, 0);
    std::fs::remove_dir_all(tree.dir().join("run")).unwrap();
    for (queue, cpus) in ["0f", "f0", "00", "00"].iter().enumerate() {
        let file = format!("sys/class/net/eth0/queues/tx-{queue}/xps_cpus");
        tree.put(&file, cpus);
    }
    let check = tree.nicpin(&["check"]);
    assert_eq!(check.code, 2, "{}", check.stdout);
    expect("unassigned-cpus.check.txt", check.stdout);
}

/// Differences do not depend on the record. Their reasons do, and a record that others may write gives none.
#[test]
fn a_record_that_cannot_be_read_is_unknown() {
    let machine = applied("two-socket-mlx4");
    machine.write("/proc/irq/73/smp_affinity", "001\n");
    let unknown = || {
        let [check, status] = ["check", "status"].map(|command| machine.nicpin(&[command, "-j"]));
        assert_eq!((check.code, status.code), (1, 1));
        let [check, status] = [check.json(), status.json()];
        assert_eq!(
            (&check["differs"][0]["reason"], &status["state"]),
            (&json!("unknown"), &json!("unknown"))
        );
        for command in ["check", "status"] {
            assert_eq!(machine.nicpin(&[command]).code, 1);
        }
        let run = machine.nicpin(&["check", "eth2", "--format", "nagios"]);
        assert_eq!(run.code, 3, "{}", run.stdout);
        let of_record = &check["unknown"][0];
        assert_eq!(of_record["code"], "record-unreadable");
        machine.rooted(text(of_record, "error"))
    };
    machine.set_mode("/run/nicpin/state.json", 0o666);
    let writable = unknown();
    machine.set_mode("/run/nicpin/state.json", 0o644);
    machine.write("/run/nicpin/state.json", "{");
    let malformed = unknown();
    let flow_table = machine
        .nicpin(&["check", "--rfs", "32768", "--json"])
        .json();
    assert_eq!(flow_table["unknown"][0].get("interface"), None);
    // Nothing is said of what was never applied, or written.
    let screens = ["check", "status"].map(|command| words(&machine, &[command]));
    expect("record-unreadable.txt", screens.concat());
    machine.remove("/run/nicpin/state.json");
    std::fs::create_dir(machine.path("/run/nicpin/state.json")).unwrap();
    assert_data_eq!(
        [writable, malformed, unknown()].join("\n"),
        str![[r"
ROOT/run/nicpin/state.json: is writable by everybody (mode 0666), so nicpin does not trust it; fix: chmod go-w it
ROOT/run/nicpin/state.json: not a record of original settings (EOF while parsing an object at line 1 column 1); what apply found and set is unknown; fix: move the file away (what it says is lost) and run again
ROOT/run/nicpin/state.json: is a directory (EISDIR); fix: name a file, not a directory
"]]
    );
}

/// An interface that is unknown for two reasons is one, and the settings of the whole machine are none.
#[test]
fn what_is_unknown_is_counted_by_interface() {
    let machine = MachineTree::of("two-socket-mlx4");
    let policy = machine.path("/policy.toml");
    let rule = "match = { name = \"eth2\" }\nset = { near = \"pid:999999\", scope = \"node:7\" }";
    machine.write("/policy.toml", &format!("[[rule]]\n{rule}\n"));
    let ruled = ["check", "--config", policy.to_str().unwrap()];
    let check = machine.nicpin(&[&ruled[..], &["--json"]].concat()).json();
    let unknown = check["unknown"].as_array().unwrap().iter();
    let unknown: Vec<_> = unknown.map(|of| of["interface"].clone()).collect();
    assert_eq!(unknown, ["eth2", "eth2"]);
    let of_interface = words(&machine, &ruled);
    let rfs = ["check", "--rfs", "32768"];
    assert_eq!(machine.nicpin(&["apply", "--rfs", "32768"]).code, 0);
    machine.write("/proc/sys/net/core/rps_sock_flow_entries", "0\n");
    machine.write("/run/nicpin/state.json", "{");
    let of_machine = words(&machine, &rfs);
    let nagios = words(&machine, &[&rfs[..], &["--format", "nagios"]].concat());
    machine.write("/proc/irq/73/smp_affinity", "001\n");
    let status = words(&machine, &["status"]);
    let screens = [of_interface, of_machine, nagios, status];
    expect("unknown.check.txt", screens.concat());
}

/// Vectors that apply has set and that are absent now are not as planned.
#[test]
fn the_state_of_an_interface_that_lost_its_vectors_could_not_be_determined() {
    let machine = applied("two-socket-mlx4");
    let kept = machine.read("/proc/interrupts");
    let kept: Vec<&str> = kept.lines().filter(|line| !line.contains("mlx4")).collect();
    machine.write("/proc/interrupts", &(kept.join("\n") + "\n"));
    assert_eq!(machine.nicpin(&["check"]).code, 1);
    let check = json(&machine, &[]);
    let unknown = check["unknown"].as_array().unwrap();
    assert!(unknown.iter().all(|unknown| unknown["interface"] == "eth2"));
    assert_eq!(check["verdict"], "could-not-be-determined");
    assert_eq!(machine.nicpin(&["check", "eth0"]).code, 0);
    // A second apply says so, too.
    assert_eq!(machine.nicpin(&["apply", "eth0"]).code, 0);
    assert_eq!(machine.nicpin(&["apply"]).code, 1);
}

/// All is as planned, and could not be restored.
#[test]
fn a_record_that_cannot_be_read_is_unknown_also_where_nothing_differs() {
    let machine = applied("two-socket-mlx4");
    machine.write("/run/nicpin/state.json", "{");
    for command in ["check", "status"] {
        let run = machine.nicpin(&[command, "--json"]);
        assert_eq!(run.code, 1, "{}", run.stdout);
        let code = r#""code": "record-unreadable""#;
        assert!(run.stdout.contains(code), "{}", run.stdout);
    }
}

#[test]
fn a_selector_without_an_interface_is_reported() {
    let machine = applied("two-node");
    let run = machine.nicpin(&["check", "--if-present", "nic0", "nic7"]);
    assert_eq!(run.code, 0, "{}", run.stdout);
    // So says the plan, which has nothing to write.
    let plan = machine.nicpin(&["plan", "nic0"]).stdout;
    expect("pending.check.txt", run.stdout + &plan);
    assert_eq!(
        json(&machine, &["--if-present", "nic7"])["notes"][0]["code"],
        "not-present"
    );
}

/// A machine of which nothing can be seen is not in the planned state; with `--if-present` that is no error.
#[test]
fn nothing_is_as_planned_where_nothing_is_seen() {
    let empty = MachineTree::build(&MachineSpec::new(&["0-3"]));
    let without = |path: &str| {
        let machine = MachineTree::of("two-node");
        machine.remove(path);
        machine
    };
    let functions = MachineTree::of("two-node");
    functions.remove("/sys/class/net");
    let function = "/sys/bus/pci/devices/0000:81:00.0/class";
    functions.put(function, "0x020000");
    std::fs::create_dir(functions.path("/sys/class/net")).unwrap();
    let mut said = String::new();
    for machine in [
        &empty,
        &functions,
        &without("/sys/class/net"),
        &without("/proc/irq"),
    ] {
        for args in [
            &["check"][..],
            &["apply"],
            &["status"],
            &["plan"],
            &["draw"],
            &["measure", "--seconds", "0.01"],
            &["capture", "--output", "/dev/null", "--force"],
        ] {
            let run = machine.nicpin(args);
            assert_eq!(run.code, 1, "{args:?}: {run:?}");
            let told = machine.rooted(&run.stderr);
            said += &format!("$ nicpin {}\n{told}", args.join(" "));
        }
    }
    // That there is no record says something only of a machine.
    for args in [&["restore"][..], &["restore", "--dry-run"]] {
        let said = without("/sys/class/net").fails(args, 1);
        assert!(said.contains("/sys/class/net: no such file"), "{said}");
        assert_eq!(MachineTree::of("two-node").nicpin(args).code, 0);
    }
    expect("nothing-seen.errors.txt", said);
    let machine = without("/proc/irq");
    for args in [
        &["plan", "--workers"][..],
        &["plan", "--format", "sh"],
        &["draw"],
    ] {
        let run = machine.nicpin(args);
        assert_eq!(run.code, 1, "{args:?}");
        assert_data_eq!(
            run.stderr,
            str![[r"
nicpin: nic0: the IRQs are unknown, because /proc/irq below this root is absent or empty
nicpin: nic1: the IRQs are unknown, because /proc/irq below this root is absent or empty

"]]
        );
    }
    for machine in [&empty, &functions, &without("/sys/class/net")] {
        for command in ["check", "apply", "plan", "status"] {
            let told = document(machine, &[command, "--if-present"]);
            assert!(codes(&told).contains(&"nothing-to-do"), "{told}");
        }
        let measured = machine.nicpin(&["measure", "--seconds", "0.01", "--if-present"]);
        assert_eq!(measured.code, 0, "{}", measured.stderr);
        // What has no place for notes.
        for args in [
            &["plan", "--workers"][..],
            &["plan", "--format", "sh"],
            &["draw"],
        ] {
            let run = machine.nicpin(&[args, &["--if-present"]].concat());
            assert_eq!(run.code, 0, "{args:?}");
            assert_data_eq!(
                run.stderr,
                str![[r"
nicpin: no interface with a device is up or has IRQs

"]]
            );
        }
    }
}

/// A set of CPUs would leave it out.
#[test]
fn an_irq_number_from_8192_on_is_named() {
    let machine = MachineTree::of("two-node");
    machine.set_mode("/proc/irq/36/smp_affinity", 0o444);
    let device = "/sys/devices/pci0000:20/0000:20:00.0/0000:21:00.0/msi_irqs";
    for directory in ["/proc/irq", device] {
        let path = |irq: &str| machine.path(&format!("{directory}/{irq}"));
        std::fs::rename(path("36"), path("9071")).unwrap();
    }
    let interrupts = machine.read("/proc/interrupts");
    machine.write("/proc/interrupts", &interrupts.replace(" 36:", "9071:"));
    let irqs = |unmovable: &Value| unmovable["irq"] == 9071;
    let check = json(&machine, &[]);
    assert!(
        check["unmovable"].as_array().unwrap().iter().any(irqs),
        "{check}"
    );
}

/// Why an IRQ cannot be moved is said only where the row of its driver tells it: mvpp2 forbids it for its own.
#[test]
fn an_irq_that_cannot_be_moved_is_kernel_managed_only_where_that_is_known() {
    let names = ["eth0-TxRx-0", "eth0-TxRx-1"];
    for (driver, managed, code) in [
        ("txgbe", true, "kernel-managed"),
        ("igb", false, "not-movable"),
    ] {
        let one = card(driver, Port::new("eth0", 10_000, 2, 2), 31, &names);
        let tree = MachineTree::build(&two_nodes([one]));
        for irq in [31, 32] {
            let file = tree.dir().join(format!("proc/irq/{irq}/smp_affinity"));
            std::fs::set_permissions(file, Permissions::from_mode(0o444)).unwrap();
        }
        let check = json(&tree, &[]);
        for unmovable in check["unmovable"].as_array().unwrap() {
            assert_eq!(unmovable["managed"], managed, "{check}");
        }
        assert_eq!(check["unmovable"].as_array().unwrap().len(), 2);
        let plan = document(&tree, &["plan"]);
        note(&plan["interfaces"][0], code);
        for command in [&["plan", "--explain"][..], &["status", "-v"], &["apply"]] {
            let said = tree.nicpin(command).words();
            let is_said = said.contains("kernel-managed");
            assert!(!is_said || managed, "{command:?}: {said}");
        }
    }
}

/// Vectors that cannot be moved are no differences, unless they are asked for.
#[test]
fn vectors_that_cannot_be_moved_are_differences_to_strict() {
    let machine = MachineTree::of("two-node");
    machine.set_mode("/proc/irq/36/smp_affinity", 0o444);
    let said = machine.nicpin(&["check", "--strict"]).words();
    assert!(
        said.contains("What can be set: nicpin apply") && !said.contains("apply --strict"),
        "{said}"
    );
    assert_eq!(machine.nicpin(&["apply", "--strict"]).code, 1);
    assert_eq!(machine.nicpin(&["apply"]).code, 0);
    assert_eq!(machine.nicpin(&["check"]).code, 0);
    let run = machine.nicpin(&["check", "--strict"]);
    assert_eq!(run.code, 2, "{}", run.stdout);
    expect("unmovable.check.txt", run.stdout);
    let strict = json(&machine, &["--strict"]);
    assert_eq!(
        (&strict["verdict"], &strict["unmovable"][0]["irq"]),
        (&"differs".into(), &36.into())
    );
    assert_eq!(machine.nicpin(&["check", "--strict", "nic1"]).code, 0);
}

/// The kernel allows such a name.
#[test]
fn the_fix_of_an_interface_that_is_named_like_an_option_works() {
    let machine = MachineTree::of("two-node");
    let interfaces = machine.path("/sys/class/net");
    std::fs::rename(interfaces.join("nic1"), interfaces.join("-rf")).unwrap();
    let run = machine.nicpin(&["check", "[-]rf"]);
    assert_eq!(run.code, 2, "{run:?}");
    let first = run.stdout.lines().next().unwrap();
    assert_data_eq!(
        first,
        str!["1 of 1 interface differs from the plan (worst: remote). Fix: nicpin apply '[-]rf'"]
    );
    let run = machine.nicpin(&["apply", "[-]rf"]);
    assert_eq!(run.code, 0, "{} {}", run.stdout, run.stderr);
    assert_eq!(machine.nicpin(&["check", "[-]rf"]).code, 0);
}

/// An apply of other interfaces is one, too.
#[test]
fn a_machine_is_never_applied_only_without_a_record() {
    let machine = MachineTree::of("dl980");
    for is_applied in [false, true] {
        assert_eq!(json(&machine, &[])["applied"], is_applied);
        assert_eq!(machine.nicpin(&["apply", "eth0"]).code, 0);
    }
}

/// RFS is off on the whole machine without its flow table, whatever each interface has.
#[test]
fn a_setting_of_the_machine_that_differs_is_in_status_too() {
    let machine = MachineTree::of("two-node");
    let table = "/proc/sys/net/core/rps_sock_flow_entries";
    machine.write(table, "32768\n");
    good(&machine, &["apply", "--rfs", "32768"]);
    let differ = || {
        let of = |command: &str| {
            machine
                .nicpin(&[command, "--rfs", "32768", "--json"])
                .json()
        };
        let (check, status) = (of("check"), of("status"));
        (
            check["differs"].as_array().unwrap().len(),
            status["differ"].clone(),
        )
    };
    assert_eq!(differ(), (0, json!(0)));
    machine.write(table, "0\n");
    assert_eq!(differ(), (1, json!(1)));
    // Apply has planned what was there.
    check_reason(&machine, &["--rfs", "32768"], "moved-by-other");
    let status = machine.nicpin(&["status", "--rfs", "32768"]);
    expect("flow-table.status.txt", status.stdout);
}

#[test]
fn a_rule_that_matches_nothing_is_named() {
    let machine = MachineTree::with_policy(0o644);
    let rule = "[[rule]]\nmatch = { name = 'zz' }\nset = { rps = 'off' }\n";
    machine.write("/etc/nicpin.toml", rule);
    for command in ["check", "status", "plan"] {
        let told = machine.nicpin(&[command, "--json"]).json();
        assert_eq!(note(&told, "rule-unmatched")["rule"], 1, "{command}");
    }
}

/// Another plan would be compared, of other interfaces.
#[test]
fn commands_for_more_have_the_options_that_were_given() {
    let machine = MachineTree::of("two-node");
    let screens = ["check", "plan"]
        .map(|command| machine.nicpin(&[command, "--scope", "0-1", "nic0"]).stdout);
    expect("commands-for-more.txt", screens.join("\n"));
}
