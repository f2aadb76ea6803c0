//! What apply does about irqbalance, and what restore undoes: IRQs that it is told to leave alone, or its service
//! stopped. What was done is kept in `/run/nicpin/irqbalance.json`, written before it is done: restore takes back
//! exactly that, and `nicpin irqbalance-policy` answers by it where it cannot see the cards.

mod kept;
mod service;
mod socket;

use std::collections::BTreeSet;

use crate::apply::state::StateError;
use crate::machine::Machine;
use crate::plan::{IrqbalancePlan, Note, Plan};
use crate::policy::Balancer;
use crate::report::outcome::IrqbalanceAction;
use crate::report::outcome::IrqbalanceOutcome;
use crate::root::Root;

pub use kept::{IrqbalanceRecord, RecordedIrq};
pub use socket::{Setup, SocketError};

use socket::Daemon;

fn failed_because(pid: Option<i32>, irqs: usize, error: &Failure) -> IrqbalanceOutcome {
    let done = match error {
        Failure::Socket(SocketError::Copy) => IrqbalanceAction::NotTold,
        _ => IrqbalanceAction::Refused,
    };
    IrqbalanceOutcome { detail: Some(error.to_string()), ..IrqbalanceOutcome::new(pid, done, false, irqs) }
}

/// Why not.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Socket(#[from] SocketError),
    #[error("{0}")]
    Service(String),
    #[error("{0}")]
    NotKept(#[from] StateError),
    #[error("it was told, and says that it leaves only {held} of {asked} IRQs alone; run again")]
    NotHeld { held: usize, asked: usize },
}

/// irqbalance runs, and the policy is not to write while it does.
#[derive(Debug, thiserror::Error)]
#[error(
    "irqbalance runs (process {pid}) and would move what is written; nothing was written: stop it, or give --irqbalance \
     ban or stop"
)]
pub struct RunningError {
    pid: i32,
}

/// Refuses to go on where the plan says so.
pub fn may_write(plan: &Plan) -> Result<(), RunningError> {
    match &plan.irqbalance {
        Some(IrqbalancePlan { action: Balancer::Refuse, pid, .. }) => Err(RunningError { pid: *pid }),
        _ => Ok(()),
    }
}

/// Does what the plan says, before its writes: a vector that irqbalance still has could be moved between its write and
/// its ban. `None` where there is nothing to do.
pub fn before_writes(root: &Root, machine: &Machine, plan: &Plan) -> Option<IrqbalanceOutcome> {
    let balancer = plan.irqbalance.as_ref().filter(|balancer| !balancer.irqs.is_empty())?;
    let (pid, count) = (Some(balancer.pid), balancer.irqs.len());
    let done = match balancer.action {
        Balancer::Ban => ban(root, machine, plan, balancer),
        Balancer::Stop => stop(root, balancer.pid),
        Balancer::Ignore | Balancer::Refuse => return None,
    };
    Some(match done {
        Ok(done) => done,
        // Its policy script holds even where its socket does not answer.
        Err(error @ Failure::Socket(_)) if balancer.lasts && balancer.action == Balancer::Ban => {
            let detail = format!("{error}; its policy script asks nicpin when it starts");
            IrqbalanceOutcome {
                detail: Some(detail),
                ..IrqbalanceOutcome::new(pid, IrqbalanceAction::NotTold, false, count)
            }
        }
        Err(error) => failed_because(pid, count, &error),
    })
}

/// Corrects what a plan that ignores irqbalance says of it: what an earlier apply has told it still holds, and a plan
/// is made without asking.
pub(crate) fn note_earlier_bans(root: &Root, plan: &mut Plan) {
    let balancer = plan.irqbalance.as_ref().filter(|balancer| balancer.action == Balancer::Ignore);
    let Some(IrqbalancePlan { pid, irqs, .. }) = balancer else { return };
    if !IrqbalanceRecord::load(root).is_ok_and(|kept| kept.knows(root, *pid)) {
        return;
    }
    let Ok(now) = Daemon::new(root, *pid).setup(&BTreeSet::new()) else { return };
    let left_alone = irqs.iter().filter(|irq| now.banned.contains(irq)).count();
    let running = |note: &&mut Note| matches!(note, Note::IrqbalanceRunning { .. });
    if let Some(Note::IrqbalanceRunning { left_alone: holds, .. }) = plan.notes.iter_mut().find(running) {
        *holds = left_alone;
    }
}

fn ban(
    root: &Root,
    machine: &Machine,
    plan: &Plan,
    balancer: &IrqbalancePlan,
) -> Result<IrqbalanceOutcome, Failure> {
    let daemon = Daemon::new(root, balancer.pid);
    let planned: BTreeSet<u32> = balancer.irqs.iter().copied().collect();
    let mut kept = IrqbalanceRecord::load(root)?;
    kept.is_about(root, balancer.pid);
    // IRQ numbers that have gone to other vectors since are none of nicpin's business any more.
    let stale = kept.forget_stale(machine);
    let likely = planned.union(&kept.banned).copied().collect();
    let now = daemon.setup(&likely)?.banned;
    let list: BTreeSet<u32> = now.difference(&stale).copied().chain(planned.iter().copied()).collect();
    let added: BTreeSet<u32> = planned.difference(&now).copied().collect();
    kept.banned.extend(&added);
    kept.plan(plan);
    kept.save(root)?;
    if list != now {
        if !list.is_subset(&likely) {
            // Others have had it leave IRQs alone, which have to be named again: is there room for all?
            daemon.setup(&list)?;
        }
        daemon.ban(&list)?;
        let held = daemon.setup(&BTreeSet::new())?.banned;
        let held = list.intersection(&held).count();
        if held < list.len() {
            return Err(Failure::NotHeld { held, asked: list.len() });
        }
    }
    Ok(IrqbalanceOutcome::new(Some(balancer.pid), IrqbalanceAction::Banned, list != now, planned.len()))
}

fn stop(root: &Root, pid: i32) -> Result<IrqbalanceOutcome, Failure> {
    if !root.is_real() {
        return Err(SocketError::Copy.into());
    }
    let mut kept = IrqbalanceRecord::load(root)?;
    kept.stopped = true;
    kept.save(root)?;
    service::stop(root).map_err(Failure::Service)?;
    Ok(IrqbalanceOutcome::new(Some(pid), IrqbalanceAction::Stopped, true, 0))
}

/// Undoes what applies have done about irqbalance since it was so, or at all; `None` where they did nothing.
pub fn back_to(root: &Root, before: &IrqbalanceRecord) -> Option<IrqbalanceOutcome> {
    let (pid, undone) = match IrqbalanceRecord::load(root) {
        Ok(kept) if kept == *before => return None,
        Ok(kept) => {
            let pid = service::running(root);
            (pid, undo(root, &kept, before, pid))
        }
        Err(error) => (None, Err(error.into())),
    };
    Some(undone.unwrap_or_else(|error| failed_because(pid, 0, &error)))
}

/// The IRQs that this irqbalance was told to leave alone; none where that cannot be told.
pub fn told(root: &Root, pid: i32) -> BTreeSet<u32> {
    match IrqbalanceRecord::load(root) {
        Ok(kept) if kept.knows(root, pid) => kept.planned.into_keys().collect(),
        _ => BTreeSet::new(),
    }
}

/// Whether there is something to take back.
pub fn has_done_something(root: &Root) -> bool {
    IrqbalanceRecord::load(root).map_or(true, |kept| kept != IrqbalanceRecord::default())
}

fn undo(
    root: &Root,
    kept: &IrqbalanceRecord,
    before: &IrqbalanceRecord,
    pid: Option<i32>,
) -> Result<IrqbalanceOutcome, Failure> {
    let done = match pid {
        None if kept.stopped && !before.stopped => {
            service::start(root).map_err(Failure::Service)?;
            IrqbalanceOutcome::new(service::running(root), IrqbalanceAction::Started, true, 0)
        }
        Some(pid) if kept.knows(root, pid) => {
            let daemon = Daemon::new(root, pid);
            let now = daemon.setup(&BTreeSet::new())?.banned;
            let list: BTreeSet<u32> = now
                .iter()
                .filter(|irq| !kept.banned.contains(irq) || before.banned.contains(irq))
                .copied()
                .collect();
            let back = now.len() - list.len();
            if back > 0 {
                daemon.setup(&list)?;
                daemon.ban(&list)?;
                let held = daemon.setup(&BTreeSet::new())?.banned;
                if held != list {
                    return Err(Failure::NotHeld {
                        held: held.intersection(&list).count(),
                        asked: list.len(),
                    });
                }
            }
            IrqbalanceOutcome::new(Some(pid), IrqbalanceAction::Unbanned, back > 0, back)
        }
        // It was restarted, or is gone: it knows nothing of what nicpin told it.
        pid => IrqbalanceOutcome::new(pid, IrqbalanceAction::Unbanned, false, 0),
    };
    before.save(root)?;
    Ok(done)
}
