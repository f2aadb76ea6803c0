//! A machine as the files that nicpin reads and no others, in the kernel's formats: a tree on disk for the program, or
//! in memory for the planner.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::machine::{Card, Cpus, Kernel, MachineSpec, Port, list, mask};
use super::tree;
use nicpin::machine::Machine;
use nicpin::read::ReadOptions;
use nicpin::root::Root;
use nicpin::root::tree::{Entry, Tree, TreeFile};

/// Files by path, without a `/` before it.
#[derive(Default)]
struct Files(BTreeMap<String, Entry>);

impl Files {
    /// Adds one or more lines, the last of which is ended here.
    fn put(&mut self, path: &str, text: &str) {
        let text = format!("{text}\n").into();
        let file = TreeFile { mode: 0o644, text };
        self.0.insert(path.to_owned(), Entry::File(file));
    }

    fn link(&mut self, path: &str, target: &str) {
        let link = Entry::Link(target.to_owned());
        self.0.insert(path.to_owned(), link);
    }

    fn make_dir(&mut self, path: &str) {
        let directory = Entry::Directory(BTreeSet::new());
        self.0.insert(path.to_owned(), directory);
    }
}

impl MachineSpec {
    pub fn write(&self, dir: &Path) {
        for (path, entry) in self.files().0 {
            match entry {
                Entry::File(file) => tree::put(dir, &path, file.text.trim_end_matches('\n')),
                Entry::Link(target) => tree::link(dir, &path, &target),
                Entry::Directory(_) => tree::make_dir(dir, &path),
            }
        }
    }

    pub fn read(&self) -> Machine {
        let mut tree = Tree::default();
        for (path, entry) in self.files().0 {
            let path = format!("/{path}");
            let added = match entry {
                Entry::Directory(_) => tree.add_directory(&path),
                entry => tree.add(&path, entry),
            };
            added.unwrap_or_else(|error| panic!("{path} {error}"));
        }
        let root = Root::of_tree(Path::new("/"), tree);
        nicpin::read::machine(&root, ReadOptions::default()).unwrap()
    }

    fn files(&self) -> Files {
        let mut files = Files::default();
        let dir = &mut files;
        self.write_cpus(dir);
        self.write_nodes(dir);
        for card in &self.cards {
            self.write_device(dir, card);
            for (number, port) in (0..).zip(&card.ports) {
                self.write_interface(dir, card, number, port);
            }
            for vector in card
                .vectors
                .iter()
                .filter(|vector| !vector.action.is_empty())
            {
                if self.irq_files {
                    for (file, text) in [("actions", &*vector.action), ("chip_name", "PCI-MSI")] {
                        dir.put(&format!("sys/kernel/irq/{}/{file}", vector.irq), text);
                    }
                }
                let irq = format!("proc/irq/{}", vector.irq);
                dir.put(&format!("{irq}/smp_affinity"), &self.mask(&vector.allowed));
                if let Some(cpu) = vector.serving {
                    dir.put(&format!("{irq}/effective_affinity_list"), &cpu.to_string());
                }
            }
        }
        for (name, lowers) in &self.stacked {
            self.write_stacked(dir, name, lowers);
        }
        if let Some(entries) = self.flow_entries {
            dir.put(
                "proc/sys/net/core/rps_sock_flow_entries",
                &entries.to_string(),
            );
        }
        dir.make_dir("proc/irq");
        dir.put("proc/interrupts", self.interrupts().trim_end_matches('\n'));
        files
    }

    /// nicpin reads only the first CPU of each core and of each L3 domain; only online CPUs have these files.
    fn write_cpus(&self, dir: &mut Files) {
        const CPU: &str = "sys/devices/system/cpu";
        dir.put(&format!("{CPU}/online"), &list(&self.online));
        dir.put(
            &format!("{CPU}/possible"),
            &list(&(0..self.possible).collect::<Cpus>()),
        );
        dir.put(&format!("{CPU}/isolated"), &list(&self.isolated));
        match &self.nohz_full {
            // As wide as a mask would be: `%*pbl` of no mask at all.
            Some(cpus) if cpus.is_empty() => {
                dir.put(
                    &format!("{CPU}/nohz_full"),
                    &format!("{:>1$}", "(null)", self.possible as usize),
                );
            }
            Some(cpus) => dir.put(&format!("{CPU}/nohz_full"), &list(cpus)),
            None => {}
        }
        let groups = |groups: &[Cpus]| {
            groups
                .iter()
                .map(|group| self.running(group))
                .collect::<Vec<_>>()
        };
        for core in groups(&self.cores).iter().filter(|core| !core.is_empty()) {
            dir.put(
                &format!("{CPU}/cpu{}/topology/thread_siblings_list", core[0]),
                &list(core),
            );
        }
        for domain in groups(&self.l3).iter().filter(|domain| !domain.is_empty()) {
            let cache = format!("{CPU}/cpu{}/cache/index3", domain[0]);
            dir.put(&format!("{cache}/level"), "3");
            dir.put(&format!("{cache}/shared_cpu_list"), &list(domain));
        }
    }

    fn write_nodes(&self, dir: &mut Files) {
        const NODE: &str = "sys/devices/system/node";
        if self.nodes.is_empty() {
            return;
        }
        dir.put(
            &format!("{NODE}/online"),
            &list(&self.nodes.iter().map(|node| node.id).collect::<Cpus>()),
        );
        for node in &self.nodes {
            let path = format!("{NODE}/node{}", node.id);
            dir.put(&format!("{path}/cpulist"), &list(&self.running(&node.cpus)));
            let distances: Vec<String> = node.distances.iter().map(u32::to_string).collect();
            dir.put(&format!("{path}/distance"), &distances.join(" "));
            if let Some(kib) = node.memory {
                dir.put(
                    &format!("{path}/meminfo"),
                    &format!("Node {} MemTotal:       {kib:8} kB", node.id),
                );
            }
        }
    }

    fn write_device(&self, dir: &mut Files, card: &Card) {
        let path = card.path();
        let node = self
            .nodes
            .iter()
            .find(|node| i64::from(node.id) == i64::from(card.node));
        // The kernel prints all online CPUs if it does not know the node.
        let local = node.map_or(self.online.clone(), |node| self.running(&node.cpus));
        dir.put(
            &format!("{path}/local_cpulist"),
            &list(card.local_cpus.as_ref().unwrap_or(&local)),
        );
        if !self.nodes.is_empty() {
            dir.put(&format!("{path}/numa_node"), &card.node.to_string());
        }
        if let Some(physical) = &card.physical {
            dir.link(&format!("{path}/physfn"), &format!("../{physical}"));
        }
        if let Some((speed, width)) = &card.max_link {
            dir.put(&format!("{path}/max_link_speed"), speed);
            dir.put(&format!("{path}/max_link_width"), &width.to_string());
        }
        for vector in &card.vectors {
            if card.msi {
                dir.put(&format!("{path}/msi_irqs/{}", vector.irq), "msix");
            } else {
                dir.put(&format!("{path}/irq"), &vector.irq.to_string());
            }
        }
        let bus = if card.virtio.is_some() {
            "virtio"
        } else {
            "pci"
        };
        let device = card.device_path();
        let bus = format!("{}bus/{bus}", up(device.matches('/').count()));
        dir.link(
            &format!("{device}/driver"),
            &format!("{bus}/drivers/{}", card.driver),
        );
        dir.link(&format!("{device}/subsystem"), &bus);
    }

    fn write_interface(&self, dir: &mut Files, card: &Card, number: u32, port: &Port) {
        let device = card.device_path();
        let path = format!("{device}/net/{}", port.name);
        let class = format!("sys/class/net/{}", port.name);
        dir.link(
            &class,
            &format!("../../{}", path.trim_start_matches("sys/")),
        );
        dir.link(
            &format!("{path}/device"),
            &format!("../../../{}", device.rsplit('/').next().unwrap()),
        );
        dir.put(&format!("{path}/operstate"), &port.state);
        dir.put(
            &format!("{path}/flags"),
            if port.state == "down" {
                "0x1002"
            } else {
                "0x1003"
            },
        );
        if self.kernel >= Kernel::V4_2 {
            dir.put(&format!("{path}/dev_port"), &number.to_string());
        }
        if let Some(speed) = port.speed {
            dir.put(&format!("{path}/speed"), &speed.to_string());
        }
        for (index, rps) in port.rx.iter().enumerate() {
            let queue = format!("{path}/queues/rx-{index}");
            dir.make_dir(&queue);
            if port.steering {
                dir.put(&format!("{queue}/rps_cpus"), &self.mask(rps));
                dir.put(&format!("{queue}/rps_flow_cnt"), "0");
            }
        }
        for (index, xps) in port.tx.iter().enumerate() {
            let queue = format!("{path}/queues/tx-{index}");
            if port.steering && port.tx.len() > 1 {
                dir.put(&format!("{queue}/xps_cpus"), &self.mask(xps));
                // Since 4.18.
                if self.kernel >= Kernel::V6_2 {
                    dir.put(
                        &format!("{queue}/xps_rxqs"),
                        &mask(&[], u32::try_from(port.rx.len()).unwrap()),
                    );
                }
            } else {
                // The kernel refuses to read xps_cpus of a single queue. nicpin does not read this file: it is
                // here because git does not store empty directories.
                dir.put(&format!("{queue}/tx_timeout"), "0");
            }
        }
        if !port.netlink.is_empty() {
            dir.put(&format!("nicpin/netlink/{}", port.name), &port.netlink);
        }
        if let Some(speed) = port.speed.filter(|&speed| speed > 0) {
            let path = format!("nicpin/ethtool/{}/link-modes", port.name);
            let mode = format!("{speed}baseCR/Full");
            dir.put(
                &path,
                &serde_json::json!({ "supported": [mode] }).to_string(),
            );
        }
        if let Some(channels) = port.channels {
            let path = format!("nicpin/ethtool/{}/channels", port.name);
            dir.put(&path, &channels.to_text());
        }
    }

    fn write_stacked(&self, dir: &mut Files, name: &str, lowers: &[String]) {
        let path = format!("sys/devices/virtual/net/{name}");
        dir.link(
            &format!("sys/class/net/{name}"),
            &format!("../../devices/virtual/net/{name}"),
        );
        for lower in lowers {
            let card = self
                .cards
                .iter()
                .find(|card| card.ports.iter().any(|port| port.name == *lower));
            let below = card.map_or("virtual".to_owned(), |card| {
                card.device_path()["sys/devices/".len()..].to_owned()
            });
            dir.link(
                &format!("{path}/lower_{lower}"),
                &format!("../../../{below}/net/{lower}"),
            );
        }
    }

    fn mask(&self, cpus: &[u32]) -> String {
        mask(cpus, self.mask_bits)
    }

    fn running(&self, cpus: &[u32]) -> Cpus {
        cpus.iter()
            .copied()
            .filter(|cpu| self.online.binary_search(cpu).is_ok())
            .collect()
    }
}

impl Card {
    fn path(&self) -> String {
        format!("sys/devices/{}/{}", self.parent, self.address)
    }

    /// The target of `device`: the function, or the virtio device below it.
    fn device_path(&self) -> String {
        self.virtio
            .map_or_else(|| self.path(), |n| format!("{}/virtio{n}", self.path()))
    }
}

fn up(steps: usize) -> String {
    "../".repeat(steps)
}
