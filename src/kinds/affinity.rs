//! The affinity of IRQs: `smp_affinity` (`write_irq_affinity` in `kernel/irq/proc.c`).

use nix::errno::Errno::{EACCES, EINVAL, EIO, EPERM};

use super::access::{Access, Answer, Meaning};
use crate::cpuset::CpuSet;
use crate::plan::Write;
use crate::read::files::read_affinity;
use crate::read::topology::read_online;
use crate::report::outcome::Outcome::{Managed, Refused};
use crate::root::{FileError, Root};

pub(super) struct Affinity;

impl Access for Affinity {
    fn read(&self, root: &Root, write: &Write) -> Result<Option<String>, FileError> {
        Ok(read_affinity(root, &write.path)?.map(|file| file.text.to_string()))
    }

    fn refusal(&self, answer: &Answer<'_>) -> Option<Meaning> {
        // EPERM since 6.12, where the file has no write bits; EIO before, and for an IRQ that was freed while the file
        // was open.
        let (root, path) = (answer.root, answer.path);
        let is_managed = match answer.errno {
            EPERM => root.exists(path) && !has_write_bits(root, path),
            EIO => root.exists(path),
            _ => false,
        };
        match answer.errno {
            _ if is_managed => Some((Managed, ": the IRQ cannot be moved")),
            EACCES | EPERM => Some((Refused, "; fix: run as root, outside any container")),
            // Some interrupt controllers accept no affinity at all (DesignWare PCIe MSI).
            EINVAL if is_online(root, answer.text) => Some((
                Refused,
                ": the interrupt controller does not accept this affinity",
            )),
            EINVAL => Some((Refused, ": none of the CPUs is online now; fix: run again")),
            _ => None,
        }
    }
}

pub(crate) fn has_write_bits(root: &Root, path: &str) -> bool {
    matches!(root.read_opt_file(path), Ok(Some(file)) if file.mode & 0o200 != 0)
}

fn is_online(root: &Root, mask: &str) -> bool {
    let cpus = CpuSet::parse_kernel_mask(mask).unwrap_or_default();
    read_online(root).is_ok_and(|online| online.intersects(&cpus))
}
