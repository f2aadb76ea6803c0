//! The event queues of mlx4, which the ports of a function divide or share.

use crate::drivers::Numbering::{self, Queue};
use crate::drivers::{ActionName, Fact};
use crate::machine::Role;
use crate::machine::setting::NET;
use crate::read::members::Port;
use crate::root::{Result, Root};

/// Minimum completion event queues for each port; with fewer, the ports of an mlx4 function share them
/// (`MIN_MSIX_P_PORT`).
const LEAST: u32 = 5;

/// The completion event queues of each port of an mlx4 function. All ports have one pool, which `mlx4_enable_msi_x` in
/// `drivers/net/ethernet/mellanox/mlx4/main.c` divides.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Pools {
    /// Number of queues of each port; `None` if the ports share all of them, or there is one port.
    pub(super) each: Option<u32>,
    /// Whether several interfaces share all of them: each takes those of the fewest users (`mlx4_assign_eq`), which only
    /// netlink tells.
    pub(super) are_shared: bool,
    /// Whether the function has an RDMA device, which uses the queues, too.
    rdma: bool,
}

impl Pools {
    pub(super) fn read(root: &Root, ports: &[Port], rdma: bool) -> Result<Self> {
        let first = &*ports[0].interface;
        if !first.has_fact(Fact::PortsSharePool) {
            return Ok(Self::default());
        }
        let highest = ports.iter().map(|port| port.interface.port).max();
        // The type of a port: Ethernet or InfiniBand.
        let has_second = root.read_opt(&format!("{NET}/{}/device/mlx4_port2", first.name))?;
        let on_function = highest
            .max(has_second.map(|_| 1))
            .map_or(1, |last| last + 1);
        // One vector is for asynchronous events.
        let vectors = u32::try_from(first.device.irqs.len()).unwrap_or(u32::MAX);
        let each = vectors.saturating_sub(1) / on_function;
        let each = Some(each).filter(|&each| on_function > 1 && each >= LEAST);
        Ok(Self {
            each,
            are_shared: ports.len() > 1 && each.is_none(),
            rdma,
        })
    }

    /// Replaces the number of a vector's completion event queue, which counts from 1 over all ports, by the number
    /// within its port. Returns the port; `None` if all ports use it, or no interface has it.
    pub(super) fn find(self, vector: &mut ActionName<'_>, ports: &[Port]) -> Option<usize> {
        let index = vector.number?.checked_sub(1)?;
        vector.number = Some(index);
        let each = self.each?;
        let port = ports
            .iter()
            .position(|port| port.interface.port == index / each);
        match port {
            Some(_) => vector.number = Some(index % each),
            None if self.rdma => (vector.role, vector.numbering) = (Role::Rdma, Queue),
            None => (vector.role, vector.numbering) = (Role::Control, Numbering::None),
        }
        port
    }
}
