//! Connections of `ss` and of `measure` by queue and CPU, and what is below their interfaces: bonds, VLANs and tunnels.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::ops::RangeInclusive;
use std::process::{Command, Stdio};

use itertools::Itertools as _;
use serde_json::{Value, json};
use snapbox::{assert_data_eq, str};

use super::{machine, reported};
use crate::support::run::{MachineTree, assert_line, expect, text};

/// The answer about connections from these ports, and one of the machine with itself.
fn connections(
    machine: &MachineTree,
    name: &str,
    ports: RangeInclusive<u32>,
    format: &str,
) -> String {
    let mut lines = String::new();
    for port in ports {
        lines += &format!("ESTAB 0 0 10.0.0.2:5201 10.0.0.1:{port}\n\t cubic rto:204\n");
    }
    lines += "ESTAB 0 0 127.0.0.1:1 127.0.0.1:2\n";
    let mut command = Command::new(env!("CARGO_BIN_EXE_nicpin"));
    command
        .args(["flow", name, "-", "--format", format, "--root"])
        .arg(machine.path("/"));
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(lines.as_bytes()).unwrap();
    drop(input);
    String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap()
}

#[test]
fn connections_of_ss_are_counted_by_queue_and_cpu() {
    let machine = machine(&reported());
    let one = connections(&machine, "nic0", 40_001..=40_001, "table");
    assert_data_eq!(
        one,
        str![[r"
1 of 1 flow arrives on CPU 7, queue 3 of nic0.
1 connection of this machine with itself left out.

INTERFACE  QUEUE  IRQ  CPU  NODE  FLOWS
nic0       3      42   7    1     1

PROTOCOL  SOURCE          DESTINATION    INTERFACE  QUEUE  CPU
tcp       10.0.0.1:40001  10.0.0.2:5201  nic0       3      7

"]]
    );
    let json = connections(&machine, "nic0", 40_001..=40_040, "json");
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(
        (json["arrivals"].as_array().unwrap().len(), &json["local"]),
        (40, &json!(1))
    );
    let mut counted: BTreeMap<u64, u64> = BTreeMap::new();
    for arrival in json["arrivals"].as_array().unwrap() {
        *counted
            .entry(arrival["queue"].as_u64().unwrap())
            .or_default() += 1;
    }
    let shown = json["spread"].as_array().unwrap().iter();
    let shown: BTreeMap<u64, u64> = shown
        .map(|share| {
            (
                share["queue"].as_u64().unwrap(),
                share["flows"].as_u64().unwrap(),
            )
        })
        .collect();
    assert_eq!(shown, counted);
    assert!(counted.len() > 1, "{counted:?}");
}

/// An interface above others, as the kernel lists it.
fn stack(machine: &MachineTree, name: &str, kind: &str, lowers: &[&str]) {
    let dir = format!("/sys/class/net/{name}");
    for lower in lowers {
        std::fs::create_dir_all(machine.path(&format!("{dir}/lower_{lower}"))).unwrap();
    }
    std::fs::create_dir_all(machine.path(&dir)).unwrap();
    machine.write(&format!("{dir}/uevent"), &format!("DEVTYPE={kind}\n"));
}

/// A VLAN is looked through to the interface below it, a bond to each of its ports.
#[test]
fn bonds_and_vlans_are_looked_through() {
    let machine = machine(&reported());
    stack(&machine, "vlan7", "vlan", &["nic0"]);
    let ends = ["66.9.149.187:2794", "161.142.100.80:1766"];
    let through =
        |name: &str, more: &[&str]| machine.nicpin(&[&["flow", name], &ends[..], more].concat());
    let vlan = through("vlan7", &["--json"]);
    let arrival = &vlan.json()["arrivals"][0];
    assert_eq!((vlan.code, &arrival["cpu"]), (0, &json!(4)));
    // Nothing is known of the other port.
    stack(&machine, "bond0", "bond", &["nic0", "nic1"]);
    stack(&machine, "vlan8", "vlan", &["bond0"]);
    let bond = through("vlan8", &[]);
    assert_eq!(bond.code, 1, "{bond:?}");
    assert_data_eq!(
        bond.stdout,
        str![[r"
nic0: queue 0, IRQ 36, CPU 4 (node 1, cache of 4-7)
nic1: unknown: ethtool reports nothing about how nic1 distributes flows
Which of these ports a packet arrives on is the sender's choice, or the switch's.

"]]
    );
    let json = through("bond0", &["--json"]).json();
    assert_eq!(json["interfaces"], json!(["nic0", "nic1"]));
    let cpus = [0, 1].map(|at: usize| &json["arrivals"][at]["cpu"]);
    assert_eq!(cpus, [&json!(4), &Value::Null]);
}

/// Who sends to one of them does not choose between them; the kernel has no word for a team.
#[test]
fn the_sender_chooses_among_the_ports_of_a_bond_or_team_alone() {
    let machine = machine(&reported());
    let chooses = |name: &str| {
        let run = machine.nicpin(&["flow", name, "10.0.0.1:1", "10.0.0.2:2"]);
        assert!(run.stdout.contains("nic1: unknown: "), "{}", run.stdout);
        run.stdout.contains("is the sender's choice")
    };
    stack(&machine, "br0", "bridge", &["nic0", "nic1"]);
    assert!(!chooses("nic*") && !chooses("br0"));
    // A VRF has no word either.
    stack(&machine, "vrf0", "", &["nic0", "nic1"]);
    machine.write("/sys/class/net/vrf0/uevent", "INTERFACE=vrf0\n");
    machine.write("/sys/class/net/vrf0/flags", "0x4c1\n");
    assert!(!chooses("nic*") && !chooses("vrf0"));
    stack(&machine, "team0", "", &["nic0", "nic1"]);
    machine.write("/sys/class/net/team0/flags", "0x1043\n");
    machine.write("/sys/class/net/team0/uevent", "INTERFACE=team0\n");
    assert!(chooses("team0") && chooses("nic*"));
}

/// A connection over a bond is one, and has a row for each port that it may arrive on.
#[test]
fn connections_over_a_bond_are_counted_once() {
    let mut answer = reported();
    answer["contexts"]["0"]["table"] = json!([0]);
    let machine = machine(&answer);
    stack(&machine, "bond0", "bond", &["nic0", "nic1"]);
    let text = connections(&machine, "bond0", 40_001..=40_003, "table");
    expect("flow-over-a-bond.txt", text);
    let json = connections(&machine, "bond0", 40_001..=40_003, "json");
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["spread"][0]["flows"], 3, "{json}");
    assert_eq!(json["arrivals"].as_array().unwrap().len(), 6);
}

/// The card sees what is around the packets of a tunnel.
#[test]
fn a_tunnel_is_not_looked_through() {
    let machine = machine(&reported());
    stack(&machine, "vxlan9", "vxlan", &["nic0"]);
    stack(&machine, "vlan9", "vlan", &["vxlan9"]);
    stack(&machine, "geneve9", "geneve", &[]);
    let said = ["vxlan9", "vlan9", "geneve9"].map(|name| {
        let flow = machine.nicpin(&["flow", name, "10.0.0.1:1", "10.0.0.2:2"]);
        let ports = machine.nicpin(&["flow", name, "10.0.0.1", "10.0.0.2:2", "--to-cpu", "4"]);
        assert_eq!((flow.code, ports.code), (1, 1), "{name}");
        flow.stdout + &ports.stdout
    });
    assert_data_eq!(
        said.concat(),
        str![[r"
unknown: vxlan9 wraps what it carries in other packets: ask about the interface and the ends of those
vxlan9: unknown: vxlan9 wraps what it carries in other packets: ask about the interface and the ends
of those
unknown: vxlan9 wraps what it carries in other packets: ask about the interface and the ends of those
vxlan9: unknown: vxlan9 wraps what it carries in other packets: ask about the interface and the ends
of those
unknown: geneve9 wraps what it carries in other packets: ask about the interface and the ends of those
geneve9: unknown: geneve9 wraps what it carries in other packets: ask about the interface and the
ends of those

"]]
    );
}

/// `measure` counts connections by the CPU that they arrive on and by the node of their process.
#[test]
fn connections_are_measured() {
    let machine = machine(&reported());
    stack(&machine, "bond0", "bond", &["nic0", "nic1"]);
    stack(&machine, "vxlan9", "vxlan", &["nic0"]);
    let socket = |peer: &str, interface: &str, node: Value| json!({"udp": false, "local": "10.0.0.2:5201", "peer": peer, "interface": interface, "node": node});
    // Of these two the flow of 66.9.149.187 has queue 0, CPU 4; 199.92.111.2 has queue 2, CPU 6.
    let known = |to: &str, from: &str, node: Value| json!({"udp": false, "local": to, "peer": from, "interface": "nic0", "node": node});
    let near = known("161.142.100.80:1766", "66.9.149.187:2794", json!(1));
    let sockets = json!([
        near,
        near,
        known("161.142.100.80:1766", "66.9.149.187:2794", json!(0)),
        known("65.69.140.83:4739", "199.92.111.2:14230", json!(null)),
        socket("10.0.0.1:7", "bond0", json!(0)),
        socket("10.0.0.1:8", "vxlan9", json!(0)),
        socket("10.0.0.1:9", "nic1", json!(0)),
        socket("10.0.0.2:10", "nic0", json!(0)),
        socket("10.0.0.1:10", "veth3", json!(0)),
    ]);
    std::fs::create_dir_all(machine.path("/nicpin")).unwrap();
    machine.write("/nicpin/sockets", &sockets.to_string());
    let run = machine.nicpin(&["measure", "nic0", "-s", "0.1", "--json"]);
    let json: Value =
        serde_json::from_str(&run.stdout).unwrap_or_else(|_| panic!("{}", run.stderr));
    let of = &json["connections"];
    assert_eq!(
        [&of["established"], &of["local"], &of["elsewhere"]],
        [5, 1, 3],
        "{of}"
    );
    let arriving = |cpu, process_node: Value, connections| {
        json!({
            "interface": "nic0", "cpu": cpu, "node": 1, "process_node": process_node, "connections": connections,
        })
    };
    assert_eq!(
        of["arrivals"],
        json!([
            arriving(4, json!(1), 2),
            arriving(4, json!(0), 1),
            arriving(6, json!(null), 1)
        ])
    );
    assert_eq!(of["unknown"][0]["interface"], "bond0");
    assert_eq!(of["unknown"].as_array().unwrap().len(), 1);
    let shown = machine.nicpin(&["measure", "nic0", "-s", "0.1"]).stdout;
    let connections = (shown.lines()).skip_while(|line| !line.starts_with("5 connections"));
    assert_data_eq!(
        connections.take(6).join("\n"),
        str![[r"
5 connections: 2 arrive on the node of their process, 1 on another.
  INTERFACE  CPU  NODE  PROCESS ON  CONNECTIONS
  nic0       4    1     1           2
  nic0       4    1     0           1
  nic0       6    1     -           1
  bond0: 1 unknown: ethtool reports nothing about how nic1 distributes flows
"]]
    );
    // What both ports of a bond are known to do differently is the sender's choice.
    let mut answer = reported();
    answer["contexts"]["0"]["table"] = json!([0]);
    for (nic, irq, cpu) in [("nic0", 36, 4), ("nic1", 27, 1)] {
        let dir = format!("/nicpin/ethtool/{nic}");
        std::fs::create_dir_all(machine.path(&dir)).unwrap();
        machine.write(&format!("{dir}/rx-hash"), &answer.to_string());
        machine.write(
            &format!("/proc/irq/{irq}/smp_affinity"),
            &format!("{:02x}\n", 1 << cpu),
        );
        machine.write(
            &format!("/proc/irq/{irq}/effective_affinity_list"),
            &format!("{cpu}\n"),
        );
    }
    let run = machine.nicpin(&["measure", "nic0", "-s", "0.1", "--json"]);
    let json = run.json();
    let unknown = json["connections"]["unknown"].as_array().unwrap();
    assert_eq!(unknown.len(), 1);
    assert_eq!(unknown[0]["interface"], "bond0");
    assert_eq!(unknown[0]["connections"], 1);
    assert_line(
        text(&unknown[0], "missing"),
        str![[r#"
which of the ports nic0, nic1 a packet arrives on is the sender's choice, or the switch's

"#]],
    );
    machine.write("/proc/sys/net/core/rps_sock_flow_entries", "32768\n");
    machine.write("/sys/class/net/nic0/queues/rx-0/rps_flow_cnt", "2048\n");
    let run = machine.nicpin(&["measure", "nic0", "-s", "0.1", "--json"]);
    let json = run.json();
    let missing = json["connections"]["unknown"][0]["missing"].as_str();
    assert!(missing.unwrap().starts_with("RFS sends it to"), "{json}");
    // A tree without the answer.
    std::fs::remove_file(machine.path("/nicpin/sockets")).unwrap();
    let run = machine.nicpin(&["measure", "nic0", "-s", "0.1", "--json"]);
    let json = run.json();
    assert_eq!(json["connections"], Value::Null);
}
