//! Interfaces without a plan, as the commands tell of them.

use crate::cli::SelectArgs;
use crate::plan::{Note, Plan};
use crate::report::check::Unplannable;

/// Selected interfaces that cannot be planned, with the reason.
pub(super) fn unplannable(select: &SelectArgs, plan: &Plan) -> Vec<Unplannable> {
    if select.selectors.is_empty() { Vec::new() } else { Unplannable::of(plan, Note::is_unplannable) }
}

/// Interfaces whose state cannot be determined: selected ones that cannot be planned, and without selectors all those
/// whose vectors cannot be read.
pub(super) fn undetermined(select: &SelectArgs, plan: &Plan) -> Vec<Unplannable> {
    if select.selectors.is_empty() {
        Unplannable::of(plan, |note| matches!(note, Note::VectorsUnreadable { .. }))
    } else {
        unplannable(select, plan)
    }
}

/// Without selectors: interfaces that are up and whose vectors are not understood.
pub(super) fn left_alone(select: &SelectArgs, plan: &Plan) -> Vec<Unplannable> {
    let mut left = if select.selectors.is_empty() {
        Unplannable::of(plan, |note| matches!(note, Note::VectorsNotUnderstood { .. }))
    } else {
        Vec::new()
    };
    let up = |name: &str| plan.interfaces.iter().any(|i| i.name == name && i.link == "up");
    left.retain(|interface| up(&interface.interface));
    left
}
