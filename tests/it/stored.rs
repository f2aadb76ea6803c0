//! `apply --plan`: a stored plan is applied if it fits the machine as it is now; otherwise the differences are listed.
//! Paths in it are never used.

use std::io::Write as _;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::support::run::{Copy, FIXTURES, Run};
use crate::support::temporary;

struct Stored {
    dir: tempfile::TempDir,
}

impl Stored {
    fn of(machine: &Copy) -> Self {
        let plan = machine.nicpin(&["plan", "--format", "json"]);
        assert_eq!(plan.code, 0, "{}", plan.stderr);
        let dir = temporary();
        std::fs::write(dir.path().join("plan.json"), plan.stdout).unwrap();
        Self { dir }
    }

    fn path(&self) -> String {
        self.dir
            .path()
            .join("plan.json")
            .to_str()
            .unwrap()
            .to_owned()
    }

    fn json(&self) -> Value {
        serde_json::from_str(&std::fs::read_to_string(self.path()).unwrap()).unwrap()
    }

    fn edit(&self, edit: impl FnOnce(&mut Value)) {
        let mut plan = self.json();
        edit(&mut plan);
        std::fs::write(self.path(), plan.to_string()).unwrap();
    }

    fn apply(&self, machine: &Copy, more: &[&str]) -> Run {
        machine.nicpin(&[&["apply", "--plan", &self.path()], more].concat())
    }
}

fn refused(machine: &Copy, stored: &Stored, expected: &str) {
    let before = machine.snapshot();
    let run = stored.apply(machine, &[]);
    let text = run.words();
    assert_eq!(run.code, 1, "{text}{}", run.stderr);
    assert!(text.contains(expected), "{expected}: {text}");
    assert_eq!(machine.snapshot(), before);
    assert!(!machine.path("/run/nicpin/state.json").exists());
    let json = stored.apply(machine, &["--json"]).json();
    assert_eq!(
        (&json["misfit"], &json["changed"]),
        (&true.into(), &0.into())
    );
    assert!(!json["changes"].as_array().unwrap().is_empty());
}

#[test]
fn a_stored_plan_does_what_apply_does() {
    for name in FIXTURES {
        let (stored, planned) = (Copy::of(name), Copy::of(name));
        let plan = Stored::of(&stored);
        let run = plan.apply(&stored, &[]);
        assert_eq!(
            (run.code, run.stderr.as_str()),
            (0, ""),
            "{name}: {}",
            run.stdout
        );
        assert_eq!(planned.nicpin(&["apply"]).code, 0);
        assert_eq!(stored.snapshot(), planned.snapshot(), "{name}");
        let last = |run: &Run| run.stdout.lines().last().unwrap().to_owned();
        assert!(
            last(&run).starts_with(&format!("plan {}: ", plan.json()["hash"].as_str().unwrap()))
        );
        let again = plan.apply(&stored, &["--json"]);
        assert_eq!(
            (again.code, &again.json()["changed"]),
            (0, &0.into()),
            "{name}"
        );
        assert_eq!(stored.nicpin(&["restore"]).code, 0);
    }
}

#[test]
fn a_plan_comes_from_standard_input() {
    let machine = Copy::of("two-node");
    let plan = machine.nicpin(&["plan", "--format", "json"]).stdout;
    let mut command = Command::new(env!("CARGO_BIN_EXE_nicpin"));
    command
        .args(["apply", "--plan", "-", "--root"])
        .arg(machine.path("/"));
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(plan.as_bytes())
        .unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(machine.nicpin(&["check"]).code, 0);
}

#[test]
fn vectors_that_moved_meanwhile_are_moved_to_the_planned_cpus() {
    let machine = Copy::of("two-node");
    let stored = Stored::of(&machine);
    assert_eq!(machine.nicpin(&["apply", "--scope", "remote"]).code, 0);
    let run = stored.apply(&machine, &[]);
    assert_eq!(run.code, 0, "{}", run.stdout);
    assert_eq!(machine.nicpin(&["check"]).code, 0);
}

#[test]
fn other_irq_numbers_are_named_and_with_force_followed() {
    let machine = Copy::of("two-socket-mlx4");
    let stored = Stored::of(&machine);
    let planned = stored.json()["writes"].as_array().unwrap().len();
    machine.renumber("/sys/devices/pci0000:80/0000:80:02.0/0000:82:00.0", 71, 171);
    // IRQ 71 now belongs to another device.
    std::fs::create_dir(machine.path("/proc/irq/71")).unwrap();
    machine.write("/proc/irq/71/smp_affinity", "001\n");
    refused(
        &machine,
        &stored,
        "eth2: other IRQ numbers: combined 0 71 is now 171",
    );
    let run = stored.apply(&machine, &["--force", "--json"]);
    assert_eq!((run.code, &run.json()["changed"]), (0, &planned.into()));
    assert_eq!(machine.read("/proc/irq/171/smp_affinity"), "040");
    assert_eq!(machine.read("/proc/irq/71/smp_affinity"), "001\n");
    assert_eq!(machine.nicpin(&["check"]).code, 0);
}

#[test]
fn interfaces_that_are_gone_renamed_or_another_device() {
    let machine = Copy::of("two-node");
    let stored = Stored::of(&machine);
    machine.remove("/sys/class/net/nic1");
    refused(&machine, &stored, "nic1: is absent, and so is device ");
    let run = stored.apply(&machine, &["--force"]);
    assert!(
        run.code == 1 && run.stdout.contains("; left out"),
        "{}",
        run.stdout
    );
    assert_eq!(machine.nicpin(&["check", "nic0"]).code, 0);

    let machine = Copy::of("two-node");
    stored.edit(|plan| {
        *plan = serde_json::from_str(&plan.to_string().replace("nic1", "nic9")).unwrap();
    });
    refused(&machine, &stored, "is named nic1 now");
    let stored = Stored::of(&machine);
    stored.edit(|plan| plan["interfaces"][0]["device"] = "0000:ff:00.0".into());
    refused(&machine, &stored, "the plan is for 0000:ff:00.0");
}

#[test]
fn ports_of_one_device_whose_names_were_swapped() {
    let machine = Copy::of("two-node");
    let stored = Stored::of(&machine);
    machine.write("/sys/class/net/nic0/dev_port", "1\n");
    let text = "nic0: has device 0000:21:00.0 port 1 now; the plan is for 0000:21:00.0 port 0";
    refused(&machine, &stored, text);
}

#[test]
fn queues_vectors_and_cpus_that_have_changed() {
    let machine = Copy::of("two-node");
    let stored = Stored::of(&machine);
    machine.remove("/sys/class/net/nic0/queues/rx-3");
    refused(
        &machine,
        &stored,
        "nic0: had 4 rx and 4 tx queues, has 3 rx and 4 tx queues",
    );

    let machine = Copy::of("two-node");
    machine.write("/sys/devices/system/cpu/online", "0-6\n");
    refused(&machine, &stored, "machine: CPUs were online: 0-7, now 0-6");
    refused(&machine, &stored, "nic1: planned CPUs are not online: 7");
    let dry = stored.apply(&machine, &["--force", "--dry-run"]);
    let gone = "nic1: planned CPUs are not online: 7";
    assert!(dry.code == 0 && dry.stderr.contains(gone), "{}", dry.stderr);
    let run = stored.apply(&machine, &["--force", "--json"]);
    let report = run.json();
    let counts = (&report["refused"], &report["vanished"]);
    assert_eq!((run.code, counts), (1, (&0.into(), &0.into())));

    // No CPU is on another node.
    let machine = Copy::of("two-node");
    machine.write("/sys/devices/system/node/has_memory", "0\n");
    let run = stored.apply(&machine, &["--dry-run"]);
    assert_eq!(run.code, 0, "{}{}", run.stdout, run.stderr);

    let machine = Copy::of("two-node");
    let vector = &stored.json()["interfaces"][0]["vectors"][0];
    let row = format!("  {}", vector["action"].as_str().unwrap());
    let interrupts = machine.read("/proc/interrupts");
    let without: Vec<&str> = interrupts
        .lines()
        .filter(|line| !line.ends_with(&row))
        .collect();
    assert_eq!(without.len() + 1, interrupts.lines().count());
    machine.write("/proc/interrupts", &(without.join("\n") + "\n"));
    let actions = format!("/sys/kernel/irq/{}", vector["irq"]);
    if machine.path(&actions).exists() {
        machine.remove(&actions);
    }
    refused(&machine, &stored, "nic0: vectors are absent: ");
}

/// Before Linux 6.12 only a write shows that the kernel manages a vector.
#[test]
fn a_vector_that_was_found_not_to_move_stays_so() {
    let machine = Copy::of("two-node");
    let stored = Stored::of(&machine);
    stored.edit(|plan| {
        let vector = &mut plan["interfaces"][0]["vectors"][0];
        let path = format!("/proc/irq/{}/smp_affinity", vector["irq"]);
        (vector["movable"], vector["cpus"]) = (false.into(), Value::Null);
        let writes = plan["writes"].as_array_mut().unwrap();
        writes.retain(|write| write["path"] != path.as_str());
    });
    let dry = stored.apply(&machine, &["--dry-run", "--json"]);
    let plan = dry.json();
    let vector = &plan["interfaces"][0]["vectors"][0];
    assert_eq!((&vector["movable"], dry.code), (&Value::Bool(false), 0));
}

/// Only vectors and queues of this machine's interfaces can be set.
#[test]
fn a_plan_that_wants_more_than_a_plan_may_is_refused_even_with_force() {
    type Edit = fn(&mut Value);
    let attempts: [(&str, Edit); 9] = [
        ("the path has a component `.` or `..`", |plan| {
            plan["writes"][0]["path"] = "/proc/irq/../sys/kernel/core_pattern".into();
        }),
        ("it belongs to no vector and no queue of the plan", |plan| {
            plan["writes"][0]["path"] = "/etc/passwd".into();
        }),
        ("it belongs to no vector and no queue of the plan", |plan| {
            plan["writes"][0]["path"] = "/proc/irq/1/smp_affinity".into();
        }),
        ("it belongs to no vector and no queue of the plan", |plan| {
            plan["writes"][0]["path"] = "/proc/irq/default_smp_affinity".into();
        }),
        (
            "the only file of this kind is net.core.rps_sock_flow_entries",
            |plan| {
                plan["writes"][0]["kind"] = "sysctl".into();
                plan["writes"][0]["path"] = "/proc/sys/kernel/modprobe".into();
            },
        ),
        (
            "the value differs from that of its vector or queue",
            |plan| {
                plan["writes"][0]["value"] = "ff".into();
            },
        ),
        (
            "the value differs from that of its vector or queue",
            |plan| {
                plan["writes"][0]["value"] = "$(reboot)".into();
            },
        ),
        ("its interface is not in the plan", |plan| {
            plan["writes"][0]["interface"] = "nic7".into();
        }),
        ("it changes the channels of nic0 first", |plan| {
            let names = [
                "rx",
                "tx",
                "other",
                "combined",
                "max_rx",
                "max_tx",
                "max_other",
                "max_combined",
            ];
            let channels: Value = names.into_iter().map(|name| (name, 1)).collect();
            plan["channels"] = json!([{ "interface": "nic0", "current": channels, "wanted": channels,
                "command": "reboot", "why": "" }]);
        }),
    ];
    for (expected, edit) in attempts {
        let machine = Copy::of("two-node");
        for (path, text) in [("/proc/irq/1", "ff\n"), ("/proc/sys/kernel", "x\n")] {
            std::fs::create_dir_all(machine.path(path)).unwrap();
            let name = if path.contains("irq") {
                "smp_affinity"
            } else {
                "core_pattern"
            };
            machine.write(&format!("{path}/{name}"), text);
        }
        let stored = Stored::of(&machine);
        stored.edit(edit);
        let before = machine.snapshot();
        let run = stored.apply(&machine, &["--force"]);
        assert_eq!((run.code, run.stdout.as_str()), (1, ""), "{expected}");
        assert!(run.stderr.contains(expected), "{expected}: {}", run.stderr);
        assert_eq!(run.stderr.lines().count(), 1);
        assert_eq!(machine.snapshot(), before);
    }
}

#[test]
fn names_in_a_plan_are_not_followed_as_paths() {
    let machine = Copy::of("two-node");
    let stored = Stored::of(&machine);
    for name in ["../../../../etc", "/etc", "", ".", "..", "nic0/../nic1"] {
        stored.edit(|plan| {
            plan["interfaces"][0]["name"] = name.into();
            plan["writes"] = json!([]);
        });
        refused(&machine, &stored, "nic0 now");
    }
    assert_eq!(stored.apply(&machine, &["--force"]).code, 1);
    assert_eq!(machine.nicpin(&["check", "nic1"]).code, 0);
}

#[test]
fn files_that_are_not_plans() {
    let machine = Copy::of("two-node");
    let stored = Stored::of(&machine);
    for (text, expected) in [
        ("", "is not a plan as `nicpin plan --format json` prints it"),
        ("[]", "is not a plan as"),
        (
            "{\"schema\":\"nicpin.plan/2\"}",
            "its schema is `nicpin.plan/2`, and this nicpin applies `nicpin.plan/1`",
        ),
        ("{\"schema\":\"nicpin.plan/1\"}", "is not a plan as"),
        (
            r#"{"schema":"nicpin.plan/1","a":"\\\u0085"}"#,
            "a text in it has a control character",
        ),
        (
            "{\"schema\":\"nicpin.plan/1\",\"a\u{7f}\":\"\"}",
            "a text in it has a control character",
        ),
        // An escaped backslash, and what follows it.
        (
            r#"{"schema":"nicpin.plan/1","a":"\\n"}"#,
            "missing field `hash`",
        ),
    ] {
        std::fs::write(stored.path(), text).unwrap();
        let run = stored.apply(&machine, &[]);
        assert!(
            run.code == 1 && run.stderr.contains(expected),
            "{text}: {}",
            run.stderr
        );
        assert!(run.stderr.contains("plan.json: "), "{}", run.stderr);
    }
    let run = machine.nicpin(&["apply", "--plan", "/nowhere/plan.json"]);
    assert!(
        run.code == 1 && run.stderr.contains("/nowhere/plan.json: "),
        "{}",
        run.stderr
    );
    // The plan has the interfaces and the policy, so selectors and options are refused.
    for args in [
        &["nic0"][..],
        &["--scope", "all"],
        &["--config", "x"],
        &["--if-present"],
    ] {
        assert_eq!(stored.apply(&machine, args).code, 64, "{args:?}");
    }
    assert_eq!(machine.nicpin(&["apply", "--force"]).code, 64);
}
