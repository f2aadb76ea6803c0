//! The machine's CPUs, how they share cores, L3 caches and NUMA nodes, and the memory of each node, from
//! `/sys/devices/system/{cpu,node}` (`Documentation/admin-guide/cputopology.rst`,
//! `Documentation/ABI/stable/sysfs-devices-node`, `Documentation/admin-guide/numastat.rst`): never from `nproc` or a
//! process's own affinity, which show the CPUs that this process may use.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::cpuset::{CpuSet, MAX_CPUS, shown};
use crate::machine::topology::{NodeUsage, Pages};
use crate::machine::{Node, Topology};
use crate::read::files::{Dir, MAX_NODES, number, number_after};
use crate::read::interrupts::{INTERRUPTS, columns};
use crate::read::kept_off;
use crate::root::{Result, Root};

const CPU: &str = "/sys/devices/system/cpu";
const NODE: &str = "/sys/devices/system/node";

pub fn read(root: &Root) -> Result<Topology> {
    let online = read_online(root)?;
    let all = root.dir(CPU);
    let cores = groups(&online, |cpu| {
        Ok(shared(root, cpu, ["thread_siblings", "core_cpus"])?
            .unwrap_or_else(|| CpuSet::single(cpu)))
    })?;
    Ok(Topology {
        possible: all
            .read_list("possible")?
            .union(&online)
            .last()
            .map_or(0, |last| last + 1),
        rps_filter: rps_filter(root)?.intersection(&online),
        isolated: all
            .read_list("isolated")?
            .union(
                &root
                    .dir("/sys/fs/cgroup")
                    .read_list("cpuset.cpus.isolated")?,
            )
            .intersection(&online),
        nohz_full: all.read_list("nohz_full")?.intersection(&online),
        kept_off: kept_off::read(root, &online)?,
        l3_domains: cache_domains(root, &online, &cores)?,
        packages: packages(root, &online)?,
        speed_classes: speed_classes(root, &online, &cores)?,
        cores,
        nodes: read_nodes(&root.dir(NODE), &online)?,
        online,
        ..Topology::default()
    })
}

pub(crate) fn rps_filter(root: &Root) -> Result<CpuSet> {
    let all = root.dir(CPU);
    let mut nohz_full = all.read_list("nohz_full")?;
    if !nohz_full.is_empty() {
        nohz_full.insert(0);
    }
    Ok(all.read_list("isolated")?.union(&nohz_full))
}

/// From the file or, on kernels and trees without it, from the CPUs' own directories.
pub(crate) fn read_online(root: &Root) -> Result<CpuSet> {
    let all = root.dir(CPU);
    if let Some(online) = all.read_as("online", CpuSet::parse_list)? {
        if online.is_empty() {
            return Err(root.content_error(
                &all.file("online"),
                "lists no online CPU; is /sys an incomplete copy?",
            ));
        }
        return Ok(online);
    }
    let mut online = CpuSet::new();
    for name in root.read_names(CPU)? {
        if let Some(cpu) = number_after(&name, "cpu", MAX_CPUS) {
            if all.dir(&name).read_as("online", number)? != Some(0_u8) {
                online.insert(cpu);
            }
        }
    }
    if online.is_empty() {
        // A dump without the CPUs' directories may still have a complete header of `/proc/interrupts`.
        let interrupts = root.read_text(INTERRUPTS)?;
        online = columns(
            interrupts
                .split_once('\n')
                .map(|(header, _)| header)
                .unwrap_or_default(),
        )
        .collect();
    }
    if online.is_empty() {
        // The error of reading the file names the path and the fix.
        root.read(&all.file("online"))?;
    }
    Ok(online)
}

fn cpu_dir<'a>(root: &'a Root, cpu: u32, name: &str) -> Dir<'a> {
    root.dir(format!("{CPU}/cpu{cpu}/{name}"))
}

/// The CPUs that share something with this one, from the first of two files: kernels before 5.3 have only the first
/// name, which still exists in 6.18.
fn shared(root: &Root, cpu: u32, names: [&str; 2]) -> Result<Option<CpuSet>> {
    let topology = cpu_dir(root, cpu, "topology");
    for name in names {
        let cpus = topology.read_cpus([&format!("{name}_list"), name])?;
        if cpus.is_some() {
            return Ok(cpus);
        }
    }
    Ok(None)
}

fn packages(root: &Root, online: &CpuSet) -> Result<Vec<CpuSet>> {
    groups(online, |cpu| {
        let package = shared(root, cpu, ["core_siblings", "package_cpus"])?;
        Ok(package.unwrap_or_default())
    })
}

/// Kinds of cores by the PMUs of hybrid x86, which has one or two kinds of slow cores, or by `cpu_capacity` (arm64, and
/// newer hybrid x86), which is 1024 for the fastest.
fn speed_classes(root: &Root, online: &CpuSet, cores: &[CpuSet]) -> Result<Vec<CpuSet>> {
    let (mut classes, mut rest) = (BTreeMap::new(), online.clone());
    for (speed, pmu) in (0..).zip(["cpu_lowpower", "cpu_atom"]) {
        let slow = root.dir("/sys/devices").read_list(&format!("{pmu}/cpus"))?;
        classes.insert(Reverse(speed), rest.intersection(&slow));
        rest = rest.difference(&slow);
    }
    classes.insert(Reverse(u32::MAX), rest);
    classes.retain(|_, cpus| !cpus.is_empty());
    if classes.len() == 1 {
        classes.clear();
        for core in cores {
            let Some(first) = core.first() else { continue };
            let file = format!("{CPU}/cpu{first}/cpu_capacity");
            // If the file is absent for one core, it is absent for all.
            let Some(capacity) = root.read_as(&file, number)? else {
                return Ok(Vec::new());
            };
            classes.entry(Reverse(capacity)).or_default().add(core);
        }
    }
    if classes.len() == 1 {
        classes.clear();
    }
    Ok(classes.into_values().collect())
}

fn cache(root: &Root, cpu: u32, wanted: u8) -> Result<Option<Dir<'_>>> {
    let cache = cpu_dir(root, cpu, "cache");
    // Level 3 is the last on nearly every machine.
    let names = cache.names()?;
    for name in names.iter().rev().filter(|name| name.starts_with("index")) {
        let index = cache.dir(name);
        if index.read_as("level", number)? == Some(wanted) {
            return Ok(Some(index));
        }
    }
    Ok(None)
}

fn cache_domains(root: &Root, online: &CpuSet, cores: &[CpuSet]) -> Result<Vec<CpuSet>> {
    for level in [3, 2] {
        let domains = groups(online, |cpu| {
            let cache = cache(root, cpu, level)?;
            let cpus = cache.map(|cache| cache.read_cpus(["shared_cpu_list", "shared_cpu_map"]));
            Ok(cpus.transpose()?.flatten().unwrap_or_default())
        })?;
        let has_cores = domains.iter().any(|domain| !cores.contains(domain));
        if level == 3 && !domains.is_empty() || has_cores {
            return Ok(domains);
        }
    }
    Ok(Vec::new())
}

/// In bytes (`size`: `32768K`).
pub fn l3_size(root: &Root, cpu: u32) -> Result<Option<u64>> {
    let Some(cache) = cache(root, cpu, 3)? else {
        return Ok(None);
    };
    cache.read_as("size", |text| {
        let kib = text.trim().strip_suffix('K');
        kib.and_then(|kib| kib.parse::<u64>().ok())
            .map(|kib| kib.saturating_mul(1024))
            .ok_or("is not a size such as `32768K`")
    })
}

/// Reads once for each group. A CPU in two groups stays in the first, and is in its own group; if that is empty, in
/// none.
fn groups(cpus: &CpuSet, group_of: impl Fn(u32) -> Result<CpuSet>) -> Result<Vec<CpuSet>> {
    let (mut left, mut groups) = (cpus.clone(), Vec::new());
    while let Some(cpu) = left.first() {
        let whole = group_of(cpu)?;
        let group = whole.intersection(&left).union(&CpuSet::single(cpu));
        left = left.difference(&group);
        groups.extend((!whole.is_empty()).then_some(group));
    }
    Ok(groups)
}

fn read_nodes(all: &Dir, online: &CpuSet) -> Result<BTreeMap<u32, Node>> {
    let mut nodes = BTreeMap::new();
    // Kernels before 2.6.24 do not report nodes with memory.
    let with_memory = all.read_list("has_memory")?;
    for name in all.names()? {
        let Some(id) = number_after(&name, "node", MAX_NODES) else {
            continue;
        };
        // Kernels before 2.6.25 print only the mask.
        nodes.insert(
            id,
            Node {
                cpus: all
                    .dir(&name)
                    .read_cpus(["cpulist", "cpumap"])?
                    .unwrap_or_default()
                    .intersection(online),
                without_memory: !with_memory.is_empty() && !with_memory.contains(id),
                ..Node::default()
            },
        );
    }
    if nodes.is_empty() {
        let cpus = online.clone();
        nodes.insert(
            0,
            Node {
                cpus,
                ..Node::default()
            },
        );
    }
    // Column k of a distance file is the k-th online node, not node k; in some dumps it is the k-th possible node.
    let possible = all.read_list("possible")?.iter().collect();
    let mut online: Vec<u32> = all.read_list("online")?.iter().collect();
    if online.is_empty() {
        online.extend(nodes.keys());
    }
    for (id, node) in &mut nodes {
        let file = format!("node{id}/distance");
        // The kernel stores a distance in a byte.
        let distance = |word: &str| {
            let expected = "expected numbers up to 255 such as `10 21`";
            word.parse::<u8>()
                .map_err(|_| format!("`{}` is not a distance; {expected}", shown(word)))
        };
        let parse =
            |text: &str| -> Result<Vec<u8>, _> { text.split_whitespace().map(distance).collect() };
        let Some(distances) = all.read_as(&file, parse)? else {
            continue;
        };
        let Some(columns) = [&online, &possible]
            .into_iter()
            .find(|ids| ids.len() == distances.len())
        else {
            return Err(all.root.content_error(
                &all.file(&file),
                format!(
                    "has {} distances for {} nodes",
                    distances.len(),
                    online.len()
                ),
            ));
        };
        node.distances = columns
            .iter()
            .copied()
            .zip(distances.into_iter().map(u32::from))
            .collect();
    }
    Ok(nodes)
}

/// In KiB; nodes without `meminfo` are absent.
pub(crate) fn memory(root: &Root, topology: &Topology) -> Result<BTreeMap<u32, u64>> {
    let mut totals = BTreeMap::new();
    for &node in topology.nodes.keys() {
        totals.extend(meminfo(root, node)?.map(|(total, _)| (node, total)));
    }
    Ok(totals)
}

/// No part of a [`Machine`](crate::machine::Machine), because it changes at any time. Empty in a capture.
pub fn memory_usage(root: &Root, node: u32) -> Result<NodeUsage> {
    Ok(NodeUsage {
        pages: root.read_as(&format!("{NODE}/node{node}/numastat"), |text| {
            Pages::parse(text).ok_or("not a list of page counts such as `numa_hit 12`")
        })?,
        free_kib: meminfo(root, node)?.and_then(|(_, free)| free),
    })
}

fn meminfo(root: &Root, node: u32) -> Result<Option<(u64, Option<u64>)>> {
    root.read_as(&format!("{NODE}/node{node}/meminfo"), |text| {
        parse_meminfo(text).ok_or("has no line such as `Node 0 MemTotal: 16384 kB`")
    })
}

fn parse_meminfo(text: &str) -> Option<(u64, Option<u64>)> {
    let value = |name: &str| -> Option<u64> {
        let line = text.lines().find(|line| is_line(line, name))?;
        let (_, value) = line.split_once(':')?;
        value.trim().strip_suffix(" kB")?.parse().ok()
    };
    Some((value("MemTotal")?, value("MemFree")))
}

fn is_line(line: &str, name: &str) -> bool {
    let named = line.split_once(':').map(|(named, _)| named);
    named.and_then(|named| named.rsplit(' ').next()) == Some(name)
}

/// For a capture: the lines of a `meminfo` that change only with the machine; `None` for any other file.
pub fn for_capture(path: &str, text: &str) -> Option<String> {
    let node = path.strip_prefix(NODE)?;
    (node.starts_with("/node") && node.ends_with("/meminfo")).then(|| {
        text.split_inclusive('\n')
            .filter(|line| is_line(line, "MemTotal"))
            .collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEMINFO: &str = "Node 1 MemTotal:         192892 kB\nNode 1 MemFree:           88608 kB\n\
                           Node 1 MemUsed:          104284 kB\nNode 1 SwapCached:            0 kB\n";

    #[test]
    fn a_nodes_memory() {
        assert_eq!(parse_meminfo(MEMINFO), Some((192_892, Some(88_608))));
        let bare = for_capture("/sys/devices/system/node/node1/meminfo", MEMINFO).unwrap();
        assert_eq!(bare, "Node 1 MemTotal:         192892 kB\n");
        assert_eq!(parse_meminfo(&bare).unwrap().1, None);
        for bad in [
            "",
            "Node 0 MemFree: 1 kB\n",
            "Node 0 MemTotal: x kB\n",
            "Node 0 MemTotal: 3 MB\n",
        ] {
            assert_eq!(parse_meminfo(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn pages_by_what_was_asked_for() {
        let text = "numa_hit 12\nnuma_miss 0\nnuma_foreign 3\ninterleave_hit 4\nlocal_node 11\nother_node 1\n";
        let pages = Pages {
            hit: 12,
            miss: 0,
            foreign: 3,
            interleave_hit: 4,
            local: 11,
            other: 1,
        };
        assert_eq!(Pages::parse(text), Some(pages));
        assert_eq!(Pages::parse(&format!("{text}numa_new 7\n")), Some(pages));
        for bad in ["", "numa_hit 12\n", &text.replace("12", "many"), "numa_hit"] {
            assert_eq!(Pages::parse(bad), None, "{bad:?}");
        }
    }
}
