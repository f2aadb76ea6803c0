//! Drivers that the policy teaches: `[[driver]]`.

use serde_json::Value;
use snapbox::str;

use crate::support::run::{MachineTree, assert_line, codes, document, expect, good, note, text};

/// A machine whose card nobody knows: no row has its names.
fn unknown() -> MachineTree {
    let machine = MachineTree::of("two-socket-mlx4");
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
fn names_with_two_meanings_are_refused() {
    let machine = unknown();
    for (second, is_refused) in [
        ("acme-{n}@{pci} = combined by order", false),
        ("Acme-{n}@{pci} = rx", true),
        ("acme-{n}@{pci} = combined", true),
    ] {
        let row = ROW.replace("acme-async{x} = control", second);
        machine.write("/etc/nicpin.toml", &row);
        let run = machine.nicpin(&["plan"]);
        assert_eq!(run.code, if is_refused { 64 } else { 0 }, "{second}");
        let error = format!("`{second}` contradicts `acme-{{n}}@{{pci}} = combined by order`");
        assert_eq!(run.stderr.contains(&error), is_refused, "{}", run.stderr);
    }
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
    let explained = &document(&machine, &["plan", "--explain", "eth2"])["explanation"]["eth2"];
    let mut lines = explained.as_array().unwrap().iter();
    let line = lines.find_map(|line| line.as_str().filter(|line| line.contains("acme-1@")));
    assert_line(
        line.unwrap(),
        str![[r"
queue 0 IRQ 71 any CPU (on 0) -> CPU 6 local (node 1), acme-1@0000:82:00.0 by its name, as acme-{n}@{pci} = combined by order (policy); core 6 had 0 queues, the cache of CPUs 6-11 had 0

"]],
    );
    // Somewhere else, from a capture.
    let file = machine.path("/machine.tar.gz");
    let file = file.to_str().unwrap();
    good(&machine, &["capture", "-o", file]);
    let there = crate::support::run::nicpin(&["plan", "--json", "--root", file, "eth2"]);
    assert_eq!(vectors(&there.stdout), taught);
}

/// The driver's name in sysfs may be another one than `ethtool -i` says (`fsl-gianfar` and `gianfar`).
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
        let plan = document(&machine, &["plan"]);
        let is_unmatched = codes(&plan).contains(&"driver-unmatched");
        assert_eq!(is_unmatched, first != read, "{plan}");
    }
    // Also from a capture, and where restore reads it.
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
    let applied = document(&machine, &["apply", "--plan", file.to_str().unwrap()]);
    assert_eq!(applied["results"][0]["interface"], "eth2");
    machine.write("/etc/nicpin.toml", ROW);
    assert_eq!(machine.nicpin(&["check", "eth2"]).code, 0);
}

#[test]
fn what_is_wrong_in_a_driver_is_an_error_with_file_and_line() {
    let machine = unknown();
    let said = [
        "[[driver]]\nname = 'a'\nirqs = [\n  'a{n} = rx',\n  'a{n} = receive',\n]\n",
        "[[driver]]\nirqs = []\n",
        "\n[[driver]]\nname = 'a'\n",
        "[[driver]]\nnames = 'a'\n",
        "[driver]\n",
        "[[driver]]\nname = 'a'\nirqs = []\n[[driver]]\nname = 'a'\n",
    ]
    .map(|policy| {
        machine.write("/etc/nicpin.toml", policy);
        format!("{policy}{}\n", machine.fails(&["plan"], 64))
    });
    expect("taught-drivers.errors.txt", said.concat());
    machine.write(
        "/etc/nicpin.toml",
        "[[driver]]\nname = 'acme'\nirqs = ['a{n} = rx']\n",
    );
    let plan = document(&machine, &["plan"]);
    let named = note(&plan, "driver-unmatched");
    assert_eq!(named["driver"], "acme");
    assert_line(
        text(named, "text"),
        str![[r"
the policy has a [[driver]] acme, which no interface here uses; the drivers here: igb, mlx4_en

"]],
    );
    machine.write(
        "/etc/nicpin.toml",
        "[[driver]]\nname = 'igb'\nirqs = ['a{n} = rx']\n",
    );
    assert_line(
        text(
            note(&document(&machine, &["plan"]), "names-unmatched"),
            "text",
        ),
        str![[r"
no IRQ of igb has a name of the policy's [[driver]]; its IRQs: eth0-TxRx-0, eth0-TxRx-1, eth0-TxRx-2 and 2 others

"]],
    );
}
