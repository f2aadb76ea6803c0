//! CPUs that cgroup v2 gives to partitions alone (`Documentation/admin-guide/cgroup-v2.rst`, Cpuset), and CPUs that
//! programs may use.
//!
//! A cgroup whose `cpuset.cpus.partition` is `root` or `isolated` has CPUs on which no process outside of it runs:
//! `cpuset.cpus.exclusive.effective` (6.7 and later), on earlier kernels `cpuset.cpus.effective` and those of
//! partitions below. Only partitions, the root cgroup and (6.7 and later) cgroups with exclusive CPUs have partitions
//! below them: others are not searched.

use std::collections::{BTreeMap, BTreeSet};
use std::mem::take;

use nix::errno::Errno;

use crate::cpuset::CpuSet;
use crate::machine::{Program, ProgramCpus};
use crate::read::files::line_of;
use crate::read::interrupts::numbers;
use crate::root::{FileError, Result, Root};

pub const CGROUPS: &str = "/sys/fs/cgroup";
pub const PARTITION: &str = "cpuset.cpus.partition";
const EXCLUSIVE: &str = "cpuset.cpus.exclusive.effective";
const EFFECTIVE: &str = "cpuset.cpus.effective";
const HIERARCHIES: [&str; 2] = [CGROUPS, "/sys/fs/cgroup/systemd"];
/// Limits the names read while partitions are searched (a cgroup has about 60 files), and the cgroups below a unit.
const MOST: usize = 8192;
const MAX_DEPTH: usize = 32;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Partitions {
    pub cpus: CpuSet,
    /// The root cgroup first; none without cgroup v2.
    pub parents: Vec<String>,
    /// Children of `parents` with a cpuset.
    pub cgroups: Vec<String>,
    pub cut: bool,
}

pub fn partitions(root: &Root) -> Result<Partitions> {
    let mut found = Partitions::default();
    let (mut names_left, mut level) = (MOST, vec![CGROUPS.to_owned()]);
    for _ in 0..MAX_DEPTH {
        for parent in take(&mut level) {
            let Some(names) = root.list(&parent)? else {
                continue;
            };
            found.cut |= names.len() > names_left;
            for name in names.into_iter().take(names_left) {
                names_left -= 1;
                let cgroup = root.dir(format!("{parent}/{name}"));
                let is_partition = cgroup.read_as(PARTITION, |text| {
                    is_valid(text).ok_or("is not the state of a partition")
                })?;
                // Absent below a file, and if the parent does not give cpusets to its children.
                let Some(is_partition) = is_partition else {
                    continue;
                };
                let given = cgroup.read_list(EXCLUSIVE)?;
                if is_partition {
                    found.cpus.add(&given);
                    found.cpus.add(&cgroup.read_list(EFFECTIVE)?);
                }
                if is_partition || !given.is_empty() {
                    level.push(cgroup.path.clone());
                }
                found.cgroups.push(cgroup.path);
            }
            found.parents.push(parent);
        }
    }
    found.cut |= !level.is_empty();
    Ok(found)
}

/// `root invalid (REASON)` is no valid partition.
fn is_valid(state: &str) -> Option<bool> {
    match state.trim() {
        "root" | "isolated" => Some(true),
        state => {
            let mut invalid = ["member", "root ", "isolated "].iter();
            (invalid.any(|start| state.starts_with(start))).then_some(false)
        }
    }
}

pub fn programs(root: &Root, wanted: &BTreeSet<Program>) -> Result<BTreeMap<Program, ProgramCpus>> {
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

fn cpus(root: &Root, program: &Program) -> Result<CpuSet> {
    let processes = match program {
        Program::Pid(pid) => vec![*pid],
        Program::Unit(unit) => processes(root, find_unit(root, unit)?.cgroup)?,
    };
    let mut cpus = CpuSet::new();
    for pid in processes {
        let tasks = format!("/proc/{pid}/task");
        // Processes and threads may end meanwhile; PID 0 is a process of another namespace.
        for thread in root.read_names(&tasks)? {
            let own = root.read_as(&format!("{tasks}/{thread}/status"), |status| {
                line_of(status, "Cpus_allowed_list:")
                    .map(CpuSet::parse_list)
                    .and_then(Result::ok)
                    .ok_or("has no Cpus_allowed_list")
            })?;
            cpus.add(&own.unwrap_or_default());
        }
    }
    Ok(cpus)
}

/// All slices of the hierarchy, and the unit's cgroup if it runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FoundUnit {
    pub slices: Vec<String>,
    pub cgroup: Option<String>,
}

pub fn find_unit(root: &Root, unit: &str) -> Result<FoundUnit> {
    let mut found = FoundUnit::default();
    for hierarchy in HIERARCHIES {
        let mut level = vec![hierarchy.to_owned()];
        while let Some(slice) = level.pop() {
            let Some(names) = root.list(&slice)? else {
                continue;
            };
            for name in names {
                let cgroup = format!("{slice}/{name}");
                if name == unit {
                    found.cgroup = Some(cgroup);
                } else if name.strip_suffix(".slice").is_some() && found.slices.len() < MOST {
                    level.push(cgroup);
                }
            }
            found.slices.push(slice);
        }
        if found.cgroup.is_some() {
            break;
        }
    }
    Ok(found)
}

fn processes(root: &Root, cgroup: Option<String>) -> Result<Vec<u32>> {
    let (mut all, mut looked_at) = (Vec::new(), 0);
    let mut level = Vec::from_iter(cgroup);
    while let Some(cgroup) = level.pop() {
        let threaded = Some(Errno::EOPNOTSUPP as i32);
        let pids = root.read_as(&format!("{cgroup}/cgroup.procs"), |text| {
            numbers::<u32>(text.lines()).ok_or("has a line that is no process")
        });
        match pids {
            Ok(Some(pids)) => all.extend(pids),
            // A file, or a cgroup that has gone.
            Ok(None) => continue,
            // A threaded cgroup; its processes are listed in the cgroup above.
            Err(FileError::Io { answer, .. }) if answer.raw_os_error() == threaded => {}
            Err(error) => return Err(error),
        }
        looked_at += 1;
        if looked_at < MOST {
            level.extend(
                root.read_names(&cgroup)?
                    .into_iter()
                    .map(|name| format!("{cgroup}/{name}")),
            );
        }
    }
    Ok(all)
}
