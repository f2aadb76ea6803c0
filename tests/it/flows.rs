//! `nicpin flow`: the queue, IRQ and CPU of flows on machines whose answers of ethtool are known.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::support::run::{Copy, Run};

/// The key of the RSS specification's test values.
const KEY: &str = "6d:5a:56:da:25:5b:0e:c2:41:67:25:3d:43:a3:8f:b0:d0:ca:2b:cb:ae:7b:30:b4:77:cb:2d:a3:80:30:f2:0c:6a:42:b7:3b:be:ac:01:fa";

/// Addresses, and addresses with ports.
const TWO: u32 = 0x30;
const FOUR: u32 = 0xf0;

/// What ethtool reports of a card that hashes TCP by ports and UDP by addresses, over four queues.
fn reported() -> Value {
    let table: Vec<u32> = (0..128).map(|at| at % 4).collect();
    json!({
        "contexts": {"0": {"function": 1, "transform": 0, "key": KEY, "table": table}},
        "fields": {"tcp4": FOUR, "udp4": TWO, "tcp6": FOUR, "udp6": TWO},
        "to_stack": true,
        "filter_count": 0,
        "release": [7, 1],
        "system_key": "",
    })
}

/// `two-node` with this answer of ethtool about nic0; each of its queues on one CPU.
fn machine(answer: &Value) -> Copy {
    let machine = Copy::of("two-node");
    std::fs::create_dir_all(machine.path("/nicpin/ethtool/nic0")).unwrap();
    machine.write("/nicpin/ethtool/nic0/rx-hash", &answer.to_string());
    for (queue, irq) in [36, 38, 40, 42].into_iter().enumerate() {
        machine.write(
            &format!("/proc/irq/{irq}/smp_affinity"),
            &format!("{:02x}\n", 1 << (queue + 4)),
        );
        machine.write(
            &format!("/proc/irq/{irq}/effective_affinity_list"),
            &format!("{}\n", queue + 4),
        );
    }
    machine
}

fn asked(machine: &Copy, args: &[&str]) -> Run {
    machine.nicpin(&[&["flow", "nic0"], args].concat())
}

/// The answer as JSON, with its exit code.
fn answered(machine: &Copy, args: &[&str]) -> (i32, Value) {
    let run = asked(machine, &[args, &["--json"]].concat());
    let value = serde_json::from_str(&run.stdout).unwrap_or_else(|_| panic!("{}", run.stderr));
    (run.code, value)
}

#[test]
fn a_flow_is_followed_to_its_cpu() {
    let machine = machine(&reported());
    // The specification's hash of this flow ends in 0x78: entry 120, queue 0.
    let run = asked(&machine, &["66.9.149.187:2794", "161.142.100.80:1766"]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    assert_eq!(run.stdout, "queue 0, IRQ 36, CPU 4 (node 1, L3 of 4-7)\n");
    // 0xea: entry 106, queue 2.
    let (code, json) = answered(&machine, &["199.92.111.2:14230", "65.69.140.83:4739"]);
    let arrival = &json["arrivals"][0];
    assert_eq!((code, &json["schema"]), (0, &json!("nicpin.flow/1")));
    assert_eq!(arrival["hash"], "c626b0ea");
    assert_eq!(
        [&arrival["queue"], &arrival["irq"], &arrival["cpu"]],
        [2, 40, 6]
    );
    // UDP by its addresses: the specification's hash without ports ends in 0x2a, queue 2.
    let (_, json) = answered(&machine, &["--udp", "199.92.111.2:1", "65.69.140.83:2"]);
    assert_eq!(
        (&json["arrivals"][0]["hash"], &json["arrivals"][0]["queue"]),
        (&json!("d718262a"), &json!(2))
    );
    let v6 = ["[3ffe:2501:200:1fff::7]:2794", "[3ffe:2501:200:3::1]:1766"];
    assert_eq!(answered(&machine, &v6).1["arrivals"][0]["hash"], "40207d3d");
    assert_eq!(
        asked(
            &machine,
            &["-q", "66.9.149.187:2794", "161.142.100.80:1766"]
        )
        .stdout,
        ""
    );
}

/// What cannot be known is named, with exit code 1.
#[test]
fn what_is_missing_is_named() {
    type Change = fn(&mut Value);
    let cases: [(Change, &str); 12] = [
        (
            |of| of["release"] = json!([6, 12]),
            "virtio_net gives the device another RSS key than it reports before Linux 6.16",
        ),
        (
            |of| of["contexts"]["0"]["key"] = json!(""),
            "the driver does not report its RSS key",
        ),
        (
            |of| of["contexts"]["0"]["key"] = json!("6d:5a"),
            "the RSS key of 2 bytes is too short",
        ),
        (
            |of| of["contexts"]["0"]["function"] = json!(2),
            "the hash function XOR is not publicly defined",
        ),
        (
            |of| of["contexts"]["0"]["function"] = json!(0),
            "the driver does not report its hash function",
        ),
        (
            |of| of["contexts"]["0"]["transform"] = json!(4),
            "the transformation 4 of the hash's input",
        ),
        (
            |of| of["contexts"]["0"]["table"] = json!([0, 1, 2]),
            "the RSS table has 3 entries",
        ),
        (
            |of| of["contexts"] = json!({}),
            "there are 4 receive queues",
        ),
        (
            |of| of["fields"] = json!({}),
            "which fields it hashes of TCP over IPv4",
        ),
        (|of| of["fields"]["tcp4"] = json!(0xd0), "RXH bits 0xd0"),
        (
            |of| of["filter_count"] = json!(2),
            "2 ntuple filters are set, and what they match is not known",
        ),
        (
            |of| of["filter_count"] = json!(null),
            "whether ntuple filters are set is not known",
        ),
    ];
    for (change, expected) in cases {
        let mut answer = reported();
        change(&mut answer);
        let run = asked(&machine(&answer), &["10.0.0.1:1", "10.0.0.2:2"]);
        assert_eq!(run.code, 1, "{expected}: {}", run.stdout);
        assert!(
            run.stdout.starts_with("unknown: ") && run.stdout.contains(expected),
            "{expected}: {}",
            run.stdout
        );
    }
    let run = asked(&Copy::of("two-node"), &["10.0.0.1:1", "10.0.0.2:2"]);
    assert_eq!(
        (run.code, run.stdout.as_str()),
        (
            1,
            "unknown: ethtool reports nothing about how nic0 distributes flows\n"
        )
    );
}

/// The hash does not matter where the table has one queue only.
#[test]
fn a_table_of_one_queue_needs_no_key() {
    let mut answer = reported();
    answer["contexts"]["0"]["table"] = json!([3, 3, 3, 3]);
    answer["contexts"]["0"]["key"] = json!("");
    let run = asked(&machine(&answer), &["10.0.0.1:1", "10.0.0.2:2"]);
    assert_eq!(
        (run.code, run.stdout.as_str()),
        (0, "queue 3, IRQ 42, CPU 7 (node 1, L3 of 4-7)\n")
    );
}

/// The kernel hands packets to `cpus[hash * number >> 32]`, by the device's hash if the driver marks it as one of ports.
#[test]
fn rps_moves_a_flow() {
    let machine = machine(&reported());
    for queue in 0..4 {
        let rx = format!("/sys/class/net/nic0/queues/rx-{queue}/rps_cpus");
        machine.write(&rx, "0f\n");
    }
    // 0x51ccc178 of 2^32, times four CPUs: 1.
    let run = asked(&machine, &["66.9.149.187:2794", "161.142.100.80:1766"]);
    assert_eq!(
        (run.code, run.stdout.as_str()),
        (
            0,
            "queue 0, IRQ 36, CPU 4; then RPS: CPU 1 (node 0, L3 of 0-3)\n"
        )
    );
    let udp = asked(
        &machine,
        &["--udp", "66.9.149.187:2794", "161.142.100.80:1766"],
    );
    assert_eq!(udp.code, 1);
    assert!(
        udp.stdout
            .contains("; then unknown: RPS distributes by a hash that the kernel computes"),
        "{}",
        udp.stdout
    );
}

#[test]
fn ports_arrive_where_they_were_asked_to() {
    let machine = machine(&reported());
    let (code, json) = answered(
        &machine,
        &[
            "10.0.0.1",
            "10.0.0.2:5201",
            "--to-cpu",
            "6",
            "--ports",
            "200",
        ],
    );
    let ports = json["ports"][0]["ports"].as_array().unwrap();
    assert_eq!((code, ports.len()), (0, 200));
    for port in ports.iter().step_by(20) {
        let (_, json) = answered(&machine, &[&format!("10.0.0.1:{port}"), "10.0.0.2:5201"]);
        assert_eq!(json["arrivals"][0]["cpu"], 6, "{port}");
    }
    let none = asked(&machine, &["10.0.0.1", "10.0.0.2:5201", "--to-cpu", "0"]);
    assert_eq!(
        (none.code, none.stdout.as_str()),
        (1, "nic0: no source port arrives on CPU 0\n")
    );
}

#[test]
fn connections_of_ss_are_counted_by_queue_and_cpu() {
    let machine = machine(&reported());
    let mut lines = String::new();
    for port in 40_001..=40_040 {
        lines += &format!("ESTAB 0 0 10.0.0.2:5201 10.0.0.1:{port}\n\t cubic rto:204\n");
    }
    lines += "ESTAB 0 0 127.0.0.1:1 127.0.0.1:2\n";
    let mut command = Command::new(env!("CARGO_BIN_EXE_nicpin"));
    command
        .args(["flow", "nic0", "-", "--json", "--root"])
        .arg(machine.path("/"));
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(lines.as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
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

#[test]
fn wrong_ends_are_usage_errors() {
    let machine = machine(&reported());
    for (args, expected) in [
        (&["10.0.0.1:1"][..], "DST is missing"),
        (&["10.0.0.1", "10.0.0.2:2"], "SRC and DST need a port"),
        (&["10.0.0.1:1", "[::1]:2"], "not both IPv4 or both IPv6"),
        (
            &["here:1", "10.0.0.2:2"],
            "`here:1` is not an address such as 10.0.0.1:5201",
        ),
        (
            &["10.0.0.1:1", "10.0.0.2:2", "--to-cpu", "1"],
            "SRC takes none",
        ),
        (
            &["10.0.0.1", "10.0.0.2:2", "--to-cpu", "99"],
            "not an online CPU of this machine (0-7)",
        ),
        (&["-", "10.0.0.2:2"], "it takes no DST"),
    ] {
        let run = asked(&machine, args);
        assert_eq!(
            (run.code, run.stdout.as_str()),
            (64, ""),
            "{args:?}: {}",
            run.stderr
        );
        assert!(run.stderr.contains(expected), "{args:?}: {}", run.stderr);
    }
}

/// A vector whose CPU is no longer in its affinity moves at its next interrupt, which the flow's first packet may be.
#[test]
fn a_flow_follows_a_pending_move() {
    let machine = machine(&reported());
    machine.write("/proc/irq/36/effective_affinity_list", "0\n");
    let run = asked(&machine, &["66.9.149.187:2794", "161.142.100.80:1766"]);
    assert_eq!(run.stdout, "queue 0, IRQ 36, CPU 4 (node 1, L3 of 4-7)\n");
}
