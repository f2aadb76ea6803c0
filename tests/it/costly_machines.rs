//! Machines that nobody has: extreme numbers, deep paths, long lists. Reading one costs at most 256 MiB and 10 s of CPU
//! time, or it is refused with the limit that it broke.

use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, Output};

use crate::seeds::SMALL_MACHINE;
use crate::support::{is_full, temporary};
use crate::targets::{compressed, tar};

const DEVICE: &str = "/sys/devices/pci0000:40/0000:41:00.0";
const CPU: &str = "/sys/devices/system/cpu";
const NODE: &str = "/sys/devices/system/node";

/// The small machine of the fuzz targets; these files replace those at the same paths.
fn machine(files: &[(String, String)]) -> Vec<u8> {
    let is_replaced = |line: &&str| {
        !files
            .iter()
            .any(|(path, _)| line.starts_with(&format!("{path}=")))
    };
    let kept = SMALL_MACHINE
        .lines()
        .filter(is_replaced)
        .map(|line| format!("{line}\n"));
    let others = files
        .iter()
        .map(|(path, text)| format!("{path}={}\n", text.replace('\n', "\\n")));
    compressed(&tar(&kept.chain(others).collect::<String>()))
}

/// Runs with limits of 256 MiB of memory and 10 s of CPU time.
fn run(args: &[&str], capture: &[u8]) -> Output {
    let dir = temporary();
    let file = dir.path().join("capture");
    std::fs::write(&file, capture).unwrap();
    let limits = "ulimit -v 262144; ulimit -t 10; exec \"$@\"";
    let mut command = Command::new("sh");
    command
        .args(["-c", limits, "sh", env!("CARGO_BIN_EXE_nicpin")])
        .args(args)
        .arg("--root")
        .arg(&file);
    command.output().unwrap()
}

fn refused(args: &[&str], capture: &[u8]) -> String {
    ends_with(1, args, capture)
}

fn ends_with(code: i32, args: &[&str], capture: &[u8]) -> String {
    let output = run(args, capture);
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(
        (output.status.code(), output.stdout.len()),
        (Some(code), 0),
        "{args:?}: {error}"
    );
    assert_eq!(error.lines().count(), 1, "{args:?}: {error}");
    error
}

#[test]
fn extreme_numbers_are_refused_or_are_nothing_special() {
    let most = u64::MAX.to_string();
    let channels = crate::support::machine::channels([0, 0, 0, 4], [0, 0, 0, 2]).to_text();
    let channels = channels.replace('4', "4294967295");
    let pairs = |files: &[(&str, &str, &str)]| -> Vec<(String, String)> {
        files
            .iter()
            .map(|(above, name, text)| (format!("{above}/{name}"), format!("{text}\n")))
            .collect()
    };
    let queues = format!("{DEVICE}/net/eth0/queues");
    for files in [
        pairs(&[
            (DEVICE, "max_link_speed", &format!("{most} GT/s")),
            (DEVICE, "max_link_width", "16"),
        ]),
        pairs(&[
            (DEVICE, "max_link_speed", "8.0 GT/s PCIe"),
            (DEVICE, "max_link_width", &most),
        ]),
        pairs(&[(&queues, "rx-4294967295/rps_cpus", "0")]),
        pairs(&[(&queues, "tx-4294967295/xps_cpus", "0")]),
        pairs(&[(DEVICE, "numa_node", "4294967295")]),
        pairs(&[(NODE, "node4294967295/cpulist", "0-1")]),
        pairs(&[("/proc/irq/24", "effective_affinity_list", "8191")]),
        pairs(&[(
            NODE,
            "node0/meminfo",
            &format!("Node 0 MemTotal: {most} kB\nNode 0 MemFree: {most} kB"),
        )]),
        pairs(&[
            ("/proc/sys/net/core", "rps_sock_flow_entries", "4294967295"),
            (&queues, "rx-0/rps_flow_cnt", "4294967295"),
        ]),
    ] {
        let capture = machine(&files);
        for args in [
            &["plan"][..],
            &["plan", "--rfs", "32768"],
            &["status"],
            &["check"],
            &["nodes"],
            &["draw"],
        ] {
            let output = run(args, &capture);
            let code = output.status.code();
            assert!(
                matches!(code, Some(0..=2)),
                "{args:?} of {files:?}: {output:?}"
            );
        }
    }
    for (files, reason) in [
        (
            pairs(&[("/nicpin/ethtool/eth0", "channels", &channels)]),
            "expected u16",
        ),
        (
            pairs(&[(NODE, "node0/distance", "4294967295")]),
            "numbers up to 255",
        ),
        (
            pairs(&[(CPU, "online", "0-65535")]),
            "CPU 65535 is beyond any kernel's",
        ),
        (
            pairs(&[
                (CPU, "online", "0-1"),
                (
                    "/proc/irq/24",
                    "smp_affinity",
                    &format!("1{}", ",00000000".repeat(256)),
                ),
            ]),
            "wider than any kernel's",
        ),
    ] {
        let error = refused(&["plan"], &machine(&files));
        assert!(error.contains(reason), "{error}");
    }
}

/// Without the file `online`, the CPUs are counted by their directories.
#[test]
fn a_cpu_beyond_any_kernels_is_ignored() {
    let text = SMALL_MACHINE
        .replace("cpu/online=0-1", "cpu/cpu4294967295/online=1")
        .replace("/cpu/possible", "/cpu/x");
    let output = run(&["plan"], &compressed(&tar(&text)));
    assert_eq!(output.status.code(), Some(0), "{output:?}");
}

#[test]
fn deep_paths_are_refused() {
    let mut archive = tar::Builder::new(Vec::new());
    for number in 0..1400 {
        let mut header = tar::Header::new_gnu();
        header.set_size(0);
        header.set_mode(0o644);
        archive
            .append_data(
                &mut header,
                format!("{number}/{}x", "x/".repeat(2030)),
                &b""[..],
            )
            .unwrap();
    }
    let capture = compressed(&archive.into_inner().unwrap());
    for command in ["plan", "status", "capture"] {
        assert!(refused(&[command], &capture).contains("is below more than 64 directories"));
    }
}

#[test]
fn a_list_that_repeats_itself_is_refused() {
    let online = |text: String| machine(&[(format!("{CPU}/online"), text)]);
    let error = refused(&["plan"], &online("0-65535:1/2,".repeat(20_000)));
    assert!(
        error.contains("beyond any kernel's") && error.len() < 400,
        "{error}"
    );
    for text in ["0-8191:1/2,", "0-8191,", "0,"] {
        let error = refused(&["plan"], &online(text.repeat(20_000)));
        assert!(
            error.contains("no kernel has more than 8192") && error.len() < 400,
            "{error}"
        );
    }
}

#[test]
fn the_largest_machine_of_any_kernel_is_planned() {
    let cpus = [
        ("cpu/online", "0-8191"),
        ("cpu/possible", "0-8191"),
        ("node/node0/cpulist", "0-8191"),
    ];
    let files =
        cpus.map(|(name, text)| (format!("/sys/devices/system/{name}"), format!("{text}\n")));
    let capture = machine(&files);
    for args in [
        &["plan"][..],
        &["plan", "--format", "json"],
        &["check"],
        &["status"],
        &["nodes"],
        &["draw"],
    ] {
        let output = run(args, &capture);
        assert_eq!(output.status.signal(), None, "{args:?}: {output:?}");
        assert!(
            matches!(output.status.code(), Some(0 | 2)),
            "{args:?}: {output:?}"
        );
    }
}

/// The time grows with the number of files, not with its square.
#[test]
fn an_interface_with_thousands_of_queues_is_captured() {
    let queues = format!("{DEVICE}/net/eth0/queues");
    let queue = |number: u32| {
        let file = |name: &str| (format!("{queues}/{name}"), "3\n".to_owned());
        [
            file(&format!("rx-{number}/rps_cpus")),
            file(&format!("tx-{number}/xps_cpus")),
        ]
    };
    let capture = machine(&(0..2500).flat_map(queue).collect::<Vec<_>>());
    let dir = temporary();
    let file = dir.path().join("again.tar.gz");
    let all = [
        &["capture", "-o", file.to_str().unwrap()][..],
        &["status"],
        &["draw"],
        &["plan"],
        &["check"],
    ];
    for args in &all[..if is_full() { 5 } else { 3 }] {
        let output = run(args, &capture);
        assert_eq!(output.status.signal(), None, "{args:?}: {output:?}");
        assert!(
            matches!(output.status.code(), Some(0 | 2)),
            "{args:?}: {output:?}"
        );
    }
}

#[test]
fn a_machine_that_does_not_fit_into_the_limit_is_refused() {
    let large = "x".repeat(41 << 20);
    let error = refused(&["plan"], &machine(&[("/proc/large".to_owned(), large)]));
    assert!(error.contains("exceeds the limit of 40 MiB"), "{error}");
    let mut archive = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_gnu();
    header.set_size(0);
    archive
        .append_data(&mut header, "x".repeat(1 << 20), &b""[..])
        .unwrap();
    let error = refused(&["plan"], &compressed(&archive.into_inner().unwrap()));
    assert!(error.contains("is longer than a path may be"), "{error}");
}

fn with_text(path: &str, [begin, item, end]: [&str; 3], bytes: usize) -> Vec<u8> {
    let items = item.repeat((bytes - begin.len() - end.len()) / item.len());
    machine(&[(path.to_owned(), format!("{begin}{items}{end}"))])
}

/// What TOML and JSON parsers make of a text may be a hundred times as large.
#[test]
fn a_policy_or_an_answer_that_is_longer_than_any_is_refused() {
    let rule = "[[rule]]\nmatch={name=\"a\"}\nset={rps=\"off\"}\n";
    let policy = |bytes| with_text("/etc/nicpin.toml", ["", rule, ""], bytes);
    assert_eq!(run(&["plan"], &policy(256 << 10)).status.code(), Some(0));
    let error = ends_with(64, &["plan"], &policy(257 << 10));
    assert!(
        error.contains("line 1, column 1: the file is larger than 256 KiB"),
        "{error}"
    );
    let dir = temporary();
    let file = dir.path().join("policy");
    std::fs::write(&file, rule.repeat(7000)).unwrap();
    let args = ["plan", "--config", file.to_str().unwrap()];
    let error = ends_with(64, &args, &compressed(&tar(SMALL_MACHINE)));
    assert!(error.contains("larger than 256 KiB"), "{error}");
    for (path, parts) in [
        ("altnames", ["{\"eth0\":[", "\"a\",", "\"\"]}"]),
        (
            "ethtool/eth0/link-modes",
            ["{\"supported\":[", "\"a\",", "\"\"]}"],
        ),
    ] {
        let path = format!("/nicpin/{path}");
        let output = run(&["plan"], &with_text(&path, parts, 4 << 20));
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let error = refused(&["plan"], &with_text(&path, parts, 5 << 20));
        assert!(
            error.contains(&format!("{path}: is larger than 4 MiB")),
            "{error}"
        );
    }
    let threads = |many| {
        let one = |pid| format!(r#"{{"pid":{pid},"napi":{pid},"affinity":"3"}}"#);
        let all: Vec<_> = (1..=many).map(one).collect();
        machine(&[(
            "/nicpin/threads/eth0".to_owned(),
            format!("[{}]", all.join(",")),
        )])
    };
    let output = run(&["check"], &threads(1 << 16));
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let error = refused(&["plan"], &threads((1 << 16) + 1));
    assert!(error.contains("more than 65536 threads"), "{error}");
}

/// The masks of each queue are as wide as the machine, however short their text is.
#[test]
fn more_queues_than_fit_on_so_many_cpus_are_refused() {
    let queues = format!("{DEVICE}/net/eth0/queues");
    let cpus = ["cpu/online", "cpu/possible", "node/node0/cpulist"];
    let cpus = cpus.map(|name| {
        let file = format!("/sys/devices/system/{name}");
        (file, "0-8191\n".to_owned())
    });
    let with = |many: u32| {
        let queue = |number: u32| {
            let file = format!("{queues}/rx-{number}/rps_cpus");
            (file, ["88888888"; 256].join(",") + "\n")
        };
        let files = (0..many).map(queue).chain(cpus.clone());
        machine(&files.collect::<Vec<_>>())
    };
    for args in [&["plan"][..], &["check"]] {
        let error = refused(args, &with(8192));
        let reason = "IRQs and queues, of at most 8192 on 8192 CPUs";
        assert!(error.contains(reason), "{error}");
        let output = run(args, &with(7000));
        let code = output.status.code();
        assert!(matches!(code, Some(0 | 2)), "{args:?}: {output:?}");
        if !is_full() {
            break;
        }
    }
}

#[test]
fn a_stored_plan_whose_sets_are_larger_than_any_is_refused() {
    let dir = temporary();
    let file = dir.path().join("plan.json");
    let sets = r#","0-8191""#.repeat(42_000);
    let text = format!(r#"{{"schema":"nicpin.plan/1","x":["0"{sets}]}}"#);
    std::fs::write(&file, text).unwrap();
    let args = ["apply", "--dry-run", "--plan", file.to_str().unwrap()];
    let error = refused(&args, &compressed(&tar(SMALL_MACHINE)));
    assert!(
        error.contains("its sets of CPUs take more than 40 MiB"),
        "{error}"
    );
}

#[test]
fn a_stored_plan_that_is_longer_than_any_is_refused() {
    let dir = temporary();
    let file = dir.path().join("plan.json");
    let args = ["apply", "--dry-run", "--plan", file.to_str().unwrap()];
    let sizes = [(41, "is larger than 40 MiB"), (40, "missing field `hash`")];
    for (bytes, reason) in sizes.into_iter().take(if is_full() { 2 } else { 1 }) {
        let items = ",1".repeat((bytes << 19) - 32);
        let text = format!(r#"{{"schema":"nicpin.plan/1","x":[1{items}]}}"#);
        std::fs::write(&file, text).unwrap();
        let error = refused(&args, &compressed(&tar(SMALL_MACHINE)));
        assert!(error.contains(reason), "{error}");
    }
}

/// Four CPUs on each node, and interfaces without queues.
fn crowd(nodes: usize, interfaces: usize) -> Vec<u8> {
    let interrupts = r"  CPU0\n  9: 1 IO-APIC 9-fasteoi acpi\n";
    let mut text = format!("/proc/interrupts={interrupts}\n/proc/irq/9/smp_affinity=1\n");
    for list in ["online", "possible"] {
        text += &format!("{CPU}/{list}=0-{}\n", 4 * nodes - 1);
    }
    for node in 0..nodes {
        let (first, last) = (4 * node, 4 * node + 3);
        text += &format!("{NODE}/node{node}/cpulist={first}-{last}\n");
        text += &format!("{CPU}/cpu{first}/cache/index3/level=3\n");
        text += &format!("{CPU}/cpu{first}/cache/index3/shared_cpu_list={first}-{last}\n");
    }
    for number in 0..interfaces {
        let (device, name) = (format!("devices/card{number}"), format!("eth{number}"));
        text += &format!("/sys/class/net/{name}->../../{device}/net/{name}\n");
        text += &format!("/sys/{device}/net/{name}/device->../..\n");
        text += &format!("/sys/{device}/net/{name}/operstate=up\n");
        text += &format!("/sys/{device}/numa_node={}\n", number % nodes);
    }
    compressed(&tar(&text))
}

/// The time does not grow with the product of cores, nodes and interfaces.
#[test]
fn cores_on_a_thousand_nodes_are_chosen_in_time() {
    let capture = crowd(1024, 200);
    let all = [
        &["plan", "--irq-cores", "1"][..],
        &["plan", "--per", "l3"],
        &["plan", "--irq-cores", "1", "--scope", "all"],
    ];
    for args in &all[..if is_full() { 3 } else { 1 }] {
        let output = run(args, &capture);
        assert_eq!(output.status.code(), Some(0), "{args:?}: {output:?}");
    }
}

/// The time does not grow with rules and the square of interfaces, nor with the square of rules. In the fast tier, a quarter
/// of both.
#[test]
fn thousands_of_rules_for_a_thousand_interfaces_are_matched_in_time() {
    let part = if is_full() { 1 } else { 4 };
    let dir = temporary();
    let file = dir.path().join("policy");
    let rules = [
        "[[rule]]\nmatch={name=\"eth12x\"}\nset={}\n",
        "[[rule]]\nmatch={name=\"*\"}\nset={exclude=\"7\"}\n",
    ];
    for rule in rules {
        std::fs::write(&file, rule.repeat((256 << 10) / part / rule.len())).unwrap();
        let args = ["plan", "--config", file.to_str().unwrap()];
        let output = run(&args, &crowd(2, 1000 / part));
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{rule}: {error}");
    }
}
