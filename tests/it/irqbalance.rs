//! irqbalance: notes of the plan, bans by apply and their removal by restore, on copies of shipped machines. In a tree,
//! `/nicpin/irqbalance` holds irqbalance's answer to `setup`; `tests/vm` runs the real program.

use std::collections::BTreeSet;

use nix::errno::Errno;
use serde_json::{Value, json};
use snapbox::{assert_data_eq, str};

use crate::support::host::read_and_plan;
use crate::support::run::{MachineTree, assert_line, document, good, note, text};
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
fn machine(started: u32, banned: &[u32]) -> MachineTree {
    let machine = MachineTree::of("two-node");
    restart(&machine, started, banned);
    machine
}

fn restart(machine: &MachineTree, started: u32, banned: &[u32]) {
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

fn banned(machine: &MachineTree) -> BTreeSet<u32> {
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

/// What a command has done: how many settings it changed, and its request to irqbalance.
fn done(machine: &MachineTree, args: &[&str]) -> (Value, Value) {
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
    // Bans by others stay when nicpin's are removed.
    let restored = done(&machine, &["restore"]).1;
    assert_eq!(restored, json!(["unbanned", 15, true]));
    assert_eq!(banned(&machine), set(&[9, 31]));
    assert!(!machine.path("/run/nicpin/irqbalance.json").exists());
    assert_eq!(done(&machine, &["restore"]), (json!(0), Value::Null));
}

/// What a document says about irqbalance: what apply does, the planned IRQs, and those that an earlier apply banned.
fn told(of: &Value) -> [Value; 3] {
    let note = note(of, "irqbalance-running");
    ["action", "irqs", "left_alone"].map(|key| note[key].clone())
}

/// That in words, and what it advises.
fn words(of: &Value) -> String {
    let note = note(of, "irqbalance-running");
    let fix = note["fix"].as_str().unwrap_or("-");
    format!("{}\n{fix}\n", text(note, "text"))
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
    // Restarted between apply and restore: there are no bans to remove.
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

/// The trial holds the record of the bans, to restore it.
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
    let apply = ["apply", "--irqbalance", "refuse"];
    assert_data_eq!(
        machine.fails(&apply, 1),
        str![[r"
nicpin: irqbalance runs (process 812) and would change the affinities again; nothing was written: stop it, or use --irqbalance ban or stop

"]]
    );
    assert!(!machine.path("/run/nicpin/state.json").exists());
    machine.remove(&format!("/proc/{PID}"));
    // Without any process in sight it may run.
    machine.remove("/proc/1");
    assert_data_eq!(
        machine.fails(&apply, 1),
        str![[r"
nicpin: whether irqbalance runs could not be determined, because /proc/812 cannot be read; nothing was written: run as root, or use --irqbalance ban or ignore

"]]
    );
    machine.remove(SOCKET);
    good(&machine, &apply);
}

#[test]
fn ignore_applies_the_plan_and_reports_what_irqbalance_will_do() {
    let machine = machine(611, &[9]);
    let applied = document(&machine, &["apply", "--irqbalance", "ignore"]);
    assert_eq!(told(&applied), [json!("ignore"), json!(16), json!(0)]);
    assert_data_eq!(
        words(&applied),
        str![[r"
irqbalance runs (process 812); the policy ignores it: it will move the 16 planned IRQs, by default every 10 seconds
nicpin apply --irqbalance ban

"]]
    );
    assert_eq!(banned(&machine), set(&[9]));
    assert_eq!(machine.read("/proc/irq/36/smp_affinity"), "02");
}

/// The bans of an earlier apply are still in effect.
#[test]
fn ignore_reports_the_bans_of_an_earlier_apply() {
    let machine = machine(611, &[9]);
    good(&machine, &["apply"]);
    let ignore = |command| document(&machine, &[command, "--irqbalance", "ignore"]);
    let all = || [json!("ignore"), json!(16), json!(16)];
    let applied = ignore("apply");
    assert_eq!(told(&applied), all());
    assert_data_eq!(
        words(&applied),
        str![[r"
irqbalance runs (process 812); the policy ignores it: an earlier apply banned the 16 planned IRQs, until irqbalance restarts or restore runs
-

"]]
    );
    // Before it is applied, too.
    let plan = ignore("plan");
    assert_eq!(told(&plan), all());
    let status = ignore("status")["irqbalance"].take();
    assert_eq!(status["note"], *note(&plan, "irqbalance-running"));
    // What irqbalance answers counts, not what was recorded.
    let state = || ignore("status")["irqbalance"]["state"].take();
    assert_eq!(state(), "banned");
    let answer = machine.read(ANSWER);
    machine.put(ANSWER, "SLEEP 10 BANNED 00");
    assert_ne!(state(), "banned");
    machine.put(ANSWER, &answer);
    machine.write("/stored.json", &plan.to_string());
    let stored = machine.path("/stored.json");
    let stored = ["apply", "--dry-run", "--plan", stored.to_str().unwrap()];
    assert_eq!(told(&document(&machine, &stored)), all());
    // Only the bans of one interface; after a restart of irqbalance there are none to report.
    good(&machine, &["restore"]);
    good(&machine, &["apply", "nic0"]);
    let some = ignore("apply");
    assert_eq!(told(&some), [json!("ignore"), json!(16), json!(8)]);
    assert_data_eq!(
        words(&some),
        str![[r"
irqbalance runs (process 812); the policy ignores it: an earlier apply banned 8 of the 16 planned IRQs, until irqbalance restarts or restore runs; it will move the other 8
nicpin apply --irqbalance ban

"]]
    );
    restart(&machine, 9999, &[]);
    let none = told(&ignore("apply"));
    assert_eq!(none, [json!("ignore"), json!(16), json!(0)]);
}

/// A tree has no irqbalance service, and that of the machine on which the test runs is not used.
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
    assert_data_eq!(
        text(balancer, "detail"),
        str!["process 812 does not answer as irqbalance does (`Permission denied`)"]
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
        let run = machine.nicpin(&[command, "--json"]);
        let balancer = run.json()["irqbalance"].take();
        assert_eq!((run.code, &balancer["done"]), (1, &json!("refused")));
        let detail = machine.rooted(text(&balancer, "detail"));
        assert_line(
            detail,
            str![[r"
ROOT/run/nicpin/irqbalance.json: not a record of bans for irqbalance (missing field `schema` at line 1 column 2); irqbalance was not asked to ban IRQs, because that could not be undone; fix: move the file away (what it says is lost) and run again

"]],
        );
        assert_eq!(banned(&machine), set(&[9]));
    }
}

#[test]
fn the_plan_prints_the_policy_script_line_for_each_distribution() {
    let plan = |machine: &MachineTree| {
        let plan = document(machine, &["plan"]);
        assert_eq!(told(&plan), [json!("ban"), json!(16), json!(0)]);
        let arguments = &note(&plan, "irqbalance-running")["arguments"];
        (arguments.clone(), words(&plan))
    };
    let mut said = String::new();
    for (file, text, variable) in [
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
        let (arguments, words) = plan(&machine);
        assert_eq!(arguments, json!({"file": file, "variable": variable}));
        said += &words;
    }
    let (unknown, words) = plan(&machine(611, &[]));
    assert_eq!(unknown, Value::Null);
    assert_data_eq!(
        said + &words,
        str![[r#"
irqbalance runs (process 812); apply bans the 16 planned IRQs until irqbalance restarts; a policy script that asks nicpin makes the ban permanent
IRQBALANCE_ARGS="--policyscript=/usr/lib/nicpin/nicpin-irqbalance-policy" in /etc/default/irqbalance
irqbalance runs (process 812); apply bans the 16 planned IRQs until irqbalance restarts; a policy script that asks nicpin makes the ban permanent
OPTIONS="--policyscript=/usr/lib/nicpin/nicpin-irqbalance-policy" in /etc/default/irqbalance
irqbalance runs (process 812); apply bans the 16 planned IRQs until irqbalance restarts; a policy script that asks nicpin makes the ban permanent
IRQBALANCE_ARGS="--policyscript=/usr/lib/nicpin/nicpin-irqbalance-policy" in /etc/sysconfig/irqbalance
irqbalance runs (process 812); apply bans the 16 planned IRQs until irqbalance restarts; a policy script that asks nicpin makes the ban permanent
IRQBALANCE_OPTS="--policyscript=/usr/lib/nicpin/nicpin-irqbalance-policy" in /etc/conf.d/irqbalance
irqbalance runs (process 812); apply bans the 16 planned IRQs until irqbalance restarts; a policy script that asks nicpin makes the ban permanent
add --policyscript=/usr/lib/nicpin/nicpin-irqbalance-policy to the arguments of its service

"#]]
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
        let plan = document(&machine, &["plan"]);
        let expected = json!({ "pid": 812, "action": "ban", "irqs": PLANNED, "lasts": lasts });
        assert_eq!(plan["irqbalance"], expected);
        assert_eq!(note(&plan, "irqbalance-running")["lasts"], lasts);
        if lasts {
            assert_data_eq!(
                words(&plan),
                str![[r"
irqbalance runs (process 812); its policy script asks nicpin, so that apply's ban of the 16 planned IRQs holds across restarts
-

"]]
            );
            // Then a socket that does not answer is not an error.
            machine.write(ANSWER, "");
            let applied = document(&machine, &["apply"])["irqbalance"].take();
            assert_eq!(applied["done"], "not-requested");
            assert_line(
                text(&applied, "detail"),
                str![[r"
process 812 does not answer as irqbalance does (``); its policy script asks nicpin when irqbalance starts

"]],
            );
        }
    }
}

#[test]
fn the_policy_file_has_the_same_values_and_options_override_it() {
    let machine = machine(611, &[]);
    machine.put("/etc/nicpin.toml", "irqbalance = \"refuse\"");
    let plan = document(&machine, &["plan"]);
    assert_eq!(told(&plan)[0], "refuse");
    assert_data_eq!(
        words(&plan),
        str![[r"
irqbalance runs (process 812); it would move the 16 planned IRQs: apply refuses to write while it runs
nicpin apply --irqbalance ban

"]]
    );
    assert_eq!(machine.nicpin(&["apply"]).code, 1);
    good(&machine, &["apply", "--irqbalance", "ignore"]);
    machine.put("/etc/nicpin.toml", "irqbalance = \"kill\"");
    assert_data_eq!(
        machine.fails(&["plan"], 64),
        str![[r"
nicpin: ROOT/etc/nicpin.toml: line 1, column 14: `kill` is not one of ban, stop, ignore, refuse

"]]
    );
    assert_eq!(machine.nicpin(&["apply", "--irqbalance", "kill"]).code, 64);
}

fn policy(machine: &MachineTree, device: &str, irq: u32) -> String {
    let run = machine.nicpin_as_nobody(&["irqbalance-policy", device, &irq.to_string()]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{device} {irq}");
    run.stdout
}

/// Adds `/sys/bus/pci/devices`, whose paths irqbalance passes.
fn with_pci(machine: &MachineTree) {
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
    // The control vector, the IRQ of another device, one without a device, and the path for an unknown device.
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

/// If the files of other tools may not be read, there are no notes on them.
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
    let run = machine.nicpin_as_nobody(&["plan", "--json"]);
    for path in ["/etc/default/irqbalance", "/etc/systemd/network"] {
        machine.set_mode(path, 0o755);
    }
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    let arguments = note(&run.json(), "irqbalance-running")["arguments"].clone();
    assert_eq!(arguments, Value::Null);
}

/// With --atomic a refused write removes the bans of this apply, and no others.
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

/// It scans the machine, and answers only after it has moved vectors that were as planned when they were read.
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
    // Wait until the watcher has ended.
    crate::support::trial::watched_to_the_end(&machine);
    assert_eq!(banned(&machine), set(&[9]));
    assert!(!machine.path("/run/nicpin/irqbalance.json").exists());
}

/// The plan was made when irqbalance had another process id, or did not run.
#[test]
fn a_stored_plan_bans_in_the_irqbalance_that_runs_now() {
    for then in [None, Some("ban"), Some("ignore"), Some("refuse")] {
        let machine = MachineTree::of("two-node");
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
            (run.stdout.clone() + &run.stderr).contains("812"),
            "{then:?}: {}",
            run.stdout
        );
    }
}
