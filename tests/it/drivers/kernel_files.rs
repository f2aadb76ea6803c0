//! What kernels print in different ways: `/proc/interrupts`, isolated CPUs, kinds of cores, and the speed of a link.

use super::{card, vectors};
use crate::support::machine::{Kernel, MachineSpec, cpus};
use crate::support::temporary;
use nicpin::machine::{Role, Source};
use nicpin::root::Root;

#[test]
fn every_format_of_proc_interrupts_gives_the_same_vectors() {
    for kernel in [Kernel::V2_6, Kernel::V4_2, Kernel::V6_2, Kernel::V6_14] {
        let mut machine = MachineSpec::new(&["0-3"]);
        machine.kernel = kernel;
        machine.cards.push(card(
            "ixgbe",
            "eth0",
            2,
            2,
            30,
            &["eth0-TxRx-0", "eth0-TxRx-1"],
        ));
        let host = machine.read();
        assert_eq!(
            vectors(&host.interfaces[0]),
            ["30=Combined 0", "31=Combined 1"],
            "{kernel:?}"
        );
        let first = &host.interfaces[0].vectors[0];
        assert_eq!(
            (first.role, first.source, first.affinity.cpus.to_string()),
            (Role::Combined, Source::Name, "0-3".into())
        );
    }
}

/// The bandwidth of PCI Express decides which interface chooses first; kernels before 5.7 print whole numbers without a
/// fraction.
#[test]
fn pcie_bandwidth_in_every_format() {
    for (speed, width, expected) in [
        ("8.0 GT/s PCIe", 8, 64_000),
        ("8 GT/s", 8, 64_000),
        ("2.5 GT/s", 1, 2_500),
        ("Unknown", 8, 0),
        ("16.0 GT/s PCIe", 255, 0),
    ] {
        let mut machine = MachineSpec::new(&["0-3"]);
        let mut card = card("igb", "eth0", 1, 1, 30, &["eth0"]);
        card.max_link = Some((speed.to_owned(), width));
        machine.cards.push(card);
        assert_eq!(
            machine.read().interfaces[0].device.pcie_mtps,
            expected,
            "{speed} x{width}"
        );
    }
}

#[test]
fn isolated_cpus_by_boot_option_and_by_cpuset_partition() {
    let dir = temporary();
    let mut machine = MachineSpec::new(&["0-7"]);
    machine.isolated = cpus("6");
    machine.write(dir.path());
    crate::support::tree::put(dir.path(), "/sys/fs/cgroup/cpuset.cpus.isolated", "2-3");
    let host = nicpin::read::machine(
        &Root::open(dir.path()).unwrap(),
        nicpin::read::ReadOptions::default(),
    )
    .unwrap();
    assert_eq!(host.topology.isolated.to_string(), "2-3,6");
}

#[test]
fn kinds_of_cores_by_pmu_and_by_capacity() {
    let classes = |files: &[(&str, &str)]| -> Vec<String> {
        let dir = temporary();
        MachineSpec::new(&["0-3"]).write(dir.path());
        for (path, text) in files {
            crate::support::tree::put(dir.path(), path, text);
        }
        let topology = nicpin::read::machine(
            &Root::open(dir.path()).unwrap(),
            nicpin::read::ReadOptions::default(),
        )
        .unwrap()
        .topology;
        topology
            .speed_classes
            .iter()
            .map(ToString::to_string)
            .collect()
    };
    assert_eq!(
        classes(&[
            ("/sys/devices/cpu_core/cpus", "0-1"),
            ("/sys/devices/cpu_atom/cpus", "2-3")
        ]),
        ["0-1", "2-3"]
    );
    // Neither of cpu_core nor of cpu_atom.
    assert_eq!(
        classes(&[
            ("/sys/devices/cpu_atom/cpus", "1-2"),
            ("/sys/devices/cpu_lowpower/cpus", "3")
        ]),
        ["0", "1-2", "3"]
    );
    let capacity = |of: [&'static str; 4]| {
        let path = |cpu: usize| format!("/sys/devices/system/cpu/cpu{cpu}/cpu_capacity");
        let files: Vec<(String, &str)> = of
            .iter()
            .enumerate()
            .map(|(cpu, text)| (path(cpu), *text))
            .collect();
        let files: Vec<(&str, &str)> = files
            .iter()
            .map(|(path, text)| (path.as_str(), *text))
            .collect();
        classes(&files)
    };
    assert_eq!(capacity(["446", "446", "1024", "871"]), ["2", "3", "0-1"]);
    assert!(capacity(["1024", "1024", "1024", "1024"]).is_empty());
    assert!(classes(&[]).is_empty());
}
