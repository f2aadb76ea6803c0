//! A plan with only those changes that make a measure better (`only-gain` of the policy): IRQs and steering that are as
//! good as planned stay the same. Unlike other plans it depends on the current settings.

use itertools::{Itertools as _, chain, izip};

use crate::cpuset::CpuSet;
use crate::machine::{Interface, Machine, SettingKind};
use crate::plan::data::{Plan, PlannedInterface, PlannedRxQueue};
use crate::plan::objective::{Measure, Score};
use crate::plan::score::{Standing, standings};
use crate::plan::spread::Keep;
use crate::policy::Xps;

/// The reason for an unchanged setting.
pub(crate) const NOTHING_GAINED: &str = "a change would gain nothing";

/// The plan with the fewest writes that is as good as the `best` one. `keeping` plans around IRQs that stay on their
/// CPUs.
pub(crate) fn least(machine: &Machine, best: Plan, keeping: impl Fn(Keep) -> Plan) -> Plan {
    let Score {
        max_vectors_per_core,
        max_load_kbps,
        max_first_queues_per_core,
        ..
    } = best.score;
    // Fewer kept queues per core, if so many leave the others no room.
    let kept = (0..=max_vectors_per_core).rev().map(|queues| {
        keeping(Keep {
            queues,
            load: max_load_kbps,
            first_queues: max_first_queues_per_core,
            rdma: best.score.rdma.as_ref().map_or(0, |rdma| rdma.max_per_core),
        })
    });
    let measures = || {
        let others = [
            Measure::Remote,
            Measure::Isolated,
            Measure::RemoteRdma,
            Measure::BusiestRdma,
        ];
        chain(Measure::OBJECTIVE, others)
    };
    // Steering depends on where the IRQs are.
    let steering = |plan: &Plan| {
        let standings = standings(machine, &plan.interfaces, &|_, _, _| true);
        let interfaces = plan.interfaces.iter().zip(standings);
        let figures =
            interfaces.map(|(interface, now)| (now.shared_senders, interface.rps_targets(machine)));
        figures.collect_vec()
    };
    let best_steering = steering(&best);
    let is_as_good = |plan: &Plan| {
        let mut pairs = izip!(steering(plan), &best_steering);
        measures().all(|measure| plan.score.of(measure) <= best.score.of(measure))
            && pairs.all(|(own, best)| own.0 <= best.0 && own.1 == best.1)
    };
    let kept = kept.filter(is_as_good).min_by_key(|plan| plan.writes.len());
    match kept {
        Some(kept) if kept.writes.len() < best.writes.len() => kept,
        _ => best,
    }
}

/// Keeps steering that is as good as planned. `xps`: the policy's value for each interface.
pub(crate) fn keep_steering(machine: &Machine, interfaces: &mut [PlannedInterface], xps: &[Xps]) {
    let is_xps = |kind| kind == SettingKind::Xps;
    let now = standings(machine, interfaces, &|kind, _, _| !is_xps(kind));
    let planned = standings(machine, interfaces, &|_, _, _| true);
    let serving = cores_serving(machine);
    for (interface, now, planned, xps) in izip!(interfaces, now, planned, xps) {
        let is_better = |figure: fn(&Standing) -> usize| figure(&planned) < figure(&now);
        let is_gain = is_better(|standing| standing.score.far_senders)
            || is_better(|standing| standing.shared_senders);
        if *xps == Xps::Auto && !is_gain {
            for queue in &mut interface.tx_queues {
                queue.xps_cpus = None;
                queue.why = NOTHING_GAINED.into();
            }
        }
        let read = machine.interface(&interface.name);
        let as_good: Vec<u32> = interface.rps_as_good(read, &serving).collect();
        for queue in &mut interface.rx_queues {
            if as_good.contains(&queue.queue) {
                queue.rps_cpus = None;
                queue.why = NOTHING_GAINED.into();
            }
        }
    }
}

/// The CPUs of cores on which IRQs of queues in use, or IRQs that are not understood, interrupt now.
pub(crate) fn cores_serving(machine: &Machine) -> CpuSet {
    let topology = &machine.topology;
    let active = machine
        .interfaces
        .iter()
        .flat_map(Interface::active_vectors);
    let on = active.map(|vector| vector.effective_cpus(&topology.online));
    let all = on.fold(machine.not_understood_cpus(), |all, cpus| all.union(&cpus));
    topology.whole_cores(&all)
}

impl PlannedInterface {
    /// The number of CPUs to which the receive queues send packets.
    fn rps_targets(&self, machine: &Machine) -> usize {
        let read = machine.interface(&self.name);
        let now = |queue: u32| Some(&read?.rx_queue(queue)?.rps_cpus.as_ref()?.cpus);
        let queues = self.rx_queues.iter();
        let targets = queues.filter_map(|rx| rx.rps_cpus.as_ref().or_else(|| now(rx.queue)));
        targets.map(CpuSet::len).sum()
    }

    /// The receive queues whose RPS differs from the plan and is as good: it has as many of the CPUs to which the plan
    /// sends packets, or of those that do not serve any interface now. `serving`: by [`cores_serving`].
    pub(crate) fn rps_as_good(
        &self,
        read: Option<&Interface>,
        serving: &CpuSet,
    ) -> impl Iterator<Item = u32> {
        let idle = self.candidates.difference(serving);
        let wanted = self.rx_queues.iter().filter_map(|rx| rx.rps_cpus.as_ref());
        let all = CpuSet::union_of(wanted.chain([&idle]));
        let is_as_good = move |rx: &&PlannedRxQueue| {
            let now = read?.rx_queue(rx.queue)?;
            let (now, wanted) = (&now.rps_cpus.as_ref()?.cpus, rx.rps_cpus.as_ref()?);
            Some(now != wanted && now.len() == wanted.len() && now.is_subset(&all))
        };
        let as_good = self
            .rx_queues
            .iter()
            .filter(move |rx| is_as_good(rx) == Some(true));
        as_good.map(|rx| rx.queue)
    }
}
