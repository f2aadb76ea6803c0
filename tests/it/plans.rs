//! The plan of every shipped machine, in every format, by the binary. `SNAPSHOTS=overwrite cargo test --test it -- plans::`
//! rewrites the expected plans; read the difference before you commit it.

use serde_json::{Value, json};

use crate::support::machine::{MachineSpec, Port, card, two_nodes};
use crate::support::run::{FIXTURES, MachineTree, codes, document, expect, fixture, nicpin};

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
    let machine = MachineTree::of("two-socket-mlx4");
    let plan = machine.nicpin(&["plan", "--masks", "eth2"]);
    expect("masks.txt", plan.stdout);
}

/// The kernel allows the name `nic0;reboot`; the plan as a script, and a command to paste, must quote it.
#[test]
fn shell_characters_in_a_name_are_quoted_in_the_script() {
    let machine = MachineTree::of("two-node");
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
    let machine = MachineTree::of("two-node");
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
    let machine = MachineTree::of("dl980");
    let explained = ["plan", "--rfs", "32768", "--explain", "eth0"];
    expect("flow-steering.txt", machine.nicpin(&explained).stdout);
    let flows = |args: &[&str]| {
        let plan = document(&machine, &[&["plan", "eth0"], args].concat());
        let table = "/proc/sys/net/core/rps_sock_flow_entries";
        let mut writes = plan["writes"].as_array().unwrap().iter();
        let table = writes.find(|write| write["path"] == table);
        let queues = plan["interfaces"][0]["rx_queues"].as_array().unwrap();
        let counts = queues.iter().map(|queue| queue["rps_flow_cnt"].clone());
        (
            table.map(|write| write["value"].clone()),
            counts.collect::<Vec<_>>(),
        )
    };
    let on = (Some(json!("32768")), vec![json!(512); 16]);
    assert_eq!(flows(&["--rfs", "32768"]), on);
    assert_eq!(flows(&[]), (None, vec![Value::Null; 16]));
}

/// Interfaces that are not selected take part in the placement; the settings of their queues are not read.
#[test]
fn queues_of_other_interfaces_are_not_read() {
    let machine = MachineTree::of("dl980");
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
    let machine = MachineTree::of("two-node");
    machine.write(
        "/sys/devices/system/node/node1/meminfo",
        "Node 1 MemTotal:       0 kB\n",
    );
    // A drop-in clears the list before it sets it, and kubelet keeps what works for the network. In the last every core
    // takes a queue.
    let mut screens = String::new();
    for (options, workers) in [
        (&["--irq-cores", "2"][..], "6-7"),
        (&["--irq-cores", "2", "--rps", "6"], "7"),
        (&[], ""),
    ] {
        let args = [&["plan", "nic1"], options].concat();
        let plan = document(&machine, &args);
        assert_eq!(plan["interfaces"][0]["worker_cpus"], workers);
        screens += &machine.nicpin(&[&args[..], &["--workers"]].concat()).stdout;
        screens += "\n";
    }
    expect("workers.txt", screens);
}

/// Memory is bound to both nodes that are equally near to the one of the device.
#[test]
fn workers_on_several_nodes_have_the_memory_of_each() {
    let mut machine = MachineSpec::new(&["0-3", "4-7", ""]);
    let names = ["mlx5_comp0@pci:0000:82:00.0", "mlx5_comp1@pci:0000:82:00.0"];
    let mut nic = card("mlx5_core", Port::new("eth0", 50_000, 2, 2), 30, &names);
    nic.node = 2;
    machine.cards.push(nic);
    let tree = MachineTree::build(&machine);
    let workers = tree.nicpin(&["plan", "--workers", "eth0"]).stdout;
    expect("workers-on-several-nodes.txt", workers);
}

/// Two traffic classes send on two queues of each channel, and keep no other channel's vector in use.
#[test]
fn traffic_classes_use_no_further_vectors_of_mlx5() {
    let names = [0, 1, 2, 3].map(|n| format!("mlx5_comp{n}@pci:0000:82:00.0"));
    let names = names.each_ref().map(String::as_str);
    let reported = [0, 1].map(|n| [("rx", n, 30 + n), ("tx", n, 30 + n), ("tx", n + 2, 30 + n)]);
    for netlink in [&[][..], &reported.concat()] {
        let port = Port::new("eth0", 50_000, 2, 4).netlink(netlink);
        let tree = MachineTree::build(&two_nodes([card("mlx5_core", port, 30, &names)]));
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
    let tree = MachineTree::build(&two_nodes([nic]));
    let plan = document(&tree, &["plan", "eth0"]);
    let vectors = plan["interfaces"][0]["vectors"].as_array().unwrap().iter();
    let is_idle: Vec<_> = vectors.map(|vector| vector["idle"].clone()).collect();
    assert_eq!(is_idle, [false, false, true, true]);
    expect("idle-queues.txt", tree.nicpin(&["plan", "eth0"]).stdout);
}

/// What is suggested where no worker is left leaves some.
#[test]
fn advice_on_workers_leads_to_workers() {
    let machine = MachineTree::of("dl980");
    let workers = |args: &[&str]| {
        let plan = document(&machine, &[&["plan", "eth0"], args].concat());
        plan["interfaces"][0]["worker_cpus"] != ""
    };
    let advice = advice_on_workers(&machine).unwrap();
    let args: Vec<&str> = advice.split(' ').collect();
    assert_eq!([workers(&[]), workers(&args)], [false, true], "{advice}");
}

/// Others that cannot be moved have all cores, however few the selected interface takes.
#[test]
fn no_advice_on_cores_where_none_would_be_left() {
    let machine = MachineTree::of("dl980");
    let others = document(&machine, &["plan", "eth1"]);
    for vector in others["interfaces"][0]["vectors"].as_array().unwrap() {
        let file = format!("/proc/irq/{}/smp_affinity", vector["irq"]);
        machine.set_mode(&file, 0o444);
    }
    let screen = machine.nicpin(&["plan", "--workers", "eth0"]).stdout;
    assert!(screen.contains("workers     none"), "{screen}");
    assert_eq!(advice_on_workers(&machine), None);
}

/// What the screen advises where no worker is left; no document has it.
fn advice_on_workers(machine: &MachineTree) -> Option<String> {
    let screen = machine.nicpin(&["plan", "--workers", "eth0"]).stdout;
    let advice = screen.split_once("              try: ");
    advice.map(|(_, advice)| advice.lines().next().unwrap().to_owned())
}

/// Fewer cores or queues are no advice where the kernel spreads the IRQs by itself.
#[test]
fn no_advice_on_cores_where_no_irq_can_be_moved() {
    let machine = MachineTree::of("dl980");
    let told = || {
        let plan = document(&machine, &["plan", "eth0", "--irq-cores", "3"]);
        [
            advice_on_workers(&machine).is_some(),
            codes(&plan["interfaces"][0]).contains(&"queues-exceed-cores"),
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
    let machine = MachineTree::of("dl980");
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
    let machine = MachineTree::unpacked("server.tar.gz");
    std::fs::remove_dir_all(machine.path("/nicpin")).unwrap();
    let plan = machine.nicpin(&["plan", "--json"]);
    let plan = plan.json();
    assert_eq!(plan["score"]["max_first_queues_per_core"], 1);
}

/// A list of CPUs is read as in the order of the queues, and a set with as many looks like one.
#[test]
fn a_set_that_is_shown_instead_of_a_list_says_so() {
    let names: Vec<String> = (0..16).map(|queue| format!("eth0-TxRx-{queue}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let now = |order: [u32; 16]| {
        let mut card = card("ixgbe", Port::new("eth0", 10_000, 16, 16), 30, &names);
        for (vector, cpu) in card.vectors.iter_mut().zip(order) {
            (vector.allowed, vector.serving) = (vec![cpu], Some(cpu));
        }
        let mut machine = MachineSpec::new(&["0-15"]);
        machine.cards.push(card);
        let said = MachineTree::build(&machine).nicpin(&["plan"]).words();
        let line = said.split_once("IRQ 30-45 ").unwrap().1;
        line.split(" -> ").next().unwrap().trim().to_owned()
    };
    let swapped = [1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14];
    assert_eq!(now(swapped), "CPUs 0-15 in another order");
    let several = [3, 2, 1, 0, 3, 2, 1, 0, 3, 2, 1, 0, 3, 2, 1, 0];
    assert_eq!(now(several), "CPUs 0-3");
}
