//! Exit codes, and the schema of errors as JSON.

use std::process::ExitCode;

/// The exit codes of all commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    Planned = 0,
    /// The planned state could not be reached, or could not be determined.
    Failed = 1,
    /// The machine differs from the plan, or was changed with `--detailed-exitcode`.
    Differs = 2,
    /// UNKNOWN of `check --format nagios`, whose codes are those of monitoring plugins: 1 is a warning, 2 is critical.
    PluginUnknown = 3,
    Usage = 64,
}

impl Exit {
    /// The exit code of a command that compares nothing.
    pub fn of(failed: bool) -> Self {
        if failed { Self::Failed } else { Self::Planned }
    }
}

/// The schema of an error as JSON, which is printed in place of the report.
pub const ERROR_SCHEMA: &str = "nicpin.error/1";

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}
