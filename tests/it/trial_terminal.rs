//! `apply --try` on a terminal: Enter keeps the settings, and nothing else does.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use snapbox::{assert_data_eq, str};

use crate::support::run::MachineTree;
use crate::support::trial::{watched_to_the_end, watcher};

/// An apply with a terminal, which asks for Enter.
fn on_terminal(machine: &MachineTree, seconds: &str) -> (Child, OwnedFd) {
    on_a_terminal_with(machine, seconds, "")
}

fn started(machine: &MachineTree, seconds: &str, typed: &str) -> (Child, OwnedFd) {
    let pty = nix::pty::openpty(None, None).unwrap();
    nix::unistd::write(&pty.master, typed.as_bytes()).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_nicpin"));
    command
        .args(["apply", "--try", seconds, "--root"])
        .arg(machine.path("/"));
    command
        .stdin(Stdio::from(pty.slave))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    (command.spawn().unwrap(), pty.master)
}

/// As [`on_terminal`], with something typed before it starts. Returns when the question was asked.
fn on_a_terminal_with(machine: &MachineTree, seconds: &str, typed: &str) -> (Child, OwnedFd) {
    let (mut child, master) = started(machine, seconds, typed);
    let mut said = String::new();
    let mut stdout = BufReader::new(child.stdout.as_mut().unwrap());
    // The last line of the report, which is for scripts.
    while !said.contains("\nplan ") {
        assert_ne!(stdout.read_line(&mut said).unwrap(), 0, "{said}");
    }
    let mut question = String::new();
    BufReader::new(child.stderr.as_mut().unwrap())
        .read_line(&mut question)
        .unwrap();
    assert_data_eq!(
        question,
        str![[r"
nicpin: press Enter to keep the settings

"]]
    );
    (child, master)
}

/// What it says after the report. Standard output has nothing but that, which may be JSON.
fn said_after(output: &Output) -> String {
    assert_eq!(output.stdout, b"");
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn enter_before_the_question_is_no_answer() {
    let machine = MachineTree::of("two-node");
    let (child, master) = on_a_terminal_with(&machine, "3600", "yes\n\n");
    let trial: serde_json::Value =
        serde_json::from_str(&machine.read("/run/nicpin/try.json")).unwrap();
    assert_eq!(trial["over"], false, "{trial}");
    File::from(master).write_all(b"\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_data_eq!(
        said_after(&output),
        str![[r"
nicpin: kept

"]]
    );
}

#[test]
fn a_trial_that_changed_nothing_asks_nothing() {
    let machine = MachineTree::of("two-node");
    assert_eq!(machine.nicpin(&["apply"]).code, 0);
    let (child, _master) = started(&machine, "3600", "");
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), &*output.stderr), (Some(0), &b""[..]));
}

/// Its plan does not fit, so it starts no trial; another's is waiting.
#[test]
fn a_trial_of_another_apply_is_not_asked_about() {
    let machine = MachineTree::of("two-node");
    assert_eq!(machine.nicpin(&["apply", "--try", "3600"]).code, 0);
    let of_another_machine = MachineTree::of("x460").nicpin(&["plan", "--json"]).stdout;
    machine.write("/other.json", &of_another_machine);
    let other = machine.path("/other.json");
    let pty = nix::pty::openpty(None, None).unwrap();
    nix::unistd::write(&pty.master, b"\n").unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_nicpin"))
        .args(["apply", "--try", "1", "--plan"])
        .arg(other)
        .arg("--root")
        .arg(machine.path("/"))
        .stdin(Stdio::from(pty.slave))
        .output();
    let output = output.unwrap();
    assert_eq!((output.status.code(), &*output.stderr), (Some(1), &b""[..]));
    let trial: serde_json::Value =
        serde_json::from_str(&machine.read("/run/nicpin/try.json")).unwrap();
    assert_eq!(trial["over"], false, "{trial}");
    assert_eq!(machine.nicpin(&["restore"]).code, 0);
}

#[test]
fn enter_on_the_terminal_keeps_it() {
    let machine = MachineTree::of("two-node");
    let (child, master) = on_terminal(&machine, "3600");
    File::from(master).write_all(b"\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_data_eq!(
        said_after(&output),
        str![[r"
nicpin: kept

"]]
    );
    watched_to_the_end(&machine);
    assert_eq!(machine.nicpin(&["check"]).code, 0);
}

#[test]
fn a_trial_on_a_terminal_ends_without_confirmation() {
    let machine = MachineTree::of("two-node");
    let before = machine.texts();
    let (child, _master) = on_terminal(&machine, "1");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_data_eq!(
        said_after(&output),
        str![[r"
nicpin: restored: the trial was not confirmed in time

"]]
    );
    assert_eq!(machine.texts(), before);
}

#[test]
fn an_apply_on_a_terminal_restores_when_the_watcher_has_ended() {
    let machine = MachineTree::of("two-node");
    let before = machine.texts();
    let killed = str![[r"
nicpin: restored: the process that watched the trial was killed

"]];
    let late = str![[r"
nicpin: restored: the trial was not confirmed in time

"]];
    for (signal, seconds, said) in [
        (Signal::SIGKILL, "3600", killed),
        (Signal::SIGSTOP, "1", late),
    ] {
        let (child, _master) = on_terminal(&machine, seconds);
        let watcher = watcher(&machine);
        kill(watcher, signal).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{signal}");
        assert_data_eq!(said_after(&output), said);
        assert_eq!(machine.texts(), before, "{signal}");
        assert_data_eq!(
            machine.fails(&["confirm"], 1),
            str![[r"
nicpin: too late: apply --try was not confirmed in time, and the earlier settings were restored

"]]
        );
        let _ = kill(watcher, Signal::SIGCONT);
        watched_to_the_end(&machine);
        assert_eq!(machine.texts(), before, "{signal}");
    }
}

#[test]
fn a_closed_terminal_is_not_a_confirmation() {
    let machines = [MachineTree::of("two-node"), MachineTree::of("two-node")];
    let before = machines[0].texts();
    let [closed, mut killed] = machines.each_ref().map(|machine| {
        let (child, master) = on_terminal(machine, "1");
        drop(master);
        child
    });
    // Also as at the end of a login, which kills its processes. (SIGHUP is ignored where the tests run under nohup.)
    let pid = Pid::from_raw(killed.id().try_into().unwrap());
    kill(pid, Signal::SIGTERM).unwrap();
    assert_eq!(killed.wait().unwrap().code(), None);
    assert_eq!(closed.wait_with_output().unwrap().status.code(), Some(1));
    for machine in machines {
        watched_to_the_end(&machine);
        assert_eq!(machine.texts(), before);
    }
}

/// A machine whose files are changed before a trial on it ends, and what the trial prints. A longer trial where the change
/// may have come too late.
fn changed_in_time(change: impl Fn(&MachineTree)) -> (MachineTree, Output) {
    for seconds in [1, 5, 25] {
        let machine = MachineTree::of("two-node");
        let began = Instant::now();
        let (child, _master) = on_terminal(&machine, &seconds.to_string());
        change(&machine);
        let is_in_time = began.elapsed() < Duration::from_secs(seconds);
        let output = child.wait_with_output().unwrap();
        if is_in_time {
            return (machine, output);
        }
    }
    panic!("it took 25 seconds to change a file");
}

#[test]
fn the_terminal_shows_what_could_not_be_restored() {
    let (machine, output) = changed_in_time(|machine| {
        machine.remove("/sys/class/net/nic0/queues/tx-1/xps_cpus");
    });
    assert_eq!(output.status.code(), Some(1));
    assert_data_eq!(
        said_after(&output),
        str![[r"
nicpin: restored: the trial was not confirmed in time; 1 setting could not be restored (0000:21:00.0 port 0 tx-1 xps_cpus); the next apply tries again, and `nicpin restore` restores the settings before the first apply

"]]
    );
    assert!(machine.path("/run/nicpin/state.json").exists());
}

/// If the settings cannot be restored, the terminal shows why.
#[test]
fn a_trial_that_cannot_be_restored_is_an_error() {
    let (machine, output) = changed_in_time(|machine| {
        machine.write("/run/nicpin/state.json", "{}");
        machine.write("/run/nicpin/try.json", "{}");
    });
    assert_eq!(output.status.code(), Some(1));
    assert_data_eq!(
        machine.rooted(&said_after(&output)),
        str![[r"
nicpin: it was not confirmed, and cannot be restored: ROOT/run/nicpin/state.json: not a record of original settings (missing field `schema` at line 1 column 2); nothing was written, because it could not be restored; fix: move the file away (what it says is lost) and run again

"]]
    );
}
