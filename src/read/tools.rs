//! Other tools that write affinities on this machine: irqbalance, from which IRQs can be banned while it runs, and
//! tools that write at certain moments and can only be reported.

pub mod irqbalance;
pub mod others;

use procfs::FromRead as _;
use procfs::process::Stat;

use crate::machine::OtherTools;
use crate::root::{FileError, Root};

/// The programs that are known by their process.
const PROGRAMS: [&str; 2] = ["irqbalance", "tuned"];

/// Finds them.
pub(crate) fn read(root: &Root) -> Result<OtherTools, FileError> {
    let mut processes = processes(root, &PROGRAMS)?;
    let tuned = processes.iter().any(|process| process.comm == "tuned");
    processes.retain(|process| process.comm == "irqbalance");
    let irqbalance = processes.first().map(|process| irqbalance::read(root, process.pid));
    Ok(OtherTools { irqbalance, others: others::read(root, tuned) })
}

/// The running processes with one of these names.
pub(crate) fn processes(root: &Root, names: &[&str]) -> Result<Vec<Stat>, FileError> {
    let mut running = Vec::new();
    for name in root.list("/proc")?.unwrap_or_default() {
        if !name.bytes().all(|b| b.is_ascii_digit()) {
            continue;
        }
        // A process that ends meanwhile is one less to look at.
        let Some(text) = root.read_opt(&format!("/proc/{name}/stat"))? else { continue };
        running.extend(process(&text, names));
    }
    Ok(running)
}

/// The process of a `/proc/PID/stat` when it has one of these names.
fn process(stat: &str, names: &[&str]) -> Option<Stat> {
    Stat::from_read(stat.as_bytes()).ok().filter(|stat| names.contains(&stat.comm.as_str()))
}

/// Whether a `/proc/PID/stat` is that of a program that writes affinities.
#[cfg(feature = "cli")]
pub(crate) fn is_tool(stat: &str) -> bool {
    process(stat, &PROGRAMS).is_some()
}

/// The lines of a configuration file that are read here, and nothing else of it: what a capture may keep. `None` for a
/// file that is none of theirs.
#[cfg(feature = "cli")]
pub(crate) fn bare(path: &str, text: &str) -> Option<String> {
    let line = irqbalance::bare_line(path).or_else(|| others::bare_line(path))?;
    Some(text.lines().filter_map(line).map(|line| line + "\n").collect())
}
