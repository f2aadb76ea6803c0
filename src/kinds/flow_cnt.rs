//! A queue's share of the flow table of RFS: `rps_flow_cnt` (`net/core/net-sysfs.c`).

use super::kind::{Kind, RecordName};
use super::value::{Held, Value, ValueForm};
use crate::machine::Interface;
use crate::machine::files::queue_file;

pub(super) struct FlowCount;

impl Kind for FlowCount {
    fn recorded(&self) -> RecordName {
        RecordName::OfQueue("rx", "rps_flow_cnt")
    }

    fn form(&self) -> ValueForm {
        ValueForm::Count
    }

    fn of<'a>(&self, interface: &'a Interface) -> Vec<(u32, Held<'a>)> {
        let queues = interface.rx_queues.iter();
        queues
            .filter_map(|rx| Some((rx.index, Value::Count(rx.rps_flow_cnt?).into())))
            .collect()
    }

    fn path(&self, interface: &str, queue: u32) -> String {
        queue_file(interface, "rx", queue, "rps_flow_cnt")
    }

    fn counted(&self, many: usize) -> String {
        format!("{many} RFS")
    }
}
