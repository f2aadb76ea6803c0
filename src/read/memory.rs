//! The memory of each node: how much there is, which is a fact of the machine; and how much of it is free and where
//! pages were asked for, which is another at every look and so no part of a [`Machine`](crate::machine::Machine).
//!
//! Read from `/sys/devices/system/node/nodeN/{meminfo,numastat}` (`Documentation/ABI/stable/sysfs-devices-node`,
//! `Documentation/admin-guide/numastat.rst`).

use std::collections::BTreeMap;

use crate::machine::Topology;
use crate::machine::topology::{NodeUsage, Pages};
use crate::root::{FileError, Root};

const NODE: &str = "/sys/devices/system/node";

/// The memory of each node in KiB, 0 for a node without memory; nodes without `meminfo` are absent.
pub(crate) fn totals(root: &Root, topology: &Topology) -> Result<BTreeMap<u32, u64>, FileError> {
    let mut totals = BTreeMap::new();
    for &node in topology.nodes.keys() {
        totals.extend(meminfo(root, node)?.map(|(total, _)| (node, total)));
    }
    Ok(totals)
}

/// Reads the usage of a node's memory; empty for a node without memory, and in a capture.
pub fn usage(root: &Root, node: u32) -> Result<NodeUsage, FileError> {
    let path = format!("{NODE}/node{node}/numastat");
    let pages = match root.read_opt(&path)? {
        Some(text) => Some(Pages::parse(&text).ok_or_else(|| {
            root.content_error(&path, "not a list of page counts such as `numa_hit 12`")
        })?),
        None => None,
    };
    Ok(NodeUsage {
        free_kib: meminfo(root, node)?.and_then(|(_, free)| free),
        pages,
    })
}

/// A node's memory in KiB, and how much of it is free where that is reported.
type Meminfo = (u64, Option<u64>);

fn meminfo(root: &Root, node: u32) -> Result<Option<Meminfo>, FileError> {
    let path = format!("{NODE}/node{node}/meminfo");
    let Some(text) = root.read_opt(&path)? else {
        return Ok(None);
    };
    let expected = "has no line such as `Node 0 MemTotal: 16384 kB`";
    parse_meminfo(&text)
        .map(Some)
        .ok_or_else(|| root.content_error(&path, expected))
}

/// Parses lines such as `Node 0 MemTotal:       16384 kB`.
fn parse_meminfo(text: &str) -> Option<Meminfo> {
    let value = |name: &str| -> Option<Option<u64>> {
        let Some(line) = text.lines().find(|line| name_of(line) == Some(name)) else {
            return Some(None);
        };
        let (number, unit) = line.split_once(':')?.1.trim().split_once(' ')?;
        (unit == "kB").then_some(())?;
        Some(Some(number.parse().ok()?))
    };
    Some((value("MemTotal")??, value("MemFree")?))
}

fn name_of(line: &str) -> Option<&str> {
    line.split_once(':')?.0.rsplit(' ').next()
}

/// The lines of the text that do not change while the machine is the same.
pub fn without_use(text: &str) -> String {
    text.split_inclusive('\n')
        .filter(|line| name_of(line) == Some("MemTotal"))
        .collect()
}

/// The node whose `meminfo` a path is.
pub fn is_meminfo(path: &str) -> bool {
    path.strip_prefix(NODE)
        .is_some_and(|rest| rest.starts_with("/node") && rest.ends_with("/meminfo"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEMINFO: &str = "Node 1 MemTotal:         192892 kB\nNode 1 MemFree:           88608 kB\n\
                           Node 1 MemUsed:          104284 kB\nNode 1 SwapCached:            0 kB\n";

    #[test]
    fn a_nodes_memory() {
        assert_eq!(parse_meminfo(MEMINFO), Some((192_892, Some(88_608))));
        assert_eq!(without_use(MEMINFO), "Node 1 MemTotal:         192892 kB\n");
        assert_eq!(parse_meminfo(&without_use(MEMINFO)).unwrap().1, None);
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
