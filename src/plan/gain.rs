//! The policy's `only-gain`: a plan with only those changes that make a measure better. Unlike other plans it depends
//! on the current settings.

use itertools::{chain, izip};

use crate::cpuset::CpuSet;
use crate::kinds::SettingKind;
use crate::machine::{Interface, Machine};
use crate::plan::data::{Plan, PlannedInterface, PlannedRxQueue};
use crate::plan::objective::{Measure, RdmaScore, Score};
use crate::plan::score::{IrqPlaces, Standing, standings};
use crate::plan::why::{Cause, Why};
use crate::policy::Xps;

/// The plan with the fewest writes that is as good as `best`. `keeping` plans around IRQs that stay on their CPUs, as
/// far as no core gets above the measures of a score.
pub(crate) fn least(machine: &Machine, best: Plan, keeping: impl Fn(&Score) -> Plan) -> Plan {
    // All, then fewer kept queues per core, if so many leave the others no room.
    let all = Score {
        max_vectors_per_core: usize::MAX,
        max_load_kbps: u64::MAX,
        max_first_queues_per_core: usize::MAX,
        rdma: Some(RdmaScore {
            max_per_core: usize::MAX,
            ..RdmaScore::default()
        }),
        ..Score::default()
    };
    let fewer = (0..=best.score.max_vectors_per_core).rev();
    let fewer = fewer.map(|max_vectors_per_core| Score {
        max_vectors_per_core,
        ..best.score.clone()
    });
    let kept = chain([all], fewer).map(|most| keeping(&most));
    let is_at_most = |score: &Score, best: &Score| {
        Measure::compared().all(|measure| score.of(measure) <= best.of(measure))
    };
    // An interface may lose what another gains, and steering depends on where the IRQs are.
    let standings = |plan: &Plan| standings(machine, &plan.interfaces, &|_, _, _| true);
    let best_standings = standings(&best);
    let is_as_good = |plan: &Plan| {
        let serving = cores_serving(machine, &plan.interfaces);
        let (own, best_own) = (standings(plan), &best_standings);
        let mut interfaces = izip!(&plan.interfaces, &best.interfaces, own, best_own);
        is_at_most(&plan.score, &best.score)
            && interfaces.all(|(interface, best, now, then)| {
                is_at_most(&now.score, &then.score)
                    && now.shared_senders <= then.shared_senders
                    && best.has_no_better_rps(interface, machine, &serving)
            })
    };
    let kept = kept.filter(is_as_good).min_by_key(|plan| plan.writes.len());
    match kept {
        Some(kept) if kept.writes.len() < best.writes.len() => kept,
        _ => best,
    }
}

pub(crate) fn keep_steering(machine: &Machine, interfaces: &mut [PlannedInterface], xps: &[Xps]) {
    let is_xps = |kind| kind == SettingKind::Xps;
    let now = standings(machine, interfaces, &|kind, _, _| !is_xps(kind));
    let planned = standings(machine, interfaces, &|_, _, _| true);
    let serving = cores_serving(machine, interfaces);
    for (interface, now, planned, xps) in izip!(interfaces, now, planned, xps) {
        let is_better = |figure: fn(&Standing) -> usize| figure(&planned) < figure(&now);
        let is_gain = is_better(|standing| standing.score.far_senders)
            || is_better(|standing| standing.shared_senders);
        if *xps == Xps::Auto && !is_gain {
            for queue in &mut interface.tx_queues {
                queue.xps_cpus = None;
                queue.why = Why::because(Cause::NothingGained);
            }
        }
        let read = machine.interface(&interface.name);
        let as_good: Vec<u32> = interface.rps_as_good(read, &serving).collect();
        for queue in &mut interface.rx_queues {
            if as_good.contains(&queue.queue) {
                queue.rps_cpus = None;
                queue.why = Why::because(Cause::NothingGained);
            }
        }
    }
}

/// The CPUs of cores on which IRQs of queues in use, or IRQs that are not understood, interrupt: those of
/// `interfaces` by their plan, others now.
pub(crate) fn cores_serving(machine: &Machine, interfaces: &[PlannedInterface]) -> CpuSet {
    let irqs = IrqPlaces::new(machine, interfaces, &|_, _, _| true);
    let active = machine
        .interfaces
        .iter()
        .flat_map(Interface::active_vectors);
    let on = CpuSet::union_of(active.map(|vector| irqs.place_now(vector).0));
    let all = on.union(&machine.not_understood_cpus());
    machine.topology.whole_cores(&all)
}

impl PlannedInterface {
    fn has_no_better_rps(&self, other: &Self, machine: &Machine, serving: &CpuSet) -> bool {
        let read = machine.interface(&self.name);
        let now = |queue: u32| Some(&read?.rx_queue(queue)?.rps_cpus.as_ref()?.cpus);
        let is_as_good = self.rps_judge(serving);
        izip!(&self.rx_queues, &other.rx_queues).all(|(best, other)| {
            let other = other.rps_cpus.as_ref().or_else(|| now(other.queue));
            let pair = best.rps_cpus.as_ref().zip(other);
            pair.is_none_or(|(best, other)| is_as_good(best, other))
        })
    }

    /// RPS is as good as planned on as many CPUs, each a candidate that serves no interface, or a CPU to which the plan
    /// sends packets.
    fn rps_judge(&self, serving: &CpuSet) -> impl Fn(&CpuSet, &CpuSet) -> bool + use<> {
        let idle = self.candidates.difference(serving);
        let wanted = self.rx_queues.iter().filter_map(|rx| rx.rps_cpus.as_ref());
        let all = CpuSet::union_of(wanted.chain([&idle]));
        move |planned, other| other.len() == planned.len() && other.is_subset(&all)
    }

    /// The receive queues whose RPS differs from the plan and is as good. `serving`: by [`cores_serving`].
    pub(crate) fn rps_as_good(
        &self,
        read: Option<&Interface>,
        serving: &CpuSet,
    ) -> impl Iterator<Item = u32> {
        let is_as_good = self.rps_judge(serving);
        let is_other = move |rx: &&PlannedRxQueue| {
            let now = read?.rx_queue(rx.queue)?;
            let (now, wanted) = (&now.rps_cpus.as_ref()?.cpus, rx.rps_cpus.as_ref()?);
            Some(now != wanted && is_as_good(wanted, now))
        };
        let as_good = self
            .rx_queues
            .iter()
            .filter(move |rx| is_other(rx) == Some(true));
        as_good.map(|rx| rx.queue)
    }
}
