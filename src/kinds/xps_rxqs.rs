//! Transmit packet steering by receive queue: `xps_rxqs`.

use super::kind::Removed;
use super::queue_file::QueueFile;
use super::value::ValueForm;

pub(super) const XPS_RXQS: QueueFile = QueueFile {
    direction: "tx",
    file: "xps_rxqs",
    hashed: "rxqs",
    form: ValueForm::Queues,
    is_of_flows: true,
    removed: Removed::Never,
    of: |interface| {
        let queues = interface.tx_queues.iter();
        queues
            .filter_map(|tx| Some((tx.index, tx.xps_rxqs.as_ref()?.into())))
            .collect()
    },
    counted: "XPS by queue",
    meaning: |_| None,
};
