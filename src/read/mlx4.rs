//! Which completion event queues of an mlx4 function belong to which port. A function has one pool of them for all of
//! its ports; `mlx4_enable_msi_x` in `drivers/net/ethernet/mellanox/mlx4/main.c` parts it.

use crate::machine::{Interface, Role};
use crate::read::names::Numbering;
use crate::read::numbering::NamedVector;
use crate::root::{FileError, Root};

/// With fewer completion event queues a port, the ports share them (`MIN_MSIX_P_PORT`).
const LEAST: u32 = 5;

/// The parts of a function's completion event queues.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Parts {
    /// How many each port has; `None` where the ports share all of them, or there is one port.
    each: Option<u32>,
    /// Whether the function has an RDMA device, which uses them, too.
    rdma: bool,
}

impl Parts {
    /// Those of the function of these interfaces.
    pub(super) fn read(root: &Root, of: &[&Interface], rdma: bool) -> Result<Self, FileError> {
        let Some(first) = of
            .first()
            .filter(|first| first.driver.as_deref() == Some("mlx4_en"))
        else {
            return Ok(Self::default());
        };
        let with_interface = of
            .iter()
            .map(|interface| interface.port + 1)
            .max()
            .unwrap_or(1);
        // The type of a port, whether it is Ethernet or InfiniBand.
        let second = root.read_opt(&format!("/sys/class/net/{}/device/mlx4_port2", first.name))?;
        let ports = with_interface.max(if second.is_some() { 2 } else { 1 });
        // One vector is for asynchronous events.
        let queues = u32::try_from(first.device.irqs.len())
            .unwrap_or(u32::MAX)
            .saturating_sub(1);
        let each = queues / ports;
        Ok(Self {
            each: (ports > 1 && each >= LEAST).then_some(each),
            rdma,
        })
    }

    /// The number of completion event queues before those of a port.
    pub(super) fn before(self, port: u32) -> u32 {
        self.each.unwrap_or(0) * port
    }

    /// Makes the number of a vector's completion event queue, which counts from 1 over all ports, that of its port's
    /// queue. Returns the port that it belongs to; `None` where all ports use it, or there is no such interface.
    pub(super) fn find(self, vector: &mut NamedVector, of: &[&Interface]) -> Option<u32> {
        let index = vector.number?.checked_sub(1)?;
        vector.number = Some(index);
        let each = self.each?;
        let port = of
            .iter()
            .map(|interface| interface.port)
            .find(|&port| port == index / each);
        match port {
            Some(_) => vector.number = Some(index % each),
            None if self.rdma => (vector.role, vector.numbering) = (Role::Rdma, Numbering::Queue),
            None => (vector.role, vector.numbering) = (Role::Control, Numbering::None),
        }
        port
    }
}
