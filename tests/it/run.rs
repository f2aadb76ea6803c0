//! `nicpin run`: the CPUs and the memory that it chooses on every kind of machine.

use snapbox::{assert_data_eq, str};

use crate::support::host::{add, machine, set};
use crate::support::run::{FIXTURES, MachineTree, Run, assert_line, expect, fixture, nicpin};
use nicpin::cpuset::{CpuSet, NodeSet};
use nicpin::machine::{Machine, Selection};
use nicpin::plan::binding::{Binding, BindingRequest, NodeChoice};
use nicpin::plan::{Plan, plan};
use nicpin::policy::Policy;
use nicpin::read::ReadOptions;
use nicpin::root::Root;

fn dry(machine: &str, args: &[&str]) -> Run {
    let root = fixture(machine);
    nicpin(
        &[
            &["run", "--dry-run", "--root", root.to_str().unwrap()],
            args,
        ]
        .concat(),
    )
}

#[test]
fn near_far_and_elsewhere() {
    let said = |machine: &str, args: &[&str]| {
        let run = dry(machine, args);
        assert_eq!(
            (run.code, run.stderr.as_str()),
            (0, ""),
            "{machine} {args:?}"
        );
        run.stdout
    };
    assert_data_eq!(
        said("dl980", &["eth2"]),
        str![[r"
node    2, for eth2
CPUs    80-87 (without interrupts, which go to CPUs 16-23)
memory  node 2 only

"]]
    );
    assert_data_eq!(
        said("dl980", &["--far", "--memory", "preferred", "eth2"]),
        str![[r"
node    4, for eth2
CPUs    32-39,96-103 (without interrupts)
memory  node 4 preferred

"]]
    );
    assert_data_eq!(
        said("two-socket-mlx4", &["--memory=local", "eth2"]),
        str![[r"
node    1, for eth2
CPUs    6-11 (interrupts go to more than half of them: CPUs 6-11)
memory  the node of the CPU that it runs on

"]]
    );
    assert_data_eq!(
        said("dl980", &["--cpus", "5,70", "--node", "3", "eth2"]),
        str![[r"
node    3, for eth2
CPUs    5,70 (as requested)
memory  node 3 only

"]]
    );
    // On a node without CPUs: near is the nearest node, and far is the node farthest from the device itself.
    assert_data_eq!(
        said("four-node", &["--far", "nic4"]),
        str![[r"
node    3, for nic4
CPUs    12-15 (interrupts go to more than half of them: CPUs 12-15)
memory  node 3 only

"]]
    );
}

#[test]
fn a_virtual_interface_has_the_node_that_is_named() {
    let machine = MachineTree::of("two-node");
    machine.add_virtual("veth0", &[("uevent", "DEVTYPE=veth")]);
    let run = |place: &[&str]| machine.nicpin(&[&["run", "--dry-run"], place, &["veth0"]].concat());
    assert_data_eq!(
        run(&["--node", "1"]).stdout,
        str![[r"
node    1, for veth0
CPUs    4-7 (interrupts go to more than half of them: CPUs 4-7)
memory  node 1 only

"]]
    );
    assert_data_eq!(
        run(&[]).stderr,
        str![[r"
nicpin: `veth0` is a virtual interface (veth) and has no node; fix: name the node with --node N

"]]
    );
}

/// All CPUs of the interface's node are isolated, and the other node takes its interrupts: a program is near on the
/// isolated CPUs, with the memory of their node.
#[test]
fn a_program_stays_on_the_interfaces_node_where_interrupts_may_not_go() {
    let machine = MachineTree::of("two-node");
    machine.write("/sys/devices/system/cpu/isolated", "4-7\n");
    let said = |place: &[&str]| machine.nicpin(&[&["run", "--dry-run", "nic1"], place].concat());
    assert_data_eq!(
        said(&[]).stdout,
        str![[r"
node    1, for nic1
CPUs    4-7 (without interrupts)
memory  node 1 only

"]]
    );
    assert_data_eq!(
        said(&["--far"]).stdout,
        str![[r"
node    0, for nic1
CPUs    0-3 (interrupts go to more than half of them: CPUs 0-3)
memory  node 0 only

"]]
    );
}

#[test]
fn what_cannot_be_chosen_is_an_error_of_one_line() {
    let said = [
        ("four-node", &["nic5"][..], 1),
        ("tg3-and-ixgbe", &["--far", "p6p1"], 1),
        ("four-node", &["--node", "4", "nic0"], 64),
        ("four-node", &["--node", "9", "nic0"], 64),
        ("dl980", &["driver:"], 64),
        ("dl980", &["eth[5-9]"], 1),
        ("dl980", &["eth[1-3]"], 1),
        ("dl980", &["eth*"], 1),
        ("dl980", &["--cpus", "128", "eth0"], 64),
        ("dl980", &["--cpus", "", "eth0"], 64),
        ("dl980", &["--near", "--far", "eth0"], 64),
        ("dl980", &["--memory", "some", "eth0"], 64),
    ]
    .map(|(machine, args, code)| {
        let run = dry(machine, args);
        let ended = (run.code, run.stdout.as_str());
        assert_eq!(ended, (code, ""), "{args:?}: {}", run.stderr);
        format!("$ nicpin run {}\n{}", args.join(" "), run.stderr)
    });
    expect("run.errors.txt", said.concat());
    let offline = MachineTree::of("two-node");
    offline.write("/sys/devices/system/cpu/online", "0-2,4-7\n");
    let absent = ["run", "--dry-run", "--cpus", "2-3", "nic0"];
    assert_data_eq!(
        offline.fails(&absent, 1),
        str![[r"
nicpin: not online: CPU 3; online CPUs are 0-2,4-7

"]]
    );
}

#[test]
fn a_command_runs_on_this_machine_only() {
    let root = fixture("two-node");
    let run = nicpin(&[
        "run",
        "--root",
        root.to_str().unwrap(),
        "nic0",
        "--",
        "/bin/true",
    ]);
    assert_eq!(run.code, 64, "{}", run.stderr);
    assert_data_eq!(
        run.stderr,
        str![[r"
nicpin: the command would run on this machine, not on the one that --root names; --dry-run prints its CPUs

"]]
    );
    assert_eq!(nicpin(&["run", "nic0"]).code, 64);
}

fn planned(host: &Machine) -> Plan {
    plan(
        host,
        &Policy::default(),
        &Selection::new(host, &[], false).unwrap(),
    )
}

fn bind(host: &Machine, name: &str, wish: &BindingRequest) -> Binding {
    Binding::new(host, &planned(host), name, &[name.to_owned()], wish).unwrap()
}

/// The workers, if they are at least half of the node; else its CPUs without interrupts, if they are.
#[test]
fn workers_are_those_of_the_plan() {
    let mut seen = [0, 0];
    for name in FIXTURES {
        let root = Root::open(&fixture(name)).unwrap();
        let host = nicpin::read::machine(
            &root,
            ReadOptions {
                memory: true,
                ..ReadOptions::default()
            },
        )
        .unwrap();
        let plan = planned(&host);
        for interface in &plan.interfaces {
            let Some(node) = interface.node else { continue };
            let binding = bind(&host, &interface.name, &BindingRequest::default());
            let own = &host.topology.nodes[&node].cpus;
            let enough = |cpus: &CpuSet| cpus.len() * 2 >= own.len();
            let others = plan.without_interrupts(own);
            let others = if enough(&others) { &others } else { own };
            let enough = enough(&interface.worker_cpus);
            let expected = if enough {
                &interface.worker_cpus
            } else {
                others
            };
            assert_eq!(&binding.cpus, expected, "{name}");
            assert_eq!(binding.nodes, NodeSet::single(node), "{name}");
            seen[usize::from(enough)] += 1;
        }
    }
    assert!(seen.iter().all(|&count| count > 0), "{seen:?}");
}

#[test]
fn a_single_cpu_is_no_plural() {
    let mut host = machine(1, 2, 1, 2);
    add(&mut host, "eth0", Some(0), 1);
    let binding = bind(&host, "eth0", &BindingRequest::default());
    assert_data_eq!(binding.why, str!["without interrupts, which go to CPU 1"]);
}

#[test]
fn isolated_cpus_are_used_only_if_named() {
    let mut host = machine(2, 8, 1, 8);
    add(&mut host, "eth0", Some(1), 3);
    (host.topology.isolated, host.topology.nohz_full) = (set("15"), set("14"));
    let binding = bind(&host, "eth0", &BindingRequest::default());
    assert_eq!(binding.cpus, set("11-13"));
    assert_line(
        binding.why,
        str![[r"
without interrupts, which go to CPUs 8-10; CPUs 14-15 left out: isolated or nohz_full

"]],
    );
    let named = BindingRequest {
        cpus: Some(set("14-15")),
        ..BindingRequest::default()
    };
    assert_eq!(bind(&host, "eth0", &named).cpus, set("14-15"));
    host.topology.isolated = set("0-7");
    assert_eq!(
        bind(
            &host,
            "eth0",
            &BindingRequest {
                place: NodeChoice::Far,
                ..BindingRequest::default()
            }
        )
        .cpus,
        set("0-7")
    );
}

#[test]
fn a_node_without_memory_uses_that_of_the_nearest() {
    let mut host = machine(3, 2, 1, 2);
    add(&mut host, "eth0", Some(1), 1);
    host.memory = [(0, 1024), (1, 0)].into();
    host.topology.nodes.get_mut(&1).unwrap().distances = [(0, 30), (1, 10), (2, 20)].into();
    let binding = bind(&host, "eth0", &BindingRequest::default());
    assert_eq!(
        (&binding.nodes, &binding.memory_nodes),
        (&set("1"), &set("2"))
    );
    assert_data_eq!(
        binding.notes.join("\n"),
        str!["node 1 has no memory; node 2 is the nearest with memory"]
    );
}

#[test]
fn a_card_near_to_several_nodes_is_near_to_all_of_them() {
    let mut host = machine(4, 2, 1, 2);
    add(&mut host, "eth0", None, 1);
    host.interfaces[0].device.local_cpus = Some(set("4-7"));
    let binding = bind(&host, "eth0", &BindingRequest::default());
    assert_eq!((&binding.nodes, &binding.cpus), (&set("2-3"), &set("5-7")));
    assert_eq!(
        bind(
            &host,
            "eth0",
            &BindingRequest {
                place: NodeChoice::Far,
                ..BindingRequest::default()
            }
        )
        .nodes,
        set("0")
    );
}
