//! Control characters in names and texts of others do not reach a terminal, and add no line to the output.

use std::os::unix::fs::symlink;

use crate::support::run::{MachineTree, Run, nicpin};
use crate::support::temporary;
use crate::support::tree::put;

/// ESC, CSI in one character, CR, DEL, a change of direction, and a line that nicpin did not print.
const HOSTILE: &str = "x\u{1b}[31m\u{9b}2J\r\u{7f}\u{202e}\u{2066}y\nFAKE all is well";

/// two-node with hostile texts in its files and in their names.
fn hostile() -> MachineTree {
    let machine = MachineTree::of("two-node");
    let top = machine.path("/");
    put(&top, "/sys/class/net/nic0/operstate", HOSTILE);
    put(&top, "/sys/kernel/irq/36/actions", HOSTILE);
    put(&top, "/proc/sys/kernel/osrelease", HOSTILE);
    let interrupts = machine
        .read("/proc/interrupts")
        .replace("virtio0-input.0", "virtio0\u{1b}[2J\u{202e}-input.0\r");
    machine.write("/proc/interrupts", &interrupts);
    let driver = std::fs::canonicalize(machine.path("/sys/class/net/nic1/device"))
        .unwrap()
        .join("driver");
    std::fs::remove_file(&driver).unwrap();
    symlink(format!("../../../bus/pci/drivers/{HOSTILE}"), &driver).unwrap();
    put(
        &top,
        "/proc/812/stat",
        &format!("812 (irqbalance) S {}", ["7"; 49].join(" ")),
    );
    put(&top, "/run/irqbalance/irqbalance812.sock", "");
    put(
        &top,
        "/etc/default/irqbalance",
        "IRQBALANCE_ARGS=\"--policyscript=/a\u{1b}[2J\u{202e}/b\"",
    );
    put(
        &top,
        "/etc/systemd/network/9.link",
        "[Link]\nIRQAffinityPolicy=spread\u{1b}[2J",
    );
    std::fs::create_dir_all(machine.path("/sys/class/net/evil\u{1b}[2J\nFAKE")).unwrap();
    machine
}

fn is_clean(run: &Run) -> bool {
    let text = format!("{}{}", run.stdout, run.stderr);
    let unsafe_character = |c: char| {
        (c.is_control() && c != '\n')
            || matches!(c, '\u{200e}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    !text.contains(unsafe_character)
        && !text
            .lines()
            .any(|line| line.trim_start().starts_with("FAKE"))
}

#[test]
fn no_command_prints_them() {
    let machine = hostile();
    for args in [
        &["status"][..],
        &["status", "--all"],
        &["status", "--format", "json"],
        &["plan"],
        &["plan", "-v"],
        &["plan", "--format", "json"],
        &["plan", "--format", "sh"],
        &["check"],
        &["check", "--format", "json"],
        &["nodes"],
        &["draw"],
        &["plan", "no-such"],
        &["apply"],
        &["restore"],
    ] {
        let run = machine.nicpin(args);
        assert!(is_clean(&run), "{args:?}: {run:?}");
        assert!(!run.stdout.is_empty() || !run.stderr.is_empty(), "{args:?}");
        if args.contains(&"json") {
            serde_json::from_str::<serde_json::Value>(&run.stdout).unwrap();
        }
    }
    let json = machine.nicpin(&["plan", "--format", "json"]).stdout;
    let value: serde_json::Value = serde_json::from_str(&json).unwrap();
    let mut interfaces = value["interfaces"].as_array().unwrap().iter();
    let nic0 = interfaces.find(|one| one["name"] == "nic0").unwrap();
    let link = nic0["link"].as_str().unwrap();
    assert_eq!(
        link,
        HOSTILE.split_whitespace().next().unwrap(),
        "JSON has the text itself"
    );
}

#[test]
fn errors_are_one_line_with_a_part_of_the_text() {
    let long = HOSTILE.repeat(500);
    for (path, code) in [
        ("/proc/irq/36/smp_affinity", 1),
        ("/sys/devices/system/node/node0/distance", 1),
        ("/etc/nicpin.toml", 64),
    ] {
        let machine = MachineTree::of("two-node");
        machine.put(path, &long);
        let run = machine.nicpin(&["plan"]);
        assert_eq!(
            (run.code, run.stderr.lines().count()),
            (code, 1),
            "{path}: {}",
            run.stderr
        );
        assert!(is_clean(&run) && run.stderr.len() < 1000, "{path}: {run:?}");
    }
}

#[test]
fn a_stored_plan_with_control_characters_is_refused() {
    let machine = MachineTree::of("two-node");
    let plan = machine.nicpin(&["plan", "--format", "json"]).stdout;
    let file = machine.path("/plan.json");
    for hostile in ["\\u001b[2J", "\\nFAKE", "\\u009b", "\\r"] {
        std::fs::write(
            &file,
            plan.replacen("\"link\": \"", &format!("\"link\": \"{hostile}"), 1),
        )
        .unwrap();
        let run = machine.nicpin(&["apply", "--plan", file.to_str().unwrap()]);
        assert_eq!(run.code, 1, "{hostile}: {run:?}");
        assert!(
            run.stderr.contains("has a control character") && is_clean(&run),
            "{hostile}: {run:?}"
        );
    }
}

#[test]
fn a_capture_with_control_characters_in_names_is_refused() {
    let mut archive = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_gnu();
    header.set_size(0);
    header.set_mode(0o644);
    archive
        .append_data(&mut header, "sys/\u{1b}[2J\nFAKE", &b""[..])
        .unwrap();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut gzip, &archive.into_inner().unwrap()).unwrap();
    let dir = temporary();
    let file = dir.path().join("x.tar.gz");
    std::fs::write(&file, gzip.finish().unwrap()).unwrap();
    let run = nicpin(&["plan", "--root", file.to_str().unwrap()]);
    assert!(
        run.code == 1 && run.stderr.contains("control character") && is_clean(&run),
        "{run:?}"
    );
}

/// A fix is pasted into a shell.
#[test]
fn fixes_quote_names_for_the_shell() {
    let machine = MachineTree::of("two-node");
    let device = "sys/devices/VMBUS:00/a;reboot $(x)";
    let top = machine.path("/");
    put(&top, &format!("{device}/channels/3/cpu"), "1");
    machine.add(device, "vmbus", "hv_netvsc", "eth9", 0);
    let run = machine.nicpin(&["plan", "eth9"]);
    let fix = "echo CPU > '/sys/bus/vmbus/devices/a;reboot $(x)/channels/CHANNEL/cpu'";
    assert!(run.words().contains(fix), "{run:?}");
}
