//! Threads that poll queues. A tree holds their recorded affinity; `tests/vm` tests that a running kernel's threads
//! move, and that packets are processed where they were moved to.

use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::{Value, json};
use snapbox::{assert_data_eq, str};

use crate::support::host::{add, machine, mask, of, plan, plan_with, set};
use crate::support::run::{MachineTree, assert_line, document, expect, note, text};
use nicpin::cpuset::CpuSet;
use nicpin::machine::sample::{Delta, ThreadGrowth};
use nicpin::machine::{Machine, NapiThread, Source};
use nicpin::plan::PlannedThread;
use nicpin::report::check::Check;
use nicpin::report::difference::Differences;
use nicpin::report::status::Status;
use nicpin::report::vectors::VectorState;

const ALL_128: &str = "ffffffff,ffffffff,ffffffff,ffffffff";

/// `dl980` with threads of an interface, by process id and NAPI instance, that may run anywhere.
fn threaded(interface: &str, threads: &[(u32, u32)]) -> MachineTree {
    let machine = MachineTree::of("dl980");
    add_threads(&machine, interface, threads, ALL_128);
    machine
}

fn add_threads(machine: &MachineTree, interface: &str, threads: &[(u32, u32)], affinity: &str) {
    std::fs::write(
        machine.path(&format!("/sys/class/net/{interface}/threaded")),
        "1\n",
    )
    .unwrap();
    let added = threads
        .iter()
        .map(|(pid, napi)| json!({ "pid": pid, "napi": napi, "affinity": affinity }));
    let path = format!("/nicpin/threads/{interface}");
    let mut all = if machine.path(&path).exists() {
        recorded(machine, interface)
    } else {
        Vec::new()
    };
    all.extend(added);
    machine.put(&path, &json!(all).to_string());
}

fn recorded(machine: &MachineTree, interface: &str) -> Vec<Value> {
    serde_json::from_str(&machine.read(&format!("/nicpin/threads/{interface}"))).unwrap()
}

fn thread_mask(machine: &MachineTree, pid: u32) -> String {
    let threads = recorded(machine, "eth2");
    let thread = threads.iter().find(|thread| thread["pid"] == pid).unwrap();
    thread["affinity"].as_str().unwrap().to_owned()
}

/// `dl980` with a thread for each of eth2's eight queues, in another order than their process ids.
fn eth2() -> MachineTree {
    threaded(
        "eth2",
        &[
            (907, 8200),
            (906, 8201),
            (905, 8202),
            (904, 8203),
            (903, 8204),
            (902, 8205),
            (901, 8206),
            (900, 8207),
        ],
    )
}

fn affinity(machine: &MachineTree, pid: u32) -> CpuSet {
    CpuSet::parse_kernel_mask(&thread_mask(machine, pid)).unwrap()
}

#[test]
fn each_thread_is_set_beside_its_queue_and_restored() {
    let machine = eth2();
    expect("napi-threads.txt", machine.nicpin(&["plan", "eth2"]).stdout);
    assert_eq!(machine.nicpin(&["check", "eth2"]).code, 2);
    let apply = machine.nicpin(&["apply", "eth2"]);
    assert_eq!(apply.code, 0, "{}{}", apply.stdout, apply.stderr);
    // CPUs 16-23 take the queues' interrupts; 80-87 are their siblings.
    for queue in 0..8 {
        assert_eq!(
            affinity(&machine, 907 - queue),
            CpuSet::single(80 + queue),
            "queue {queue}"
        );
    }
    assert_eq!(machine.nicpin(&["check", "eth2"]).code, 0);
    let again = machine.nicpin(&["apply", "eth2", "--json"]);
    assert_eq!(again.json()["changed"], 0);
    let restore = machine.nicpin(&["restore"]);
    assert_eq!(restore.code, 0, "{}{}", restore.stdout, restore.stderr);
    for pid in 900..908 {
        assert_eq!(thread_mask(&machine, pid), ALL_128);
    }
}

#[test]
fn netlink_has_the_last_word_on_the_queue_of_a_thread() {
    let machine = eth2();
    // Instances against the order of queues; one is known by its queue only, one not at all.
    let napi = |at: u32| json!({ "id": 8200 + at, "irq": 128 - at, "pid": 907 - at });
    let mut napis: Vec<Value> = (1..8).map(napi).collect();
    napis.push(json!({ "id": 8200, "pid": 907 }));
    let queues = [json!({ "direction": "rx", "id": 7, "napi": 8200 })];
    let answer = json!({ "queues": queues, "napis": napis }).to_string();
    machine.put("/nicpin/netlink/eth2", &answer);
    assert_eq!(machine.nicpin(&["apply", "eth2"]).code, 0);
    for at in 0..8 {
        assert_eq!(affinity(&machine, 907 - at), CpuSet::single(87 - at));
    }
    let thread = planned_thread(&machine, 907);
    assert_eq!(
        ["queue", "cpus", "source"].map(|key| &thread[key]),
        [&json!(7), &json!("87"), &json!("netlink")]
    );
    assert_line(
        explained(&machine, 907),
        str![[r"
thread 7 process 907 CPU 87 free sibling of the CPU that its queue interrupts, by netlink

"]],
    );
}

/// The plan for a thread of eth2.
fn planned_thread(machine: &MachineTree, pid: u32) -> Value {
    let plan = document(machine, &["plan", "eth2"]);
    let mut threads = plan["interfaces"][0]["threads"].as_array().unwrap().iter();
    threads.find(|thread| thread["pid"] == pid).unwrap().clone()
}

/// What `plan --explain` says of it.
fn explained(machine: &MachineTree, pid: u32) -> String {
    let explained = document(machine, &["plan", "--explain", "eth2"]);
    let lines = explained["explanation"]["eth2"].as_array().unwrap();
    let named = format!("process {pid} ");
    let mut lines = lines.iter().filter_map(Value::as_str);
    let line = lines.find(|line| line.contains(&named));
    line.unwrap_or_else(|| panic!("{explained}")).to_owned()
}

/// Like the threads of virtio's transmit queues, which have no number.
#[test]
fn a_thread_of_an_unknown_queue_stays_with_the_others() {
    let machine = eth2();
    add_threads(&machine, "eth2", &[(910, 0), (911, 0)], ALL_128);
    assert_eq!(machine.nicpin(&["apply", "eth2"]).code, 0);
    assert_eq!(affinity(&machine, 900), set("87"));
    for pid in [910, 911] {
        assert_eq!(affinity(&machine, pid), set("80-87"));
    }
    // Not in netlink, nor as many as queues: the threads go where the interrupts arrive and no worker is.
    let machine = threaded("eth2", &[(901, 8200), (902, 8201)]);
    assert_eq!(machine.nicpin(&["apply", "eth2"]).code, 0);
    assert_eq!(
        (affinity(&machine, 901), affinity(&machine, 902)),
        (set("16-23"), set("16-23"))
    );
    assert_eq!(planned_thread(&machine, 901)["queue"], Value::Null);
    assert_line(
        explained(&machine, 901),
        str![[r"
thread process 901 CPUs 16-23 its queue could not be determined: the CPUs that the interface's queues interrupt, unknown queue

"]],
    );
}

#[test]
fn kept_threads_stay_and_are_reported() {
    let machine = eth2();
    let before = affinity(&machine, 900);
    let apply = machine.nicpin(&["apply", "--napi-threads", "keep", "eth2"]);
    assert_eq!(apply.code, 0, "{}", apply.stderr);
    assert_eq!(affinity(&machine, 900), before);
    let status = document(&machine, &["status", "--napi-threads", "keep", "eth2"]);
    let kept = note(&status["interfaces"][0], "threaded-napi");
    let pids: Vec<u32> = (900..908).collect();
    assert_eq!(kept["pids"], json!(pids));
    let words = [text(kept, "text"), text(kept, "fix")].join("\n");
    assert_data_eq!(
        words,
        str![[r"
threaded NAPI: packets are processed by kernel threads (pids 900, 901, 902, 903, 904, 905, 906, 907) that the plan does not pin
taskset -pc CPU 900
"]]
    );
}

/// Process ids differ from boot to boot, and from one `threaded` to the next.
#[test]
fn settings_are_found_again_under_other_process_ids() {
    let machine = eth2();
    let stored = machine.nicpin(&["plan", "eth2", "--format", "json"]).stdout;
    let hash = |machine: &MachineTree| {
        let plan = machine.nicpin(&["plan", "eth2", "-j"]).json();
        plan["hash"].clone()
    };
    let first = hash(&machine);
    std::fs::write(machine.path("/plan.json"), &stored).unwrap();
    assert_eq!(machine.nicpin(&["apply", "eth2"]).code, 0);
    machine.remove("/nicpin/threads/eth2");
    let threads: Vec<(u32, u32)> = (0..8).map(|at| (2000 + at, 9000 + at)).collect();
    add_threads(&machine, "eth2", &threads, ALL_128);
    assert_eq!(hash(&machine), first);
    let check = machine.nicpin(&["check", "--json", "eth2"]);
    let differs = check.json()["differs"].take();
    let mut paths = differs.as_array().unwrap().iter().map(|of| &of["path"]);
    assert_eq!(check.code, 2);
    assert!(paths.any(|path| path == "/proc/2000"), "{differs}");
    let file = machine.path("/plan.json");
    let applied = machine.nicpin(&["apply", "--plan", file.to_str().unwrap()]);
    assert_eq!(applied.code, 0, "{}{}", applied.stdout, applied.stderr);
    assert_eq!(affinity(&machine, 2003), set("83"));
    let restored = machine.nicpin(&["restore"]);
    assert_eq!(restored.code, 0, "{}", restored.stdout);
    assert_eq!(affinity(&machine, 2003), set("0-127"));
}

#[test]
fn a_change_by_another_hand_is_named() {
    let machine = eth2();
    assert_eq!(machine.nicpin(&["apply", "eth2"]).code, 0);
    let path = "/nicpin/threads/eth2";
    let mut threads = recorded(&machine, "eth2");
    threads
        .iter_mut()
        .find(|thread| thread["pid"] == 904)
        .unwrap()["affinity"] = json!("f");
    machine.write(path, &json!(threads).to_string());
    let check = machine.nicpin(&["check", "--json", "eth2"]);
    let differs = check.json()["differs"].take();
    assert_eq!(
        (
            check.code,
            ["kind", "path", "reason"].map(|key| &differs[0][key])
        ),
        (
            2,
            [
                &json!("napi_thread"),
                &json!("/proc/904"),
                &json!("moved-by-other")
            ]
        )
    );
    let status = document(&machine, &["status", "eth2"])["interfaces"][0].take();
    assert_eq!(status["state"], "drifted");
    let mut threads = status["threads"].as_array().unwrap().iter();
    let thread = threads.find(|thread| thread["pid"] == 904).unwrap();
    assert_eq!(
        ["planned", "affinity", "state"].map(|key| &thread[key]),
        ["83", "0-3", "differs"]
    );
    let check = machine.nicpin(&["check", "-v", "eth2"]);
    expect("napi-threads.check.txt", check.stdout);
}

#[test]
fn a_script_has_the_command_for_threads() {
    let machine = eth2();
    let script = machine.nicpin(&["plan", "--format", "sh", "eth2"]).stdout;
    assert!(
        script.contains("\ntaskset -p 00000000,00010000,00000000,00000000 907  # eth2: "),
        "{script}"
    );
    assert!(!script.contains("nicpin/threads"), "{script}");
}

#[test]
fn without_threads_nothing_is_said() {
    let machine = MachineTree::of("dl980");
    for command in [&["plan", "-j"], &["status", "-j"]] {
        let text = machine.nicpin(command).stdout;
        assert!(!text.contains("\"threads\""), "{text}");
    }
    std::fs::write(machine.path("/sys/class/net/eth2/threaded"), "1\n").unwrap();
    let plan = document(&machine, &["plan", "eth2"]);
    let of_threads = note(&plan["interfaces"][0], "threaded-napi");
    assert_data_eq!(
        text(of_threads, "text"),
        str!["threaded NAPI: packets are processed by kernel threads that the plan does not pin"]
    );
}

#[test]
fn a_capture_has_the_threads() {
    let machine = eth2();
    let file = machine.path("/capture.tar.gz");
    let captured = machine.nicpin(&["capture", "-o", file.to_str().unwrap()]);
    assert_eq!(captured.code, 0, "{}", captured.stderr);
    let plan =
        crate::support::run::nicpin(&["plan", "eth2", "-j", "--root", file.to_str().unwrap()])
            .stdout;
    assert_eq!(plan, machine.nicpin(&["plan", "eth2", "-j"]).stdout);
    assert!(plan.contains("\"napi_thread\""), "{plan}");
}

/// Threads of all queues of all interfaces, numbered in the order of the queues.
fn with_threads(host: &mut Machine, source: Source) {
    let everywhere = mask(host, &host.topology.online);
    let mut pid = 500;
    for interface in &mut host.interfaces {
        interface.polling.threaded = true;
        for vector in &interface.vectors {
            pid += 1;
            interface.threads.push(NapiThread {
                pid,
                napi: Some(pid + 8000),
                woken_by: Some((vector.irq, source)),
                busy_polls: false,
                affinity: everywhere.clone(),
            });
        }
    }
}

fn threads_of(host: &Machine, options: &[(&str, &str)]) -> Vec<PlannedThread> {
    let plan = plan_with(host, options, &[]);
    plan.interfaces
        .iter()
        .flat_map(|interface| interface.threads.clone())
        .collect()
}

#[test]
fn a_thread_that_stays_has_the_reason_of_its_interface() {
    let mut host = machine(1, 4, 2, 2);
    add(&mut host, "eth0", Some(0), 2);
    with_threads(&mut host, Source::Netlink);
    let why =
        |host: &Machine, options: &[(&str, &str)]| threads_of(host, options)[0].why.to_string();
    assert_data_eq!(
        why(&host, &[("scope", "remote")]),
        str!["skipped: the policy cannot be met"]
    );
    assert_data_eq!(
        why(&host, &[("napi-threads", "keep")]),
        str!["kept by the policy"]
    );
    host.interfaces[0].vectors.clear();
    assert_data_eq!(why(&host, &[]), str!["no queue IRQ is placed"]);
}

#[test]
fn a_thread_that_polls_all_the_time_has_the_cpu_of_its_queue() {
    let mut host = machine(1, 4, 2, 2);
    add(&mut host, "eth0", Some(0), 2);
    with_threads(&mut host, Source::Netlink);
    let cpus = |host: &Machine| {
        let plan = of(&plan(host), "eth0").clone();
        let vectors: Vec<_> = plan.vectors.iter().map(|one| one.cpus.clone()).collect();
        let threads: Vec<_> = plan.threads.iter().map(|one| one.cpus.clone()).collect();
        (vectors, threads)
    };
    let (vectors, beside) = cpus(&host);
    assert!(
        vectors
            .iter()
            .zip(&beside)
            .all(|(vector, thread)| vector != thread)
    );
    for thread in &mut host.interfaces[0].threads {
        thread.busy_polls = true;
    }
    let (vectors, threads) = cpus(&host);
    assert_eq!(vectors, threads);
    // A thread that stays is beside the queues, and leaves its core no worker.
    let stays = mask(&host, &set("1"));
    host.interfaces[0].threads[0].affinity = stays;
    let plan = plan_with(&host, &[("napi-threads", "keep")], &[]);
    let eth0 = of(&plan, "eth0");
    assert_eq!(crate::support::host::cpus(eth0), ["2", "3"]);
    assert_eq!(eth0.worker_cpus, set("0,4"));
    let stays = mask(&host, &set("1"));
    host.interfaces[0].threads[1].affinity = stays;
    let plan = plan_with(&host, &[("napi-threads", "keep")], &[]);
    assert_eq!(plan.score.max_vectors_per_core, 2);
}

#[test]
fn what_runs_is_proven_by_a_sample() {
    let mut host = machine(1, 4, 2, 4);
    add(&mut host, "eth0", Some(0), 1);
    with_threads(&mut host, Source::Netlink);
    let to = of(&plan(&host), "eth0").threads[0].cpus.clone().unwrap();
    host.interfaces[0].threads[0].affinity = mask(&host, &to);
    let plan = plan(&host);
    let state = |delta: Option<Delta>| {
        let (found, delta) = (Differences::default(), delta.as_ref());
        let check = Check::new(&host, &plan, found, Vec::new(), delta);
        let status = Status::new(&host, &plan, check, delta, &BTreeSet::new());
        let thread = status.interfaces[0].threads[0].clone();
        (thread.state, thread.is_proven())
    };
    let ran = |runs, on: &CpuSet| {
        let mut delta = Delta {
            elapsed: std::time::Duration::from_secs(1),
            ..Delta::default()
        };
        delta.threads.insert(
            501,
            ThreadGrowth {
                runs,
                on: on.clone(),
            },
        );
        Some(delta)
    };
    assert_eq!(state(None), (VectorState::AsPlanned, false));
    assert_eq!(
        state(ran(0, &CpuSet::new())),
        (VectorState::AsPlanned, false)
    );
    assert_eq!(state(ran(7, &to)), (VectorState::AsPlanned, true));
    assert_eq!(state(ran(7, &set("0"))), (VectorState::Elsewhere, false));
}

#[test]
fn the_policy_decides_on_isolated_and_named_cpus() {
    let mut host = machine(1, 4, 2, 4);
    add(&mut host, "eth0", Some(0), 1);
    with_threads(&mut host, Source::Netlink);
    // Core 1 is CPUs 1 and 5.
    let to = |host: &Machine, options: &[(&str, &str)]| {
        threads_of(host, options)[0]
            .cpus
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default()
    };
    assert_eq!(to(&host, &[]), "5");
    assert_eq!(to(&host, &[("exclude", "5")]), "1");
    assert_eq!(to(&host, &[("scope", "1")]), "1");
    assert_eq!(to(&host, &[("scope", "1,5")]), "5");
    assert_eq!(to(&host, &[("napi-threads", "keep")]), "");
    host.topology.isolated = set("5");

    assert_ne!(to(&host, &[]), "5");
    assert_eq!(to(&host, &[("scope", "1,5")]), "5");
    // A vector that cannot be moved interrupts an isolated CPU.
    host.topology.isolated = set("0,4");
    host.interfaces[0].vectors[0].movable = false;
    assert_eq!(to(&host, &[]), "1-3,5-7");
    // So does another interface's vector; a thread of an unknown queue there leaves the other vector's CPU alone.
    add(&mut host, "eth1", Some(0), 2);
    let eth1 = &mut host.interfaces[1];
    eth1.vectors[0].movable = false;
    eth1.polling.threaded = true;
    let thread = host.interfaces[0].threads[0].clone();
    host.interfaces[1].threads = vec![NapiThread {
        pid: 700,
        woken_by: None,
        ..thread
    }];
    let threads = threads_of(&host, &[]);
    let cpus = threads[1].cpus.clone().unwrap();
    assert!(cpus.len() == 1 && !cpus.intersects(&set("0,4")), "{cpus}");
}

proptest! {
    #[test]
    fn threads_are_beside_their_queues(
        nodes in 1_u32..3, cores in 1_u32..6, smt in 1_u32..4, queues in prop::collection::vec((0_u32..2, 1_u32..9), 1..4),
        isolated in prop::collection::btree_set(0_u32..24, 0..6),
    ) {
        let mut host = machine(nodes, cores, smt, 2);
        for (at, (node, queues)) in queues.iter().enumerate() {
            add(&mut host, &format!("eth{at}"), Some(node % nodes), *queues);
        }
        with_threads(&mut host, Source::Order);
        let isolated: CpuSet = isolated.into_iter().collect();
        host.topology.isolated = isolated.intersection(&host.topology.online);
        prop_assume!(host.topology.nodes.values().all(|node| !node.cpus.is_subset(&host.topology.isolated)));
        let plan = plan(&host);
        prop_assert_eq!(&plan, &crate::support::host::plan(&host));
        let busy = plan.interfaces.iter().fold(CpuSet::new(), |all, interface| all.union(&interface.irq_cpus));
        let mut alone = CpuSet::new();
        let mut beside_itself = Vec::new();
        for interface in &plan.interfaces {
            prop_assert_eq!(interface.threads.len(), interface.vectors.len());
            for thread in &interface.threads {
                let to = thread.cpus.as_ref().unwrap();
                let vector = interface.vectors.iter().find(|vector| Some(vector.irq) == thread.irq).unwrap();
                let interrupted = vector.cpus.as_ref().unwrap();
                prop_assert_eq!(to.len(), 1);
                prop_assert!(to.is_subset(&host.topology.online) && !to.intersects(&host.topology.isolated));
                let core = host.topology.cores.iter().find(|core| interrupted.is_subset(core)).unwrap();
                prop_assert!(to.is_subset(core), "{} beside {}", to, interrupted);
                if to == interrupted {
                    beside_itself.push(core.clone());
                } else {
                    prop_assert!(!to.intersects(&busy) && !to.intersects(&alone), "{} is taken", to);
                    alone.add(to);
                }
            }
        }
        // No sibling is left free beside a thread that shares a CPU with its interrupts.
        for core in beside_itself {
            prop_assert!(core.difference(&busy).difference(&alone).is_subset(&host.topology.isolated));
        }
    }
}
