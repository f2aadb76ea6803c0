//! Whether ntuple filters are on (`ethtool -K`), which accelerated RFS needs.

use super::kind::{Access, Kind, RecordName};
use super::value::{Held, Value, ValueForm};
use crate::machine::Interface;
use crate::machine::files::ethtool_file;
use crate::machine::wording::word;

pub(super) struct Ntuple;

impl Kind for Ntuple {
    fn recorded(&self) -> RecordName {
        RecordName::Only("ntuple")
    }

    fn form(&self) -> ValueForm {
        ValueForm::Switch
    }

    fn of<'a>(&self, interface: &'a Interface) -> Vec<(u32, Held<'a>)> {
        let on = interface.ntuple.into_iter();
        on.map(|on| (0, Value::On(on).into())).collect()
    }

    fn path(&self, interface: &str, _number: u32) -> String {
        ethtool_file(interface, "features")
    }

    fn shown(&self, interface: &str, _number: u32) -> String {
        format!("ethtool -K {} ntuple", word(interface))
    }

    fn counted(&self, _many: usize) -> String {
        "ntuple".into()
    }

    fn access(&self) -> Access {
        Access::Ntuple
    }

    fn is_of_flows(&self) -> bool {
        true
    }
}
