//! The plan of every shipped machine, in every format, by the binary. `SNAPSHOTS=overwrite cargo test --test plans`
//! rewrites what is expected; read the difference before you commit it.
#![allow(clippy::unwrap_used, clippy::disallowed_methods)] // helpers of tests, on trees of their own

mod support;

use snapbox::data::DataFormat;
use snapbox::{Data, assert_data_eq};
use support::run::{FIXTURES, fixture, nicpin};

#[test]
fn every_machine_plans_as_expected() {
    for name in FIXTURES {
        for format in ["table", "json", "sh"] {
            let root = fixture(name);
            let run = nicpin(&["plan", "--root", root.to_str().unwrap(), "--format", format]);
            assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{name}");
            let ending = if format == "table" { "txt" } else { format };
            let expected = fixture("expected").join(format!("{name}.{ending}"));
            assert_data_eq!(Data::text(run.stdout), Data::read_from(&expected, Some(DataFormat::Text)).raw());
        }
    }
}

#[test]
fn tables_fit_100_columns() {
    for name in FIXTURES {
        let root = fixture(name);
        let run = nicpin(&["plan", "--root", root.to_str().unwrap()]);
        for line in run.stdout.lines() {
            assert!(line.chars().count() <= 100, "{name}: {line}");
        }
    }
}

/// The eight masks of the published study.
#[test]
fn x460_in_groups_gives_the_masks_of_the_study() {
    let (root, policy) = (fixture("x460"), fixture("policies/x460-group.toml"));
    let run = nicpin(&[
        "plan",
        "--root",
        root.to_str().unwrap(),
        "--config",
        policy.to_str().unwrap(),
        "--format",
        "sh",
    ]);
    let masks: Vec<&str> =
        run.stdout.lines().filter_map(|line| line.strip_prefix("echo ")?.split(' ').next()).collect();
    let expected = [
        "00000000,000000f0",
        "00000000,0000f000",
        "00000000,00f00000",
        "00000000,f0000000",
        "000000f0,00000000",
        "0000f000,00000000",
        "00f00000,00000000",
        "f0000000,00000000",
    ];
    assert_eq!(masks, expected, "{}", run.stdout);
    for (line, irq) in
        run.stdout.lines().skip(2).zip(["177", "185", "193", "201", "209", "217", "225", "233"])
    {
        assert!(line.contains(&format!(" > /proc/irq/{irq}/smp_affinity ")), "{line}");
    }
}

#[test]
fn masks_are_shown_on_request() {
    let root = fixture("two-socket-mlx4");
    let run = nicpin(&["plan", "--root", root.to_str().unwrap(), "--masks", "eth2"]);
    assert!(run.stdout.contains("\n  /proc/irq/71/smp_affinity  040  (now fff)\n"), "{}", run.stdout);
}
