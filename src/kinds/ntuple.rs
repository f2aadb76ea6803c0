//! Whether ntuple filters are on (`ethtool -K`), which accelerated RFS needs.

use super::kind::{Access, Kind, Names, Removed};
use super::value::{Value, ValueForm};
use crate::machine::files::ethtool_file;

pub(super) const NTUPLE: Kind = Kind {
    names: Names::Only {
        recorded: "ntuple",
        path: |interface| ethtool_file(interface, "features"),
    },
    hashed: "ntuple",
    form: ValueForm::Switch,
    of: |interface| {
        let on = interface.ntuple.into_iter();
        on.map(|on| (0, Value::On(on).into())).collect()
    },
    counted: |_| "ntuple".into(),
    access: Access::Ntuple,
    is_of_flows: true,
    meaning: |_| None,
    removed: Removed::Never,
};
