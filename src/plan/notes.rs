//! The notes of a plan, and what to do about each.

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
use crate::plan::work::Work;
use crate::policy::{
    Balancer, CHANNELS, ChannelCount, IRQ_CORES, Policy, SCOPE, SKIP, Scope, WIDEN, XPS, Xps,
};

/// Notes about one interface.
pub(crate) fn of_interface(
    work: &Work<'_>,
    selection: &Selection,
    rss: Option<&PlannedRss>,
) -> Vec<Note> {
    let (interface, topology) = (work.interface, &work.machine.topology);
    if work.choice.get(&SKIP) {
        return vec![Note::Skipped];
    }
    let apart = interface.in_other_namespace && !interface.is_elsewhere();
    if work.skip {
        return Vec::from_iter(apart.then_some(Note::OtherNamespace));
    }
    if interface.unreadable_name {
        return vec![Note::NameUnreadable];
    }
    let mut notes = of_vectors(work, selection);
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
    let lines = work.shared.iter();
    for (&irq, &owner) in lines.filter(|_| interface.shares_vectors_of.is_none()) {
        let owner = owner.to_owned();
        notes.push(Note::LineShared { irq, owner });
    }
    let vectors = interface.queue_vectors().filter(|v| !v.movable).count();
    // With one CPU nobody manages them.
    if vectors > 0 && topology.possible > 1 {
        notes.push(Note::KernelManaged { vectors });
    }
    let link = interface.device.link;
    if let Some((now, possible)) = link.filter(|(now, possible)| now.is_below(*possible)) {
        notes.push(Note::LinkBelow { now, possible });
    }
    let exceeding = too_many_queues(work, rss);
    let more = package_has_more(work, exceeding.as_ref());
    let exhausted = vectors_exhausted(work);
    // Both advise the same.
    let exceeding = exceeding.filter(|_| exhausted.is_none());
    notes.extend(chain!(exhausted, exceeding, more));
    notes.extend(other_channels(work));
    let queues = interface
        .tx_queues
        .iter()
        .filter(|tx| tx.xps_rxqs.iter().any(|rxqs| !rxqs.cpus.is_empty()))
        .map(|tx| tx.index)
        .collect_vec();
    if matches!(work.choice.get(&XPS), Xps::Auto | Xps::Off) && !queues.is_empty() {
        let interface = interface.name.clone();
        notes.push(Note::XpsRxqsSet { interface, queues });
    }
    notes.extend(hint(work));
    if work.has_placed_queues() {
        let candidates = &work.candidates.cpus;
        let cpus = topology.isolated_or_nohz().intersection(candidates);
        if !cpus.is_empty() {
            notes.push(Note::IsolatedCpusUsed { cpus });
        }
        let cpus = exclusive(topology, &work.choice).intersection(candidates);
        if !cpus.is_empty() {
            notes.push(Note::ExclusiveCpusUsed { cpus });
        }
    }
    notes
}

/// Notes about vectors that are missing, not recognized or shared.
fn of_vectors(work: &Work<'_>, selection: &Selection) -> Vec<Note> {
    let (interface, missing) = (work.interface, work.machine.missing());
    let has_queues = work.has_placed_queues();
    let unreadable = |missing: Option<&str>, vectors: &[_]| Note::VectorsUnreadable {
        missing: missing.map(str::to_owned),
        vectors: vectors.to_vec(),
    };
    let vanished = &interface.vanished_vectors;
    let vectors = interface.unknown_vectors.clone();
    let data = interface.vectors.iter().filter(|of| of.role == Role::Data);
    let data = data
        .map(|of| UnknownVector {
            irq: of.irq,
            action: of.action.clone(),
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
        Some(Note::VectorsShared { owner, planned })
    } else if !vectors.is_empty() {
        Some(Note::UnknownVectors { vectors })
    } else if !data.is_empty() && !interface.without_netdev {
        Some(Note::DataVectors { vectors: data })
    } else if has_queues || interface.is_for_rdma() {
        None
    } else if let Some(channels) = interface.vmbus.clone() {
        let mut stacked = work.machine.stacked.iter();
        let below = stacked.find(|one| one.name == interface.name);
        Some(Note::VmbusChannels {
            device: interface.device.address.clone(),
            controller,
            channels,
            interfaces: below.map_or(Vec::new(), |one| one.lowers.clone()),
        })
    } else {
        let device = &interface.device;
        // Only PCI devices list theirs.
        let without = device.irqs.is_empty() && interface.vectors.is_empty();
        let because = match (without, interface.link == "up") {
            // Some drivers allocate them only while the interface is up.
            (true, false) if is_pci_address(&device.address) => NoVectors::WhileDown,
            (true, _) if device.controller.is_some() || is_pci_address(&device.address) => {
                NoVectors::OfDevice
            }
            (true, _) => NoVectors::Unlisted,
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
        notes.push(Note::VectorsOfSeveral { others });
    }
    if missing.is_none() && has_queues && !vanished.is_empty() {
        let vectors = vanished.clone();
        notes.push(Note::VectorsVanished { vectors });
    }
    notes
}

fn hint(work: &Work<'_>) -> Vec<Note> {
    let mut notes = Vec::new();
    if work.choice.get(&SCOPE) != Scope::Hint || work.candidates.named {
        return notes;
    }
    let (hinted, without): (Vec<_>, Vec<_>) = work
        .interface
        .queue_vectors()
        .partition(|vector| work.machine.hints.contains_key(&vector.irq));
    if !without.is_empty() {
        let vectors = without.len();
        notes.push(Note::NoHint { vectors });
    }
    let decided_by = |vector| work.placement(vector)?.decided_by;
    let unused = hinted.iter().filter(|vector| decided_by(vector).is_none());
    let vectors = unused.count();
    if vectors > 0 {
        notes.push(Note::HintUnusable { vectors });
    }
    let driver = work.interface.driver.as_deref().unwrap_or_default();
    if without.is_empty() && Driver::has(Some(driver), Fact::HintsAnywhere) {
        let driver = driver.to_owned();
        notes.push(Note::HintIgnoresLocality { driver });
    }
    notes
}

fn too_many_queues(work: &Work<'_>, rss: Option<&PlannedRss>) -> Option<Note> {
    let (interface, candidates) = (work.interface, &work.candidates.cpus);
    let planned = rss.and_then(|rss| Some(rss.queues.as_ref()?.len()));
    let queues = interface.active_queues().min(planned.unwrap_or(usize::MAX));
    let cores = work.core_count();
    let holds_all = |node: &u32| {
        let node = work.machine.topology.nodes.get(node);
        node.is_some_and(|node| candidates.is_subset(&node.cpus))
    };
    // Those that the kernel spreads by itself are where it puts them.
    let is_placed = interface.active_vectors().any(|vector| vector.movable);
    (queues > cores && cores > 0 && is_placed).then(|| Note::QueuesExceedCores {
        interface: interface.name.clone(),
        queues,
        cores,
        node: work.candidates.node.filter(holds_all),
        advised: advised_channels(work)
            .filter(|&advised| (advised as usize) < queues)
            .filter(|&advised| {
                interface
                    .channels
                    .is_none_or(|now| now.receiving() != advised)
            }),
        unsure: interface.channels.is_none(),
        fixed: interface.channels_fixed,
        irq_cores: (work.choice.get(&IRQ_CORES)).filter(|_| device::has_settable_rss(interface)),
    })
}

/// A note where the candidates have no vectors for some of its IRQs, which the plan leaves where they are.
fn vectors_exhausted(work: &Work<'_>) -> Option<Note> {
    work.machine.vectors_held.as_ref()?;
    let data = work.interface.vectors.iter();
    let data = data.filter(|vector| vector.movable && vector.role != Role::Control);
    let data = data.filter(|vector| !work.shared.contains_key(&vector.irq));
    let data = data.filter(|vector| !work.is_kept(vector));
    let irqs = data.filter(|vector| work.target(vector).is_none()).count();
    (irqs > 0).then(|| Note::VectorsExhausted {
        interface: work.interface.name.clone(),
        irqs,
        cpus: work.candidates.cpus.clone(),
        advised: advised_channels(work)
            .filter(|&advised| (advised as usize) < work.interface.active_queues()),
    })
}

/// A note where the other nodes of a package could take the queues that exceed the cores of one.
fn package_has_more(work: &Work<'_>, exceeding: Option<&Note>) -> Option<Note> {
    let Some(&Note::QueuesExceedCores {
        queues,
        cores,
        node: Some(node),
        ..
    }) = exceeding
    else {
        return None;
    };
    let topology = &work.machine.topology;
    let candidates = &work.candidates.cpus;
    let mut packages = topology.packages.iter();
    let package = packages.find(|package| candidates.is_subset(package))?;
    let package = core_count(
        topology,
        &work.choice,
        &package.intersection(&unreserved(topology, &work.choice)),
    );
    let is_local = work.choice.get(&SCOPE) == Scope::Local && !work.choice.get(&WIDEN);
    (is_local && !work.candidates.named && package > cores).then(|| Note::PackageHasMore {
        interface: work.interface.name.clone(),
        queues,
        node,
        cores,
        package,
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
    if requested.is_some_and(|requested| work.interface.receives_by(requested)) {
        return None;
    }
    let Some(now) = work.interface.channels.filter(|_| !fixed) else {
        return Some(Note::ChannelsUnchanged { requested, fixed });
    };
    let stays = requested.is_none() && device::channels(work).is_none();
    stays.then(|| Note::ChannelsFit {
        now: now.receiving(),
        cores: work.core_count(),
    })
}

/// Notes about the machine.
pub(crate) fn of_machine(machine: &Machine, policy: &Policy, selection: &Selection) -> Vec<Note> {
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
    for (rule, of) in (1..).zip(&policy.rules) {
        let mut matched = interfaces
            .iter()
            .map(|i| of.matches(machine, |name| names.contains(name), i));
        if !interfaces.is_empty() && !matched.contains(&true) {
            let conditions = of.text.clone();
            notes.push(Note::RuleUnmatched { rule, conditions });
        }
    }
    let drivers = interfaces.iter().filter_map(|of| of.driver.clone());
    let here = drivers.sorted().dedup().collect_vec();
    for row in policy.drivers.iter().filter(|_| !interfaces.is_empty()) {
        if !interfaces.iter().any(|of| of.has_driver(&row.name)) {
            let (driver, here) = (row.name.clone(), here.clone());
            notes.push(Note::DriverUnmatched { driver, here });
        }
    }
    // Interfaces and network functions that are not planned, where no selectors were given.
    if !selection.explicit && machine.missing().is_none() {
        let left = interfaces.iter();
        let left = left.filter(|of| !selection.names.contains(&of.name));
        // A function has no interface here that could be down.
        let (functions, down): (Vec<_>, Vec<_>) = left.partition(|of| of.is_elsewhere());
        let down = down.iter().map(|of| of.name.clone()).collect_vec();
        let functions = functions.iter().map(|of| UnusedFunction {
            address: of.name.clone(),
            driver: of.driver.clone(),
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

/// Adds what apply does about irqbalance, and for how long, to the plan of a machine on which it runs.
pub(crate) fn add_irqbalance(machine: &Machine, action: Balancer, plan: &mut Plan) {
    // A stored plan may hold an irqbalance that has ended since.
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
    let vectors = plan.interfaces.iter().flat_map(|one| &one.vectors);
    let planned = vectors.filter(|vector| vector.cpus.is_some());
    // An IRQ that two interfaces share is listed with both.
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

/// What follows from a note: a command, or a sentence where no command does it.
#[derive(Debug)]
pub struct Advice {
    pub text: String,
    /// Whether it is only what one may also do, and repairs nothing.
    pub optional: bool,
}

impl Note {
    /// What to do about it.
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

    /// Whether it says that one queue for each core is enough, before which no other advice counts.
    pub fn is_of_too_many_queues(&self) -> bool {
        matches!(self, Self::QueuesExceedCores { .. })
    }

    /// Whether it advises another number of channels.
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

    /// The `nicpin` command that follows, without its last argument, and that argument: an interface. Interfaces with
    /// the same command can be given together.
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

    /// A command to run that names no interface of the note's.
    pub fn shell(&self) -> Option<String> {
        Some(match self {
            // Moving them does nothing while packets arrive elsewhere.
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

    /// What to do where no command does it.
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
