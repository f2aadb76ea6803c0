//! Processes of other tools: they are found without looking at all processes, only root's count, and one that ends, or
//! that may not be looked at, ends no command.

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;

use nix::libc::{EACCES, ENOENT, EPERM, ESRCH};
use snapbox::str;

use crate::support::run::{MachineTree, assert_line, codes, document, good, nicpin, note, text};
use crate::support::tree::put;
use nicpin::machine::{Machine, OtherTools};
use nicpin::read::ReadOptions;
use nicpin::root::Root;
use nicpin::root::faults::{FileAccess, FileAction, InjectedAnswer};

const SERVICE: &str = "/sys/fs/cgroup/system.slice/irqbalance.service/cgroup.procs";
const SOCKET: &str = "/run/irqbalance/irqbalance812.sock";

/// A process of a user with this id.
fn process(machine: &MachineTree, pid: u32, name: &str, started: u32, user: u32) {
    let top = machine.path("/");
    let stat = format!(
        "{pid} ({name}) S 1{} {started}{}",
        " 0".repeat(17),
        " 0".repeat(30)
    );
    put(&top, &format!("/proc/{pid}/stat"), &stat);
    put(
        &top,
        &format!("/proc/{pid}/status"),
        &format!("Name:\t{name}\nUid:\t{user}\t{user}\t{user}\t{user}\nGid:\t0\t0\t0\t0"),
    );
}

/// `two-node` with an init and root's irqbalance.
fn machine() -> MachineTree {
    let machine = MachineTree::of("two-node");
    process(&machine, 1, "init", 1, 0);
    process(&machine, 812, "irqbalance", 611, 0);
    machine
}

fn tools(root: &Path) -> OtherTools {
    read(&Root::open(root).unwrap()).other_tools
}

fn read(root: &Root) -> Machine {
    nicpin::read::machine(root, ReadOptions::default()).unwrap()
}

/// The files that were read of a machine, with an answer for each.
fn accesses(
    machine: &MachineTree,
    answer: impl Fn(&str) -> Option<i32> + 'static,
) -> (OtherTools, Vec<String>) {
    let paths = Rc::new(RefCell::new(Vec::new()));
    let seen = Rc::clone(&paths);
    let root = Root::open_with_faults(machine.dir(), move |access: FileAccess<'_>| {
        if access.action == FileAction::Read {
            seen.borrow_mut().push(access.path.to_owned());
        }
        answer(access.path).map_or(InjectedAnswer::Done, InjectedAnswer::Errno)
    });
    let tools = read(&root.unwrap()).other_tools;
    let paths = paths.borrow().clone();
    (tools, paths)
}

#[test]
fn the_number_of_processes_changes_nothing() {
    let machine = machine();
    machine.put(SOCKET, "");
    let (few, read_of_few) = accesses(&machine, |_| None);
    for pid in 1000..1400 {
        process(&machine, pid, "irqbalance", 1, 0);
        process(&machine, pid + 1000, "tuned", 1, 0);
    }
    let (many, read_of_many) = accesses(&machine, |_| None);
    assert_eq!((few, read_of_few), (many.clone(), read_of_many));
    assert_eq!(many.irqbalance.unwrap().pid, 812);
    // Nothing leads to any of them.
    machine.remove(SOCKET);
    let (none, read) = accesses(&machine, |_| None);
    assert_eq!((none.irqbalance, none.irqbalance_hidden), (None, None));
    assert_eq!(
        read.iter()
            .filter(|path| path.starts_with("/proc/") && path.ends_with("/stat"))
            .count(),
        0
    );
}

#[test]
fn each_trace_of_irqbalance_leads_to_it_and_is_captured() {
    let number = |path: &str| (path.to_owned(), "812".to_owned());
    let unix = |name: &str| {
        let head = "Num       RefCount Protocol Flags    Type St Inode Path\n0000000000000000: 00000003 00000000";
        let text =
            format!("{head} 00000000 0001 03 8123\n0: 00000002 00000000 00010000 0001 01 5 {name}");
        ("/proc/net/unix".to_owned(), text)
    };
    for (path, text) in [
        number(SERVICE),
        number("/sys/fs/cgroup/systemd/system.slice/irqbalance.service/cgroup.procs"),
        number("/sys/fs/cgroup/unified/system.slice/irqbalance.service/cgroup.procs"),
        number("/run/irqbalance.pid"),
        number(SOCKET),
        number("/run/irqbalance812.sock"),
        unix("@irqbalance812.sock"),
        unix(&format!("@irqbalance812.sock{}", "@".repeat(80))),
        unix(&"@".repeat(108)),
    ] {
        let machine = machine();
        machine.put(&path, &text);
        assert_eq!(tools(machine.dir()).irqbalance.unwrap().pid, 812, "{path}");
        let archive = machine.path("/machine.tar.gz");
        // Quietly: otherwise it says that it renames the cgroups of a service.
        good(
            &machine,
            &["capture", "-q", "-o", archive.to_str().unwrap()],
        );
        assert_eq!(tools(&archive).irqbalance.unwrap().pid, 812, "{path}");
        let plan = nicpin(&["plan", "--root", archive.to_str().unwrap()]);
        assert_eq!(plan.stdout, machine.nicpin(&["plan"]).stdout);
    }
}

/// What cannot be read is no evidence that irqbalance does not run.
#[test]
fn a_trace_that_cannot_be_read_is_not_absent() {
    for path in ["/run/irqbalance", "/run/irqbalance.pid", SERVICE] {
        let machine = machine();
        let file = machine.path(path);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        // A link to itself is refused to everybody.
        std::os::unix::fs::symlink(file.file_name().unwrap(), &file).unwrap();
        let hidden = tools(machine.dir()).irqbalance_hidden;
        assert_eq!(hidden.as_deref(), Some(path));
        let plan = document(&machine, &["plan"]);
        assert_eq!(note(&plan, "irqbalance-unknown")["hidden"], path);
    }
}

/// Captures of nicpin 0.1 have the process and nothing that leads to it.
#[test]
fn a_capture_without_traces_still_has_its_irqbalance() {
    let machine = machine();
    assert_eq!(tools(machine.dir()).irqbalance, None);
    machine.put("/nicpin/capture", "nicpin.capture/2");
    assert_eq!(tools(machine.dir()).irqbalance.unwrap().pid, 812);
}

/// Any user can give a process this name, and bind a socket without a file.
#[test]
fn a_process_of_another_user_is_not_irqbalance() {
    let machine = machine();
    machine.remove("/proc/812");
    // The first in order of text, of number, and of age.
    process(&machine, 1000, "irqbalance", 1, 65534);
    machine.put(
        "/proc/net/unix",
        "0: 00000002 00000000 00010000 0001 01 5 @irqbalance1000.sock",
    );
    let tools_now = tools(machine.dir());
    assert_eq!(
        (tools_now.irqbalance, tools_now.irqbalance_hidden),
        (None, None)
    );
    let plan = document(&machine, &["plan"]);
    assert_eq!((plan.get("irqbalance"), codes(&plan).len()), (None, 0));
    // One with another real than effective user is not root's, either.
    machine.put(
        "/proc/1000/status",
        "Name:\tirqbalance\nUid:\t65534\t0\t0\t0",
    );
    assert_eq!(tools(machine.dir()).irqbalance, None);
    // Beside the real one.
    process(&machine, 9999, "irqbalance", 700, 0);
    machine.put("/proc/net/unix",
        "0: 00000002 0 00010000 0001 01 5 @irqbalance1000.sock\n0: 00000002 0 00010000 0001 01 6 @irqbalance9999.sock",
    );
    assert_eq!(tools(machine.dir()).irqbalance.unwrap().pid, 9999);
    // What systemd started comes first.
    process(&machine, 31000, "irqbalance", 800, 0);
    machine.put(SERVICE, "30999\n31000");
    process(&machine, 30999, "sh", 900, 0);
    assert_eq!(tools(machine.dir()).irqbalance.unwrap().pid, 31000);
}

/// A process that ends between open(2) and read(2) answers ESRCH.
#[test]
fn a_process_that_ends_meanwhile_is_no_error() {
    for file in [
        "/proc/812/stat",
        "/proc/812/status",
        SERVICE,
        "/proc/700/stat",
        "/run/tuned/tuned.pid",
    ] {
        for errno in [ESRCH, ENOENT] {
            let machine = machine();
            machine.put(SERVICE, "812");
            machine.put("/run/tuned/tuned.pid", "700");
            machine.put("/etc/tuned/active_profile", "site");
            machine.put("/etc/tuned/site/tuned.conf", "[irq]");
            process(&machine, 700, "tuned", 5, 0);
            let (found, read) = accesses(&machine, move |path| (path == file).then_some(errno));
            assert!(read.iter().any(|path| path == file), "{file}");
            let about_irqbalance =
                file.contains("812") && file.ends_with("stat") || file == SERVICE;
            assert_eq!(
                found.irqbalance.is_some(),
                !about_irqbalance,
                "{file} {errno}: {found:?}"
            );
            assert_eq!(found.irqbalance_hidden, None);
            assert_eq!(
                found.others.is_empty(),
                file.contains("tuned") || file.contains("700"),
                "{file}"
            );
        }
    }
}

/// `hidepid=1`: EPERM; `hidepid=2`: ENOENT, as for the first process.
#[test]
fn what_may_not_be_looked_at_could_not_be_determined() {
    for errno in [EPERM, EACCES, ENOENT] {
        let hide = move |path: &str| path.ends_with("/stat").then_some(errno);
        let machine = machine();
        machine.put(SOCKET, "");
        let (found, _) = accesses(&machine, hide);
        assert_eq!(
            (found.irqbalance, found.irqbalance_hidden.as_deref()),
            (None, Some("/proc/812"))
        );
        // Only root puts a process into the service.
        machine.put(SERVICE, "812");
        let (found, _) = accesses(&machine, hide);
        assert_eq!(
            (found.irqbalance.unwrap().pid, found.irqbalance_hidden),
            (812, None)
        );
    }
    let machine = machine();
    machine.put(SOCKET, "");
    machine.remove("/proc/1");
    machine.remove("/proc/812");
    for command in ["plan", "apply"] {
        let told = document(&machine, &[command]);
        let unknown = note(&told, "irqbalance-unknown");
        assert_eq!(unknown["hidden"], "/proc/812");
        assert_line(
            text(unknown, "text"),
            str![[r"
cannot tell whether irqbalance is running (no permission to read /proc/812); if it is, it moves IRQs

"]],
        );
    }
    assert_eq!(machine.nicpin(&["check"]).code, 0);
    let archive = machine.path("/machine.tar.gz");
    good(&machine, &["capture", "-o", archive.to_str().unwrap()]);
    assert_eq!(
        tools(&archive).irqbalance_hidden.as_deref(),
        Some("/proc/812")
    );
}
