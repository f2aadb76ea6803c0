//! CPUs, caches and nodes from the files of older and newer kernels.

use std::path::Path;

use crate::support::machine::MachineSpec;
use crate::support::temporary;
use crate::support::tree::put;
use nicpin::machine::Topology;
use nicpin::root::Root;

const CPU: &str = "/sys/devices/system/cpu";
const NODE: &str = "/sys/devices/system/node";

fn read(dir: &Path) -> Topology {
    nicpin::read::topology::read(&Root::open(dir).unwrap()).unwrap()
}

fn shown(sets: &[nicpin::cpuset::CpuSet]) -> Vec<String> {
    sets.iter().map(ToString::to_string).collect()
}

/// As on POWER: node ids with gaps; column k of `distance` is the k-th online node.
#[test]
fn sparse_nodes_one_without_cpus() {
    let dir = temporary();
    put(dir.path(), &format!("{CPU}/online"), "0-7");
    put(dir.path(), &format!("{CPU}/possible"), "0-127");
    put(dir.path(), &format!("{NODE}/online"), "0,8,252");
    for (id, cpus, distances) in [
        (0, "0-3", "10 40 80"),
        (8, "4-7", "40 10 90"),
        (252, "", "80 90 10"),
    ] {
        put(dir.path(), &format!("{NODE}/node{id}/cpulist"), cpus);
        put(dir.path(), &format!("{NODE}/node{id}/distance"), distances);
    }
    let topology = read(dir.path());
    assert_eq!(topology.possible, 128);
    assert_eq!(
        topology.nodes.keys().copied().collect::<Vec<_>>(),
        [0, 8, 252]
    );
    assert!(topology.nodes[&252].cpus.is_empty());
    assert_eq!(
        (
            topology.distance(0, 8),
            topology.distance(0, 252),
            topology.distance(252, 8)
        ),
        (40, 80, 90)
    );
    assert_eq!(topology.nearest_nodes(252), [0, 8]);
    assert_eq!(topology.node_of(5), Some(8));
}

/// Nothing is allocated for such directories.
#[test]
fn directories_of_cpus_beyond_any_kernels_are_not_cpus() {
    let dir = temporary();
    for cpu in [0, 1, 8191, 8192, 4_000_000_000, u32::MAX] {
        put(dir.path(), &format!("{CPU}/cpu{cpu}/online"), "1");
    }
    put(dir.path(), &format!("{NODE}/node0/cpulist"), "0-1,8191");
    let topology = read(dir.path());
    assert_eq!(topology.online.to_string(), "0-1,8191");
    assert_eq!(topology.possible, 8192);
}

/// Older kernels have masks where newer ones have lists.
#[test]
fn older_file_names_and_masks() {
    let dir = temporary();
    put(dir.path(), &format!("{CPU}/online"), "0-3");
    for (cpu, siblings) in [(0, "00000000,00000005"), (1, "00000000,0000000a")] {
        put(
            dir.path(),
            &format!("{CPU}/cpu{cpu}/topology/thread_siblings"),
            siblings,
        );
    }
    put(dir.path(), &format!("{CPU}/cpu0/cache/index2/level"), "3");
    put(
        dir.path(),
        &format!("{CPU}/cpu0/cache/index2/shared_cpu_map"),
        "0000000f",
    );
    put(dir.path(), &format!("{CPU}/cpu0/cache/index2/size"), "512K");
    put(dir.path(), &format!("{NODE}/node0/cpumap"), "00000005");
    put(dir.path(), &format!("{NODE}/node1/cpumap"), "0000000a");
    let topology = read(dir.path());
    assert_eq!(shown(&topology.cores), ["0,2", "1,3"]);
    assert_eq!(shown(&topology.l3_domains), ["0-3"]);
    let root = Root::open(dir.path()).unwrap();
    let size = nicpin::read::topology::l3_size(&root, 0);
    assert_eq!(size.unwrap(), Some(512 << 10));
    assert_eq!(topology.nodes[&1].cpus.to_string(), "1,3");
    assert_eq!(topology.distance(0, 1), 20);
}

#[test]
fn new_file_names() {
    let dir = temporary();
    put(dir.path(), &format!("{CPU}/online"), "0-3");
    put(dir.path(), &format!("{CPU}/nohz_full"), "(null)");
    for (cpu, siblings) in [(0, "0-1"), (2, "2-3")] {
        put(
            dir.path(),
            &format!("{CPU}/cpu{cpu}/topology/core_cpus_list"),
            siblings,
        );
        put(
            dir.path(),
            &format!("{CPU}/cpu{cpu}/topology/package_cpus_list"),
            "0-3",
        );
    }
    let topology = read(dir.path());
    assert_eq!(
        (shown(&topology.cores), shown(&topology.packages)),
        (vec!["0-1".into(), "2-3".into()], vec!["0-3".to_owned()])
    );
    assert!(topology.nohz_full.is_empty() && topology.l3_domains.is_empty());
}

/// Other files may still list them.
#[test]
fn offline_cpus_are_not_planned() {
    let dir = temporary();
    let mut machine = MachineSpec::new(&["0-3", "4-7"]);
    machine.online = vec![0, 2, 5, 6, 7];
    machine.isolated = vec![4, 5];
    machine.write(dir.path());
    put(dir.path(), &format!("{NODE}/node1/cpulist"), "4-7");
    let topology = read(dir.path());
    assert_eq!(
        (topology.online.to_string(), topology.isolated.to_string()),
        ("0,2,5-7".into(), "5".into())
    );
    assert_eq!(topology.nodes[&1].cpus.to_string(), "5-7");
    assert!(
        topology
            .cores
            .iter()
            .all(|core| core.is_subset(&topology.online))
    );
}

/// Some dumps lack the list: a CPU with a directory is online unless its own `online` is 0.
#[test]
fn online_by_the_cpus_own_directories() {
    let dir = temporary();
    for (cpu, online) in [(0, None), (1, Some("1")), (2, Some("0")), (10, Some("1"))] {
        put(dir.path(), &format!("{CPU}/cpu{cpu}/crash_notes"), "0");
        if let Some(online) = online {
            put(dir.path(), &format!("{CPU}/cpu{cpu}/online"), online);
        }
    }
    assert_eq!(read(dir.path()).online.to_string(), "0-1,10");
}

/// A dump of a machine whose node 0 is offline: node 1 has distances to both.
#[test]
fn distances_to_all_possible_nodes_are_read_too() {
    let dir = temporary();
    put(dir.path(), "/sys/devices/system/cpu/online", "1,3\n");
    put(dir.path(), &format!("{NODE}/online"), "1\n");
    put(dir.path(), &format!("{NODE}/possible"), "0-1\n");
    put(dir.path(), &format!("{NODE}/node1/cpulist"), "1,3\n");
    put(dir.path(), &format!("{NODE}/node1/distance"), "21 10\n");
    let topology = read(dir.path());
    assert_eq!((topology.distance(1, 1), topology.distance(1, 0)), (10, 21));
}

/// An L2 that several cores share is the cache domain if no CPU has an L3, as on many arm64.
#[test]
fn without_an_l3_an_l2_of_several_cores_counts() {
    let domains = |level: u32, shared: [&str; 4]| {
        let dir = temporary();
        put(dir.path(), &format!("{CPU}/online"), "0-3");
        put(dir.path(), &format!("{CPU}/possible"), "0-3");
        for (cpu, shared) in shared.iter().enumerate() {
            let cpu = format!("{CPU}/cpu{cpu}");
            put(dir.path(), &format!("{cpu}/cache/index2/level"), "2");
            put(
                dir.path(),
                &format!("{cpu}/cache/index2/shared_cpu_list"),
                shared,
            );
            put(
                dir.path(),
                &format!("{cpu}/cache/index3/level"),
                &level.to_string(),
            );
            put(
                dir.path(),
                &format!("{cpu}/cache/index3/shared_cpu_list"),
                "0-3",
            );
        }
        shown(&read(dir.path()).l3_domains)
    };
    let clusters = ["0-1", "0-1", "2-3", "2-3"];
    assert_eq!(domains(3, clusters), ["0-3"]);
    assert_eq!(domains(1, clusters), ["0-1", "2-3"]);
    assert!(domains(1, ["0", "1", "2", "3"]).is_empty());
}
