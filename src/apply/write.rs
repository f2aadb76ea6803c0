//! Writes one setting: compares it, writes it, reads it back and decides the outcome.

use std::io;
use std::time::Duration;

use nix::errno::Errno;

use crate::apply::fallback::Fallbacks;
use crate::apply::stop::stopped;
use crate::cpuset::CpuSet;
use crate::machine::Rss;
use crate::machine::setting::on_or_off;
use crate::plan::{Write, WriteKind};
use crate::read::files::{read_affinity, read_effective};
use crate::read::topology::{read_online, rps_filter};
use crate::read::{ethtool, threads};
use crate::report::outcome::{Outcome, WriteResult};
use crate::root::{FileError, Root, errno_words};

/// Pauses before a write is tried again after EBUSY, EAGAIN or EINTR.
const PAUSES: [Duration; 4] = [
    Duration::from_millis(1),
    Duration::from_millis(3),
    Duration::from_millis(10),
    Duration::from_millis(30),
];

/// Performs writes in order and reads each back, without lock and record: the last step of [`apply()`](super::apply()),
/// public for benchmarks.
pub fn write_all(root: &Root, writes: &[Write]) -> Vec<WriteResult> {
    write_plan(root, writes, None, false)
}

/// Performs a plan's writes in order. A failed write does not end this, unless `stop` is set or the first vector is
/// refused for a reason that holds for all: steering for vectors that did not move is worse than none.
pub(crate) fn write_plan(
    root: &Root,
    writes: &[Write],
    fallbacks: Option<&Fallbacks<'_>>,
    stop: bool,
) -> Vec<WriteResult> {
    let mut all: Vec<WriteResult> = Vec::new();
    let mut is_first = true;
    for (index, write) in writes.iter().enumerate() {
        if let Some(why) = stopped() {
            all.extend(
                writes[index..]
                    .iter()
                    .map(|write| WriteResult::not_done(write, left_out(why))),
            );
            break;
        }
        let (written, errno) = write_one(root, write, fallbacks);
        let concerns_all = errno.is_some_and(|errno| is_first && refuses_all(root, write, errno));
        is_first &= write.kind != WriteKind::Vector || written.outcome == Outcome::Already;
        let failed = written.failed();
        all.push(written);
        if failed && stop {
            break;
        }
        if concerns_all {
            refuse_rest(&mut all, &writes[index + 1..]);
            break;
        }
    }
    all
}

/// Why a write was not performed after [`stop`](super::stop::stop).
pub(crate) fn left_out(why: &str) -> String {
    format!("not written: {why}; fix: run again")
}

/// Whether the error concerns all vectors and not only this one. EPERM for a kernel-managed vector concerns only that;
/// its file has no write bits.
fn refuses_all(root: &Root, write: &Write, errno: Errno) -> bool {
    write.kind == WriteKind::Vector
        && match errno {
            Errno::EROFS => true,
            Errno::EACCES | Errno::EPERM => has_write_bits(root, &write.path),
            _ => false,
        }
}

fn has_write_bits(root: &Root, path: &str) -> bool {
    let file = root.read_opt_file(path);
    file.is_ok_and(|file| file.is_some_and(|file| file.mode & 0o200 != 0))
}

/// Gives all remaining writes the outcome of the last one.
fn refuse_rest(all: &mut Vec<WriteResult>, rest: &[Write]) {
    let more = if all.iter().any(WriteResult::changed) {
        " more"
    } else {
        ""
    };
    let Some(last) = all.last_mut() else { return };
    let detail = last.detail.take().unwrap_or_default();
    let why = format!(
        "nothing{more} was written after {} was refused: {detail}",
        last.path
    );
    last.detail = Some(why.clone());
    all.extend(
        rest.iter()
            .map(|write| WriteResult::not_done(write, why.clone())),
    );
}

/// Performs one write. Also returns the error of the write itself, even if a fallback succeeded.
pub(crate) fn write_one(
    root: &Root,
    write: &Write,
    fallbacks: Option<&Fallbacks<'_>>,
) -> (WriteResult, Option<Errno>) {
    let mut written = WriteResult::already(write);
    let was = match read(root, write) {
        Ok(Some(text)) => text.trim().to_owned(),
        Ok(None) => return (written.vanished("the file no longer exists"), None),
        Err(error) => return (written.refused(error.to_string()), None),
    };
    let same = means_same(write.kind, &was, &written.value);
    written.was = Some(was);
    let errno = if same {
        None
    } else {
        written.perform(root, write, fallbacks)
    };
    (written, errno)
}

impl WriteResult {
    fn already(write: &Write) -> Self {
        Self {
            kind: write.kind,
            path: write.path.clone(),
            value: write.value.clone(),
            interface: write.interface.to_string(),
            outcome: Outcome::Already,
            was: None,
            fallback: None,
            effective: None,
            detail: None,
        }
    }

    /// A write that was not tried.
    pub(crate) fn not_done(write: &Write, why: String) -> Self {
        Self::already(write).refused(why)
    }

    fn vanished(mut self, what: &str) -> Self {
        self.judge(Outcome::Vanished, format!("{what}; fix: run again"));
        self
    }

    fn refused(mut self, why: String) -> Self {
        self.judge(Outcome::Refused, why);
        self
    }

    fn judge(&mut self, outcome: Outcome, detail: String) {
        (self.outcome, self.detail) = (outcome, Some(detail));
    }

    fn perform(
        &mut self,
        root: &Root,
        write: &Write,
        fallbacks: Option<&Fallbacks<'_>>,
    ) -> Option<Errno> {
        let value = self.value.clone();
        let answer = write_patiently(root, write, &value);
        let errno = answer.as_ref().err().and_then(errno);
        match answer {
            Ok(()) => self.read_back(root, write, &value),
            Err(error) if write.kind == WriteKind::Vector && errno == Some(Errno::ENOSPC) => {
                self.write_fallback(root, write, fallbacks, &error);
            }
            Err(error) => {
                let (outcome, detail) = refusal(root, write.kind, &write.path, &error);
                self.judge(outcome, detail);
            }
        }
        errno
    }

    /// The CPU has no free interrupt vector: writes the next CPU that has one.
    fn write_fallback(
        &mut self,
        root: &Root,
        write: &Write,
        fallbacks: Option<&Fallbacks<'_>>,
        error: &io::Error,
    ) {
        let words = errno_words(error);
        for fallback in fallbacks.iter().flat_map(|fallbacks| fallbacks.of(write)) {
            let already = self
                .was
                .as_ref()
                .is_some_and(|was| means_same(write.kind, was, &fallback.mask));
            let result = if already {
                Ok(())
            } else {
                write_patiently(root, write, &fallback.mask)
            };
            match result {
                Ok(()) => {
                    if !already {
                        self.read_back(root, write, &fallback.mask);
                    }
                    if !self.failed() {
                        let detail = format!(
                            "{words}: CPU {} has no free interrupt vector; CPU {} of the same {} is used as a fallback",
                            fallback.planned, fallback.cpu, fallback.domain
                        );
                        (self.detail, self.fallback) = (Some(detail), Some(fallback.mask));
                    }
                    return;
                }
                Err(error) if errno(&error) == Some(Errno::ENOSPC) => {}
                Err(error) => {
                    let (outcome, detail) = refusal(root, write.kind, &write.path, &error);
                    return self.judge(outcome, detail);
                }
            }
        }
        self.judge(
            Outcome::Refused,
            format!(
                "{words}: no candidate CPU of the node has a free interrupt vector; fix: use fewer queues (nicpin apply \
                 --channels N), or a wider --scope"
            ),
        );
    }

    fn read_back(&mut self, root: &Root, write: &Write, value: &str) {
        match read(root, write) {
            Ok(Some(text)) if means_same(write.kind, &text, value) => {
                self.outcome = Outcome::Changed;
                match effective_elsewhere(root, write, value) {
                    Ok(None) => {}
                    Ok(elsewhere) => {
                        self.effective = elsewhere;
                        self.outcome = Outcome::Pending;
                    }
                    Err(error) => self.judge(Outcome::Refused, error.to_string()),
                }
            }
            Ok(Some(text))
                if write.kind == WriteKind::Rps && filtered(root, &text, value).is_some() =>
            {
                let removed = filtered(root, &text, value).unwrap_or_default();
                let detail = format!("the kernel removed CPUs {removed}: isolated or nohz_full");
                self.judge(Outcome::Changed, detail);
            }
            // Before Linux 6.3 the kernel leaves out offline CPUs (`cpuset_cpus_allowed`).
            Ok(Some(text))
                if write.kind == WriteKind::NapiThread && only_offline(root, &text, value) =>
            {
                self.outcome = Outcome::Changed;
            }
            Ok(Some(text)) => self.judge(
                Outcome::Refused,
                format!(
                    "the kernel accepted the write, but the file holds {}; fix: run again",
                    text.trim()
                ),
            ),
            Ok(None) => {
                self.judge(
                    Outcome::Vanished,
                    "the file disappeared after the write; fix: run again".to_owned(),
                );
            }
            Err(error) => self.judge(Outcome::Refused, error.to_string()),
        }
    }
}

/// The CPUs that the kernel removed from a written `rps_cpus` by its rules; `None` where the file holds something else.
fn filtered(root: &Root, held: &str, written: &str) -> Option<CpuSet> {
    let (held, written) = (
        CpuSet::parse_kernel_mask(held).ok()?,
        CpuSet::parse_kernel_mask(written).ok()?,
    );
    let removed = written.difference(&held);
    let by_rule =
        !held.is_empty() && held.is_subset(&written) && removed.is_subset(&rps_filter(root).ok()?);
    by_rule.then_some(removed)
}

/// Whether a thread's CPUs are the written ones without those that are offline.
fn only_offline(root: &Root, held: &str, written: &str) -> bool {
    let parse = CpuSet::parse_kernel_mask;
    let (Ok(held), Ok(written), Ok(online)) = (parse(held), parse(written), read_online(root))
    else {
        return false;
    };
    held.is_subset(&written) && !written.difference(&held).intersects(&online)
}

/// The current text of a write's setting.
fn read(root: &Root, write: &Write) -> Result<Option<String>, FileError> {
    match write.kind {
        WriteKind::Vector => {
            Ok(read_affinity(root, &write.path)?.map(|file| file.text.to_string()))
        }
        WriteKind::NapiThread => threads::affinity(root, &write.interface, &write.path),
        WriteKind::Rss => Ok(ethtool::rss(root, &write.interface)?.map(|rss| rss.to_setting())),
        WriteKind::Ntuple => {
            Ok(ethtool::ntuple(root, &write.interface)?.map(|on| on_or_off(on).to_owned()))
        }
        _ => root.read_opt(&write.path),
    }
}

/// Why a file cannot be opened to write it, and the fix; `None` if it can be, or if that may change with the file.
pub(crate) fn why_not_writable(root: &Root, kind: WriteKind, path: &str) -> Option<String> {
    if matches!(
        kind,
        WriteKind::Rss | WriteKind::Ntuple | WriteKind::NapiThread
    ) {
        return None;
    }
    let error = root.check_writable(path).err()?;
    let (outcome, why) = refusal(root, kind, path, &error);
    (outcome == Outcome::Refused).then_some(why)
}

/// Sets a setting to a text.
fn set(root: &Root, write: &Write, value: &str) -> io::Result<()> {
    match write.kind {
        WriteKind::NapiThread => threads::set_affinity(root, &write.interface, &write.path, value),
        WriteKind::Rss => {
            let table = Rss::parse(value).ok_or_else(|| io::Error::other("not an RSS table"))?;
            ethtool::set_rss(root, &write.interface, &table)
        }
        WriteKind::Ntuple => ethtool::set_ntuple(root, &write.interface, value == on_or_off(true)),
        _ => root.write(&write.path, value),
    }
}

/// The same, repeated while the kernel is busy.
fn write_patiently(root: &Root, write: &Write, value: &str) -> io::Result<()> {
    let mut pauses = PAUSES.iter();
    loop {
        match (set(root, write, value), pauses.next()) {
            (Err(error), Some(pause))
                if matches!(
                    errno(&error),
                    Some(Errno::EBUSY | Errno::EAGAIN | Errno::EINTR)
                ) =>
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

/// Whether two texts of a setting mean the same: masks as sets, numbers as numbers, RSS tables as tables.
pub(crate) fn means_same(kind: WriteKind, a: &str, b: &str) -> bool {
    if kind.is_mask() {
        matches!((CpuSet::parse_kernel_mask(a), CpuSet::parse_kernel_mask(b)), (Ok(a), Ok(b)) if a == b)
    } else if kind == WriteKind::Rss {
        matches!((Rss::parse(a), Rss::parse(b)), (Some(a), Some(b)) if a.means_same(&b))
    } else if kind == WriteKind::Ntuple {
        a.trim() == b.trim()
    } else {
        matches!((a.trim().parse::<u64>(), b.trim().parse::<u64>()), (Ok(a), Ok(b)) if a == b)
    }
}

/// What the kernel's answer to a write means (`write_irq_affinity` in `kernel/irq/proc.c`, `net-sysfs.c`).
fn refusal(root: &Root, kind: WriteKind, path: &str, error: &io::Error) -> (Outcome, String) {
    let words = errno_words(error);
    let refused = |why: &str| (Outcome::Refused, format!("{words}{why}"));
    match (kind, errno(error)) {
        // EPERM since 6.12, where the file has no write bits; EIO before, and also for an IRQ that was freed while the
        // file was open.
        (WriteKind::Vector, Some(errno @ (Errno::EPERM | Errno::EIO)))
            if root.exists(path) && (errno == Errno::EIO || !has_write_bits(root, path)) =>
        {
            (
                Outcome::Managed,
                format!(
                    "{words}: the kernel manages this vector and does not allow its affinity to be changed"
                ),
            )
        }
        (WriteKind::Xps, Some(Errno::ENOENT)) if root.exists(path) => (
            Outcome::Vanished,
            format!("{words}: an interface with one transmit queue has no XPS; fix: run again"),
        ),
        (_, Some(Errno::ENOENT | Errno::ENODEV | Errno::ENXIO | Errno::EIO)) => (
            Outcome::Vanished,
            format!("{words}: the file no longer exists; fix: run again"),
        ),
        (WriteKind::Vector, Some(Errno::EACCES | Errno::EPERM)) => {
            refused("; fix: run as root, outside any container")
        }
        (WriteKind::NapiThread, Some(Errno::ESRCH)) => (
            Outcome::Vanished,
            format!("{words}: the thread has ended; fix: run again"),
        ),
        (WriteKind::NapiThread, Some(Errno::EACCES | Errno::EPERM)) => {
            refused(": CAP_SYS_NICE is needed; fix: run as root, outside any container")
        }
        (WriteKind::NapiThread, Some(Errno::EINVAL)) => refused(
            ": none of the CPUs is online now, or the kernel does not allow this thread to be moved",
        ),
        (_, Some(Errno::EACCES | Errno::EPERM)) => {
            refused(": CAP_NET_ADMIN is needed; fix: run as root, outside any container")
        }
        (_, Some(Errno::EROFS)) => refused(
            ": the file is mounted read-only; fix: run outside the container, or without ProtectKernelTunables= in the unit",
        ),
        (WriteKind::Rps, Some(Errno::EINVAL)) => refused(
            ": the kernel takes no isolated or nohz_full CPU for RPS, and no other was named",
        ),
        (WriteKind::Rss, Some(Errno::EOPNOTSUPP | Errno::EINVAL)) => {
            refused(": the driver does not accept this RSS table; fix: leave out --rss")
        }
        (_, Some(Errno::EINVAL)) => {
            refused(": perhaps none of the CPUs is online now; fix: run again")
        }
        (_, Some(Errno::EOVERFLOW)) => {
            refused(": the mask has more CPUs than this kernel; fix: run again")
        }
        (_, Some(Errno::EBUSY | Errno::EAGAIN | Errno::EINTR)) => {
            refused(": an earlier change is still pending; fix: run again")
        }
        (_, Some(Errno::ENOMEM)) => refused(": the kernel is out of memory; fix: run again later"),
        _ => refused("; fix: run again, and report it if it happens again"),
    }
}

/// A vector's effective CPUs, if they are not in its new affinity.
fn effective_elsewhere(
    root: &Root,
    write: &Write,
    value: &str,
) -> Result<Option<CpuSet>, FileError> {
    let Some(directory) = write.path.strip_suffix("/smp_affinity") else {
        return Ok(None);
    };
    // The value is a mask that was made here.
    let planned = CpuSet::parse_kernel_mask(value).unwrap_or_default();
    let effective = read_effective(root, directory)?;
    Ok(effective.filter(|effective| !effective.is_subset(&planned)))
}
