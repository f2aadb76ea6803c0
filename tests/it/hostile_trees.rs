//! A tree from strangers: nothing outside it is read or written, and no file in it stops the program.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::errno::Errno;
use nix::sys::stat::Mode;

use crate::support::kernel::without_openat2;
use crate::support::run::{MachineTree, Run};
use crate::support::{is_full, temporary};
use nicpin::read::ReadOptions;
use nicpin::root::Root;

const AFFINITY: &str = "/proc/irq/28/smp_affinity";

/// A directory outside the tree, with files of nicpin's names.
fn outside() -> tempfile::TempDir {
    let dir = temporary();
    std::fs::create_dir(dir.path().join("nicpin")).unwrap();
    for name in [
        "lock",
        "state.json",
        "state.json.new",
        "try.json",
        "try.lock",
    ] {
        std::fs::write(dir.path().join("nicpin").join(name), "outside").unwrap();
    }
    dir
}

fn is_untouched(dir: &Path) -> bool {
    let entries = crate::support::tree::entries(dir);
    entries.len() == 5
        && entries
            .values()
            .all(|entry| *entry == crate::support::tree::Entry::File("outside".into()))
}

/// `/run` of the tree is a link, and what it leads to exists both in the tree and outside it.
#[test]
fn state_files_are_those_of_the_tree_where_run_is_a_link() {
    let (machine, outside) = (MachineTree::of("two-node"), outside());
    let path = outside.path().to_str().unwrap();
    std::fs::create_dir_all(machine.path(path).join("nicpin")).unwrap();
    symlink(path, machine.path("/run")).unwrap();
    let before = machine.read(AFFINITY);
    for _ in 0..2 {
        let run = machine.nicpin(&["apply", "--scope", "remote"]);
        assert_eq!(run.code, 0, "{}", run.stderr);
        assert!(machine.path(&format!("{path}/nicpin/state.json")).exists());
        assert_ne!(machine.read(AFFINITY).trim(), before.trim());
        let run = machine.nicpin(&["restore"]);
        assert_eq!(run.code, 0, "{}", run.stderr);
        assert_eq!(machine.read(AFFINITY).trim(), before.trim());
        assert!(!machine.path(&format!("{path}/nicpin/state.json")).exists());
        assert!(is_untouched(outside.path()));
    }
}

#[test]
fn a_file_with_another_name_outside_is_not_written() {
    let outside = outside();
    let file = |name: &str| outside.path().join("nicpin").join(name);
    for (name, code) in [
        ("state.json.new", 0),
        ("state.json", 0),
        ("lock", 1),
        ("try.lock", 0),
        ("smp_affinity", 1),
    ] {
        let machine = MachineTree::of("two-node");
        std::fs::create_dir_all(machine.path("/run/nicpin")).unwrap();
        let path = if name == "smp_affinity" {
            AFFINITY.to_owned()
        } else {
            format!("/run/nicpin/{name}")
        };
        if name == "smp_affinity" {
            machine.remove(AFFINITY);
            std::fs::write(file("lock"), "ff\n").unwrap();
            std::fs::hard_link(file("lock"), machine.path(AFFINITY)).unwrap();
        } else if name == "state.json" {
            std::fs::write(file(name), r#"{"schema":"nicpin.state/1","first_seen":{}}"#).unwrap();
            std::fs::hard_link(file(name), machine.path(&path)).unwrap();
        } else {
            std::fs::hard_link(file(name), machine.path(&path)).unwrap();
        }
        let before = crate::support::tree::entries(outside.path());
        let run = machine.nicpin(&["apply", "--scope", "remote", "--try", "1"]);
        assert_eq!(run.code, code, "{name}: {}{}", run.stdout, run.stderr);
        let said = run.words() + &run.stderr;
        assert!(
            code == 0 || said.contains("has another name (a hard link)"),
            "{name}: {said}"
        );
        assert_eq!(
            crate::support::tree::entries(outside.path()),
            before,
            "{name}"
        );
    }
}

/// A directory on the way is a link to the outside at moments, and the kernel has no openat2, or answers EAGAIN because
/// of the renames.
#[test]
fn a_directory_that_becomes_a_link_does_not_lead_out() {
    let (machine, outside) = (MachineTree::of("two-node"), temporary());
    std::fs::write(outside.path().join("smp_affinity"), "outside").unwrap();
    let directory = machine.path("/proc/irq/28");
    let (kept, link) = (
        directory.with_extension("kept"),
        directory.with_extension("link"),
    );
    symlink(outside.path(), &link).unwrap();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                for (from, to) in [
                    (&directory, &kept),
                    (&link, &directory),
                    (&directory, &link),
                    (&kept, &directory),
                ] {
                    std::fs::rename(from, to).unwrap();
                }
            }
        });
        let (mut inside, mut led_out) = (0, 0);
        for errno in [Errno::EAGAIN, Errno::ENOSYS] {
            without_openat2(errno, || {
                let root = Root::open(machine.dir()).unwrap();
                for _ in 0..if is_full() { 30_000 } else { 5_000 } {
                    match root.read(AFFINITY) {
                        Ok(text) if text == "outside" => led_out += 1,
                        read => inside += u32::from(read.is_ok()),
                    }
                }
            });
        }
        over.store(true, Ordering::Relaxed);
        assert!(
            led_out == 0 && inside > 100,
            "{led_out} reads were of the file outside, {inside} of the other"
        );
    });
}

#[test]
fn without_openat2_a_tree_is_read_the_same() {
    let machine = MachineTree::of("four-node");
    let read = || {
        let root = Root::open(machine.dir()).unwrap();
        format!(
            "{:?}",
            nicpin::read::machine(&root, ReadOptions::EVERYTHING).unwrap()
        )
    };
    let machine = read();
    assert_eq!(without_openat2(Errno::ENOSYS, read), machine);
    assert_eq!(without_openat2(Errno::EAGAIN, read), machine);
}

/// Ends it after ten seconds, with exit code 124.
fn in_time(machine: &MachineTree, args: &[&str]) -> Run {
    Run::of(
        std::process::Command::new("timeout")
            .args(["10", env!("CARGO_BIN_EXE_nicpin")])
            .args(args)
            .arg("--root")
            .arg(machine.path("/")),
    )
}

fn fails(machine: &MachineTree, args: &[&str], expected: &str) {
    let run = in_time(machine, args);
    assert_eq!(
        (run.code, run.stdout.as_str()),
        (1, ""),
        "{args:?}: {}",
        run.stderr
    );
    assert!(
        run.stderr.contains(expected) && run.stderr.lines().count() == 1,
        "{args:?}: {}",
        run.stderr
    );
}

#[test]
fn a_fifo_or_an_endless_file_is_refused() {
    let machine = MachineTree::with_policy(0o644);
    assert_eq!(machine.nicpin(&["apply"]).code, 0);
    let plan = machine.path("/plan.json");
    let plan = plan.to_str().unwrap();
    std::fs::write(plan, machine.nicpin(&["plan", "--format", "json"]).stdout).unwrap();
    let config = machine.path("/etc/nicpin.toml");
    let config = config.to_str().unwrap();
    for (path, commands) in [
        (
            AFFINITY,
            &[&["plan"][..], &["apply"], &["check"], &["status"]][..],
        ),
        (
            "/proc/interrupts",
            &[&["plan"], &["apply"], &["measure", "--seconds", "1"]],
        ),
        ("/sys/devices/system/cpu/online", &[&["plan"], &["nodes"]]),
        (
            "/etc/nicpin.toml",
            &[
                &["plan"],
                &["apply"],
                &["plan", "--config", config],
                &["apply", "--config", config],
            ],
        ),
        ("/run/nicpin/state.json", &[&["apply"], &["restore"]]),
        ("/plan.json", &[&["apply", "--plan", plan]]),
    ] {
        let (file, kept) = (machine.path(path), machine.path("/kept"));
        std::fs::rename(&file, &kept).unwrap();
        nix::unistd::mkfifo(&file, Mode::from_bits_truncate(0o644)).unwrap();
        for command in commands {
            fails(
                &machine,
                command,
                &format!("{}: is a FIFO, not a regular file", &path[1..]),
            );
        }
        std::fs::remove_file(&file).unwrap();
        std::fs::File::create(&file)
            .unwrap()
            .set_len(1 << 40)
            .unwrap();
        let limit = match path {
            "/proc/interrupts" => 256,
            AFFINITY | "/sys/devices/system/cpu/online" => 1,
            _ => 64,
        };
        for command in commands {
            fails(
                &machine,
                command,
                &format!("{}: is larger than {limit} MiB", &path[1..]),
            );
        }
        std::fs::rename(&kept, &file).unwrap();
    }
    for command in [
        ["plan", "--config", "/dev/zero"],
        ["apply", "--plan", "/dev/zero"],
    ] {
        fails(
            &machine,
            &command,
            "/dev/zero: is a device, not a regular file",
        );
    }
    assert_eq!(machine.nicpin(&["restore"]).code, 0);
}

/// The kernel says where links lead; a recording follows each of them.
#[test]
fn links_lead_to_the_same_path_with_and_without_a_recording() {
    let machine = MachineTree::of("two-node");
    for (name, target) in [
        ("class", "/sys/class"),
        ("above", "../../../../sys/class/net"),
        ("loop", "loop"),
        ("gone", "nowhere"),
    ] {
        symlink(target, machine.path(name)).unwrap();
    }
    let top = machine.path("");
    let (plain, recording) = (
        Root::open(&top).unwrap(),
        Root::open_recording(&top).unwrap(),
    );
    let device = plain.canonical("/sys/class/net/nic0/device");
    let device = device.unwrap().unwrap();
    assert!(device.starts_with("/sys/devices/"), "{device}");
    for path in [
        "/",
        "/proc",
        "/sys/class/net/nic0",
        "/sys/class/net/nic0/device/..",
        "/class/net/nic0/device",
        "/above/nic0/device",
        "/../../above",
        "/loop",
        "/loop/nic0",
        "/gone",
        "/gone/nic0",
        "/sys/class/net/none",
        "/proc/irq/28/smp_affinity",
        "/proc/irq/28/smp_affinity/x",
    ] {
        let [plain, recording] = [&plain, &recording].map(|root| root.canonical(path));
        let [plain, recording] = [plain, recording].map(|found| found.map_err(|e| e.to_string()));
        assert_eq!(plain, recording, "{path}");
    }
}
