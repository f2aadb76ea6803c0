//! The machine's CPUs: which are online, which are kept free of interrupts, how they share cores, L3
//! caches and NUMA nodes.
//!
//! Read from `/sys/devices/system/{cpu,node}` (`Documentation/admin-guide/cputopology.rst`,
//! `Documentation/ABI/stable/sysfs-devices-node`). Never from `nproc` or a process's own affinity, which
//! show what this process may use, not what the machine has.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::cpuset::{CpuSet, MAX_CPUS, shown};
use crate::machine::{Node, Topology};
use crate::read::files::{MAX_NODES, numbered, read_cpus, read_list, read_number};
use crate::read::interrupts::Interrupts;
use crate::root::{FileError, Root};

const CPU: &str = "/sys/devices/system/cpu";
const NODE: &str = "/sys/devices/system/node";

/// Reads the topology.
pub fn read(root: &Root) -> Result<Topology, FileError> {
    let online = read_online(root)?;
    let possible = match read_list(root, &format!("{CPU}/possible"))? {
        Some(possible) => possible.union(&online),
        None => online.clone(),
    };
    let mut isolated = read_list(root, &format!("{CPU}/isolated"))?.unwrap_or_default();
    if let Some(partitions) = read_list(root, "/sys/fs/cgroup/cpuset.cpus.isolated")? {
        isolated = isolated.union(&partitions);
    }
    let cores = groups(&online, |cpu| siblings(root, cpu))?;
    let known = |groups: Vec<CpuSet>| {
        groups
            .into_iter()
            .filter(|group| !group.is_empty())
            .collect()
    };
    Ok(Topology {
        possible: possible.last().map_or(0, |last| last + 1),
        rps_filter: rps_filter(root)?.intersection(&online),
        isolated: isolated.intersection(&online),
        exclusive: CpuSet::new(),
        exclusive_cut: false,
        nohz_full: read_list(root, &format!("{CPU}/nohz_full"))?
            .unwrap_or_default()
            .intersection(&online),
        l3_domains: known(groups(&online, |cpu| l3_domain(root, cpu))?),
        packages: packages(root, &online)?,
        speed_classes: speed_classes(root, &online, &cores)?,
        cores,
        nodes: read_nodes(root, &online)?,
        online,
    })
}

/// See [`Topology::rps_filter`].
pub(crate) fn rps_filter(root: &Root) -> Result<CpuSet, FileError> {
    let isolated = read_list(root, &format!("{CPU}/isolated"))?.unwrap_or_default();
    let mut nohz_full = read_list(root, &format!("{CPU}/nohz_full"))?.unwrap_or_default();
    if !nohz_full.is_empty() {
        nohz_full.insert(0);
    }
    Ok(isolated.union(&nohz_full))
}

/// The online CPUs, from the file or, on kernels and trees without it, from the CPUs' own directories.
pub(crate) fn read_online(root: &Root) -> Result<CpuSet, FileError> {
    let path = format!("{CPU}/online");
    if let Some(online) = read_list(root, &path)? {
        if online.is_empty() {
            return Err(
                root.content_error(&path, "lists no online CPU; is /sys an incomplete copy?")
            );
        }
        return Ok(online);
    }
    let mut online = CpuSet::new();
    for name in root.list(CPU)?.unwrap_or_default() {
        let Some(cpu) = numbered(&name, "cpu", MAX_CPUS) else {
            continue;
        };
        let state: Option<u8> = read_number(root, &format!("{CPU}/{name}/online"))?;
        if state != Some(0) {
            online.insert(cpu);
        }
    }
    if online.is_empty() {
        // A dump without the CPUs' directories may still have a complete header of `/proc/interrupts`.
        let interrupts = root.read_opt("/proc/interrupts")?.unwrap_or_default();
        online = interrupts
            .split_once('\n')
            .map(|(header, _)| Interrupts::cpus(header))
            .unwrap_or_default();
    }
    if online.is_empty() {
        // The error of reading the file itself names the path and the fix.
        root.read(&path)?;
    }
    Ok(online)
}

fn siblings(root: &Root, cpu: u32) -> Result<CpuSet, FileError> {
    let topology = format!("{CPU}/cpu{cpu}/topology");
    // Kernels before 5.3 have only the first names, which still exist in 6.18.
    for (list, mask) in [
        ("thread_siblings_list", "thread_siblings"),
        ("core_cpus_list", "core_cpus"),
    ] {
        if let Some(cpus) = read_cpus(
            root,
            &format!("{topology}/{list}"),
            &format!("{topology}/{mask}"),
        )? {
            return Ok(cpus);
        }
    }
    Ok(CpuSet::single(cpu))
}

fn packages(root: &Root, online: &CpuSet) -> Result<Vec<CpuSet>, FileError> {
    // If the file is absent for one CPU, it is absent for all.
    match online.first() {
        Some(first) if !package(root, first)?.is_empty() => {
            groups(online, |cpu| package(root, cpu))
        }
        _ => Ok(Vec::new()),
    }
}

fn package(root: &Root, cpu: u32) -> Result<CpuSet, FileError> {
    // The second name is new in 5.3; the first still exists in 6.18.
    for name in ["core_siblings_list", "package_cpus_list"] {
        if let Some(cpus) = read_list(root, &format!("{CPU}/cpu{cpu}/topology/{name}"))? {
            return Ok(cpus);
        }
    }
    Ok(CpuSet::new())
}

/// Kinds of cores by the PMUs of hybrid x86, or by `cpu_capacity` (arm64, and newer hybrid x86), which is 1024
/// for the fastest.
fn speed_classes(root: &Root, online: &CpuSet, cores: &[CpuSet]) -> Result<Vec<CpuSet>, FileError> {
    if let Some(slow) = read_list(root, "/sys/devices/cpu_atom/cpus")? {
        let classes = [online.difference(&slow), online.intersection(&slow)];
        let several = classes.iter().all(|class| !class.is_empty());
        return Ok(if several {
            classes.to_vec()
        } else {
            Vec::new()
        });
    }
    let mut classes: BTreeMap<Reverse<u32>, CpuSet> = BTreeMap::new();
    for core in cores {
        let Some(first) = core.first() else { continue };
        // If the file is absent for one core, it is absent for all.
        let Some(capacity) = read_number(root, &format!("{CPU}/cpu{first}/cpu_capacity"))? else {
            return Ok(Vec::new());
        };
        let class = classes.entry(Reverse(capacity)).or_default();
        *class = class.union(core);
    }
    Ok(if classes.len() > 1 {
        classes.into_values().collect()
    } else {
        Vec::new()
    })
}

/// The CPUs that share this CPU's cache of level 3, whatever its index; empty without one.
fn l3_domain(root: &Root, cpu: u32) -> Result<CpuSet, FileError> {
    let cache = format!("{CPU}/cpu{cpu}/cache");
    let is_l3 = |index: &str| -> Result<bool, FileError> {
        let level: Option<u8> = read_number(root, &format!("{cache}/{index}/level"))?;
        Ok(level == Some(3))
    };
    // It is index3 on nearly every machine; the others are listed.
    let mut index = "index3".to_owned();
    if !is_l3(&index)? {
        let mut listed = root.list(&cache)?.unwrap_or_default().into_iter();
        index = loop {
            match listed.next() {
                Some(name) if name.starts_with("index") && is_l3(&name)? => break name,
                Some(_) => {}
                None => return Ok(CpuSet::new()),
            }
        };
    }
    let shared = format!("{cache}/{index}/shared_cpu");
    Ok(read_cpus(root, &format!("{shared}_list"), &format!("{shared}_map"))?.unwrap_or_default())
}

/// The size of a CPU's cache of level 3 in bytes, if reported (`size`: `32768K`).
pub fn l3_size(root: &Root, cpu: u32) -> Result<Option<u64>, FileError> {
    let path = format!("{CPU}/cpu{cpu}/cache/index3/size");
    root.parse_opt(&path, |text| {
        let kib = text.trim().strip_suffix('K');
        let kib = kib.and_then(|kib| kib.parse::<u64>().ok());
        let size = kib.map(|kib| kib.saturating_mul(1024));
        size.ok_or_else(|| root.content_error(&path, "is not a size such as `32768K`"))
    })
}

/// Divides the CPUs into groups, reading once for each group. A CPU that is in two groups stays in the first,
/// and every CPU asked for is in its own group unless that is empty.
fn groups(
    cpus: &CpuSet,
    group_of: impl Fn(u32) -> Result<CpuSet, FileError>,
) -> Result<Vec<CpuSet>, FileError> {
    let mut left = cpus.clone();
    let mut groups = Vec::new();
    while let Some(cpu) = left.first() {
        let siblings = group_of(cpu)?;
        let group = siblings.intersection(&left);
        left = left.difference(&group).difference(&CpuSet::single(cpu));
        groups.push(if siblings.is_empty() {
            siblings
        } else {
            group.union(&CpuSet::single(cpu))
        });
    }
    Ok(groups)
}

fn read_nodes(root: &Root, online: &CpuSet) -> Result<BTreeMap<u32, Node>, FileError> {
    let mut nodes = BTreeMap::new();
    // Kernels before 2.6.24 do not report it.
    let with_memory =
        read_list(root, &format!("{NODE}/has_memory"))?.filter(|nodes| !nodes.is_empty());
    for name in root.list(NODE)?.unwrap_or_default() {
        let Some(id) = numbered(&name, "node", MAX_NODES) else {
            continue;
        };
        let path = format!("{NODE}/{name}");
        // Kernels before 2.6.25 print only the mask.
        let cpus = read_cpus(root, &format!("{path}/cpulist"), &format!("{path}/cpumap"))?
            .unwrap_or_default();
        let without_memory = with_memory.as_ref().is_some_and(|with| !with.contains(id));
        nodes.insert(
            id,
            Node {
                cpus: cpus.intersection(online),
                without_memory,
                distances: BTreeMap::new(),
            },
        );
    }
    if nodes.is_empty() {
        nodes.insert(
            0,
            Node {
                cpus: online.clone(),
                ..Node::default()
            },
        );
        return Ok(nodes);
    }
    // Column k of a distance file is the k-th online node, not node k; in some dumps it is the k-th possible one.
    let listed = |name: &str| -> Result<Vec<u32>, FileError> {
        let ids = read_list(root, &format!("{NODE}/{name}"))?.unwrap_or_default();
        Ok(ids.iter().collect())
    };
    let possible = listed("possible")?;
    let mut online = listed("online")?;
    if online.is_empty() {
        online.extend(nodes.keys());
    }
    for (id, node) in &mut nodes {
        let path = format!("{NODE}/node{id}/distance");
        let Some(text) = root.read_opt(&path)? else {
            continue;
        };
        let found = text.split_whitespace().count();
        let columns = [&online, &possible]
            .into_iter()
            .find(|ids| ids.len() == found);
        let Some(columns) = columns else {
            let reason = format!("has {found} distances for {} nodes", online.len());
            return Err(root.content_error(&path, reason));
        };
        for (column, distance) in columns.iter().zip(text.split_whitespace()) {
            // The kernel keeps a distance in a byte.
            let distance: u8 = distance.parse().map_err(|_| {
                let reason = "is not a distance; expected numbers up to 255 such as `10 21`";
                root.content_error(&path, format!("`{}` {reason}", shown(distance)))
            })?;
            node.distances.insert(*column, distance.into());
        }
    }
    Ok(nodes)
}
