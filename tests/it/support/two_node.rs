//! two-node with a file of every kind that apply writes, and what is done with it.

use std::collections::BTreeMap;

use super::host::read_and_plan;
use super::run::MachineTree;
use nicpin::apply::{self, ApplyError, Options};
use nicpin::machine::Machine;
use nicpin::plan::Plan;
use nicpin::report::applied::Applied;
use nicpin::root::Root;

/// two-node with a file of every kind that apply writes.
pub fn machine() -> MachineTree {
    let machine = MachineTree::of("two-node");
    machine.put("/proc/sys/net/core/rps_sock_flow_entries", "0");
    machine
}

pub fn planned(root: &Root) -> Result<(Machine, Plan), ApplyError> {
    planned_for(root, &[])
}

pub fn planned_for(root: &Root, selectors: &[&str]) -> Result<(Machine, Plan), ApplyError> {
    read_and_plan(root, &[("rfs", "4096"), ("rps", "0-7")], selectors)
}

pub fn run(root: &Root, options: Options) -> Result<Applied, ApplyError> {
    apply::apply(root, options, planned)
}

pub fn atomic() -> Options {
    Options {
        atomic: true,
        ..Options::default()
    }
}

pub fn on_trial() -> Options {
    Options {
        trial: Some(3600),
        ..Options::default()
    }
}

pub fn at(machine: &MachineTree) -> std::path::PathBuf {
    machine.path("/")
}

pub fn state(machine: &MachineTree) -> Option<String> {
    std::fs::read_to_string(machine.path("/run/nicpin/state.json")).ok()
}

/// Also compares settings and record with those before the first apply.
pub fn restored(machine: &MachineTree, before: &BTreeMap<String, String>, what: &str) {
    let root = Root::open(&at(machine)).unwrap();
    let undone = apply::restore(&root, Options::default().wait).unwrap();
    assert!(undone.is_none_or(|undone| undone.complete()), "{what}");
    assert_eq!(&machine.texts(), before, "{what}");
    assert_eq!(state(machine), None, "{what}");
}
