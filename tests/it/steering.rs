//! Rule 6 of the default policy: RPS, XPS and RFS, each on a minimal machine.

use serde_json::Value;
use snapbox::{assert_data_eq, str};

use crate::support::captured::{Captured, assert_same_plans};
use crate::support::host::{
    add, codes, combined, cpus, fix, machine, mask, of, plan, plan_by, plan_with, rps_of, set,
};
use crate::support::machine::two_nodes;
use crate::support::run::MachineTree;
use nicpin::cpuset::CpuSet;
use nicpin::machine::Channels;
use nicpin::plan::Plan;

fn why(plan: &Plan, name: &str) -> String {
    of(plan, name).rx_queues[0].why.to_string()
}

#[test]
fn rule_6_rps_is_off_with_a_receive_queue_per_candidate_core() {
    let mut host = machine(2, 4, 2, 4);
    add(&mut host, "eth0", Some(1), 4);
    // Stale masks from an earlier queue count are cleared.
    host.interfaces[0].rx_queues[0].rps_cpus = Some(mask(&host, &set("0-3")));
    let plan = plan(&host);
    assert_eq!(rps_of(&plan, "eth0"), ["", "", "", ""]);
    let write = plan
        .writes
        .iter()
        .find(|write| write.path.ends_with("rps_cpus"))
        .unwrap();
    assert_eq!(
        (&*write.path, write.value.as_str()),
        ("/sys/class/net/eth0/queues/rx-0/rps_cpus", "0000")
    );
}

#[test]
fn rule_6_rps_stands_in_for_queues_that_the_card_does_not_have() {
    let mut host = machine(2, 8, 1, 4);
    add(&mut host, "eth0", Some(1), 2);
    host.interfaces[0].channels = Some(combined(2, 2));
    let plan = plan(&host);
    assert_eq!(cpus(of(&plan, "eth0")), ["8", "12"]);
    assert_eq!(
        rps_of(&plan, "eth0"),
        ["9-11", "13-15"],
        "each the free cores of its own L3 domain"
    );
    assert_data_eq!(
        why(&plan, "eth0"),
        str!["to idle cores: the device has no more queues"]
    );
}

/// Its queues carry nothing. When it comes up, the watcher plans again.
#[test]
fn rule_6_a_card_that_is_down_covers_no_core() {
    let mut host = machine(1, 8, 1, 4);
    add(&mut host, "eth0", Some(0), 2);
    host.interfaces[0].channels = Some(combined(2, 2));
    add(&mut host, "eth1", Some(0), 8);
    assert_eq!(rps_of(&plan(&host), "eth0"), ["", ""]);
    host.interfaces[1].is_down = true;
    assert_eq!(rps_of(&plan(&host), "eth0"), ["2-3", "5-7"]);
}

/// mlx5 requests a channel's IRQ when it is first opened, or RDMA wants it.
#[test]
fn rule_6_queues_that_get_irqs_when_the_interface_comes_up_need_no_rps() {
    let mut host = machine(1, 8, 1, 4);
    add(&mut host, "eth0", Some(0), 4);
    let eth0 = &mut host.interfaces[0];
    (eth0.driver, eth0.channel_vectors) = (Some("mlx5_core".to_owned()), true);
    eth0.channels = Some(combined(4, 4));
    let all = eth0.vectors.clone();
    eth0.vectors.truncate(2);
    let up = plan(&host);
    assert_eq!(rps_of(&up, "eth0"), ["2-3", "5,7", "2-3", "5-6"]);
    assert_eq!(codes(of(&up, "eth0")), ["queues-unserved"]);
    host.interfaces[0].is_down = true;
    let down = plan(&host);
    assert_eq!(rps_of(&down, "eth0"), ["-"; 4]);
    assert_data_eq!(
        why(&down, "eth0"),
        str!["its queues get IRQs when it comes up"]
    );
    assert_eq!(codes(of(&down, "eth0")), [""; 0]);
    assert!(of(&down, "eth0").is_judged());
    // It was up, and keeps them.
    host.interfaces[0].vectors = all;
    assert!(!rps_of(&plan(&host), "eth0").contains(&"-".to_owned()));
}

/// Four receive queues, twelve cores, no SMT.
#[test]
fn rule_6_a_tg3_alone_on_its_node_gets_rps_without_cpu_0() {
    let mut host = machine(1, 12, 1, 6);
    add(&mut host, "em1", Some(0), 4);
    host.interfaces[0].driver = Some("tg3".to_owned());
    host.interfaces[0].channels = Some(Channels {
        max_rx: 4,
        max_tx: 4,
        rx: 4,
        tx: 1,
        ..Channels::default()
    });
    let plan = plan(&host);
    assert_eq!(cpus(of(&plan, "em1")), ["1", "2", "6", "7"]);
    // Each queue has two CPUs of its L3 domain; one of the first domain's three is shared.
    assert_eq!(rps_of(&plan, "em1"), ["3,5", "3-4", "8,10", "9,11"]);
    assert_data_eq!(
        why(&plan, "em1"),
        str!["to idle cores (not CPU 0's): the device has no more queues"]
    );
}

/// A driver with a single queue; the kernel has no `xps_cpus` then.
#[test]
fn rule_6_a_driver_with_one_queue_gets_rps() {
    let mut host = machine(1, 4, 2, 4);
    add(&mut host, "eth0", Some(0), 1);
    add(&mut host, "eth1", Some(0), 1);
    let plan = plan(&host);
    assert_eq!(
        (cpus(of(&plan, "eth0")), cpus(of(&plan, "eth1"))),
        (vec!["1".to_owned()], vec!["2".to_owned()])
    );
    for name in ["eth0", "eth1"] {
        assert_eq!(
            rps_of(&plan, name),
            ["0,3"],
            "a thread of each core that takes no queue; that of CPU 0, since a set has two"
        );
    }
    // tg3 has four queues, and one with an INTx line.
    let everywhere = mask(&host, &host.topology.online);
    host.interfaces[0].tx_queues[0].xps_cpus = Some(everywhere);
    assert_eq!(rps_of(&crate::support::host::plan(&host), "eth0"), ["0,3"]);
    host.interfaces[0].device.irqs = vec![32, 33];
    assert_eq!(rps_of(&crate::support::host::plan(&host), "eth0"), [""]);
}

#[test]
fn rule_6_rps_stays_off_where_the_limit_is_unknown_or_the_function_is_virtual() {
    let mut host = machine(2, 16, 1, 4);
    add(&mut host, "eth0", Some(1), 2);
    let why = |host: &nicpin::machine::Machine| {
        let plan = plan(host);
        assert_eq!(rps_of(&plan, "eth0"), ["", ""]);
        why(&plan, "eth0")
    };
    assert_data_eq!(
        why(&host),
        str!["the number of queues that the device can have is unknown"]
    );
    host.interfaces[0].channels = Some(combined(2, 2));
    assert_eq!(rps_of(&plan(&host), "eth0"), ["17-19", "21-23"]);
    // The channels of a tree are not recorded, but those of vmxnet3 are fixed.
    host.interfaces[0].channels = None;
    host.interfaces[0].driver = Some("vmxnet3".to_owned());
    assert_eq!(rps_of(&plan(&host), "eth0"), ["17-19", "21-23"]);
    host.interfaces[0].device.parent = Some("0000:01:00.0".to_owned());
    let of_parent = why(&host);
    assert_data_eq!(&of_parent, str!["the device is an SR-IOV virtual function"]);
    host.interfaces[0].device.parent = None;
    host.interfaces[0].driver = Some("iavf".to_owned());
    assert_eq!(why(&host), of_parent);
}

/// Two interfaces with four queues each on eight cores: no core is free.
#[test]
fn rule_6_the_cores_of_other_interfaces_are_not_free() {
    let mut host = machine(1, 8, 2, 8);
    for name in ["eth0", "eth1"] {
        add(&mut host, name, Some(0), 4);
    }
    for interface in &mut host.interfaces {
        interface.channels = Some(combined(4, 4));
    }
    let plan = plan_with(&host, &[], &["eth0"]);
    assert_eq!(rps_of(&plan, "eth0"), ["", "", "", ""]);
    assert_data_eq!(why(&plan, "eth0"), str!["every core already has a queue"]);
}

/// Four cards with as many queues as they can have leave half as many cores.
#[test]
fn rule_6_idle_cores_are_as_many_as_the_queues_of_all_interfaces_that_need_them() {
    let mut host = machine(1, 24, 1, 24);
    for name in ["eth0", "eth1", "eth2", "eth3"] {
        add(&mut host, name, Some(0), 4);
    }
    for interface in &mut host.interfaces {
        interface.channels = Some(combined(4, 4));
    }
    let together = plan(&host);
    assert_eq!(rps_of(&together, "eth3"), [""; 4]);
    assert_data_eq!(
        why(&together, "eth3"),
        str!["too few idle cores: 8 for 16 queues"]
    );
    // One that could have more queues needs none.
    host.interfaces.truncate(2);
    host.interfaces[1].channels = Some(combined(4, 8));
    let alone = plan(&host);
    assert!(rps_of(&alone, "eth0").iter().all(|cpus| !cpus.is_empty()));
}

/// 63 queues on 64 cores: one core does not help them all.
#[test]
fn rule_6_a_few_free_cores_are_not_given_to_a_few_of_many_queues() {
    let mut host = machine(1, 64, 2, 8);
    add(&mut host, "eth0", Some(0), 63);
    host.interfaces[0].channels = Some(combined(63, 63));
    let plan = plan(&host);
    assert!(rps_of(&plan, "eth0").iter().all(String::is_empty));
    assert_data_eq!(
        why(&plan, "eth0"),
        str!["too few idle cores: 1 for 63 queues"]
    );
}

#[test]
fn rule_6_rps_stays_off_when_the_card_could_have_more_queues() {
    let mut host = machine(2, 8, 1, 8);
    add(&mut host, "eth0", Some(1), 2);
    host.interfaces[0].channels = Some(combined(2, 6));
    let more = plan(&host);
    assert_eq!(rps_of(&more, "eth0"), ["", ""]);
    assert_eq!(codes(of(&more, "eth0")), ["more-queues-possible"]);
    assert_eq!(
        fix(of(&more, "eth0")).as_deref(),
        Some("nicpin apply --channels 6 eth0")
    );
    host.interfaces[0].channels = Some(combined(2, 2));
    assert_eq!(rps_of(&plan(&host), "eth0"), ["10,12,14", "11,13,15"]);
}

/// At most eight CPUs, four up to 1 Gbit/s; interfaces get different ones before any is shared.
#[test]
fn rule_6_rps_sets_are_small_and_different() {
    let mut host = machine(1, 32, 2, 32);
    for name in ["eth0", "eth1"] {
        add(&mut host, name, Some(0), 1);
    }
    for interface in &mut host.interfaces {
        interface.channels = Some(combined(1, 1));
    }
    host.interfaces[1].supported_mbps = Some(1000);
    let plan = plan(&host);
    assert_eq!(rps_of(&plan, "eth0"), ["3,5,7,9,11-14"]);
    assert_eq!(rps_of(&plan, "eth1"), ["4,6,8,10"]);
    let workers = &of(&plan, "eth0").worker_cpus;
    assert_eq!(workers.to_string(), "0,15-32,47-63");
    let one = plan_with(&host, &[], &["eth1"]);
    assert_eq!(rps_of(&one, "eth1"), ["4,6,8,10"], "whatever is selected");
    assert_eq!(of(&one, "eth1").worker_cpus, *workers);
}

#[test]
fn rule_6_rps_as_requested() {
    let mut host = machine(2, 4, 1, 4);
    add(&mut host, "eth0", Some(1), 2);
    let with = |rps| rps_of(&plan_with(&host, &[("rps", rps)], &[]), "eth0");
    assert_eq!(with("off"), ["", ""]);
    assert_eq!(with("0-1,99"), ["0-1", "0-1"]);
    // CPUs that the kernel takes no packets for count as free, as without the request.
    (host.topology.isolated, host.topology.rps_filter) = (set("6-7"), set("6-7"));
    let plan = plan_with(&host, &[("rps", "5-7")], &[]);
    assert_eq!(rps_of(&plan, "eth0"), ["5", "5"]);
    assert_eq!(of(&plan, "eth0").worker_cpus.to_string(), "6-7");
    assert_eq!(codes(of(&plan, "eth0")), ["rps-filtered"]);
    // The file holds such a CPU: the kernel, before Linux 5.9, removes none.
    let now = mask(&host, &set("7"));
    host.interfaces[0].rx_queues[0].rps_cpus = Some(now);
    let plan = plan_with(&host, &[("rps", "5-7")], &[]);
    assert_eq!(rps_of(&plan, "eth0"), ["5-7", "5-7"]);
    // A queue without the file: a request for every queue is refused.
    host.interfaces[0].rx_queues[1].rps_cpus = None;
    let without = plan_with(&host, &[("rps", "off")], &[]);
    let rx = &of(&without, "eth0").rx_queues[1];
    assert_eq!(rx.rps_cpus, None);
    assert_data_eq!(rx.why.to_string(), str!["there is no rps_cpus"]);
    let plan = plan_with(&host, &[("rps", "5-7")], &[]);
    assert_eq!(rps_of(&plan, "eth0"), ["-", "-"]);
    assert_eq!(codes(of(&plan, "eth0")), ["queue-files-missing"]);
    // No queue has it.
    host.interfaces[0].rx_queues.clear();
    let plan = plan_with(&host, &[("rps", "5-7,99")], &[]);
    assert_eq!(codes(of(&plan, "eth0")), ["queue-files-missing"]);
}

#[test]
fn rule_6_rps_that_no_cpu_can_take_is_unmet() {
    let mut host = machine(2, 4, 1, 4);
    add(&mut host, "eth0", Some(1), 2);
    (host.topology.isolated, host.topology.rps_filter) = (set("6-7"), set("6-7"));
    for options in [
        &[("rps", "6-7")][..],
        &[("rps", "99")],
        &[("rps", "5"), ("exclude", "5")],
    ] {
        let plan = plan_with(&host, options, &[]);
        assert_eq!(codes(of(&plan, "eth0")), ["cpus-unusable"], "{options:?}");
        assert_eq!(plan.writes, [], "it stays as it is");
    }
}

/// Returns the CPUs of each transmit queue of `eth0`; `-` where they are left unchanged.
fn xps(plan: &Plan) -> Vec<String> {
    let queues = of(plan, "eth0").tx_queues.iter();
    let cpus = queues.map(|tx| tx.xps_cpus.as_ref());
    cpus.map(|cpus| cpus.map_or("-".to_owned(), CpuSet::to_string))
        .collect()
}

#[test]
fn rule_6_xps_parts_all_online_cpus_by_nearest_completion() {
    let mut host = machine(2, 2, 2, 2);
    add(&mut host, "eth0", Some(1), 2);
    // Node 1 has the cores 2,6 and 3,7; the CPUs of node 0 are divided evenly, by cores.
    assert_eq!(xps(&plan(&host)), ["0,2,4,6", "1,3,5,7"]);
    let with = |x| xps(&plan_with(&host, &[("xps", x)], &[]));
    assert_eq!(with("off"), ["", ""]);
    assert_eq!(with("keep"), ["-", "-"]);
}

#[test]
fn rule_6_xps_parts_all_online_cpus_among_the_queues_of_each_traffic_class() {
    let mut host = machine(2, 2, 2, 2);
    add(&mut host, "eth0", Some(1), 4);
    let queues = &mut host.interfaces[0].tx_queues;
    for (tx, class) in queues.iter_mut().zip(["0", "0", "1", "1"]) {
        tx.class = class.to_owned();
    }
    let [a, b] = ["0,2,4,6", "1,3,5,7"];
    assert_eq!(xps(&plan(&host)), [a, b, a, b]);
    let by_rxqs = plan_with(&host, &[("xps", "rxqs")], &[]);
    let queues = of(&by_rxqs, "eth0").tx_queues.iter();
    let received = queues.map(|tx| tx.xps_rxqs.clone().unwrap());
    assert!(received.eq(["0,2", "1,3", "0,2", "1,3"].map(set)));
    // The kernel refuses to read and to write XPS of a queue in no class.
    host.interfaces[0].tx_queues[3].xps_cpus = None;
    let plan = plan(&host);
    assert_eq!(xps(&plan), [a, b, "0-7", "-"]);
    assert_data_eq!(
        of(&plan, "eth0").tx_queues[3].why.to_string(),
        str!["it has no readable xps_cpus: it may be in no traffic class"]
    );
}

/// Ranges of queues in any order, also of a subordinate interface.
#[test]
fn traffic_classes_of_transmit_queues_are_read() {
    for classes in [
        ["0", "0", "1", "1"],
        ["1", "1", "0", "0"],
        ["0", "0", "0-2", "0-2"],
    ] {
        let machine = MachineTree::of("two-node");
        let file = |tx: usize, name: &str| format!("/sys/class/net/nic0/queues/tx-{tx}/{name}");
        for (tx, class) in classes.iter().enumerate() {
            let class = format!("{class}\n");
            machine.put(&file(tx, "traffic_class"), &class);
        }
        let captured = Captured::of(machine.dir());
        assert_same_plans(machine.dir(), &captured.file());
        assert_eq!(machine.nicpin(&["apply"]).code, 0);
        let masks = [0, 1, 2, 3].map(|tx| machine.read(&file(tx, "xps_cpus")));
        assert_eq!(masks, ["33", "cc", "3a", "c5"], "{classes:?}");
        // A CPU then has a queue of its own in one class only.
        machine.write(&file(3, "xps_cpus"), "c4\n");
        let check = machine.nicpin(&["check", "nic0"]);
        assert_eq!(check.code, 2, "{}", check.stdout);
    }
}

#[test]
fn rule_6_rfs_only_on_request_and_over_all_interfaces() {
    let mut host = machine(2, 4, 1, 4);
    add(&mut host, "eth0", Some(1), 4);
    add(&mut host, "eth1", Some(0), 2);
    host.flow_entries = Some(0);
    let flows = |plan: &nicpin::plan::Plan| of(plan, "eth0").rx_queues[0].rps_flow_cnt;
    assert_eq!(flows(&plan(&host)), None);
    // Six queues share a table of 32,768: 4,096 each is the largest power of two that fits.
    let rfs = |rfs| plan_with(&host, &[("rfs", rfs)], &["eth0"]);
    let planned = rfs("30000");
    assert_eq!(flows(&planned), Some(4096));
    let table = planned.writes.last().unwrap();
    assert_eq!(
        (&*table.path, table.value.as_str()),
        ("/proc/sys/net/core/rps_sock_flow_entries", "32768")
    );
    assert_eq!(flows(&rfs("off")), Some(0));
    // An interface that is down without vectors has no share, selected or not.
    add(&mut host, "eth2", Some(0), 8);
    host.interfaces[2].vectors.clear();
    host.interfaces[2].is_down = true;
    for selected in [&["eth0"][..], &["eth0", "eth2"]] {
        let planned = plan_with(&host, &[("rfs", "30000")], selected);
        assert_eq!(flows(&planned), Some(4096), "{selected:?}");
    }
    // In a network namespace, the flow table is not visible.
    host.flow_entries = None;
    let planned = plan_with(&host, &[("rfs", "30000")], &["eth0"]);
    assert_eq!(codes(of(&planned, "eth0")), ["no-flow-table"]);
    let planned = plan_with(&host, &[("rfs", "off")], &["eth0"]);
    assert_eq!(codes(of(&planned, "eth0")), [""; 0]);
}

/// Of the interface that is not selected, whose flows stay as they are.
#[test]
fn rule_6_the_flow_table_is_not_taken_from_another_interface() {
    let tree = MachineTree::of("two-socket-mlx4");
    let table = || {
        tree.read("/proc/sys/net/core/rps_sock_flow_entries")
            .trim()
            .to_owned()
    };
    for (entries, interface, expected) in [
        ("8192", "eth2", "8192"),
        ("off", "eth0", "8192"),
        ("4096", "eth0", "8192"),
        ("16384", "eth0", "16384"),
        ("off", "eth2", "16384"),
    ] {
        assert_eq!(tree.nicpin(&["apply", "--rfs", entries, interface]).code, 0);
        assert_eq!(table(), expected, "{entries} {interface}");
    }
    assert_eq!(tree.nicpin(&["apply", "--rfs", "off"]).code, 0);
    assert_eq!(table(), "0");
}

#[test]
fn rule_10_the_rps_work_of_an_interface_that_is_skipped_is_no_workers() {
    let mut host = machine(1, 8, 1, 8);
    add(&mut host, "eth0", Some(0), 1);
    add(&mut host, "eth1", Some(0), 1);
    host.interfaces[1].rx_queues[0].rps_cpus = Some(mask(&host, &set("4-5")));
    host.interfaces[1].vectors[0].effective = Some(set("7"));
    let text =
        "[defaults]\nrps = 'off'\n[[rule]]\nmatch = { name = 'eth1' }\nset = { skip = true }\n";
    let plan = plan_by(&host, text);
    assert_eq!(of(&plan, "eth0").worker_cpus, set("0,2-3,6"));
}

/// RPS and XPS are the network stack's own: they need no IRQ of the device.
#[test]
fn steering_without_irqs() {
    let tree = MachineTree::build(&two_nodes([]));
    tree.add("sys/devices/usb1/1-1/1-1:1.0", "usb", "r8152", "eth1", 1);
    tree.put("sys/class/net/eth1/operstate", "up");
    tree.put("sys/class/net/eth1/queues/rx-0/rps_cpus", "00");
    tree.interrupts(9, "IO-APIC", &["acpi", "xhci_hcd:usb1"]);
    let json = |args: &[&str]| -> Value {
        let run = tree.nicpin(&[&["plan", "--json", "eth1"], args].concat());
        assert_eq!(run.code, 0, "{}", run.stderr);
        run.json()
    };
    let plan = json(&[]);
    let rx = &plan["interfaces"][0]["rx_queues"][0];
    assert_ne!(rx["rps_cpus"], "", "{rx}");
    let notes = plan["interfaces"][0]["notes"].as_array().unwrap();
    let none = notes
        .iter()
        .find(|note| note["code"] == "no-vectors")
        .unwrap();
    assert_eq!(none["controller"], "xhci_hcd (IRQ 10)");
    // USB with several controllers: that of its bus; SDIO: its host.
    tree.interrupts(20, "IO-APIC", &["xhci-hcd:usb3"]);
    let controller = |interface: &str| {
        let run = tree.nicpin(&["plan", "--json", interface]);
        let plan = run.json();
        let notes = plan["interfaces"][0]["notes"].as_array().unwrap().clone();
        let none = notes.into_iter().find(|note| note["code"] == "no-vectors");
        none.unwrap()["controller"].clone()
    };
    assert_eq!(controller("eth1"), "xhci_hcd (IRQ 10)");
    // It is on the node of its controller.
    let host = "sys/devices/pci0000:80/0000:80:14.0";
    tree.add(
        &format!("{host}/usb3/3-1/3-1:1.0"),
        "usb",
        "cdc_ether",
        "idrac",
        1,
    );
    tree.put(&format!("{host}/numa_node"), "1");
    tree.put("sys/class/net/idrac/operstate", "up");
    let idrac = tree.nicpin(&["plan", "--json", "idrac"]).json();
    assert_eq!(idrac["interfaces"][0]["node"], 1);
    let card = "sys/devices/platform/mmc_host/mmc1/mmc1:0001/mmc1:0001:1";
    tree.add(card, "sdio", "brcmfmac", "wlan0", 1);
    tree.interrupts(30, "GICv2", &["mmc0", "mmc1"]);
    tree.put("sys/class/net/wlan0/operstate", "up");
    assert_eq!(controller("wlan0"), "mmc1 (IRQ 31)");
    let given = json(&["--rps", "1-2"]);
    assert_eq!(given["interfaces"][0]["rx_queues"][0]["rps_cpus"], "1-2");
    // A setting whose file the kernel does not have is refused by every command.
    let flows = "sys/class/net/eth1/queues/rx-0/rps_flow_cnt";
    for command in [&["plan"][..], &["plan", "--format", "sh"], &["check"]] {
        let run = tree.nicpin(&[command, &["eth1", "--rfs", "512"]].concat());
        assert!(
            run.code == 64 && run.stderr.contains("--rfs: rps_flow_cnt"),
            "{}",
            run.stderr
        );
    }
    tree.put(flows, "0");
    let given = json(&["--rfs", "512"]);
    assert_eq!(given["interfaces"][0]["rx_queues"][0]["rps_flow_cnt"], 512);
}

/// The device can have no more queues, and all cores have queues of another card.
#[test]
fn a_single_queue_shares_the_cores_of_others() {
    let mut host = machine(1, 8, 1, 8);
    add(&mut host, "eth0", Some(0), 8);
    add(&mut host, "eth1", Some(0), 1);
    host.interfaces[1].tx_queues[0].xps_cpus = None;
    let planned = plan(&host);
    let eth1 = of(&planned, "eth1");
    let rps = eth1.rx_queues[0].rps_cpus.clone().unwrap();
    assert_eq!(rps.len(), 4, "{rps}");
    assert!(!rps.intersects(eth1.vectors[0].cpus.as_ref().unwrap()));
    // A card that is down, or has two queues, gets none.
    host.interfaces[1].is_down = true;
    assert_eq!(rps_of(&plan(&host), "eth1"), [""]);
    let mut host = machine(1, 8, 1, 8);
    add(&mut host, "eth0", Some(0), 8);
    add(&mut host, "eth1", Some(0), 2);
    let planned = plan(&host);
    assert_eq!(rps_of(&planned, "eth1"), ["", ""]);
}

/// Each flow on a slow core is slow.
#[test]
fn rps_prefers_fast_cores() {
    let mut host = machine(1, 8, 1, 8);
    add(&mut host, "eth0", Some(0), 1);
    host.interfaces[0].tx_queues[0].xps_cpus = None;
    host.topology.speed_classes = vec![set("4-7"), set("0-3")];
    let rps = |host: &_| rps_of(&plan(host), "eth0");
    assert_eq!(rps(&host), ["5-7"]);
    // If too few fast cores are idle, slow ones take packets, too.
    host.topology.speed_classes = vec![set("6-7"), set("0-5")];
    assert_eq!(rps(&host), ["1-5,7"]);
}
