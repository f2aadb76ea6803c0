//! A small machine as a directory tree: two nodes of four CPUs, with the network devices and other devices that a test
//! adds.

use std::path::Path;

use super::machine::{Card, MachineSpec, Port, cpus};
use super::run::{Run, nicpin};
use super::tree::{link, make_dir, put};
use crate::support::temporary;
use nicpin::machine::{Interface, Machine, Role, Selection};
use nicpin::plan::Plan;
use nicpin::policy::Policy;
use nicpin::root::Root;

/// A machine's tree, to which a test can add files that the builder does not write.
pub struct Tree(tempfile::TempDir);

impl Tree {
    pub fn of(machine: &MachineSpec) -> Self {
        let dir = temporary();
        machine.write(dir.path());
        Self(dir)
    }

    pub fn dir(&self) -> &Path {
        self.0.path()
    }

    pub fn host(&self) -> Machine {
        nicpin::read::machine(
            &Root::open(self.dir()).unwrap(),
            nicpin::read::ReadOptions::default(),
        )
        .unwrap()
    }

    pub fn plan(&self, selectors: &[&str]) -> Plan {
        let host = self.host();
        let selectors: Vec<String> = selectors.iter().map(|&s| s.to_owned()).collect();
        let selection = Selection::new(&host, &selectors, false).unwrap();
        nicpin::plan::plan(&host, &Policy::default(), &selection)
    }

    /// Adds an interface on a device of another bus than PCI, which has no list of IRQs.
    pub fn add(&self, device: &str, bus: &str, driver: &str, interface: &str, queues: u32) {
        let up = "../".repeat(device.matches('/').count());
        link(
            self.dir(),
            &format!("{device}/subsystem"),
            &format!("{up}bus/{bus}"),
        );
        link(
            self.dir(),
            &format!("{device}/driver"),
            &format!("{up}bus/{bus}/drivers/{driver}"),
        );
        let path = format!("{device}/net/{interface}");
        let target = format!("../../{}", path.trim_start_matches("sys/"));
        link(self.dir(), &format!("sys/class/net/{interface}"), &target);
        link(
            self.dir(),
            &format!("{path}/device"),
            &format!("../../../{}", device.rsplit('/').next().unwrap()),
        );
        put(self.dir(), &format!("{path}/operstate"), "up");
        for queue in 0..queues {
            make_dir(self.dir(), &format!("{path}/queues/rx-{queue}"));
            make_dir(self.dir(), &format!("{path}/queues/tx-{queue}"));
        }
    }

    /// Adds rows to `/proc/interrupts` of handlers with these names, and their files.
    pub fn interrupts(&self, first: u32, chip: &str, actions: &[&str]) {
        let mut text = super::tree::read(self.dir(), "proc/interrupts");
        for (irq, action) in (first..).zip(actions) {
            let counts = "          0 ".repeat(8);
            text.push_str(&format!("\n{irq:>3}: {counts} {chip}  {action}"));
            put(self.dir(), &format!("proc/irq/{irq}/smp_affinity"), "ff");
        }
        put(self.dir(), "proc/interrupts", &text);
    }

    /// Adds an interface without a device.
    pub fn add_virtual(&self, name: &str, files: &[(&str, &str)]) {
        let path = format!("sys/devices/virtual/net/{name}");
        link(
            self.dir(),
            &format!("sys/class/net/{name}"),
            &format!("../../devices/virtual/net/{name}"),
        );
        for (file, text) in [("type", "1"), ("ifindex", "9"), ("iflink", "9")]
            .iter()
            .chain(files)
        {
            put(self.dir(), &format!("{path}/{file}"), text);
        }
    }

    /// The error line of the program if it cannot plan a selector.
    pub fn refuses(&self, selector: &str) -> String {
        let run = self.run(&["plan", selector]);
        assert_eq!(
            (run.code, run.stdout.as_str()),
            (1, ""),
            "{selector}: {}",
            run.stderr
        );
        assert_eq!(run.stderr.lines().count(), 1, "{}", run.stderr);
        // With --if-present the same is a note.
        let run_if = self.run(&["plan", "--if-present", selector]);
        assert_eq!(run_if.code, 0, "{}", run_if.stderr);
        assert!(
            run_if.stdout.contains(&format!("`{selector}`")),
            "{}",
            run_if.stdout
        );
        run.stderr
    }

    pub fn run(&self, args: &[&str]) -> Run {
        nicpin(&[args, &["--root", self.dir().to_str().unwrap()]].concat())
    }
}

/// A card on node 0 with as many queues each way, its vectors from an IRQ on.
pub fn card(driver: &str, port: Port, first: u32, actions: &[&str]) -> Card {
    Card::new(
        driver,
        "pci0000:00/0000:00:02.0",
        "0000:82:00.0",
        0,
        "8.0 GT/s PCIe",
        8,
    )
    .port(port)
    .vectors(first, actions.iter().copied(), &cpus("0-3"), &[0])
}

pub fn two_nodes(cards: impl IntoIterator<Item = Card>) -> MachineSpec {
    let mut machine = MachineSpec::new(&["0-3", "4-7"]);
    machine.cards.extend(cards);
    machine
}

/// `irq=role queue source` of each vector, in the plan's order.
pub fn vectors(interface: &Interface) -> Vec<String> {
    let text = |v: &nicpin::machine::Vector| match v.queue {
        Some(queue) => format!("{}={:?} {queue} {:?}", v.irq, v.role, v.source).to_lowercase(),
        None if v.role == Role::Data => format!("{}=data", v.irq),
        None => format!("{}=control", v.irq),
    };
    interface.vectors.iter().map(text).collect()
}
