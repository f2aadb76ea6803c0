//! Apply, from the lock to the last read-back. All that a restore needs is on disk before the first write.

use std::collections::BTreeSet;
use std::time::Duration;

use nix::errno::Errno;

use crate::apply::channels::change_planned_channels;
use crate::apply::error::ApplyError;
use crate::apply::lock::{Lock, TrialGuard};
use crate::apply::record::Record;
use crate::apply::trial::Trial;
use crate::apply::write::{has_new_managed, merge, write_plan};
use crate::apply::{irqbalance, settings};
use crate::cpuset::Inserted as _;
use crate::kinds::SettingId;
use crate::machine::Machine;
use crate::machine::files::{IRQ_FILES, NET, queue_files};
use crate::plan::{Cause, Plan, Why};
use crate::report::applied::Applied;
use crate::report::outcome::WriteResult;
use crate::report::restored::Restored;
use crate::root::{FileError, Root};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    pub wait: Duration,
    /// The first failure stops the apply and restores what it has written.
    pub atomic: bool,
    /// Seconds after which settings that are not confirmed are restored; `None`: no trial.
    pub trial: Option<u64>,
    /// Another apply follows when this one fails: irqbalance gets half a second to answer, not five, and may be silent
    /// if it was asked for the same bans before.
    pub repeats: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            wait: Duration::from_secs(30),
            atomic: false,
            trial: None,
            repeats: false,
        }
    }
}

/// Applies a plan as `nicpin apply` does: under the lock, with the original settings on disk before the first write.
/// Writes only what differs, creates no file, writes nothing outside the root, and reads back each write.
///
/// `make_plan` reads the machine and plans it, under the lock. It is called again after channels were changed, since
/// queues and vectors are new then, after irqbalance was asked, which moves vectors until then, and after a write
/// showed that a vector is kernel-managed. A refused write is an outcome, not an error.
///
/// ```
/// use nicpin::{Options, Policy, Root, Selection, ReadOptions};
///
/// # let dir = tempfile::tempdir()?;
/// # std::process::Command::new("cp").args(["-r", "fixtures/two-node/."]).arg(dir.path()).status()?;
/// let root = Root::open(dir.path())?; // a copy of a machine; "/" is this one
/// let done = nicpin::apply(&root, Options::default(), |root| {
///     let machine = nicpin::machine(root, ReadOptions::default())?;
///     let selection = Selection::new(&machine, &["nic0".to_owned()], false).map_err(std::io::Error::other)?;
///     let plan = nicpin::plan(&machine, &Policy::default(), &selection);
///     Ok::<_, Box<dyn std::error::Error>>((machine, plan))
/// })?;
/// assert!(!done.failed() && done.results.iter().all(|written| written.changed()));
///
/// let restored = nicpin::restore(&root, Options::default().wait)?;
/// assert_eq!(restored.map(|restored| restored.results.len()), Some(done.results.len()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn apply<E: From<ApplyError>>(
    root: &Root,
    options: Options,
    make_plan: impl FnMut(&Root) -> Result<(Machine, Plan), E>,
) -> Result<Applied, E> {
    apply_when_safe(root, options, make_plan, || Ok(()))
}

/// [`apply`] that calls `safe` before the first write, when all that a restore needs is on disk. Its error ends the
/// apply.
pub fn apply_when_safe<E: From<ApplyError>>(
    root: &Root,
    options: Options,
    mut make_plan: impl FnMut(&Root) -> Result<(Machine, Plan), E>,
    safe: impl FnOnce() -> Result<(), E>,
) -> Result<Applied, E> {
    let lock = Lock::take(root, "apply", options.wait)?;
    let earlier = Trial::load(root).map_err(ApplyError::from)?;
    let mut earlier = earlier.filter(Trial::is_due);
    let mut planned = BTreeSet::new();
    if let Some(earlier) = &mut earlier {
        // An apply that is refused must not end an earlier trial.
        let (machine, plan) = make_plan(root)?;
        // What is planned now would be written at once again.
        if earlier.over && options.trial.is_none() {
            let settings = settings::planned_settings(&machine, &plan).into_iter();
            planned = settings.map(|(setting, _)| setting.id()).inserted();
        }
    }
    let mut session = Session::begin(root, options, lock, earlier, &planned)?;
    let (mut machine, mut plan) = make_plan(root)?;
    irqbalance::may_write(&plan)?;
    session.before.add(&machine, &plan);
    session.add_to_record(&machine, &plan)?;
    if let Err(error) = safe() {
        session.reset_record();
        return Err(error);
    }
    session.start_trial(&machine, &plan)?;
    let channels = change_planned_channels(root, &machine, &plan);
    if !channels.is_empty() {
        // New queues go away when the channels are restored, so their settings are not original ones.
        (machine, plan) = session.plan_again(&mut make_plan)?;
    }
    let mut stop = options.atomic && channels.iter().any(|c| c.refused.is_some());
    let mut irqbalance = None;
    if !stop {
        irqbalance = irqbalance::before_writes(root, &machine, &plan, options.repeats);
    }
    if let Some(outcome) = &irqbalance {
        if outcome.changed {
            // Until it answered, irqbalance may have moved vectors that were read as planned.
            (machine, plan) = session.plan_again(&mut make_plan)?;
        }
        stop |= options.atomic && outcome.failed();
    }
    // An atomic apply that has failed already writes nothing.
    let (mut results, mut is_finished) = (Vec::new(), stop);
    while !is_finished {
        let written = session.write(&machine, &plan, &results)?;
        is_finished = !has_new_managed(&written, &results);
        if !is_finished {
            session.record.settle(&machine, &plan, &written);
            (machine, plan) = session.plan_again(&mut make_plan)?;
            // All settings are in the trial if channels were changed.
            if channels.is_empty() {
                session.add_to_trial(&machine, &plan)?;
            }
        }
        results = merge(results, written);
    }
    let mut done = Applied {
        machine,
        not_judged: plan.not_judged.clone(),
        plan,
        channels,
        irqbalance,
        results,
        earlier: session.earlier.take(),
        trial: options.trial,
        ..Applied::default()
    };
    if options.atomic && done.count().failed() > 0 {
        done.undone = session.undo()?;
    } else {
        let record = &mut session.record;
        record.settle(&done.machine, &done.plan, &done.results);
        // The original settings are on disk; an error here only loses the reasons that `check` reports.
        let _ = session.save();
        if options.trial.is_some() && done.changed_nothing_and_failed() {
            session.withdraw_trial().map_err(ApplyError::from)?;
        }
    }
    Ok(done.with_counts())
}

/// ESTALE if the name of an interface is that of another device now. Writes find out an interface that is gone.
fn have_their_devices(root: &Root, plan: &Plan) -> Result<(), FileError> {
    for interface in &plan.interfaces {
        let device = root.canonical(&format!("{NET}/{}/device", interface.name))?;
        if device.is_some_and(|path| path.split('/').all(|name| name != interface.device)) {
            return Err(root.io_error(&queue_files(&interface.name), Errno::ESTALE));
        }
    }
    Ok(())
}

struct Session<'a> {
    root: &'a Root,
    options: Options,
    record: Record,
    saved: Record,
    before: Trial,
    earlier: Option<Restored>,
    /// An earlier trial, of which not everything could be restored.
    unrestored: Option<Trial>,
    _lock: Lock,
}

impl<'a> Session<'a> {
    fn begin(
        root: &'a Root,
        options: Options,
        lock: Lock,
        due: Option<Trial>,
        planned: &BTreeSet<SettingId>,
    ) -> Result<Self, ApplyError> {
        let mut earlier = None;
        if let Some(trial) = due {
            let (over, seconds) = (trial.over, trial.seconds);
            // If the watching process has ended, it died, perhaps before the first write.
            if !over && !TrialGuard::open(root)?.has_ended() {
                return Err(ApplyError::OnTrial { seconds });
            }
            earlier = Some(trial.restore(root, planned)?).filter(|undone| {
                if over {
                    *undone != Restored::default()
                } else {
                    !undone.had_nothing_to_do()
                }
            });
        }
        let before = Trial::begin(root, options.trial.unwrap_or_default())?;
        Ok(Self {
            root,
            options,
            record: before.record.clone(),
            saved: before.record.clone(),
            before,
            earlier,
            unrestored: None,
            _lock: lock,
        })
    }

    /// If this fails, the record has more original settings than needed, which does no harm.
    fn reset_record(&mut self) {
        self.record = self.before.record.clone();
        let _ = self.save();
    }

    /// After the record is on disk, and right before the first write: any nicpin that finds the trial restores what it
    /// may have set.
    fn start_trial(&mut self, machine: &Machine, plan: &Plan) -> Result<(), ApplyError> {
        let earlier = Trial::load(self.root)?;
        if self.options.trial.is_none() {
            if let Some(earlier) = earlier {
                let planned = settings::planned_settings(machine, plan).into_iter();
                earlier.drop_settings(self.root, planned.map(|(setting, _)| setting.id()))?;
            }
            return Ok(());
        }
        self.unrestored = earlier.filter(Trial::is_due);
        let saved = self.save_trial();
        if saved.is_err() {
            // The file may exist nevertheless, not yet synced.
            let _ = self.withdraw_trial();
            self.reset_record();
        }
        Ok(saved?)
    }

    fn save_trial(&self) -> Result<(), FileError> {
        let mut trial = self.before.clone();
        if let Some(earlier) = &self.unrestored {
            trial.add_texts(earlier.before.clone());
        }
        trial.save(self.root)
    }

    /// Settings that only a later plan changes are restored, too.
    fn add_to_trial(&mut self, machine: &Machine, plan: &Plan) -> Result<(), ApplyError> {
        self.before.add(machine, plan);
        if self.options.trial.is_some() {
            if let Err(error) = self.save_trial() {
                self.undo()?;
                return Err(error.into());
            }
        }
        Ok(())
    }

    /// For an apply that has changed nothing. What an earlier trial could not restore is left.
    fn withdraw_trial(&self) -> Result<(), FileError> {
        match &self.unrestored {
            Some(earlier) => earlier.save(self.root),
            None => Trial::remove(self.root),
        }
    }

    /// Undoes earlier changes if reading or planning fails.
    fn plan_again<E: From<ApplyError>>(
        &mut self,
        make_plan: &mut impl FnMut(&Root) -> Result<(Machine, Plan), E>,
    ) -> Result<(Machine, Plan), E> {
        // The plan depends on what the record says of vectors.
        let again = self
            .save()
            .map_err(ApplyError::from)
            .map_err(E::from)
            .and_then(|()| {
                let (machine, plan) = make_plan(self.root)?;
                self.add_to_record(&machine, &plan)?;
                Ok((machine, plan))
            });
        if again.is_err() {
            self.undo()?;
        }
        again
    }

    /// Never writes to an interface that gets the name of another meanwhile.
    fn write(
        &self,
        machine: &Machine,
        plan: &Plan,
        earlier: &[WriteResult],
    ) -> Result<Vec<WriteResult>, ApplyError> {
        let directories = plan
            .interfaces
            .iter()
            .map(|interface| queue_files(&interface.name))
            .chain([IRQ_FILES.to_owned()]);
        self.root
            .with_pinned(directories, || {
                have_their_devices(self.root, plan)?;
                let fallbacks = Some((&machine.topology, plan));
                Ok(write_plan(
                    self.root,
                    &plan.writes,
                    fallbacks,
                    self.options.atomic,
                    earlier,
                ))
            })
            .or_else(|error| {
                self.undo()?;
                Err(ApplyError::File(error))
            })
    }

    fn add_to_record(&mut self, machine: &Machine, plan: &Plan) -> Result<(), ApplyError> {
        self.record.add(self.root, machine, plan);
        Ok(self.save()?)
    }

    fn save(&mut self) -> Result<(), FileError> {
        if self.record != self.saved {
            self.record.save(self.root)?;
            self.saved = self.record.clone();
        }
        Ok(())
    }

    fn undo(&self) -> Result<Option<Restored>, ApplyError> {
        if !self.options.atomic {
            return Ok(None);
        }
        let why = Why::because(Cause::BeforeThisApply);
        let undone = self.before.undo(self.root, &why)?;
        if undone.complete() && self.options.trial.is_some() {
            self.withdraw_trial()?;
        }
        Ok(Some(undone))
    }
}
