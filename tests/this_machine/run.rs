//! `nicpin run`: the kernel reports the CPUs and the memory policy of the command.

use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Command, Output};

use crate::kernel::memory_policy;
use crate::support::run::{copied_binary, is_root};
use nicpin::apply::bind;
use nicpin::cpuset::{CpuSet, NodeSet};
use nicpin::machine::{Machine, Selection};
use nicpin::plan::binding::{Binding, BindingRequest, MemoryBinding, NodeChoice};
use nicpin::plan::plan;
use nicpin::policy::Policy;
use nicpin::root::{Root, sys};

/// Child processes inherit what a thread is bound to.
pub fn what_a_bound_thread_starts_is_bound() {
    let cpus = CpuSet::single(sys::affinity().unwrap().last().unwrap());
    let memory_nodes = NodeSet::single(sys::allowed_nodes().unwrap().first().unwrap());
    for (memory, word) in [
        (MemoryBinding::Bind, "bind:"),
        (MemoryBinding::Preferred, "prefer:"),
        (MemoryBinding::Local, "local"),
    ] {
        let binding = Binding {
            nodes: memory_nodes.clone(),
            cpus: cpus.clone(),
            why: "as requested".to_owned(),
            requested: false,
            memory,
            memory_nodes: memory_nodes.clone(),
            notes: vec![],
        };
        let word = if memory == MemoryBinding::Local {
            word.to_owned()
        } else {
            format!("{word}{memory_nodes}")
        };
        let expected = word.clone();
        let bound = std::thread::spawn(move || {
            assert_eq!(bind(&binding).unwrap(), binding.cpus);
            assert_eq!(memory_policy(), expected);
            let child = Command::new("cat")
                .args(["/proc/self/status", "/proc/self/numa_maps"])
                .output();
            String::from_utf8(child.unwrap().stdout).unwrap()
        });
        let said = bound.join().unwrap();
        assert!(
            said.contains(&format!("Cpus_allowed_list:\t{cpus}\n")),
            "{said}"
        );
        assert!(
            said.lines()
                .any(|line| line.split(' ').nth(1) == Some(&word)),
            "no {word}: {said}"
        );
    }
    assert_ne!(
        memory_policy(),
        format!("bind:{memory_nodes}"),
        "this thread is not bound"
    );
}

fn host() -> Machine {
    nicpin::read::machine(
        &Root::open("/".as_ref()).unwrap(),
        nicpin::read::ReadOptions::default(),
    )
    .unwrap()
}

pub fn interface() -> Option<String> {
    host()
        .interfaces
        .first()
        .map(|interface| interface.name.clone())
}

/// Runs as an unprivileged user if the tests run as root.
fn run_here(interface: &str, command: &[&str]) -> Output {
    let (_dir, binary) = copied_binary();
    let mut run = Command::new(&binary);
    run.args(["run", "--node", "0", interface, "--"])
        .args(command);
    if is_root() {
        run.uid(65534).gid(65534);
    }
    run.output().unwrap()
}

pub fn a_command_is_bound() {
    let (host, name) = (host(), interface().unwrap());
    let names: Vec<String> = vec![name.clone()];
    let wish = BindingRequest {
        place: NodeChoice::Node(0),
        ..BindingRequest::default()
    };
    let planned = plan(
        &host,
        &Policy::default(),
        &Selection::new(&host, &[], false).unwrap(),
    );
    let expected = Binding::new(&host, &planned, &name, &names, &wish).unwrap();

    let said = run_here(&name, &["cat", "/proc/self/status", "/proc/self/numa_maps"]);
    let text = String::from_utf8(said.stdout).unwrap();
    assert_eq!(
        said.status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&said.stderr)
    );
    let line = |name: &str| {
        text.lines()
            .find_map(|line| line.strip_prefix(name))
            .map(str::trim)
            .unwrap()
    };
    assert_eq!(line("Cpus_allowed_list:"), expected.cpus.to_string());
    assert!(
        text.lines()
            .any(|line| line.split(' ').nth(1) == Some("bind:0")),
        "{text}"
    );
    // A closed pipe ends the command: SIGPIPE (13) is not ignored.
    assert_eq!(
        u64::from_str_radix(line("SigIgn:"), 16).unwrap() & (1 << 12),
        0
    );

    assert_eq!(
        run_here(&name, &["sh", "-c", "exit 42"]).status.code(),
        Some(42)
    );
    assert_eq!(
        run_here(&name, &["sh", "-c", "kill -TERM $$"])
            .status
            .signal(),
        Some(15)
    );
    for (program, code, error) in [
        (
            "/no/such/command",
            127,
            "no such file or directory (ENOENT)",
        ),
        ("nosuch", 127, "no such file or directory (ENOENT)"),
        ("/etc/passwd", 126, "permission denied (EACCES)"),
    ] {
        let failed = run_here(&name, &[program]);
        assert_eq!(failed.status.code(), Some(code), "{program}");
        assert_eq!(
            String::from_utf8_lossy(&failed.stderr),
            format!("nicpin: {program}: {error}\n")
        );
    }
}
