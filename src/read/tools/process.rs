//! Processes of other tools: root's, found through what root's services leave behind and not by a walk over `/proc`,
//! which takes the longer the more processes there are.

use std::fmt;

use procfs::FromRead as _;
use procfs::process::Stat;

use crate::read::files::line_of;
use crate::root::tree::ABOUT;
use crate::root::{Result, Root};

/// Where systemd keeps the control groups of services: cgroup v2, v1, and both mounted.
const SLICES: [&str; 3] = [
    "/sys/fs/cgroup/system.slice",
    "/sys/fs/cgroup/systemd/system.slice",
    "/sys/fs/cgroup/unified/system.slice",
];

/// The process of a tool, if it runs. The error: what this user may not read, so that it could not be determined.
pub(crate) type FoundProcess = Result<Option<i32>, String>;

/// The start of a process that has this name and is root's by its four user ids: anybody may give a process any name. A
/// tree need not have the file with these.
pub(super) fn started(root: &Root, pid: i32, name: &str) -> Result<Option<u64>> {
    let Some(stat) = stat_of(root, pid)?.filter(|stat| stat.comm == name) else {
        return Ok(None);
    };
    let is_roots = match root.read_opt(&format!("/proc/{pid}/status"))? {
        Some(status) => line_of(&status, "Uid:")
            .is_some_and(|ids| ids.split_ascii_whitespace().all(|id| id == "0")),
        None => !root.is_real(),
    };
    Ok(is_roots.then_some(stat.starttime))
}

/// What the kernel says of a process; `None` if it has ended.
pub(in crate::read) fn stat_of(root: &Root, pid: impl fmt::Display) -> Result<Option<Stat>> {
    root.read_as(&format!("/proc/{pid}/stat"), |text| {
        Stat::from_read(text.as_bytes())
    })
}

/// What leads to the processes that may be a tool's.
#[derive(Debug, Default)]
pub(super) struct Traces {
    pub(super) pids: Vec<i32>,
    /// What could not be read, so that there may be others.
    unread: Option<String>,
}

impl Traces {
    /// What was read of a path; `None` if it is absent, or could not be read.
    pub(super) fn read<T>(&mut self, path: &str, read: Result<Option<T>>) -> Option<T> {
        read.unwrap_or_else(|_| {
            self.unread.get_or_insert_with(|| path.to_owned());
            None
        })
    }

    /// Adds the process ids in a file, one a line.
    pub(super) fn in_file(&mut self, root: &Root, path: &str) {
        let text = self.read(path, root.read_opt(path)).unwrap_or_default();
        self.pids.extend(
            text.lines()
                .filter_map(|line| line.trim().parse::<i32>().ok()),
        );
    }
}

/// Finds a tool by its name: among the processes of its service, else among those that `others` adds.
pub(super) fn find(root: &Root, name: &str, others: impl FnOnce(&mut Traces)) -> FoundProcess {
    // With `hidepid=` other users' processes cannot be read or seem absent. The first one never ends.
    let visible = || matches!(root.read_opt("/proc/1/stat"), Ok(Some(_)));
    // The first that is the tool, and the first at which this user may not look.
    let among = |pids: &[i32]| {
        let mut hidden = None;
        for &pid in pids {
            // It may end at any time, which is no error.
            match started(root, pid, name) {
                Ok(Some(_)) => return (Some(pid), hidden),
                Ok(None) if visible() => {}
                Ok(None) | Err(_) => hidden = hidden.or(Some(pid)),
            }
        }
        (None, hidden)
    };
    let mut traces = Traces::default();
    for slice in SLICES {
        traces.in_file(root, &format!("{slice}/{name}.service/cgroup.procs"));
    }
    // Only root puts processes into its service.
    let (running, hidden) = among(&traces.pids);
    if let Some(pid) = running.or(hidden) {
        return Ok(Some(pid));
    }
    traces.pids.clear();
    others(&mut traces);
    let (mut running, hidden) = among(&traces.pids);
    // A capture has few processes; those of nicpin 0.1 have nothing else by which to find them.
    if running.is_none() && !root.is_real() && root.exists(ABOUT) {
        running = traces.read("/proc", walk(root, name));
    }
    match hidden.map(|pid| format!("/proc/{pid}")).or(traces.unread) {
        Some(path) if running.is_none() => Err(path),
        _ => Ok(running),
    }
}

/// The oldest process of root with this name among all of `/proc`.
pub(super) fn walk(root: &Root, tool: &str) -> Result<Option<i32>> {
    let mut found = Vec::new();
    // Others are files that are no process's.
    let names = root.read_names("/proc")?.into_iter();
    for pid in names.filter_map(|name| name.parse().ok()) {
        found.extend(started(root, pid, tool)?.map(|started| (started, pid)));
    }
    Ok(found.into_iter().min().map(|(_, pid)| pid))
}
