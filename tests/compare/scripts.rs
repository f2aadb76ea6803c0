//! The card makers' scripts and rss-ladder: a card's vectors by IRQ number onto the CPUs of its node, in turn.

use std::collections::BTreeSet;

use nicpin::cpuset::CpuSet;
use nicpin::machine::Interface;

use super::facts::{Facts, State};

/// `mlnx_affinity start`: for each interface of an RDMA device `set_irq_affinity_bynode.sh`, or, when the node is
/// not known, `set_irq_affinity.sh`.
pub fn mlnx_affinity(facts: &Facts) -> State {
    let mut state = State::found(facts);
    let rdma = |interface: &&Interface| interface.driver.as_deref().is_some_and(|d| d.starts_with("mlx"));
    for interface in facts.interfaces().filter(rdma) {
        let cpus: Vec<u32> = match interface.device.node {
            Some(node) => {
                facts.node_cpus(node).map(|cpus| as_the_script_reads(&cpus.to_string())).unwrap_or_default()
            }
            // From 0 to the highest number in /proc/cpuinfo.
            None => (0..=facts.host.topology.online.last().unwrap()).collect(),
        };
        // Names like `eth2-0` first, then all that carry the card's address but for `async`.
        let own = facts.lines.iter().filter(|(_, names)| follows(names, &interface.name));
        let mut irqs: Vec<u32> = own.map(|&(irq, _)| irq).collect();
        if irqs.is_empty() {
            let of_card = facts.grep(&interface.device.address);
            irqs = of_card.into_iter().filter(|&irq| !facts.names(irq).contains("async")).collect();
        }
        // Without a CPU the script ends in a division by zero.
        for (irq, cpu) in irqs.into_iter().zip(cpus.into_iter().cycle()) {
            state.put(irq, cpu);
        }
    }
    state
}

/// A name followed by anything but a letter or a digit.
fn follows(text: &str, name: &str) -> bool {
    let end = |(at, _): (usize, &str)| text[at + name.len()..].chars().next();
    text.match_indices(name).any(|found| end(found).is_some_and(|c| !c.is_ascii_alphanumeric() && c != ','))
}

/// The script's reading of a CPU list: single numbers are lost as soon as there is a range.
fn as_the_script_reads(list: &str) -> Vec<u32> {
    let ranges: Vec<&str> = list.split(',').filter(|part| part.contains('-')).collect();
    let kept = if ranges.is_empty() { list.to_owned() } else { ranges.join(",") };
    CpuSet::parse_list(&kept).unwrap().iter().collect()
}

/// `set_irq_affinity -x local IF...`.
pub fn set_irq_affinity(facts: &Facts) -> State {
    let mut state = State::found(facts);
    // What the shell variable holds when a node has no CPU: the last node's number, later the last CPU's.
    let mut left_over = facts.host.topology.nodes.keys().last().copied().unwrap_or(0);
    for interface in facts.interfaces() {
        let irqs = found_by_intel(facts, interface);
        // An unknown node is taken for node 0.
        let cpus: Vec<u32> = facts
            .node_cpus(interface.device.node.unwrap_or(0))
            .map(|cpus| cpus.iter().collect())
            .unwrap_or_default();
        for (at, irq) in irqs.into_iter().enumerate() {
            if cpus.is_empty() {
                state.put(irq, left_over);
                continue;
            }
            // The transmit queue is the place in the list of CPUs, whatever queue the vector serves.
            let ring = at % cpus.len();
            left_over = cpus[ring];
            state.put(irq, left_over);
            state.put_xps(&interface.name, u32::try_from(ring).unwrap(), CpuSet::single(left_over));
        }
    }
    state
}

fn found_by_intel(facts: &Facts, interface: &Interface) -> Vec<u32> {
    let named = |names: &str| {
        let start = names.find(&format!("{}-", interface.name));
        start.is_some_and(|start| names[start..].contains("TxRx"))
    };
    let queues: Vec<u32> =
        facts.lines.iter().filter(|(_, names)| named(names)).map(|&(irq, _)| irq).collect();
    if !queues.is_empty() {
        return queues;
    }
    let any = facts.grep(&interface.name);
    if !any.is_empty() {
        return any;
    }
    let control =
        |irq: &u32| ["fdir", "async", "misc", "ctrl"].iter().any(|word| facts.names(*irq).contains(word));
    let mut irqs = facts.msi[&interface.name].clone();
    irqs.sort_unstable();
    irqs.retain(|irq| !facts.names(*irq).is_empty() && !control(irq));
    irqs
}

/// `rss-ladder IF`: each pattern of names (`IF-TxRx-`, `IF-rx-`) from the start of the node's CPUs.
pub fn rss_ladder(facts: &Facts) -> State {
    let mut state = State::found(facts);
    for interface in facts.interfaces() {
        // CPUs are rows of `lscpu -p`, which are their numbers only while none is offline.
        let node = interface.device.node.unwrap_or(0);
        let rows: Vec<u32> = (0..)
            .zip(facts.host.topology.online.iter())
            .filter(|&(_, cpu)| facts.host.topology.node_of(cpu) == Some(node))
            .map(|(row, _)| row)
            .collect();
        let queue_names = |names: &str| {
            let name = &names[names.find(&interface.name)?..];
            let name = name.split(' ').next()?;
            Some(name[interface.name.len()..].to_owned()).filter(|rest| !rest.is_empty())
        };
        let patterns: BTreeSet<String> = facts
            .lines
            .iter()
            .filter_map(|(_, names)| queue_names(names))
            .map(|rest| rest.chars().filter(|c| !c.is_ascii_digit()).collect())
            .collect();
        'patterns: for pattern in patterns {
            let irqs = facts.grep(&format!("{}{pattern}", interface.name));
            for (irq, &cpu) in irqs.into_iter().zip(rows.iter().cycle()) {
                // The first refused write ends the run.
                if !state.put(irq, cpu) {
                    break 'patterns;
                }
            }
        }
    }
    state
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_numbers_of_a_list_are_lost_beside_ranges() {
        assert_eq!(as_the_script_reads("0-1,3,8-9,11"), [0, 1, 8, 9]);
        assert_eq!(as_the_script_reads("1,3"), [1, 3]);
    }

    #[test]
    fn a_name_is_not_the_beginning_of_another() {
        assert!(follows("eth1-0", "eth1") && !follows("eth10-0", "eth1"));
    }
}
