//! Other tools that set the affinity of interrupts on this machine.

use serde::{Deserialize, Serialize};

/// Everybody who was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OtherTools {
    /// irqbalance, while it runs.
    pub irqbalance: Option<Irqbalance>,
    /// Others, whether they run now or at the next event.
    pub others: Vec<OtherTool>,
}

/// A tool that sets affinity at certain moments.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum OtherTool {
    /// A cloud's script, which runs at boot: its path, and what it writes.
    CloudScript { path: String, writes: String },
    /// tuned, running with the profiles `active`, of which `profile` has a setting that moves interrupts.
    Tuned { active: String, profile: String, setting: String },
    /// A `.link` file of systemd-udevd with `IRQAffinityPolicy=`.
    LinkFile { path: String, policy: String },
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Arguments {
    /// The file.
    pub file: String,
    /// The variable in it.
    pub variable: String,
}

/// Where packages install the script that lets irqbalance ask nicpin.
pub const SCRIPT_PATH: &str = "/usr/lib/nicpin/nicpin-irqbalance-policy";
