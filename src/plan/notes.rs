//! The notes of a plan: of each interface, and of the machine.

mod advice;
mod of_machine;

use itertools::{Itertools as _, chain};

use crate::cpuset::{CpuSet, IrqSet};
use crate::drivers::Fact;
use crate::machine::interface::is_pci_address;
use crate::machine::{Interface, Machine, Role, Selection, UnknownVector, Vector};
use crate::plan::candidates::core_count;
use crate::plan::data::PlannedRss;
use crate::plan::device::{self, advised_channels};
use crate::plan::note::{NoVectors, Note};
use crate::plan::ports::PlacedPort;
use crate::plan::requests::unmet_channels;
use crate::policy::{
    CHANNELS, ChannelCount, IRQ_CORES, ONE_PER_L3, SCOPE, SKIP, Scope, WIDEN, XPS, Xps,
};

pub(crate) use of_machine::{add_irqbalance, machine_notes};

pub(crate) fn interface_notes(
    port: &PlacedPort<'_>,
    selection: &Selection,
    rss: Option<&PlannedRss>,
    network_cpus: &CpuSet,
) -> Vec<Note> {
    let interface = port.interface;
    if port.choice.get(&SKIP) {
        return vec![Note::Skipped];
    }
    let is_apart = interface.in_other_namespace && !interface.is_elsewhere();
    let apart = is_apart.then_some(Note::OtherNamespace);
    if port.skip {
        return Vec::from_iter(apart);
    }
    if interface.unreadable_name {
        return vec![Note::NameUnreadable];
    }
    let place = if interface.without_netdev {
        Some(Note::NoInterface)
    } else if interface.is_elsewhere() {
        Some(Note::Elsewhere)
    } else {
        apart
    };
    let contradictions = interface.contradictions.clone();
    let disagree = (!contradictions.is_empty()).then_some(Note::SourcesDisagree { contradictions });
    let lines = port
        .shared
        .iter()
        .filter(|_| interface.shares_vectors_of.is_none())
        .map(|(&irq, &owner)| Note::LineShared {
            irq,
            owner: owner.to_owned(),
        });
    let vectors = interface.queue_vectors().filter(|v| !v.movable).count();
    let stay = (vectors > 0).then(|| {
        if interface.has_fact(Fact::ManagedIrqs) {
            Note::KernelManaged { vectors }
        } else {
            Note::NotMovable { vectors }
        }
    });
    let link = interface
        .device
        .link
        .filter(|(now, possible)| now.is_below(*possible))
        .map(|(now, possible)| Note::LinkBelow { now, possible });
    let exceeding = too_many_queues(port, rss);
    let more = package_has_more(port, exceeding.as_ref(), network_cpus);
    let exhausted = vectors_exhausted(port);
    // Both give the same advice.
    let exceeding = exceeding.filter(|_| exhausted.is_none());
    let used = |cpus: &CpuSet, note: fn(CpuSet) -> Note| {
        let used = cpus.intersection(&port.candidates.cpus);
        (port.has_placed_queues() && !used.is_empty()).then(|| note(used))
    };
    let isolated = port.machine.topology.isolated_or_nohz();
    let exclusive = &port.candidates.allowed.exclusive;
    chain!(
        vector_notes(port, selection),
        place.filter(|_| !interface.is_for_rdma()),
        disagree,
        lines,
        stay,
        link,
        exhausted,
        exceeding,
        more,
        other_channels(port),
        xps_rxqs_set(port),
        hint_notes(port),
        used(&isolated, |cpus| Note::IsolatedCpusUsed { cpus }),
        used(exclusive, |cpus| Note::ExclusiveCpusUsed { cpus }),
    )
    .collect()
}

fn vector_notes(port: &PlacedPort<'_>, selection: &Selection) -> Vec<Note> {
    let interface = port.interface;
    let mut notes = Vec::from_iter(first_vector_note(port, selection));
    if !interface.sharing.is_empty() {
        let others = interface
            .sharing
            .iter()
            .map(|other| other.name.clone())
            .collect();
        notes.push(if interface.has_fact(Fact::PortsShareQueues) {
            Note::VectorsForSeveral { others }
        } else {
            Note::VectorsOfSeveral { others }
        });
    }
    let vectors = interface.vanished_vectors.clone();
    let is_missing = port.machine.missing().is_some();
    if !is_missing && port.has_placed_queues() && !vectors.is_empty() {
        notes.push(Note::VectorsVanished { vectors });
    }
    notes
}

/// Why vectors are not placed by queue.
fn first_vector_note(port: &PlacedPort<'_>, selection: &Selection) -> Option<Note> {
    let (interface, has_queues) = (port.interface, port.has_placed_queues());
    let missing = port
        .machine
        .missing()
        .map(str::to_owned)
        .filter(|_| interface.vmbus.is_none());
    let mut vectors = interface.vanished_vectors.clone();
    if missing.is_some() || !vectors.is_empty() && !has_queues {
        vectors.retain(|_| missing.is_none());
        return Some(Note::VectorsUnreadable { missing, vectors });
    }
    if let Some(owner) = interface.shares_vectors_of.clone() {
        let planned = selection.names.contains(&owner);
        // Without the other one selected, they are planned here.
        return Some(if planned || !has_queues {
            Note::VectorsShared { owner, planned }
        } else {
            let others = vec![owner];
            Note::VectorsForSeveral { others }
        });
    }
    let vectors = interface.unknown_vectors.clone();
    if !vectors.is_empty() {
        return Some(Note::UnknownVectors { vectors });
    }
    let vectors = interface
        .with_role(Role::Data)
        .filter(|_| !interface.without_netdev)
        .map(|vector| UnknownVector {
            irq: vector.irq,
            action: vector.action.clone(),
        })
        .collect_vec();
    if !vectors.is_empty() {
        return Some(Note::DataVectors { vectors });
    }
    if has_queues {
        let queues = port.unserved();
        return (!queues.is_empty()).then_some(Note::QueuesUnserved { queues });
    }
    (!interface.is_for_rdma()).then(|| without_vectors(port.machine, interface))
}

fn without_vectors(machine: &Machine, interface: &Interface) -> Note {
    let device = &interface.device;
    let controller = device.controller.as_ref().map(|(driver, irqs)| {
        let name = match &**driver {
            "" => "its controller",
            driver => driver,
        };
        match irqs[..] {
            [] => name.to_owned(),
            [irq] => format!("{name} (IRQ {irq})"),
            _ => format!("{name} (IRQs {})", irqs.iter().copied().collect::<IrqSet>()),
        }
    });
    if let Some(channels) = interface.vmbus.clone() {
        let below = machine.stacked(&interface.name);
        return Note::VmbusChannels {
            device: device.address.clone(),
            controller,
            channels,
            interfaces: below.map_or(Vec::new(), |stacked| stacked.lowers.clone()),
        };
    }
    // sysfs lists IRQs of PCI devices only.
    let without = device.irqs.is_empty() && interface.vectors.is_empty();
    let is_pci = is_pci_address(&device.address);
    let because = match (without, interface.link == "up") {
        _ if !is_pci && controller.is_none() => NoVectors::Unlisted,
        _ if !is_pci && !without => NoVectors::OfQueues,
        // Some drivers allocate vectors only while the interface is up.
        (true, false) if is_pci => NoVectors::WhileDown,
        (true, _) => NoVectors::OfDevice,
        (false, true) => NoVectors::Requested,
        (false, false) => NoVectors::WhileDown,
    };
    Note::NoVectors {
        because,
        controller,
    }
}

fn xps_rxqs_set(port: &PlacedPort<'_>) -> Option<Note> {
    let queues = port
        .interface
        .tx_queues
        .iter()
        .filter(|tx| tx.xps_rxqs.iter().any(|rxqs| !rxqs.cpus.is_empty()))
        .map(|tx| tx.index)
        .collect_vec();
    let is_meant = matches!(port.choice.get(&XPS), Xps::Auto | Xps::Off) && !queues.is_empty();
    is_meant.then(|| Note::XpsRxqsSet {
        interface: port.interface.name.clone(),
        queues,
    })
}

fn hint_notes(port: &PlacedPort<'_>) -> Vec<Note> {
    if port.choice.get(&SCOPE) != Scope::Hint || port.candidates.named {
        return Vec::new();
    }
    let vectors = port.interface.queue_vectors();
    let (hinted, without): (Vec<_>, Vec<_>) =
        vectors.partition(|vector| port.machine.hints.contains_key(&vector.irq));
    let decided_by = |vector| port.placement(vector)?.decided_by;
    let unused = hinted.iter().filter(|vector| decided_by(vector).is_none());
    let is_anywhere = without.is_empty() && port.interface.has_fact(Fact::HintsAnywhere);
    let driver = (port.interface.driver.clone()).filter(|_| is_anywhere);
    let non_zero = |vectors: usize| Some(vectors).filter(|vectors| *vectors > 0);
    chain!(
        non_zero(without.len()).map(|vectors| Note::NoHint { vectors }),
        non_zero(unused.count()).map(|vectors| Note::HintUnusable { vectors }),
        driver.map(|driver| Note::HintIgnoresLocality { driver }),
    )
    .collect()
}

fn too_many_queues(port: &PlacedPort<'_>, rss: Option<&PlannedRss>) -> Option<Note> {
    let (interface, candidates) = (port.interface, &port.candidates.cpus);
    let planned = rss.and_then(|rss| Some(rss.queues.as_ref()?.len()));
    let has_data = interface.with_role(Role::Data).next().is_some();
    // Which queues these IRQs serve is not known, but how many there are.
    let most = interface.rx_queues.len().max(interface.tx_queues.len());
    let most = Some(most).filter(|&most| has_data && most > 0);
    let active = interface.active_queues();
    if most.is_some_and(|most| most > active) {
        return None;
    }
    let queues = active
        .min(planned.unwrap_or(usize::MAX))
        .min(most.unwrap_or(usize::MAX));
    let cores = port.core_count();
    let holds_all = |node: &u32| {
        let node = port.machine.topology.nodes.get(node);
        node.is_some_and(|node| candidates.is_subset(&node.cpus))
    };
    // Advice about IRQs that cannot be moved is useless.
    let is_placed = interface.active_vectors().any(|vector| vector.movable);
    (queues > cores && cores > 0 && is_placed).then(|| Note::QueuesExceedCores {
        interface: interface.name.clone(),
        queues,
        cores,
        node: port.candidates.node.filter(holds_all),
        advised: advised_channels(port).filter(|&advised| {
            (advised as usize) < queues
                && (interface.channels).is_none_or(|now| now.receiving() != advised)
        }),
        unsure: interface.channels.is_none(),
        fixed: interface.channels_fixed,
        irq_cores: (port.choice.get(&IRQ_CORES)).filter(|_| device::has_settable_rss(interface)),
    })
}

fn vectors_exhausted(port: &PlacedPort<'_>) -> Option<Note> {
    port.machine.vectors_held.as_ref()?;
    let is_left = |vector: &&Vector| {
        let is_meant = vector.movable && vector.role != Role::Control;
        let is_planned_elsewhere = port.shared.contains_key(&vector.irq) || port.is_kept(vector);
        is_meant && !is_planned_elsewhere && port.target(vector).is_none()
    };
    let irqs = port.interface.vectors.iter().filter(is_left).count();
    (irqs > 0).then(|| Note::VectorsExhausted {
        interface: port.interface.name.clone(),
        irqs,
        cpus: port.candidates.cpus.clone(),
        advised: advised_channels(port)
            .filter(|&advised| (advised as usize) < port.interface.active_queues()),
    })
}

/// Where cores of the package are left that do no work for the network.
fn package_has_more(
    port: &PlacedPort<'_>,
    exceeding: Option<&Note>,
    network_cpus: &CpuSet,
) -> Option<Note> {
    let Some(&Note::QueuesExceedCores {
        queues,
        cores,
        node: Some(node),
        ..
    }) = exceeding
    else {
        return None;
    };
    let topology = &port.machine.topology;
    let candidates = &port.candidates.cpus;
    let package = topology
        .packages
        .iter()
        .find(|package| candidates.is_subset(package))?;
    let usable = package.intersection(&port.candidates.allowed.unreserved);
    let has_idle = !usable.is_subset(network_cpus);
    let package = core_count(topology, &port.choice, &usable);
    let is_local = port.choice.get(&SCOPE) == Scope::Local && !port.choice.get(&WIDEN);
    let is_whole = port.choice.get(&IRQ_CORES).is_none()
        && !port.choice.get(&ONE_PER_L3)
        && port.candidates.near_to.is_none();
    (is_local && is_whole && !port.candidates.named && has_idle && package > cores).then(|| {
        Note::PackageHasMore {
            interface: port.interface.name.clone(),
            queues,
            node,
            cores,
            package,
        }
    })
}

fn other_channels(port: &PlacedPort<'_>) -> Option<Note> {
    let interface = port.interface;
    if port.choice.get(&CHANNELS) != ChannelCount::Auto {
        return unmet_channels(interface, &port.choice);
    }
    let fixed = interface.channels_fixed;
    let Some(now) = interface.channels.filter(|_| !fixed) else {
        let requested = None;
        return Some(Note::ChannelsUnchanged { requested, fixed });
    };
    let stays = device::channels(port).is_none();
    stays.then(|| Note::ChannelsFit {
        now: now.receiving(),
        cores: port.core_count(),
    })
}
