//! Unreadable is not absent: evidence that cannot be read, or is not what the kernel prints, is never taken for a
//! machine in the planned state.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use nix::sys::stat::{Mode, SFlag, mknod};

use crate::support::is_full;
use crate::support::run::{MachineTree, is_root};
use nicpin::read::{self, Queues, ReadOptions};
use nicpin::root::Root;

/// No evidence on interrupts and queues: other tools' files, which decide on notes; names and free texts; and files
/// that only have to exist.
const NO_EVIDENCE: [&str; 6] = [
    "/etc/",
    "/usr/",
    "/run/systemd/",
    "/uevent",
    "/operstate",
    "/modalias",
];

/// Any text may be a name: a vector of an unknown name is listed as such.
const TEXTS: [&str; 2] = ["/actions", "/class"];

fn make(path: &Path, damage: &str) {
    let _ = fs::remove_file(path);
    match damage {
        "directory" => fs::create_dir(path).unwrap(),
        "loop" => symlink(path.file_name().unwrap(), path).unwrap(),
        "fifo" => mknod(path, SFlag::S_IFIFO, Mode::S_IRWXU, 0).unwrap(),
        "socket" => mknod(path, SFlag::S_IFSOCK, Mode::S_IRWXU, 0).unwrap(),
        "unreadable" => {
            fs::write(path, "1\n").unwrap();
            fs::set_permissions(path, fs::Permissions::from_mode(0o000)).unwrap();
        }
        "garbage" => fs::write(path, "no such thing \u{1}\n").unwrap(),
        _ => fs::write(path, [0xff, 0, 0x80, b'\n']).unwrap(),
    }
}

/// The names of the file and its directory, without numbers.
fn kind(path: &str) -> Vec<String> {
    let names = path.rsplit('/').take(2);
    names
        .map(|name| name.replace(|c: char| c.is_ascii_digit(), ""))
        .collect()
}

/// What a check reads: one file for each name without its numbers.
fn evidence(machine: &MachineTree) -> Vec<String> {
    let root = Root::open_recording(machine.dir()).unwrap();
    let options = ReadOptions {
        queues: Queues::WithoutFlowCounts,
        ..ReadOptions::default()
    };
    read::machine(&root, options).unwrap();
    let files = root.recorded().files.into_iter();
    let kinds: BTreeMap<String, String> = files
        .filter_map(|(path, file)| file.map(|_| path))
        .map(|path| (path.replace(|c: char| c.is_ascii_digit(), ""), path))
        .collect();
    kinds.into_values().collect()
}

#[test]
fn evidence_that_cannot_be_read_is_no_machine_as_planned() {
    let mut damages = vec!["directory", "loop", "fifo", "socket", "garbage", "bytes"];
    // Root may read all files.
    if !is_root() {
        damages.push("unreadable");
    }
    let (mut wrong, mut tried) = (Vec::new(), BTreeSet::new());
    let mut looked = 0;
    for name in ["two-node", "two-socket-mlx4"] {
        let machine = MachineTree::of(name);
        assert_eq!(machine.nicpin(&["apply"]).code, 0);
        assert_eq!(machine.nicpin(&["check"]).code, 0, "{name}");
        for path in evidence(&machine) {
            if NO_EVIDENCE.iter().any(|other| path.contains(other)) {
                continue;
            }
            // Both machines have it: once is enough.
            if !tried.insert(kind(&path)) && !is_full() {
                continue;
            }
            let real = fs::canonicalize(machine.path(&path)).unwrap();
            let kept = fs::read(&real).unwrap();
            for damage in &damages {
                let is_text = TEXTS.iter().any(|text| path.ends_with(text));
                if is_text && ["garbage", "bytes"].contains(damage) {
                    continue;
                }
                make(&real, damage);
                let run = machine.nicpin(&["check"]);
                looked += 1;
                let file = path.rsplit('/').next().unwrap();
                let said = format!("{}{}", run.stdout, run.stderr);
                if run.code != 1 || !said.contains(file) {
                    wrong.push(format!("{path}, {damage}: {} {said}", run.code));
                }
                if *damage == "directory" {
                    fs::remove_dir(&real).unwrap();
                } else {
                    fs::remove_file(&real).unwrap();
                }
                fs::write(&real, &kept).unwrap();
            }
        }
    }
    assert!(looked > 100, "{looked}");
    assert_eq!(wrong, [""; 0], "of {looked}");
}

/// The kernel allows any byte in a name but `/`, `:` and white space.
#[test]
fn an_interface_whose_name_is_no_text_is_named_and_unknown() {
    let machine = MachineTree::of("two-node");
    let applied = machine.nicpin(&["apply"]);
    assert_eq!(applied.code, 0, "{}", applied.stdout);
    let interfaces = machine.path("/sys/class/net");
    let name = OsStr::from_bytes(b"eth\xff");
    symlink("../../devices/virtual/net/none", interfaces.join(name)).unwrap();
    for command in ["status", "plan", "check", "apply"] {
        let run = machine.nicpin(&[command]);
        assert_eq!(run.code, 1, "{command}: {}", run.stdout);
        let words = run.words();
        assert!(words.contains("eth\u{fffd}"), "{command}: {words}");
    }
    assert_eq!(machine.nicpin(&["check", "nic0", "nic1"]).code, 0);
}

/// Names in a tree may also have white space, which the kernel forbids.
#[test]
fn an_interface_whose_name_has_odd_characters_is_named_and_unknown() {
    for name in ["nic\n2", "nic 2", "nic\x1b2"] {
        let machine = MachineTree::of("two-node");
        let interfaces = machine.path("/sys/class/net");
        std::fs::rename(interfaces.join("nic1"), interfaces.join(name)).unwrap();
        let run = machine.nicpin(&["check"]);
        let words = run.words();
        assert!(
            run.code == 1 && words.contains("nic\u{fffd}2"),
            "{name:?}: {} {words}",
            run.code
        );
    }
}

#[test]
fn a_queue_vector_without_its_file_is_named_and_unknown() {
    let machine = MachineTree::of("two-node");
    assert_eq!(machine.nicpin(&["apply"]).code, 0);
    for file in ["smp_affinity", "smp_affinity_list"] {
        let _ = fs::remove_file(machine.path(&format!("/proc/irq/36/{file}")));
    }
    for command in ["status", "plan", "check", "apply"] {
        let run = machine.nicpin(&[command]);
        assert_eq!(run.code, 1, "{command}: {}", run.stdout);
        assert!(run.words().contains("36"), "{command}: {}", run.stdout);
    }
}
