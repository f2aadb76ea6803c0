//! Machines in memory, for tests of the planner.

use nicpin::cpuset::CpuSet;
use nicpin::machine::{
    Channels, Device, Interface, Machine, MaskFile, Node, Role, RxQueue, Selection, Source,
    Topology, TxQueue, Vector,
};
use nicpin::plan::{Note, Plan, PlannedInterface};
use nicpin::policy::{Policy, Settings};

pub fn set(list: &str) -> CpuSet {
    CpuSet::parse_list(list).unwrap()
}

/// A machine of `nodes` nodes with `cores` cores each and `threads` threads per core; the first threads of all cores
/// are numbered before the second ones; one L3 domain per `per_l3` cores of a node.
pub fn machine(nodes: u32, cores: u32, threads: u32, per_l3: u32) -> Machine {
    let total = nodes * cores;
    let core = |core: u32| {
        (0..threads)
            .map(|thread| core + thread * total)
            .collect::<CpuSet>()
    };
    let union = |from: u32, to: u32| {
        (from..to)
            .map(core)
            .fold(CpuSet::new(), |all, core| all.union(&core))
    };
    let domains = (0..nodes).flat_map(|node| {
        (0..cores)
            .step_by(per_l3 as usize)
            .map(move |at| (node * cores + at, node * cores + (at + per_l3).min(cores)))
    });
    let topology = Topology {
        online: (0..total * threads).collect(),
        possible: total * threads,
        cores: (0..total).map(core).collect(),
        l3_domains: domains.map(|(from, to)| union(from, to)).collect(),
        nodes: (0..nodes)
            .map(|node| {
                (
                    node,
                    Node {
                        cpus: union(node * cores, (node + 1) * cores),
                        ..Node::default()
                    },
                )
            })
            .collect(),
        ..Topology::default()
    };
    Machine {
        topology,
        ..Machine::default()
    }
}

pub fn mask(host: &Machine, cpus: &CpuSet) -> MaskFile {
    let width = nicpin::cpuset::MaskWidth::for_cpus(host.topology.possible);
    MaskFile::parse(&cpus.to_mask(width).unwrap()).unwrap()
}

/// An interface with `queues` combined queues; the affinity of its vectors is all CPUs, the effective CPU the first.
pub fn card(host: &Machine, name: &str, node: Option<u32>, queues: u32) -> Interface {
    let everywhere = mask(host, &host.topology.online);
    let off = mask(host, &CpuSet::new());
    let irq = 32 + 300 * u32::try_from(host.interfaces.len()).unwrap();
    Interface {
        name: name.to_owned(),
        driver: Some("ixgbe".to_owned()),
        device: Device {
            address: format!("0000:{:02x}:00.0", 1 + host.interfaces.len()),
            pci_id: None,
            node,
            local_cpus: None,
            pcie_mtps: 64_000,
            link: None,
            parent: None,
            irqs: (irq..irq + queues).collect(),
            tree: Vec::new(),
            controller: None,
        },
        link: "up".to_owned(),
        speed_mbps: Some(10_000),
        supported_mbps: Some(10_000),
        rx_queues: (0..queues)
            .map(|index| RxQueue {
                index,
                rps_cpus: Some(off.clone()),
                rps_flow_cnt: Some(0),
            })
            .collect(),
        tx_queues: (0..queues)
            .map(|index| TxQueue {
                index,
                class: String::new(),
                xps_cpus: (queues > 1).then(|| off.clone()),
                xps_rxqs: Some(off.clone()),
            })
            .collect(),
        vectors: (0..queues)
            .map(|queue| Vector {
                effective: everywhere.cpus.first().map(CpuSet::single),
                counted: None,
                ..vector(irq + queue, Role::Combined, Some(queue), &everywhere)
            })
            .collect(),
        ..Interface::default()
    }
}

pub fn vector(irq: u32, role: Role, queue: Option<u32>, allowed: &MaskFile) -> Vector {
    Vector {
        irq,
        action: format!("vector-{irq}"),
        role,
        queue,
        source: Source::Name,
        row: None,
        node: None,
        affinity: allowed.clone(),
        effective: Some(CpuSet::single(0)),
        counted: None,
        movable: true,
    }
}

/// Adds an interface; all other facts are defaults.
pub fn add(host: &mut Machine, name: &str, node: Option<u32>, queues: u32) {
    let card = card(host, name, node, queues);
    host.interfaces.push(card);
}

pub fn plan(host: &Machine) -> Plan {
    plan_with(host, &[], &[])
}

/// Plans with options of the command line, by key and value.
pub fn plan_with(host: &Machine, options: &[(&str, &str)], selectors: &[&str]) -> Plan {
    let policy = Policy {
        options: Settings::of(options.iter().copied()).unwrap(),
        ..Policy::default()
    };
    let selectors: Vec<String> = selectors.iter().map(|&s| s.to_owned()).collect();
    let selection = Selection::new(host, &selectors, false).unwrap();
    nicpin::plan::plan(host, &policy, &selection)
}

pub fn of<'a>(plan: &'a Plan, name: &str) -> &'a PlannedInterface {
    plan.interfaces
        .iter()
        .find(|interface| interface.name == name)
        .unwrap()
}

/// The planned CPU of each queue vector, as text; `-` where a vector is left unchanged.
pub fn cpus(interface: &PlannedInterface) -> Vec<String> {
    let queues = interface
        .vectors
        .iter()
        .filter(|vector| vector.role != Role::Control);
    queues
        .map(|vector| {
            vector
                .cpus
                .as_ref()
                .map_or("-".to_owned(), CpuSet::to_string)
        })
        .collect()
}

pub fn codes(interface: &PlannedInterface) -> Vec<&'static str> {
    interface
        .notes
        .iter()
        .map(|note| &*note.code().leak())
        .collect()
}

/// Combined channels: as many now, and at most.
pub fn combined(now: u32, most: u32) -> Channels {
    Channels {
        max_combined: most,
        combined: now,
        ..Channels::default()
    }
}

/// The command of the first note that has one.
pub fn fix(interface: &PlannedInterface) -> Option<String> {
    interface.notes.iter().find_map(fix_of)
}

/// What a note advises.
pub fn fix_of(note: &Note) -> Option<String> {
    note.advice().map(|advice| advice.text)
}

/// The RPS CPUs of an interface's receive queues; `-`: left unchanged.
pub fn rps_of(plan: &Plan, name: &str) -> Vec<String> {
    of(plan, name)
        .rx_queues
        .iter()
        .map(|rx| {
            rx.rps_cpus
                .as_ref()
                .map_or("-".to_owned(), CpuSet::to_string)
        })
        .collect()
}
