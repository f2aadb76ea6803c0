//! Rates, shares and costs from two samples, and the options of the command. `tests/netns` and `tests/vm` measure real
//! traffic.

mod processes;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nix::libc;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use snapbox::{assert_data_eq, str};

use crate::support::host::{add, machine, plan};
use crate::support::kernel::default_signals;
use crate::support::run::{MachineTree, fixture, good, nicpin};
use crate::support::schema::meets;
use crate::support::temporary;
use nicpin::machine::Role;
use nicpin::machine::netdev::Direction;
use nicpin::machine::sample::{
    CountRow, Counters, Counts, CpuCounts, Delta, InterfaceCounts, Sample,
};
use nicpin::report::measure::{MeasuredInterface, MeasuredVector, Measurement};

/// Two interfaces with two queues each on two nodes of two CPUs, IRQs 32, 33 on node 0 and 332, 333 on node 1; and a
/// veth.
fn measure(from: &Sample, to: &Sample) -> Measurement {
    let mut host = machine(2, 2, 1, 2);
    add(&mut host, "eth0", Some(0), 2);
    add(&mut host, "eth1", Some(1), 2);
    let mut subjects: Vec<MeasuredInterface> = plan(&host)
        .interfaces
        .iter()
        .map(|interface| MeasuredInterface::planned(interface, &host))
        .collect();
    subjects.push(MeasuredInterface::without_device(
        "veth0",
        "a veth or a tunnel",
    ));
    Measurement::new(&host.topology, &subjects, &Delta::between(from, to))
}

/// Two data IRQs of a card that nobody knows, and its receive queues: `steps` tells which of both have packets in each step.
fn learned(steps: &[&[u32]]) -> Value {
    let vector = |irq: u32| MeasuredVector {
        irq,
        role: Role::Data,
        queue: None,
        local: None,
        action: format!("acme7-rx{}", irq - 31),
    };
    let subject = MeasuredInterface {
        name: "eth0".to_owned(),
        driver: Some("acme".to_owned()),
        device: "0000:82:00.0".to_owned(),
        vectors: [32, 33].map(vector).to_vec(),
        ..MeasuredInterface::default()
    };
    let at = |counts: [u32; 2]| {
        let row = |(irq, count)| {
            let counts = vec![count];
            let whose = "MSI".to_owned();
            (irq, CountRow { counts, whose })
        };
        let queue =
            |(queue, count): (u32, u32)| (("eth0".to_owned(), Direction::Rx, queue), count.into());
        Sample {
            interrupts: Counts {
                cpus: vec![0],
                rows: [32, 33].into_iter().zip(counts).map(row).collect(),
            },
            queues: (0..).zip(counts).map(queue).collect(),
            ..Sample::default()
        }
    };
    let (mut delta, mut counts) = (Delta::default(), [0, 0]);
    for step in steps {
        let before = at(counts);
        step.iter().for_each(|queue| counts[*queue as usize] += 5);
        delta.add(&Delta::between(&before, &at(counts)));
    }
    let measure = Measurement::new(&machine(1, 1, 1, 1).topology, &[subject], &delta);
    serde_json::to_value(measure).unwrap()["interfaces"][0].clone()
}

#[test]
fn traffic_on_one_queue_at_a_time_tells_a_row_of_the_driver() {
    let one_by_one: &[&[u32]] = &[&[0], &[1], &[0], &[], &[1], &[0], &[1], &[0, 1]];
    let told = learned(one_by_one);
    let row = serde_json::json!({"name": "acme", "irqs": ["acme{h}-rx{n} = rx by order"]});
    assert_eq!(told["learned"], row);
    let of = |at: usize| told["vectors"][at]["moved_with"].clone();
    assert_eq!([of(0), of(1)], [["rx 0"], ["rx 1"]].map(Value::from));
    // Where all queues have packets at any time, where one had none, and where there were few.
    for steps in [&[&[0, 1][..]; 9][..], &[&[0][..]; 9], &one_by_one[..3]] {
        assert_eq!(learned(steps)["learned"], Value::Null, "{steps:?}");
    }
}

fn sample(seconds: u64, rows: &[[u32; 4]; 4], work: u32, bytes: u64) -> Sample {
    let mut text = "   CPU0 CPU1 CPU2 CPU3\n".to_owned();
    for (irq, row) in [32, 33, 332, 333].iter().zip(rows) {
        text += &format!(
            "{irq}: {} {} {} {} PCI-MSI {irq}-edge  a\n",
            row[0], row[1], row[2], row[3]
        );
    }
    let values = |times: u64| InterfaceCounts {
        rx_bytes: bytes * times,
        rx_packets: bytes * times / 1000,
        rx_dropped: u64::from(work),
        ..InterfaceCounts::default()
    };
    let ticks = u64::from(work);
    Sample {
        at: Duration::from_secs(seconds),
        interrupts: nicpin::read::interrupts::read_counts(
            &mut text.as_bytes(),
            &BTreeSet::from([32, 33, 332, 333]),
        )
        .unwrap(),
        cpus: (0..4)
            .map(|cpu| {
                (
                    cpu,
                    CpuCounts {
                        busy: ticks * 2,
                        softirq: ticks,
                        net_rx: work.into(),
                        processed: ticks * 10,
                        squeezed: ticks / 10,
                        ..CpuCounts::default()
                    },
                )
            })
            .collect(),
        interfaces: ["eth0", "eth1", "veth0"]
            .into_iter()
            .zip([1, 2, 0])
            .map(|(name, times)| {
                (
                    name.to_owned(),
                    Counters {
                        index: 1,
                        values: values(times),
                    },
                )
            })
            .collect(),
        threads: BTreeMap::new(),
        queues: BTreeMap::new(),
    }
}

fn busy() -> Measurement {
    let rows = [
        [100, 0, 0, 0],
        [0, 200, 0, 0],
        [u32::MAX, 0, 0, 0],
        [0, 0, 0, 5],
    ];
    let later = [
        [300, 0, 0, 0],
        [0, 200, 0, 0],
        [299, 0, 100, 0],
        [0, 0, 0, 5],
    ];
    measure(&sample(3, &rows, 0, 0), &sample(5, &later, 50, 250_000_000))
}

/// The kernel counts loopback's packets with all others; its bytes are no interface's traffic.
#[test]
fn loopback_is_named_where_the_cpus_packets_include_it() {
    let rows = [[0; 4]; 4];
    let with_loopback = |seconds: u64, packets: u64| {
        let values = InterfaceCounts {
            rx_packets: packets,
            rx_bytes: packets * 1000,
            ..Default::default()
        };
        let mut sample = sample(seconds, &rows, 0, 0);
        sample
            .interfaces
            .insert("lo".to_owned(), Counters { index: 1, values });
        sample
    };
    let measured = measure(&with_loopback(3, 10), &with_loopback(5, 1010));
    assert_eq!(
        (
            measured.machine.loopback_packets_per_second,
            measured.machine.gbit_per_second
        ),
        (500.0, 0.0)
    );
    let text = crate::screen::measure::measure(&measured, false)
        .show(crate::screen::page::Screen::default());
    assert!(
        text.contains("The packets of the CPUs include 500/s of the loopback interface.\n"),
        "{text}"
    );
    assert!(MeasuredInterface::wanted(&[]).interfaces.contains("lo"));
    let without = measure(&with_loopback(3, 10), &with_loopback(5, 10));
    assert!(
        !crate::screen::measure::measure(&without, false)
            .show(crate::screen::page::Screen::default())
            .contains("loopback")
    );
}

#[test]
fn rates_shares_and_costs() {
    meets(&crate::screen::json(&busy()).unwrap());
    let measure = busy();
    let [eth0, eth1, veth0] = &measure.interfaces[..] else {
        panic!()
    };
    assert_eq!((eth0.interrupts_per_second, eth0.local), (100.0, Some(1.0)));
    // 300 on CPU 0, across the wrap at 2^32, and 100 on the local node.
    assert_eq!(
        (eth1.interrupts_per_second, eth1.local),
        (200.0, Some(0.25))
    );
    assert_eq!(
        (veth0.interrupts_per_second, veth0.local, veth0.subject.node),
        (0.0, None, None)
    );
    let on: Vec<_> = eth1.vectors[0]
        .cpus
        .iter()
        .map(|on| (on.cpu, on.node, on.interrupts))
        .collect();
    assert_eq!(on, [(0, Some(0), 300), (2, Some(1), 100)]);
    assert_eq!(
        (eth1.vectors[1].interrupts, eth1.vectors[1].local),
        (0, None)
    );
    assert!((eth0.traffic.as_ref().unwrap().rx_gbit_per_second - 1.0).abs() < 1e-9);
    let machine = measure.machine;
    assert_eq!(
        (machine.local_interrupts, machine.remote_interrupts),
        (300, 300)
    );
    // 4 CPUs with 100 ticks each, half of them in softirqs; 6 Gbit.
    assert_eq!(
        (machine.busy_cpu_seconds, machine.softirq_cpu_seconds),
        (4.0, 2.0)
    );
    assert!((machine.gbit_per_second - 3.0).abs() < 1e-9);
    assert!((machine.gbit_per_busy_cpu_second.unwrap() - 1.5).abs() < 1e-9);
    assert!((machine.gbit_per_softirq_cpu_second.unwrap() - 3.0).abs() < 1e-9);
    assert_eq!((machine.dropped, machine.squeezed), (150, 20));
    assert_eq!((measure.cpus[0].busy, measure.cpus[0].softirq), (0.5, 0.25));
}

#[test]
fn the_tables() {
    let table = crate::screen::measure::measure(&busy(), false);
    assert_data_eq!(
        table.show(crate::screen::page::Screen::default()),
        str![[r#"
In 2.00 s: 3.00 Gbit/s; 50% of the interrupts on the interfaces' own nodes; 2.00 CPUs busy, 1.00 of
them in interrupts and softirqs; 1.50 Gbit per CPU second; 3.00 Gbit per softirq CPU second; 150
packets dropped, 20 polls ended with work left.

INTERFACE  NODE     RX  RX PKT/S  TX  TX PKT/S  DROPPED  IRQ/S  LOCAL
eth1       1     2.00G    250.0k   0         0       50    200    25%
eth0       0     1.00G    125.0k   0         0       50    100   100%
veth0      -         0         0   0         0       50      -      -

INTERFACE  QUEUE  IRQ  IRQ/S  LOCAL  BY CPU
eth1       0      332    200    25%  0: 150  2: 50
eth0       0       32    100   100%  0: 100

CPU  NODE  BUSY  IN IRQ  IRQ/S  NET_RX/S  NET_TX/S  PKT/S  RPS/S  DROPPED  SQUEEZED
0       0   50%     25%    250        25         0    250      0        0         5
1       0   50%     25%      0        25         0    250      0        0         5
2       1   50%     25%     50        25         0    250      0        0         5
3       1   50%     25%      0        25         0    250      0        0         5

"#]]
    );
}

#[test]
fn no_time_and_no_counters_give_no_rates() {
    let nothing = measure(&Sample::default(), &Sample::default());
    assert!(
        nothing
            .interfaces
            .iter()
            .all(|interface| interface.traffic.is_none() && interface.local.is_none())
    );
    assert_eq!(nothing.machine.gbit_per_busy_cpu_second, None);
    let json = serde_json::to_string(&nothing).unwrap();
    meets(&json);
    assert!(!json.contains("NaN") && !json.contains("inf"), "{json}");
}

#[test]
fn what_appeared_or_vanished_is_noted() {
    let (from, mut to) = (
        sample(0, &[[1; 4]; 4], 0, 0),
        sample(1, &[[2; 4]; 4], 1, 1000),
    );
    to.interfaces.remove("veth0");
    to.interrupts.rows.remove(&333);
    to.cpus.remove(&3);
    let measure = measure(&from, &to);
    let notes: BTreeMap<&str, String> = measure
        .notes
        .iter()
        .map(|note| (&*note.code().leak(), note.to_string()))
        .collect();
    assert!(notes["cpus-changed"].ends_with(": 3"), "{notes:?}");
    assert!(notes["vectors-changed"].ends_with(": 333"), "{notes:?}");
    assert!(
        notes["interfaces-changed"].ends_with(": veth0"),
        "{notes:?}"
    );
    assert_eq!(measure.interfaces[2].traffic, None);
}

/// A driver that starts again gets other IRQs.
#[test]
fn vectors_with_new_irq_numbers_are_measured() {
    let machine = MachineTree::of("two-node");
    let root = machine.path("/").to_str().unwrap().to_owned();
    let mut child = started_on(&root, &["--watch", "-s", "0.05", "--json", "nic0"]);
    let output = BufReader::new(child.stdout.take().unwrap());
    let mut samples = output.lines().map(|line| {
        let line: Value = serde_json::from_str(&line.unwrap()).unwrap();
        let vectors = line["interfaces"][0]["vectors"].as_array();
        let vectors = vectors.into_iter().flatten();
        let irqs: BTreeSet<u64> = vectors.map(|one| one["irq"].as_u64().unwrap()).collect();
        (irqs, line["notes"].to_string())
    });
    assert!(samples.next().unwrap().0.into_iter().eq(35..=43));
    let mut interrupts = machine.read("/proc/interrupts");
    let device = "/sys/class/net/nic0/device/../msi_irqs";
    for irq in 35..=43 {
        for dir in ["/proc/irq", device] {
            let path = |irq| machine.path(&format!("{dir}/{irq}"));
            std::fs::rename(path(irq), path(irq + 100)).unwrap();
        }
        interrupts = interrupts.replace(&format!(" {irq}:"), &format!("{}:", irq + 100));
    }
    machine.write("/proc/new", &interrupts);
    std::fs::rename(machine.path("/proc/new"), machine.path("/proc/interrupts")).unwrap();
    let (_, notes) = samples.find(|(irqs, _)| irqs.is_empty()).unwrap();
    assert!(notes.contains("are left out: 35-43"), "{notes}");
    let (irqs, notes) = samples.next().unwrap();
    assert!(irqs.into_iter().eq(135..=143), "{notes}");
    // An interface that is gone for a while.
    let (name, away) = (machine.path("/sys/class/net/nic0"), machine.path("/away"));
    let target = std::fs::read_link(&name).unwrap();
    std::fs::remove_file(&name).unwrap();
    samples
        .find(|(_, notes)| notes.contains("not-present"))
        .unwrap();
    symlink(target, &away).unwrap();
    std::fs::rename(&away, &name).unwrap();
    samples.find(|(irqs, _)| irqs.contains(&135)).unwrap();
    kill(pid(&child), Signal::SIGINT).unwrap();
    samples.for_each(drop);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

/// The lines of a run, as JSON.
fn lines(text: &str) -> Vec<Value> {
    meets(text);
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn each_sample_is_a_line_of_json() {
    let machine = MachineTree::of("two-node");
    let run = machine.nicpin(&[
        "measure",
        "--seconds",
        "0.01",
        "--count",
        "3",
        "--format",
        "json",
        "nic1",
    ]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    let samples = lines(&run.stdout);
    assert_eq!(samples.len(), 3);
    for sample in samples {
        assert_eq!(sample["schema"], "nicpin.measure/1");
        assert_eq!(sample["interfaces"][0]["name"], "nic1");
        assert_eq!(sample["interfaces"][0]["node"], 1);
        assert_eq!(
            sample["interfaces"][0]["vectors"].as_array().unwrap().len(),
            9
        );
        assert!(sample["seconds"].as_f64().unwrap() >= 0.01 && sample["whole"] == false);
    }
}

fn started_on(root: &str, args: &[&str]) -> Child {
    default_signals();
    let mut command = Command::new(env!("CARGO_BIN_EXE_nicpin"));
    command
        .args(["measure", "--root", root])
        .args(args)
        .process_group(0);
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let blocked = || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
        let mask = status
            .lines()
            .find_map(|line| line.strip_prefix("SigBlk:"))
            .unwrap()
            .trim()
            .to_owned();
        u64::from_str_radix(&mask, 16).unwrap()
    };
    while blocked() & (1 << (libc::SIGTERM - 1)) == 0 {
        std::thread::yield_now();
    }
    child
}

fn pid(child: &Child) -> Pid {
    Pid::from_raw(child.id().try_into().unwrap())
}

#[test]
fn interfaces_without_a_device_are_measured_when_they_are_named() {
    let machine = MachineTree::of("two-node");
    std::fs::create_dir_all(machine.path("/sys/class/net/veth0/statistics")).unwrap();
    for (file, text) in [
        ("ifindex", "7\n"),
        ("iflink", "8\n"),
        ("statistics/rx_bytes", "1000\n"),
    ] {
        machine.write(&format!("/sys/class/net/veth0/{file}"), text);
    }
    let args = ["measure", "--seconds", "0.01", "--format", "json"];
    let named = lines(
        &machine
            .nicpin(&[&args[..], &["veth0", "nic0"]].concat())
            .stdout,
    );
    let measured = |sample: &Value| -> Vec<String> {
        let interfaces = sample["interfaces"].as_array().unwrap().iter();
        interfaces
            .map(|interface| interface["name"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(measured(&named[0]), ["veth0", "nic0"]);
    // Alone, it needs no IRQs.
    let without = MachineTree::of("two-node");
    std::fs::create_dir_all(without.path("/sys/class/net/veth0/statistics")).unwrap();
    without.write("/sys/class/net/veth0/statistics/rx_bytes", "1000\n");
    without.remove("/proc/irq");
    good(&without, &[&args[..], &["veth0"]].concat());
    assert_eq!(named[0]["interfaces"][0]["kind"], "a veth or a tunnel");
    assert_eq!(named[0]["interfaces"][0]["node"], Value::Null);
    assert_eq!(
        measured(&lines(&machine.nicpin(&args).stdout)[0]),
        ["nic0", "nic1"]
    );
}

#[test]
fn what_cannot_be_measured() {
    let machine = MachineTree::of("two-node");
    let run = machine.nicpin(&["measure", "eth7"]);
    assert_eq!((run.code, run.stdout.as_str()), (1, ""));
    assert!(run.stderr.contains("`eth7`"), "{}", run.stderr);
    for args in [
        &["measure", "--seconds", "0"][..],
        &["measure", "--count", "0"],
        &["measure", "--watch", "--", "true"],
        &["measure", "--count", "2", "--", "true"],
        &["measure", "--format", "sh"],
    ] {
        assert_eq!(machine.nicpin(args).code, 64, "{args:?}");
    }
    let dir = temporary();
    let capture = dir.path().join("host.tar.gz");
    let (root, capture) = (fixture("two-node"), capture.to_str().unwrap());
    assert_eq!(
        nicpin(&["capture", "--root", root.to_str().unwrap(), "-o", capture]).code,
        0
    );
    let run = nicpin(&["measure", "--root", capture]);
    assert!(
        run.code == 1 && run.stderr.contains("a capture has no counters"),
        "{}",
        run.stderr
    );
    assert_eq!(
        nicpin(&["status", "--seconds", "5", "--root", capture]).code,
        64,
        "nothing to wait for"
    );
}
