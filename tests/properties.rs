//! What holds for every machine, every set and every text.
#![allow(clippy::unwrap_used, clippy::disallowed_methods)] // helpers of tests, on trees of their own

mod support;

use std::collections::{BTreeMap, BTreeSet};

use nicpin::cpuset::{CpuSet, MaskWidth};
use nicpin::host::{Host, Interrupts, MaskFile, Role, names};
use nicpin::plan::Plan;
use nicpin::policy::{Policy, Settings};
use proptest::collection::{btree_set, vec};
use proptest::prelude::*;
use support::host::{add, machine, mask, plan, plan_with};

fn cpu_sets() -> impl Strategy<Value = BTreeSet<u32>> {
    btree_set(0_u32..4200, 0..40)
}

proptest! {
    #[test]
    fn lists_and_masks_are_read_back(cpus in cpu_sets(), wider in 0_u32..200) {
        let set: CpuSet = cpus.iter().copied().collect();
        prop_assert_eq!(&CpuSet::parse_list(&set.to_string()).unwrap(), &set);
        let width = MaskWidth::for_cpus(set.last().map_or(1, |last| last + 1) + wider);
        let mask = set.to_mask(width).unwrap();
        prop_assert_eq!(&CpuSet::parse_mask(&mask).unwrap(), &set);
        prop_assert_eq!(MaskWidth::of(&mask), Some(width));
        // Groups of eight, only the first may be shorter.
        let groups: Vec<&str> = mask.split(',').collect();
        prop_assert!(groups[1..].iter().all(|group| group.len() == 8) && (1..=8).contains(&groups[0].len()));
    }

    #[test]
    fn sets_behave_like_sets(a in cpu_sets(), b in cpu_sets()) {
        let of = |cpus: &BTreeSet<u32>| cpus.iter().copied().collect::<CpuSet>();
        let (x, y) = (of(&a), of(&b));
        prop_assert_eq!(x.union(&y), of(&(&a | &b)));
        prop_assert_eq!(x.intersection(&y), of(&(&a & &b)));
        prop_assert_eq!(x.difference(&y), of(&(&a - &b)));
        prop_assert_eq!(x.is_subset(&y), a.is_subset(&b));
        prop_assert_eq!(x.intersects(&y), !a.is_disjoint(&b));
        prop_assert_eq!((x.len(), x.first(), x.last()), (a.len(), a.first().copied(), a.last().copied()));
        prop_assert!((0..4300).all(|cpu| x.contains(cpu) == a.contains(&cpu)));
    }

    #[test]
    fn parsers_take_any_text(text in ".{0,200}", kernel_like in "[0-9a-fxCPUN:, \t\n.@-]{0,300}") {
        for text in [&text, &kernel_like] {
            let _ = CpuSet::parse_list(text);
            let _ = CpuSet::parse_mask(text);
            let _ = MaskFile::parse(text);
            let _ = Interrupts::parse(text);
            let _ = Interrupts::parse(&format!("  CPU0 CPU1\n{text}"));
            let _ = Policy::parse(text);
            let _ = names::classify(None, text);
            let _ = names::classify(Some("ixgbe"), text);
        }
    }
}

#[derive(Debug, Clone)]
struct Card {
    node: Option<u32>,
    queues: u32,
    pcie: u64,
    idle: u32,
    split: bool,
}

fn machines() -> impl Strategy<Value = Host> {
    let card = (proptest::option::weighted(0.8, 0_u32..9), 1_u32..24, 0_u64..4, 0_u32..3, any::<bool>());
    let card = card.prop_map(|(node, queues, pcie, idle, split)| Card { node, queues, pcie, idle, split });
    let shape = (1_u32..9, 1_u32..9, 1_u32..3, 1_u32..5);
    (shape, vec(card, 0..9), btree_set(0_u32..128, 0..12), btree_set(0_u32..128, 0..6)).prop_map(
        |((nodes, cores, threads, per_l3), cards, isolated, offline)| {
            let mut host = machine(nodes, cores, threads, per_l3);
            for (at, card) in cards.iter().enumerate() {
                add(&mut host, &format!("eth{at}"), card.node, card.queues);
                let interface = host.interfaces.last_mut().unwrap();
                interface.device.pcie_mtps = card.pcie * 8000;
                let active = card.queues.saturating_sub(card.idle).max(1) as usize;
                interface.rx_queues.truncate(active);
                interface.tx_queues.truncate(active);
                if card.split {
                    let tx = interface.vectors.iter().map(|v| nicpin::host::Vector {
                        irq: v.irq + 150,
                        role: Role::Tx,
                        ..v.clone()
                    });
                    let tx: Vec<_> = tx.collect();
                    interface.vectors.iter_mut().for_each(|v| v.role = Role::Rx);
                    interface.vectors.extend(tx);
                }
            }
            take_offline(&mut host, &offline.into_iter().collect());
            host.topology.isolated =
                isolated.into_iter().collect::<CpuSet>().intersection(&host.topology.online);
            host
        },
    )
}

/// Machines of any size and numbering: up to 4,096 CPUs on up to 32 nodes, with up to 32 cards.
fn large_machines() -> impl Strategy<Value = Host> {
    let shape = (1_u32..33, 1_u32..65, 1_u32..5, 1_u32..17, 0_usize..33, any::<u32>());
    shape.prop_map(|(nodes, cores, threads, per_l3, cards, seed)| {
        let cores = cores.min(4096 / nodes / threads);
        let mut host = machine(nodes, cores.max(1), threads, per_l3);
        let mut random = seed;
        let mut next = |end: u32| {
            // A linear congruential generator: the same machine for the same seed.
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (random >> 8) % end
        };
        let end = host.topology.possible;
        let mut names: Vec<u32> = (0..end).collect();
        for at in (1..end).rev() {
            names.swap(at as usize, next(at + 1) as usize);
        }
        renumber(&mut host, &names);
        let offline = (0..end / 8).map(|_| next(end)).collect();
        take_offline(&mut host, &offline);
        let isolated: CpuSet = (0..end / 8).map(|_| next(end)).collect();
        host.topology.isolated = isolated.intersection(&host.topology.online);
        for at in 0..cards {
            let node = Some(next(nodes + 2)).filter(|&node| node <= nodes);
            let queues = 1 + next(64);
            add(&mut host, &format!("eth{at}"), node, queues);
            host.interfaces[at].device.pcie_mtps = u64::from(next(4)) * 8000;
        }
        host
    })
}

/// Gives every CPU another number.
fn renumber(host: &mut Host, names: &[u32]) {
    let topology = &mut host.topology;
    let sets = topology.cores.iter_mut().chain(&mut topology.l3_domains);
    for set in sets.chain(topology.nodes.values_mut().map(|node| &mut node.cpus)) {
        *set = set.iter().map(|cpu| names[cpu as usize]).collect();
    }
    topology.cores.sort_by_key(CpuSet::first);
    topology.l3_domains.sort_by_key(CpuSet::first);
}

/// Takes CPUs offline, but for the last one.
fn take_offline(host: &mut Host, offline: &CpuSet) {
    let topology = &mut host.topology;
    let left = topology.online.difference(offline);
    if left.is_empty() {
        return;
    }
    topology.online = left.clone();
    for set in topology.cores.iter_mut().chain(&mut topology.l3_domains) {
        *set = set.intersection(&left);
    }
    topology.cores.retain(|core| !core.is_empty());
    topology.l3_domains.retain(|domain| !domain.is_empty());
    for node in topology.nodes.values_mut() {
        node.cpus = node.cpus.intersection(&left);
    }
}

/// Active queues on each core, and which interfaces they are of.
fn on_cores(host: &Host, plan: &Plan) -> BTreeMap<usize, Vec<(String, u32)>> {
    let mut cores: BTreeMap<usize, Vec<(String, u32)>> = BTreeMap::new();
    let numbered = host.topology.cores.iter().enumerate();
    let core_of: BTreeMap<u32, usize> =
        numbered.flat_map(|(at, core)| core.iter().map(move |cpu| (cpu, at))).collect();
    for interface in &plan.interfaces {
        let active = interface.vectors.iter().filter(|v| v.role != Role::Control && !v.idle);
        for vector in active {
            let cpu = vector.cpus.as_ref().and_then(CpuSet::first).unwrap();
            let core = core_of[&cpu];
            let queue = (interface.name.clone(), vector.queue.unwrap());
            let on = cores.entry(core).or_default();
            if !on.contains(&queue) {
                on.push(queue);
            }
        }
    }
    cores
}

/// The machine after the plan's writes.
fn after(host: &Host, plan: &Plan) -> Host {
    let mut host = host.clone();
    for write in &plan.writes {
        let parts: Vec<&str> = write.path.split('/').collect();
        let interface = host.interfaces.iter_mut().find(|i| *i.name == *write.interface).unwrap();
        let file = MaskFile::parse(&write.value.text()).unwrap();
        match parts[..] {
            ["", "proc", "irq", irq, "smp_affinity"] => {
                let vector = interface.vectors.iter_mut().find(|v| v.irq.to_string() == irq).unwrap();
                (vector.serving, vector.allowed) = (Some(file.cpus.clone()), file);
            }
            ["", "sys", "class", "net", _, "queues", queue, "rps_cpus"] => {
                let queue =
                    interface.rx_queues.iter_mut().find(|q| format!("rx-{}", q.index) == queue).unwrap();
                queue.rps_cpus = Some(file);
            }
            ["", "sys", "class", "net", _, "queues", queue, "xps_cpus"] => {
                let queue =
                    interface.tx_queues.iter_mut().find(|q| format!("tx-{}", q.index) == queue).unwrap();
                queue.xps_cpus = Some(file);
            }
            _ => panic!("a write to {}", write.path),
        }
    }
    host
}

/// Rules 1 and 2.
fn usable_candidates_only(host: &Host, plan: &Plan) -> Result<(), TestCaseError> {
    for interface in &plan.interfaces {
        prop_assert!(
            interface.candidates.is_subset(&host.topology.online) && !interface.candidates.is_empty()
        );
        let overruled = interface.notes.iter().any(|note| note.code == "no-usable-cpu");
        prop_assert!(overruled || !interface.candidates.intersects(&host.topology.isolated));
        for vector in &interface.vectors {
            let cpus = vector.cpus.as_ref().unwrap();
            prop_assert!(cpus.len() == 1 && cpus.is_subset(&interface.candidates));
        }
        if let (Some(node), false) = (interface.node, overruled) {
            prop_assert!(interface.candidates.is_subset(&host.topology.nodes[&node].cpus));
        }
        prop_assert!(interface.node.is_some() || interface.notes.iter().any(|n| n.code == "node-unknown"));
    }
    Ok(())
}

/// Rules 3 and 4: a core has a second queue only when one of its interfaces had no free candidate core left.
fn even(host: &Host, plan: &Plan) -> Result<(), TestCaseError> {
    let cores = on_cores(host, plan);
    for queues in cores.values().filter(|queues| queues.len() > 1) {
        let full = queues.iter().any(|(name, _)| {
            let candidates = &plan.interfaces.iter().find(|i| i.name == *name).unwrap().candidates;
            let own = host.topology.cores.iter().enumerate().filter(|(_, core)| core.intersects(candidates));
            own.into_iter().all(|(core, _)| cores.contains_key(&core))
        });
        prop_assert!(full, "{:?}", queues);
    }
    Ok(())
}

/// Rule 3: the receive and transmit vectors of a queue.
fn queues_stay_together(plan: &Plan) -> Result<(), TestCaseError> {
    for interface in &plan.interfaces {
        let mut cpus = BTreeMap::new();
        for vector in &interface.vectors {
            let cpu = cpus.entry(vector.queue).or_insert_with(|| vector.cpus.clone());
            prop_assert_eq!(&*cpu, &vector.cpus);
        }
    }
    Ok(())
}

/// Rule 6: every online CPU sends on exactly one queue.
fn xps_is_a_partition(host: &Host, plan: &Plan) -> Result<(), TestCaseError> {
    for interface in plan.interfaces.iter().filter(|i| i.tx_queues.len() > 1) {
        let mut all = CpuSet::new();
        for cpus in interface.tx_queues.iter().filter_map(|tx| tx.xps_cpus.as_ref()) {
            prop_assert!(!all.intersects(cpus));
            all = all.union(cpus);
        }
        prop_assert_eq!(&all, &host.topology.online);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn vectors_go_to_usable_candidates_only(host in machines()) {
        usable_candidates_only(&host, &plan(&host))?;
    }

    #[test]
    fn no_core_has_two_queues_while_a_candidate_of_its_interfaces_has_none(host in machines()) {
        even(&host, &plan(&host))?;
    }

    #[test]
    fn a_queues_vectors_share_a_cpu(host in machines()) {
        queues_stay_together(&plan(&host))?;
    }

    #[test]
    fn xps_parts_the_online_cpus(host in machines()) {
        xps_is_a_partition(&host, &plan(&host))?;
    }
    #[test]
    fn rps_shares_are_disjoint_candidates_other_than_the_interrupted_cpu(host in machines()) {
        for interface in &plan(&host).interfaces {
            let mut all = CpuSet::new();
            for rx in &interface.rx_queues {
                let cpus = rx.rps_cpus.as_ref().unwrap();
                prop_assert!(cpus.is_subset(&interface.candidates) && !all.intersects(cpus));
                all = all.union(cpus);
                let own = interface.vectors.iter().find(|v| v.queue == Some(rx.queue)).unwrap().cpus.clone().unwrap();
                prop_assert!(!cpus.intersects(&own) || interface.candidates.len() <= interface.rx_queues.len());
            }
        }
    }

    #[test]
    fn a_second_plan_after_the_writes_is_empty(host in machines()) {
        let first = plan(&host);
        let host = after(&host, &first);
        let second = plan(&host);
        prop_assert_eq!(&second.writes, &[]);
        prop_assert_eq!(second.unchanged, first.unchanged + first.writes.len());
        prop_assert_eq!(second.hash, first.hash);
        prop_assert_eq!(second.score_now, first.score);
    }

    #[test]
    fn irq_numbers_and_selection_do_not_matter(host in machines(), irqs in 0_u32..0x400) {
        let all = plan(&host);
        let mut renumbered = host.clone();
        for vector in renumbered.interfaces.iter_mut().flat_map(|i| &mut i.vectors) {
            vector.irq = (vector.irq ^ irqs) + 1;
        }
        prop_assert_eq!(&plan(&renumbered).hash, &all.hash);
        for interface in &host.interfaces {
            let one = plan_with(&host, Settings::default(), &[&interface.name]);
            prop_assert_eq!(one.interfaces.len(), 1);
            prop_assert_eq!(Some(&one.interfaces[0]), all.interfaces.iter().find(|i| i.name == interface.name));
        }
    }

    #[test]
    fn a_stored_plan_is_the_plan(host in machines()) {
        let plan = plan(&host);
        let text = serde_json::to_string(&plan).unwrap();
        let fitted = nicpin::plan::stored::fit(&nicpin::plan::stored::parse(&text).unwrap(), &host);
        prop_assert_eq!(fitted.changes, vec![]);
        prop_assert_eq!(fitted.plan, plan);
    }

    #[test]
    fn the_json_form_is_read_back(host in machines()) {
        let plan = plan(&host);
        let text = nicpin::render::json(&plan).unwrap();
        prop_assert_eq!(serde_json::from_str::<Plan>(&text).unwrap(), plan);
    }

    #[test]
    fn tables_fit_the_screen(host in machines()) {
        let table = nicpin::render::table::plan(&plan(&host), false);
        for line in table.lines() {
            prop_assert!(line.chars().count() <= 100, "{}", line);
        }
    }

    #[test]
    fn masks_are_as_wide_as_the_file(host in machines()) {
        let width = mask(&host, &CpuSet::new()).text.len();
        for write in &plan(&host).writes {
            prop_assert_eq!(write.value.text().len(), width);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4, max_shrink_iters: 40, ..ProptestConfig::default() })]

    #[test]
    fn every_rule_holds_on_large_machines_of_any_numbering(host in large_machines()) {
        let plan = plan(&host);
        usable_candidates_only(&host, &plan)?;
        even(&host, &plan)?;
        queues_stay_together(&plan)?;
        xps_is_a_partition(&host, &plan)?;
        let moved = after(&host, &plan);
        prop_assert_eq!(&support::host::plan(&moved).writes, &[]);
    }

    #[test]
    fn a_card_that_chooses_last_moves_nobody(host in large_machines(), queues in 1_u32..64) {
        let before = plan(&host);
        let mut host = host;
        let name = format!("eth{}", host.interfaces.len());
        // Without a node, the narrowest of all, and the last by address.
        add(&mut host, &name, None, queues);
        host.interfaces.last_mut().unwrap().device.pcie_mtps = 0;
        host.interfaces.last_mut().unwrap().device.address = "ffff:ff:1f.7".to_owned();
        let after = plan(&host);
        for interface in &before.interfaces {
            let cpus = |plan: &Plan| {
                let found = plan.interfaces.iter().find(|i| i.name == interface.name).unwrap();
                found.vectors.iter().map(|v| v.cpus.clone()).collect::<Vec<_>>()
            };
            prop_assert_eq!(cpus(&before), cpus(&after));
        }
    }
}
