//! Processes of other tools: root's, found through what root's services leave behind and not by a walk over `/proc`,
//! which takes the longer the more processes there are.

use std::fmt;

use procfs::FromRead as _;
use procfs::process::Stat;

use crate::read::files::{Result, line_of, read_as, read_names};
use crate::root::Root;
use crate::root::tree::ABOUT;

/// Where systemd keeps the control groups of services: cgroup v2, v1, and both mounted.
const SLICES: [&str; 3] = [
    "/sys/fs/cgroup/system.slice",
    "/sys/fs/cgroup/systemd/system.slice",
    "/sys/fs/cgroup/unified/system.slice",
];
/// The tools that are found by their processes.
const NAMES: [&str; 2] = ["irqbalance", "tuned"];

/// Whether a tool runs.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// Its process id.
    Running(i32),
    /// Could not be determined: what this user may not read.
    Hidden(String),
    No,
}

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
    let path = format!("/proc/{pid}/stat");
    read_as(root, &path, |text| Stat::from_read(text.as_bytes()))
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
        let pids = text
            .lines()
            .filter_map(|line| line.trim().parse::<i32>().ok());
        self.pids.extend(pids);
    }
}

/// Finds a tool by its name: among the processes of its service, else among those that `others` adds.
pub(super) fn find(root: &Root, name: &str, others: impl FnOnce(&mut Traces)) -> Found {
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
        return Found::Running(pid);
    }
    traces.pids.clear();
    others(&mut traces);
    let (mut running, hidden) = among(&traces.pids);
    // A capture has few processes; those of nicpin 0.1 have nothing else by which to find them.
    if running.is_none() && !root.is_real() && root.exists(ABOUT) {
        running = traces.read("/proc", walk(root, name));
    }
    let hidden = hidden.map(|pid| format!("/proc/{pid}")).or(traces.unread);
    match (running, hidden) {
        (Some(pid), _) => Found::Running(pid),
        (None, Some(path)) => Found::Hidden(path),
        (None, None) => Found::No,
    }
}

/// The oldest process of root with this name among all of `/proc`.
pub(super) fn walk(root: &Root, name: &str) -> Result<Option<i32>> {
    let mut found = Vec::new();
    // Others are files that are no process's.
    let pids = read_names(root, "/proc")?
        .into_iter()
        .filter_map(|entry| entry.parse().ok());
    for pid in pids {
        found.extend(started(root, pid, name)?.map(|started| (started, pid)));
    }
    Ok(found.into_iter().min().map(|(_, pid)| pid))
}

/// The process that a path of /proc is about.
fn of_path(path: &str) -> Option<(&str, &str)> {
    let (pid, file) = path.strip_prefix("/proc/")?.split_once('/')?;
    pid.parse::<u32>().is_ok().then_some((pid, file))
}

/// Whether a path is about a process that is no tool's: a capture leaves it out, but for the first one, which shows that
/// processes could be seen. `stat` returns the text of a file.
pub fn is_unrelated_process<'a>(path: &str, stat: impl Fn(&str) -> Option<&'a str>) -> bool {
    let is_tool = |stat: &str| {
        Stat::from_read(stat.as_bytes()).is_ok_and(|stat| NAMES.contains(&&*stat.comm))
    };
    of_path(path).is_some_and(|(pid, _)| {
        pid != "1" && !stat(&format!("/proc/{pid}/stat")).is_some_and(is_tool)
    })
}

/// What a capture keeps of a process: its id, its user ids, and its name if it is a tool's.
pub(super) fn bare(path: &str, text: &str) -> Option<String> {
    let (pid, file) = of_path(path)?;
    if file == "status" {
        let ids = text.lines().find(|line| line.starts_with("Uid:"));
        return Some(format!("{}\n", ids.unwrap_or_default()));
    }
    let (who, rest) = text.rsplit_once(") ").unwrap_or_default();
    let name = who.split_once('(').map(|(_, name)| name);
    let name = name.filter(|name| NAMES.contains(name)).unwrap_or("other");
    let fields = rest.split_ascii_whitespace().count().saturating_sub(1);
    Some(format!("{pid} ({name}) S{}\n", " 0".repeat(fields)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_capture_has_the_names_of_tools_only() {
        let rest = "S 1 812 812 0 -1 4194560 1200 0 3 0 15 20 0 0 20 0 2 0 611\n";
        for (name, kept) in [("irqbalance", "irqbalance"), ("sec) (retd", "other")] {
            let text = format!("812 ({name}) {rest}");
            let expected = format!("812 ({kept}) S{}\n", " 0".repeat(19));
            assert_eq!(bare("/proc/812/stat", &text), Some(expected));
        }
        let status = "Name:\tsecretd\nUid:\t0\t0\t0\t0\nGid:\t7\t7\t7\t7\n";
        assert_eq!(
            bare("/proc/1/status", status).as_deref(),
            Some("Uid:\t0\t0\t0\t0\n")
        );
        for path in [
            "/proc/interrupts",
            "/proc",
            "/proc/self/status",
            "/proc/irq/7/smp_affinity",
        ] {
            assert_eq!(bare(path, "x"), None, "{path}");
        }
    }
}
