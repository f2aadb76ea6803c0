use std::path::PathBuf;

use crate::root::FileError;

/// Why an apply, restore or confirm ended early.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// Also of the lock and of the state files.
    #[error(transparent)]
    File(#[from] FileError),
    #[error("{}: locked by {holder} for more than {seconds} s; fix: wait until it ends, or use --wait SECONDS", path.display())]
    Locked {
        path: PathBuf,
        /// `nicpin COMMAND, process PID`, as the file says.
        holder: String,
        seconds: u64,
    },
    #[error(
        "an apply --try of {seconds} s waits to be confirmed: `nicpin confirm` keeps its settings, `nicpin restore` \
         restores the settings before the first apply"
    )]
    OnTrial { seconds: u64 },
    /// irqbalance runs, or may run, and the policy refuses to write while it does.
    #[error("{0}")]
    Irqbalance(String),
    #[error("{0}")]
    Confirm(String),
}
