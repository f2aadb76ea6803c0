//! One value into one file: compared, written, read back, judged.

use std::io;

use nix::errno::Errno;
use serde::{Deserialize, Serialize};

use crate::cpuset::CpuSet;
use crate::host::Root;
use crate::host::root::errno_words;
use crate::plan::{Write, WriteKind};

/// What became of a write.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Written {
    /// The file, from `/` whatever the root.
    pub path: String,
    /// What was to be written.
    pub value: String,
    /// The interface; empty for a setting of the whole machine.
    pub interface: String,
    /// What became of it.
    pub outcome: Outcome,
    /// The kernel's answer in words, and the cure.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub detail: Option<String>,
    /// The new CPUs are allowed and the old one still serves, until the next interrupt moves the vector
    /// (`irq_move_masked_irq`).
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub pending: bool,
}

/// The outcomes of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// Written, and read back as written.
    Changed,
    /// It held the value already.
    Already,
    /// The kernel manages the vector and lets nobody move it: a fact, not a failure.
    Managed,
    /// The kernel did not take it.
    Refused,
    /// The file went away: its queue, its vector or its interface is gone.
    Vanished,
}

impl Written {
    /// Whether the planned value was not reached and could have been.
    pub fn failed(&self) -> bool {
        matches!(self.outcome, Outcome::Refused | Outcome::Vanished)
    }
}

/// Performs writes in order. One that fails does not stop those after it.
pub fn write_all(root: &Root, writes: &[Write]) -> Vec<Written> {
    writes.iter().map(|write| write_one(root, write)).collect()
}

fn write_one(root: &Root, write: &Write) -> Written {
    let (outcome, detail) = perform(root, write);
    let pending = outcome == Outcome::Changed && write.kind == WriteKind::Vector && is_pending(root, write);
    Written {
        path: write.path.clone(),
        value: write.value.clone(),
        interface: write.interface.clone(),
        outcome,
        detail,
        pending,
    }
}

fn perform(root: &Root, write: &Write) -> (Outcome, Option<String>) {
    let same = |text: &str| means_same(write.kind, text, &write.value);
    match root.read_opt(&write.path) {
        Ok(Some(text)) if same(&text) => return (Outcome::Already, None),
        Ok(Some(_)) => {}
        Ok(None) => return (Outcome::Vanished, Some("the file is gone; run again to plan anew".to_owned())),
        Err(error) => return (Outcome::Refused, Some(error.to_string())),
    }
    if let Err(error) = root.write(&write.path, &write.value) {
        return refusal(write.kind, &error);
    }
    match root.read_opt(&write.path) {
        Ok(Some(text)) if same(&text) => (Outcome::Changed, None),
        Ok(Some(text)) => {
            let detail =
                format!("the kernel accepted it and holds {} instead; run again to plan anew", text.trim());
            (Outcome::Refused, Some(detail))
        }
        Ok(None) => (Outcome::Vanished, Some("the file went away after the write; run again".to_owned())),
        Err(error) => (Outcome::Refused, Some(error.to_string())),
    }
}

/// Whether two texts of a file mean the same: masks as sets, numbers as numbers.
fn means_same(kind: WriteKind, a: &str, b: &str) -> bool {
    match kind {
        WriteKind::Vector | WriteKind::Rps | WriteKind::Xps => {
            matches!((CpuSet::parse_mask(a), CpuSet::parse_mask(b)), (Ok(a), Ok(b)) if a == b)
        }
        WriteKind::RpsFlow | WriteKind::Sysctl => {
            matches!((a.trim().parse::<u64>(), b.trim().parse::<u64>()), (Ok(a), Ok(b)) if a == b)
        }
    }
}

/// What the kernel's answer to a write means (`write_irq_affinity` in `kernel/irq/proc.c`, `net-sysfs.c`).
fn refusal(kind: WriteKind, error: &io::Error) -> (Outcome, Option<String>) {
    let words = errno_words(error);
    let refused = |cure: &str| (Outcome::Refused, Some(format!("{words}: {cure}")));
    match (kind, error.raw_os_error().map(Errno::from_raw)) {
        // EPERM since 6.12, EIO before; a file opened for an IRQ that is gone also gives EIO, but then the
        // read before it found nothing.
        (WriteKind::Vector, Some(Errno::EPERM | Errno::EIO)) => (
            Outcome::Managed,
            Some(format!("{words}: the kernel manages this vector and lets nobody move it")),
        ),
        (_, Some(Errno::ENOENT | Errno::ENODEV | Errno::ENXIO)) => {
            (Outcome::Vanished, Some(format!("{words}: the file is gone; run again to plan anew")))
        }
        (_, Some(Errno::EACCES | Errno::EPERM)) => refused("run as root, outside of any container"),
        (_, Some(Errno::EROFS)) => refused(
            "it is mounted read-only; run outside of the container, or without ProtectKernelTunables= in the unit",
        ),
        (WriteKind::Vector, Some(Errno::ENOSPC)) => refused(
            "the CPU has no interrupt vector left; use fewer queues (ethtool -L) or leave the CPU out with --exclude",
        ),
        (_, Some(Errno::EOVERFLOW | Errno::EINVAL)) => {
            refused("the CPUs may have changed since the plan; run again to plan anew")
        }
        (_, Some(Errno::EBUSY)) => refused("an earlier move is under way; run again"),
        _ => refused("run again, and report it if it stays"),
    }
}

/// Whether the vector is still served by a CPU outside its new set.
fn is_pending(root: &Root, write: &Write) -> bool {
    let path = write.path.replace("smp_affinity", "effective_affinity");
    let serving = root.read_opt(&path).ok().flatten().and_then(|text| CpuSet::parse_mask(&text).ok());
    let allowed = CpuSet::parse_mask(&write.value).unwrap_or_default();
    serving.is_some_and(|serving| !serving.is_empty() && !serving.is_subset(&allowed))
}
