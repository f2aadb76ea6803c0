//! A queue's share of the flow table of RFS: `rps_flow_cnt`.

use super::kind::{Access, Kind, Names, Removed};
use super::value::{Value, ValueForm};

pub(super) const RPS_FLOW_CNT: Kind = Kind {
    names: Names::OfQueue {
        direction: "rx",
        file: "rps_flow_cnt",
    },
    hashed: "rps_flow_cnt",
    form: ValueForm::Count,
    of: |interface| {
        let queues = interface.rx_queues.iter();
        queues
            .filter_map(|rx| Some((rx.index, Value::Count(rx.rps_flow_cnt?).into())))
            .collect()
    },
    counted: |many| format!("{many} RFS"),
    access: Access::File,
    is_of_flows: false,
    meaning: |_| None,
    removed: Removed::Never,
};
