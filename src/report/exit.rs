//! The exit codes, and the name of errors as JSON.

use std::process::ExitCode;

/// The exit codes. There are no others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// In the planned state.
    Planned = 0,
    /// The planned state could not be reached, or could not be determined.
    Failed = 1,
    /// Differs from the plan, or was changed with `--detailed-exitcode`.
    Differs = 2,
    /// Unknown, of `check --format nagios`, whose codes are those of monitoring plugins: 1 is a warning, 2 is critical.
    PluginUnknown = 3,
    /// The command line is not valid.
    Usage = 64,
}

/// The schema of an error as JSON, which a command prints in place of its report.
pub const ERROR_SCHEMA: &str = "nicpin.error/1";

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}
