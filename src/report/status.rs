//! The state of a machine, what applying the plan would gain, and whether other tools will change it. The JSON form is
//! `nicpin.status/1`.

use std::collections::BTreeSet;

use itertools::Itertools as _;
use serde::Serialize;

use crate::machine::Machine;
use crate::machine::sample::Delta;
use crate::plan::Note::{IrqbalanceRunning, IrqbalanceUnknown};
use crate::plan::{HostSummary, IrqbalancePlan, Note, Plan, Score};
use crate::policy::Balancer;
use crate::report::check::Check;
use crate::report::difference::moves_without_gain;
use crate::report::interface::{InterfaceReport, InterfaceState};
use crate::report::status::IrqbalanceState::{Absent, AsksNicpin, Banned, Moves, Unknown};
use crate::report::watcher::Watcher;

#[derive(Debug, Serialize)]
#[serde(tag = "schema", rename = "nicpin.status/1")]
pub struct Status {
    /// `None` without interfaces.
    pub state: Option<InterfaceState>,
    pub hash: String,
    pub same: usize,
    pub differ: usize,
    /// IRQs that are not on their planned CPUs, if their move would gain nothing.
    #[serde(skip)]
    pub moves_without_gain: usize,
    /// The kernel refused all that differs at the last apply.
    #[serde(skip)]
    pub refused: bool,
    /// `None` if interrupts were not watched.
    pub seconds: Option<f64>,
    /// Whether there is a record of an apply since boot.
    pub applied: bool,
    pub host: HostSummary,
    pub score: Score,
    pub score_now: Score,
    pub interfaces: Vec<InterfaceReport>,
    pub not_judged: Vec<String>,
    pub irqbalance: IrqbalanceStatus,
    pub notes: Vec<Note>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub watcher: Option<Watcher>,
}

#[derive(Debug, Serialize)]
pub struct IrqbalanceStatus {
    /// `None` if irqbalance is not running, or that could not be determined.
    pub pid: Option<i32>,
    #[serde(flatten)]
    pub state: IrqbalanceState,
    pub irqs: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<Note>,
}

#[derive(Debug, Clone, Copy, Serialize)]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum IrqbalanceState {
    Absent,
    Unknown,
    /// The policy script of irqbalance asks which IRQs to ban.
    AsksNicpin,
    /// irqbalance leaves the IRQs unchanged on request, until it restarts.
    Banned,
    Moves {
        /// Whether the policy has apply make the request.
        fixed_by_apply: bool,
    },
}

impl Status {
    /// Queues on the busiest core, if that is one figure for all interfaces and not one for each.
    pub fn shared_max_per_core(&self) -> Option<usize> {
        let rows = self.interfaces.iter();
        let most = rows
            .clone()
            .map(|interface| interface.max_per_core)
            .all_equal_value()
            .ok()?;
        rows.map(|interface| interface.own_per_core)
            .any(|own| own != most)
            .then_some(most)
    }

    /// `watched`: as for the check. `banned`: IRQs that irqbalance bans on request.
    pub fn new(
        machine: &Machine,
        plan: &Plan,
        check: Check,
        watched: Option<&Delta>,
        banned: &BTreeSet<u32>,
    ) -> Self {
        let of_irqbalance =
            |note: &Note| matches!(note, IrqbalanceRunning { .. } | IrqbalanceUnknown { .. });
        let mut notes = plan.notes.clone();
        notes.retain(|note| !of_irqbalance(note));
        let note = plan.notes.iter().find(|note| of_irqbalance(note));
        if machine.sockets_poll {
            notes.push(Note::SocketsPoll);
        }
        if let Some(watched) = watched.filter(|watched| !watched.cpus_changed.is_empty()) {
            notes.push(Note::CpusChanged {
                cpus: watched.cpus_changed.clone(),
            });
        }
        let of_record = |note: &&Note| matches!(note, Note::RecordUnreadable { .. });
        let mut unknown = check.unknown.iter().map(|about| &about.note);
        notes.extend(unknown.find(of_record).cloned());
        Self {
            state: check.state,
            same: check.same,
            differ: check.differ(),
            moves_without_gain: moves_without_gain(machine, plan),
            refused: check.is_refused(),
            seconds: watched.map(Delta::seconds),
            applied: check.applied,
            score: plan.score.clone(),
            score_now: plan.score_now.clone(),
            hash: check.hash,
            host: check.host,
            interfaces: check.interfaces,
            not_judged: check.not_judged,
            irqbalance: irqbalance(plan, banned, note.cloned()),
            notes,
            watcher: None,
        }
    }
}

fn irqbalance(plan: &Plan, banned: &BTreeSet<u32>, note: Option<Note>) -> IrqbalanceStatus {
    // If irqbalance is ignored, the note has its answer.
    let is_banned = |running: &IrqbalancePlan| match &note {
        Some(IrqbalanceRunning {
            left_alone,
            action: Balancer::Ignore,
            ..
        }) => *left_alone == running.irqs.len(),
        _ => running.irqs.iter().all(|irq| banned.contains(irq)),
    };
    let state = match &plan.irqbalance {
        None if note.is_some() => Unknown,
        None => Absent,
        Some(running) if running.lasts => AsksNicpin,
        Some(running) if is_banned(running) => Banned,
        Some(running) => Moves {
            fixed_by_apply: running.action == Balancer::Ban,
        },
    };
    let running = plan.irqbalance.as_ref();
    IrqbalanceStatus {
        pid: running.map(|running| running.pid),
        state,
        irqs: running.map_or(0, |running| running.irqs.len()),
        note,
    }
}
