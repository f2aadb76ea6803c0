//! What a monitoring system is given: the result of a check as numbers, and what a watcher counts, where there is one.

use std::collections::BTreeMap;

use crate::machine::paths::IRQ_FILES;
use crate::report::check::{Check, CheckState};
use crate::report::difference::Reason;
use crate::report::run::Watcher;
use crate::report::state::InterfaceState;

/// Metrics of a machine. Nothing is printed of what is `None` or empty.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Metrics {
    /// The hardware class and the plan's hash.
    pub plan: Option<(String, String)>,
    pub verdict: Option<CheckState>,
    /// By name.
    pub interfaces: BTreeMap<String, InterfaceMetrics>,
    /// Settings of the whole machine that differ from the plan.
    pub differ: BTreeMap<Reason, usize>,
    /// Interfaces whose number of channels is not as planned.
    pub channels: Option<usize>,
    /// Vectors that the watcher leaves alone because something else moved them again and again, by interface.
    pub contended: BTreeMap<String, usize>,
    /// How often the watcher has restored the planned state since it started.
    pub restores: Option<u64>,
    /// When the machine was last found in the planned state, in seconds since 1970.
    pub last_success: Option<u64>,
}

/// Metrics of an interface.
#[derive(Debug, Clone, PartialEq)]
pub struct InterfaceMetrics {
    pub state: InterfaceState,
    /// The share of its queue vectors with a local effective CPU, 0 to 1; `None` without any, or when no node is known.
    pub local: Option<f64>,
    /// Settings that differ from the plan.
    pub differ: BTreeMap<Reason, usize>,
}

impl Metrics {
    pub fn of(check: &Check) -> Self {
        let mut by_interface: BTreeMap<&str, BTreeMap<Reason, usize>> = BTreeMap::new();
        for difference in &check.differs {
            let counts = by_interface.entry(&difference.write.interface).or_default();
            *counts.entry(difference.reason).or_default() += 1;
        }
        let mut differ = |name: &str| by_interface.remove(name).unwrap_or_default();
        let interfaces = check.interfaces.iter().map(|interface| {
            let (state, local) = (interface.state, interface.local_share());
            (
                interface.name.clone(),
                InterfaceMetrics {
                    state,
                    local,
                    differ: differ(&interface.name),
                },
            )
        });
        Self {
            plan: Some((check.class.clone(), check.hash.clone())),
            verdict: Some(check.verdict),
            interfaces: interfaces.collect(),
            differ: differ(""),
            channels: Some(check.channels.len()),
            ..Self::default()
        }
    }

    /// Adds what a watcher counts.
    pub fn add(&mut self, watcher: &Watcher) {
        self.restores = Some(watcher.restores);
        self.contended = self
            .interfaces
            .keys()
            .map(|name| (name.clone(), 0))
            .collect();
        for left in &watcher.left_alone {
            *self
                .contended
                .entry(left.setting.interface.clone())
                .or_default() += usize::from(left.setting.path.starts_with(IRQ_FILES));
        }
    }
}
