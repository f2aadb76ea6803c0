//! The current usage of a node's memory. It changes all the time and is not part of a
//! [`Machine`](crate::machine::Machine).

use serde::Serialize;

/// The usage of a node's memory; `None` where the kernel does not report it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct NodeUsage {
    /// Unused memory in KiB.
    pub free_kib: Option<u64>,
    /// Page counts since boot.
    pub pages: Option<Pages>,
}

/// Pages allocated since boot (`numastat`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Pages {
    /// Wanted on this node and allocated here.
    #[serde(rename = "numa_hit")]
    pub hit: u64,
    /// Wanted on another node and allocated here.
    #[serde(rename = "numa_miss")]
    pub miss: u64,
    /// Wanted on this node and allocated on another.
    #[serde(rename = "numa_foreign")]
    pub foreign: u64,
    /// Interleaved and allocated here as wanted.
    #[serde(rename = "interleave_hit")]
    pub interleave_hit: u64,
    /// Allocated here by a task on this node.
    #[serde(rename = "local_node")]
    pub local: u64,
    /// Allocated here by a task on another node.
    #[serde(rename = "other_node")]
    pub other: u64,
}

impl Pages {
    /// Parses the six lines; other names are skipped.
    pub fn parse(text: &str) -> Option<Self> {
        let mut pages = Self::default();
        let mut count_of_fields = 0;
        for line in text.lines() {
            let (name, count) = line.split_once(' ')?;
            let field = match name {
                "numa_hit" => &mut pages.hit,
                "numa_miss" => &mut pages.miss,
                "numa_foreign" => &mut pages.foreign,
                "interleave_hit" => &mut pages.interleave_hit,
                "local_node" => &mut pages.local,
                "other_node" => &mut pages.other,
                _ => continue,
            };
            *field = count.trim().parse().ok()?;
            count_of_fields += 1;
        }
        (count_of_fields == 6).then_some(pages)
    }
}

/// The rate at which the CPUs of one node read the memory of another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Rate {
    /// The node of the CPUs that read.
    pub cpus_of: u32,
    /// The node of the memory.
    pub memory_of: u32,
    /// The number of CPUs that read, one per core.
    pub threads: usize,
    /// The size of the buffer in bytes.
    pub buffer: u64,
    /// Bytes per second of all CPUs together.
    pub bytes_per_second: u64,
}
