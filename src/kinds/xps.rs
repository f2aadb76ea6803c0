//! Transmit packet steering by CPU: `xps_cpus`.

use nix::errno::Errno::ENOENT;

use super::kind::{Access, Kind, Meaning, Names, Removed};
use super::value::ValueForm;

pub(super) const XPS_CPUS: Kind = Kind {
    names: Names::OfQueue {
        direction: "tx",
        file: "xps_cpus",
    },
    hashed: "xps",
    form: ValueForm::Cpus,
    of: |interface| {
        let queues = interface.tx_queues.iter();
        queues
            .filter_map(|tx| Some((tx.index, tx.xps_cpus.as_ref()?.into())))
            .collect()
    },
    counted: |many| format!("{many} XPS"),
    access: Access::File,
    is_of_flows: false,
    meaning: |answer| {
        (answer.errno == ENOENT && (answer.exists)()).then_some(Meaning::Vanished(
            ": an interface with one transmit queue has no XPS; fix: run again",
        ))
    },
    removed: Removed::Offline,
};
