//! The states of interfaces that `nicpin status` reports: what watched interrupts prove, and what differs from the
//! plan.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use itertools::Itertools as _;
use snapbox::{assert_data_eq, str};

use crate::screen::page::Screen;
use crate::screen::status::StatusDetail;
use crate::support::host::{add, combined, machine, mask, plan, plan_with, rps_of, set};
use crate::support::machine::{Port, card, two_nodes};
use crate::support::run::{MachineTree, document, expect};
use crate::support::temporary;
use nicpin::cpuset::CpuSet;
use nicpin::machine::netdev::{Direction, Napi, Netdev, NetdevQueue, QueueUser};
use nicpin::machine::sample::Delta;
use nicpin::machine::{Interface, Machine, Polling};
use nicpin::plan::Measure;
use nicpin::report::check::Check;
use nicpin::report::interface::InterfaceState;
use nicpin::report::status::Status;
use nicpin::report::vectors::{VectorState, VectorStatus};
use nicpin::root::Root;

fn why(row: &VectorStatus) -> &str {
    row.why.as_deref().unwrap()
}

/// An interface on node 1 of two, each vector as planned.
fn in_planned_state() -> Machine {
    let mut host = machine(2, 4, 1, 4);
    add(&mut host, "eth2", Some(1), 4);
    settle(&mut host);
    host
}

fn settle(host: &mut Machine) {
    let planned = plan(host);
    let masks: BTreeMap<u32, CpuSet> = planned.interfaces[0]
        .vectors
        .iter()
        .filter_map(|vector| Some((vector.irq, vector.cpus.clone()?)))
        .collect();
    let steering: Vec<CpuSet> = planned.interfaces[0]
        .tx_queues
        .iter()
        .filter_map(|tx| tx.xps_cpus.clone())
        .collect();
    let masks: BTreeMap<u32, _> = masks
        .into_iter()
        .map(|(irq, cpus)| (irq, (mask(host, &cpus), cpus)))
        .collect();
    let steering: Vec<_> = steering.iter().map(|cpus| mask(host, cpus)).collect();
    let packets: Vec<_> = planned.interfaces[0]
        .rx_queues
        .iter()
        .filter_map(|rx| Some(mask(host, rx.rps_cpus.as_ref()?)))
        .collect();
    let interface = &mut host.interfaces[0];
    for vector in &mut interface.vectors {
        if let Some((affinity, effective)) = masks.get(&vector.irq) {
            (vector.affinity, vector.effective) = (affinity.clone(), Some(effective.clone()));
        }
    }
    for (tx, xps) in interface.tx_queues.iter_mut().zip(steering) {
        tx.xps_cpus = Some(xps);
    }
    for (rx, rps) in interface.rx_queues.iter_mut().zip(packets) {
        rx.rps_cpus = Some(rps);
    }
}

/// IRQ, CPU and interrupts in two seconds.
fn seen(counts: &[(u32, u32, u64)]) -> Delta {
    let mut delta = Delta {
        elapsed: Duration::from_secs(2),
        ..Delta::default()
    };
    for (irq, cpu, count) in counts {
        delta
            .interrupts
            .entry(*irq)
            .or_default()
            .extend((*count > 0).then_some((*cpu, *count)));
    }
    delta
}

fn status(host: &Machine, delta: Option<&Delta>) -> Status {
    let plan = plan(host);
    // Nothing has been applied: there is no record.
    let empty = temporary();
    let found = nicpin::check::differences(
        &Root::open(empty.path()).unwrap(),
        host,
        &plan,
        &Ok(nicpin::apply::Record::default()),
    );
    let check = Check::new(host, &plan, found, Vec::new(), delta);
    Status::new(host, &plan, check, delta, &BTreeSet::new())
}

fn irqs(host: &Machine) -> Vec<u32> {
    host.interfaces[0]
        .vectors
        .iter()
        .map(|vector| vector.irq)
        .collect()
}

fn all_arrive(host: &Machine) -> Delta {
    let vectors = host.interfaces[0].vectors.iter();
    let counts: Vec<_> = vectors
        .map(|v| (v.irq, v.effective.as_ref().unwrap().first().unwrap(), 10))
        .collect();
    seen(&counts)
}

#[test]
fn proof_is_interrupts_where_planned() {
    let host = in_planned_state();
    let text = |status: &Status| {
        crate::screen::status::status(
            status,
            StatusDetail::Interfaces,
            &crate::screen::Given::default(),
        )
        .show(Screen::default())
    };
    let unwatched = status(&host, None);
    assert_eq!(unwatched.state, Some(InterfaceState::Unproven));
    assert_eq!(
        (unwatched.seconds, unwatched.interfaces[0].per_second),
        (None, None)
    );

    let quiet = status(
        &host,
        Some(&seen(
            &irqs(&host)
                .iter()
                .map(|&irq| (irq, 0, 0))
                .collect::<Vec<_>>(),
        )),
    );
    assert_eq!(quiet.state, Some(InterfaceState::Unproven));
    assert_eq!(
        (quiet.interfaces[0].per_second, quiet.interfaces[0].proven),
        (Some(0.0), Some(0))
    );
    assert_data_eq!(
        text(&quiet),
        str![[r"
eth2 is as planned; it had no interrupt in 2.0 s.

INTERFACE  LINK  NODE  QUEUES  LOCAL  MAX/CORE  IRQ/S  STATE
eth2       10G   1     4        100%         1      0  unproven: no interrupt

eth2  ixgbe 0000:01:00.0, 10 Gbit/s, node 1: CPUs 4-7 (4 cores)
  unproven: no interrupt
  4 IRQs as planned; interrupts arrived there on 0 of 4 queue IRQs; XPS as planned on 4 queues; RPS
  off as planned

irqbalance is not running. nicpin watch is not running.

"]]
    );

    let busy = status(&host, Some(&all_arrive(&host)));
    assert_eq!(busy.state, Some(InterfaceState::Ok));
    let card = &busy.interfaces[0];
    assert_eq!(
        (card.per_second, card.proven, card.local),
        (Some(20.0), Some(4), Some(4))
    );
    assert_eq!(
        (
            card.max_per_cpu,
            card.max_per_core,
            card.on_isolated,
            card.differ
        ),
        (1, 1, 0, 0)
    );
    assert_data_eq!(
        text(&busy),
        str![[r"
eth2 is as planned; interrupts arrive where planned.

INTERFACE  LINK  NODE  QUEUES  LOCAL  MAX/CORE  IRQ/S  STATE
eth2       10G   1     4        100%         1     20  ok

eth2  ixgbe 0000:01:00.0, 10 Gbit/s, node 1: CPUs 4-7 (4 cores)
  ok
  4 IRQs as planned; interrupts arrived there on 4 of 4 queue IRQs; XPS as planned on 4 queues; RPS
  off as planned

irqbalance is not running. nicpin watch is not running.

"]]
    );

    // One queue with traffic is proven; queues without do not count against it.
    let irq = irqs(&host)[2];
    let cpu = host.interfaces[0].vectors[2]
        .effective
        .as_ref()
        .unwrap()
        .first()
        .unwrap();
    let one = status(&host, Some(&seen(&[(irq, cpu, 3)])));
    assert_eq!(
        (one.state, one.interfaces[0].proven),
        (Some(InterfaceState::Ok), Some(1))
    );
}

#[test]
fn interrupts_on_other_cpus_than_planned_are_reported() {
    let host = in_planned_state();
    let mut delta = all_arrive(&host);
    delta
        .interrupts
        .get_mut(&irqs(&host)[1])
        .unwrap()
        .insert(0, 7);
    let status = status(&host, Some(&delta));
    assert_eq!(status.state, Some(InterfaceState::Pending));
    let row = &status.interfaces[0].vectors[1];
    assert_eq!(row.state, VectorState::Elsewhere);
    assert_data_eq!(why(row), str!["interrupts arrived on CPU 0"]);
}

/// The CPU to which the kernel moves a vector at its next interrupt is the one to name.
#[test]
fn a_pending_move_off_the_planned_cpu_is_named() {
    let mut host = in_planned_state();
    let other = mask(&host, &set("0"));
    host.interfaces[0].vectors[0].affinity = other;
    let status = status(&host, None);
    let card = &status.interfaces[0];
    let row = &card.vectors[0];
    assert_eq!(row.state, VectorState::Differs);
    assert_data_eq!(why(row), str!["moves to CPU 0 at its next interrupt"]);
    // What is idle until then is no better: CPU 0 is on the other node.
    assert_eq!(
        (row.node, row.local, card.local),
        (Some(0), Some(false), Some(3))
    );
    assert_eq!(status.state, Some(InterfaceState::Remote));
}

/// Before a vector is used for the first time, x86 reports the first CPU as its effective one.
#[test]
fn an_effective_cpu_outside_the_affinity_is_no_evidence() {
    let mut host = in_planned_state();
    let node = mask(&host, &set("4-7"));
    for vector in &mut host.interfaces[0].vectors {
        (vector.affinity, vector.effective) = (node.clone(), Some(set("0")));
    }
    let status = status(&host, None);
    let card = &status.interfaces[0];
    assert_eq!((card.local, card.max_per_core), (Some(4), 0));
}

#[test]
fn differences_are_reported_with_their_fix() {
    let mut host = in_planned_state();
    let everywhere = mask(&host, &set("0-7"));
    let vectors = &mut host.interfaces[0].vectors;
    let planned = vectors[2].effective.clone();
    // Moved to the other node; a wider affinity with a local effective CPU; affinity set, and not moved yet.
    (vectors[0].affinity, vectors[0].effective) = (everywhere.clone(), Some(set("0")));
    vectors[2].affinity = everywhere;
    vectors[3].effective = Some(set("1"));
    let status = status(&host, None);
    let card = &status.interfaces[0];
    let [differs, as_planned] = [VectorState::Differs, VectorState::AsPlanned];
    let rows = card.vectors.iter();
    let by_row: Vec<_> = rows.clone().map(|row| row.state).collect();
    assert_eq!(by_row, [differs, as_planned, differs, VectorState::Pending]);
    assert_data_eq!(
        rows.filter_map(|row| row.why.as_deref()).join("\n"),
        str![[r"
effective CPU is on node 0
affinity has other CPUs, too
on CPU 1 until its next interrupt
"]]
    );
    assert_eq!(card.vectors[2].effective, planned);
    assert_eq!(
        (status.state, card.differ, card.local),
        (Some(InterfaceState::Remote), 2, Some(3))
    );
    assert_eq!(card.fix.as_deref(), Some("nicpin apply eth2"));
    assert_eq!(status.differ, 2);
}

/// Each vector of the first interface gets the CPU of the next.
fn rotate(host: &mut Machine) {
    let vectors = &mut host.interfaces[0].vectors;
    let on: Vec<_> = vectors
        .iter()
        .map(|v| (v.affinity.clone(), v.effective.clone()))
        .collect();
    for (vector, on) in vectors.iter_mut().zip(on.into_iter().cycle().skip(1)) {
        (vector.affinity, vector.effective) = on;
    }
}

#[test]
fn an_arrangement_that_is_as_good_as_planned_is_equivalent() {
    let mut host = in_planned_state();
    rotate(&mut host);
    let rotated = status(&host, None);
    assert_eq!(
        (rotated.state, rotated.differ),
        (Some(InterfaceState::Equivalent), 4)
    );
    assert_eq!(rotated.interfaces[0].changes, []);
    // Two queues on one core are worse, but not twice as many as planned if the plan has two on a core, too.
    let one = host.interfaces[0].vectors[0].clone();
    let second = &mut host.interfaces[0].vectors[1];
    (second.affinity, second.effective) = (one.affinity, one.effective);
    let crowded = status(&host, None);
    assert_eq!(crowded.state, Some(InterfaceState::Crowded));
    let busiest = &crowded.interfaces[0].changes[0];
    assert_eq!(
        (busiest.measure, busiest.now, busiest.planned),
        (Measure::BusiestQueues, 2, 1)
    );
    // If the kernel does not report the CPU, several queues may be on one, or not.
    let mut unmeasured = in_planned_state();
    let node = mask(&unmeasured, &set("4-7"));
    for vector in &mut unmeasured.interfaces[0].vectors {
        (vector.affinity, vector.effective) = (node.clone(), None);
    }
    assert_eq!(
        status(&unmeasured, None).state,
        Some(InterfaceState::Untuned)
    );
    // The CPU is known if no other one of the affinity is online.
    let mut known = in_planned_state();
    (known.topology.online, known.topology.cores[0]) = (set("1-7"), CpuSet::new());
    known.topology.nodes.get_mut(&0).unwrap().cpus = set("1-3");
    let both = mask(&known, &set("0,5"));
    for vector in &mut known.interfaces[0].vectors[..2] {
        (vector.affinity, vector.effective) = (both.clone(), None);
    }
    assert_eq!(status(&known, None).state, Some(InterfaceState::Crowded));
    let mut unsteered = in_planned_state();
    let off = mask(&unsteered, &CpuSet::new());
    for tx in &mut unsteered.interfaces[0].tx_queues {
        tx.xps_cpus = Some(off.clone());
    }
    assert_eq!(
        status(&unsteered, None).state,
        Some(InterfaceState::Untuned)
    );
}

/// As many of the CPUs that RPS may use are as good; fewer or other ones are not.
#[test]
fn rps_of_as_many_planned_cpus_is_equivalent() {
    let mut host = machine(2, 8, 1, 4);
    add(&mut host, "eth2", Some(1), 2);
    host.interfaces[0].channels = Some(combined(2, 2));
    assert_eq!(rps_of(&plan(&host), "eth2"), ["9-11", "13-15"]);
    settle(&mut host);
    let with = |of_first: &str, of_second: &str| {
        let mut host = host.clone();
        for (rx, cpus) in [of_first, of_second].iter().enumerate() {
            host.interfaces[0].rx_queues[rx].rps_cpus = Some(mask(&host, &set(cpus)));
        }
        let found = status(&host, None);
        (found.state.unwrap(), found.differ)
    };
    assert_eq!(with("9-11", "13-15"), (InterfaceState::Unproven, 0));
    assert_eq!(with("13-15", "9-11"), (InterfaceState::Equivalent, 2));
    for worse in ["9-10", "0-2", "12-14"] {
        assert_eq!(
            with(worse, "13-15"),
            (InterfaceState::Untuned, 1),
            "{worse}"
        );
    }
}

/// A vector of a receive and a transmit queue is in use as long as either queue is.
#[test]
fn combined_vectors_of_fewer_receive_queues_are_in_use() {
    let mut host = in_planned_state();
    let interface = &mut host.interfaces[0];
    interface.rx_queues.truncate(2);
    let idle = |interface: &Interface| {
        let vectors = interface.vectors.iter();
        vectors.filter(|vector| interface.is_idle(vector)).count()
    };
    assert_eq!((interface.tx_queues.len(), idle(interface)), (4, 0));
    interface.tx_queues.truncate(3);
    assert_eq!(idle(interface), 1);
}

#[test]
fn what_the_plan_leaves_as_good_or_cannot_place_raises_no_alarm() {
    // Another arrangement on the remote node, where the policy wants the queues.
    let on_purpose = |host: &Machine| plan_with(host, &[("scope", "remote")], &[]);
    let mut host = in_planned_state();
    let remote = on_purpose(&host);
    let on: Vec<_> = (remote.interfaces[0].vectors.iter())
        .map(|v| v.cpus.clone().unwrap())
        .collect();
    for (at, cpus) in on.iter().enumerate() {
        let affinity = mask(&host, cpus);
        let vector = &mut host.interfaces[0].vectors[at];
        (vector.affinity, vector.effective) = (affinity, Some(cpus.clone()));
    }
    rotate(&mut host);
    let again = on_purpose(&host);
    let empty = temporary();
    let root = Root::open(empty.path()).unwrap();
    let check = nicpin::check(&root, &host, &again);
    assert!(!check.state.unwrap().is_alarming(), "{:?}", check.state);
    assert_eq!(check.interfaces[0].local, Some(0));
    assert_eq!(status(&host, None).state, Some(InterfaceState::Remote));
    // A wireless card whose vectors have names of their own.
    let mut laptop = in_planned_state();
    let mut wireless = laptop.interfaces[0].clone();
    wireless.name = "wlan0".to_owned();
    wireless.unknown_vectors = vec![nicpin::machine::UnknownVector {
        irq: 140,
        action: "iwlwifi:default_queue".to_owned().into(),
    }];
    wireless.vectors.clear();
    laptop.interfaces.push(wireless);
    let found = status(&laptop, None);
    let states: Vec<_> = found.interfaces.iter().map(|one| one.state).collect();
    assert_eq!(
        states,
        [InterfaceState::Unproven, InterfaceState::Unsupported]
    );
    assert_eq!(found.state, Some(InterfaceState::Unproven));
}

#[test]
fn vectors_that_cannot_be_moved_are_counted_apart() {
    let mut host = in_planned_state();
    for vector in &mut host.interfaces[0].vectors {
        (vector.movable, vector.affinity, vector.effective) = (
            false,
            mask(
                &Machine {
                    topology: machine(2, 4, 1, 4).topology,
                    ..Machine::default()
                },
                &set("0"),
            ),
            Some(set("0")),
        );
    }
    settle(&mut host);
    let status = status(&host, None);
    let card = &status.interfaces[0];
    assert_eq!(
        (card.unmovable, card.differ, card.local, &card.fix),
        (4, 0, Some(0), &None)
    );
    assert_eq!(status.state, Some(InterfaceState::Unsupported));
}

#[test]
fn polling_outside_the_vectors_cpu_is_reported() {
    let codes = |host: &Machine| -> BTreeSet<String> {
        let status = status(host, None);
        let notes = status.interfaces[0].notes.iter().chain(&status.notes);
        notes.map(nicpin::Note::code).collect()
    };
    let mut host = in_planned_state();
    assert_eq!(codes(&host), BTreeSet::new());
    let polling = |threaded, gro_flush_timeout, napi_defer_hard_irqs| Polling {
        threaded,
        gro_flush_timeout,
        napi_defer_hard_irqs,
        irq_suspend_timeout: 0,
    };
    for (set, code) in [
        (polling(true, 0, 0), Some("threaded-napi")),
        (polling(false, 200_000, 2), Some("interrupts-deferred")),
        (polling(false, 200_000, 0), None),
        (polling(false, 0, 2), None),
    ] {
        host.interfaces[0].polling = set;
        assert_eq!(
            codes(&host),
            code.map(str::to_owned).into_iter().collect(),
            "{set:?}"
        );
    }
    host.sockets_poll = true;
    assert_eq!(codes(&host), BTreeSet::from(["sockets-poll".to_owned()]));
}

#[test]
fn queues_whose_packets_others_take_expect_no_interrupt() {
    let mut host = in_planned_state();
    let idle = Delta {
        elapsed: Duration::from_secs(1),
        ..Delta::default()
    };
    let judged = |host: &Machine| {
        let status = status(host, Some(&idle));
        let codes = status.interfaces[0].notes.iter().map(nicpin::Note::code);
        (status.interfaces[0].state, codes.collect::<Vec<_>>())
    };
    assert_eq!(judged(&host), (InterfaceState::Unproven, vec![]));
    let queues = host.interfaces[0].rx_queues.iter();
    let queues = queues.map(|rx| NetdevQueue {
        direction: Direction::Rx,
        id: rx.index,
        napi: Some(8193),
        user: Some(QueueUser::AfXdp),
    });
    let mut answer = Netdev {
        queues: queues.collect(),
        napis: vec![Napi {
            id: 8193,
            ..Napi::default()
        }],
    };
    host.interfaces[0].netdev = Some(answer.clone());
    let note = vec!["queues-taken".to_owned()];
    assert_eq!(judged(&host), (InterfaceState::Ok, note.clone()));
    // Vectors without a queue in use prove nothing, nor does the queue without a vector.
    let mut without = host.clone();
    without.interfaces[0].rx_queues.truncate(1);
    without.interfaces[0].tx_queues.truncate(1);
    without.interfaces[0].vectors.remove(0);
    without.interfaces[0].netdev = None;
    settle(&mut without);
    let unserved = vec!["queues-unserved".to_owned()];
    let cannot_be_judged = (InterfaceState::Unsupported, unserved);
    assert_eq!(judged(&without), cannot_be_judged);
    answer.queues[0].user = None;
    host.interfaces[0].netdev = Some(answer.clone());
    assert_eq!(judged(&host), (InterfaceState::Unproven, note.clone()));
    answer.napis[0].irq_suspend_timeout = 1000;
    host.interfaces[0].netdev = Some(answer);
    assert_eq!(judged(&host), (InterfaceState::Ok, note));
}

#[test]
fn polling_is_read_from_the_tree() {
    let machine = MachineTree::of("two-node");
    let threads = r#"{"queues":[{"direction":"rx","id":0,"napi":8193}],"napis":[{"id":8193,"irq":36,"pid":612}]}"#;
    for (path, text) in [
        ("/sys/class/net/nic0/threaded", "1"),
        ("/sys/class/net/nic1/gro_flush_timeout", "200000"),
        ("/sys/class/net/nic1/napi_defer_hard_irqs", "2"),
        ("/nicpin/netlink/nic0", threads),
        ("/proc/sys/net/core/busy_read", "50"),
    ] {
        machine.put(path, text);
    }
    expect(
        "polling.status.txt",
        machine.nicpin(&["status", "-v"]).stdout,
    );
}

#[test]
fn a_running_irqbalance_is_reported() {
    let machine = MachineTree::of("two-node");
    machine.put("/run/irqbalance/irqbalance812.sock", "");
    machine.put("/proc/812/stat", &irqbalance_since(100));
    let irqbalance = || machine.nicpin(&["status", "--json"]).json()["irqbalance"].clone();
    assert_eq!(irqbalance()["state"], "moves");
    expect("irqbalance.status.txt", machine.nicpin(&["status"]).stdout);
    machine.remove("/proc/812");
    assert_eq!(irqbalance()["state"], "unknown");
    assert_eq!(irqbalance()["note"]["fix"], "run as root");
}

#[test]
fn bans_that_end_with_irqbalance_are_reported() {
    let machine = MachineTree::of("two-node");
    let plan = machine.nicpin(&["plan", "--format", "json"]);
    let plan = plan.json();
    let vectors = plan["interfaces"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|i| i["vectors"].as_array().unwrap());
    let planned: serde_json::Map<String, serde_json::Value> = vectors
        .filter(|vector| !vector["cpus"].is_null())
        .map(|vector| {
            (
                vector["irq"].to_string(),
                serde_json::json!({"device": "-", "action": "-"}),
            )
        })
        .collect();
    machine.put("/run/irqbalance/irqbalance812.sock", "");
    for (started, state) in [(100, "banned"), (101, "moves")] {
        machine.put("/proc/812/stat", &irqbalance_since(started));
        let record = serde_json::json!({
            "schema": "nicpin.irqbalance/1", "process": [812, 100], "banned": [], "planned": planned, "stopped": false
        });
        machine.put("/run/nicpin/irqbalance.json", &record.to_string());
        let status = machine.nicpin(&["status", "--json"]).json();
        assert_eq!(status["irqbalance"]["state"], state);
    }
}

/// `/proc/PID/stat` of an irqbalance that was started at this tick.
fn irqbalance_since(tick: u32) -> String {
    format!(
        "812 (irqbalance) S 1 812 812 0 -1 4194560 1 0 0 0 1 1 0 0 20 0 1 0 {tick} 1000000 100 \
         18446744073709551615 1 1 0 0 0 0 0 4096 0 0 0 0 17 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n"
    )
}

#[test]
fn options_change_the_plan_and_are_noted() {
    let machine = MachineTree::of("two-node");
    assert_eq!(machine.nicpin(&["apply", "--scope", "5"]).code, 0);
    let differ = |args: &[&str]| machine.nicpin(args).json()["differ"].clone();
    assert_ne!(differ(&["status", "--json"]), 0);
    assert_eq!(differ(&["status", "--json", "--scope", "5"]), 0);
    let by_default = machine.nicpin(&["status"]).stdout;
    let by_options = machine.nicpin(&["status", "--scope", "5"]).stdout;
    expect("options.status.txt", by_default + &by_options);
}

#[test]
fn other_channels_than_planned_are_a_difference() {
    let screen = MachineTree::of("dl980")
        .nicpin(&["status", "--channels", "auto", "eth4"])
        .stdout;
    expect("channels.status.txt", screen);
}

#[test]
fn vectors_on_isolated_cpus_are_counted() {
    let mut host = in_planned_state();
    host.topology.isolated = set("5");
    let status = status(&host, None);
    let card = &status.interfaces[0];
    assert_eq!(card.on_isolated, 1);
    // The kernel does not report the effective CPU: the affinity tells.
    let everywhere = mask(&host, &host.topology.online);
    for vector in &mut host.interfaces[0].vectors {
        vector.effective = None;
    }
    let isolated = |host: &Machine| {
        let status = self::status(host, None);
        (
            status.interfaces[0].on_isolated,
            status.score_now.on_isolated,
        )
    };
    assert_eq!(isolated(&host), (1, 1));
    for vector in &mut host.interfaces[0].vectors {
        vector.affinity = everywhere.clone();
    }
    assert_eq!(isolated(&host), (0, 0));
}

/// All CPUs send on it, whatever its mask.
#[test]
fn the_mask_of_an_only_transmit_queue_makes_nothing_better() {
    let mut host = machine(1, 8, 1, 8);
    add(&mut host, "eth2", Some(0), 1);
    settle(&mut host);
    host.interfaces[0].tx_queues[0].xps_cpus = Some(mask(&host, &CpuSet::new()));
    let status = status(&host, None);
    let card = &status.interfaces[0];
    assert_eq!(
        (card.state, card.differ),
        (InterfaceState::Equivalent, 1),
        "{:?}",
        card.changes
    );
}

/// Other interfaces' settings on its cores are in their own rows.
#[test]
fn an_interface_without_a_difference_is_neither_crowded_nor_untuned() {
    for name in ["dl980", "x460"] {
        let machine = MachineTree::of(name);
        assert_eq!(machine.nicpin(&["apply", "-q", "eth0", "eth1"]).code, 0);
        let status = machine.nicpin(&["status", "--json"]).json();
        let interfaces = status["interfaces"].as_array().unwrap().iter();
        let ours = interfaces.filter(|of| of["name"] == "eth0" || of["name"] == "eth1");
        let found: Vec<_> = ours.map(|of| &of["state"]).collect();
        assert_eq!(found, ["pending"; 2], "{name}");
    }
}

/// POWER, s390 and x86 before Linux 4.14: counts are the evidence, and a mask is none.
#[test]
fn without_effective_affinities_the_counts_decide() {
    let host = |counted: Option<&str>| {
        let mut host = in_planned_state();
        let both = mask(&host, &set("1,5"));
        for vector in &mut host.interfaces[0].vectors {
            (vector.affinity, vector.effective) = (both.clone(), None);
            vector.counted = counted.map(set);
        }
        host
    };
    let of = |counted| {
        let status = status(&host(counted), None);
        (status.state.unwrap(), status.interfaces[0].local)
    };
    // The interface is on node 1, CPUs 4-7.
    assert_eq!(of(None), (InterfaceState::Untuned, None));
    assert_eq!(of(Some("1")), (InterfaceState::Remote, Some(0)));
    let (state, local) = of(Some("5"));
    assert_eq!((state, local), (InterfaceState::Crowded, Some(4)));
    let mut isolated = host(Some("5"));
    isolated.topology.isolated = set("5");
    assert_eq!(
        status(&isolated, None).state,
        Some(InterfaceState::Isolated)
    );
}

/// The kernel tells of two interfaces that they have the same vector, which is planned as the first one's.
#[test]
fn the_state_of_an_interface_counts_vectors_that_are_planned_as_another_s() {
    let names = ["mlx5_comp0@pci:0000:82:00.0"];
    let port = |name| Port::new(name, 25_000, 1, 1);
    let both = card("mlx5_core", port("eth0"), 30, &names).port(port("eth1"));
    let tree = MachineTree::build(&two_nodes([both]));
    tree.put("proc/irq/30/smp_affinity", "10");
    tree.put("proc/irq/30/effective_affinity_list", "4");
    let answer = r#"{"queues":[{"direction":"rx","id":0,"napi":8193},{"direction":"tx","id":0,"napi":8193}],"napis":[{"id":8193,"irq":30}]}"#;
    for name in ["eth0", "eth1"] {
        tree.put(&format!("nicpin/netlink/{name}"), answer);
    }
    let shown = document(&tree, &["status"]);
    let interfaces = shown["interfaces"].as_array().unwrap().iter();
    let states = interfaces.map(|interface| &interface["state"]);
    assert_eq!(states.collect_vec(), ["remote"; 2]);
}
