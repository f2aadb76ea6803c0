//! What `measure` does with its command and with signals.

use std::io::{BufRead as _, BufReader};
use std::os::unix::process::ExitStatusExt as _;
use std::process::Child;

use nix::libc;
use nix::sys::signal::{Signal, kill, killpg};
use serde_json::Value;

use super::{lines, pid, started_on};
use crate::support::run::{MachineTree, fixture, nicpin};

#[test]
fn a_command_is_measured_and_its_failure_is_reported() {
    let root = fixture("two-node");
    let measure =
        |args: &[&str]| nicpin(&[&["--root", root.to_str().unwrap(), "measure"], args].concat());
    let run = measure(&["--format", "json", "--", "echo", "said"]);
    assert_eq!(
        (run.code, run.stderr.as_str()),
        (0, "said\n"),
        "its output is not in the way of the report"
    );
    let samples = lines(&run.stdout);
    assert_eq!(
        (samples.len(), &samples[0]["whole"]),
        (1, &Value::Bool(true))
    );

    let run = measure(&["--", "sh", "-c", "exit 3"]);
    assert_eq!(
        (run.code, run.stderr.as_str()),
        (3, "nicpin: sh: exit status: 3\n")
    );
    assert!(
        run.stdout.contains("nic0") && run.stdout.contains(" CPUs busy"),
        "{}",
        run.stdout
    );
    let run = measure(&["--", "sh", "-c", "kill -9 $$"]);
    assert!(
        run.code == 128 + 9 && run.stderr.contains("signal: 9"),
        "{}",
        run.stderr
    );
    // That interrupts cannot be counted is said, too.
    let machine = MachineTree::of("two-node");
    machine.remove("/proc/irq");
    let absent = format!(
        "nicpin: {}: no such file",
        machine.path("/proc/irq").display()
    );
    for status in [0, 3] {
        let (root, ends) = (machine.path("/"), format!("exit {status}"));
        let args = [
            "--root",
            root.to_str().unwrap(),
            "measure",
            "--",
            "sh",
            "-c",
            &ends,
        ];
        let run = nicpin(&args);
        assert!(
            run.code == status && run.stderr.contains(&absent),
            "{}",
            run.stderr
        );
    }
    let alone = machine.nicpin(&["measure", "--seconds", "0.01"]);
    assert!(
        alone.code == 1 && alone.stderr.contains(&absent),
        "{}",
        alone.stderr
    );
    for (program, code, error) in [
        (
            "/nonexistent/program",
            127,
            "no such file or directory (ENOENT)",
        ),
        ("nosuch-program", 127, "no such file or directory (ENOENT)"),
        ("/etc/passwd", 126, "permission denied (EACCES)"),
        ("/etc", 126, "permission denied (EACCES)"),
    ] {
        let run = measure(&["--", program]);
        assert_eq!((run.code, run.stdout.as_str()), (code, ""), "{program}");
        assert_eq!(run.stderr, format!("nicpin: {program}: {error}\n"));
    }
}

/// Starts a measurement, and returns when it catches signals.
fn started(args: &[&str]) -> Child {
    started_on(fixture("two-node").to_str().unwrap(), args)
}

#[test]
fn an_interrupt_ends_a_measurement_with_the_report() {
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        let child = started(&["--seconds", "3600", "--format", "json"]);
        kill(pid(&child), signal).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(
            (output.status.code(), output.stderr.as_slice()),
            (Some(0), &b""[..])
        );
        let samples = lines(&String::from_utf8(output.stdout).unwrap());
        assert!(
            samples.len() == 1 && samples[0]["seconds"].as_f64().unwrap() < 3600.0,
            "{samples:?}"
        );
    }
}

#[test]
fn an_interrupt_ends_the_command_and_then_comes_the_report() {
    let script = "echo ready; exec sleep 3600";
    // As the terminal does it, and to nicpin only.
    let signals = [
        (Signal::SIGINT, true, 130),
        (Signal::SIGTERM, false, 143),
        (Signal::SIGINT, false, 143),
    ];
    let children = signals.map(|(signal, to_all, _)| {
        let mut child = started(&["--format", "json", "--", "sh", "-c", script]);
        let mut ready = String::new();
        BufReader::new(child.stderr.as_mut().unwrap())
            .read_line(&mut ready)
            .unwrap();
        assert_eq!(ready, "ready\n");
        let sent = if to_all {
            killpg(pid(&child), signal)
        } else {
            kill(pid(&child), signal)
        };
        sent.unwrap();
        child
    });
    for (child, (signal, to_all, code)) in children.into_iter().zip(signals) {
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{signal} {to_all}");
        let samples = lines(&String::from_utf8(output.stdout).unwrap());
        assert!(
            samples[0]["whole"] == true && samples[1..].iter().all(|error| error["exit"] == code),
            "{samples:?}"
        );
    }
}

/// Nobody has to wait for a command that ignores everything.
#[test]
fn the_second_interrupt_ends_nicpin() {
    let child = started(&["--seconds", "3600", "--watch"]);
    // The first one only: a second signal may be delivered before this process sees the first.
    kill(pid(&child), Signal::SIGINT).unwrap();
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(0));
    let mut child = started(&[
        "--",
        "sh",
        "-c",
        "trap '' INT TERM; echo ready; exec sleep 3600",
    ]);
    BufReader::new(child.stderr.as_mut().unwrap())
        .read_line(&mut String::new())
        .unwrap();
    loop {
        kill(pid(&child), Signal::SIGINT).unwrap();
        std::thread::yield_now();
        if let Some(status) = child.try_wait().unwrap() {
            assert_eq!(status.signal(), Some(libc::SIGINT));
            break;
        }
    }
    killpg(pid(&child), Signal::SIGKILL).unwrap();
}
