//! One value into one file: compared, written, read back, judged.

use std::io;
use std::time::Duration;

use nix::errno::Errno;

use crate::apply::fallback::Fallbacks;
use crate::cpuset::CpuSet;
use crate::plan::{Write, WriteKind};
use crate::read::torn::read_affinity;
use crate::report::outcome::Outcome;
use crate::report::outcome::WriteResult;
use crate::root::errno_words;
use crate::root::{FileError, Root};

/// How long the kernel is given to finish what it is at: EBUSY, EAGAIN and EINTR are asked again after each.
const PATIENCE: [Duration; 4] = [
    Duration::from_millis(1),
    Duration::from_millis(3),
    Duration::from_millis(10),
    Duration::from_millis(30),
];

/// Performs writes in order and reads each back, without the lock and the record that an undo needs: what
/// [`apply()`](super::apply()) does last, to be measured by itself.
pub fn write_all(root: &Root, writes: &[Write]) -> Vec<WriteResult> {
    write_plan(root, writes, None, false)
}

/// Performs a plan's writes in order. One that fails does not stop those after it, unless that is asked for, or what
/// refuses the first vector would refuse them all: steering for vectors that did not move would be worse than none.
/// `instead` knows where a vector goes for which there is no room.
pub(crate) fn write_plan(
    root: &Root,
    writes: &[Write],
    instead: Option<&Fallbacks<'_>>,
    stop: bool,
) -> Vec<WriteResult> {
    let mut all: Vec<WriteResult> = Vec::new();
    let mut is_first = true;
    for (at, write) in writes.iter().enumerate() {
        let (written, errno) = write_one(root, write, instead);
        let for_all = errno.is_some_and(|errno| is_first && refuses_all(root, write, errno));
        is_first &= write.kind != WriteKind::Vector || written.outcome == Outcome::Already;
        let failed = written.failed();
        all.push(written);
        if failed && stop {
            break;
        }
        if for_all {
            refuse_rest(&mut all, &writes[at + 1..]);
            break;
        }
    }
    all
}

/// Performs writes in order, as many as can be.
pub(crate) fn write_each(root: &Root, writes: &[Write]) -> Vec<WriteResult> {
    writes.iter().map(|write| write_one(root, write, None).0).collect()
}

/// Whether the answer is about who writes and where, and not about one vector. One that the kernel manages itself is
/// refused with EPERM, too, but has no write bits then.
fn refuses_all(root: &Root, write: &Write, errno: Errno) -> bool {
    write.kind == WriteKind::Vector
        && match errno {
            Errno::EROFS => true,
            Errno::EACCES | Errno::EPERM => has_write_bits(root, &write.path),
            _ => false,
        }
}

fn has_write_bits(root: &Root, path: &str) -> bool {
    let mode = root.parse_with_mode(path, true, |_, mode| Ok(mode));
    mode.is_ok_and(|mode| mode.is_some_and(|mode| mode & 0o200 != 0))
}

/// What was refused last is refused for all.
fn refuse_rest(all: &mut Vec<WriteResult>, rest: &[Write]) {
    let more = if all.iter().any(WriteResult::changed) { " more" } else { "" };
    let Some(last) = all.last_mut() else { return };
    let detail = last.detail.take().unwrap_or_default();
    let why = format!("{detail}; nothing{more} was written after {} was refused", last.path);
    last.detail = Some(why.clone());
    let refused = |write: &Write| {
        let (path, value) = (write.path.clone(), write.value.to_string());
        WriteResult::not_done(path, value, write.interface.to_string(), why.clone())
    };
    all.extend(rest.iter().map(refused));
}

/// Takes writes back, the last one first.
pub(crate) fn undo_all(root: &Root, writes: &[Write], written: &[WriteResult]) -> Vec<WriteResult> {
    let done = writes.iter().zip(written).rev();
    let back = done.filter(|(_, written)| written.changed() || written.outcome == Outcome::Refused);
    let back = back
        .filter_map(|(write, written)| Some(Write { value: written.was.clone()?.into(), ..write.clone() }));
    back.map(|write| write_one(root, &write, None).0).collect()
}

/// Also the kernel's answer, where it did not take the value itself.
fn write_one(root: &Root, write: &Write, instead: Option<&Fallbacks<'_>>) -> (WriteResult, Option<Errno>) {
    let mut written = WriteResult {
        path: write.path.clone(),
        value: write.value.to_string(),
        interface: write.interface.to_string(),
        outcome: Outcome::Already,
        was: None,
        instead: None,
        effective: None,
        detail: None,
    };
    let was = match read(root, write) {
        Ok(Some(text)) => text.trim().to_owned(),
        Ok(None) => return (written.vanished("the file is gone"), None),
        Err(error) => return (written.refused(error.to_string()), None),
    };
    let same = means_same(write.kind, &was, &written.value);
    written.was = Some(was);
    let errno = if same { None } else { written.perform(root, write, instead) };
    (written, errno)
}

impl WriteResult {
    /// A value that was not even tried.
    pub(crate) fn not_done(path: String, value: String, interface: String, why: String) -> Self {
        let outcome = Outcome::Refused;
        Self { path, value, interface, outcome, was: None, instead: None, effective: None, detail: Some(why) }
    }

    fn vanished(mut self, what: &str) -> Self {
        self.judge(Outcome::Vanished, format!("{what}; run again to plan anew"));
        self
    }

    fn refused(mut self, why: String) -> Self {
        self.judge(Outcome::Refused, why);
        self
    }

    fn judge(&mut self, outcome: Outcome, detail: String) {
        (self.outcome, self.detail) = (outcome, Some(detail));
    }

    fn perform(&mut self, root: &Root, write: &Write, instead: Option<&Fallbacks<'_>>) -> Option<Errno> {
        let value = self.value.clone();
        let answer = put(root, &write.path, &value);
        let errno = answer.as_ref().err().and_then(errno);
        match answer {
            Ok(()) => self.read_back(root, write, &value),
            Err(error) if write.kind == WriteKind::Vector && errno == Some(Errno::ENOSPC) => {
                self.elsewhere(root, write, instead, &error);
            }
            Err(error) => {
                let (outcome, detail) = refusal(root, write, &error);
                self.judge(outcome, detail);
            }
        }
        errno
    }

    /// The CPU has no room for another vector: the next CPU that has.
    fn elsewhere(&mut self, root: &Root, write: &Write, instead: Option<&Fallbacks<'_>>, error: &io::Error) {
        let words = errno_words(error);
        for other in instead.iter().flat_map(|instead| instead.of(write)) {
            let held = self.was.as_ref().is_some_and(|was| means_same(write.kind, was, &other.mask));
            let put = if held { Ok(()) } else { put(root, &write.path, &other.mask) };
            match put {
                Ok(()) => {
                    if !held {
                        self.read_back(root, write, &other.mask);
                    }
                    if !self.failed() {
                        let detail = format!(
                            "{words}: CPU {} has no interrupt vector left; on CPU {} of the same {} instead",
                            other.wanted, other.cpu, other.domain
                        );
                        (self.detail, self.instead) = (Some(detail), Some(other.mask));
                    }
                    return;
                }
                Err(error) if errno(&error) == Some(Errno::ENOSPC) => {}
                Err(error) => {
                    let (outcome, detail) = refusal(root, write, &error);
                    return self.judge(outcome, detail);
                }
            }
        }
        self.judge(
            Outcome::Refused,
            format!(
                "{words}: no CPU of its node that may take it has an interrupt vector left; use fewer queues \
                 (ethtool -L), or give --scope more CPUs"
            ),
        );
    }

    fn read_back(&mut self, root: &Root, write: &Write, value: &str) {
        match read(root, write) {
            Ok(Some(text)) if means_same(write.kind, &text, value) => {
                self.effective = serving_elsewhere(root, write, value);
                self.outcome = if self.effective.is_some() { Outcome::Pending } else { Outcome::Changed };
            }
            Ok(Some(text)) => self.judge(
                Outcome::Refused,
                format!("the kernel accepted it and holds {} instead; run again to plan anew", text.trim()),
            ),
            Ok(None) => self.judge(
                Outcome::Vanished,
                "the file went away after the write; run again to plan anew".to_owned(),
            ),
            Err(error) => self.judge(Outcome::Refused, error.to_string()),
        }
    }
}

/// What the file of a write holds.
fn read(root: &Root, write: &Write) -> Result<Option<String>, FileError> {
    match write.kind {
        WriteKind::Vector => read_affinity(root, &write.path),
        _ => root.read_opt(&write.path),
    }
}

/// One write(2), and again while the kernel is busy.
fn put(root: &Root, path: &str, value: &str) -> io::Result<()> {
    let mut patience = PATIENCE.iter();
    loop {
        match (root.write(path, value), patience.next()) {
            (Err(error), Some(pause))
                if matches!(errno(&error), Some(Errno::EBUSY | Errno::EAGAIN | Errno::EINTR)) =>
            {
                std::thread::sleep(*pause);
            }
            (result, _) => return result,
        }
    }
}

fn errno(error: &io::Error) -> Option<Errno> {
    error.raw_os_error().map(Errno::from_raw)
}

/// Whether two texts of a file mean the same: masks as sets, numbers as numbers.
pub(crate) fn means_same(kind: WriteKind, a: &str, b: &str) -> bool {
    if kind.is_mask() {
        matches!((CpuSet::parse_kernel_mask(a), CpuSet::parse_kernel_mask(b)), (Ok(a), Ok(b)) if a == b)
    } else {
        matches!((a.trim().parse::<u64>(), b.trim().parse::<u64>()), (Ok(a), Ok(b)) if a == b)
    }
}

/// What the kernel's answer to a write means (`write_irq_affinity` in `kernel/irq/proc.c`, `net-sysfs.c`).
fn refusal(root: &Root, write: &Write, error: &io::Error) -> (Outcome, String) {
    let words = errno_words(error);
    let refused = |fix: &str| (Outcome::Refused, format!("{words}: {fix}"));
    match (write.kind, errno(error)) {
        // EPERM since 6.12, which also takes its write bits off it; EIO before, and also from an IRQ that went away
        // under the open file.
        (WriteKind::Vector, Some(errno @ (Errno::EPERM | Errno::EIO)))
            if root.exists(&write.path) && (errno == Errno::EIO || !has_write_bits(root, &write.path)) =>
        {
            (Outcome::Managed, format!("{words}: the kernel manages this vector and lets nobody move it"))
        }
        (WriteKind::Xps, Some(Errno::ENOENT)) if root.exists(&write.path) => {
            (Outcome::Vanished, format!("{words}: with one transmit queue left there is no XPS; run again"))
        }
        (_, Some(Errno::ENOENT | Errno::ENODEV | Errno::ENXIO | Errno::EIO)) => {
            (Outcome::Vanished, format!("{words}: the file is gone; run again to plan anew"))
        }
        (WriteKind::Vector, Some(Errno::EACCES | Errno::EPERM)) => {
            refused("run as root, outside of any container")
        }
        (_, Some(Errno::EACCES | Errno::EPERM)) => {
            refused("it takes CAP_NET_ADMIN: run as root, outside of any container")
        }
        (_, Some(Errno::EROFS)) => refused(
            "it is mounted read-only; run outside of the container, or without ProtectKernelTunables= in the unit",
        ),
        (_, Some(Errno::EINVAL)) => refused("none of its CPUs may be online now; run again to plan anew"),
        (_, Some(Errno::EOVERFLOW)) => {
            refused("the kernel counts fewer CPUs than the plan; run again to plan anew")
        }
        (_, Some(Errno::EBUSY | Errno::EAGAIN | Errno::EINTR)) => {
            refused("an earlier move is still under way; run again")
        }
        (_, Some(Errno::ENOMEM)) => refused("the kernel has no memory for it; run again later"),
        _ => refused("run again, and report it if it stays"),
    }
}

/// The CPUs that serve a vector, if they are not among its new ones.
fn serving_elsewhere(root: &Root, write: &Write, value: &str) -> Option<CpuSet> {
    if write.kind != WriteKind::Vector {
        return None;
    }
    let path = write.path.replace("smp_affinity", "effective_affinity");
    let effective = CpuSet::parse_kernel_mask(&root.read_opt(&path).ok()??).ok()?;
    let allowed = CpuSet::parse_kernel_mask(value).unwrap_or_default();
    (!effective.is_empty() && !effective.is_subset(&allowed)).then_some(effective)
}
