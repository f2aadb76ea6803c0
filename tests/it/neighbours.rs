//! Other devices on a node, and PCI Express links below what device and slot can do.

use std::path::Path;

use serde_json::json;
use snapbox::{assert_data_eq, str};

use crate::support::captured::Captured;
use crate::support::run::{MachineTree, codes, document, nicpin, note as note_of, text};
use crate::support::tree::{link, put};
use nicpin::machine::NeighbourKind;

/// A PCI function, and what its driver makes of it.
fn function(
    top: &Path,
    address: &str,
    class: &str,
    vendor: &str,
    node: &str,
    driver: Option<&str>,
) {
    let path = format!("/sys/devices/pci0000:80/{address}");
    for (file, text) in [("class", class), ("vendor", vendor), ("numa_node", node)] {
        put(top, &format!("{path}/{file}"), text);
    }
    if let Some(driver) = driver {
        link(
            top,
            &format!("{path}/driver"),
            &format!("../../../bus/pci/drivers/{driver}"),
        );
    }
    link(
        top,
        &format!("/sys/bus/pci/devices/{address}"),
        &format!("../../..{}", &path["/sys".len()..]),
    );
}

fn machine_with_neighbours() -> MachineTree {
    let machine = MachineTree::of("two-node");
    let top = machine.path("/");
    function(
        &top,
        "0000:a1:00.0",
        "0x030200",
        "0x10de",
        "1",
        Some("nvidia"),
    );
    function(&top, "0000:a2:00.0", "0x030000", "0x1002", "1", None);
    function(
        &top,
        "0000:a3:00.0",
        "0x010802",
        "0x144d",
        "1",
        Some("nvme"),
    );
    function(
        &top,
        "0000:a4:00.0",
        "0x010802",
        "0x144d",
        "1",
        Some("nvme"),
    );
    function(&top, "0000:a5:00.0", "0x0b4000", "0x8086", "0", Some("qat"));
    function(&top, "0000:a6:00.0", "0x120000", "0x1da3", "-1", None);
    // A management controller's display, a bridge, a SATA controller, and a virtual function.
    function(&top, "0000:a7:00.0", "0x030000", "0x1a03", "1", Some("ast"));
    function(&top, "0000:a8:00.0", "0x060400", "0x8086", "1", None);
    function(&top, "0000:a9:00.0", "0x010601", "0x8086", "1", None);
    function(&top, "0000:a1:00.4", "0x030200", "0x10de", "1", None);
    link(
        &top,
        "/sys/devices/pci0000:80/0000:a1:00.4/physfn",
        "../0000:a1:00.0",
    );
    // An RDMA device of a card, and one of software.
    function(
        &top,
        "0000:aa:00.0",
        "0x020700",
        "0x15b3",
        "0",
        Some("mlx5_core"),
    );
    link(
        &top,
        "/sys/class/infiniband/mlx5_0/device",
        "../../../devices/pci0000:80/0000:aa:00.0",
    );
    put(&top, "/sys/class/infiniband/rxe0/node_type", "1: CA");
    machine
}

#[test]
fn nodes_and_pictures_show_what_else_is_there() {
    let machine = machine_with_neighbours();
    let text = machine.nicpin(&["nodes"]).stdout;
    assert_data_eq!(
        &text,
        str![[r#"
8 CPUs on 2 nodes, 2 interfaces.

NODE  MEMORY   FREE  CPUS  DEVICES
0     338 MiB  -     0-3   nic0 (virtio_net), 1 accelerator, 1 RDMA device
1     250 MiB  -     4-7   nic1 (virtio_net), 2 GPUs, 2 NVMe disks
On no known node: 1 accelerator.

DISTANCE  TO 0  TO 1
from 0      10    21
from 1      21    10

"#]]
    );
    let json = machine.nicpin(&["nodes", "--json"]).json();
    assert_eq!(
        json["nodes"][1]["neighbours"][0],
        serde_json::json!({ "kind": "gpu", "name": "0000:a1:00.0", "driver": "nvidia", "node": 1 })
    );
    assert_eq!(json["nodes"][0]["neighbours"][1]["name"], "mlx5_0");
    assert_eq!(json["unknown_neighbours"][0]["name"], "0000:a6:00.0");
    let svg = machine.nicpin(&["draw"]).stdout;
    assert!(
        svg.contains(">2 GPUs, 2 NVMe disks<") && svg.contains(">1 accelerator, 1 RDMA device<"),
        "{svg}"
    );
    // two-node has no other devices.
    assert!(
        !MachineTree::of("two-node")
            .nicpin(&["draw"])
            .stdout
            .contains(" y=\"35\">")
    );
    let hash = |machine: &MachineTree| {
        machine
            .nicpin(&["plan", "-q"])
            .stdout
            .lines()
            .last()
            .map(str::to_owned)
    };
    assert_eq!(hash(&machine), hash(&MachineTree::of("two-node")));
    let captured = Captured::of(machine.dir());
    assert_eq!(
        nicpin(&["nodes", "--root", captured.file().to_str().unwrap()]).stdout,
        text
    );
}

#[test]
fn kinds_by_class() {
    for (class, vendor, kind) in [
        ("0x030000\n", "0x10de\n", Some(NeighbourKind::Gpu)),
        ("0x038000", "0x1002", Some(NeighbourKind::Gpu)),
        ("0x030000\n", "0x102b\n", None),
        ("0x010802", "0x102b", Some(NeighbourKind::Nvme)),
        ("0x120000", "", Some(NeighbourKind::Accelerator)),
        ("0x0b4000", "", Some(NeighbourKind::Accelerator)),
        ("0x0b2000", "", None),
        ("0x03", "", None),
        ("030000", "", None),
        ("", "", None),
    ] {
        assert_eq!(
            NeighbourKind::from_class(class, vendor),
            kind,
            "{class} {vendor}"
        );
    }
}

#[test]
fn a_link_below_what_device_and_slot_can_do_is_a_note() {
    let machine = MachineTree::of("dl980");
    let device_path = std::fs::canonicalize(machine.path("/sys/class/net/eth2/device")).unwrap();
    let top = machine.path("/");
    let below = device_path
        .strip_prefix(std::fs::canonicalize(&top).unwrap())
        .unwrap()
        .to_owned();
    let above = below.parent().unwrap().to_owned();
    let mut said = String::new();
    // Now; the device's and the port's maximum; MT/s and lanes of both in the note.
    let full = ("16.0 GT/s PCIe", "16");
    for (now, device, port, note) in [
        (full, full, full, None),
        (
            ("8.0 GT/s PCIe", "16"),
            full,
            full,
            Some([[8000, 16], [16000, 16]]),
        ),
        (
            ("16.0 GT/s PCIe", "8"),
            full,
            full,
            Some([[16000, 8], [16000, 16]]),
        ),
        (
            ("2.5 GT/s", "1"),
            ("5 GT/s", "4"),
            full,
            Some([[2500, 1], [5000, 4]]),
        ),
        // The slot has no more, or the device.
        (("16.0 GT/s PCIe", "8"), full, ("16.0 GT/s PCIe", "8"), None),
        (("8.0 GT/s PCIe", "8"), ("8.0 GT/s PCIe", "8"), full, None),
        (("8.0 GT/s PCIe", "8"), full, ("8.0 GT/s PCIe", "8"), None),
        (
            ("8.0 GT/s PCIe", "4"),
            full,
            ("8.0 GT/s PCIe", "8"),
            Some([[8000, 4], [8000, 8]]),
        ),
        // What virtual machines and devices that sleep report.
        (("Unknown", "0"), full, full, None),
        (("Unknown speed", "63"), full, full, None),
        (("16.0 GT/s PCIe", "255"), full, full, None),
        (("2.5 GT/s PCIe", "1"), full, ("Unknown", "255"), None),
        (("2.5 GT/s PCIe", "1"), ("Unknown", "0"), full, None),
    ] {
        for (path, which, (speed, width)) in [
            (&below, "current", now),
            (&below, "max", device),
            (&above, "max", port),
        ] {
            put(
                &top,
                &format!("/{}/{which}_link_speed", path.display()),
                speed,
            );
            put(
                &top,
                &format!("/{}/{which}_link_width", path.display()),
                width,
            );
        }
        let has_note = |command: &str| {
            let told = document(&machine, &[command, "eth2"]);
            codes(&told["interfaces"][0]).contains(&"link-below")
        };
        let is_below = note.is_some();
        assert_eq!(["plan", "status"].map(has_note), [is_below; 2], "{now:?}");
        if let Some(links) = note {
            let plan = document(&machine, &["plan", "eth2"]);
            let told = note_of(&plan["interfaces"][0], "link-below");
            let of = |key: &str| ["mtps", "lanes"].map(|part| told[key][part].clone());
            assert_eq!(json!([of("now"), of("possible")]), json!(links));
            said += &format!("{}\n", text(told, "text"));
            // A virtual function has no link of its own.
            link(
                &top,
                &format!("/{}/physfn", below.display()),
                "../0000:00:00.0",
            );
            assert!(!has_note("plan"));
            std::fs::remove_file(top.join(below.join("physfn"))).unwrap();
        }
    }
    assert_data_eq!(
        said,
        str![[r"
the PCIe link runs at 8.0 GT/s x16, but the device and its slot support 16.0 GT/s x16: 50% of the possible bandwidth
the PCIe link runs at 16.0 GT/s x8, but the device and its slot support 16.0 GT/s x16: 50% of the possible bandwidth
the PCIe link runs at 2.5 GT/s x1, but the device and its slot support 5.0 GT/s x4: 12% of the possible bandwidth
the PCIe link runs at 8.0 GT/s x4, but the device and its slot support 8.0 GT/s x8: 50% of the possible bandwidth

"]]
    );
}
