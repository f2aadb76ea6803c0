//! The clock: best of several turns, against a floor in the same turns.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// A time and its floor, both in milliseconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Against {
    pub(crate) own: f64,
    pub(crate) floor: f64,
}

impl Against {
    pub(crate) fn to_text(self) -> String {
        format!(
            "{:>7.2} {:>7.2} {:>4.1}",
            self.own,
            self.floor,
            self.own / self.floor
        )
    }
}

/// A run of nicpin on a tree.
pub(crate) struct Program {
    path: &'static str,
    root: PathBuf,
    args: Vec<String>,
}

impl Program {
    pub(crate) fn new(path: &'static str, root: &Path, args: &[&str]) -> Self {
        Self {
            path,
            root: root.to_owned(),
            args: args.iter().map(|&arg| arg.to_owned()).collect(),
        }
    }

    /// Runs it without looking at what it prints; its exit code.
    pub(crate) fn run(&self) -> Option<i32> {
        let mut command = Command::new(self.path);
        command
            .arg("--root")
            .arg(&self.root)
            .args(&self.args)
            .stdout(Stdio::null());
        command.status().unwrap().code()
    }
}

/// The shortest of several turns, in milliseconds. What a turn makes is dropped off the clock.
pub(crate) fn best<T>(turns: usize, mut work: impl FnMut() -> T) -> f64 {
    (0..turns).map(|_| once(&mut work)).fold(f64::MAX, f64::min)
}

/// The shortest turns of something and of its floor, taken alternately.
pub(crate) fn against(turns: usize, mut own: impl FnMut(), mut floor: impl FnMut()) -> Against {
    let mut shortest = Against {
        own: f64::MAX,
        floor: f64::MAX,
    };
    for _ in 0..turns {
        shortest.own = shortest.own.min(once(&mut own));
        shortest.floor = shortest.floor.min(once(&mut floor));
    }
    shortest
}

fn once<T>(work: &mut impl FnMut() -> T) -> f64 {
    let start = Instant::now();
    let made = std::hint::black_box(work());
    let time = start.elapsed();
    drop(made);
    time.as_secs_f64() * 1e3
}

/// The most memory that runs of this program's children held so far (`ru_maxrss`), in megabytes.
pub(crate) fn most_memory_of_children() -> f64 {
    let usage = nix::sys::resource::UsageWho::RUSAGE_CHILDREN;
    // The kernel counts kilobytes.
    nix::sys::resource::getrusage(usage).unwrap().max_rss() as f64 / 1e3
}

/// The exponent of growth between the first and the last of some sizes and times.
pub(crate) fn growth(points: impl Iterator<Item = (f64, f64)>) -> f64 {
    let points: Vec<(f64, f64)> = points.collect();
    let (Some(first), Some(last)) = (points.first(), points.last()) else {
        return f64::NAN;
    };
    (last.1 / first.1).ln() / (last.0 / first.0).ln()
}
