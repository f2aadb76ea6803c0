//! The size of the flow table of RFS, for all interfaces: `net.core.rps_sock_flow_entries`.

use super::kind::{Kind, RecordName};
use super::value::{Value, ValueForm};
use crate::machine::Machine;
use crate::machine::files::FLOW_ENTRIES;

pub(super) struct FlowTable;

impl Kind for FlowTable {
    fn recorded(&self) -> RecordName {
        RecordName::Only("machine rps_sock_flow_entries")
    }

    fn hashed(&self) -> &'static str {
        "flow_entries"
    }

    fn form(&self) -> ValueForm {
        ValueForm::Count
    }

    fn of_machine(&self, machine: &Machine) -> Option<Value<'static>> {
        machine.flow_entries.map(Value::Count)
    }

    fn path(&self, _interface: &str, _number: u32) -> String {
        FLOW_ENTRIES.to_owned()
    }

    fn counted(&self, _many: usize) -> String {
        "flow table".into()
    }
}
