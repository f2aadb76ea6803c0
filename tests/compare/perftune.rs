//! seastar's perftune: a few cores for interrupts, or all of them, whatever node the card is on.

use nicpin::cpuset::CpuSet;
use nicpin::machine::{Interface, Topology};

use super::facts::{Facts, State};

/// The default mode.
pub fn automatic(facts: &Facts) -> State {
    match interrupt_cpus(&facts.host.topology) {
        Some(cpus) => tuned(facts, &cpus),
        // It asks for a CPU list and changes nothing.
        None => State::found(facts),
    }
}

/// `--mode mq`.
pub fn mq(facts: &Facts) -> State {
    tuned(facts, &facts.host.topology.online)
}

/// The CPUs for interrupts, by the number of cores; `None` where nodes are not alike.
fn interrupt_cpus(topology: &Topology) -> Option<CpuSet> {
    let cores_of = |cpus: &CpuSet| -> Vec<CpuSet> {
        topology.cores.iter().map(|core| core.intersection(cpus)).filter(|core| !core.is_empty()).collect()
    };
    let nodes: Vec<&CpuSet> =
        topology.nodes.values().map(|node| &node.cpus).filter(|cpus| !cpus.is_empty()).collect();
    let shape = |cpus: &CpuSet| (cpus.len(), cores_of(cpus).len());
    if nodes.iter().any(|cpus| shape(cpus) != shape(nodes[0])) {
        return None;
    }
    Some(match (topology.online.len(), topology.cores.len()) {
        (..=4, _) => topology.online.clone(),
        (_, ..=4) => topology.online.iter().take(1).collect(),
        (_, ..=16) => topology.cores[0].clone(),
        _ => {
            let some = |cpus: &&CpuSet| -> Vec<CpuSet> {
                let cores = cores_of(cpus);
                let count = cores.len().div_ceil(16);
                cores.into_iter().take(count).collect()
            };
            nodes.iter().flat_map(some).fold(CpuSet::new(), |all, core| all.union(&core))
        }
    })
}

fn tuned(facts: &Facts, cpus: &CpuSet) -> State {
    let mut state = State::found(facts);
    let topology = &facts.host.topology;
    for interface in facts.interfaces() {
        // One queue for each CPU that takes interrupts, by `ethtool -L`. Here it only ever takes queues away.
        let count = u32::try_from(cpus.len()).unwrap();
        let (rx, tx) = state.queues[&interface.name];
        let separate = interface.channels.is_some_and(|channels| channels.max_combined == 0);
        let queues = (rx.min(count), if separate { tx } else { tx.min(count) });
        state.queues.insert(interface.name.clone(), queues);
        let (first, rest): (Vec<_>, Vec<_>) = vectors(facts, interface)
            .into_iter()
            .partition(|&(queue, _)| queue.is_none_or(|queue| queue < queues.0.max(queues.1)));
        for part in [first, rest] {
            let shares = distribute(topology, cpus, part.len());
            for ((_, irq), share) in part.into_iter().zip(shares) {
                state.put(irq, share.first().unwrap());
            }
        }
        let shares = distribute(topology, &topology.online, queues.1 as usize);
        for (queue, share) in as_listed(queues.1).into_iter().zip(shares) {
            state.put_xps(&interface.name, queue, share);
        }
    }
    state
}

/// The vectors of an interface in the order in which they are given CPUs, with their queues where the names are of
/// the known kinds. Where none is, all vectors in no certain order; here by number.
fn vectors(facts: &Facts, interface: &Interface) -> Vec<(Option<u32>, u32)> {
    let mut irqs = facts.msi[&interface.name].clone();
    if interface.driver.as_deref() == Some("virtio_net") {
        // All cards of the driver, not just this one.
        let all = facts.interfaces().filter(|other| other.driver == interface.driver);
        irqs = all.flat_map(|other| other.device.irqs.clone()).collect();
    } else if irqs.is_empty() {
        irqs.clone_from(&interface.device.irqs);
    }
    irqs.sort_unstable();
    let mut known: Vec<(bool, u32, u32)> = irqs
        .iter()
        .filter_map(|&irq| {
            let names = facts.names(irq);
            Some((names.contains("fdir-"), queue(names)?, irq))
        })
        .collect();
    known.sort_unstable();
    if known.is_empty() {
        return irqs.into_iter().filter(|&irq| !facts.names(irq).is_empty()).map(|irq| (None, irq)).collect();
    }
    // Flow director vectors come after all queues.
    known.into_iter().map(|(fdir, queue, irq)| (Some(if fdir { u32::MAX } else { queue }), irq)).collect()
}

/// The queue in a name of a known kind.
fn queue(name: &str) -> Option<u32> {
    let name = name.split('@').next()?;
    let before = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let intel = ["-TxRx-", "-fp-", "-Tx-Rx-"].iter().any(|kind| before.ends_with(kind));
    let other = ["mlx4-", "mlx5_comp", "mana_q"].contains(&before);
    let virtio =
        before.starts_with("virtio") && (before.ends_with("-input.") || before.ends_with("-output."));
    if intel || other || virtio { name[before.len()..].parse().ok() } else { None }
}

/// `hwloc-distrib`: parts a number of items over nodes, L3 domains, cores and threads, by their CPUs.
fn distribute(topology: &Topology, within: &CpuSet, items: usize) -> Vec<CpuSet> {
    let nodes: Vec<CpuSet> = topology.nodes.values().map(|node| node.cpus.clone()).collect();
    let threads: Vec<CpuSet> = topology.online.iter().map(CpuSet::single).collect();
    let levels = [nodes, topology.l3_domains.clone(), topology.cores.clone(), threads];
    let levels: Vec<Vec<CpuSet>> = levels.into_iter().filter(|level| !level.is_empty()).collect();
    let mut shares = Vec::new();
    if items > 0 {
        divide(&levels, within, items, &mut shares);
    }
    shares
}

fn divide(levels: &[Vec<CpuSet>], within: &CpuSet, items: usize, shares: &mut Vec<CpuSet>) {
    let Some((level, below)) = levels.split_first() else {
        shares.extend(std::iter::repeat_n(within.clone(), items));
        return;
    };
    let parts = level.iter().map(|part| part.intersection(within)).filter(|part| !part.is_empty());
    let mut given = 0;
    for part in parts {
        let chunk = |weight: usize| (weight * items).div_ceil(within.len());
        let own = chunk(given + part.len()) - chunk(given);
        given += part.len();
        match own {
            // Too small for an item of its own: it joins the one before.
            0 => {
                if let Some(last) = shares.last_mut() {
                    *last = last.union(&part);
                }
            }
            1 => shares.push(part),
            _ => divide(below, &part, own, shares),
        }
    }
}

/// The numbers of `tx-N` in the order in which the kernel lists the directories, which is that of a hash of their
/// names (`kernfs_name_hash`, `hash_long` of 64 bits).
fn as_listed(queues: u32) -> Vec<u32> {
    let hash = |queue: &u32| {
        let step = |hash: u64, byte: u8| {
            let byte = u64::from(byte);
            hash.wrapping_add((byte << 4) + (byte >> 4)).wrapping_mul(11)
        };
        let hash = format!("tx-{queue}").bytes().fold(0, step);
        (hash.wrapping_mul(0x61c8_8646_80b5_83eb) >> 32) & 0x7fff_ffff
    };
    let mut numbers: Vec<u32> = (0..queues).collect();
    numbers.sort_by_key(hash);
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_are_listed_as_linux_does() {
        assert_eq!(as_listed(12), [6, 4, 10, 2, 0, 9, 7, 5, 11, 3, 1, 8]);
    }

    #[test]
    fn queues_of_known_names() {
        let names = ["eth0-TxRx-3", "i40e-eth2-TxRx-7", "eth4-fp-2", "mlx5_comp11@pci:0000:94:00.0"];
        assert_eq!(names.map(queue), [Some(3), Some(7), Some(2), Some(11)]);
        let names = ["mlx4-2@0000:82:00.0", "virtio1-output.4", "virtio1-config", "gve-ntfy-blk3@pci:0"];
        assert_eq!(names.map(queue), [Some(2), Some(4), None, None]);
    }
}
