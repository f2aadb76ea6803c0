//! What nicpin inherits from a caller: ignored or blocked signals, a umask, limits, open descriptors.

use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::signal::{SigSet, Signal};

use crate::support::run::{MachineTree, Run};

/// Runs on a copy of a machine: `$1` is nicpin, `$2` the copy.
fn script(machine: &MachineTree, script: &str) -> Command {
    let mut command = Command::new("sh");
    let nicpin = env!("CARGO_BIN_EXE_nicpin");
    command.args(["-c", script, "sh", nicpin]);
    command.arg(machine.path("/"));
    command
}

fn mode(machine: &MachineTree, path: &str) -> u32 {
    let about = std::fs::metadata(machine.path(path)).unwrap();
    about.permissions().mode() & 0o777
}

/// The caller ignores or blocks SIGCHLD. `nicpin watch` has a test of its own (`watching.rs`).
#[test]
fn a_command_that_ends_is_seen_by_whom_the_caller_let_ignore_that() {
    for (waits, code) in [
        (r#"measure --root "$2" -- sh -c 'exit 3'"#, 3),
        (r#"apply --try 600 --root "$2""#, 0),
    ] {
        for (before, is_blocked) in [("trap '' CHLD;", false), ("", true)] {
            let machine = MachineTree::of("two-node");
            let mut command = script(&machine, &format!(r#"{before} exec "$1" {waits}"#));
            // Programs inherit the signals that a thread blocks.
            let children = SigSet::from(Signal::SIGCHLD);
            if is_blocked {
                children.thread_block().unwrap();
            }
            let run = Run::of(&mut command);
            children.thread_unblock().unwrap();
            assert_eq!(run.code, code, "{waits}, {before}: {}", run.stderr);
            if code == 0 {
                assert_eq!(machine.nicpin(&["confirm"]).code, 0);
            }
        }
    }
}

#[test]
fn commands_start_as_if_the_caller_had_started_them() {
    let machine = MachineTree::of("two-node");
    let files = "/proc/self/status /proc/self/limits";
    let about = format!("grep -hE '^(SigBlk:|SigIgn:|Umask:|Max open files)' {files}");
    // Signals above these are the C library's own.
    let usual = |text: &str| -> Vec<String> {
        let ignored = |line: &str| -> Option<String> {
            let mask = u64::from_str_radix(line.strip_prefix("SigIgn:")?.trim(), 16).unwrap();
            Some(format!("{:x}", mask & 0x7fff_ffff))
        };
        let lines = text.lines();
        lines
            .map(|line| ignored(line).unwrap_or_else(|| line.to_owned()))
            .collect()
    };
    for ignored in ["HUP", "CHLD", "PIPE", "XFSZ", "INT QUIT", "USR1"] {
        let given = format!("umask 27; ulimit -Sn 100; trap '' {ignored};");
        let own = usual(&Run::of(&mut script(&machine, &format!("{given} exec {about}"))).stdout);
        assert!(own.contains(&"Umask:\t0027".to_owned()), "{own:?}");
        // Its output goes to standard error.
        let started = format!(r#"{given} exec "$1" measure --root "$2" -- {about}"#);
        let run = usual(&Run::of(&mut script(&machine, &started)).stderr);
        assert!(
            own.iter().all(|line| run.contains(line)),
            "{ignored}: {own:?} {run:?}"
        );
    }
}

#[test]
fn an_ignored_interrupt_stays_ignored() {
    let machine = MachineTree::of("two-node");
    // The program would end at once, and has the time to.
    let measured = r#"trap '' INT; exec "$1" measure --root "$2" -- sh -c 'kill -INT $PPID; sleep 0.2; exit 4'"#;
    let run = Run::of(&mut script(&machine, measured));
    assert_eq!(run.code, 4, "{}", run.stderr);
}

#[test]
fn the_record_can_be_read_whatever_the_umask() {
    let machine = MachineTree::of("two-node");
    let run = Run::of(&mut script(
        &machine,
        r#"umask 077; exec "$1" apply --root "$2""#,
    ));
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert_eq!(mode(&machine, "/run/nicpin"), 0o755);
    assert_eq!(mode(&machine, "/run/nicpin/state.json"), 0o644);
}

#[test]
fn a_file_that_gets_too_large_is_an_error() {
    let machine = MachineTree::of("two-node");
    let run = Run::of(&mut script(
        &machine,
        r#"ulimit -f 0; exec "$1" apply --root "$2""#,
    ));
    assert_eq!(run.code, 1, "{}", run.stderr);
    assert!(run.stderr.contains("EFBIG"), "{}", run.stderr);
}

/// A caller that waits for the end of a pipe, or for a lock, does not wait for the end of a trial.
#[test]
fn the_watcher_of_a_trial_keeps_nothing_of_the_caller_open() {
    let machine = MachineTree::of("two-node");
    let tried = r#"exec 7>&1; "$1" apply --try 600 --root "$2" >/dev/null 2>&1 </dev/null"#;
    let mut command = script(&machine, tried);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut all = String::new();
    let read = child.stdout.take().unwrap().read_to_string(&mut all);
    assert_eq!((read.unwrap(), child.wait().unwrap().code()), (0, Some(0)));
    assert_eq!(machine.nicpin(&["confirm"]).code, 0);
}

#[test]
fn a_small_limit_of_the_stack_ends_nothing() {
    let machine = MachineTree::of("two-node");
    for command in ["status", "plan", "apply", "check", "restore"] {
        let line = format!("ulimit -s 64; exec \"$1\" {command} --root \"$2\"");
        let run = Run::of(&mut script(&machine, &line));
        assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{command}");
    }
}

/// A host of virtual functions has more interfaces with a device than systemd lets a process have open files.
#[test]
fn the_limit_of_open_files_is_raised_as_far_as_the_caller_allows() {
    let machine = MachineTree::of("x460");
    let before = machine.texts();
    for command in ["apply", "check", "restore"] {
        let line = format!("ulimit -Sn 12; exec \"$1\" {command} --root \"$2\"");
        let run = Run::of(&mut script(&machine, &line));
        assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{command}");
    }
    assert_eq!(machine.texts(), before);
}

/// A program that shares the pipe, such as one on Node.js, has made it non-blocking.
#[test]
fn a_full_pipe_that_does_not_block_is_waited_for() {
    let machine = MachineTree::of("dl980");
    let plan = ["plan", "--json"];
    let whole = machine.nicpin(&plan).stdout;
    let (reader, writer) = nix::unistd::pipe().unwrap();
    fcntl(&writer, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_nicpin"));
    command.args(plan).arg("--root").arg(machine.path("/"));
    let mut nicpin = command.stdout(writer).spawn().unwrap();
    drop(command); // and its end of the pipe
    let (mut reader, mut read) = (File::from(reader), String::new());
    // A little at a time: there is no room again and again.
    let mut some = [0; 4096];
    loop {
        match reader.read(&mut some).unwrap() {
            0 => break,
            length => read.push_str(std::str::from_utf8(&some[..length]).unwrap()),
        }
    }
    assert!(nicpin.wait().unwrap().success());
    assert!(
        whole.len() > 64 << 10 && read == whole,
        "{} of {}",
        read.len(),
        whole.len()
    );
}
