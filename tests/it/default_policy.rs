//! The rules of the default policy and the options that override them, each on a minimal machine; rule 6 is in
//! steering.rs.

use std::collections::BTreeSet;

use serde_json::Value;
use snapbox::{assert_data_eq, str};

use crate::support::host::{
    add, codes, combined, cpus, fix, machine, mask, of, plan, plan_by, plan_with, rps_of, set,
    vector,
};
use crate::support::run::{MachineTree, assert_line};
use nicpin::machine::{Channels, Machine, Role, RxQueue};
use nicpin::plan::NodeSource;

#[test]
fn rule_1_candidates_are_the_nodes_online_cpus_without_isolated_nohz_and_excluded() {
    let mut host = machine(2, 8, 1, 8);
    add(&mut host, "eth0", Some(1), 2);
    host.topology.isolated = set("9");
    host.topology.nohz_full = set("10");
    let plan = plan_with(&host, &[("exclude", "11")], &[]);
    assert_eq!(of(&plan, "eth0").candidates, set("8,12-15"));
    assert_eq!(
        (of(&plan, "eth0").node, of(&plan, "eth0").node_source),
        (Some(1), NodeSource::NumaNode)
    );
}

#[test]
fn rule_1_node_unknown_means_the_only_node() {
    let mut host = machine(1, 4, 1, 4);
    add(&mut host, "eth0", None, 2);
    let plan = plan(&host);
    assert_eq!(
        (of(&plan, "eth0").node, of(&plan, "eth0").node_source),
        (Some(0), NodeSource::SingleNode)
    );
}

#[test]
fn rule_1_node_unknown_means_a_smaller_local_cpulist() {
    let mut host = machine(2, 4, 1, 4);
    add(&mut host, "eth0", None, 2);
    host.interfaces[0].device.local_cpus = Some(set("4-7"));
    let plan = plan(&host);
    let eth0 = of(&plan, "eth0");
    assert_eq!(
        (eth0.node, eth0.node_source, &eth0.candidates),
        (Some(1), NodeSource::LocalCpulist, &set("4-7"))
    );
}

#[test]
fn rule_1_node_unknown_otherwise_means_all_cpus_and_a_note() {
    let mut host = machine(2, 4, 1, 4);
    add(&mut host, "eth0", None, 2);
    // The kernel prints all CPUs if it does not know the node.
    host.interfaces[0].device.local_cpus = Some(set("0-7"));
    let plan = plan(&host);
    let eth0 = of(&plan, "eth0");
    assert_eq!(
        (eth0.node, eth0.node_source, &eth0.candidates),
        (None, NodeSource::Unknown, &set("0-7"))
    );
    assert_eq!(codes(eth0), ["node-unknown"]);
    assert_eq!(plan.score.local, None);
}

#[test]
fn rule_1_a_node_without_usable_cpus_means_the_nearest() {
    let mut host = machine(3, 4, 1, 4);
    add(&mut host, "eth0", Some(1), 2);
    host.topology.nodes.get_mut(&1).unwrap().distances = [(0, 21), (1, 10), (2, 12)].into();
    host.topology.isolated = set("4-7");
    let plan = plan(&host);
    let eth0 = of(&plan, "eth0");
    assert_eq!(
        (eth0.node, eth0.node_source, &eth0.candidates),
        (Some(2), NodeSource::Nearest, &set("8-11"))
    );
    assert_eq!(codes(eth0), ["node-without-cpus"]);
}

#[test]
fn rule_1_a_node_that_the_machine_does_not_have_is_unknown() {
    let mut host = machine(2, 4, 1, 4);
    add(&mut host, "eth0", Some(9), 2);
    let plan = plan(&host);
    assert_eq!(of(&plan, "eth0").node, None);
    assert_eq!(codes(of(&plan, "eth0")), ["node-missing", "node-unknown"]);
}

#[test]
fn rule_1_more_queues_than_cores_stay_local_and_the_fix_is_named() {
    let mut host = machine(2, 4, 1, 4);
    add(&mut host, "eth0", Some(1), 6);
    host.interfaces[0].channels = Some(combined(6, 63));
    let plan = plan(&host);
    let eth0 = of(&plan, "eth0");
    assert_eq!(cpus(eth0), ["4", "5", "6", "7", "4", "5"]);
    assert_eq!(codes(eth0), ["queues-exceed-cores"]);
    assert_eq!(fix(eth0).as_deref(), Some("nicpin apply --channels 4 eth0"));
    // IRQs that are fewer than the queues serve several each: fewer queues need not be fewer IRQs.
    let vectors = host.interfaces[0].vectors.iter_mut();
    vectors.for_each(|vector| (vector.role, vector.queue) = (Role::Data, None));
    let codes_of = |host: &Machine| codes(of(&crate::support::host::plan(host), "eth0"));
    assert_eq!(codes_of(&host), ["data-vectors", "queues-exceed-cores"]);
    let rx = host.interfaces[0].rx_queues[5].clone();
    host.interfaces[0]
        .rx_queues
        .push(RxQueue { index: 6, ..rx });
    assert_eq!(codes_of(&host), ["data-vectors"]);
}

#[test]
fn rule_1_irqs_stay_where_the_administrator_wants_them() {
    let machine = MachineTree::of("two-node");
    let plan = |args: &[&str]| -> Value {
        let all = [&["plan", "--json"], args].concat();
        machine.nicpin(&all).json()
    };
    let candidates = |plan: &Value| -> Vec<String> {
        let interfaces = plan["interfaces"].as_array().unwrap().iter();
        let texts = interfaces.map(|of| of["candidates"].as_str().unwrap().to_owned());
        texts.collect()
    };
    let said = |plan: &Value| {
        let mut notes = plan["interfaces"][0]["notes"].as_array().unwrap().iter();
        let note = notes.find(|note| note["code"] == "kept-off");
        note.map(|note| note["text"].as_str().unwrap().to_owned())
    };
    machine.write("/proc/irq/default_smp_affinity", "ff\n");
    assert_eq!(
        (candidates(&plan(&[])), said(&plan(&[]))),
        (vec!["0-3".into(), "4-7".into()], None)
    );
    machine.write("/proc/irq/default_smp_affinity", "33\n");
    let narrow = plan(&[]);
    assert_eq!(candidates(&narrow), ["0-1", "4-5"]);
    assert_data_eq!(
        said(&narrow).unwrap(),
        str!["IRQs stay on CPUs 0-1,4-5, by /proc/irq/default_smp_affinity"]
    );
    assert_eq!(narrow["interfaces"][0]["left_out"][0]["cpus"], "2-3");
    // IRQ 35 is nic0's for control, and on CPU 3.
    let control = narrow["writes"].as_array().unwrap().iter();
    let mut control = control.filter(|write| write["path"] == "/proc/irq/35/smp_affinity");
    assert_eq!(
        control.next().map(|write| &write["why"]),
        Some(&"control IRQ; moved off a CPU that the administrator keeps free of IRQs".into())
    );
    // CPUs that the administrator names have the last word; a node that has none of them is like one whose CPUs are
    // isolated.
    let named = plan(&["--scope", "2-3"]);
    assert_eq!(
        (candidates(&named), said(&named)),
        (vec!["2-3".into(), "2-3".into()], None)
    );
    machine.write("/proc/irq/default_smp_affinity", "03\n");
    assert_eq!(candidates(&plan(&[])), ["0-1", "0-1"]);
    // A list without an online CPU, or of isolated CPUs alone, is not followed, and a note says so.
    let codes = |plan: &Value| plan["interfaces"][0]["notes"].to_string();
    machine.write("/proc/irq/default_smp_affinity", "00\n");
    let none = plan(&[]);
    assert_eq!(candidates(&none), ["0-3", "4-7"]);
    assert!(codes(&none).contains("list-not-followed"));
    machine.write("/sys/devices/system/cpu/isolated", "0-1\n");
    machine.write("/proc/irq/default_smp_affinity", "03\n");
    let isolated = plan(&[]);
    assert_eq!(candidates(&isolated), ["2-3", "4-7"]);
    let said_so = "/proc/irq/default_smp_affinity leaves IRQs no CPU that is not isolated, nohz_full or excluded, and is \
                   not followed";
    assert!(codes(&isolated).contains(said_so), "{}", codes(&isolated));
    machine.write("/sys/devices/system/cpu/isolated", "\n");
    machine.write("/proc/irq/default_smp_affinity", "ff\n");
    machine.write("/proc/cmdline", "quiet isolcpus=managed_irq,1-3,7\n");
    assert_eq!(candidates(&plan(&[])), ["0", "4-6"]);
    machine.remove("/proc/cmdline");
    std::fs::create_dir_all(machine.path("/etc/default")).unwrap();
    machine.write("/etc/default/irqbalance", "IRQBALANCE_BANNED_CPUS=01\n");
    assert_eq!(candidates(&plan(&[])), ["1-3", "4-7"]);
    assert!(
        said(&plan(&[]))
            .unwrap()
            .ends_with("by /etc/default/irqbalance")
    );
    machine.remove("/etc/default/irqbalance");
    let drop_in = "/etc/systemd/system/irqbalance.service.d/override.conf";
    machine.put(
        drop_in,
        "[Service]\nEnvironment=IRQBALANCE_BANNED_CPULIST=2-7\n",
    );
    assert_eq!(candidates(&plan(&[])), ["0-1", "0-1"]);
    assert!(said(&plan(&[])).unwrap().ends_with(drop_in));
    machine.put(drop_in, "[Service]\nEnvironmentFile=-/etc/irqbalance.env\n");
    machine.put("/etc/irqbalance.env", "IRQBALANCE_BANNED_CPULIST=0,4\n");
    assert_eq!(candidates(&plan(&[])), ["1-3", "5-7"]);
}

#[test]
fn rule_1_when_no_candidate_is_left_a_note_says_so_and_the_exclusion_is_ignored() {
    let mut host = machine(1, 6, 1, 6);
    add(&mut host, "eth0", Some(0), 1);
    host.topology.isolated = set("0-5");
    let plan = plan(&host);
    assert_eq!(cpus(of(&plan, "eth0")), ["1"]);
    assert_eq!(
        codes(of(&plan, "eth0")),
        ["no-usable-cpu", "isolated-cpus-used"]
    );
}

#[test]
fn rule_1_isolated_cpus_that_the_policy_names_are_noted() {
    for node in [Some(1), None] {
        let mut host = machine(2, 4, 1, 4);
        add(&mut host, "eth0", node, 2);
        host.topology.isolated = set("2-5");
        let plan = plan_with(&host, &[("scope", "2-5")], &[]);
        let codes = codes(of(&plan, "eth0"));
        assert!(codes.contains(&"isolated-cpus-used"), "{node:?}: {codes:?}");
    }
}

#[test]
fn rule_2_a_vector_gets_one_cpu_unless_the_policy_says_a_group() {
    let mut host = machine(2, 8, 1, 4);
    add(&mut host, "eth0", Some(1), 2);
    assert_eq!(cpus(of(&plan(&host), "eth0")), ["8", "12"]);
    let group = |group| plan_with(&host, &[("group", group)], &[]);
    assert_eq!(cpus(of(&group("l3"), "eth0")), ["8-11", "12-15"]);
    assert_eq!(cpus(of(&group("2-3,99"), "eth0")), ["2-3", "2-3"]);
}

#[test]
fn rule_3_every_core_gets_one_before_any_gets_two_and_first_threads_go_first() {
    let mut host = machine(1, 4, 2, 4);
    add(&mut host, "eth0", Some(0), 8);
    assert_eq!(
        cpus(of(&plan(&host), "eth0")),
        ["1", "2", "3", "0", "5", "6", "7", "4"]
    );
}

#[test]
fn rule_3_siblings_go_by_lists_not_by_numbers() {
    let mut host = machine(1, 4, 2, 4);
    host.topology.cores = ["0-1", "2-3", "4-5", "6-7"].map(set).to_vec();
    add(&mut host, "eth0", Some(0), 4);
    let plan = plan(&host);
    assert_eq!(cpus(of(&plan, "eth0")), ["2", "4", "6", "0"]);
    assert_eq!(
        (plan.score.max_vectors_per_core, plan.score.pairs_on_cores),
        (1, 0)
    );
}

#[test]
fn rule_3_vectors_spread_over_l3_domains() {
    let mut host = machine(2, 8, 1, 2);
    add(&mut host, "eth0", Some(1), 4);
    assert_eq!(cpus(of(&plan(&host), "eth0")), ["8", "10", "12", "14"]);
}

#[test]
fn rule_3_the_core_of_cpu_0_is_used_last_unless_the_policy_says_otherwise() {
    let mut host = machine(1, 4, 2, 4);
    add(&mut host, "eth0", Some(0), 4);
    assert_eq!(cpus(of(&plan(&host), "eth0")), ["1", "2", "3", "0"]);
    let plan = plan_with(&host, &[("avoid-cpu0", "false")], &[]);
    assert_eq!(cpus(of(&plan, "eth0")), ["0", "1", "2", "3"]);
}

#[test]
fn rule_3_a_queues_rx_and_tx_vectors_share_a_cpu() {
    let mut host = machine(2, 4, 1, 4);
    add(&mut host, "eth0", Some(1), 2);
    let everywhere = mask(&host, &host.topology.online);
    let pair = |q: u32| {
        [Role::Rx, Role::Tx].map(|role| {
            vector(
                40 + q * 2 + u32::from(role == Role::Tx),
                role,
                Some(q),
                &everywhere,
            )
        })
    };
    host.interfaces[0].vectors = (0..2).flat_map(pair).collect();
    let plan = plan(&host);
    assert_eq!(cpus(of(&plan, "eth0")), ["4", "4", "5", "5"]);
    assert_eq!(plan.score.max_vectors_per_core, 1);
}

/// A core that serves one queue on its two threads is not crowded, and never takes more than a port carries.
#[test]
fn rule_3_a_queues_rx_and_tx_vectors_on_threads_of_a_core_are_one_queue() {
    let mut host = machine(1, 2, 2, 2);
    add(&mut host, "eth0", Some(0), 1);
    let vector = |(irq, role, cpu)| {
        let mut vector = vector(irq, role, Some(0), &mask(&host, &set(cpu)));
        vector.effective = Some(set(cpu));
        vector
    };
    let vectors = [(40, Role::Rx, "1"), (41, Role::Tx, "3")].map(vector);
    host.interfaces[0].vectors = vectors.to_vec();
    assert_eq!(plan(&host).score_now.max_vectors_per_core, 1);
}

#[test]
fn rule_3_idle_vectors_go_last_and_are_not_counted() {
    let mut host = machine(1, 4, 1, 4);
    add(&mut host, "eth0", Some(0), 4);
    add(&mut host, "eth1", Some(0), 2);
    host.interfaces[0].rx_queues.truncate(2);
    host.interfaces[0].tx_queues.truncate(2);
    let plan = plan(&host);
    let idle: Vec<bool> = of(&plan, "eth0").vectors.iter().map(|v| v.idle).collect();
    assert_eq!(idle, [false, false, true, true]);
    // The four active queues of both cards have a core each.
    assert_eq!(cpus(of(&plan, "eth0"))[..2], ["1", "2"]);
    assert_eq!(cpus(of(&plan, "eth1")), ["3", "0"]);
    assert_eq!(
        (plan.score.max_vectors_per_core, plan.score.pairs_on_cores),
        (1, 0)
    );
}

#[test]
fn rule_4_cards_on_a_node_share_it_and_the_one_whose_queues_carry_more_chooses_first() {
    let mut host = machine(1, 8, 1, 8);
    add(&mut host, "eth0", Some(0), 3);
    add(&mut host, "eth1", Some(0), 4);
    host.interfaces[0].supported_mbps = Some(1000);
    let placed = plan(&host);
    assert_eq!(cpus(of(&placed, "eth1")), ["1", "2", "3", "4"]);
    assert_eq!(cpus(of(&placed, "eth0")), ["5", "6", "7"]);
    // Without link modes it is the PCIe bandwidth, and without that the speed.
    for (interface, mtps) in host.interfaces.iter_mut().zip([8_000, 64_000]) {
        (interface.supported_mbps, interface.device.pcie_mtps) = (None, mtps);
        interface.speed_mbps = Some(80_000 - u32::try_from(mtps).unwrap());
    }
    assert_eq!(cpus(of(&plan(&host), "eth1")), ["1", "2", "3", "4"]);
    for (interface, mbps) in host.interfaces.iter_mut().zip([1000, 10_000]) {
        (interface.speed_mbps, interface.device.pcie_mtps) = (Some(mbps), 0);
    }
    assert_eq!(cpus(of(&plan(&host), "eth1")), ["1", "2", "3", "4"]);
}

/// An interface without a node gets the cores that the others leave, whatever its bandwidth.
#[test]
fn rule_4_a_card_without_a_known_node_chooses_last() {
    let mut host = machine(2, 4, 1, 4);
    add(&mut host, "eth0", None, 4);
    add(&mut host, "eth1", Some(0), 4);
    host.interfaces[1].device.pcie_mtps = 0;
    let plan = plan(&host);
    assert_eq!(cpus(of(&plan, "eth1")), ["1", "2", "3", "0"]);
    assert_eq!(cpus(of(&plan, "eth0")), ["4", "5", "6", "7"]);
    assert_eq!(plan.score.max_vectors_per_core, 1);
}

#[test]
fn rule_4_link_speed_link_state_and_irq_numbers_do_not_change_the_plan() {
    let mut host = machine(1, 8, 1, 8);
    add(&mut host, "eth0", Some(0), 3);
    add(&mut host, "eth1", Some(0), 4);
    let before = plan(&host);
    host.interfaces[0].speed_mbps = None;
    host.interfaces[0].link = "down".to_owned();
    for (vector, irq) in host.interfaces[0].vectors.iter_mut().zip([902, 99, 100]) {
        vector.irq = irq;
    }
    let after = plan(&host);
    assert_eq!(before.hash, after.hash);
    for name in ["eth0", "eth1"] {
        assert_eq!(cpus(of(&before, name)), cpus(of(&after, name)));
    }
}

#[test]
fn rule_4_a_vector_that_cannot_move_keeps_its_place_and_others_go_around_it() {
    let mut host = machine(1, 6, 1, 6);
    add(&mut host, "eth0", Some(0), 2);
    host.interfaces[0].vectors[1].movable = false;
    host.interfaces[0].vectors[1].effective = Some(set("1"));
    let plan = plan(&host);
    assert_eq!(cpus(of(&plan, "eth0")), ["2", "-"]);
    assert_eq!(codes(of(&plan, "eth0")), ["not-movable"]);
}

#[test]
fn rule_4_a_vector_that_can_move_does_not_follow_one_that_cannot_to_another_node() {
    let mut host = machine(2, 4, 1, 4);
    add(&mut host, "eth0", Some(0), 2);
    let eth0 = &mut host.interfaces[0];
    eth0.vectors[1].role = Role::Rx;
    let mut stays = eth0.vectors[1].clone();
    (stays.irq, stays.role, stays.movable) = (90, Role::Tx, false);
    stays.effective = Some(set("7"));
    eth0.vectors.push(stays);
    let away = plan(&host);
    assert_eq!(cpus(of(&away, "eth0")), ["1", "2", "-"]);
    assert_eq!((away.score_now.outside, away.score.outside), (1, 1));
    // XPS follows the vector that stays.
    let sends = |queue: usize| of(&away, "eth0").tx_queues[queue].xps_cpus.clone();
    assert_eq!(
        [sends(0), sends(1)],
        ["0-3", "4-7"].map(|cpus| Some(set(cpus)))
    );
    // A vector that stays on its own node is followed.
    host.interfaces[0].vectors[2].effective = Some(set("3"));
    let near = plan(&host);
    let placement = of(&near, "eth0").vectors[1].placement.as_ref().unwrap();
    assert_eq!((placement.cpu, placement.queues_on_core), (3, 0));
    // It is on its own node, too, if no other CPU of its affinity is online and the kernel does not report it.
    let mut reduced = host.clone();
    reduced.topology.online = set("0-6");
    reduced.topology.nodes.get_mut(&1).unwrap().cpus = set("4-6");
    let affinity = mask(&reduced, &set("3,7"));
    let vector = &mut reduced.interfaces[0].vectors[2];
    (vector.affinity, vector.effective) = (affinity, None);
    let near = plan(&reduced);
    let placement = of(&near, "eth0").vectors[1].placement.as_ref().unwrap();
    assert_eq!((placement.cpu, placement.queues_on_core), (3, 0));
    // A hint of the driver goes first.
    host.hints = [(host.interfaces[0].vectors[1].irq, set("6"))].into();
    let hinted = plan_with(&host, &[("scope", "hint")], &[]);
    assert_eq!(cpus(of(&hinted, "eth0")), ["1", "6", "-"]);
    assert_eq!(hinted.score.outside, 1, "that which stays");
}

/// Two devices on different nodes share an `INTx` line.
#[test]
fn rule_4_a_line_that_two_cards_share_is_planned_once() {
    let mut host = machine(2, 4, 1, 4);
    add(&mut host, "eth0", Some(0), 1);
    add(&mut host, "eth1", Some(1), 1);
    host.interfaces[1].vectors[0].irq = host.interfaces[0].vectors[0].irq;
    let plan = plan(&host);
    assert_eq!(
        plan.writes
            .iter()
            .filter(|write| write.path.contains("/irq/"))
            .count(),
        1
    );
    assert_eq!(
        (cpus(of(&plan, "eth0")), cpus(of(&plan, "eth1"))),
        (vec!["1".to_owned()], vec!["-".to_owned()])
    );
    assert!(codes(of(&plan, "eth1")).contains(&"line-shared"));
    for now in ["0", "7"] {
        for interface in &mut host.interfaces {
            interface.vectors[0].effective = Some(set(now));
        }
        let all = crate::support::host::plan(&host);
        assert_eq!(of(&all, "eth1").irq_cpus, set("1"), "now on {now}");
        assert_eq!(all.score, plan.score, "now on {now}");
        assert_eq!(all.hash, plan.hash, "now on {now}");
        let alone = plan_with(&host, &[], &["eth1"]);
        assert_eq!(cpus(of(&alone, "eth1")), ["1"], "now on {now}");
    }
}

#[test]
fn rule_5_control_vectors_are_left_alone_unless_they_sit_on_isolated_cpus() {
    let mut host = machine(1, 8, 1, 8);
    add(&mut host, "eth0", Some(0), 2);
    let everywhere = mask(&host, &host.topology.online);
    let mut control = vector(90, Role::Control, None, &everywhere);
    control.effective = Some(set("7"));
    host.interfaces[0].vectors.push(control);
    let of_control =
        |host: &nicpin::machine::Machine| plan(host).interfaces[0].vectors[2].cpus.clone();
    assert_eq!(of_control(&host), None);
    host.topology.isolated = set("6-7");
    let moved = of_control(&host).unwrap();
    assert_eq!(moved, set("0"), "the CPU with the fewest queues");
    host.interfaces[0].vectors[2].effective = Some(moved);
    assert_eq!(of_control(&host), None);
}

#[test]
fn rule_7_the_advice_is_a_queue_for_each_candidate_core_whatever_else_is_on_the_node() {
    let mut host = machine(2, 8, 2, 8);
    for (name, queues) in [("eth0", 16), ("eth1", 16), ("eth2", 2)] {
        add(&mut host, name, Some(0), queues);
    }
    host.interfaces[0].channels = Some(combined(16, 63));
    host.interfaces[1].channels = Some(Channels {
        max_rx: 16,
        max_tx: 16,
        rx: 16,
        tx: 16,
        ..Channels::default()
    });
    host.interfaces[2].channels = Some(combined(2, 2));
    let before = plan(&host);
    assert_eq!(
        fix(of(&before, "eth0")).as_deref(),
        Some("nicpin apply --channels 8 eth0")
    );
    assert_eq!(
        fix(of(&before, "eth1")).as_deref(),
        Some("nicpin apply --channels 8 eth1")
    );
    assert_eq!(fix(of(&before, "eth2")), None);
    let wanted = |name: &str| {
        plan_with(&host, &[("channels", "3")], &[name]).channels[0]
            .command
            .clone()
    };
    assert_eq!(
        (wanted("eth0"), wanted("eth1")),
        (
            "ethtool -L eth0 combined 3".into(),
            "ethtool -L eth1 rx 3 tx 3".into()
        )
    );
    // A virtual function has as many channels as its physical one gives it.
    host.interfaces[0].device.parent = Some("0000:00:00.0".to_owned());
    assert_eq!(fix(of(&plan(&host), "eth0")), None);
    host.interfaces[0].device.parent = None;
    // Channels that are out of reach, and a driver that takes no other number.
    host.interfaces[0].in_other_namespace = true;
    assert_eq!(fix(of(&plan(&host), "eth0")), None);
    host.interfaces[0].in_other_namespace = false;
    host.interfaces[0].channels_fixed = true;
    assert_eq!(fix(of(&plan(&host), "eth0")), None);
    host.interfaces[0].channels_fixed = false;
    // If the limit is unknown, the advice has the same number.
    host.interfaces[0].channels = None;
    let unknown = plan(&host);
    let eth0 = of(&unknown, "eth0");
    assert_eq!(fix(eth0).as_deref(), Some("nicpin apply --channels 8 eth0"));
    assert_line(
        eth0.notes[0].to_string(),
        str![[r#"
16 queues for 8 cores; one queue for each core is enough, if the driver can, and a change takes the link down for a moment

"#]],
    );
    assert_line(
        of(&before, "eth0").notes[0].to_string(),
        str![[r#"
16 queues for 8 cores; one queue for each core is enough, and a change takes the link down for a moment

"#]],
    );
}

/// A container's function, which stays where its owner has put it.
#[test]
fn rule_5_queues_are_placed_around_those_of_another_namespace() {
    let mut host = machine(1, 8, 1, 8);
    add(&mut host, "eth0", Some(0), 2);
    add(&mut host, "eth1", Some(0), 2);
    let other = &mut host.interfaces[1];
    other.in_other_namespace = true;
    other.name = other.device.address.clone();
    let queues = other.vectors.iter_mut().filter(|v| v.queue.is_some());
    for (vector, cpu) in queues.zip(["1", "2"]) {
        vector.affinity.cpus = set(cpu);
        vector.effective = Some(set(cpu));
    }
    let plan = plan(&host);
    assert_eq!(cpus(of(&plan, &host.interfaces[1].name)), ["-", "-"]);
    let own = cpus(of(&plan, "eth0"));
    assert!(
        !own.iter().any(|cpu| ["1", "2"].contains(&cpu.as_str())),
        "{own:?}"
    );
    assert_eq!(plan.score.max_vectors_per_core, 1);
}

#[test]
fn rule_7_only_the_selected_interface_is_written_and_its_plan_is_the_same_as_among_all() {
    let mut host = machine(1, 8, 1, 8);
    add(&mut host, "eth0", Some(0), 3);
    add(&mut host, "eth1", Some(0), 3);
    let (all, one) = (plan(&host), plan_with(&host, &[], &["eth1"]));
    assert!(one.writes.iter().all(|write| &*write.interface == "eth1") && !one.writes.is_empty());
    assert_eq!(of(&one, "eth1"), of(&all, "eth1"));
    assert_eq!(one.interfaces.len(), 1);
}

#[test]
fn rule_7_rdma_vectors_have_their_room_whichever_interface_is_selected() {
    let mut host = machine(1, 8, 1, 8);
    let everywhere = mask(&host, &host.topology.online);
    for (name, irq) in [("eth0", 900), ("eth1", 950)] {
        add(&mut host, name, Some(0), 2);
        let rdma = (0..3).map(|at| vector(irq + at, Role::Rdma, Some(at), &everywhere));
        host.interfaces.last_mut().unwrap().vectors.extend(rdma);
    }
    // eth0 is like an interface that is down: its queue vectors are freed, its RDMA vectors are not.
    let is_rdma = |vector: &nicpin::machine::Vector| vector.role == Role::Rdma;
    host.interfaces[0].vectors.retain(is_rdma);
    let (all, one) = (plan(&host), plan_with(&host, &[], &["eth1"]));
    assert_eq!(cpus(of(&one, "eth1")), cpus(of(&all, "eth1")));
}

#[test]
fn rule_7_an_interface_that_the_policy_skips_is_left_alone_and_keeps_its_room() {
    let mut host = machine(1, 4, 1, 4);
    add(&mut host, "eth0", Some(0), 1);
    host.interfaces[0].vectors[0].effective = Some(set("1"));
    add(&mut host, "eth1", Some(0), 1);
    let text = "[[rule]]\nmatch = { name = 'eth0' }\nset = { skip = true }\n";
    let plan = plan_by(&host, text);
    assert!(plan.writes.iter().all(|write| &*write.interface == "eth1"));
    assert_eq!(cpus(of(&plan, "eth1")), ["2"]);
    assert_eq!(
        (codes(of(&plan, "eth0")), &of(&plan, "eth0").rules),
        (vec!["skipped"], &vec![1])
    );
}

#[test]
fn scopes() {
    let mut host = machine(3, 4, 1, 4);
    add(&mut host, "eth0", Some(1), 3);
    let with = |scope| plan_with(&host, &[("scope", scope)], &[]);
    assert_eq!(of(&with("local"), "eth0").candidates, set("4-7"));
    assert_eq!(of(&with("remote"), "eth0").candidates, set("0-3,8-11"));
    assert_eq!(of(&with("all"), "eth0").candidates, set("0-11"));
    assert_eq!(cpus(of(&with("all"), "eth0")), ["1", "4", "8"]);
    assert_eq!(of(&with("2,5"), "eth0").candidates, set("5"));
    assert_eq!(of(&with("2,9"), "eth0").candidates, set("2,9"));
    for (scope, code) in [
        ("40", "cpus-unusable"),
        ("node:7", "scope-unusable"),
        ("node:0,7", "scope-unusable"),
    ] {
        let unmet = with(scope);
        assert_eq!(codes(of(&unmet, "eth0")), [code]);
        assert_eq!(unmet.writes, [], "it stays as it is");
    }
    let nothing = plan_with(&host, &[("exclude", "0-11")], &[]);
    assert_eq!(codes(of(&nothing, "eth0")), ["no-cpu-left"]);
    assert_eq!(with("remote").score.local, Some(0.0));
}

#[test]
fn irq_cores_limits_the_cores_of_a_node_over_its_l3_domains() {
    let mut host = machine(2, 8, 2, 4);
    add(&mut host, "eth0", Some(0), 8);
    let plan = plan_with(&host, &[("irq-cores", "3")], &[]);
    let eth0 = of(&plan, "eth0");
    assert_eq!(eth0.candidates, set("1-2,4,17-18,20"));
    assert_eq!(plan.score.max_vectors_per_core, 3);
    // CPUs that are on no node.
    let mut host = machine(3, 4, 1, 4);
    add(&mut host, "eth0", None, 4);
    host.topology.nodes.remove(&1);
    host.interfaces[0].device.local_cpus = Some(set("4-7"));
    for (option, value, expected) in [("irq-cores", "2", "4-5"), ("per", "l3", "4")] {
        let plan = plan_with(&host, &[(option, value)], &[]);
        assert_eq!(of(&plan, "eth0").candidates, set(expected), "{option}");
    }
}

#[test]
fn limits_on_cores_leave_out_slow_cores_and_those_without_an_l3() {
    let mut host = machine(1, 8, 1, 8);
    add(&mut host, "eth0", Some(0), 4);
    let cpus = |host: &Machine, option| {
        let plan = plan_with(host, &[option], &[]);
        let eth0 = of(&plan, "eth0");
        assert!(!codes(eth0).contains(&"package-has-more"));
        eth0.candidates.to_string()
    };
    assert_eq!(cpus(&host, ("irq-cores", "2")), "1-2");
    host.topology.speed_classes = vec![set("0-3"), set("4-7")];
    assert_eq!(cpus(&host, ("irq-cores", "4")), "0-3");
    host.topology.l3_domains = vec![set("0-3")];
    assert_eq!(cpus(&host, ("per", "l3")), "1");
}

#[test]
fn siblings_count_as_cores_on_request() {
    let mut host = machine(1, 4, 2, 4);
    add(&mut host, "eth0", Some(0), 6);
    assert_eq!(codes(of(&plan(&host), "eth0")), ["queues-exceed-cores"]);
    let plan = plan_with(&host, &[("siblings", "true")], &[]);
    assert!(codes(of(&plan, "eth0")).is_empty());
    assert_eq!(
        rps_of(&plan, "eth0")[0],
        "",
        "every free CPU is a sibling of one that takes a queue"
    );
}

#[test]
fn siblings_that_count_as_cores_take_queues_after_free_cores() {
    let mut host = machine(1, 4, 2, 4);
    host.topology.cores = ["0-1", "2-3", "4-5", "6-7"].map(set).to_vec();
    add(&mut host, "eth0", Some(0), 5);
    let used = |queues: usize| {
        let mut host = host.clone();
        host.interfaces[0].vectors.truncate(queues);
        let plan = plan_with(&host, &[("siblings", "true")], &[]);
        (cpus(of(&plan, "eth0")), plan.score.pairs_on_cores)
    };
    let expected = |cpus: &[&str]| cpus.iter().map(|&cpu| cpu.to_owned()).collect::<Vec<_>>();
    assert_eq!(used(3), (expected(&["2", "4", "6"]), 0));
    assert_eq!(used(4).1, 0);
    assert_eq!(used(5).1, 1);
}

#[test]
fn queues_take_all_l3_domains_evenly_or_as_few_as_possible() {
    let mut host = machine(2, 8, 1, 2);
    add(&mut host, "eth0", Some(1), 4);
    let used = |options: &[(&str, &str)]| {
        let plan = plan_with(&host, options, &[]);
        let vectors = &of(&plan, "eth0").vectors;
        let domains = vectors.iter().filter_map(|vector| {
            let cpus = vector.cpus.as_ref()?;
            (host.topology.l3_domains.iter()).position(|domain| cpus.is_subset(domain))
        });
        let domains: BTreeSet<usize> = domains.collect();
        (domains.len(), plan.score.max_vectors_per_core)
    };
    assert_eq!(used(&[]), (4, 1));
    assert_eq!(used(&[("l3", "pack")]), (2, 1));
    assert_eq!(used(&[("l3", "pack"), ("irq-cores", "2")]), (1, 2));
    assert_eq!(used(&[("irq-cores", "2")]), (2, 2));
}
