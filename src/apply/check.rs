//! Whether the machine is as planned.

use crate::apply::reasons::differences;
use crate::apply::record::Record;
use crate::machine::Machine;
use crate::plan::{Note, Plan};
use crate::read::tools::irqbalance;
use crate::report::check::Check;
use crate::report::difference::{Difference, Reason, Unplannable};
use crate::report::interface::interfaces;
use crate::root::Root;

/// Checks whether the machine is as planned; writes nothing. `requested`: whether the interfaces were selected by name
/// ([`Selection::explicit`](crate::machine::Selection)); the state of one that cannot be planned is unknown then.
pub fn check(root: &Root, machine: &Machine, plan: &Plan, requested: bool) -> Check {
    let found = differences(root, machine, plan);
    let unknown = unknown(root, machine, plan, requested);
    let interfaces = interfaces(machine, plan, &found, &unknown, None);
    let mut check = Check::new(
        plan,
        found,
        unknown,
        Unplannable::left_alone(plan, requested),
        interfaces,
    );
    // For the question who moved a vector, and only for that.
    let moved = |difference: &Difference| difference.reason == Reason::MovedByOther;
    if check.differs.iter().any(moved) {
        let mut tools = check.other_tools.iter_mut();
        let name = tools.find(|tool| *tool == "irqbalance");
        if let Some((name, version)) = name.zip(irqbalance::version(root)) {
            *name = format!("irqbalance {version}");
        }
    }
    check
}

/// The interfaces whose state cannot be determined.
pub fn unknown(root: &Root, machine: &Machine, plan: &Plan, requested: bool) -> Vec<Unplannable> {
    let mut unknown = Unplannable::unknown(plan, requested);
    if !requested {
        unknown.extend(without_recorded_vectors(root, machine, plan));
    }
    unknown
}

/// Interfaces that are up and have no vectors, although an earlier apply recorded some: their state cannot be
/// determined.
fn without_recorded_vectors(root: &Root, machine: &Machine, plan: &Plan) -> Vec<Unplannable> {
    let mut without = Unplannable::of(plan, |note| matches!(note, Note::NoVectors { .. }));
    if without.is_empty() {
        return without;
    }
    let record = Record::load(root).unwrap_or_default();
    let had = |name: &str| {
        let interface = machine.interface(name);
        interface
            .is_some_and(|interface| interface.link == "up" && record.has_vectors_of(interface))
    };
    without.retain(|interface| had(&interface.interface));
    without
}
