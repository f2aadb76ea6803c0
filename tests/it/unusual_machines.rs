//! Placement on unusual machines, and policies for them.

use snapbox::{assert_data_eq, str};

use crate::support::host::{
    add, codes, cpus, fix_of, machine, mask, of, plan, plan_by, plan_with, set, vector,
};
use nicpin::machine::{Machine, MaskFile, Role};
use nicpin::plan::note::Note;
use nicpin::plan::{Plan, Score};

fn with(host: &Machine, options: &[(&str, &str)]) -> Plan {
    plan_with(host, options, &[])
}

/// Every queue is local and has a core of its own; `kbps` is the weight of each.
fn perfect(kbps: u64) -> Score {
    Score {
        local: Some(1.0),
        outside: 0,
        max_vectors_per_core: 1,
        max_load_kbps: kbps,
        pairs_on_cores: 0,
        max_first_queues_per_core: 1,
        above_even_cores: 0,
        above_even_threads: 0,
        far_senders: 0,
        remote: 0,
        at_speed: None,
        on_isolated: 0,
        rdma: None,
    }
}

/// Removes the load at the speeds of ports, on which no plan depends.
fn planned(score: &Score) -> Score {
    Score {
        at_speed: None,
        ..score.clone()
    }
}

/// Screens show load by the speeds that ports have; plans use what they support, or the bus.
#[test]
fn the_load_at_speed_is_that_of_the_speeds_that_ports_have() {
    let mut host = machine(1, 4, 1, 4);
    for name in ["eth0", "eth1"] {
        add(&mut host, name, Some(0), 4);
    }
    let load = |host: &Machine| {
        let score = plan(host).score;
        let at_speed = score
            .at_speed
            .map(|load| (load.busiest_kbps, load.all_kbps));
        (score.max_load_kbps, at_speed)
    };
    for port in &mut host.interfaces {
        (port.supported_mbps, port.speed_mbps) = (Some(25_000), Some(1_000));
    }
    assert_eq!(load(&host), (12_500_000, Some((500_000, 2_000_000))));
    // A port without a current speed counts with the one that it can have.
    host.interfaces[1].speed_mbps = None;
    assert_eq!(load(&host), (12_500_000, Some((6_500_000, 26_000_000))));
    // The width of the bus is no speed.
    for port in &mut host.interfaces {
        (port.supported_mbps, port.device.pcie_mtps) = (None, 40_000);
    }
    let by_bus = load(&host);
    assert_eq!(by_bus.1, None, "{by_bus:?}");
    assert!(by_bus.0 > 1_000_000, "{by_bus:?}");
}

#[test]
fn hybrid_cores_fast_ones_first() {
    // Eight fast cores with two threads each (0-15), eight slow ones (16-23), as on hybrid x86.
    let mut host = machine(1, 24, 1, 24);
    host.topology.cores = (0..8)
        .map(|n| [2 * n, 2 * n + 1].into_iter().collect())
        .collect();
    host.topology
        .cores
        .extend((16..24).map(nicpin::cpuset::CpuSet::single));
    host.topology.speed_classes = vec![set("0-15"), set("16-23")];
    add(&mut host, "eth0", Some(0), 10);
    assert_eq!(
        cpus(of(&plan(&host), "eth0")),
        ["2", "4", "6", "8", "10", "12", "14", "16", "17", "0"]
    );
    let four = with(&host, &[("irq-cores", "4")]);
    assert_eq!(of(&four, "eth0").candidates, set("2-9"));
}

/// Two packages of two nodes each (sub-NUMA clustering): 0 and 1 are 12 apart, the other package 21.
fn clustered() -> Machine {
    let mut host = machine(4, 4, 1, 4);
    host.topology.packages = vec![set("0-7"), set("8-15")];
    for (id, node) in &mut host.topology.nodes {
        node.distances = (0..4)
            .map(|to| {
                (
                    to,
                    if to == *id {
                        10
                    } else if to / 2 == id / 2 {
                        12
                    } else {
                        21
                    },
                )
            })
            .collect();
    }
    add(&mut host, "eth0", Some(2), 6);
    host
}

#[test]
fn a_node_that_is_too_small_is_widened_within_its_package_on_request() {
    let host = clustered();
    let narrow = plan(&host);
    assert_eq!(of(&narrow, "eth0").candidates, set("8-11"));
    let more = |plan: &Plan| codes(of(plan, "eth0")).contains(&"package-has-more");
    assert!(more(&narrow));
    let advice: Vec<_> = of(&narrow, "eth0")
        .notes
        .iter()
        .filter_map(fix_of)
        .collect();
    assert!(
        advice.contains(&"nicpin apply --widen package eth0".to_owned()),
        "{advice:?}"
    );
    let wide = with(&host, &[("widen", "package")]);
    assert_eq!(of(&wide, "eth0").candidates, set("8-15"));
    assert_eq!(
        (wide.score.max_vectors_per_core, codes(of(&wide, "eth0"))),
        (1, vec!["widened"])
    );
    assert!(!more(&wide));
    // Each node has a card of its own that takes all cores, as with one card a node: none is left to take some.
    let mut full = clustered();
    add(&mut full, "eth1", Some(3), 2);
    assert!(more(&plan(&full)));
    add(&mut full, "eth2", Some(3), 2);
    assert!(!more(&plan(&full)));
    // The first queues stay on their own node, also if another node of the package has lower CPUs.
    let mut higher = clustered();
    higher.interfaces[0].device.node = Some(3);
    let first = with(&higher, &[("widen", "package")]);
    assert_eq!(cpus(of(&first, "eth0"))[..4], ["12", "13", "14", "15"]);
    assert_eq!(cpus(of(&wide, "eth0")), ["8", "9", "10", "11", "12", "13"]);
    assert!(wide.score.local.unwrap() > 0.66);
    assert_data_eq!(
        of(&wide, "eth0").vectors[4].why.to_string(),
        str!["node 3 of the same package: no core of node 2 has fewer queues"]
    );
    assert!(
        of(&wide, "eth0")
            .rx_queues
            .iter()
            .all(|rx| rx.rps_cpus == Some(set("")))
    );
    // With `siblings`, threads count as cores.
    let mut threads = clustered();
    threads.topology.cores = (0..8)
        .map(|core| [2 * core, 2 * core + 1].into_iter().collect())
        .collect();
    threads.interfaces[0].vectors.truncate(4);
    let wide = |options: &[_]| of(&with(&threads, options), "eth0").candidates.clone();
    let siblings = ("siblings", "true");
    assert_eq!(wide(&[("widen", "package")]), set("8-15"));
    assert_eq!(wide(&[("widen", "package"), siblings]), set("8-11"));
    // A node without usable CPUs is not added.
    let mut isolated = clustered();
    isolated.topology.isolated = set("12-15");
    let wide = with(&isolated, &[("widen", "package")]);
    assert!(!codes(of(&wide, "eth0")).contains(&"widened"));
    let mut small = clustered();
    small.interfaces[0].vectors.truncate(3);
    let wide = with(&small, &[("widen", "package")]);
    assert_eq!(
        of(&wide, "eth0").candidates,
        set("8-11"),
        "only as far as it takes"
    );
}

#[test]
fn one_core_of_each_l3_domain() {
    let mut host = machine(2, 8, 1, 2);
    add(&mut host, "eth0", Some(0), 4);
    let plan = with(&host, &[("per", "l3")]);
    assert_eq!(of(&plan, "eth0").candidates, set("1-2,4,6"));
    assert_eq!(of(&plan, "eth0").left_out[0].cpus, set("0,3,5,7"));
}

#[test]
fn hints_are_followed_with_a_warning_where_they_ignore_locality() {
    let mut host = machine(2, 4, 1, 4);
    add(&mut host, "eth0", Some(1), 3);
    let irqs: Vec<u32> = host.interfaces[0].vectors.iter().map(|v| v.irq).collect();
    host.hints = [(irqs[0], set("3")), (irqs[1], set("6-7"))].into();
    let plan = with(&host, &[("scope", "hint")]);
    assert_eq!(cpus(of(&plan, "eth0")), ["3", "6", "4"]);
    assert_eq!(codes(of(&plan, "eth0")), ["no-hint"]);
    host.hints.insert(irqs[2], set("0"));
    for driver in ["i40evf", "i40e"] {
        host.interfaces[0].driver = Some(driver.to_owned());
        assert_eq!(
            codes(of(&with(&host, &[("scope", "hint")]), "eth0")),
            ["hint-ignores-locality"]
        );
    }
    // A hint that cannot be followed is ignored, with a note.
    let plan = with(&host, &[("scope", "hint"), ("exclude", "3")]);
    let eth0 = of(&plan, "eth0");
    assert_eq!(cpus(eth0), ["4", "6", "0"]);
    assert_data_eq!(eth0.vectors[0].why.to_string(), str!["local (node 1)"]);
    assert_data_eq!(
        eth0.vectors[1].why.to_string(),
        str!["hinted by the driver"]
    );
    assert_eq!(codes(eth0), ["hint-unusable", "hint-ignores-locality"]);
    // A hint is where the policy lets the IRQ go.
    assert_eq!(eth0.vectors[2].candidates, Some(set("0")));
    assert_eq!((plan.score_now.outside, plan.score.outside), (2, 0));
    // A CPU whose L3 domain has no candidate is a group of its own.
    let plan = with(&host, &[("scope", "hint"), ("group", "l3")]);
    assert_eq!(cpus(of(&plan, "eth0")), ["3", "4-7", "0"]);
}

#[test]
fn cpus_of_the_policy_that_cannot_be_used_are_named() {
    let mut host = machine(2, 4, 1, 4);
    add(&mut host, "eth0", Some(1), 2);
    host.topology.online = host.topology.online.difference(&set("5"));
    let given = |scope: &str, rps: &str| {
        let plan = with(&host, &[("scope", scope), ("rps", rps), ("exclude", "7")]);
        let eth0 = of(&plan, "eth0").clone();
        (
            eth0.candidates,
            eth0.rx_queues[0].rps_cpus.clone().unwrap_or_default(),
            eth0.vectors[0].cpus.is_some(),
            eth0.notes.len(),
        )
    };
    assert_eq!(given("4,6", "6"), (set("4,6"), set("6"), true, 0));
    assert_eq!(given("4-6", "5-7"), (set("4,6"), set("6"), true, 2));
    assert_eq!(given("5", "7"), (set("4,6"), set(""), false, 2));
}

#[test]
fn tiny_machines_are_spread() {
    for (cores, queues, expected, rps, notes) in [
        (1, 1, vec!["0"], "", vec![]),
        (2, 1, vec!["1"], "", vec![]),
        (4, 2, vec!["1", "2"], "", vec![]),
        (4, 4, vec!["1", "2", "3", "0"], "", vec![]),
        (
            1,
            4,
            vec!["0", "0", "0", "0"],
            "",
            vec!["queues-exceed-cores"],
        ),
    ] {
        let mut host = machine(1, cores, 1, cores);
        add(&mut host, "eth0", Some(0), queues);
        let plan = plan(&host);
        assert_eq!(cpus(of(&plan, "eth0")), expected, "{cores} cores");
        assert_eq!(codes(of(&plan, "eth0")), notes, "{cores} cores");
        for rx in &of(&plan, "eth0").rx_queues {
            assert_eq!(
                rx.rps_cpus.as_ref().unwrap().to_string(),
                rps,
                "{cores} cores"
            );
        }
        assert_eq!(
            plan.notes.iter().any(|note| note.code() == "one-cpu"),
            cores == 1
        );
    }
    let mut host = machine(1, 2, 1, 2);
    add(&mut host, "eth0", Some(0), 1);
    let asked = with(&host, &[("rps", "0")]);
    assert_eq!(of(&asked, "eth0").rx_queues[0].rps_cpus, Some(set("0")));
}

#[test]
fn xps_rxqs_that_would_go_first_is_noted() {
    let mut host = machine(1, 8, 1, 8);
    add(&mut host, "eth0", Some(0), 8);
    host.interfaces[0].tx_queues[3].xps_rxqs = MaskFile::parse("08").ok();
    let plan = plan(&host);
    let note = &of(&plan, "eth0").notes[0];
    assert_eq!(note.code(), "xps-rxqs-set");
    assert_eq!(
        crate::support::host::fix_of(note).as_deref(),
        Some("echo 0 > /sys/class/net/eth0/queues/tx-3/xps_rxqs")
    );
    host.interfaces[0].name = "e;0".to_owned();
    host.interfaces[0].tx_queues[5].xps_rxqs = MaskFile::parse("20").ok();
    let plan = crate::support::host::plan(&host);
    let fix = "echo 0 | tee '/sys/class/net/e;0/queues/tx-3/xps_rxqs' '/sys/class/net/e;0/queues/tx-5/xps_rxqs'";
    assert_eq!(
        crate::support::host::fix_of(&of(&plan, "e;0").notes[0]).as_deref(),
        Some(fix)
    );
}

#[test]
fn sixteen_cards_on_eight_nodes() {
    let mut host = machine(8, 8, 2, 8);
    for card in 0..16 {
        add(&mut host, &format!("eth{card}"), Some(card / 2), 4);
    }
    let plan = plan(&host);
    assert_eq!(planned(&plan.score), perfect(2_500_000));
}

#[test]
fn sparse_nodes_and_a_dual_port_card_with_unlike_links() {
    let mut host = machine(3, 4, 1, 4);
    let nodes = std::mem::take(&mut host.topology.nodes);
    host.topology.nodes = [0, 8, 252].into_iter().zip(nodes.into_values()).collect();
    add(&mut host, "eth0", Some(252), 2);
    add(&mut host, "eth1", Some(252), 2);
    host.interfaces[1].speed_mbps = Some(1000);
    let plan = plan(&host);
    assert_eq!(
        (cpus(of(&plan, "eth0")), cpus(of(&plan, "eth1"))),
        (
            vec!["8".into(), "9".into()],
            vec!["10".to_owned(), "11".into()]
        )
    );
}

#[test]
fn what_is_left_out_and_what_is_left_for_workers() {
    let mut host = machine(2, 8, 1, 8);
    add(&mut host, "eth0", Some(1), 3);
    (host.topology.isolated, host.topology.nohz_full) = (set("12"), set("12-13"));
    let plan = with(&host, &[("exclude", "0-1,15")]);
    let eth0 = of(&plan, "eth0");
    let left = (eth0.left_out.iter()).map(|left| format!("{}: {}\n", left.cpus, left.why));
    assert_data_eq!(
        left.collect::<String>(),
        str![[r"
15: excluded by the policy
12: isolated
13: nohz_full

"]]
    );
    assert_eq!(
        (&eth0.irq_cpus, &eth0.worker_cpus),
        (&set("8-10"), &set("11,14-15"))
    );
}

#[test]
fn local_is_the_cards_own_node_even_where_no_cpu_of_it_may_be_used() {
    let mut host = machine(2, 4, 1, 4);
    add(&mut host, "eth0", Some(1), 2);
    host.topology.isolated = set("4-7");
    let there = plan(&host);
    assert_eq!(
        (of(&there, "eth0").node, there.score.local),
        (Some(0), Some(0.0))
    );
    // No CPUs are nearer to a node without CPUs.
    host.topology.nodes.get_mut(&1).unwrap().cpus = set("");
    let there = plan(&host);
    assert_eq!(
        (of(&there, "eth0").node, there.score.local),
        (Some(0), Some(1.0))
    );
}

#[test]
fn a_queue_of_a_group_counts_once_where_it_is_dealt() {
    let mut host = machine(1, 8, 1, 8);
    add(&mut host, "eth0", Some(0), 8);
    let plan = with(&host, &[("group", "2-5")]);
    assert_eq!(
        (plan.score.max_vectors_per_core, plan.score.pairs_on_cores),
        (2, 4)
    );
    assert_data_eq!(
        of(&with(&host, &[("group", "2")]), "eth0").vectors[0]
            .why
            .to_string(),
        str!["a group of CPUs, by the policy"]
    );
}

#[test]
fn flow_tables_are_as_large_as_the_largest_request() {
    let mut host = machine(1, 8, 1, 8);
    add(&mut host, "eth0", Some(0), 2);
    add(&mut host, "eth1", Some(0), 2);
    host.flow_entries = Some(7);
    let table = |policy: &str| {
        let plan = plan_by(&host, policy);
        let write = plan
            .writes
            .iter()
            .find(|write| write.path.ends_with("rps_sock_flow_entries"));
        write.map(|write| write.value.clone())
    };
    let rule = |name: &str, rfs: &str| {
        format!("[[rule]]\nmatch = {{ name = '{name}' }}\nset = {{ rfs = {rfs} }}\n")
    };
    for (eth0, eth1, expected) in [
        ("1000", "40000", Some("65536")),
        ("40000", "1000", Some("65536")),
        ("'off'", "1000", Some("1024")),
        ("'off'", "'off'", Some("0")),
        ("'off'", "'keep'", None),
        ("'keep'", "'keep'", None),
    ] {
        let found = table(&(rule("eth0", eth0) + &rule("eth1", eth1)));
        assert_eq!(found.as_deref(), expected, "{eth0} {eth1}");
    }
}

#[test]
fn the_score_counts_what_is_now_and_what_is_planned() {
    let mut host = machine(2, 4, 2, 4);
    add(&mut host, "eth0", Some(1), 2);
    add(&mut host, "eth1", Some(1), 2);
    host.topology.isolated = set("3");
    for (interface, cpus) in host
        .interfaces
        .clone()
        .iter()
        .zip([["3", "11"], ["4", "3"]])
    {
        let at = host
            .interfaces
            .iter()
            .position(|i| i.name == interface.name)
            .unwrap();
        for (vector, cpu) in host.interfaces[at].vectors.iter_mut().zip(cpus) {
            vector.effective = Some(set(cpu));
        }
    }
    let plan = plan(&host);
    let now = Score {
        local: Some(0.25),
        outside: 3,
        max_vectors_per_core: 3,
        max_load_kbps: 15_000_000,
        pairs_on_cores: 3,
        max_first_queues_per_core: 1,
        above_even_cores: 1,
        above_even_threads: 0,
        far_senders: 16,
        remote: 3,
        at_speed: None,
        on_isolated: 2,
        rdma: None,
    };
    assert_eq!(planned(&plan.score_now), now);
    assert_eq!(planned(&plan.score), perfect(5_000_000));
}

#[test]
fn rules_match_by_device_id_and_speed() {
    let mut host = machine(2, 4, 1, 4);
    add(&mut host, "eth0", Some(1), 2);
    host.interfaces[0].device.pci_id = Some("15b3:1017".to_owned());
    // The link is slower than the port.
    host.interfaces[0].supported_mbps = Some(25_000);
    host.interfaces[0].speed_mbps = Some(1_000);
    let matches = |host: &Machine, condition: &str| {
        let rule = format!("[[rule]]\nmatch = {{ {condition} }}\nset = {{ skip = true }}\n");
        let plan = plan_by(host, &rule);
        of(&plan, "eth0").rules == [1]
    };
    for (condition, holds) in [
        ("pci = '15b3:*'", true),
        ("pci = '8086:*'", false),
        ("speed = 25000", true),
        ("speed = '>=25000'", true),
        ("speed = '>25000'", false),
        ("speed = '<=10000'", false),
        ("speed = '<40000'", true),
        ("pci = '15b3:1017', speed = '<10000'", false),
    ] {
        assert_eq!(matches(&host, condition), holds, "{condition}");
    }
    host.interfaces[0].supported_mbps = None;
    assert!(
        matches(&host, "speed = 1000"),
        "what a driver reports without modes"
    );
    host.interfaces[0].speed_mbps = None;
    assert!(
        !matches(&host, "speed = '<40000'"),
        "a speed that is not known matches none"
    );
}

#[test]
fn stale_rps_of_queues_that_are_left_is_cleared() {
    let mut host = machine(1, 8, 1, 8);
    add(&mut host, "eth0", Some(0), 8);
    let stale = mask(&host, &set("0-7"));
    for rx in &mut host.interfaces[0].rx_queues {
        rx.rps_cpus = Some(stale.clone());
    }
    let plan = plan(&host);
    let cleared = plan
        .writes
        .iter()
        .filter(|w| w.path.ends_with("rps_cpus") && w.value == "00")
        .count();
    assert_eq!(cleared, 8);
    assert!(
        of(&plan, "eth0")
            .vectors
            .iter()
            .all(|v| v.role == Role::Combined)
    );
}

/// Whether a control vector is moved depends on where it is now.
#[test]
fn a_control_vector_that_leaves_an_isolated_cpu_does_not_change_the_hash() {
    let mut host = machine(1, 8, 1, 8);
    add(&mut host, "eth0", Some(0), 2);
    host.topology.isolated = set("3");
    let [(before, from), (after, to)] = ["3", "0"].map(|on| {
        let mut host = host.clone();
        let mut control = vector(9, Role::Control, None, &mask(&host, &set(on)));
        control.effective = Some(set(on));
        host.interfaces[0].vectors.push(control);
        let plan = plan(&host);
        let moved = plan
            .writes
            .iter()
            .any(|write| write.path.contains("/irq/9/"));
        (plan.hash, moved)
    });
    assert_eq!((before, from, to), (after, true, false));
}

#[test]
fn a_scope_of_one_node_makes_an_unknown_node_known() {
    let mut host = machine(2, 4, 1, 4);
    add(&mut host, "eth0", None, 2);
    for (scope, node) in [("node:1", Some(1)), ("4-7", Some(1)), ("node:0,1", None)] {
        let plan = with(&host, &[("scope", scope)]);
        let eth0 = of(&plan, "eth0");
        assert_eq!(eth0.node, node, "{scope}");
        let unknown = codes(eth0).contains(&"node-unknown");
        assert_eq!(unknown, node.is_none(), "{scope}");
    }
}

/// A CPU of x86 has some 200 interrupt vectors for devices.
#[test]
fn no_cpu_gets_more_irqs_than_it_has_vectors() {
    let mut host = machine(1, 2, 1, 2);
    for at in 0..8 {
        add(&mut host, &format!("eth{at}"), Some(0), 60);
    }
    let on_cpu = |plan: &Plan| {
        let vectors = plan.interfaces.iter().flat_map(|of| &of.vectors);
        let planned = vectors.filter_map(|vector| vector.cpus.as_ref()?.first());
        let mut on = [0; 2];
        planned.for_each(|cpu| on[cpu as usize] += 1);
        on
    };
    // Other architectures have no limit.
    assert_eq!(on_cpu(&plan(&host)), [240, 240]);
    host.vectors_held = Some([(0, 30)].into());
    // All vectors are on a CPU that is no candidate.
    let all = mask(&host, &set("0-2"));
    for vector in host.interfaces.iter_mut().flat_map(|of| &mut of.vectors) {
        (vector.affinity, vector.effective) = (all.clone(), Some(set("2")));
    }
    host.topology.online = set("0-2");
    host.topology.isolated = set("2");
    let full = plan(&host);
    assert_eq!(on_cpu(&full), [170, 200]);
    let notes = full.interfaces.iter().flat_map(|of| &of.notes);
    let left: usize = notes
        .filter_map(|note| match note {
            Note::VectorsExhausted { irqs, .. } => Some(irqs),
            _ => None,
        })
        .sum();
    assert_eq!(left, 8 * 60 - 370);
    assert_eq!(full.score.on_isolated, left);
    let empty = crate::support::temporary();
    let root = nicpin::root::Root::open(empty.path()).unwrap();
    let named = nicpin::check(&root, &host, &full).left_alone;
    assert!(!named.is_empty());
    assert!(
        named
            .iter()
            .all(|about| about.note.code() == "vectors-exhausted")
    );
    // Vectors that are there stay, so that no write needs a vector that another IRQ still holds.
    let vectors = host.interfaces.iter_mut().flat_map(|of| &mut of.vectors);
    for (at, vector) in vectors.enumerate() {
        vector.effective = Some(if at % 2 == 0 && at < 300 {
            set("1")
        } else {
            set("2")
        });
    }
    let kept = plan(&host);
    assert_eq!(on_cpu(&kept), [170, 200]);
    let vectors = kept.interfaces.iter().flat_map(|of| &of.vectors);
    let there = vectors.filter(|vector| vector.effective == Some(set("1")));
    assert!(there.clone().all(|vector| vector.cpus == Some(set("1"))));
    assert_eq!(there.count(), 150);
}
