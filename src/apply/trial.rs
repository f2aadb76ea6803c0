//! `apply --try`: the settings before the apply are kept beside the record until it is confirmed. Otherwise they are
//! restored when the time is over: by the process that watches the time or, if that died, by the next nicpin that
//! writes.
//!
//! A trial whose settings could not all be restored is over nevertheless and cannot be confirmed any more. It keeps the
//! settings that are left, and every later apply tries again to restore them before it writes, until all are restored
//! or planned by an apply, or until `nicpin restore`. irqbalance's banned IRQs are left to `nicpin restore` then: a
//! later apply may have banned more.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::apply::checkpoint::Checkpoint;
use crate::apply::error::ApplyError;
use crate::apply::irqbalance::IrqbalanceRecord;
use crate::apply::restore_settings::differs;
use crate::apply::settings::Texts;
use crate::apply::state::{StateError, StateFile};
use crate::machine::wording::count;
use crate::read::{self, Wants};
use crate::report::outcome::IrqbalanceOutcome;
use crate::report::restored::Restored;
use crate::root::Root;

const FILE: StateFile = StateFile {
    name: "try.json",
    schema: "nicpin.try/1",
    what: "a record of apply --try",
    not_done: "nothing was written, because it could not be restored",
};

/// An apply that has to be confirmed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trial {
    /// The time for the confirmation.
    pub seconds: u64,
    /// Whether it was not confirmed in time.
    pub over: bool,
    /// The settings before the apply; when the trial is over, those that could not be restored.
    #[serde(flatten)]
    before: Checkpoint,
    /// Whether the trial is over and irqbalance's bans could not be restored.
    #[serde(default)]
    irqbalance_failed: bool,
}

impl Trial {
    pub(crate) fn new(seconds: u64, before: Checkpoint) -> Self {
        Self {
            seconds,
            over: false,
            before,
            irqbalance_failed: false,
        }
    }

    /// A trial that is over, to replace one that cannot be read; `left` could not be restored.
    pub(crate) fn ended(left: Texts, restored: &Restored) -> Self {
        let irqbalance_failed = restored
            .irqbalance
            .as_ref()
            .is_some_and(IrqbalanceOutcome::failed);
        let before = Checkpoint {
            settings: left,
            ..Checkpoint::default()
        };
        Self {
            over: true,
            irqbalance_failed,
            ..Self::new(0, before)
        }
    }

    /// Reads the trial; `None` if there is none.
    pub fn load(root: &Root) -> Result<Option<Self>, StateError> {
        FILE.load(root)
    }

    pub(crate) fn save(&self, root: &Root) -> Result<(), StateError> {
        FILE.save(root, self)
    }

    /// Ends any trial; the settings stay as they are. Under the lock.
    pub(crate) fn remove(root: &Root) -> Result<(), StateError> {
        FILE.remove(root)
    }

    /// Whether there is something to confirm. An apply that ended before its first write has set nothing; one that
    /// found everything as planned has set all it planned.
    pub(crate) fn has_set_something(&self, root: &Root) -> bool {
        let Checkpoint {
            settings,
            irqbalance,
            ..
        } = &self.before;
        let irqbalance_changed =
            || IrqbalanceRecord::load(root).map_or(true, |now| now != *irqbalance);
        // Confirm a trial whose machine cannot be read: the user wants to keep it.
        let settings_changed = || {
            read::settings(root, Wants::default())
                .map_or(true, |machine| differs(settings, &machine))
        };
        settings.is_empty() || irqbalance_changed() || settings_changed()
    }

    /// Whether the trial is over and some settings could not be restored yet.
    pub(crate) fn has_settings_left(&self) -> bool {
        self.over && !self.before.settings.is_empty()
    }

    /// What could not be restored when the trial was over, in words; `None` if everything was restored.
    pub fn not_restored(&self) -> Option<String> {
        const NAMED: usize = 6;
        if !self.over || self.before.settings.is_empty() && !self.irqbalance_failed {
            return None;
        }
        let mut names: Vec<&str> = self
            .irqbalance_failed
            .then_some("irqbalance's banned IRQs")
            .into_iter()
            .collect();
        names.extend(self.before.settings.keys().map(String::as_str));
        let (many, more) = (names.len(), names.len().saturating_sub(NAMED));
        names.truncate(NAMED);
        let more = if more > 0 {
            format!(", and {more} more")
        } else {
            String::new()
        };
        Some(format!(
            "{} could not be restored ({}{more}); the next apply tries again, and `nicpin restore` restores the settings \
             before the first apply",
            count(many, "setting"),
            names.join(", ")
        ))
    }

    /// Drops the settings that an apply plans itself. Under the lock, before the apply writes.
    pub(crate) fn drop_settings(
        mut self,
        root: &Root,
        planned: &BTreeSet<String>,
    ) -> Result<(), StateError> {
        let many = self.before.settings.len();
        self.before.settings.retain(|key, _| !planned.contains(key));
        if self.before.settings.len() < many {
            self.save(root)
        } else {
            Ok(())
        }
    }

    /// Restores the settings before the apply, under the lock. Those that could not be restored stay in the trial.
    pub(crate) fn restore(mut self, root: &Root) -> Result<Restored, ApplyError> {
        let why = "as it was before apply --try";
        let restored = if self.over {
            self.before.restore_again(root, why)?
        } else {
            self.before.restore(root, why)?
        };
        if !self.over {
            self.irqbalance_failed = restored
                .irqbalance
                .as_ref()
                .is_some_and(IrqbalanceOutcome::failed);
        }
        self.over = true;
        let left =
            |key: &String| restored.refused_keys.contains(key) || restored.absent.contains(key);
        self.before.settings.retain(|key, _| left(key));
        self.save_end(root, &restored)?;
        Ok(restored)
    }

    /// Saves a trial that is over.
    pub(crate) fn save_end(&self, root: &Root, restored: &Restored) -> Result<(), StateError> {
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
