//! Machines in memory, for tests of the planner.

use super::machine::{Card, MachineSpec, Port};
use nicpin::apply::ApplyError;
use nicpin::cpuset::CpuSet;
use nicpin::machine::{Channels, Interface, Machine, MaskFile, Role, Selection, Source, Vector};
use nicpin::plan::{Note, Plan, PlannedInterface};
use nicpin::policy::{Policy, Settings};
use nicpin::read::ReadOptions;
use nicpin::root::Root;

pub fn set(list: &str) -> CpuSet {
    CpuSet::parse_list(list).unwrap()
}

/// [`MachineSpec::even`] with IRQs of other devices.
pub fn machine(nodes: u32, cores: u32, threads: u32, per_l3: u32) -> Machine {
    Machine {
        without_irqs: false,
        ..MachineSpec::even(nodes, cores, threads, per_l3).read()
    }
}

pub fn mask(host: &Machine, cpus: &CpuSet) -> MaskFile {
    let width = nicpin::cpuset::MaskWidth::for_cpus(host.topology.possible);
    MaskFile::parse(&cpus.to_mask(width).unwrap()).unwrap()
}

/// ixgbe with `queues` combined queues; the affinity of its vectors is all CPUs, the effective CPU the first.
pub fn card(host: &Machine, name: &str, node: Option<u32>, queues: u32) -> Interface {
    let at = u32::try_from(host.interfaces.len()).unwrap();
    let online: Vec<u32> = host.topology.online.iter().collect();
    let names = (0..queues).map(|queue| format!("{name}-TxRx-{queue}"));
    let (parent, address) = (
        format!("pci0000:00/0000:00:{at:02x}.0"),
        format!("0000:{:02x}:00.0", 1 + at),
    );
    let node = node.map_or(-1, |node| i32::try_from(node).unwrap());
    let card = Card::new("ixgbe", &parent, &address, node, "8.0 GT/s PCIe", 8)
        .port(Port::new(name, 10_000, queues as usize, queues as usize))
        .vectors(32 + 300 * at, names, &online, &online[..1]);
    // Only the card is taken from it: one CPU is read sooner than all.
    let spec = MachineSpec {
        possible: host.topology.possible,
        mask_bits: host.topology.possible,
        online: online[..1].to_vec(),
        irq_files: true,
        cards: vec![card],
        ..MachineSpec::new(&["0"])
    };
    let mut interface = spec.read().interfaces.remove(0);
    // The spec has other nodes.
    interface.device.local_cpus = None;
    interface
}

pub fn vector(irq: u32, role: Role, queue: Option<u32>, allowed: &MaskFile) -> Vector {
    Vector {
        irq,
        action: format!("vector-{irq}").into(),
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

pub fn add(host: &mut Machine, name: &str, node: Option<u32>, queues: u32) {
    let card = card(host, name, node, queues);
    host.interfaces.push(card);
}

pub fn plan(host: &Machine) -> Plan {
    plan_with(host, &[], &[])
}

pub fn plan_with(host: &Machine, options: &[(&str, &str)], selectors: &[&str]) -> Plan {
    let policy = Policy {
        options: Settings::of(options.iter().copied()).unwrap(),
        ..Policy::default()
    };
    let selectors: Vec<String> = selectors.iter().map(|&s| s.to_owned()).collect();
    let selection = Selection::new(host, &selectors, false).unwrap();
    nicpin::plan::plan(host, &policy, &selection)
}

pub fn plan_by(host: &Machine, policy: &str) -> Plan {
    let selection = Selection::new(host, &[], false).unwrap();
    nicpin::plan::plan(host, &Policy::parse(policy).unwrap(), &selection)
}

/// Reads and plans as an apply does.
pub fn read_and_plan(
    root: &Root,
    options: &[(&str, &str)],
    selectors: &[&str],
) -> Result<(Machine, Plan), ApplyError> {
    let host = nicpin::read::machine(root, ReadOptions::default())?;
    let plan = plan_with(&host, options, selectors);
    Ok((host, plan))
}

pub fn of<'a>(plan: &'a Plan, name: &str) -> &'a PlannedInterface {
    plan.interfaces
        .iter()
        .find(|interface| interface.name == name)
        .unwrap()
}

/// Returns the CPUs of each queue vector; `-` if they are left unchanged.
pub fn cpus(interface: &PlannedInterface) -> Vec<String> {
    cpus_of(interface, |role| role != Role::Control)
}

/// Returns the CPUs of the vectors of some roles, as [`cpus`].
pub fn cpus_of(interface: &PlannedInterface, is_role: impl Fn(Role) -> bool) -> Vec<String> {
    let vectors = interface
        .vectors
        .iter()
        .filter(|vector| is_role(vector.role));
    let cpus = vectors.map(|vector| vector.cpus.as_ref());
    cpus.map(|cpus| cpus.map_or("-".to_owned(), CpuSet::to_string))
        .collect()
}

pub fn codes(interface: &PlannedInterface) -> Vec<&'static str> {
    interface
        .notes
        .iter()
        .map(|note| &*note.code().leak())
        .collect()
}

pub fn combined(now: u32, most: u32) -> Channels {
    Channels {
        max_combined: most,
        combined: now,
        ..Channels::default()
    }
}

/// Returns the command of the first note that has one.
pub fn fix(interface: &PlannedInterface) -> Option<String> {
    interface.notes.iter().find_map(fix_of)
}

pub fn fix_of(note: &Note) -> Option<String> {
    note.advice().map(|advice| advice.text)
}

/// Returns the CPUs of each receive queue; `-` if they are left unchanged.
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

/// `irq=role queue source` of each vector, in the plan's order.
pub fn vectors(interface: &Interface) -> Vec<String> {
    let text = |v: &Vector| match v.queue {
        Some(queue) => format!("{}={:?} {queue} {:?}", v.irq, v.role, v.source).to_lowercase(),
        None if v.role == Role::Data => format!("{}=data", v.irq),
        None => format!("{}=control", v.irq),
    };
    interface.vectors.iter().map(text).collect()
}
