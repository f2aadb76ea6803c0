//! `apply --try` and `nicpin confirm`: settings are kept if confirmed and restored if not, whichever process is killed
//! and whatever file is lost meanwhile.

use std::io::ErrorKind;
use std::os::unix::net::UnixDatagram;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use serde_json::Value;
use snapbox::{assert_data_eq, str};

use crate::support::host::read_and_plan;
use crate::support::run::{MachineTree, codes, document, expect, note, text};
use crate::support::trial::{ended, kill_watcher, watched_to_the_end, watcher};
use crate::support::two_node::planned_for;
use crate::support::wait_until;
use nicpin::apply::{self, ApplyError, Options};
use nicpin::root::Root;

/// What an apply restored first, of a trial that had ended without confirmation.
fn restored_first(machine: &MachineTree, args: &[&str]) -> Value {
    document(machine, &[&["apply"], args].concat())["earlier"].take()
}

/// No trial waits, nor has one ended that nobody had confirmed.
fn has_nothing_to_confirm(machine: &MachineTree) {
    assert_data_eq!(
        machine.fails(&["confirm"], 1),
        str![[r"
nicpin: there is nothing to confirm: no apply --try is waiting

"]]
    );
}

#[test]
fn what_is_not_confirmed_is_restored() {
    let machine = MachineTree::of("two-node");
    let before = machine.texts();
    let report = document(&machine, &["apply", "--try", "1"]);
    assert_eq!(report["trial"], 1);
    watched_to_the_end(&machine);
    assert_eq!(machine.texts(), before);
    assert!(!machine.path("/run/nicpin/state.json").exists());
    assert_data_eq!(
        machine.fails(&["confirm"], 1),
        str![[r"
nicpin: too late: apply --try was not confirmed in time, and the earlier settings were restored

"]]
    );
    // A later apply works as usual.
    assert_eq!(machine.nicpin(&["apply"]).code, 0);
    assert_eq!(machine.nicpin(&["check"]).code, 0);
}

#[test]
fn what_is_confirmed_stays_and_can_be_restored() {
    let machine = MachineTree::of("two-node");
    let before = machine.texts();
    has_nothing_to_confirm(&machine);
    let run = machine.nicpin(&["apply", "--try", "3600"]);
    let waits = document(&machine, &["status"]);
    assert_eq!(note(&waits, "trial-waits")["fix"], "nicpin confirm");
    let confirmed = machine.nicpin(&["confirm"]);
    assert!(!codes(&document(&machine, &["status"])).contains(&"trial-waits"));
    assert_eq!((run.code, confirmed.code), (0, 0), "{confirmed:?}");
    expect("trial.apply.txt", run.stdout + &confirmed.stdout);
    watched_to_the_end(&machine);
    assert_eq!(machine.nicpin(&["check"]).code, 0);
    has_nothing_to_confirm(&machine);
    assert_eq!(machine.nicpin(&["restore"]).code, 0);
    assert_eq!(machine.texts(), before);
}

/// Its end is nothing that was restored, and not to confirm it is no failure.
#[test]
fn a_trial_on_a_machine_as_planned_says_that_nothing_was_changed() {
    let machine = MachineTree::of("two-node");
    assert_eq!(machine.nicpin(&["apply"]).code, 0);
    let run = machine.nicpin(&["apply", "--try", "3600"]);
    let confirmed = machine.nicpin(&["confirm"]);
    assert_eq!((run.code, confirmed.code), (0, 0), "{confirmed:?}");
    assert_data_eq!(
        run.stdout + &confirmed.stdout,
        str![[r"
Nothing was written: 32 settings already as planned. From an earlier apply, 12 IRQs move at the next
interrupt.
Trial: nothing was changed, and nothing will be restored.
plan edaa12e59e881890: changed=0 already=32 managed=0 refused=0 vanished=0 pending=0
The apply --try had changed nothing; its trial has ended.

"]]
    );
    let report = document(&machine, &["apply", "--try", "1"]);
    assert_eq!(
        (&report["changed"], &report["trial"]),
        (&0.into(), &1.into())
    );
    watched_to_the_end(&machine);
    has_nothing_to_confirm(&machine);
}

/// If an apply ends before its first write, for whatever reason, there is nothing to confirm and nothing to restore.
#[test]
fn a_trial_that_changed_nothing_cannot_be_confirmed() {
    // The record cannot be read; the watcher cannot start.
    for obstacle in ["/run/nicpin/state.json", "/run/nicpin/try.lock"] {
        let machine = MachineTree::of("two-node");
        std::fs::create_dir_all(machine.path(obstacle)).unwrap();
        let before = machine.texts();
        let run = machine.nicpin(&["apply", "--try", "3600"]);
        assert_eq!(
            (run.code, run.stdout.as_str()),
            (1, ""),
            "{obstacle}: {}",
            run.stderr
        );
        assert_eq!(machine.texts(), before, "{obstacle}");
        has_nothing_to_confirm(&machine);
        machine.remove(obstacle);
        // Changes by another program are not restored.
        machine.write("/proc/irq/38/smp_affinity", "01\n");
        let restored = restored_first(&machine, &["nic1"]);
        assert_eq!(restored, Value::Null, "{obstacle}");
        assert_eq!(
            machine.read("/proc/irq/38/smp_affinity"),
            "01\n",
            "{obstacle}"
        );
    }
}

/// A vector that the plan leaves alone is not restored either.
#[test]
fn only_what_was_set_is_restored() {
    let machine = MachineTree::of("two-node");
    assert_eq!(machine.nicpin(&["apply", "--try", "3600"]).code, 0);
    let control = "/proc/irq/35/smp_affinity";
    machine.write(control, "01\n");
    kill_watcher(&machine);
    let restored = restored_first(&machine, &["nic1"]);
    assert_ne!(restored["changed"], 0);
    assert_eq!(machine.read(control), "01\n");
}

/// All settings are as planned: a script may confirm without an error.
#[test]
fn a_trial_with_nothing_to_set_can_be_confirmed() {
    let machine = MachineTree::of("two-node");
    assert_eq!(machine.nicpin(&["apply"]).code, 0);
    let applied = machine.texts();
    assert_eq!(machine.nicpin(&["apply", "--try", "3600"]).code, 0);
    assert_eq!(machine.nicpin(&["confirm"]).code, 0);
    watched_to_the_end(&machine);
    assert_eq!(machine.texts(), applied);
}

const REFUSED: &str = "/sys/class/net/nic0/queues/tx-1/xps_cpus";

/// The machine, while the kernel refuses to write to files whose paths begin so.
fn refusing(machine: &MachineTree, refused: &'static str) -> Root {
    machine.refusing_writes(Errno::EINVAL, move |path| path.starts_with(refused))
}

/// A trial that has ended, with one setting that the kernel refused to restore.
fn partly_restored_trial(machine: &MachineTree) {
    assert_eq!(machine.nicpin(&["apply", "--try", "3600"]).code, 0);
    let undone = apply::end_trial(&refusing(machine, REFUSED), Options::default().wait)
        .unwrap()
        .unwrap();
    assert_eq!((undone.not_restored, undone.complete()), (1, false));
    watched_to_the_end(machine);
}

#[test]
fn what_could_not_be_restored_is_named_and_left_to_restore() {
    let machine = MachineTree::of("two-node");
    let before = machine.texts();
    partly_restored_trial(&machine);
    assert_data_eq!(
        machine.fails(&["confirm"], 1),
        str![[r"
nicpin: too late: apply --try was not confirmed in time, and the earlier settings were restored, but 1 setting could not be restored (0000:21:00.0 port 0 tx-1 xps_cpus); the next apply tries again, and `nicpin restore` restores the settings before the first apply

"]]
    );
    assert_ne!(machine.texts(), before);
    assert_eq!(machine.nicpin(&["restore"]).code, 0);
    assert_eq!(machine.texts(), before);
    has_nothing_to_confirm(&machine);
}

#[test]
fn what_could_not_be_restored_is_tried_again_by_the_next_apply() {
    let machine = MachineTree::of("two-node");
    let before = machine.texts();
    partly_restored_trial(&machine);
    let broken = machine.read(REFUSED);
    machine.remove(REFUSED);
    let restored = restored_first(&machine, &["nic1"]);
    assert_eq!(restored["not_restored"], 1);
    let absent = machine.nicpin(&["apply", "nic1"]);
    std::fs::write(machine.path(REFUSED), broken).unwrap();
    let run = machine.nicpin(&["apply", "nic1"]);
    assert_eq!((absent.code, run.code), (0, 0), "{run:?}");
    expect(
        "trial-restored-later.apply.txt",
        absent.stdout + &run.stdout,
    );
    for (path, text) in machine
        .texts()
        .iter()
        .filter(|(path, _)| path.contains("/nic0/"))
    {
        assert_eq!(text, &before[path], "{path}");
    }
    assert_eq!(restored_first(&machine, &["nic1"]), Value::Null);
    // The record has the settings of that apply.
    assert_eq!(machine.nicpin(&["check", "nic1"]).code, 0);
    assert_eq!(machine.nicpin(&["restore"]).code, 0);
    assert_eq!(machine.texts(), before);
}

/// An apply that plans a setting overrides the trial, and does not restore what it would write again.
#[test]
fn what_could_not_be_restored_and_is_applied_stays_applied() {
    let machine = MachineTree::of("two-node");
    let before = machine.texts();
    partly_restored_trial(&machine);
    assert_eq!(restored_first(&machine, &[]), Value::Null);
    let applied = machine.texts();
    assert_eq!(restored_first(&machine, &["nic1"]), Value::Null);
    assert_eq!(machine.texts(), applied);
    assert_eq!(machine.nicpin(&["restore"]).code, 0);
    assert_eq!(machine.texts(), before);
    // An apply that is refused leaves it to the next one.
    partly_restored_trial(&machine);
    let refused = apply::apply_when_safe(
        &Root::open(machine.dir()).unwrap(),
        Options::default(),
        |root| read_and_plan(root, &[], &[]),
        || Err(ApplyError::Confirm("not safe".to_owned())),
    );
    assert!(refused.is_err());
    assert_eq!(restored_first(&machine, &["nic1"])["changed"], 1);
}

#[test]
fn status_names_a_trial_that_is_not_watched_and_what_it_could_not_restore() {
    let machine = MachineTree::of("two-node");
    partly_restored_trial(&machine);
    let status = document(&machine, &["status"]);
    let said = text(note(&status, "trial-not-restored"), "text").to_owned() + "\n";
    assert_eq!(machine.nicpin(&["restore"]).code, 0);
    assert_eq!(machine.nicpin(&["apply", "--try", "3600"]).code, 0);
    kill_watcher(&machine);
    let status = document(&machine, &["status"]);
    let waits = note(&status, "trial-waits");
    assert_eq!(
        (&waits["unwatched"], &waits["fix"]),
        (&true.into(), &"nicpin confirm".into())
    );
    assert_data_eq!(
        said + text(waits, "text") + "\n",
        str![[r"
an apply --try was not confirmed, and 1 setting could not be restored (0000:21:00.0 port 0 tx-1 xps_cpus); the next apply tries again, and `nicpin restore` restores the settings before the first apply
an apply --try of 3600 s was not confirmed, and the process that would restore the settings before it has ended: the next apply restores them

"]]
    );
    assert_eq!(machine.nicpin(&["restore"]).code, 0);
}

/// Whether the later trial changes something or nothing.
#[test]
fn what_could_not_be_restored_is_left_to_a_later_trial() {
    for refused in [REFUSED, "/"] {
        let machine = MachineTree::of("two-node");
        let before = machine.texts();
        partly_restored_trial(&machine);
        let options = Options {
            trial: Some(3600),
            ..Options::default()
        };
        let done = apply::apply(&refusing(&machine, refused), options, |root| {
            planned_for(root, &["nic1"])
        });
        assert_eq!(done.unwrap().trial.is_some(), refused == REFUSED);
        let restored = restored_first(&machine, &["nic1"]);
        assert_ne!(restored["changed"], 0);
        for (path, text) in machine.texts() {
            assert!(path.contains("/nic1/") || path.contains("/irq/") || text == before[&path]);
        }
    }
}

/// The process that watches the trial still restores what the restore was to, and so does the next restore.
#[test]
fn a_restore_that_is_refused_leaves_the_trial() {
    for command in ["restore", "await"] {
        let machine = MachineTree::of("two-node");
        let before = machine.texts();
        assert_eq!(machine.nicpin(&["apply", "--scope", "remote"]).code, 0);
        assert_eq!(machine.nicpin(&["apply", "--try", "3600"]).code, 0);
        let wait = Options::default().wait;
        let restored = apply::restore(&refusing(&machine, REFUSED), wait);
        assert!(restored.unwrap().is_some_and(|restored| restored.failed()));
        if command == "await" {
            let root = Root::open(machine.dir()).unwrap();
            let undone = apply::end_trial(&root, wait).unwrap();
            assert!(undone.is_some_and(|undone| undone.complete()));
        } else {
            assert_eq!(machine.nicpin(&["restore"]).code, 0);
        }
        assert_eq!(machine.texts(), before);
        watched_to_the_end(&machine);
        assert_eq!(machine.nicpin(&["apply"]).code, 0);
    }
}

#[test]
fn nothing_else_is_applied_meanwhile_and_restore_ends_it() {
    let machine = MachineTree::of("two-node");
    let before = machine.texts();
    assert_eq!(machine.nicpin(&["apply", "--try", "3600"]).code, 0);
    for args in [&["apply", "--scope", "all"][..], &["apply", "--try", "5"]] {
        assert_data_eq!(
            machine.fails(args, 1),
            str![[r"
nicpin: an apply --try of 3600 s waits to be confirmed: `nicpin confirm` keeps its settings, `nicpin restore` restores the settings before the first apply

"]]
        );
    }
    assert_eq!(machine.nicpin(&["restore"]).code, 0);
    assert_eq!(machine.texts(), before);
    watched_to_the_end(&machine);
    assert_eq!(machine.texts(), before);
}

#[test]
fn a_trial_whose_watcher_was_killed_is_restored_by_the_next_apply() {
    let machine = MachineTree::of("two-node");
    let before = machine.texts();
    assert_eq!(machine.nicpin(&["apply", "nic0", "--try", "3600"]).code, 0);
    kill_watcher(&machine);
    assert_ne!(machine.texts(), before);
    let restored = restored_first(&machine, &["nic1"]);
    assert_ne!(restored["changed"], 0);
    assert_eq!(restored["not_restored"], 0);
    assert_eq!(machine.nicpin(&["check", "nic1"]).code, 0);
    for (path, text) in machine
        .texts()
        .iter()
        .filter(|(path, _)| path.contains("/nic0/"))
    {
        assert_eq!(text, &before[path], "{path}");
    }
    assert_eq!(machine.nicpin(&["restore"]).code, 0);
    assert_eq!(machine.texts(), before);
    // To restore it is to change something, too.
    assert_eq!(machine.nicpin(&["apply", "nic1"]).code, 0);
    assert_eq!(machine.nicpin(&["apply", "nic0", "--try", "3600"]).code, 0);
    kill_watcher(&machine);
    let again = ["apply", "nic1", "--detailed-exitcode"];
    assert_eq!(machine.nicpin(&again).code, 2);
    assert_eq!(machine.nicpin(&again).code, 0);
}

#[test]
fn an_apply_that_is_refused_does_not_restore_an_earlier_trial() {
    let machine = MachineTree::of("two-node");
    let plan = machine.nicpin(&["plan", "--json", "nic1"]).stdout;
    machine.write("/plan.json", &plan);
    assert_eq!(machine.nicpin(&["apply", "nic0", "--try", "3600"]).code, 0);
    kill_watcher(&machine);
    let tried = machine.texts();
    let stored = machine.path("/plan.json");
    let stored = ["apply", "--plan", stored.to_str().unwrap()];
    machine.remove("/sys/class/net/nic1");
    for (args, code) in [(&["apply", "--scope", "node:9"][..], 64), (&stored, 1)] {
        assert_eq!(machine.nicpin(args).code, code, "{args:?}");
        let now = machine.texts();
        let is_as_tried = now.iter().all(|(path, text)| tried[path] == *text);
        assert!(is_as_tried, "{args:?}");
    }
}

#[test]
fn a_trial_whose_watcher_was_killed_is_restored_by_restore_or_kept_by_confirm() {
    for command in ["restore", "confirm"] {
        let machine = MachineTree::of("two-node");
        let before = machine.texts();
        assert_eq!(machine.nicpin(&["apply", "--try", "3600"]).code, 0);
        kill_watcher(&machine);
        assert_eq!(machine.nicpin(&[command]).code, 0, "{command}");
        assert_eq!(machine.texts() == before, command == "restore");
        assert_eq!(
            machine.nicpin(&["check"]).code,
            if command == "restore" { 2 } else { 0 }
        );
    }
}

/// The apply reports to the watcher that it has finished; if the pipe closes without that, it was killed.
#[test]
fn a_killed_apply_is_restored_at_once() {
    let machine = MachineTree::of("two-node");
    let before = machine.texts();
    assert_eq!(machine.nicpin(&["apply", "--try", "3600"]).code, 0);
    kill_watcher(&machine);
    let mut watcher = Command::new(env!("CARGO_BIN_EXE_nicpin"));
    watcher
        .args(["await-confirm", "3600", "--root"])
        .arg(machine.path("/"));
    assert!(
        watcher
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .status()
            .unwrap()
            .success()
    );
    assert_eq!(machine.texts(), before);
}

#[test]
fn a_trial_restores_the_settings_of_an_earlier_apply() {
    let machine = MachineTree::of("two-node");
    let first = machine.texts();
    assert_eq!(machine.nicpin(&["apply", "--scope", "remote"]).code, 0);
    let earlier = (machine.texts(), machine.read("/run/nicpin/state.json"));
    assert_eq!(machine.nicpin(&["apply", "--try", "1"]).code, 0);
    watched_to_the_end(&machine);
    assert_eq!(
        (machine.texts(), machine.read("/run/nicpin/state.json")),
        earlier
    );
    assert_eq!(machine.nicpin(&["restore"]).code, 0);
    assert_eq!(machine.texts(), first);
}

#[test]
fn all_or_nothing_leaves_nothing_on_trial() {
    let machine = MachineTree::of("two-node");
    machine.open_to_all();
    machine.set_mode("/sys/class/net/nic0/queues/tx-1/xps_cpus", 0o444);
    let before = machine.texts();
    let run = machine.nicpin_as_nobody(&["apply", "--try", "3600", "--atomic", "--json"]);
    assert_eq!(run.code, 1, "{run:?}");
    let report = run.json();
    assert_eq!(
        (&report["changed"], &report["refused"]),
        (&0.into(), &1.into())
    );
    assert!(report["undone"].is_object(), "{report}");
    watched_to_the_end(&machine);
    assert_eq!(machine.texts(), before);
}

/// A trial that cannot be read is not confirmed: the settings that the first apply found are restored.
#[test]
fn a_trial_that_cannot_be_read_is_restored_at_its_end() {
    let before = MachineTree::of("two-node").texts();
    let machines = ["", "{}", "{\"schema\":\"nicpin.try/9\"}"].map(|text| {
        let machine = MachineTree::of("two-node");
        assert_eq!(machine.nicpin(&["apply", "--scope", "remote"]).code, 0);
        assert_eq!(machine.nicpin(&["apply", "--try", "1"]).code, 0);
        machine.write("/run/nicpin/try.json", text);
        assert_eq!(machine.nicpin(&["confirm"]).code, 1);
        machine
    });
    for machine in machines {
        watched_to_the_end(&machine);
        assert_eq!(machine.texts(), before);
        assert_data_eq!(
            machine.fails(&["confirm"], 1),
            str![[r"
nicpin: too late: apply --try was not confirmed in time, and the earlier settings were restored

"]]
        );
        assert!(!machine.path("/run/nicpin/state.json").exists());
    }
}

/// The time of a trial starts after the last write, not after the proof.
#[test]
fn a_proof_takes_its_time_from_the_trial() {
    let machine = MachineTree::of("two-node");
    let before = machine.texts();
    let start = Instant::now();
    let cut_short = ["apply", "--try", "1", "--prove", "60"];
    let report = document(&machine, &cut_short);
    assert_eq!(report["proof_cut_short"], true);
    let proof = report["proof"].as_array().unwrap();
    let is_without_traffic = |vector: &Value| vector["verdict"] == "no-traffic";
    assert!(proof.iter().all(is_without_traffic), "{report}");
    assert_eq!(proof.len(), 16);
    watched_to_the_end(&machine);
    assert_eq!(machine.texts(), before);
    let run = machine.nicpin(&cut_short);
    assert_eq!(run.code, 0, "{}", run.stderr);
    expect("proof-cut-short.apply.txt", run.stdout);
    watched_to_the_end(&machine);
    assert!(
        start.elapsed() < Duration::from_secs(30),
        "{:?}",
        start.elapsed()
    );
    // A proof shorter than the trial is not cut short.
    let report = document(&machine, &["apply", "--try", "3600", "--prove", "1"]);
    assert_eq!(
        (&report["proof_cut_short"], &report["trial"]),
        (&false.into(), &3600.into())
    );
    assert_eq!(machine.nicpin(&["restore"]).code, 0);
}

#[test]
fn the_time_of_a_trial_has_limits() {
    let machine = MachineTree::of("two-node");
    for seconds in ["0", "-1", "86401", "soon"] {
        assert_eq!(
            machine.nicpin(&["apply", "--try", seconds]).code,
            64,
            "{seconds}"
        );
    }
}

/// Whatever keeps the watcher from restoring the settings, it tries again, and says what it is.
#[test]
fn the_watcher_tries_again_until_the_settings_are_restored() {
    let machine = MachineTree::of("two-node");
    let before = machine.texts();
    std::fs::create_dir_all(machine.path("/dev")).unwrap();
    let journal = UnixDatagram::bind(machine.path("/dev/log")).unwrap();
    journal
        .set_read_timeout(Some(Duration::from_secs(10)))
        .unwrap();
    let message = || {
        let mut text = [0; 4096];
        // A signal to the tests interrupts a socket with a timeout.
        let length = std::iter::repeat_with(|| journal.recv(&mut text))
            .find(|got| !matches!(got, Err(error) if error.kind() == ErrorKind::Interrupted));
        let length = length.unwrap().unwrap();
        String::from_utf8_lossy(&text[..length]).into_owned()
    };
    assert_eq!(machine.nicpin(&["apply", "--try", "1"]).code, 0);
    let record = machine.read("/run/nicpin/state.json");
    let trial = machine.read("/run/nicpin/try.json");
    machine.write("/run/nicpin/state.json", "{}");
    machine.write("/run/nicpin/try.json", "{}");
    let failed = [message(), message()];
    machine.write("/run/nicpin/state.json", &record);
    machine.write("/run/nicpin/try.json", &trial);
    // Warnings, and then a notice.
    let restored = std::iter::repeat_with(message).find(|said| !said.starts_with("<28>"));
    let said = [&failed[0], &failed[1], &restored.unwrap()].map(|said| machine.rooted(said));
    assert_data_eq!(
        said.join("\n"),
        str![[r"
<28>nicpin[[..]]: apply --try was not confirmed in time, and its settings stay: ROOT/run/nicpin/state.json: not a record of original settings (missing field `schema` at line 1 column 2); nothing was written, because it could not be restored; fix: move the file away (what it says is lost) and run again; trying again in 0.5 s
<28>nicpin[[..]]: apply --try was not confirmed in time, and its settings stay: ROOT/run/nicpin/state.json: not a record of original settings (missing field `schema` at line 1 column 2); nothing was written, because it could not be restored; fix: move the file away (what it says is lost) and run again; trying again in 1 s
<29>nicpin[[..]]: apply --try was not confirmed in time; the settings were restored
"]]
    );
    watched_to_the_end(&machine);
    machine.remove("/dev/log");
    assert_eq!(machine.texts(), before);
}

/// A setting that the kernel refuses to restore is tried again, too.
#[test]
fn the_watcher_tries_again_what_was_refused() {
    let machine = MachineTree::of("two-node");
    let before = machine.texts();
    assert_eq!(machine.nicpin(&["apply", "--try", "1"]).code, 0);
    // The mask of another kernel: no text of this width can be read back as written.
    let text = machine.read("/run/nicpin/try.json");
    let key = "0000:21:00.0 port 0 tx-1 xps_cpus\": \"";
    assert!(text.contains(key), "{text}");
    machine.write(
        "/run/nicpin/try.json",
        &text.replace(key, &format!("{key}x")),
    );
    let is_over = || (machine.read("/run/nicpin/try.json")).contains("\"over\": true");
    wait_until("over", is_over);
    let text = machine.read("/run/nicpin/try.json");
    machine.write(
        "/run/nicpin/try.json",
        &text.replace(&format!("{key}x"), key),
    );
    wait_until("restored", || machine.texts() == before);
    watched_to_the_end(&machine);
}

/// The watcher of a trial that was confirmed or restored notices that after a moment, or never if it is stopped.
#[test]
fn a_trial_may_follow_another_one_at_once() {
    let machine = MachineTree::of("two-node");
    let before = machine.texts();
    for command in ["confirm", "restore", "confirm", "restore"] {
        let run = machine.nicpin(&["apply", "--try", "3600"]);
        assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{}", run.stdout);
        assert_eq!(machine.nicpin(&[command]).code, 0);
    }
    assert_eq!(machine.nicpin(&["apply", "--try", "3600"]).code, 0);
    let stopped = watcher(&machine);
    kill(stopped, Signal::SIGSTOP).unwrap();
    assert_eq!(machine.nicpin(&["restore"]).code, 0);
    let run = machine.nicpin(&["apply", "--try", "3600"]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{}", run.stdout);
    assert_ne!(watcher(&machine), stopped);
    // It has no say in the later trial.
    let applied = machine.texts();
    kill(stopped, Signal::SIGCONT).unwrap();
    ended(stopped);
    assert_eq!(machine.texts(), applied);
    assert_eq!(machine.nicpin(&["confirm"]).code, 0, "it waits as before");
    assert_eq!(machine.nicpin(&["restore"]).code, 0);
    assert_eq!(machine.texts(), before);
}

#[test]
fn an_apply_says_why_its_watcher_cannot_start() {
    let machine = MachineTree::of("two-node");
    std::fs::create_dir_all(machine.path("/run/nicpin/try.lock/x")).unwrap();
    let said = machine.fails(&["apply", "--try", "3600"], 1);
    assert_data_eq!(
        said,
        str![[r"
nicpin: ROOT/run/nicpin/try.lock: is a directory (EISDIR): nicpin keeps its lock and its state files there; so --try has no watcher, and nothing was written

"]]
    );
}
