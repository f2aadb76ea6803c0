//! Notes about the machine, the policy and the selection as a whole.

use itertools::{Itertools as _, chain};

use crate::machine::others::{OtherTool, UnusedFunction};
use crate::machine::{HandlerNames, Interface, Machine, Selection};
use crate::plan::data::{IrqbalancePlan, Plan};
use crate::plan::note::Note;
use crate::policy::{Balancer, Policy};

pub(crate) fn machine_notes(
    machine: &Machine,
    policy: &Policy,
    selection: &Selection,
) -> Vec<Note> {
    let (interfaces, names) = (&machine.interfaces, machine.names());
    let missing = selection
        .missing
        .iter()
        .cloned()
        .map(|(selector, what)| match what {
            Some(what) => Note::NoDevice { selector, what },
            None => Note::NotPresent { selector },
        });
    let is_nothing = selection.names.is_empty() && selection.missing.is_empty();
    let is_none = |holds: &dyn Fn(&Interface) -> bool| {
        !interfaces.is_empty() && !interfaces.iter().any(holds)
    };
    let rules = (1..)
        .zip(&policy.rules)
        .filter(|(_, rule)| {
            is_none(&|interface| rule.matches(machine, |name| names.contains(name), interface))
        })
        .map(|(rule, unmatched)| Note::RuleUnmatched {
            rule,
            conditions: unmatched.text.clone(),
        });
    let here = interfaces
        .iter()
        .filter_map(|interface| interface.driver.clone())
        .sorted_unstable()
        .dedup()
        .collect_vec();
    let drivers = policy
        .drivers
        .iter()
        .filter(|row| is_none(&|interface| interface.has_driver(&row.name)))
        .map(|row| Note::DriverUnmatched {
            driver: row.name.clone(),
            here: here.clone(),
        });
    let names_unmatched = policy.drivers.iter().filter_map(|row| {
        let own = interfaces
            .iter()
            .filter(|interface| interface.has_driver(&row.name));
        let here = own.flat_map(|interface| {
            let known = interface.vectors.iter().map(|vector| &vector.action);
            let unknown = interface.unknown_vectors.iter();
            known.chain(unknown.map(|vector| &vector.action))
        });
        let mut names = here.clone().flat_map(HandlerNames::iter).peekable();
        let is_unmatched = names.peek().is_some() && !names.any(|name| row.has_name(name));
        is_unmatched.then(|| Note::NamesUnmatched {
            driver: row.name.clone(),
            here: here.map(ToString::to_string).collect(),
        })
    });
    let no_irqs = machine.missing().map(|_| {
        if machine.without_proc {
            Note::NoProc
        } else {
            Note::NoProcIrq
        }
    });
    chain!(
        missing,
        is_nothing.then_some(Note::NothingToDo),
        rules,
        drivers,
        names_unmatched,
        not_planned(machine, selection),
        machine
            .topology
            .exclusive_cut
            .then_some(Note::CgroupsLeftOut),
        no_irqs,
        (machine.topology.online.len() == 1).then_some(Note::OneCpu),
        machine.other_tools.others.iter().map(Note::from),
    )
    .collect()
}

impl From<&OtherTool> for Note {
    fn from(tool: &OtherTool) -> Self {
        match tool.clone() {
            OtherTool::CloudScript { path, writes } => Self::CloudScript { path, writes },
            OtherTool::Tuned {
                active,
                profile,
                setting,
            } => Self::TunedRunning {
                active,
                profile,
                setting,
            },
            OtherTool::LinkFile { path, policy } => Self::LinkIrqAffinity { path, policy },
            OtherTool::LinkRps { path, mask } => Self::LinkRps { path, mask },
        }
    }
}

fn not_planned(machine: &Machine, selection: &Selection) -> Option<Note> {
    if selection.explicit || machine.missing().is_some() {
        return None;
    }
    let left = machine
        .interfaces
        .iter()
        .filter(|interface| !selection.names.contains(&interface.name));
    // A function without an interface here has none that could be down.
    let (functions, down): (Vec<_>, Vec<_>) = left.partition(|interface| interface.is_elsewhere());
    let down = down
        .iter()
        .map(|interface| interface.name.clone())
        .collect_vec();
    let functions = functions.iter().map(|interface| UnusedFunction {
        address: interface.name.clone(),
        driver: interface.driver.clone(),
    });
    let functions = chain(machine.others.cards.clone(), functions).collect_vec();
    let is_any = !down.is_empty() || !functions.is_empty();
    is_any.then_some(Note::NotPlanned { down, functions })
}

pub(crate) fn add_irqbalance(machine: &Machine, action: Balancer, plan: &mut Plan) {
    // irqbalance may have ended since the plan was stored.
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
    let Some(running) = machine.other_tools.irqbalance.clone() else {
        return;
    };
    let vectors = plan.vectors().filter(|vector| vector.cpus.is_some());
    // Two interfaces that share an IRQ both list it.
    let irqs = vectors
        .map(|vector| vector.irq)
        .sorted_unstable()
        .dedup()
        .collect_vec();
    let (pid, lasts) = (running.pid, running.uses_policy_script);
    plan.notes.push(Note::IrqbalanceRunning {
        pid,
        action,
        irqs: irqs.len(),
        left_alone: 0,
        lasts,
        policy_script: running.policy_script,
        arguments: running.arguments,
    });
    plan.irqbalance = Some(IrqbalancePlan {
        pid,
        action,
        irqs,
        lasts,
    });
}
