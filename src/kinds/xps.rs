//! Transmit packet steering by CPU: `xps_cpus` (`net/core/net-sysfs.c`).

use nix::errno::Errno::ENOENT;

use super::kind::{Answer, Kind, Meaning, RecordName, Removed};
use super::value::{Held, ValueForm};
use crate::machine::Interface;
use crate::machine::files::queue_file;

pub(super) struct XpsCpus;

impl Kind for XpsCpus {
    fn recorded(&self) -> RecordName {
        RecordName::OfQueue("tx", "xps_cpus")
    }

    fn hashed(&self) -> &'static str {
        "xps"
    }

    fn form(&self) -> ValueForm {
        ValueForm::Cpus
    }

    fn of<'a>(&self, interface: &'a Interface) -> Vec<(u32, Held<'a>)> {
        let queues = interface.tx_queues.iter();
        queues
            .filter_map(|tx| Some((tx.index, tx.xps_cpus.as_ref()?.into())))
            .collect()
    }

    fn path(&self, interface: &str, queue: u32) -> String {
        queue_file(interface, "tx", queue, "xps_cpus")
    }

    fn counted(&self, many: usize) -> String {
        format!("{many} XPS")
    }

    fn meaning(&self, answer: &Answer<'_>) -> Option<Meaning> {
        (answer.errno == ENOENT && answer.exists).then_some(Meaning::Vanished(
            ": an interface with one transmit queue has no XPS; fix: run again",
        ))
    }

    fn removed(&self) -> Removed {
        Removed::Offline
    }
}
