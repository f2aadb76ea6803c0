//! Bad input: an error of one line with the path and the fix, the documented exit code, and nothing written.

mod output;
mod usage;

use std::collections::BTreeSet;

use serde_json::{Value, json};
use snapbox::{assert_data_eq, str};

use crate::support::run::{
    MachineTree, assert_line, document, expect, fixture, nicpin, note, text,
};
use crate::support::{is_full, temporary};
use nicpin::root::Root;

#[test]
fn proc_interrupts_empty_torn_or_missing() {
    let machine = MachineTree::of("two-node");
    let whole = machine.read("/proc/interrupts");
    machine.write("/proc/interrupts", "");
    let empty = machine.fails(&["apply"], 1);
    let torn = whole.find("virtio0-input.2").unwrap() - 80;
    machine.write("/proc/interrupts", &format!("{}\n", &whole[..torn]));
    let torn = machine.fails(&["apply"], 1);
    machine.remove("/proc/interrupts");
    let missing = machine.fails(&["apply"], 1);
    assert_data_eq!(
        [empty, torn, missing].concat(),
        str![[r"
nicpin: ROOT/proc/interrupts: is empty, as in a container that masks it; fix: run on the host
nicpin: ROOT/proc/interrupts: line 16 has 4 counts for 8 CPUs; a CPU changed state while the file was read; fix: run again
nicpin: ROOT/proc/interrupts: no such file or directory (ENOENT); fix: mount /proc and /sys, or name the root of a machine that has them

"]]
    );
}

/// Every line ends in a newline: a truncated name could be another vector's.
#[test]
fn proc_interrupts_cut_at_any_byte() {
    let machine = MachineTree::of("two-socket-mlx4");
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
    let said = [header - 9, header, in_a_name + 4, whole.len() - 1].map(|cut| {
        machine.write("/proc/interrupts", &whole[..cut]);
        let [plan, apply, check] =
            ["plan", "apply", "check"].map(|command| machine.fails(&[command], 1));
        assert_eq!((&plan, &plan), (&apply, &check));
        plan
    });
    assert_data_eq!(
        said.concat(),
        str![[r"
nicpin: ROOT/proc/interrupts: ends within line 1; fix: run again, or copy /proc again if it is a copy
nicpin: ROOT/proc/interrupts: has no row below its header; is /proc an incomplete copy?
nicpin: ROOT/proc/interrupts: ends within line 12; fix: run again, or copy /proc again if it is a copy
nicpin: ROOT/proc/interrupts: ends within line 19; fix: run again, or copy /proc again if it is a copy

"]]
    );
}

#[test]
fn a_vector_without_files_is_named() {
    let machine = MachineTree::of("two-socket-mlx4");
    machine.remove("/proc/irq/73");
    let run = machine.nicpin(&["plan", "eth2", "--format", "json"]);
    let plan = run.json();
    let vanished = note(&plan["interfaces"][0], "vectors-vanished");
    assert_eq!((run.code, &vanished["fix"]), (1, &"run again".into()));
    assert_line(
        text(vanished, "text"),
        str![[r"
IRQs vanished while they were read, or have no files in /proc/irq: 73 (mlx4-3@0000:82:00.0)

"]],
    );
    for irq in [71, 72, 74, 75, 76] {
        machine.remove(&format!("/proc/irq/{irq}"));
    }
    assert_eq!(machine.nicpin(&["plan"]).code, 1);
    for args in [&["check"][..], &["check", "eth2"], &["apply"]] {
        let run = machine.nicpin(&[args, &["--json"]].concat());
        let unknown = &run.json()["unknown"][0];
        assert_eq!(
            (run.code, [&unknown["interface"], &unknown["code"]]),
            (1, [&"eth2".into(), &"vectors-unreadable".into()])
        );
    }
}

#[test]
fn a_machine_without_proc_irq_is_planned_and_proves_nothing() {
    for (gone, code) in [("/proc", "no-proc"), ("/proc/irq", "no-proc-irq")] {
        let machine = MachineTree::of("two-socket-mlx4");
        machine.remove(gone);
        let run = machine.nicpin(&["plan", "--format", "json"]);
        let plan = run.json();
        assert_eq!((run.code, &plan["notes"][0]["code"]), (1, &code.into()));
        // The remedy stands there once: the notes of the interfaces have it, too.
        let table = machine.nicpin(&["plan"]).stdout;
        let check = machine.nicpin(&["check"]);
        let applied = machine.fails(&["apply"], 1);
        assert_eq!(machine.fails(&["apply", "eth2"], 1), applied);
        let run = machine.nicpin(&["run", "--dry-run", "eth2"]);
        assert_eq!((check.code, run.code), (1, 1), "{run:?}");
        assert_eq!(machine.rooted(&run.stderr), applied);
        let screens = [table, check.stdout, applied, run.stdout];
        expect(&format!("{code}.txt"), screens.join("\n"));
        let check = machine.nicpin(&["check", "--json"]).json();
        let mut unknown = check["unknown"].as_array().unwrap().iter();
        assert!(
            unknown.any(|unknown| unknown["interface"] == "eth2"),
            "{check}"
        );
        assert_eq!(machine.nicpin(&["check", "-q"]).code, 1);
        let status = machine.nicpin(&["status", "--json"]);
        assert_eq!(status.code, 1);
        note(&status.json(), code);
        let file = machine.path("/capture.tar.gz");
        let file = file.to_str().unwrap();
        let capture = machine.nicpin(&["capture", "-o", file]);
        let measured = machine.nicpin(&["measure", "--seconds", "0.01", "--json"]);
        for done in [&capture, &measured] {
            assert_eq!((done.code, &done.stderr), (1, &run.stderr), "{done:?}");
        }
        let captured = nicpin(&["plan", "--json", "--root", file]).json();
        let first = measured.stdout.lines().next().unwrap();
        let measured: Value = serde_json::from_str(first).unwrap();
        for told in [captured, measured] {
            assert_eq!(told["interfaces"].as_array().unwrap().len(), 2, "{told}");
        }
    }
}

#[test]
fn malformed_masks_and_lists() {
    let wider = format!("{}0\n", "00000000,".repeat(2048));
    let said = [
        ("/proc/irq/36/smp_affinity", "zz\n"),
        ("/proc/irq/36/smp_affinity", ""),
        ("/proc/irq/36/smp_affinity", ",,,\n"),
        ("/proc/irq/36/smp_affinity", "000000000f\n"),
        ("/sys/class/net/nic0/queues/rx-0/rps_cpus", &wider),
        ("/proc/irq/36/effective_affinity_list", "0-\n"),
        ("/sys/class/net/nic0/queues/rx-0/rps_cpus", "0,000000000\n"),
        ("/sys/class/net/nic0/queues/tx-0/xps_cpus", "0-3\n"),
        ("/sys/devices/system/cpu/online", "0-4294967295\n"),
        ("/sys/devices/system/cpu/online", "\n"),
        ("/sys/devices/system/node/node0/distance", "10 far\n"),
        ("/sys/devices/system/cpu/isolated", "x\n"),
    ]
    .map(|(path, text)| {
        let machine = MachineTree::of("two-node");
        machine.write(path, text);
        assert_eq!(machine.nicpin(&["check", "-q"]).code, 1);
        machine.fails(&["apply"], 1)
    });
    expect("malformed-files.errors.txt", said.concat());
}

#[test]
fn flow_counts_are_read_by_what_plans_or_records_them() {
    let machine = MachineTree::of("two-node");
    machine.write("/sys/class/net/nic0/queues/rx-0/rps_flow_cnt", "many\n");
    let fails = |args: &[&str]| {
        assert_data_eq!(
            machine.fails(args, 1),
            str![[r"
nicpin: ROOT/sys/class/net/nic0/queues/rx-0/rps_flow_cnt: `many` is not a number that the kernel has there

"]]
        );
    };
    fails(&["apply"]);
    fails(&["plan", "--rfs", "off"]);
    fails(&["check", "--rfs", "64"]);
    assert_eq!(machine.nicpin(&["plan"]).code, 0);
    std::fs::create_dir(machine.path("/etc")).unwrap();
    machine.write("/etc/nicpin.toml", "[defaults]\nrfs = 64\n");
    fails(&["plan"]);
}

#[test]
fn a_root_that_is_not_a_machine() {
    let (dir, program) = (temporary(), env!("CARGO_BIN_EXE_nicpin"));
    let empty = dir.path().to_str().unwrap();
    let said = [empty, "/no/such/root", program, "/dev/null"].map(|root| {
        let run = nicpin(&["plan", "--root", root]);
        assert_eq!((run.code, run.stdout.as_str()), (1, ""), "{root}");
        let said = run.stderr.replace(empty, "EMPTY");
        said.replace(program, "PROGRAM")
    });
    assert_data_eq!(
        said.concat(),
        str![[r"
nicpin: EMPTY/sys/devices/system/cpu/online: no such file or directory (ENOENT); fix: mount /proc and /sys, or name the root of a machine that has them
nicpin: /no/such/root: no such file or directory (ENOENT); fix: name an existing file or directory
nicpin: PROGRAM: not a capture: it is not compressed with gzip; fix: name a directory, or a file made by `nicpin capture`
nicpin: /dev/null: not a directory (ENOTDIR); fix: name a directory or a capture with --root

"]]
    );
}

/// Dumps of topologies have /sys only; those of some programs lack the files of the CPUs.
#[test]
fn dumps_made_by_other_programs_are_planned_from_the_files_they_have() {
    let machine = MachineTree::of("two-node");
    machine.remove("/proc");
    let run = machine.nicpin(&["plan", "--json"]);
    assert_eq!(run.code, 1, "{run:?}");
    note(&run.json(), "no-proc");
    let machine = MachineTree::of("two-node");
    machine.remove("/sys/devices/system/cpu");
    machine.write("/sys/class/net/nic0/queues/tx-0/xps_cpus", "");
    assert_eq!(
        places(&machine),
        [json!([0, "0-3", 4]), json!([1, "4-7", 4])]
    );
}

/// Node, candidate CPUs and their cores of the planned interfaces.
fn places(machine: &MachineTree) -> Vec<Value> {
    let plan = document(machine, &["plan"]);
    let interfaces = plan["interfaces"].as_array().unwrap().iter();
    let place = |of: &Value| json!([of["node"], of["candidates"], of["candidate_cores"]]);
    interfaces.map(place).collect()
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
        let machine = MachineTree::of("two-node");
        machine.remove(path);
        let run = machine.nicpin(&["plan", "nic0"]);
        assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{path}");
    }
}

#[test]
fn a_vector_or_queue_that_vanishes_leaves_the_others_to_be_planned() {
    let machine = MachineTree::of("two-node");
    machine.remove("/proc/irq/36");
    let run = machine.nicpin(&["apply", "nic0"]);
    assert_eq!(run.code, 1, "{}{}", run.stdout, run.stderr);
    assert_eq!(machine.read("/proc/irq/38/smp_affinity"), "04");
}

#[test]
fn without_numa_files_the_machine_is_one_node() {
    let machine = MachineTree::of("two-node");
    machine.remove("/sys/devices/system/node");
    let all = json!([0, "0-7", 8]);
    assert_eq!(places(&machine), [all.clone(), all]);
}

#[test]
fn vectors_whose_queues_are_not_known_are_placed_as_data() {
    let machine = MachineTree::of("two-socket-mlx4");
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
    let applied = document(&machine, &["apply", "eth2"]);
    let named = note(&applied, "data-vectors")["vectors"]
        .as_array()
        .unwrap();
    let mut named = named.iter().map(|vector| &vector["action"]);
    assert!(
        named.any(|action| action == "acme-1@0000:82:00.0"),
        "{applied}"
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
    let machine = MachineTree::of("two-node");
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
