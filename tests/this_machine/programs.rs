//! Other programs that read nicpin's output, and nicpin on this machine.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::captured::{Captured, plan};
use crate::support::run::{fixture, nicpin};

/// Whether a program accepts a text, and its output.
fn asked(program: &str, args: &[&str], text: &str) -> (bool, String) {
    let pipe = Stdio::piped;
    let mut child =
        Command::new(program).args(args).stdin(pipe()).stdout(pipe()).stderr(pipe()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&said).into_owned())
}

pub fn pages_are_good_roff() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(nicpin(&["man", "--into", dir.path().to_str().unwrap()]).code, 0);
    std::fs::write(dir.path().join("nicpin.toml.5"), nicpin(&["man", "nicpin.toml"]).stdout).unwrap();
    let pages: Vec<_> = std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(pages.len() > 10, "{pages:?}");
    for page in pages {
        let text = std::fs::read_to_string(&page).unwrap();
        let (_, said) = asked("mandoc", &["-T", "lint", "-W", "warning"], &text);
        // clap_mangen breaks lines before lists; pages have no date, so that they stay the same.
        let known = ["skipping paragraph macro: br ", "missing date"];
        let complaints: Vec<&str> =
            said.lines().filter(|line| !known.iter().any(|known| line.contains(known))).collect();
        assert!(complaints.is_empty(), "{}: {complaints:?}", page.display());
    }
}

pub fn completions_are_read_by(shell: &str) {
    let script = nicpin(&["completions", shell]).stdout;
    assert_eq!(asked(shell, &["-n"], &script), (true, String::new()));
}

/// The completions of the words so far, as after the Tab key.
pub fn bash_completes() {
    let script = nicpin(&["completions", "bash"]).stdout;
    for (line, expected) in [
        ("nicpin pl", "plan"),
        ("nicpin dr", "draw"),
        ("nicpin run --me", "--memory"),
        ("nicpin run --memory pre", "preferred"),
        ("nicpin plan --format ", "json"),
        ("nicpin plan --sco", "--scope"),
        ("nicpin plan --scope ", "remote"),
        ("nicpin apply --irqbalance ", "refuse"),
    ] {
        let words: Vec<&str> = line.split(' ').collect();
        let (last, previous) = (words[words.len() - 1], words[words.len() - 2]);
        let ask = format!(
            "{script}\nCOMP_WORDS=({words}'{last}'); COMP_CWORD={at}\n_nicpin nicpin '{last}' '{previous}'\n\
             printf '%s\\n' \"${{COMPREPLY[@]}}\"\n",
            words = words[..words.len() - 1].join(" ") + " ",
            at = words.len() - 1
        );
        let (_, said) = asked("bash", &["--norc"], &ask);
        assert!(said.lines().any(|word| word == expected), "{line}: {said}");
    }
}

/// script(1) runs the command on a terminal.
pub fn a_capture_and_a_terminal() {
    let root = fixture("two-node");
    let command = format!("'{}' capture --root '{}'", env!("CARGO_BIN_EXE_nicpin"), root.display());
    let output = Command::new("script").args(["-qec", &command, "/dev/null"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.contains("name a file with -o FILE"), "{said}");
    assert_eq!(output.status.code(), Some(1));
}

/// A capture of this machine has the same plan as the machine.
pub fn a_capture_plans_as_this_machine() {
    let captured = Captured::of(Path::new("/"));
    for format in ["json", "sh", "table"] {
        assert_eq!(plan(&captured.file(), format), plan(Path::new("/"), format));
    }
}
