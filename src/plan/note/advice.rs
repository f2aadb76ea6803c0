//! What to do about a note.

use itertools::Itertools as _;

use crate::machine::others::{Arguments, SCRIPT_PATH};
use crate::machine::setting::queue_file;
use crate::machine::wording::{selector, word};
use crate::plan::note::Note;
use crate::policy::Balancer;

/// What follows from a note: a command, or a sentence where no command does it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Advice {
    pub text: String,
    /// Whether it is only what one may also do, and repairs nothing.
    pub optional: bool,
}

impl Note {
    /// What to do about it.
    pub fn advice(&self) -> Option<Advice> {
        if let Some((command, interface)) = self.command() {
            let repairs = matches!(
                self,
                Self::RssBeyondCandidates { .. } | Self::ChannelsDiffer { .. }
            );
            return Some(Advice {
                text: format!("{command} {}", selector(interface)),
                optional: !repairs,
            });
        }
        let text = match self {
            Self::VmbusChannels { device, .. } => {
                let file = format!("/sys/bus/vmbus/devices/{device}/channels/CHANNEL/cpu");
                format!("echo CPU > {}", word(&file))
            }
            Self::VectorsUnreadable { missing, .. } => match missing {
                Some(_) => "mount it, or include it in the copy".into(),
                None => "run again, or include them in the copy".into(),
            },
            Self::VectorsVanished { .. } => "run again".into(),
            Self::XpsRxqsSet { interface, queues } => {
                let files = queues
                    .iter()
                    .map(|queue| queue_file(interface, "tx", *queue, "xps_rxqs"));
                let files = files.map(|file| word(&file).into_owned()).join(" ");
                match queues.len() {
                    1 => format!("echo 0 > {files}"),
                    _ => format!("echo 0 | tee {files}"),
                }
            }
            Self::ThreadedNapi {
                interface,
                pids,
                placed: false,
            } => match pids.first() {
                Some(pid) => format!("taskset -pc CPU {pid}"),
                None => format!(
                    "echo 0 > {}",
                    word(&format!("/sys/class/net/{interface}/threaded"))
                ),
            },
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
            Self::IrqbalanceRunning {
                action,
                lasts,
                irqs,
                left_alone,
                policy_script,
                arguments,
                ..
            } => match action {
                Balancer::Ban if *lasts => return None,
                Balancer::Ban => permanent_ban(policy_script.as_deref(), arguments.as_ref()),
                Balancer::Stop => "systemctl disable irqbalance".into(),
                Balancer::Ignore if *left_alone > 0 && left_alone == irqs => return None,
                Balancer::Ignore | Balancer::Refuse => "nicpin apply --irqbalance ban".into(),
            },
            _ => return None,
        };
        let optional = matches!(self, Self::VmbusChannels { .. });
        Some(Advice { text, optional })
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
            | Self::MoreQueuesPossible {
                interface,
                advised: channels,
                ..
            }
            | Self::ChannelsDiffer {
                interface,
                wanted: channels,
                ..
            } => (format!("--channels {channels}"), interface),
            Self::TinyMachine {
                interface, others, ..
            } => (format!("--rps {others}"), interface),
            Self::VectorsShared {
                owner,
                planned: false,
            } => return Some(("nicpin plan".to_owned(), owner)),
            _ => return None,
        };
        Some((format!("nicpin apply {options}"), interface))
    }
}

/// How to set the policy script on this distribution. A ban by IRQ number would apply to another IRQ after a reboot.
fn permanent_ban(policy_script: Option<&str>, arguments: Option<&Arguments>) -> String {
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
