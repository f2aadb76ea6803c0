//! The state of an interface, and how it follows from the vectors and the gain of the plan.

use serde::{Deserialize, Serialize};

use crate::machine::{Interface, Machine};
use crate::plan::PlannedInterface;
use crate::report::difference::Gain;
use crate::report::state::InterfaceState::{
    Crowded, Drifted, Equivalent, Isolated, Pending, Remote, Unproven, Unsupported, Untuned,
};
use crate::report::vectors::VectorState::{Differs, Elsewhere};
use crate::report::vectors::{VectorState, VectorStatus};

/// The states, best first, as [`Self::ROWS`] describes them. A state is bad only if the plan improves something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InterfaceState {
    Ok,
    Unsupported,
    Unproven,
    Equivalent,
    Pending,
    Untuned,
    Crowded,
    Drifted,
    Remote,
    Isolated,
    Unknown,
}

pub struct StateRow {
    pub state: InterfaceState,
    pub name: &'static str,
    /// The number in metrics. It never changes, since alerts compare it; a new state has one between those of its
    /// neighbours.
    pub number: f32,
    pub means: &'static str,
    /// The exit code of `check`.
    pub check: &'static str,
}

impl InterfaceState {
    /// One row for each state, best first.
    pub const ROWS: [StateRow; 11] = [
        StateRow {
            state: Self::Ok,
            name: "ok",
            number: 0.0,
            means: "as planned, and in a second of watching (`--seconds N`) all interrupts arrived where planned",
            check: "0",
        },
        StateRow {
            state: Self::Unsupported,
            name: "unsupported",
            number: 1.0,
            means: "its IRQs cannot be moved, which queues they serve is not known, the policy skips it, or it has no queue IRQs. Counted \
         apart, by name; with a selector, the latter is `unknown`",
            check: "0",
        },
        StateRow {
            state: Self::Unproven,
            name: "unproven",
            number: 2.0,
            means: "as planned; no interrupt was seen. `check`, trees and captures watch none",
            check: "0",
        },
        StateRow {
            state: Self::Equivalent,
            name: "equivalent",
            number: 3.0,
            means: "settings differ, and the plan makes nothing better. `apply` and `watch` still restore the exact plan",
            check: "0, with `--exact` 2",
        },
        StateRow {
            state: Self::Pending,
            name: "pending",
            number: 4.0,
            means: "as planned; the kernel moves IRQs at their next interrupt",
            check: "0",
        },
        StateRow {
            state: Self::Untuned,
            name: "untuned",
            number: 5.0,
            means: "settings differ, and the plan makes a measure better",
            check: "2",
        },
        StateRow {
            state: Self::Crowded,
            name: "crowded",
            number: 6.0,
            means: "the busiest core with one of its queues has at least twice as many queues as the busiest one would have as planned",
            check: "2",
        },
        StateRow {
            state: Self::Drifted,
            name: "drifted",
            number: 7.0,
            means: "something changed what apply had set, and a measure is worse for it",
            check: "2",
        },
        StateRow {
            state: Self::Remote,
            name: "remote",
            number: 8.0,
            means: "queue IRQs are on another node, and the plan moves them to the local one",
            check: "2",
        },
        StateRow {
            state: Self::Isolated,
            name: "isolated",
            number: 9.0,
            means: "IRQs are on isolated CPUs, and the plan moves them off these",
            check: "2",
        },
        StateRow {
            state: Self::Unknown,
            name: "unknown",
            number: 10.0,
            means: "something that it needs could not be read",
            check: "1",
        },
    ];

    /// The word in JSON.
    pub fn name(self) -> &'static str {
        Self::ROWS[self as usize].name
    }

    /// The number in metrics.
    pub fn number(self) -> f32 {
        Self::ROWS[self as usize].number
    }

    /// Whether the state needs attention now.
    pub fn is_alarming(self) -> bool {
        self >= Self::Drifted
    }

    /// Whether the plan would make something better.
    pub fn differs(self) -> bool {
        self >= Self::Untuned && self != Self::Unknown
    }

    /// The worst state. Unsupported interfaces count only if there are no others.
    pub fn worst(states: impl Iterator<Item = Self>) -> Option<Self> {
        states.max_by_key(|&state| (state != Self::Unsupported, state))
    }
}

/// `differ`: the number of settings that differ, a change of channels included. `drifted`: those that have changed since
/// apply set them.
pub(super) fn state(
    machine: &Machine,
    read: &Interface,
    interface: &PlannedInterface,
    vectors: &[VectorStatus],
    [differ, drifted]: [usize; 2],
    channels_asked: bool,
    gain: &Gain,
) -> InterfaceState {
    let any = |holds: &dyn Fn(&VectorStatus) -> bool| vectors.iter().any(holds);
    let topology = &machine.topology;
    let apart = topology.isolated_or_nohz().union(&interface.exclusive);
    let leaves_isolated = |row: &VectorStatus| {
        let planned = row.planned.as_ref();
        row.on_isolated && planned.is_some_and(|planned| !planned.intersects(&apart))
    };
    let comes_home =
        |row: &VectorStatus| row.is_active() && row.local == Some(false) && row.planned_local;
    let netdev = read.netdev.as_ref();
    let may_be_silent = |queue| netdev.is_some_and(|netdev| netdev.may_be_silent(queue));
    let [now, as_planned] = gain.busiest;
    // Effects of other interfaces' settings are in the reports of those.
    let is_worse = differ > 0 && gain.is_better();
    // With several CPUs in an affinity, the IRQ's CPU is unknown unless the kernel reports it.
    let is_measured = !any(&|row| row.is_active() && !row.is_known && row.now.len() > 1);
    if any(&|row| row.state == Differs && leaves_isolated(row)) {
        Isolated
    } else if any(&|row| row.state == Differs && comes_home(row)) {
        Remote
    } else if gain.made_worse && drifted > 0 {
        Drifted
    } else if is_worse && is_measured && now >= 2 * as_planned.max(1) {
        Crowded
    } else if is_worse || channels_asked || differ > 0 && !is_measured {
        Untuned
    } else if !interface.is_judged() && topology.online.len() > 1 || interface.is_skipped() {
        Unsupported
    } else if any(&|row| matches!(row.state, VectorState::Pending | Elsewhere)) {
        Pending
    } else if differ > 0 {
        Equivalent
    } else if any(&|row| row.is_active() && row.has_arrived())
        || any(&VectorStatus::is_active)
            && !any(&|row| row.is_active() && !row.queue.is_some_and(may_be_silent))
    {
        InterfaceState::Ok
    } else {
        Unproven
    }
}
