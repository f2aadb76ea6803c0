//! What is on a machine beside interfaces with a device: what else a selector can name (virtual interfaces, RDMA devices,
//! and network cards without an interface), which nicpin does not plan and messages explain; devices whose traffic shares
//! a node's memory and its links; other tools that set the affinity of interrupts; programs that a policy names, sockets,
//! and where their programs run.

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
    /// RDMA devices.
    pub rdma: Vec<Rdma>,
    /// PCI functions of the network class without an interface here and without IRQs.
    pub cards: Vec<UnusedFunction>,
    /// The CPUs on which IRQs of those that programs and guests drive interrupt.
    pub card_cpus: CpuSet,
}

/// A virtual interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Virtual {
    pub name: String,
    /// What it is, to follow "it is": `a bridge without ports`.
    pub kind: String,
    /// The kernel's word for it (`DEVTYPE` in `uevent`): `vxlan`, `veth`; absent for some.
    pub devtype: Option<String>,
}

/// An RDMA device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rdma {
    /// `mlx5_0`.
    pub name: String,
    /// The bus device it belongs to; `None` for a software device.
    pub device: Option<String>,
}

/// A network card without an interface.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnusedFunction {
    /// The PCI address.
    pub address: String,
    /// The bound driver.
    pub driver: Option<String>,
}

impl UnusedFunction {
    /// Whether a driver of the kernel's network stack is bound to it, so that it has an interface in another network
    /// namespace, unless that failed. Programs and guests have drivers of their own.
    pub(crate) fn may_be_elsewhere(&self) -> bool {
        const FOREIGN: [&str; 4] = ["vfio", "uio", "pci-stub", "pciback"];
        let mut driver = self.driver.iter();
        driver.any(|driver| !FOREIGN.iter().any(|foreign| driver.contains(foreign)))
    }
}

impl Others {
    /// The virtual interface of this name.
    pub(crate) fn named(&self, name: &str) -> Option<&Virtual> {
        self.virtuals.iter().find(|known| known.name == name)
    }

    /// What has this name, and why there is nothing to plan for it; `None` for an unknown name.
    #[doc(hidden)]
    pub fn explain(&self, name: &str) -> Option<String> {
        let what = match self.named(name) {
            Some(Virtual { kind, .. }) => format!("{kind}: it has no device and no vectors"),
            None => match &self.rdma.iter().find(|rdma| rdma.name == name)?.device {
                Some(device) => {
                    format!("an RDMA device on {device}, which has no network interface")
                }
                None => "a software RDMA device: it has no vectors".to_owned(),
            },
        };
        Some(format!("is {what}, so there is nothing to plan"))
    }

    /// As [`Others::explain`], for a PCI address.
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
    /// The bound driver.
    pub driver: Option<String>,
    /// Its node (`numa_node`); `None` for -1.
    pub node: Option<u32>,
}

/// The kinds of neighbours, in the order in which they are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum NeighbourKind {
    /// PCI class 03, without the displays of management controllers.
    Gpu,
    /// PCI classes 12 (processing accelerators) and 0b40 (co-processors).
    Accelerator,
    /// PCI class 0108.
    Nvme,
    /// `/sys/class/infiniband`.
    Rdma,
}

impl NeighbourKind {
    /// The kind of a PCI function by its `class` (`0x030200`) and `vendor` (`0x10de`), as sysfs has them.
    pub fn of(class: &str, vendor: &str) -> Option<Self> {
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

    /// In the singular.
    pub fn noun(self) -> &'static str {
        match self {
            Self::Gpu => "GPU",
            Self::Accelerator => "accelerator",
            Self::Nvme => "NVMe disk",
            Self::Rdma => "RDMA device",
        }
    }
}

/// The tools found on this machine.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OtherTools {
    /// irqbalance, while it runs.
    pub irqbalance: Option<Irqbalance>,
    /// What this user may not read, so that it could not be determined whether irqbalance runs: `/proc/812`.
    pub irqbalance_hidden: Option<String>,
    /// Tools that write now or at a later event.
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
}

/// A running irqbalance.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Irqbalance {
    /// The process id.
    pub pid: i32,
    /// The file with its service's arguments; `None` if none of the known files exists.
    pub arguments: Option<Arguments>,
    /// Whether its policy script, or one in its directory of policy scripts, asks nicpin.
    pub uses_policy_script: bool,
    /// The policy script or directory in its arguments.
    pub policy_script: Option<String>,
}

/// The place of irqbalance's arguments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Arguments {
    pub file: String,
    pub variable: String,
}

/// Where packages install the policy script with which irqbalance asks nicpin.
pub const SCRIPT_PATH: &str = "/usr/lib/nicpin/nicpin-irqbalance-policy";

/// A program that interrupts are to be near.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Program {
    /// The process with this number.
    Pid(u32),
    /// All processes of a systemd unit, with the end of its name: `nginx.service`.
    Unit(String),
}

impl Program {
    /// The name of the unit, if it is one.
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

    /// Reads `pid:N` or `unit:NAME`; as with systemctl, a name without an end is that of a service.
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

/// Where a program may run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramCpus {
    /// The CPUs to plan by: those that its threads may use, or those that they might use at an earlier apply.
    pub cpus: CpuSet,
    /// Those that its threads may use; `None` where it does not run.
    pub now: Option<CpuSet>,
}

/// A TCP connection, or a UDP socket that is connected, as the kernel lists them (`sock_diag`,
/// `include/uapi/linux/inet_diag.h`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectedSocket {
    /// Of UDP, otherwise of TCP.
    pub udp: bool,
    /// IPv4 in IPv6 is IPv4.
    pub local: SocketAddr,
    pub peer: SocketAddr,
    /// The interface to which it is bound, else that which has the local address.
    pub interface: Option<String>,
    /// The node of the processes that have it open: of the CPUs that they may use, else of the CPU where their first
    /// thread last ran. `None` if they are on several, or hidden from this user.
    pub node: Option<u32>,
}
