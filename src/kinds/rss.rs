//! The RSS indirection table (`ethtool -X`).

use std::io;

use nix::errno::Errno::{EINVAL, EOPNOTSUPP};

use super::access::{Access, Answer, Meaning};
use crate::machine::Rss;
use crate::plan::Write;
use crate::read::ethtool;
use crate::report::outcome::Outcome::Refused;
use crate::root::{FileError, Root};

pub(super) struct Table;

impl Access for Table {
    fn read(&self, root: &Root, write: &Write) -> Result<Option<String>, FileError> {
        Ok(ethtool::rss(root, &write.interface)?.map(|rss| rss.to_setting()))
    }

    fn set(&self, root: &Root, write: &Write, text: &str) -> io::Result<()> {
        let table = Rss::parse(text).ok_or_else(|| io::Error::other("not an RSS table"))?;
        ethtool::set_rss(root, &write.interface, &table)
    }

    fn refusal(&self, answer: &Answer<'_>) -> Option<Meaning> {
        matches!(answer.errno, EOPNOTSUPP | EINVAL).then_some((
            Refused,
            ": the driver does not accept this RSS table; fix: leave out --rss",
        ))
    }
}
