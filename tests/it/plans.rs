//! The plan of every shipped machine, in every format, by the binary. `SNAPSHOTS=overwrite cargo test --test it -- plans::`
//! rewrites the expected plans; read the difference before you commit it.

use crate::support::machine::{MachineSpec, Port, card, two_nodes};
use crate::support::run::{Copy, FIXTURES, expect, fixture, nicpin};

#[test]
fn every_machine_plans_as_expected() {
    for name in FIXTURES {
        for format in ["table", "json", "sh"] {
            let root = fixture(name);
            let run = nicpin(&["plan", "--root", root.to_str().unwrap(), "--format", format]);
            assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{name}");
            let ending = if format == "table" { "txt" } else { format };
            expect(&format!("{name}.{ending}"), run.stdout);
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
    let masks: Vec<&str> = run
        .stdout
        .lines()
        .filter_map(|line| line.strip_prefix("echo ")?.split(' ').next())
        .collect();
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
    for (line, irq) in run
        .stdout
        .lines()
        .skip(2)
        .zip(["177", "185", "193", "201", "209", "217", "225", "233"])
    {
        assert!(
            line.contains(&format!(" > /proc/irq/{irq}/smp_affinity ")),
            "{line}"
        );
    }
}

#[test]
fn masks_are_shown_on_request() {
    let root = fixture("two-socket-mlx4");
    let run = nicpin(&["plan", "--root", root.to_str().unwrap(), "--masks", "eth2"]);
    assert!(
        run.stdout
            .contains("\n/proc/irq/71/smp_affinity                 fff -> 040\n"),
        "{}",
        run.stdout
    );
}

/// The kernel allows the name `nic0;reboot`; the plan as a script, and a command to paste, must quote it.
#[test]
fn shell_characters_in_a_name_are_quoted_in_the_script() {
    let machine = Copy::of("two-node");
    let device = "/sys/devices/pci0000:20/0000:20:00.0/0000:21:00.0/virtio1/net";
    std::fs::rename(
        machine.path(&format!("{device}/nic0")),
        machine.path(&format!("{device}/a;b'c")),
    )
    .unwrap();
    machine.remove("/sys/class/net/nic0");
    let target = format!("../..{}/a;b'c", &device["/sys".len()..]);
    std::os::unix::fs::symlink(target, machine.path("/sys/class/net/a;b'c")).unwrap();
    let script = machine.nicpin(&["plan", "--format", "sh"]).stdout;
    assert!(
        script.contains("> '/sys/class/net/a;b'\\''c/queues/tx-0/xps_cpus'  #"),
        "{script}"
    );
}

/// A tree can have a name that no kernel allows: it is unknown, and must not become a line of the script.
#[test]
fn a_name_that_no_kernel_allows_is_no_line_of_a_script() {
    let machine = Copy::of("two-node");
    let plan = ["plan", "--format", "sh"];
    // The comments have the hash of the plan.
    let commands = |script: &str| -> Vec<String> {
        let lines = script.lines().filter(|line| !line.starts_with('#'));
        lines.map(str::to_owned).collect()
    };
    let expected = commands(&machine.nicpin(&[&plan[..], &["nic1"]].concat()).stdout);
    let odd = "/sys/class/net/a\nreboot";
    std::os::unix::fs::symlink(
        std::fs::read_link(machine.path("/sys/class/net/nic0")).unwrap(),
        machine.path(odd),
    )
    .unwrap();
    machine.remove("/sys/class/net/nic0");
    let run = machine.nicpin(&plan);
    assert_eq!(run.code, 1, "{}", run.stderr);
    assert_eq!(commands(&run.stdout), expected);
}

#[test]
fn flow_steering_is_explained() {
    let root = fixture("dl980");
    let root = root.to_str().unwrap();
    let run = nicpin(&[
        "plan",
        "--root",
        root,
        "--rfs",
        "32768",
        "--explain",
        "eth0",
    ]);
    let words: Vec<&str> = run.stdout.split_whitespace().collect();
    assert!(
        words
            .join(" ")
            .contains(" RFS rx 0-15 512 flows each; its share of the flow table "),
        "{}",
        run.stdout
    );
    assert!(
        run.stdout
            .contains("rps_sock_flow_entries: 0 -> 32768 (one flow table for all interfaces).")
    );
    let run = nicpin(&["plan", "--root", root, "--explain", "eth0"]);
    assert!(!run.stdout.contains("RFS"), "{}", run.stdout);
}

/// Interfaces that are not selected take part in the placement; the settings of their queues are not read.
#[test]
fn queues_of_other_interfaces_are_not_read() {
    let machine = Copy::of("dl980");
    let before = machine.nicpin(&["plan", "eth2"]).stdout;
    machine.write("/sys/class/net/eth0/queues/tx-0/xps_cpus", "rubbish\n");
    let run = machine.nicpin(&["plan", "eth2"]);
    assert_eq!((run.code, run.stdout), (0, before), "{}", run.stderr);
    assert_eq!(machine.nicpin(&["apply", "eth2"]).code, 0);
    assert_eq!(machine.nicpin(&["check", "eth2"]).code, 0);
    assert_eq!(machine.nicpin(&["plan"]).code, 1);
}

#[test]
fn workers_have_memory_where_a_node_has_memory() {
    let machine = Copy::of("two-node");
    machine.write(
        "/sys/devices/system/node/node1/meminfo",
        "Node 1 MemTotal:       0 kB\n",
    );
    let run = machine.nicpin(&["plan", "--workers", "--irq-cores", "2", "nic1"]);
    assert!(run.stdout.contains("--membind=0"), "{}", run.stdout);
    // A drop-in clears the list before it sets it, and kubelet keeps what works for the network.
    let unit = "  systemd     [Service]\n              CPUAffinity=\n              CPUAffinity=6-7\n              \
                NUMAPolicy=bind\n              NUMAMask=0\n";
    assert!(run.stdout.contains(unit), "{}", run.stdout);
    let reserved = "kubelet       reservedSystemCPUs: \"1-2,4-5\"\n";
    assert!(run.stdout.ends_with(reserved), "{}", run.stdout);
    let run = machine.nicpin(&[
        "plan",
        "--workers",
        "--irq-cores",
        "2",
        "--rps",
        "6",
        "nic1",
    ]);
    assert!(
        run.stdout.contains("  workers     7  mask 0x80\n"),
        "{}",
        run.stdout
    );
    // Every core takes a queue.
    let run = machine.nicpin(&["plan", "--workers", "nic1"]);
    let advice = "  workers     none\n              try: --irq-cores 2\n";
    assert!(run.stdout.contains(advice), "{}", run.stdout);
}

/// Memory is bound to both nodes that are equally near to the one of the device.
#[test]
fn workers_on_several_nodes_have_the_memory_of_each() {
    let mut machine = MachineSpec::new(&["0-3", "4-7", ""]);
    let names = ["mlx5_comp0@pci:0000:82:00.0", "mlx5_comp1@pci:0000:82:00.0"];
    let mut nic = card("mlx5_core", Port::new("eth0", 50_000, 2, 2), 30, &names);
    nic.node = 2;
    machine.cards.push(nic);
    let tree = Copy::build(&machine);
    let workers = tree.nicpin(&["plan", "--workers", "eth0"]).stdout;
    for line in [
        "eth0  node 0-1\n",
        " --membind=0-1 COMMAND\n",
        " NUMAMask=0-1\n",
    ] {
        assert!(workers.contains(line), "{workers}");
    }
}

/// Two traffic classes send on two queues of each channel, and keep no other channel's vector in use.
#[test]
fn traffic_classes_use_no_further_vectors_of_mlx5() {
    let names = [0, 1, 2, 3].map(|n| format!("mlx5_comp{n}@pci:0000:82:00.0"));
    let names = names.each_ref().map(String::as_str);
    let reported = [0, 1].map(|n| [("rx", n, 30 + n), ("tx", n, 30 + n), ("tx", n + 2, 30 + n)]);
    for netlink in [&[][..], &reported.concat()] {
        let port = Port::new("eth0", 50_000, 2, 4).netlink(netlink);
        let tree = Copy::build(&two_nodes([card("mlx5_core", port, 30, &names)]));
        for queue in 0..4 {
            let class = format!("sys/class/net/eth0/queues/tx-{queue}/traffic_class");
            tree.put(&class, &format!("{}\n", queue / 2));
        }
        let eth0 = &tree.host().interfaces[0];
        let idle = eth0.vectors.iter().filter(|vector| eth0.is_idle(vector));
        assert_eq!(idle.map(|vector| vector.irq).collect::<Vec<_>>(), [32, 33]);
        assert_eq!(eth0.contradictions, Vec::<String>::new());
        let plan = tree.plan(&[]);
        assert_eq!(plan.score.max_vectors_per_core, 1);
        let sent = plan.interfaces[0].tx_queues.iter();
        let sent: Vec<_> = sent
            .map(|tx| tx.xps_cpus.as_ref().unwrap().to_string())
            .collect();
        assert_eq!(sent[..2], sent[2..]);
    }
}

/// mlx5 keeps the IRQs of channels that `ethtool -L` has taken away.
#[test]
fn queues_that_are_not_in_use_are_said_so() {
    let names = [0, 1, 2, 3].map(|n| format!("mlx5_comp{n}@pci:0000:82:00.0"));
    let names = names.each_ref().map(String::as_str);
    let nic = card("mlx5_core", Port::new("eth0", 50_000, 2, 2), 30, &names);
    let tree = Copy::build(&two_nodes([nic]));
    let plan = tree.nicpin(&["plan", "eth0"]).stdout;
    let rows: Vec<_> = plan
        .lines()
        .filter(|line| line.starts_with("  queues"))
        .collect();
    let [used, idle] = rows[..] else {
        panic!("{plan}")
    };
    assert!(
        used.contains("0-1 ") && used.ends_with("one per core"),
        "{plan}"
    );
    assert!(
        idle.contains("2-3 ") && idle.ends_with("not in use"),
        "{plan}"
    );
}

/// What is suggested where no worker is left leaves some.
#[test]
fn advice_on_workers_leads_to_workers() {
    let machine = Copy::of("dl980");
    let run = machine.nicpin(&["plan", "--workers", "eth0"]);
    let advice = run.stdout.split_once("none\n              try: ");
    let advice = advice.and_then(|(_, advice)| advice.lines().next());
    let args: Vec<&str> = advice.unwrap().split(' ').collect();
    let followed = machine.nicpin(&[&["plan", "--workers", "eth0"], &args[..]].concat());
    assert!(
        followed.code == 0 && !followed.stdout.contains("none"),
        "{}{}",
        run.stdout,
        followed.stdout
    );
}

/// Fewer cores or queues are no advice where the kernel spreads the IRQs by itself.
#[test]
fn no_advice_on_cores_where_no_irq_can_be_moved() {
    let machine = Copy::of("dl980");
    let told = || {
        let workers = machine.nicpin(&["plan", "--workers", "eth0"]).stdout;
        let plan = machine.nicpin(&["plan", "eth0", "--irq-cores", "3"]).stdout;
        [
            workers.contains("try: --irq-cores 4"),
            plan.contains("16 queues for 3 cores"),
        ]
    };
    assert_eq!(told(), [true; 2]);
    for irq in 85..=100 {
        machine.set_mode(&format!("/proc/irq/{irq}/smp_affinity"), 0o444);
    }
    assert_eq!(told(), [false; 2]);
}

/// The CPUs of interfaces that were not selected work for the network, too.
#[test]
fn kubelets_cpus_are_those_of_all_interfaces() {
    let machine = Copy::of("dl980");
    let reserved = |args: &[&str]| {
        let run = machine.nicpin(&[&["plan", "--workers"], args].concat());
        run.stdout.lines().last().map(str::to_owned)
    };
    let all = reserved(&[]);
    assert!(
        all.as_ref()
            .is_some_and(|line| line.starts_with("kubelet "))
    );
    assert_eq!(reserved(&["eth2"]), all);
    // However long: no program takes a list that is broken.
    machine.write("/sys/devices/system/cpu/isolated", "1-127:2\n");
    let narrow = machine.nicpin_on_terminal(&["plan", "--workers"], 60);
    let last = narrow.lines().last().unwrap_or_default();
    assert!(
        last.starts_with("kubelet ") && last.ends_with('"'),
        "{narrow}"
    );
}

/// A first queue changes places with a queue of another interface that weighs as much: all queues of the virtual functions
/// are on two cores, and the other functions' on all.
#[test]
fn first_queues_meet_on_no_core_while_another_has_none() {
    let machine = Copy::unpacked("server.tar.gz");
    std::fs::remove_dir_all(machine.path("/nicpin")).unwrap();
    let plan = machine.nicpin(&["plan", "--json"]);
    let plan = plan.json();
    assert_eq!(plan["score"]["max_first_queues_per_core"], 1);
}
