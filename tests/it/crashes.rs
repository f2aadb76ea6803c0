//! A crash at every step of apply, restore and a trial: everything can be restored, since nothing is written before the
//! record of it.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use nix::errno::Errno;

use crate::support::is_full;
use crate::support::run::MachineTree;
use crate::support::two_node::{at, atomic, machine, on_trial, planned_for, restored, run, state};
use nicpin::apply::{self, Options};
use nicpin::root::Root;
use nicpin::root::faults::{FileAccess, FileAction, InjectedAnswer};

#[test]
fn a_crash_at_every_step_of_apply_and_of_restore() {
    let machine = machine();
    let before = machine.texts();
    let both = Options {
        atomic: true,
        ..on_trial()
    };
    let mut kinds = vec![Options::default(), both];
    let mut between = 2;
    if is_full() {
        kinds.extend([atomic(), on_trial()]);
        between = 1;
    }
    for options in kinds {
        let steps = crash_at(&machine, usize::MAX, |root| run(root, options).is_ok());
        assert!(steps > 30, "{steps}");
        restored(&machine, &before, "no crash");
        for step in (0..steps).step_by(between) {
            crash_at(&machine, step, |root| run(root, options).is_ok());
            restored(
                &machine,
                &before,
                &format!("a crash at step {step} of apply"),
            );
        }
    }
    let full = || {
        run(&Root::open(&at(&machine)).unwrap(), Options::default()).unwrap();
    };
    let wait = Options::default().wait;
    full();
    let steps = crash_at(&machine, usize::MAX, |root| {
        apply::restore(root, wait).is_ok()
    });
    for step in (0..steps).step_by(between) {
        full();
        crash_at(&machine, step, |root| apply::restore(root, wait).is_ok());
        restored(
            &machine,
            &before,
            &format!("a crash at step {step} of restore"),
        );
    }
}

/// A trial that changed nothing cannot be confirmed, and the next nicpin restores exactly what was set.
#[test]
fn a_crash_at_every_step_of_a_trial() {
    let machine = machine();
    let before = machine.texts();
    let wait = Options::default().wait;
    let nic1 = ["nic1"];
    let foreign =
        "/sys/devices/pci0000:20/0000:20:00.0/0000:21:00.0/virtio1/net/nic0/queues/rx-0/rps_cpus";
    let trial = || machine.path("/run/nicpin/try.json").exists();
    let try_it = |root: &Root| run(root, on_trial()).is_ok();
    let steps = crash_at(&machine, usize::MAX, try_it);
    restored(&machine, &before, "no crash");
    let (mut in_vain, mut set_something) = (0, 0);
    for step in (0..steps).step_by(if is_full() { 1 } else { 3 }) {
        let what = format!("a crash at step {step} of apply");
        let root = Root::open(&at(&machine)).unwrap();
        crash_at(&machine, step, try_it);
        let tried = machine.texts();
        let set = tried != before;
        *(if set {
            &mut set_something
        } else {
            &mut in_vain
        }) += 1;
        assert_eq!(apply::confirm(&root, wait).is_ok(), set, "{what}");
        assert!(
            !trial() && apply::confirm(&root, wait).is_err(),
            "{what}: confirmed twice"
        );
        assert_eq!(machine.texts(), tried, "{what}");
        restored(&machine, &before, &what);

        crash_at(&machine, step, try_it);
        let moved = !trial();
        if moved {
            machine.write(foreign, "80");
        }
        apply::apply(&root, Options::default(), |root| planned_for(root, &nic1)).unwrap();
        let now = machine.texts();
        for (path, text) in now
            .iter()
            .filter(|(path, _)| path.contains("/nic0/") && *path != foreign)
        {
            assert_eq!(text, &before[path], "{what}: {path}");
        }
        assert_eq!(moved, now[foreign] != before[foreign], "{what}");
        machine.write(foreign, "00");
        restored(&machine, &before, &what);
    }
    assert!(
        in_vain > 1 && set_something > 10,
        "{in_vain} {set_something}"
    );

    let steps = {
        assert!(try_it(&Root::open(&at(&machine)).unwrap()));
        crash_at(&machine, usize::MAX, |root| {
            apply::end_trial(root, wait).is_ok()
        })
    };
    for step in 0..steps {
        let what = format!("a crash at step {step} of the trial's end");
        let root = Root::open(&at(&machine)).unwrap();
        assert!(try_it(&root), "{what}");
        crash_at(&machine, step, |root| apply::end_trial(root, wait).is_ok());
        apply::end_trial(&root, wait).unwrap();
        assert_eq!(
            (machine.texts(), state(&machine)),
            (before.clone(), None),
            "{what}"
        );
    }
}

/// No file is changed from `step` on. Returns the number of steps.
fn crash_at(machine: &MachineTree, step: usize, run: impl FnOnce(&Root) -> bool) -> usize {
    let steps = Rc::new(Cell::new(0));
    let count = Rc::clone(&steps);
    let root = machine.refusing(Errno::EIO, move |access| {
        count.set(count.get() + usize::from(access.action != FileAction::Read));
        access.action != FileAction::Read && count.get() > step
    });
    run(&root);
    steps.get()
}

#[test]
fn nothing_is_written_before_the_record_is_safe() {
    let machine = machine();
    let log = Rc::new(RefCell::new(Vec::new()));
    let writes = Rc::clone(&log);
    let root = Root::open_with_faults(&at(&machine), move |FileAccess { action, path, .. }| {
        if action != FileAction::Read {
            writes.borrow_mut().push((action, path.to_owned()));
        }
        InjectedAnswer::Done
    })
    .unwrap();
    run(&root, Options::default()).unwrap();
    let log = log.borrow();
    let first_write = log
        .iter()
        .position(|(action, _)| *action == FileAction::Write)
        .unwrap();
    let saved = log.iter().position(|(action, path)| {
        *action == FileAction::ReplaceState && path.ends_with("/state.json")
    });
    assert!(saved.is_some_and(|saved| saved < first_write), "{log:?}");
    for action in [
        FileAction::MakeDir,
        FileAction::WriteState,
        FileAction::ReplaceState,
    ] {
        for errno in [Errno::ENOSPC, Errno::EROFS, Errno::EACCES, Errno::EIO] {
            let machine = crate::support::two_node::machine();
            let before = machine.texts();
            let root = machine.refusing(errno, move |access| access.action == action);
            let error = run(&root, Options::default()).unwrap_err().to_string();
            assert!(
                error.contains("run/nicpin")
                    && error.contains(&format!("({errno:?})"))
                    && error.contains("to make room") == (errno == Errno::ENOSPC),
                "{error}"
            );
            assert_eq!(machine.texts(), before);
        }
    }
}
