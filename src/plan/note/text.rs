//! The text of a note, and the command that fixes it.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};

use crate::machine::paths::queue_file;
use crate::machine::shell::word;
use crate::machine::tools::{Arguments, SCRIPT_PATH};
use crate::machine::wording::count;
use crate::machine::{UnknownVector, VmbusChannel};
use crate::plan::note::{Data, NoVectors, Note, RssUnchanged, UsedFor};
use crate::policy::Balancer;

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
        WithText {
            data: Data(self),
            text: text(self),
            fix: fix(self),
        }
        .serialize(serializer)
    }
}

/// What advice on channels costs.
const FLAP: &str = "The change takes the link down for a moment; restore undoes it";
/// What follows from a note: a `fix` for what is wrong, or something to `try`.
pub fn advice(note: &Note) -> Option<(&'static str, String)> {
    let kind = match note {
        Note::QueuesExceedCores { .. }
        | Note::MoreQueuesPossible { .. }
        | Note::TinyMachine { .. }
        | Note::VmbusChannels { .. }
        | Note::VectorsShared { .. } => "try",
        _ => "fix",
    };
    Some((kind, fix(note)?))
}

/// The text, without its fix.
#[allow(clippy::too_many_lines)] // one entry for each note
pub fn text(note: &Note) -> String {
    match note {
        Note::OtherNamespace => "/sys shows it from another network namespace than that of nicpin: its channels and \
                                 what netlink reports of its queues are unknown"
            .into(),
        Note::NodeUnknown { named: false } => {
            "the device's node is unknown (numa_node is -1); all CPUs are treated as equally near".into()
        }
        Note::NodeUnknown { named: true } => {
            "the device's node could not be determined; all CPUs are treated as equally near".into()
        }
        Note::NodeMissing { node } => {
            format!("numa_node of the device is {node}, which this machine does not have")
        }
        Note::NodeWithoutCpus { node, nearest, distance } if nearest.len() > 1 => format!(
            "the device is on node {node}, which has no usable CPU; nodes {nearest} are the nearest with some \
             (distance {distance}) and share its vectors"
        ),
        Note::NodeWithoutCpus { node, nearest, distance } => format!(
            "the device is on node {node}, which has no usable CPU; node {nearest} is the nearest with one \
             (distance {distance})"
        ),
        Note::ScopeUnusable { nodes } => {
            format!("node {nodes} of the policy's scope has no usable CPU; the local node is used")
        }
        Note::NoUsableCpu { online } => {
            format!("every online CPU ({}) is isolated, nohz_full, exclusive to a cgroup or excluded; all of them are used", online.short())
        }
        Note::NoRemoteNode => "there is no remote node with a usable CPU; the local node is used".into(),
        Note::CpusUnusable { wanted, missing, used_for: UsedFor::Interrupts } if wanted == missing => {
            format!("none of the CPUs {} that the policy names can be used; those of the local node are used", wanted.short())
        }
        Note::CpusUnusable { wanted, missing, used_for } => {
            let what = match used_for {
                UsedFor::Interrupts => "for interrupts",
                UsedFor::Rps => "for RPS",
            };
            format!(
                "of the CPUs {} that the policy names {what}, {} are offline or excluded",
                wanted.short(),
                missing.short()
            )
        }
        Note::Widened { queues, cores, node, to } => format!(
            "node {node} has {} for {queues} queues: widened to node {} of the same package",
            count(*cores, "core"),
            numbers(to)
        ),
        Note::IsolatedCpusUsed { cpus } => {
            format!("CPUs {} take interrupts although they are isolated or nohz_full", cpus.short())
        }
        Note::LinkBelow { now, possible } => format!(
            "its PCIe link runs at {now}, and the device and its slot can do {possible}: {}% of the bandwidth, which costs more \
             than any affinity",
            now.total().saturating_mul(100) / possible.total().max(1)
        ),
        Note::ExclusiveCpusUsed { cpus } => format!(
            "CPUs {} take interrupts although they are exclusive to a cgroup (cpuset partitions)",
            cpus.short()
        ),
        Note::Skipped => "the policy leaves this interface alone".into(),
        Note::VectorsUnreadable { missing: Some(missing), .. } => format!(
            "its vectors are unknown, because there is no {missing} below this root; fix: mount it, or include it in the \
             copy"
        ),
        Note::VectorsUnreadable { missing: None, vectors } => format!(
            "none of its queue vectors can be read: their files in /proc/irq are absent, for {}; fix: run again, or include \
             them in the copy",
            named(vectors)
        ),
        Note::VectorsNotUnderstood { driver, vectors } => format!(
            "the vector names of {} are not recognized, so the interface is left alone: {}",
            driver.as_deref().unwrap_or("its driver"),
            named(vectors)
        ),
        Note::UnknownVectors { vectors } => {
            format!("left alone, because their names are not recognized: {}", named(vectors))
        }
        Note::VectorsVanished { vectors } => format!(
            "vectors vanished while they were read, or have no /proc/irq files: {}; fix: run again",
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
            format!("it shares the device and its vectors with {owner}; they are planned there")
        }
        Note::VectorsOfSeveral { others } => format!(
            "its vectors include those of {}: the names do not show which belongs to which, and all are planned here",
            others.join(", ")
        ),
        Note::LineShared { irq, owner } => {
            format!("IRQ {irq} is shared with {owner} and planned there")
        }
        Note::KernelManaged { vectors } => {
            format!("{vectors} of its queue vectors are managed by the kernel and cannot be moved")
        }
        Note::SourcesDisagree { contradictions } => format!(
            "netlink and the names of vectors disagree; netlink is trusted: {}",
            contradictions.join("; ")
        ),
        Note::VmbusChannels { channels, .. } => format!(
            "Hyper-V delivers its packets by VMBus channels, which have no vectors; nicpin does not move them. Channel -> \
             CPU: {}. To move a channel, write the number of a CPU to its `cpu` file",
            vmbus(channels)
        ),
        Note::NoHint { vectors } => {
            format!("{vectors} queue vectors have no hint from the driver and are placed on the local node")
        }
        Note::HintUnusable { vectors } => format!(
            "the driver's hints for {} are CPUs that are offline, isolated or excluded; placed on the local node",
            count(*vectors, "queue vector")
        ),
        Note::HintIgnoresLocality { driver } => {
            format!("the hints of {driver} are not limited to the local node")
        }
        Note::QueuesExceedCores { queues, cores, node, advised, fixed, irq_cores, .. } => {
            let on = node.map_or(String::new(), |node| format!(" on node {node}"));
            let more = match (fixed, advised) {
                _ if irq_cores.is_some() => {
                    "; the RSS table can send flows to one queue on each core, and the link stays up".to_owned()
                }
                (true, _) => "; the driver does not allow another number of queues".to_owned(),
                (false, Some(advised)) if (*advised as usize) < *cores => {
                    format!("; its share of the cores is {advised}. {FLAP}")
                }
                (false, Some(_)) => format!(". {FLAP}"),
                (false, None) => String::new(),
            };
            let cores = count(*cores, "candidate core");
            format!("{queues} queues share {cores}{on}, so some cores take more than one{more}")
        }
        Note::MoreQueuesPossible { queues, cores, channels, .. } => format!(
            "{} on {}, and the device can have {}; RPS stays off, because hardware queues cost less CPU time. {FLAP}",
            count(*queues, "receive queue"),
            count(*cores, "candidate core"),
            channels.max_receiving()
        ),
        Note::RpsFiltered { cpus } => format!(
            "the kernel removes CPUs {cpus} from rps_cpus, because they are isolated or nohz_full; the rest is planned"
        ),
        Note::TinyMachine { queues, cpus, .. } => format!(
            "{} on {}: RPS stays off on a machine this small, unless it is requested",
            count(*queues, "receive queue"),
            count(*cpus, "CPU")
        ),
        Note::ChannelsUnchanged { requested, fixed } => {
            let why = if *fixed { "does not allow another number" } else { "does not report the current number" };
            format!("the policy requests {}; the driver {why}, so nothing is changed", channels(*requested))
        }
        Note::ChannelsAtMost { requested, most } => {
            format!("the policy requests {}; the device can have {most}", channels(Some(*requested)))
        }
        Note::ChannelsDiffer { why, .. } => format!("its channels are not as planned: {why}"),
        Note::RssUnchanged { because: RssUnchanged::NoTable } => {
            "the policy requests an RSS table, and the driver reports none".into()
        }
        Note::RssUnchanged { because: RssUnchanged::Function(number) } => format!(
            "the policy requests an RSS table; hash function {number} is not known to use one, so nothing is changed"
        ),
        Note::RssUnchanged { because: RssUnchanged::NoQueue } => {
            "the policy requests an RSS table to candidate cores, and no queue's vector is on one; nothing is changed".into()
        }
        Note::RssBeyondCandidates { queues, cpus, .. } => format!(
            "the RSS table sends flows to {}, whose vectors stay on CPUs that are not candidates ({})",
            if queues.len() == 1 { format!("receive queue {queues}") } else { format!("receive queues {queues}") },
            cpus.short()
        ),
        Note::XpsRxqsSet { queues, .. } => format!(
            "xps_rxqs is set on {}, and takes precedence over xps_cpus for flows with a receive queue",
            count(queues.len(), "transmit queue")
        ),
        Note::NotPresent { selector } => format!("no interface matches `{selector}`"),
        Note::NoDevice { selector, what } => format!("`{selector}` {what}"),
        Note::RuleUnmatched { rule, conditions } => {
            format!("rule {rule} of the policy ({conditions}) matches no interface")
        }
        Note::NothingToDo => "no interface with a device is up or has vectors".into(),
        Note::NotPlanned { down, functions } => {
            let mut parts = Vec::new();
            if !down.is_empty() {
                let down: Vec<&str> = down.iter().map(String::as_str).collect();
                parts.push(format!("{} (down, no vectors requested)", few(&down)));
            }
            let mut by_driver: BTreeMap<Option<&str>, Vec<&str>> = BTreeMap::new();
            for function in functions {
                by_driver.entry(function.driver.as_deref()).or_default().push(&function.address);
            }
            parts.extend(by_driver.iter().map(|(driver, addresses)| match driver {
                Some(driver) => format!("{} (driver {driver}, no interface here)", few(addresses)),
                None => format!("{} (no driver)", few(addresses)),
            }));
            format!("not planned: {}", parts.join(", "))
        }
        Note::CgroupsLeftOut => {
            "there are so many cgroups that some were not looked at: a CPU that one of them has alone may take interrupts"
                .into()
        }
        Note::NoProc => "there is no /proc below this root, so all vectors are unknown".into(),
        Note::NoProcIrq => "there is no /proc/irq below this root, so all vectors are unknown".into(),
        Note::OneCpu => "there is only one CPU, which takes every interrupt".into(),
        Note::IrqbalanceUnknown { hidden, .. } => format!(
            "whether irqbalance runs could not be determined, because this user may not read {hidden}: if it runs, it \
             moves vectors"
        ),
        Note::CloudScript { path, writes } => {
            format!("{path} is installed, and writes {writes} when it runs, usually at boot")
        }
        Note::TunedRunning { active, profile, setting } => format!(
            "tuned runs with the profile {active}, where {profile} has {setting}: it sets the affinity of all vectors \
             whenever it is started or its profile is changed"
        ),
        Note::LinkIrqAffinity { path, policy } => format!(
            "{path} has IRQAffinityPolicy={policy}: systemd-udevd sets the affinity of the vectors of matching devices \
             when they appear or are moved"
        ),
        Note::SocketsPoll => {
            "busy polling is on (net.core.busy_read, busy_poll): while a socket polls, packets are taken on \
                              the program's CPU, not on the vector's"
                .into()
        }
        Note::ThreadedNapi { pids, placed, .. } => {
            let named =
                if pids.is_empty() { String::new() } else { format!(" (processes {})", numbers(pids)) };
            let where_to = if *placed {
                "which process its packets on the CPUs that the plan gives them"
            } else {
                "which the plan leaves where the scheduler may run them"
            };
            format!("its queues are polled by threads{named}, {where_to}: the vector's CPU only wakes them")
        }
        Note::InterruptsDeferred { napi_defer_hard_irqs, gro_flush_timeout } => format!(
            "its interrupts are deferred (napi_defer_hard_irqs {napi_defer_hard_irqs}, gro_flush_timeout \
             {gro_flush_timeout} ns): few interrupts do not mean little traffic, and a busy poller takes packets on its \
             own CPU"
        ),
        Note::Options => {
            "compared with a plan by the given options; apply needs the same options to fix it".into()
        }
        Note::CpusChanged { cpus, left_out: true } => {
            format!("CPUs {} went online or offline; their figures for that time are not counted", cpus.short())
        }
        Note::CpusChanged { cpus, .. } => {
            format!("CPUs {} went online or offline while interrupts were watched", cpus.short())
        }
        Note::Short => {
            "the time is too short for shares of CPU time, which the kernel counts in ticks of 10 ms".into()
        }
        Note::VectorsChanged { irqs } => format!(
            "IRQs {irqs} appeared, vanished or restarted at 0; their figures for that time are not counted"
        ),
        Note::InterfacesChanged { interfaces } => {
            format!(
                "{} appeared, vanished or reset its counters; its figures for that time are not counted",
                interfaces.join(", ")
            )
        }
        Note::Memory { about } => about.clone(),
        Note::SameNode { node } => format!("near and far are both node {node}"),
        Note::CpusUnlike { near, far } => format!("the command has {near} CPUs near and {far} far"),
        Note::Outliers { side, what, runs } => {
            let list: Vec<String> = runs.iter().map(ToString::to_string).collect();
            let why = match runs[..] {
                [1] => "it was the first one: use --warmup for more runs that do not count",
                _ => "other work may have run then: compare on an idle machine, with more --runs",
            };
            let word = if runs.len() == 1 { "run" } else { "runs" };
            format!("{side}, {word} {}: the {what} is far from that of the others; {why}", list.join(", "))
        }
        Note::IrqbalanceRunning { pid, action, irqs, left_alone, lasts, .. } => {
            irqbalance(*pid, *action, *irqs, *left_alone, *lasts)
        }
    }
}

fn irqbalance(
    pid: i32,
    action: Balancer,
    planned: usize,
    left_alone: usize,
    lasts: bool,
) -> String {
    let who = format!("irqbalance runs (process {pid})");
    let irqs = count(planned, "planned IRQ");
    match action {
        Balancer::Ban if lasts => format!(
            "{who} and moves vectors: apply has it leave the {irqs} alone, also after it restarts, because its policy \
             script asks nicpin"
        ),
        Balancer::Ban => format!(
            "{who} and moves vectors: apply has it leave the {irqs} alone until irqbalance restarts; a policy script \
             that asks nicpin makes this permanent"
        ),
        Balancer::Stop => format!(
            "{who} and would move the {irqs}: apply stops its service until the next boot, and restore starts it \
             again"
        ),
        Balancer::Ignore if left_alone > 0 => {
            let rest = match planned - left_alone {
                0 => String::new(),
                rest => format!("; it will move the other {rest}"),
            };
            format!(
                "{who} and is ignored: it leaves {left_alone} of the {irqs} alone since an earlier apply, until it \
                 restarts or restore undoes that{rest}"
            )
        }
        Balancer::Ignore => {
            format!("{who} and is ignored: it will move the {irqs}, by default every 10 seconds")
        }
        Balancer::Refuse => {
            format!("{who} and would move the {irqs}: apply refuses to write while it runs")
        }
    }
}

/// The command or the change of configuration that fixes what a note reports.
pub fn fix(note: &Note) -> Option<String> {
    Some(match note {
        Note::QueuesExceedCores {
            interface,
            irq_cores: Some(cores),
            ..
        } => {
            format!(
                "nicpin apply --irq-cores {cores} --rss candidates {}",
                word(interface)
            )
        }
        Note::RssBeyondCandidates {
            interface,
            avoidable: true,
            ..
        } => {
            format!("nicpin apply --rss candidates {}", word(interface))
        }
        Note::QueuesExceedCores {
            interface,
            advised: Some(advised),
            ..
        }
        | Note::MoreQueuesPossible {
            interface, advised, ..
        } => {
            format!("nicpin apply --channels {advised} {}", word(interface))
        }
        Note::TinyMachine {
            interface, others, ..
        } => {
            format!("nicpin apply --rps {others} {}", word(interface))
        }
        Note::XpsRxqsSet { interface, queues } => {
            let file =
                |queue: &u32| word(&queue_file(interface, "tx", *queue, "xps_rxqs")).into_owned();
            let files: Vec<String> = queues.iter().map(file).collect();
            match &files[..] {
                [only] => format!("echo 0 > {only}"),
                several => format!("echo 0 | tee {}", several.join(" ")),
            }
        }
        Note::VectorsShared {
            owner,
            planned: false,
        } => format!("nicpin plan {}", word(owner)),
        Note::VmbusChannels { device, .. } => {
            format!(
                "echo CPU > {}",
                word(&format!(
                    "/sys/bus/vmbus/devices/{device}/channels/CHANNEL/cpu"
                ))
            )
        }
        Note::ChannelsDiffer {
            interface, wanted, ..
        } => {
            format!("nicpin apply --channels {wanted} {}", word(interface))
        }
        Note::ThreadedNapi { placed: true, .. } => return None,
        Note::ThreadedNapi {
            interface, pids, ..
        } => match pids.first() {
            Some(pid) => format!("taskset -pc CPU {pid}"),
            None => format!(
                "echo 0 > {}",
                word(&format!("/sys/class/net/{interface}/threaded"))
            ),
        },
        Note::IrqbalanceUnknown { .. } => "run as root".into(),
        Note::CloudScript { .. } => {
            "run nicpin apply after it; nicpin check reports whether it has run since".into()
        }
        Note::TunedRunning { .. } => {
            "run nicpin apply after tuned: After=tuned.service in its unit".into()
        }
        Note::LinkIrqAffinity { .. } => {
            "remove the line, or run nicpin apply after such events".into()
        }
        Note::IrqbalanceRunning {
            action,
            lasts,
            irqs,
            left_alone,
            policy_script,
            arguments,
            ..
        } => match action {
            Balancer::Ban if *lasts => return None,
            Balancer::Ban => lasting_fix(policy_script.as_deref(), arguments.as_ref()),
            Balancer::Stop => "systemctl disable irqbalance".into(),
            Balancer::Ignore if *left_alone > 0 && left_alone == irqs => return None,
            Balancer::Ignore | Balancer::Refuse => "nicpin apply --irqbalance ban".into(),
        },
        _ => return None,
    })
}

/// How to set the policy script on this distribution. A ban by IRQ number would apply to another vector after a reboot.
fn lasting_fix(policy_script: Option<&str>, arguments: Option<&Arguments>) -> String {
    match (policy_script, arguments) {
        (Some(script), _) => {
            format!("call nicpin irqbalance-policy in {script}, as {SCRIPT_PATH} does")
        }
        (None, Some(Arguments { file, variable })) => {
            format!("{variable}=\"--policyscript={SCRIPT_PATH}\" in {file}")
        }
        (None, None) => format!("add --policyscript={SCRIPT_PATH} to the arguments of its service"),
    }
}

fn channels(requested: Option<u32>) -> String {
    requested.map_or(
        "as many channels as candidate cores".to_owned(),
        |requested| count(requested as usize, "channel"),
    )
}

fn vmbus(channels: &[VmbusChannel]) -> String {
    let each: Vec<String> = channels
        .iter()
        .map(|channel| format!("{} -> {}", channel.id, channel.cpu))
        .collect();
    if each.is_empty() {
        "unknown".to_owned()
    } else {
        each.join(", ")
    }
}

fn named(vectors: &[UnknownVector]) -> String {
    let names: Vec<String> = vectors
        .iter()
        .map(|v| format!("{} ({})", v.irq, v.action))
        .collect();
    names.join(", ")
}

fn numbers(numbers: &[u32]) -> String {
    numbers
        .iter()
        .map(u32::to_string)
        .collect::<Vec<_>>()
        .join(", ")
}

/// The first four names, and the number of others.
fn few(names: &[&str]) -> String {
    const NAMED: usize = 4;
    match names.len().saturating_sub(NAMED) {
        0 => names.join(", "),
        more => format!("{} and {}", names[..NAMED].join(", "), count(more, "other")),
    }
}
