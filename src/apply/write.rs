//! Writes one setting: compares it, writes it, reads it back and decides the outcome.

use std::io;
use std::thread::sleep;
use std::time::Duration;

use itertools::Itertools as _;
use nix::errno::Errno::{self, EACCES, EAGAIN, EBUSY, EINTR, ENOSPC, EPERM, EROFS};

use crate::apply::access::{self, has_write_bits, refusal};
use crate::apply::lock::stop_reason;
use crate::cpuset::{CpuSet, MaskFile};
use crate::kinds::Removed;
use crate::kinds::SettingKind::{self, Vector};
use crate::machine::Topology;
use crate::machine::wording::cpu_list;
use crate::plan::{Plan, Write};
use crate::read::files::read_effective;
use crate::read::handlers::Handlers;
use crate::read::topology::{read_online, rps_filter};
use crate::report::outcome::Outcome::{Already, Changed, Managed, Pending, Refused, Vanished};
use crate::report::outcome::{Outcome, WriteResult};
use crate::root::{FileError, Root, errno_of, errno_words};

/// Performs writes without lock and record: the last step of [`apply()`](super::apply()), public for benchmarks.
pub fn write_all(root: &Root, writes: &[Write]) -> Vec<WriteResult> {
    write_plan(root, writes, None, false, &[])
}

/// A failed write ends this only if `stop` is set, or if the first vector is refused for a reason that holds for all:
/// steering for vectors that did not move is worse than none. So is steering for vectors that turn out to be
/// kernel-managed, unlike in `earlier`: it is left to another plan.
pub(crate) fn write_plan(
    root: &Root,
    writes: &[Write],
    fallbacks: Fallbacks<'_>,
    stop: bool,
    earlier: &[WriteResult],
) -> Vec<WriteResult> {
    let (mut all, mut is_first, mut end) = (Vec::new(), true, None);
    for write in writes {
        if write.kind != Vector && has_new_managed(&all, earlier) {
            break;
        }
        if let Some(why) = end.clone().or_else(|| stop_reason().map(not_performed)) {
            all.push(WriteResult::not_done(write, why));
            continue;
        }
        let (mut written, errno) = write_one(root, write, fallbacks);
        if stop && written.failed() {
            all.push(written);
            break;
        }
        if is_first && errno.is_some_and(|errno| refuses_all(root, write, errno)) {
            let is_changed = all.iter().any(WriteResult::changed);
            let more = if is_changed { " more" } else { "" };
            let (path, detail) = (&write.path, written.detail.unwrap_or_default());
            let why = format!("nothing{more} was written after {path} was refused: {detail}");
            written.detail = Some(why.clone());
            end = Some(why);
        }
        is_first &= write.kind != Vector || written.outcome == Already;
        all.push(written);
    }
    all
}

/// Before Linux 6.12 only a write shows that a vector is kernel-managed.
pub(crate) fn has_new_managed(results: &[WriteResult], earlier: &[WriteResult]) -> bool {
    managed_irqs(results).any(|irq| managed_irqs(earlier).all(|known| known != irq))
}

fn managed_irqs(results: &[WriteResult]) -> impl Iterator<Item = u32> {
    let managed = results.iter().filter(|result| result.outcome == Managed);
    managed.map(|result| result.number)
}

/// `second` was planned after the writes of `first`.
pub(crate) fn merge(first: Vec<WriteResult>, second: Vec<WriteResult>) -> Vec<WriteResult> {
    let mut merged = first;
    for mut result in second {
        let same = (merged.iter_mut()).find(|earlier| earlier.place() == result.place());
        match same {
            Some(earlier) if result.outcome == Already && earlier.changed() => {}
            Some(earlier) => {
                result.was = earlier.was.take();
                *earlier = result;
            }
            None => merged.push(result),
        }
    }
    merged
}

pub(crate) fn not_performed(why: &str) -> String {
    format!("not written: {why}; fix: run again")
}

/// EPERM for a vector that cannot be moved concerns only that one; its file has no write bits.
fn refuses_all(root: &Root, write: &Write, errno: Errno) -> bool {
    write.kind == Vector
        && match errno {
            EROFS => true,
            EACCES | EPERM => has_write_bits(root, &write.path),
            _ => false,
        }
}

pub(crate) fn write_one(
    root: &Root,
    write: &Write,
    fallbacks: Fallbacks<'_>,
) -> (WriteResult, Option<Errno>) {
    let mut written = WriteResult::new(write);
    let Err(Unwritten(outcome, detail, errno)) = written.perform(root, write, fallbacks) else {
        return (written, None);
    };
    (written.outcome, written.detail) = (outcome, Some(detail));
    (written, errno)
}

struct Unwritten(Outcome, String, Option<Errno>);

impl Unwritten {
    fn refused(root: &Root, write: &Write, error: &io::Error) -> Self {
        let (outcome, detail) = refusal(root, write.kind, &write.path, &write.value, error);
        Self(outcome, detail, errno_of(error))
    }
}

impl From<FileError> for Unwritten {
    fn from(error: FileError) -> Self {
        Self(Refused, error.to_string(), None)
    }
}

impl WriteResult {
    fn new(write: &Write) -> Self {
        Self {
            kind: write.kind,
            path: write.path.clone(),
            value: write.value.clone(),
            interface: write.interface.to_string(),
            number: write.number,
            outcome: Already,
            was: None,
            fallback: None,
            effective: None,
            detail: None,
        }
    }

    pub(crate) fn not_done(write: &Write, why: impl Into<String>) -> Self {
        Self {
            outcome: Refused,
            detail: Some(why.into()),
            ..Self::new(write)
        }
    }

    fn perform(
        &mut self,
        root: &Root,
        write: &Write,
        fallbacks: Fallbacks<'_>,
    ) -> Result<(), Unwritten> {
        if write.kind == Vector && has_other_handler(root, fallbacks, write)? {
            let why = "its number is another IRQ's by now; fix: run again".to_owned();
            return Err(Unwritten(Vanished, why, None));
        }
        let was = read(root, write)?.trim().to_owned();
        self.was = Some(was.clone());
        if write.kind.same(&was, &write.value) {
            return Ok(());
        }
        let error = match write_patiently(root, write, &write.value) {
            Ok(()) => return self.read_back(root, write, &write.value),
            Err(error) => error,
        };
        if write.kind != Vector || errno_of(&error) != Some(ENOSPC) {
            return Err(Unwritten::refused(root, write, &error));
        }
        let words = errno_words(&error);
        let planned = CpuSet::parse_kernel_mask(&write.value).unwrap_or_default();
        let Some(fallbacks) = fallback_cpus(fallbacks, write) else {
            let none = format!(
                "{words}: no free interrupt vector on {}",
                cpu_list(&planned)
            );
            return Err(Unwritten(Refused, none, None));
        };
        for (cpu, domain, mask) in fallbacks {
            if !write.kind.same(&was, &mask) {
                match write_patiently(root, write, &mask) {
                    Ok(()) => self.read_back(root, write, &mask)?,
                    Err(error) if errno_of(&error) == Some(ENOSPC) => continue,
                    Err(error) => return Err(Unwritten::refused(root, write, &error)),
                }
            }
            self.detail = Some(format!(
                "{words}: CPU {planned} has no free interrupt vector; CPU {cpu} of the same {domain} is used as a fallback"
            ));
            self.fallback = Some(mask);
            return Ok(());
        }
        let none = format!(
            "{words}: no candidate CPU of the node has a free interrupt vector; fix: use fewer queues (nicpin apply \
             --channels N), or a wider --scope"
        );
        Err(Unwritten(Refused, none, None))
    }

    fn read_back(&mut self, root: &Root, write: &Write, value: &str) -> Result<(), Unwritten> {
        let text = read_patiently(root, write, value)?;
        if write.kind.same(&text, value) {
            self.effective = effective_elsewhere(root, write, value)?;
            self.outcome = self.effective.as_ref().map_or(Changed, |_| Pending);
            return Ok(());
        }
        let removed = removed_cpus(root, write.kind, &text, value).ok_or_else(|| {
            let held = text.trim();
            let why =
                format!("the kernel accepted the write, but the file holds {held}; fix: run again");
            Unwritten(Refused, why, None)
        })?;
        self.outcome = Changed;
        self.detail = Some(format!("the kernel removed {removed}"));
        Ok(())
    }
}

/// Whether the number of a vector was given to another handler after it was planned, as by `ethtool -L` of two cards.
/// Unknown before Linux 4.9, which has no files in `/sys/kernel/irq`.
fn has_other_handler(
    root: &Root,
    fallbacks: Fallbacks<'_>,
    write: &Write,
) -> Result<bool, FileError> {
    let interface = fallbacks.and_then(|(_, plan)| plan.interface(&write.interface));
    let mut vectors = interface.into_iter().flat_map(|found| &found.vectors);
    let Some(planned) = vectors.find(|vector| vector.irq == write.number) else {
        return Ok(false);
    };
    let handlers = Handlers::new(root)
        .of_file(write.number)?
        .unwrap_or_default();
    let is_planned = |handler: &String| planned.action.has(handler);
    Ok(!handlers.is_empty() && !handlers.iter().any(is_planned))
}

/// CPUs that the kernel's rules removed, and why; `None` if the file holds something else.
fn removed_cpus(root: &Root, kind: SettingKind, held: &str, written: &str) -> Option<String> {
    let filter = match kind.removed {
        Removed::Never => return None,
        Removed::Offline => CpuSet::new(),
        Removed::OfflineAndIsolated => rps_filter(root).ok()?,
    };
    let parse = |text| CpuSet::parse_kernel_mask(text).ok();
    let (held, written) = (parse(held)?, parse(written)?);
    let removed = written.difference(&held);
    let offline = removed.difference(&filter);
    if !held.is_subset(&written) || offline.intersects(&read_online(root).ok()?) {
        return None;
    }
    let filtered = removed.intersection(&filter);
    let mut reasons = [(filtered, "isolated or nohz_full"), (offline, "offline")]
        .into_iter()
        .filter(|(cpus, _)| !cpus.is_empty())
        .map(|(cpus, why)| format!("{}: {why}", cpu_list(&cpus)));
    Some(reasons.join("; "))
}

fn read(root: &Root, write: &Write) -> Result<String, Unwritten> {
    let vanished = "the file no longer exists; fix: run again";
    access::read(root, write)?.ok_or_else(|| Unwritten(Vanished, vanished.to_owned(), None))
}

const PAUSES: [Duration; 4] = [
    Duration::from_millis(1),
    Duration::from_millis(3),
    Duration::from_millis(10),
    Duration::from_millis(30),
];

fn patiently<T>(mut attempt: impl FnMut() -> T, is_final: impl Fn(&T) -> bool) -> T {
    for pause in PAUSES {
        let answer = attempt();
        if is_final(&answer) {
            return answer;
        }
        sleep(pause);
    }
    attempt()
}

/// Reads again if it differs: while an interrupt makes a pending move, a reader finds the old affinity for a moment
/// (`irq_move_masked_irq`).
fn read_patiently(root: &Root, write: &Write, value: &str) -> Result<String, Unwritten> {
    let is_final = |read: &Result<String, _>| {
        let differs = |text: &String| !write.kind.same(text, value);
        write.kind != Vector || !read.as_ref().is_ok_and(differs)
    };
    patiently(|| read(root, write), is_final)
}

fn write_patiently(root: &Root, write: &Write, value: &str) -> io::Result<()> {
    let is_busy = |error: &io::Error| matches!(errno_of(error), Some(EBUSY | EAGAIN | EINTR));
    patiently(
        || access::set(root, write, value),
        |written| !written.as_ref().is_err_and(is_busy),
    )
}

fn effective_elsewhere(
    root: &Root,
    write: &Write,
    value: &str,
) -> Result<Option<CpuSet>, FileError> {
    if write.kind != Vector {
        return Ok(None);
    }
    // The value is a mask that was made here.
    let planned = CpuSet::parse_kernel_mask(value).unwrap_or_default();
    let effective = read_effective(root, write.number)?;
    Ok(effective.filter(|effective| !effective.is_subset(&planned)))
}

/// Facts for another CPU if a vector's own has no free interrupt vector; `None`: it stays.
type Fallbacks<'a> = Option<(&'a Topology, &'a Plan)>;

/// CPUs to try for a vector that is planned on one CPU, each with what it shares with that and the text to write. None
/// for a mask of several CPUs: the kernel has tried all of them.
fn fallback_cpus(
    fallbacks: Fallbacks<'_>,
    write: &Write,
) -> Option<Vec<(u32, &'static str, String)>> {
    let (topology, plan) = fallbacks?;
    let interface = plan.interface(&write.interface)?;
    let MaskFile {
        cpus: mask, width, ..
    } = MaskFile::parse(&write.value).ok()?;
    let planned = mask.only()?;
    let group_of =
        |groups: &[CpuSet], cpu| groups.iter().find(|group| group.contains(cpu)).cloned();
    let node = topology.node_of(planned);
    let node = node.map_or(topology.online.clone(), |node| topology.cpus_near(node));
    let l3 = group_of(&topology.l3_domains, planned).unwrap_or_default();
    let mut cpus: Vec<u32> = interface
        .candidates
        .intersection(&node)
        .difference(&mask)
        .iter()
        .collect();
    // First threads before siblings, then by number, starting after the planned CPU and wrapping around.
    cpus.sort_unstable_by_key(|&cpu| {
        let sibling = group_of(&topology.cores, cpu).and_then(|core| core.first()) != Some(cpu);
        (!l3.contains(cpu), sibling, cpu < planned, cpu)
    });
    let fallback = |cpu| {
        let domain = if l3.contains(cpu) {
            "cache domain"
        } else {
            "node"
        };
        Some((cpu, domain, CpuSet::single(cpu).to_mask(width)?))
    };
    Some(cpus.into_iter().filter_map(fallback).collect())
}
