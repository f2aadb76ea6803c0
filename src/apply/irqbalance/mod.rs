//! What apply does about irqbalance and restore undoes: it bans IRQs over irqbalance's socket, or stops its service.
//! `/run/nicpin/irqbalance.json` records this before it is done: restore undoes exactly that, and
//! `nicpin irqbalance-policy` answers from it where it cannot read the devices.

mod kept;
mod service;
mod socket;

use std::collections::BTreeSet;

use crate::apply::state::StateError;
use crate::machine::Machine;
use crate::plan::{IrqbalancePlan, Note, Plan};
use crate::policy::Balancer;
use crate::report::outcome::{IrqbalanceAction, IrqbalanceOutcome};
use crate::root::Root;

pub use kept::{IrqbalanceRecord, RecordedIrq};
pub use socket::{Setup, SocketError};

use socket::{Daemon, SHORT_TIMEOUT, TIMEOUT};

fn failed_because(pid: Option<i32>, irqs: usize, error: &Failure) -> IrqbalanceOutcome {
    let done = match error {
        Failure::Socket(SocketError::Copy) => IrqbalanceAction::NotRequested,
        _ => IrqbalanceAction::Refused,
    };
    IrqbalanceOutcome {
        detail: Some(error.to_string()),
        ..IrqbalanceOutcome::new(pid, done, false, irqs)
    }
}

/// Why nothing could be done about irqbalance.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Socket(#[from] SocketError),
    #[error("{0}")]
    Service(String),
    #[error("{0}")]
    NotKept(#[from] StateError),
    #[error("irqbalance reports only {held} of {requested} IRQs as banned; fix: run again")]
    NotHeld { held: usize, requested: usize },
}

/// irqbalance runs, or may run, and the policy refuses to write while it does.
#[derive(Debug, thiserror::Error)]
#[error("{who}; nothing was written: {fix}")]
pub struct RunningError {
    who: String,
    fix: &'static str,
}

/// An error if the plan refuses to write while irqbalance runs.
pub fn may_write(plan: &Plan) -> Result<(), RunningError> {
    if let Some(IrqbalancePlan {
        action: Balancer::Refuse,
        pid,
        ..
    }) = &plan.irqbalance
    {
        return Err(RunningError {
            who: format!("irqbalance runs (process {pid}) and would change the affinities again"),
            fix: "stop it, or use --irqbalance ban or stop",
        });
    }
    let hidden = plan.notes.iter().find_map(|note| match note {
        Note::IrqbalanceUnknown {
            hidden,
            action: Balancer::Refuse,
        } => Some(hidden),
        _ => None,
    });
    hidden.map_or(Ok(()), |hidden| {
        Err(RunningError {
            who: format!(
                "whether irqbalance runs could not be determined, because {hidden} cannot be read"
            ),
            fix: "run as root, or use --irqbalance ban or ignore",
        })
    })
}

/// Does what the plan says about irqbalance, before its writes: irqbalance could move a vector between its write and
/// its ban. `None` where there is nothing to do. `repeats` as in the options of an apply.
pub fn before_writes(
    root: &Root,
    machine: &Machine,
    plan: &Plan,
    repeats: bool,
) -> Option<IrqbalanceOutcome> {
    let balancer = plan
        .irqbalance
        .as_ref()
        .filter(|balancer| !balancer.irqs.is_empty())?;
    let (pid, count) = (Some(balancer.pid), balancer.irqs.len());
    let banned_before = banned_by_nicpin(root, balancer.pid);
    let done = match balancer.action {
        Balancer::Ban => {
            let time = if repeats { SHORT_TIMEOUT } else { TIMEOUT };
            ban(
                root,
                machine,
                plan,
                balancer,
                &Daemon::within(time, root, balancer.pid),
            )
        }
        Balancer::Stop => stop(root, balancer.pid),
        Balancer::Ignore | Balancer::Refuse => return None,
    };
    Some(match done {
        Ok(done) => done,
        // It scans the machine, or is stopped. A later apply looks whether the bans still hold.
        Err(Failure::Socket(SocketError::Silent { .. }))
            if repeats && balancer.irqs.iter().all(|irq| banned_before.contains(irq)) =>
        {
            IrqbalanceOutcome::new(pid, IrqbalanceAction::Banned, false, count)
        }
        // The policy script works even where the socket does not answer.
        Err(error @ Failure::Socket(_)) if balancer.lasts && balancer.action == Balancer::Ban => {
            let detail = format!("{error}; its policy script asks nicpin when irqbalance starts");
            IrqbalanceOutcome {
                detail: Some(detail),
                ..IrqbalanceOutcome::new(pid, IrqbalanceAction::NotRequested, false, count)
            }
        }
        Err(error) => failed_because(pid, count, &error),
    })
}

/// Corrects the note of a plan that ignores irqbalance: bans of an earlier apply still hold, and planning does not ask
/// irqbalance.
pub(crate) fn note_earlier_bans(root: &Root, plan: &mut Plan) {
    let balancer = plan
        .irqbalance
        .as_ref()
        .filter(|balancer| balancer.action == Balancer::Ignore);
    let Some(IrqbalancePlan { pid, irqs, .. }) = balancer else {
        return;
    };
    if !IrqbalanceRecord::load(root).is_ok_and(|record| record.is_of(root, *pid)) {
        return;
    }
    let Ok(now) = Daemon::new(root, *pid).setup(&BTreeSet::new()) else {
        return;
    };
    let left_alone = irqs.iter().filter(|irq| now.banned.contains(irq)).count();
    let running = |note: &&mut Note| matches!(note, Note::IrqbalanceRunning { .. });
    if let Some(Note::IrqbalanceRunning {
        left_alone: noted, ..
    }) = plan.notes.iter_mut().find(running)
    {
        *noted = left_alone;
    }
}

fn ban(
    root: &Root,
    machine: &Machine,
    plan: &Plan,
    balancer: &IrqbalancePlan,
    daemon: &Daemon<'_>,
) -> Result<IrqbalanceOutcome, Failure> {
    let planned: BTreeSet<u32> = balancer.irqs.iter().copied().collect();
    let mut record = IrqbalanceRecord::load(root)?;
    record.set_process(root, balancer.pid);
    // IRQ numbers that belong to other vectors by now are not nicpin's to ban.
    let stale = record.remove_stale(machine);
    let expected = planned.union(&record.banned).copied().collect();
    let now = daemon.setup(&expected)?.banned;
    let list: BTreeSet<u32> = now
        .difference(&stale)
        .copied()
        .chain(planned.iter().copied())
        .collect();
    let added: BTreeSet<u32> = planned.difference(&now).copied().collect();
    record.banned.extend(&added);
    record.add_plan(plan);
    record.save(root)?;
    if list != now {
        if !list.is_subset(&expected) {
            // Others have banned IRQs too, which have to be named again: check that the longer request can be read.
            daemon.setup(&list)?;
        }
        daemon.ban(&list)?;
        let held = daemon.setup(&BTreeSet::new())?.banned;
        let held = list.intersection(&held).count();
        if held < list.len() {
            return Err(Failure::NotHeld {
                held,
                requested: list.len(),
            });
        }
    }
    Ok(IrqbalanceOutcome::new(
        Some(balancer.pid),
        IrqbalanceAction::Banned,
        list != now,
        planned.len(),
    ))
}

fn stop(root: &Root, pid: i32) -> Result<IrqbalanceOutcome, Failure> {
    if !root.is_real() {
        return Err(SocketError::Copy.into());
    }
    let mut record = IrqbalanceRecord::load(root)?;
    record.stopped = true;
    record.save(root)?;
    service::stop(root).map_err(Failure::Service)?;
    Ok(IrqbalanceOutcome::new(
        Some(pid),
        IrqbalanceAction::Stopped,
        true,
        0,
    ))
}

/// Undoes what was done about irqbalance since `before`; `None` where nothing was done.
pub fn undo_since(root: &Root, before: &IrqbalanceRecord) -> Option<IrqbalanceOutcome> {
    let (pid, undone) = match IrqbalanceRecord::load(root) {
        Ok(record) if record == *before => return None,
        Ok(record) => {
            let pid = service::running(root);
            (pid, undo(root, &record, before, pid))
        }
        Err(error) => (None, Err(error.into())),
    };
    Some(undone.unwrap_or_else(|error| failed_because(pid, 0, &error)))
}

/// The planned IRQs that nicpin banned from this irqbalance; none where the record cannot be read.
pub fn banned_by_nicpin(root: &Root, pid: i32) -> BTreeSet<u32> {
    match IrqbalanceRecord::load(root) {
        Ok(record) if record.is_of(root, pid) => record.planned.into_keys().collect(),
        _ => BTreeSet::new(),
    }
}

/// Whether there is something to undo, or the record cannot be read.
pub fn has_something_to_undo(root: &Root) -> bool {
    IrqbalanceRecord::load(root).map_or(true, |record| record != IrqbalanceRecord::default())
}

fn undo(
    root: &Root,
    record: &IrqbalanceRecord,
    before: &IrqbalanceRecord,
    pid: Option<i32>,
) -> Result<IrqbalanceOutcome, Failure> {
    let done = match pid {
        None if record.stopped && !before.stopped => {
            service::start(root).map_err(Failure::Service)?;
            IrqbalanceOutcome::new(service::running(root), IrqbalanceAction::Started, true, 0)
        }
        Some(pid) if record.is_of(root, pid) => {
            let daemon = Daemon::new(root, pid);
            let now = daemon.setup(&BTreeSet::new())?.banned;
            let list: BTreeSet<u32> = now
                .iter()
                .filter(|irq| !record.banned.contains(irq) || before.banned.contains(irq))
                .copied()
                .collect();
            let unbanned = now.len() - list.len();
            if unbanned > 0 {
                daemon.setup(&list)?;
                daemon.ban(&list)?;
                let held = daemon.setup(&BTreeSet::new())?.banned;
                if held != list {
                    return Err(Failure::NotHeld {
                        held: held.intersection(&list).count(),
                        requested: list.len(),
                    });
                }
            }
            IrqbalanceOutcome::new(
                Some(pid),
                IrqbalanceAction::Unbanned,
                unbanned > 0,
                unbanned,
            )
        }
        // It was restarted or has ended, and its bans with it.
        pid => IrqbalanceOutcome::new(pid, IrqbalanceAction::Unbanned, false, 0),
    };
    before.save(root)?;
    Ok(done)
}
