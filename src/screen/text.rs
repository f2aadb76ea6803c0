//! Lines, columns and numbers, as all screens have them.

use nicpin::cpuset::CpuSet;
use nicpin::machine::Role;
pub(crate) use nicpin::machine::wording::{count, speed};
use nicpin::plan::HostSummary;

/// CPUs for people: a whole node or the whole machine by its name, otherwise a short list.
pub(crate) fn cpus(host: &HostSummary, cpus: &CpuSet) -> String {
    let node = host
        .nodes
        .iter()
        .find(|node| node.cpus == *cpus)
        .filter(|_| host.nodes.len() > 1);
    match (cpus.len(), node) {
        (0, _) => "none".to_owned(),
        (1, _) => cpus.to_string(),
        (_, Some(node)) => format!("all of node {}", node.node),
        _ if host.online.is_subset(cpus) => "all CPUs".to_owned(),
        _ => cpus.short(),
    }
}

/// The queue of a vector: `3`, `rx 3`, `tx 3`, `rdma 3`; its role where it has none.
pub(crate) fn queue(role: Role, queue: Option<u32>) -> String {
    let role = match role {
        Role::Combined => "",
        Role::Rx => "rx",
        Role::Tx => "tx",
        Role::Rdma => "rdma",
        Role::Control => "control",
    };
    let queue = queue.map(|queue| queue.to_string()).unwrap_or_default();
    format!("{role} {queue}").trim().to_owned()
}

/// A link's speed in few characters: `40G`, `2.5G`, `100M`.
pub(crate) fn short_speed(mbps: u32) -> String {
    speed(mbps).replace(" Gbit/s", "G").replace(" Mbit/s", "M")
}

/// A rate in few characters: `0`, `0.5`, `870`, `12.3k`, `4.1M`.
pub(crate) fn rate(per_second: f64) -> String {
    match per_second {
        0.0 => "0".to_owned(),
        // Not "0.0": a few interrupts are more than none.
        few if few < 0.05 => "<0.1".to_owned(),
        few if few < 9.95 => format!("{few:.1}"),
        some if some < 999.5 => format!("{some:.0}"),
        many if many < 999_950.0 => format!("{:.1}k", many / 1e3),
        many if many < 999_950_000.0 => format!("{:.1}M", many / 1e6),
        many => format!("{:.1}G", many / 1e9),
    }
}

/// Numbers as a list of ranges.
pub(crate) fn ranges(numbers: &[u32]) -> String {
    let mut numbers = numbers.to_vec();
    numbers.sort_unstable();
    numbers.dedup();
    let ranges = numbers
        .chunk_by(|a, b| a.checked_add(1) == Some(*b))
        .map(|range| match range {
            [first, .., last] => format!("{first}-{last}"),
            numbers => numbers.iter().map(u32::to_string).collect(),
        });
    ranges.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_ranges() {
        let numbers = [u32::MAX, 7, 9000, 5, 9001, 6, 7, 9];
        assert_eq!(ranges(&numbers), "5-7,9,9000-9001,4294967295");
        assert_eq!((ranges(&[4]).as_str(), ranges(&[]).as_str()), ("4", ""));
    }

    #[test]
    fn rates_are_short() {
        for (rate, text) in [
            (0.0, "0"),
            (0.01, "<0.1"),
            (0.5, "0.5"),
            (9.96, "10"),
            (870.2, "870"),
            (999.6, "1.0k"),
            (12_345.0, "12.3k"),
            (999_960.0, "1.0M"),
            (4.1e6, "4.1M"),
            (4.96e9, "5.0G"),
        ] {
            assert_eq!(super::rate(rate), text);
        }
        assert_eq!(
            [40_000, 2_500, 100].map(short_speed),
            ["40G", "2.5G", "100M"]
        );
    }
}
