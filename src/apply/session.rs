//! Apply from the lock to the last read-back. Everything that an undo needs is safe before the first write.

use std::time::Duration;

use crate::apply::channels::change_channels;
use crate::apply::error::ApplyError;
use crate::apply::fallback::Fallbacks;
use crate::apply::irqbalance::{self, IrqbalanceRecord};
use crate::apply::lock::Lock;
use crate::apply::put_back::put_back;
use crate::apply::record::Record;
use crate::apply::settings;
use crate::apply::settings::Texts;
use crate::apply::state::StateError;
use crate::apply::trial::{Trial, TrialWatch};
use crate::apply::write::{undo_all, write_plan};
use crate::machine::Machine;
use crate::plan::Plan;
use crate::report::outcome::ApplyOutcome;
use crate::report::outcome::IrqbalanceOutcome;
use crate::report::outcome::RestoreOutcome;
use crate::report::outcome::WriteResult;
use crate::root::Root;

/// How to apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// How long to wait for another nicpin that is writing.
    pub wait: Duration,
    /// Whether the first failure stops everything and takes back what was written.
    pub atomic: bool,
    /// How many seconds the plan is on trial, if it is.
    pub trial: Option<u64>,
}

impl Default for Options {
    fn default() -> Self {
        Self { wait: Duration::from_secs(30), atomic: false, trial: None }
    }
}

/// Applies a plan, with everything that `nicpin apply` promises: one at a time, the first values safe before the
/// first write, nothing written that is as planned, no file made, no path outside of the root, each write read back.
///
/// `plan` reads the machine and plans it. It is called under the lock, and again after channels were changed, when
/// queues and vectors are others. A refused write is an outcome, not an error.
///
/// ```
/// use nicpin::{apply::{self, Options}, machine::Selection, policy::Policy, read::{self, Wants}, root::Root};
///
/// # let dir = tempfile::tempdir()?;
/// # std::process::Command::new("cp").args(["-r", "fixtures/two-node/."]).arg(dir.path()).status()?;
/// let root = Root::open(dir.path())?; // a copy of a machine; "/" is this one
/// let done = apply::apply(&root, Options::default(), |root| {
///     let machine = read::machine(root, Wants::default())?;
///     let selection = Selection::new(&machine, &["nic0".to_owned()], false).map_err(std::io::Error::other)?;
///     let plan = nicpin::plan::plan(&machine, &Policy::default(), &selection);
///     Ok::<_, Box<dyn std::error::Error>>((machine, plan))
/// })?;
/// assert!(!done.failed() && done.results.iter().all(|written| written.changed()));
///
/// let restored = apply::restore(&root, Options::default().wait)?;
/// assert_eq!(restored.map(|restored| restored.results.len()), Some(done.results.len()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn apply<E: From<ApplyError>>(
    root: &Root,
    options: Options,
    plan: impl FnMut(&Root) -> Result<(Machine, Plan), E>,
) -> Result<ApplyOutcome, E> {
    apply_when_safe(root, options, plan, || Ok(()))
}

/// As [`apply`]; `safe` is called when an undo has all it needs, before the first write. Its error ends the apply.
pub fn apply_when_safe<E: From<ApplyError>>(
    root: &Root,
    options: Options,
    mut plan: impl FnMut(&Root) -> Result<(Machine, Plan), E>,
    safe: impl FnOnce() -> Result<(), E>,
) -> Result<ApplyOutcome, E> {
    let mut session = Session::begin(root, options)?;
    let (mut machine, mut planned) = plan(root)?;
    irqbalance::may_write(&planned).map_err(ApplyError::from)?;
    session.remember(&machine, &planned)?;
    if let Err(error) = safe() {
        session.forget_plan();
        return Err(error);
    }
    session.put_on_trial(&machine, &planned)?;
    let changes =
        planned.channels.iter().map(|change| (change.interface.as_str(), change.current, change.wanted));
    let channels = change_channels(root, changes);
    if !channels.is_empty() {
        // Other queues and vectors now: everything else is planned for them. What came with them goes with them
        // when the channels are put back, and is not for the record.
        let again = plan(root).and_then(|(machine, plan)| {
            session.note(&machine, &plan)?;
            Ok((machine, plan))
        });
        match again {
            Ok(again) => (machine, planned) = again,
            Err(error) => {
                session.take_back(&machine, &planned, &[], true)?;
                return Err(error);
            }
        }
    }
    let stop = options.atomic && channels.iter().any(|c| c.refused.is_some());
    let told = if stop { None } else { irqbalance::before_writes(root, &machine, &planned) };
    let stop = stop || options.atomic && told.as_ref().is_some_and(IrqbalanceOutcome::failed);
    irqbalance::note_earlier_bans(root, &mut planned);
    let writes = if stop { &[] } else { planned.writes.as_slice() };
    let instead = Fallbacks::new(&machine.topology, &planned);
    let results = write_plan(root, writes, Some(&instead), options.atomic);
    let mut done = ApplyOutcome {
        machine,
        plan: planned,
        channels,
        irqbalance: told,
        results,
        undone: None,
        earlier: session.earlier.take(),
    };
    if options.atomic && done.failed() {
        done.undone =
            session.take_back(&done.machine, &done.plan, &done.results, !done.channels.is_empty())?;
    } else {
        session.record.settle(&done.machine, &done.plan, &done.results);
        // The first values are safe; all that can be lost here is why a value differs.
        let _ = session.save();
        if options.trial.is_some() && done.is_in_vain() {
            Trial::forget(root).map_err(ApplyError::from)?;
        }
    }
    Ok(done)
}

/// A run that writes, under the lock.
struct Session<'a> {
    root: &'a Root,
    options: Options,
    record: Record,
    /// The record as it was found.
    found: Record,
    /// The record as it is on disk.
    saved: Record,
    /// What there was before this run.
    before: Texts,
    /// What irqbalance had been told before this run.
    told: IrqbalanceRecord,
    earlier: Option<RestoreOutcome>,
    _lock: Lock,
}

impl<'a> Session<'a> {
    fn begin(root: &'a Root, options: Options) -> Result<Self, ApplyError> {
        let lock = Lock::take(root, "apply", options.wait)?;
        let earlier = match Trial::load(root)? {
            Some(trial) if !trial.over => match TrialWatch::take(root)? {
                None => return Err(ApplyError::OnTrial { seconds: trial.seconds }),
                // Whoever watched it is dead, perhaps since before the first write.
                Some(_) => Some(trial.put_back(root)?).filter(|undone| !undone.had_nothing_to_do()),
            },
            Some(trial) if trial.can_be_tried_again() => Some(trial.put_back(root)?),
            _ => None,
        };
        let record = Record::load(root)?;
        let (found, saved) = (record.clone(), record.clone());
        // One that cannot be read is refused when irqbalance is to be told.
        let told = IrqbalanceRecord::load(root).unwrap_or_default();
        Ok(Self { root, options, record, found, saved, before: Texts::new(), told, earlier, _lock: lock })
    }

    /// Keeps what there is now, durably.
    fn remember(&mut self, machine: &Machine, plan: &Plan) -> Result<(), ApplyError> {
        self.before = settings::texts(machine, plan);
        self.note(machine, plan)
    }

    /// Nothing will be written: the record is as it was. If that cannot be, it holds more first values than it has
    /// to, which does no harm.
    fn forget_plan(&mut self) {
        self.record = self.found.clone();
        let _ = self.save();
    }

    /// Puts the plan on trial, where that is wanted: after the record is safe and right before the first write, since
    /// from here on whoever finds the trial puts back what it may have set.
    fn put_on_trial(&mut self, machine: &Machine, plan: &Plan) -> Result<(), ApplyError> {
        let Some(seconds) = self.options.trial else {
            let Some(earlier) = Trial::load(self.root)? else { return Ok(()) };
            let planned = settings::planned(machine, plan).into_iter().map(|(value, _)| value.key).collect();
            return Ok(earlier.give_up(self.root, &planned)?);
        };
        // Channels bring queues and vectors that are planned anew.
        let before =
            if plan.channels.is_empty() { settings::written(machine, plan) } else { self.before.clone() };
        let saved = Trial::new(seconds, before, self.found.clone(), self.told.clone()).save(self.root);
        if saved.is_err() {
            // It may be there all the same, and not yet synced.
            let _ = Trial::forget(self.root);
            self.forget_plan();
        }
        Ok(saved?)
    }

    fn note(&mut self, machine: &Machine, plan: &Plan) -> Result<(), ApplyError> {
        self.record.add(self.root, machine, plan);
        Ok(self.save()?)
    }

    fn save(&mut self) -> Result<(), StateError> {
        if self.record != self.saved {
            self.record.save(self.root)?;
            self.saved = self.record.clone();
        }
        Ok(())
    }

    /// Takes back what this run has written, the last first, and then the channels; `None` unless it is to.
    fn take_back(
        &mut self,
        machine: &Machine,
        plan: &Plan,
        written: &[WriteResult],
        channels: bool,
    ) -> Result<Option<RestoreOutcome>, ApplyError> {
        if !self.options.atomic {
            return Ok(None);
        }
        let mut undone = RestoreOutcome {
            results: undo_all(self.root, &plan.writes, written),
            ..RestoreOutcome::default()
        };
        if channels {
            let rest = put_back(self.root, &self.before, "as it was before this apply")?;
            undone.channels = rest.channels;
            undone.results.extend(rest.results);
            undone.absent = rest.absent;
        }
        undone.irqbalance = irqbalance::back_to(self.root, &self.told);
        if undone.complete() {
            self.forget_plan();
            if self.options.trial.is_some() {
                Trial::forget(self.root)?;
            }
        } else {
            let failed =
                |path: &str| undone.results.iter().any(|result| result.path == path && result.failed());
            let planned = settings::planned(machine, plan).into_iter().map(|(value, _)| value);
            let back: Vec<String> =
                planned.filter(|value| !failed(&value.path)).map(|value| value.key).collect();
            self.record.are_back(&back, &self.found);
            let _ = self.save();
        }
        Ok(Some(undone.counted()))
    }
}
