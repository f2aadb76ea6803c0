//! irqbalance: notes of the plan, bans by apply and their removal by restore, on copies of shipped machines. In a tree,
//! `/nicpin/irqbalance` holds irqbalance's answer to `setup`; `tests/vm` runs the real program.

use std::collections::BTreeSet;

use nix::errno::Errno;
use serde_json::{Value, json};

use crate::support::host::read_and_plan;
use crate::support::run::{Copy, good};
use crate::support::trial::watched_to_the_end;
use nicpin::apply::{self, Options};
use nicpin::report::applied::Applied;
use nicpin::root::Root;
use nicpin::root::faults::{FileAccess, FileAction, InjectedAnswer};

const PID: u32 = 812;
const ANSWER: &str = "/nicpin/irqbalance";
const SOCKET: &str = "/run/irqbalance/irqbalance812.sock";
/// The planned IRQs of the machine `two-node`: the first of the nine vectors of each device is control.
const PLANNED: [u32; 16] = [
    27, 28, 29, 30, 31, 32, 33, 34, 36, 37, 38, 39, 40, 41, 42, 43,
];

/// `two-node` with an irqbalance that was started at this time and has banned these IRQs.
fn machine(started: u32, banned: &[u32]) -> Copy {
    let machine = Copy::of("two-node");
    restart(&machine, started, banned);
    machine
}

fn restart(machine: &Copy, started: u32, banned: &[u32]) {
    let stat = format!(
        "{PID} (irqbalance) S 1 812 812 0 -1 4194560 1200 0 3 0 15 20 0 0 20 0 2 0 {started}"
    );
    machine.put(
        &format!("/proc/{PID}/stat"),
        &format!("{stat}{}", " 0".repeat(30)),
    );
    machine.put("/proc/1/stat", &format!("1 (init) S{}", " 0".repeat(49)));
    machine.put(SOCKET, "");
    let irqs: String = banned.iter().fold(String::new(), |all, irq| {
        all + &format!("IRQ {irq} LOAD 0 DIFF 0 CLASS 4 ")
    });
    machine.put(ANSWER, &format!("SLEEP 10 {irqs}BANNED 00"));
}

fn banned(machine: &Copy) -> BTreeSet<u32> {
    let text = machine.read(ANSWER);
    let words: Vec<&str> = text.split_whitespace().collect();
    words
        .windows(2)
        .filter(|pair| pair[0] == "IRQ")
        .map(|pair| pair[1].parse().unwrap())
        .collect()
}

fn apply_all(root: &Root, options: Options) -> Applied {
    apply::apply(root, options, |root| read_and_plan(root, &[], &[])).unwrap()
}

fn set(irqs: &[u32]) -> BTreeSet<u32> {
    irqs.iter().copied().collect()
}

/// How many settings the command changed, and its request to irqbalance.
fn done(machine: &Copy, args: &[&str]) -> (Value, Value) {
    let run = machine.nicpin(&[args, &["--json"]].concat());
    assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{args:?}");
    let report = run.json();
    let balancer = &report["irqbalance"];
    let request = match balancer {
        Value::Null => Value::Null,
        _ => json!([balancer["done"], balancer["irqs"], balancer["changed"]]),
    };
    (report["changed"].clone(), request)
}

#[test]
fn exactly_the_planned_irqs_are_banned_and_others_stay_so() {
    let machine = machine(611, &[9, 31]);
    assert_eq!(done(&machine, &["apply"]).1, json!(["banned", 16, true]));
    assert_eq!(banned(&machine), &set(&PLANNED) | &set(&[9]));
    let again = done(&machine, &["apply", "--detailed-exitcode"]);
    assert_eq!(again, (json!(0), json!(["banned", 16, false])));
    let restored = done(&machine, &["restore"]).1;
    assert_eq!(restored, json!(["unbanned", 15, true]));
    assert_eq!(banned(&machine), set(&[9, 31]));
    assert!(!machine.path("/run/nicpin/irqbalance.json").exists());
    assert_eq!(
        good(&machine, &["restore"]),
        "nothing to restore: there is no record of an apply"
    );
}

#[test]
fn interfaces_that_are_applied_one_by_one_keep_their_bans() {
    let machine = machine(611, &[]);
    good(&machine, &["apply", "nic0"]);
    assert_eq!(banned(&machine), set(&PLANNED[8..]));
    good(&machine, &["apply", "nic1"]);
    assert_eq!(banned(&machine), set(&PLANNED));
    good(&machine, &["restore"]);
    assert_eq!(banned(&machine), set(&[]));
}

#[test]
fn a_restarted_irqbalance_gets_the_bans_again_and_keeps_its_own() {
    let machine = machine(611, &[]);
    good(&machine, &["apply"]);
    // The new one was started with --banirq=36.
    let plan = ["plan", "--detailed-exitcode"];
    assert_eq!(machine.nicpin(&plan).code, 0);
    restart(&machine, 9999, &[36]);
    assert_eq!(machine.nicpin(&plan).code, 2);
    let again = done(&machine, &["apply"]);
    assert_eq!(again, (json!(1), json!(["banned", 16, true])));
    good(&machine, &["restore"]);
    assert_eq!(banned(&machine), set(&[36]));
    // irqbalance restarted between apply and restore: there are no bans to remove.
    good(&machine, &["apply"]);
    restart(&machine, 12000, &[36, 37]);
    let restored = done(&machine, &["restore"]).1;
    assert_eq!(restored, json!(["unbanned", 0, false]));
    assert_eq!(banned(&machine), set(&[36, 37]));
}

#[test]
fn a_restarted_irqbalance_gets_the_bans_of_all_interfaces() {
    let machine = machine(611, &[]);
    good(&machine, &["apply"]);
    restart(&machine, 9999, &[]);
    good(&machine, &["apply", "nic0"]);
    assert_eq!(banned(&machine), set(&PLANNED));
    good(&machine, &["restore"]);
    assert_eq!(banned(&machine), set(&[]));
}

/// The trial holds the record of the bans.
#[test]
fn a_trial_after_an_apply_with_bans_can_be_confirmed_and_ends_by_itself() {
    let machine = machine(611, &[]);
    good(&machine, &["apply"]);
    let (applied, bans) = (machine.texts(), machine.read("/run/nicpin/irqbalance.json"));
    good(&machine, &["apply", "--scope", "remote", "--try", "1"]);
    watched_to_the_end(&machine);
    let restored = (machine.texts(), machine.read("/run/nicpin/irqbalance.json"));
    assert_eq!(restored, (applied, bans));
    good(&machine, &["apply", "--scope", "remote", "--try", "3600"]);
    good(&machine, &["confirm"]);
    watched_to_the_end(&machine);
    good(&machine, &["check", "--scope", "remote"]);
}

/// IRQ 36 now belongs to a disk: irqbalance balances it again.
#[test]
fn an_irq_number_that_another_device_has_now_is_no_longer_banned() {
    let machine = machine(611, &[]);
    good(&machine, &["apply"]);
    let device = "/sys/devices/pci0000:20/0000:20:00.0/0000:21:00.0/msi_irqs";
    std::fs::rename(
        machine.path(&format!("{device}/36")),
        machine.path(&format!("{device}/136")),
    )
    .unwrap();
    std::fs::rename(machine.path("/proc/irq/36"), machine.path("/proc/irq/136")).unwrap();
    let text = machine.read("/proc/interrupts");
    let row = text.lines().find(|row| row.starts_with(" 36:")).unwrap();
    machine.write(
        "/proc/interrupts",
        &(text.clone() + &row.replace(" 36:", "136:") + "\n"),
    );
    let moved = machine.read("/proc/interrupts").replacen(
        row,
        &row.replace("virtio1-input.0", "nvme0q1"),
        1,
    );
    machine.write("/proc/interrupts", &moved);
    good(&machine, &["apply"]);
    assert_eq!(
        banned(&machine),
        &(&set(&PLANNED) - &set(&[36])) | &set(&[136])
    );
}

#[test]
fn refuse_writes_nothing() {
    let machine = machine(611, &[9]);
    let before = machine.snapshot();
    let run = machine.nicpin(&["apply", "--irqbalance", "refuse"]);
    assert_eq!((run.code, run.stdout.as_str()), (1, ""));
    assert!(
        run.stderr.contains("irqbalance runs (process 812)")
            && run.stderr.contains("nothing was written")
    );
    assert_eq!(
        (run.stderr.lines().count(), machine.snapshot()),
        (1, before)
    );
    assert!(!machine.path("/run/nicpin/state.json").exists());
    machine.remove(&format!("/proc/{PID}"));
    // irqbalance may run where no process can be seen.
    machine.remove("/proc/1");
    let run = machine.nicpin(&["apply", "--irqbalance", "refuse"]);
    assert_eq!((run.code, run.stdout.as_str()), (1, ""));
    assert!(
        run.stderr.contains(
            "whether irqbalance runs could not be determined, because /proc/812 cannot be read"
        ),
        "{}",
        run.stderr
    );
    machine.remove(SOCKET);
    good(&machine, &["apply", "--irqbalance", "refuse"]);
}

#[test]
fn ignore_applies_the_plan_and_reports_what_irqbalance_will_do() {
    let machine = machine(611, &[9]);
    let text = good(&machine, &["apply", "--irqbalance", "ignore"]);
    assert!(
        text.contains(
            "the policy ignores it: it will move the 16 planned IRQs, by default every 10 seconds"
        ),
        "{text}"
    );
    assert_eq!(banned(&machine), set(&[9]));
    assert_eq!(machine.read("/proc/irq/36/smp_affinity"), "02");
}

#[test]
fn ignore_reports_the_bans_of_an_earlier_apply() {
    let machine = machine(611, &[9]);
    good(&machine, &["apply"]);
    let text = good(&machine, &["apply", "--irqbalance", "ignore"]);
    assert!(
        text.contains(
            "the policy ignores it: an earlier apply banned the 16 planned IRQs, until irqbalance restarts or \
             restore runs"
        ),
        "{text}"
    );
    assert!(
        !text.contains("it will move") && !text.contains("--irqbalance ban"),
        "{text}"
    );
    for args in [
        &["plan", "--irqbalance", "ignore"][..],
        &["status", "--irqbalance", "ignore", "--json"],
    ] {
        let text = good(&machine, args);
        assert!(text.contains("an earlier apply banned the 16"), "{text}");
        assert!(!text.contains("--irqbalance ban"), "{text}");
    }
    // irqbalance's answer counts, not the record.
    let state = || {
        let status = good(&machine, &["status", "--irqbalance", "ignore", "--json"]);
        let status: Value = serde_json::from_str(&status).unwrap();
        status["irqbalance"]["state"].clone()
    };
    assert_eq!(state(), "banned");
    let answer = machine.read(ANSWER);
    machine.put(ANSWER, "SLEEP 10 BANNED 00");
    assert_ne!(state(), "banned");
    machine.put(ANSWER, &answer);
    let stored = machine.path("/stored.json");
    std::fs::write(
        &stored,
        good(
            &machine,
            &["plan", "--irqbalance", "ignore", "--format", "json"],
        ),
    )
    .unwrap();
    let dry = good(
        &machine,
        &["apply", "--dry-run", "--plan", stored.to_str().unwrap()],
    );
    assert!(dry.contains("an earlier apply banned the 16"), "{dry}");
    // Apply has banned the IRQs of one interface; after a restart of irqbalance there are no bans to report.
    good(&machine, &["restore"]);
    good(&machine, &["apply", "nic0"]);
    let text = good(&machine, &["apply", "--irqbalance", "ignore"]);
    assert!(
        text.contains("an earlier apply banned 8 of the 16 planned IRQs"),
        "{text}"
    );
    assert!(text.contains("it will move the other 8"), "{text}");
    restart(&machine, 9999, &[]);
    let text = good(&machine, &["apply", "--irqbalance", "ignore"]);
    assert!(text.contains("it will move the 16 planned IRQs"), "{text}");
}

/// The irqbalance of the machine on which the test runs is not used.
#[test]
fn a_tree_without_a_recorded_answer_bans_and_stops_nothing() {
    for action in ["ban", "stop"] {
        let machine = machine(611, &[]);
        machine.remove(ANSWER);
        let (_, request) = done(&machine, &["apply", "--irqbalance", action]);
        assert_eq!(request[0], "not-requested", "{action}");
        assert!(machine.path(&format!("/proc/{PID}/stat")).exists());
        let restored = machine.nicpin(&["restore", "--json"]).json();
        assert_eq!(restored["refused"], 0, "{action}");
    }
}

#[test]
fn a_malformed_answer_is_a_refusal_and_the_writes_are_done() {
    let machine = machine(611, &[]);
    machine.write(ANSWER, "Permission denied\n");
    let run = machine.nicpin(&["apply", "--json"]);
    assert_eq!(run.code, 1);
    let report = run.json();
    let balancer = &report["irqbalance"];
    assert_eq!(
        (&balancer["done"], &balancer["pid"]),
        (&json!("refused"), &json!(812))
    );
    assert!(
        balancer["detail"]
            .as_str()
            .unwrap()
            .contains("`Permission denied")
    );
    assert_eq!(
        (&report["refused"], &report["changed"]),
        (&json!(1), &json!(24))
    );
}

#[test]
fn a_malformed_record_of_bans_is_reported_and_nothing_is_banned() {
    let machine = machine(611, &[9]);
    machine.put("/run/nicpin/irqbalance.json", "{}");
    for command in ["apply", "restore"] {
        let run = machine.nicpin(&[command]);
        assert_eq!(run.code, 1, "{}", run.stdout);
        assert!(
            run.words().contains("not a record of bans for irqbalance"),
            "{}",
            run.stdout
        );
        assert_eq!(banned(&machine), set(&[9]));
    }
}

#[test]
fn the_plan_prints_the_policy_script_line_for_each_distribution() {
    let script = "--policyscript=/usr/lib/nicpin/nicpin-irqbalance-policy";
    for (file, text, expected) in [
        (
            "/etc/default/irqbalance",
            "#IRQBALANCE_ARGS=\"\"",
            "IRQBALANCE_ARGS",
        ),
        (
            "/etc/default/irqbalance",
            "ENABLED=\"1\"\nOPTIONS=\"\"",
            "OPTIONS",
        ),
        (
            "/etc/sysconfig/irqbalance",
            "# nothing said",
            "IRQBALANCE_ARGS",
        ),
        ("/etc/conf.d/irqbalance", "", "IRQBALANCE_OPTS"),
    ] {
        let machine = machine(611, &[]);
        machine.put(file, text);
        let text = good(&machine, &["plan"]);
        assert!(
            text.contains("apply bans the 16 planned IRQs until irqbalance restarts"),
            "{text}"
        );
        assert!(
            text.contains(&format!("{expected}=\"{script}\" in {file}")),
            "{text}"
        );
    }
    let text = good(&machine(611, &[]), &["plan"]);
    assert!(
        text.contains(&format!("{script} to the arguments of its service")),
        "{text}"
    );
}

#[test]
fn a_policy_script_that_asks_nicpin_lasts() {
    let script = "/usr/lib/nicpin/nicpin-irqbalance-policy";
    for (argument, installed, lasts) in [
        (script, script, true),
        (
            "/etc/irqbalance.d",
            "/etc/irqbalance.d/nicpin-irqbalance-policy",
            true,
        ),
        (script, "/usr/lib/nicpin/other", false),
        ("/opt/site/policy", "/opt/site/policy", false),
    ] {
        let machine = machine(611, &[]);
        machine.put(
            "/etc/default/irqbalance",
            &format!("IRQBALANCE_ARGS=\"-t 5 --policyscript={argument}\""),
        );
        machine.put(installed, "#!/bin/sh");
        let text = good(&machine, &["plan"]);
        assert_eq!(
            text.contains("; its policy script asks nicpin"),
            lasts,
            "{argument}: {text}"
        );
        let plan = machine.nicpin(&["plan", "--format", "json"]).json();
        let expected =
            serde_json::json!({ "pid": 812, "action": "ban", "irqs": PLANNED, "lasts": lasts });
        assert_eq!(plan["irqbalance"], expected);
        if lasts {
            // If the policy script asks nicpin, a socket that does not answer is no error.
            machine.write(ANSWER, "");
            assert!(
                good(&machine, &["apply"])
                    .contains("its policy script asks nicpin when irqbalance starts")
            );
        }
    }
}

#[test]
fn the_policy_file_has_the_same_values_and_options_override_it() {
    let machine = machine(611, &[]);
    machine.put("/etc/nicpin.toml", "irqbalance = \"refuse\"");
    assert!(good(&machine, &["plan"]).contains("apply refuses to write while it runs"));
    assert_eq!(machine.nicpin(&["apply"]).code, 1);
    good(&machine, &["apply", "--irqbalance", "ignore"]);
    machine.put("/etc/nicpin.toml", "irqbalance = \"kill\"");
    let run = machine.nicpin(&["plan"]);
    assert_eq!(run.code, 64);
    assert!(
        run.stderr.contains("line 1, column 14") && run.stderr.contains("`kill`"),
        "{}",
        run.stderr
    );
    assert_eq!(machine.nicpin(&["apply", "--irqbalance", "kill"]).code, 64);
}

fn policy(machine: &Copy, device: &str, irq: u32) -> String {
    let run = machine.nicpin_as_nobody(&["irqbalance-policy", device, &irq.to_string()]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{device} {irq}");
    run.stdout
}

/// Adds `/sys/bus/pci/devices`, whose paths irqbalance passes.
fn with_pci(machine: &Copy) {
    for (address, bridge) in [("0000:21:00.0", "20"), ("0000:41:00.0", "40")] {
        let target = format!("../../../devices/pci0000:{bridge}/0000:{bridge}:00.0/{address}");
        crate::support::tree::link(
            machine.dir(),
            &format!("/sys/bus/pci/devices/{address}"),
            &target,
        );
    }
    machine.put("/sys/devices/pci0000:60/0000:61:00.0/class", "0x010802");
    crate::support::tree::link(
        machine.dir(),
        "/sys/bus/pci/devices/0000:61:00.0",
        "../../../devices/pci0000:60/0000:61:00.0",
    );
    machine.open_to_all();
    machine.set_mode("/", 0o755);
}

const CARD: &str = "/sys/bus/pci/devices/0000:21:00.0";

#[test]
fn the_policy_script_bans_only_planned_irqs() {
    let machine = machine(611, &[]);
    with_pci(&machine);
    for irq in &PLANNED[8..] {
        assert_eq!(policy(&machine, CARD, *irq), "ban=true\n", "{irq}");
    }
    // A control vector, the IRQ of another device, one without a device, and the path for an unknown device.
    assert_eq!(policy(&machine, CARD, 35), "");
    assert_eq!(
        policy(&machine, "/sys/bus/pci/devices/0000:61:00.0", 36),
        ""
    );
    assert_eq!(policy(&machine, "/sys", 9), "");
    assert_eq!(policy(&machine, "/sys", 36), "ban=true\n");
    machine.put(
        "/etc/nicpin.toml",
        "[[rule]]\nmatch = { name = \"nic0\" }\nset = { skip = true }",
    );
    assert_eq!(policy(&machine, CARD, 36), "");
}

/// irqbalance's unit runs it in a network namespace of its own, whose /sys has no network interfaces.
#[test]
fn without_visible_interfaces_the_policy_script_bans_what_was_applied() {
    let machine = machine(611, &[]);
    with_pci(&machine);
    good(&machine, &["apply"]);
    for card in ["nic0", "nic1"] {
        machine.remove(&format!("/sys/class/net/{card}"));
    }
    assert_eq!(policy(&machine, CARD, 36), "ban=true\n");
    assert_eq!(policy(&machine, CARD, 35), "");
    assert_eq!(
        policy(&machine, "/sys/bus/pci/devices/0000:61:00.0", 36),
        "",
        "its number, another device"
    );
    let text = machine.read("/proc/interrupts");
    machine.write(
        "/proc/interrupts",
        &text.replace("virtio1-input.0", "nvme0q1"),
    );
    assert_eq!(policy(&machine, CARD, 36), "", "its number, another vector");
}

#[test]
fn unreadable_files_of_other_tools_are_not_an_error() {
    let machine = machine(611, &[]);
    machine.put("/etc/default/irqbalance", "IRQBALANCE_ARGS=");
    machine.put(
        "/etc/systemd/network/10-net.link",
        "[Link]\nIRQAffinityPolicy=spread",
    );
    machine.open_to_all();
    for path in ["/etc/default/irqbalance", "/etc/systemd/network"] {
        machine.set_mode(path, 0);
    }
    let run = machine.nicpin_as_nobody(&["plan"]);
    for path in ["/etc/default/irqbalance", "/etc/systemd/network"] {
        machine.set_mode(path, 0o755);
    }
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    assert!(
        run.words().contains("to the arguments of its service"),
        "{}",
        run.stdout
    );
}

#[test]
fn atomic_removes_the_bans_of_this_apply() {
    let machine = machine(611, &[9]);
    good(&machine, &["apply", "nic0"]);
    assert_eq!(banned(&machine), &set(&PLANNED[8..]) | &set(&[9]));
    let options = Options {
        atomic: true,
        ..Options::default()
    };
    let root = machine.refusing_writes(Errno::EINVAL, |path| path.ends_with("/xps_cpus"));
    let undone = apply_all(&root, options).undone.unwrap();
    assert!(undone.complete() && undone.irqbalance.is_some_and(|done| done.irqs == 8));
    assert_eq!(banned(&machine), &set(&PLANNED[8..]) | &set(&[9]));
    good(&machine, &["restore"]);
    assert_eq!(banned(&machine), set(&[9]));
}

/// irqbalance scans the machine, and answers only after it has moved vectors that were as planned when they were read.
#[test]
fn vectors_that_irqbalance_moves_before_it_answers_are_restored() {
    let machine = machine(611, &[]);
    good(&machine, &["apply"]);
    let vector = format!("/proc/irq/{}/smp_affinity", PLANNED[0]);
    let planned = machine.read(&vector);
    restart(&machine, 700, &[]);
    let moved = machine.path(&vector);
    let root = Root::open_with_faults(machine.dir(), move |access: FileAccess<'_>| {
        if access.action == FileAction::Write && access.path == ANSWER {
            std::fs::write(&moved, "80\n").unwrap();
        }
        InjectedAnswer::Done
    });
    let done = apply_all(&root.unwrap(), Options::default());
    let written: Vec<_> = done.results.iter().map(|result| &*result.path).collect();
    assert_eq!(written, [&*vector]);
    assert_eq!(machine.read(&vector), planned);
    assert_eq!(banned(&machine), set(&PLANNED));
}

#[test]
fn atomic_writes_nothing_when_irqbalance_does_not_take_the_bans() {
    let machine = machine(611, &[]);
    machine.write(ANSWER, "Permission denied\n");
    let before = machine.snapshot();
    let run = machine.nicpin(&["apply", "--atomic", "--json"]);
    assert_eq!((run.code, &run.json()["refused"]), (1, &json!(1)));
    machine.write(ANSWER, "Permission denied\n");
    assert_eq!(machine.snapshot(), before);
}

#[test]
fn a_trial_that_is_not_confirmed_removes_its_bans() {
    let machine = machine(611, &[9]);
    good(&machine, &["apply", "--try", "1"]);
    assert_eq!(banned(&machine), &set(&PLANNED) | &set(&[9]));
    crate::support::trial::watched_to_the_end(&machine);
    assert_eq!(banned(&machine), set(&[9]));
    assert!(!machine.path("/run/nicpin/irqbalance.json").exists());
}

/// The plan was made when irqbalance had another process id, or did not run.
#[test]
fn a_stored_plan_bans_in_the_irqbalance_that_runs_now() {
    for then in [None, Some("ban"), Some("ignore"), Some("refuse")] {
        let machine = Copy::of("two-node");
        if let Some(action) = then {
            machine.put("/etc/nicpin.toml", &format!("irqbalance = \"{action}\""));
            let stat = format!("700 (irqbalance) S{}", " 1".repeat(49));
            machine.put("/proc/700/stat", &stat);
            machine.put("/run/irqbalance/irqbalance700.sock", "");
        }
        machine.write(
            "/plan.json",
            &machine.nicpin(&["plan", "--format", "json"]).stdout,
        );
        for gone in ["/proc/700", "/run/irqbalance"] {
            let _ = std::fs::remove_dir_all(machine.path(gone));
        }
        restart(&machine, 611, &[]);
        let run = machine.nicpin(&[
            "apply",
            "--plan",
            machine.path("/plan.json").to_str().unwrap(),
        ]);
        let done = then.is_none_or(|action| action == "ban");
        assert_eq!(
            run.code,
            i32::from(then == Some("refuse")),
            "{then:?}: {}{}",
            run.stdout,
            run.stderr
        );
        assert_eq!(
            banned(&machine),
            if done { set(&PLANNED) } else { set(&[]) },
            "{then:?}"
        );
        assert!(
            (run.stdout.clone() + &run.stderr).contains("process 812"),
            "{then:?}: {}",
            run.stdout
        );
    }
}
