//! The exit codes.

/// The exit codes. There are no others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// In the planned state.
    Planned = 0,
    /// The planned state could not be reached, or could not be determined.
    Failed = 1,
    /// Differs from the plan, or was changed where that was asked for.
    Differs = 2,
    /// The command line makes no sense.
    Usage = 64,
}
