//! Transmit packet steering by CPU: `xps_cpus`.

use nix::errno::Errno::ENOENT;

use super::kind::{Meaning, Removed};
use super::queue_file::QueueFile;
use super::value::ValueForm;

pub(super) const XPS_CPUS: QueueFile = QueueFile {
    direction: "tx",
    file: "xps_cpus",
    hashed: "xps",
    form: ValueForm::Cpus,
    is_of_flows: false,
    removed: Removed::Offline,
    of: |interface| {
        let queues = interface.tx_queues.iter();
        queues
            .filter_map(|tx| Some((tx.index, tx.xps_cpus.as_ref()?.into())))
            .collect()
    },
    counted: "XPS",
    meaning: |answer| {
        (answer.errno == ENOENT && (answer.exists)()).then_some(Meaning::Vanished(
            ": an interface with one transmit queue has no XPS; fix: run again",
        ))
    },
};
