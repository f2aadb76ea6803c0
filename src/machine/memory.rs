//! What the memory of a node is used for at a moment, which is another at every look and so no part of a
//! [`Machine`](crate::machine::Machine).

use serde::Serialize;

/// What a node's memory is used for now. `None`: not told.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct NodeUsage {
    /// Memory that nothing uses, in KiB.
    pub free_kib: Option<u64>,
    /// Pages since boot.
    pub pages: Option<Pages>,
}

/// Pages that were given out since boot (`numastat`), by what was asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Pages {
    /// Asked for here, and got here.
    #[serde(rename = "numa_hit")]
    pub hit: u64,
    /// Asked for elsewhere, and got here.
    #[serde(rename = "numa_miss")]
    pub miss: u64,
    /// Asked for here, and got elsewhere.
    #[serde(rename = "numa_foreign")]
    pub foreign: u64,
    /// Interleaved, and got here as meant.
    #[serde(rename = "interleave_hit")]
    pub interleave_hit: u64,
    /// Got here by a task that ran here.
    #[serde(rename = "local_node")]
    pub local: u64,
    /// Got here by a task that ran elsewhere.
    #[serde(rename = "other_node")]
    pub other: u64,
}

impl Pages {
    /// Parses the six lines; other names are skipped.
    pub fn parse(text: &str) -> Option<Self> {
        let mut pages = Self::default();
        let mut found = 0;
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
            found += 1;
        }
        (found == 6).then_some(pages)
    }
}

/// How fast the CPUs of one node read the memory of another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Rate {
    /// Whose CPUs read.
    pub cpus_of: u32,
    /// Whose memory they read.
    pub memory_of: u32,
    /// How many CPUs read, each a core of its own.
    pub threads: usize,
    /// The size of the buffer in bytes.
    pub buffer: u64,
    /// Bytes a second, by all of them together.
    pub bytes_per_second: u64,
}
