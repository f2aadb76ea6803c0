//! What apply does about irqbalance, and for how long.

use std::collections::BTreeSet;

use crate::machine::Machine;
use crate::plan::data::{IrqbalancePlan, Plan};
use crate::plan::note::Note;
use crate::policy::Balancer;

/// Adds irqbalance's part to the plan of a machine on which it runs.
pub(crate) fn add(machine: &Machine, action: Balancer, plan: &mut Plan) {
    // A stored plan may hold an irqbalance that has ended since.
    plan.irqbalance = None;
    plan.notes.retain(|note| {
        !matches!(
            note,
            Note::IrqbalanceRunning { .. } | Note::IrqbalanceUnknown { .. }
        )
    });
    if let Some(hidden) = machine.other_tools.irqbalance_hidden.clone() {
        plan.notes.push(Note::IrqbalanceUnknown { hidden, action });
    }
    let Some(running) = &machine.other_tools.irqbalance else {
        return;
    };
    let vectors = plan
        .interfaces
        .iter()
        .flat_map(|interface| &interface.vectors);
    // An IRQ that two interfaces share is listed with both.
    let irqs: BTreeSet<u32> = vectors
        .filter(|vector| vector.cpus.is_some())
        .map(|vector| vector.irq)
        .collect();
    plan.notes.push(Note::IrqbalanceRunning {
        pid: running.pid,
        action,
        irqs: irqs.len(),
        left_alone: 0,
        lasts: running.uses_policy_script,
        policy_script: running.policy_script.clone(),
        arguments: running.arguments.clone(),
    });
    let irqs = irqs.into_iter().collect();
    plan.irqbalance = Some(IrqbalancePlan {
        pid: running.pid,
        action,
        irqs,
        lasts: running.uses_policy_script,
    });
}
