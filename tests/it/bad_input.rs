//! Bad input: an error of one line with the path and the fix, the documented exit code, and nothing written.

mod output;
mod usage;

use std::collections::BTreeSet;

use serde_json::Value;

use crate::support::run::{Copy, fixture, nicpin};
use crate::support::{is_full, temporary};
use nicpin::root::Root;

#[test]
fn proc_interrupts_empty_torn_or_missing() {
    let machine = Copy::of("two-node");
    let whole = machine.read("/proc/interrupts");
    machine.write("/proc/interrupts", "");
    machine.fails(
        &["apply"],
        1,
        &["/proc/interrupts: has no header line", "incomplete copy"],
    );
    let torn = whole.find("virtio0-input.2").unwrap() - 80;
    machine.write("/proc/interrupts", &format!("{}\n", &whole[..torn]));
    machine.fails(
        &["apply"],
        1,
        &["/proc/interrupts: line ", "counts for 8 CPUs", "run again"],
    );
    machine.remove("/proc/interrupts");
    machine.fails(
        &["apply"],
        1,
        &[
            "/proc/interrupts: no such file or directory (ENOENT)",
            "fix: mount /proc and /sys",
        ],
    );
}

/// Every line ends in a newline: a truncated name could be another vector's.
#[test]
fn proc_interrupts_cut_at_any_byte() {
    let machine = Copy::of("two-socket-mlx4");
    let root = Root::open(machine.dir()).unwrap();
    let whole = machine.read("/proc/interrupts");
    let header = whole.find('\n').unwrap() + 1;
    for cut in (0..whole.len()).step_by(if is_full() { 1 } else { 17 }) {
        machine.write("/proc/interrupts", &whole[..cut]);
        let between_rows = cut > header && whole[..cut].ends_with('\n');
        let read = nicpin::read::machine(&root, nicpin::read::ReadOptions::default())
            .map_err(|error| error.to_string());
        assert_eq!(read.is_ok(), between_rows, "{cut}: {read:?}");
    }
    let in_a_name = whole.find("mlx4-3@").unwrap();
    for (cut, has) in [
        (
            header - 9,
            "/proc/interrupts: ends within line 1; fix: run again",
        ),
        (header, "/proc/interrupts: has no row below its header"),
        (in_a_name + 4, "/proc/interrupts: ends within line "),
        (whole.len() - 1, "/proc/interrupts: ends within line "),
    ] {
        machine.write("/proc/interrupts", &whole[..cut]);
        for command in ["plan", "apply", "check"] {
            machine.fails(&[command], 1, &[has]);
        }
    }
}

#[test]
fn a_vector_without_files_is_named() {
    let machine = Copy::of("two-socket-mlx4");
    machine.remove("/proc/irq/73");
    let run = machine.nicpin(&["plan", "eth2", "--format", "json"]);
    let plan = run.json();
    let note = &plan["interfaces"][0]["notes"][0];
    assert_eq!((run.code, &note["code"]), (1, &"vectors-vanished".into()));
    let text = note["text"].as_str().unwrap();
    assert!(
        text.ends_with(": 73 (mlx4-3@0000:82:00.0)") && note["fix"] == "run again",
        "{text}"
    );
    for irq in [71, 72, 74, 75, 76] {
        machine.remove(&format!("/proc/irq/{irq}"));
    }
    assert_eq!(machine.nicpin(&["plan"]).code, 1);
    for args in [&["check"][..], &["check", "eth2"], &["apply"]] {
        let run = machine.nicpin(args);
        assert_eq!(run.code, 1, "{}", run.stdout);
        assert!(
            run.stdout.contains("none of its queue IRQs can be read"),
            "{args:?}: {}",
            run.stdout
        );
    }
}

#[test]
fn a_machine_without_proc_irq_is_planned_and_proves_nothing() {
    for (gone, code) in [("/proc", "no-proc"), ("/proc/irq", "no-proc-irq")] {
        let machine = Copy::of("two-socket-mlx4");
        machine.remove(gone);
        let run = machine.nicpin(&["plan", "--format", "json"]);
        let plan = run.json();
        assert_eq!((run.code, &plan["notes"][0]["code"]), (1, &code.into()));
        let table = machine.nicpin(&["plan"]).stdout;
        assert!(
            // Once: the note of the interfaces has the remedy, too.
            table.matches("below this root").count() == 1 && table.contains("Fix: mount"),
            "{table}"
        );
        assert!(!table.contains("has requested no queue IRQ"), "{table}");
        let run = machine.nicpin(&["check"]);
        assert_eq!(run.code, 1, "{}", run.stdout);
        assert!(
            run.stdout.contains("\neth2: unknown: ") && run.stdout.contains(gone),
            "{}",
            run.stdout
        );
        assert_eq!(machine.nicpin(&["check", "-q"]).code, 1);
        let has = [
            &*format!("{gone}: no such file or directory (ENOENT)"),
            "fix: mount /proc and /sys",
        ];
        machine.fails(&["apply"], 1, &has);
        machine.fails(&["apply", "eth2"], 1, &has);
        let capture = machine.path("/capture.tar.gz");
        let capture = ["capture", "-o", capture.to_str().unwrap()];
        let measure = ["measure", "--seconds", "0.01"];
        for (args, also) in [
            (&capture[..], "2 interfaces"),
            (&measure, "INTERFACE"),
            (
                &["run", "--dry-run", "eth2"],
                "6-11 (where interrupts go is not known)",
            ),
        ] {
            let run = machine.nicpin(args);
            assert_eq!(run.code, 1, "{args:?}: {}", run.stdout);
            assert!(run.stdout.contains(also), "{args:?}: {}", run.stdout);
            assert!(run.stderr.contains(has[0]), "{args:?}: {}", run.stderr);
        }
    }
}

#[test]
fn malformed_masks_and_lists() {
    let wider = format!("{}0\n", "00000000,".repeat(2048));
    for (path, text, has) in [
        (
            "/proc/irq/36/smp_affinity",
            "zz\n",
            "`zz` is not a CPU mask",
        ),
        ("/proc/irq/36/smp_affinity", "", "it is empty"),
        (
            "/proc/irq/36/smp_affinity",
            ",,,\n",
            "a group has no digits",
        ),
        (
            "/proc/irq/36/smp_affinity",
            "000000000f\n",
            "more than eight digits",
        ),
        (
            "/sys/class/net/nic0/queues/rx-0/rps_cpus",
            &wider,
            "wider than any kernel's",
        ),
        (
            "/proc/irq/36/effective_affinity_list",
            "0-\n",
            "`0-` is not a CPU list",
        ),
        (
            "/sys/class/net/nic0/queues/rx-0/rps_cpus",
            "0,000000000\n",
            "more than eight digits",
        ),
        (
            "/sys/class/net/nic0/queues/tx-0/xps_cpus",
            "0-3\n",
            "not a hex digit",
        ),
        (
            "/sys/devices/system/cpu/online",
            "0-4294967295\n",
            "`0-4294967295` is not a CPU list",
        ),
        (
            "/sys/devices/system/cpu/online",
            "\n",
            "lists no online CPU",
        ),
        (
            "/sys/devices/system/node/node0/distance",
            "10 far\n",
            "`far` is not a distance",
        ),
        (
            "/sys/devices/system/cpu/isolated",
            "x\n",
            "is not a CPU list",
        ),
    ] {
        let machine = Copy::of("two-node");
        machine.write(path, text);
        // The path may be named by the link that led there.
        let file = path.rsplit('/').next().unwrap();
        machine.fails(&["apply"], 1, &[file, has]);
        assert_eq!(machine.nicpin(&["check", "-q"]).code, 1);
    }
}

#[test]
fn flow_counts_are_read_by_what_plans_or_records_them() {
    let machine = Copy::of("two-node");
    machine.write("/sys/class/net/nic0/queues/rx-0/rps_flow_cnt", "many\n");
    for needs in [
        &["apply"][..],
        &["plan", "--rfs", "off"],
        &["check", "--rfs", "64"],
    ] {
        machine.fails(needs, 1, &["rps_flow_cnt", "`many` is not a number"]);
    }
    assert_eq!(machine.nicpin(&["plan"]).code, 0);
    std::fs::create_dir(machine.path("/etc")).unwrap();
    machine.write("/etc/nicpin.toml", "[defaults]\nrfs = 64\n");
    machine.fails(&["plan"], 1, &["rps_flow_cnt", "`many` is not a number"]);
}

#[test]
fn a_root_that_is_not_a_machine() {
    let empty = temporary();
    for (root, has) in [
        (
            empty.path().to_str().unwrap(),
            "sys/devices/system/cpu/online: no such file or directory (ENOENT)",
        ),
        ("/no/such/root", "/no/such/root: no such file or directory"),
        (
            env!("CARGO_BIN_EXE_nicpin"),
            "not a capture: it is not compressed with gzip",
        ),
        ("/dev/null", "name a directory or a capture with --root"),
    ] {
        let run = nicpin(&["plan", "--root", root]);
        assert_eq!((run.code, run.stdout.as_str()), (1, ""), "{root}");
        assert!(
            run.stderr.contains(has) && run.stderr.lines().count() == 1,
            "{}",
            run.stderr
        );
    }
}

/// Dumps of topologies have /sys only; those of some programs lack the files of the CPUs.
#[test]
fn dumps_made_by_other_programs_are_planned_from_the_files_they_have() {
    let machine = Copy::of("two-node");
    machine.remove("/proc");
    let run = machine.nicpin(&["plan"]);
    assert!(
        run.code == 1 && run.stdout.contains("no /proc below this root"),
        "{}{}",
        run.stdout,
        run.stderr
    );
    let machine = Copy::of("two-node");
    machine.remove("/sys/devices/system/cpu");
    machine.write("/sys/class/net/nic0/queues/tx-0/xps_cpus", "");
    let run = machine.nicpin(&["plan"]);
    assert!(
        run.code == 0 && run.stdout.contains(" node 1: CPUs 4-7 (4 cores)\n"),
        "{}{}",
        run.stdout,
        run.stderr
    );
}

#[test]
fn absent_optional_files_are_not_an_error() {
    for path in [
        "/sys/devices/system/cpu/possible",
        "/sys/devices/system/cpu/isolated",
        "/sys/devices/system/node/node1/distance",
        "/sys/devices/system/cpu/cpu0/topology",
        "/sys/devices/system/cpu/cpu0/cache",
        "/proc/irq/36/effective_affinity_list",
        "/proc/sys/net/core/rps_sock_flow_entries",
        "/sys/class/net/nic0/queues/rx-0/rps_flow_cnt",
        "/sys/class/net/nic0/queues/tx-0/xps_cpus",
        "/sys/class/net/nic0/operstate",
    ] {
        let machine = Copy::of("two-node");
        machine.remove(path);
        let run = machine.nicpin(&["plan", "nic0"]);
        assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{path}");
    }
}

#[test]
fn a_vector_or_queue_that_vanishes_leaves_the_others_to_be_planned() {
    let machine = Copy::of("two-node");
    machine.remove("/proc/irq/36");
    let run = machine.nicpin(&["apply", "nic0"]);
    assert_eq!(run.code, 1, "{}{}", run.stdout, run.stderr);
    assert_eq!(machine.read("/proc/irq/38/smp_affinity"), "04");
}

#[test]
fn without_numa_files_the_machine_is_one_node() {
    let machine = Copy::of("two-node");
    machine.remove("/sys/devices/system/node");
    let run = machine.nicpin(&["plan"]);
    assert!(
        run.code == 0
            && run
                .stdout
                .contains(" node 0 (the only one): CPUs 0-7 (8 cores)\n"),
        "{}{}",
        run.stdout,
        run.stderr
    );
}

#[test]
fn vectors_whose_queues_are_not_known_are_placed_as_data() {
    let machine = Copy::of("two-socket-mlx4");
    let odd = machine.read("/proc/interrupts").replace("mlx4-", "acme-");
    machine.write("/proc/interrupts", &odd);
    let before = machine.texts();
    let plan = machine.nicpin(&["plan", "--json", "eth2"]).json();
    let eth2 = &plan["interfaces"][0];
    let vectors = eth2["vectors"].as_array().unwrap();
    assert!(vectors.len() > 4);
    let mut cpus = BTreeSet::new();
    for vector in vectors {
        assert_eq!(
            (&vector["role"], &vector["queue"]),
            (&"data".into(), &Value::Null)
        );
        let cpu: u32 = vector["cpus"].as_str().unwrap().parse().unwrap();
        assert!((6..12).contains(&cpu), "on its node: {vector}");
        cpus.insert(cpu);
    }
    // Six cores: each has one before any has two.
    assert_eq!(cpus.len(), vectors.len().min(6));
    for queue in eth2["tx_queues"].as_array().unwrap() {
        assert_eq!(queue["xps_cpus"], Value::Null, "{queue}");
    }
    assert_eq!(eth2["notes"][0]["code"], "data-vectors");
    let run = machine.nicpin(&["apply", "eth2"]);
    assert!(
        run.code == 0 && run.stdout.contains("acme-1@0000:82:00.0"),
        "{}",
        run.stdout
    );
    assert_eq!(machine.nicpin(&["check", "eth2"]).code, 0);
    // A stored plan finds each of them again, after a boot as now.
    let planned = machine.nicpin(&["plan", "--json", "eth2"]).stdout;
    machine.write("/plan.json", &planned);
    let file = machine.path("/plan.json");
    let again = machine.nicpin(&["apply", "--json", "--plan", file.to_str().unwrap()]);
    assert_eq!(again.code, 0, "{again:?}");
    assert_eq!(again.json()["changed"], 0);
    machine.remove("/plan.json");
    assert_eq!(machine.nicpin(&["restore"]).code, 0);
    assert!(machine.texts() == before);
}

/// openat2(2) with `RESOLVE_IN_ROOT` fails with EAGAIN if anything is renamed while it resolves `..` in a link.
#[test]
fn renames_elsewhere_do_not_disturb_reading_a_tree() {
    let dir = temporary();
    let names = ["a", "b"].map(|name| dir.path().join(name));
    std::fs::write(&names[0], "").unwrap();
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                std::fs::rename(&names[0], &names[1]).unwrap();
                std::fs::rename(&names[1], &names[0]).unwrap();
            }
        });
        let root = nicpin::root::Root::open(&fixture("dl980")).unwrap();
        let read = (0..20_000).map(|_| root.read("/sys/class/net/eth3/dev_port"));
        let failed = read
            .filter_map(Result::err)
            .map(|error| error.to_string())
            .next();
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        assert_eq!(failed, None);
    });
}

/// Wireless drivers answer EINVAL for a speed; in a tree that was copied with cat(1) the file is empty.
#[test]
fn an_empty_speed_is_an_unknown_one() {
    let machine = Copy::of("two-node");
    machine.write(
        "/sys/devices/pci0000:20/0000:20:00.0/0000:21:00.0/virtio1/net/nic0/speed",
        "",
    );
    let run = machine.nicpin(&["plan", "nic0", "--json"]);
    let plan = run.json();
    assert_eq!(
        (run.code, &plan["interfaces"][0]["speed_mbps"]),
        (0, &serde_json::Value::Null),
        "{}",
        run.stderr
    );
}
