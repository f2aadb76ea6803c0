//! What monitoring systems read: the metrics of `check --format prometheus`, and the line of `check --format nagios`.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command as Process;

use regex_lite::Regex;
use serde_json::Value;

use crate::support::run::{FIXTURES, MachineTree, nicpin};
use nicpin::report::interface::InterfaceState;

/// Metric with labels, and value.
fn samples(text: &str) -> BTreeMap<String, String> {
    let samples = text.lines().filter(|line| !line.starts_with('#'));
    samples
        .map(|line| line.rsplit_once(' ').unwrap())
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

fn metrics(machine: &MachineTree, code: i32) -> BTreeMap<String, String> {
    let run = machine.nicpin(&["check", "--format", "prometheus"]);
    assert_eq!(
        (run.code, run.stderr.as_str()),
        (code, ""),
        "{}",
        run.stdout
    );
    samples(&run.stdout)
}

#[test]
fn metrics_follow_the_state() {
    let machine = MachineTree::of("two-socket-mlx4");
    let before = metrics(&machine, 2);
    for (name, value) in [
        ("nicpin_as_planned", "0"),
        ("nicpin_check_success", "1"),
        ("nicpin_interface_state{device=\"eth2\"}", "8"),
        ("nicpin_interface_local_ratio{device=\"eth2\"}", "0"),
        ("nicpin_interface_local_ratio{device=\"eth0\"}", "1"),
        (
            "nicpin_different_settings{device=\"eth2\",reason=\"moved-by-other\"}",
            "0",
        ),
        ("nicpin_different_channels", "0"),
    ] {
        assert_eq!(
            before.get(name).map(String::as_str),
            Some(value),
            "{name}: {before:#?}"
        );
    }
    let not_applied = &before["nicpin_different_settings{device=\"eth2\",reason=\"not-applied\"}"];
    assert!(not_applied.parse::<u32>().unwrap() > 0);
    let success = "nicpin_last_success_timestamp_seconds";
    assert!(!before.contains_key(success));
    assert_eq!(machine.nicpin(&["apply"]).code, 0);
    let after = metrics(&machine, 0);
    // In a tree no kernel moves the vectors: pending.
    assert_eq!(
        (
            &*after["nicpin_as_planned"],
            &*after["nicpin_interface_state{device=\"eth2\"}"]
        ),
        ("1", "4")
    );
    assert!(
        after[success].parse::<u64>().unwrap() > 1_700_000_000,
        "{after:#?}"
    );
    machine.write("/proc/irq/73/smp_affinity", "001\n");
    let moved = metrics(&machine, 2);
    assert_eq!(
        moved["nicpin_different_settings{device=\"eth2\",reason=\"moved-by-other\"}"],
        "1"
    );
}

#[test]
fn an_interface_has_at_most_ten_series() {
    for name in FIXTURES {
        let text = MachineTree::of(name)
            .nicpin(&["check", "--format", "prometheus"])
            .stdout;
        let mut of_device = BTreeMap::<&str, usize>::new();
        let mut described = "";
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("# TYPE ") {
                let (family, kind) = rest.split_once(' ').unwrap();
                assert_eq!(kind == "counter", family.ends_with("_total"), "{line}");
                assert!(text.contains(&format!("# HELP {family} ")), "{line}");
                described = family;
            } else if !line.starts_with('#') {
                let family = line.split(['{', ' ']).next().unwrap();
                assert_eq!(family, described, "{line}");
                if let Some((_, device)) = line.split_once("device=\"") {
                    *of_device
                        .entry(device.split('"').next().unwrap())
                        .or_default() += 1;
                }
            }
        }
        assert!(
            !of_device.is_empty() && of_device.values().all(|&series| series <= 9),
            "{name}: {of_device:?}"
        );
    }
}

#[test]
fn the_dashboard_asks_for_metrics_that_exist() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/dist/prometheus/grafana-dashboard.json"
    );
    let dashboard: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let machine = MachineTree::of("two-node");
    assert_eq!(machine.nicpin(&["apply"]).code, 0);
    let series = metrics(&machine, 0).into_keys();
    let mut written: BTreeSet<String> = series
        .map(|series| series.split('{').next().unwrap().to_owned())
        .collect();
    // The metrics of a watcher: tests/it/watching.rs.
    written
        .extend(["restores_total", "interface_contended_vectors"].map(|it| format!("nicpin_{it}")));
    let name = Regex::new("nicpin_[a-z_]+").unwrap();
    let mut asked = BTreeSet::new();
    for panel in dashboard["panels"].as_array().unwrap() {
        for target in panel["targets"].as_array().unwrap() {
            let names = name.find_iter(target["expr"].as_str().unwrap());
            asked.extend(names.map(|name| name.as_str().to_owned()));
        }
    }
    assert_eq!(asked, written);
    let mut rows = InterfaceState::ROWS.into_iter();
    let alarming = rows.find(|row| row.state.is_alarming()).unwrap();
    let query = format!(">= bool {})", alarming.number);
    assert!(dashboard.to_string().contains(&query), "{query}");
}

#[test]
fn each_state_has_its_row_and_a_worse_one_a_higher_number() {
    for (place, row) in InterfaceState::ROWS.into_iter().enumerate() {
        assert_eq!((row.state as usize, row.state.name()), (place, row.name));
        assert_eq!(serde_json::to_value(row.state).unwrap(), row.name);
        assert!(place == 0 || InterfaceState::ROWS[place - 1].number < row.number);
    }
}

#[test]
fn a_file_of_metrics_is_for_all_to_read_and_keeps_the_last_success() {
    let machine = MachineTree::of("two-node");
    let file = machine.path("/nicpin.prom");
    let write = |code: i32| {
        let run = machine.nicpin(&[
            "check",
            "--format",
            "prometheus",
            "-o",
            file.to_str().unwrap(),
        ]);
        assert_eq!(
            (run.code, run.stdout.as_str(), run.stderr.as_str()),
            (code, "", "")
        );
        samples(&std::fs::read_to_string(&file).unwrap())
    };
    let success = "nicpin_last_success_timestamp_seconds";
    assert!(!write(2).contains_key(success));
    assert_eq!(machine.nicpin(&["apply"]).code, 0);
    let planned = write(0);
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(
        &file,
        text.replace(
            &format!("{success} {}", planned[success]),
            &format!("{success} 1234567890"),
        ),
    )
    .unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    machine.write("/proc/irq/36/smp_affinity", "01\n");
    assert_eq!(write(2)[success], "1234567890");
    assert_eq!(
        std::fs::metadata(&file).unwrap().permissions().mode() & 0o777,
        0o644
    );
    let left = std::fs::read_dir(machine.path("/"))
        .unwrap()
        .filter(|entry| {
            entry
                .as_ref()
                .unwrap()
                .file_name()
                .to_string_lossy()
                .starts_with("nicpin.prom.")
        });
    assert_eq!(left.count(), 0);
    let link = machine.path("/link.prom");
    std::os::unix::fs::symlink(&file, &link).unwrap();
    let run = machine.nicpin(&[
        "check",
        "--format",
        "prometheus",
        "-o",
        link.to_str().unwrap(),
    ]);
    assert!(
        run.code == 1 && run.stderr.contains("symbolic link"),
        "{}",
        run.stderr
    );
}

#[test]
fn options_of_another_format_are_usage_errors() {
    let machine = MachineTree::of("two-node");
    for args in [
        &["-o", "x"][..],
        &["--json", "--format", "prometheus"],
        &["--json", "-o", "x"],
        &["--format", "prometheus", "--warning", "95:"],
        &["--format", "nagios", "-o", "x"],
        &["--format", "nagios", "--critical", "20:10"],
    ] {
        let run = machine.nicpin(&[&["check"], args].concat());
        let is_json = run
            .stdout
            .starts_with(r#"{"schema":"nicpin.error/1","exit":64"#);
        let is_as_asked = is_json == args.contains(&"--json") && (is_json || run.stdout.is_empty());
        assert!(run.code == 64 && is_as_asked, "{args:?}: {run:?}");
    }
}

fn plugin(machine: &MachineTree, args: &[&str]) -> (i32, String) {
    let run = machine.nicpin(&[&["check", "--format", "nagios"], args].concat());
    assert_eq!(
        (run.stderr.as_str(), run.stdout.lines().count()),
        ("", 1),
        "{}",
        run.stdout
    );
    let status = ["OK", "WARNING", "CRITICAL", "UNKNOWN"][usize::try_from(run.code).unwrap()];
    let rest = run
        .stdout
        .strip_prefix(&format!("NICPIN {status}: "))
        .unwrap_or_else(|| panic!("{}", run.stdout));
    let (_, data) = rest.trim_end().split_once(" | ").unwrap_or((rest, ""));
    for one in data.split(' ').filter(|one| !one.is_empty()) {
        let (label, values) = one.split_once('=').unwrap();
        assert!(!label.is_empty() && values.split(';').count() == 5, "{one}");
        let number = values.split(';').next().unwrap().trim_end_matches('%');
        assert!(number.parse::<f64>().is_ok(), "{one}");
    }
    (run.code, run.stdout)
}

#[test]
fn the_plugin_is_ok_warns_is_critical_or_unknown() {
    let machine = MachineTree::of("two-socket-mlx4");
    let (code, line) = plugin(&machine, &[]);
    assert_eq!(code, 2);
    assert!(
        line.starts_with("NICPIN CRITICAL: eth2 is remote, "),
        "{line}"
    );
    assert!(line.contains("'eth2_local'=0%;;;0;100"), "{line}");
    assert_eq!(machine.nicpin(&["apply"]).code, 0);
    let (code, line) = plugin(&machine, &[]);
    assert!(
        code == 0 && line.contains(" settings as planned | "),
        "{line}"
    );
    machine.write("/sys/class/net/eth2/queues/tx-0/xps_cpus", "000\n");
    machine.remove("/run/nicpin/state.json");
    let (code, line) = plugin(&machine, &[]);
    assert!(code == 1 && line.contains("(not-applied 1)"), "{line}");
    let run = nicpin(&["check", "--format", "nagios", "--root", "/nowhere-at-all"]);
    assert!(
        run.code == 3 && run.stdout.starts_with("NICPIN UNKNOWN: /nowhere-at-all: "),
        "{}",
        run.stdout
    );
}

/// Programs that store performance data may tell them apart by their place.
#[test]
fn performance_data_are_in_the_same_order_whatever_the_state() {
    let machine = MachineTree::of("two-socket-mlx4");
    let labels = || {
        let (_, line) = plugin(&machine, &[]);
        let (_, data) = line.split_once(" | ").unwrap();
        let labels = data.split(' ').map(|one| one.split_once('=').unwrap().0);
        labels.map(str::to_owned).collect::<Vec<_>>()
    };
    let before = labels();
    assert!(
        before.len() > 2 && before[..before.len() - 1].is_sorted(),
        "{before:?}"
    );
    assert_eq!(machine.nicpin(&["apply"]).code, 0);
    assert_eq!(labels(), before);
}

/// Exit code 1 of an error would be a warning of a plugin.
#[test]
fn a_line_that_cannot_be_written_is_unknown() {
    let machine = MachineTree::of("two-socket-mlx4");
    assert_eq!(machine.nicpin(&["apply"]).code, 0);
    let check = |format: &str| {
        let mut run = Process::new(env!("CARGO_BIN_EXE_nicpin"));
        run.args(["check", "--format", format, "--root"])
            .arg(machine.path("/"));
        run.stdout(std::fs::File::create("/dev/full").unwrap());
        let output = run.output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.starts_with("nicpin: standard output: "), "{said}");
        output.status.code()
    };
    assert_eq!([check("nagios"), check("table")], [Some(3), Some(1)]);
}

/// Other settings cannot be read, but an IRQ cannot be moved, for which --strict warns.
#[test]
fn strictness_is_a_warning_beside_what_is_unknown() {
    let machine = MachineTree::of("two-socket-mlx4");
    for irq in 64..=68 {
        machine.set_mode(&format!("/proc/irq/{irq}/smp_affinity"), 0o444);
    }
    for irq in 70..=76 {
        machine.remove(&format!("/proc/irq/{irq}"));
    }
    machine.nicpin(&["apply", "-q"]);
    let code = |args: &[&str]| {
        machine
            .nicpin(&[&["check", "--format", "nagios"], args].concat())
            .code
    };
    assert_eq!((code(&[]), code(&["--strict"])), (3, 1));
}

#[test]
fn thresholds_are_ranges_of_the_local_share() {
    let machine = MachineTree::of("two-socket-mlx4");
    assert_eq!(machine.nicpin(&["apply"]).code, 0);
    for (args, expected) in [
        (&["--warning", "95:", "eth0"][..], 0),
        (&["--warning", "~:50", "eth0"], 1),
        (&["--warning", "~:50", "--critical", "@90:100", "eth0"], 2),
    ] {
        let (code, line) = plugin(&machine, args);
        assert_eq!(code, expected, "{args:?}: {line}");
    }
    let (_, line) = plugin(
        &machine,
        &["--warning", "~:50", "--critical", "@90:100", "eth0"],
    );
    assert!(
        line.contains("eth0 is pending, 100 % local (range @90:100)"),
        "{line}"
    );
    assert!(
        line.contains("'eth0_local'=100%;~:50;@90:100;0;100"),
        "{line}"
    );
}

#[test]
fn an_interface_that_cannot_be_determined_is_unknown() {
    let machine = MachineTree::of("two-socket-mlx4");
    assert_eq!(machine.nicpin(&["apply"]).code, 0);
    for irq in std::fs::read_dir(machine.path("/sys/class/net/eth2/device/msi_irqs")).unwrap() {
        let irq = irq.unwrap().file_name();
        machine.remove(&format!("/proc/irq/{}", irq.to_str().unwrap()));
    }
    let (code, line) = plugin(&machine, &["eth2"]);
    assert!(
        code == 3 && line.starts_with("NICPIN UNKNOWN: eth2 "),
        "{line}"
    );
}
