//! What other tools wrote on the machines of the comparison: a file in `recorded/` for each program, whose first line
//! says how it was called and its version, and in it a line for each machine.
//!
//! A word is a write: `IRQ=CPUS` to `smp_affinity` or `smp_affinity_list`, `IF/tx-N=CPUS` to `xps_cpus`,
//! `IF/combined=N` or `IF/rx=N` to the channels. Left out are interrupts of other devices and `rps_cpus`, by which
//! nothing is measured.
//!
//! # How a recording is made
//!
//! `TREES=DIR cargo test --test it -- compared_with_other_tools::` writes the trees of the built machines; the others are in `fixtures/`.
//! A copy of a tree in memory is given the files that a tool reads and nicpin does not, derived from those that are
//! there: CPU masks beside CPU lists, ids of cores and packages, `/proc/cpuinfo`, `/proc/stat` without load, PCI ids,
//! `ifindex`, an RDMA device for each mlx4 and mlx5 card. Its directories list their entries in the kernel's order.
//!
//! In mount, PID and network namespaces of its own, the unchanged program is run by `chroot` in that copy, for all
//! interfaces that have queue vectors. `/usr` is mounted into it read-only; `/proc` and `/sys` are directories of the
//! copy, which is checked before each run. `ethtool` and `ibdev2netdev` answer from the tree; `ethtool -L` takes
//! channels away, with the directories of their queues, and refuses to add any. `ps` and `systemctl` know of no
//! irqbalance. Files that were written since are the recording.
//!
//! For `systemd-udevd`, `/proc` is a true one with `irq` and `interrupts` of the copy mounted over it, and each
//! interface is added as an `ifb` device of that name and index, whose path in `/sys/devices/virtual/net` leads to the
//! interface of the tree.

use super::facts::{CpuSet, Facts, State};

/// The tools in the order of the table, each with its recording.
pub const TOOLS: [(&str, &str); 10] = [
    ("mlnx_affinity", include_str!("recorded/mlnx_affinity")),
    ("intel -x local", include_str!("recorded/set_irq_affinity")),
    ("rss-ladder", include_str!("recorded/rss-ladder")),
    ("affinitize_nic", include_str!("recorded/affinitize_nic")),
    ("perftune", include_str!("recorded/perftune")),
    ("perftune mq", include_str!("recorded/perftune-mq")),
    ("rpk", include_str!("recorded/rpk")),
    ("systemd spread", include_str!("recorded/systemd-spread")),
    ("systemd local", include_str!("recorded/systemd-local")),
    ("irqbalance", include_str!("recorded/irqbalance")),
];

/// The machine after the writes of a recording. Panics if a write has no place on the machine.
pub fn replay(recording: &str, facts: &Facts) -> State {
    let mut state = State::found(facts);
    let mut lines = recording
        .lines()
        .filter_map(|line| line.strip_prefix(facts.name)?.strip_prefix(':'));
    let writes = lines
        .next()
        .unwrap_or_else(|| panic!("{}: not recorded", facts.name));
    assert_eq!(lines.next(), None, "{}: recorded twice", facts.name);
    for word in writes.split_whitespace() {
        apply(&mut state, word)
            .unwrap_or_else(|| panic!("{}: {word} has no place there", facts.name));
    }
    state
}

/// Returns `None` if the machine does not have what is written to.
fn apply(state: &mut State, write: &str) -> Option<()> {
    let (to, what) = write.split_once('=')?;
    let Some((interface, to)) = to.split_once('/') else {
        let irq = to.parse().ok().filter(|irq| state.cpus.contains_key(irq))?;
        state.put(irq, &CpuSet::parse_list(what).ok()?);
        return Some(());
    };
    let (rx, tx) = state.queues.get_mut(interface)?;
    if let Some(queue) = to.strip_prefix("tx-") {
        let queue = queue.parse().ok().filter(|queue| *queue < *tx)?;
        state.put_xps(interface, queue, CpuSet::parse_list(what).ok()?);
        return Some(());
    }
    let count = what.parse().ok()?;
    match to {
        "combined" => (*rx, *tx) = (count, count),
        "rx" => *rx = count,
        _ => return None,
    }
    Some(())
}
