//! Processes of other tools. Root's are found through files of its services: a walk over `/proc` takes longer the more
//! processes there are.

use std::fmt;

use procfs::FromRead as _;
use procfs::process::Stat;

use crate::read::files::line_of;
use crate::root::tree::ABOUT;
use crate::root::{Result, Root};

/// Control groups of systemd's services: cgroup v2, v1, and both mounted.
const SLICES: [&str; 3] = [
    "/sys/fs/cgroup/system.slice",
    "/sys/fs/cgroup/systemd/system.slice",
    "/sys/fs/cgroup/unified/system.slice",
];

/// The error names what this user may not read.
pub(crate) type FoundProcess = Result<Option<i32>, String>;

/// `None` unless the process has this name and belongs to root by its four user ids: any process may have any name. A
/// tree may lack the file with the ids.
pub(super) fn process_start(root: &Root, pid: i32, name: &str) -> Result<Option<u64>> {
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

pub fn stat_of(root: &Root, pid: impl fmt::Display) -> Result<Option<Stat>> {
    root.read_as(&format!("/proc/{pid}/stat"), |text| {
        Stat::from_read(text.as_bytes())
    })
}

#[derive(Debug, Default)]
pub(super) struct Traces {
    pub(super) pids: Vec<i32>,
    /// A path that could not be read, so that there may be others.
    unread: Option<String>,
}

impl Traces {
    pub(super) fn read<T>(&mut self, path: &str, read: Result<Option<T>>) -> Option<T> {
        read.unwrap_or_else(|_| {
            self.unread.get_or_insert_with(|| path.to_owned());
            None
        })
    }

    pub(super) fn in_file(&mut self, root: &Root, path: &str) {
        let text = self.read(path, root.read_opt(path)).unwrap_or_default();
        self.pids.extend(
            text.lines()
                .filter_map(|line| line.trim().parse::<i32>().ok()),
        );
    }
}

/// Finds a tool among the processes of its service, else among those that `others` adds.
pub(super) fn find(root: &Root, name: &str, others: impl FnOnce(&mut Traces)) -> FoundProcess {
    // With `hidepid=`, other users' processes are unreadable or seem absent. Process 1 never ends.
    let visible = || matches!(root.read_opt("/proc/1/stat"), Ok(Some(_)));
    let among = |pids: &[i32]| {
        let mut hidden = None;
        for &pid in pids {
            // The process may end at any time, which is no error.
            match process_start(root, pid, name) {
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
    // A capture has few processes; captures of nicpin 0.1 have no other trace.
    if running.is_none() && !root.is_real() && root.exists(ABOUT) {
        running = traces.read("/proc", walk(root, name));
    }
    match hidden.map(|pid| format!("/proc/{pid}")).or(traces.unread) {
        Some(path) if running.is_none() => Err(path),
        _ => Ok(running),
    }
}

pub(super) fn walk(root: &Root, tool: &str) -> Result<Option<i32>> {
    let mut found = Vec::new();
    let names = root.read_names("/proc")?.into_iter();
    for pid in names.filter_map(|name| name.parse().ok()) {
        found.extend(process_start(root, pid, tool)?.map(|started| (started, pid)));
    }
    Ok(found.into_iter().min().map(|(_, pid)| pid))
}
