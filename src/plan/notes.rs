//! What a plan's reader should know beside the values.

use std::collections::BTreeMap;

use crate::machine::Selection;
use crate::machine::paths::queue_file;
use crate::machine::{Channels, Machine, UnknownVector, Vector, VmbusChannel};
use crate::plan::place::Locations;
use crate::plan::plan::{NO_VECTORS, NodeSource, Note, VECTORS_NOT_UNDERSTOOD, VECTORS_UNREADABLE};
use crate::plan::{Work, active_queues};
use crate::policy::{ChannelCount, Scope, Xps};
use crate::report::shell::word;
use crate::report::wording::count;

/// Machines of so many CPUs or fewer are not steered further: a packet handed to another CPU costs both of them
/// more than the little that there is to share.
pub(crate) const TINY: usize = 4;

/// RPS is off because the machine is tiny.
pub(crate) fn tiny(machine: &Machine, work: &Work<'_>, queues: usize) -> Option<Note> {
    let others = machine.topology.online.difference(&work.irq_cpus(machine));
    let name = word(&work.interface.name);
    let cpus = machine.topology.online.len();
    let text = format!(
        "{} on {}: RPS stays off on a machine this small, unless asked for",
        count(queues, "receive queue"),
        count(cpus, "CPU")
    );
    let note = Note::new("tiny-machine", text);
    (cpus > 1 && !others.is_empty()).then(|| note.with_fix(format!("nicpin apply --rps {others} {name}")))
}

/// RPS is off because the card can do the work itself.
pub(crate) fn more_queues(work: &Work<'_>, channels: Channels, cores: usize) -> Note {
    let name = &work.interface.name;
    let most = channels.max_receiving().min(u32::try_from(cores).unwrap_or(u32::MAX));
    let text = format!(
        "{} on {}, and the card can have {}; RPS stays off, since queues of the card's own cost less",
        count(work.interface.rx_queues.len(), "receive queue"),
        count(cores, "candidate core"),
        channels.max_receiving()
    );
    Note::new("more-queues-possible", text).with_fix(format!(
        "ethtool -L {} {}",
        word(name),
        channels.set_arguments(most)
    ))
}

/// Notes about one interface.
pub(crate) fn of_interface(
    machine: &Machine,
    places: &Locations,
    work: &Work<'_>,
    selection: &Selection,
) -> Vec<Note> {
    let interface = work.interface;
    let mut notes = Vec::new();
    if work.choice.skip {
        notes.push(Note::new("skipped", "the policy leaves this interface alone"));
        return notes;
    }
    notes.extend(of_vectors(machine, work, selection));
    if !interface.contradictions.is_empty() {
        let text = format!(
            "netlink and the names of vectors disagree, and netlink is believed: {}",
            interface.contradictions.join("; ")
        );
        notes.push(Note::new("sources-disagree", text));
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
    notes.extend(too_many_queues(machine, places, work));
    notes.extend(other_channels(work));
    let overridden: Vec<u32> =
        interface.tx_queues.iter().filter(|tx| tx.has_xps_rxqs).map(|tx| tx.index).collect();
    if work.choice.xps != Xps::Keep && !overridden.is_empty() {
        let text = format!(
            "xps_rxqs is set on {}, and goes before xps_cpus for flows with a receive queue",
            count(overridden.len(), "transmit queue")
        );
        let file = |queue: &u32| word(&queue_file(&interface.name, "tx", *queue, "xps_rxqs")).into_owned();
        let files: Vec<String> = overridden.iter().map(file).collect();
        let fix = match &files[..] {
            [only] => format!("echo 0 > {only}"),
            several => format!("echo 0 | tee {}", several.join(" ")),
        };
        notes.push(Note::new("xps-rxqs-set", text).with_fix(fix));
    }
    notes.extend(hint(machine, work));
    let has_queues = interface.vectors.iter().any(Vector::is_queue_vector);
    let isolated = machine.topology.isolated_or_nohz().intersection(&work.candidates.cpus);
    if has_queues && !isolated.is_empty() && work.candidates.source != NodeSource::Unknown {
        let text = format!("CPUs {isolated} take interrupts although they are isolated or nohz_full");
        notes.push(Note::new("isolated-cpus-used", text));
    }
    notes
}

/// Which of an interface's vectors are known, and whose they are.
fn of_vectors(machine: &Machine, work: &Work<'_>, selection: &Selection) -> Vec<Note> {
    let interface = work.interface;
    let mut notes = Vec::new();
    let has_queues = interface.vectors.iter().any(Vector::is_queue_vector);
    let vanished = &interface.vanished_vectors;
    if let (Some(missing), None) = (machine.missing(), &interface.vmbus) {
        let text = format!(
            "nothing is known of its vectors, since there is no {missing} below this root; mount it, or have it \
             in the copy"
        );
        notes.push(Note::new(VECTORS_UNREADABLE, text));
    } else if !vanished.is_empty() && !has_queues {
        let text = format!(
            "none of its queue vectors can be read: their files in /proc/irq are not there, for {}; run again, or \
             have them in the copy",
            named(vanished)
        );
        notes.push(Note::new(VECTORS_UNREADABLE, text));
    } else if let Some(owner) = &interface.shares_vectors_of {
        let text = format!(
            "its vectors are those of {owner}, with which it shares the device; they are planned there"
        );
        let note = Note::new("vectors-shared", text);
        let planned = selection.names.contains(owner);
        notes.push(if planned { note } else { note.with_fix(format!("nicpin plan {}", word(owner))) });
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
            Note::new(VECTORS_NOT_UNDERSTOOD, text)
        };
        notes.push(note);
    } else if let (Some(channels), false) = (&interface.vmbus, has_queues) {
        notes.push(vmbus_channels(&interface.device.address, channels));
    } else if !has_queues {
        let text = if interface.device.irqs.is_empty() {
            "the device has no vectors of its own; there is nothing to place"
        } else if interface.link == "up" {
            "the driver has requested no queue vector; there is nothing to place"
        } else {
            "the driver has requested no queue vector while the interface is down; there is nothing to place yet"
        };
        notes.push(Note::new(NO_VECTORS, text));
    }
    if !interface.sharers.is_empty() {
        let others: Vec<&str> = interface.sharers.iter().map(|other| &*other.name).collect();
        let text = format!(
            "among its vectors are those of {}: names do not tell which are whose, and all are planned here",
            others.join(", ")
        );
        notes.push(Note::new("vectors-of-several", text));
    }
    if machine.missing().is_none() && has_queues && !vanished.is_empty() {
        let text = format!(
            "went away while they were read, or have no /proc/irq files: {}; run again to plan them",
            named(vanished)
        );
        notes.push(Note::new("vectors-vanished", text));
    }
    notes
}

/// Drivers whose hints do not keep to the card's node: i40e spreads over all nodes, ice, iavf and idpf ask for
/// their CPUs before they know their node (6.15 and later), ena takes any CPU.
const HINTS_IGNORE_LOCALITY: [&str; 5] = ["i40e", "ice", "iavf", "idpf", "ena"];

fn hint(machine: &Machine, work: &Work<'_>) -> Vec<Note> {
    if work.choice.scope != Scope::Hint || work.candidates.named {
        return Vec::new();
    }
    let vectors = || work.interface.vectors.iter().filter(|vector| vector.is_queue_vector());
    let mut notes = Vec::new();
    let without = vectors().filter(|vector| !machine.hints.contains_key(&vector.irq)).count();
    if without > 0 {
        let text =
            format!("{without} queue vectors have no hint from the driver and are placed on the card's node");
        notes.push(Note::new("no-hint", text));
    }
    let followed =
        |vector: &&Vector| vector.queue.and_then(|queue| work.cpus.get(&queue)?.decided_by).is_some();
    let hinted = vectors().filter(|vector| machine.hints.contains_key(&vector.irq));
    let unusable = hinted.filter(|vector| !followed(vector)).count();
    if unusable > 0 {
        let text = format!(
            "the driver hints {} to CPUs that are offline, isolated or excluded; placed on the card's node",
            count(unusable, "queue vector")
        );
        notes.push(Note::new("hint-unusable", text));
    }
    let driver = work.interface.driver.as_deref().unwrap_or_default();
    if without == 0 && HINTS_IGNORE_LOCALITY.contains(&driver) {
        let text = format!("the hints of {driver} do not keep to the card's node");
        notes.push(Note::new("hint-ignores-locality", text));
    }
    notes
}

/// Hyper-V's own card: where its channels are served, and how that is changed.
fn vmbus_channels(device: &str, channels: &[VmbusChannel]) -> Note {
    let each: Vec<String> =
        channels.iter().map(|channel| format!("{} -> {}", channel.id, channel.cpu)).collect();
    let listed = if each.is_empty() { "not told".to_owned() } else { each.join(", ") };
    let text = format!(
        "Hyper-V hands its packets over in channels, which have no vectors; nicpin does not move them. \
         Channel -> CPU: {listed}. Each channel's `cpu` file takes another CPU's number"
    );
    Note::new("vmbus-channels", text)
        .with_fix(format!("echo CPU > /sys/bus/vmbus/devices/{device}/channels/CHANNEL/cpu"))
}

fn too_many_queues(machine: &Machine, places: &Locations, work: &Work<'_>) -> Option<Note> {
    let interface = work.interface;
    let queues = active_queues(interface);
    let cores = work.core_count(places, &work.candidates.cpus);
    if queues <= cores || cores == 0 {
        return None;
    }
    let on = match work.candidates.node.and_then(|node| Some((node, machine.topology.nodes.get(&node)?))) {
        Some((node, told)) if work.candidates.cpus.is_subset(&told.cpus) => format!(" on node {node}"),
        _ => String::new(),
    };
    let text = format!("{queues} queues share {cores} candidate cores{on}, so some cores take more than one");
    if interface.channels_fixed {
        return Some(Note::new("queues-exceed-cores", text + "; its driver takes no other number of queues"));
    }
    let arguments = match interface.channels {
        Some(channels) => channels.set_arguments(u32::try_from(cores).unwrap_or(u32::MAX)),
        None => format!("combined {cores}"),
    };
    let fix = format!("ethtool -L {} {arguments}", word(&interface.name));
    Some(Note::new("queues-exceed-cores", text).with_fix(fix))
}

/// Channels that are asked for and that the card cannot have, or does not tell of.
fn other_channels(work: &Work<'_>) -> Option<Note> {
    let (asked, wanted) = match work.choice.channels {
        ChannelCount::Keep => return None,
        ChannelCount::Auto => ("as many channels as candidate cores".to_owned(), None),
        ChannelCount::Count(wanted) => (count(wanted as usize, "channel"), Some(wanted)),
    };
    match (work.interface.channels, wanted) {
        (Some(channels), Some(wanted)) if wanted == channels.receiving() => None,
        (channels, wanted) if channels.is_none() || wanted.is_none() && work.interface.channels_fixed => {
            let why =
                if work.interface.channels_fixed { "takes no other number" } else { "does not tell its own" };
            let text = format!("the policy wants {asked}; the driver {why}, so they stay as they are");
            Some(Note::new("channels-unchanged", text))
        }
        (Some(channels), Some(wanted)) if wanted > channels.max_receiving() => {
            let text = format!("the policy wants {asked}; the card can have {}", channels.max_receiving());
            Some(Note::new("channels-at-most", text))
        }
        _ => None,
    }
}

fn named(vectors: &[UnknownVector]) -> String {
    let names: Vec<String> = vectors.iter().map(|v| format!("{} ({})", v.irq, v.action)).collect();
    names.join(", ")
}

/// Network cards that nobody asked for and of which nothing is planned, where it is no secret why.
fn not_planned(machine: &Machine, selection: &Selection) -> Option<Note> {
    if selection.asked || machine.missing().is_some() {
        return None;
    }
    let down = machine.interfaces.iter().filter(|interface| !selection.names.contains(&interface.name));
    let down: Vec<&str> = down.map(|interface| interface.name.as_str()).collect();
    let mut by_driver: BTreeMap<Option<&str>, Vec<&str>> = BTreeMap::new();
    for card in &machine.others.cards {
        by_driver.entry(card.driver.as_deref()).or_default().push(&card.address);
    }
    let mut parts = Vec::new();
    if !down.is_empty() {
        parts.push(format!("{} (down, no vectors requested)", few(&down)));
    }
    parts.extend(by_driver.iter().map(|(driver, cards)| match driver {
        Some(driver) => format!("{} (driver {driver}, no interface here)", few(cards)),
        None => format!("{} (no driver)", few(cards)),
    }));
    let text = format!("not planned: {}", parts.join(", "));
    (!parts.is_empty()).then(|| Note::new("not-planned", text))
}

/// The first few names of many.
fn few(names: &[&str]) -> String {
    const NAMED: usize = 4;
    match names.len().saturating_sub(NAMED) {
        0 => names.join(", "),
        more => format!("{} and {}", names[..NAMED].join(", "), count(more, "other")),
    }
}

/// Notes about the machine.
pub(crate) fn of_machine(machine: &Machine, selection: &Selection) -> Vec<Note> {
    let mut notes = Vec::new();
    for selector in &selection.missing {
        notes.push(match selection.reasons.get(selector) {
            Some(what) => Note::new("no-device", format!("`{selector}` {what}")),
            None => Note::new("not-present", format!("no interface matches `{selector}`")),
        });
    }
    if selection.names.is_empty() && selection.missing.is_empty() {
        notes.push(Note::new("nothing-to-do", "no interface with a device behind it is up or has vectors"));
    }
    notes.extend(not_planned(machine, selection));
    if let Some(missing) = machine.missing() {
        let code = if machine.without_proc { "no-proc" } else { "no-proc-irq" };
        notes.push(Note::new(code, format!("there is no {missing} below this root, so no vector is known")));
    }
    if machine.topology.online.len() == 1 {
        notes.push(Note::new("one-cpu", "there is one CPU, which takes every interrupt whatever is planned"));
    }
    notes.extend(machine.other_tools.others.iter().map(|w| Note::new(w.code, &*w.text).with_fix(w.fix)));
    notes
}
