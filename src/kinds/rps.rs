//! Receive packet steering: `rps_cpus`.

use nix::errno::Errno::EINVAL;

use super::kind::{Meaning, Removed};
use super::queue_file::QueueFile;
use super::value::ValueForm;

pub(super) const RPS_CPUS: QueueFile = QueueFile {
    direction: "rx",
    file: "rps_cpus",
    hashed: "rps",
    form: ValueForm::Cpus,
    is_of_flows: false,
    removed: Removed::OfflineAndIsolated,
    of: |interface| {
        let queues = interface.rx_queues.iter();
        queues
            .filter_map(|rx| Some((rx.index, rx.rps_cpus.as_ref()?.into())))
            .collect()
    },
    counted: "RPS",
    meaning: |answer| {
        (answer.errno == EINVAL).then_some(Meaning::Refused(
            ": the kernel takes no isolated or nohz_full CPU for RPS, and no other was named",
        ))
    },
};
