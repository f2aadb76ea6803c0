//! Other tools that set the affinity of interrupts on this machine.

/// Everybody who was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OtherTools {
    /// irqbalance, while it runs.
    pub irqbalance: Option<Irqbalance>,
    /// Others, whether they run now or at the next event.
    pub others: Vec<OtherTool>,
}

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtherTool {
    /// A fixed word for programs.
    pub code: &'static str,
    /// Who it is, what it writes and when, in a sentence.
    pub text: String,
    /// What to do about it.
    pub fix: &'static str,
}

/// A running irqbalance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Irqbalance {
    /// Its process id.
    pub pid: i32,
    /// Where its service takes its arguments from; `None` where there is none of the known files.
    pub arguments: Option<Arguments>,
    /// Whether its arguments name a policy script, or a directory of such, that asks nicpin.
    pub asks_nicpin: bool,
    /// The policy script or directory that its arguments name, if any.
    pub policy_script: Option<String>,
}

/// Where a distribution keeps irqbalance's arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arguments {
    /// The file.
    pub file: String,
    /// The variable in it.
    pub variable: String,
}

/// Where that belongs.
pub const SCRIPT_PATH: &str = "/usr/lib/nicpin/nicpin-irqbalance-policy";
