//! Makes a plan, step by step.
//!
//! Interfaces that share CPUs are placed together, selected or not, so that the plan of an interface does not depend on
//! the selection.

use crate::cpuset::CpuSet;
use crate::machine::{Machine, Selection};
use crate::plan::assign::assign;
use crate::plan::data::Plan;
use crate::plan::place::Locations;
use crate::plan::work::{Work, works};
use crate::plan::{build, irqbalance, queues};
use crate::policy::{IRQBALANCE, Policy, RFS};

/// Plans the selected interfaces of a machine.
pub fn plan(machine: &Machine, policy: &Policy, selection: &Selection) -> Plan {
    let locations = Locations::new(&machine.topology);
    let mut works = works(machine, policy, selection);
    assign(machine, &locations, &mut works);
    works.sort_by_key(|work| work.order);
    let busy = works.iter().fold(CpuSet::new(), |all, work| all.union(&work.irq_cpus(machine)));
    let flow_queues = works.iter().map(|work| work.interface.rx_queues.len()).sum();
    let flow_entries = queues::flow_table(works.iter().map(|work| work.choice.get(&RFS)));
    let shared = build::Shared { flow_queues, flow_entries, busy };
    let chosen: Vec<&Work<'_>> =
        works.iter().filter(|work| selection.names.contains(&work.interface.name)).collect();
    let mut plan = build::build(machine, &locations, &chosen, &shared, selection);
    irqbalance::add(machine, policy.get(&IRQBALANCE), &mut plan);
    plan
}
