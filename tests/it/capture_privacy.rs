//! What a capture tells of the machine that it is of: hardware and topology, and nothing that identifies it, a site or its
//! users.

use std::os::unix::fs::symlink;
use std::path::Path;

use snapbox::{assert_data_eq, str};

use crate::support::captured::{Captured, assert_same_plans, plan};
use crate::support::machine::{Card, MachineSpec, Port, channels};
use crate::support::run::{MachineTree, nicpin};
use crate::support::temporary;
use crate::support::tree::{Entry, put};

/// What a service is called says what a site does.
#[test]
fn units_in_the_policy_are_replaced() {
    let machine = MachineTree::of("two-node");
    let policy = "[defaults]\nnear = 'unit:acme-billing.service'\n\
                  [[rule]]\nmatch = { name = \"nic1\" }\nset = { near = 'unit:acme\\x2dnames.slice' }\n";
    machine.put("/etc/nicpin.toml", policy);
    for args in [&[][..], &["--redact-names"]] {
        let captured = Captured::with(machine.dir(), args);
        assert!(!captured.text().contains("acme"), "{args:?}");
        assert_data_eq!(
            &*captured.run.stderr,
            str![[r"
nicpin: units in /etc/nicpin.toml are left-out.service in the capture

"]]
        );
        let planned = plan(&captured.file(), "json");
        let program = "\"program\": \"unit:left-out.service\"";
        assert!(planned.contains(program), "{planned}");
    }
}

/// Versions of drivers and firmware may look like IP addresses.
#[test]
fn versions_are_no_addresses() {
    let machine = MachineTree::of("two-node");
    let driver = r#"{"version":"6.12.0","firmware":"218.0.219.13/pkg 218.0.219.13"}"#;
    machine.put("/nicpin/ethtool/nic0/driver", driver);
    let captured = Captured::of(machine.dir());
    assert_eq!(captured.run.stderr, "");
    assert!(captured.text().contains("218.0.219.13/pkg 218.0.219.13"));
}

/// A machine with every kind of identity, in the kernel's files.
fn identified() -> MachineTree {
    let machine = MachineTree::of("two-node");
    let top = machine.path("/");
    put(&top, "/sys/class/net/nic0/address", "52:54:00:ab:cd:01");
    put(&top, "/sys/class/net/nic0/phys_port_id", "525400abcd01");
    put(&top, "/sys/class/net/nic0/ifalias", "uplink of db7");
    put(&top, "/sys/class/net/nic1/address", "52:54:00:ab:cd:02");
    put(&top, "/proc/sys/kernel/hostname", "db7.example.org");
    put(&top, "/proc/sys/kernel/osrelease", "6.12.43");
    put(&top, "/etc/hostname", "db7.example.org");
    put(&top, "/proc/cmdline", "ip=192.0.2.7 root=UUID=5ca1ab1e");
    put(&top, "/sys/class/dmi/id/product_serial", "CZ1234");
    put(&top, "/proc/net/arp", "192.0.2.1 0x1 0x2 52:54:00:ab:cd:03");
    // Processes: one that nicpin reads about, one that it does not.
    put(
        &top,
        "/proc/1/stat",
        "1 (secretd) S 0 1 1 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 1 0 0",
    );
    let numbers = ["7"; 49].join(" ");
    put(
        &top,
        "/proc/812/stat",
        &format!("812 (irqbalance) S {numbers}"),
    );
    put(&top, "/run/irqbalance/irqbalance812.sock", "");
    machine
}

#[test]
fn a_capture_does_not_identify_the_machine() {
    let machine = identified();
    let captured = Captured::of(machine.dir());
    assert_eq!(captured.run.stderr, "");
    let text = captured.text();
    let secrets = [
        "52:54", "525400", "db7", "example", "192.0.2", "5ca1ab1e", "CZ1234", "secretd",
        "hostname", "dmi",
    ];
    for secret in secrets {
        assert!(!text.contains(secret), "{secret}");
    }
    assert!(
        text.contains(r#"{"irqbalance":{"pid":812,"#),
        "irqbalance is a fact of the plan"
    );
    assert!(text.contains("kernel 6.12.43\n"));
    assert_same_plans(machine.dir(), &captured.file());
    assert!(plan(&captured.file(), "json").contains("irqbalance-running"));
}

#[test]
fn identity_is_captured_on_request() {
    let machine = identified();
    let captured = Captured::with(machine.dir(), &["--identify"]);
    let text = captured.text();
    for expected in [
        "host db7.example.org\n",
        "address nic0 52:54:00:ab:cd:01\n",
        "unix-time ",
    ] {
        assert!(text.contains(expected), "{expected}");
    }
    assert!(
        !text.contains("secretd"),
        "other processes are nobody's business"
    );
    assert_same_plans(machine.dir(), &captured.file());
}

/// systemd names USB and other network interfaces after their hardware address.
#[test]
fn an_interface_named_after_its_address_is_renamed() {
    let machine = MachineTree::of("two-node");
    let (own, other) = ("enx525400abcd02", "enx0a0000000001");
    let old = std::fs::canonicalize(machine.path("/sys/class/net/nic1")).unwrap();
    std::fs::rename(&old, old.with_file_name(own)).unwrap();
    let link = machine.path("/sys/class/net/nic1");
    let target = std::fs::read_link(&link).unwrap().with_file_name(own);
    symlink(target, link.with_file_name(own)).unwrap();
    machine.remove("/sys/class/net/nic1");
    let captured = Captured::of(machine.dir());
    assert_data_eq!(
        &*captured.run.stderr,
        str![[r"
nicpin: enx525400abcd02 has a hardware address in its name; the capture calls it enx0a0000000001, and so does its plan

"]]
    );
    assert!(!captured.text().contains("abcd02"));
    assert_eq!(
        json(&captured.file()),
        json(machine.dir()).replace(own, other)
    );
    let kept = Captured::with(machine.dir(), &["--identify"]);
    assert_same_plans(machine.dir(), &kept.file());
}

/// Drivers, buses and sites put addresses, GUIDs and names of people into names and texts.
#[test]
fn addresses_within_names_and_the_words_of_a_site_are_replaced() {
    let machine = MachineTree::of("two-node");
    let top = machine.path("/");
    let interrupts = machine
        .read("/proc/interrupts")
        .replace("virtio0-input.0", "enx98039ba1b2c9-TxRx-1");
    machine.write(
        "/proc/interrupts",
        &interrupts.replace("virtio0-input.1", "ibx98039b0300a1b2c9-2"),
    );
    put(
        &top,
        "/sys/class/net/nic1/address",
        "00:00:10:29:fe:80:00:00:00:00:00:00:98:03:9b:03:00:a1:b2:ca",
    );
    let guid = "f8b3781a-1e82-4818-a1c3-63d806ec15bb";
    let device = format!("sys/devices/VMBUS:00/{guid}");
    machine.add(&device, "vmbus", "hv_netvsc", "eth9", 0);
    let uevent = "/sys/devices/virtual/net/wg-berlin/uevent";
    put(
        &top,
        uevent,
        "INTERFACE=wg-berlin\nDEVTYPE=wireguard\nSECRET=rack-12",
    );
    symlink(
        "../../devices/virtual/net/wg-berlin",
        machine.path("/sys/class/net/wg-berlin"),
    )
    .unwrap();
    put(
        &top,
        "/proc/812/stat",
        &format!("812 (irqbalance) S {}", ["7"; 49].join(" ")),
    );
    put(&top, "/run/irqbalance/irqbalance812.sock", "");
    let script = "/home/ann/acme/policy";
    put(
        &top,
        "/etc/default/irqbalance",
        &format!("IRQBALANCE_ARGS=\"--policyscript={script}\" # ask jo"),
    );
    put(
        &top,
        &format!("{script}/nicpin-irqbalance-policy"),
        "#!/bin/sh",
    );
    put(
        &top,
        "/etc/systemd/network/9.link",
        "# ask bob\n[Link]\nIRQAffinityPolicy=spread ; bob wants it\n",
    );
    let captured = Captured::of(&top);
    let text = captured.text();
    for secret in [
        "98039b",
        guid,
        "f8b3781a",
        "rack-12",
        "ann/",
        "acme",
        "ask jo",
        "ask bob",
        "bob wants",
    ] {
        assert!(!text.contains(secret), "{secret}");
    }
    for kept in [
        "enx0a0000000001-TxRx-1",
        "DEVTYPE=wireguard",
        "/left-out/policyscript",
        "wg-berlin",
    ] {
        assert!(text.contains(kept), "{kept}");
    }
    assert_data_eq!(
        &*captured.run.stderr,
        str![[r"
nicpin: irqbalance's policy script is /left-out/policyscript in the capture
nicpin: /proc/interrupts has addresses in it; the capture has others

"]]
    );
    let of = |root: &Path| plan(root, "json");
    let hidden = of(&top)
        .replace(guid, "0a000000-0000-0000-0000-000000000001")
        .replace(script, "/left-out/policyscript")
        .replace("98039ba1b2c9", "0a0000000001")
        .replace("98039b0300a1b2c9", "0a00000000000001");
    assert_eq!(
        without_identity(&of(&captured.file())),
        without_identity(&hidden)
    );
    // A capture of the capture has nothing more to replace.
    assert_eq!(Captured::of(&captured.file()).bytes(), captured.bytes());
}

/// A plan without its hash, which names count in, and without the name of the host.
fn without_identity(plan: &str) -> String {
    plan.lines()
        .filter(|line| !line.contains("\"hash\"") && !line.starts_with("    \"name\""))
        .collect()
}

#[test]
fn an_interface_is_selected_by_any_of_its_names() {
    let machine = MachineTree::of("two-node");
    let top = machine.path("/");
    let altnames = r#"{"nic0":["enp5s0np0","uplink-a"],"gone":["uplink-b"]}"#;
    put(&top, "/nicpin/altnames", altnames);
    let captured = Captured::of(&top);
    let planned = |root: &Path, selector: &str| {
        let root = root.to_str().unwrap();
        let run = nicpin(&["plan", "--root", root, "--json", selector]);
        let plan = run.json();
        let interfaces = plan["interfaces"].as_array().unwrap().iter();
        interfaces
            .map(|interface| interface["name"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    for root in [&top, &captured.file()] {
        for selector in ["uplink-a", "enp5s0np0", "uplink*", "nic0"] {
            assert_eq!(planned(root, selector), ["nic0"], "{selector}");
        }
        assert_eq!(planned(root, "*"), ["nic0", "nic1"]);
    }
    // It is named where it is the nearest, and left out with the names of the site.
    assert_data_eq!(
        machine.fails(&["plan", "uplink-c"], 1),
        str![[r"
nicpin: no interface matches `uplink-c`; there is uplink-a, nic0, nic1, enp5s0np0

"]]
    );
    let nameless = Captured::with(&top, &["--redact-names"]);
    assert!(!nameless.text().contains("uplink"));
    assert_data_eq!(
        nameless.run.stderr,
        str![[r"
nicpin: /nicpin/altnames is left out: it can identify the machine

"]]
    );
}

/// A tunnel with `dev`, of which `/sys` tells nothing, and one on it.
#[test]
fn an_interface_on_a_card_by_netlink_alone_stands_for_the_card() {
    let machine = MachineTree::of("two-node");
    let top = machine.path("/");
    for name in ["tunnel0", "tunnel1", "tunnel2"] {
        put(&top, &format!("/sys/class/net/{name}/flags"), "0x10c1\n");
    }
    let lowers = r#"{"tunnel0":{"on":"nic1","kind":"ip6gre"},"tunnel1":{"on":"tunnel0","kind":"vxlan"},
        "gone":{"on":"nic0","kind":"xfrm"}}"#;
    put(&top, "/nicpin/lowers", lowers);
    let captured = Captured::of(&top);
    for root in [&top, &captured.file()] {
        for selector in ["tunnel0", "tunnel1", "tunnel[01]"] {
            let root = root.to_str().unwrap();
            let run = nicpin(&["plan", "--root", root, "--json", selector]);
            let plan = run.json();
            let interfaces = plan["interfaces"].as_array().unwrap();
            assert_eq!(interfaces.len(), 1, "{selector}");
            assert_eq!(interfaces[0]["name"], "nic1");
        }
    }
    let said = ["tunnel2", "gone"].map(|name| machine.fails(&["plan", name], 1));
    assert_data_eq!(
        said.concat(),
        str![[r"
nicpin: `tunnel2` is a virtual interface (dummy or the like): it has no device and no IRQs, so there is nothing to plan
nicpin: no interface matches `gone`; there is tunnel0, tunnel1, nic0, nic1

"]]
    );
    let nameless = Captured::with(&top, &["--redact-names"]);
    assert_data_eq!(
        nameless.run.stderr,
        str![[r"
nicpin: /nicpin/lowers is left out: it can identify the machine

"]]
    );
}

#[test]
fn names_are_replaced_on_request() {
    let machine = identified();
    let top = machine.path("/");
    put(
        &top,
        "/nicpin/ethtool/nic1/channels",
        &channels([0, 0, 0, 8], [0, 0, 0, 4]).to_text(),
    );
    put(
        &top,
        "/nicpin/netlink/nic0",
        &Port::new("nic0", -1, 1, 1)
            .netlink(&[("rx", 0, 36)])
            .netlink,
    );
    put(
        &top,
        "/etc/systemd/network/10-nic1-db7.link",
        "[Link]\nIRQAffinityPolicy=spread",
    );
    put(
        &top,
        "/etc/nicpin.toml",
        "[[rule]]\nmatch = { name = \"nic1\" }\nset = { irq-cores = 2 }",
    );
    let captured = Captured::with(&top, &["--redact-names"]);
    let text = captured.text();
    for secret in ["nic0", "nic1", "db7"] {
        assert!(!text.contains(secret), "{secret}");
    }
    let same = |text: &str| {
        text.replace("nic0", "if0")
            .replace("nic1", "if1")
            .replace("db7.link", "host.link")
    };
    assert_eq!(json(&captured.file()), same(&json(&top)));
    // A pattern would match other names.
    put(
        &top,
        "/etc/nicpin.toml",
        "[[rule]]\nmatch = { name = \"nic*\" }\nset = { irq-cores = 2 }",
    );
    let captured = Captured::with(&top, &["--redact-names"]);
    assert_data_eq!(
        &*captured.run.stderr,
        str![[r"
nicpin: /etc/nicpin.toml is left out: it has patterns of names

"]]
    );
    assert!(!captured.text().contains("irq-cores"));
    let both = nicpin(&[
        "capture",
        "--identify",
        "--redact-names",
        "--root",
        top.to_str().unwrap(),
    ]);
    assert_eq!(both.code, 64);
}

/// A host or an interface may have the name of something of the kernel, or of a key of what is recorded.
#[test]
fn names_that_others_have_too_stay_there() {
    for host in ["node1", "cpu", "file.example.org"] {
        let machine = identified();
        let top = machine.path("/");
        put(&top, "/proc/sys/kernel/hostname", host);
        put(&top, "/proc/sys/net/core/rps_sock_flow_entries", "4096");
        put(&top, "/etc/default/irqbalance", "IRQBALANCE_ARGS=");
        put(
            &top,
            "/sys/devices/virtual/net/core/uevent",
            "INTERFACE=core",
        );
        symlink(
            "../../devices/virtual/net/core",
            machine.path("/sys/class/net/core"),
        )
        .unwrap();
        let captured = Captured::with(&top, &["--redact-names"]);
        assert!(!captured.text().contains("INTERFACE=core"));
        // `core` is the first of them.
        let same = json(&top).replace("nic0", "if1").replace("nic1", "if2");
        assert_eq!(json(&captured.file()), same, "{host}");
    }
}

/// Handlers keep the name that an interface had when its driver asked for them, and are all that is seen of interfaces in
/// containers.
#[test]
fn names_that_only_handlers_have_are_replaced_on_request() {
    let machine = MachineTree::of("tg3-and-ixgbe");
    let interrupts = machine.read("/proc/interrupts").replace("p6p1", "acme-b");
    let row = interrupts.lines().find(|row| row.contains("acme-b-TxRx-0"));
    let foreign = row
        .unwrap()
        .replace(" 53:", "153:")
        .replace("acme-b", "acme9");
    machine.write(
        "/proc/interrupts",
        &interrupts.replacen("NMI:", &format!("{foreign}\nNMI:"), 1),
    );
    assert!(machine.read("/proc/interrupts").contains("acme9-TxRx-0"));
    let top = machine.path("/");
    let captured = Captured::with(&top, &["--redact-names"]);
    assert!(!captured.text().contains("acme"));
    let same = json(&top)
        .replace("em1", "if0")
        .replace("p6p1", "if1")
        .replace("acme-b", "if3");
    assert_eq!(json(&captured.file()), same);
    // A capture of the capture has nothing more to replace.
    let again = Captured::with(&captured.file(), &["--redact-names"]);
    assert_eq!(again.bytes(), captured.bytes());
}

/// What is cut is known by its length.
#[test]
fn names_that_a_driver_cut_are_replaced_by_others_as_long() {
    let mut machine = MachineSpec::new(&["0-7"]);
    let (name, bus) = ("enp129s0f0np0", "pci0000:00/0000:00:1c.4");
    let names = ["t", "r", "r", "r", "r"].map(|way| format!("{name}-{way}"));
    let card = Card::new("tg3", bus, "0000:02:00.0", 0, "5.0 GT/s PCIe", 1)
        .port(Port::new(name, 1000, 4, 1))
        .vectors(48, names, &[], &[0]);
    machine.cards.push(card);
    let dir = temporary();
    machine.write(dir.path());
    let captured = Captured::with(dir.path(), &["--redact-names"]);
    let plan = json(dir.path());
    assert!(plan.contains("\"role\": \"rx\""), "{plan}");
    assert_eq!(json(&captured.file()), plan.replace(name, "if0xxxxxxxxxx"));
    let again = Captured::with(&captured.file(), &["--redact-names"]);
    assert_eq!(again.bytes(), captured.bytes());
}

fn json(root: &Path) -> String {
    without_identity(&plan(root, "json"))
}

/// Every file of a capture is read by the planner, so that it can be a fixture as it is.
#[test]
fn a_capture_holds_only_what_is_read() {
    let machine = identified();
    let captured = Captured::of(machine.dir());
    let unpacked = captured.unpack();
    let root = nicpin::root::Root::open_recording(&unpacked).unwrap();
    nicpin::read::machine(&root, nicpin::read::ReadOptions::EVERYTHING).unwrap();
    let asked: Vec<String> = root.recorded().paths.into_keys().collect();
    for (path, entry) in crate::support::tree::entries(&unpacked) {
        let real = asked
            .iter()
            .any(|asked| *asked == path || root.canonical(asked).unwrap().as_ref() == Some(&path));
        let listed = path.contains("/msi_irqs/");
        assert!(
            real || listed || path == "/nicpin/capture",
            "nothing reads {path}"
        );
        if let Entry::Link(target) = entry {
            assert!(target.is_relative(), "{path}");
        }
    }
}
