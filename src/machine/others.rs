//! All else that matters to a machine's interfaces: devices, tools, programs, sockets.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::cpuset::CpuSet;

/// All that a selector can name beside interfaces with a device.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Others {
    /// Interfaces without a device that stand on no other.
    pub virtuals: Vec<Virtual>,
    pub rdma: Vec<Rdma>,
    /// PCI functions of the network class without an interface here and without IRQs.
    pub cards: Vec<UnusedFunction>,
    /// The interface whose queues have the IRQs of a PCI function without an interface, by the function's address.
    pub seconds: BTreeMap<String, String>,
    /// CPUs of IRQs of network cards that programs and guests drive, and of sub-functions in containers.
    pub card_cpus: CpuSet,
}

/// An interface without a device, or on a bus without IP packets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Virtual {
    pub name: String,
    /// Follows "it is": `a bridge without ports`.
    pub kind: String,
    /// `DEVTYPE`; absent for some kinds.
    pub devtype: Option<String>,
    /// A bus that carries no IP packets, such as CAN.
    pub is_other_bus: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rdma {
    pub name: String,
    /// The bus device; `None` for a software device.
    pub device: Option<String>,
}

/// A network card without an interface.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnusedFunction {
    pub address: String,
    pub driver: Option<String>,
}

impl UnusedFunction {
    /// A network driver of the kernel is bound, so that the interface is in another network namespace, unless that
    /// failed. Programs and guests have drivers of their own.
    pub(crate) fn may_be_elsewhere(&self) -> bool {
        const FOREIGN: [&str; 4] = ["vfio", "uio", "pci-stub", "pciback"];
        let mut driver = self.driver.iter();
        driver.any(|driver| !FOREIGN.iter().any(|foreign| driver.contains(foreign)))
    }
}

impl Others {
    pub(crate) fn virtual_interface(&self, name: &str) -> Option<&Virtual> {
        self.virtuals.iter().find(|known| known.name == name)
    }

    /// Why there is nothing to plan for this name; `None` for an unknown name.
    #[doc(hidden)]
    pub fn explain(&self, name: &str) -> Option<String> {
        let what = match self.virtual_interface(name) {
            Some(Virtual {
                kind,
                is_other_bus: true,
                ..
            }) => format!("{kind}: it carries no IP packets"),
            Some(Virtual { kind, .. }) => format!("{kind}: it has no device and no IRQs"),
            None => match &self.rdma.iter().find(|rdma| rdma.name == name)?.device {
                Some(device) => {
                    format!("an RDMA device on {device}, which has no network interface")
                }
                None => "a software RDMA device: it has no IRQs".to_owned(),
            },
        };
        Some(format!("is {what}, so there is nothing to plan"))
    }

    /// [`Others::explain`] for a PCI address.
    #[doc(hidden)]
    pub fn explain_pci(&self, address: &str) -> Option<String> {
        let card = self
            .cards
            .iter()
            .find(|card| card.address.eq_ignore_ascii_case(address))?;
        Some(match card.driver.as_deref() {
            // https://docs.kernel.org/driver-api/vfio.html
            Some(driver) if driver.contains("vfio") => format!(
                "is a network card bound to {driver}: it has no interface, and a guest or a user program controls \
                 its vectors"
            ),
            Some(driver) => format!(
                "is a network card without an interface here: {driver} is bound to it, but has no interface or has \
                 it in another network namespace"
            ),
            None => "is a network card without an interface: no driver is bound to it".to_owned(),
        })
    }
}

/// A device beside the interfaces.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Neighbour {
    pub kind: NeighbourKind,
    /// The PCI address; the name of an RDMA device.
    pub name: String,
    pub driver: Option<String>,
    pub node: Option<u32>,
}

/// Kinds of neighbours, in the order of lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum NeighbourKind {
    Gpu,
    Accelerator,
    Nvme,
    /// `/sys/class/infiniband`.
    Rdma,
}

impl NeighbourKind {
    /// By a PCI function's `class` (`0x030200`) and `vendor` (`0x10de`) in sysfs.
    pub fn from_class(class: &str, vendor: &str) -> Option<Self> {
        // ASPEED and Matrox make the displays of management controllers.
        const CONTROLLERS: [&str; 2] = ["0x1a03", "0x102b"];
        let class = class.trim().strip_prefix("0x")?;
        let kinds = [
            ("03", Self::Gpu),
            ("12", Self::Accelerator),
            ("0b40", Self::Accelerator),
            ("0108", Self::Nvme),
        ];
        let (_, kind) = kinds
            .into_iter()
            .filter(|_| class.len() == 6)
            .find(|(prefix, _)| class.starts_with(prefix))?;
        (kind != Self::Gpu || !CONTROLLERS.contains(&vendor.trim())).then_some(kind)
    }

    pub fn noun(self) -> &'static str {
        match self {
            Self::Gpu => "GPU",
            Self::Accelerator => "accelerator",
            Self::Nvme => "NVMe disk",
            Self::Rdma => "RDMA device",
        }
    }
}

/// Tools that set affinity.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OtherTools {
    pub irqbalance: Option<Irqbalance>,
    /// The file that hides whether irqbalance runs: `/proc/812`.
    pub irqbalance_hidden: Option<String>,
    pub others: Vec<OtherTool>,
}

/// A tool that sets affinity at certain moments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum OtherTool {
    /// A cloud provider's script that runs at boot: its path and what it writes.
    CloudScript { path: String, writes: String },
    /// A running tuned with the profiles `active`; `setting` of `profile` moves interrupts.
    Tuned {
        active: String,
        profile: String,
        setting: String,
    },
    /// A `.link` file of systemd-udevd with `IRQAffinityPolicy=`.
    LinkFile { path: String, policy: String },
    /// A `.link` file with `ReceivePacketSteeringCPUMask=` (systemd 256 and newer).
    LinkRps { path: String, mask: String },
}

/// A running irqbalance.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Irqbalance {
    pub pid: i32,
    /// `None` if none of the service's known files exists.
    pub arguments: Option<Arguments>,
    /// The policy script, or one in its directory of them, asks nicpin.
    pub uses_policy_script: bool,
    /// Script or directory in the arguments.
    pub policy_script: Option<String>,
}

/// The place of irqbalance's arguments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Arguments {
    pub file: String,
    pub variable: String,
}

/// Where packages install irqbalance's policy script.
pub const SCRIPT_PATH: &str = "/usr/lib/nicpin/nicpin-irqbalance-policy";

/// A program that interrupts are to be near.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Program {
    Pid(u32),
    /// All processes of a systemd unit, by its full name: `nginx.service`.
    Unit(String),
}

impl Program {
    pub fn unit(&self) -> Option<&str> {
        match self {
            Self::Pid(_) => None,
            Self::Unit(name) => Some(name),
        }
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pid(pid) => write!(f, "pid:{pid}"),
            Self::Unit(name) => write!(f, "unit:{name}"),
        }
    }
}

impl FromStr for Program {
    type Err = ();

    /// Parses `pid:N` or `unit:NAME`; without a suffix, NAME is a service, as with systemctl.
    fn from_str(text: &str) -> Result<Self, ()> {
        if let Some(pid) = text.strip_prefix("pid:") {
            return pid
                .parse()
                .ok()
                .filter(|&pid| pid > 0)
                .map(Self::Pid)
                .ok_or(());
        }
        // The characters of unit names (systemd.unit(5)).
        let is_part = |c: char| c.is_ascii_alphanumeric() || ":-_.\\@".contains(c);
        let name = text.strip_prefix("unit:").ok_or(())?;
        if !(1..=255).contains(&name.len()) || !name.chars().all(is_part) {
            return Err(());
        }
        let mut ends = [".service", ".scope", ".slice"].into_iter();
        let has_end = ends.any(|end| name.ends_with(end));
        let end = if has_end { "" } else { ".service" };
        Ok(Self::Unit(format!("{name}{end}")))
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramCpus {
    /// CPUs to plan by: `now`, else those at an earlier apply.
    pub cpus: CpuSet,
    /// CPUs of its threads; `None` if it does not run.
    pub now: Option<CpuSet>,
}

/// A TCP connection or a connected UDP socket (`sock_diag`, `include/uapi/linux/inet_diag.h`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectedSocket {
    pub udp: bool,
    /// IPv4 in IPv6 is IPv4.
    pub local: SocketAddr,
    pub peer: SocketAddr,
    /// The interface to which it is bound, else the one with the local address.
    pub interface: Option<String>,
    /// Node of the processes that have it open; `None` if they are on several nodes, or hidden from this user.
    pub node: Option<u32>,
}
