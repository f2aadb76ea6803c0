//! A cache of open directories that hold a directory for each queue or IRQ. Thousands of files are opened there, and a
//! path relative to such a directory has two components, not nine.

use std::cell::RefCell;
use std::os::fd::OwnedFd;

use nix::errno::Errno;

/// The number of cached directories: those of an interface and of the IRQs.
const CAPACITY: usize = 4;

/// The last directories that files were opened in.
#[derive(Debug, Default)]
pub(super) struct DirectoryCache {
    handles: RefCell<Vec<(String, OwnedFd)>>,
}

impl DirectoryCache {
    /// Opens a file relative to its cached directory; `None` for other directories and on any error. The caller then
    /// opens the whole path, since the directory may have been replaced.
    pub(super) fn open(
        &self,
        path: &str,
        open_directory: impl FnOnce(&str) -> Result<OwnedFd, Errno>,
        open: impl FnOnce(&OwnedFd, &str) -> Result<OwnedFd, Errno>,
    ) -> Option<OwnedFd> {
        let (directory, file) = split(path)?;
        let mut handles = self.handles.borrow_mut();
        if !handles.iter().any(|(name, _)| name == directory) {
            let handle = open_directory(directory).ok()?;
            if handles.len() == CAPACITY {
                handles.remove(0);
            }
            handles.push((directory.to_owned(), handle));
        }
        let (_, handle) = handles.iter().find(|(name, _)| name == directory)?;
        open(handle, file).ok()
    }

    /// Removes a file's directory from the cache, after the file was found by its whole path only.
    pub(super) fn remove(&self, path: &str) {
        if let Some((directory, _)) = split(path) {
            self.handles.borrow_mut().retain(|(name, _)| name != directory);
        }
    }
}

/// `/proc/irq` and `71/smp_affinity`; `None` for a file in another directory.
fn split(path: &str) -> Option<(&str, &str)> {
    let (above, _) = path.rsplit_once('/')?;
    let (directory, _) = above.rsplit_once('/')?;
    let is_cached = directory.ends_with("/irq") || directory.ends_with("/queues");
    is_cached.then(|| (directory, &path[directory.len() + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_of_queues_and_irqs_are_split() {
        assert_eq!(split("/proc/irq/71/smp_affinity"), Some(("/proc/irq", "71/smp_affinity")));
        let queues = "/sys/class/net/eth0/queues";
        assert_eq!(split(&format!("{queues}/rx-3/rps_cpus")), Some((queues, "rx-3/rps_cpus")));
        for elsewhere in ["/proc/interrupts", "/proc/irq/71", "/sys/class/net/eth0/speed", "", "/", "x"] {
            assert_eq!(split(elsewhere), None, "{elsewhere}");
        }
    }
}
