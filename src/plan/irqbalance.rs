//! What apply will do about irqbalance, and how long that lasts, so that a reader of the plan knows.

use std::collections::BTreeSet;

use crate::machine::Machine;
use crate::machine::tools::{Arguments, Irqbalance, SCRIPT_PATH};
use crate::plan::plan::{IrqbalancePlan, Note, Plan};
use crate::policy::Balancer;

/// The code of the note that says what it will do.
pub(crate) const IRQBALANCE_RUNNING: &str = "irqbalance-running";

/// Adds it to a plan of a machine on which irqbalance runs.
pub(crate) fn add(machine: &Machine, action: Balancer, plan: &mut Plan) {
    // A stored plan may have one that has ended since.
    plan.irqbalance = None;
    plan.notes.retain(|note| note.code != IRQBALANCE_RUNNING);
    let Some(running) = &machine.other_tools.irqbalance else { return };
    let vectors = plan.interfaces.iter().flat_map(|interface| &interface.vectors);
    // A line that two interfaces share is planned once, and named with both.
    let irqs: BTreeSet<u32> =
        vectors.filter(|vector| vector.cpus.is_some()).map(|vector| vector.irq).collect();
    let balancer = IrqbalancePlan {
        pid: running.pid,
        action,
        irqs: irqs.into_iter().collect(),
        lasts: running.asks_nicpin,
    };
    plan.notes.push(note(running, &balancer));
    plan.irqbalance = Some(balancer);
}

fn note(running: &Irqbalance, plan: &IrqbalancePlan) -> Note {
    let who = format!("irqbalance runs (process {})", plan.pid);
    let irqs = match plan.irqs.len() {
        1 => "1 planned IRQ".to_owned(),
        count => format!("{count} planned IRQs"),
    };
    let (text, fix) = match plan.action {
        Balancer::Ban if plan.lasts => {
            let text = format!(
                "{who} and moves vectors: apply tells it to leave the {irqs} alone, and its policy script, which asks \
                 nicpin, makes that last"
            );
            (text, None)
        }
        Balancer::Ban => {
            let text = format!(
                "{who} and moves vectors: apply tells it to leave the {irqs} alone, which lasts until irqbalance \
                 restarts; to make it last, let its policy script ask nicpin"
            );
            (text, Some(how_to_make_it_last(running)))
        }
        Balancer::Stop => {
            let text = format!(
                "{who} and would move the {irqs}: apply stops its service, which lasts until the next boot, and \
                 restore starts it again"
            );
            (text, Some("systemctl disable irqbalance".to_owned()))
        }
        Balancer::Ignore => {
            let text = format!(
                "{who} and is ignored: it will move the {irqs} elsewhere, every 10 seconds if not set otherwise"
            );
            (text, Some("nicpin apply --irqbalance ban".to_owned()))
        }
        Balancer::Refuse => {
            let text = format!("{who} and would move the {irqs}: apply refuses to write while it runs");
            (text, Some("nicpin apply --irqbalance ban".to_owned()))
        }
    };
    let note = Note::new(IRQBALANCE_RUNNING, text);
    match fix {
        Some(fix) => note.with_fix(fix),
        None => note,
    }
}

/// The line of this distribution's file. A ban by IRQ number in it would be about another vector after the next boot.
fn how_to_make_it_last(running: &Irqbalance) -> String {
    match (&running.policy_script, &running.arguments) {
        (Some(script), _) => format!("have {script} ask nicpin irqbalance-policy, as {SCRIPT_PATH} does"),
        (None, Some(Arguments { file, variable })) => {
            format!("{variable}=\"--policyscript={SCRIPT_PATH}\" in {file}")
        }
        (None, None) => format!("--policyscript={SCRIPT_PATH} among the arguments of its service"),
    }
}
