//! Properties of every machine, every CPU set and every text.

mod machines;
mod rules;

use std::collections::{BTreeMap, BTreeSet};

use proptest::collection::{btree_set, vec};
use proptest::option;
use proptest::prelude::*;

use self::machines::{
    large_machines, machines, machines_of_one_weight, machines_with_one_card, of_one_weight,
};
use self::rules::{
    QueuesByCore, placed_by_the_rules, queues_stay_together, rps_to_free_cores,
    usable_candidates_only, xps_is_a_partition,
};
use crate::support::host::{mask, plan, plan_with};
use crate::support::schema::mistakes;
use crate::support::{cases, temporary};
use nicpin::cpuset::{CpuSet, MaskWidth};
use nicpin::drivers as names;
use nicpin::machine::topology::VECTORS_OF_CPU;
use nicpin::machine::{Machine, MaskFile, Role, Vector};
use nicpin::plan::note::Note;
use nicpin::plan::{Measure, Plan};
use nicpin::policy::Policy;
use nicpin::read::interrupts;
use nicpin::report::check::CheckState;

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
        prop_assert_eq!(MaskFile::parse(&mask).unwrap().width, width);
        // Groups of eight digits; only the first may be shorter.
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
            let _ = interrupts::parse(&mut text.as_bytes());
            let _ = interrupts::parse(&mut format!("  CPU0 CPU1\n{text}").as_bytes());
            let _ = Policy::parse(text);
            let _ = names::classify(None, text, &[]);
            let _ = names::classify(Some("ixgbe"), text, &[]);
        }
    }
}

/// The hash depends on the order of interfaces and vectors, and is left out.
fn in_order(plan: &Plan) -> Plan {
    let mut plan = plan.clone();
    plan.hash.clear();
    plan.interfaces.sort_by(|a, b| a.name.cmp(&b.name));
    plan.interfaces
        .iter_mut()
        .for_each(|interface| interface.vectors.sort_by_key(|vector| vector.irq));
    plan.writes.sort_by(|a, b| a.path.cmp(&b.path));
    plan
}

fn after(host: &Machine, plan: &Plan) -> Machine {
    let mut host = host.clone();
    for write in &plan.writes {
        let parts: Vec<&str> = write.path.split('/').collect();
        let interface = host
            .interfaces
            .iter_mut()
            .find(|i| *i.name == *write.interface)
            .unwrap();
        let file = MaskFile::parse(&write.value).unwrap();
        match parts[..] {
            ["", "proc", "irq", irq, "smp_affinity"] => {
                let vector = interface
                    .vectors
                    .iter_mut()
                    .find(|v| v.irq.to_string() == irq)
                    .unwrap();
                (vector.effective, vector.affinity) = (Some(file.cpus.clone()), file);
            }
            ["", "sys", "class", "net", _, "queues", queue, "rps_cpus"] => {
                let queue = interface
                    .rx_queues
                    .iter_mut()
                    .find(|q| format!("rx-{}", q.index) == queue)
                    .unwrap();
                queue.rps_cpus = Some(file);
            }
            ["", "sys", "class", "net", _, "queues", queue, "xps_cpus"] => {
                let queue = interface
                    .tx_queues
                    .iter_mut()
                    .find(|q| format!("tx-{}", q.index) == queue)
                    .unwrap();
                queue.xps_cpus = Some(file);
            }
            _ => panic!("a write to {}", write.path),
        }
    }
    host
}

fn targets(plan: &Plan) -> Vec<(CpuSet, Vec<Option<CpuSet>>)> {
    let of = |interface: &nicpin::plan::PlannedInterface| {
        let vectors = interface.vectors.iter().map(|vector| vector.cpus.clone());
        let rps = interface.rx_queues.iter().map(|rx| rx.rps_cpus.clone());
        let xps = interface.tx_queues.iter().map(|tx| tx.xps_cpus.clone());
        (
            interface.candidates.clone(),
            vectors.chain(rps).chain(xps).collect(),
        )
    };
    plan.interfaces.iter().map(of).collect()
}

proptest! {
    #![proptest_config(cases(60))]

    #[test]
    fn vectors_go_to_usable_candidates_only(host in machines()) {
        usable_candidates_only(&host, &plan(&host))?;
    }

    /// check makes the plan again from what apply has written.
    #[test]
    fn an_applied_plan_is_planned_again(
        host in machines(),
        scope in prop::sample::select(vec!["local", "all", "remote", "node:1"]),
    ) {
        let options = [("scope", scope)];
        let again = after(&host, &plan_with(&host, &options, &[]));
        prop_assert_eq!(plan_with(&again, &options, &[]).writes, []);
    }

    /// IRQs that are as good stay, and no more is written than with the whole plan.
    #[test]
    fn a_plan_of_gains_is_as_good_as_the_whole_one(host in machines(), stirred in vec(0_usize..100, 8)) {
        let mut host = after(&host, &plan(&host));
        let vectors = host.interfaces.iter_mut().flat_map(|of| &mut of.vectors).filter(|of| of.movable);
        let mut vectors: Vec<&mut Vector> = vectors.collect();
        let count = vectors.len().max(1);
        for pair in stirred.chunks(2).take(vectors.len()) {
            let (from, to) = (pair[0] % count, pair[1] % count);
            let from = (vectors[from].affinity.clone(), vectors[from].effective.clone());
            (vectors[to].affinity, vectors[to].effective) = from;
        }
        let (whole, gains) = (plan(&host), plan_with(&host, &[("only-gain", "true")], &[]));
        for measure in Measure::OBJECTIVE {
            prop_assert!(gains.score.of(measure) <= whole.score.of(measure), "{:?}", measure);
        }
        prop_assert!(gains.writes.len() <= whole.writes.len());
        let host = after(&host, &gains);
        prop_assert_eq!(plan_with(&host, &[("only-gain", "true")], &[]).writes, []);
        let empty = temporary();
        let root = nicpin::root::Root::open(empty.path()).unwrap();
        let check = nicpin::check(&root, &host, &plan(&host));
        prop_assert_eq!(check.verdict, CheckState::Same, "{:?}", check.interfaces);
    }

    /// On x86, vectors without room stay.
    #[test]
    fn irqs_fit_the_vectors_of_their_cpus(host in machines(), room in vec(0_usize..5, 1..9)) {
        let mut host = host;
        let rooms: BTreeMap<u32, usize> = host.topology.online.iter().zip(room.iter().copied().cycle()).collect();
        host.vectors_held = Some(rooms.iter().map(|(&cpu, room)| (cpu, VECTORS_OF_CPU - room)).collect());
        let planned = plan(&host);
        let vectors = planned.interfaces.iter().flat_map(|of| &of.vectors);
        let mut on: BTreeMap<u32, usize> = BTreeMap::new();
        for cpu in vectors.filter_map(|vector| vector.cpus.as_ref()?.first()) {
            *on.entry(cpu).or_default() += 1;
        }
        for (cpu, irqs) in on {
            prop_assert!(irqs <= rooms[&cpu], "{irqs} on CPU {cpu}");
        }
        let mut notes = planned.interfaces.iter().flat_map(|of| &of.notes);
        if !notes.any(|note| matches!(note, Note::VectorsExhausted { .. })) {
            prop_assert_eq!(plan(&after(&host, &planned)).writes, []);
        }
    }

    /// CPUs that the policy does not leave out are like any other.
    #[test]
    fn exclusive_cpus_are_planned_around_as_isolated_ones_are(host in machines(), cpus in btree_set(0_u32..128, 0..40)) {
        let exclusive = cpus.into_iter().collect::<CpuSet>().intersection(&host.topology.online);
        let (mut given, mut isolated) = (host.clone(), host.clone());
        given.topology.exclusive = exclusive.clone();
        isolated.topology.isolated = host.topology.isolated.union(&exclusive);
        prop_assert_eq!(targets(&plan(&given)), targets(&plan(&host)));
        prop_assert_eq!(plan(&given).hash, plan(&host).hash);
        let avoided = plan_with(&given, &[("avoid-exclusive", "true")], &[]);
        prop_assert_eq!(targets(&avoided), targets(&plan(&isolated)));
        prop_assert!(avoided.interfaces.iter().all(|interface| !interface.worker_cpus.intersects(&exclusive)));
        prop_assert_eq!(&avoided.score, &plan(&isolated).score);
        prop_assert_eq!(&avoided.score_now, &plan(&isolated).score_now);
    }

    #[test]
    fn no_core_has_two_queues_while_a_candidate_of_its_interfaces_has_none(host in machines_of_one_weight()) {
        let plan = plan(&host);
        QueuesByCore::new(&host, &plan).even()?;
    }

    #[test]
    fn the_core_of_cpu_0_is_used_last(host in machines_of_one_weight()) {
        let plan = plan(&host);
        QueuesByCore::new(&host, &plan).cpu0_is_last()?;
    }

    #[test]
    fn fast_cores_are_used_before_slow_ones(host in machines_of_one_weight()) {
        let plan = plan(&host);
        QueuesByCore::new(&host, &plan).fast_cores_are_first()?;
    }

    #[test]
    fn first_threads_are_used_before_siblings(host in machines()) {
        let plan = plan(&host);
        QueuesByCore::new(&host, &plan).first_threads_are_first()?;
    }

    #[test]
    fn a_card_alone_is_spread_over_l3_domains(host in machines_with_one_card()) {
        let plan = plan(&host);
        placed_by_the_rules(&host, &plan)?;
        QueuesByCore::new(&host, &plan).spread_over_l3()?;
    }

    #[test]
    fn the_order_of_directories_does_not_matter(host in machines(), seed in any::<u32>()) {
        let mut shuffled = host.clone();
        let key = |number: u32| (number ^ seed).wrapping_mul(0x9e37_79b1);
        shuffled.interfaces.sort_by_key(|interface| key(interface.vectors[0].irq));
        for interface in &mut shuffled.interfaces {
            interface.vectors.sort_by_key(|vector| key(vector.irq));
            interface.device.irqs.sort_by_key(|&irq| key(irq));
        }
        prop_assert_eq!(in_order(&plan(&shuffled)), in_order(&plan(&host)));
    }

    #[test]
    fn a_queues_vectors_share_a_cpu(host in machines()) {
        queues_stay_together(&plan(&host))?;
    }

    /// Rule 5: they follow all queues; queues and XPS are planned as without them.
    #[test]
    fn rdma_vectors_move_no_queue(host in machines(), count in 1_u32..20) {
        let mut with_rdma = host.clone();
        for (at, interface) in (0_u32..).zip(&mut with_rdma.interfaces) {
            let like = interface.vectors[0].clone();
            interface.vectors.extend((0..count).map(|n| Vector {
                irq: 100_000 + at * 100 + n,
                role: Role::Rdma,
                queue: Some(n),
                ..like.clone()
            }));
        }
        let (without, with) = (plan(&host), plan(&with_rdma));
        for (without, with) in without.interfaces.iter().zip(&with.interfaces) {
            let (queues, rdma) = with.vectors.split_at(without.vectors.len());
            prop_assert_eq!(&without.vectors[..], queues);
            prop_assert_eq!(&without.tx_queues, &with.tx_queues);
            for vector in rdma {
                let cpus = vector.cpus.as_ref().unwrap();
                prop_assert!(cpus.len() == 1 && cpus.is_subset(&with.candidates));
            }
        }
        prop_assert_eq!(without.score.max_vectors_per_core, with.score.max_vectors_per_core);
    }

    #[test]
    fn xps_parts_the_online_cpus(host in machines()) {
        xps_is_a_partition(&host, &plan(&host))?;
    }

    #[test]
    fn rps_goes_to_free_cores(host in machines()) {
        rps_to_free_cores(&host, &plan(&host))?;
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
            let one = plan_with(&host, &[], &[&interface.name]);
            prop_assert_eq!(one.interfaces.len(), 1);
            prop_assert_eq!(Some(&one.interfaces[0]), all.interfaces.iter().find(|i| i.name == interface.name));
        }
    }

    #[test]
    fn speeds_and_carriers_do_not_matter(host in machines(), known in vec(any::<bool>(), 9), now in vec(option::of(1_u32..400_000), 9)) {
        let (mut before, mut after) = (host.clone(), host);
        for (at, interface) in before.interfaces.iter_mut().enumerate() {
            // What the port can carry is known by its link modes or by its PCIe link.
            interface.supported_mbps = interface.supported_mbps.filter(|_| known[at] || interface.device.pcie_mtps == 0);
            let after = &mut after.interfaces[at];
            after.supported_mbps = interface.supported_mbps;
            after.speed_mbps = now[at];
            after.link = if now[at].is_some() { "up" } else { "down" }.to_owned();
        }
        prop_assert_eq!(targets(&plan(&after)), targets(&plan(&before)));
        prop_assert_eq!(plan(&after).hash, plan(&before).hash);
    }

    #[test]
    fn an_equal_permutation_is_no_difference_but_an_exact_one(host in machines_with_one_card(), by in 1_usize..64) {
        let planned = plan(&host);
        let mut permuted = after(&host, &planned);
        let vectors = &mut permuted.interfaces[0].vectors;
        let on: Vec<_> = vectors.iter().map(|v| (v.affinity.clone(), v.effective.clone())).collect();
        for (vector, on) in vectors.iter_mut().zip(on.into_iter().cycle().skip(by)) {
            (vector.affinity, vector.effective) = on;
        }
        let planned = plan(&permuted);
        let empty = temporary();
        let root = nicpin::root::Root::open(empty.path()).unwrap();
        let check = nicpin::check(&root, &permuted, &planned);
        // Where the node is unknown, a sender's queue may complete on another node than before.
        let measures: Vec<_> = check.interfaces.iter().flat_map(|one| &one.changes).map(|one| one.measure).collect();
        prop_assume!(!measures.contains(&Measure::FarSenders));
        prop_assert_eq!(measures, vec![]);
        prop_assert_eq!(check.verdict, CheckState::Same);
        let differs = check.differ() > 0;
        prop_assert_eq!(check.counting(false, true).verdict == CheckState::Differs, differs);
    }

    #[test]
    fn a_stored_plan_is_the_plan(host in machines()) {
        let plan = plan(&host);
        let text = serde_json::to_string(&plan).unwrap();
        let fitted = nicpin::plan::stored::fit(&nicpin::plan::stored::parse(&text).unwrap(), &host);
        prop_assert_eq!(fitted.changes, vec![]);
        prop_assert_eq!(fitted.plan, Plan { network_cpus: CpuSet::new(), ..plan });
    }

    #[test]
    fn the_json_form_is_read_back(host in machines()) {
        let plan = plan(&host);
        let text = crate::screen::json(&plan).unwrap();
        prop_assert_eq!(mistakes(&text), Vec::<String>::new());
        let plan = Plan { network_cpus: CpuSet::new(), ..plan };
        prop_assert_eq!(nicpin::plan::stored::parse(&text).unwrap(), plan);
    }

    #[test]
    fn tables_fit_the_screen(host in machines()) {
        let table = crate::screen::plan::plan(&plan(&host), (&[], 0), crate::screen::plan::PlanDetail::Runs, false, &crate::screen::Given::default());
        let table = table.show(crate::screen::page::Screen::default());
        for line in table.lines() {
            prop_assert!(line.chars().count() <= 100, "{}", line);
        }
    }

    #[test]
    fn masks_are_as_wide_as_the_file(host in machines()) {
        let width = mask(&host, &CpuSet::new()).text.len();
        for write in &plan(&host).writes {
            prop_assert_eq!(write.value.len(), width);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 40, ..cases(6) })]

    #[test]
    fn every_rule_holds_on_large_machines_of_any_numbering(host in large_machines()) {
        let host = of_one_weight(host);
        let plan = plan(&host);
        usable_candidates_only(&host, &plan)?;
        placed_by_the_rules(&host, &plan)?;
        queues_stay_together(&plan)?;
        xps_is_a_partition(&host, &plan)?;
        let moved = after(&host, &plan);
        prop_assert_eq!(&crate::support::host::plan(&moved).writes, &[]);
        let mut alone = host;
        alone.interfaces.truncate(1);
        QueuesByCore::new(&alone, &crate::support::host::plan(&alone)).spread_over_l3()?;
    }
}
