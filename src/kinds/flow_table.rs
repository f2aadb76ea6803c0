//! The size of the flow table of RFS, for all interfaces: `net.core.rps_sock_flow_entries`.

use super::kind::{Access, Kind, Names, Removed};
use super::value::ValueForm;
use crate::machine::files::FLOW_ENTRIES;

pub(super) const FLOW_TABLE: Kind = Kind {
    names: Names::Only {
        recorded: "machine rps_sock_flow_entries",
        path: |_| FLOW_ENTRIES.to_owned(),
    },
    hashed: "flow_entries",
    form: ValueForm::Count,
    of: |_| Vec::new(),
    counted: |_| "flow table".into(),
    access: Access::File,
    is_of_flows: false,
    meaning: |_| None,
    removed: Removed::Never,
};
