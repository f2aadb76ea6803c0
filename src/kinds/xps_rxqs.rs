//! Transmit packet steering by receive queue: `xps_rxqs`.

use super::kind::{Access, Kind, Names, Removed};
use super::value::ValueForm;

pub(super) const XPS_RXQS: Kind = Kind {
    names: Names::OfQueue {
        direction: "tx",
        file: "xps_rxqs",
    },
    hashed: "rxqs",
    form: ValueForm::Queues,
    of: |interface| {
        let queues = interface.tx_queues.iter();
        queues
            .filter_map(|tx| Some((tx.index, tx.xps_rxqs.as_ref()?.into())))
            .collect()
    },
    counted: |many| format!("{many} XPS by queue"),
    access: Access::File,
    is_of_flows: true,
    meaning: |_| None,
    removed: Removed::Never,
};
