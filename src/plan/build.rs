//! From placed queues to the plan: what each vector and queue should be, why, and which writes that takes.

use crate::cpuset::{CpuSet, MaskWidth};
use crate::host::{FLOW_ENTRIES, Host, MaskFile, Role, RxQueue, TxQueue, Vector};
use crate::plan::place::Places;
use crate::plan::plan::{
    HostSummary, InterfacePlan, NodeSource, NodeSummary, Plan, RxPlan, SCHEMA, TxPlan, VectorPlan, Write,
    WriteKind, hash,
};
use crate::plan::{Work, notes, score, steer};
use crate::policy::{Rfs, Rps, Scope, Xps};
use crate::select::Selection;

/// Builds the plan of the chosen interfaces, in their order. `flow_queues` is the number of receive queues
/// over which a flow table is sized.
pub(crate) fn build(
    host: &Host,
    places: &Places,
    chosen: &[&Work<'_>],
    flow_queues: usize,
    selection: &Selection,
) -> Plan {
    let mut settings = Settings::default();
    let mut interfaces = Vec::new();
    for work in chosen {
        interfaces.push(interface(host, places, work, flow_queues, &mut settings));
    }
    if let Some(entries) = chosen.iter().find_map(|work| flow_entries(work.choice.rfs)) {
        settings.number(
            WriteKind::Sysctl,
            FLOW_ENTRIES,
            entries,
            host.flow_entries,
            "",
            "one flow table for all interfaces",
        );
    }
    settings.writes.sort_by_key(|write| write.kind);
    let summary = HostSummary {
        online: host.topology.online.clone(),
        possible: host.topology.possible,
        isolated: host.topology.isolated.clone(),
        nohz_full: host.topology.nohz_full.clone(),
        nodes: (host.topology.nodes.iter())
            .map(|(&node, told)| NodeSummary { node, cpus: told.cpus.clone() })
            .collect(),
    };
    Plan {
        schema: SCHEMA.to_owned(),
        hash: hash(&summary, &interfaces),
        score: score::score(host, places, &interfaces, score::planned),
        score_now: score::score(host, places, &interfaces, score::now),
        host: summary,
        interfaces,
        writes: settings.writes,
        unchanged: settings.unchanged,
        notes: notes::of_machine(host, selection),
    }
}

/// The size of the flow table as the kernel rounds it: up to a power of two.
fn flow_entries(rfs: Rfs) -> Option<u32> {
    match rfs {
        Rfs::Entries(entries) => Some(entries.next_power_of_two()),
        Rfs::Off => Some(0),
        Rfs::Keep => None,
    }
}

fn interface(
    host: &Host,
    places: &Places,
    work: &Work<'_>,
    flow_queues: usize,
    settings: &mut Settings,
) -> InterfacePlan {
    let interface = work.interface;
    let name = &interface.name;
    let vectors: Vec<VectorPlan> = interface.vectors.iter().map(|v| vector(host, work, v)).collect();
    for (plan, now) in vectors.iter().zip(&interface.vectors) {
        if let Some(cpus) = &plan.cpus {
            let path = format!("/proc/irq/{}/smp_affinity", plan.irq);
            settings.mask(WriteKind::Vector, path, cpus, &now.allowed, host, name, &plan.why);
        }
    }
    let (rx_queues, rps_note) = rx(host, places, work, flow_queues);
    for (plan, now) in rx_queues.iter().zip(&interface.rx_queues) {
        let queue = format!("/sys/class/net/{name}/queues/rx-{}", plan.queue);
        if let (Some(cpus), Some(current)) = (&plan.rps_cpus, &now.rps_cpus) {
            settings.mask(WriteKind::Rps, format!("{queue}/rps_cpus"), cpus, current, host, name, &plan.why);
        }
        if let Some(share) = plan.rps_flow_cnt {
            let why = "its share of the flow table";
            let path = format!("{queue}/rps_flow_cnt");
            settings.number(WriteKind::RpsFlow, &path, share, now.rps_flow_cnt, name, why);
        }
    }
    let tx_queues = tx(host, places, work);
    for (plan, now) in tx_queues.iter().zip(&interface.tx_queues) {
        if let (Some(cpus), Some(current)) = (&plan.xps_cpus, &now.xps_cpus) {
            let path = format!("/sys/class/net/{name}/queues/tx-{}/xps_cpus", plan.queue);
            settings.mask(WriteKind::Xps, path, cpus, current, host, name, &plan.why);
        }
    }
    let mut notes = work.candidates.notes.clone();
    notes.extend(notes::of_interface(host, work));
    notes.extend(rps_note);
    InterfacePlan {
        name: name.clone(),
        driver: interface.driver.clone(),
        device: interface.device.address.clone(),
        node: work.candidates.node,
        node_source: work.candidates.source,
        candidates: work.candidates.cpus.clone(),
        speed_mbps: interface.speed_mbps,
        state: interface.state.clone(),
        channels: interface.channels,
        rules: work.choice.rules.clone(),
        vectors,
        rx_queues,
        tx_queues,
        notes,
    }
}

fn vector(host: &Host, work: &Work<'_>, vector: &Vector) -> VectorPlan {
    let cpus = work.target(host, vector);
    let idle = work.interface.is_idle(vector);
    VectorPlan {
        irq: vector.irq,
        action: vector.action.clone(),
        role: vector.role,
        queue: vector.queue,
        source: vector.source,
        idle,
        why: why(host, work, vector, cpus.as_ref()),
        cpus,
        current: vector.allowed.cpus.clone(),
        serving: vector.serving.clone(),
        movable: vector.movable,
    }
}

/// One line of reason for where a vector goes.
fn why(host: &Host, work: &Work<'_>, vector: &Vector, cpus: Option<&CpuSet>) -> String {
    if work.choice.skip {
        return "left alone by the policy".to_owned();
    }
    if !vector.movable {
        return "the kernel manages this vector and lets nobody move it".to_owned();
    }
    if let Some(owner) = work.shared.get(&vector.irq) {
        return format!("the line is shared with {owner} and planned there");
    }
    let Some(cpus) = cpus else {
        return match vector.role {
            Role::Control => "carries no packets; left alone".to_owned(),
            _ => "no CPU to put it on".to_owned(),
        };
    };
    if vector.role == Role::Control {
        return "carries no packets, but sits on an isolated CPU".to_owned();
    }
    let node = match (work.candidates.node, work.candidates.source) {
        _ if cpus.len() > 1 => "a group of CPUs, by the policy".to_owned(),
        _ if matches!(work.choice.scope, Scope::Cpus(_)) => "among the CPUs that the policy names".to_owned(),
        _ if work.choice.scope == Scope::All => "any node, by the policy".to_owned(),
        _ if work.choice.scope == Scope::Remote => "another node, by the policy".to_owned(),
        (Some(node), NodeSource::Nearest) => format!("node {node}, nearest to the card's own"),
        (Some(node), NodeSource::SingleNode) => format!("node {node}, the only one"),
        (Some(node), NodeSource::LocalCpulist) => format!("node {node}, by the card's local CPUs"),
        (Some(node), _) => format!("node {node}, the card's own"),
        (None, NodeSource::LocalCpulist) => "near the card by its local CPUs".to_owned(),
        (None, _) => "node unknown".to_owned(),
    };
    let second = cpus.len() == 1 && {
        let core = |cpu: u32| {
            host.topology.cores.iter().find(|core| core.contains(cpu)).cloned().unwrap_or_default()
        };
        let own = cpus.first().map(core).unwrap_or_default();
        let earlier = |(&queue, cpu): (&u32, &u32)| Some(queue) < vector.queue && own.contains(*cpu);
        work.cpus.iter().any(earlier)
    };
    let idle = if work.interface.is_idle(vector) { "; idle, not counted" } else { "" };
    let second = if second { "; second queue on its core" } else { "" };
    format!("{node}{second}{idle}")
}

/// Receive queues, and what is to be said of them.
fn rx(
    host: &Host,
    places: &Places,
    work: &Work<'_>,
    flow_queues: usize,
) -> (Vec<RxPlan>, Option<crate::plan::Note>) {
    let queues = &work.interface.rx_queues;
    let (shares, why, note) = rps(host, places, work);
    let flow = |queue: &RxQueue| {
        // Interfaces without vectors are left alone in this, too.
        let entries = flow_entries(work.choice.rfs).filter(|_| understood(work))?;
        let share = if entries == 0 { 0 } else { steer::flow_share(entries, flow_queues) };
        queue.rps_flow_cnt.map(|_| share)
    };
    let plans = (queues.iter().enumerate())
        .map(|(at, queue)| {
            let share = shares.as_ref().and_then(|shares| shares.get(at).cloned());
            let none_left = work.choice.rps == Rps::Auto
                && share.as_ref().is_some_and(CpuSet::is_empty)
                && shares.iter().flatten().any(|share| !share.is_empty());
            let why = if none_left { "off: no candidate CPU is left for it" } else { &why };
            RxPlan { queue: queue.index, rps_cpus: share, rps_flow_cnt: flow(queue), why: why.to_owned() }
        })
        .collect();
    (plans, note)
}

/// Whether the interface has a queue vector that is placed; RPS and XPS have no footing without.
fn understood(work: &Work<'_>) -> bool {
    !work.choice.skip && work.interface.vectors.iter().any(Vector::is_queue_vector)
}

type RpsShares = (Option<Vec<CpuSet>>, String, Option<crate::plan::Note>);

/// Each receive queue's RPS CPUs; `None` to leave them alone.
fn rps(host: &Host, places: &Places, work: &Work<'_>) -> RpsShares {
    let queues = &work.interface.rx_queues;
    let off = |why: &str, note| (Some(vec![CpuSet::new(); queues.len()]), why.to_owned(), note);
    if !understood(work) {
        return (None, "left alone".to_owned(), None);
    }
    let candidates = &work.candidates.cpus;
    match &work.choice.rps {
        Rps::Off => off("off by the policy", None),
        Rps::Cpus(cpus) => {
            let cpus = cpus.intersection(&host.topology.online);
            (Some(vec![cpus; queues.len()]), "given by the policy".to_owned(), None)
        }
        Rps::Auto => {
            let cores = notes::core_count(host, work);
            if queues.len() >= cores {
                return off("off: a receive queue for each candidate core", None);
            }
            if let Some(channels) = work.interface.channels
                && channels.max_receiving() > channels.receiving()
            {
                let note = notes::more_queues(work, channels, cores);
                return off("off: the card can have more queues itself", Some(note));
            }
            let interrupted: Vec<CpuSet> =
                queues.iter().map(|queue| interrupted(host, work, queue)).collect();
            let shares = steer::rps(&host.topology, places, candidates, &interrupted);
            let why = format!("{} of {cores} candidate cores have a receive queue", queues.len());
            (Some(shares), why, None)
        }
    }
}

/// The CPUs that may be interrupted for a receive queue: the planned one, or the whole group.
fn interrupted(host: &Host, work: &Work<'_>, queue: &RxQueue) -> CpuSet {
    let receives = |v: &&Vector| v.queue == Some(queue.index) && matches!(v.role, Role::Rx | Role::Combined);
    let target = work.interface.vectors.iter().find(receives).and_then(|vector| work.target(host, vector));
    target.unwrap_or_else(|| work.cpu_of(Role::Rx, queue.index).map(CpuSet::single).unwrap_or_default())
}

/// Transmit queues.
fn tx(host: &Host, places: &Places, work: &Work<'_>) -> Vec<TxPlan> {
    let queues = &work.interface.tx_queues;
    let completions: Option<Vec<u32>> =
        queues.iter().map(|queue| work.cpu_of(Role::Tx, queue.index)).collect();
    let leave = |why: &str| -> (Option<Vec<CpuSet>>, String) { (None, why.to_owned()) };
    let (shares, why) = match (work.choice.xps, completions) {
        _ if !understood(work) => leave("left alone"),
        (Xps::Keep, _) => leave("kept by the policy"),
        (Xps::Off, _) => (Some(vec![CpuSet::new(); queues.len()]), "off by the policy".to_owned()),
        (Xps::Auto, Some(completions)) => (
            Some(steer::xps(&host.topology, places, &completions)),
            "completes nearest to these CPUs".to_owned(),
        ),
        (Xps::Auto, None) => leave("no vector is known to complete it"),
    };
    let plan = |(at, queue): (usize, &TxQueue)| {
        // One transmit queue has no xps_cpus to read or write.
        let exists = queue.xps_cpus.is_some();
        TxPlan {
            queue: queue.index,
            xps_cpus: shares.as_ref().and_then(|shares| shares.get(at).cloned()).filter(|_| exists),
            why: if exists {
                why.clone()
            } else {
                "the kernel steers nothing here (a single queue)".to_owned()
            },
        }
    };
    queues.iter().enumerate().map(plan).collect()
}

/// Gathers planned values: a write for each that differs, a count of the others.
#[derive(Default)]
struct Settings {
    writes: Vec<Write>,
    unchanged: usize,
}

impl Settings {
    #[allow(clippy::too_many_arguments)]
    fn mask(
        &mut self,
        kind: WriteKind,
        path: String,
        cpus: &CpuSet,
        current: &MaskFile,
        host: &Host,
        interface: &str,
        why: &str,
    ) {
        // The file's own width; a file narrower than its planned CPU is a torn copy, and the machine's
        // width is what the kernel will take.
        let value = cpus
            .to_mask(current.width)
            .or_else(|| cpus.to_mask(MaskWidth::for_cpus(host.topology.possible)))
            .filter(|_| *cpus != current.cpus);
        match value {
            Some(value) => self.writes.push(Write {
                kind,
                path,
                value,
                current: current.text.clone(),
                interface: interface.to_owned(),
                why: why.to_owned(),
            }),
            None => self.unchanged += 1,
        }
    }

    fn number(
        &mut self,
        kind: WriteKind,
        path: &str,
        value: u32,
        current: Option<u32>,
        interface: &str,
        why: &str,
    ) {
        match current {
            Some(current) if current != value => self.writes.push(Write {
                kind,
                path: path.to_owned(),
                value: value.to_string(),
                current: current.to_string(),
                interface: interface.to_owned(),
                why: why.to_owned(),
            }),
            Some(_) => self.unchanged += 1,
            None => {}
        }
    }
}
