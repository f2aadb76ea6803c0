//! Whether the machine is as planned.

use crate::apply::reasons::differences;
use crate::apply::record::Record;
use crate::machine::Machine;
use crate::plan::{Note, Plan};
use crate::report::check::{Check, Unplannable};
use crate::root::Root;

/// Checks whether the machine is as planned; writes nothing. `asked` says whether the interfaces were asked for by name
/// ([`Selection::asked`](crate::machine::Selection)): then one that cannot be planned cannot be checked either.
pub fn check(root: &Root, machine: &Machine, plan: &Plan, asked: bool) -> Check {
    let (differs, instead) = differences(root, machine, plan);
    let mut unknown = Unplannable::unknown(plan, asked);
    if !asked {
        unknown.extend(lost(root, machine, plan));
    }
    Check::new(plan, differs, instead, unknown, Unplannable::left_alone(plan, asked))
}

/// Interfaces that are up without vectors, and had some that apply has set: nothing can be told of those.
fn lost(root: &Root, machine: &Machine, plan: &Plan) -> Vec<Unplannable> {
    let mut without = Unplannable::of(plan, |note| matches!(note, Note::NoVectors { .. }));
    if without.is_empty() {
        return without;
    }
    let record = Record::load(root).unwrap_or_default();
    let had = |name: &str| {
        let interface = machine.interfaces.iter().find(|interface| interface.name == name);
        interface.is_some_and(|interface| interface.link == "up" && record.has_vectors_of(interface))
    };
    without.retain(|interface| had(&interface.interface));
    without
}
