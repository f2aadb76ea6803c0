//! The trees in `fixtures/` are as the builder writes them, and have no more files than nicpin reads.
//!
//! `NICPIN_UPDATE=1 cargo test --test it -- fixtures::` writes the built trees and the packed one again, then compares.

// The trees belong to the test; a failed step fails the test.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use crate::support::machine::{Card, Kernel, MachineSpec, Port, cpus};
use crate::support::tree::{Entry, entries, names, pack, unpack};
use crate::support::{machines, temporary};
use nicpin::read::ReadOptions;
use nicpin::root::Root;

/// Trees that were taken from running kernels.
const CAPTURED: [&str; 3] = ["four-node", "two-node", "wide"];
const BESIDE: [&str; 4] = ["README.md", "expected", "policies", "server.tar.gz"];

static FIXTURES: LazyLock<PathBuf> = LazyLock::new(|| {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    if std::env::var_os("NICPIN_UPDATE").is_some_and(|value| value == "1") {
        for (name, machine) in machines::all() {
            let dir = folder.join(name);
            if dir.exists() {
                std::fs::remove_dir_all(&dir).unwrap();
            }
            machine.write(&dir);
        }
        let server = temporary();
        machines::server().write(server.path());
        std::fs::write(folder.join("server.tar.gz"), pack(server.path())).unwrap();
    }
    folder
});

#[test]
fn built_trees_are_what_the_builder_writes() {
    for (name, machine) in machines::all() {
        let fresh = temporary();
        machine.write(fresh.path());
        let written = entries(fresh.path());
        assert!(!written.is_empty(), "{name}: the builder wrote nothing");
        let differences = compare(&written, &entries(&FIXTURES.join(name)));
        assert!(
            differences.is_empty(),
            "fixtures/{name}, NICPIN_UPDATE=1 writes it anew: {differences}"
        );
    }
}

/// The large server has thousands of files, and is shipped as an archive.
#[test]
fn the_packed_server_is_what_the_builder_writes() {
    let (written, kept) = (temporary(), temporary());
    machines::server().write(written.path());
    unpack(&FIXTURES.join("server.tar.gz"), kept.path());
    let differences = compare(&entries(written.path()), &entries(kept.path()));
    assert!(
        differences.is_empty(),
        "fixtures/server.tar.gz, NICPIN_UPDATE=1 writes it anew: {differences}"
    );
}

/// The builder writes `two-node`, which was captured from a running kernel, with the same bytes, except the counts in
/// `/proc/interrupts` and the rows of other devices.
#[test]
fn the_builder_writes_the_same_bytes_as_the_kernel() {
    let mut machine = MachineSpec::new(&["0-3", "4-7"]);
    machine.kernel = Kernel::V6_2;
    machine.nohz_full = Some(vec![]);
    machine.set_distances(|from, to| if from == to { 10 } else { 21 });
    for (node, memory) in machine.nodes.iter_mut().zip([346_592, 256_636]) {
        node.memory = Some(memory);
    }
    let cards = [
        (
            "nic0",
            "20",
            0,
            1,
            35,
            "0-3",
            ["0-1", "2-3", "4-5", "6-7"],
            [3, 0, 1, 2, 3, 0, 1, 2, 3],
        ),
        (
            "nic1",
            "40",
            1,
            0,
            26,
            "4-7",
            ["0-1", "2-3", "4-5", "6-7"],
            [5, 0, 7, 4, 5, 6, 7, 4, 5],
        ),
    ];
    for (name, bus, node, virtio, first, near, xps, serving) in cards {
        let (parent, address) = (
            format!("pci0000:{bus}/0000:{bus}:00.0"),
            format!("0000:{}1:00.0", &bus[..1]),
        );
        let mut card = Card::new("virtio_net", &parent, &address, node, "2.5 GT/s PCIe", 1)
            .port(Port::new(name, -1, 4, 4).xps(xps.map(cpus)))
            .vectors(
                first,
                [format!("virtio{virtio}-config")],
                &cpus(near),
                &serving[..1],
            );
        for (k, near) in (0..).zip(xps) {
            let names = ["input", "output"].map(|way| format!("virtio{virtio}-{way}.{k}"));
            let at = 2 * k as usize + 1;
            card = card.vectors(first + 1 + 2 * k, names, &cpus(near), &serving[at..]);
        }
        card.virtio = Some(virtio);
        machine.cards.push(card);
    }
    let fresh = temporary();
    machine.write(fresh.path());
    let (mut written, mut kept) = (entries(fresh.path()), entries(&FIXTURES.join("two-node")));
    for tree in [&mut written, &mut kept] {
        let Some(Entry::File(text)) = tree.get_mut("/proc/interrupts") else {
            panic!("no interrupts")
        };
        let rows = text
            .lines()
            .filter(|row| row.contains("CPU0") || row.contains("virtio"));
        // Eleven characters per count, after the number.
        let cut = rows.map(|row| [&row[..4], &row[4 + 11 * 8..]].concat());
        *text = cut.collect::<Vec<_>>().join("\n");
    }
    let differences = compare(&written, &kept);
    assert!(differences.is_empty(), "fixtures/two-node: {differences}");
}

#[test]
fn every_tree_is_built_or_captured() {
    let found: BTreeSet<String> = names(&FIXTURES).into_iter().collect();
    let machines: BTreeSet<String> = trees().into_iter().collect();
    let strangers: Vec<_> = found
        .difference(&machines)
        .filter(|name| !BESIDE.contains(&name.as_str()))
        .collect();
    assert!(strangers.is_empty(), "nothing checks these: {strangers:?}");
    let missing: Vec<_> = machines.difference(&found).collect();
    assert!(missing.is_empty(), "these are gone: {missing:?}");
}

#[test]
fn a_tree_holds_only_what_is_read() {
    for name in trees() {
        let root = Root::open_recording(&FIXTURES.join(&name)).unwrap();
        let host = nicpin::read::machine(&root, ReadOptions::EVERYTHING)
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(!host.interfaces.is_empty(), "{name} has no interface");
        let asked: Vec<String> = root.recorded().paths.into_keys().collect();
        let read: BTreeSet<String> = asked
            .iter()
            .filter_map(|path| root.canonical(path).unwrap())
            .chain(asked.iter().cloned())
            .collect();
        for (path, entry) in entries(&FIXTURES.join(&name)) {
            let (above, file) = path.rsplit_once('/').unwrap();
            // Files whose name says all; for the last see `write_interface`.
            let listed = above.ends_with("/msi_irqs") && read.contains(above);
            let only_queue = file == "tx_timeout" && above.contains("/queues/tx-");
            let about = path == "/nicpin/capture";
            assert!(
                read.contains(&path) || listed || only_queue || about,
                "{name}: nothing reads {path}"
            );
            if let Entry::Link(target) = entry {
                assert!(
                    target.is_relative(),
                    "{name}: {path} leads out of the tree, to {}",
                    target.display()
                );
            }
        }
    }
}

fn trees() -> Vec<String> {
    let built = machines::all().into_iter().map(|(name, _)| name);
    built.chain(CAPTURED).map(str::to_owned).collect()
}

fn compare(built: &BTreeMap<String, Entry>, kept: &BTreeMap<String, Entry>) -> String {
    let paths: BTreeSet<&String> = built.keys().chain(kept.keys()).collect();
    let differ: Vec<_> = paths
        .into_iter()
        .filter(|&path| built.get(path) != kept.get(path))
        .collect();
    let listed: Vec<String> = differ
        .iter()
        .take(10)
        .map(|&path| {
            format!(
                "{path}\n  built: {:?}\n   kept: {:?}",
                built.get(path),
                kept.get(path)
            )
        })
        .collect();
    if differ.is_empty() {
        String::new()
    } else {
        format!("{} paths\n{}", differ.len(), listed.join("\n"))
    }
}
