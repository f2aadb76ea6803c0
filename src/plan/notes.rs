//! The notes of a plan.

use crate::machine::{Machine, NodeSource, Rss, Selection, TxQueue, Vector};
use crate::plan::candidates::exclusive;
use crate::plan::channels;
use crate::plan::data::PlannedRss;
use crate::plan::note::{NoVectors, Note};
use crate::plan::work::{Context, Work};
use crate::policy::{CHANNELS, ChannelCount, IRQ_CORES, Policy, SCOPE, Scope, XPS, Xps};

/// Notes about one interface.
pub(crate) fn of_interface(
    context: &Context<'_>,
    work: &Work<'_>,
    rss: Option<&PlannedRss>,
) -> Vec<Note> {
    let &Context {
        machine, selection, ..
    } = context;
    let interface = work.interface;
    if work.skip {
        let is_unmet = work.candidates.notes.iter().any(Note::is_unmet);
        return if is_unmet {
            Vec::new()
        } else {
            vec![Note::Skipped]
        };
    }
    if interface.unreadable_name {
        return vec![Note::NameUnreadable];
    }
    let mut notes = of_vectors(machine, work, selection);
    if interface.is_elsewhere() {
        notes.push(Note::Elsewhere);
    } else {
        notes.extend(interface.in_other_namespace.then_some(Note::OtherNamespace));
    }
    if !interface.contradictions.is_empty() {
        notes.push(Note::SourcesDisagree {
            contradictions: interface.contradictions.clone(),
        });
    }
    let shared = work.shared.iter();
    notes.extend(shared.map(|(&irq, &owner)| Note::LineShared {
        irq,
        owner: owner.to_owned(),
    }));
    let managed = interface
        .vectors
        .iter()
        .filter(|v| v.is_queue_vector() && !v.movable)
        .count();
    if managed > 0 {
        notes.push(Note::KernelManaged { vectors: managed });
    }
    let link = interface
        .device
        .link
        .filter(|(now, possible)| now.is_below(*possible));
    notes.extend(link.map(|(now, possible)| Note::LinkBelow { now, possible }));
    notes.extend(too_many_queues(context, work, rss));
    notes.extend(other_channels(work));
    let names_one = |tx: &TxQueue| {
        tx.xps_rxqs
            .as_ref()
            .is_some_and(|rxqs| !rxqs.cpus.is_empty())
    };
    let overridden: Vec<u32> = interface
        .tx_queues
        .iter()
        .filter(|tx| names_one(tx))
        .map(|tx| tx.index)
        .collect();
    if matches!(work.choice.get(&XPS), Xps::Auto | Xps::Off) && !overridden.is_empty() {
        notes.push(Note::XpsRxqsSet {
            interface: interface.name.clone(),
            queues: overridden,
        });
    }
    notes.extend(hint(machine, work));
    let has_queues = interface.vectors.iter().any(Vector::is_queue_vector);
    let isolated = machine
        .topology
        .isolated_or_nohz()
        .intersection(&work.candidates.cpus);
    if has_queues && !isolated.is_empty() && work.candidates.source != NodeSource::Unknown {
        notes.push(Note::IsolatedCpusUsed { cpus: isolated });
    }
    let exclusive = exclusive(&machine.topology, &work.choice).intersection(&work.candidates.cpus);
    if has_queues && !exclusive.is_empty() {
        notes.push(Note::ExclusiveCpusUsed { cpus: exclusive });
    }
    notes
}

/// Notes about vectors that are missing, not recognized or shared.
fn of_vectors(machine: &Machine, work: &Work<'_>, selection: &Selection) -> Vec<Note> {
    let interface = work.interface;
    let mut notes = Vec::new();
    let has_queues = interface.vectors.iter().any(Vector::is_queue_vector);
    let vanished = &interface.vanished_vectors;
    if let (Some(missing), None) = (machine.missing(), &interface.vmbus) {
        notes.push(Note::VectorsUnreadable {
            missing: Some(missing.to_owned()),
            vectors: Vec::new(),
        });
    } else if !vanished.is_empty() && !has_queues {
        notes.push(Note::VectorsUnreadable {
            missing: None,
            vectors: vanished.clone(),
        });
    } else if let Some(owner) = &interface.shares_vectors_of {
        let planned = selection.names.contains(owner);
        notes.push(Note::VectorsShared {
            owner: owner.clone(),
            planned,
        });
    } else if !interface.unknown_vectors.is_empty() {
        let vectors = interface.unknown_vectors.clone();
        notes.push(if has_queues {
            Note::UnknownVectors { vectors }
        } else {
            Note::VectorsNotUnderstood {
                driver: interface.driver.clone(),
                vectors,
            }
        });
    } else if let (Some(channels), false) = (&interface.vmbus, has_queues) {
        let device = interface.device.address.clone();
        notes.push(Note::VmbusChannels {
            device,
            channels: channels.clone(),
        });
    } else if !has_queues {
        let because = match (interface.device.irqs.is_empty(), interface.link == "up") {
            (true, _) => NoVectors::OfDevice,
            (false, true) => NoVectors::Requested,
            (false, false) => NoVectors::WhileDown,
        };
        notes.push(Note::NoVectors { because });
    }
    if !interface.sharing.is_empty() {
        let others = interface
            .sharing
            .iter()
            .map(|other| other.name.clone())
            .collect();
        notes.push(Note::VectorsOfSeveral { others });
    }
    if machine.missing().is_none() && has_queues && !vanished.is_empty() {
        notes.push(Note::VectorsVanished {
            vectors: vanished.clone(),
        });
    }
    notes
}

/// Drivers whose hints are not limited to the interface's node: i40e spreads over all nodes, ice, iavf and idpf request
/// their CPUs before their node is set (6.15 and later), ena uses any CPU.
const HINTS_IGNORE_LOCALITY: [&str; 5] = ["i40e", "ice", "iavf", "idpf", "ena"];

fn hint(machine: &Machine, work: &Work<'_>) -> Vec<Note> {
    if work.choice.get(&SCOPE) != Scope::Hint || work.candidates.named {
        return Vec::new();
    }
    let vectors = || {
        work.interface
            .vectors
            .iter()
            .filter(|vector| vector.is_queue_vector())
    };
    let mut notes = Vec::new();
    let without = vectors()
        .filter(|vector| !machine.hints.contains_key(&vector.irq))
        .count();
    if without > 0 {
        notes.push(Note::NoHint { vectors: without });
    }
    let followed = |vector: &&Vector| {
        vector
            .queue
            .and_then(|queue| work.cpus.get(&queue)?.decided_by)
            .is_some()
    };
    let hinted = vectors().filter(|vector| machine.hints.contains_key(&vector.irq));
    let unusable = hinted.filter(|vector| !followed(vector)).count();
    if unusable > 0 {
        notes.push(Note::HintUnusable { vectors: unusable });
    }
    let driver = work.interface.driver.as_deref().unwrap_or_default();
    if without == 0 && HINTS_IGNORE_LOCALITY.contains(&driver) {
        notes.push(Note::HintIgnoresLocality {
            driver: driver.to_owned(),
        });
    }
    notes
}

fn too_many_queues(
    context: &Context<'_>,
    work: &Work<'_>,
    rss: Option<&PlannedRss>,
) -> Option<Note> {
    let interface = work.interface;
    let planned = rss
        .and_then(|rss| rss.queues.as_ref())
        .map(|queues| queues.len());
    let queues = work.active_queues.min(planned.unwrap_or(usize::MAX));
    let cores = work.core_count(context.locations, &work.candidates.cpus);
    let holds_all = |node: &u32| {
        let node = context.machine.topology.nodes.get(node);
        node.is_some_and(|node| work.candidates.cpus.is_subset(&node.cpus))
    };
    let advised = || {
        channels::advised(context.locations, work).filter(|&advised| (advised as usize) < queues)
    };
    (queues > cores && cores > 0).then(|| Note::QueuesExceedCores {
        interface: interface.name.clone(),
        queues,
        cores,
        node: work.candidates.node.filter(holds_all),
        advised: advised(),
        fixed: interface.channels_fixed,
        irq_cores: work
            .choice
            .get(&IRQ_CORES)
            .filter(|_| interface.rss.as_ref().is_some_and(Rss::is_used)),
    })
}

/// A note when the channels that the policy requests cannot be set.
fn other_channels(work: &Work<'_>) -> Option<Note> {
    let requested = match work.choice.get(&CHANNELS) {
        ChannelCount::Keep => return None,
        ChannelCount::Auto => None,
        ChannelCount::Count(requested) => Some(requested),
    };
    let fixed = work.interface.channels_fixed;
    match (work.interface.channels, requested) {
        (Some(channels), Some(requested)) if requested == channels.receiving() => None,
        (None, requested) => Some(Note::ChannelsUnchanged { requested, fixed }),
        (_, None) if fixed => Some(Note::ChannelsUnchanged { requested, fixed }),
        (Some(channels), Some(requested)) if requested > channels.max_receiving() => {
            Some(Note::ChannelsAtMost {
                requested,
                most: channels.max_receiving(),
            })
        }
        _ => None,
    }
}

/// Interfaces and network functions that are not planned; none when selectors were given.
fn not_planned(machine: &Machine, selection: &Selection) -> Option<Note> {
    if selection.explicit || machine.missing().is_some() {
        return None;
    }
    let down = machine
        .interfaces
        .iter()
        .filter(|interface| !selection.names.contains(&interface.name));
    let down: Vec<String> = down.map(|interface| interface.name.clone()).collect();
    let functions = machine.others.cards.clone();
    (!down.is_empty() || !functions.is_empty()).then_some(Note::NotPlanned { down, functions })
}

/// Notes about the machine.
pub(crate) fn of_machine(machine: &Machine, policy: &Policy, selection: &Selection) -> Vec<Note> {
    let mut notes = Vec::new();
    for selector in &selection.missing {
        let selector = selector.clone();
        notes.push(match selection.reasons.get(&selector) {
            Some(what) => Note::NoDevice {
                selector,
                what: what.clone(),
            },
            None => Note::NotPresent { selector },
        });
    }
    if selection.names.is_empty() && selection.missing.is_empty() {
        notes.push(Note::NothingToDo);
    }
    let unmatched = (1..).zip(&policy.rules).filter(|(_, rule)| {
        !machine.interfaces.is_empty()
            && !machine
                .interfaces
                .iter()
                .any(|interface| rule.matches(machine, interface))
    });
    notes.extend(unmatched.map(|(rule, of)| Note::RuleUnmatched {
        rule,
        conditions: of.text.clone(),
    }));
    notes.extend(not_planned(machine, selection));
    if machine.topology.exclusive_cut {
        notes.push(Note::CgroupsLeftOut);
    }
    if machine.missing().is_some() {
        notes.push(if machine.without_proc {
            Note::NoProc
        } else {
            Note::NoProcIrq
        });
    }
    if machine.topology.online.len() == 1 {
        notes.push(Note::OneCpu);
    }
    notes.extend(machine.other_tools.others.iter().map(Note::from));
    notes
}
