//! A queue's share of the flow table of RFS: `rps_flow_cnt`.

use super::kind::Removed;
use super::queue_file::QueueFile;
use super::value::{Value, ValueForm};

pub(super) const RPS_FLOW_CNT: QueueFile = QueueFile {
    direction: "rx",
    file: "rps_flow_cnt",
    hashed: "rps_flow_cnt",
    form: ValueForm::Count,
    is_of_flows: false,
    removed: Removed::Never,
    of: |interface| {
        let queues = interface.rx_queues.iter();
        queues
            .filter_map(|rx| Some((rx.index, Value::Count(rx.rps_flow_cnt?).into())))
            .collect()
    },
    counted: "RFS",
    meaning: |_| None,
};
