//! The numbers of channels (`ethtool -L`): queues, vectors and their masks come and go with them.

use nix::errno::Errno::{EACCES, EBUSY, EINVAL, EPERM};

use super::kind::{Access, Answer, Kind, Meaning, RecordName};
use super::value::{Held, Value, ValueForm};
use crate::machine::Interface;
use crate::machine::files::ethtool_file;
use crate::machine::wording::word;

const QUEUE_IN_USE: &str = ": the RSS table, a flow rule or XDP may use a queue that this removes; `ethtool -X INTERFACE default` resets the table";

pub(super) struct ChannelNumbers;

impl Kind for ChannelNumbers {
    fn recorded(&self) -> RecordName {
        RecordName::Only("channels")
    }

    fn form(&self) -> ValueForm {
        ValueForm::Channels
    }

    fn of<'a>(&self, interface: &'a Interface) -> Vec<(u32, Held<'a>)> {
        let channels = interface.channels.into_iter();
        channels
            .map(|channels| (0, Value::Channels(channels).into()))
            .collect()
    }

    fn path(&self, interface: &str, _number: u32) -> String {
        ethtool_file(interface, "channels")
    }

    fn shown(&self, interface: &str, _number: u32) -> String {
        format!("ethtool -L {}", word(interface))
    }

    fn counted(&self, _many: usize) -> String {
        "channels".into()
    }

    fn access(&self) -> Access {
        Access::Channels
    }

    fn is_of_flows(&self) -> bool {
        true
    }

    fn meaning(&self, answer: &Answer<'_>) -> Option<Meaning> {
        Some(Meaning::Refused(match answer.errno {
            EPERM | EACCES => ": run as root",
            EINVAL => QUEUE_IN_USE,
            EBUSY => ": the device is busy; fix: run again",
            _ => ": the driver does not accept this number of channels",
        }))
    }
}
