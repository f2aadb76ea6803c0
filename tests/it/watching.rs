//! `nicpin watch` on copies of a machine: what it restores, what it leaves alone, and what it tells systemd, the journal
//! and `nicpin status`. Events of the kernel are in `tests/netns` and `tests/vm`.

mod pauses;
mod policies;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nix::sys::signal::{SigSet, Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use snapbox::{assert_data_eq, str};

use crate::support::kernel::default_signals;
use crate::support::run::{MachineTree, assert_line, document, good, text};
use crate::support::wait_until;

const IRQ: &str = "/proc/irq/36/smp_affinity";
const OTHER_IRQ: &str = "/proc/irq/38/smp_affinity";

/// A watcher of a copied machine, which has the sockets of journald and of systemd.
struct Watching<'a> {
    machine: &'a MachineTree,
    process: Child,
    journal: UnixDatagram,
    manager: UnixDatagram,
    /// The number of runs up to the last that a test has waited for.
    seen: Cell<usize>,
}

impl<'a> Watching<'a> {
    fn start(machine: &'a MachineTree, args: &[&str]) -> Self {
        Self::start_with(machine, machine.dir(), args, &[])
    }

    fn start_with(
        machine: &'a MachineTree,
        root: &Path,
        args: &[&str],
        environment: &[(&str, &str)],
    ) -> Self {
        let program = Command::new(env!("CARGO_BIN_EXE_nicpin"));
        Self::start_by(program, machine, root, args, environment)
    }

    /// `program` takes the arguments of nicpin.
    fn start_by(
        mut program: Command,
        machine: &'a MachineTree,
        root: &Path,
        args: &[&str],
        environment: &[(&str, &str)],
    ) -> Self {
        default_signals();
        std::fs::create_dir_all(machine.path("/run/systemd/journal")).unwrap();
        let bind = |path: &str| {
            let _ = std::fs::remove_file(machine.path(path));
            let socket = UnixDatagram::bind(machine.path(path)).unwrap();
            socket
                .set_read_timeout(Some(Duration::from_secs(60)))
                .unwrap();
            socket
        };
        let (journal, manager) = (
            bind("/run/systemd/journal/socket"),
            bind("/run/systemd/notify"),
        );
        // As if this were the journal's stream.
        let stream = OpenOptions::new().write(true).open("/dev/null").unwrap();
        let stream_id = stream.metadata().unwrap();
        let stream_id = format!("{}:{}", stream_id.dev(), stream_id.ino());
        let process = program
            .args(["watch", "--root"])
            .arg(root)
            .args(args)
            .current_dir(machine.path("/"))
            .env("JOURNAL_STREAM", stream_id)
            .env("NOTIFY_SOCKET", machine.path("/run/systemd/notify"))
            .envs(environment.iter().copied())
            .stdout(Stdio::null())
            .stderr(stream)
            .spawn();
        Self {
            machine,
            process: process.unwrap(),
            journal,
            manager,
            seen: Cell::new(0),
        }
    }

    fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.process.id().try_into().unwrap()), signal).unwrap();
    }

    /// Waits until systemd is sent something with this text.
    fn told(&self, text: &str) -> String {
        received(&self.manager, text)
    }

    /// Waits until the journal is sent something with this text.
    fn logged(&self, text: &str) -> String {
        received(&self.journal, text)
    }

    /// Its state, which it saves before it tells systemd.
    fn state(&self) -> Option<Value> {
        let path = self.machine.path("/run/nicpin/watch.json");
        let state: Value = serde_json::from_str(&std::fs::read_to_string(path).ok()?).unwrap();
        // Not that of one that was killed.
        (state["pid"] == self.process.id()).then_some(state)
    }

    /// Waits until it has ended a run whose event begins so, later than the one that was waited for before.
    fn ran(&self, event: &str) -> Value {
        loop {
            if let Some(run) = self.new_run(event) {
                return run;
            }
            self.told("READY=1");
        }
    }

    fn new_run(&self, event: &str) -> Option<Value> {
        let state = self.state()?;
        let count = usize::try_from(state["count"].as_u64()?).unwrap();
        let runs = state["runs"].as_array()?;
        let mut new = (0..runs.len().min(count - self.seen.get())).rev();
        let at = new.find(|&at| text(&runs[at], "event").starts_with(event))?;
        self.seen.set(count - at);
        Some(runs[at].clone())
    }

    /// Waits until it writes nothing for this reason.
    fn waits_for(&self, why: &str) {
        while self.state().is_none_or(|state| state["waits_for"] != why) {
            self.told("READY=1");
        }
    }

    /// Writes an affinity, and waits until a run for it has ended.
    fn disturb(&self, file: &str) {
        self.machine.write(file, "ff\n");
        let irq = file.split('/').nth(3).unwrap();
        // To truncate the file and to write it are two events.
        let run = self.ran(&format!("affinity of IRQ {irq}"));
        assert_eq!(run["changed"], 1, "{run}");
    }

    fn end(mut self) {
        self.signal(Signal::SIGTERM);
        assert_eq!(self.process.wait().unwrap().code(), Some(0));
    }
}

impl Drop for Watching<'_> {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn received(socket: &UnixDatagram, text: &str) -> String {
    let mut seen = Vec::new();
    loop {
        let mut bytes = [0; 8192];
        let length = match socket.recv(&mut bytes) {
            // A signal to this process, such as the end of another test's child.
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            answer => answer.unwrap_or_else(|error| panic!("no {text:?}: {error}; {seen:#?}")),
        };
        let message = String::from_utf8_lossy(&bytes[..length]).into_owned();
        if message.contains(text) {
            return message;
        }
        seen.push(message);
    }
}

/// What a message to the journal says, with `ROOT` for the directory of the machine.
fn message(machine: &MachineTree, entry: &str) -> String {
    let lines = entry.lines().find_map(|line| line.strip_prefix("MESSAGE="));
    machine.rooted(lines.unwrap_or_else(|| panic!("{entry}")))
}

/// `watcher` in the status.
fn watcher(machine: &MachineTree) -> Value {
    document(machine, &["status"])["watcher"].take()
}

/// The lines of a screen that are about the watcher.
fn about_watch(screen: &str) -> String {
    let lines = screen.lines().filter(|line| line.contains("watch"));
    lines.map(|line| line.to_owned() + "\n").collect()
}

fn affinity(machine: &MachineTree, file: &str) -> String {
    machine.read(file).trim().to_owned()
}

/// The text and the time of each file that a command might write.
fn texts_and_times(machine: &MachineTree) -> BTreeMap<String, (String, i64, i64)> {
    let of = |path: String| {
        let stat = std::fs::symlink_metadata(machine.path(&path)).unwrap();
        let text = std::fs::read_to_string(machine.path(&path)).unwrap_or_default();
        (path, (text, stat.mtime(), stat.mtime_nsec()))
    };
    machine.snapshot().into_keys().map(of).collect()
}

#[test]
fn what_another_program_writes_again_and_again_is_restored_later_each_time() {
    let machine = MachineTree::of("two-node");
    let watching = Watching::start(&machine, &["--guard"]);
    assert_data_eq!(
        watching.told("READY=1"),
        str![[r"
READY=1
STATUS=starting
"]]
    );
    assert_data_eq!(
        watching.told("last run"),
        str![[r"
READY=1
STATUS=2 interfaces, as planned; last run [..] (start): 24 settings changed; next check [..]
"]]
    );
    watching.ran("start");
    assert_eq!(machine.nicpin(&["check"]).code, 0);
    for _ in 0..3 {
        watching.disturb(IRQ);
        assert_eq!(affinity(&machine, IRQ), "02");
    }
    assert_data_eq!(
        watching.logged("NICPIN_SETTING="),
        str![[r"
MESSAGE=/proc/irq/36/smp_affinity of nic0 was restored 3 times: another program writes it (no known program that writes it runs); from now on it is restored after 1 min, then after twice as long each time, 60 min at most, and at once after an event about nic0
PRIORITY=4
SYSLOG_IDENTIFIER=nicpin
NICPIN_SETTING=0000:21:00.0 port 0 vector rx 0
NICPIN_PATH=/proc/irq/36/smp_affinity
NICPIN_INTERFACES=nic0
NICPIN_WRITERS=

"]]
    );
    // It wins, and nobody else is concerned.
    machine.write(IRQ, "ff\n");
    watching.disturb(OTHER_IRQ);
    assert_eq!(
        (
            affinity(&machine, IRQ).as_str(),
            affinity(&machine, OTHER_IRQ).as_str()
        ),
        ("ff", "04")
    );
    let found = watcher(&machine);
    assert_eq!(
        ["pid", "count", "contended"].map(|key| &found[key]),
        [&json!(watching.process.id()), &json!(5), &json!(1)]
    );
    let runs = found["runs"].as_array().unwrap().iter();
    let changed: Vec<_> = runs.map(|run| run["changed"].clone()).collect();
    assert_eq!(changed, [1, 1, 1, 1, 24]);
    let left = &found["left_alone"][0];
    assert_eq!(
        ["interface", "path", "writers"].map(|key| &left[key]),
        [&json!("nic0"), &json!(IRQ), &json!([])]
    );
    let status = machine.nicpin(&["status"]).stdout;
    let (_, paragraph) = status.split_once("watcher").unwrap();
    assert_data_eq!(
        paragraph,
        str![[r"
     runs since [..] (process [..]), 5 runs
            [..]  affinity of IRQ 38  1 setting changed
            [..]  affinity of IRQ 36  1 setting changed
            [..]  affinity of IRQ 36  1 setting changed
            [..]  affinity of IRQ 36  1 setting changed
            [..]  start               24 settings changed
            1 setting not restored until [..] at the latest, or an event about nic0,
            because another program writes them again and again: /proc/irq/36/smp_affinity

"]]
    );
    // The reason in check is that of before: what was left unchanged was not planned anew.
    let check = machine.nicpin(&["check", "--json"]);
    let differs = check.json()["differs"].take();
    assert_eq!(
        (check.code, ["path", "reason"].map(|key| &differs[0][key])),
        (2, [&json!(IRQ), &json!("moved-by-other")])
    );
    // What is asked for begins anew.
    watching.signal(Signal::SIGUSR1);
    assert_eq!(watching.ran("SIGUSR1")["changed"], 1);
    assert_eq!(affinity(&machine, IRQ), "02");
    let begun = watcher(&machine);
    assert_eq!(
        (&begun["left_alone"], &begun["contended"]),
        (&json!([]), &json!(1))
    );
    watching.disturb(IRQ);
    assert_eq!(affinity(&machine, IRQ), "02");
    watching.end();
}

/// Its IRQ is another one since: nobody has written that.
#[test]
fn a_new_irq_behind_a_queue_is_restored_at_once() {
    let machine = MachineTree::of("two-node");
    good(&machine, &["apply"]);
    let leave = |interface: &str, path: &str, value: &str| {
        machine.write(IRQ, "ff\n");
        let name = "0000:21:00.0 port 0 vector rx 0";
        let setting = json!({ "name": name, "interface": interface, "path": path, "value": value });
        let mut run = Command::new(env!("CARGO_BIN_EXE_nicpin"));
        run.args([
            "watch-run",
            "--leave",
            &setting.to_string(),
            "--",
            "watch",
            "--root",
        ]);
        let run = run.arg(machine.path("/")).output().unwrap();
        assert!(run.status.success(), "{run:?}");
        affinity(&machine, IRQ)
    };
    assert_eq!(leave("nic0", IRQ, "02"), "ff");
    // As of before the driver has made it anew, of another plan, and of before it was renamed.
    assert_eq!(leave("nic0", "/proc/irq/35/smp_affinity", "02"), "02");
    assert_eq!(leave("nic0", IRQ, "04"), "02");
    assert_eq!(leave("nic7", IRQ, "02"), "02");
}

#[test]
fn a_watcher_that_ends_restores_nothing_and_leaves_no_trace() {
    let machine = MachineTree::of("two-node");
    let watching = Watching::start(&machine, &[]);
    watching.ran("start");
    let second = machine.fails(&["watch"], 1);
    let second = second.replace(&watching.process.id().to_string(), "PID");
    assert_data_eq!(
        second,
        str![[r"
nicpin: another nicpin watch (pid PID) is already running

"]]
    );
    watching.signal(Signal::SIGTERM);
    watching.told("STOPPING=1");
    watching.end();
    assert_eq!(machine.nicpin(&["check"]).code, 0);
    assert_eq!(watcher(&machine), Value::Null);
    assert!(!machine.path("/run/nicpin/watch.json").exists());
    // One that is killed leaves its state, which does not count, and no lock.
    let killed = Watching::start(&machine, &[]);
    killed.ran("start");
    drop(killed);
    assert!(machine.path("/run/nicpin/watch.json").exists());
    assert_eq!(watcher(&machine), Value::Null);
    Watching::start(&machine, &[]).ran("start");
    assert_eq!(machine.nicpin(&["restore"]).code, 0);
}

/// Supervisors and shells hand on an ignored or blocked SIGCHLD; without it the first run would never be seen to end.
#[test]
fn a_watcher_sees_its_runs_end_whatever_its_caller_does_with_sigchld() {
    let ignoring = || {
        let mut shell = Command::new("sh");
        let script = r#"trap '' CHLD; exec "$0" "$@""#;
        shell.args(["-c", script, env!("CARGO_BIN_EXE_nicpin")]);
        shell
    };
    let plain = || Command::new(env!("CARGO_BIN_EXE_nicpin"));
    for (program, is_blocked) in [(ignoring(), false), (plain(), true), (ignoring(), true)] {
        let machine = MachineTree::of("two-node");
        let root = machine.path("/");
        // What this thread blocks, the programs that it starts block.
        let children = SigSet::from(Signal::SIGCHLD);
        if is_blocked {
            children.thread_block().unwrap();
        }
        let watching = Watching::start_by(program, &machine, &root, &["--guard"], &[]);
        children.thread_unblock().unwrap();
        watching.ran("start");
        watching.disturb(IRQ);
        watching.end();
    }
}

#[test]
fn an_observer_writes_nothing() {
    let machine = MachineTree::of("two-node");
    let before = texts_and_times(&machine);
    let watching = Watching::start(&machine, &["--observe"]);
    assert_eq!(watching.ran("start")["changed"], 24);
    let said = watching.logged("NICPIN_EVENT=start\n");
    assert!(said.contains("NICPIN_CHANGED=24\n"), "{said}");
    assert_data_eq!(
        message(&machine, &said),
        str!["start: 24 settings not as planned; nicpin apply would change them"]
    );
    watching.signal(Signal::SIGUSR1);
    assert_eq!(watching.ran("SIGUSR1")["changed"], 24);
    assert!(texts_and_times(&machine) == before);
    assert!(!machine.path("/run/nicpin/state.json").exists());
    let found = watcher(&machine);
    assert_eq!(
        (&found["observe"], &found["runs"][0]["changed"]),
        (&json!(true), &json!(24))
    );
    assert_data_eq!(
        about_watch(&machine.nicpin(&["status"]).stdout),
        str![[r"
watcher     observes since [..] (process [..]), 2 runs

"]]
    );
    watching.end();
    assert_eq!(machine.nicpin(&["watch", "--observe", "--guard"]).code, 64);
}

#[test]
fn what_the_machine_does_not_have_ends_the_watcher() {
    let machine = MachineTree::of("two-node");
    assert_data_eq!(
        machine.fails(&["watch", "--scope", "node:9"], 64),
        str![[r"
nicpin: --scope: node 9 of the scope does not exist or has no usable CPU

"]]
    );
    assert!(!machine.path("/run/nicpin/watch.json").exists());
}

/// What was not set is not found changed, again and again.
#[test]
fn a_vector_that_cannot_be_moved_is_not_guarded() {
    let machine = MachineTree::of("two-node");
    // nicpin writes to no file that has another name.
    std::fs::hard_link(machine.path(IRQ), machine.path("/other")).unwrap();
    let watching = Watching::start(&machine, &["--guard"]);
    watching.ran("start");
    assert_eq!(watching.ran("")["event"], "retry");
    watching.end();
}

#[test]
fn runs_take_the_selectors_and_options_of_the_watcher() {
    let machine = MachineTree::of("two-node");
    let before = machine.read("/proc/irq/27/smp_affinity");
    let options = ["--scope", "remote", "--no-avoid-cpu0", "--xps=off", "nic0"];
    let watching = Watching::start(&machine, &options);
    watching.ran("start");
    assert_eq!(machine.nicpin(&[&["check"][..], &options].concat()).code, 0);
    assert_eq!(machine.nicpin(&["check", "nic0"]).code, 2);
    assert_eq!(machine.read("/proc/irq/27/smp_affinity"), before);
    watching.end();
    // What is mistyped is said; with --if-present it may come.
    let watching = Watching::start(&machine, &["--", "nic9"]);
    let failed = watching.logged("nic9");
    assert_data_eq!(
        message(&machine, &failed),
        str!["start: the run failed: no interface matches `nic9`; there is nic0, nic1"]
    );
    watching.end();
    let watching = Watching::start(&machine, &["--if-present", "--", "nic9"]);
    watching.ran("start");
    assert_eq!(watcher(&machine)["runs"][0].get("error"), None);
    watching.end();
}

/// `check` beside a watcher that has just started, and here waits, plans as the watcher will.
#[test]
fn cpus_that_a_cgroup_has_alone_are_left_out_before_the_first_run() {
    let machine = MachineTree::of("two-node");
    good(&machine, &["apply"]);
    let cgroup = "/sys/fs/cgroup/guest";
    std::fs::create_dir_all(machine.path(cgroup)).unwrap();
    machine.write(&format!("{cgroup}/cpuset.cpus.effective"), "1\n");
    machine.write(&format!("{cgroup}/cpuset.cpus.partition"), "root\n");
    assert_eq!(machine.nicpin(&["check"]).code, 0);
    let paused = "{\"schema\": \"nicpin.watch-paused/1\"}\n";
    machine.write("/run/nicpin/watch-paused.json", paused);
    let watching = Watching::start(&machine, &[]);
    watching.told("READY=1");
    assert_eq!(machine.nicpin(&["check"]).code, 2);
    watching.end();
}

/// CRI-O writes the list for each pod that has CPUs of its own.
#[test]
fn the_list_of_cpus_for_irqs_is_followed_while_it_changes() {
    let machine = MachineTree::of("two-node");
    let list = "/proc/irq/default_smp_affinity";
    // In one write, as the kernel changes it.
    let set = |mask: &str| std::fs::write(machine.path(list), format!("{mask}\n")).unwrap();
    let write = |mask: &str| {
        let file = OpenOptions::new().write(true).open(machine.path(list));
        file.unwrap().write_all(mask.as_bytes()).unwrap();
    };
    set("ff");
    let watching = Watching::start(&machine, &[]);
    watching.ran("start");
    let affinities = || (affinity(&machine, IRQ), affinity(&machine, OTHER_IRQ));
    assert_eq!(affinities(), ("02".to_owned(), "04".to_owned()));
    write("fd");
    watching.ran("CPUs for interrupts");
    assert_eq!(affinities(), ("04".to_owned(), "08".to_owned()));
    assert_eq!(machine.nicpin(&["check"]).code, 0);
    write("ff");
    watching.ran("CPUs for interrupts");
    assert_eq!(affinities(), ("02".to_owned(), "04".to_owned()));
    watching.end();
}

/// Partitions of cgroup v2 that come, change and go; the policy file has the last word.
#[test]
fn cpus_that_a_cgroup_has_alone_are_left_out_while_it_has_them() {
    let machine = MachineTree::of("two-node");
    let cgroups = "/sys/fs/cgroup";
    // In one write, as the kernel changes them: an empty file would be a state of its own.
    let make = |name: &str, partition: &str, cpus: &str| {
        std::fs::create_dir_all(machine.path(name)).unwrap();
        for (file, text) in [
            ("cpuset.cpus.effective", cpus),
            ("cpuset.cpus.partition", partition),
        ] {
            let path = machine.path(&format!("{name}/{file}"));
            let mut file = OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(false)
                .open(path)
                .unwrap();
            file.write_all(format!("{text:<40}\n").as_bytes()).unwrap();
        }
    };
    let slice = &format!("{cgroups}/system.slice");
    make(slice, "member", "0-7");
    machine.write(&format!("{cgroups}/cgroup.subtree_control"), "cpu\n");
    let watching = Watching::start(&machine, &[]);
    watching.ran("start");
    let affinities = || (affinity(&machine, IRQ), affinity(&machine, OTHER_IRQ));
    let before = affinities();
    assert_eq!(before, ("02".to_owned(), "04".to_owned()));

    // A cgroup that exists becomes a partition, gets other CPUs, and is none any more.
    make(slice, "root", "1");
    watching.ran("exclusive CPUs 1");
    assert_ne!(affinity(&machine, IRQ), "02");
    assert_eq!(
        (
            machine.nicpin(&["check"]).code,
            machine.nicpin(&["check", "--exclude", "1"]).code
        ),
        (0, 0)
    );
    let found = watcher(&machine);
    assert_eq!(found["avoids_exclusive"], true);
    assert_data_eq!(text(&found["runs"][0], "event"), str!["exclusive CPUs 1"]);
    // What is told to fix it plans as the watcher does.
    let planned = affinity(&machine, IRQ);
    machine.write(IRQ, "ff\n");
    let status = document(&machine, &["status", "nic0"]);
    let fix = "nicpin apply --avoid-exclusive nic0";
    assert_eq!(status["interfaces"][0]["fix"], fix);
    let check = machine.nicpin(&["check"]).stdout;
    assert_line(
        check.lines().next().unwrap(),
        str![[r"
1 of 2 interfaces differs from the plan (worst: drifted). Fix: nicpin apply --avoid-exclusive

"]],
    );
    machine.write(IRQ, &planned);
    let plan = document(&machine, &["plan"]);
    let mut interfaces = plan["interfaces"].as_array().unwrap().iter();
    assert!(interfaces.any(|of| of["candidates"] == "0-3"), "{plan}");
    make(slice, "isolated", "2");
    watching.ran("exclusive CPUs 2");
    assert_eq!(affinity(&machine, IRQ), "02");
    assert_ne!(affinity(&machine, OTHER_IRQ), "04");
    // It ends and begins again before anybody looks: the kernel has set affinities of threads.
    machine.write(IRQ, "ff\n");
    make(slice, "isolated", "2");
    watching.ran("exclusive CPUs 2");
    assert_eq!(affinity(&machine, IRQ), "02");
    make(slice, "root invalid (no CPU)", "0-7");
    watching.ran("exclusive CPUs none");
    assert_eq!(affinities(), before);

    // A new one, which then is removed.
    make("/guest", "isolated", "1-2");
    let guest = machine.path(&format!("{cgroups}/guest"));
    std::fs::rename(machine.path("/guest"), &guest).unwrap();
    watching.ran("exclusive CPUs 1-2");
    assert_eq!(machine.nicpin(&["check"]).code, 0);
    assert_ne!(affinities(), before);
    std::fs::rename(&guest, machine.path("/guest")).unwrap();
    watching.ran("exclusive CPUs none");
    assert_eq!(affinities(), before);

    // One that gets a cpuset later, which makes its files without an event.
    std::fs::create_dir(&guest).unwrap();
    make(&format!("{cgroups}/guest"), "root", "2");
    machine.write(&format!("{cgroups}/cgroup.subtree_control"), "cpu cpuset\n");
    watching.ran("exclusive CPUs 2");
    machine.remove(&format!("{cgroups}/guest"));
    watching.ran("exclusive CPUs none");
    watching.end();

    // Plans that are asked for by a policy that says otherwise.
    std::fs::create_dir_all(machine.path("/etc")).unwrap();
    machine.write("/etc/nicpin.toml", "[defaults]\navoid-exclusive = false\n");
    let watching = Watching::start(&machine, &[]);
    watching.ran("start");
    std::fs::rename(machine.path("/guest"), &guest).unwrap();
    assert_eq!(watching.ran("exclusive CPUs 1-2")["changed"], 0);
    assert_eq!(affinities(), before);
    watching.end();
}

#[test]
fn irqbalance_that_starts_is_an_event() {
    let machine = MachineTree::of("two-node");
    let watching = Watching::start(&machine, &[]);
    watching.ran("start");
    for _ in 0..2 {
        // systemd makes the directory, and nobody can be asked yet.
        std::fs::create_dir(machine.path("/run/irqbalance")).unwrap();
        watching.signal(Signal::SIGUSR1);
        watching.ran("SIGUSR1");
        machine.write("/run/irqbalance/irqbalance812.sock", "");
        watching.ran("irqbalance started");
        machine.remove("/run/irqbalance");
    }
    watching.end();
}

/// The file is complete at any moment; `tests/monitoring.sh` has a reader.
#[test]
fn metrics_are_written_after_each_run() {
    let machine = MachineTree::of("two-node");
    let file = machine.path("/metrics.prom");
    let watching = Watching::start(&machine, &["--guard", "--metrics", file.to_str().unwrap()]);
    let sample = |name: &str| {
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        let line = text
            .lines()
            .find(|line| line.split(' ').next() == Some(name));
        line.and_then(|line| line.rsplit(' ').next())
            .map(str::to_owned)
    };
    let waits = |name: &str, value: &str| {
        while sample(name).as_deref() != Some(value) {
            std::thread::yield_now();
        }
    };
    waits("nicpin_as_planned", "1");
    waits("nicpin_restores_total", "0");
    for restores in ["1", "2", "3"] {
        watching.disturb(IRQ);
        waits("nicpin_restores_total", restores);
    }
    assert_eq!(
        sample("nicpin_interface_contended_vectors{device=\"nic0\"}").unwrap(),
        "1"
    );
    assert_eq!(
        sample("nicpin_interface_contended_vectors{device=\"nic1\"}").unwrap(),
        "0"
    );
    assert_eq!(std::fs::metadata(&file).unwrap().mode() & 0o777, 0o644);
    watching.end();
}

#[test]
fn systemd_learns_that_it_is_alive() {
    let machine = MachineTree::of("two-node");
    let watching =
        Watching::start_with(&machine, machine.dir(), &[], &[("WATCHDOG_USEC", "200000")]);
    watching.ran("start");
    for _ in 0..3 {
        watching.told("WATCHDOG=1");
    }
    watching.end();
}

/// A shell below a user's service manager has the variable, too, and may redirect standard error.
#[test]
fn messages_go_to_standard_error_that_is_not_the_journals_stream() {
    let machine = MachineTree::of("two-node");
    let mut watching = Watching::start_by(
        {
            let mut shell = Command::new("sh");
            shell.args([
                "-c",
                r#"exec "$0" "$@" 2>said"#,
                env!("CARGO_BIN_EXE_nicpin"),
            ]);
            shell
        },
        &machine,
        machine.dir(),
        &[],
        &[],
    );
    let said = || std::fs::read_to_string(machine.path("/said")).unwrap_or_default();
    wait_until("said", || said().contains("start: "));
    watching.journal.set_nonblocking(true).unwrap();
    assert!(watching.journal.recv(&mut [0]).is_err());
    watching.process.kill().unwrap();
}

/// Nobody else maps this program's file, and most of the watcher's memory would be its pages.
#[test]
fn a_watcher_that_sleeps_has_little_of_its_program_mapped() {
    let machine = MachineTree::of("two-node");
    let watching = Watching::start(&machine, &[]);
    watching.ran("start");
    let smaps = format!("/proc/{}/smaps", watching.process.id());
    let code = || {
        let text = std::fs::read_to_string(&smaps).unwrap();
        let of_program = text.split_once(" r-xp ").unwrap().1;
        assert!(
            of_program.lines().next().unwrap().ends_with("nicpin"),
            "{of_program}"
        );
        let resident = of_program
            .lines()
            .find_map(|line| line.strip_prefix("Rss:"))
            .unwrap();
        resident
            .trim()
            .trim_end_matches(" kB")
            .parse::<u32>()
            .unwrap()
    };
    let end = std::time::Instant::now() + Duration::from_secs(60);
    while code() > 1024 {
        assert!(std::time::Instant::now() < end, "{} kB", code());
        std::thread::yield_now();
    }
    watching.end();
}

/// A unit that starts, and gets other CPUs.
#[test]
fn interrupts_follow_a_unit() {
    let machine = MachineTree::of("x460");
    std::fs::create_dir_all(machine.path("/etc")).unwrap();
    machine.write("/etc/nicpin.toml", "[defaults]\nnear = \"unit:web\"\n");
    std::fs::create_dir_all(machine.path("/sys/fs/cgroup/system.slice")).unwrap();
    let watching = Watching::start(&machine, &[]);
    watching.ran("start");
    let affinity = || std::fs::read_to_string(machine.path("/proc/irq/177/smp_affinity")).unwrap();
    let before = affinity();
    // A process that has started before its cgroup is seen: the kernel makes both in this order.
    let process = |cpus: &str| {
        std::fs::create_dir_all(machine.path("/proc/700/task/700")).unwrap();
        machine.write(
            "/proc/700/task/700/status",
            &format!("Cpus_allowed_list:\t{cpus}\n"),
        );
    };
    let new = machine.path("/sys/fs/cgroup/new");
    process("8");
    std::fs::create_dir_all(new.join("web.service")).unwrap();
    std::fs::write(new.join("web.service/cgroup.procs"), "700\n").unwrap();
    std::fs::write(new.join("web.service/cpuset.cpus"), "8\n").unwrap();
    std::fs::rename(
        new.join("web.service"),
        machine.path("/sys/fs/cgroup/system.slice/web.service"),
    )
    .unwrap();
    watching.ran("CPUs of unit:web.service");
    assert_ne!(affinity(), before);
    // AllowedCPUs= at run time.
    let near = affinity();
    process("0");
    machine.write("/sys/fs/cgroup/system.slice/web.service/cpuset.cpus", "0\n");
    watching.ran("CPUs of unit:web.service");
    assert_ne!(affinity(), near);
    assert_eq!(machine.nicpin(&["check"]).code, 0);
}
