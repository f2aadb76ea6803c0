//! Events of files, by inotify: irqbalance's socket, the policy file, nicpin's state files, cpuset partitions, and on
//! request the affinity of planned vectors.

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
use nicpin::machine::setting::affinity_file;
use nicpin::machine::{Program, ProgramCpus};
use nicpin::read::cgroups::{self, Partitions};
use nicpin::read::programs::{self, UnitPlace};
use nicpin::root::Root;

/// Where irqbalance makes its socket. The directory comes and goes with the service.
const RUN: &str = "/run";
const IRQBALANCE: &str = "/run/irqbalance";

/// What is waited for in a directory.
const NAMES: AddWatchFlags = AddWatchFlags::IN_CREATE
    .union(AddWatchFlags::IN_MOVED_TO)
    .union(AddWatchFlags::IN_MOVED_FROM)
    .union(AddWatchFlags::IN_DELETE)
    .union(AddWatchFlags::IN_ONLYDIR);
const NAMES_AND_WRITES: AddWatchFlags = NAMES.union(AddWatchFlags::IN_CLOSE_WRITE);

/// The files of a cgroup that decide on its partition. The kernel reports each change of the first (`kernfs_notify`); the
/// others only report who writes them.
const PARTITION_FILES: [&str; 3] = [cgroups::PARTITION, CPUS, "cpuset.cpus.exclusive"];
/// The CPUs that a cgroup is given.
const CPUS: &str = "cpuset.cpus";
/// Its write gives cpusets to the children of a cgroup, which makes their files without an event.
const CONTROLLERS: &str = "cgroup.subtree_control";
/// How often partitions are looked for until they are the same as when they were watched.
const TRIES: usize = 4;

/// What is watched.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Watched {
    Directory(PathBuf),
    /// The affinity of a planned vector, by its IRQ.
    Vector(u32),
    /// A cgroup, or a file of it.
    Cgroup,
}

#[derive(Debug)]
pub struct Files {
    inotify: Inotify,
    watches: BTreeMap<WatchDescriptor, Watched>,
    run: PathBuf,
    irqbalance: PathBuf,
    state: PathBuf,
    /// The policy file, and the file that it is a link to.
    policy: BTreeSet<PathBuf>,
    /// The planned affinity of each IRQ.
    planned: BTreeMap<u32, CpuSet>,
    /// The CPUs that cgroups have alone, and the root's `cpuset.cpus.isolated`.
    exclusive: (CpuSet, Option<String>),
    /// The programs that interrupts are to be near, and the CPUs of those that run.
    programs: BTreeSet<Program>,
    near: BTreeMap<Program, ProgramCpus>,
    /// Whether the user has no watches left for cgroups (`fs.inotify.max_user_watches`).
    pub(super) is_full: bool,
}

impl Files {
    /// `policy`: the policy file, not below the root. What does not exist is not watched.
    pub(super) fn open(root: &Root, policy: &str) -> io::Result<Self> {
        let policy = PathBuf::from(policy);
        let target = Root::open(Path::new("/"))
            .ok()
            .and_then(|top| top.canonical(&policy.to_string_lossy()).ok()?);
        let policy = [policy].into_iter().chain(target.map(PathBuf::from));
        let mut files = Self {
            inotify: Inotify::init(InitFlags::IN_CLOEXEC | InitFlags::IN_NONBLOCK)?,
            watches: BTreeMap::new(),
            run: root.outside(RUN),
            irqbalance: root.outside(IRQBALANCE),
            state: root.outside(STATE_DIR),
            policy: policy.collect(),
            planned: BTreeMap::new(),
            exclusive: (CpuSet::new(), None),
            programs: BTreeSet::new(),
            near: BTreeMap::new(),
            is_full: false,
        };
        let parents = files.policy.iter().filter_map(|file| file.parent());
        let directories: Vec<PathBuf> = parents.map(Path::to_owned).collect();
        for directory in directories.into_iter().chain([files.state.clone()]) {
            files.watch(directory)?;
        }
        files.watch_irqbalance()?;
        files.look_at_cgroups(root)?;
        Ok(files)
    }

    /// Adds a watch; `false` if there is nothing to watch.
    fn add(&mut self, path: &Path, flags: AddWatchFlags, watched: Watched) -> nix::Result<bool> {
        match self.inotify.add_watch(path, flags) {
            Ok(watch) => {
                self.watches.insert(watch, watched);
                Ok(true)
            }
            Err(Errno::ENOENT | Errno::ENOTDIR | Errno::EACCES) => Ok(false),
            Err(errno) => Err(errno),
        }
    }

    /// Watches a directory; `false` if it does not exist.
    fn watch(&mut self, directory: PathBuf) -> nix::Result<bool> {
        let path = directory.clone();
        self.add(&path, NAMES_AND_WRITES, Watched::Directory(directory))
    }

    /// Watches these files in place of all of the kind that `is_old` says.
    fn replace(
        &mut self,
        is_old: fn(&Watched) -> bool,
        new: impl Iterator<Item = (PathBuf, AddWatchFlags, Watched)>,
    ) -> nix::Result<()> {
        let mut old = self.watches.clone();
        old.retain(|_, watched| is_old(watched));
        self.watches.retain(|_, watched| !is_old(watched));
        let mut added = Ok(());
        for (path, flags, watched) in new {
            added = self.add(&path, flags, watched).map(drop);
            if added.is_err() {
                break;
            }
        }
        for watch in old.into_keys() {
            if !self.watches.contains_key(&watch) {
                // The file may be gone, and its watch with it.
                let _ = self.inotify.rm_watch(watch);
            }
        }
        added
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
            let above = Watched::Directory(self.run.clone());
            let mut watches = self.watches.iter();
            let watch = watches.find_map(|(watch, of)| (*of == above).then_some(*watch));
            if let Some(watch) = watch {
                self.watches.remove(&watch);
                self.inotify.rm_watch(watch)?;
            }
        }
        Ok(())
    }

    /// From now on, reports what others write to the affinity of these vectors: their IRQs, and the text of each mask.
    /// What was watched before and is not among them is let go.
    pub fn guard(&mut self, root: &Root, vectors: &[(u32, String)]) -> io::Result<()> {
        let planned = vectors
            .iter()
            .filter_map(|(irq, mask)| Some((*irq, CpuSet::parse_kernel_mask(mask).ok()?)));
        self.planned = planned.collect();
        let irqs: Vec<u32> = self.planned.keys().copied().collect();
        let files = irqs.into_iter().flat_map(|irq| {
            let file = affinity_file(irq);
            [format!("{file}_list"), file].map(|file| {
                let flags = AddWatchFlags::IN_MODIFY;
                (root.outside(&file), flags, Watched::Vector(irq))
            })
        });
        Ok(self.replace(|watched| matches!(watched, Watched::Vector(_)), files)?)
    }

    pub(super) fn read(&mut self, root: &Root, woken: &mut Woken) -> io::Result<()> {
        let (mut written, mut cgroups) = (BTreeSet::new(), false);
        loop {
            let events = match self.inotify.read_events() {
                Ok(events) => events,
                Err(Errno::EAGAIN) => break,
                Err(errno) => return Err(errno.into()),
            };
            for event in events {
                if event.mask.contains(AddWatchFlags::IN_Q_OVERFLOW) {
                    woken.events.push(Event::of(Kind::Lost));
                    (woken.state, cgroups) = (true, true);
                }
                match self.watches.get(&event.wd) {
                    Some(Watched::Vector(irq)) => _ = written.insert(*irq),
                    Some(Watched::Cgroup) => cgroups = true,
                    Some(Watched::Directory(directory)) => {
                        let directory = directory.clone();
                        self.directory_event(root, &directory, &event, woken)?;
                    }
                    None => {}
                }
            }
        }
        let moved = written.into_iter().filter(|irq| self.differs(root, *irq));
        woken.events.extend(moved.map(moved_event));
        if cgroups {
            let before = (self.exclusive.clone(), self.near.clone());
            self.look_at_cgroups(root)?;
            if self.exclusive != before.0 {
                let cpus = match &self.exclusive.0 {
                    none if none.is_empty() => "none".to_owned(),
                    cpus => cpus.short(),
                };
                woken.events.push(Event::new(Kind::Exclusive, cpus));
            }
            for program in &self.programs {
                if self.near.get(program) != before.1.get(program) {
                    let about = program.to_string();
                    woken.events.push(Event::new(Kind::Near, about));
                }
            }
        }
        Ok(())
    }

    /// From now on, reports when these programs may use other CPUs, as far as their cgroups tell.
    pub fn near(&mut self, root: &Root, programs: BTreeSet<Program>) -> io::Result<()> {
        if programs != self.programs {
            self.programs = programs;
            self.look_at_cgroups(root)?;
        }
        Ok(())
    }

    /// The planned vectors whose affinity is another one now. The events of a run's own writes say nothing.
    pub fn moved(&self, root: &Root) -> Option<Event> {
        let mut irqs = self.planned.keys().copied();
        irqs.find(|irq| self.differs(root, *irq)).map(moved_event)
    }

    fn differs(&self, root: &Root, irq: u32) -> bool {
        let Some(planned) = self.planned.get(&irq) else {
            return false;
        };
        let text = root.read_opt(&affinity_file(irq)).ok().flatten();
        text.and_then(|text| CpuSet::parse_kernel_mask(&text).ok())
            .is_some_and(|now| now != *planned)
    }

    fn directory_event(
        &mut self,
        root: &Root,
        directory: &Path,
        event: &InotifyEvent,
        woken: &mut Woken,
    ) -> io::Result<()> {
        if event.mask.contains(AddWatchFlags::IN_IGNORED) {
            self.watches.remove(&event.wd);
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
        let file = directory.join(name);
        if is_new && file == self.irqbalance {
            self.watch_irqbalance()?;
            // It may have made its socket before it was watched.
            woken.events.extend(irqbalance_has_started(root));
        }
        if directory == self.irqbalance && is_new && is_socket(name) {
            woken.events.push(Event::of(Kind::Irqbalance));
        }
        woken.state |= directory == self.state && RELEASES.iter().any(|release| name == *release);
        if self.policy.contains(&file) {
            woken.events.push(Event::of(Kind::Policy));
        }
        Ok(())
    }

    /// Watches what can become a partition and the units of programs, and looks at both. Files that cannot be read are as
    /// good as absent: a run reports them.
    fn look_at_cgroups(&mut self, root: &Root) -> io::Result<()> {
        let look = |programs: &BTreeSet<Program>| {
            let units = programs.iter().filter_map(Program::unit);
            let places: Vec<UnitPlace> = units
                .map(|unit| programs::place(root, unit).unwrap_or_default())
                .collect();
            (cgroups::partitions(root).unwrap_or_default(), places)
        };
        let mut found = look(&self.programs);
        for _ in 0..TRIES {
            self.watch_cgroups(root, &found.0, &found.1)?;
            let again = look(&self.programs);
            let is_same = again == found;
            found = again;
            if is_same {
                break;
            }
        }
        let isolated = root.read_opt(&format!("{}/cpuset.cpus.isolated", cgroups::CGROUPS));
        self.exclusive = (found.0.cpus, isolated.unwrap_or_default());
        self.near = programs::programs(root, &self.programs).unwrap_or_default();
        Ok(())
    }

    fn watch_cgroups(
        &mut self,
        root: &Root,
        found: &Partitions,
        units: &[UnitPlace],
    ) -> nix::Result<()> {
        let slices = units.iter().flat_map(|unit| &unit.slices);
        let cgroups = units.iter().flat_map(|unit| &unit.cgroup);
        let directories = found.parents.iter().chain(slices.clone());
        let directories = directories.map(|directory| (directory.clone(), NAMES));
        let controllers = (found.parents.iter().chain(slices.clone()))
            .map(|parent| format!("{parent}/{CONTROLLERS}"));
        let partitions = found
            .cgroups
            .iter()
            .flat_map(|cgroup| PARTITION_FILES.map(|file| format!("{cgroup}/{file}")));
        // A slice limits the units below it.
        let cpusets = slices
            .chain(cgroups.clone())
            .map(|cgroup| format!("{cgroup}/{CPUS}"));
        let events = cgroups.map(|cgroup| format!("{cgroup}/cgroup.events"));
        let files = controllers.chain(partitions).chain(cpusets).chain(events);
        let all = directories
            .chain(files.map(|file| (file, AddWatchFlags::IN_MODIFY)))
            .map(|(path, flags)| (root.outside(&path), flags, Watched::Cgroup));
        let added = self.replace(|watched| *watched == Watched::Cgroup, all);
        self.is_full = added == Err(Errno::ENOSPC);
        if self.is_full { Ok(()) } else { added }
    }
}

fn moved_event(irq: u32) -> Event {
    Event::new(Kind::Affinity, irq.to_string())
}

/// The event if irqbalance has made a socket already. Until it has, there is nobody to ask.
fn irqbalance_has_started(root: &Root) -> Option<Event> {
    let names = root.list(IRQBALANCE).ok().flatten().unwrap_or_default();
    let mut names = names.iter().map(OsStr::new);
    names.any(is_socket).then(|| Event::of(Kind::Irqbalance))
}

fn is_socket(name: &OsStr) -> bool {
    Path::new(name).extension() == Some(OsStr::new("sock"))
}

impl AsFd for Files {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inotify.as_fd()
    }
}
