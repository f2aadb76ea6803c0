//! `nicpin flow`: the queue, IRQ and CPU of flows on machines whose answers of ethtool are known.

mod connections;

use serde_json::{Value, json};
use snapbox::{assert_data_eq, str};

use crate::support::run::{MachineTree, Run, expect, text};
use nicpin::flow::{Flow, Protocol, arrival};
use nicpin::machine::Machine;
use nicpin::machine::rx_hash::{Filter, FilterTarget, FlowKind};

/// The key of the RSS specification's test values.
const KEY: [u8; 40] = [
    0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0,
    0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30, 0xf2, 0x0c,
    0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
];

/// Addresses, and addresses with ports.
const TWO: u32 = 0x30;
const FOUR: u32 = 0xf0;

/// What ethtool reports of a card that hashes TCP by ports and UDP by addresses, over four queues.
fn reported() -> Value {
    let table: Vec<u32> = (0..128).map(|at| at % 4).collect();
    json!({
        "contexts": {"0": {"function": 1, "transform": 0, "key": KEY.to_vec(), "table": table}},
        "fields": {"tcp4": FOUR, "udp4": TWO, "tcp6": FOUR, "udp6": TWO},
        "to_stack": true,
        "filter_count": 0,
        "release": [7, 1],
        "system_key": [],
    })
}

/// `two-node` with this answer of ethtool about nic0; each of its queues on one CPU.
fn machine(answer: &Value) -> MachineTree {
    let machine = MachineTree::of("two-node");
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

fn asked(machine: &MachineTree, args: &[&str]) -> Run {
    machine.nicpin(&[&["flow", "nic0"], args].concat())
}

/// The answer as JSON, with its exit code.
fn answered(machine: &MachineTree, args: &[&str]) -> (i32, Value) {
    let run = asked(machine, &[args, &["--json"]].concat());
    let value = serde_json::from_str(&run.stdout).unwrap_or_else(|_| panic!("{}", run.stderr));
    (run.code, value)
}

/// Where the flow of the specification arrives whose hash is 0x51ccc178: of 128 entries the 120th, queue 0.
const ENDS: [&str; 2] = ["66.9.149.187:2794", "161.142.100.80:1766"];

/// The exit code, and queue, IRQ and CPUs of the IRQ, of RPS and of the stack on which a flow arrives.
fn followed(machine: &MachineTree, args: &[&str]) -> (i32, Value) {
    let (code, json) = answered(machine, args);
    let keys = ["queue", "irq", "irq_cpu", "rps_cpu", "cpu"];
    (code, json!(keys.map(|key| &json["arrivals"][0][key])))
}

/// Why it is not known where a flow arrives.
fn missing(machine: &MachineTree, args: &[&str]) -> String {
    let (code, json) = answered(machine, args);
    assert_eq!(code, 1, "{json}");
    text(&json["arrivals"][0], "missing").to_owned()
}

#[test]
fn a_flow_is_followed_to_its_cpu() {
    let machine = machine(&reported());
    let run = asked(&machine, &ENDS);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    assert_data_eq!(
        run.stdout,
        str![[r"
queue 0, IRQ 36, CPU 4 (node 1, cache of 4-7)

"]]
    );
    assert_eq!(followed(&machine, &ENDS), (0, json!([0, 36, 4, null, 4])));
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
    let cases: [Change; 13] = [
        |of| of["release"] = json!([6, 18]),
        |of| of["release"] = json!(null),
        |of| of["contexts"]["0"]["key"] = json!([]),
        |of| of["contexts"]["0"]["key"] = json!([0x6d, 0x5a]),
        |of| of["contexts"]["0"]["function"] = json!(2),
        |of| of["contexts"]["0"]["function"] = json!(0),
        |of| of["contexts"]["0"]["transform"] = json!(4),
        |of| of["contexts"]["0"]["table"] = json!([0, 1, 2]),
        |of| of["contexts"] = json!({}),
        |of| of["fields"] = json!({}),
        |of| of["fields"]["tcp4"] = json!(0xd0),
        |of| of["filter_count"] = json!(2),
        |of| of["filter_count"] = json!(null),
    ];
    let ends = ["10.0.0.1:1", "10.0.0.2:2"];
    let said = cases.map(|change| {
        let mut answer = reported();
        change(&mut answer);
        let machine = machine(&answer);
        assert_eq!(
            followed(&machine, &ends),
            (1, json!([null, null, null, null, null]))
        );
        asked(&machine, &ends).stdout
    });
    let unanswered = asked(&MachineTree::of("two-node"), &ends);
    assert_eq!(unanswered.code, 1);
    expect("flow-unknown.txt", said.concat() + &unanswered.stdout);
}

/// The hash does not matter where the table has one queue only.
#[test]
fn a_table_of_one_queue_needs_no_key() {
    let mut answer = reported();
    answer["contexts"]["0"]["table"] = json!([3, 3, 3, 3]);
    answer["contexts"]["0"]["key"] = json!([]);
    let found = followed(&machine(&answer), &["10.0.0.1:1", "10.0.0.2:2"]);
    assert_eq!(found, (0, json!([3, 42, 7, null, 7])));
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
    assert_eq!(followed(&machine, &ENDS), (0, json!([0, 36, 4, 1, 1])));
    let udp = [&["--udp"], &ENDS[..]].concat();
    let found = followed(&machine, &udp);
    assert_eq!(found, (1, json!([2, 40, 6, null, null])));
    let screens = [&ENDS[..], &udp].map(|args| asked(&machine, args).stdout);
    assert_data_eq!(
        screens.concat(),
        str![[r"
queue 0, IRQ 36, CPU 4; then RPS: CPU 1 (node 0, cache of 0-3)
queue 2, IRQ 40, CPU 6; then unknown: RPS distributes by a hash that the kernel computes with a secret key, since the device does not hash its ports

"]]
    );
}

/// A hash of 0 is none to the kernel (`get_rps_cpu`), also where RPS has one CPU only.
#[test]
fn rps_leaves_a_flow_whose_hash_is_zero() {
    let mut answer = reported();
    // It matters to inputs longer than these.
    answer["contexts"]["0"]["key"] = json!([&[0; 39][..], &[1]].concat());
    let machine = machine(&answer);
    for mask in ["0f\n", "01\n"] {
        machine.write("/sys/class/net/nic0/queues/rx-0/rps_cpus", mask);
        let found = followed(&machine, &["10.0.0.1:1", "10.0.0.2:2"]);
        assert_eq!(found, (0, json!([0, 36, 4, null, 4])));
        let to = |cpu| asked(&machine, &["10.0.0.1", "10.0.0.2:2", "--to-cpu", cpu]).code;
        assert_eq!([to("0"), to("4")], [1, 0]);
    }
}

/// That receive-hashing is off is not said where it is not known.
#[test]
fn rps_by_a_hash_that_may_be_the_devices_is_unknown() {
    let said = [json!(null), json!(false)].map(|to_stack| {
        let mut answer = reported();
        answer["to_stack"] = to_stack;
        let machine = machine(&answer);
        let rps = "/sys/class/net/nic0/queues/rx-0/rps_cpus";
        machine.write(rps, "01\n");
        assert_eq!(followed(&machine, &ENDS), (0, json!([0, 36, 4, 0, 0])));
        machine.write(rps, "0f\n");
        missing(&machine, &ENDS)
    });
    assert_data_eq!(
        said.join("\n"),
        str![[r"
RPS distributes by the device's hash or the kernel's own: whether receive-hashing is on is not known
RPS distributes by a hash that the kernel computes with a secret key, since receive-hashing is off
"]]
    );
}

/// Where the kernel does not report effective affinities.
#[test]
fn an_interrupt_arrives_on_an_online_cpu() {
    let machine = machine(&reported());
    machine.remove("/proc/irq/36/effective_affinity_list");
    machine.write("/proc/irq/36/smp_affinity", "c0\n");
    let said = [
        ("0-6\n", json!(6)),
        ("0-7\n", json!(null)),
        ("0-5\n", json!(null)),
    ]
    .map(|(online, cpu)| {
        machine.write("/sys/devices/system/cpu/online", online);
        let code = i32::from(cpu.is_null());
        let found = followed(&machine, &ENDS);
        assert_eq!(found, (code, json!([0, 36, cpu, null, cpu])));
        asked(&machine, &ENDS).stdout
    });
    assert_data_eq!(
        said.concat(),
        str![[r"
queue 0, IRQ 36, CPU 6 (node 1, cache of 4-6)
queue 0, IRQ 36; then unknown: IRQ 36 may arrive on any of CPUs 6-7
queue 0, IRQ 36; then unknown: IRQ 36 may arrive on no online CPU

"]]
    );
}

/// The kernel counts a CPU of RPS that went offline, too, and leaves its packets where they are.
#[test]
fn rps_counts_cpus_that_went_offline() {
    let machine = machine(&reported());
    let rps = "/sys/class/net/nic0/queues/rx-0/rps_cpus";
    // 0x51ccc178 of 2^32 is the second of four CPUs.
    for (mask, rps_cpu, cpu) in [
        ("0f\n", json!(1), 1),
        // Of 0, 1, 2 and 5 without 2.
        ("27\n", json!(1), 1),
        ("2c\n", json!(null), 4),
        ("04\n", json!(null), 4),
    ] {
        machine.write("/sys/devices/system/cpu/online", "0-1,3-7\n");
        machine.write(rps, mask);
        let found = followed(&machine, &ENDS);
        assert_eq!(found, (0, json!([0, 36, 4, rps_cpu, cpu])), "{mask}");
    }
}

/// One IRQ may serve several queues, as netlink reports; it is known by the lowest.
#[test]
fn a_queue_that_shares_its_irq_is_followed() {
    let machine = machine(&reported());
    let queues: Vec<_> = (0..4)
        .map(|queue| json!({ "direction": "rx", "id": queue, "napi": 8193 + queue % 2 }))
        .collect();
    let napis = json!([{ "id": 8193, "irq": 36 }, { "id": 8194, "irq": 38 }]);
    let netlink = json!({ "queues": queues, "napis": napis });
    std::fs::create_dir_all(machine.path("/nicpin/netlink")).unwrap();
    machine.write("/nicpin/netlink/nic0", &netlink.to_string());
    // The machine without the vectors of queues 2 and 3.
    let interrupts = machine.read("/proc/interrupts");
    let rows = interrupts.split_inclusive('\n');
    let rows =
        rows.filter(|row| !row.contains("virtio1-input.2") && !row.contains("virtio1-input.3"));
    machine.write("/proc/interrupts", &rows.collect::<String>());
    let found = followed(&machine, &["199.92.111.2:14230", "65.69.140.83:4739"]);
    assert_eq!(found, (0, json!([2, 36, 4, null, 4])));
}

/// Since Linux 6.19 single NAPI instances can be threaded, which the interface's `threaded` does not show.
#[test]
fn the_thread_of_one_queue_is_followed() {
    let machine = machine(&reported());
    let netlink = json!({
        "queues": [{ "direction": "rx", "id": 0, "napi": 8193 }],
        "napis": [{ "id": 8193, "irq": 36, "pid": 612 }],
    });
    for (file, answer) in [
        ("netlink", netlink),
        (
            "threads",
            json!([{ "pid": 612, "napi": 8193, "affinity": "40" }]),
        ),
    ] {
        std::fs::create_dir_all(machine.path(&format!("/nicpin/{file}"))).unwrap();
        machine.write(&format!("/nicpin/{file}/nic0"), &answer.to_string());
    }
    let (code, found) = followed(&machine, &ENDS);
    assert_eq!((code, &found[4]), (0, &json!(6)), "{found}");
    assert_data_eq!(
        asked(&machine, &ENDS).stdout,
        str![[r"
queue 0, IRQ 36, CPU 4; then the NAPI thread: CPU 6 (node 1, cache of 4-7)

"]]
    );
    let other = followed(&machine, &["199.92.111.2:14230", "65.69.140.83:4739"]);
    assert_eq!(other, (0, json!([2, 40, 6, null, 6])));
}

/// What is recorded answers on another machine.
#[test]
fn a_capture_answers_as_the_machine() {
    let machine = machine(&reported());
    let capture = machine.path("/machine.tar");
    let made = machine.nicpin(&["capture", "-o", capture.to_str().unwrap()]);
    assert_eq!(made.code, 0, "{}", made.stderr);
    let flow = |root: &std::path::Path| {
        let root = root.to_str().unwrap();
        let ends = ["66.9.149.187:2794", "161.142.100.80:1766"];
        crate::support::run::nicpin(&[&["flow", "--root", root, "nic0"], &ends[..]].concat())
    };
    let (here, there) = (flow(machine.dir()), flow(&capture));
    assert_eq!(
        (there.code, there.stdout),
        (0, here.stdout),
        "{}",
        there.stderr
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
    assert_eq!(none.code, 1);
    assert_data_eq!(
        none.stdout,
        str![[r#"
nic0: no source port arrives on CPU 0

"#]]
    );
}

/// Ethtool does not report what a device hashes of fragments; where the hash does not matter they are followed.
#[test]
fn fragments_are_unknown_where_they_are_hashed() {
    let ends = ["--fragments", "10.0.0.1", "10.0.0.2"];
    let run = asked(&machine(&reported()), &ends);
    assert_eq!(run.code, 1);
    assert_data_eq!(
        run.stdout,
        str![[r#"
unknown: a fragment has no ports, and how the device hashes fragments is not reported

"#]]
    );
    let mut answer = reported();
    answer["contexts"]["0"]["table"] = json!([3, 3, 3, 3]);
    let run = asked(&machine(&answer), &ends);
    assert_eq!(
        (run.code, run.stdout.as_str()),
        (0, "queue 3, IRQ 42, CPU 7 (node 1, cache of 4-7)\n")
    );
}

/// The first filter that matches decides, before the hash; one that sends to an RSS context takes the table of that.
#[test]
fn filters_and_contexts_go_first() {
    let copy = machine(&reported());
    let options = nicpin::read::ReadOptions::EVERYTHING;
    let root = nicpin::root::Root::open(copy.dir()).unwrap();
    let mut machine = nicpin::read::machine(&root, options).unwrap();
    let at = machine
        .interfaces
        .iter()
        .position(|nic| nic.name == "nic0")
        .unwrap();
    let filter = |location, port: u16, more, to| Filter {
        location,
        kinds: vec![FlowKind::Tcp4],
        addresses: [(0, 0); 2],
        ports: [(0, 0), (port, 0xffff)],
        compares_more: more,
        to,
    };
    let facts = machine.interfaces[at].rx_hash.as_mut().unwrap();
    let mut context = facts.contexts[&0].clone();
    context.table = vec![0, 1];
    facts.contexts.insert(5, context);
    facts.filters = vec![
        filter(9, 1, false, FilterTarget::Queue(1)),
        filter(2, 1, false, FilterTarget::Queue(3)),
        filter(
            3,
            2,
            false,
            FilterTarget::Context {
                context: 5,
                base: 2,
            },
        ),
        filter(
            4,
            3,
            false,
            FilterTarget::Context {
                context: 6,
                base: 0,
            },
        ),
        filter(5, 4, false, FilterTarget::Dropped),
        filter(6, 5, false, FilterTarget::Function(1)),
        filter(7, 6, true, FilterTarget::Queue(1)),
        filter(8, 7, false, FilterTarget::Queue(9)),
    ];
    facts.filter_count = Some(8);
    let to = |port: u16| {
        let end = |address: [u8; 4], port| (address, port).into();
        // The last bit of its hash is 0 or 1 by the source port.
        let flow = Flow::new(
            Protocol::Tcp,
            end([10, 0, 0, 1], 40_000),
            end([10, 0, 0, 2], port),
        );
        let arrival = arrival(&machine, &machine.interfaces[at], &flow);
        let missing = arrival.missing.map(|missing| missing.to_string());
        (arrival.filter, arrival.queue, missing.unwrap_or_default())
    };
    assert_eq!(to(1), (Some(2), Some(3), String::new()));
    let (filter, queue, _) = to(2);
    assert!(
        filter == Some(3) && matches!(queue, Some(2 | 3)),
        "{queue:?}"
    );
    let missing = (3..8).map(|port| to(port).2 + "\n");
    assert_data_eq!(
        missing.collect::<String>(),
        str![[r#"
RSS context 6, to which ntuple filter 4 sends it, is not known
ntuple filter 5 drops it
ntuple filter 6 sends it to virtual function 1
ntuple filter 7 also compares what addresses and ports do not say
receive queue 9 does not exist

"#]]
    );
    let (filter, queue, missing) = to(8);
    assert!(filter.is_none() && queue.is_some() && missing.is_empty());
}

/// Some devices make more of the hash's input, or of the key, than ethtool reports.
#[test]
fn hashes_that_differ_from_what_is_reported_are_unknown() {
    let copy = machine(&reported());
    let root = nicpin::root::Root::open(copy.dir()).unwrap();
    let mut machine = nicpin::read::machine(&root, nicpin::read::ReadOptions::EVERYTHING).unwrap();
    let at = machine
        .interfaces
        .iter()
        .position(|nic| nic.name == "nic0")
        .unwrap();
    let end = |port| ([10, 0, 0, 1], port).into();
    let flow = Flow::new(Protocol::Tcp, end(1), end(2));
    for (driver, release, expected) in [
        (
            "mlx5_core",
            (6, 14),
            Some("before Linux 6.15, mlx5_core does not report"),
        ),
        ("mlx5_core", (6, 15), None),
        (
            "virtio_net",
            (6, 18),
            Some("before Linux 6.19, virtio_net may give the device another"),
        ),
        ("virtio_net", (6, 19), None),
        (
            "ena",
            (7, 3),
            Some("devices of ena compute Toeplitz otherwise than it is defined"),
        ),
        ("igb", (6, 1), None),
        (
            "ixgbe",
            (7, 3),
            Some("ixgbe sends a TCP flow to the queue that last sent for it, unless ntuple"),
        ),
        ("i40e", (7, 3), Some("i40e sends a TCP flow to the queue")),
        ("txgbe", (7, 3), Some("txgbe sends a TCP flow to the queue")),
    ] {
        machine.interfaces[at].driver = Some(driver.to_owned());
        machine.interfaces[at].rx_hash.as_mut().unwrap().release = Some(release);
        let missing = arrival(&machine, &machine.interfaces[at], &flow).missing;
        let missing = missing.map(|missing| missing.to_string());
        assert_eq!(
            missing.is_some(),
            expected.is_some(),
            "{driver}: {missing:?}"
        );
        assert!(
            missing
                .unwrap_or_default()
                .starts_with(expected.unwrap_or_default())
        );
    }
}

/// Drivers that steer TCP by what they send leave UDP to the hash, and TCP, too, where ntuple filters are on.
#[test]
fn udp_is_hashed_where_the_driver_steers_tcp() {
    let copy = machine(&reported());
    let root = nicpin::root::Root::open(copy.dir()).unwrap();
    let mut machine = nicpin::read::machine(&root, nicpin::read::ReadOptions::EVERYTHING).unwrap();
    let mut nics = machine.interfaces.iter_mut();
    let nic = nics.find(|nic| nic.name == "nic0").unwrap();
    nic.driver = Some("ixgbe".to_owned());
    let end = |port| ([10, 0, 0, 1], port).into();
    let is_known = |protocol, ntuple| {
        let mut nic = nic.clone();
        let facts = nic.rx_hash.as_mut().unwrap();
        facts.ntuple = ntuple;
        let flow = Flow::new(protocol, end(1), end(2));
        let arrival = arrival(&Machine::default(), &nic, &flow);
        arrival.queue.is_some()
    };
    assert!(!is_known(Protocol::Tcp, Some(false)));
    assert!(!is_known(Protocol::Tcp, None));
    assert!(is_known(Protocol::Tcp, Some(true)));
    assert!(is_known(Protocol::Udp, Some(false)));
}

/// With accelerated RFS the device has a filter for each flow that a program reads, which ethtool does not list.
#[test]
fn the_queue_is_unknown_where_accelerated_rfs_chooses_it() {
    let copy = machine(&reported());
    let root = nicpin::root::Root::open(copy.dir()).unwrap();
    let machine = nicpin::read::machine(&root, nicpin::read::ReadOptions::EVERYTHING).unwrap();
    let end = |port| ([10, 0, 0, 1], port).into();
    let flow = Flow::new(Protocol::Udp, end(1), end(2));
    for (ntuple, entries, count, is_known) in [
        (Some(true), Some(32_768), Some(2048), false),
        (Some(false), Some(32_768), Some(2048), true),
        (None, Some(32_768), Some(2048), true),
        (Some(true), Some(0), Some(2048), true),
        (Some(true), Some(32_768), Some(0), true),
    ] {
        let mut machine = machine.clone();
        machine.flow_entries = entries;
        let mut nics = machine.interfaces.iter_mut();
        let nic = nics.find(|nic| nic.name == "nic0").unwrap();
        nic.ntuple = ntuple;
        nic.rx_queues[3].rps_flow_cnt = count;
        let nic = nic.clone();
        let arrival = arrival(&machine, &nic, &flow);
        let missing = arrival.missing.map(|missing| missing.to_string());
        assert_eq!(arrival.queue.is_some(), is_known, "{missing:?}");
        assert!(is_known || missing.unwrap().starts_with("accelerated RFS sends it to"));
    }
}

#[test]
fn wrong_ends_are_usage_errors() {
    let machine = machine(&reported());
    let said = [
        &["10.0.0.1:1"][..],
        &["10.0.0.1", "10.0.0.2:2"],
        &["10.0.0.1:1", "[::1]:2"],
        &["here:1", "10.0.0.2:2"],
        &["10.0.0.1:1", "10.0.0.2:2", "--to-cpu", "1"],
        &["10.0.0.1", "10.0.0.2:2", "--to-cpu", "99"],
        &["-", "10.0.0.2:2"],
        &["--fragments", "10.0.0.1:1", "10.0.0.2"],
        &["--fragments", "10.0.0.1", "10.0.0.2", "--to-cpu", "1"],
    ]
    .map(|args| {
        let run = asked(&machine, args);
        assert_eq!((run.code, run.stdout.as_str()), (64, ""), "{args:?}");
        run.stderr
    });
    expect("flow.errors.txt", said.concat());
}

/// A vector whose CPU is no longer in its affinity moves at its next interrupt, which the flow's first packet may be.
#[test]
fn a_flow_follows_a_pending_move() {
    let machine = machine(&reported());
    machine.write("/proc/irq/36/effective_affinity_list", "0\n");
    assert_eq!(followed(&machine, &ENDS), (0, json!([0, 36, 4, null, 4])));
    // One of several CPUs takes the interrupts.
    machine.write("/proc/irq/36/smp_affinity", "f0\n");
    machine.write("/proc/irq/36/effective_affinity_list", "5\n");
    assert_eq!(followed(&machine, &ENDS), (0, json!([0, 36, 5, null, 5])));
}
