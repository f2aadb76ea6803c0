//! How each kind of setting is read and written, and what the kernel's errors mean.

pub(crate) mod channels;
mod refusal;

use std::io;

pub(crate) use self::refusal::{has_write_bits, refusal, why_not_writable};
use crate::cpuset::CpuSet;
use crate::machine::Rss;
use crate::machine::SettingKind::{self, NapiThread, Ntuple, Rps, Vector, Xps};
use crate::machine::setting::on_or_off;
use crate::plan::Write;
use crate::read::files::read_affinity;
use crate::read::topology::rps_filter;
use crate::read::{ethtool, threads};
use crate::root::{FileError, Root};

/// `None` if the setting is absent.
pub(crate) fn read(root: &Root, write: &Write) -> Result<Option<String>, FileError> {
    let interface = &write.interface;
    Ok(match write.kind {
        Vector => read_affinity(root, &write.path)?.map(|file| file.text.to_string()),
        SettingKind::Rss => ethtool::rss(root, interface)?.map(|rss| rss.to_setting()),
        Ntuple => ethtool::ntuple(root, interface)?.map(|on| on_or_off(on).to_owned()),
        NapiThread => threads::affinity(root, interface, write.number)?,
        _ => root.read_opt(&write.path)?,
    })
}

/// `ethtool -X` and `-K`, `sched_setaffinity(2)`, or the write of a file.
pub(crate) fn set(root: &Root, write: &Write, text: &str) -> io::Result<()> {
    let interface = &write.interface;
    match write.kind {
        SettingKind::Rss => {
            let table = Rss::parse(text).ok_or_else(|| io::Error::other("not an RSS table"))?;
            ethtool::set_rss(root, interface, &table)
        }
        Ntuple => ethtool::set_ntuple(root, interface, text == on_or_off(true)),
        NapiThread => threads::set_affinity(root, interface, write.number, text),
        _ => root.write(&write.path, text),
    }
}

/// CPUs, besides offline ones, that the kernel removes from a written mask; `None` if it removes none.
pub(crate) fn removed(root: &Root, kind: SettingKind) -> Option<CpuSet> {
    match kind {
        Rps => rps_filter(root).ok(),
        // From the affinity of threads before Linux 6.3 (`cpuset_cpus_allowed`).
        Xps | NapiThread => Some(CpuSet::new()),
        _ => None,
    }
}
