//! Makes a plan: places the queues, then gives each vector and queue its target and reason, and lists the writes.

use std::collections::BTreeMap;

use itertools::Itertools as _;

use crate::cpuset::CpuSet;
use crate::drivers::Fact;
use crate::machine::{Machine, NodeSource, Role, Selection, Topology, Vector};
use crate::plan::assign::placed_ports;
use crate::plan::data::{
    DecidedBy, HostSummary, NodeSummary, Placement, Plan, PlannedInterface, PlannedVector, SCHEMA,
    not_judged,
};
use crate::plan::gain;
use crate::plan::hash::{class, hash};
use crate::plan::objective::Score;
use crate::plan::place::Locations;
use crate::plan::ports::PlacedPort;
use crate::plan::requests::unmet_files;
use crate::plan::rps::{self, Rps};
use crate::plan::score::score;
use crate::plan::threads::Threads;
use crate::plan::why::{Cause, Uncounted, Why};
use crate::plan::{device, notes, rfs, xps};
use crate::policy::{
    GROUP, Group, IRQBALANCE, KEEP_RDMA, ONLY_GAIN, Policy, RFS, Rfs, SCOPE, Scope, XPS,
};

/// Facts about all interfaces that take part, selected or not, on which the plan of each depends.
struct Context<'a> {
    selection: &'a Selection,
    threads: Threads,
    rps: BTreeMap<usize, Rps>,
    network_cpus: CpuSet,
    /// The number of receive queues that share a flow table.
    flow_queues: usize,
}

/// Plans the selected interfaces. Interfaces that share CPUs are placed together, selected or not, so that the plan of
/// one does not depend on the selection.
pub fn plan(machine: &Machine, policy: &Policy, selection: &Selection) -> Plan {
    let best = plan_keeping(machine, policy, selection, None);
    if policy.get(&ONLY_GAIN) {
        let keeping = |most: &Score| plan_keeping(machine, policy, selection, Some(most));
        gain::least(machine, best, keeping)
    } else {
        best
    }
}

fn plan_keeping(
    machine: &Machine,
    policy: &Policy,
    selection: &Selection,
    keep: Option<&Score>,
) -> Plan {
    let locations = &Locations::new(&machine.topology);
    let mut ports = placed_ports(machine, locations, policy, selection, keep);
    let selected = ports.iter_mut().filter(|port| port.selected);
    selected.for_each(refuse_unmet);
    let rdma = CpuSet::union_of(ports.iter().filter_map(PlacedPort::rdma_cpus));
    let polling = ports.iter().flat_map(PlacedPort::polling_cpus).collect();
    let others = rdma.union(&polling).union(&machine.not_understood_cpus());
    let loaded = CpuSet::union_of(ports.iter().map(|port| &port.irq_cpus)).union(&others);
    // Queues of an interface that is down carry nothing.
    let up = ports.iter().filter(|port| !port.interface.is_down);
    let busy = CpuSet::union_of(up.map(|port| &port.irq_cpus)).union(&others);
    let (threads, rps) = (
        Threads::new(&ports, &loaded),
        rps::rps(locations, &ports, &busy),
    );
    let taken = ports
        .iter()
        .map(|port| rps[&port.order].steering_cpus(port));
    let taken = CpuSet::union_of(taken).union(&loaded).union(&threads.cpus);
    let topology = &machine.topology;
    let queues = rfs::with_flows(&ports).map(|port| port.interface.rx_queues.len());
    let context = Context {
        selection,
        threads,
        rps,
        network_cpus: topology.whole_cores(&taken),
        flow_queues: queues.sum(),
    };
    let selected = ports.iter().filter(|port| port.selected);
    let mut interfaces = selected
        .clone()
        .map(|port| context.interface(port))
        .collect_vec();
    if keep.is_some() {
        let xps = selected.clone().map(|port| port.choice.get(&XPS));
        gain::keep_steering(machine, &mut interfaces, &xps.collect_vec());
    }
    let flow_entries = rfs::flow_table(&ports).filter(|_| {
        selected
            .clone()
            .any(|port| port.choice.get(&RFS) != Rfs::Keep)
    });
    let host = summary(topology);
    let channels = selected.filter_map(device::channels).collect_vec();
    let mut plan = Plan {
        schema: SCHEMA.to_owned(),
        hash: hash(&host, &interfaces, &channels),
        class: class(machine),
        score: score(machine, &interfaces, true),
        score_now: score(machine, &interfaces, false),
        not_judged: not_judged(&host, &interfaces),
        host,
        channels,
        interfaces,
        flow_entries,
        network_cpus: context.network_cpus,
        explicit: selection.explicit,
        notes: notes::machine_notes(machine, policy, selection),
        drivers: policy.drivers.clone(),
        ..Plan::default()
    };
    plan.compare(machine);
    notes::add_irqbalance(machine, policy.get(&IRQBALANCE), &mut plan);
    plan
}

/// Skips an interface whose queues cannot be steered as the policy requests. Queues are read of selected interfaces
/// only.
fn refuse_unmet(port: &mut PlacedPort<'_>) {
    let unmet = || unmet_files(port.interface, &port.choice).or_else(|| device::unmet_rss(port));
    // Of a function whose interface is elsewhere it is said that its queues are out of reach.
    let may_be_unmet = !port.skip && !port.interface.is_elsewhere();
    if let Some(unmet) = may_be_unmet.then(unmet).flatten() {
        port.skip = true;
        port.candidates.notes.push(unmet);
    }
}

pub(crate) fn summary(topology: &Topology) -> HostSummary {
    HostSummary {
        name: None,
        cores: topology.cores.len(),
        online: topology.online.clone(),
        possible: topology.possible,
        isolated: topology.isolated.clone(),
        nohz_full: topology.nohz_full.clone(),
        nodes: topology
            .nodes
            .iter()
            .map(|(&node, facts)| NodeSummary {
                node,
                cpus: facts.cpus.clone(),
                without_memory: facts.without_memory,
            })
            .collect(),
    }
}

impl Context<'_> {
    fn interface(&self, port: &PlacedPort<'_>) -> PlannedInterface {
        let (interface, topology) = (port.interface, &port.machine.topology);
        let candidates = &port.candidates;
        let (rx_queues, about_rps) = self.rps[&port.order].plan(port, self.flow_queues);
        let (rss, rss_note) = device::rss(port).unzip();
        let (threads, threads_note) = self.threads.of(port);
        let mut notes = candidates.notes.clone();
        notes.extend(notes::interface_notes(
            port,
            self.selection,
            rss.as_ref(),
            &self.network_cpus,
        ));
        notes.extend(
            about_rps
                .into_iter()
                .chain(rss_note.flatten())
                .chain(threads_note),
        );
        if device::channels(port).is_some() {
            notes.retain(|note| !note.advises_channels());
        }
        // The kernel runs no other cgroup's programs on exclusive CPUs.
        let exclusive = candidates.allowed.exclusive.clone();
        let free = candidates
            .near
            .difference(&self.network_cpus)
            .difference(&exclusive);
        let plain = free.difference(&topology.isolated_or_nohz());
        let via = self.selection.via.get(&interface.name);
        PlannedInterface {
            name: interface.name.clone(),
            driver: interface.driver.clone(),
            device: interface.device.address.clone(),
            port: interface.port(),
            pci_id: interface.device.pci_id.clone(),
            parent: interface.device.parent.clone(),
            via: via.cloned().unwrap_or_default(),
            node: candidates.node,
            node_source: candidates.source,
            unused_node: unused_node(port),
            candidates: candidates.cpus.clone(),
            candidate_cores: topology.cores_with(&candidates.cpus).count(),
            near: candidates.near_to.clone(),
            left_out: candidates.left_out.clone(),
            exclusive,
            irq_cpus: port.irq_cpus.clone(),
            worker_cpus: if plain.is_empty() { free } else { plain },
            speed_mbps: interface.speed_mbps,
            link: interface.link.clone(),
            channels: interface.channels,
            rules: port.choice.rules.clone(),
            vectors: interface.vectors.iter().map(|v| vector(port, v)).collect(),
            rx_queues,
            unserved: port.unserved(),
            tx_queues: xps::plan(port),
            rss,
            ntuple: rfs::ntuple(port),
            threads,
            notes,
        }
    }
}

fn unused_node(port: &PlacedPort<'_>) -> Option<u32> {
    let (topology, candidates) = (&port.machine.topology, &port.candidates);
    let has_cpus = |own| !topology.cpus_of([own]).is_empty();
    port.interface.device.node.filter(|&own| {
        candidates.source == NodeSource::Nearest && (candidates.tied || has_cpus(own))
    })
}

fn vector(port: &PlacedPort<'_>, vector: &Vector) -> PlannedVector {
    let cpus = port.target(vector);
    let placement = port.placement(vector).filter(|_| cpus.is_some());
    PlannedVector {
        irq: vector.irq,
        action: vector.action.clone(),
        role: vector.role,
        queue: vector.queue,
        source: vector.source,
        row: vector.row.clone(),
        node: vector.node,
        idle: port.interface.is_idle(vector),
        why: why(port, vector, cpus.as_ref()),
        cpus,
        affinity: vector.affinity.cpus.clone(),
        effective: vector.effective.clone(),
        counted: vector.counted.clone(),
        movable: vector.movable,
        candidates: port.own_candidates(vector),
        placement: placement.cloned(),
    }
}

fn why(port: &PlacedPort<'_>, vector: &Vector, cpus: Option<&CpuSet>) -> Why {
    let online = &port.machine.topology.online;
    let isolated = port.machine.topology.isolated_or_nohz();
    let exclusive = &port.candidates.allowed.exclusive;
    let placement = port.placement(vector);
    Why::because(if port.skip {
        port.why_skipped()
    } else if !vector.movable {
        if port.interface.has_fact(Fact::ManagedIrqs) {
            Cause::KernelManaged
        } else {
            Cause::CannotBeMoved
        }
    } else if port.is_kept(vector) {
        Cause::OtherNamespace
    } else if placement.is_some_and(Placement::stays_put) {
        Cause::NothingGained
    } else if let Some(&owner) = port.shared.get(&vector.irq) {
        Cause::SharedWith(owner.into())
    } else {
        match (vector.role, cpus) {
            (Role::Control, None) => Cause::Control,
            (Role::Control, Some(_)) if vector.effective_cpus(online).is_subset(&isolated) => {
                Cause::ControlOffIsolated
            }
            (Role::Control, Some(_)) if vector.effective_cpus(online).is_subset(exclusive) => {
                Cause::ControlOffExclusive
            }
            (Role::Control, Some(_)) => Cause::ControlOffKeptFree,
            (Role::Rdma, None) if port.choice.get(&KEEP_RDMA) => Cause::Kept,
            (_, None) if port.machine.vectors_held.is_some() => Cause::NoVectorLeft,
            (_, None) => Cause::NoUsableCpu,
            (role, Some(cpus)) => {
                return Why {
                    cause: cause_of_place(port, vector, cpus),
                    queues_before: placement.map_or(0, |placement| placement.queues_on_core),
                    uncounted: match role {
                        Role::Rdma => Some(Uncounted::Rdma),
                        _ => port.interface.is_idle(vector).then_some(Uncounted::Idle),
                    },
                };
            }
        }
    })
}

fn cause_of_place(port: &PlacedPort<'_>, vector: &Vector, cpus: &CpuSet) -> Cause {
    let (machine, candidates) = (port.machine, &port.candidates);
    let topology = &machine.topology;
    let placement = port.placement(vector);
    let node = cpus.first().and_then(|cpu| topology.node_of(cpu));
    let node = node.unwrap_or_default();
    let is_hinted = placement.is_some_and(|taken| taken.decided_by == Some(DecidedBy::Hint));
    let is_away = !candidates.tiers.is_empty() && !cpus.is_subset(&candidates.near);
    let (scope, own, source) = (port.choice.get(&SCOPE), candidates.node, candidates.source);
    // An L3 domain may be unknown, or have no other candidate.
    let is_group = |group| group != Group::L3 || cpus.len() > 1;
    match (scope, vector.node, own, source) {
        _ if port.choice.get(&GROUP).is_some_and(is_group) => Cause::Group,
        _ if is_hinted => {
            let hint = machine.hints.get(&vector.irq);
            if hint.is_some_and(|hint| cpus.is_subset(hint)) {
                Cause::Hinted
            } else {
                Cause::OtherHinted
            }
        }
        _ if candidates.named => Cause::NamedCpus,
        (Scope::All, ..) => Cause::AnyNode,
        (Scope::Remote, ..) => Cause::RemoteNode,
        (Scope::Nodes(_), ..) => Cause::NamedNode(node),
        (_, Some(at), ..) if cpus.is_subset(&topology.cpus_of([at])) => Cause::DeviceOfIrq(at),
        (_, Some(at), ..) => Cause::NearDeviceOfIrq(at),
        (.., Some(own), _) if is_away => Cause::SamePackage { node, own },
        (.., Some(_), NodeSource::Nearest) if candidates.tied => Cause::OneOfNearest(node),
        (.., Some(own), NodeSource::Nearest) => Cause::Nearest(own),
        (.., Some(own), NodeSource::LocalCpulist) => Cause::ListedNode(own),
        (.., None, NodeSource::LocalCpulist) => Cause::ListedCpus,
        _ => Cause::OwnNode(source, own),
    }
}
