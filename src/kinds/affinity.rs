//! The affinity of IRQs: `smp_affinity` (`write_irq_affinity` in `kernel/irq/proc.c`).

use nix::errno::Errno::{EACCES, EINVAL, EIO, ENOSYS, EPERM};

use super::kind::Meaning::{Refused, Unmovable};
use super::kind::{Access, Kind, Names, Removed};
use super::value::ValueForm;
use crate::cpuset::CpuSet;
use crate::machine::files::affinity_file;
use crate::machine::wording::count;
use crate::machine::{Interface, Vector};

pub(super) const AFFINITY: Kind = Kind {
    names: Names::Each {
        recorded: "vector",
        key,
        path: affinity_file,
    },
    hashed: "vector",
    form: ValueForm::Cpus,
    of: |interface| {
        let vectors = interface.vectors.iter();
        vectors
            .map(|vector| (vector.irq, (&vector.affinity).into()))
            .collect()
    },
    counted: |many| count(many, "IRQ"),
    access: Access::AffinityFile,
    is_of_flows: false,
    meaning: |answer| {
        // EPERM since 6.12, where the file has no write bits; EIO before, and for an IRQ that was freed while the file
        // was open.
        // Some interrupt controllers take no affinity at all: EINVAL of DesignWare's and Broadcom's PCIe MSI and of TI's
        // INTA, ENOSYS of Apple's.
        let is_online = || {
            let cpus = CpuSet::parse_kernel_mask(answer.text).unwrap_or_default();
            (answer.online)().is_some_and(|online| online.intersects(&cpus))
        };
        let is_unmovable = match answer.errno {
            EPERM => (answer.exists)() && !(answer.has_write_bits)(),
            EIO => (answer.exists)(),
            EINVAL | ENOSYS => is_online() && (answer.refuses_same)(),
            _ => false,
        };
        match answer.errno {
            _ if is_unmovable => Some(Unmovable(": the IRQ cannot be moved")),
            EACCES | EPERM => Some(Refused("; fix: run as root, outside any container")),
            // Others take only some CPUs: those of a node (Loongson, ThunderX).
            EINVAL if is_online() => Some(Refused(
                ": the interrupt controller does not accept this affinity",
            )),
            EINVAL => Some(Refused(": none of the CPUs is online now; fix: run again")),
            _ => None,
        }
    },
    removed: Removed::Never,
};

/// Role and queue. A vector without a queue, or with that of another (netlink and its name disagree), has its
/// position in the device's list of IRQs, since action names may contain the interface's and numbers change at each
/// boot; without a list, its action and a position among equal ones.
fn key(interface: &Interface, irq: u32) -> String {
    let Some(vector) = interface.vector(irq) else {
        return irq.to_string();
    };
    let shown = vector.role.with_queue(vector.queue);
    let is_same = |other: &&Vector| (other.role, other.queue) == (vector.role, vector.queue);
    let position = interface.device.irqs.iter().position(|&other| other == irq);
    match position {
        _ if vector.queue.is_some() && interface.vectors.iter().filter(is_same).count() == 1 => {
            shown
        }
        Some(position) => format!("{shown} #{position}"),
        None => {
            let is_before = |other: &&Vector| other.action == vector.action && other.irq < irq;
            match interface.vectors.iter().filter(is_before).count() {
                0 => vector.action.to_string(),
                before => format!("{} #{before}", vector.action),
            }
        }
    }
}
