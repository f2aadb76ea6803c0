//! Captures written by `nicpin capture`, and their plans.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;

use super::run::{Run, nicpin};
use crate::support::{is_full, temporary};

pub struct Captured {
    pub dir: tempfile::TempDir,
    pub run: Run,
}

impl Captured {
    pub fn of(root: &Path) -> Self {
        Self::with(root, &[])
    }

    pub fn with(root: &Path, args: &[&str]) -> Self {
        let dir = temporary();
        let file = dir.path().join("machine.tar.gz");
        let paths = [
            "capture",
            "--root",
            root.to_str().unwrap(),
            "-o",
            file.to_str().unwrap(),
        ];
        let run = nicpin(&[&paths, args].concat());
        Self { dir, run }
    }

    pub fn file(&self) -> PathBuf {
        assert_eq!(self.run.code, 0, "{}", self.run.stderr);
        self.dir.path().join("machine.tar.gz")
    }

    pub fn bytes(&self) -> Vec<u8> {
        std::fs::read(self.file()).unwrap()
    }

    /// Names, targets and texts, uncompressed.
    pub fn text(&self) -> String {
        let mut bytes = Vec::new();
        GzDecoder::new(self.bytes().as_slice())
            .read_to_end(&mut bytes)
            .unwrap();
        String::from_utf8(bytes).unwrap()
    }

    pub fn unpack(&self) -> PathBuf {
        let to = self.dir.path().join("unpacked");
        tar::Archive::new(GzDecoder::new(self.bytes().as_slice()))
            .unpack(&to)
            .unwrap();
        to
    }
}

pub fn plan(root: &Path, format: &str) -> String {
    let run = nicpin(&["plan", "--root", root.to_str().unwrap(), "--format", format]);
    assert_eq!(
        (run.code, run.stderr.as_str()),
        (0, ""),
        "{}",
        root.display()
    );
    run.stdout
}

/// A capture does not have the name of the host.
pub fn assert_same_plans(machine: &Path, other: &Path) {
    let nameless = |plan: String| -> String {
        plan.split_inclusive('\n')
            .filter(|line| !line.starts_with("    \"name\""))
            .collect()
    };
    // The fast tier tries only JSON, which has most.
    let formats = if is_full() { 3 } else { 1 };
    for format in ["json", "table", "sh"].into_iter().take(formats) {
        let (planned, expected) = (
            nameless(plan(other, format)),
            nameless(plan(machine, format)),
        );
        assert_eq!(planned, expected, "{} {format}", machine.display());
    }
}
