//! What is not understood makes nothing look better: of each machine, the names of one card's IRQs are taken away, or half of
//! them, or what netlink reports of it. Then no verdict is better, no CPU of that card is idle, and no number of a queue is made up.
//!
//! The fixtures are tried, and every tree in the directories that `NICPIN_TREES` names, separated by colons.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::json;
use snapbox::{assert_data_eq, str};

use crate::support::host::{cpus as planned, of};
use crate::support::machine::{Port, card, two_nodes};
use crate::support::run::{FIXTURES, MachineTree, document, expect, fixture, nicpin};
use crate::support::tree::{copy_tree, read, settle, unpack};
use crate::support::{is_full, temporary};
use nicpin::cpuset::CpuSet;
use nicpin::machine::{Interface, Machine, Role, Selection};
use nicpin::plan::Plan;
use nicpin::policy::Policy;
use nicpin::report::check::Check;
use nicpin::report::interface::{InterfaceReport, InterfaceState};
use nicpin::root::Root;

/// A name that no row knows.
const UNKNOWN: &str = "zzq";

/// What nicpin says of a machine.
struct Said {
    machine: Machine,
    plan: Plan,
    check: Check,
}

impl Said {
    fn of(tree: &Path) -> Self {
        let root = Root::open(tree).unwrap();
        let machine = nicpin::read::machine(&root, nicpin::read::ReadOptions::default()).unwrap();
        let selection = Selection::new(&machine, &[], false).unwrap();
        let plan = nicpin::plan::plan(&machine, &Policy::default(), &selection);
        let check = nicpin::check(&root, &machine, &plan);
        Self {
            machine,
            plan,
            check,
        }
    }

    fn report(&self, name: &str) -> &InterfaceReport {
        let mut reports = self.check.interfaces.iter();
        reports.find(|one| one.name == name).unwrap()
    }

    fn state(&self, name: &str) -> InterfaceState {
        self.report(name).state
    }

    /// The CPUs of cores on which nothing of the network lands.
    fn idle(&self) -> CpuSet {
        self.plan.host.online.difference(&self.plan.network_cpus)
    }

    /// Cores on which these IRQs are as planned, or stay, and those of IRQs of these interfaces that are not understood.
    fn cores_of(&self, irqs: &BTreeSet<u32>, names: &[&str]) -> CpuSet {
        let vectors = self.plan.interfaces.iter().flat_map(|one| &one.vectors);
        let vectors = vectors.filter(|of| irqs.contains(&of.irq) && of.role != Role::Control);
        let known = vectors.filter_map(|of| of.cpus.as_ref().or(of.effective.as_ref()));
        let own = self.machine.interfaces.iter();
        let own = own.filter(|one| names.contains(&&*one.name));
        let cpus = CpuSet::union_of(known.chain(own.map(|one| &one.unknown_vector_cpus)));
        let cores = self.machine.topology.cores.iter();
        CpuSet::union_of(cores.filter(|core| core.intersects(&cpus)))
    }

    /// The number of each IRQ's queue.
    fn queues(&self) -> BTreeMap<u32, u32> {
        let vectors = self.plan.interfaces.iter().flat_map(|one| &one.vectors);
        let queues = vectors.filter(|of| of.role.is_queue());
        queues.filter_map(|of| Some((of.irq, of.queue?))).collect()
    }
}

/// How bad a state is, in the order of the states; those that do not differ are alike.
fn badness(state: InterfaceState) -> u8 {
    match state {
        InterfaceState::Unknown => 6,
        InterfaceState::Isolated => 5,
        InterfaceState::Remote => 4,
        InterfaceState::Drifted => 3,
        InterfaceState::Crowded => 2,
        InterfaceState::Untuned => 1,
        _ => 0,
    }
}

/// Whether an interface that was crowded is untuned only because other numbers of queues are counted. Crowded is what has
/// twice as many queues on a core as planned, and IRQs whose queues are not known count otherwise: if no queue of the card
/// is known, one by one, that for control with them, so that the busiest core takes more under the plan, too; if some
/// are, not at all, because any may be for control. That the settings differ is said by both states, with the same exit
/// code and no alarm.
fn counts_others(before: &InterfaceReport, after: &InterfaceReport) -> bool {
    let states = (before.state, after.state);
    states == (InterfaceState::Crowded, InterfaceState::Untuned)
        && (after.max_per_core_planned > before.max_per_core_planned
            || after.max_per_core < before.max_per_core)
}

/// What is better after something of a card was taken away.
fn better(before: &Said, after: &Said, irqs: &BTreeSet<u32>, names: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    let is_named = |said: &Said, name: &String| said.check.not_judged.contains(name);
    for one in &before.plan.interfaces {
        let [then, now] = [before, after].map(|said| said.state(&one.name));
        let counts_others = counts_others(before.report(&one.name), after.report(&one.name));
        if badness(now) < badness(then) && !is_named(after, &one.name) && !counts_others {
            found.push(format!("{} was {then:?} and is {now:?}", one.name));
        }
        if is_named(before, &one.name) && !is_named(after, &one.name) && badness(now) == 0 {
            found.push(format!("{} is judged now", one.name));
        }
    }
    let [then, now] = [before, after].map(|said| said.idle().len());
    // An IRQ that stays beside others that are placed takes no core that is planned for it.
    let has_unknown = |one: &&Interface| !one.unknown_vectors.is_empty();
    if now > then && after.machine.interfaces.iter().find(has_unknown).is_none() {
        found.push(format!("{then} CPUs were idle, {now} are"));
    }
    let taken = after.cores_of(irqs, names);
    let idle = after.idle().intersection(&taken);
    if !idle.is_empty() {
        found.push(format!("CPUs {idle} are idle and take its IRQs"));
    }
    for one in &after.plan.interfaces {
        let workers = one.worker_cpus.intersection(&taken);
        if !workers.is_empty() {
            found.push(format!("{}: CPUs {workers} are for programs", one.name));
        }
        let own = one.vectors.iter().map(|of| of.irq).collect();
        let own = after.cores_of(&own, &[&one.name]);
        for queue in &one.rx_queues {
            let cpus = queue.rps_cpus.clone().unwrap_or_default();
            // Where no core is idle, those that carry least are given, but none of its own.
            let is_idle = queue.why.to_string().contains("idle");
            let cpus = cpus.intersection(if is_idle { &taken } else { &own });
            if !cpus.is_empty() {
                found.push(format!("{} rx-{}: RPS to {cpus}", one.name, queue.queue));
            }
        }
    }
    let known = before.queues();
    for (irq, queue) in after.queues() {
        if known.get(&irq) != Some(&queue) {
            found.push(format!("IRQ {irq} is of queue {queue}"));
        }
    }
    found
}

/// Gives these IRQs a name that no row knows. Returns the files that have them.
fn rename(tree: &Path, irqs: &BTreeSet<u32>) -> Vec<String> {
    let renamed = |line: &str| {
        let irq = line.split(':').next().unwrap().trim().parse();
        if !irq.is_ok_and(|irq| irqs.contains(&irq)) {
            return line.to_owned();
        }
        let (begin, _) = line.trim_end().rsplit_once("  ").unwrap();
        format!("{begin}  {UNKNOWN}")
    };
    let text = read(tree, "proc/interrupts");
    let lines: Vec<String> = text.lines().map(renamed).collect();
    std::fs::write(tree.join("proc/interrupts"), lines.join("\n") + "\n").unwrap();
    let actions = irqs
        .iter()
        .map(|irq| format!("sys/kernel/irq/{irq}/actions"));
    let mut files: Vec<String> = actions.filter(|file| tree.join(file).exists()).collect();
    for file in &files {
        std::fs::write(tree.join(file), format!("{UNKNOWN}\n")).unwrap();
    }
    files.push("proc/interrupts".to_owned());
    files
}

/// Takes away the names of each card of a machine in turn, then its netlink answers; what got better.
fn tried(name: &str, tree: &Path) -> (usize, Vec<String>) {
    let copy = temporary();
    copy_tree(tree, copy.path());
    let before = Said::of(tree);
    let (mut cases, mut found) = (0, Vec::new());
    let devices = before.machine.interfaces.iter().map(|one| &one.device);
    let devices: BTreeMap<&str, _> = devices.map(|of| (&*of.address, of)).collect();
    let mut drivers = BTreeSet::new();
    for (address, device) in devices {
        let interfaces = before.machine.interfaces.iter();
        let interfaces = interfaces.filter(|one| one.device.address == address);
        // In the fast tier one card of each driver.
        let driver = interfaces.clone().find_map(|one| one.driver.clone());
        if !drivers.insert(driver) && !is_full() {
            continue;
        }
        let vectors = interfaces.clone().flat_map(|one| &one.vectors);
        let mut irqs: BTreeSet<u32> = vectors.map(|of| of.irq).collect();
        irqs.extend(&device.irqs);
        let names: Vec<&str> = interfaces.clone().map(|one| &*one.name).collect();
        let mut compare = |what: &str, change: &dyn Fn(&Path) -> Vec<String>| {
            let files = change(copy.path());
            let better = better(&before, &Said::of(copy.path()), &irqs, &names);
            for file in files {
                std::fs::copy(tree.join(&file), copy.path().join(&file)).unwrap();
            }
            found.extend(
                better
                    .iter()
                    .map(|it| format!("{name} {address} {what}: {it}")),
            );
            cases += 1;
        };
        if !irqs.is_empty() {
            compare("without names", &|tree| rename(tree, &irqs));
            let half = irqs.iter().copied().step_by(2).collect();
            compare("without half of the names", &|tree| rename(tree, &half));
        }
        let answers = interfaces.map(|one| format!("nicpin/netlink/{}", one.name));
        let answers: Vec<String> = answers.filter(|file| tree.join(file).exists()).collect();
        if !answers.is_empty() {
            compare("without netlink", &|tree| {
                for file in &answers {
                    std::fs::remove_file(tree.join(file)).unwrap();
                }
                answers.clone()
            });
        }
    }
    (cases, found)
}

#[test]
fn what_is_not_understood_looks_no_better() {
    let server = temporary();
    unpack(&fixture("server.tar.gz"), server.path());
    let mut trees: Vec<PathBuf> = FIXTURES.iter().map(|name| fixture(name)).collect();
    trees.push(server.path().to_owned());
    for dir in std::env::var("NICPIN_TREES")
        .iter()
        .flat_map(|dirs| dirs.split(':'))
    {
        let listed = std::fs::read_dir(dir)
            .unwrap()
            .map(|entry| entry.unwrap().path());
        trees.extend(listed.filter(|tree| tree.join("proc/interrupts").exists()));
    }
    let (mut cases, mut found) = (0, Vec::new());
    for tree in &trees {
        let (tried, better) = tried(tree.file_name().unwrap().to_str().unwrap(), tree);
        cases += tried;
        found.extend(better);
    }
    assert!(
        cases > trees.len(),
        "{cases} cases of {} trees",
        trees.len()
    );
    assert!(found.is_empty(), "{found:#?}");
}

/// The one pair of states of which the first is worse and may become the other: four queues on two cores are twice as many
/// as planned, and five IRQs of which nothing is known take two of a core under the plan, too.
#[test]
fn a_card_of_which_nothing_is_known_counts_more_queues() {
    let names = [
        "eth0-TxRx-0",
        "eth0-TxRx-1",
        "eth0-TxRx-2",
        "eth0-TxRx-3",
        "eth0",
    ];
    let one = card("igb", Port::new("eth0", 10_000, 4, 4), 31, &names);
    let tree = MachineTree::build(&two_nodes([one]));
    for (irq, cpu) in (31..).zip([0, 0, 1, 1, 2]) {
        let mask = format!("{:x}", 1 << cpu);
        tree.put(&format!("proc/irq/{irq}/smp_affinity"), &mask);
        let file = format!("proc/irq/{irq}/effective_affinity_list");
        tree.put(&file, &cpu.to_string());
    }
    let before = Said::of(tree.dir());
    rename(tree.dir(), &(31..36).collect());
    let after = Said::of(tree.dir());
    let [before, after] = [&before, &after].map(|said| said.report("eth0"));
    let counts = |one: &InterfaceReport| (one.max_per_core, one.max_per_core_planned);
    assert_eq!((counts(before), counts(after)), ((2, 1), (2, 2)));
    assert!(counts_others(before, after), "{:?}", after.state);
}

/// A card that sends by IRQs that are not understood is not as planned, although all that receive are known.
#[test]
fn a_card_of_which_half_is_known_is_named() {
    let names = ["eth0-rx-0", "eth0-rx-1", "qqz-0", "qqz-1"];
    let half = card("igb", Port::new("eth0", 10_000, 2, 2), 31, &names);
    let tree = MachineTree::build(&two_nodes([half]));
    assert_eq!(tree.nicpin(&["apply"]).code, 0);
    settle(tree.dir());
    assert_eq!(document(&tree, &["check"])["not_judged"], json!(["eth0"]));
    let check = tree.nicpin(&["check"]).stdout;
    assert_data_eq!(
        check.lines().next().unwrap(),
        str!["No interface is as planned; 1 cannot be judged: eth0."]
    );
}

/// By whatever driver, and on whatever bus: the cores that serve a card are not for programs.
#[test]
fn cores_that_serve_a_card_are_not_idle() {
    let names = ["eth0-TxRx-0", "eth0-TxRx-1"];
    let known = card("ixgbe", Port::new("eth0", 10_000, 2, 2), 31, &names);
    let tree = MachineTree::build(&two_nodes([known]));
    let idle = |tree: &MachineTree| {
        let host = tree.host();
        let plan = tree.plan(&[]);
        let cores = host.topology.online.difference(&plan.network_cpus);
        cores.to_string()
    };
    let on = |irq: u32, cpu: u32| {
        let file = format!("proc/irq/{irq}/effective_affinity_list");
        tree.put(&file, &cpu.to_string());
    };
    assert_eq!(idle(&tree), "0,3-7");
    // A program's.
    let device = "devices/pci0000:00/0000:00:03.0/0000:90:00.0";
    tree.list_function("pci0000:00/0000:00:03.0", "0000:90:00.0", "0x020000");
    tree.put(&format!("sys/{device}/msi_irqs/50"), "msix");
    let driver = format!("sys/{device}/driver");
    tree.link(&driver, "../../../../bus/pci/drivers/vfio-pci");
    tree.interrupts(50, "PCI-MSI 0-edge", &["vfio-msix[0](0000:90:00.0)"]);
    on(50, 4);
    assert_eq!(idle(&tree), "0,3,5-7");
    // That of the controller of a card on USB.
    let device = "sys/devices/usb1/1-1:1.0";
    tree.add(device, "usb", "r8152", "eth1", 1);
    tree.interrupts(51, "PCI-MSI 0-edge", &["xhci_hcd"]);
    on(51, 6);
    let plan = tree.plan(&[]);
    assert!(plan.network_cpus.contains(6), "{}", plan.network_cpus);
    let rps = &of(&plan, "eth1").rx_queues[0].rps_cpus;
    assert!(
        !rps.as_ref().is_some_and(|cpus| cpus.contains(6)),
        "{rps:?}"
    );
    // The channels of Hyper-V, and not while a virtual function below takes the packets.
    let tree = MachineTree::build(&two_nodes([]));
    let device = "sys/devices/VMBUS:00/f8b3781a-1e82-4818-a1c3-63d806ec15bb";
    tree.add(device, "vmbus", "hv_netvsc", "eth0", 2);
    for (channel, cpu) in [(14, "0"), (20, "5")] {
        tree.put(&format!("{device}/channels/{channel}/cpu"), cpu);
    }
    assert_eq!(idle(&tree), "1-4,6-7");
    // One of a card whose IRQs nobody knows may be any that no device has.
    let tree = MachineTree::build(&two_nodes([]));
    tree.add(
        "sys/devices/platform/1510.ethernet",
        "platform",
        "newsoc",
        "eth0",
        2,
    );
    tree.interrupts(60, "GICv3 65 Level", &[UNKNOWN]);
    tree.put("proc/irq/60/effective_affinity_list", "6");
    assert_eq!(idle(&tree), "0-5,7");
}

/// A receive queue may have no IRQ at all that is known, while others have: by a driver's names, or of a shared vector.
#[test]
fn a_receive_queue_without_a_known_irq_is_not_as_planned() {
    let applied = |driver: &str, rx: usize, names: &[&str]| {
        let port = Port::new("eth0", 10_000, rx, 2);
        let tree = MachineTree::build(&two_nodes([card(driver, port, 31, names)]));
        assert_eq!(tree.nicpin(&["apply"]).code, 0);
        settle(tree.dir());
        let check = tree.nicpin(&["check", "--json"]);
        assert_eq!(check.code, 0, "{check:?}");
        let not_judged = check.json()["not_judged"].take();
        serde_json::from_value::<Vec<String>>(not_judged).unwrap()
    };
    let two = ["eth0-TxRx-0", "eth0-TxRx-1"];
    assert_eq!(applied("ixgbevf", 4, &two), ["eth0"]);
    let senders = ["eth0-tx-0", "eth0-tx-1"];
    assert_eq!(applied("igb", 1, &senders), ["eth0"]);
    // One that has all, one that deals them out by turns, and names that tell the first queue of each.
    let planned = [""; 0];
    assert_eq!(applied("ixgbe", 4, &two), planned);
    assert_eq!(applied("ixgbe", 2, &two), planned);
    assert_eq!(applied("igb", 2, &["eth0"]), planned);
    assert_eq!(
        applied("ice", 4, &["ice-eth0-TxRx-0", "ice-eth0-TxRx-2"]),
        planned
    );
}

#[test]
fn queues_are_counted_by_the_kernel_where_irqs_are_not_understood() {
    let names = ["nn-a@x", "nn-b@x", "nn-c@x", "nn-d@x", "nn-e@x"];
    let tree = MachineTree::build(&two_nodes([card(
        "newnic",
        Port::new("eth0", 10_000, 4, 4),
        31,
        &names,
    )]));
    let plan = tree.nicpin(&["plan"]).stdout;
    assert!(
        plan.contains("queue ?") && !plan.contains("5 queues"),
        "{plan}"
    );
}

/// Where the kernel shows no effective CPU, a few interrupts that came elsewhere after boot are no evidence.
#[test]
fn few_interrupts_elsewhere_say_nothing() {
    let names = ["eth0-TxRx-0"];
    let one = card("ixgbe", Port::new("eth0", 10_000, 1, 1), 31, &names);
    let tree = MachineTree::build(&two_nodes([one]));
    std::fs::remove_file(tree.dir().join("proc/irq/31/effective_affinity_list")).unwrap();
    tree.put("proc/irq/31/smp_affinity", "ff");
    let counts = |counts: [u32; 8]| {
        let counts = counts.map(|count| format!("{count:>8}")).join(" ");
        let header = "    CPU0    CPU1    CPU2    CPU3    CPU4    CPU5    CPU6    CPU7";
        let text = format!("  {header}\n  31: {counts}  PCI-MSI 0-edge  eth0-TxRx-0\n");
        tree.put("proc/interrupts", &text);
        let status = tree.nicpin(&["status", "-j", "--seconds", "0"]).stdout;
        let status: serde_json::Value = serde_json::from_str(&status).unwrap();
        status["interfaces"][0]["local"].as_f64()
    };
    assert_eq!(counts([0, 5000, 0, 0, 100, 0, 0, 0]), Some(1.0));
    assert_eq!(counts([0, 100, 0, 0, 5000, 0, 0, 0]), Some(0.0));
}

/// What is not understood is in the verdict, and its cores are not idle.
#[test]
fn interfaces_that_cannot_be_judged_are_named_in_each_verdict() {
    let names = ["eth0-TxRx-0", "eth0-TxRx-1", "eth0-TxRx-2", "eth0-TxRx-3"];
    let known = card("ixgbe", Port::new("eth0", 10_000, 4, 4), 31, &names);
    let mut half = card(
        "ixgbe",
        Port::new("eth2", 10_000, 2, 2),
        41,
        &["eth2-TxRx-0", "something"],
    );
    half.address = "0000:83:00.0".to_owned();
    let tree = MachineTree::build(&two_nodes([known, half]));
    tree.add(
        "sys/devices/platform/soc/1510.ethernet",
        "platform",
        "newsoc",
        "eth1",
        4,
    );
    tree.put("proc/irq/42/effective_affinity_list", "2");
    let first = |args: &[&str]| {
        let screen = tree.nicpin(args).stdout;
        let line = screen.lines().next().unwrap();
        format!("$ nicpin {}\n{line}\n", args.join(" "))
    };
    let mut said = first(&["restore"]) + &first(&["apply"]);
    for args in [&["restore", "--dry-run"][..], &["restore"], &["apply"]] {
        let told = document(&tree, args);
        assert_eq!(told["not_judged"], json!(["eth1", "eth2"]), "{args:?}");
    }
    for args in [&["restore", "--dry-run"][..], &["restore"], &["apply"]] {
        said += &first(args);
    }
    // The kernel has moved what apply has set.
    settle(tree.dir());
    for command in ["check", "status"] {
        let told = document(&tree, &[command]);
        assert_eq!(told["not_judged"], json!(["eth1", "eth2"]), "{command}");
    }
    let nagios = ["check", "--format", "nagios"];
    assert_eq!(tree.nicpin(&nagios).code, 0);
    said += &[&["check"][..], &["status"], &nagios].map(first).concat();
    for (option, code) in [("--warning-not-judged", 1), ("--critical-not-judged", 2)] {
        let run = tree.nicpin(&["check", "--format", "nagios", option, "1"]);
        assert_eq!(run.code, code, "{}", run.stdout);
    }
    let metrics = tree.nicpin(&["check", "--format", "prometheus"]).stdout;
    assert!(
        metrics.contains("nicpin_not_judged_interfaces 2\n"),
        "{metrics}"
    );
    // Of many machines, from each kind of document, and from the tree.
    let dir = crate::support::temporary();
    for (name, command) in [("a1", "plan"), ("a2", "check")] {
        let json = tree.nicpin(&[command, "--json"]).stdout;
        std::fs::write(dir.path().join(format!("{name}.json")), json).unwrap();
    }
    let (files, top) = (dir.path().display().to_string(), tree.dir().display());
    let fleet = nicpin(&["fleet", "--json", &files, &top.to_string()]).json();
    assert_eq!(fleet["not_judged"][0]["count"], 3, "{fleet}");
    let fleet = nicpin(&["fleet", &files]).stdout;
    expect("not-judged.txt", said + "$ nicpin fleet\n" + &fleet);
    let fleet = nicpin(&["fleet", "--json", &files]).json();
    assert_eq!(
        fleet["not_judged"],
        json!([{"interfaces": ["eth1", "eth2"], "count": 2, "hosts": ["a1", "a2"]}])
    );
    // The queue whose IRQ is not known sends nowhere, and the CPU of that IRQ takes no other queue while there are idle ones.
    let plan = tree.plan(&["eth2"]);
    let eth2 = of(&plan, "eth2");
    assert!(eth2.tx_queues.iter().all(|queue| queue.xps_cpus.is_none()));
    let alone = MachineTree::build(&two_nodes([card(
        "ixgbe",
        Port::new("eth2", 10_000, 4, 4),
        41,
        &["eth2-TxRx-0", "something", "eth2-TxRx-1", "eth2-TxRx-2"],
    )]));
    alone.put("proc/irq/42/effective_affinity_list", "2");
    assert_eq!(planned(of(&alone.plan(&[]), "eth2")), ["1", "3", "0"]);
}
