//! What a plan's reader should know beside the values.

use std::collections::BTreeSet;

use crate::host::{Channels, Host, UnknownVector, Vector};
use crate::plan::Work;
use crate::plan::plan::{NodeSource, Note};
use crate::select::Selection;

/// How many cores (CPUs, where siblings count as cores) an interface's queues can have to themselves.
pub(crate) fn core_count(host: &Host, work: &Work<'_>) -> usize {
    let cpus = &work.candidates.cpus;
    if work.choice.siblings {
        return cpus.len();
    }
    host.topology.cores.iter().filter(|core| core.intersects(cpus)).count()
}

/// RPS is off because the card can do the work itself.
pub(crate) fn more_queues(work: &Work<'_>, channels: Channels, cores: usize) -> Note {
    let name = &work.interface.name;
    let most = channels.max_receiving().min(u32::try_from(cores).unwrap_or(u32::MAX));
    let text = format!(
        "{} receive queues on {cores} candidate cores, and the card can have {}; RPS stays off, since queues of \
         the card's own cost less",
        work.interface.rx_queues.len(),
        channels.max_receiving()
    );
    Note::new("more-queues-possible", text)
        .with_cure(format!("ethtool -L {name} {}", channels.set_arguments(most)))
}

/// Notes about one interface.
pub(crate) fn of_interface(host: &Host, work: &Work<'_>) -> Vec<Note> {
    let interface = work.interface;
    let mut notes = Vec::new();
    if work.choice.skip {
        notes.push(Note::new("skipped", "the policy leaves this interface alone"));
        return notes;
    }
    let has_queues = interface.vectors.iter().any(Vector::is_queue_vector);
    if let Some(owner) = &interface.shares_vectors_of {
        let text = format!(
            "its vectors are those of {owner}, with which it shares the device; they are planned there"
        );
        notes.push(Note::new("vectors-shared", text));
    } else if !interface.unknown_vectors.is_empty() {
        let names = named(&interface.unknown_vectors);
        let note = if has_queues {
            let text = format!("left alone, since their names say nothing that nicpin knows: {names}");
            Note::new("unknown-vectors", text)
        } else {
            let driver = interface.driver.as_deref().unwrap_or("its driver");
            let text = format!(
                "the vectors of {driver} are not understood, so the interface is left alone: {names}"
            );
            Note::new("vectors-not-understood", text)
        };
        notes.push(note);
    } else if !has_queues {
        let text = if interface.device.irqs.is_empty() {
            "the device has no vectors of its own; there is nothing to place"
        } else if interface.state == "up" {
            "the driver has requested no queue vector; there is nothing to place"
        } else {
            "the driver has requested no queue vector while the interface is down; there is nothing to place yet"
        };
        notes.push(Note::new("no-vectors", text));
    }
    for (irq, owner) in &work.shared {
        let text = format!("IRQ {irq} is one line for {owner} and this interface; it is planned for {owner}");
        notes.push(Note::new("line-shared", text));
    }
    let managed = interface.vectors.iter().filter(|v| v.is_queue_vector() && !v.movable).count();
    if managed > 0 {
        let text =
            format!("{managed} of its queue vectors are managed by the kernel and stay where they are");
        notes.push(Note::new("kernel-managed", text));
    }
    notes.extend(too_many_queues(host, work));
    let isolated = host.topology.isolated_or_nohz().intersection(&work.candidates.cpus);
    if has_queues && !isolated.is_empty() && work.candidates.source != NodeSource::Unknown {
        let text = format!("CPUs {isolated} take interrupts although they are isolated or nohz_full");
        notes.push(Note::new("isolated-cpus-used", text));
    }
    notes
}

fn too_many_queues(host: &Host, work: &Work<'_>) -> Option<Note> {
    let interface = work.interface;
    let active = interface.vectors.iter().filter(|v| v.is_queue_vector() && !interface.is_idle(v));
    let queues = active.filter_map(|vector| vector.queue).collect::<BTreeSet<u32>>().len();
    let cores = core_count(host, work);
    if queues <= cores || cores == 0 {
        return None;
    }
    let on = match (work.candidates.node, work.candidates.source) {
        (Some(node), NodeSource::NumaNode | NodeSource::SingleNode | NodeSource::Nearest) => {
            format!(" on node {node}")
        }
        _ => String::new(),
    };
    let text = format!("{queues} queues share {cores} candidate cores{on}, so some cores take more than one");
    let arguments = match interface.channels {
        Some(channels) => channels.set_arguments(u32::try_from(cores).unwrap_or(u32::MAX)),
        None => format!("combined {cores}"),
    };
    Some(
        Note::new("queues-exceed-cores", text)
            .with_cure(format!("ethtool -L {} {arguments}", interface.name)),
    )
}

fn named(vectors: &[UnknownVector]) -> String {
    let names: Vec<String> = vectors.iter().map(|v| format!("{} ({})", v.irq, v.action)).collect();
    names.join(", ")
}

/// Notes about the machine.
pub(crate) fn of_machine(host: &Host, selection: &Selection) -> Vec<Note> {
    let mut notes = Vec::new();
    for selector in &selection.missing {
        notes.push(Note::new("not-present", format!("no interface matches `{selector}`")));
    }
    if selection.names.is_empty() && selection.missing.is_empty() {
        notes.push(Note::new("nothing-to-do", "no interface with a device behind it is up or has vectors"));
    }
    if let Some(pid) = host.irqbalance {
        let text = format!(
            "irqbalance runs (process {pid}) and moves vectors that it has not been told to leave alone"
        );
        notes.push(Note::new("irqbalance-running", text).with_cure("systemctl stop irqbalance"));
    }
    notes
}
