//! The settings and the state files before an apply, to restore them if it fails or is not confirmed.

use serde::{Deserialize, Serialize};

use crate::apply::error::ApplyError;
use crate::apply::irqbalance::{self, IrqbalanceRecord};
use crate::apply::record::Record;
use crate::apply::restore_settings::restore_settings;
use crate::apply::settings::{self, Texts};
use crate::apply::state::StateError;
use crate::machine::Machine;
use crate::plan::Plan;
use crate::report::restored::Restored;
use crate::root::Root;

/// What an apply finds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Checkpoint {
    /// The settings that the apply may change.
    #[serde(rename = "before")]
    pub(crate) settings: Texts,
    pub(crate) record: Record,
    /// What was done about irqbalance.
    pub(crate) irqbalance: IrqbalanceRecord,
}

impl Checkpoint {
    /// The state files; the settings are added when the plan is known.
    pub(crate) fn load(root: &Root) -> Result<Self, StateError> {
        let record = Record::load(root)?;
        // One that cannot be read is an error of irqbalance's ban alone, which reads it again.
        let irqbalance = IrqbalanceRecord::load(root).unwrap_or_default();
        Ok(Self {
            settings: Texts::new(),
            record,
            irqbalance,
        })
    }

    /// Adds the settings that a plan changes.
    pub(crate) fn add(&mut self, machine: &Machine, plan: &Plan) {
        let without_channels = plan.channels.is_empty();
        // Changed channels bring new queues and vectors, which are planned again.
        self.settings = if without_channels {
            settings::written(machine, plan)
        } else {
            settings::texts(machine, plan)
        };
    }

    /// Restores everything. What could not be restored stays in the record.
    pub(crate) fn restore(&self, root: &Root, why: &str) -> Result<Restored, ApplyError> {
        let mut restored = restore_settings(root, &self.settings, why, false)?;
        restored.irqbalance = irqbalance::undo_since(root, &self.irqbalance);
        if restored.complete() {
            // If there is no room for the earlier record, the later one has all its original settings.
            let _ = self.record.save(root);
        } else if let Ok(record) = Record::load(root) {
            let set: Vec<String> = record.last_set.keys().cloned().collect();
            self.reset(root, record, &set, &restored)?;
        }
        Ok(restored.counted())
    }

    /// Restores the settings alone, if another apply has added to the record since.
    pub(crate) fn restore_again(&self, root: &Root, why: &str) -> Result<Restored, ApplyError> {
        let restored = restore_settings(root, &self.settings, why, false)?;
        if let Ok(record) = Record::load(root) {
            self.reset(root, record, self.settings.keys(), &restored)?;
        }
        Ok(restored.counted())
    }

    fn reset<'a>(
        &self,
        root: &Root,
        mut record: Record,
        keys: impl IntoIterator<Item = &'a String>,
        restored: &Restored,
    ) -> Result<(), StateError> {
        record.reset_to(
            keys.into_iter()
                .filter(|key| !restored.refused_keys.contains(*key)),
            &self.record,
        );
        record.save(root)
    }
}
