//! Receive packet steering: `rps_cpus` (`net/core/net-sysfs.c`).

use nix::errno::Errno::EINVAL;

use super::kind::{Answer, Kind, Meaning, RecordName, Removed};
use super::value::{Held, ValueForm};
use crate::machine::Interface;
use crate::machine::files::queue_file;

pub(super) struct RpsCpus;

impl Kind for RpsCpus {
    fn recorded(&self) -> RecordName {
        RecordName::OfQueue("rx", "rps_cpus")
    }

    fn hashed(&self) -> &'static str {
        "rps"
    }

    fn form(&self) -> ValueForm {
        ValueForm::Cpus
    }

    fn of<'a>(&self, interface: &'a Interface) -> Vec<(u32, Held<'a>)> {
        let queues = interface.rx_queues.iter();
        queues
            .filter_map(|rx| Some((rx.index, rx.rps_cpus.as_ref()?.into())))
            .collect()
    }

    fn path(&self, interface: &str, queue: u32) -> String {
        queue_file(interface, "rx", queue, "rps_cpus")
    }

    fn counted(&self, many: usize) -> String {
        format!("{many} RPS")
    }

    fn meaning(&self, answer: &Answer<'_>) -> Option<Meaning> {
        (answer.errno == EINVAL).then_some(Meaning::Refused(
            ": the kernel takes no isolated or nohz_full CPU for RPS, and no other was named",
        ))
    }

    fn removed(&self) -> Removed {
        Removed::OfflineAndIsolated
    }
}
