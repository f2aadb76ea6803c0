//! `nicpin draw`: pictures are XML and have every CPU and every queue of the plan as text, inside the picture and
//! without overlaps. `tests/pictures.sh` makes images of the pictures that this writes to `target/tmp/pictures`.
//!
//! `SNAPSHOTS=overwrite cargo test --test it -- pictures::` rewrites the pictures in `fixtures/expected`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use roxmltree::{Document, Node};

use crate::draw::Picture;
use crate::support::host::{add, machine};
use crate::support::machine::{Card, MachineSpec, Port, cpus};
use crate::support::run::{FIXTURES, MachineTree, expect, fixture, nicpin};
use crate::support::{is_full, temporary};
use nicpin::machine::Selection;
use nicpin::plan::Plan;
use nicpin::policy::Policy;

/// Two sockets of 64 cores with two threads, each divided into as many nodes (NPS1, NPS4), an L3 cache for every eight
/// cores, and four cards of up to 64 queues.
fn two_large_sockets(nodes_per_socket: u32) -> MachineSpec {
    let (nodes, cores) = (2 * nodes_per_socket, 64 / nodes_per_socket);
    let threads = |node: u32| {
        let (first, last) = (node * cores, (node + 1) * cores - 1);
        format!("{first}-{last},{}-{}", first + 128, last + 128)
    };
    let cpus_by_node: Vec<String> = (0..nodes).map(threads).collect();
    let mut machine =
        MachineSpec::new(&cpus_by_node.iter().map(String::as_str).collect::<Vec<_>>());
    machine.cores = machine.groups(|cpu| cpu % 128);
    machine.l3 = machine.groups(|cpu| cpu % 128 / 8);
    machine.set_distances(|from, to| {
        match (from == to, from / nodes_per_socket == to / nodes_per_socket) {
            (true, _) => 10,
            (_, true) => 12,
            _ => 32,
        }
    });
    let last = i32::try_from(nodes - 1).unwrap();
    for (at, (node, queues)) in (0..).zip([(0, 63), (last, 63), (last, 32), (0, 4)]) {
        let (name, bus) = (format!("ens{at}f0np0"), format!("{:02x}", 0x21 + 0x20 * at));
        let parent = format!("pci0000:{bus}/0000:{bus}:00.1");
        let address = format!("0000:{:02x}:00.0", 0x22 + 0x20 * at);
        let names = (0..queues).map(|k| format!("mlx5_comp{k}@pci:{address}"));
        machine.cards.push(
            Card::new("mlx5_core", &parent, &address, node, "16.0 GT/s PCIe", 16)
                .port(Port::new(&name, 100_000, queues, queues))
                .vectors(100 + 100 * at, names, &[], &cpus("0-62")),
        );
    }
    machine
}

/// Two nodes of 28 cores, with even and odd CPU numbers, and ten interfaces.
fn ten_cards() -> MachineSpec {
    let alternate = |odd: u32| {
        (0..56)
            .map(|at| (2 * at + odd).to_string())
            .collect::<Vec<_>>()
            .join(",")
    };
    let mut machine = MachineSpec::new(&[&alternate(0), &alternate(1)]);
    machine.cores = machine.groups(|cpu| cpu % 56);
    machine.l3 = machine.groups(|cpu| cpu % 2);
    for at in 0..10_u32 {
        let (node, queues) = (i32::from(at % 2 == 1), if at < 4 { 28 } else { 8 });
        let name = format!("ens{at}f0");
        let parent = format!(
            "pci0000:{:02x}/0000:{:02x}:00.1",
            0x10 + 16 * at,
            0x10 + 16 * at
        );
        let address = format!("0000:{:02x}:00.0", 0x11 + 16 * at);
        let names = (0..queues).map(|k| format!("i40e-{name}-TxRx-{k}"));
        machine.cards.push(
            Card::new("i40e", &parent, &address, node, "8.0 GT/s PCIe", 8)
                .port(Port::new(&name, 10_000, queues, queues))
                .vectors(100 + 100 * at, names, &[], &cpus("0-27")),
        );
    }
    machine
}

static DRAWN: LazyLock<Vec<(String, String, Plan)>> = LazyLock::new(|| {
    let drawn = machines().into_iter().map(|(name, root, _dir)| {
        let svg = draw(&root);
        if is_full() || FIXTURES.contains(&&*name) {
            assert_eq!(svg, draw(&root), "{name} is drawn differently every time");
        }
        (name, svg, plan(&root))
    });
    drawn.collect()
});

/// Every machine that is drawn, with the tree that it is in.
fn machines() -> Vec<(String, PathBuf, Option<tempfile::TempDir>)> {
    let mut all: Vec<_> = FIXTURES
        .iter()
        .map(|&name| (name.to_owned(), fixture(name), None))
        .collect();
    for (name, machine) in [
        ("two-large-sockets", two_large_sockets(1)),
        ("two-large-sockets-nps4", two_large_sockets(4)),
        ("ten-cards", ten_cards()),
    ] {
        let tree = temporary();
        machine.write(tree.path());
        all.push((name.to_owned(), tree.path().to_owned(), Some(tree)));
    }
    // The kernel tells nothing of a node: its CPUs and cards are on an unknown one.
    let tree = temporary();
    ten_cards().write(tree.path());
    std::fs::remove_dir_all(tree.path().join("sys/devices/system/node/node1")).unwrap();
    all.push((
        "node-missing".to_owned(),
        tree.path().to_owned(),
        Some(tree),
    ));
    all.push(("server".to_owned(), fixture("server.tar.gz"), None));
    all
}

fn draw(root: &Path) -> String {
    let run = nicpin(&["draw", "--root", root.to_str().unwrap()]);
    assert_eq!(
        (run.code, run.stderr.as_str()),
        (0, ""),
        "{}",
        root.display()
    );
    run.stdout
}

fn plan(root: &Path) -> Plan {
    let run = nicpin(&["plan", "--format", "json", "--root", root.to_str().unwrap()]);
    serde_json::from_str(&run.stdout).unwrap()
}

fn scenes<'a>(document: &'a Document<'a>) -> Vec<Node<'a, 'a>> {
    let groups = document
        .root_element()
        .children()
        .filter(|node| node.has_attribute("transform"));
    groups
        .filter(|group| group.descendants().any(|node| is(&node, "panel")))
        .collect()
}

fn is(node: &Node<'_, '_>, class: &str) -> bool {
    node.attribute("class")
        .is_some_and(|classes| classes.split(' ').any(|one| one == class))
}

fn number(node: &Node<'_, '_>, name: &str) -> i32 {
    node.attribute(name)
        .unwrap_or_else(|| panic!("no {name}: {node:?}"))
        .parse()
        .unwrap()
}

fn tooltips(scene: Node<'_, '_>) -> BTreeMap<u32, String> {
    let titles = scene
        .descendants()
        .filter(|node| node.has_tag_name("title"))
        .filter_map(|node| node.text());
    let cpu = |title: &str| {
        title
            .split([' ', ',', ';'])
            .nth(1)
            .unwrap()
            .parse()
            .unwrap()
    };
    titles.map(|title| (cpu(title), title.to_owned())).collect()
}

#[test]
fn every_cpu_and_every_queue_is_in_the_picture() {
    let pictures = Path::new(env!("CARGO_TARGET_TMPDIR")).join("pictures");
    std::fs::create_dir_all(&pictures).unwrap();
    for (name, svg, plan) in &*DRAWN {
        std::fs::write(pictures.join(format!("{name}.svg")), svg).unwrap();
        let document = Document::parse(svg).unwrap_or_else(|error| panic!("{name}: {error}"));
        let scenes = scenes(&document);
        assert!(scenes.len() == 2, "{name}: none of these is as planned");
        let online: BTreeSet<u32> = plan.host.online.iter().collect();
        for (scene, then) in scenes.into_iter().zip([false, true]) {
            let titles_by_cpu = tooltips(scene);
            assert_eq!(
                titles_by_cpu.keys().copied().collect::<BTreeSet<_>>(),
                online,
                "{name}"
            );
            for interface in &plan.interfaces {
                for vector in interface
                    .vectors
                    .iter()
                    .filter(|v| v.role.is_queue() && !v.idle)
                {
                    let known = vector.known_cpus(&plan.host.online);
                    let stays = known.as_deref().or(vector.effective.as_ref());
                    let cpus = if then {
                        vector.cpus.as_ref().or(stays)
                    } else {
                        stays
                    };
                    let queue = vector.queue.unwrap().to_string();
                    for cpu in cpus.unwrap().iter() {
                        let own = titles_by_cpu[&cpu].split("; ").find_map(|part| {
                            part.strip_prefix(&format!("{} queues ", interface.name))
                        });
                        let found = own.is_some_and(|own| {
                            own.split(", ")
                                .any(|one| one.trim_end_matches(['r', 't']) == queue)
                        });
                        assert!(
                            found,
                            "{name}: {} queue {queue} on CPU {cpu}: {}",
                            interface.name, titles_by_cpu[&cpu]
                        );
                    }
                }
            }
            let names: Vec<&str> = scene
                .descendants()
                .filter(|node| is(node, "name"))
                .filter_map(|node| node.text())
                .collect();
            for interface in &plan.interfaces {
                assert!(
                    names.iter().any(|name| name.trim() == interface.name),
                    "{name}: {names:?}"
                );
            }
        }
    }
}

#[test]
fn nothing_is_outside_the_picture_or_overlaps() {
    for (name, svg, _) in &*DRAWN {
        let document = Document::parse(svg).unwrap();
        let (width, height) = (
            number(&document.root_element(), "width"),
            number(&document.root_element(), "height"),
        );
        assert!(width <= 1800, "{name} is {width} wide");
        for scene in scenes(&document) {
            let moved: Vec<i32> = scene.attribute("transform").unwrap()["translate(".len()..]
                .trim_end_matches(')')
                .split(' ')
                .map(|number| number.parse().unwrap())
                .collect();
            let boxes = |class: &str| -> Vec<[i32; 4]> {
                let own = scene
                    .descendants()
                    .filter(|node| node.has_tag_name("rect") && is(node, class));
                own.map(|node| ["x", "y", "width", "height"].map(|side| number(&node, side)))
                    .collect()
            };
            for class in ["panel", "core", "cpu", "chip"] {
                let boxes = boxes(class);
                for (at, [x, y, w, h]) in boxes.iter().enumerate() {
                    assert!(
                        *x >= 0
                            && *y >= 0
                            && x + w + moved[0] <= width
                            && y + h + moved[1] <= height,
                        "{name}"
                    );
                    let overlap = boxes[..at].iter().find(|[x2, y2, w2, h2]| {
                        *x < x2 + w2 && *x2 < x + w && *y < y2 + h2 && *y2 < y + h
                    });
                    assert!(overlap.is_none(), "{name}: two of {class} at {x} {y}");
                }
            }
        }
    }
}

/// A line leads from a queue's dot to a CPU, below the interfaces. Of more than 64 queues, each core has their number
/// instead.
#[test]
fn lines_lead_from_queues_to_cpus_while_there_are_few() {
    for (name, svg, plan) in &*DRAWN {
        let document = Document::parse(svg).unwrap();
        let queues: usize = (plan.interfaces.iter())
            .map(|interface| {
                let vectors = interface.vectors.iter();
                let active = vectors.filter(|vector| vector.role.is_queue() && !vector.idle);
                active
                    .map(|vector| vector.queue)
                    .collect::<BTreeSet<_>>()
                    .len()
            })
            .sum();
        for scene in scenes(&document) {
            let nodes: Vec<_> = scene.descendants().collect();
            let all = |class: &str| nodes.iter().filter(|node| is(node, class)).count();
            assert_eq!(all("line") == 0, queues > 64, "{name}: {queues} queues");
            assert_eq!(all("count") == 0, queues <= 64, "{name}: {queues} queues");
            if queues > 64 {
                assert_eq!(all("count"), all("core"), "{name}");
                continue;
            }
            let dots: BTreeSet<(i32, i32)> = (nodes.iter())
                .filter(|node| node.has_tag_name("circle"))
                .map(|node| (number(node, "cx"), number(node, "cy")))
                .collect();
            let ends: BTreeSet<(i32, i32)> = (nodes.iter())
                .filter(|node| is(node, "cpu"))
                .map(|cpu| {
                    let x = number(cpu, "x") + number(cpu, "width") / 2;
                    (x, number(cpu, "y") + number(cpu, "height"))
                })
                .collect();
            let last_line = nodes.iter().rposition(|node| is(node, "line"));
            assert!(
                last_line < nodes.iter().position(|node| is(node, "chip")),
                "{name}"
            );
            for line in nodes.iter().filter(|node| is(node, "line")) {
                let numbers: Vec<i32> = line.attribute("d").unwrap()[1..]
                    .split([' ', 'C'])
                    .map(|number| number.parse().unwrap())
                    .collect();
                assert!(dots.contains(&(numbers[0], numbers[1])), "{name}");
                assert!(ends.contains(&(numbers[6], numbers[7])), "{name}");
            }
        }
    }
}

/// Measured in the widest font of browsers and rsvg-convert, whose letters are 0.62 of its size on average.
#[test]
fn every_text_ends_within_the_picture() {
    for (name, svg, _) in &*DRAWN {
        let document = Document::parse(svg).unwrap();
        let width = number(&document.root_element(), "width");
        for node in document
            .descendants()
            .filter(|node| node.has_tag_name("text"))
        {
            if node.attribute("class").is_some_and(|class| {
                ["number", "label", "count"]
                    .iter()
                    .any(|one| class.starts_with(one))
            }) {
                continue;
            }
            let moved = node
                .ancestors()
                .find_map(|above| above.attribute("transform"));
            let moved = moved.map_or(0, |moved| {
                let x = moved["translate(".len()..].split(' ').next().unwrap();
                x.parse::<i32>().unwrap()
            });
            let texts = node.descendants().filter(Node::is_text);
            let text: String = texts.filter_map(|node| node.text()).collect();
            let letters = i32::try_from(text.chars().count()).unwrap();
            let end = moved + number(&node, "x") + letters * 12 * 62 / 100;
            assert!(end <= width, "{name}: {text} ends at {end} of {width}");
        }
    }
}

#[test]
fn options_leave_out_lines_and_scenes() {
    let machine = MachineTree::of("dl980");
    let svg = machine.nicpin(&["draw", "--no-lines"]).stdout;
    assert!(!svg.contains(r#"class="line"#) && svg.contains(">Now ") && svg.contains(">Planned "));
    let svg = machine.nicpin(&["draw", "--planned"]).stdout;
    assert!(!svg.contains(">Now ") && svg.contains(">Planned "));
    let svg = machine.nicpin(&["draw", "--now"]).stdout;
    assert!(svg.contains(">Now ") && !svg.contains(">Planned "));
    assert_eq!(machine.nicpin(&["draw", "--now", "--planned"]).code, 64);
}

#[test]
fn a_picture_says_which_machine_it_is_of() {
    let machine = MachineTree::of("dl980");
    std::fs::create_dir_all(machine.path("/proc/sys/kernel")).unwrap();
    machine.write("/proc/sys/kernel/osrelease", "6.12.9-amd64\n");
    machine.write("/proc/sys/kernel/hostname", "db7.example.org\n");
    machine.write(
        "/sys/devices/system/node/node1/meminfo",
        "Node 1 MemTotal:       65536000 kB\n",
    );
    let svg = machine.nicpin(&["draw"]).stdout;
    assert!(
        svg.contains("Linux 6.12.9-amd64") && svg.contains("62.5 GiB"),
        "{svg}"
    );
    assert!(!svg.contains("db7"), "{svg}");
}

#[test]
fn an_image_is_made_by_another_program() {
    let machine = MachineTree::of("two-node");
    let file = machine.path("/two-node.png");
    let run = machine.nicpin(&["draw", "-o", file.to_str().unwrap()]);
    assert_eq!(run.code, 64);
    assert!(run.stderr.contains(
        "two-node.png: the picture is an SVG; `nicpin draw ... | rsvg-convert -f png -o "
    ));
    assert!(!file.exists());
}

#[test]
fn some_pictures_are_as_expected() {
    for name in ["two-socket-mlx4", "four-node"] {
        expect(&format!("{name}.svg"), draw(&fixture(name)));
    }
}

#[test]
fn a_machine_as_planned_is_drawn_once() {
    let machine = MachineTree::of("two-node");
    machine.write("/sys/devices/system/cpu/isolated", "3\n");
    assert_eq!(machine.nicpin(&["apply"]).code, 0);
    let svg = machine.nicpin(&["draw"]).stdout;
    let document = Document::parse(&svg).unwrap();
    assert_eq!(scenes(&document).len(), 1);
    assert!(
        svg.contains(">Now, and as planned ") && svg.contains("CPU 3, isolated or nohz_full<"),
        "{svg}"
    );
    assert!(!svg.contains("remote\" d="), "{svg}");
}

#[test]
fn one_card_and_other_options() {
    let machine = MachineTree::of("dl980");
    let run = machine.nicpin(&["draw", "--irq-cores", "1", "eth2"]);
    let document = Document::parse(&run.stdout).unwrap();
    let planned = tooltips(scenes(&document)[1]);
    assert_eq!(planned[&16], "CPU 16; eth2 queues 0, 2, 4, 6");
    assert!(!run.stdout.contains("eth0"));
    assert_eq!(machine.nicpin(&["draw", "eth22"]).code, 1);
}

/// Names of interfaces may have nearly every character.
#[test]
fn special_characters_in_names_are_escaped() {
    let machine = MachineTree::of("two-node");
    let (old, odd) = ("/sys/class/net/nic0", "/sys/class/net/<&\"'>");
    std::fs::rename(machine.path(old), machine.path(odd)).unwrap();
    let svg = machine.nicpin(&["draw"]).stdout;
    let document = Document::parse(&svg).unwrap();
    assert!(
        document
            .descendants()
            .any(|node| node.text().is_some_and(|text| text.trim() == "<&\"'>")),
        "{svg}"
    );
}

#[test]
fn an_existing_picture_is_replaced_only_with_force() {
    let machine = MachineTree::of("two-node");
    let file = machine.path("/two-node.svg");
    let file = file.to_str().unwrap();
    let run = machine.nicpin(&["draw", "-o", file]);
    assert_eq!(
        (run.code, run.stdout.as_str(), run.stderr.as_str()),
        (0, "", "")
    );
    let written = machine.read("/two-node.svg");
    assert_eq!(written, machine.nicpin(&["draw"]).stdout);
    let run = machine.nicpin(&["draw", "-o", file, "nic1"]);
    assert_eq!(run.code, 1);
    assert!(
        run.stderr.contains("two-node.svg: file exists"),
        "{}",
        run.stderr
    );
    assert_eq!(machine.read("/two-node.svg"), written);
    assert_eq!(
        machine
            .nicpin(&["draw", "--force", "-o", file, "nic1"])
            .code,
        0
    );
    assert_ne!(machine.read("/two-node.svg"), written);
}

/// Machines of many shapes, in memory: each CPU has a place of its own.
#[test]
fn shapes() {
    for nodes in [1, 2, 3, 8] {
        for (cores, threads, per_l3) in [
            (1, 1, 1),
            (2, 2, 1),
            (7, 1, 7),
            (17, 2, 17),
            (12, 8, 3),
            (33, 4, 11),
            (64, 1, 8),
        ] {
            let mut host = machine(nodes, cores, threads, per_l3);
            for node in 0..nodes {
                add(
                    &mut host,
                    &format!("eth{node}"),
                    Some(nodes - 1 - node),
                    cores.min(40),
                );
            }
            add(&mut host, "away", None, 1);
            if per_l3 == 7 {
                host.topology.l3_domains.clear();
            }
            let selection = Selection::new(&host, &[], false).unwrap();
            let plan = nicpin::plan::plan(&host, &Policy::default(), &selection);
            let svg = Picture::new(&host, &plan).svg();
            let document = Document::parse(&svg).unwrap();
            let shape = format!("{nodes} nodes of {cores} cores of {threads}, {per_l3} a cache");
            for scene in scenes(&document) {
                let cells = scene
                    .descendants()
                    .filter(|node| node.has_tag_name("rect") && is(node, "cpu"));
                let places: BTreeSet<_> = cells
                    .map(|cell| ["x", "y"].map(|side| number(&cell, side)))
                    .collect();
                assert_eq!(places.len(), (nodes * cores * threads) as usize, "{shape}");
                assert_eq!(tooltips(scene).len(), places.len(), "{shape}");
            }
        }
    }
}
