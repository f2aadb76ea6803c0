//! Functions that have no interface here: bound to another driver, for RDMA alone, or with it in another network namespace.

use itertools::Itertools as _;
use snapbox::{assert_data_eq, str};

use crate::support::host::{codes, cpus as planned, of};
use crate::support::machine::{Card, Port, card, cpus, two_nodes};
use crate::support::run::{
    MachineTree, assert_line, codes as codes_of, document, expect, note, text,
};
use crate::support::tree::link;
use nicpin::plan::Plan;
use nicpin::root::Root;

#[test]
fn a_device_without_an_interface_names_its_driver() {
    let tree = MachineTree::build(&two_nodes([]));
    let functions = [
        ("0000:3b:00.0", "vfio-pci", "0x020000"),
        ("0000:3b:00.1", "ixgbe", "0x020000"),
        ("0000:3b:00.2", "", "0x020700"),
    ];
    for (address, driver, class) in functions
        .iter()
        .chain(&[("0000:01:00.0", "nvme", "0x010802")])
    {
        let device = format!("sys/devices/pci0000:3a/{address}");
        tree.list_function("pci0000:3a", address, class);
        if !driver.is_empty() {
            tree.link(
                &format!("{device}/driver"),
                &format!("../../../bus/pci/drivers/{driver}"),
            );
        }
    }
    let selectors = ["0000:3b:00.0", "3b:00.1", "3b:00.2", "01:00.0"];
    let said = selectors.map(|address| tree.refuses(&format!("pci:{address}")));
    expect("functions.errors.txt", said.concat());
}

/// Of EFA: its completion vectors are planned when it is selected.
#[test]
fn a_function_for_rdma_alone_is_neither_down_nor_without_irqs() {
    let names = ["efa-mgmnt@pci:0000:82:00.0", "efa-comp0@pci:0000:82:00.0"];
    let mut function = card("efa", Port::new("eth0", 0, 0, 0), 30, &names);
    function.ports.clear();
    let tree = MachineTree::build(&two_nodes([function]));
    tree.list_function("pci0000:00/0000:00:02.0", "0000:82:00.0", "0x020000");
    tree.make_dir("sys/class/net");
    let all = tree.plan(&[]);
    let texts = all.notes.iter().map(ToString::to_string);
    assert_data_eq!(
        texts.format("\n").to_string(),
        str![[r#"
no interface with a device is up or has IRQs
not planned: 0000:82:00.0 (driver efa, no interface here)
"#]]
    );
    // Nobody moves them: the core that they would get is idle.
    assert_eq!(all.network_cpus.to_string(), "0");
    let plan = tree.plan(&["0000:82:00.0"]);
    let efa = of(&plan, "0000:82:00.0");
    assert_eq!((codes(efa), planned(efa)), (vec![], vec!["1".to_owned()]));
    // It can be judged: its one vector is as good where it is.
    assert_eq!(tree.nicpin(&["check", "0000:82:00.0"]).code, 0);
    // Its name is its address, and it has no link.
    let plan = tree.nicpin(&["plan", "0000:82:00.0"]).stdout;
    assert!(plan.contains("\n0000:82:00.0  efa, node 0: CPUs"), "{plan}");
}

/// Of a CAN controller, whose class is that of network controllers.
#[test]
fn a_function_whose_interface_is_not_planned_is_in_no_other_namespace() {
    let tree = MachineTree::build(&two_nodes([card(
        "igb",
        Port::new("eth0", 1000, 1, 1),
        30,
        &["eth0"],
    )]));
    let device = "sys/devices/pci0000:00/0000:05:00.0";
    tree.add(device, "pci", "acme_can", "can0", 1);
    tree.list_function("pci0000:00", "0000:05:00.0", "0x028000");
    let count = || tree.plan(&[]).interfaces.len();
    tree.put(&format!("{device}/net/can0/type"), "280");
    assert_eq!(count(), 1);
    // It goes to another namespace.
    tree.remove("sys/class/net/can0");
    tree.remove(&format!("{device}/net/can0"));
    tree.put(&format!("{device}/msi_irqs/77"), "msi");
    tree.interrupts(77, "PCI-MSI", &["acme0"]);
    assert_eq!(count(), 2);
}

/// nic1 of the fixture is an igb: its interface goes to a container.
#[test]
fn a_function_whose_interface_is_in_another_namespace_is_known_by_its_address() {
    let machine = MachineTree::of("four-node");
    let interface = machine.path("/sys/class/net/nic1").canonicalize().unwrap();
    let device = interface.parent().unwrap().parent().unwrap();
    std::fs::write(device.join("class"), "0x020000\n").unwrap();
    // Nobody tells this of it while it is away.
    std::fs::write(interface.join("phys_port_name"), "p0\n").unwrap();
    let top = machine.path("/").canonicalize().unwrap();
    let below_sys = device
        .strip_prefix(top.join("sys"))
        .unwrap()
        .display()
        .to_string();
    let address = device.file_name().unwrap().to_str().unwrap();
    let entry = format!("sys/bus/pci/devices/{address}");
    link(&top, &entry, &format!("../../../{below_sys}"));
    // A port that carries more than its link does.
    std::fs::create_dir_all(machine.path("/nicpin/ethtool/nic1")).unwrap();
    machine.write(
        "/nicpin/ethtool/nic1/link-modes",
        "{\"supported\": [\"100000baseSR4/Full\"]}\n",
    );
    let load = || {
        let plan = machine.nicpin(&["plan", "--json"]).json();
        plan["score"]["max_load_kbps"].as_u64().unwrap()
    };
    let before = machine.texts();
    assert_eq!(machine.nicpin(&["apply"]).code, 0);
    let load_here = load();
    assert!(load_here > 10_000_000, "{load_here}");
    let host = nicpin::read::machine(
        &Root::open(machine.dir()).unwrap(),
        nicpin::read::ReadOptions::default(),
    );
    let nic1 = host.unwrap().interface("nic1").unwrap().clone();
    let irq = nic1.vectors[0].irq;
    let file = format!("/proc/irq/{irq}/smp_affinity");
    let planned = machine.read(&file);
    let entry = machine.path("/sys/class/net/nic1");
    let to = std::fs::read_link(&entry).unwrap();
    let away = machine.path("/away");
    let leave = || {
        std::fs::remove_file(&entry).unwrap();
        // The directory `net` stays, as in the kernel.
        std::fs::rename(&interface, &away).unwrap();
    };
    let come_back = || {
        std::fs::rename(&away, &interface).unwrap();
        std::os::unix::fs::symlink(&to, &entry).unwrap();
    };
    leave();

    // Nothing of it has changed but that its queues are out of reach.
    let has_note = |code: &str| {
        let plan = document(&machine, &["plan", address]);
        codes_of(&plan["interfaces"][0]).contains(&code)
    };
    assert!(has_note("elsewhere"));
    assert_eq!(machine.nicpin(&["check"]).code, 0);
    assert_eq!(load(), load_here);
    for selector in [address, &format!("pci:{address}"), "driver:igb"] {
        let run = machine.nicpin(&["plan", selector, "--json"]);
        assert!(
            run.code == 0 && run.stdout.contains(&format!("\"name\": \"{address}\"")),
            "{selector}"
        );
    }

    let status = machine.nicpin(&["status", address, "--json"]).stdout;
    let status: serde_json::Value = serde_json::from_str(&status).unwrap();
    assert_eq!(status["interfaces"][0]["queues"], nic1.rx_queues.len());

    // Its owner moves a vector on its node, which is nobody else's business while it is not selected.
    machine.write(&file, "80\n");
    assert_eq!(machine.nicpin(&["check"]).code, 0);
    assert_eq!(machine.nicpin(&["check", "--exact"]).code, 0);
    assert_eq!(machine.nicpin(&["check", "--exact", address]).code, 2);
    assert_eq!(machine.nicpin(&["apply", "-q"]).code, 0);
    assert_eq!(machine.read(&file), "80\n");

    // Somebody moves it off the node.
    machine.write(&file, "8000\n");
    let effective = format!("/proc/irq/{irq}/effective_affinity_list");
    let on = machine.read(&effective);
    machine.write(&effective, "15\n");
    let run = machine.nicpin(&["check", "--json"]);
    let worst = &run.json()["interfaces"][0];
    assert_eq!(
        (run.code, [&worst["name"], &worst["state"]]),
        (2, [&address.into(), &"remote".into()])
    );
    assert_eq!(machine.nicpin(&["apply", "-q"]).code, 0);
    let again = u32::from_str_radix(machine.read(&file).trim(), 16).unwrap();
    assert!(again & 0xf0 == again, "{again:x}: CPUs of its node");
    machine.write(&effective, &again.trailing_zeros().to_string());
    let run = machine.nicpin(&["check", "-v"]);
    assert_eq!(run.code, 0, "{}", run.stdout);
    machine.write(&effective, &on);
    machine.write(&file, &planned);
    // Nothing shows that it has an interface.
    std::fs::remove_dir(interface.parent().unwrap()).unwrap();
    assert!(has_note("no-interface"));
    let plan = machine.nicpin(&["plan", "--json"]).json();
    let of = plan["interfaces"]
        .as_array()
        .unwrap()
        .iter()
        .find(|of| of["name"] == address)
        .unwrap();
    let data = of["vectors"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|vector| vector["role"] == "data");
    assert!(
        data.clone().count() == 8 && data.clone().all(|vector| vector["queue"].is_null()),
        "{of}"
    );
    std::fs::create_dir(interface.parent().unwrap()).unwrap();

    // It comes back, and is known by its name again.
    come_back();
    assert_eq!(machine.nicpin(&["check"]).code, 0);
    machine.write(&file, "8000\n");
    let moved = machine.nicpin(&["check", "--json"]).json();
    assert_eq!(moved["differs"][0]["reason"], "moved-by-other");
    machine.write(&file, &planned);

    // Its IRQs get their original affinity while it is away, although it was applied again under its address.
    leave();
    assert_eq!(machine.nicpin(&["restore"]).code, 0);
    assert_eq!(machine.texts()[&file], before[&file]);
    come_back();
    assert_eq!(machine.nicpin(&["restore"]).code, 0);
    assert_eq!(machine.texts(), before);
}

/// They are those of another namespace, where nothing can be set.
#[test]
fn what_is_requested_of_queues_that_are_out_of_reach_is_unmet() {
    let names = ["ixgbe-TxRx-0", "ixgbe-TxRx-1"];
    let mut function = card("ixgbe", Port::new("", 0, 0, 0), 40, &names);
    function.ports.clear();
    let here = Card::new("igb", "pci0000:00", "0000:05:00.0", 0, "8.0 GT/s PCIe", 4)
        .port(Port::new("eth0", 1000, 2, 2))
        .vectors(30, ["eth0-TxRx-0", "eth0-TxRx-1"], &cpus("4-7"), &[4]);
    let spec = two_nodes([function, here]);
    let build = || {
        let tree = MachineTree::build(&spec);
        let parent = "pci0000:00/0000:00:02.0";
        tree.list_function(parent, "0000:82:00.0", "0x020000");
        tree.make_dir(&format!("sys/devices/{parent}/0000:82:00.0/net"));
        tree
    };
    let tree = build();
    let requests = [
        "rps 0-3",
        "xps rxqs",
        "rfs 1024",
        "rss candidates",
        "channels 2",
    ];
    for request in requests {
        let (setting, value) = request.split_once(' ').unwrap();
        let option = format!("--{setting}");
        for command in ["plan", "apply", "check", "status"] {
            let said = tree.fails(&[command, "82:00.0", &option, value], 64);
            assert_eq!(
                said,
                format!(
                    "nicpin: {option}: {setting} requested, but it has no interface in this network namespace\n"
                )
            );
        }
    }
    // Beside one that has queues here, or named with it, the others are applied.
    for (selectors, code) in [(&["82:00.0", "eth0"][..], 1), (&[], 0)] {
        for request in ["--rps=0-3", "--rfs=1024"] {
            let tree = build();
            let command = |name| [&[name, "--json", request], selectors].concat();
            let run = tree.nicpin(&command("apply"));
            let unknown = run.json()["unknown"].take();
            let unknown: Vec<_> = unknown.as_array().unwrap().iter().collect();
            let unknown: Vec<_> = unknown.iter().map(|row| text(row, "code")).collect();
            let expected: &[&str] = if code == 0 { &[] } else { &["out-of-reach"] };
            assert_eq!((run.code, &unknown[..]), (code, expected), "{request}");
            let irq = |irq: u32| tree.read(&format!("/proc/irq/{irq}/smp_affinity"));
            assert_ne!(irq(30), "f0\n");
            assert_eq!(irq(40), "0f\n");
            assert_eq!(tree.nicpin(&command("check")).code, code);
        }
    }
    // A rule for others, too, is one for the interfaces here; no flow table is made for a function.
    let rule = "[[rule]]\nmatch = { driver = 'ixgbe' }\nset = { rfs = 1024 }";
    tree.put("etc/nicpin.toml", rule);
    assert_eq!(tree.nicpin(&["apply"]).code, 0);
    let table = tree.read("/proc/sys/net/core/rps_sock_flow_entries");
    assert_eq!(table, "0\n");
    assert_eq!(tree.nicpin(&["apply", "82:00.0"]).code, 1);
}

/// nic0 of the fixture is a virtio card: the device of its interface is below the PCI function.
#[test]
fn a_virtio_function_whose_interface_is_in_another_namespace_is_known_as_such() {
    let machine = MachineTree::of("four-node");
    let interface = machine.path("/sys/class/net/nic0").canonicalize().unwrap();
    let net = interface.parent().unwrap();
    let device = net.parent().unwrap().parent().unwrap();
    std::fs::write(device.join("class"), "0x020000\n").unwrap();
    let top = machine.path("/").canonicalize().unwrap();
    let below_sys = device.strip_prefix(top.join("sys")).unwrap().display();
    let address = device.file_name().unwrap().to_str().unwrap();
    let entry = format!("sys/bus/pci/devices/{address}");
    link(&top, &entry, &format!("../../../{below_sys}"));
    let driver = format!("sys/{below_sys}/driver");
    link(&top, &driver, "../../../../bus/pci/drivers/virtio-pci");
    std::fs::remove_file(machine.path("/sys/class/net/nic0")).unwrap();
    std::fs::remove_dir_all(&interface).unwrap();
    let said = |code: &str| {
        let plan = document(&machine, &["plan", address]);
        text(note(&plan["interfaces"][0], code), "text").to_owned()
    };
    assert_line(
        said("elsewhere"),
        str![[r"
its interface is in another network namespace: its IRQs move only if they are off its node or it is selected, and its queues and channels are out of reach

"]],
    );
    std::fs::remove_dir(net).unwrap();
    assert_line(
        said("no-interface"),
        str![[r"
no interface here: which queues its IRQs serve is not known, and they are placed after those of all interfaces

"]],
    );
}

/// The container's interface has queues on CPU 1, whose core is not idle here.
#[test]
fn the_vectors_of_a_sub_function_in_a_container_keep_their_core_busy() {
    let names = ["comp0", "comp1", "sf_comp0"];
    let names = names.map(|name| format!("mlx5_{name}@pci:0000:82:00.0"));
    let port = Port::new("eth0", 25_000, 2, 2);
    let tree = MachineTree::build(&two_nodes([card(
        "mlx5_core",
        port,
        30,
        &names.each_ref().map(String::as_str),
    )]));
    tree.put("proc/irq/32/smp_affinity", "02");
    tree.put("proc/irq/32/effective_affinity_list", "1");
    let plan = tree.plan(&[]);
    assert_eq!(planned(of(&plan, "eth0")), ["2", "3"]);
    assert_eq!(of(&plan, "eth0").worker_cpus, "0".parse().unwrap());
}

/// A function of nicvf has eight queues; more are on others, whose IRQs have the interface's name.
#[test]
fn the_irqs_of_a_function_for_more_queues_are_those_of_the_interface() {
    let names = |from: u32| (from..from + 2).map(|n| format!("eth0-rxtx-{n}"));
    let plan = |driver: &str| {
        let function = |address: &str, from: u32| {
            Card::new(driver, "pci0002:00", address, 0, "8.0 GT/s PCIe", 8).vectors(
                40 + from,
                names(from),
                &cpus("0-3"),
                &[0],
            )
        };
        let first = function("0002:01:00.1", 0).port(Port::new("eth0", 10_000, 4, 4));
        let tree = MachineTree::build(&two_nodes([first, function("0002:01:00.2", 2)]));
        tree.list_function("pci0002:00", "0002:01:00.2", "0x020000");
        tree.plan(&[])
    };
    let expected = |many| (0..many).map(|n| (40 + n, Some(n))).collect_vec();
    let queues = |plan: &Plan| {
        let vectors = &of(plan, "eth0").vectors;
        vectors.iter().map(|v| (v.irq, v.queue)).collect_vec()
    };
    let nicvf = plan("nicvf");
    assert_eq!(nicvf.interfaces.len(), 1);
    assert_eq!(queues(&nicvf), expected(4));
    // Another driver's function may be a container's, with an `eth0` of its own.
    assert_eq!(queues(&plan("rvu_nicvf")), expected(2));
}
