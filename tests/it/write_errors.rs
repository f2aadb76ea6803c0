//! Every error of the kernel at every write: what is reported, what the files hold, and that everything can be restored.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use nix::errno::Errno;
use snapbox::{assert_data_eq, str};

use crate::support::captured::{Captured, assert_same_plans};
use crate::support::is_full;
use crate::support::run::{MachineTree, assert_line};
use crate::support::schema::meets;
use crate::support::two_node::{
    at, atomic, machine, on_trial, planned, planned_for, restored, run, state,
};
use nicpin::apply::{self, ApplyError, Options};
use nicpin::cpuset::CpuSet;
use nicpin::machine::{Machine, Selection};
use nicpin::plan::{Plan, SettingKind, Write};
use nicpin::policy::Policy;
use nicpin::report::outcome::{Outcome, WriteResult};
use nicpin::root::Root;
use nicpin::root::faults::{FileAccess, FileAction, InjectedAnswer};

fn read(machine: &MachineTree, path: &str) -> String {
    machine.read(path).trim().to_owned()
}

/// The n-th write of a setting, from 0, and all later writes to the same file get this answer.
fn answering(root: &Path, position: usize, answer: InjectedAnswer) -> Root {
    let (seen, target) = (Cell::new(0), RefCell::new(None::<String>));
    Root::open_with_faults(root, move |FileAccess { action, path, .. }| {
        if action != FileAction::Write {
            return InjectedAnswer::Done;
        }
        if seen.replace(seen.get() + 1) == position {
            *target.borrow_mut() = Some(path.to_owned());
        }
        if target.borrow().as_deref() == Some(path) {
            answer
        } else {
            InjectedAnswer::Done
        }
    })
    .unwrap()
}

const ERRNOS: [Errno; 15] = [
    Errno::EPERM,
    Errno::EIO,
    Errno::EACCES,
    Errno::EROFS,
    Errno::EINVAL,
    Errno::EOVERFLOW,
    Errno::ENOSPC,
    Errno::ENOMEM,
    Errno::ENOENT,
    Errno::ENODEV,
    Errno::ENXIO,
    Errno::EBUSY,
    Errno::EAGAIN,
    Errno::EINTR,
    Errno::EFAULT,
];

fn outcome(kind: SettingKind, errno: Errno) -> Outcome {
    match (kind, errno) {
        (SettingKind::Vector, Errno::EIO | Errno::EINVAL) => Outcome::Managed,
        (_, Errno::ENOENT) => Outcome::Vanished,
        _ => Outcome::Refused,
    }
}

#[test]
fn every_errno_at_every_write() {
    let machine = machine();
    let (_, plan) = planned(&Root::open(&at(&machine)).unwrap()).unwrap();
    let kinds: std::collections::BTreeSet<SettingKind> =
        plan.writes.iter().map(|write| write.kind).collect();
    assert_eq!(kinds.len(), 5, "not every kind of write is tried");
    let before = machine.texts();
    for errno in ERRNOS {
        let mut tried = std::collections::BTreeSet::new();
        for (position, write) in plan.writes.iter().enumerate() {
            // The first of each kind, or every one.
            if !tried.insert(write.kind) && !is_full() {
                continue;
            }
            let what = format!("{errno:?} at write {position}, {}", write.path);
            let root = answering(&at(&machine), position, InjectedAnswer::Errno(errno as i32));
            let done = run(&root, Options::default()).unwrap();
            assert_eq!(done.results.len(), plan.writes.len(), "{what}");
            for (at, (write, result)) in plan.writes.iter().zip(&done.results).enumerate() {
                assert_eq!(result.path, *write.path, "{what}");
                if position == 0 && [Errno::EROFS, Errno::EACCES, Errno::EPERM].contains(&errno) {
                    // If the file may not be written, no vector's may.
                    assert_eq!(result.outcome, Outcome::Refused, "{what}");
                    let detail = result.detail.as_deref().unwrap();
                    assert!(
                        detail.contains(&format!("({errno:?})"))
                            && detail.contains(&*plan.writes[0].path),
                        "{detail}"
                    );
                    assert_eq!(read(&machine, &write.path), *write.current, "{what}");
                } else if at == position {
                    assert_eq!(result.outcome, outcome(write.kind, errno), "{what}");
                    let detail = result.detail.as_deref().unwrap();
                    assert!(detail.contains(&format!("({errno:?})")), "{what}: {detail}");
                    assert_eq!(read(&machine, &write.path), *write.current, "{what}");
                } else {
                    // A vector whose effective CPU is outside the new affinity waits for its next interrupt.
                    assert!(
                        result.changed() && result.detail.is_none(),
                        "{what}: {result:?}"
                    );
                    assert_eq!(read(&machine, &write.path), write.value.clone(), "{what}");
                }
            }
            let failed = outcome(write.kind, errno) != Outcome::Managed;
            assert_eq!(done.failed(), failed, "{what}");
            let state = state(&machine).unwrap();
            assert!(state.contains(&format!("({errno:?})")), "{what}: {state}");
            restored(&machine, &before, &what);
        }
    }
}

#[test]
fn a_vector_that_the_kernel_manages_does_not_stop_apply() {
    let machine = machine();
    let (_, plan) = planned(&Root::open(&at(&machine)).unwrap()).unwrap();
    // Read-only only after planning: the plan leaves read-only vectors alone.
    let (path, first) = (
        machine.path(&plan.writes[0].path),
        plan.writes[0].path.clone(),
    );
    let root = Root::open_with_faults(
        &at(&machine),
        move |FileAccess {
                  action,
                  path: touched,
                  ..
              }| {
            if action != FileAction::Write || *touched != *first {
                return InjectedAnswer::Done;
            }
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o444)).unwrap();
            InjectedAnswer::Errno(Errno::EPERM as i32)
        },
    );
    let done = run(&root.unwrap(), Options::default()).unwrap();
    assert_eq!(done.results[0].outcome, Outcome::Managed);
    assert!(
        !done.failed()
            && done.results[1..]
                .iter()
                .all(nicpin::report::outcome::WriteResult::changed)
    );
}

/// Plans nic0 around the vectors that cannot be moved by the record.
fn planned_by_record(root: &Root) -> Result<(Machine, Plan), ApplyError> {
    let mut host = nicpin::read::machine(root, nicpin::read::ReadOptions::default())?;
    apply::Record::load(root)?.mark_unmovable(root, &mut host);
    let selection = Selection::new(&host, &["nic0".to_owned()], false).unwrap();
    let plan = nicpin::plan::plan(&host, &Policy::default(), &selection);
    Ok((host, plan))
}

/// Before Linux 6.12 only the write shows it; steering for moves that did not happen would be worse than none.
#[test]
fn steering_follows_vectors_that_turn_out_to_be_kernel_managed() {
    let machine = MachineTree::of("two-node");
    let (_, first) = planned_by_record(&Root::open(&at(&machine)).unwrap()).unwrap();
    let is_vector = |write: &&Write| write.kind == SettingKind::Vector;
    let vectors: Vec<_> = first.writes.iter().filter(is_vector).collect();
    let refused: Vec<String> = vectors[..2]
        .iter()
        .map(|write| write.path.clone())
        .collect();
    let files = refused.clone();
    let root = machine.refusing_writes(Errno::EIO, move |path| {
        files.iter().any(|file| file == path)
    });
    let done = apply::apply(&root, Options::default(), planned_by_record).unwrap();
    let is_managed = |result: &&WriteResult| result.outcome == Outcome::Managed;
    let managed = done.results.iter().filter(is_managed).count();
    assert_eq!(managed, 2, "{:?}", done.results);
    let (tally, all) = (&done.tally, first.writes.len() + first.unchanged);
    assert_eq!(tally.managed, 2);
    assert_eq!(tally.changed + tally.already + tally.managed, all);
    let paths: BTreeSet<_> = done.results.iter().map(|result| &result.path).collect();
    assert_eq!(paths.len(), done.results.len(), "a setting has two results");
    let (_, second) = planned_by_record(&Root::open(&at(&machine)).unwrap()).unwrap();
    assert_eq!(second.writes, [], "the first apply left something to do");
    assert_ne!(first.hash, second.hash);
}

#[test]
fn an_atomic_apply_undoes_what_only_its_second_plan_has_changed() {
    let machine = MachineTree::of("two-node");
    let at_once = Root::open(&at(&machine)).unwrap();
    let (_, first) = planned_by_record(&at_once).unwrap();
    apply::apply(&at_once, Options::default(), planned_by_record).unwrap();
    let is_vector = |write: &&Write| write.kind == SettingKind::Vector;
    let refused: Vec<Write> = first
        .writes
        .iter()
        .filter(is_vector)
        .take(2)
        .cloned()
        .collect();
    for write in &refused {
        machine.write(&write.path, &write.current);
    }
    let before = machine.texts();
    let steered = Cell::new(0);
    let root = Root::open_with_faults(&at(&machine), move |FileAccess { action, path, .. }| {
        if action != FileAction::Write {
            return InjectedAnswer::Done;
        }
        if refused.iter().any(|write| write.path == path) {
            return InjectedAnswer::Errno(Errno::EIO as i32);
        }
        // The first write of steering succeeds, the second is refused, and later ones restore.
        let is_steering = path.contains("/queues/");
        steered.set(steered.get() + usize::from(is_steering));
        match (is_steering, steered.get()) {
            (true, 2) => InjectedAnswer::Errno(Errno::EINVAL as i32),
            _ => InjectedAnswer::Done,
        }
    });
    let done = apply::apply(&root.unwrap(), atomic(), planned_by_record).unwrap();
    assert!(done.undone.is_some_and(|undone| undone.complete()));
    assert!(
        done.results
            .iter()
            .any(|result| result.kind != SettingKind::Vector && result.changed())
    );
    assert_eq!(machine.texts(), before);
}

/// The JSON has each setting.
#[test]
fn the_same_refusals_are_one_message() {
    let machine = machine();
    let root = machine.refusing_writes(Errno::EROFS, |_| true);
    let done = run(&root, on_trial()).unwrap();
    assert!(
        done.results
            .iter()
            .all(|result| result.outcome == Outcome::Refused)
    );
    let report = &done;
    let text = crate::screen::applied::applied(report, false, &crate::screen::Given::default())
        .show(crate::screen::page::Screen::default());
    assert_eq!(
        text.lines()
            .filter(|line| line.starts_with("refused"))
            .count(),
        1,
        "{text}"
    );
    assert_data_eq!(
        &text,
        str![[r#"
Nothing was written; 41 could not be written.
refused   IRQs 27-34,36-43; nic0 rps_cpus of rx 0-3; nic1 rps_cpus of rx 0-3; nic0 rps_flow_cnt of
          rx 0-3; nic1 rps_flow_cnt of rx 0-3; nic0 xps_cpus of tx 0-3; nic1 xps_cpus of tx 0-3;
          /proc/sys/net/core/rps_sock_flow_entries: nothing was written after
          /proc/irq/36/smp_affinity was refused: read-only file system (EROFS): the file is mounted
          read-only; fix: run outside the container, or without ProtectKernelTunables= in the unit
plan 9c62b47fcb95dc9d: changed=0 already=0 managed=0 refused=41 vanished=0 pending=0

"#]]
    );
    let json = crate::screen::json(report).unwrap();
    meets(&json);
    assert_eq!(
        json.matches("\"refused\",").count(),
        done.results.len(),
        "{json}"
    );
    assert!(
        !text.contains("Trial: ") && !machine.path("/run/nicpin/try.json").exists(),
        "{text}"
    );
}

/// Nothing stays written, at whichever write the failure comes.
#[test]
fn all_or_nothing_at_every_write() {
    let machine = machine();
    let (_, plan) = planned(&Root::open(&at(&machine)).unwrap()).unwrap();
    let before = machine.texts();
    let answers = [
        InjectedAnswer::Errno(Errno::ENOMEM as i32),
        InjectedAnswer::Errno(Errno::ENOENT as i32),
        InjectedAnswer::Lost,
    ];
    for position in 0..plan.writes.len() {
        for (nth, answer) in answers.into_iter().enumerate() {
            // One after the other in the fast tier.
            if nth != position % answers.len() && !is_full() {
                continue;
            }
            let what = format!("{answer:?} at write {position}");
            let done = run(&answering(&at(&machine), position, answer), atomic()).unwrap();
            assert_eq!(done.results.len(), position + 1, "{what}: writing went on");
            let undone = done.undone.as_ref().unwrap();
            assert!(undone.complete(), "{what}");
            let back = undone
                .results
                .iter()
                .filter(|result| result.changed())
                .map(|result| &result.path);
            let written: Vec<_> = done.results[..position]
                .iter()
                .map(|result| &result.path)
                .collect();
            assert_eq!(back.collect::<Vec<_>>(), written, "{what}");
            assert!(done.failed(), "{what}");
            assert_eq!(machine.texts(), before, "{what}");
            assert_eq!(
                state(&machine),
                None,
                "{what}: a record is left of what is as it was"
            );
        }
    }
    assert!(
        run(&Root::open(&at(&machine)).unwrap(), atomic())
            .unwrap()
            .undone
            .is_none()
    );
    assert_ne!(machine.texts(), before);
}

/// --atomic restores what the last apply set, not what the first one found.
#[test]
fn all_or_nothing_keeps_an_earlier_apply() {
    let machine = machine();
    assert_eq!(machine.nicpin(&["apply", "--scope", "remote"]).code, 0);
    let (before, record) = (machine.texts(), state(&machine));
    let done = run(
        &answering(
            &at(&machine),
            5,
            InjectedAnswer::Errno(Errno::ENOMEM as i32),
        ),
        atomic(),
    )
    .unwrap();
    assert!(done.undone.unwrap().complete());
    assert_eq!((machine.texts(), state(&machine)), (before, record));
}

#[test]
fn what_atomic_cannot_restore_is_reported_and_left_to_restore() {
    let machine = machine();
    let before = machine.texts();
    let writes = Cell::new(0);
    // The third write is refused, and so is restoring the first one.
    let root = machine.refusing_writes(Errno::EINVAL, move |_| {
        [2, 4].contains(&writes.replace(writes.get() + 1))
    });
    let done = run(&root, atomic()).unwrap();
    let undone = done.undone.as_ref().unwrap();
    assert!(undone.failed() && undone.results.len() == 2, "{undone:?}");
    assert_ne!(machine.texts(), before);
    let record: serde_json::Value = serde_json::from_str(&state(&machine).unwrap()).unwrap();
    assert_eq!(record["last_set"].as_object().unwrap().len(), 1, "{record}");
    restored(&machine, &before, "after a failed undo");
}

#[test]
fn a_write_is_repeated_while_the_kernel_is_busy() {
    for errno in [Errno::EBUSY, Errno::EAGAIN, Errno::EINTR] {
        let machine = machine();
        let asked = Cell::new(0);
        let root = machine.refusing_writes(errno, move |_| asked.replace(asked.get() + 1) % 4 != 3);
        let planned = |root: &Root| planned_for(root, &["nic0"]);
        let done = apply::apply(&root, Options::default(), planned).unwrap();
        assert!(
            !done.failed()
                && done
                    .results
                    .iter()
                    .all(nicpin::report::outcome::WriteResult::changed),
            "{errno:?}"
        );
    }
}

/// A move that the kernel defers can fail later without an error: the file then holds the old mask.
#[test]
fn a_lost_write_is_reported() {
    let machine = machine();
    let before = machine.texts();
    let done = run(
        &answering(&at(&machine), 0, InjectedAnswer::Lost),
        Options::default(),
    )
    .unwrap();
    assert_eq!(done.results[0].outcome, Outcome::Refused);
    assert_line(
        done.results[0].detail.as_deref().unwrap(),
        str![[r#"
the kernel accepted the write, but the file holds 03; fix: run again

"#]],
    );
    restored(&machine, &before, "a lost write");
}

/// While an interrupt makes the move, a reader finds the old mask for a moment.
#[test]
fn a_move_in_progress_is_read_again() {
    let machine = machine();
    let (top, moving) = (at(&machine), RefCell::new(None));
    let root = Root::open_with_faults(&at(&machine), move |access| {
        if !access.path.ends_with("/smp_affinity") {
            return InjectedAnswer::Done;
        }
        let mut moving = moving.borrow_mut();
        match (access.action, &mut *moving) {
            (FileAction::Write, _) => {
                *moving = Some((access.path.to_owned(), access.value.to_owned(), 0));
                return InjectedAnswer::Lost;
            }
            (FileAction::Read, Some((path, value, reads))) if path == access.path => {
                *reads += 1;
                if *reads == 3 {
                    std::fs::write(top.join(&path[1..]), value).unwrap();
                }
            }
            _ => {}
        }
        InjectedAnswer::Done
    })
    .unwrap();
    let done = run(&root, Options::default()).unwrap();
    let moved = done
        .results
        .iter()
        .filter(|of| of.kind == SettingKind::Vector && of.changed());
    assert!(!done.failed() && moved.count() > 0, "{:?}", done.results);
}

/// With `nohz_full=0-3` the kernel lists CPUs 1-3 only, and removes CPU 0 from `rps_cpus` all the same.
#[test]
fn what_the_kernel_removes_from_rps_cpus_is_as_planned() {
    let machine = machine();
    machine.write("/sys/devices/system/cpu/nohz_full", "1-3\n");
    let before = machine.texts();
    let top = at(&machine);
    let root = Root::open_with_faults(&at(&machine), move |access| {
        if access.action != FileAction::Write || !access.path.ends_with("rps_cpus") {
            return InjectedAnswer::Done;
        }
        std::fs::write(top.join(&access.path[1..]), "f0\n").unwrap();
        InjectedAnswer::Lost
    })
    .unwrap();
    let done = run(&root, Options::default()).unwrap();
    let rps: Vec<_> = done
        .results
        .iter()
        .filter(|result| result.path.ends_with("rps_cpus"))
        .collect();
    assert!(!done.failed() && !rps.is_empty());
    for result in rps {
        assert_eq!(
            (&*result.value, result.outcome),
            ("f1", Outcome::Changed),
            "{result:?}"
        );
        assert_eq!(
            result.detail.as_deref(),
            Some("the kernel removed CPU 0: isolated or nohz_full")
        );
    }
    let (_, again) = planned(&Root::open(&at(&machine)).unwrap()).unwrap();
    assert!(again.writes.is_empty(), "{:?}", again.writes);
    let notes = again
        .interfaces
        .iter()
        .flat_map(|interface| &interface.notes);
    let removed: Vec<String> = notes
        .filter(|note| note.code() == "rps-filtered")
        .map(ToString::to_string)
        .collect();
    assert!(
        !removed.is_empty()
            && removed
                .iter()
                .all(|text| text.contains("from rps_cpus: 0-3;")),
        "{removed:?}"
    );
    restored(&machine, &before, "a filtered set");
}

/// The kernel leaves offline CPUs out of what is written to `rps_cpus` and `xps_cpus`.
#[test]
fn originals_with_offline_cpus_are_restored_as_far_as_the_kernel_takes_them() {
    let machine = machine();
    let cases = [
        (
            "rx-0/rps_cpus",
            "c1",
            "01",
            "CPU 6: isolated or nohz_full; CPU 7: offline",
        ),
        ("rx-1/rps_cpus", "80", "00", "CPU 7: offline"),
        ("tx-0/xps_cpus", "84", "04", "CPU 7: offline"),
        ("tx-1/xps_cpus", "80", "00", "CPU 7: offline"),
    ];
    let path = |file: &str| format!("/sys/class/net/nic0/queues/{file}");
    for (file, original, ..) in cases {
        machine.write(&path(file), original);
    }
    machine.write("/sys/devices/system/cpu/isolated", "6\n");
    assert!(
        !run(&Root::open(&at(&machine)).unwrap(), Options::default())
            .unwrap()
            .failed()
    );
    machine.write("/sys/devices/system/cpu/online", "0-6\n");
    let top = at(&machine);
    let root = Root::open_with_faults(&at(&machine), move |access| {
        let takes = match access.path.rsplit('/').next() {
            Some("rps_cpus") => 0x3f,
            Some("xps_cpus") => 0x7f,
            _ => return InjectedAnswer::Done,
        };
        if access.action != FileAction::Write {
            return InjectedAnswer::Done;
        }
        let written = u8::from_str_radix(access.value, 16).unwrap() & takes;
        std::fs::write(top.join(&access.path[1..]), format!("{written:02x}\n")).unwrap();
        InjectedAnswer::Lost
    });
    let restored = apply::restore(&root.unwrap(), Options::default().wait)
        .unwrap()
        .unwrap();
    assert!(restored.complete(), "{restored:?}");
    for (file, _, held, removed) in cases {
        let mut results = restored.results.iter();
        let result = results.find(|result| result.path == path(file)).unwrap();
        assert_eq!(
            (result.outcome, result.detail.clone()),
            (
                Outcome::Changed,
                Some(format!("the kernel removed {removed}"))
            )
        );
        assert_eq!(read(&machine, &path(file)), held);
    }
    assert_eq!(state(&machine), None);
    let page = crate::screen::applied::restored(&restored, false)
        .show(crate::screen::page::Screen::default());
    let said = "changed   nic0 rps_cpus of rx 1; nic0 xps_cpus of tx 0-1,3; ";
    assert!(page.contains(said), "{page}");
    let check = machine.nicpin(&["check"]);
    assert_eq!((check.code, &*check.stderr), (2, ""), "{}", check.stdout);
}

/// XIVE answers ENXIO where it finds no target for an IRQ.
#[test]
fn only_files_that_are_absent_have_vanished() {
    for errno in [Errno::ENXIO, Errno::ENODEV] {
        for is_gone in [false, true] {
            let machine = machine();
            let top = at(&machine);
            let root = Root::open_with_faults(&at(&machine), move |access| {
                if access.action != FileAction::Write {
                    return InjectedAnswer::Done;
                }
                if is_gone {
                    std::fs::remove_file(top.join(&access.path[1..])).unwrap();
                }
                InjectedAnswer::Errno(errno as i32)
            });
            let done = run(&root.unwrap(), Options::default()).unwrap();
            for result in done.results {
                let detail = result.detail.unwrap();
                let expected = if is_gone {
                    Outcome::Vanished
                } else {
                    Outcome::Refused
                };
                assert_eq!(result.outcome, expected, "{detail}");
                assert_eq!(detail.contains("no longer exists"), is_gone, "{detail}");
            }
        }
    }
}

/// Some interrupt controllers take no affinity at all, others only some CPUs.
#[test]
fn an_interrupt_controller_that_accepts_no_affinity_is_named() {
    for (errno, online, takes_current, expected) in [
        (Errno::EINVAL, "0-7\n", false, ": the IRQ cannot be moved"),
        (Errno::ENOSYS, "0-7\n", false, ": the IRQ cannot be moved"),
        (
            Errno::EINVAL,
            "0-7\n",
            true,
            ": the interrupt controller does not accept this affinity",
        ),
        (
            Errno::EINVAL,
            "0\n",
            true,
            ": none of the CPUs is online now; fix: run again",
        ),
    ] {
        let machine = machine();
        let top = at(&machine);
        let root = Root::open_with_faults(&at(&machine), move |access| {
            if access.action != FileAction::Write || !access.path.starts_with("/proc/irq/") {
                return InjectedAnswer::Done;
            }
            let held = std::fs::read_to_string(top.join(&access.path[1..])).unwrap();
            if takes_current && held.trim() == access.value {
                return InjectedAnswer::Done;
            }
            std::fs::write(top.join("sys/devices/system/cpu/online"), online).unwrap();
            InjectedAnswer::Errno(errno as i32)
        });
        let done = run(&root.unwrap(), Options::default()).unwrap();
        let detail = done.results[0].detail.as_deref().unwrap();
        assert!(detail.ends_with(expected), "{detail} is not {expected}");
        assert_eq!(done.failed(), !expected.ends_with("moved"), "{detail}");
    }
}

/// Before Linux 6.12 the file of a vector that the kernel manages has write bits, and only the answer to a write tells.
#[test]
fn what_a_write_says_of_a_kernel_managed_vector_is_remembered() {
    let machine = machine();
    let root = Root::open_with_faults(&at(&machine), move |access| {
        let irq = access.path.strip_prefix("/proc/irq/").unwrap_or_default();
        let of_nic0 = (36..=43).any(|own| irq.starts_with(&format!("{own}/")));
        if access.action == FileAction::Write && of_nic0 {
            InjectedAnswer::Errno(Errno::EIO as i32)
        } else {
            InjectedAnswer::Done
        }
    });
    let before = machine.texts();
    let given = ["--rfs", "4096", "--rps", "0-7"];
    let nicpin = |command: &[&str]| machine.nicpin(&[command, &given].concat());
    let check = || -> serde_json::Value {
        serde_json::from_str(&nicpin(&["check", "--json", "nic0"]).stdout).unwrap()
    };
    let done = run(&root.unwrap(), Options::default()).unwrap();
    assert!(!done.failed() && done.tally.managed > 0);
    // The machine has not changed: a stored plan still fits.
    let stored = machine.path("/plan.json");
    let before_apply = MachineTree::of("two-node")
        .nicpin(&["plan", "--json", "nic0"])
        .stdout;
    std::fs::write(&stored, before_apply).unwrap();
    let fits = machine.nicpin(&["apply", "--dry-run", "--plan", stored.to_str().unwrap()]);
    assert_eq!(fits.code, 0, "{}{}", fits.stdout, fits.stderr);
    std::fs::remove_file(&stored).unwrap();
    let captured = Captured::of(machine.dir());
    assert_same_plans(machine.dir(), &captured.file());
    let first = check();
    let unmovable = first["unmovable"].as_array().unwrap().len();
    assert_eq!(unmovable, done.tally.managed, "{first}");
    let again = nicpin(&["apply"]);
    assert_eq!(again.code, 0, "{}{}", again.stdout, again.stderr);
    let second = check();
    let state_of = &second["interfaces"][0]["state"];
    assert_eq!(
        (state_of, nicpin(&["check"]).code),
        (&"unsupported".into(), 0)
    );
    // Another IRQ may be movable.
    machine.write(
        "/run/nicpin/state.json",
        &state(&machine)
            .unwrap()
            .replace("\"number\": 36", "\"number\": 8036"),
    );
    let other = check();
    assert_eq!(
        other["unmovable"].as_array().unwrap().len(),
        unmovable - 1,
        "{other}"
    );
    restored(&machine, &before, "kernel-managed vectors");
}

/// Between a read and the write or the read-back, any file may become unreadable or vanish.
#[test]
fn files_that_cannot_be_read_back() {
    let machine = machine();
    let before = machine.texts();
    let (_, plan) = planned(&Root::open(&at(&machine)).unwrap()).unwrap();
    let mut tried = std::collections::BTreeSet::new();
    for write in &plan.writes {
        // The first of each kind, or every one.
        if !tried.insert(write.kind) && !is_full() {
            continue;
        }
        for (errno, expected) in [
            (Errno::ENOENT, Outcome::Vanished),
            (Errno::EACCES, Outcome::Refused),
        ] {
            // Files are read for the plan, before the write, and after it.
            for nth in [2, 3] {
                let (path, reads) = (write.path.clone(), Cell::new(0));
                let root = Root::open_with_faults(&at(&machine), move |access| {
                    let read = access.action == FileAction::Read && access.path == &*path;
                    reads.set(reads.get() + usize::from(read));
                    if read && reads.get() == nth {
                        InjectedAnswer::Errno(errno as i32)
                    } else {
                        InjectedAnswer::Done
                    }
                })
                .unwrap();
                let done = run(&root, Options::default()).unwrap();
                let result = done
                    .results
                    .iter()
                    .find(|result| *result.path == *write.path)
                    .unwrap();
                assert_eq!(
                    result.outcome, expected,
                    "{errno:?} at read {nth} of {}",
                    write.path
                );
                assert!(done.failed());
                restored(&machine, &before, &write.path);
            }
        }
    }
}

/// Vectors of a CPU without a free one go to the next core of the L3 domain, then of the node.
#[test]
fn vectors_for_which_there_is_no_room() {
    // x460: nodes of 16 CPUs in cores of two neighbours, two L3 domains each; eth0 is planned for CPU 2.
    let cases = [
        ("2", Some((4, "cache domain"))),
        ("2,4,6", Some((0, "cache domain"))),
        ("0,2,4,6", Some((3, "cache domain"))),
        ("0-7", Some((8, "node"))),
        ("0-14", Some((15, "node"))),
        ("0-15", None),
    ];
    for (full, expected) in cases {
        let machine = MachineTree::of("x460");
        let before = machine.texts();
        let full_cpus = CpuSet::parse_list(full).unwrap();
        let no_room = move |access: FileAccess<'_>| {
            let vector =
                access.action == FileAction::Write && access.path == "/proc/irq/177/smp_affinity";
            let full = vector
                && CpuSet::parse_mask(access.value)
                    .unwrap()
                    .is_subset(&full_cpus);
            if full {
                InjectedAnswer::Errno(Errno::ENOSPC as i32)
            } else {
                InjectedAnswer::Done
            }
        };
        let root = Root::open_with_faults(&at(&machine), no_room).unwrap();
        let done = run(&root, Options::default()).unwrap();
        let result = done
            .results
            .iter()
            .find(|result| result.path.contains("/177/"))
            .unwrap();
        let held = CpuSet::parse_mask(&machine.read("/proc/irq/177/smp_affinity")).unwrap();
        let detail = result.detail.as_deref().unwrap();
        assert!(detail.contains("(ENOSPC)"), "{detail}");
        let Some((cpu, domain)) = expected else {
            assert_eq!(
                (done.failed(), result.outcome),
                (true, Outcome::Refused),
                "{full}"
            );
            restored(&machine, &before, full);
            continue;
        };
        assert_eq!(
            (done.failed(), held),
            (false, CpuSet::single(cpu)),
            "{full}: {detail}"
        );
        assert!(
            detail.ends_with(&format!(
                "CPU {cpu} of the same {domain} is used as a fallback"
            )),
            "{full}: {detail}"
        );
        let again = run(&root, Options::default()).unwrap();
        let result = again
            .results
            .iter()
            .find(|result| result.path.contains("/177/"))
            .unwrap();
        assert_eq!(
            (again.failed(), result.outcome),
            (false, Outcome::Already),
            "{full}"
        );
        let (host, plan) = planned(&root).unwrap();
        let found = nicpin::check::differences(&root, &host, &plan, &apply::Record::load(&root));
        let (differs, fallbacks) = (found.differs, found.fallbacks);
        assert_eq!((differs, fallbacks.len()), (vec![], 1), "{full}");
        restored(&machine, &before, full);
    }
}
