//! Interrupts near a program: CPU lists, processes and units, and a program that ends or moves. `watching.rs` has the
//! watcher. The machine is fixtures/x460: two L3 domains a node, siblings with adjacent numbers.

use serde_json::Value;

use crate::support::run::Copy;
use nicpin::cpuset::CpuSet;

const UNIT: &str = "/sys/fs/cgroup/system.slice/app.slice/web.service";

/// A process with threads that may use these CPUs.
fn process(machine: &Copy, pid: u32, threads: &[&str]) {
    for (thread, cpus) in (pid..).zip(threads) {
        let directory = format!("/proc/{pid}/task/{thread}");
        std::fs::create_dir_all(machine.path(&directory)).unwrap();
        let status = format!("Name:\tweb\nCpus_allowed_list:\t{cpus}\n");
        machine.write(&format!("{directory}/status"), &status);
    }
}

/// A unit with a process in its cgroup and one in a cgroup below.
fn unit(machine: &Copy, cpus: [&str; 2]) {
    std::fs::create_dir_all(machine.path(&format!("{UNIT}/worker"))).unwrap();
    machine.write(&format!("{UNIT}/../cgroup.procs"), "");
    machine.write(&format!("{UNIT}/cgroup.procs"), "700\n0\n");
    machine.write(&format!("{UNIT}/worker/cgroup.procs"), "800\n");
    process(machine, 700, &[cpus[0]]);
    process(machine, 800, &[cpus[1]]);
}

fn ended(machine: &Copy) {
    std::fs::remove_dir_all(machine.path(UNIT)).unwrap();
    for pid in [700, 800] {
        std::fs::remove_dir_all(machine.path(&format!("/proc/{pid}"))).unwrap();
    }
}

fn planned(machine: &Copy, args: &[&str]) -> Value {
    let run = machine.nicpin(&[&["plan", "--json"], args].concat());
    assert_eq!(run.code, 0, "{}", run.stderr);
    run.json()
}

fn candidates(plan: &Value, interface: &str) -> String {
    let mut all = plan["interfaces"].as_array().unwrap().iter();
    let found = all.find(|one| one["name"] == interface).unwrap();
    found["candidates"].as_str().unwrap().to_owned()
}

fn candidates_near(machine: &Copy, near: &str) -> String {
    candidates(&planned(machine, &["--near", near]), "eth0")
}

#[test]
fn the_l3_domains_of_a_program_less_its_own_cores() {
    let machine = Copy::of("x460");
    process(&machine, 55, &["4", "5"]);
    unit(&machine, ["8", "10-11"]);
    for (near, expected) in [
        ("0", "2-7"),
        ("1,8-9", "2-7,10-15"),
        // The other thread of each core is taken: no core is left, CPUs are.
        ("0,2,4,6", "1,3,5,7"),
        ("0-7", "0-7"),
        ("0-15", "0-15"),
        ("0-63", "0-15"),
        ("pid:55", "0-3,6-7"),
        ("unit:web", "12-15"),
        ("unit:web.service", "12-15"),
        ("unit:app.slice", "12-15"),
        ("unit:other", "0-15"),
        // The program is on another node: no effect here.
        ("16-17", "0-15"),
    ] {
        assert_eq!(candidates_near(&machine, near), expected, "{near}");
    }
    let plan = planned(&machine, &["--near", "unit:web"]);
    let near = &plan["interfaces"][0]["near"];
    assert_eq!(near["program"], "unit:web.service");
    assert_eq!(near["cpus"], "8,10-11");
    assert_eq!(candidates(&plan, "eth2"), "16-31");
    let text = machine.nicpin(&["plan", "--near", "unit:web"]).words();
    assert!(
        text.contains("eth0, eth1: near unit:web.service, which may use CPUs 8,10-11"),
        "{text}"
    );
    assert!(
        text.contains(
            "eth4 and 3 others: not near unit:web.service, which may use CPUs 8,10-11: no candidate CPU shares a cache with these"
        ),
        "{text}"
    );
    let two = planned(&machine, &["--near", "0", "--irq-cores", "2"]);
    assert_eq!(candidates(&two, "eth0"), "2-5");
    let all = planned(&machine, &["--near", "0", "--scope", "all"]);
    assert_eq!(candidates(&all, "eth7"), "2-7");
    let none = machine.nicpin(&["plan", "--near", "0-15", "eth0"]).words();
    assert!(none.contains("the plan is the same without"), "{none}");
}

#[test]
fn what_cannot_be_met_is_refused() {
    let machine = Copy::of("x460");
    for (args, expected) in [
        (
            &["plan", "--near", "pid:77"][..],
            "--near: pid:77 does not exist",
        ),
        (
            &["plan", "eth7", "--near", "0-3"],
            "--near: not near CPUs 0-3",
        ),
        (&["plan", "--near", "64"], "no CPU above 63"),
        (
            &["plan", "--near", "0", "--scope", "0-7"],
            "--near has no effect beside --scope 0-7",
        ),
        (&["plan", "--near", "unit:a/b"], "unit:a/b"),
        (&["plan", "--near", "unit:"], "unit:"),
        (&["plan", "--near", "pid:0"], "pid:0"),
        (&["apply", "--near", "pid:x"], "pid:x"),
    ] {
        let run = machine.nicpin(args);
        assert_eq!(run.code, 64, "{args:?}: {}", run.stderr);
        assert!(run.stderr.contains(expected), "{args:?}: {}", run.stderr);
    }
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
    let machine = Copy::of("x460");
    std::fs::create_dir_all(machine.path("/etc")).unwrap();
    machine.write("/etc/nicpin.toml", "[defaults]\nnear = \"unit:web\"\n");
    let early = machine.nicpin(&["apply"]);
    assert_eq!(early.code, 0, "{}", early.stderr);
    assert!(early.words().contains("unit:web.service does not run"));
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

    // The unit runs elsewhere now: the plan is another one, the machine is as it was planned.
    unit(&machine, ["0", "1"]);
    let check = machine.nicpin(&["check"]);
    assert_eq!(check.code, 0, "{}", check.stdout);
    let status = machine.nicpin(&["status", "--seconds", "0"]).words();
    assert!(status.contains("now it may use CPUs 0-1"), "{status}");
    assert_eq!(
        candidates(&planned(&machine, &[]), "eth0"),
        "2-7",
        "a plan is of now"
    );
    // The unit has ended: check and apply use the CPUs of the last apply.
    ended(&machine);
    assert_eq!(candidates(&planned(&machine, &[]), "eth0"), "12-15");
    let again = machine.nicpin(&["apply"]);
    assert_eq!(again.code, 0);
    assert!(
        again.words().contains("it does not run now"),
        "{}",
        again.stdout
    );
    assert!(affinity(177).is_subset(&near), "{}", affinity(177));
    assert_eq!(machine.nicpin(&["restore"]).code, 0);
    assert_eq!(candidates(&planned(&machine, &[]), "eth0"), "0-15");
}

#[test]
fn a_status_that_cannot_be_read_is_no_program_without_cpus() {
    let machine = Copy::of("x460");
    process(&machine, 55, &["4", "5"]);
    machine.write("/proc/55/task/56/status", "Name:\tweb\n");
    let run = machine.nicpin(&["plan", "--near", "pid:55"]);
    assert_eq!(run.code, 1, "{}", run.stdout);
    assert!(
        run.stderr.contains("/proc/55/task/56/status"),
        "{}",
        run.stderr
    );
}
