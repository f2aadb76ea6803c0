//! Advice for each note.

use std::fmt::{self, Display, Formatter};

use itertools::Itertools as _;

use crate::machine::files::queue_file;
use crate::machine::others::{Arguments, SCRIPT_PATH};
use crate::machine::wording::{selector, word};
use crate::plan::note::Note;
use crate::policy::Balancer;

/// The advice of a note: a command, or a sentence if no command does it.
#[derive(Debug)]
pub struct Advice {
    pub text: String,
    /// Whether the advice is optional and repairs nothing.
    pub optional: bool,
}

/// An advised `nicpin` command. Interfaces with the same command can be given together.
#[derive(Debug)]
pub struct AdvisedCommand<'a> {
    pub name: &'static str,
    pub options: Vec<(&'static str, String)>,
    pub interface: &'a str,
}

impl Display for AdvisedCommand<'_> {
    /// Without the interface.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "nicpin {}", self.name)?;
        let mut options = self.options.iter();
        options.try_for_each(|(option, value)| write!(f, " {option} {value}"))
    }
}

impl Note {
    pub fn advice(&self) -> Option<Advice> {
        let command = self.command();
        let optional = match self {
            Self::RssBeyondCandidates { .. } | Self::VectorsExhausted { .. } => false,
            Self::VmbusChannels { .. } => true,
            _ => command.is_some(),
        };
        let text = match command {
            Some(command) => format!("{command} {}", selector(command.interface)),
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

    pub fn command(&self) -> Option<AdvisedCommand<'_>> {
        let rss = || ("--rss", "candidates".to_owned());
        let (options, interface) = match self {
            Self::QueuesExceedCores {
                interface,
                irq_cores: Some(cores),
                ..
            } => (vec![("--irq-cores", cores.to_string()), rss()], interface),
            Self::RssBeyondCandidates {
                interface,
                avoidable: true,
                ..
            } => (vec![rss()], interface),
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
            } => (vec![("--channels", channels.to_string())], interface),
            Self::PackageHasMore { interface, .. } => {
                (vec![("--widen", "package".to_owned())], interface)
            }
            Self::VectorsShared {
                owner,
                planned: false,
            } => {
                return Some(AdvisedCommand {
                    name: "plan",
                    options: vec![],
                    interface: owner,
                });
            }
            _ => return None,
        };
        Some(AdvisedCommand {
            name: "apply",
            options,
            interface,
        })
    }

    pub fn shell(&self) -> Option<String> {
        Some(match self {
            Self::TrialWaits { .. } => "nicpin confirm".into(),
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

    fn instruction(&self) -> Option<String> {
        Some(match self {
            Self::VectorsUnreadable {
                missing: Some(_), ..
            } => "run on the host, mount it, or include it in the copy".into(),
            Self::VectorsUnreadable { .. } => "run again, or include them in the copy".into(),
            Self::VectorsVanished { .. } => "run again".into(),
            Self::IrqbalanceUnknown { .. } => "run as root".into(),
            Self::CloudScript { .. } => {
                "run nicpin apply after it; nicpin check reports whether it has run since".into()
            }
            Self::TunedRunning { .. } => {
                "run nicpin apply after tuned: After=tuned.service in its unit".into()
            }
            Self::LinkIrqAffinity { .. } | Self::LinkRps { .. } => {
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
