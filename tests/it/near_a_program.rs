//! Interrupts near a program: CPU lists, processes and units, what becomes of them when the program ends or moves, and
//! where they cannot be. `watching.rs` has the watcher. The machine: two L3 domains a node, siblings with adjacent
//! numbers (fixtures/x460).

use serde_json::{Value, json};
use snapbox::{assert_data_eq, str};

use crate::support::run::{MachineTree, assert_line, document, expect, note, text};
use nicpin::cpuset::CpuSet;

const UNIT: &str = "/sys/fs/cgroup/system.slice/app.slice/web.service";

/// A process with threads that may use these CPUs.
fn process(machine: &MachineTree, pid: u32, threads: &[&str]) {
    for (thread, cpus) in (pid..).zip(threads) {
        let directory = format!("/proc/{pid}/task/{thread}");
        std::fs::create_dir_all(machine.path(&directory)).unwrap();
        let status = format!("Name:\tweb\nCpus_allowed_list:\t{cpus}\n");
        machine.write(&format!("{directory}/status"), &status);
    }
}

/// A unit with a process in its cgroup and one in a cgroup below.
fn unit(machine: &MachineTree, cpus: [&str; 2]) {
    std::fs::create_dir_all(machine.path(&format!("{UNIT}/worker"))).unwrap();
    machine.write(&format!("{UNIT}/../cgroup.procs"), "");
    machine.write(&format!("{UNIT}/cgroup.procs"), "700\n0\n");
    machine.write(&format!("{UNIT}/worker/cgroup.procs"), "800\n");
    process(machine, 700, &[cpus[0]]);
    process(machine, 800, &[cpus[1]]);
}

fn ended(machine: &MachineTree) {
    std::fs::remove_dir_all(machine.path(UNIT)).unwrap();
    for pid in [700, 800] {
        std::fs::remove_dir_all(machine.path(&format!("/proc/{pid}"))).unwrap();
    }
}

fn planned(machine: &MachineTree, args: &[&str]) -> Value {
    let run = machine.nicpin(&[&["plan", "--json"], args].concat());
    assert_eq!(run.code, 0, "{}", run.stderr);
    run.json()
}

fn candidates(plan: &Value, interface: &str) -> String {
    let mut all = plan["interfaces"].as_array().unwrap().iter();
    let found = all.find(|one| one["name"] == interface).unwrap();
    found["candidates"].as_str().unwrap().to_owned()
}

fn candidates_near(machine: &MachineTree, near: &str) -> String {
    candidates(&planned(machine, &["--near", near]), "eth0")
}

#[test]
fn the_l3_domains_of_a_program_less_its_own_cores() {
    let machine = MachineTree::of("x460");
    process(&machine, 55, &["4", "5"]);
    unit(&machine, ["8", "10-11"]);
    for (near, expected) in [
        ("0", "2-7"),
        ("1,8-9", "2-7,10-15"),
        // One thread of a core that has the only other one: no core is left, a CPU is.
        ("0,2,4,6", "1,3,5,7"),
        ("0-7", "0-7"),
        ("0-15", "0-15"),
        ("0-63", "0-15"),
        ("pid:55", "0-3,6-7"),
        ("unit:web", "12-15"),
        ("unit:web.service", "12-15"),
        ("unit:app.slice", "12-15"),
        ("unit:other", "0-15"),
        // Another node's: the wish is none here, and one there.
        ("16-17", "0-15"),
    ] {
        assert_eq!(candidates_near(&machine, near), expected, "{near}");
    }
    let plan = planned(&machine, &["--near", "unit:web"]);
    let near = &plan["interfaces"][0]["near"];
    assert_eq!(near["program"], "unit:web.service");
    assert_eq!(near["cpus"], "8,10-11");
    assert_eq!(candidates(&plan, "eth2"), "16-31");
    let found = plan["interfaces"].as_array().unwrap().iter();
    let found: Vec<_> = found
        .map(|interface| note(interface, "near")["found"].clone())
        .collect();
    let [there, nowhere] = ["there", "nowhere"].map(|found| json!(found));
    assert_eq!(found[..2], [there.clone(), there]);
    assert_eq!(found[4..], vec![nowhere; 4]);
    let screen = machine.nicpin(&["plan", "--near", "unit:web"]).stdout;
    expect("near.txt", screen);
    // With the other limits.
    let two = planned(&machine, &["--near", "0", "--irq-cores", "2"]);
    assert_eq!(candidates(&two, "eth0"), "2-5");
    let all = planned(&machine, &["--near", "0", "--scope", "all"]);
    assert_eq!(candidates(&all, "eth7"), "2-7");
    let none = planned(&machine, &["--near", "0-15", "eth0"]);
    let none = note(&none["interfaces"][0], "near");
    assert_eq!(none["found"], "everywhere");
    assert_data_eq!(
        text(none, "text"),
        str!["near CPUs 0-15: these leave out no candidate CPU, so the plan is the same without"]
    );
}

#[test]
fn what_cannot_be_met_is_refused() {
    let machine = MachineTree::of("x460");
    let said = [
        &["--near", "pid:77"][..],
        &["eth7", "--near", "0-3"],
        &["--near", "64"],
        &["--near", "0", "--scope", "0-7"],
        &["--near", "unit:a/b"],
        &["--near", "unit:"],
        &["--near", "pid:0"],
        &["--near", "pid:x"],
    ]
    .map(|args| {
        let run = machine.nicpin(&[&["plan"], args].concat());
        assert_eq!((run.code, run.stdout.as_str()), (64, ""), "{args:?}");
        run.stderr
    });
    expect("near.errors.txt", said.concat());
    // By a rule, only its interfaces are unknown.
    std::fs::create_dir_all(machine.path("/etc")).unwrap();
    machine.write(
        "/etc/nicpin.toml",
        "[[rule]]\nmatch = { name = \"eth0\" }\nset = { near = \"pid:77\" }\n",
    );
    let run = machine.nicpin(&["apply"]);
    assert_eq!(run.code, 1, "{}", run.stdout);
    let status = machine.nicpin(&["status", "--json"]).json();
    let of_each: Vec<&str> = (status["interfaces"].as_array().unwrap().iter())
        .map(|one| one["state"].as_str().unwrap())
        .collect();
    assert_eq!(of_each[0], "unknown", "{of_each:?}");
    assert!(!of_each[1..].contains(&"unknown"), "{of_each:?}");
}

#[test]
fn a_check_compares_with_where_the_program_was_at_the_last_apply() {
    let machine = MachineTree::of("x460");
    std::fs::create_dir_all(machine.path("/etc")).unwrap();
    machine.write("/etc/nicpin.toml", "[defaults]\nnear = \"unit:web\"\n");
    // Not yet running: a note, and nothing else.
    let early = document(&machine, &["apply"]);
    let early = note(&early, "near");
    assert_eq!(early["found"], "not-running");
    assert_line(
        text(early, "text"),
        str![[r"
unit:web.service does not run, or its processes are hidden from this user: planned without it

"]],
    );
    unit(&machine, ["8", "10-11"]);
    assert_eq!(machine.nicpin(&["check"]).code, 2);
    assert_eq!(machine.nicpin(&["apply"]).code, 0);
    assert_eq!(machine.nicpin(&["check"]).code, 0);
    let affinity = |irq: u32| {
        let text = std::fs::read_to_string(machine.path(&format!("/proc/irq/{irq}/smp_affinity")));
        CpuSet::parse_kernel_mask(text.unwrap().trim()).unwrap()
    };
    let near = CpuSet::parse_list("12-15").unwrap();
    assert!(affinity(177).is_subset(&near), "{}", affinity(177));

    // It runs elsewhere now: the plan is another one, the machine is as it was planned.
    unit(&machine, ["0", "1"]);
    let check = machine.nicpin(&["check"]);
    assert_eq!(check.code, 0, "{}", check.stdout);
    let status = document(&machine, &["status", "eth0"]);
    let moved = note(&status["interfaces"][0], "near");
    assert_eq!(moved["now"], "0-1");
    assert_data_eq!(
        text(moved, "text"),
        str!["near unit:web.service, which may use CPUs 8,10-11; now it may use CPUs 0-1"]
    );
    assert_eq!(
        candidates(&planned(&machine, &[]), "eth0"),
        "2-7",
        "a plan is of now"
    );
    // It has ended: as at the last apply, also for apply.
    ended(&machine);
    assert_eq!(candidates(&planned(&machine, &[]), "eth0"), "12-15");
    let again = document(&machine, &["apply"]);
    let ended = note(&again, "near");
    assert_eq!(ended["now"], Value::Null);
    assert_line(
        text(ended, "text"),
        str![[r"
near unit:web.service, which may use CPUs 8,10-11; it does not run now, these are those of an earlier apply

"]],
    );
    assert!(affinity(177).is_subset(&near), "{}", affinity(177));
    assert_eq!(machine.nicpin(&["restore"]).code, 0);
    assert_eq!(candidates(&planned(&machine, &[]), "eth0"), "0-15");
}

#[test]
fn a_status_that_cannot_be_read_is_no_program_without_cpus() {
    let machine = MachineTree::of("x460");
    process(&machine, 55, &["4", "5"]);
    machine.write("/proc/55/task/56/status", "Name:\tweb\n");
    assert_data_eq!(
        machine.fails(&["plan", "--near", "pid:55"], 1),
        str![[r"
nicpin: ROOT/proc/55/task/56/status: has no Cpus_allowed_list

"]]
    );
}
