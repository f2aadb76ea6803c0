//! The state of an interface: its colour, and the reason in words.

use itertools::Itertools as _;

use crate::screen::page::Tone::{self, Alarm, Good, Plain, Warning};
use crate::screen::{count, is_skipped, ranges, text_if};
use nicpin::report::interface::InterfaceState::{
    Crowded, Drifted, Equivalent, Isolated, Remote, Unknown, Unproven, Unsupported, Untuned,
};
use nicpin::report::interface::{InterfaceReport, InterfaceState as State};
use nicpin::report::vectors::VectorState::{self, Elsewhere};
use nicpin::report::vectors::VectorStatus;

pub(crate) fn tone(state: State) -> Tone {
    match state {
        State::Ok => Good,
        Crowded => Warning,
        state if state.is_alarming() => Alarm,
        _ => Plain,
    }
}

/// Returns an empty text if the state says all. `more`: with the facts that a line of `status` has in other columns.
pub(crate) fn why(interface: &InterfaceReport, more: bool) -> String {
    let (most, planned) = (interface.max_per_core, interface.max_per_core_planned);
    match interface.state {
        Isolated => {
            let irqs = count(interface.on_isolated, "IRQ");
            irqs + text_if(more, " on isolated CPUs")
        }
        Remote => {
            let active = interface.vectors.iter().filter(|row| row.is_active());
            let remote = active.clone().filter(|row| row.local == Some(false));
            let irqs = remote.clone().map(|row| row.irq).unique().count();
            let queues = remote.clone().map(VectorStatus::queue_id).unique().count();
            let all = active.map(VectorStatus::queue_id).unique().count();
            let on = match ranges(remote.filter_map(|row| row.node)) {
                // On CPUs of several nodes, or of none that is known.
                none if none.is_empty() => "elsewhere".into(),
                nodes if nodes.contains([',', '-']) => format!("on nodes {nodes}"),
                node => format!("on node {node}"),
            };
            if !more {
                return format!("{} {on}", count(irqs, "IRQ"));
            }
            // IRQs whose queues are unknown, or that serve other interfaces, may be more than the queues.
            let of_all = if all > interface.queues {
                count(all, "IRQ")
            } else {
                count(interface.queues, "queue")
            };
            format!("{queues} of {of_all} {on}")
        }
        Drifted => format!("{} changed", interface.drifted),
        Crowded if more => format!("{} on a core, {planned} planned", count(most, "queue")),
        Crowded => format!("{most} on a core"),
        Untuned => count(interface.differ, "setting"),
        State::Pending => count(moving(interface), "IRQ") + " to move",
        Equivalent => format!("{} differ", interface.differ),
        Unsupported if is_skipped(interface) => "skipped by the policy".into(),
        Unsupported if interface.unmovable > 0 => "fixed IRQs".into(),
        Unsupported if interface.notes.is_empty() => "no IRQs".into(),
        Unsupported | Unknown => "see the note".into(),
        Unproven if interface.proven.is_none() => "not watched".into(),
        Unproven => "no interrupt".into(),
        State::Ok => String::new(),
    }
}

pub(crate) fn moving(interface: &InterfaceReport) -> usize {
    let irqs = |state| having(interface, state).count();
    irqs(VectorState::Pending) + irqs(Elsewhere)
}

pub(super) fn having(
    interface: &InterfaceReport,
    state: VectorState,
) -> impl Iterator<Item = &VectorStatus> {
    interface
        .vectors
        .iter()
        .filter(move |row| row.state == state)
}
