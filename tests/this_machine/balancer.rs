//! irqbalance as a process: this program, started again, that listens on irqbalance's socket and answers, or does not.
//! nicpin runs in a root directory of its own with a copy of a shipped machine, which it takes for the live one.

use std::io::{Read as _, Write as _};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::is_full;
use crate::support::run::{MachineTree, Run, is_root};
use crate::support::tree::put;

/// A word, and the directory for the socket, or nothing for a socket without a file.
const BEHAVIOUR: &str = "NICPIN_TEST_IRQBALANCE";
const OTHERS_PID: &str = "NICPIN_TEST_IRQBALANCE_OF";

/// Whether this process is to be irqbalance; then it never returns.
pub fn is_wanted() -> bool {
    std::env::var(BEHAVIOUR).is_ok_and(|behaviour| {
        let (word, directory) = behaviour.split_once(' ').unwrap();
        serve(word, directory);
        true
    })
}

fn serve(word: &str, directory: &str) {
    let pid = std::env::var(OTHERS_PID).unwrap_or_else(|_| std::process::id().to_string());
    let name = format!("irqbalance{pid}.sock");
    let listener = if directory.is_empty() {
        UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap()
    } else {
        UnixListener::bind(Path::new(directory).join(&name)).unwrap()
    };
    let mut waiting = Vec::new();
    if word == "full" {
        // Connections that nobody accepts, until there is no room for another one.
        let address = listener.local_addr().unwrap();
        nix::sys::socket::listen(&listener, nix::sys::socket::Backlog::new(0).unwrap()).unwrap();
        waiting.push(UnixStream::connect_addr(&address).unwrap());
    }
    println!("ready");
    if word == "full" {
        loop {
            std::thread::park();
        }
    }
    let mut banned = String::new();
    for stream in listener.incoming() {
        let mut stream = stream.unwrap();
        let mut request = [0; 16_384];
        let length = stream.read(&mut request).unwrap();
        let request = String::from_utf8_lossy(&request[..length]).into_owned();
        match word {
            "good" => match request.strip_prefix("settings ban irqs ") {
                Some(irqs) => {
                    let irq = |irq| format!("IRQ {irq} LOAD 0 DIFF 0 CLASS 4 ");
                    banned = irqs
                        .split(' ')
                        .filter(|irq| *irq != "NONE")
                        .map(irq)
                        .collect();
                }
                None => _ = stream.write_all(format!("SLEEP 10 {banned}BANNED 00").as_bytes()),
            },
            "silent" => waiting.push(stream),
            "drips" => {
                // A byte before each timeout of a reader, which would wait forever.
                while stream.write_all(b"S").is_ok() {
                    std::thread::sleep(Duration::from_millis(100));
                }
            }
            "endless" => while stream.write_all(&[b'1'; 16_384]).is_ok() {},
            "closes" => {}
            "dies" => return,
            word => panic!("{word}"),
        }
    }
}

/// Killed at the end.
struct Balancer(Child);

impl Balancer {
    /// Starts an irqbalance below `top` or without a file, as root or nobody, under its own or another process id.
    fn start(top: Option<&Path>, word: &str, user: u32, of: Option<u32>) -> Self {
        let directory = top.map(|top| top.join("run/irqbalance"));
        if let Some(directory) = &directory {
            std::fs::create_dir_all(directory).unwrap();
        }
        let own = std::env::current_exe().unwrap();
        // nobody may have no access to the build directory.
        let copied = tempfile::tempdir().unwrap();
        let program = copied.path().join("irqbalance");
        assert!(
            Command::new("cp")
                .arg(own)
                .arg(&program)
                .status()
                .unwrap()
                .success()
        );
        assert!(
            Command::new("chmod")
                .arg("755")
                .args([copied.path(), &program])
                .status()
                .unwrap()
                .success()
        );
        let mut command = Command::new(program);
        let directory = directory
            .as_ref()
            .map_or("", |directory| directory.to_str().unwrap());
        command
            .env(BEHAVIOUR, format!("{word} {directory}"))
            .stdout(Stdio::piped())
            .uid(user);
        command.envs(of.map(|pid| (OTHERS_PID, pid.to_string())));
        let mut child = command.spawn().unwrap();
        let mut ready = [0; 6];
        child
            .stdout
            .as_mut()
            .unwrap()
            .read_exact(&mut ready)
            .unwrap();
        Self(child)
    }

    fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Balancer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn process(machine: &MachineTree, pid: u32, user: u32) {
    let top = machine.path("/");
    put(
        &top,
        &format!("/proc/{pid}/stat"),
        &format!("{pid} (irqbalance) S{}", " 1".repeat(49)),
    );
    put(
        &top,
        &format!("/proc/{pid}/status"),
        &format!("Uid:\t{user}\t{user}\t{user}\t{user}"),
    );
    put(
        &top,
        "/proc/1/stat",
        &format!("1 (init) S{}", " 1".repeat(49)),
    );
}

/// The machine is the root directory of nicpin; returns the time, too.
fn nicpin(machine: &MachineTree, args: &[&str]) -> (Run, Duration) {
    let script = "for d in usr lib lib64; do
            [ -e /$d ] || continue
            mkdir -p $T/$d && mount --bind /$d $T/$d || exit 99
        done
        : > $T/program && mount --bind $PROGRAM $T/program && exec chroot $T /program \"$@\"";
    let mut command = Command::new("unshare");
    command
        .args(["--mount", "sh", "-c", script, "sh"])
        .args(args);
    command
        .env("T", machine.path("/"))
        .env("PROGRAM", env!("CARGO_BIN_EXE_nicpin"));
    let start = Instant::now();
    (Run::of(&mut command), start.elapsed())
}

pub fn is_asked() {
    assert!(is_root());
    for with_file in [true, false] {
        let machine = MachineTree::of("two-node");
        let top = machine.path("/");
        let balancer = Balancer::start(with_file.then_some(top.as_path()), "good", 0, None);
        process(&machine, balancer.pid(), 0);
        let (run, _) = nicpin(&machine, &["apply"]);
        let text = run.words();
        assert!(
            run.code == 0 && text.contains("irqbalance 16 IRQs banned"),
            "{text}{}",
            run.stderr
        );
        let (run, _) = nicpin(&machine, &["restore"]);
        let text = run.words();
        assert!(
            run.code == 0 && text.contains("irqbalance 16 IRQs no longer banned"),
            "{text}{}",
            run.stderr
        );
    }
}

/// Apply writes its plan and says what is wrong, whatever irqbalance does, and takes at most 5 seconds more. The full
/// tier has the cases that take all of them.
pub fn costs_at_most_five_seconds() {
    let late = "did not answer within 5 s";
    let cases = [
        ("silent", late),
        ("drips", late),
        ("full", late),
        (
            "endless",
            "does not answer as irqbalance does (more than 1 MiB)",
        ),
        (
            "closes",
            "does not answer: it closed the connection; fix: run again",
        ),
        ("dies", "does not answer"),
    ];
    std::thread::scope(|scope| {
        for (word, expected) in cases {
            if expected == late && !is_full() {
                continue;
            }
            scope.spawn(move || {
                let machine = MachineTree::of("two-node");
                let balancer = Balancer::start(Some(machine.dir()), word, 0, None);
                process(&machine, balancer.pid(), 0);
                let (run, time) = nicpin(&machine, &["apply"]);
                let text = run.words();
                assert_eq!(run.code, 1, "{word}: {text}{}", run.stderr);
                assert!(
                    text.contains(&format!(
                        "refused irqbalance: process {} {expected}",
                        balancer.pid()
                    )),
                    "{word}: {text}"
                );
                for untrue in ["only root", "cannot read a request"] {
                    assert!(!text.contains(untrue), "{word}: {text}");
                }
                assert!(
                    text.contains("changed=24 ") && text.contains("refused=1 "),
                    "{word}: {text}"
                );
                assert!(time < Duration::from_secs(8), "{word}: {time:?}");
            });
        }
    });
}

/// Any user can run a program of this name, and bind any name that is not a file.
pub fn impostors_are_not_asked() {
    let machine = MachineTree::of("two-node");
    let impostor = Balancer::start(None, "good", 65534, None);
    process(&machine, impostor.pid(), 65534);
    let (run, _) = nicpin(&machine, &["apply"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(!run.stdout.contains("irqbalance"), "{}", run.stdout);
    // Another process, of nobody or of root, has the socket of root's irqbalance.
    for user in [65534, 0] {
        let machine = MachineTree::of("two-node");
        let real = std::process::id();
        process(&machine, real, 0);
        let impostor = Balancer::start(None, "good", user, Some(real));
        let (run, _) = nicpin(&machine, &["apply"]);
        let text = run.words();
        let expected = format!(
            "refused irqbalance: the socket of process {real} belongs to process {} of user {user}, which is not asked",
            impostor.pid()
        );
        // The kernel lists only root's sockets; a service leads to irqbalance as well.
        if user == 65534 {
            assert!(!text.contains("irqbalance"), "{text}");
            machine.put(
                "/sys/fs/cgroup/system.slice/irqbalance.service/cgroup.procs",
                &real.to_string(),
            );
            let (run, _) = nicpin(&machine, &["apply"]);
            assert!(
                run.code == 1 && run.words().contains(&expected),
                "{}",
                run.stdout
            );
        } else {
            assert!(run.code == 1 && text.contains(&expected), "{text}");
        }
    }
}
