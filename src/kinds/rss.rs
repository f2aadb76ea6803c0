//! The RSS indirection table (`ethtool -X`).

use std::borrow::Cow;

use nix::errno::Errno::{EINVAL, EOPNOTSUPP};

use super::kind::{Access, Answer, Kind, Meaning, RecordName};
use super::value::{Held, Value, ValueForm};
use crate::machine::Interface;
use crate::machine::files::ethtool_file;
use crate::machine::wording::word;

pub(super) struct RssTable;

impl Kind for RssTable {
    fn recorded(&self) -> RecordName {
        RecordName::Only("rss")
    }

    fn form(&self) -> ValueForm {
        ValueForm::Table
    }

    fn of<'a>(&self, interface: &'a Interface) -> Vec<(u32, Held<'a>)> {
        let table = interface.rss.iter();
        table
            .map(|table| (0, Value::Table(Cow::Borrowed(table)).into()))
            .collect()
    }

    fn path(&self, interface: &str, _number: u32) -> String {
        ethtool_file(interface, "rss")
    }

    fn shown(&self, interface: &str, _number: u32) -> String {
        format!("ethtool -X {}", word(interface))
    }

    fn counted(&self, _many: usize) -> String {
        "RSS".into()
    }

    fn access(&self) -> Access {
        Access::RssTable
    }

    fn is_of_flows(&self) -> bool {
        true
    }

    fn meaning(&self, answer: &Answer<'_>) -> Option<Meaning> {
        matches!(answer.errno, EOPNOTSUPP | EINVAL).then_some(Meaning::Refused(
            ": the driver does not accept this RSS table; fix: leave out --rss",
        ))
    }
}
