//! Other tools that set the affinity of interrupts on this machine.

use serde::{Deserialize, Serialize};

/// The tools found on this machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OtherTools {
    /// irqbalance, while it runs.
    pub irqbalance: Option<Irqbalance>,
    /// What this user may not read, so that it could not be determined whether irqbalance runs: `/proc/812`.
    pub irqbalance_hidden: Option<String>,
    /// Tools that write now or at a later event.
    pub others: Vec<OtherTool>,
}

/// A tool that sets affinity at certain moments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OtherTool {
    /// A cloud provider's script that runs at boot: its path and what it writes.
    CloudScript { path: String, writes: String },
    /// A running tuned with the profiles `active`; `setting` of `profile` moves interrupts.
    Tuned {
        active: String,
        profile: String,
        setting: String,
    },
    /// A `.link` file of systemd-udevd with `IRQAffinityPolicy=`.
    LinkFile { path: String, policy: String },
}

/// A running irqbalance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Irqbalance {
    /// The process id.
    pub pid: i32,
    /// The file with its service's arguments; `None` if none of the known files exists.
    pub arguments: Option<Arguments>,
    /// Whether its policy script, or one in its directory of policy scripts, asks nicpin.
    pub uses_policy_script: bool,
    /// The policy script or directory in its arguments.
    pub policy_script: Option<String>,
}

/// The place of irqbalance's arguments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Arguments {
    pub file: String,
    pub variable: String,
}

/// Where packages install the policy script with which irqbalance asks nicpin.
pub const SCRIPT_PATH: &str = "/usr/lib/nicpin/nicpin-irqbalance-policy";
