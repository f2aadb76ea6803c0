//! Whether ntuple filters are on (`ethtool -K`).

use std::io;

use super::access::Access;
use crate::machine::setting::on_or_off;
use crate::plan::Write;
use crate::read::ethtool;
use crate::root::{FileError, Root};

pub(super) struct Ntuple;

impl Access for Ntuple {
    fn read(&self, root: &Root, write: &Write) -> Result<Option<String>, FileError> {
        Ok(ethtool::ntuple(root, &write.interface)?.map(|on| on_or_off(on).to_owned()))
    }

    fn set(&self, root: &Root, write: &Write, text: &str) -> io::Result<()> {
        ethtool::set_ntuple(root, &write.interface, text == on_or_off(true))
    }
}
