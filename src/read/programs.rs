//! The CPUs that programs may use: those of each of their threads (`Cpus_allowed_list` in `/proc/PID/status`), which is what
//! `AllowedCPUs=` and `CPUAffinity=` of systemd, taskset(1) and numactl(8) lead to.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::Path;

use nix::errno::Errno;

use crate::cpuset::CpuSet;
use crate::machine::{Program, ProgramCpus};
use crate::read::cgroups::CGROUPS;
use crate::root::{FileError, Root};

/// The hierarchies in which systemd makes cgroups: version 2, and its own one beside version 1.
const HIERARCHIES: [&str; 2] = [CGROUPS, "/sys/fs/cgroup/systemd"];
/// Cgroups below a unit that are looked into.
const MAX_CGROUPS: usize = 8192;

/// Where these programs may run. One that does not run is absent.
pub fn programs(
    root: &Root,
    wanted: &BTreeSet<Program>,
) -> Result<BTreeMap<Program, ProgramCpus>, FileError> {
    let mut found = BTreeMap::new();
    for program in wanted {
        let cpus = cpus(root, program)?;
        if !cpus.is_empty() {
            let now = Some(cpus.clone());
            found.insert(program.clone(), ProgramCpus { cpus, now });
        }
    }
    Ok(found)
}

fn cpus(root: &Root, program: &Program) -> Result<CpuSet, FileError> {
    let processes = match program {
        Program::Pid(pid) => vec![*pid],
        Program::Unit(unit) => {
            let cgroup = place(root, unit)?.cgroup;
            cgroup.map_or(Ok(Vec::new()), |cgroup| processes(root, cgroup))?
        }
    };
    let mut cpus = CpuSet::new();
    for pid in processes {
        let tasks = format!("/proc/{pid}/task");
        // Processes and threads may end meanwhile, and 0 stands for one of another namespace.
        for thread in root.list(&tasks)?.into_iter().flatten() {
            let path = format!("{tasks}/{thread}/status");
            let Some(status) = root.read_opt(&path)? else {
                continue;
            };
            let mut lines = status.lines();
            let list = lines.find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
            let list = list.map(|list| CpuSet::parse_list(list.trim()));
            let Some(Ok(own)) = list else {
                return Err(root.content_error(&path, "has no Cpus_allowed_list"));
            };
            cpus.add(&own);
        }
    }
    Ok(cpus)
}

/// Where the cgroup of a unit is, or would be.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UnitPlace {
    /// The cgroups of slices that were looked into.
    pub slices: Vec<String>,
    /// The cgroup; `None` where the unit does not run.
    pub cgroup: Option<String>,
}

/// Looks for the cgroup of a unit of the system.
pub fn place(root: &Root, unit: &str) -> Result<UnitPlace, FileError> {
    let mut place = UnitPlace::default();
    for hierarchy in HIERARCHIES {
        let mut level = vec![hierarchy.to_owned()];
        while let Some(slice) = level.pop() {
            let Some(names) = root.list(&slice)? else {
                continue;
            };
            for name in names {
                let cgroup = format!("{slice}/{name}");
                if name == unit {
                    place.cgroup = Some(cgroup);
                } else if is_slice(&name) && place.slices.len() < MAX_CGROUPS {
                    level.push(cgroup);
                }
            }
            place.slices.push(slice);
        }
        if place.cgroup.is_some() {
            break;
        }
    }
    Ok(place)
}

fn is_slice(name: &str) -> bool {
    Path::new(name).extension() == Some(OsStr::new("slice"))
}

/// The processes in a cgroup and below it.
fn processes(root: &Root, cgroup: String) -> Result<Vec<u32>, FileError> {
    let mut all = Vec::new();
    let (mut level, mut looked_at) = (vec![cgroup], 0);
    while let Some(cgroup) = level.pop() {
        let path = format!("{cgroup}/cgroup.procs");
        let text = match root.read_opt(&path) {
            // A threaded cgroup; those of its processes are listed above it.
            Err(FileError::Io { answer, .. })
                if answer.raw_os_error() == Some(Errno::EOPNOTSUPP as i32) =>
            {
                String::new()
            }
            text => match text? {
                Some(text) => text,
                // A file, or a cgroup that has gone.
                None => continue,
            },
        };
        for line in text.lines() {
            let unread = |_| root.content_error(&path, "has a line that is no process");
            let pid = line.parse().map_err(unread)?;
            all.push(pid);
        }
        looked_at += 1;
        if looked_at < MAX_CGROUPS {
            let names = root.list(&cgroup)?.into_iter().flatten();
            level.extend(
                names
                    .filter(|name| !is_file(name))
                    .map(|name| format!("{cgroup}/{name}")),
            );
        }
    }
    Ok(all)
}

/// Whether the kernel has a file of this name in each cgroup.
fn is_file(name: &str) -> bool {
    let controllers = [
        "cgroup", "cpu", "cpuset", "cpuacct", "memory", "io", "pids", "hugetlb", "rdma", "misc",
        "dmem",
    ];
    let of = name.split_once('.');
    of.is_some_and(|(controller, _)| controllers.contains(&controller))
        || ["tasks", "notify_on_release", "release_agent"].contains(&name)
}
