//! Whether the machine is as planned.

use std::collections::BTreeSet;

use crate::apply::reasons::differences;
use crate::apply::record::Record;
use crate::machine::Machine;
use crate::plan::{Note, Plan};
use crate::read::tools::irqbalance;
use crate::report::check::Check;
use crate::report::difference::{Difference, Differences, Reason, Unplannable};
use crate::report::interface::interfaces;
use crate::root::Root;

/// Checks whether the machine is as planned; writes nothing. `requested`: whether the interfaces were selected by name
/// ([`Selection::explicit`](crate::machine::Selection)); the state of one that cannot be planned is unknown then.
pub fn check(root: &Root, machine: &Machine, plan: &Plan, requested: bool) -> Check {
    let found = differences(root, machine, plan);
    let unknown = unknown(root, machine, plan, &found, requested);
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
pub fn unknown(
    root: &Root,
    machine: &Machine,
    plan: &Plan,
    found: &Differences,
    requested: bool,
) -> Vec<Unplannable> {
    let mut unknown = Unplannable::unknown(plan, requested);
    let mut without = Unplannable::of(plan, |note| matches!(note, Note::NoVectors { .. }));
    without.retain(|one| !requested && is_up(machine, &one.interface));
    let is_unknown = |one: &&Difference| one.reason == Reason::Unknown;
    let differ = found.differs.iter().filter(is_unknown);
    let mut names: BTreeSet<&str> = differ.map(|one| &*one.write.interface).collect();
    if without.is_empty() && names.is_empty() {
        return unknown;
    }
    match Record::load(root) {
        // They are up and have no vectors, although an earlier apply recorded some.
        Ok(record) => {
            let had = |interface| record.has_vectors_of(interface);
            without.retain(|one| machine.interface(&one.interface).is_some_and(had));
            unknown.extend(without);
        }
        Err(error) => {
            names.extend(without.iter().map(|one| &*one.interface));
            unknown.extend(names.into_iter().map(|name| Unplannable {
                interface: name.to_owned(),
                note: Note::RecordUnreadable {
                    error: error.to_string(),
                },
            }));
        }
    }
    unknown
}

fn is_up(machine: &Machine, name: &str) -> bool {
    let interface = machine.interface(name);
    interface.is_some_and(|interface| interface.link == "up")
}
