//! RPS and XPS: `rps_cpus` and `xps_cpus` (`net/core/net-sysfs.c`).

use nix::errno::Errno::{self, EINVAL, ENOENT};

use super::kind::Kind;
use crate::cpuset::CpuSet;
use crate::read::topology::rps_filter;
use crate::report::outcome::Outcome::{self, Refused, Vanished};
use crate::root::Root;

pub(super) struct Rps;

impl Kind for Rps {
    fn refusal(
        &self,
        _root: &Root,
        _path: &str,
        _text: &str,
        errno: Errno,
    ) -> Option<(Outcome, &'static str)> {
        (errno == EINVAL).then_some((
            Refused,
            ": the kernel takes no isolated or nohz_full CPU for RPS, and no other was named",
        ))
    }

    fn removed(&self, root: &Root) -> Option<CpuSet> {
        rps_filter(root).ok()
    }
}

pub(super) struct Xps;

impl Kind for Xps {
    fn refusal(
        &self,
        root: &Root,
        path: &str,
        _text: &str,
        errno: Errno,
    ) -> Option<(Outcome, &'static str)> {
        (errno == ENOENT && root.exists(path)).then_some((
            Vanished,
            ": an interface with one transmit queue has no XPS; fix: run again",
        ))
    }

    fn removed(&self, _root: &Root) -> Option<CpuSet> {
        Some(CpuSet::new())
    }
}
