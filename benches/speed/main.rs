//! How long nicpin takes, and how near that is to the floor: what the same files cost when nothing is made of them.
//!
//! `cargo bench` measures machines of 16, 128, 1,024 and 4,096 CPUs. Each figure is the best of several turns, and the
//! turns of a thing and of its floor alternate, so that both meet the same neighbours. Trees stand in memory
//! (`/dev/shm`, or the directory in `NICPIN_BENCH_DIR`).
//!
//! `cargo bench -- tree CPUS NODES CARDS QUEUES DIR` only writes the tree of such a machine.

// A program for developers: it prints, stops at the first thing that goes wrong, and reads files as the floor does.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    clippy::cast_precision_loss,
    missing_docs
)]

mod machines;
#[path = "../../tests/support/mod.rs"]
mod support;
mod timing;

use std::fs::File;
use std::hint::black_box;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

use nicpin::host::{Host, Interrupts, Root};
use nicpin::plan::Plan;
use nicpin::policy::Policy;
use nicpin::select::Selection;

use machines::Size;
use timing::{Against, Program, against, growth};

const NICPIN: &str = env!("CARGO_BIN_EXE_nicpin");
/// CPUs, nodes, cards, queues of each card.
const SIZES: [(u32, u32, u32, u32); 4] =
    [(16, 1, 1, 16), (128, 2, 4, 32), (1024, 8, 16, 64), (4096, 32, 32, 128)];
/// The machine on which `check -q` is to be quick.
const CHECKED: (u32, u32, u32, u32) = (256, 4, 4, 64);

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["tree", cpus, nodes, cards, queues, dir] => {
            let number = |text: &str| text.parse().unwrap_or_else(|_| panic!("{text} is no number"));
            let size = (number(cpus), number(nodes), number(cards), number(queues));
            Size::new(size, true).machine().write(Path::new(dir));
        }
        ["memory", root] => {
            assert_eq!(Program::new(NICPIN, Path::new(root), &["plan"]).run(), Some(0));
            println!("{}", timing::most_memory_of_children());
        }
        _ => measure(),
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
    println!("\ngrowth from 128 CPUs up, as a power of the number of queues and CPUs together");
    for irq_files in [true, false] {
        let rows: Vec<&Row> = rows
            .iter()
            .filter(|(files, row)| *files == irq_files && row.size.cpus >= 128)
            .map(|(_, row)| row)
            .collect();
        let of = |time: fn(&Row) -> f64| growth(rows.iter().map(|row| (row.size.things(), time(row))));
        println!(
            "  read {:.2}  plan {:.2}  json {:.2}  whole plan {:.2}",
            of(|row| row.read.own),
            of(|row| row.plan),
            of(|row| row.json.own),
            of(|row| row.whole.own)
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

/// A machine's tree, and what nicpin makes of it.
struct Tree {
    size: Size,
    dir: tempfile::TempDir,
    /// The files that nicpin reads there.
    files: Vec<PathBuf>,
    host: Host,
}

/// What was measured on one machine.
struct Row {
    size: Size,
    files: usize,
    megabytes: f64,
    read: Against,
    parse: Against,
    plan: f64,
    json: Against,
    apply: Against,
    whole: Against,
    /// The most memory that the program held, in megabytes, and the largest file that it read.
    memory: f64,
    largest: f64,
}

impl Tree {
    fn new(size: Size) -> Self {
        let place =
            std::env::var_os("NICPIN_BENCH_DIR").map_or_else(|| PathBuf::from("/dev/shm"), PathBuf::from);
        let dir = if place.is_dir() { tempfile::tempdir_in(place) } else { tempfile::tempdir() }.unwrap();
        size.machine().write(dir.path());
        let root = Root::open_recording(dir.path()).unwrap();
        let host = Host::read(&root).unwrap();
        let files = root.recorded().files.keys().map(|path| dir.path().join(&path[1..])).collect();
        Self { size, dir, files, host }
    }

    fn row(&self) -> Row {
        let turns = if self.size.cpus > 1000 { 5 } else { 25 };
        let root = Root::open(self.dir.path()).unwrap();
        let read = against(turns, || drop(black_box(Host::read(&root).unwrap())), || self.read_bare());
        let text = std::fs::read_to_string(self.dir.path().join("proc/interrupts")).unwrap();
        let parse = against(
            turns,
            || drop(black_box(Interrupts::parse(&text).unwrap())),
            || {
                black_box(memchr::memchr_iter(b'\n', text.as_bytes()).count());
            },
        );
        drop(text);
        let plan = self.plan();
        let planning = timing::best(turns, || self.plan());
        let value = serde_json::to_value(&plan).unwrap();
        let json = against(
            turns,
            || drop(black_box(nicpin::render::json(&plan).unwrap())),
            || drop(black_box(serde_json::to_string_pretty(&value).unwrap())),
        );
        let whole = against(turns, || self.run(&["plan"], 0), || self.read_bare());
        let memory = self.memory();
        let apply = self.apply(&root, &plan);
        let sizes = self.files.iter().map(|path| std::fs::metadata(path).unwrap().len() as f64 / 1e6);
        let (megabytes, largest) =
            sizes.fold((0.0, 0.0_f64), |(sum, most), size| (sum + size, most.max(size)));
        Row {
            size: self.size,
            files: self.files.len(),
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

    /// The floor of reading: every file opened, read to its end and closed.
    fn read_bare(&self) {
        let mut buffer = vec![0; 1 << 16];
        for path in &self.files {
            let mut file = File::open(path).unwrap();
            while file.read(&mut buffer).unwrap() > 0 {}
        }
    }

    /// Writing the plan, with reading back, and the present values; the floor is the bare writes. Each turn of the
    /// one finds what the other left.
    fn apply(&self, root: &Root, plan: &Plan) -> Against {
        let bare = || {
            for write in &plan.writes {
                let path = self.dir.path().join(&write.path[1..]);
                let mut file = File::options().write(true).truncate(true).open(path).unwrap();
                file.write_all(write.current.as_bytes()).unwrap();
            }
        };
        bare();
        let own = || {
            let outcomes = nicpin::apply::write_all(root, &plan.writes);
            assert!(outcomes.iter().all(|outcome| !outcome.failed()), "a write failed");
        };
        against(3, own, bare)
    }

    /// `check -q` where all is as planned.
    fn check(&self) -> Against {
        self.run(&["apply"], 0);
        against(25, || self.run(&["check", "-q"], 0), || self.read_bare())
    }

    /// The most memory that `plan` holds, asked of a process that has run nothing else.
    fn memory(&self) -> f64 {
        let own = std::env::current_exe().unwrap();
        let output = std::process::Command::new(own).arg("memory").arg(self.dir.path()).output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().parse().unwrap()
    }

    fn run(&self, args: &[&str], code: i32) {
        assert_eq!(Program::new(NICPIN, self.dir.path(), args).run(), Some(code), "{args:?}");
    }
}

impl Row {
    const HEAD: &str = "  CPUs queues  files     MB | read            | parser vs memchr | planning      | json           | apply           | plan, process   | memory";

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
