//! Why an apply, restore or confirm ended early.

use crate::apply::irqbalance::RunningError;
use crate::apply::lock::LockError;
use crate::apply::state::StateError;
use crate::root::FileError;

/// Why an apply, restore or confirm ended early.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    #[error(transparent)]
    Lock(#[from] LockError),
    #[error(transparent)]
    State(#[from] StateError),
    /// A file of the machine could not be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// An earlier trial has not ended.
    #[error(
        "an apply --try of {seconds} s waits to be confirmed: `nicpin confirm` keeps its settings, `nicpin restore` \
         restores the settings before the first apply"
    )]
    OnTrial {
        /// The length of the trial.
        seconds: u64,
    },
    /// irqbalance runs, and the policy refuses to write while it does.
    #[error(transparent)]
    Irqbalance(#[from] RunningError),
    /// There is nothing to confirm.
    #[error("{0}")]
    Confirm(String),
}
