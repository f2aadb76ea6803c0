//! Measures how fast the CPUs of one node read the memory of another, for `nicpin nodes --bandwidth`.
//!
//! One thread on each core of a node reads its share of one buffer in order, again and again. On most machines the link
//! between the nodes is the limit; other work on the machine lowers the rate.

use std::hint::black_box;
use std::panic::resume_unwind;
use std::time::{Duration, Instant};
use std::{io, thread};

use anyhow::{Result, anyhow, ensure};

use nicpin::cpuset::{CpuSet, NodeSet};
use nicpin::machine::topology::Rate;
use nicpin::machine::{Machine, Topology};
use nicpin::root::errno_words;
use nicpin::root::sys::{self, MemPage};

const TIME: Duration = Duration::from_millis(250);
/// Largest buffer in bytes: larger than any cache, and quickly filled.
const MOST: u64 = 1 << 30;
/// Smallest buffer in bytes, unless the node has less memory.
const LEAST: u64 = 64 << 20;

pub struct BandwidthTest {
    /// Nodes whose memory is read, and the bytes of the buffer on each.
    pub memory: Vec<(u32, u64)>,
    pub readers: Vec<(u32, CpuSet)>,
}

impl BandwidthTest {
    /// `allowed` and `nodes` restrict this process. `free_kib` is the free memory by node: at most a quarter is taken.
    /// `caches` is the size of a node's caches in bytes, if known: a buffer is eight times as large.
    pub fn new(
        machine: &Machine,
        allowed: &CpuSet,
        nodes: &NodeSet,
        free_kib: impl Fn(u32) -> Option<u64>,
        caches: Option<u64>,
    ) -> Self {
        let wanted = caches.unwrap_or(0).saturating_mul(8).clamp(LEAST, MOST);
        let size = |node| {
            let free = free_kib(node).map_or(LEAST * 4, |kib| kib.saturating_mul(1024));
            wanted.min(free / 4) & !0xf_ffff
        };
        let memory = nodes.iter().map(|node| (node, size(node)));
        let topology = &machine.topology;
        let readers = topology
            .nodes
            .iter()
            .map(|(&id, node)| (id, readers_of(topology, &node.cpus, allowed)));
        Self {
            memory: memory.filter(|&(_, size)| size > 0).collect(),
            readers: readers.filter(|(_, cpus)| !cpus.is_empty()).collect(),
        }
    }

    pub fn pairs(&self) -> usize {
        self.memory.len() * self.readers.len()
    }

    pub fn run(&self, mut before: impl FnMut(usize)) -> Result<Vec<Rate>> {
        let mut rates = Vec::new();
        for &(memory_of, size) in &self.memory {
            before(rates.len());
            let buffer = buffer_on(memory_of, size)?;
            for (cpus_of, cpus) in &self.readers {
                before(rates.len());
                rates.push(Rate {
                    cpus_of: *cpus_of,
                    memory_of,
                    threads: cpus.len(),
                    buffer: size,
                    bytes_per_second: read(&buffer, cpus)?,
                });
            }
        }
        rates.sort_unstable_by_key(|rate| (rate.cpus_of, rate.memory_of));
        Ok(rates)
    }
}

/// Chooses one allowed CPU of each core; isolated ones only if there are no others.
fn readers_of(topology: &Topology, cpus: &CpuSet, allowed: &CpuSet) -> CpuSet {
    let allowed = cpus.intersection(allowed);
    let plain = allowed.difference(&topology.isolated_or_nohz());
    let usable = if plain.is_empty() { allowed } else { plain };
    topology
        .cores
        .iter()
        .filter_map(|core| core.intersection(&usable).first())
        .collect()
}

fn buffer_on(node: u32, size: u64) -> Result<Vec<MemPage>> {
    let refused =
        |answer: io::Error| anyhow!("cannot get memory of node {node}: {}", errno_words(&answer));
    let size = usize::try_from(size).unwrap_or(usize::MAX);
    let buffer = sys::pages_of(node, size).map_err(refused)?;
    let some = [buffer.first(), buffer.get(buffer.len() / 2), buffer.last()];
    for page in some.into_iter().flatten() {
        let got = sys::node_of(page).map_err(refused)?;
        ensure!(
            got == node,
            "requested memory of node {node}, but the kernel returned memory of node {got}"
        );
    }
    Ok(buffer)
}

fn read(buffer: &[MemPage], cpus: &CpuSet) -> Result<u64> {
    let share = (buffer.len() / cpus.len().max(1)).max(1);
    thread::scope(|scope| {
        let mut readers = Vec::new();
        for (cpu, part) in cpus.iter().zip(buffer.chunks_exact(share)) {
            let reader = move || match sys::set_affinity(0, &CpuSet::single(cpu)) {
                Ok(()) => Ok(rate(part)),
                Err(error) => Err(anyhow!("cannot run on CPU {cpu}: {}", errno_words(&error))),
            };
            readers.push(
                thread::Builder::new()
                    .spawn_scoped(scope, reader)
                    .map_err(|error| anyhow!("cannot start a thread: {}", errno_words(&error)))?,
            );
        }
        readers
            .into_iter()
            .map(|reader| reader.join().unwrap_or_else(|panic| resume_unwind(panic)))
            .sum()
    })
}

fn rate(part: &[MemPage]) -> u64 {
    let start = Instant::now();
    let mut bytes = 0_u128;
    while start.elapsed() < TIME {
        let words = black_box(part).iter().flat_map(|page| &page.0);
        black_box(words.fold(0, |sum: u64, word| sum.wrapping_add(*word)));
        bytes += size_of_val(part) as u128;
    }
    let nanoseconds = start.elapsed().as_nanos().max(1);
    u64::try_from(bytes * 1_000_000_000 / nanoseconds).unwrap_or(u64::MAX)
}
