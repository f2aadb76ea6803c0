//! The CPUs that cgroup v2 gives to partitions alone (`Documentation/admin-guide/cgroup-v2.rst`, Cpuset).
//!
//! A cgroup whose `cpuset.cpus.partition` is `root` or `isolated` has CPUs on which no process outside of it runs. Its
//! `cpuset.cpus.exclusive.effective` (6.7 and later) has all of them; `cpuset.cpus.effective`, which is what earlier
//! kernels have, lacks those that it has given on to partitions below it. A partition is below another one, below the
//! root cgroup, or (6.7 and later) below cgroups that all have CPUs in `cpuset.cpus.exclusive.effective`: no other cgroup
//! is looked into.

use crate::cpuset::CpuSet;
use crate::read::files::read_list;
use crate::root::{FileError, Root};

/// The root cgroup.
pub const CGROUPS: &str = "/sys/fs/cgroup";
pub const PARTITION: &str = "cpuset.cpus.partition";
pub(crate) const EXCLUSIVE: &str = "cpuset.cpus.exclusive.effective";
pub(crate) const EFFECTIVE: &str = "cpuset.cpus.effective";
/// Names that are looked at, files of cgroups among them. A cgroup has about 60 files, and the machine's root a few
/// children.
const MAX_NAMES: usize = 8192;
/// How deep partitions are looked for.
const MAX_DEPTH: usize = 32;

/// The cpuset partitions of a machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Partitions {
    /// The CPUs that partitions have alone.
    pub cpus: CpuSet,
    /// The cgroups whose children can be partitions, the root cgroup first; none without cgroup v2.
    pub parents: Vec<String>,
    /// Their children with a cpuset, which are partitions or can become ones.
    pub cgroups: Vec<String>,
    /// Whether there are too many cgroups to look at all of them.
    pub cut: bool,
}

/// The partitions below a root.
pub fn partitions(root: &Root) -> Result<Partitions, FileError> {
    let mut found = Partitions::default();
    let mut names_left = MAX_NAMES;
    let mut level = vec![CGROUPS.to_owned()];
    for _ in 0..MAX_DEPTH {
        let mut below = Vec::new();
        for parent in std::mem::take(&mut level) {
            let Some(names) = root.list(&parent)? else {
                continue;
            };
            found.cut |= names.len() > names_left;
            for name in names.into_iter().take(names_left) {
                names_left -= 1;
                let cgroup = format!("{parent}/{name}");
                // Absent below a file, and where the cgroup above does not give cpusets to its children.
                let Some(partition) = root.read_opt(&format!("{cgroup}/{PARTITION}"))? else {
                    continue;
                };
                let given = read_list(root, &format!("{cgroup}/{EXCLUSIVE}"))?.unwrap_or_default();
                let is_partition = is_valid(&partition).ok_or_else(|| {
                    let path = format!("{cgroup}/{PARTITION}");
                    root.content_error(&path, "is not the state of a partition")
                })?;
                if is_partition {
                    found.cpus.add(&given);
                    found.cpus.add(
                        &read_list(root, &format!("{cgroup}/{EFFECTIVE}"))?.unwrap_or_default(),
                    );
                }
                if is_partition || !given.is_empty() {
                    below.push(cgroup.clone());
                }
                found.cgroups.push(cgroup);
            }
            found.parents.push(parent);
        }
        level = below;
    }
    found.cut |= !level.is_empty();
    Ok(found)
}

/// Whether the state is that of a valid partition: not `member`, nor `root invalid (Cpu list in cpuset.cpus not
/// exclusive)`.
fn is_valid(state: &str) -> Option<bool> {
    match state.trim() {
        "root" | "isolated" => Some(true),
        state
            if ["member", "root ", "isolated "]
                .iter()
                .any(|start| state.starts_with(start)) =>
        {
            Some(false)
        }
        _ => None,
    }
}
