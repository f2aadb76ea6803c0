//! Other tools that write affinities on this machine: irqbalance, from which IRQs can be banned while it runs, and
//! tools that write at certain moments and can only be reported.

pub mod irqbalance;
pub mod others;
mod process;

use crate::machine::OtherTools;
use crate::root::Root;

pub(crate) use process::Found;
pub use process::is_unrelated_process;
pub(in crate::read) use process::stat_of;

/// Finds them. Nothing of this ends a command: what cannot be read could not be determined.
pub(crate) fn read(root: &Root) -> OtherTools {
    let (irqbalance, irqbalance_hidden) = match irqbalance::find(root) {
        Found::Running(pid) => (Some(irqbalance::read(root, pid)), None),
        Found::Hidden(path) => (None, Some(path)),
        Found::No => (None, None),
    };
    OtherTools {
        irqbalance,
        irqbalance_hidden,
        others: others::read(root),
    }
}

/// The lines of a file that are read here, and nothing else of it: what a capture may keep. `None` for a file that is
/// none of theirs.
pub fn bare(path: &str, text: &str) -> Option<String> {
    if let Some(text) = process::bare(path, text) {
        return Some(text);
    }
    let line = irqbalance::bare_line(path).or_else(|| others::bare_line(path))?;
    Some(
        text.lines()
            .filter_map(line)
            .map(|line| line + "\n")
            .collect(),
    )
}

/// Whether a name in a directory is a fact without being opened.
pub fn is_fact(directory: &str, name: &str) -> bool {
    irqbalance::DIRECTORIES.contains(&directory) && irqbalance::pid_of_socket(name).is_some()
}
