//! The affinity of threads that poll queues (`sched_setaffinity(2)`).

use std::io;

use nix::errno::Errno::{EACCES, EINVAL, EPERM, ESRCH};

use super::access::{Access, Answer, Meaning};
use crate::cpuset::CpuSet;
use crate::plan::Write;
use crate::read::threads;
use crate::report::outcome::Outcome::{Refused, Vanished};
use crate::root::{FileError, Root};

pub(super) struct Thread;

impl Access for Thread {
    fn read(&self, root: &Root, write: &Write) -> Result<Option<String>, FileError> {
        threads::affinity(root, &write.interface, write.number)
    }

    fn set(&self, root: &Root, write: &Write, text: &str) -> io::Result<()> {
        threads::set_affinity(root, &write.interface, write.number, text)
    }

    fn refusal(&self, answer: &Answer<'_>) -> Option<Meaning> {
        match answer.errno {
            ESRCH => Some((Vanished, ": the thread has ended; fix: run again")),
            EACCES | EPERM => Some((
                Refused,
                ": CAP_SYS_NICE is needed; fix: run as root, outside any container",
            )),
            EINVAL => Some((
                Refused,
                ": none of the CPUs is online now, or this thread cannot be moved",
            )),
            _ => None,
        }
    }

    /// Before Linux 6.3 (`cpuset_cpus_allowed`).
    fn removed(&self, _root: &Root) -> Option<CpuSet> {
        Some(CpuSet::new())
    }
}
