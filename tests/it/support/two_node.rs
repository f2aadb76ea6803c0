//! A machine on which apply writes every kind of file, and what is done with it.

use std::collections::BTreeMap;

use super::run::Copy;
use nicpin::apply::{self, ApplyError, Options};
use nicpin::machine::{Machine, Selection};
use nicpin::plan::Plan;
use nicpin::policy::{Policy, Settings};
use nicpin::report::applied::Applied;
use nicpin::root::Root;

/// A machine on which apply writes every kind of file.
pub fn machine() -> Copy {
    let machine = Copy::of("two-node");
    std::fs::create_dir_all(machine.path("/proc/sys/net/core")).unwrap();
    machine.write("/proc/sys/net/core/rps_sock_flow_entries", "0\n");
    machine
}

pub fn planned(root: &Root) -> Result<(Machine, Plan), ApplyError> {
    planned_for(root, &[])
}

pub fn planned_for(root: &Root, selectors: &[String]) -> Result<(Machine, Plan), ApplyError> {
    let host = nicpin::read::machine(root, nicpin::read::ReadOptions::default())?;
    let selection = Selection::new(&host, selectors, false).unwrap();
    let options = Settings::of([("rfs", "4096"), ("rps", "0-7")]).unwrap();
    let policy = Policy {
        options,
        ..Policy::default()
    };
    let plan = nicpin::plan::plan(&host, &policy, &selection);
    Ok((host, plan))
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

pub fn at(machine: &Copy) -> std::path::PathBuf {
    machine.path("/")
}

pub fn state(machine: &Copy) -> Option<String> {
    std::fs::read_to_string(machine.path("/run/nicpin/state.json")).ok()
}

/// Restores the settings, and compares them and the record with those before the first apply.
pub fn restored(machine: &Copy, before: &BTreeMap<String, String>, what: &str) {
    let root = Root::open(&at(machine)).unwrap();
    let undone = apply::restore(&root, Options::default().wait).unwrap();
    assert!(undone.is_none_or(|undone| undone.complete()), "{what}");
    assert_eq!(&machine.texts(), before, "{what}");
    assert_eq!(state(machine), None, "{what}");
}
