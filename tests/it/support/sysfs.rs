//! Writes a machine as the files that nicpin reads and no others, in the kernel's formats.

use std::path::Path;

use super::machine::{Card, Cpus, Kernel, MachineSpec, Port, list, mask};
use super::tree::{link, make_dir, put};

impl MachineSpec {
    /// Writes the machine below a directory.
    pub fn write(&self, dir: &Path) {
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
                        put(dir, &format!("sys/kernel/irq/{}/{file}", vector.irq), text);
                    }
                }
                let irq = format!("proc/irq/{}", vector.irq);
                put(
                    dir,
                    &format!("{irq}/smp_affinity"),
                    &self.mask(&vector.allowed),
                );
                if let Some(cpu) = vector.serving {
                    put(
                        dir,
                        &format!("{irq}/effective_affinity_list"),
                        &cpu.to_string(),
                    );
                }
            }
        }
        for (name, lowers) in &self.stacked {
            self.write_stacked(dir, name, lowers);
        }
        if let Some(entries) = self.flow_entries {
            put(
                dir,
                "proc/sys/net/core/rps_sock_flow_entries",
                &entries.to_string(),
            );
        }
        make_dir(dir, "proc/irq");
        put(
            dir,
            "proc/interrupts",
            self.interrupts().trim_end_matches('\n'),
        );
    }

    /// nicpin reads only the first CPU of each core and of each L3 domain; only online CPUs have these files.
    fn write_cpus(&self, dir: &Path) {
        const CPU: &str = "sys/devices/system/cpu";
        put(dir, &format!("{CPU}/online"), &list(&self.online));
        put(
            dir,
            &format!("{CPU}/possible"),
            &list(&(0..self.possible).collect::<Cpus>()),
        );
        put(dir, &format!("{CPU}/isolated"), &list(&self.isolated));
        match &self.nohz_full {
            // As wide as a mask would be: `%*pbl` of no mask at all.
            Some(cpus) if cpus.is_empty() => {
                put(
                    dir,
                    &format!("{CPU}/nohz_full"),
                    &format!("{:>1$}", "(null)", self.possible as usize),
                );
            }
            Some(cpus) => put(dir, &format!("{CPU}/nohz_full"), &list(cpus)),
            None => {}
        }
        let groups = |groups: &[Cpus]| {
            groups
                .iter()
                .map(|group| self.running(group))
                .collect::<Vec<_>>()
        };
        for core in groups(&self.cores).iter().filter(|core| !core.is_empty()) {
            put(
                dir,
                &format!("{CPU}/cpu{}/topology/thread_siblings_list", core[0]),
                &list(core),
            );
        }
        for domain in groups(&self.l3).iter().filter(|domain| !domain.is_empty()) {
            let cache = format!("{CPU}/cpu{}/cache/index3", domain[0]);
            put(dir, &format!("{cache}/level"), "3");
            put(dir, &format!("{cache}/shared_cpu_list"), &list(domain));
        }
    }

    fn write_nodes(&self, dir: &Path) {
        const NODE: &str = "sys/devices/system/node";
        if self.nodes.is_empty() {
            return;
        }
        put(
            dir,
            &format!("{NODE}/online"),
            &list(&self.nodes.iter().map(|node| node.id).collect::<Cpus>()),
        );
        for node in &self.nodes {
            let path = format!("{NODE}/node{}", node.id);
            put(
                dir,
                &format!("{path}/cpulist"),
                &list(&self.running(&node.cpus)),
            );
            let distances: Vec<String> = node.distances.iter().map(u32::to_string).collect();
            put(dir, &format!("{path}/distance"), &distances.join(" "));
            if let Some(kib) = node.memory {
                put(
                    dir,
                    &format!("{path}/meminfo"),
                    &format!("Node {} MemTotal:       {kib:8} kB", node.id),
                );
            }
        }
    }

    fn write_device(&self, dir: &Path, card: &Card) {
        let path = card.path();
        let node = self
            .nodes
            .iter()
            .find(|node| i64::from(node.id) == i64::from(card.node));
        // The kernel prints all online CPUs if it does not know the node.
        let local = node.map_or(self.online.clone(), |node| self.running(&node.cpus));
        put(
            dir,
            &format!("{path}/local_cpulist"),
            &list(card.local_cpus.as_ref().unwrap_or(&local)),
        );
        if !self.nodes.is_empty() {
            put(dir, &format!("{path}/numa_node"), &card.node.to_string());
        }
        if let Some(physical) = &card.physical {
            link(dir, &format!("{path}/physfn"), &format!("../{physical}"));
        }
        if let Some((speed, width)) = &card.max_link {
            put(dir, &format!("{path}/max_link_speed"), speed);
            put(dir, &format!("{path}/max_link_width"), &width.to_string());
        }
        for vector in &card.vectors {
            if card.msi {
                put(dir, &format!("{path}/msi_irqs/{}", vector.irq), "msix");
            } else {
                put(dir, &format!("{path}/irq"), &vector.irq.to_string());
            }
        }
        let bus = if card.virtio.is_some() {
            "virtio"
        } else {
            "pci"
        };
        let device = card.device_path();
        let bus = format!("{}bus/{bus}", up(device.matches('/').count()));
        link(
            dir,
            &format!("{device}/driver"),
            &format!("{bus}/drivers/{}", card.driver),
        );
        link(dir, &format!("{device}/subsystem"), &bus);
    }

    fn write_interface(&self, dir: &Path, card: &Card, number: u32, port: &Port) {
        let device = card.device_path();
        let path = format!("{device}/net/{}", port.name);
        let class = format!("sys/class/net/{}", port.name);
        link(
            dir,
            &class,
            &format!("../../{}", path.trim_start_matches("sys/")),
        );
        link(
            dir,
            &format!("{path}/device"),
            &format!("../../../{}", device.rsplit('/').next().unwrap()),
        );
        put(dir, &format!("{path}/operstate"), &port.state);
        put(
            dir,
            &format!("{path}/flags"),
            if port.state == "down" {
                "0x1002"
            } else {
                "0x1003"
            },
        );
        if self.kernel >= Kernel::V4_2 {
            put(dir, &format!("{path}/dev_port"), &number.to_string());
        }
        if let Some(speed) = port.speed {
            put(dir, &format!("{path}/speed"), &speed.to_string());
        }
        for (index, rps) in port.rx.iter().enumerate() {
            let queue = format!("{path}/queues/rx-{index}");
            make_dir(dir, &queue);
            if port.steering {
                put(dir, &format!("{queue}/rps_cpus"), &self.mask(rps));
                put(dir, &format!("{queue}/rps_flow_cnt"), "0");
            }
        }
        for (index, xps) in port.tx.iter().enumerate() {
            let queue = format!("{path}/queues/tx-{index}");
            if port.steering && port.tx.len() > 1 {
                put(dir, &format!("{queue}/xps_cpus"), &self.mask(xps));
                // Since 4.18.
                if self.kernel >= Kernel::V6_2 {
                    put(
                        dir,
                        &format!("{queue}/xps_rxqs"),
                        &mask(&[], u32::try_from(port.rx.len()).unwrap()),
                    );
                }
            } else {
                // The kernel refuses to read xps_cpus of a single queue. nicpin does not read this file: it is
                // here because git does not store empty directories.
                put(dir, &format!("{queue}/tx_timeout"), "0");
            }
        }
        if !port.netlink.is_empty() {
            put(dir, &format!("nicpin/netlink/{}", port.name), &port.netlink);
        }
        if let Some(speed) = port.speed.filter(|&speed| speed > 0) {
            let path = format!("nicpin/ethtool/{}/link-modes", port.name);
            let mode = format!("{speed}baseCR/Full");
            put(
                dir,
                &path,
                &serde_json::json!({ "supported": [mode] }).to_string(),
            );
        }
        if let Some(channels) = port.channels {
            let path = format!("nicpin/ethtool/{}/channels", port.name);
            put(dir, &path, &channels.to_text());
        }
    }

    fn write_stacked(&self, dir: &Path, name: &str, lowers: &[String]) {
        let path = format!("sys/devices/virtual/net/{name}");
        link(
            dir,
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
            link(
                dir,
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
            .filter(|cpu| self.online.contains(cpu))
            .collect()
    }
}

impl Card {
    /// The PCI function's directory.
    fn path(&self) -> String {
        format!("sys/devices/{}/{}", self.parent, self.address)
    }

    /// The target of the interface's `device`: the function, or the virtio device below it.
    fn device_path(&self) -> String {
        self.virtio
            .map_or_else(|| self.path(), |n| format!("{}/virtio{n}", self.path()))
    }
}

/// As many steps up.
fn up(steps: usize) -> String {
    "../".repeat(steps)
}
