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
    #[error(transparent)]
    File(#[from] FileError),
    #[error(
        "an apply --try of {seconds} s waits to be confirmed: `nicpin confirm` keeps its settings, `nicpin restore` \
         restores the settings before the first apply"
    )]
    OnTrial { seconds: u64 },
    #[error(transparent)]
    Irqbalance(#[from] RunningError),
    #[error("{0}")]
    Confirm(String),
}
