//! `apply --try`: unless it is confirmed in time, the settings before it are restored, by the process that watches it
//! or, if that died, by the next nicpin that writes.
//!
//! A trial that is over keeps settings that could not be restored, and every later apply tries again before it writes.
//! irqbalance's bans are then left to `nicpin restore`: a later apply may have banned more.

use std::collections::BTreeSet;
use std::mem::take;

use itertools::Itertools as _;
use serde::{Deserialize, Serialize};

use crate::apply::error::ApplyError;
use crate::apply::irqbalance::{self, IrqbalanceRecord};
use crate::apply::record::Record;
use crate::apply::restore_settings::{differs, restore_settings};
use crate::apply::settings::{self, Texts};
use crate::apply::state::StateFile;
use crate::kinds::SettingId;
use crate::machine::Machine;
use crate::machine::wording::count;
use crate::plan::{Cause, Plan, Why};
use crate::read;
use crate::report::outcome::IrqbalanceOutcome;
use crate::report::restored::Restored;
use crate::root::{FileError, Root};

const FILE: StateFile = StateFile {
    path: "/run/nicpin/try.json",
    schema: "nicpin.try/1",
    what: "a record of apply --try",
    not_done: "nothing was written, because it could not be restored",
};

/// Settings and state files before an apply, to restore if it fails, or is not confirmed in time.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trial {
    pub seconds: u64,
    pub over: bool,
    /// Settings that the apply may change; when the trial is over, those that could not be restored.
    pub(crate) before: Texts,
    pub(crate) record: Record,
    irqbalance: IrqbalanceRecord,
    /// irqbalance's bans could not be restored when the trial was over.
    #[serde(default)]
    irqbalance_failed: bool,
}

impl Trial {
    pub(crate) fn begin(root: &Root, seconds: u64) -> Result<Self, FileError> {
        Ok(Self {
            seconds,
            record: Record::load_to_write(root)?,
            // If unreadable, the ban alone fails, which reads it again.
            irqbalance: IrqbalanceRecord::load(root).unwrap_or_default(),
            ..Self::default()
        })
    }

    pub(crate) fn add(&mut self, machine: &Machine, plan: &Plan) {
        // Changed channels bring new queues and vectors, which are planned again.
        self.add_texts(if plan.channels.is_empty() {
            settings::written(machine, plan)
        } else {
            settings::texts(machine, plan)
        });
    }

    pub(crate) fn add_texts(&mut self, texts: Texts) {
        for (id, text) in texts {
            self.before.entry(id).or_insert(text);
        }
    }

    /// When the trial is over, restores the settings alone, since another apply may have added to the record. What
    /// could not be restored stays there.
    pub(crate) fn undo(&self, root: &Root, why: &Why) -> Result<Restored, ApplyError> {
        let mut restored = restore_settings(root, &self.before, why, false)?;
        if !self.over {
            restored.irqbalance = irqbalance::undo_since(root, &self.irqbalance);
        }
        if !self.over && restored.complete() {
            // Without room for it, the later record has all its original settings.
            let _ = self.record.save(root);
        } else if let Ok(mut record) = Record::load(root) {
            let set = record.last_set.keys().filter(|_| !self.over);
            let own = self.before.keys().filter(|_| self.over);
            let set = set.chain(own).cloned().collect_vec();
            record.reset_to(&set, &restored, &self.record);
            record.save(root)?;
        }
        Ok(restored.with_counts())
    }

    pub fn load(root: &Root) -> Result<Option<Self>, FileError> {
        FILE.load(root)
    }

    pub fn waiting(root: &Root) -> Result<Option<Self>, FileError> {
        Ok(Self::load(root)?.filter(|trial| !trial.over))
    }

    pub(crate) fn save(&self, root: &Root) -> Result<(), FileError> {
        FILE.save(root, self)
    }

    /// The settings stay. Under the lock.
    pub(crate) fn remove(root: &Root) -> Result<(), FileError> {
        FILE.remove(root)
    }

    /// Has a waiting trial restore `first_seen` at its end; if that cannot be saved, it restores the settings that it
    /// has. Under the lock.
    pub(crate) fn replace_waiting(root: &Root, first_seen: &Texts) {
        if let Ok(Some(trial)) = Self::waiting(root) {
            let before = first_seen.clone();
            let _ = Self {
                before,
                seconds: trial.seconds,
                ..Self::default()
            }
            .save(root);
        }
    }

    /// Everything was as planned, so that nothing is restored at the end.
    pub fn found_all_as_planned(&self, root: &Root) -> bool {
        !self.over && self.before.is_empty() && !self.irqbalance_changed(root)
    }

    fn irqbalance_changed(&self, root: &Root) -> bool {
        IrqbalanceRecord::load(root).map_or(true, |now| now != self.irqbalance)
    }

    /// An apply that ended before its first write has set nothing; one that found everything as planned has set all it
    /// planned.
    pub(crate) fn has_set_something(&self, root: &Root) -> bool {
        // If the machine cannot be read, confirm: the user wants to keep the trial.
        let settings_changed = || {
            let machine = read::settings(root, &Record::drivers(root));
            machine.map_or(true, |machine| differs(&self.before, &machine))
        };
        self.before.is_empty() || self.irqbalance_changed(root) || settings_changed()
    }

    /// The trial is not over, or some settings could not be restored yet.
    pub(crate) fn is_due(&self) -> bool {
        !self.over || !self.before.is_empty()
    }

    pub fn not_restored(&self) -> Option<String> {
        const NAMED: usize = 6;
        if !self.over || self.before.is_empty() && !self.irqbalance_failed {
            return None;
        }
        let irqbalance = self
            .irqbalance_failed
            .then(|| "irqbalance's banned IRQs".to_owned());
        let settings = self.before.keys().map(SettingId::to_string);
        let names = irqbalance.into_iter().chain(settings).collect_vec();
        let (many, first) = (names.len(), names.iter().take(NAMED).join(", "));
        let more = match many.saturating_sub(NAMED) {
            0 => String::new(),
            more => format!(", and {more} more"),
        };
        Some(format!(
            "{} could not be restored ({first}{more}); the next apply tries again, and `nicpin restore` restores the \
             settings before the first apply",
            count(many, "setting"),
        ))
    }

    /// For settings that an apply plans itself. Under the lock, before the apply writes.
    pub(crate) fn drop_settings(
        mut self,
        root: &Root,
        planned: impl Iterator<Item = SettingId>,
    ) -> Result<(), FileError> {
        let many = self.before.len();
        for id in planned {
            self.before.remove(&id);
        }
        if self.before.len() < many {
            self.save(root)?;
        }
        Ok(())
    }

    /// Under the lock. Settings that could not be restored stay in the trial, and so do `planned` ones, which the apply
    /// that follows sets.
    pub(crate) fn restore(
        mut self,
        root: &Root,
        planned: &BTreeSet<SettingId>,
    ) -> Result<Restored, ApplyError> {
        let (planned, own) = take(&mut self.before)
            .into_iter()
            .partition(|(id, _)| planned.contains(id));
        self.before = own;
        let restored = self.undo(root, &Why::because(Cause::BeforeTrial))?;
        let texts = take(&mut self.before);
        self.keep_unrestored(root, texts, planned, &restored)?;
        Ok(restored)
    }

    /// Ends the trial, but keeps those of `texts` that could not be restored, and `kept`.
    pub(crate) fn keep_unrestored(
        mut self,
        root: &Root,
        texts: Texts,
        kept: Texts,
        restored: &Restored,
    ) -> Result<(), FileError> {
        self.before = restored.left_of(texts);
        self.before.extend(kept);
        if !self.over {
            self.irqbalance_failed = restored
                .irqbalance
                .as_ref()
                .is_some_and(IrqbalanceOutcome::failed);
            self.over = true;
        }
        match self.save(root) {
            // There may be room when the larger file is gone. It protects nothing any more.
            Err(_) if restored.complete() => {
                Self::remove(root)?;
                let _ = self.save(root);
                Ok(())
            }
            saved => saved,
        }
    }
}
