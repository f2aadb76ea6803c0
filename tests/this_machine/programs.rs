//! Programs that read nicpin's output, and nicpin on this machine.

use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

use nix::sys::stat::{Mode, SFlag, makedev, mknod};

use crate::support::captured::{Captured, plan};
use crate::support::run::{copied_binary, fixture, nicpin};

/// Whether a program accepts a text, with its output.
fn asked(program: &str, args: &[&str], text: &str) -> (bool, String) {
    let pipe = Stdio::piped;
    let mut child = Command::new(program)
        .args(args)
        .stdin(pipe())
        .stdout(pipe())
        .stderr(pipe())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(text.as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    (
        output.status.success(),
        String::from_utf8_lossy(&said).into_owned(),
    )
}

pub fn pages_are_good_roff() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(
        nicpin(&["man", "--into", dir.path().to_str().unwrap()]).code,
        0
    );
    let pages = glob::glob(&format!("{}/man?/*", dir.path().display())).unwrap();
    let pages: Vec<_> = pages.map(Result::unwrap).collect();
    assert!(pages.len() > 10, "{pages:?}");
    for page in pages {
        let text = std::fs::read_to_string(&page).unwrap();
        let (_, said) = asked("mandoc", &["-T", "lint", "-W", "warning"], &text);
        // clap_mangen breaks lines before lists; pages have no date, so that they stay the same.
        let known = ["skipping paragraph macro: br ", "missing date"];
        let complaints: Vec<&str> = said
            .lines()
            .filter(|line| !known.iter().any(|known| line.contains(known)))
            .collect();
        assert!(complaints.is_empty(), "{}: {complaints:?}", page.display());
    }
}

pub fn completions_are_read_by(shell: &str) {
    let script = nicpin(&["completions", shell]).stdout;
    assert_eq!(asked(shell, &["-n"], &script), (true, String::new()));
}

/// Lines as typed, each with the line after the Tab key.
const COMPLETED: [(&str, &str); 9] = [
    ("nicpin che", "nicpin check"),
    ("nicpin run --dry", "nicpin run --dry-run"),
    ("nicpin plan --format js", "nicpin plan --format json"),
    ("nicpin plan --format=js", "nicpin plan --format=json"),
    (
        "nicpin --root ROOT plan em1 p6",
        "nicpin --root ROOT plan em1 p6p1",
    ),
    (
        "nicpin --root ROOT plan driver:t",
        "nicpin --root ROOT plan driver:tg3",
    ),
    (
        "nicpin --root ROOT run --node ",
        "nicpin --root ROOT run --node 0",
    ),
    (
        "nicpin --root=ROOT check node:",
        "nicpin --root=ROOT check node:0",
    ),
    ("nicpin --root ROOT em", "nicpin --root ROOT em1"),
];

fn with_root(line: &str) -> String {
    line.replace("ROOT", fixture("tg3-and-ixgbe").to_str().unwrap())
}

fn path_with_nicpin() -> String {
    let binary = Path::new(env!("CARGO_BIN_EXE_nicpin")).parent().unwrap();
    format!("{}:{}", binary.display(), std::env::var("PATH").unwrap())
}

/// Types each line and Tab to a shell on a terminal; the shell itself prints what the line is then.
pub fn completes(shell: &str, start: &[&str], setup: &str) {
    let dir = tempfile::tempdir().unwrap();
    let script = dir.path().join("completions");
    std::fs::write(&script, nicpin(&["completions", shell]).stdout).unwrap();
    let pty = nix::pty::openpty(None, None).unwrap();
    let mut command = Command::new("setsid");
    command
        .args(["--ctty", "--wait", shell])
        .args(start)
        .env("PATH", path_with_nicpin());
    command
        .env("HOME", dir.path())
        .env("TERM", "dumb")
        .env("INPUTRC", "/dev/null");
    command
        .stdin(pty.slave.try_clone().unwrap())
        .stdout(pty.slave.try_clone().unwrap())
        .stderr(pty.slave);
    let mut child = command.spawn().unwrap();
    drop(command);
    let result = dir.path().join("result");
    let mut typed = format!("{setup}\nsource '{}'\n", script.display());
    for (line, _) in COMPLETED {
        // Ctrl-A: to the start of the line.
        typed.push_str(&format!(
            "{}\t\x01echo '<' \x05 '>' >> '{}'\n",
            with_root(line),
            result.display()
        ));
    }
    typed.push_str("exit\n");
    let mut terminal = std::fs::File::from(pty.master);
    let mut output = terminal.try_clone().unwrap();
    // The shell would wait until its output is read.
    let said = std::thread::spawn(move || {
        let mut said = Vec::new();
        // The end is EIO.
        let _ = output.read_to_end(&mut said);
        String::from_utf8_lossy(&said).into_owned()
    });
    terminal.write_all(typed.as_bytes()).unwrap();
    child.wait().unwrap();
    drop(terminal);
    let said = said.join().unwrap();
    let lines = std::fs::read_to_string(&result).unwrap_or_else(|error| panic!("{error}: {said}"));
    let lines: Vec<String> = lines
        .lines()
        .map(|line| line.trim_matches(['<', '>', ' ']).to_owned())
        .collect();
    let expected: Vec<String> = COMPLETED.iter().map(|(_, line)| with_root(line)).collect();
    assert_eq!(lines, expected, "{said}");
}

/// A device node that cannot take the output stays.
pub fn output_to_a_device() {
    let (root, dir) = (fixture("two-node"), tempfile::tempdir().unwrap());
    let draw = |device: &Path| {
        nicpin(&[
            "draw",
            "--root",
            root.to_str().unwrap(),
            "--force",
            "-o",
            device.to_str().unwrap(),
        ])
    };
    for (name, minor, code) in [("null", 3, 0), ("full", 7, 1)] {
        let device = dir.path().join(name);
        let mode = Mode::from_bits_truncate(0o666);
        if mknod(&device, SFlag::S_IFCHR, mode, makedev(1, minor)).is_err() {
            // A container without CAP_MKNOD.
            return;
        }
        let run = draw(&device);
        assert_eq!(run.code, code, "{name}: {}", run.stderr);
        assert!(
            code == 0 || run.stderr.contains("no space left on device (ENOSPC)"),
            "{}",
            run.stderr
        );
        assert!(!device.symlink_metadata().unwrap().is_file(), "{name}");
    }
}

/// script(1) runs the command on a terminal.
pub fn a_capture_and_a_terminal() {
    let root = fixture("two-node");
    let command = format!(
        "'{}' capture --root '{}'",
        env!("CARGO_BIN_EXE_nicpin"),
        root.display()
    );
    let output = Command::new("script")
        .args(["-qec", &command, "/dev/null"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.contains("name a file with -o FILE"), "{said}");
    assert_eq!(output.status.code(), Some(1));
}

/// The plan differs only by the host's name, which is not captured.
pub fn a_capture_plans_as_this_machine() {
    let captured = Captured::of(Path::new("/"));
    for format in ["json", "sh", "table"] {
        let mut of_machine = plan(Path::new("/"), format);
        if format == "json" {
            let plan: serde_json::Value = serde_json::from_str(&of_machine).unwrap();
            let name = format!("    \"name\": {},\n", plan["host"]["name"]);
            assert!(of_machine.contains(&name), "{of_machine}");
            of_machine = of_machine.replacen(&name, "", 1);
        }
        assert_eq!(plan(&captured.file(), format), of_machine);
    }
}

/// Containers mask a file by `/dev/null`. Which names IRQs have is in `/sys`, too.
pub fn a_machine_whose_interrupts_are_masked_has_a_status() {
    let (_dir, binary) = copied_binary();
    let run = |arguments: &str| {
        let script = format!(
            "mount --bind /dev/null /proc/interrupts && exec {} {arguments}",
            binary.display()
        );
        let mut run = Command::new("unshare");
        run.args(["-rm", "sh", "-c", &script]).output().unwrap()
    };
    let (watching, without) = (run("status"), run("status --seconds 0"));
    assert_eq!(
        (watching.status, watching.stdout),
        (without.status, without.stdout)
    );
    let errors = String::from_utf8(watching.stderr).unwrap();
    let said =
        "interrupts are not watched: /proc/interrupts: is empty, as in a container that masks it";
    assert!(errors.contains(said), "{errors}");
}

/// `/run` is empty, too: whether this user may lock there is another matter.
pub fn a_machine_without_sysfs_is_not_planned() {
    let (_dir, binary) = copied_binary();
    let script = format!(
        "mount -t tmpfs none /sys; mount -t tmpfs none /run; for command in plan status check apply draw measure; do {} $command; echo $?; done",
        binary.display()
    );
    let run = Command::new("unshare")
        .args(["-rm", "sh", "-c", &script])
        .output()
        .unwrap();
    let (out, errors) = (
        String::from_utf8(run.stdout).unwrap(),
        String::from_utf8(run.stderr).unwrap(),
    );
    assert_eq!(out, "1\n".repeat(6), "{errors}");
    assert_eq!(
        errors.matches("/sys/class/net does not exist").count(),
        6,
        "{errors}"
    );
}
