//! RPS and XPS: `rps_cpus` and `xps_cpus` (`net/core/net-sysfs.c`).

use nix::errno::Errno::{EINVAL, ENOENT};

use super::access::{Access, Answer, Meaning};
use crate::cpuset::CpuSet;
use crate::read::topology::rps_filter;
use crate::report::outcome::Outcome::{Refused, Vanished};
use crate::root::Root;

pub(super) struct RpsFile;

impl Access for RpsFile {
    fn refusal(&self, answer: &Answer<'_>) -> Option<Meaning> {
        (answer.errno == EINVAL).then_some((
            Refused,
            ": the kernel takes no isolated or nohz_full CPU for RPS, and no other was named",
        ))
    }

    fn removed(&self, root: &Root) -> Option<CpuSet> {
        rps_filter(root).ok()
    }
}

pub(super) struct XpsFile;

impl Access for XpsFile {
    fn refusal(&self, answer: &Answer<'_>) -> Option<Meaning> {
        (answer.errno == ENOENT && answer.root.exists(answer.path)).then_some((
            Vanished,
            ": an interface with one transmit queue has no XPS; fix: run again",
        ))
    }

    fn removed(&self, _root: &Root) -> Option<CpuSet> {
        Some(CpuSet::new())
    }
}
