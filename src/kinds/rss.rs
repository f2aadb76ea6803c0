//! The RSS indirection table (`ethtool -X`).

use std::borrow::Cow;

use nix::errno::Errno::{EINVAL, EOPNOTSUPP};

use super::kind::{Access, Kind, Meaning, Names, Removed};
use super::value::{Value, ValueForm};
use crate::machine::files::ethtool_file;

pub(super) const RSS_TABLE: Kind = Kind {
    names: Names::Only {
        recorded: "rss",
        path: |interface| ethtool_file(interface, "rss"),
    },
    hashed: "rss",
    form: ValueForm::Table,
    of: |interface| {
        let table = interface.rss.iter();
        table
            .map(|table| (0, Value::Table(Cow::Borrowed(table)).into()))
            .collect()
    },
    counted: |_| "RSS".into(),
    access: Access::RssTable,
    is_of_flows: true,
    meaning: |answer| {
        matches!(answer.errno, EOPNOTSUPP | EINVAL).then_some(Meaning::Refused(
            ": the driver does not accept this RSS table; fix: leave out --rss",
        ))
    },
    removed: Removed::Never,
};
