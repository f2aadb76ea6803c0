//! Which CPUs an interface's vectors may go to, and how its node is known.

use crate::cpuset::CpuSet;
use crate::host::{Host, Interface, Topology};
use crate::plan::plan::{NodeSource, Note};
use crate::policy::{Choice, Group, Scope};

/// An interface's node and candidate CPUs.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Candidates {
    /// The node that counts as its own.
    pub(crate) node: Option<u32>,
    /// How that is known.
    pub(crate) source: NodeSource,
    /// Where its vectors may go. Never empty on a machine with a CPU.
    pub(crate) cpus: CpuSet,
    /// What its owner should know.
    pub(crate) notes: Vec<Note>,
}

/// Where an interface is at home, before the policy's scope.
struct Home {
    node: Option<u32>,
    source: NodeSource,
    cpus: CpuSet,
    notes: Vec<Note>,
}

/// The candidate CPUs of an interface under a policy.
pub(crate) fn candidates(host: &Host, interface: &Interface, choice: &Choice) -> Candidates {
    let topology = &host.topology;
    let (usable, mut notes) = usable(topology, choice);
    let mut home = home(topology, interface, &usable);
    notes.append(&mut home.notes);
    let explicit = match (&choice.group, &choice.scope) {
        (Some(Group::Cpus(cpus)), _) | (_, Scope::Cpus(cpus)) => Some(cpus),
        _ => None,
    };
    if let Some(wanted) = explicit {
        let cpus = wanted.intersection(&topology.online).difference(&choice.exclude);
        if !cpus.is_empty() {
            if home.node.is_none()
                && let Some((&node, _)) = topology.nodes.iter().find(|(_, node)| cpus.is_subset(&node.cpus))
            {
                (home.node, home.source) = (Some(node), NodeSource::Policy);
                notes.retain(|note| note.code != "node-unknown");
            }
            return Candidates { node: home.node, source: home.source, cpus, notes };
        }
        let text =
            format!("none of the CPUs {wanted} that the policy names can be used; using the node's own");
        notes.push(Note::new("cpus-unusable", text));
    }
    let cpus = match choice.scope {
        Scope::Local | Scope::Cpus(_) => home.cpus,
        Scope::All => usable,
        Scope::Remote => {
            let own = home.node.and_then(|node| topology.nodes.get(&node)).map(|node| &node.cpus);
            let others = own.map(|own| usable.difference(own)).filter(|others| !others.is_empty());
            others.unwrap_or_else(|| {
                notes.push(Note::new("no-remote-node", "there is no other node to use; using its own"));
                home.cpus
            })
        }
    };
    let cpus =
        choice.irq_cores.map_or(cpus.clone(), |most| first_cores(topology, &cpus, most, choice.avoid_cpu0));
    Candidates { node: home.node, source: home.source, cpus, notes }
}

/// The CPUs that may take interrupts at all.
fn usable(topology: &Topology, choice: &Choice) -> (CpuSet, Vec<Note>) {
    let kept_free = topology.isolated_or_nohz();
    let usable = topology.online.difference(&kept_free).difference(&choice.exclude);
    if !usable.is_empty() {
        return (usable, Vec::new());
    }
    let text = format!(
        "every online CPU ({}) is isolated, nohz_full or excluded; planning as if none were",
        topology.online
    );
    (topology.online.clone(), vec![Note::new("no-usable-cpu", text)])
}

fn home(topology: &Topology, interface: &Interface, usable: &CpuSet) -> Home {
    let mut notes = Vec::new();
    let on = |node: u32| topology.nodes.get(&node).map(|n| n.cpus.intersection(usable)).unwrap_or_default();
    if let Some(node) = interface.device.node {
        let cpus = on(node);
        if !cpus.is_empty() {
            return Home { node: Some(node), source: NodeSource::NumaNode, cpus, notes };
        }
        if topology.nodes.contains_key(&node)
            && let Some(near) = topology.nearest_nodes(node).into_iter().find(|&near| !on(near).is_empty())
        {
            let distance = topology.distance(node, near);
            let text = format!(
                "the card is on node {node}, which has no CPU to use; node {near} is the nearest that has \
                 (distance {distance})"
            );
            notes.push(Note::new("node-without-cpus", text));
            return Home { node: Some(near), source: NodeSource::Nearest, cpus: on(near), notes };
        }
        let text = format!("the card says that it is on node {node}, which this machine does not have");
        notes.push(Note::new("node-missing", text));
    }
    let mut with_cpus = topology.nodes.iter().filter(|(_, node)| !node.cpus.is_empty()).map(|(&id, _)| id);
    if let (Some(only), None) = (with_cpus.next(), with_cpus.next()) {
        let cpus = on(only);
        if !cpus.is_empty() {
            return Home { node: Some(only), source: NodeSource::SingleNode, cpus, notes };
        }
    }
    // All CPUs in `local_cpulist` is the kernel's way of not knowing.
    if let Some(local) = &interface.device.local_cpus
        && !topology.online.is_subset(local)
        && local.intersects(usable)
    {
        let node = topology.nodes.iter().find(|(_, node)| local.is_subset(&node.cpus)).map(|(&id, _)| id);
        let cpus = local.intersection(usable);
        return Home { node, source: NodeSource::LocalCpulist, cpus, notes };
    }
    let text =
        "the kernel does not know which node the card is on (numa_node -1); all CPUs count as equally near";
    notes.push(Note::new("node-unknown", text));
    Home { node: None, source: NodeSource::Unknown, cpus: usable.clone(), notes }
}

/// At most `most` cores of each node, dealt over the node's L3 domains; the core of CPU 0 comes last.
fn first_cores(topology: &Topology, cpus: &CpuSet, most: usize, avoid_cpu0: bool) -> CpuSet {
    let mut chosen = CpuSet::new();
    for node in topology.nodes.values() {
        let mut ranked = Vec::new();
        let mut in_domain = vec![0_usize; topology.l3_domains.len() + 1];
        let own = cpus.intersection(&node.cpus);
        let cores = topology.cores.iter().map(|core| core.intersection(&own)).filter(|core| !core.is_empty());
        for core in cores {
            let last = avoid_cpu0 && core.contains(0);
            let domain = topology.l3_domains.iter().position(|domain| domain.intersects(&core));
            let domain = domain.unwrap_or(topology.l3_domains.len());
            // The k-th core of every domain comes before the k+1-th of any.
            ranked.push((last, in_domain[domain], domain, core));
            in_domain[domain] += usize::from(!last);
        }
        ranked.sort_by_key(|(last, turn, domain, core)| (*last, *turn, *domain, core.first()));
        for (_, _, _, core) in ranked.into_iter().take(most) {
            chosen = chosen.union(&core);
        }
    }
    chosen
}
