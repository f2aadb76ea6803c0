//! How long nicpin takes, compared with a floor: the time to read the same files without using them.
//!
//! `cargo bench` measures machines of 16, 128, 1,024 and 4,096 CPUs, each with 4,000 processes. Each figure is the best
//! of several turns, and the turns of a thing and of its floor alternate, so that both meet the same neighbours. Trees
//! stand in memory (`/dev/shm`, or the directory in `NICPIN_BENCH_DIR`).
//!
//! The floor of reading is a bare loop over the files and directories that nicpin reads. What runs as a process has a
//! process that does nothing else for its floor, since the start of a process and caches that another one has left
//! cold cost either of them the same; how that compares with the bare loop in a process that is warm, too, is said
//! beside it.
//!
//! `cargo bench -- tree CPUS NODES CARDS QUEUES DIR` only writes the tree of such a machine, and `cargo bench -- count
//! read|parse|plan TURNS` does nothing but one of these, for a counter of instructions (`tests/instructions.sh`).

// A program for developers: it prints, stops at the first thing that goes wrong, and reads files as the floor does.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    clippy::cast_precision_loss,
    missing_docs
)]

mod machines;
#[path = "../../tests/it/support/mod.rs"]
mod support;
mod timing;

use std::fs::File;
use std::hint::black_box;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

use machines::Size;
use timing::{Against, Program, against, growth};

use nicpin::machine::{Machine, Selection};
use nicpin::plan::Plan;
use nicpin::policy::Policy;
use nicpin::read::{Queues, ReadOptions, interrupts};
use nicpin::root::Root;

const NICPIN: &str = env!("CARGO_BIN_EXE_nicpin");
/// CPUs, nodes, cards, queues of each card.
const SIZES: [(u32, u32, u32, u32); 4] = [
    (16, 1, 1, 16),
    (128, 2, 4, 32),
    (1024, 8, 16, 128),
    (4096, 32, 32, 128),
];
/// The machine whose instructions are counted.
const COUNTED: (u32, u32, u32, u32) = (512, 4, 8, 64);
/// The machine on which `check -q` is to be quick.
const CHECKED: (u32, u32, u32, u32) = (256, 4, 4, 64);

fn main() {
    let args: Vec<String> = std::env::args()
        .skip(1)
        .filter(|arg| arg != "--bench")
        .collect();
    let number = |text: &str| {
        text.parse()
            .unwrap_or_else(|_| panic!("{text} is no number"))
    };
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["tree", cpus, nodes, cards, queues, dir] => {
            let size = (number(cpus), number(nodes), number(cards), number(queues));
            Size::new(size, true).write(Path::new(dir));
        }
        ["bare", list] => Bare::listed_in(Path::new(list)).read(),
        ["count", what, turns] => count(what, number(turns)),
        ["memory", root] => {
            assert_eq!(
                Program::new(NICPIN, Path::new(root), &["plan"]).run(),
                Some(0)
            );
            println!("{}", timing::most_memory_of_children());
        }
        _ => measure(),
    }
}

/// What `nicpin plan` reads.
fn options() -> ReadOptions<'static> {
    ReadOptions {
        queues: Queues::WithoutFlowCounts,
        ..ReadOptions::default()
    }
}

/// Reads a machine, parses its `/proc/interrupts`, or plans it, `turns` times.
fn count(what: &str, turns: u32) {
    let tree = Tree::new(Size::new(COUNTED, true));
    let root = Root::open(tree.dir.path()).unwrap();
    let text = std::fs::read_to_string(tree.dir.path().join("proc/interrupts")).unwrap();
    for _ in 0..turns {
        match what {
            "read" => drop(black_box(nicpin::read::machine(&root, options()).unwrap())),
            "parse" => drop(black_box(interrupts::parse(&mut text.as_bytes()).unwrap())),
            "plan" => drop(black_box(tree.plan())),
            _ => panic!("{what} is neither read, parse nor plan"),
        }
    }
}

fn measure() {
    println!("milliseconds: what nicpin takes, its floor, and how many times that it is");
    let mut rows = Vec::new();
    for irq_files in [true, false] {
        let kernel = if irq_files {
            "kernel 4.9 and later"
        } else {
            "kernel before 4.9: all of /proc/interrupts is read"
        };
        println!("\n{kernel}\n{}", Row::HEAD);
        for size in SIZES {
            let row = Tree::new(Size::new(size, irq_files)).row();
            println!("{}", row.to_text());
            rows.push((irq_files, row));
        }
    }
    println!(
        "\nexponents of growth from 128 to 4,096 CPUs: by files read, and by decisions that a plan is made of"
    );
    for irq_files in [true, false] {
        let rows: Vec<&Row> = rows
            .iter()
            .filter(|(files, row)| *files == irq_files && row.size.cpus >= 128)
            .map(|(_, row)| row)
            .collect();
        let of = |size: Figure, time: Figure| growth(rows.iter().map(|row| (size(row), time(row))));
        let (files, decisions): (Figure, Figure) =
            (|row| row.files as f64, |row| row.size.decisions());
        println!(
            "  read {:.2} (floor {:.2})  plan, process {:.2} (floor {:.2})  planning {:.2} by {:.0} decisions  json {:.2}",
            of(files, |row| row.read.own),
            of(files, |row| row.read.floor),
            of(files, |row| row.whole.against.own),
            of(files, |row| row.whole.against.floor),
            of(decisions, |row| row.plan),
            rows.last().map_or(0.0, |row| row.size.decisions()),
            of(decisions, |row| row.json.own),
        );
    }
    let tree = Tree::new(Size::new(CHECKED, true));
    let check = tree.check();
    let size = tree.size;
    println!(
        "\ncheck -q in the planned state, {} CPUs, {} cards of {} queues: {}",
        size.cpus,
        size.cards,
        size.queues,
        check.to_text()
    );
}

type Figure = fn(&Row) -> f64;

/// A machine's tree, and what nicpin makes of it.
struct Tree {
    size: Size,
    dir: tempfile::TempDir,
    /// What nicpin reads there.
    bare: Bare,
    /// A list of the same.
    list: tempfile::NamedTempFile,
    host: Machine,
}

struct Row {
    size: Size,
    files: usize,
    megabytes: f64,
    read: Against,
    parse: Against,
    plan: f64,
    json: Against,
    apply: Against,
    whole: Process,
    /// The most memory that the program held, in megabytes, and the largest file that it read.
    memory: f64,
    largest: f64,
}

impl Tree {
    fn new(size: Size) -> Self {
        let place = std::env::var_os("NICPIN_BENCH_DIR")
            .map_or_else(|| PathBuf::from("/dev/shm"), PathBuf::from);
        let dir = if place.is_dir() {
            tempfile::tempdir_in(place)
        } else {
            tempfile::tempdir()
        }
        .unwrap();
        size.write(dir.path());
        let root = Root::open_recording(dir.path()).unwrap();
        nicpin::read::machine(&root, options()).unwrap();
        let recorded = root.recorded();
        let below = |path: &String| dir.path().join(&path[1..]);
        let bare = Bare {
            files: recorded
                .files
                .iter()
                .filter_map(|(path, file)| file.as_ref().map(|_| below(path)))
                .collect(),
            directories: recorded.lists.keys().map(below).collect(),
        };
        let list = tempfile::NamedTempFile::new().unwrap();
        bare.list_in(list.path());
        drop((root, recorded));
        // As nicpin has it in its memory: not with a record's parts in between.
        let host = nicpin::read::machine(&Root::open(dir.path()).unwrap(), options()).unwrap();
        Self {
            size,
            dir,
            bare,
            list,
            host,
        }
    }

    fn row(&self) -> Row {
        let turns = if self.size.cpus > 1000 { 5 } else { 25 };
        let root = Root::open(self.dir.path()).unwrap();
        let read = against(
            turns,
            || drop(black_box(nicpin::read::machine(&root, options()).unwrap())),
            || self.bare.read(),
        );
        let text = std::fs::read_to_string(self.dir.path().join("proc/interrupts")).unwrap();
        let parse = against(
            turns,
            || drop(black_box(interrupts::parse(&mut text.as_bytes()).unwrap())),
            || {
                black_box(memchr::memchr_iter(b'\n', text.as_bytes()).count());
            },
        );
        drop(text);
        let plan = self.plan();
        let planning = timing::best(25, || self.plan());
        let value = serde_json::to_value(&plan).unwrap();
        let json = against(
            turns,
            || drop(black_box(serde_json::to_string_pretty(&plan).unwrap())),
            || drop(black_box(serde_json::to_string_pretty(&value).unwrap())),
        );
        let whole = self.process(turns, &["plan"]);
        let memory = self.memory();
        let apply = self.apply(&root, &plan);
        let sizes = self
            .bare
            .files
            .iter()
            .map(|path| std::fs::metadata(path).unwrap().len() as f64 / 1e6);
        let (megabytes, largest) = sizes.fold((0.0, 0.0_f64), |(sum, most), size| {
            (sum + size, most.max(size))
        });
        Row {
            size: self.size,
            files: self.bare.files.len(),
            megabytes,
            read,
            parse,
            plan: planning,
            json,
            apply,
            whole,
            memory,
            largest,
        }
    }

    fn plan(&self) -> Plan {
        let selection = Selection::new(&self.host, &[], false).unwrap();
        nicpin::plan::plan(&self.host, &Policy::default(), &selection)
    }

    /// Writing the plan, with reading back, and the present values; the floor is the bare writes. Each turn of the
    /// one finds what the other left.
    fn apply(&self, root: &Root, plan: &Plan) -> Against {
        let bare = || {
            for write in &plan.writes {
                let path = self.dir.path().join(&write.path[1..]);
                let mut file = File::options()
                    .write(true)
                    .truncate(true)
                    .open(path)
                    .unwrap();
                file.write_all(write.current.as_bytes()).unwrap();
            }
        };
        bare();
        let own = || {
            let outcomes = nicpin::apply::write_all(root, &plan.writes);
            assert!(
                outcomes.iter().all(|outcome| !outcome.failed()),
                "a write failed"
            );
        };
        against(3, own, bare)
    }

    /// `check -q` where all is as planned.
    fn check(&self) -> Process {
        self.run(&["apply"], 0);
        self.process(50, &["check", "-q"])
    }

    /// nicpin as a process, with exit code 0.
    fn process(&self, turns: usize, args: &[&str]) -> Process {
        let mut bare = std::process::Command::new(std::env::current_exe().unwrap());
        bare.arg("bare").arg(self.list.path());
        let floor = || assert!(bare.status().unwrap().success(), "the bare loop failed");
        let against = against(turns, || self.run(args, 0), floor);
        Process {
            against,
            loop_alone: timing::best(turns, || self.bare.read()),
        }
    }

    /// The most memory that `plan` holds, asked of a process that has run nothing else.
    fn memory(&self) -> f64 {
        let own = std::env::current_exe().unwrap();
        let output = std::process::Command::new(own)
            .arg("memory")
            .arg(self.dir.path())
            .output()
            .unwrap();
        String::from_utf8(output.stdout)
            .unwrap()
            .trim()
            .parse()
            .unwrap()
    }

    fn run(&self, args: &[&str], code: i32) {
        assert_eq!(
            Program::new(NICPIN, self.dir.path(), args).run(),
            Some(code),
            "{args:?}"
        );
    }
}

/// The bare loop: the files and directories that nicpin reads in a tree.
struct Bare {
    files: Vec<PathBuf>,
    directories: Vec<PathBuf>,
}

impl Bare {
    /// The floor of reading: every file opened, read to its end and closed, every directory listed.
    fn read(&self) {
        let mut buffer = vec![0; 1 << 16];
        for path in &self.files {
            let mut file = File::open(path).unwrap();
            while file.read(&mut buffer).unwrap() > 0 {}
        }
        for path in &self.directories {
            black_box(std::fs::read_dir(path).unwrap().count());
        }
    }

    fn list_in(&self, list: &Path) {
        let line = |path: &PathBuf| path.to_str().unwrap().to_owned() + "\n";
        let files: String = self.files.iter().map(line).collect();
        let directories: String = self.directories.iter().map(line).collect();
        std::fs::write(list, files + "\n" + &directories).unwrap();
    }

    fn listed_in(list: &Path) -> Self {
        let text = std::fs::read_to_string(list).unwrap();
        let (files, directories) = text.split_once("\n\n").unwrap();
        let paths = |text: &str| text.lines().map(PathBuf::from).collect();
        Self {
            files: paths(files),
            directories: paths(directories),
        }
    }
}

/// A process, and what nothing but reading costs.
struct Process {
    /// Its floor is a process, too.
    against: Against,
    /// Reading alone, in a process that is warm.
    loop_alone: f64,
}

impl Process {
    fn to_text(&self) -> String {
        format!(
            "{} ({:>4.1} of {:.2})",
            self.against.to_text(),
            self.against.own / self.loop_alone,
            self.loop_alone
        )
    }
}

impl Row {
    const HEAD: &str = "  CPUs queues  files     MB | read            | parser vs memchr | planning      | json           | apply           | plan, process (of the loop) | memory";

    fn to_text(&self) -> String {
        let floor = self.read.floor;
        format!(
            "{:>6} {:>6} {:>6} {:>6.1} | {} | {}  | {:>6.2} {:>5.1}% | {} | {} | {} | {:.0} MB, largest file {:.1}",
            self.size.cpus,
            self.size.vectors(),
            self.files,
            self.megabytes,
            self.read.to_text(),
            self.parse.to_text(),
            self.plan,
            100.0 * self.plan / floor,
            self.json.to_text(),
            self.apply.to_text(),
            self.whole.to_text(),
            self.memory,
            self.largest,
        )
    }
}
