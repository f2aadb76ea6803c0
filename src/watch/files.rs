//! Events of files, by inotify: irqbalance's socket, the policy file, nicpin's state files, and on request the affinity
//! of planned vectors.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify, InotifyEvent, WatchDescriptor};

use crate::watch::event::{Event, Kind, Woken};
use crate::watch::state::RELEASES;
use nicpin::apply::STATE_DIR;
use nicpin::cpuset::CpuSet;
use nicpin::machine::paths::affinity_file;
use nicpin::root::Root;

/// Where irqbalance makes its socket. The directory comes and goes with the service.
const RUN: &str = "/run";
const IRQBALANCE: &str = "/run/irqbalance";

/// What is waited for in a directory.
const NAMES: AddWatchFlags = AddWatchFlags::IN_CREATE
    .union(AddWatchFlags::IN_CLOSE_WRITE)
    .union(AddWatchFlags::IN_MOVED_TO)
    .union(AddWatchFlags::IN_MOVED_FROM)
    .union(AddWatchFlags::IN_DELETE)
    .union(AddWatchFlags::IN_ONLYDIR);

#[derive(Debug)]
pub struct Files {
    inotify: Inotify,
    directories: BTreeMap<WatchDescriptor, PathBuf>,
    run: PathBuf,
    irqbalance: PathBuf,
    state: PathBuf,
    /// The policy file, and the file that it is a link to.
    policy: BTreeSet<PathBuf>,
    /// The files of planned vectors.
    vectors: BTreeMap<WatchDescriptor, u32>,
    /// The planned affinity of each IRQ.
    planned: BTreeMap<u32, CpuSet>,
}

impl Files {
    /// `policy`: the policy file, not below the root. What does not exist is not watched.
    pub(super) fn open(root: &Root, policy: &str) -> io::Result<Self> {
        let inotify = Inotify::init(InitFlags::IN_CLOEXEC | InitFlags::IN_NONBLOCK)?;
        let policy = PathBuf::from(policy);
        let target = Root::open(Path::new("/"))
            .ok()
            .and_then(|top| top.canonical(&policy.to_string_lossy()));
        let mut files = Self {
            inotify,
            directories: BTreeMap::new(),
            run: root.outside(RUN),
            irqbalance: root.outside(IRQBALANCE),
            state: root.outside(STATE_DIR),
            policy: [policy]
                .into_iter()
                .chain(target.map(PathBuf::from))
                .collect(),
            vectors: BTreeMap::new(),
            planned: BTreeMap::new(),
        };
        let parents: Vec<PathBuf> = files
            .policy
            .iter()
            .filter_map(|file| Some(file.parent()?.to_owned()))
            .collect();
        for directory in parents.into_iter().chain([files.state.clone()]) {
            files.watch(directory)?;
        }
        files.watch_irqbalance()?;
        Ok(files)
    }

    /// Watches a directory; `false` if it does not exist.
    fn watch(&mut self, directory: PathBuf) -> io::Result<bool> {
        match self.inotify.add_watch(&directory, NAMES) {
            Ok(watch) => {
                self.directories.insert(watch, directory);
                Ok(true)
            }
            Err(Errno::ENOENT | Errno::ENOTDIR | Errno::EACCES) => Ok(false),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Watches irqbalance's directory, or else the one above it until it exists.
    fn watch_irqbalance(&mut self) -> io::Result<()> {
        let mut is_there = self.watch(self.irqbalance.clone())?;
        if !is_there {
            self.watch(self.run.clone())?;
            // It may have been made since the first look, and nobody would say so.
            is_there = self.watch(self.irqbalance.clone())?;
        }
        if is_there {
            let above = self
                .directories
                .iter()
                .find(|(_, path)| **path == self.run)
                .map(|(watch, _)| *watch);
            if let Some(above) = above {
                self.directories.remove(&above);
                self.inotify.rm_watch(above)?;
            }
        }
        Ok(())
    }

    /// From now on, reports what others write to the affinity of these vectors: their IRQs, and the text of each mask.
    /// What was watched before and is not among them is let go.
    pub fn guard(&mut self, root: &Root, vectors: &[(u32, String)]) -> io::Result<()> {
        let mut before = std::mem::take(&mut self.vectors);
        self.planned.clear();
        for (irq, mask) in vectors {
            let Ok(cpus) = CpuSet::parse_kernel_mask(mask) else {
                continue;
            };
            self.planned.insert(*irq, cpus);
            let file = affinity_file(*irq);
            for file in [format!("{file}_list"), file] {
                match self
                    .inotify
                    .add_watch(&root.outside(&file), AddWatchFlags::IN_MODIFY)
                {
                    Ok(watch) => _ = self.vectors.insert(watch, *irq),
                    Err(Errno::ENOENT | Errno::EACCES) => {}
                    Err(errno) => return Err(errno.into()),
                }
            }
        }
        before.retain(|watch, _| !self.vectors.contains_key(watch));
        for watch in before.into_keys() {
            // The file may be gone, and its watch with it.
            let _ = self.inotify.rm_watch(watch);
        }
        Ok(())
    }

    pub(super) fn read(&mut self, root: &Root, woken: &mut Woken) -> io::Result<()> {
        let mut written = BTreeSet::new();
        loop {
            match self.inotify.read_events() {
                Ok(events) => {
                    for event in events {
                        self.file_event(root, &event, &mut written, woken)?;
                    }
                }
                Err(Errno::EAGAIN) => break,
                Err(errno) => return Err(errno.into()),
            }
        }
        woken.events.extend(
            written
                .into_iter()
                .filter(|irq| self.differs(root, *irq))
                .map(moved),
        );
        Ok(())
    }

    /// The planned vectors whose affinity is another one now. The events of a run's own writes say nothing.
    pub fn moved(&self, root: &Root) -> Option<Event> {
        self.planned
            .keys()
            .copied()
            .find(|irq| self.differs(root, *irq))
            .map(moved)
    }

    fn differs(&self, root: &Root, irq: u32) -> bool {
        let Some(planned) = self.planned.get(&irq) else {
            return false;
        };
        let text = root.read_opt(&affinity_file(irq)).ok().flatten();
        text.and_then(|text| CpuSet::parse_kernel_mask(&text).ok())
            .is_some_and(|now| now != *planned)
    }

    fn file_event(
        &mut self,
        root: &Root,
        event: &InotifyEvent,
        written: &mut BTreeSet<u32>,
        woken: &mut Woken,
    ) -> io::Result<()> {
        if event.mask.contains(AddWatchFlags::IN_Q_OVERFLOW) {
            woken.events.push(Event::of(Kind::Lost));
            woken.state = true;
            return Ok(());
        }
        if let Some(irq) = self.vectors.get(&event.wd) {
            if event.mask.contains(AddWatchFlags::IN_MODIFY) {
                written.insert(*irq);
            }
            return Ok(());
        }
        let Some(directory) = self.directories.get(&event.wd).cloned() else {
            return Ok(());
        };
        if event.mask.contains(AddWatchFlags::IN_IGNORED) {
            self.directories.remove(&event.wd);
            if directory == self.irqbalance {
                self.watch_irqbalance()?;
                // It may have been made again, with a socket, before this event was read.
                woken.events.extend(irqbalance_has_started(root));
            }
            return Ok(());
        }
        let Some(name) = event.name.as_deref() else {
            return Ok(());
        };
        let is_new = event
            .mask
            .intersects(AddWatchFlags::IN_CREATE | AddWatchFlags::IN_MOVED_TO);
        if directory == self.run && is_new && directory.join(name) == self.irqbalance {
            self.watch_irqbalance()?;
            // It may have made its socket before it was watched.
            woken.events.extend(irqbalance_has_started(root));
        }
        if directory == self.irqbalance && is_new && is_socket(name) {
            woken.events.push(Event::of(Kind::Irqbalance));
        }
        if directory == self.state && RELEASES.iter().any(|file| name == OsStr::new(file)) {
            woken.state = true;
        }
        if self.policy.contains(&directory.join(name)) {
            woken.events.push(Event::of(Kind::Policy));
        }
        Ok(())
    }
}

fn moved(irq: u32) -> Event {
    Event::new(Kind::Affinity, irq.to_string())
}

/// The event if irqbalance has made a socket already. Until it has, there is nobody to ask.
fn irqbalance_has_started(root: &Root) -> Option<Event> {
    let names = root.list(IRQBALANCE).ok().flatten().unwrap_or_default();
    names
        .iter()
        .any(|name| is_socket(OsStr::new(name)))
        .then(|| Event::of(Kind::Irqbalance))
}

fn is_socket(name: &OsStr) -> bool {
    Path::new(name)
        .extension()
        .is_some_and(|extension| extension == "sock")
}

impl AsFd for Files {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inotify.as_fd()
    }
}
