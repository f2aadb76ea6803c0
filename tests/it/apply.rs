//! Apply, check and restore on copies of shipped machines: what the files hold afterwards, and the exit codes.

use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use snapbox::{assert_data_eq, str};

use crate::support::machine::{Port, card, two_nodes};
use crate::support::run::{
    FIXTURES, MachineTree, assert_line, document, expect, fixture, nicpin, text,
};
use crate::support::temporary;
use crate::support::trial::waits_for_the_lock;
use nicpin::apply::Lock;
use nicpin::root::Root;

#[test]
fn apply_writes_the_plan_and_a_second_apply_writes_nothing() {
    for name in FIXTURES {
        let machine = MachineTree::of(name);
        let script = machine.nicpin(&["plan", "--format", "sh"]).stdout;
        assert_eq!(machine.nicpin(&["check", "-q"]).code, 2, "{name}");
        let first = machine.nicpin(&["apply", "--json"]);
        assert_eq!(
            (first.code, first.stderr.as_str()),
            (0, ""),
            "{name}: {first:?}"
        );
        let mut lines = 0;
        for line in script.lines().filter_map(|line| line.strip_prefix("echo ")) {
            let (value, path) = line.split_once("  #").unwrap().0.split_once(" > ").unwrap();
            assert_eq!(machine.read(path), value, "{name}{path}");
            lines += 1;
        }
        assert_eq!(first.json()["changed"], lines, "{name}");
        let written = machine.snapshot();
        let second = machine.nicpin(&["apply", "--json"]);
        assert_eq!(
            (second.code, &second.json()["changed"]),
            (0, &json!(0)),
            "{name}"
        );
        assert_eq!(machine.snapshot(), written, "{name}");
        assert_eq!(machine.nicpin(&["check"]).code, 0, "{name}");
    }
}

#[test]
fn restore_restores_every_setting_and_is_idempotent() {
    for name in FIXTURES {
        let machine = MachineTree::of(name);
        let before = machine.texts();
        assert_eq!(machine.nicpin(&["start"]).code, 0);
        // Later settings do not overwrite the recorded ones.
        let moved = machine.nicpin(&["apply", "--scope", "all", "--xps", "off"]);
        assert_eq!(moved.code, 0, "{name}: {}{}", moved.stdout, moved.stderr);
        let restored = machine.nicpin(&["stop"]);
        assert_eq!(
            (restored.code, restored.stderr.as_str()),
            (0, ""),
            "{name}: {}",
            restored.stdout
        );
        assert_eq!(machine.texts(), before, "{name}");
        for args in [&["restore"][..], &["restore", "--dry-run"]] {
            let again = machine.nicpin(args);
            assert_eq!(again.code, 0, "{again:?}");
            assert_data_eq!(
                again.stdout,
                str![[r"
Nothing to restore: there is no record of an apply

"]]
            );
        }
    }
}

/// The kernel moves IRQs at their next interrupt; until then the second apply says so, as `status` does.
#[test]
fn a_second_apply_says_which_irqs_have_yet_to_move() {
    let machine = MachineTree::of("dl980");
    let first = machine.nicpin(&["apply"]).stdout;
    let second = machine.nicpin(&["apply"]).stdout;
    expect("dl980.apply.txt", first + &second);
}

/// Interfaces are in the order of their numbers; those with the same writes share a line if there are many.
#[test]
fn many_interfaces_fit_one_screen() {
    let name = |at: u32| format!("eth{at}");
    let card = |at: u32| {
        let rows: Vec<String> = (0..2).map(|n| format!("{}-TxRx-{n}", name(at))).collect();
        let rows: Vec<&str> = rows.iter().map(String::as_str).collect();
        let mut card = card("igb", Port::new(&name(at), 1000, 2, 2), 50 + 2 * at, &rows);
        card.address = format!("0000:82:{at:02x}.0");
        card
    };
    let few = MachineTree::build(&two_nodes((9..12).map(card)));
    let many = MachineTree::build(&two_nodes((0..30).map(card)));
    let screens = [
        few.nicpin(&["apply"]),
        many.nicpin(&["check"]),
        many.nicpin(&["apply"]),
        many.nicpin(&["restore"]),
    ];
    let screens = screens.map(|run| run.stdout).join("\n");
    expect("many-interfaces.txt", screens);
}

#[test]
fn an_irq_of_two_interfaces_would_be_restored_once() {
    let card = card("e1000", Port::new("eth0", 1000, 1, 1), 40, &["eth0, eth1"]);
    let card = card.port(Port::new("eth1", 1000, 1, 1));
    let tree = MachineTree::build(&two_nodes([card]));
    let counts = |text: &str| text.split(' ').next().unwrap().to_owned();
    let applied = tree.nicpin(&["apply"]).stdout;
    let before = tree.nicpin(&["restore", "--dry-run"]).stdout;
    let irq = before.matches("/proc/irq/40/smp_affinity").count();
    assert_eq!((irq, counts(&before)), (1, counts(&applied)), "{before}");
    assert_eq!(counts(&tree.nicpin(&["restore"]).stdout), counts(&applied));
}

#[test]
fn only_the_selected_interface_is_touched() {
    let machine = MachineTree::of("tg3-and-ixgbe");
    let before = machine.snapshot();
    let run = machine.nicpin(&["apply", "p6p1"]);
    assert_eq!(run.code, 0, "{}", run.stdout);
    let changed: Vec<String> = machine
        .snapshot()
        .into_iter()
        .filter(|(path, entry)| before[path] != *entry)
        .map(|(path, _)| path)
        .collect();
    assert!(!changed.is_empty());
    for path in changed {
        let irq = path
            .strip_prefix("/proc/irq/")
            .and_then(|rest| rest.split('/').next()?.parse::<u32>().ok());
        // p6p1 has the IRQs from 53.
        assert!(
            path.contains("/p6p1/") || irq.is_some_and(|irq| irq >= 53),
            "{path}"
        );
    }
}

#[test]
fn irq_numbers_may_change_between_apply_and_restore() {
    let machine = MachineTree::of("two-socket-mlx4");
    assert_eq!(machine.read("/proc/irq/71/smp_affinity").trim(), "fff");
    assert_eq!(machine.nicpin(&["apply", "eth2"]).code, 0);
    // The driver was loaded again: IRQ 71 is now 171.
    machine.renumber("/sys/devices/pci0000:80/0000:80:02.0/0000:82:00.0", 71, 171);
    assert_eq!(machine.nicpin(&["check", "eth2"]).code, 0);
    assert_eq!(machine.nicpin(&["restore"]).code, 0);
    assert_eq!(machine.read("/proc/irq/171/smp_affinity").trim(), "fff");
}

#[test]
fn what_no_longer_exists_at_restore_is_named_and_stays_in_the_record() {
    let machine = MachineTree::of("two-socket-mlx4");
    assert_eq!(machine.nicpin(&["apply"]).code, 0);
    let interrupts = machine.read("/proc/interrupts");
    // eth0 goes down: its vectors have no handler, so no row.
    let without: Vec<&str> = interrupts
        .lines()
        .filter(|line| !line.contains("eth0"))
        .collect();
    machine.write("/proc/interrupts", &(without.join("\n") + "\n"));
    let run = machine.nicpin(&["restore", "--json"]);
    assert_eq!(run.code, 0, "{}", run.stdout);
    let restored = run.json();
    let absent = restored["absent"].as_array().unwrap();
    let is_of_eth0 = |setting: &Value| setting.as_str().unwrap().starts_with("0000:01:00.0 port 0");
    assert!(
        absent.len() == 5 && absent.iter().all(is_of_eth0),
        "{restored}"
    );
    assert_ne!(machine.read("/proc/irq/65/smp_affinity").trim(), "03f");
    machine.write("/proc/interrupts", &interrupts);
    assert_eq!(machine.nicpin(&["restore"]).code, 0);
    assert_eq!(machine.read("/proc/irq/65/smp_affinity").trim(), "03f");
    assert!(!machine.path("/run/nicpin/state.json").exists());
}

#[test]
fn a_record_with_an_invalid_setting_is_refused_and_kept() {
    let mut said = String::new();
    for (file, first, bad) in [
        ("vector combined 0", "fff", "x"),
        ("vector combined 0", "fff", "1fff"),
        ("rx-0 rps_flow_cnt", "0", "many"),
    ] {
        let machine = MachineTree::of("two-socket-mlx4");
        let before = machine.texts();
        assert_eq!(machine.nicpin(&["apply", "eth2", "--rfs", "4096"]).code, 0);
        let key = format!("0000:82:00.0 port 0 {file}");
        let record = machine.read("/run/nicpin/state.json");
        let (good, broken) = (
            format!("\"{key}\": \"{first}\""),
            format!("\"{key}\": \"{bad}\""),
        );
        assert!(record.contains(&good), "{record}");
        machine.write(
            "/run/nicpin/state.json",
            &record.replacen(&good, &broken, 1),
        );
        let run = machine.nicpin(&["restore", "--json"]);
        assert_eq!(run.code, 1, "{run:?}");
        let report = run.json();
        assert_eq!(
            (&report["refused"], &report["absent"]),
            (&json!(1), &json!([]))
        );
        let results = report["results"].as_array().unwrap();
        let refused = results
            .iter()
            .find(|of| of["outcome"] == "refused")
            .unwrap();
        assert_eq!(refused["value"], bad);
        said += &format!("{}\n", text(refused, "detail"));
        // The others are restored; with a valid setting in the record, this one is, too.
        assert_eq!(machine.read("/proc/irq/73/smp_affinity").trim(), "fff");
        machine.write("/run/nicpin/state.json", &record);
        assert_eq!(machine.nicpin(&["restore"]).code, 0);
        assert_eq!(machine.texts(), before);
    }
    assert_data_eq!(
        said,
        str![[r"
recorded for 0000:82:00.0 port 0 vector combined 0, but not a CPU mask that fits this machine; correct the record, or set it by hand
recorded for 0000:82:00.0 port 0 vector combined 0, but not a CPU mask that fits this machine; correct the record, or set it by hand
recorded for 0000:82:00.0 port 0 rx-0 rps_flow_cnt, but not a number; correct the record, or set it by hand

"]]
    );
}

/// igb names its control vector after the interface, and the name follows.
#[test]
fn a_renamed_interface_is_restored_whole() {
    let machine = MachineTree::of("two-socket-mlx4");
    assert_eq!(machine.nicpin(&["apply"]).code, 0);
    let renamed = machine.read("/proc/interrupts").replace("eth0", "lan0");
    machine.write("/proc/interrupts", &renamed);
    let link = machine.path("/sys/class/net/eth0");
    let target = std::fs::read_link(&link).unwrap().with_file_name("lan0");
    let device = machine.path("/sys/devices/pci0000:00/0000:00:1c.0/0000:01:00.0/net");
    std::fs::remove_file(&link).unwrap();
    std::fs::rename(device.join("eth0"), device.join("lan0")).unwrap();
    std::os::unix::fs::symlink(target, machine.path("/sys/class/net/lan0")).unwrap();
    let run = machine.nicpin(&["restore", "--json"]);
    assert_eq!((run.code, &run.json()["absent"]), (0, &json!([])));
    assert!(!machine.path("/run/nicpin/state.json").exists());
}

#[test]
fn the_record_is_written_before_anything_else_and_nothing_without_it() {
    let machine = MachineTree::of("two-node");
    std::fs::create_dir_all(machine.path("/run/nicpin/state.json")).unwrap();
    assert_data_eq!(
        machine.fails(&["apply"], 1),
        str![[r"
nicpin: ROOT/run/nicpin/state.json: is a directory (EISDIR); fix: name a file, not a directory

"]]
    );
}

#[test]
fn a_broken_record_stops_apply_and_restore_before_they_write() {
    let mut said = String::new();
    for text in [
        "",
        "{",
        "{\"schema\":\"nicpin.state/9\",\"first_seen\":{}}",
        "[]",
    ] {
        let machine = MachineTree::of("two-node");
        std::fs::create_dir_all(machine.path("/run/nicpin")).unwrap();
        machine.write("/run/nicpin/state.json", text);
        said += &machine.fails_to_apply_and_restore();
    }
    assert_data_eq!(
        said,
        str![[r"
nicpin: ROOT/run/nicpin/state.json: not a record of original settings (EOF while parsing a value at line 1 column 0); nothing was written, because it could not be restored; fix: move the file away (what it says is lost) and run again
nicpin: ROOT/run/nicpin/state.json: not a record of original settings (EOF while parsing an object at line 1 column 1); nothing was written, because it could not be restored; fix: move the file away (what it says is lost) and run again
nicpin: ROOT/run/nicpin/state.json: not a record of original settings (its schema is nicpin.state/9); nothing was written, because it could not be restored; fix: run the version of nicpin that wrote it, or move the file away
nicpin: ROOT/run/nicpin/state.json: not a record of original settings (invalid length 0, expected struct Schema with 1 element at line 1 column 2); nothing was written, because it could not be restored; fix: move the file away (what it says is lost) and run again

"]]
    );
}

#[test]
fn a_second_nicpin_waits_for_the_lock_and_names_its_holder() {
    let machine = MachineTree::of("two-node");
    let root = Root::open(machine.dir()).unwrap();
    let lock = Lock::take(&root, "restore", Duration::ZERO).unwrap();
    let before = machine.snapshot();
    let locked = machine.fails(&["apply", "--wait", "0"], 1);
    let process = format!("process {} ", std::process::id());
    assert_data_eq!(
        locked.replace(&process, "process PID "),
        str![[r"
nicpin: ROOT/run/nicpin/lock: locked by nicpin restore, process PID for more than 0 s; fix: wait until it ends, or use --wait SECONDS

"]]
    );
    // Plan and check only read, and do not wait for the lock.
    assert_eq!(
        (
            machine.nicpin(&["plan"]).code,
            machine.nicpin(&["check"]).code
        ),
        (0, 2)
    );
    let mut waiting = Command::new(env!("CARGO_BIN_EXE_nicpin"))
        .args(["apply", "--wait", "60", "--root"])
        .arg(machine.path("/"))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    waits_for_the_lock(&machine, waiting.id());
    assert_eq!(waiting.try_wait().unwrap(), None);
    assert_eq!(machine.snapshot(), before);
    drop(lock);
    assert_eq!(waiting.wait_with_output().unwrap().status.code(), Some(0));
}

/// The first apply holds the lock before it has written a record.
#[test]
fn restore_and_confirm_wait_for_a_first_apply() {
    let machine = MachineTree::of("two-node");
    std::fs::create_dir_all(machine.path("/run/nicpin")).unwrap();
    let lock = std::fs::File::create(machine.path("/run/nicpin/lock")).unwrap();
    assert!(nicpin::root::sys::try_lock(&lock).unwrap());
    for command in ["restore", "confirm"] {
        assert_data_eq!(
            machine.fails(&[command, "--wait", "0"], 1),
            str![[r"
nicpin: ROOT/run/nicpin/lock: locked by another process for more than 0 s; fix: wait until it ends, or use --wait SECONDS

"]]
        );
    }
    drop(lock);
    assert_eq!(document(&machine, &["restore"])["changed"], 0);
    assert_data_eq!(
        machine.fails(&["confirm"], 1),
        str![[r"
nicpin: there is nothing to confirm: no apply --try is waiting

"]]
    );
}

#[test]
fn restore_and_confirm_leave_nothing_where_nicpin_never_ran() {
    let machine = MachineTree::of("two-node");
    assert_eq!(machine.nicpin(&["restore"]).code, 0);
    assert_eq!(machine.nicpin(&["confirm"]).code, 1);
    assert!(!machine.path("/run").exists());
}

#[test]
fn a_refused_apply_or_restore_says_why_even_if_quiet() {
    let machine = MachineTree::of("two-node");
    machine.open_to_all();
    assert_eq!(machine.nicpin_as_nobody(&["apply"]).code, 0);
    let setting = "/sys/class/net/nic0/queues/tx-1/xps_cpus";
    // Something else wrote, so that both commands have to write.
    machine.write(setting, "01\n");
    machine.set_mode(setting, 0o444);
    let said = [
        &["apply", "-q"][..],
        &["apply", "-q", "--json"],
        &["restore", "-q"],
    ]
    .map(|args| {
        let run = machine.nicpin_as_nobody(args);
        assert_eq!((run.code, run.stdout.as_str()), (1, ""), "{args:?}");
        run.stderr
    });
    assert_data_eq!(
        said.concat(),
        str![[r"
nicpin: refused   /sys/class/net/nic0/queues/tx-1/xps_cpus <- 24: permission denied (EACCES): CAP_NET_ADMIN is needed; fix: run as root, outside any container
nicpin: refused   /sys/class/net/nic0/queues/tx-1/xps_cpus <- 24: permission denied (EACCES): CAP_NET_ADMIN is needed; fix: run as root, outside any container
nicpin: refused   /sys/class/net/nic0/queues/tx-1/xps_cpus <- 0c: permission denied (EACCES): CAP_NET_ADMIN is needed; fix: run as root, outside any container

"]]
    );
}

#[test]
fn a_link_out_of_the_root_is_not_followed() {
    let machine = MachineTree::of("two-node");
    let outside = temporary();
    let target = outside.path().join("smp_affinity");
    std::fs::write(&target, "03\n").unwrap();
    machine.remove("/proc/irq/36/smp_affinity");
    std::os::unix::fs::symlink(&target, machine.path("/proc/irq/36/smp_affinity")).unwrap();
    let run = machine.nicpin(&["apply"]);
    assert_eq!(run.code, 1, "{}{}", run.stdout, run.stderr);
    assert_eq!(std::fs::read_to_string(&target).unwrap(), "03\n");
    assert_eq!(machine.read("/proc/irq/37/smp_affinity"), "02");
}

#[test]
fn a_refused_write_is_reported_with_its_fix_and_the_others_are_done() {
    let machine = MachineTree::of("two-node");
    machine.open_to_all();
    machine.set_mode("/proc/irq/38/smp_affinity", 0o666);
    machine.set_mode("/sys/class/net/nic0/queues/tx-1/xps_cpus", 0o444);
    let run = machine.nicpin_as_nobody(&["apply", "--json"]);
    assert_eq!(run.code, 1, "{run:?}");
    let report = run.json();
    assert_eq!(
        (&report["refused"], &report["vanished"]),
        (&json!(1), &json!(0))
    );
    let results = report["results"].as_array().unwrap();
    let refused = results
        .iter()
        .find(|of| of["outcome"] == "refused")
        .unwrap();
    assert_eq!(refused["path"], "/sys/class/net/nic0/queues/tx-1/xps_cpus");
    assert_line(
        text(refused, "detail"),
        str![[r"
permission denied (EACCES): CAP_NET_ADMIN is needed; fix: run as root, outside any container

"]],
    );
    assert_eq!(machine.read("/proc/irq/38/smp_affinity"), "04");
    assert_eq!(
        machine.read("/sys/class/net/nic0/queues/tx-2/xps_cpus"),
        "48"
    );
}

/// Since 6.12 the kernel takes the write bits off vectors that it manages.
#[test]
fn a_read_only_vector_is_managed_by_the_kernel_and_not_an_error() {
    let machine = MachineTree::of("two-node");
    machine.set_mode("/proc/irq/38/smp_affinity", 0o444);
    assert_eq!(document(&machine, &["apply", "nic0"])["managed"], 1);
    let again = machine.nicpin(&["apply", "nic0"]);
    assert_data_eq!(
        again.stdout,
        str![[r"
Nothing was written: 15 settings already as planned. From an earlier apply, 6 IRQs move at the next
interrupt.
Note: nic0: 1 queue IRQ cannot be moved: the kernel does not let its affinity be set
plan fe21ad18c11dd3e6: changed=0 already=15 managed=1 refused=0 vanished=0 pending=0

"]]
    );
    assert_eq!(machine.read("/proc/irq/38/smp_affinity").trim(), "0c");
    assert_eq!(machine.nicpin(&["check", "nic0"]).code, 0);
}

#[test]
fn detailed_exit_codes() {
    let machine = MachineTree::of("two-node");
    assert_eq!(machine.nicpin(&["plan", "--detailed-exitcode"]).code, 2);
    assert_eq!(machine.nicpin(&["apply", "--detailed-exitcode"]).code, 2);
    assert_eq!(machine.nicpin(&["apply", "--detailed-exitcode"]).code, 0);
    assert_eq!(machine.nicpin(&["plan", "--detailed-exitcode"]).code, 0);
}

#[test]
fn json_reports() {
    let machine = MachineTree::of("two-node");
    let json = |args: &[&str]| -> serde_json::Value {
        let run = machine.nicpin(args);
        serde_json::from_str(&run.stdout).unwrap_or_else(|error| panic!("{error}: {}", run.stdout))
    };
    let check = json(&["check", "--format", "json"]);
    assert_eq!(
        (&check["schema"], &check["verdict"]),
        (&"nicpin.check/1".into(), &"differs".into())
    );
    let writes = check["differs"].as_array().unwrap().len();
    let apply = json(&["apply", "--format", "json"]);
    assert_eq!(
        (&apply["schema"], &apply["changed"]),
        (&"nicpin.apply/1".into(), &writes.into())
    );
    assert_eq!(apply["results"][0]["outcome"], "pending");
    assert_eq!(json(&["check", "--format", "json"])["verdict"], "same");
    let restore = json(&["restore", "--format", "json"]);
    assert_eq!(
        (&restore["schema"], &restore["changed"]),
        (&"nicpin.restore/1".into(), &writes.into())
    );
}

#[test]
fn check_names_what_was_moved_and_with_quiet_prints_nothing() {
    let machine = MachineTree::of("two-socket-mlx4");
    assert_eq!(machine.nicpin(&["apply"]).code, 0);
    machine.write("/proc/irq/73/smp_affinity", "001\n");
    let check = |args: &[&str]| machine.nicpin(&[&["check"], args].concat());
    let moved = check(&["--json"]);
    let differs = moved.json()["differs"].take();
    let [of] = differs.as_array().unwrap().as_slice() else {
        panic!("{differs}");
    };
    assert_eq!(
        (moved.code, &of["path"]),
        (2, &json!("/proc/irq/73/smp_affinity"))
    );
    let moved = check(&["-v"]).stdout;
    let quiet = machine.nicpin(&["check", "--quiet"]);
    assert_eq!(
        (quiet.code, quiet.stdout.as_str(), quiet.stderr.as_str()),
        (2, "", "")
    );
    // Each interface is named once, whatever was moved of it.
    machine.write("/proc/irq/65/smp_affinity", "800\n");
    for interface in ["eth0", "eth2"] {
        let queues = format!("/sys/class/net/{interface}/queues");
        machine.write(&format!("{queues}/tx-0/xps_cpus"), "800\n");
    }
    let many = check(&["--rfs", "4096"]).stdout;
    expect("moved.check.txt", [moved, many].join("\n"));
}

#[test]
fn masks_are_compared_as_sets() {
    let machine = MachineTree::of("two-socket-mlx4");
    assert_eq!(machine.nicpin(&["apply"]).code, 0);
    machine.write("/proc/irq/71/smp_affinity", "00000000,00000040\n");
    assert_eq!(machine.nicpin(&["check"]).code, 0);
}

#[test]
fn the_shipped_trees_are_not_written_to() {
    for name in FIXTURES {
        assert!(
            !fixture(name).join("run").exists(),
            "{name}: apply to a copy, not to the fixture"
        );
    }
    let run = nicpin(&["plan", "--root", fixture("x460").to_str().unwrap()]);
    assert_eq!(run.code, 0);
}
