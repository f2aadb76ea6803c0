//! Handles of the directories that hold a directory for every queue or IRQ: thousands of files are opened in these
//! one after the other, and from there a path is two names long, not nine.

use std::cell::RefCell;
use std::os::fd::OwnedFd;

use nix::errno::Errno;

/// How many are kept: those of an interface and of the IRQs.
const KEPT: usize = 4;

/// The directories that were last opened in.
#[derive(Debug, Default)]
pub(super) struct DirectoryCache {
    kept: RefCell<Vec<(String, OwnedFd)>>,
}

impl DirectoryCache {
    /// Opens a file from its directory's handle; `None` where that is no help, and the whole path tells more: the
    /// directory is none of these, or is another by now.
    pub(super) fn open(
        &self,
        path: &str,
        open_directory: impl FnOnce(&str) -> Result<OwnedFd, Errno>,
        open: impl FnOnce(&OwnedFd, &str) -> Result<OwnedFd, Errno>,
    ) -> Option<OwnedFd> {
        let (directory, file) = split(path)?;
        let mut kept = self.kept.borrow_mut();
        if !kept.iter().any(|(name, _)| name == directory) {
            let handle = open_directory(directory).ok()?;
            if kept.len() == KEPT {
                kept.remove(0);
            }
            kept.push((directory.to_owned(), handle));
        }
        let (_, handle) = kept.iter().find(|(name, _)| name == directory)?;
        open(handle, file).ok()
    }

    /// Lets go of a file's directory, where a file was found that the handle did not lead to.
    pub(super) fn forget(&self, path: &str) {
        if let Some((directory, _)) = split(path) {
            self.kept.borrow_mut().retain(|(name, _)| name != directory);
        }
    }
}

/// `/proc/irq` and `71/smp_affinity`; `None` for a file elsewhere.
fn split(path: &str) -> Option<(&str, &str)> {
    let (above, _) = path.rsplit_once('/')?;
    let (directory, _) = above.rsplit_once('/')?;
    let many = directory.ends_with("/irq") || directory.ends_with("/queues");
    many.then(|| (directory, &path[directory.len() + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_queues_and_irqs() {
        assert_eq!(split("/proc/irq/71/smp_affinity"), Some(("/proc/irq", "71/smp_affinity")));
        let queues = "/sys/class/net/eth0/queues";
        assert_eq!(split(&format!("{queues}/rx-3/rps_cpus")), Some((queues, "rx-3/rps_cpus")));
        for elsewhere in ["/proc/interrupts", "/proc/irq/71", "/sys/class/net/eth0/speed", "", "/", "x"] {
            assert_eq!(split(elsewhere), None, "{elsewhere}");
        }
    }
}
