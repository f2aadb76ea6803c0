//! Restoring works whatever else happens on the machine: processes that end, other users, hidden directories.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::rc::Rc;

use nix::errno::Errno;
use snapbox::{assert_data_eq, str};

use crate::support::machine::{Card, Port, card, cpus, two_nodes};
use crate::support::run::{MachineTree, assert_line, document, expect, good};
use crate::support::tree::read;
use crate::support::trial::{waits_for_the_lock, watched_to_the_end, watcher};
use crate::support::two_node::planned_for;
use nicpin::apply::{self, ApplyError, Options};
use nicpin::report::outcome::{Outcome, WriteResult};
use nicpin::root::Root;
use nicpin::root::faults::{FileAction, InjectedAnswer};

/// Reading the state of a process that ends meanwhile answers ESRCH.
#[test]
fn a_process_that_ends_keeps_nothing_from_being_restored() {
    let machine = MachineTree::of("two-node");
    std::fs::create_dir_all(machine.path("/proc/4711")).unwrap();
    machine.write(
        "/proc/4711/stat",
        "4711 (sh) S 1 4711 4711 0 -1 4194304 0 0 0 0 0 0 0 0 20 0 1 0 100\n",
    );
    let before = machine.texts();
    for on_trial in [false, true] {
        let seconds: &[&str] = if on_trial { &["--try", "3600"] } else { &[] };
        good(&machine, &[&["apply"], seconds].concat());
        let root = machine.refusing(Errno::ESRCH, |access| {
            access.action == FileAction::Read && access.path.starts_with("/proc/4711/")
        });
        let wait = Options::default().wait;
        let restored = if on_trial {
            apply::end_trial(&root, wait)
        } else {
            apply::restore(&root, wait)
        };
        assert!(restored.unwrap().unwrap().complete());
        assert_eq!(machine.texts(), before);
    }
}

/// A restore where nicpin never ran leaves nothing behind; a card that is away is restored when it is back.
#[test]
fn what_is_away_is_restored_later() {
    let machine = MachineTree::of("two-node");
    let before = machine.texts();
    good(&machine, &["restore"]);
    assert!(!machine.path("/run/nicpin").exists());
    good(&machine, &["apply"]);
    let (card, away) = (machine.path("/sys/class/net/nic0"), machine.path("/away"));
    std::fs::rename(&card, &away).unwrap();
    machine.nicpin(&["restore"]);
    std::fs::rename(&away, &card).unwrap();
    assert_ne!(machine.texts(), before);
    good(&machine, &["restore"]);
    assert_eq!(machine.texts(), before);
}

/// A lock on a file needs no more than to open it for reading.
#[test]
fn other_users_cannot_hold_the_locks() {
    let machine = MachineTree::of("two-node");
    std::fs::create_dir_all(machine.path("/run/nicpin")).unwrap();
    machine.write("/run/nicpin/lock", "");
    machine.set_mode("/run/nicpin/lock", 0o644);
    good(&machine, &["apply", "--try", "3600"]);
    assert_eq!(
        (
            machine.mode("/run/nicpin/lock"),
            machine.mode("/run/nicpin/try.lock")
        ),
        (0o600, 0o600)
    );
    // Others may see what was recorded.
    assert_eq!(machine.mode("/run/nicpin/state.json"), 0o644);
    good(&machine, &["restore"]);
}

/// In a container `/proc/irq` is often masked: that is no device that was removed.
#[test]
fn a_restore_that_sees_no_vectors_or_interfaces_fails_and_keeps_the_record() {
    let mut said = String::new();
    for (hidden, leaves_empty) in [
        ("/proc/irq", false),
        ("/proc/irq", true),
        ("/proc", false),
        ("/sys/class/net", false),
    ] {
        let machine = MachineTree::of("two-node");
        let before = machine.texts();
        good(&machine, &["apply"]);
        let record = machine.read("/run/nicpin/state.json");
        std::fs::rename(machine.path(hidden), machine.path("/hidden")).unwrap();
        if leaves_empty {
            std::fs::create_dir(machine.path(hidden)).unwrap();
        }
        let apply = machine.nicpin(&["apply"]);
        let restore = machine.nicpin(&["restore"]);
        if hidden != "/sys/class/net" {
            assert_eq!(
                (apply.code, &apply.stderr),
                (1, &restore.stderr),
                "{hidden}: {}",
                apply.stdout
            );
        }
        assert_eq!((restore.code, restore.stdout.as_str()), (1, ""), "{hidden}");
        said += &machine.rooted(&restore.stderr);
        assert_eq!(machine.read("/run/nicpin/state.json"), record, "{hidden}");
        if leaves_empty {
            machine.remove(hidden);
        }
        std::fs::rename(machine.path("/hidden"), machine.path(hidden)).unwrap();
        good(&machine, &["restore"]);
        assert_eq!(machine.texts(), before);
    }
    assert_data_eq!(
        said,
        str![[r"
nicpin: ROOT/proc/irq: no such file or directory (ENOENT); fix: mount /proc and /sys, or name the root of a machine that has them
nicpin: ROOT/proc/irq: is empty, as in a container that masks it; fix: run on the host
nicpin: ROOT/proc: no such file or directory (ENOENT); fix: mount /proc and /sys, or name the root of a machine that has them
nicpin: ROOT/sys/class/net: no such file or directory (ENOENT); fix: mount /proc and /sys, or name the root of a machine that has them

"]]
    );
}

/// The watcher of a trial waits for whoever holds the lock.
#[test]
fn a_trial_waits_for_the_lock() {
    let machine = MachineTree::of("two-node");
    let before = machine.texts();
    good(&machine, &["apply", "--try", "1"]);
    let lock = std::fs::File::options()
        .read(true)
        .write(true)
        .open(machine.path("/run/nicpin/lock"))
        .unwrap();
    assert!(nicpin::root::sys::try_lock(&lock).unwrap());
    waits_for_the_lock(&machine, watcher(&machine).as_raw().try_into().unwrap());
    assert_ne!(machine.texts(), before);
    drop(lock);
    watched_to_the_end(&machine);
    assert_eq!(machine.texts(), before);
}

/// An interface's link is no reason to leave its settings, and those of all others, as they are.
#[test]
fn what_only_planning_reads_keeps_nothing_from_being_restored() {
    const FACTS: [&str; 9] = [
        "/mtu",
        "/speed",
        "/operstate",
        "/gro_flush_timeout",
        "/napi_defer_hard_irqs",
        "/max_link_speed",
        "/current_link_width",
        "/eth0/driver",
        "/link-modes",
    ];
    for trial in [false, true] {
        let machine = MachineTree::of("dl980");
        let before = machine.texts();
        let args: &[&str] = if trial { &["--try", "3600"] } else { &[] };
        good(&machine, &[&["apply"], args].concat());
        let root = machine.refusing(Errno::EIO, |access| {
            access.action == FileAction::Read
                && FACTS.iter().any(|fact| access.path.ends_with(fact))
        });
        let end = if trial {
            apply::end_trial
        } else {
            apply::restore
        };
        let restored = end(&root, Options::default().wait).unwrap().unwrap();
        assert!(restored.complete(), "{restored:?}");
        assert_eq!(machine.texts(), before);
    }
}

/// Interfaces with the number 0 of one device: two whose driver names the port, and others whose driver names none, of which `eth2` was there first.
#[test]
fn interfaces_with_the_same_port_are_restored_each_to_its_own() {
    let names = ["eth0", "eth1", "eth2", "eth3"];
    let ports = names.map(|name| Port::new(name, 25_000, 2, 2).xps([vec![0, 1], vec![2, 3]]));
    let mut card = card(
        "mlx5_core",
        ports[0].clone(),
        60,
        &["mlx5_comp0", "mlx5_comp1"],
    );
    card.ports = ports.to_vec();
    let tree = MachineTree::build(&two_nodes([card]));
    let net = "sys/devices/pci0000:00/0000:00:02.0/0000:82:00.0/net";
    let cpus = |of: &str| format!("{net}/{of}/queues/tx-0/xps_cpus");
    let before = ["01", "02", "04", "08"];
    let shown = [("", "6"), ("p0", "7"), ("", "5"), ("p1", "8")];
    for ((of, mask), (port, index)) in names.into_iter().zip(before).zip(shown) {
        tree.put(&cpus(of), mask);
        for (file, text) in [
            ("dev_port", "0"),
            ("phys_port_name", port),
            ("ifindex", index),
        ] {
            tree.put(&format!("{net}/{of}/{file}"), text);
        }
    }
    assert_eq!(tree.nicpin(&["apply"]).code, 0);
    let record = read(tree.dir(), "run/nicpin/state.json");
    for port in ["0.1", "p0", "0", "p1"] {
        let key = format!("\"0000:82:00.0 port {port} tx-0 xps_cpus\"");
        assert!(record.contains(&key), "{key}: {record}");
    }
    assert_eq!(tree.nicpin(&["restore"]).code, 0);
    assert_eq!(names.map(|of| read(tree.dir(), &cpus(of))), before);
    // The names change meanwhile, and an earlier version recorded the younger one by its name.
    let rename = |from: &str, to: &str| {
        std::fs::rename(
            tree.path(&format!("/{net}/{from}")),
            tree.path(&format!("/{net}/{to}")),
        )
        .unwrap();
        tree.remove(&format!("/sys/class/net/{from}"));
        tree.link(
            &format!("sys/class/net/{to}"),
            &format!("../../{}/{to}", &net[4..]),
        );
    };
    assert_eq!(tree.nicpin(&["apply"]).code, 0);
    rename("eth0", "lan0");
    assert_eq!(tree.nicpin(&["restore"]).code, 0);
    assert_eq!(read(tree.dir(), &cpus("lan0")), before[0]);
    rename("lan0", "eth0");
    std::fs::write(
        tree.path("/run/nicpin/state.json"),
        record.replace("port 0.1 ", "port eth0 "),
    )
    .unwrap();
    assert_eq!(tree.nicpin(&["apply"]).code, 0);
    assert_eq!(tree.nicpin(&["restore"]).code, 0);
    assert_eq!(names.map(|of| read(tree.dir(), &cpus(of))), before);
}

/// Netlink and a name that disagree leave two vectors with one queue.
#[test]
fn vectors_with_the_same_queue_are_restored_each_to_its_own() {
    let port = Port::new("eth0", 25_000, 2, 2);
    let names = ["eth0-TxRx-0", "eth0-TxRx-1"];
    let tree = MachineTree::build(&two_nodes([card("ixgbe", port, 60, &names)]));
    let answer = r#"{"queues":[{"direction":"rx","id":1,"napi":1},{"direction":"tx","id":1,"napi":1}],
        "napis":[{"id":1,"irq":60}]}"#;
    tree.put("nicpin/netlink/eth0", answer);
    let affinity = |irq: u32| format!("proc/irq/{irq}/smp_affinity");
    tree.put(&affinity(60), "10");
    tree.put(&affinity(61), "20");
    assert_eq!(tree.nicpin(&["apply"]).code, 0);
    assert_eq!(tree.nicpin(&["restore"]).code, 0);
    let restored = [60, 61].map(|irq| read(tree.dir(), &affinity(irq)));
    assert_eq!(restored, ["10", "20"]);
}

/// A row of the policy that named the queues the wrong way round.
#[test]
fn vectors_whose_queues_change_places_keep_their_original_settings() {
    let port = Port::new("eth0", 25_000, 2, 2);
    let names = ["a0", "a1", "b0", "b1"];
    let tree = MachineTree::build(&two_nodes([card("acme", port, 60, &names)]));
    let affinity = |irq: u32| format!("proc/irq/{irq}/smp_affinity");
    let before = ["01", "02", "04", "08"];
    for (irq, mask) in (60..).zip(before) {
        tree.put(&affinity(irq), mask);
    }
    for (a, b) in [("rx", "tx"), ("tx", "rx")] {
        let row = format!("[[driver]]\nname = 'acme'\nirqs = ['a{{n}} = {a}', 'b{{n}} = {b}']\n");
        tree.put("etc/nicpin.toml", &row);
        assert_eq!(tree.nicpin(&["apply"]).code, 0);
    }
    assert_eq!(tree.nicpin(&["restore"]).code, 0);
    let restored = [60, 61, 62, 63].map(|irq| read(tree.dir(), &affinity(irq)));
    assert_eq!(restored, before);
}

/// Two cards on one line, the second applied when the line had what was planned for the first.
#[test]
fn an_irq_of_two_interfaces_has_one_original_setting() {
    let line = |name: &str, address: &str| {
        let mut card = Card::new(
            "r8169",
            &format!("pci0000:c0/0000:c0:0{}.0", &address[6..7]),
            address,
            1,
            "2.5 GT/s PCIe",
            1,
        );
        card.msi = false;
        card.vectors(16, ["eth0, eth1"], &cpus("0-7"), &[0])
            .port(Port::new(name, 1000, 1, 1))
    };
    let tree = MachineTree::build(&two_nodes([
        line("eth0", "0000:c1:00.0"),
        line("eth1", "0000:c2:00.0"),
    ]));
    let affinity = || read(tree.dir(), "proc/irq/16/smp_affinity");
    let before = affinity();
    for args in [
        &["apply", "eth0"][..],
        &["apply", "eth1"],
        &["apply", "--exclude", "4"],
    ] {
        assert_eq!(tree.nicpin(args).code, 0, "{args:?}");
    }
    assert_ne!(affinity(), before);
    assert_eq!(tree.nicpin(&["restore"]).code, 0);
    assert_eq!(affinity(), before);
}

/// One thread that receives and one that transmits, on one IRQ.
#[test]
fn threads_of_one_vector_are_restored_each_to_its_own() {
    let port = Port::new("eth0", 25_000, 1, 1);
    let tree = MachineTree::build(&two_nodes([card("ixgbe", port, 60, &["eth0-TxRx-0"])]));
    let answer = r#"{"queues":[{"direction":"rx","id":0,"napi":1},{"direction":"tx","id":0,"napi":2}],
        "napis":[{"id":1,"irq":60,"pid":100},{"id":2,"irq":60,"pid":101}]}"#;
    tree.put("nicpin/netlink/eth0", answer);
    let file = "nicpin/threads/eth0";
    let threads = r#"[{"pid":100,"napi":1,"affinity":"0f"},{"pid":101,"napi":2,"affinity":"f0"}]"#;
    tree.put(file, threads);
    assert_eq!(tree.nicpin(&["apply"]).code, 0);
    assert_ne!(read(tree.dir(), file), threads);
    assert_eq!(tree.nicpin(&["restore"]).code, 0);
    assert_eq!(read(tree.dir(), file), threads);
}

const DEVICES: [&str; 2] = [
    "/sys/devices/pci0000:20/0000:20:00.0/0000:21:00.0/virtio2/net",
    "/sys/devices/pci0000:40/0000:40:00.0/0000:41:00.0/net",
];

/// Gives each of two interfaces the name of the other one.
fn swap_names(root: &Path) {
    let names = ["nic0", "nic1"];
    let path = |path: String| root.join(path.trim_start_matches('/'));
    for device in DEVICES {
        let [from, to] = if path(format!("{device}/nic0")).exists() {
            names
        } else {
            [names[1], names[0]]
        };
        std::fs::rename(
            path(format!("{device}/{from}")),
            path(format!("{device}/{to}")),
        )
        .unwrap();
        let link = path(format!("/sys/class/net/{to}"));
        std::fs::remove_file(&link).unwrap();
        std::os::unix::fs::symlink(format!("../../..{device}/{to}"), link).unwrap();
    }
}

/// The settings of both devices, whatever their names are.
fn by_device(machine: &MachineTree) -> BTreeMap<String, String> {
    let is_setting = |path: &str| path.contains("/queues/") || path.ends_with("/smp_affinity");
    let settings = machine
        .texts()
        .into_iter()
        .filter(|(path, _)| is_setting(path));
    settings
        .map(|(path, text)| (path.replace("/nic1/", "/nic0/"), text))
        .collect()
}

/// At whichever step of a restore the names are swapped, each device gets its own settings, at the latest when the
/// record says so; and no other device gets them.
#[test]
fn names_that_are_swapped_during_a_restore() {
    let machine = MachineTree::of("four-node");
    for queue in 0..8 {
        machine.write(
            &format!("{}/nic1/queues/tx-{queue}/xps_cpus", DEVICES[1]),
            "00ff\n",
        );
        machine.write(
            &format!("{}/nic1/queues/rx-{queue}/rps_cpus", DEVICES[1]),
            "ff00\n",
        );
    }
    let before = by_device(&machine);
    let swapped_at = |step: usize| {
        let (seen, top) = (Rc::new(Cell::new(0)), machine.path("/"));
        let steps = Rc::clone(&seen);
        let root = Root::open_with_faults(machine.dir(), move |_| {
            if seen.replace(seen.get() + 1) == step {
                swap_names(&top);
            }
            InjectedAnswer::Done
        });
        (root.unwrap(), steps)
    };
    let mut step = 0;
    loop {
        good(&machine, &["apply", "pci:0000:21:00.0"]);
        let (root, steps) = swapped_at(step);
        let restored = apply::restore(&root, Options::default().wait)
            .unwrap()
            .unwrap();
        if restored.absent.is_empty() {
            assert!(restored.complete(), "{step}: {restored:?}");
            assert!(!machine.path("/run/nicpin/state.json").exists(), "{step}");
        } else {
            good(&machine, &["restore"]);
        }
        assert_eq!(by_device(&machine), before, "{step}");
        if step > steps.get() {
            break;
        }
        step += 29;
    }
    assert!(step > 100, "{step}");
}

/// An interface without a name when the queues of all names are noted is read under one, and has lost it to another
/// interface when its settings are written.
#[test]
fn a_name_that_comes_and_goes_during_a_restore() {
    let machine = MachineTree::of("four-node");
    let device = "/sys/devices/pci0000:60/0000:60:00.0/0000:61:00.0/net";
    let xps = |queue: u32| format!("{device}/nic2/queues/tx-{queue}/xps_cpus");
    (0..8).for_each(|queue| machine.write(&xps(queue), "00ff\n"));
    let before = by_device(&machine);
    good(&machine, &["apply", "nic1", "nic2"]);
    let [named, nameless] = ["nic2", "away"].map(|name| machine.path(&format!("{device}/{name}")));
    let link = machine.path("/sys/class/net/nic2");
    let lead_to = |link: &Path, target: String| {
        std::fs::remove_file(link).unwrap();
        std::os::unix::fs::symlink(format!("../../..{target}"), link).unwrap();
    };
    std::fs::rename(&named, &nameless).unwrap();
    let (step, paths) = (
        Cell::new(0),
        [nameless.clone(), named.clone(), link.clone()],
    );
    let root = Root::open_with_faults(machine.dir(), move |access| {
        let is_next = match step.get() {
            0 => access.path.starts_with("/sys/class/net/nic1/"),
            1 => access.path.starts_with("/proc/irq/"),
            2 => access.action == FileAction::Write,
            _ => false,
        };
        let [nameless, named, link] = &paths;
        match step.replace(step.get() + usize::from(is_next)) {
            0 if is_next => std::fs::rename(nameless, named).unwrap(),
            1 if is_next => std::fs::rename(named, nameless).unwrap(),
            2 if is_next => lead_to(link, format!("{}/nic1", DEVICES[1])),
            _ => {}
        }
        InjectedAnswer::Done
    });
    apply::restore(&root.unwrap(), Options::default().wait).unwrap();
    std::fs::rename(&nameless, &named).unwrap();
    lead_to(&link, format!("{device}/nic2"));
    good(&machine, &["restore"]);
    assert_eq!(by_device(&machine), before);
}

/// The plan is for the device that had the name when the machine was read.
#[test]
fn names_that_are_swapped_before_an_apply_writes() {
    let machine = MachineTree::of("four-node");
    let before = by_device(&machine);
    let root = Root::open(machine.dir()).unwrap();
    let done = apply::apply(&root, Options::default(), |root| {
        let planned = planned_for(root, &["nic0"])?;
        swap_names(machine.dir());
        Ok::<_, ApplyError>(planned)
    });
    let error = done.unwrap_err().to_string();
    assert_line(
        machine.rooted(&error),
        str![[r"
ROOT/sys/class/net/nic0/queues: stale file handle (ESTALE); the interface was renamed meanwhile; fix: run again

"]],
    );
    assert_eq!(by_device(&machine), before);
    good(&machine, &["apply", "nic0"]);
}

/// The planned interface has no name for a moment, and another one gets the one that it had.
#[test]
fn a_name_that_another_interface_gets_while_an_apply_writes() {
    let machine = MachineTree::of("four-node");
    let before = by_device(&machine);
    let (top, step) = (machine.path("/"), Cell::new(0));
    let link = machine.path("/sys/class/net/nic1");
    let root = Root::open_with_faults(&top, move |access| {
        if access.action == FileAction::Write && step.replace(step.get() + 1) == 0 {
            let nic2 = std::fs::read_link(link.with_file_name("nic2")).unwrap();
            std::os::unix::fs::symlink(nic2, &link).unwrap();
        }
        InjectedAnswer::Done
    });
    let done = apply::apply(&root.unwrap(), Options::default(), |root| {
        let planned = planned_for(root, &["nic1"])?;
        std::fs::remove_file(top.join("sys/class/net/nic1")).unwrap();
        Ok::<_, ApplyError>(planned)
    });
    assert!(done.unwrap().failed());
    let is_queue = |(path, _): &(&String, _)| path.contains("/queues/");
    let (before, now) = (before.iter(), by_device(&machine));
    assert!(before.filter(is_queue).eq(now.iter().filter(is_queue)));
}

/// As by `ethtool -L` of two cards, or of one: the IRQ of a queue is that of the link now.
#[test]
fn an_irq_number_that_another_handler_gets_before_an_apply_writes() {
    for handler in ["nvme0q1", "nic1"] {
        let machine = MachineTree::of("four-node");
        let affinity = "/proc/irq/60/smp_affinity";
        let first = machine.read(affinity);
        let root = Root::open(machine.dir()).unwrap();
        let done = apply::apply(&root, Options::default(), |root| {
            let planned = planned_for(root, &["nic1"])?;
            std::fs::create_dir_all(machine.path("/sys/kernel/irq/60")).unwrap();
            machine.write("/sys/kernel/irq/60/actions", &format!("{handler}\n"));
            Ok::<_, ApplyError>(planned)
        })
        .unwrap();
        let result = done.results.iter().find(|result| result.number == 60);
        assert_eq!(result.unwrap().outcome, Outcome::Vanished, "{handler}");
        assert_eq!(machine.read(affinity), first, "{handler}");
        let others = done.results.iter().filter(|result| result.number != 60);
        assert!(others.clone().count() > 1 && !others.clone().any(WriteResult::failed));
    }
}

/// The number of a vector that was read may have another IRQ when it is recorded: it is no sign that the first one is
/// only named otherwise now.
#[test]
fn an_irq_that_is_made_anew_between_reading_and_recording() {
    let machine = MachineTree::of("four-node");
    let affinity = "/proc/irq/60/smp_affinity";
    let (first, interrupts) = (machine.read(affinity), machine.read("/proc/interrupts"));
    let root = Root::open(machine.dir()).unwrap();
    apply::apply(&root, Options::default(), |root| {
        let planned = planned_for(root, &["nic1"])?;
        let anew = interrupts.replace("nic1-TxRx-1", "nic1-rx-1");
        machine.write("/proc/interrupts", &anew);
        Ok::<_, ApplyError>(planned)
    })
    .unwrap();
    assert_ne!(machine.read(affinity), first);
    good(&machine, &["apply", "nic1"]);
    machine.write("/proc/interrupts", &interrupts);
    machine.nicpin(&["restore"]);
    assert_eq!(machine.read(affinity).trim(), first.trim());
}

/// While a driver makes its queues anew, netlink and the names of IRQs may be of different moments.
#[test]
fn a_moment_in_which_netlink_and_names_disagree_changes_no_first_setting() {
    let machine = MachineTree::of("four-node");
    machine.write("/proc/irq/60/smp_affinity", "0010\n");
    machine.write("/proc/irq/61/smp_affinity", "0020\n");
    let before = machine.texts();
    good(&machine, &["apply", "nic1"]);
    let swapped = |irq: u32| match irq {
        60 | 61 => 121 - irq,
        _ => irq,
    };
    let queues = (0..8).flat_map(|queue| ["rx", "tx"].map(|way| (way, queue, swapped(59 + queue))));
    let reported = Port::new("nic1", -1, 8, 8).netlink(&queues.collect::<Vec<_>>());
    machine.put("nicpin/netlink/nic1", &reported.netlink);
    good(&machine, &["apply", "nic1"]);
    machine.remove("/nicpin/netlink/nic1");
    good(&machine, &["restore"]);
    assert_eq!(machine.texts(), before);
}

/// A host of containers has many interfaces without a device.
#[test]
fn more_interfaces_than_a_process_may_have_open_files() {
    let machine = MachineTree::of("two-node");
    let before = by_device(&machine);
    for veth in 0..50 {
        let queue = machine.path(&format!("/sys/class/net/veth{veth}/queues/rx-0"));
        std::fs::create_dir_all(queue).unwrap();
    }
    good(&machine, &["apply"]);
    let restore = "ulimit -n 32; exec \"$0\" restore --root \"$1\"";
    let output = Command::new("sh")
        .args(["-c", restore, env!("CARGO_BIN_EXE_nicpin")])
        .arg(machine.path("/"))
        .output();
    let output = output.unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(by_device(&machine), before);
}

/// `restore --dry-run` names what restore then writes, and writes nothing itself.
#[test]
fn a_dry_run_of_restore_names_what_restore_writes() {
    let machine = MachineTree::of("two-node");
    let dry = ["--dry-run", "-n"].map(|option| good(&machine, &["apply", option]));
    assert_eq!(dry[0], dry[1]);
    let paths = |args: &[&str], key: &str| -> Vec<String> {
        let report = document(&machine, args);
        let path = |entry: &serde_json::Value| entry["path"].as_str().unwrap().to_owned();
        report[key].as_array().unwrap().iter().map(path).collect()
    };
    let dry_run = ["restore", "--dry-run"];
    let untouched = machine.texts();
    assert_eq!(paths(&dry_run, "writes"), Vec::<String>::new());
    assert_data_eq!(
        good(&machine, &dry_run),
        str!["Nothing to restore: there is no record of an apply"]
    );
    assert_eq!(machine.texts(), untouched);
    good(&machine, &["apply"]);
    let applied = machine.texts();
    let dry = paths(&dry_run, "writes");
    // What is absent is no error.
    let [here, away] = ["/sys/class/net/nic0", "/nic0"].map(|path| machine.path(path));
    std::fs::rename(&here, &away).unwrap();
    let quiet = machine.nicpin(&["restore", "-n", "-q"]);
    assert_eq!((quiet.code, &*quiet.stderr), (0, ""));
    std::fs::rename(&away, &here).unwrap();
    let table = machine.nicpin(&["restore", "-n"]).stdout;
    assert_eq!(machine.texts(), applied);
    let restored = paths(&["restore"], "results");
    assert!(!dry.is_empty());
    assert_eq!(dry, restored);
    expect("dry-run.restore.txt", table);
    assert_eq!(paths(&dry_run, "writes"), Vec::<String>::new());
}

/// A run that is killed while it writes leaves a file, which the next one removes. That of a run that is still there stays.
#[test]
fn files_of_killed_runs_are_removed() {
    let machine = MachineTree::of("two-node");
    assert_eq!(machine.nicpin(&["apply"]).code, 0);
    let report = machine.path("/metrics.prom");
    // No process has a number beyond the kernel's limit.
    let (ended, runs) = (4_194_305, std::process::id());
    let left = |pid: u32| {
        [
            machine.path(&format!("/run/nicpin/.state.json.{pid}")),
            machine.path(&format!("/metrics.prom.{pid}.new")),
        ]
    };
    let others = ["/run/nicpin/.state.json.x", "/metrics.prom.new"].map(|path| machine.path(path));
    for path in left(ended).iter().chain(&left(runs)).chain(&others) {
        std::fs::write(path, "half").unwrap();
    }
    machine.write("/proc/irq/29/smp_affinity", "01\n");
    assert_eq!(machine.nicpin(&["apply", "--scope", "all"]).code, 0);
    let report = report.to_str().unwrap();
    let check = ["check", "--format", "prometheus", "--output", report];
    assert_ne!(machine.nicpin(&check).code, 1);
    assert!(left(ended).iter().all(|path| !path.exists()));
    assert!(left(runs).iter().chain(&others).all(|path| path.exists()));
}

/// What somebody has written into the record is not printed as a whole.
#[test]
fn long_values_of_the_record_are_cut() {
    let machine = MachineTree::of("two-node");
    good(&machine, &["apply"]);
    let record = machine.read("/run/nicpin/state.json");
    let mut record: serde_json::Value = serde_json::from_str(&record).unwrap();
    for value in record["first_seen"].as_object_mut().unwrap().values_mut() {
        *value = format!("{}{}", value.as_str().unwrap(), "x".repeat(20_000)).into();
    }
    machine.write("/run/nicpin/state.json", &record.to_string());
    for args in [&["restore", "--dry-run"][..], &["restore"]] {
        let run = machine.nicpin(args);
        let longest = (run.stdout.lines().chain(run.stderr.lines())).map(str::len);
        assert!(longest.max().unwrap() < 9000, "{args:?}: {}", run.stdout);
    }
    let run = machine.nicpin(&["restore"]);
    let most = run.stdout.matches('x').count();
    assert!(
        run.code == 1 && run.stdout.contains("xx..."),
        "{}",
        run.stdout
    );
    assert!(
        most < 250 * run.stdout.matches("xx...").count(),
        "{}",
        run.stdout
    );
}
