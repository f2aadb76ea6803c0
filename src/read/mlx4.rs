//! The event queues of mlx4, which the ports of a function divide or share.

use crate::drivers::Numbering::{self, Queue};
use crate::drivers::{ActionName, Fact};
use crate::machine::Role;
use crate::machine::files::NET;
use crate::read::members::Port;
use crate::root::{Result, Root};

/// Completion event queues of a port at least; with fewer, the ports share them (`MIN_MSIX_P_PORT`).
const LEAST: u32 = 5;

/// Completion event queues of an mlx4 function: one pool, which `mlx4_enable_msi_x` in
/// `drivers/net/ethernet/mellanox/mlx4/main.c` divides among the ports.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Pools {
    /// Queues of each port; `None` if the ports share all of them, or there is one port.
    pub(super) each: Option<u32>,
    /// Whether ports share all of them: each takes those of the fewest users (`mlx4_assign_eq`), which only netlink
    /// tells.
    pub(super) are_shared: bool,
    rdma: bool,
}

impl Pools {
    pub(super) fn read(root: &Root, ports: &[Port], rdma: bool) -> Result<Self> {
        let first = &*ports[0].interface;
        if !first.has_fact(Fact::PortsSharePool) {
            return Ok(Self::default());
        }
        let highest = ports.iter().map(|port| port.interface.port).max();
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

    /// Replaces a vector's number, which counts from 1 over all ports, by that within its port. Returns the port;
    /// `None` if all ports use the vector, or no interface has it.
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
