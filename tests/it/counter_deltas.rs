//! Delta between two samples: counters that wrap; CPUs, vectors and interfaces that appear and vanish.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use itertools::Itertools as _;
use proptest::prelude::*;

use nicpin::cpuset::CpuSet;
use nicpin::machine::sample::{Counters, CpuCounts, Delta, InterfaceCounts, Sample};
use nicpin::machine::{Node, Role, Topology};
use nicpin::report::measure::{MeasuredInterface, MeasuredVector, Measurement};

const ALL: [u32; 3] = [40, 41, 42];

/// After so many seconds, with these rows in `/proc/interrupts`.
fn interrupts(seconds: u64, header: &str, rows: &[&str]) -> Sample {
    let text = format!("      {header}\n{}\n", rows.join("\n"));
    let interrupts =
        nicpin::read::interrupts::read_counts(&mut text.as_bytes(), &ALL.into()).unwrap();
    Sample {
        at: Duration::from_secs(seconds),
        interrupts,
        ..Sample::default()
    }
}

fn on(delta: &Delta, irq: u32) -> Vec<(u32, u64)> {
    delta.interrupts[&irq]
        .iter()
        .map(|(cpu, count)| (*cpu, *count))
        .collect()
}

#[test]
fn interrupts_are_counted_across_a_wrap() {
    let from = interrupts(
        5,
        "CPU0 CPU1",
        &["40: 4294967290 7 chip  a", "41: 0 0 chip  b"],
    );
    let to = interrupts(7, "CPU0 CPU1", &["40: 4 9 chip  a", "41: 0 0 chip  b"]);
    let delta = Delta::between(&from, &to);
    assert_eq!(delta.elapsed, Duration::from_secs(2));
    assert_eq!(on(&delta, 40), [(0, 10), (1, 2)]);
    assert_eq!(on(&delta, 41), []);
    assert!(delta.irqs_changed.is_empty() && delta.cpus_changed.is_empty());
}

#[test]
fn a_cpu_that_comes_or_goes_is_left_out_and_named() {
    let from = interrupts(0, "CPU0 CPU1 CPU3", &["40: 10 10 10 chip  a"]);
    let to = interrupts(1, "CPU0 CPU2 CPU3", &["40: 11 500 13 chip  a"]);
    let delta = Delta::between(&from, &to);
    assert_eq!(on(&delta, 40), [(0, 1), (3, 3)]);
    assert_eq!(delta.cpus_changed.to_string(), "1-2");
}

#[test]
fn an_irq_that_was_reused_is_left_out_and_named() {
    let from = interrupts(
        0,
        "CPU0",
        &["40: 10 chip  a", "41: 10 chip  b", "42: 100 chip  c"],
    );
    let to = interrupts(1, "CPU0", &["40: 12 chip  other", "42: 3 chip  c"]);
    let delta = Delta::between(&from, &to);
    assert_eq!(delta.irqs_changed, BTreeSet::from(ALL));
    assert!(delta.interrupts.is_empty(), "{delta:?}");
}

/// A rate that was counted for a part of the time only would be too low.
#[test]
fn what_changes_in_one_of_several_steps_is_left_out_of_their_sum() {
    let sample = |seconds: u32, cpus: &[u32], irqs: &[u32], interfaces: &[&str]| {
        let header = cpus.iter().map(|cpu| format!("CPU{cpu} ")).join("");
        let counts = format!("{seconds} ").repeat(cpus.len());
        let rows = irqs.iter().map(|irq| format!("{irq}: {counts} chip  a"));
        let rows = rows.collect_vec();
        let mut sample = interrupts(
            seconds.into(),
            &header,
            &rows.iter().map(|row| &**row).collect_vec(),
        );
        sample.cpus = cpus
            .iter()
            .map(|&cpu| (cpu, CpuCounts::default()))
            .collect();
        let counters = carrying(1, seconds.into(), 0).interfaces["veth0"];
        let interfaces = interfaces.iter().map(|name| ((*name).to_owned(), counters));
        sample.interfaces = interfaces.collect();
        sample
    };
    let all = |seconds| sample(seconds, &[0, 1], &[40, 41], &["veth0", "veth1"]);
    let less = sample(2, &[0], &[40], &["veth1"]);
    let samples = [all(0), all(1), less, all(3), all(4)];
    let mut sum = Delta::default();
    for step in samples.windows(2) {
        sum.add(&Delta::between(&step[0], &step[1]));
    }
    assert_eq!((sum.interrupts.len(), on(&sum, 40)), (1, vec![(0, 4)]));
    assert!(sum.cpus.keys().eq(&[0]), "{:?}", sum.cpus);
    assert!(sum.interfaces.keys().eq(["veth1"]), "{:?}", sum.interfaces);
    assert_eq!(sum.cpus_changed, CpuSet::single(1));
    assert_eq!(sum.irqs_changed, [41].into());
    assert_eq!(sum.interfaces_changed, ["veth0".to_owned()].into());
}

fn carrying(index: u32, rx_bytes: u64, rx_packets: u64) -> Sample {
    let values = InterfaceCounts {
        rx_bytes,
        rx_packets,
        ..InterfaceCounts::default()
    };
    let interfaces = BTreeMap::from([("veth0".to_owned(), Counters { index, values })]);
    Sample {
        interfaces,
        ..Sample::default()
    }
}

#[test]
fn traffic_of_counters_of_either_size() {
    let full = u64::from(u32::MAX);
    for (from, to, expected) in [
        ((1, 1000, 10), (1, 3000, 15), Some((2000, 5))),
        // A driver that counts in 32 bits.
        ((1, full - 9, full), (1, 20, 1), Some((30, 2))),
        // A counter above 2^32 that decreases was reset, not wrapped. So was one that decreases by little.
        ((1, full + 1, 0), (1, 20, 1), None),
        ((1, 5000, 0), (1, 20, 1), None),
        // Another interface of the same name.
        ((1, 0, 0), (2, 20, 1), None),
    ] {
        let (from, to) = (carrying(from.0, from.1, from.2), carrying(to.0, to.1, to.2));
        let delta = Delta::between(&from, &to);
        let traffic = delta
            .interfaces
            .get("veth0")
            .map(|traffic| (traffic.rx_bytes, traffic.rx_packets));
        assert_eq!(traffic, expected, "{from:?}");
        assert_eq!(
            delta.interfaces_changed.len(),
            usize::from(expected.is_none())
        );
    }
}

#[test]
fn an_interface_that_is_removed_or_added_is_named() {
    let (there, gone) = (carrying(1, 1000, 10), Sample::default());
    for (from, to) in [(&there, &gone), (&gone, &there)] {
        let delta = Delta::between(from, to);
        assert!(delta.interfaces.is_empty());
        assert_eq!(
            delta.interfaces_changed,
            BTreeSet::from(["veth0".to_owned()])
        );
    }
}

#[test]
fn cpus_by_what_they_did() {
    let sample = |busy, net_rx, processed, cpus: &[u32]| Sample {
        cpus: cpus
            .iter()
            .map(|&cpu| {
                (
                    cpu,
                    CpuCounts {
                        busy,
                        irq: 1,
                        softirq: busy / 2,
                        net_rx,
                        net_tx: 2,
                        processed,
                        dropped: 3,
                        squeezed: processed,
                        rps: 0,
                    },
                )
            })
            .collect(),
        ..Sample::default()
    };
    let delta = Delta::between(
        &sample(100, u32::MAX.into(), u64::from(u32::MAX) - 1, &[0, 1]),
        &sample(150, 4, 8, &[0, 2]),
    );
    let cpus: Vec<u32> = delta.cpus.keys().copied().collect();
    assert_eq!(
        cpus,
        [0],
        "CPUs that were not there at both ends count for nothing"
    );
    let cpu = delta.cpus[&0];
    assert_eq!((cpu.busy, cpu.irq, cpu.softirq), (50, 0, 25));
    assert_eq!(
        (
            cpu.net_rx,
            cpu.net_tx,
            cpu.processed,
            cpu.dropped,
            cpu.squeezed
        ),
        (5, 0, 10, 0, 10)
    );
    assert_eq!(delta.cpus_changed.to_string(), "1-2");
}

/// Counters of a damaged file, or of a driver that counts wrongly.
#[test]
fn counters_that_jump_are_measured() {
    let most = u64::MAX;
    let cpu = CpuCounts {
        busy: most,
        irq: most,
        softirq: most,
        net_rx: most,
        dropped: most,
        squeezed: most,
        ..CpuCounts::default()
    };
    let traffic = InterfaceCounts {
        rx_bytes: most,
        tx_bytes: most,
        rx_dropped: most,
        tx_dropped: most,
        ..InterfaceCounts::default()
    };
    let mut delta = Delta {
        elapsed: Duration::from_secs(1),
        interrupts: ALL
            .map(|irq| (irq, BTreeMap::from([(0, most), (1, most)])))
            .into(),
        cpus: [(0, cpu), (1, cpu)].into(),
        interfaces: ["eth0", "eth1"]
            .map(|name| (name.to_owned(), traffic))
            .into(),
        ..Delta::default()
    };
    delta.add(&delta.clone());
    let vector = |irq| MeasuredVector {
        irq,
        role: Role::Combined,
        queue: Some(0),
        local: Some(CpuSet::single(0)),
        action: String::new(),
    };
    let mut subject = MeasuredInterface::without_device("eth0", "none");
    subject.vectors = ALL.map(vector).to_vec();
    let node = Node {
        cpus: CpuSet::single(0),
        ..Node::default()
    };
    let topology = Topology {
        online: (0..2).collect(),
        nodes: [(0, node)].into(),
        ..Topology::default()
    };
    let measure = Measurement::new(&topology, &[subject.clone(), subject], &delta);
    assert_eq!(
        (measure.machine.dropped, measure.machine.local_interrupts),
        (most, most)
    );
    crate::screen::measure::measure(&measure, true);
}

fn steps() -> impl Strategy<Value = (u32, Vec<[u32; 3]>)> {
    (
        any::<u32>(),
        prop::collection::vec(prop::array::uniform3(0..1_u32 << 31), 1..6),
    )
}

proptest! {
    #[test]
    fn steps_add_up((start, steps) in steps()) {
        let row = |counts: [u32; 3]| format!("40: {} {} {} chip  a", counts[0], counts[1], counts[2]);
        let mut counts = [start; 3];
        let mut sum = Delta::default();
        let mut expected = [0_u64; 3];
        let mut before = interrupts(0, "CPU0 CPU4 CPU9", &[&row(counts)]);
        for (seconds, step) in (1..).zip(&steps) {
            for k in 0..3 {
                counts[k] = counts[k].wrapping_add(step[k]);
                expected[k] += u64::from(step[k]);
            }
            let after = interrupts(seconds, "CPU0 CPU4 CPU9", &[&row(counts)]);
            sum.add(&Delta::between(&before, &after));
            before = after;
        }
        let got: BTreeMap<u32, u64> = sum.interrupts[&40].clone();
        let expected: BTreeMap<u32, u64> =
            [0, 4, 9].into_iter().zip(expected).filter(|(_, count)| *count > 0).collect();
        prop_assert_eq!(got, expected);
        prop_assert_eq!(sum.elapsed, Duration::from_secs(steps.len() as u64));
    }

    #[test]
    fn any_two_samples_compare(
        cpus in prop::array::uniform2(prop::collection::btree_set(0_u32..8, 1..6)),
        counts in prop::collection::vec(any::<u32>(), 16),
        whose in prop::array::uniform2("a|b"),
    ) {
        let sample = |k: usize| {
            let header: Vec<String> = cpus[k].iter().map(|cpu| format!("CPU{cpu}")).collect();
            let row: Vec<String> = cpus[k].iter().map(|&cpu| counts[k * 8 + cpu as usize].to_string()).collect();
            interrupts(k as u64, &header.join(" "), &[&format!("40: {} chip  {}", row.join(" "), whose[k])])
        };
        let delta = Delta::between(&sample(0), &sample(1));
        for cpu in delta.interrupts.values().flat_map(BTreeMap::keys) {
            prop_assert!(cpus[0].contains(cpu) && cpus[1].contains(cpu) && !delta.cpus_changed.contains(*cpu));
        }
        let (counted, left_out) = (delta.interrupts.contains_key(&40), delta.irqs_changed.contains(&40));
        prop_assert!(counted != left_out);
        prop_assert!(whose[0] == whose[1] || left_out);
    }
}
