//! The notes of a plan, and the advice of each.

use itertools::{Itertools as _, chain};

use crate::drivers::{Driver, Fact};
use crate::machine::interface::is_pci_address;
use crate::machine::others::{Arguments, SCRIPT_PATH, UnusedFunction};
use crate::machine::setting::queue_file;
use crate::machine::wording::{selector, word};
use crate::machine::{Machine, Role, Selection, UnknownVector};
use crate::plan::candidates::{core_count, exclusive, unreserved};
use crate::plan::data::{IrqbalancePlan, Plan, PlannedRss};
use crate::plan::device::{self, advised_channels};
use crate::plan::note::{NoVectors, Note};
use crate::plan::ports::PlacedPort;
use crate::policy::{
    Balancer, CHANNELS, ChannelCount, IRQ_CORES, Policy, SCOPE, SKIP, Scope, WIDEN, XPS, Xps,
};

pub(crate) fn interface_notes(
    port: &PlacedPort<'_>,
    selection: &Selection,
    rss: Option<&PlannedRss>,
) -> Vec<Note> {
    let (interface, topology) = (port.interface, &port.machine.topology);
    if port.choice.get(&SKIP) {
        return vec![Note::Skipped];
    }
    let apart = interface.in_other_namespace && !interface.is_elsewhere();
    if port.skip {
        return Vec::from_iter(apart.then_some(Note::OtherNamespace));
    }
    if interface.unreadable_name {
        return vec![Note::NameUnreadable];
    }
    let mut notes = vector_notes(port, selection);
    if interface.without_netdev {
        notes.extend((!interface.is_for_rdma()).then_some(Note::NoInterface));
    } else if interface.is_elsewhere() {
        notes.extend((!interface.is_for_rdma()).then_some(Note::Elsewhere));
    } else if apart {
        notes.push(Note::OtherNamespace);
    }
    if !interface.contradictions.is_empty() {
        notes.push(Note::SourcesDisagree {
            contradictions: interface.contradictions.clone(),
        });
    }
    let lines = port.shared.iter();
    for (&irq, &owner) in lines.filter(|_| interface.shares_vectors_of.is_none()) {
        let owner = owner.to_owned();
        notes.push(Note::LineShared { irq, owner });
    }
    let vectors = interface.queue_vectors().filter(|v| !v.movable).count();
    if vectors > 0 {
        let is_managed = Driver::has(interface.driver.as_deref(), Fact::ManagedIrqs);
        notes.push(if is_managed {
            Note::KernelManaged { vectors }
        } else {
            Note::NotMovable { vectors }
        });
    }
    let link = interface.device.link;
    if let Some((now, possible)) = link.filter(|(now, possible)| now.is_below(*possible)) {
        notes.push(Note::LinkBelow { now, possible });
    }
    let exceeding = too_many_queues(port, rss);
    let more = package_has_more(port, exceeding.as_ref());
    let exhausted = vectors_exhausted(port);
    // Both give the same advice.
    let exceeding = exceeding.filter(|_| exhausted.is_none());
    notes.extend(chain!(exhausted, exceeding, more));
    notes.extend(other_channels(port));
    let queues = interface
        .tx_queues
        .iter()
        .filter(|tx| tx.xps_rxqs.iter().any(|rxqs| !rxqs.cpus.is_empty()))
        .map(|tx| tx.index)
        .collect_vec();
    if matches!(port.choice.get(&XPS), Xps::Auto | Xps::Off) && !queues.is_empty() {
        let interface = interface.name.clone();
        notes.push(Note::XpsRxqsSet { interface, queues });
    }
    notes.extend(hint_notes(port));
    if port.has_placed_queues() {
        let candidates = &port.candidates.cpus;
        let cpus = topology.isolated_or_nohz().intersection(candidates);
        if !cpus.is_empty() {
            notes.push(Note::IsolatedCpusUsed { cpus });
        }
        let cpus = exclusive(topology, &port.choice).intersection(candidates);
        if !cpus.is_empty() {
            notes.push(Note::ExclusiveCpusUsed { cpus });
        }
    }
    notes
}

/// Returns notes about vectors that are missing, not recognized or shared.
fn vector_notes(port: &PlacedPort<'_>, selection: &Selection) -> Vec<Note> {
    let (interface, missing) = (port.interface, port.machine.missing());
    let has_queues = port.has_placed_queues();
    let unreadable = |missing: Option<&str>, vectors: &[_]| Note::VectorsUnreadable {
        missing: missing.map(str::to_owned),
        vectors: vectors.to_vec(),
    };
    let vanished = &interface.vanished_vectors;
    let vectors = interface.unknown_vectors.clone();
    let data = interface
        .vectors
        .iter()
        .filter(|vector| vector.role == Role::Data);
    let data = data
        .map(|vector| UnknownVector {
            irq: vector.irq,
            action: vector.action.clone(),
        })
        .collect_vec();
    let controller = interface.device.controller.as_ref();
    let controller = controller.map(|(driver, irqs)| {
        let name = if driver.is_empty() {
            "its controller"
        } else {
            driver
        };
        match irqs.first() {
            Some(irq) => format!("{name} (IRQ {irq})"),
            None => name.to_owned(),
        }
    });
    let note = if missing.is_some() && interface.vmbus.is_none() {
        Some(unreadable(missing, &[]))
    } else if !vanished.is_empty() && !has_queues {
        Some(unreadable(None, vanished))
    } else if let Some(owner) = interface.shares_vectors_of.clone() {
        let planned = selection.names.contains(&owner);
        // Without the other one selected, they are planned here.
        Some(if planned || !has_queues {
            Note::VectorsShared { owner, planned }
        } else {
            let others = vec![owner];
            Note::VectorsForSeveral { others }
        })
    } else if !vectors.is_empty() {
        Some(Note::UnknownVectors { vectors })
    } else if !data.is_empty() && !interface.without_netdev {
        Some(Note::DataVectors { vectors: data })
    } else if has_queues {
        let queues = port.unserved();
        (!queues.is_empty()).then_some(Note::QueuesUnserved { queues })
    } else if interface.is_for_rdma() {
        None
    } else if let Some(channels) = interface.vmbus.clone() {
        let mut stacked = port.machine.stacked.iter();
        let below = stacked.find(|stacked| stacked.name == interface.name);
        Some(Note::VmbusChannels {
            device: interface.device.address.clone(),
            controller,
            channels,
            interfaces: below.map_or(Vec::new(), |stacked| stacked.lowers.clone()),
        })
    } else {
        let device = &interface.device;
        // sysfs lists IRQs of PCI devices only.
        let without = device.irqs.is_empty() && interface.vectors.is_empty();
        let is_pci = is_pci_address(&device.address);
        let because = match (without, interface.link == "up") {
            _ if !is_pci && (device.controller.is_none() || !without) => NoVectors::Unlisted,
            // Some drivers allocate vectors only while the interface is up.
            (true, false) if is_pci => NoVectors::WhileDown,
            (true, _) => NoVectors::OfDevice,
            (false, true) => NoVectors::Requested,
            (false, false) => NoVectors::WhileDown,
        };
        Some(Note::NoVectors {
            because,
            controller,
        })
    };
    let mut notes = Vec::from_iter(note);
    if !interface.sharing.is_empty() {
        let others = interface
            .sharing
            .iter()
            .map(|other| other.name.clone())
            .collect();
        notes.push(
            if Driver::has(interface.driver.as_deref(), Fact::PortsShareQueues) {
                Note::VectorsForSeveral { others }
            } else {
                Note::VectorsOfSeveral { others }
            },
        );
    }
    if missing.is_none() && has_queues && !vanished.is_empty() {
        let vectors = vanished.clone();
        notes.push(Note::VectorsVanished { vectors });
    }
    notes
}

fn hint_notes(port: &PlacedPort<'_>) -> Vec<Note> {
    let mut notes = Vec::new();
    if port.choice.get(&SCOPE) != Scope::Hint || port.candidates.named {
        return notes;
    }
    let (hinted, without): (Vec<_>, Vec<_>) = port
        .interface
        .queue_vectors()
        .partition(|vector| port.machine.hints.contains_key(&vector.irq));
    if !without.is_empty() {
        let vectors = without.len();
        notes.push(Note::NoHint { vectors });
    }
    let decided_by = |vector| port.placement(vector)?.decided_by;
    let unused = hinted.iter().filter(|vector| decided_by(vector).is_none());
    let vectors = unused.count();
    if vectors > 0 {
        notes.push(Note::HintUnusable { vectors });
    }
    let driver = port.interface.driver.as_deref().unwrap_or_default();
    if without.is_empty() && Driver::has(Some(driver), Fact::HintsAnywhere) {
        let driver = driver.to_owned();
        notes.push(Note::HintIgnoresLocality { driver });
    }
    notes
}

fn too_many_queues(port: &PlacedPort<'_>, rss: Option<&PlannedRss>) -> Option<Note> {
    let (interface, candidates) = (port.interface, &port.candidates.cpus);
    let planned = rss.and_then(|rss| Some(rss.queues.as_ref()?.len()));
    let queues = interface.active_queues().min(planned.unwrap_or(usize::MAX));
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
        advised: advised_channels(port)
            .filter(|&advised| (advised as usize) < queues)
            .filter(|&advised| {
                interface
                    .channels
                    .is_none_or(|now| now.receiving() != advised)
            }),
        unsure: interface.channels.is_none(),
        fixed: interface.channels_fixed,
        irq_cores: (port.choice.get(&IRQ_CORES)).filter(|_| device::has_settable_rss(interface)),
    })
}

/// A note if the candidates have no interrupt vectors for some IRQs, which the plan does not move.
fn vectors_exhausted(port: &PlacedPort<'_>) -> Option<Note> {
    port.machine.vectors_held.as_ref()?;
    let data = port.interface.vectors.iter();
    let data = data.filter(|vector| vector.movable && vector.role != Role::Control);
    let data = data.filter(|vector| !port.shared.contains_key(&vector.irq));
    let data = data.filter(|vector| !port.is_kept(vector));
    let irqs = data.filter(|vector| port.target(vector).is_none()).count();
    (irqs > 0).then(|| Note::VectorsExhausted {
        interface: port.interface.name.clone(),
        irqs,
        cpus: port.candidates.cpus.clone(),
        advised: advised_channels(port)
            .filter(|&advised| (advised as usize) < port.interface.active_queues()),
    })
}

/// A note if other nodes of the package could take the queues that exceed the cores of one node.
fn package_has_more(port: &PlacedPort<'_>, exceeding: Option<&Note>) -> Option<Note> {
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
    let mut packages = topology.packages.iter();
    let package = packages.find(|package| candidates.is_subset(package))?;
    let package = core_count(
        topology,
        &port.choice,
        &package.intersection(&unreserved(topology, &port.choice)),
    );
    let is_local = port.choice.get(&SCOPE) == Scope::Local && !port.choice.get(&WIDEN);
    (is_local && !port.candidates.named && package > cores).then(|| Note::PackageHasMore {
        interface: port.interface.name.clone(),
        queues,
        node,
        cores,
        package,
    })
}

/// A note if the channels that the policy requests cannot be set.
fn other_channels(port: &PlacedPort<'_>) -> Option<Note> {
    let requested = match port.choice.get(&CHANNELS) {
        ChannelCount::Keep => return None,
        ChannelCount::Auto => None,
        ChannelCount::Count(requested) => Some(requested),
    };
    let fixed = port.interface.channels_fixed;
    if requested.is_some_and(|requested| port.interface.receives_by(requested)) {
        return None;
    }
    let Some(now) = port.interface.channels.filter(|_| !fixed) else {
        return Some(Note::ChannelsUnchanged { requested, fixed });
    };
    let stays = requested.is_none() && device::channels(port).is_none();
    stays.then(|| Note::ChannelsFit {
        now: now.receiving(),
        cores: port.core_count(),
    })
}

pub(crate) fn machine_notes(
    machine: &Machine,
    policy: &Policy,
    selection: &Selection,
) -> Vec<Note> {
    let interfaces = &machine.interfaces;
    let mut notes = selection
        .missing
        .iter()
        .cloned()
        .map(|(selector, what)| match what {
            Some(what) => Note::NoDevice { selector, what },
            None => Note::NotPresent { selector },
        })
        .collect_vec();
    if selection.names.is_empty() && notes.is_empty() {
        notes.push(Note::NothingToDo);
    }
    let names = machine.names();
    for (number, rule) in (1..).zip(&policy.rules) {
        let mut matched = interfaces
            .iter()
            .map(|i| rule.matches(machine, |name| names.contains(name), i));
        if !interfaces.is_empty() && !matched.contains(&true) {
            let conditions = rule.text.clone();
            notes.push(Note::RuleUnmatched {
                rule: number,
                conditions,
            });
        }
    }
    let drivers = interfaces
        .iter()
        .filter_map(|interface| interface.driver.clone());
    let here = drivers.sorted().dedup().collect_vec();
    for row in policy.drivers.iter().filter(|_| !interfaces.is_empty()) {
        if !interfaces
            .iter()
            .any(|interface| interface.has_driver(&row.name))
        {
            let (driver, here) = (row.name.clone(), here.clone());
            notes.push(Note::DriverUnmatched { driver, here });
        }
    }
    // Lists interfaces and network functions that are not planned, if no selectors were given.
    if !selection.explicit && machine.missing().is_none() {
        let left = interfaces.iter();
        let left = left.filter(|interface| !selection.names.contains(&interface.name));
        // A function without an interface here has none that could be down.
        let (functions, down): (Vec<_>, Vec<_>) =
            left.partition(|interface| interface.is_elsewhere());
        let down = down
            .iter()
            .map(|interface| interface.name.clone())
            .collect_vec();
        let functions = functions.iter().map(|interface| UnusedFunction {
            address: interface.name.clone(),
            driver: interface.driver.clone(),
        });
        let functions = chain(machine.others.cards.clone(), functions).collect_vec();
        if !down.is_empty() || !functions.is_empty() {
            notes.push(Note::NotPlanned { down, functions });
        }
    }
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

/// Adds to the plan of a machine with irqbalance running what apply does about it, and for how long.
pub(crate) fn add_irqbalance(machine: &Machine, action: Balancer, plan: &mut Plan) {
    // irqbalance may have ended since the plan was stored.
    plan.irqbalance = None;
    plan.notes.retain(|note| {
        !matches!(
            note,
            Note::IrqbalanceRunning { .. } | Note::IrqbalanceUnknown { .. }
        )
    });
    if let Some(hidden) = machine.other_tools.irqbalance_hidden.clone() {
        plan.notes.push(Note::IrqbalanceUnknown { hidden, action });
    }
    let Some(running) = machine.other_tools.irqbalance.clone() else {
        return;
    };
    let vectors = plan
        .interfaces
        .iter()
        .flat_map(|interface| &interface.vectors);
    let planned = vectors.filter(|vector| vector.cpus.is_some());
    // Two interfaces that share an IRQ both list it.
    let irqs = planned
        .map(|vector| vector.irq)
        .sorted()
        .dedup()
        .collect_vec();
    let (pid, lasts) = (running.pid, running.uses_policy_script);
    plan.notes.push(Note::IrqbalanceRunning {
        pid,
        action,
        irqs: irqs.len(),
        left_alone: 0,
        lasts,
        policy_script: running.policy_script,
        arguments: running.arguments,
    });
    plan.irqbalance = Some(IrqbalancePlan {
        pid,
        action,
        irqs,
        lasts,
    });
}

/// The advice of a note: a command, or a sentence if no command does it.
#[derive(Debug)]
pub struct Advice {
    pub text: String,
    /// Whether the advice is optional and repairs nothing.
    pub optional: bool,
}

impl Note {
    /// What to do about the note.
    pub fn advice(&self) -> Option<Advice> {
        let command = self.command();
        let optional = match self {
            Self::RssBeyondCandidates { .. } | Self::VectorsExhausted { .. } => false,
            Self::VmbusChannels { .. } => true,
            _ => command.is_some(),
        };
        let text = match command {
            Some((command, interface)) => format!("{command} {}", selector(interface)),
            None => self.shell().or_else(|| self.instruction())?,
        };
        Some(Advice { text, optional })
    }

    /// Whether the note says that one queue for each core is enough, which precedes other advice.
    pub fn is_of_too_many_queues(&self) -> bool {
        matches!(self, Self::QueuesExceedCores { .. })
    }

    pub(crate) fn advises_channels(&self) -> bool {
        matches!(
            self,
            Self::QueuesExceedCores {
                irq_cores: None,
                ..
            } | Self::VectorsExhausted { .. }
                | Self::MoreQueuesPossible { .. }
        )
    }

    /// The advised `nicpin` command without its last argument, and that argument: an interface. Interfaces with the
    /// same command can be given together.
    pub fn command(&self) -> Option<(String, &str)> {
        let (options, interface) = match self {
            Self::QueuesExceedCores {
                interface,
                irq_cores: Some(cores),
                ..
            } => (format!("--irq-cores {cores} --rss candidates"), interface),
            Self::RssBeyondCandidates {
                interface,
                avoidable: true,
                ..
            } => ("--rss candidates".to_owned(), interface),
            Self::QueuesExceedCores {
                interface,
                advised: Some(channels),
                ..
            }
            | Self::VectorsExhausted {
                interface,
                advised: Some(channels),
                ..
            }
            | Self::MoreQueuesPossible {
                interface,
                advised: channels,
                ..
            } => (format!("--channels {channels}"), interface),
            Self::PackageHasMore { interface, .. } => ("--widen package".to_owned(), interface),
            Self::VectorsShared {
                owner,
                planned: false,
            } => return Some(("nicpin plan".to_owned(), owner)),
            _ => return None,
        };
        Some((format!("nicpin apply {options}"), interface))
    }

    /// An advised command that has no interface as its argument.
    pub fn shell(&self) -> Option<String> {
        Some(match self {
            // The channels' interrupts do not matter while packets arrive on the virtual function.
            Self::VmbusChannels { interfaces, .. } if !interfaces.is_empty() => return None,
            Self::VmbusChannels { device, .. } => {
                let file = format!("/sys/bus/vmbus/devices/{device}/channels/CHANNEL/cpu");
                format!("echo CPU > {}", word(&file))
            }
            Self::XpsRxqsSet { interface, queues } => {
                let file = |queue: &u32| queue_file(interface, "tx", *queue, "xps_rxqs");
                let files = queues.iter().map(|queue| word(&file(queue)).into_owned());
                let to = if queues.len() == 1 { ">" } else { "| tee" };
                format!("echo 0 {to} {}", files.format(" "))
            }
            Self::ThreadedNapi { placed: true, .. } => return None,
            Self::ThreadedNapi { pids, .. } => format!("taskset -pc CPU {}", pids.first()?),
            Self::IrqbalanceRunning {
                action,
                irqs,
                left_alone,
                ..
            } => match action {
                Balancer::Stop => "systemctl disable irqbalance".into(),
                Balancer::Ignore if *left_alone > 0 && left_alone == irqs => return None,
                Balancer::Ignore | Balancer::Refuse => "nicpin apply --irqbalance ban".into(),
                Balancer::Ban => return None,
            },
            _ => return None,
        })
    }

    /// The advice in words if no command does it.
    fn instruction(&self) -> Option<String> {
        Some(match self {
            Self::VectorsUnreadable {
                missing: Some(_), ..
            } => "mount it, or include it in the copy".into(),
            Self::VectorsUnreadable { .. } => "run again, or include them in the copy".into(),
            Self::VectorsVanished { .. } => "run again".into(),
            Self::IrqbalanceUnknown { .. } => "run as root".into(),
            Self::CloudScript { .. } => {
                "run nicpin apply after it; nicpin check reports whether it has run since".into()
            }
            Self::TunedRunning { .. } => {
                "run nicpin apply after tuned: After=tuned.service in its unit".into()
            }
            Self::LinkIrqAffinity { .. } => {
                "remove the line, or run nicpin apply after such events".into()
            }
            // A ban by IRQ number would apply to another IRQ after a reboot.
            Self::IrqbalanceRunning {
                action: Balancer::Ban,
                lasts: false,
                policy_script,
                arguments,
                ..
            } => match (policy_script, arguments) {
                (Some(script), _) => {
                    format!("call nicpin irqbalance-policy in {script}, as {SCRIPT_PATH} does")
                }
                (None, Some(Arguments { file, variable })) => {
                    format!("{variable}=\"--policyscript={SCRIPT_PATH}\" in {file}")
                }
                (None, None) => {
                    format!("add --policyscript={SCRIPT_PATH} to the arguments of its service")
                }
            },
            _ => return None,
        })
    }
}
