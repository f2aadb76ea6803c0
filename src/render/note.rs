//! Notes in words: the sentence, and the command that fixes it.

use serde::{Serialize, Serializer};

use crate::machine::paths::queue_file;
use crate::machine::shell::word;
use crate::machine::tools::{Arguments, SCRIPT_PATH};
use crate::machine::{UnknownVector, VmbusChannel};
use crate::plan::note::{Data, NoVectors, Note, UsedFor};
use crate::policy::Balancer;
use crate::render::text::{count, wrap};

impl Serialize for Note {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct WithText<'a> {
            #[serde(flatten)]
            data: Data<'a>,
            text: String,
            #[serde(skip_serializing_if = "Option::is_none")]
            fix: Option<String>,
        }
        WithText { data: Data(self), text: text(self), fix: fix(self) }.serialize(serializer)
    }
}

/// A note and its fix, in lines.
pub(crate) fn note(indent: &str, note: &Note) -> String {
    lines(indent, "", note)
}

/// A note about an interface.
pub(crate) fn lines(indent: &str, about: &str, note: &Note) -> String {
    let mut out = wrap(&format!("{indent}note  "), &format!("{about}{}", text(note)));
    if let Some(fix) = fix(note) {
        out.push_str(&format!("{indent}      {fix}\n"));
    }
    out
}

/// The sentence.
#[allow(clippy::too_many_lines)] // a line a note: nothing to see in parts
pub fn text(note: &Note) -> String {
    match note {
        Note::NodeUnknown { named: false } => {
            "the kernel does not know which node the card is on (numa_node -1); all CPUs count as equally near".into()
        }
        Note::NodeUnknown { named: true } => {
            "nothing else tells where it is, so all CPUs count as equally near".into()
        }
        Note::NodeMissing { node } => {
            format!("the card says that it is on node {node}, which this machine does not have")
        }
        Note::NodeWithoutCpus { node, nearest, distance } => format!(
            "the card is on node {node}, which has no CPU to use; node {nearest} is the nearest that has \
             (distance {distance})"
        ),
        Note::NoUsableCpu { online } => {
            format!("every online CPU ({online}) is isolated, nohz_full or excluded; planning as if none were")
        }
        Note::NoRemoteNode => "there is no other node to use; using its own".into(),
        Note::CpusUnusable { wanted, missing, used_for: UsedFor::Interrupts } if wanted == missing => {
            format!("none of the CPUs {wanted} that the policy names can be used; using the node's own")
        }
        Note::CpusUnusable { wanted, missing, used_for } => {
            let what = match used_for {
                UsedFor::Interrupts => "for interrupts",
                UsedFor::Rps => "for RPS",
            };
            format!("of the CPUs {wanted} that the policy names {what}, {missing} are offline or excluded")
        }
        Note::Widened { queues, cores, node, to } => format!(
            "{queues} queues on the {cores} cores of node {node}: widened to node {} of the same package",
            numbers(to)
        ),
        Note::IsolatedCpusUsed { cpus } => {
            format!("CPUs {cpus} take interrupts although they are isolated or nohz_full")
        }
        Note::Skipped => "the policy leaves this interface alone".into(),
        Note::VectorsUnreadable { missing: Some(missing), .. } => format!(
            "nothing is known of its vectors, since there is no {missing} below this root; mount it, or have it in the \
             copy"
        ),
        Note::VectorsUnreadable { missing: None, vectors } => format!(
            "none of its queue vectors can be read: their files in /proc/irq are not there, for {}; run again, or have \
             them in the copy",
            named(vectors)
        ),
        Note::VectorsNotUnderstood { driver, vectors } => format!(
            "the vectors of {} are not understood, so the interface is left alone: {}",
            driver.as_deref().unwrap_or("its driver"),
            named(vectors)
        ),
        Note::UnknownVectors { vectors } => {
            format!("left alone, since their names say nothing that nicpin knows: {}", named(vectors))
        }
        Note::VectorsVanished { vectors } => format!(
            "went away while they were read, or have no /proc/irq files: {}; run again to plan them",
            named(vectors)
        ),
        Note::NoVectors { because } => match because {
            NoVectors::OfDevice => "the device has no vectors of its own; there is nothing to place",
            NoVectors::Requested => "the driver has requested no queue vector; there is nothing to place",
            NoVectors::WhileDown => {
                "the driver has requested no queue vector while the interface is down; there is nothing to place yet"
            }
        }
        .into(),
        Note::VectorsShared { owner, .. } => {
            format!("its vectors are those of {owner}, with which it shares the device; they are planned there")
        }
        Note::VectorsOfSeveral { others } => format!(
            "among its vectors are those of {}: names do not tell which are whose, and all are planned here",
            others.join(", ")
        ),
        Note::LineShared { irq, owner } => {
            format!("IRQ {irq} is one line for {owner} and this interface; it is planned for {owner}")
        }
        Note::KernelManaged { vectors } => {
            format!("{vectors} of its queue vectors are managed by the kernel and stay where they are")
        }
        Note::SourcesDisagree { contradictions } => format!(
            "netlink and the names of vectors disagree, and netlink is believed: {}",
            contradictions.join("; ")
        ),
        Note::VmbusChannels { channels, .. } => format!(
            "Hyper-V hands its packets over in channels, which have no vectors; nicpin does not move them. Channel -> \
             CPU: {}. Each channel's `cpu` file takes another CPU's number",
            vmbus(channels)
        ),
        Note::NoHint { vectors } => {
            format!("{vectors} queue vectors have no hint from the driver and are placed on the card's node")
        }
        Note::HintUnusable { vectors } => format!(
            "the driver hints {} to CPUs that are offline, isolated or excluded; placed on the card's node",
            count(*vectors, "queue vector")
        ),
        Note::HintIgnoresLocality { driver } => {
            format!("the hints of {driver} do not keep to the card's node")
        }
        Note::QueuesExceedCores { queues, cores, node, fixed, .. } => {
            let on = node.map_or(String::new(), |node| format!(" on node {node}"));
            let fixed = if *fixed { "; its driver takes no other number of queues" } else { "" };
            format!("{queues} queues share {cores} candidate cores{on}, so some cores take more than one{fixed}")
        }
        Note::MoreQueuesPossible { queues, cores, channels, .. } => format!(
            "{} on {}, and the card can have {}; RPS stays off, since queues of the card's own cost less",
            count(*queues, "receive queue"),
            count(*cores, "candidate core"),
            channels.max_receiving()
        ),
        Note::TinyMachine { queues, cpus, .. } => format!(
            "{} on {}: RPS stays off on a machine this small, unless asked for",
            count(*queues, "receive queue"),
            count(*cpus, "CPU")
        ),
        Note::ChannelsUnchanged { asked, fixed } => {
            let why = if *fixed { "takes no other number" } else { "does not tell its own" };
            format!("the policy wants {}; the driver {why}, so they stay as they are", channels(*asked))
        }
        Note::ChannelsAtMost { asked, most } => {
            format!("the policy wants {}; the card can have {most}", channels(Some(*asked)))
        }
        Note::ChannelsDiffer { why, .. } => format!("its channels are not as planned: {why}"),
        Note::XpsRxqsSet { queues, .. } => format!(
            "xps_rxqs is set on {}, and goes before xps_cpus for flows with a receive queue",
            count(queues.len(), "transmit queue")
        ),
        note => about_machine(note),
    }
}

fn about_machine(note: &Note) -> String {
    match note {
        Note::NotPresent { selector } => format!("no interface matches `{selector}`"),
        Note::NoDevice { selector, what } => format!("`{selector}` {what}"),
        Note::NothingToDo => "no interface with a device behind it is up or has vectors".into(),
        Note::NotPlanned { down, functions } => {
            let mut parts = Vec::new();
            if !down.is_empty() {
                let down: Vec<&str> = down.iter().map(String::as_str).collect();
                parts.push(format!("{} (down, no vectors requested)", few(&down)));
            }
            let mut by_driver: std::collections::BTreeMap<Option<&str>, Vec<&str>> = Default::default();
            for function in functions {
                by_driver.entry(function.driver.as_deref()).or_default().push(&function.address);
            }
            parts.extend(by_driver.iter().map(|(driver, addresses)| match driver {
                Some(driver) => format!("{} (driver {driver}, no interface here)", few(addresses)),
                None => format!("{} (no driver)", few(addresses)),
            }));
            format!("not planned: {}", parts.join(", "))
        }
        Note::NoProc => "there is no /proc below this root, so no vector is known".into(),
        Note::NoProcIrq => "there is no /proc/irq below this root, so no vector is known".into(),
        Note::OneCpu => "there is one CPU, which takes every interrupt whatever is planned".into(),
        Note::CloudScript { path, writes } => {
            format!("{path} is installed, and writes {writes} when it runs, mostly at boot")
        }
        Note::TunedRunning { active, profile, setting } => format!(
            "tuned runs with the profile {active}, of which {profile} has {setting}: it sets the vectors of all devices \
             whenever it is started or its profile is switched"
        ),
        Note::LinkIrqAffinity { path, policy } => format!(
            "{path} has IRQAffinityPolicy={policy}: systemd-udevd sets the vectors of the cards that it matches when \
             they appear or are moved"
        ),
        Note::SocketsPoll => {
            "sockets that wait poll their card (net.core.busy_read, busy_poll): while they do, packets \
                              are taken on the program's CPU, not on the vector's"
                .into()
        }
        Note::ThreadedNapi { pids, .. } => {
            let named =
                if pids.is_empty() { String::new() } else { format!(" (processes {})", numbers(pids)) };
            format!(
                "its queues are polled by threads{named}, which the scheduler may run anywhere: the vector's CPU only \
                 wakes them"
            )
        }
        Note::InterruptsDeferred { napi_defer_hard_irqs, gro_flush_timeout } => format!(
            "it is polled before it may interrupt again (napi_defer_hard_irqs {napi_defer_hard_irqs}, \
             gro_flush_timeout {gro_flush_timeout} ns): few interrupts are no sign of little traffic, and a busy poller \
             takes packets on its own CPU"
        ),
        Note::Options => "judged by the options that were given; apply needs the same ones to mend it".into(),
        Note::CpusChanged { cpus, left_out: true } => {
            format!("CPUs {cpus} went on or offline; what they did then is not counted")
        }
        Note::CpusChanged { cpus, .. } => {
            format!("CPUs {cpus} went on or offline while interrupts were watched")
        }
        Note::Short => {
            "too short a time for shares of CPU time, which the kernel counts in ticks of 10 ms".into()
        }
        Note::VectorsChanged { irqs } => format!("IRQs {irqs} came, went or began anew; not counted then"),
        Note::InterfacesChanged { interfaces } => {
            format!("{} came, went or began to count anew; not counted then", interfaces.join(", "))
        }
        Note::Memory { about } => about.clone(),
        Note::SameNode { node } => format!("near and far are both node {node}"),
        Note::CpusUnlike { near, far } => format!("the command has {near} CPUs near and {far} far"),
        note => about_irqbalance(note),
    }
}

fn about_irqbalance(note: &Note) -> String {
    let Note::IrqbalanceRunning { pid, action, irqs: planned, left_alone, lasts, .. } = note else {
        return String::new();
    };
    let who = format!("irqbalance runs (process {pid})");
    let irqs = count(*planned, "planned IRQ");
    match action {
        Balancer::Ban if *lasts => format!(
            "{who} and moves vectors: apply tells it to leave the {irqs} alone, and its policy script, which asks \
             nicpin, makes that last"
        ),
        Balancer::Ban => format!(
            "{who} and moves vectors: apply tells it to leave the {irqs} alone, which lasts until irqbalance restarts; \
             to make it last, let its policy script ask nicpin"
        ),
        Balancer::Stop => format!(
            "{who} and would move the {irqs}: apply stops its service, which lasts until the next boot, and restore \
             starts it again"
        ),
        Balancer::Ignore if *left_alone > 0 => {
            let rest = match planned - left_alone {
                0 => String::new(),
                rest => format!("; it will move the other {rest} elsewhere"),
            };
            format!(
                "{who} and is ignored: it leaves {left_alone} of the {irqs} alone, as an earlier apply has told it, \
                 until it restarts or restore takes that back{rest}"
            )
        }
        Balancer::Ignore => format!(
            "{who} and is ignored: it will move the {irqs} elsewhere, every 10 seconds if not set otherwise"
        ),
        Balancer::Refuse => format!("{who} and would move the {irqs}: apply refuses to write while it runs"),
    }
}

/// What to type, or do, about it.
pub fn fix(note: &Note) -> Option<String> {
    Some(match note {
        Note::QueuesExceedCores { fixed: true, .. } => return None,
        Note::QueuesExceedCores { interface, cores, channels, .. } => {
            let arguments = match channels {
                Some(channels) => channels.set_arguments(u32::try_from(*cores).unwrap_or(u32::MAX)),
                None => format!("combined {cores}"),
            };
            format!("ethtool -L {} {arguments}", word(interface))
        }
        Note::MoreQueuesPossible { interface, cores, channels, .. } => {
            let most = channels.max_receiving().min(u32::try_from(*cores).unwrap_or(u32::MAX));
            format!("ethtool -L {} {}", word(interface), channels.set_arguments(most))
        }
        Note::TinyMachine { interface, others, .. } => {
            format!("nicpin apply --rps {others} {}", word(interface))
        }
        Note::XpsRxqsSet { interface, queues } => {
            let file = |queue: &u32| word(&queue_file(interface, "tx", *queue, "xps_rxqs")).into_owned();
            let files: Vec<String> = queues.iter().map(file).collect();
            match &files[..] {
                [only] => format!("echo 0 > {only}"),
                several => format!("echo 0 | tee {}", several.join(" ")),
            }
        }
        Note::VectorsShared { owner, planned: false } => format!("nicpin plan {}", word(owner)),
        Note::VmbusChannels { device, .. } => {
            format!("echo CPU > /sys/bus/vmbus/devices/{device}/channels/CHANNEL/cpu")
        }
        Note::ChannelsDiffer { command, .. } => command.clone(),
        Note::ThreadedNapi { interface, pids } => match pids.first() {
            Some(pid) => format!("taskset -pc CPU {pid}"),
            None => format!("echo 0 > /sys/class/net/{interface}/threaded"),
        },
        Note::CloudScript { .. } => "run nicpin apply after it, and nicpin check to see who was last".into(),
        Note::TunedRunning { .. } => "run nicpin apply after tuned: After=tuned.service in its unit".into(),
        Note::LinkIrqAffinity { .. } => "take the line out, or run nicpin apply after such events".into(),
        Note::IrqbalanceRunning { action, lasts, irqs, left_alone, policy_script, arguments, .. } => {
            match action {
                Balancer::Ban if *lasts => return None,
                Balancer::Ban => how_to_make_it_last(policy_script.as_deref(), arguments.as_ref()),
                Balancer::Stop => "systemctl disable irqbalance".into(),
                Balancer::Ignore if *left_alone > 0 && left_alone == irqs => return None,
                Balancer::Ignore | Balancer::Refuse => "nicpin apply --irqbalance ban".into(),
            }
        }
        _ => return None,
    })
}

/// The line of this distribution's file. A ban by IRQ number in it would be about another vector after the next boot.
fn how_to_make_it_last(policy_script: Option<&str>, arguments: Option<&Arguments>) -> String {
    match (policy_script, arguments) {
        (Some(script), _) => format!("have {script} ask nicpin irqbalance-policy, as {SCRIPT_PATH} does"),
        (None, Some(Arguments { file, variable })) => {
            format!("{variable}=\"--policyscript={SCRIPT_PATH}\" in {file}")
        }
        (None, None) => format!("--policyscript={SCRIPT_PATH} among the arguments of its service"),
    }
}

fn channels(asked: Option<u32>) -> String {
    asked.map_or("as many channels as candidate cores".to_owned(), |asked| count(asked as usize, "channel"))
}

fn vmbus(channels: &[VmbusChannel]) -> String {
    let each: Vec<String> =
        channels.iter().map(|channel| format!("{} -> {}", channel.id, channel.cpu)).collect();
    if each.is_empty() { "not told".to_owned() } else { each.join(", ") }
}

fn named(vectors: &[UnknownVector]) -> String {
    let names: Vec<String> = vectors.iter().map(|v| format!("{} ({})", v.irq, v.action)).collect();
    names.join(", ")
}

fn numbers(numbers: &[u32]) -> String {
    numbers.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")
}

/// The first few names of many.
fn few(names: &[&str]) -> String {
    const NAMED: usize = 4;
    match names.len().saturating_sub(NAMED) {
        0 => names.join(", "),
        more => format!("{} and {}", names[..NAMED].join(", "), count(more, "other")),
    }
}
