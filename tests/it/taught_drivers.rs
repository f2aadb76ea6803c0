//! Drivers that the policy teaches: `[[driver]]`.

use serde_json::Value;

use crate::support::run::{Copy, good};

/// two-socket-mlx4 with a card whose names no driver has.
fn unknown() -> Copy {
    let machine = Copy::of("two-socket-mlx4");
    let odd = machine.read("/proc/interrupts").replace("mlx4-", "acme-");
    machine.write("/proc/interrupts", &odd);
    std::fs::create_dir(machine.path("/etc")).unwrap();
    machine
}

const ROW: &str = r#"
[[driver]]
name = "mlx4_en"
irqs = ["acme-{n}@{pci} = combined by order", "acme-async{x} = control"]
"#;

/// `role queue row` of each vector of eth2.
fn vectors(plan: &str) -> Vec<String> {
    let plan: Value = serde_json::from_str(plan).unwrap();
    let vectors = plan["interfaces"][0]["vectors"].as_array().unwrap();
    let text = |of: &Value| {
        let row = of["row"].as_str().unwrap_or("-");
        format!("{} {} {row}", of["role"].as_str().unwrap(), of["queue"])
    };
    vectors.iter().map(text).collect()
}

#[test]
fn a_taught_driver_is_planned_by_its_queues() {
    let machine = unknown();
    let plan = || vectors(&machine.nicpin(&["plan", "--json", "eth2"]).stdout);
    assert!(
        plan().iter().all(|of| of.starts_with("data null")),
        "{:?}",
        plan()
    );
    machine.write("/etc/nicpin.toml", ROW);
    let taught = plan();
    assert_eq!(
        taught[0],
        "combined 0 acme-{n}@{pci} = combined by order (policy)"
    );
    assert_eq!(
        taught[1],
        "combined 1 acme-{n}@{pci} = combined by order (policy)"
    );
    assert_eq!(
        taught.last().unwrap(),
        "control null acme-async{x} = control (policy)"
    );
    let explained = good(&machine, &["plan", "--explain", "eth2"]);
    let line = "acme-1@0000:82:00.0 by its name, as acme-{n}@{pci} = combined by order (policy)";
    assert!(explained.contains(line), "{explained}");
    // It is planned on another machine, from a capture.
    let file = machine.path("/machine.tar.gz");
    let file = file.to_str().unwrap();
    good(&machine, &["capture", "-o", file]);
    let there = crate::support::run::nicpin(&["plan", "--json", "--root", file, "eth2"]);
    assert_eq!(vectors(&there.stdout), taught);
}

/// sysfs and `ethtool -i` may have different names, such as `fsl-gianfar` and `gianfar`.
#[test]
fn a_taught_driver_has_the_name_in_sysfs_or_of_ethtool() {
    let machine = unknown();
    let reported = r#"{"name": "acme", "version": "", "firmware": ""}"#;
    machine.write("/nicpin/ethtool/eth2/driver", reported);
    let plan = || vectors(&machine.nicpin(&["plan", "--json", "eth2"]).stdout);
    let read = "combined 0 acme-{n}@{pci} = combined by order (policy)";
    for (name, first) in [
        ("acme", read),
        ("mlx4_en", read),
        ("mlx4_core", "data null -"),
        ("acm", "data null -"),
    ] {
        machine.write("/etc/nicpin.toml", &ROW.replace("mlx4_en", name));
        assert_eq!(plan()[0], first, "{name}");
        let plan = good(&machine, &["plan"]);
        assert_eq!(
            plan.contains("which no interface has"),
            first != read,
            "{plan}"
        );
    }
    // A capture and restore know it, too.
    machine.write("/etc/nicpin.toml", &ROW.replace("mlx4_en", "acme"));
    let before = machine.texts();
    good(&machine, &["apply", "eth2"]);
    good(&machine, &["restore"]);
    assert!(machine.texts() == before);
    let file = machine.path("/machine.tar.gz");
    let file = file.to_str().unwrap();
    good(&machine, &["capture", "-o", file]);
    let there = crate::support::run::nicpin(&["plan", "--json", "--root", file, "eth2"]);
    assert_eq!(vectors(&there.stdout)[0], read);
}

#[test]
fn what_apply_found_is_restored_whatever_the_policy_teaches_since() {
    let machine = unknown();
    let before = machine.texts();
    good(&machine, &["apply", "eth2"]);
    machine.write("/etc/nicpin.toml", ROW);
    good(&machine, &["apply", "eth2"]);
    assert_eq!(machine.nicpin(&["check", "eth2"]).code, 0);
    machine.remove("/etc/nicpin.toml");
    good(&machine, &["restore"]);
    assert!(machine.texts() == before);
}

#[test]
fn a_stored_plan_has_what_the_policy_taught() {
    let machine = unknown();
    machine.write("/etc/nicpin.toml", ROW);
    let plan = good(&machine, &["plan", "--json", "eth2"]);
    machine.remove("/etc/nicpin.toml");
    machine.write("/plan.json", &plan);
    let file = machine.path("/plan.json");
    let applied = good(&machine, &["apply", "--plan", file.to_str().unwrap()]);
    assert!(
        applied.contains("combined 0") || applied.contains("eth2"),
        "{applied}"
    );
    machine.write("/etc/nicpin.toml", ROW);
    assert_eq!(machine.nicpin(&["check", "eth2"]).code, 0);
}

#[test]
fn what_is_wrong_in_a_driver_is_an_error_with_file_and_line() {
    let machine = unknown();
    for (text, has) in [
        (
            "[[driver]]\nname = 'a'\nirqs = [\n  'a{n} = rx',\n  'a{n} = receive',\n]\n",
            "nicpin.toml: line 5, column 3: `a{n}` needs its role, as in `a{n} = rx`",
        ),
        (
            "[[driver]]\nirqs = []\n",
            "line 1, column 1: the driver has no `name`",
        ),
        (
            "\n[[driver]]\nname = 'a'\n",
            "line 2, column 1: the driver has no `irqs`",
        ),
        (
            "[[driver]]\nnames = 'a'\n",
            "line 2, column 1: unknown key `names`; did you mean `name`?",
        ),
        ("[driver]\n", "expected drivers, each headed by [[driver]]"),
        (
            "[[driver]]\nname = 'a'\nirqs = []\n[[driver]]\nname = 'a'\n",
            "line 5, column 8: `a` has a [[driver]] before this one",
        ),
    ] {
        machine.write("/etc/nicpin.toml", text);
        machine.fails(&["plan"], 64, &[has]);
    }
    machine.write(
        "/etc/nicpin.toml",
        "[[driver]]\nname = 'acme'\nirqs = ['a{n} = rx']\n",
    );
    let plan = good(&machine, &["plan"]);
    let note = "the policy teaches the driver acme, which no interface has; those here: ";
    assert!(plan.contains(note) && plan.contains("mlx4_en"), "{plan}");
}
