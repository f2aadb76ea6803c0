//! The CPUs that policy and administrator leave to interrupts, whatever the interface's node.

use crate::cpuset::CpuSet;
use crate::machine::Topology;
use crate::policy::{AVOID_EXCLUSIVE, Choice, EXCLUDE};

pub(crate) struct Allowed {
    pub(crate) excluded: CpuSet,
    /// CPUs of exclusive cpuset partitions, if the policy leaves them out.
    pub(crate) exclusive: CpuSet,
    /// Isolated, `nohz_full` and `exclusive` CPUs, which take interrupts only if the policy names them or there are no
    /// others.
    pub(crate) apart: CpuSet,
    pub(crate) kept_off: CpuSet,
    /// Online CPUs that are neither excluded nor apart; without `kept_off`, too, while others are left.
    pub(crate) unreserved: CpuSet,
}

impl Allowed {
    pub(crate) fn new(topology: &Topology, choice: &Choice) -> Self {
        let excluded = choice.get(&EXCLUDE);
        let exclusive = if choice.get(&AVOID_EXCLUSIVE) {
            topology.exclusive.clone()
        } else {
            CpuSet::new()
        };
        let apart = topology.isolated_or_nohz().union(&exclusive);
        let kept_off = CpuSet::union_of(topology.kept_off.iter().map(|kept| &kept.cpus));
        let free = topology.online.difference(&apart).difference(&excluded);
        let for_irqs = free.difference(&kept_off);
        Self {
            excluded,
            exclusive,
            apart,
            kept_off,
            unreserved: if for_irqs.is_empty() { free } else { for_irqs },
        }
    }
}
