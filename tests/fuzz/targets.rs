//! Properties of each parser for any input. A target panics if a property does not hold; it may refuse the input.

use std::io::Write as _;
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::fleet::documents::{Documents, Input};
use crate::fleet::{FleetTally, Host};
use crate::screen;
use crate::screen::page::Screen;
use crate::screen::plan::PlanDetail;
use nicpin::apply::irqbalance::Setup;
use nicpin::cpuset::{CpuSet, MaskWidth};
use nicpin::machine::netdev::Netdev;
use nicpin::machine::{Channels, Machine, MaskFile, Selection};
use nicpin::plan::{Plan, SettingKind, stored};
use nicpin::policy::Policy;
use nicpin::read::interrupts::{self, Interrupts};
use nicpin::root::Root;

#[derive(Clone, Copy)]
pub(crate) struct Target {
    pub(crate) name: &'static str,
    pub(crate) run: fn(&[u8]),
}

pub(crate) const TARGETS: [Target; 12] = [
    Target {
        name: "cpulist",
        run: |data| text(data, cpulist),
    },
    Target {
        name: "cpumask",
        run: |data| text(data, cpumask),
    },
    Target {
        name: "interrupts",
        run: |data| text(data, interrupts),
    },
    Target {
        name: "policy",
        run: |data| text(data, policy),
    },
    Target {
        name: "plan",
        run: plan,
    },
    Target {
        name: "netlink",
        run: |data| text(data, netlink),
    },
    Target {
        name: "ethtool",
        run: |data| text(data, ethtool),
    },
    Target {
        name: "irqbalance",
        run: |data| text(data, irqbalance),
    },
    Target {
        name: "capture",
        run: capture,
    },
    Target {
        name: "fleet",
        run: |data| text(data, fleet),
    },
    Target {
        name: "machine",
        run: |data| text(data, machine),
    },
    Target {
        name: "hostile",
        run: super::hostile::run,
    },
];

fn text(data: &[u8], target: fn(&str)) {
    if let Ok(text) = std::str::from_utf8(data) {
        target(text);
    }
}

/// The printed text reads back as the same set, and prints the same again.
fn cpulist(text: &str) {
    match CpuSet::parse_list(text) {
        Ok(set) => {
            let printed = set.to_string();
            assert_eq!(CpuSet::parse_list(&printed).as_ref(), Ok(&set));
            assert_eq!(set.iter().collect::<CpuSet>(), set);
            assert_eq!(set.iter().count(), set.len());
            assert!(set.iter().all(|cpu| set.contains(cpu)));
            if let Some(last) = set.last() {
                let mask = set
                    .to_mask(MaskWidth::for_cpus(last + 1))
                    .expect("the mask has room");
                assert_eq!(CpuSet::parse_mask(&mask).as_ref(), Ok(&set));
                // The width is in digits of four CPUs, at least one.
                let narrower = set.to_mask(MaskWidth::for_cpus(last / 4 * 4));
                assert!(narrower.is_none() || last < 4, "CPU {last} has no room");
            }
        }
        Err(error) => assert!(!error.contains('\n') && error.len() < 400),
    }
}

/// A mask that is written as wide as it was read is the same mask, and no wider: the kernel takes it.
fn cpumask(text: &str) {
    match MaskFile::parse(text) {
        Ok(file) => {
            let written = file
                .cpus
                .to_mask(file.width)
                .expect("a mask has room for its own CPUs");
            let back = MaskFile::parse(&written).expect("what is written can be read");
            assert_eq!((&back.cpus, back.width), (&file.cpus, file.width));
            assert_eq!(back.cpus.to_mask(back.width).as_ref(), Some(&written));
            let groups: Vec<&str> = written.split(',').collect();
            assert!(
                groups[1..].iter().all(|group| group.len() == 8)
                    && (1..=8).contains(&groups[0].len())
            );
            assert_eq!(
                CpuSet::parse_list(&file.cpus.to_string()).as_ref(),
                Ok(&file.cpus)
            );
        }
        Err(error) => assert!(!error.contains('\n') && error.len() < 400),
    }
}

/// Rows can be found by number, and a text that the kernel could print of them gives the same rows.
fn interrupts(text: &str) {
    let Ok(read) = interrupts::parse(&mut text.as_bytes()) else {
        return;
    };
    let cpus: CpuSet = interrupts::columns(text).collect();
    assert!(!cpus.is_empty());
    let is_name = |action: &String| !action.is_empty() && !action.contains('\n');
    assert!(read.values().flatten().all(is_name));
    let header: Vec<String> = cpus.iter().map(|cpu| format!(" CPU{cpu}")).collect();
    let mut printed = header.concat() + "\n";
    for (irq, actions) in &read {
        let counts = " 0".repeat(cpus.len());
        // Names that begin or end in blanks, or look like the column before them, cannot be told from it.
        let is_column = |action: &String| {
            ["-edge", "-fasteoi", "-level"]
                .iter()
                .any(|end| action.ends_with(end))
        };
        let odd =
            |action: &String| action.contains("  ") || action.trim() != action || is_column(action);
        if actions.iter().any(odd) {
            return;
        }
        printed += &format!(
            " {}:{counts}  PCI-MSI 0-edge      {}\n",
            irq,
            actions.join(", ")
        );
    }
    printed += " ERR: 0\n";
    let again = interrupts::parse(&mut printed.as_bytes())
        .expect("what the kernel would print can be read");
    let all = |read: &Interrupts| -> Vec<(u32, String)> {
        read.iter()
            .map(|(&irq, names)| (irq, names.join(", ")))
            .collect()
    };
    assert_eq!(all(&again), all(&read));
}

/// Any policy plans a small machine without a panic, and the same way each time.
fn policy(text: &str) {
    let Ok(policy) = Policy::parse(text) else {
        return;
    };
    {
        let host = small_machine();
        let planned = planned(&host, &policy);
        assert_eq!(planned, self::planned(&host, &policy));
        for write in planned
            .writes
            .iter()
            .filter(|write| write.path.ends_with("affinity"))
        {
            let cpus = CpuSet::parse_mask(&write.value).expect("a write is a mask");
            assert!(
                !cpus.is_empty() && cpus.is_subset(&host.topology.online),
                "{}",
                write.value
            );
        }
    }
}

/// A stored plan is read back as it was printed, and every rendering of it can be made. Applying any of them writes
/// files that the machine has, and vectors to CPUs that are online.
fn plan(data: &[u8]) {
    if let Some(stored) = std::str::from_utf8(data)
        .ok()
        .and_then(|text| stored::parse(text).ok())
    {
        let host = small_machine();
        let fitted = stored::fit(&stored, &host);
        assert_eq!(
            stored::fit(&fitted.plan, &host).plan.writes,
            fitted.plan.writes
        );
        let root =
            Root::open(&super::seeds::top().join("fixtures/two-node")).expect("two-node is there");
        for write in &fitted.plan.writes {
            assert!(root.exists(&write.path), "{}", write.path);
            if write.path.ends_with("affinity") {
                let cpus = CpuSet::parse_mask(&write.value).expect("a write is a mask");
                assert!(
                    !cpus.is_empty() && cpus.is_subset(&host.topology.online),
                    "{}",
                    write.value
                );
            }
        }
    }
    let Ok(plan) = serde_json::from_slice::<Plan>(data) else {
        return;
    };
    let printed = screen::json(&plan).expect("a plan can be printed");
    let back: Plan = serde_json::from_str(&printed).expect("a printed plan can be read");
    assert_eq!(screen::json(&back).expect("a plan can be printed"), printed);
    let texts = [
        screen::plan::plan(
            &plan,
            (&[], 0),
            PlanDetail::Queues,
            true,
            &screen::Given::default(),
        )
        .show(Screen::default()),
        screen::plan::plan(
            &plan,
            (&[], 0),
            PlanDetail::Reasons,
            false,
            &screen::Given::default(),
        )
        .show(Screen::default()),
        screen::shell::script(&plan),
    ];
    assert!(texts.iter().all(|text| text.ends_with('\n')));
    let workers =
        screen::shell::workers(&Machine::default(), &plan, |_, _| true).show(Screen::default());
    assert!(workers.is_empty() == plan.interfaces.is_empty());
}

/// Each host is in one list of one plan, and no name is there twice.
fn fleet(text: &str) {
    let (mut tally, mut read) = (FleetTally::default(), 0);
    let mut take = |printed| {
        let Input::Document(document) = printed else {
            return;
        };
        for (name, host) in Host::parse(&document.text) {
            let Ok(host) = host else { continue };
            tally.add(
                name.or(document.host.clone()).as_deref().unwrap_or("h"),
                Ok(host),
            );
            read += 1;
        }
    };
    let mut documents = Documents::new("f", &mut take);
    text.lines().for_each(|line| documents.line(line));
    documents.end();
    let fleet = tally.report();
    let plans = fleet.classes.iter().flat_map(|class| &class.plans);
    let names: Vec<&str> = plans.flat_map(|plan| plan.hosts.iter().copied()).collect();
    assert_eq!((fleet.hosts, names.len()), (read, read));
    assert_eq!(fleet.planned + fleet.differ + fleet.undetermined, read);
    assert!(
        names.iter().all(|name| !name.contains([',', '\n', ' '])),
        "{names:?}"
    );
    let printed = screen::json(&fleet).expect("a report can be printed");
    serde_json::from_str::<serde_json::Value>(&printed).expect("a printed report is JSON");
    assert!(screen::fleet::fleet(&fleet, true).ends_with('\n'));
}

/// A recorded answer is read back as it was printed.
fn netlink(text: &str) {
    let Ok(answer) = serde_json::from_str::<Netdev>(text) else {
        return;
    };
    let printed = serde_json::to_string(&answer).expect("an answer can be printed");
    let back: Netdev = serde_json::from_str(&printed).expect("a printed answer can be read");
    assert_eq!(back, answer);
    for irq in answer.by_irq().keys() {
        assert!(answer.napis.iter().any(|napi| napi.irq == Some(*irq)));
    }
}

/// A recorded answer is read back as it was printed, and a card has the channels that `ethtool -L` would give it.
fn ethtool(text: &str) {
    let Some(channels) = Channels::parse(text) else {
        return;
    };
    assert_eq!(Channels::parse(&channels.to_text()), Some(channels));
    assert_eq!(channels.difference(&channels), "");
    let more = channels.without_more();
    assert_eq!(
        (more.receiving(), more.difference(&channels)),
        (channels.receiving(), String::new())
    );
}

/// irqbalance's answer is read back as it was printed, and has no other IRQs.
fn irqbalance(text: &str) {
    let Some(setup) = Setup::parse(text) else {
        return;
    };
    assert_eq!(Setup::parse(&setup.to_text()).as_ref(), Some(&setup));
    for irq in &setup.banned {
        let named = |word: &str| word.parse() == Ok(*irq);
        assert!(text.split_ascii_whitespace().any(named), "{irq}");
    }
}

/// Any bytes; those that are not compressed are taken as the inside of a capture.
fn capture(data: &[u8]) {
    if data.starts_with(&[0x1f, 0x8b]) {
        read_and_plan(data);
    } else {
        read_and_plan(&compressed(data));
    }
}

/// A whole machine in text: lines `/path=text` and `/path->link`, with `\n` for the end of a line.
fn machine(text: &str) {
    read_and_plan(&compressed(&tar(text)));
}

/// Any machine is planned twice the same, no write goes to a file that does not exist, and each line of the plan as a
/// script is a comment or a write.
fn read_and_plan(capture: &[u8]) {
    let name = Path::new("capture");
    let (Ok(root), Ok(again)) = (
        Root::read_capture(name, &mut &*capture),
        Root::read_capture(name, &mut &*capture),
    ) else {
        return;
    };
    let host = nicpin::read::machine(&root, nicpin::read::ReadOptions::default());
    match (
        host,
        nicpin::read::machine(&again, nicpin::read::ReadOptions::default()),
    ) {
        (Ok(host), Ok(again)) => {
            assert_eq!(host, again);
            let planned = planned(&host, &Policy::default());
            assert_eq!(planned, self::planned(&host, &Policy::default()));
            // A thread is named by its directory in /proc, which a tree does not have.
            let mut files = planned
                .writes
                .iter()
                .filter(|write| write.kind != SettingKind::NapiThread);
            assert!(files.all(|write| root.exists(&write.path)));
            let script = screen::shell::script(&planned);
            let known = |line: &str| {
                ["#", "echo ", "ethtool -", "taskset -p "]
                    .iter()
                    .any(|word| line.starts_with(word))
            };
            assert!(script.lines().all(known), "{script}");
            plan(
                screen::json(&planned)
                    .expect("a plan can be printed")
                    .as_bytes(),
            );
        }
        (Err(error), Err(again)) => {
            assert_eq!(error.to_string(), again.to_string());
            assert!(error.to_string().starts_with("capture/"), "{error}");
        }
        _ => panic!("read once and not again"),
    }
}

pub(crate) fn planned(host: &Machine, policy: &Policy) -> Plan {
    let selection = Selection::new(host, &[], true).expect("everything can be selected");
    nicpin::plan::plan(host, policy, &selection)
}

/// 8 CPUs on 2 nodes, with a card of 4 queues on each.
fn small_machine() -> Machine {
    thread_local! {
        static HOST: Machine = {
            let root = Root::open(&super::seeds::top().join("fixtures/two-node"));
            let host = nicpin::read::machine(&root.expect("two-node is there"), nicpin::read::ReadOptions::default());
            host.expect("two-node can be read")
        };
    }
    HOST.with(Clone::clone)
}

pub(crate) fn tar(text: &str) -> Vec<u8> {
    let mut archive = tar::Builder::new(Vec::new());
    for line in text.lines() {
        let mut header = tar::Header::new_gnu();
        header.set_mode(0o644);
        header.set_size(0);
        // No machine has a file that tar cannot hold.
        let _ = match (line.split_once("->"), line.split_once('=')) {
            (Some((path, target)), _) if !path.contains('=') => {
                header.set_entry_type(tar::EntryType::Symlink);
                archive.append_link(&mut header, path.trim_start_matches('/'), target)
            }
            (_, Some((path, text))) => {
                let text = text.replace("\\n", "\n");
                header.set_size(text.len() as u64);
                archive.append_data(&mut header, path.trim_start_matches('/'), text.as_bytes())
            }
            _ => continue,
        };
    }
    archive.into_inner().expect("memory takes every byte")
}

pub(crate) fn compressed(bytes: &[u8]) -> Vec<u8> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::none());
    gzip.write_all(bytes)
        .and_then(|()| gzip.finish())
        .expect("memory takes every byte")
}
