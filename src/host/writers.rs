//! Who else writes affinities on this machine.

use std::io::Cursor;

use procfs::FromRead as _;
use procfs::process::Stat;

use crate::host::root::{FileError, Root};

/// The process id of a running irqbalance, which moves every vector that it was not told to leave alone
/// within ten seconds.
pub(crate) fn irqbalance(root: &Root) -> Result<Option<i32>, FileError> {
    for name in root.list("/proc")?.unwrap_or_default() {
        if !name.bytes().all(|b| b.is_ascii_digit()) {
            continue;
        }
        // A process that ends meanwhile is one less to look at.
        let Some(text) = root.read_opt(&format!("/proc/{name}/stat"))? else { continue };
        if let Ok(stat) = Stat::from_read(Cursor::new(text.into_bytes()))
            && stat.comm == "irqbalance"
        {
            return Ok(Some(stat.pid));
        }
    }
    Ok(None)
}
