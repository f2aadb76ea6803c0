//! The numbers of channels (`ethtool -L`): queues, vectors and their masks come and go with them.

use nix::errno::Errno::{EACCES, EBUSY, EINVAL, EPERM};

use super::kind::{Access, Kind, Meaning, Names, Removed};
use super::value::{Value, ValueForm};
use crate::machine::files::ethtool_file;

const QUEUE_IN_USE: &str = ": the RSS table, a flow rule or XDP may use a queue that this removes; `ethtool -X INTERFACE default` resets the table";

pub(super) const CHANNEL_NUMBERS: Kind = Kind {
    names: Names::Only {
        recorded: "channels",
        path: |interface| ethtool_file(interface, "channels"),
    },
    hashed: "channels",
    form: ValueForm::Channels,
    of: |interface| {
        let channels = interface.channels.into_iter();
        channels
            .map(|channels| (0, Value::Channels(channels).into()))
            .collect()
    },
    counted: |_| "channels".into(),
    access: Access::Channels,
    is_of_flows: true,
    meaning: |answer| {
        Some(Meaning::Refused(match answer.errno {
            EPERM | EACCES => ": run as root",
            EINVAL => QUEUE_IN_USE,
            EBUSY => ": the device is busy; fix: run again",
            _ => ": the driver does not accept this number of channels",
        }))
    },
    removed: Removed::Never,
};
