//! Changes of the CPUs that cgroups have alone, by inotify on cgroup v2. The kernel reports each change of
//! `cpuset.cpus.partition` (`kernfs_notify`); the other files only report who writes them.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use nix::errno::Errno;
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify, WatchDescriptor};

use crate::watch::event::{Event, Kind, Woken};
use nicpin::cpuset::CpuSet;
use nicpin::read::cgroups::{self, Partitions};
use nicpin::root::Root;

/// The files of a cgroup that decide on its partition.
pub const FILES: [&str; 3] = [cgroups::PARTITION, "cpuset.cpus", "cpuset.cpus.exclusive"];
/// Its write gives cpusets to the children of a cgroup, which makes their files without an event.
const CONTROLLERS: &str = "cgroup.subtree_control";
/// Cgroups that come and go.
const NAMES: AddWatchFlags = AddWatchFlags::IN_CREATE
    .union(AddWatchFlags::IN_DELETE)
    .union(AddWatchFlags::IN_MOVED_TO)
    .union(AddWatchFlags::IN_MOVED_FROM)
    .union(AddWatchFlags::IN_ONLYDIR);
/// How often partitions are looked for until they are the same as when they were watched.
const TRIES: usize = 4;

#[derive(Debug)]
pub(super) struct PartitionWatch {
    inotify: Inotify,
    watches: BTreeSet<WatchDescriptor>,
    /// The CPUs that cgroups have alone, and the root's `cpuset.cpus.isolated`.
    known: (CpuSet, Option<String>),
    /// Whether the user has no watches left (`fs.inotify.max_user_watches`).
    pub(super) is_full: bool,
}

impl PartitionWatch {
    pub(super) fn open(root: &Root) -> io::Result<Self> {
        let inotify = Inotify::init(InitFlags::IN_CLOEXEC | InitFlags::IN_NONBLOCK)?;
        let known = (CpuSet::new(), None);
        let mut watch = Self {
            inotify,
            watches: BTreeSet::new(),
            known,
            is_full: false,
        };
        watch.known = watch.look(root)?;
        Ok(watch)
    }

    /// Adds an event if the CPUs are others than before.
    pub(super) fn read(&mut self, root: &Root, woken: &mut Woken) -> io::Result<()> {
        loop {
            match self.inotify.read_events() {
                Ok(_) => {}
                Err(Errno::EAGAIN) => break,
                Err(errno) => return Err(errno.into()),
            }
        }
        let now = self.look(root)?;
        if now != self.known {
            let cpus = if now.0.is_empty() {
                "none".to_owned()
            } else {
                now.0.short()
            };
            woken.events.push(Event::new(Kind::Exclusive, cpus));
            self.known = now;
        }
        Ok(())
    }

    /// Watches what can become a partition, and gives what is one. Files that cannot be read are as good as absent: a run
    /// reports them.
    fn look(&mut self, root: &Root) -> io::Result<(CpuSet, Option<String>)> {
        let mut found = cgroups::partitions(root).unwrap_or_default();
        for _ in 0..TRIES {
            self.watch(root, &found)?;
            let again = cgroups::partitions(root).unwrap_or_default();
            let is_same = again == found;
            found = again;
            if is_same {
                break;
            }
        }
        let isolated = root.read_opt(&format!("{}/cpuset.cpus.isolated", cgroups::CGROUPS));
        Ok((found.cpus, isolated.unwrap_or_default()))
    }

    fn watch(&mut self, root: &Root, found: &Partitions) -> io::Result<()> {
        let before = std::mem::take(&mut self.watches);
        self.is_full = false;
        let parents = found.parents.iter().flat_map(|parent| {
            let controllers = (format!("{parent}/{CONTROLLERS}"), AddWatchFlags::IN_MODIFY);
            [(parent.clone(), NAMES), controllers]
        });
        let files = found.cgroups.iter().flat_map(|cgroup| {
            FILES.map(|file| (format!("{cgroup}/{file}"), AddWatchFlags::IN_MODIFY))
        });
        for (path, flags) in parents.chain(files) {
            match self.inotify.add_watch(&root.outside(&path), flags) {
                Ok(watch) => _ = self.watches.insert(watch),
                Err(Errno::ENOENT | Errno::ENOTDIR | Errno::EACCES) => {}
                Err(Errno::ENOSPC) => {
                    self.is_full = true;
                    break;
                }
                Err(errno) => return Err(errno.into()),
            }
        }
        for watch in before.difference(&self.watches) {
            // The cgroup may be gone, and the watch with it.
            let _ = self.inotify.rm_watch(*watch);
        }
        Ok(())
    }
}

impl AsFd for PartitionWatch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inotify.as_fd()
    }
}
