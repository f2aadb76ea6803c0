//! `nicpin capture`, and `--root` on a capture: the same plan as for the machine.

use std::os::unix::fs::PermissionsExt as _;

use itertools::Itertools as _;
use snapbox::{assert_data_eq, str};

use crate::support::captured::{Captured, assert_same_plans, plan};
use crate::support::machine::{Card, MachineSpec, Port};
use crate::support::run::{FIXTURES, MachineTree, Run, fixture, is_root, nicpin};
use crate::support::temporary;

#[test]
fn a_capture_and_what_it_unpacks_to_plan_as_the_machine() {
    for name in FIXTURES {
        let captured = Captured::of(&fixture(name));
        assert_eq!(captured.run.stderr, "", "{name}");
        assert_same_plans(&fixture(name), &captured.file());
        assert_same_plans(&fixture(name), &captured.unpack());
    }
}

/// Without a vector that is recognized, nothing below `/proc/irq` is read.
#[test]
fn a_machine_without_recognized_vectors_is_captured() {
    let machine = MachineTree::of("x460");
    let interrupts = machine.read("/proc/interrupts");
    machine.write("/proc/interrupts", &interrupts.replace(" eth", " foo"));
    let captured = Captured::of(machine.dir());
    assert_eq!(captured.run.code, 0, "{}", captured.run.stderr);
    assert_same_plans(machine.dir(), &captured.file());
}

#[test]
fn check_and_selectors_work_on_a_capture() {
    let machine = MachineTree::of("four-node");
    machine.put("/proc/irq/38/affinity_hint", "0020");
    assert_eq!(machine.nicpin(&["apply"]).code, 0);
    let captured = Captured::of(machine.dir());
    let capture = captured.file();
    let root = capture.to_str().unwrap();
    for args in [
        &["check"][..],
        &["plan", "--scope", "hint"],
        &["plan", "node:1"],
        &["plan", "driver:igb", "--scope", "all"],
        &["plan", "no"],
    ] {
        let (of_capture, of_machine) = (
            nicpin(&[args, &["--root", root]].concat()),
            machine.nicpin(args),
        );
        assert_eq!(
            (of_capture.code, of_capture.stdout),
            (of_machine.code, of_machine.stdout),
            "{args:?}"
        );
        assert_eq!(of_capture.stderr, of_machine.stderr, "{args:?}");
    }
}

#[test]
fn an_unchanged_machine_gives_the_same_bytes() {
    let machine = MachineTree::of("wide");
    let first = Captured::of(machine.dir()).bytes();
    assert_eq!(first, Captured::of(machine.dir()).bytes());
    let captured = Captured::of(machine.dir());
    assert_eq!(first, Captured::of(&captured.file()).bytes());
    let interrupts = machine.read("/proc/interrupts");
    assert!(interrupts.contains("          1 "), "{interrupts}");
    machine.write(
        "/proc/interrupts",
        &interrupts.replace("          1 ", "    4294967 "),
    );
    assert_eq!(first, Captured::of(machine.dir()).bytes());
    machine.write("/proc/sys/net/core/rps_sock_flow_entries", "4096\n");
    assert_ne!(first, Captured::of(machine.dir()).bytes());
}

#[test]
fn permission_bits_and_empty_directories_are_captured() {
    let machine = MachineTree::of("two-node");
    machine.set_mode("/proc/irq/36/smp_affinity", 0o444);
    machine.set_mode("/proc/irq/37/smp_affinity", 0o644);
    let queue = "/sys/class/net/nic0/queues/tx-3";
    machine.remove(&format!("{queue}/xps_cpus"));
    let captured = Captured::of(machine.dir());
    let unpacked = captured.unpack();
    let mode = |path: &str| {
        std::fs::metadata(unpacked.join(path))
            .unwrap()
            .permissions()
            .mode()
            & 0o777
    };
    assert_eq!(
        (
            mode("proc/irq/36/smp_affinity"),
            mode("proc/irq/37/smp_affinity")
        ),
        (0o444, 0o644)
    );
    assert!(unpacked.join(queue.trim_start_matches('/')).is_dir());
    assert_same_plans(machine.dir(), &captured.file());
    assert_same_plans(machine.dir(), &unpacked);
    let json = plan(&captured.file(), "json");
    assert!(json.contains("\"movable\": false"), "{json}");
}

#[test]
fn files_that_are_absent_are_absent_in_the_capture() {
    let machine = MachineTree::of("two-node");
    machine.remove("/sys/class/net/nic1/speed");
    let captured = Captured::of(machine.dir());
    assert!(!captured.unpack().join("sys/class/net/nic1/speed").exists());
    assert_same_plans(machine.dir(), &captured.file());
}

#[test]
fn the_policy_file_is_captured_without_its_comments() {
    let machine = MachineTree::of("two-node");
    std::fs::create_dir(machine.path("/etc")).unwrap();
    let policy = "# rack 12, ask ann@example.org\n[defaults]\nexclude = \"0\" # db7\n\
                  [[rule]]\nmatch = { name = \"nic1\" }\nset = { irq-cores = 2 }\n";
    machine.write("/etc/nicpin.toml", policy);
    let captured = Captured::of(machine.dir());
    assert_same_plans(machine.dir(), &captured.file());
    for word in ["rack", "ann", "db7"] {
        assert!(!captured.text().contains(word), "{word}");
    }
    let rule = "[[rule]]\nmatch = { name = \"db7\" }\nset = { rps = \"off\" }\n";
    for refused in ["exclude = \n# db7", &rule.repeat(6000)] {
        machine.write("/etc/nicpin.toml", refused);
        let captured = Captured::of(machine.dir());
        assert_data_eq!(
            &*captured.run.stderr,
            str![[r"
nicpin: /etc/nicpin.toml is left out: it is not a policy, or one that is too long

"]]
        );
        assert!(!captured.text().contains("db7"));
    }
}

#[test]
fn a_machine_that_cannot_be_read_is_still_captured() {
    let machine = MachineTree::of("two-node");
    machine.write("/proc/irq/36/smp_affinity", "garbage\n");
    let captured = Captured::of(machine.dir());
    assert_eq!(
        (captured.run.code, captured.run.stderr.lines().count()),
        (1, 1),
        "{}",
        captured.run.stderr
    );
    assert!(
        captured.run.stderr.contains("/proc/irq/36/smp_affinity"),
        "{}",
        captured.run.stderr
    );
    let file = captured.dir.path().join("machine.tar.gz");
    let (of_capture, of_machine) = (
        nicpin(&["plan", "--root", file.to_str().unwrap()]),
        machine.nicpin(&["plan"]),
    );
    assert_eq!(of_capture.code, 1);
    let reason = |run: &Run| {
        run.stderr
            .split("/proc/irq/36/smp_affinity")
            .nth(1)
            .unwrap()
            .to_owned()
    };
    assert_eq!(reason(&of_capture), reason(&of_machine));
}

#[test]
fn unreadable_files_are_left_out_and_named_without_root() {
    let machine = MachineTree::of("two-node");
    machine.open_to_all();
    machine.set_mode("/proc/irq/36/effective_affinity_list", 0o000);
    // Only root may read affinity_hint.
    for irq in [36, 37, 38] {
        machine.put(&format!("/proc/irq/{irq}/affinity_hint"), "02");
        machine.set_mode(&format!("/proc/irq/{irq}/affinity_hint"), 0o000);
    }
    let dir = temporary();
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    let file = dir.path().join("x.tar.gz");
    let run = machine.nicpin_as_nobody(&["capture", "-o", file.to_str().unwrap()]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert_data_eq!(
        run.stderr,
        str![[r#"
nicpin: /proc/irq/36/affinity_hint and 2 others are left out: permission denied; fix: run as root to include them
nicpin: /proc/irq/36/effective_affinity_list is left out: permission denied; fix: run as root to include them

"#]]
    );
    let run = nicpin(&["plan", "--root", file.to_str().unwrap()]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    if !is_root() {
        std::fs::remove_dir_all(dir).unwrap();
    }
}

/// 256 CPUs on 8 nodes with SMT, four cards of 64 queues, and the interrupts of 1,200 other things.
#[test]
fn the_capture_of_a_large_machine_is_small() {
    let nodes: Vec<String> = (0..8)
        .map(|n| {
            format!(
                "{}-{},{}-{}",
                n * 16,
                n * 16 + 15,
                128 + n * 16,
                143 + n * 16
            )
        })
        .collect();
    let nodes: Vec<&str> = nodes.iter().map(String::as_str).collect();
    let mut machine = MachineSpec::new(&nodes);
    machine.cores = machine.groups(|cpu| cpu % 128);
    machine.l3 = machine.groups(|cpu| cpu % 128 / 8);
    machine.irq_digits = 4;
    for (number, first) in [(0, 100), (1, 200), (2, 300), (3, 400)] {
        let name = format!("ens{number}f0np0");
        let address = format!("0000:{number}1:00.0");
        let serving: Vec<u32> = (0..64).collect();
        let actions = (0..64).map(|queue| format!("mlx5_comp{queue}@pci:{address}"));
        let card = Card::new(
            "mlx5_core",
            &format!("pci0000:{number}0/0000:{number}0:01.0"),
            &address,
            number * 2,
            "16.0 GT/s PCIe",
            16,
        )
        .port(Port::new(&name, 100_000, 64, 64).channels([0, 0, 0, 64], [0, 0, 0, 64]))
        .vectors(first, actions, &[], &serving);
        machine.cards.push(card);
    }
    let dir = temporary();
    machine.write(dir.path());
    // The counts of a machine with a long uptime.
    let interrupts = std::fs::read_to_string(dir.path().join("proc/interrupts")).unwrap();
    let mut seed = 1_u32;
    let mut other = String::new();
    for irq in 1000..2200 {
        other += &format!("{irq}:");
        for _ in 0..256 {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            other += &format!(" {:10}", seed >> 4);
        }
        other += &format!(
            "  IR-PCI-MSIX-0000:{:02x}:00.0   {:3}-edge      nvme{}q{}\n",
            irq % 200,
            irq % 128,
            irq % 24,
            irq % 128
        );
    }
    let text = interrupts.replacen(" NMI:", &(other + " NMI:"), 1);
    assert!(text.len() > 3_000_000, "{}", text.len());
    std::fs::write(dir.path().join("proc/interrupts"), text).unwrap();
    let captured = Captured::of(dir.path());
    let size = captured.bytes().len();
    assert!(size < 250_000, "{size} bytes");
    assert_same_plans(dir.path(), &captured.file());
}

#[test]
fn a_capture_is_read_only() {
    let captured = Captured::of(&fixture("two-node"));
    let (file, before) = (captured.file(), captured.bytes());
    let errors = ["apply", "start", "restore", "stop"].map(|command| {
        let run = nicpin(&[command, "--root", file.to_str().unwrap()]);
        assert_eq!((run.code, run.stdout.as_str()), (1, ""), "{command}");
        run.stderr.replace(file.to_str().unwrap(), "CAPTURE")
    });
    assert!(errors.iter().all_equal(), "{errors:?}");
    assert_data_eq!(
        &errors[0],
        str![[r#"
nicpin: CAPTURE: a capture is read-only; fix: run the command on the machine itself, or on the unpacked tree

"#]]
    );
    assert_eq!(captured.bytes(), before);
}

#[test]
fn an_existing_file_is_replaced_only_with_force() {
    let dir = temporary();
    let file = dir.path().join("x.tar.gz");
    std::fs::write(&file, "mine").unwrap();
    let root = fixture("two-node");
    let args = [
        "capture",
        "--root",
        root.to_str().unwrap(),
        "-o",
        file.to_str().unwrap(),
    ];
    let run = nicpin(&args);
    assert_eq!((run.code, run.stdout.as_str()), (1, ""));
    let named = run.stderr.replace(file.to_str().unwrap(), "FILE");
    assert_data_eq!(
        named,
        str![[r"
nicpin: FILE: file exists; fix: use --force to replace it

"]]
    );
    assert_eq!(std::fs::read(&file).unwrap(), b"mine");
    let run = nicpin(&[&args[..], &["--force"]].concat());
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    let named = run.stdout.replace(file.to_str().unwrap(), "FILE");
    assert_data_eq!(
        named,
        str![[r"
FILE: 2 interfaces, 139 files, 4008 bytes

"]]
    );
    assert_same_plans(&root, &file);
    let run = nicpin(&[
        "capture",
        "--root",
        root.to_str().unwrap(),
        "-o",
        "/no/such/folder/x",
    ]);
    assert_eq!(
        (run.code, run.stderr.as_str()),
        (
            1,
            "nicpin: /no/such/folder/x: no such file or directory (ENOENT)\n"
        )
    );
}

#[test]
fn without_a_name_and_for_a_dash_it_goes_to_standard_output() {
    let captured = Captured::of(&fixture("two-node"));
    let root = fixture("two-node");
    let dir = temporary();
    for args in [&[][..], &["-o", "-"]] {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_nicpin"))
            .args(["capture", "--root", root.to_str().unwrap()])
            .args(args)
            .current_dir(dir.path())
            .output()
            .unwrap();
        assert_eq!(
            (output.status.code(), output.stderr.as_slice()),
            (Some(0), &b""[..])
        );
        assert_eq!(output.stdout, captured.bytes());
    }
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}
