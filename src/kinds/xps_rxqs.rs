//! Transmit packet steering by receive queue: `xps_rxqs` (`net/core/net-sysfs.c`).

use super::kind::{Kind, RecordName};
use super::value::{Held, ValueForm};
use crate::machine::Interface;
use crate::machine::files::queue_file;

pub(super) struct XpsRxqs;

impl Kind for XpsRxqs {
    fn recorded(&self) -> RecordName {
        RecordName::OfQueue("tx", "xps_rxqs")
    }

    fn hashed(&self) -> &'static str {
        "rxqs"
    }

    fn form(&self) -> ValueForm {
        ValueForm::Queues
    }

    fn of<'a>(&self, interface: &'a Interface) -> Vec<(u32, Held<'a>)> {
        let queues = interface.tx_queues.iter();
        queues
            .filter_map(|tx| Some((tx.index, tx.xps_rxqs.as_ref()?.into())))
            .collect()
    }

    fn path(&self, interface: &str, queue: u32) -> String {
        queue_file(interface, "tx", queue, "xps_rxqs")
    }

    fn counted(&self, many: usize) -> String {
        format!("{many} XPS by queue")
    }

    fn is_of_flows(&self) -> bool {
        true
    }
}
