//! Events of files, by inotify: irqbalance's socket, the policy file, nicpin's state files, cpuset partitions, and on
//! request the affinity of planned vectors.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::io;
use std::mem::{replace, take};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::path::{Path, PathBuf};

use itertools::Itertools as _;
use nix::errno::Errno;
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify, InotifyEvent, WatchDescriptor};

use self::WatchedFile::{Cgroup, Directory, Partition, Vector};
use crate::watch::event::EventKind::{
    Affinity, Exclusive, IrqCpus, Irqbalance, Lost, Near, Policy,
};
use crate::watch::event::{Event, Woken};
use crate::watch::state::RELEASES;
use nicpin::apply::STATE_DIR;
use nicpin::cpuset::{CpuSet, Inserted as _};
use nicpin::machine::files::affinity_file;
use nicpin::machine::{Program, ProgramCpus};
use nicpin::read::cgroups::{self, FoundUnit, Partitions};
use nicpin::read::kept_off::DEFAULT_AFFINITY;
use nicpin::root::Root;
use nicpin::root::tree::{Entry, resolve};

/// Where the directory of irqbalance's socket comes and goes with the service.
const RUN: &str = "/run";
const IRQBALANCE: &str = "/run/irqbalance";

const NAMES: AddWatchFlags = AddWatchFlags::IN_CREATE
    .union(AddWatchFlags::IN_MOVED_TO)
    .union(AddWatchFlags::IN_MOVED_FROM)
    .union(AddWatchFlags::IN_DELETE)
    .union(AddWatchFlags::IN_ONLYDIR);
const NAMES_AND_WRITES: AddWatchFlags = NAMES.union(AddWatchFlags::IN_CLOSE_WRITE);

/// Files of a cgroup that decide on its partition, beside its state. They report only who writes them.
const PARTITION_FILES: [&str; 2] = [CPUS, "cpuset.cpus.exclusive"];
const CPUS: &str = "cpuset.cpus";
/// Writing it gives cpusets to a cgroup's children; their new files cause no event.
const CONTROLLERS: &str = "cgroup.subtree_control";
const TRIES: usize = 4;

#[derive(Clone, PartialEq)]
enum WatchedFile {
    Directory(PathBuf),
    Vector(u32),
    /// Initial affinity of IRQs, within which queues are planned.
    Default,
    Cgroup,
    /// State of a cgroup's partition; the kernel reports each change (`kernfs_notify`).
    Partition,
}

pub struct Files {
    /// `None` if no instance is left (`fs.inotify.max_user_instances`).
    inotify: Option<Inotify>,
    watches: BTreeMap<WatchDescriptor, WatchedFile>,
    policy: String,
    /// Links on the way to the policy file, and the file itself, by paths whose directories are no links.
    way_to_policy: BTreeSet<PathBuf>,
    planned: BTreeMap<u32, CpuSet>,
    default: Option<String>,
    /// CPUs of exclusive cpuset partitions, and the root's `cpuset.cpus.isolated`.
    exclusive: (CpuSet, Option<String>),
    programs: BTreeSet<Program>,
    near: BTreeMap<Program, ProgramCpus>,
    /// No instance, or no watch, was left for some files (`fs.inotify.max_user_watches`).
    pub is_full: bool,
}

impl Files {
    /// `policy` is not below the root.
    pub fn open(root: &Root, policy: &str) -> io::Result<Self> {
        let inotify = match Inotify::init(InitFlags::IN_CLOEXEC | InitFlags::IN_NONBLOCK) {
            Err(Errno::EMFILE) => None,
            inotify => Some(inotify?),
        };
        let mut files = Self {
            is_full: inotify.is_none(),
            inotify,
            watches: BTreeMap::new(),
            policy: policy.to_owned(),
            way_to_policy: BTreeSet::new(),
            planned: BTreeMap::new(),
            default: None,
            exclusive: (CpuSet::new(), None),
            programs: BTreeSet::new(),
            near: BTreeMap::new(),
        };
        files.watch_policy()?;
        files.watch(&root.outside(STATE_DIR))?;
        files.watch_irqbalance(root)?;
        let default = root.outside(DEFAULT_AFFINITY);
        files.add(&default, AddWatchFlags::IN_MODIFY, WatchedFile::Default)?;
        files.default = default_affinity(root);
        files.look_at_cgroups(root)?;
        Ok(files)
    }

    fn watch_policy(&mut self) -> io::Result<()> {
        let mut way: BTreeSet<PathBuf> = BTreeSet::new();
        if let Ok(top) = Root::open(Path::new("/")) {
            let found = resolve(&self.policy, |path, _| match top.look(path) {
                Some(Entry::Link(target)) => {
                    way.insert(path.into());
                    Ok(Some(target))
                }
                _ => Ok::<_, Errno>(None),
            });
            way.extend(found.map(PathBuf::from));
        }
        // /dev/null, as a policy, does not change, and everybody writes to it.
        way.remove(Path::new("/dev/null"));
        for file in &way {
            file.parent().map(|above| self.watch(above)).transpose()?;
        }
        self.way_to_policy = way;
        Ok(())
    }

    fn add(
        &mut self,
        path: &Path,
        flags: AddWatchFlags,
        watched: WatchedFile,
    ) -> nix::Result<bool> {
        let Some(inotify) = &self.inotify else {
            return Ok(false);
        };
        match inotify.add_watch(path, flags) {
            Ok(watch) => _ = self.watches.insert(watch, watched),
            Err(Errno::ENOENT | Errno::ENOTDIR | Errno::EACCES) => return Ok(false),
            // Other sources, and the check every five minutes, remain.
            Err(Errno::ENOSPC) => {
                self.is_full = true;
                return Ok(false);
            }
            Err(errno) => return Err(errno),
        }
        Ok(true)
    }

    fn watch(&mut self, directory: &Path) -> nix::Result<bool> {
        self.add(directory, NAMES_AND_WRITES, Directory(directory.to_owned()))
    }

    fn replace(
        &mut self,
        is_old: impl Fn(&WatchedFile) -> bool,
        new: impl IntoIterator<Item = (PathBuf, AddWatchFlags, WatchedFile)>,
    ) -> nix::Result<()> {
        let (old, others): (BTreeMap<_, _>, _) = take(&mut self.watches)
            .into_iter()
            .partition(|(_, watched)| is_old(watched));
        self.watches = others;
        let mut new = new.into_iter();
        let added =
            new.try_for_each(|(path, flags, watched)| self.add(&path, flags, watched).map(drop));
        for watch in old.into_keys() {
            if let (false, Some(inotify)) = (self.watches.contains_key(&watch), &self.inotify) {
                // The file may be gone, and its watch with it.
                let _ = inotify.rm_watch(watch);
            }
        }
        added
    }

    /// The directory above is watched until irqbalance's exists.
    fn watch_irqbalance(&mut self, root: &Root) -> io::Result<()> {
        let (run, irqbalance) = (root.outside(RUN), root.outside(IRQBALANCE));
        // Again after the one above: it may have been made since the first look, without an event.
        if self.watch(&irqbalance)? || self.watch(&run)? && self.watch(&irqbalance)? {
            let mut policy = self.way_to_policy.iter();
            let has_policy = policy.any(|file| file.parent() == Some(&*run));
            let above = Directory(run);
            self.replace(|watched| *watched == above && !has_policy, [])?;
        }
        Ok(())
    }

    /// Reports what others write to the affinity of these vectors (IRQ, text of the mask), no longer of earlier ones.
    pub fn guard(&mut self, root: &Root, vectors: &[(u32, String)]) -> io::Result<()> {
        let cpus_of_irq =
            |(irq, mask): &(u32, String)| Some((*irq, CpuSet::parse_kernel_mask(mask).ok()?));
        self.planned = vectors.iter().filter_map(cpus_of_irq).inserted();
        let irqs: Vec<u32> = self.planned.keys().copied().collect();
        let files = irqs.into_iter().flat_map(|irq| {
            ["_list", ""].map(|end| {
                let file = root.outside(&(affinity_file(irq) + end));
                (file, AddWatchFlags::IN_MODIFY, Vector(irq))
            })
        });
        Ok(self.replace(|watched| matches!(watched, Vector(_)), files)?)
    }

    pub fn as_fd(&self) -> Option<BorrowedFd<'_>> {
        self.inotify.as_ref().map(Inotify::as_fd)
    }

    pub fn read(&mut self, root: &Root, woken: &mut Woken) -> io::Result<()> {
        let (mut written, mut cgroups, mut partitions) = (BTreeSet::new(), false, false);
        loop {
            let events = match self.inotify.as_ref().map(Inotify::read_events) {
                None | Some(Err(Errno::EAGAIN)) => break,
                Some(events) => events?,
            };
            for event in events {
                if event.mask.contains(AddWatchFlags::IN_Q_OVERFLOW) {
                    woken.events.push(Event::of_machine(Lost));
                    (woken.state, cgroups) = (true, true);
                }
                match self.watches.get(&event.wd).cloned() {
                    Some(Vector(irq)) => _ = written.insert(irq),
                    Some(WatchedFile::Default) => {
                        // The write may have changed nothing.
                        let before = replace(&mut self.default, default_affinity(root));
                        if self.default != before {
                            woken.events.push(Event::of_machine(IrqCpus));
                        }
                    }
                    Some(Cgroup) => cgroups = true,
                    Some(Partition) => (cgroups, partitions) = (true, true),
                    Some(Directory(directory)) => {
                        self.directory_event(root, &directory, &event, woken)?;
                    }
                    None => {}
                }
            }
        }
        let moved = written.into_iter().filter(|irq| self.differs(root, *irq));
        woken.events.extend(moved.map(moved_event));
        if cgroups {
            let (exclusive, near) = (self.exclusive.clone(), self.near.clone());
            self.look_at_cgroups(root)?;
            // With each change of a partition, even one undone at once, the kernel sets the affinities of threads
            // (`update_tasks_cpumask`).
            if partitions || self.exclusive != exclusive {
                let mut cpus = self.exclusive.0.short();
                if cpus.is_empty() {
                    "none".clone_into(&mut cpus);
                }
                woken.events.push(Event::new(Exclusive, cpus));
            }
            let moved = self
                .programs
                .iter()
                .filter(|program| self.near.get(program) != near.get(program));
            let event = |program: &Program| Event::new(Near, program.to_string());
            woken.events.extend(moved.map(event));
        }
        Ok(())
    }

    /// Reports when these programs may use other CPUs, as far as their cgroups tell.
    pub fn near(&mut self, root: &Root, programs: BTreeSet<Program>) -> io::Result<()> {
        if programs != self.programs {
            self.programs = programs;
            self.look_at_cgroups(root)?;
        }
        Ok(())
    }

    pub fn moved_vectors(&self, root: &Root) -> Option<Event> {
        self.planned
            .keys()
            .copied()
            .find(|irq| self.differs(root, *irq))
            .map(moved_event)
    }

    fn differs(&self, root: &Root, irq: u32) -> bool {
        let now = || CpuSet::parse_kernel_mask(&root.read_opt(&affinity_file(irq)).ok()??).ok();
        let planned = self.planned.get(&irq);
        planned.is_some_and(|planned| now().is_some_and(|now| now != *planned))
    }

    fn directory_event(
        &mut self,
        root: &Root,
        directory: &Path,
        event: &InotifyEvent,
        woken: &mut Woken,
    ) -> io::Result<()> {
        const NEW: AddWatchFlags = AddWatchFlags::IN_CREATE.union(AddWatchFlags::IN_MOVED_TO);
        let file = event.name.as_ref().map(|name| directory.join(name));
        let is_gone = event.mask.contains(AddWatchFlags::IN_IGNORED);
        let is_new = event.mask.intersects(NEW);
        if is_gone {
            self.watches.remove(&event.wd);
        }
        let irqbalance = root.outside(IRQBALANCE);
        let is_of_irqbalance = directory == irqbalance;
        if is_gone && is_of_irqbalance || is_new && file.as_ref() == Some(&irqbalance) {
            self.watch_irqbalance(root)?;
            // The directory may have been made again, with its socket, before it was watched.
            woken.events.extend(irqbalance_has_started(root));
        }
        let Some((file, name)) = file.zip(event.name.as_deref()) else {
            return Ok(());
        };
        if is_of_irqbalance && is_new && is_socket(name) {
            woken.events.push(Event::of_machine(Irqbalance));
        }
        woken.state |= RELEASES.iter().any(|path| file == root.outside(path));
        if self.way_to_policy.contains(&file) {
            woken.events.push(Event::of_machine(Policy));
            // Without watches, the check every five minutes remains.
            let _ = self.watch_policy();
        }
        Ok(())
    }

    /// Unreadable files count as absent: a run reports them.
    fn look_at_cgroups(&mut self, root: &Root) -> io::Result<()> {
        let look = |programs: &BTreeSet<Program>| {
            (
                cgroups::partitions(root).unwrap_or_default(),
                programs
                    .iter()
                    .filter_map(Program::unit)
                    .map(|unit| cgroups::find_unit(root, unit).unwrap_or_default())
                    .collect_vec(),
            )
        };
        let mut found = look(&self.programs);
        for _ in 0..TRIES {
            self.watch_cgroups(root, &found.0, &found.1)?;
            let before = replace(&mut found, look(&self.programs));
            if found == before {
                break;
            }
        }
        let isolated = root.read_opt(&format!("{}/cpuset.cpus.isolated", cgroups::CGROUPS));
        self.exclusive = (found.0.cpus, isolated.unwrap_or_default());
        self.near = cgroups::programs(root, &self.programs).unwrap_or_default();
        Ok(())
    }

    fn watch_cgroups(
        &mut self,
        root: &Root,
        found: &Partitions,
        units: &[FoundUnit],
    ) -> nix::Result<()> {
        let slices = units.iter().flat_map(|unit| &unit.slices);
        let cgroups = units.iter().flat_map(|unit| &unit.cgroup);
        let parents = found.parents.iter().chain(slices.clone());
        let mut all = parents
            .clone()
            .map(|path| (root.outside(path), NAMES, Cgroup))
            .collect_vec();
        let mut files = |cgroup: &String, files: &[&str], watched: &WatchedFile| {
            all.extend(files.iter().map(|file| {
                (
                    root.outside(&format!("{cgroup}/{file}")),
                    AddWatchFlags::IN_MODIFY,
                    watched.clone(),
                )
            }));
        };
        for parent in parents {
            files(parent, &[CONTROLLERS], &Cgroup);
        }
        for cgroup in &found.cgroups {
            files(cgroup, &PARTITION_FILES, &Cgroup);
        }
        // A slice limits the units below it.
        for slice in slices {
            files(slice, &[CPUS], &Cgroup);
        }
        for cgroup in cgroups {
            files(cgroup, &[CPUS, "cgroup.events"], &Cgroup);
        }
        for cgroup in &found.cgroups {
            files(cgroup, &[cgroups::PARTITION], &Partition);
        }
        let is_old = |watched: &_| matches!(watched, Cgroup | Partition);
        self.replace(is_old, all)
    }
}

fn default_affinity(root: &Root) -> Option<String> {
    root.read_opt(DEFAULT_AFFINITY).ok().flatten()
}

fn moved_event(irq: u32) -> Event {
    Event::new(Affinity, irq.to_string())
}

/// Before irqbalance has made its socket, it cannot be asked.
fn irqbalance_has_started(root: &Root) -> Option<Event> {
    let names = root.list(IRQBALANCE).ok().flatten().unwrap_or_default();
    let mut names = names.iter().map(OsStr::new);
    names.any(is_socket).then(|| Event::of_machine(Irqbalance))
}

fn is_socket(name: &OsStr) -> bool {
    Path::new(name).extension() == Some(OsStr::new("sock"))
}
