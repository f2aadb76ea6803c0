//! `apply --plan`: a stored plan is applied if it fits the machine as it is now; otherwise the differences are listed.
//! Paths in it are never used.

use std::io::Write as _;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use snapbox::{assert_data_eq, str};

use crate::support::run::{FIXTURES, MachineTree, Run, expect, text};
use crate::support::temporary;

struct Stored {
    dir: tempfile::TempDir,
}

impl Stored {
    fn of(machine: &MachineTree) -> Self {
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

    fn apply(&self, machine: &MachineTree, more: &[&str]) -> Run {
        machine.nicpin(&[&["apply", "--plan", &self.path()], more].concat())
    }

    /// The error of an apply that writes nothing.
    fn fails(&self, machine: &MachineTree, more: &[&str]) -> String {
        let said = machine.fails(&[&["apply", "--plan", &self.path()], more].concat(), 1);
        said.replace(&self.path(), "plan.json")
    }
}

/// What has changed since the plan was made, by code and in words, and what is left out for it.
fn changes(report: &Value) -> String {
    let changes = report["changes"].as_array().unwrap().iter();
    let line = |of: &Value| {
        let left_out = if of["left_out"] == true {
            " (left out)"
        } else {
            ""
        };
        let [code, interface, words] = ["code", "interface", "text"].map(|key| text(of, key));
        format!("{code} {interface}{left_out}: {words}\n")
    };
    changes.map(line).collect()
}

/// Without --force nothing is written. What has changed.
fn refused(machine: &MachineTree, stored: &Stored) -> String {
    let before = machine.snapshot();
    let run = stored.apply(machine, &["--json"]);
    assert_eq!(run.code, 1, "{run:?}");
    assert_eq!(machine.snapshot(), before);
    assert!(!machine.path("/run/nicpin/state.json").exists());
    let report = run.json();
    assert_eq!(
        (&report["misfit"], &report["changed"]),
        (&true.into(), &0.into())
    );
    changes(&report)
}

#[test]
fn a_stored_plan_does_what_apply_does() {
    for name in FIXTURES {
        let (stored, planned) = (MachineTree::of(name), MachineTree::of(name));
        let plan = Stored::of(&stored);
        let run = plan.apply(&stored, &["--json"]);
        assert_eq!(
            (run.code, run.stderr.as_str(), &run.json()["hash"]),
            (0, "", &plan.json()["hash"]),
            "{name}"
        );
        assert_eq!(planned.nicpin(&["apply"]).code, 0);
        assert_eq!(stored.snapshot(), planned.snapshot(), "{name}");
        // And a second time, with all settings as planned.
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
    let machine = MachineTree::of("two-node");
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

/// Current settings may differ from those in the plan; the planned ones are written.
#[test]
fn vectors_that_moved_meanwhile_are_moved_to_the_planned_cpus() {
    let machine = MachineTree::of("two-node");
    let stored = Stored::of(&machine);
    assert_eq!(machine.nicpin(&["apply", "--scope", "remote"]).code, 0);
    let run = stored.apply(&machine, &[]);
    assert_eq!(run.code, 0, "{}", run.stdout);
    assert_eq!(machine.nicpin(&["check"]).code, 0);
}

#[test]
fn other_irq_numbers_are_named_and_with_force_followed() {
    let machine = MachineTree::of("two-socket-mlx4");
    let stored = Stored::of(&machine);
    let planned = stored.json()["writes"].as_array().unwrap().len();
    machine.renumber("/sys/devices/pci0000:80/0000:80:02.0/0000:82:00.0", 71, 171);
    // IRQ 71 now belongs to another device.
    std::fs::create_dir(machine.path("/proc/irq/71")).unwrap();
    machine.write("/proc/irq/71/smp_affinity", "001\n");
    assert_data_eq!(
        refused(&machine, &stored),
        str![[r"
irqs-changed eth2: other IRQ numbers: combined 0 71 is now 171

"]]
    );
    expect("misfit.apply.txt", stored.apply(&machine, &[]).stdout);
    let run = stored.apply(&machine, &["--force", "--json"]);
    assert_eq!((run.code, &run.json()["changed"]), (0, &planned.into()));
    assert_eq!(machine.read("/proc/irq/171/smp_affinity"), "040");
    assert_eq!(machine.read("/proc/irq/71/smp_affinity"), "001\n");
    assert_eq!(machine.nicpin(&["check"]).code, 0);
}

#[test]
fn interfaces_that_are_gone_renamed_or_another_device() {
    let machine = MachineTree::of("two-node");
    let stored = Stored::of(&machine);
    machine.remove("/sys/class/net/nic1");
    assert_data_eq!(
        refused(&machine, &stored),
        str![[r"
interface-gone nic1 (left out): is absent, and so is device 0000:41:00.0 port 0

"]]
    );
    let forced = stored.apply(&machine, &["--force", "--json"]);
    assert_eq!(forced.code, 1, "{forced:?}");
    assert_data_eq!(
        changes(&forced.json()),
        str![[r"
interface-gone nic1 (left out): is absent, and so is device 0000:41:00.0 port 0

"]]
    );
    assert_eq!(machine.nicpin(&["check", "nic0"]).code, 0);

    let machine = MachineTree::of("two-node");
    stored.edit(|plan| {
        *plan = serde_json::from_str(&plan.to_string().replace("nic1", "nic9")).unwrap();
    });
    assert_data_eq!(
        refused(&machine, &stored),
        str![[r"
interface-renamed nic9 (left out): device 0000:41:00.0 port 0 is named nic1 now

"]]
    );
    let stored = Stored::of(&machine);
    stored.edit(|plan| plan["interfaces"][0]["device"] = "0000:ff:00.0".into());
    assert_data_eq!(
        refused(&machine, &stored),
        str![[r"
device-changed nic0 (left out): has device 0000:21:00.0 port 0 now; the plan is for 0000:ff:00.0 port 0

"]]
    );
}

#[test]
fn ports_of_one_device_whose_names_were_swapped() {
    let machine = MachineTree::of("two-node");
    let stored = Stored::of(&machine);
    machine.write("/sys/class/net/nic0/dev_port", "1\n");
    assert_data_eq!(
        refused(&machine, &stored),
        str![[r"
device-changed nic0 (left out): has device 0000:21:00.0 port 1 now; the plan is for 0000:21:00.0 port 0

"]]
    );
}

#[test]
fn queues_vectors_and_cpus_that_have_changed() {
    let machine = MachineTree::of("two-node");
    let stored = Stored::of(&machine);
    machine.remove("/sys/class/net/nic0/queues/rx-3");
    assert_data_eq!(
        refused(&machine, &stored),
        str![[r"
queue-count-changed nic0 (left out): had 4 rx and 4 tx queues, has 3 rx and 4 tx queues now

"]]
    );

    let machine = MachineTree::of("two-node");
    machine.write("/sys/devices/system/cpu/online", "0-6\n");
    assert_data_eq!(
        refused(&machine, &stored),
        str![[r"
cpus-changed : CPUs were online: 0-7, now 0-6
cpu-offline nic0 (left out): planned CPUs are not online: 7
cpu-offline nic1 (left out): planned CPUs are not online: 7

"]]
    );
    // The other parts fit.
    let dry = stored.apply(&machine, &["--force", "--dry-run"]);
    assert_eq!(dry.code, 0, "{dry:?}");
    assert_data_eq!(
        dry.stderr,
        str![[r"
nicpin: differs from the plan: machine: CPUs were online: 0-7, now 0-6
nicpin: differs from the plan: nic0: planned CPUs are not online: 7
nicpin: differs from the plan: nic1: planned CPUs are not online: 7

"]]
    );
    let run = stored.apply(&machine, &["--force", "--json"]);
    let report = run.json();
    let counts = (&report["refused"], &report["vanished"]);
    assert_eq!((run.code, counts), (1, (&0.into(), &0.into())));

    // No CPU is on another node.
    let machine = MachineTree::of("two-node");
    machine.write("/sys/devices/system/node/has_memory", "0\n");
    let run = stored.apply(&machine, &["--dry-run"]);
    assert_eq!(run.code, 0, "{}{}", run.stdout, run.stderr);

    let machine = MachineTree::of("two-node");
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
    assert_data_eq!(
        refused(&machine, &stored),
        str![[r"
vectors-gone nic0 (left out): IRQs are absent: rx 0

"]]
    );
}

/// Before Linux 6.12 only a write shows that the kernel manages a vector.
#[test]
fn a_vector_that_was_found_not_to_move_stays_so() {
    let machine = MachineTree::of("two-node");
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

/// A stored plan can only set vectors and queues of this machine's interfaces.
#[test]
fn a_plan_that_wants_more_than_a_plan_may_is_refused_even_with_force() {
    type Edit = fn(&mut Value);
    let attempts: [Edit; 9] = [
        |plan| plan["writes"][0]["path"] = "/proc/irq/../sys/kernel/core_pattern".into(),
        |plan| plan["writes"][0]["path"] = "/etc/passwd".into(),
        |plan| plan["writes"][0]["path"] = "/proc/irq/1/smp_affinity".into(),
        |plan| plan["writes"][0]["path"] = "/proc/irq/default_smp_affinity".into(),
        |plan| {
            plan["writes"][0]["kind"] = "sysctl".into();
            plan["writes"][0]["path"] = "/proc/sys/kernel/modprobe".into();
        },
        |plan| plan["writes"][0]["value"] = "ff".into(),
        |plan| plan["writes"][0]["value"] = "$(reboot)".into(),
        |plan| plan["writes"][0]["interface"] = "nic7".into(),
        |plan| {
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
        },
    ];
    let said = attempts.map(|edit| {
        let machine = MachineTree::of("two-node");
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
        stored.fails(&machine, &["--force"])
    });
    expect("stored-plan.errors.txt", said.concat());
}

/// A name with a path in it is not the name of an interface.
#[test]
fn names_in_a_plan_are_not_followed_as_paths() {
    let machine = MachineTree::of("two-node");
    let stored = Stored::of(&machine);
    let names = ["../../../../etc", "/etc", "", ".", "..", "nic0/../nic1"];
    let said = names.map(|name| {
        stored.edit(|plan| {
            plan["interfaces"][0]["name"] = name.into();
            plan["writes"] = json!([]);
        });
        refused(&machine, &stored)
    });
    assert_data_eq!(
        said.concat(),
        str![[r"
interface-renamed ../../../../etc (left out): device 0000:21:00.0 port 0 is named nic0 now
interface-renamed /etc (left out): device 0000:21:00.0 port 0 is named nic0 now
interface-renamed  (left out): device 0000:21:00.0 port 0 is named nic0 now
interface-renamed . (left out): device 0000:21:00.0 port 0 is named nic0 now
interface-renamed .. (left out): device 0000:21:00.0 port 0 is named nic0 now
interface-renamed nic0/../nic1 (left out): device 0000:21:00.0 port 0 is named nic0 now

"]]
    );
    assert_eq!(stored.apply(&machine, &["--force"]).code, 1);
    assert_eq!(machine.nicpin(&["check", "nic1"]).code, 0);
}

#[test]
fn files_that_are_not_plans() {
    let machine = MachineTree::of("two-node");
    let stored = Stored::of(&machine);
    let said = [
        "",
        "[]",
        "{\"schema\":\"nicpin.plan/2\"}",
        "{\"schema\":\"nicpin.plan/1\"}",
        r#"{"schema":"nicpin.plan/1","a":"\\\u0085"}"#,
        "{\"schema\":\"nicpin.plan/1\",\"a\u{7f}\":\"\"}",
        // A backslash, and what is no escape after it.
        r#"{"schema":"nicpin.plan/1","a":"\\n"}"#,
    ]
    .map(|text| {
        std::fs::write(stored.path(), text).unwrap();
        stored.fails(&machine, &[])
    });
    let absent = machine.fails(&["apply", "--plan", "/nowhere/plan.json"], 1);
    expect("no-plan.errors.txt", said.concat() + &absent);
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
