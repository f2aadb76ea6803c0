//! Why an apply, a restore or a confirmation ended early.

use crate::apply::irqbalance::RunningError;
use crate::apply::lock::LockError;
use crate::apply::state::StateError;
use crate::root::FileError;

/// Nothing more was done, because this went wrong.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// The lock.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The record, or a trial.
    #[error(transparent)]
    State(#[from] StateError),
    /// The machine.
    #[error(transparent)]
    File(#[from] FileError),
    /// Somebody else's trial is under way.
    #[error(
        "an apply --try of {seconds} s waits to be confirmed: `nicpin confirm` keeps it, `nicpin restore` puts back \
         what the first apply found"
    )]
    OnTrial {
        /// How long it has been given, in seconds.
        seconds: u64,
    },
    /// irqbalance runs, and nothing is to be written while it does.
    #[error(transparent)]
    Irqbalance(#[from] RunningError),
    /// It cannot be confirmed.
    #[error("{0}")]
    Confirm(String),
}
