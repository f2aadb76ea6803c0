//! What packagers take: the files in `dist/` do what they say with this binary.
#![allow(clippy::unwrap_used, clippy::disallowed_methods)] // helpers of tests, on trees of their own

mod support;

use support::run::Copy;

fn unit() -> Vec<String> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/dist/systemd/nicpin.service");
    let text = std::fs::read_to_string(path).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    lines.map(str::to_owned).collect()
}

/// With `ProtectKernelTunables=` every write to /proc/irq is EROFS; irqbalance shipped that once.
#[test]
fn the_unit_may_write_proc_irq_and_sees_the_cards() {
    for line in unit() {
        for key in [
            "ProtectKernelTunables",
            "PrivateNetwork",
            "ProcSubset",
            "ReadOnlyPaths",
            "InaccessiblePaths",
            "PrivateUsers",
        ] {
            assert!(!line.starts_with(key), "{line}");
        }
    }
    for needed in ["Type=oneshot", "RemainAfterExit=yes", "RuntimeDirectory=nicpin"] {
        assert!(unit().iter().any(|line| line == needed), "{needed}");
    }
}

#[test]
fn the_units_commands_apply_and_restore() {
    let machine = Copy::of("two-node");
    let before = machine.read("/proc/irq/36/smp_affinity");
    for (key, expected) in [("ExecStart=", "02"), ("ExecStop=", before.trim())] {
        let unit = unit();
        let command = unit.iter().find_map(|line| line.strip_prefix(key)).unwrap();
        let args: Vec<&str> = command.strip_prefix("/usr/bin/nicpin ").unwrap().split(' ').collect();
        assert_eq!(machine.nicpin(&args).code, 0, "{command}");
        assert_eq!(machine.read("/proc/irq/36/smp_affinity").trim(), expected, "{command}");
    }
}
