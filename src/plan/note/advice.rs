//! What to do about a note.

use crate::machine::others::{Arguments, SCRIPT_PATH};
use crate::machine::setting::queue_file;
use crate::machine::wording::word;
use crate::plan::note::Note;
use crate::policy::Balancer;

/// What follows from a note: a command, or a sentence where no command does it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Advice {
    /// Repairs what is wrong.
    Fix(String),
    /// What one may also do.
    Try(String),
}

impl Advice {
    pub fn text(&self) -> &str {
        match self {
            Self::Fix(text) | Self::Try(text) => text,
        }
    }

    /// `fix` or `try`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Fix(_) => "fix",
            Self::Try(_) => "try",
        }
    }
}

impl Note {
    /// What to do about it.
    pub fn advice(&self) -> Option<Advice> {
        if let Some((command, interface)) = self.command() {
            let text = format!("{command} {}", word(interface));
            return Some(match self {
                Self::RssBeyondCandidates { .. } | Self::ChannelsDiffer { .. } => Advice::Fix(text),
                _ => Advice::Try(text),
            });
        }
        let text = match self {
            Self::VmbusChannels { device, .. } => {
                let file = format!("/sys/bus/vmbus/devices/{device}/channels/CHANNEL/cpu");
                return Some(Advice::Try(format!("echo CPU > {}", word(&file))));
            }
            Self::VectorsUnreadable { missing, .. } => match missing {
                Some(_) => "mount it, or include it in the copy",
                None => "run again, or include them in the copy",
            }
            .to_owned(),
            Self::VectorsVanished { .. } => "run again".to_owned(),
            Self::XpsRxqsSet { interface, queues } => {
                let file = |queue: &u32| {
                    word(&queue_file(interface, "tx", *queue, "xps_rxqs")).into_owned()
                };
                let files: Vec<String> = queues.iter().map(file).collect();
                match &files[..] {
                    [only] => format!("echo 0 > {only}"),
                    several => format!("echo 0 | tee {}", several.join(" ")),
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
            Self::IrqbalanceUnknown { .. } => "run as root".to_owned(),
            Self::CloudScript { .. } => {
                "run nicpin apply after it; nicpin check reports whether it has run since"
                    .to_owned()
            }
            Self::TunedRunning { .. } => {
                "run nicpin apply after tuned: After=tuned.service in its unit".to_owned()
            }
            Self::LinkIrqAffinity { .. } => {
                "remove the line, or run nicpin apply after such events".to_owned()
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
                Balancer::Stop => "systemctl disable irqbalance".to_owned(),
                Balancer::Ignore if *left_alone > 0 && left_alone == irqs => return None,
                Balancer::Ignore | Balancer::Refuse => "nicpin apply --irqbalance ban".to_owned(),
            },
            _ => return None,
        };
        Some(Advice::Fix(text))
    }

    /// The `nicpin` command that follows, without its last argument, and that argument: an interface. Interfaces with
    /// the same command can be given together.
    pub fn command(&self) -> Option<(String, &str)> {
        Some(match self {
            Self::QueuesExceedCores {
                interface,
                irq_cores: Some(cores),
                ..
            } => {
                let command = format!("nicpin apply --irq-cores {cores} --rss candidates");
                (command, interface)
            }
            Self::RssBeyondCandidates {
                interface,
                avoidable: true,
                ..
            } => ("nicpin apply --rss candidates".to_owned(), interface),
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
            } => (format!("nicpin apply --channels {channels}"), interface),
            Self::TinyMachine {
                interface, others, ..
            } => (format!("nicpin apply --rps {others}"), interface),
            Self::VectorsShared {
                owner,
                planned: false,
            } => ("nicpin plan".to_owned(), owner),
            _ => return None,
        })
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
