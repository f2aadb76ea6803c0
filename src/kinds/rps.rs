//! Receive packet steering: `rps_cpus`.

use nix::errno::Errno::EINVAL;

use super::kind::{Access, Kind, Meaning, Names, Removed};
use super::value::ValueForm;

pub(super) const RPS_CPUS: Kind = Kind {
    names: Names::OfQueue {
        direction: "rx",
        file: "rps_cpus",
    },
    hashed: "rps",
    form: ValueForm::Cpus,
    of: |interface| {
        let queues = interface.rx_queues.iter();
        queues
            .filter_map(|rx| Some((rx.index, rx.rps_cpus.as_ref()?.into())))
            .collect()
    },
    counted: |many| format!("{many} RPS"),
    access: Access::File,
    is_of_flows: false,
    meaning: |answer| {
        (answer.errno == EINVAL).then_some(Meaning::Refused(
            ": the kernel takes no isolated or nohz_full CPU for RPS, and no other was named",
        ))
    },
    removed: Removed::OfflineAndIsolated,
};
