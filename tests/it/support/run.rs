//! Running the binary, on shipped trees and on copies of them.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, Mutex, OnceLock};

use itertools::Itertools as _;
use nix::errno::Errno;
use serde_json::Value;
use snapbox::data::DataFormat;
use snapbox::{Data, IntoData, assert_data_eq};

use super::tree::{Entry, settle};
use crate::support::temporary;
use nicpin::machine::Machine;
use nicpin::plan::Plan;
use nicpin::read::ReadOptions;
use nicpin::root::Root;
use nicpin::root::faults::{FileAccess, FileAction, InjectedAnswer};

/// The shipped machines.
pub const FIXTURES: [&str; 7] = [
    "two-socket-mlx4",
    "x460",
    "tg3-and-ixgbe",
    "dl980",
    "two-node",
    "four-node",
    "wide",
];

/// Output and exit code of a run of the binary.
#[derive(Debug)]
pub struct Run {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

/// A path below `fixtures/`.
pub fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("fixtures")
        .join(name)
}

/// Compares with `fixtures/expected/NAME`, which `SNAPSHOTS=overwrite` writes anew.
pub fn expect(name: &str, got: String) {
    let expected = fixture("expected").join(name);
    assert_data_eq!(
        Data::text(got),
        Data::read_from(&expected, Some(DataFormat::Text)).raw()
    );
}

/// Compares a text of one line with an expected output in the test. The line is ended here, since `SNAPSHOTS=overwrite`
/// fails on a long literal without a line end, which rustfmt puts on a line of its own.
#[track_caller]
pub fn assert_line(text: impl AsRef<str>, expected: impl IntoData) {
    assert_data_eq!(format!("{}\n", text.as_ref()), expected);
}

/// Runs the binary.
pub fn nicpin(args: &[&str]) -> Run {
    Run::of(Command::new(env!("CARGO_BIN_EXE_nicpin")).args(args))
}

impl Run {
    pub fn of(command: &mut Command) -> Self {
        let run = Self::ended(command.output().unwrap());
        // What `nicpin watch` reads of its children is no document for users.
        if !command.get_args().any(|arg| arg == "--watched") {
            super::schema::meets(&run.stdout);
        }
        run
    }

    /// The document that it has printed.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The output with each run of blanks and line ends as one blank.
    pub fn words(&self) -> String {
        self.stdout.split_whitespace().join(" ")
    }

    /// What a process has printed, and its exit code.
    pub fn ended(output: Output) -> Self {
        Self {
            code: output
                .status
                .code()
                .unwrap_or_else(|| panic!("killed: {output:?}")),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

/// A machine as a tree that can be written to.
pub struct MachineTree {
    dir: tempfile::TempDir,
    /// Made at its first use.
    binary: OnceLock<(tempfile::TempDir, PathBuf)>,
}

impl MachineTree {
    pub fn of(name: &str) -> Self {
        let dir = temporary();
        super::tree::write_entries(dir.path(), &shipped(name));
        Self::at(dir)
    }

    fn at(dir: tempfile::TempDir) -> Self {
        let binary = OnceLock::new();
        Self { dir, binary }
    }

    /// A machine that is not shipped.
    pub fn build(machine: &super::machine::MachineSpec) -> Self {
        let dir = temporary();
        machine.write(dir.path());
        Self::at(dir)
    }

    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// What nicpin reads of the machine.
    pub fn host(&self) -> Machine {
        let root = Root::open(self.dir()).unwrap();
        nicpin::read::machine(&root, ReadOptions::default()).unwrap()
    }

    /// The plan without options.
    pub fn plan(&self, selectors: &[&str]) -> Plan {
        super::host::plan_with(&self.host(), &[], selectors)
    }

    /// Writes a file of one or more lines, and the directories above it. The last line is ended here.
    pub fn put(&self, path: &str, text: &str) {
        super::tree::put(self.dir(), path, text);
    }

    /// Makes a link, and the directories above it.
    pub fn link(&self, path: &str, target: &str) {
        super::tree::link(self.dir(), path, target);
    }

    /// Makes a directory, and those above it.
    pub fn make_dir(&self, path: &str) {
        super::tree::make_dir(self.dir(), path);
    }

    /// A copy of a machine that is shipped as an archive.
    pub fn unpacked(name: &str) -> Self {
        let dir = temporary();
        super::tree::unpack(&fixture(name), dir.path());
        Self::at(dir)
    }

    /// A machine with a policy file that keeps CPU 5 free.
    pub fn with_policy(mode: u32) -> Self {
        let machine = Self::of("two-node");
        machine.put("/etc/nicpin.toml", "[defaults]\nexclude = \"5\"");
        machine.set_mode("/etc", 0o755);
        machine.set_mode("/etc/nicpin.toml", mode);
        machine
    }

    /// The run fails with one line, and no file of the machine changes. The line, in which `ROOT` is this machine.
    #[must_use]
    pub fn fails(&self, args: &[&str], code: i32) -> String {
        let before = self.snapshot();
        let run = self.nicpin(args);
        assert_eq!(
            (run.code, run.stdout.as_str()),
            (code, ""),
            "{args:?}: {}",
            run.stderr
        );
        assert_eq!(run.stderr.lines().count(), 1, "{args:?}: {}", run.stderr);
        assert!(
            !run.stderr.contains("os error"),
            "said twice: {}",
            run.stderr
        );
        assert_eq!(self.snapshot(), before, "{args:?}");
        self.rooted(&run.stderr)
    }

    /// `apply` and `restore` fail with the same line.
    pub fn fails_to_apply_and_restore(&self) -> String {
        let [apply, restore] = ["apply", "restore"].map(|command| self.fails(&[command], 1));
        assert_eq!(apply, restore);
        apply
    }

    /// What was printed, with `ROOT` for the directory of this machine.
    pub fn rooted(&self, text: &str) -> String {
        text.replace(self.dir().to_str().unwrap(), "ROOT")
    }

    /// Runs the binary with this machine as its root.
    pub fn nicpin(&self, args: &[&str]) -> Run {
        let root = self.dir.path().to_str().unwrap();
        nicpin(&[args, &["--root", root]].concat())
    }

    /// What the binary prints on a terminal of this width.
    pub fn nicpin_on_terminal(&self, args: &[&str], columns: u16) -> String {
        let size = nix::pty::Winsize {
            ws_row: 50,
            ws_col: columns,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        let terminal = nix::pty::openpty(Some(&size), None).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_nicpin"));
        command
            .args(args)
            .arg("--root")
            .arg(self.dir.path())
            .env("NO_COLOR", "1");
        command
            .stdin(Stdio::null())
            .stdout(Stdio::from(terminal.slave))
            .stderr(Stdio::inherit());
        let mut child = command.spawn().unwrap();
        // The terminal ends when no process has it open.
        drop(command);
        let mut output = Vec::new();
        let end = std::fs::File::from(terminal.master).read_to_end(&mut output);
        assert!(
            end.is_ok() || end.is_err_and(|error| error.raw_os_error() == Some(nix::libc::EIO))
        );
        assert!(child.wait().unwrap().code().is_some());
        String::from_utf8(output).unwrap().replace("\r\n", "\n")
    }

    pub fn path(&self, path: &str) -> PathBuf {
        self.dir.path().join(path.trim_start_matches('/'))
    }

    pub fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.path(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    pub fn write(&self, path: &str, text: &str) {
        std::fs::write(self.path(path), text).unwrap_or_else(|error| panic!("{path}: {error}"));
    }

    /// As [`settle`].
    pub fn settle(&self) {
        settle(&self.path("/"));
    }

    /// Exchanges the CPUs of two IRQs.
    pub fn exchange(&self, irqs: [u32; 2]) {
        for file in ["smp_affinity", "effective_affinity_list"] {
            let [one, other] = irqs.map(|irq| format!("/proc/irq/{irq}/{file}"));
            let kept = self.read(&one);
            self.write(&one, &self.read(&other));
            self.write(&other, &kept);
        }
    }

    pub fn remove(&self, path: &str) {
        let path = self.path(path);
        let removed = if path.is_dir() {
            std::fs::remove_dir_all(&path)
        } else {
            std::fs::remove_file(&path)
        };
        removed.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }

    pub fn set_mode(&self, path: &str, mode: u32) {
        std::fs::set_permissions(self.path(path), std::fs::Permissions::from_mode(mode)).unwrap();
    }

    /// Makes the whole tree readable and writable for all users.
    pub fn open_to_all(&self) {
        self.set_mode("/", 0o777);
        for (path, entry) in self.snapshot() {
            for (end, _) in path.match_indices('/').skip(1) {
                self.set_mode(&path[..end], 0o777);
            }
            if matches!(entry, Entry::File(_)) {
                self.set_mode(&path, 0o666);
            }
        }
    }

    /// Adds an interface on a device of another bus than PCI, which has no list of IRQs.
    pub fn add(&self, device: &str, bus: &str, driver: &str, interface: &str, queues: u32) {
        let up = "../".repeat(device.matches('/').count());
        self.link(&format!("{device}/subsystem"), &format!("{up}bus/{bus}"));
        self.link(
            &format!("{device}/driver"),
            &format!("{up}bus/{bus}/drivers/{driver}"),
        );
        let path = format!("{device}/net/{interface}");
        let target = format!("../../{}", path.trim_start_matches("sys/"));
        self.link(&format!("sys/class/net/{interface}"), &target);
        self.link(
            &format!("{path}/device"),
            &format!("../../../{}", device.rsplit('/').next().unwrap()),
        );
        self.put(&format!("{path}/operstate"), "up");
        for queue in 0..queues {
            self.make_dir(&format!("{path}/queues/rx-{queue}"));
            self.make_dir(&format!("{path}/queues/tx-{queue}"));
        }
    }

    /// Adds rows to `/proc/interrupts` of handlers with these names, and their files.
    pub fn interrupts(&self, first: u32, chip: &str, actions: &[&str]) {
        let mut text = super::tree::read(self.dir(), "proc/interrupts");
        for (irq, action) in (first..).zip(actions) {
            let counts = "          0 ".repeat(8);
            text.push_str(&format!("\n{irq:>3}: {counts} {chip}  {action}"));
            self.put(&format!("proc/irq/{irq}/smp_affinity"), "ff");
        }
        self.put("proc/interrupts", &text);
    }

    /// Lists a PCI function on its bus, with its class (`0x02` begins those of network cards).
    pub fn list_function(&self, bridge: &str, address: &str, class: &str) {
        let device = format!("devices/{bridge}/{address}");
        self.put(&format!("sys/{device}/class"), class);
        let link = format!("sys/bus/pci/devices/{address}");
        self.link(&link, &format!("../../../{device}"));
    }

    /// Adds an interface without a device.
    pub fn add_virtual(&self, name: &str, files: &[(&str, &str)]) {
        let path = format!("sys/devices/virtual/net/{name}");
        self.link(
            &format!("sys/class/net/{name}"),
            &format!("../../devices/virtual/net/{name}"),
        );
        for (file, text) in [("type", "1"), ("ifindex", "9"), ("iflink", "9")]
            .iter()
            .chain(files)
        {
            self.put(&format!("{path}/{file}"), text);
        }
    }

    /// The error line of the program if it cannot plan a selector.
    pub fn refuses(&self, selector: &str) -> String {
        let run = self.nicpin(&["plan", selector]);
        assert_eq!(
            (run.code, run.stdout.as_str()),
            (1, ""),
            "{selector}: {}",
            run.stderr
        );
        assert_eq!(run.stderr.lines().count(), 1, "{}", run.stderr);
        // With --if-present the same is a note.
        let told = document(self, &["plan", "--if-present", selector]);
        let mut notes = told["notes"].as_array().unwrap().iter();
        assert!(notes.any(|note| note["selector"] == selector), "{told}");
        run.stderr
    }

    /// Runs the binary on this machine without any privilege: as `nobody` where the tests run as root.
    pub fn nicpin_as_nobody(&self, args: &[&str]) -> Run {
        let (_, binary) = self.binary.get_or_init(copied_binary);
        let mut command = Command::new(binary);
        command.args(args).arg("--root").arg(self.dir.path());
        if is_root() {
            command.uid(65534).gid(65534);
        }
        Run::of(&mut command)
    }

    /// The machine, while the kernel refuses some accesses with this errno.
    pub fn refusing(
        &self,
        errno: Errno,
        is_refused: impl Fn(FileAccess<'_>) -> bool + 'static,
    ) -> Root {
        let answer = move |access: FileAccess<'_>| {
            if is_refused(access) {
                InjectedAnswer::Errno(errno as i32)
            } else {
                InjectedAnswer::Done
            }
        };
        Root::open_with_faults(self.dir(), answer).unwrap()
    }

    /// The machine, while the kernel refuses to write some files.
    pub fn refusing_writes(
        &self,
        errno: Errno,
        is_refused: impl Fn(&str) -> bool + 'static,
    ) -> Root {
        self.refusing(errno, move |access| {
            access.action == FileAction::Write && is_refused(access.path)
        })
    }

    /// Permission bits of a file.
    pub fn mode(&self, path: &str) -> u32 {
        std::fs::metadata(self.path(path)).unwrap().mode() & 0o7777
    }

    /// Gives a vector of a device another IRQ, as a driver does that allocates its vectors anew.
    pub fn renumber(&self, device: &str, from: u32, to: u32) {
        for directory in ["/proc/irq", &format!("{device}/msi_irqs")] {
            let irq = |irq: u32| self.path(directory).join(irq.to_string());
            std::fs::rename(irq(from), irq(to)).unwrap();
        }
        let text = self.read("/proc/interrupts");
        let row = |irq: u32| format!("\n{irq:>4}:");
        self.write("/proc/interrupts", &text.replace(&row(from), &row(to)));
    }

    /// The text of every file and the target of every link, by path, without nicpin's state files.
    pub fn snapshot(&self) -> BTreeMap<String, Entry> {
        let mut entries = super::tree::entries(self.dir.path());
        entries.retain(|path, _| !path.starts_with("/run/"));
        entries
    }

    /// The same as texts, without the newline at the end of a file, which a write to a tree does not have.
    pub fn texts(&self) -> BTreeMap<String, String> {
        let text = |(path, entry)| (path, format!("{entry:?}").replace("\\n", ""));
        self.snapshot().into_iter().map(text).collect()
    }
}

/// The files of a shipped machine, which hundreds of tests copy, are read once.
fn shipped(name: &str) -> Arc<BTreeMap<String, Entry>> {
    static READ: Mutex<BTreeMap<String, Arc<BTreeMap<String, Entry>>>> =
        Mutex::new(BTreeMap::new());
    let mut read = READ.lock().unwrap();
    let entries = read.entry(name.to_owned());
    Arc::clone(entries.or_insert_with(|| Arc::new(super::tree::entries(&fixture(name)))))
}

/// A copy of the binary that all users may run, and its directory: the user nobody may have no access to the build
/// directory.
pub fn copied_binary() -> (tempfile::TempDir, PathBuf) {
    let dir = temporary();
    let binary = dir.path().join("nicpin");
    // Copied by another process: a child that another test starts meanwhile would inherit our descriptor, open for
    // writing, and the copy could not be run until that child ends (ETXTBSY).
    let copied = Command::new("cp")
        .arg(env!("CARGO_BIN_EXE_nicpin"))
        .arg(&binary)
        .status()
        .unwrap();
    assert!(copied.success(), "cp: {copied}");
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    (dir, binary)
}

/// Whether the tests run as root.
pub fn is_root() -> bool {
    std::fs::metadata("/proc/self").unwrap().uid() == 0
}

/// Runs it with exit code 0, and gives what it prints with each run of blanks as one.
pub fn good(machine: &MachineTree, args: &[&str]) -> String {
    let run = machine.nicpin(args);
    assert_eq!(
        (run.code, run.stderr.as_str()),
        (0, ""),
        "{args:?}: {}",
        run.stdout
    );
    run.words()
}

/// Runs it with `--json` and exit code 0, and gives its document.
pub fn document(machine: &MachineTree, args: &[&str]) -> Value {
    let run = machine.nicpin(&[args, &["--json"]].concat());
    assert_eq!(
        (run.code, run.stderr.as_str()),
        (0, ""),
        "{args:?}: {}",
        run.stdout
    );
    run.json()
}

/// The codes of the notes of an interface, or of a machine, in a document.
pub fn codes(of: &Value) -> Vec<&str> {
    let notes = of["notes"].as_array().unwrap().iter();
    notes.map(|note| note["code"].as_str().unwrap()).collect()
}

/// The note with this code, of an interface or of a machine in a document.
pub fn note<'a>(of: &'a Value, code: &str) -> &'a Value {
    let mut notes = of["notes"].as_array().unwrap().iter();
    let note = notes.find(|note| note["code"] == code);
    note.unwrap_or_else(|| panic!("no {code}: {of}"))
}

/// What a document says in words.
pub fn text<'a>(of: &'a Value, key: &str) -> &'a str {
    of[key].as_str().unwrap_or_else(|| panic!("no {key}: {of}"))
}

/// Runs the test of this name, its modules included, in a process of its own, for what a process shares: requests to
/// stop, the memory in use. Whether this is that process.
pub fn in_its_own_process(test: &str) -> bool {
    const ALONE: &str = "NICPIN_TEST_ALONE";
    if std::env::var_os(ALONE).is_some() {
        return true;
    }
    let run = Run::of(
        Command::new(std::env::current_exe().unwrap())
            .args(["--exact", test, "--nocapture"])
            .env(ALONE, "1"),
    );
    assert!(run.code == 0, "{}{}", run.stdout, run.stderr);
    assert!(run.stdout.contains("1 passed"), "no test is named {test}");
    print!("{}", run.stdout);
    false
}
