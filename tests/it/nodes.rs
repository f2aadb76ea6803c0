//! `nicpin nodes`: every shipped machine, and malformed and absent files. `SNAPSHOTS=overwrite cargo test --test it --
//! nodes::` rewrites the expected output.

use snapbox::{assert_data_eq, str};

use crate::commands::bandwidth::BandwidthTest;
use crate::support::host::{machine, set};
use crate::support::run::{FIXTURES, MachineTree, expect, fixture, nicpin};
use crate::support::temporary;

#[test]
fn every_machine_shows_its_nodes() {
    for name in FIXTURES {
        let root = fixture(name);
        let run = nicpin(&["nodes", "--root", root.to_str().unwrap()]);
        assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{name}");
        assert!(
            run.stdout.lines().all(|line| line.chars().count() <= 100),
            "{}",
            run.stdout
        );
        expect(&format!("{name}.nodes.txt"), run.stdout);
    }
}

const NODE1: &str = "/sys/devices/system/node/node1";
const COUNTS: &str = "numa_hit 5116\nnuma_miss 1\nnuma_foreign 2\ninterleave_hit 371\nlocal_node 5042\nother_node 74\n";

#[test]
fn a_live_machine_reports_page_counts() {
    let machine = MachineTree::of("two-node");
    machine.write(
        &format!("{NODE1}/meminfo"),
        "Node 1 MemTotal:       65964032 kB\nNode 1 MemFree:        60129542 kB\nNode 1 MemUsed:         5834490 kB\n",
    );
    machine.write(&format!("{NODE1}/numastat"), COUNTS);
    machine.write("/sys/devices/system/cpu/isolated", "6-7\n");
    assert_data_eq!(
        machine.nicpin(&["nodes"]).stdout,
        str![[r"
8 CPUs on 2 nodes, 2 interfaces.

NODE  MEMORY    FREE      CPUS  DEVICES
0     338 MiB   -         0-3   nic0 (virtio_net)
1     62.9 GiB  57.3 GiB  4-7   nic1 (virtio_net)
CPUs 6-7 of node 1 are isolated or nohz_full.

DISTANCE  TO 0  TO 1
from 0      10    21
from 1      21    10

PAGES   numa_hit  numa_miss  numa_foreign  interleave_hit  local_node  other_node
node 0         -          -             -               -           -           -
node 1      5116          1             2             371        5042          74

"]]
    );
    let json = machine.nicpin(&["nodes", "--format", "json"]).json();
    assert_eq!(json["schema"], "nicpin.nodes/1");
    let node = &json["nodes"][1];
    assert_eq!(
        (&node["free_kib"], &node["memory_kib"]),
        (&60_129_542.into(), &65_964_032.into())
    );
    assert_eq!(
        (&node["pages"]["numa_foreign"], &node["isolated"]),
        (&2.into(), &"6-7".into())
    );
    assert!(json["nodes"][0]["pages"].is_null() && json["nodes"][0]["free_kib"].is_null());
    assert!(json.get("bandwidth").is_none());
}

#[test]
fn long_lists_wrap() {
    let machine = MachineTree::of("two-node");
    let irregular: Vec<u32> = (0..200)
        .filter(|cpu| cpu % 3 == 0 || cpu % 5 == 0)
        .collect();
    let irregular = crate::support::machine::list(&irregular);
    machine.write("/sys/devices/system/cpu/online", "0-199\n");
    machine.write("/sys/devices/system/cpu/possible", "0-199\n");
    machine.write("/sys/devices/system/node/node0/cpulist", &irregular);
    let run = machine.nicpin(&["nodes"]);
    assert!(
        run.stdout.lines().all(|line| line.chars().count() <= 100),
        "{}",
        run.stdout
    );
    let shown: String = run.stdout.split_whitespace().collect();
    assert!(shown.contains(&irregular), "{}", run.stdout);
    machine.write(
        "/sys/devices/system/node/node0/cpulist",
        "0,2,4,6,8,10,12,14,16\n",
    );
    assert!(
        machine
            .nicpin(&["nodes"])
            .stdout
            .contains("  0-16:2  nic0 ")
    );
}

#[test]
fn malformed_files() {
    let said = [
        ("meminfo", ""),
        ("meminfo", "Node 1 MemTotal: much kB\n"),
        ("numastat", "numa_hit\n"),
        ("numastat", &COUNTS[..20]),
    ]
    .map(|(file, text)| {
        let machine = MachineTree::of("two-node");
        machine.write(&format!("{NODE1}/{file}"), text);
        machine.fails(&["nodes"], 1)
    });
    assert_data_eq!(
        said.concat(),
        str![[r"
nicpin: ROOT/sys/devices/system/node/node1/meminfo: has no line such as `Node 0 MemTotal: 16384 kB`
nicpin: ROOT/sys/devices/system/node/node1/meminfo: has no line such as `Node 0 MemTotal: 16384 kB`
nicpin: ROOT/sys/devices/system/node/node1/numastat: not a list of page counts such as `numa_hit 12`
nicpin: ROOT/sys/devices/system/node/node1/numastat: not a list of page counts such as `numa_hit 12`

"]]
    );
}

#[test]
fn a_capture_keeps_the_size_of_memory() {
    let machine = MachineTree::of("two-node");
    let before = machine.nicpin(&["nodes"]).stdout;
    let meminfo = machine.read(&format!("{NODE1}/meminfo"));
    let dir = temporary();
    let mut captures = Vec::new();
    for free in [8, 9] {
        machine.write(
            &format!("{NODE1}/meminfo"),
            &format!("{meminfo}Node 1 MemFree:  {free} kB\n"),
        );
        machine.write(
            &format!("{NODE1}/numastat"),
            &COUNTS.replace("5116", &free.to_string()),
        );
        let file = dir.path().join(free.to_string());
        let run = machine.nicpin(&["capture", "-o", file.to_str().unwrap()]);
        assert_eq!(run.code, 0, "{}", run.stderr);
        assert_eq!(
            nicpin(&["nodes", "--root", file.to_str().unwrap()]).stdout,
            before
        );
        captures.push(std::fs::read(file).unwrap());
    }
    assert_eq!(captures[0], captures[1]);
}

#[test]
fn rates_are_measured_on_this_machine_only() {
    let root = fixture("two-node");
    let run = nicpin(&["nodes", "--bandwidth", "--root", root.to_str().unwrap()]);
    assert_eq!((run.code, run.stdout.as_str()), (64, ""));
    assert_data_eq!(
        run.stderr,
        str![[r#"
nicpin: --bandwidth measures this machine, not the one that --root names

"#]]
    );
}

#[test]
fn what_would_be_measured() {
    let mut host = machine(2, 4, 2, 4);
    host.topology.isolated = set("3,11");
    let free = |node: u32| Some(if node == 0 { 8 << 20 } else { 100 << 10 });
    let course = BandwidthTest::new(
        &host,
        &set("0-3,5-6,8-15"),
        &set("0-1"),
        free,
        Some(32 << 20),
    );
    // Eight times the caches, or a quarter of the free memory.
    assert_eq!(course.memory, [(0, 256 << 20), (1, 25 << 20)]);
    // A CPU of each core that this process may use.
    assert_eq!(course.readers, [(0, set("0-2")), (1, set("5-6,12,15"))]);
    assert_eq!(course.pairs(), 4);
    let course = BandwidthTest::new(&host, &set("3"), &set("0"), |_| Some(1000), None);
    assert_eq!(
        (course.memory, course.readers),
        (vec![], vec![(0, set("3"))])
    );
}

#[test]
fn every_online_cpu_is_counted_once() {
    let machine = MachineTree::of("two-node");
    let cpulist = |node: u32, cpus: &str| {
        let file = format!("/sys/devices/system/node/node{node}/cpulist");
        machine.write(&file, &format!("{cpus}\n"));
        machine.nicpin(&["nodes"]).stdout
    };
    let screens = [cpulist(0, "0-4"), cpulist(1, "6-7")];
    expect("each-cpu-once.nodes.txt", screens.join("\n"));
}
