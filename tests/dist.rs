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

/// As it ships, the example changes nothing; with its comment signs taken off, every line of it is good.
#[test]
fn the_example_policy_is_the_default_policy_and_every_line_is_good() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/dist/nicpin.toml");
    let machine = Copy::of("dl980");
    let plain = machine.nicpin(&["plan"]);
    let with_example = machine.nicpin(&["plan", "--config", path]);
    assert_eq!((with_example.code, with_example.stderr.as_str()), (0, ""));
    assert_eq!(plain.stdout, with_example.stdout);
    let text = std::fs::read_to_string(path).unwrap();
    let setting = |line: &str| {
        let rest = line.strip_prefix("# ")?;
        let begins =
            rest.starts_with("[[rule]]") || rest.split_once(" = ").is_some_and(|(key, _)| !key.contains(' '));
        begins.then(|| rest.to_owned())
    };
    let all: Vec<String> =
        text.lines().map(|line| setting(line).unwrap_or_else(|| line.to_owned())).collect();
    machine.write("/all.toml", &(all.join("\n") + "\n"));
    let run = machine.nicpin(&["plan", "--config", machine.path("/all.toml").to_str().unwrap(), "eth3"]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    assert_eq!(all.iter().filter(|line| line.starts_with("[[rule]]")).count(), 3);
    assert!(run.stdout.contains("by rule 1"), "{}", run.stdout);
}
