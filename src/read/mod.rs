//! Reads machine files and kernel answers into facts. Every file is read through the [`Root`](crate::root::Root).

pub mod cgroups;
mod device_tree;
pub mod ethtool;
pub(crate) mod files;
pub mod interfaces;
pub mod interrupts;
pub mod kept_off;
mod live;
pub mod netlink;
pub mod others;
mod queue_counts;
mod queues;
pub mod sample;
mod sockets;
pub(crate) mod threads;
pub mod tools;
pub mod topology;
mod vector_space;
pub mod vectors;

use crate::drivers::Taught;
pub(crate) use live::settings;
pub use live::{host_name, machine, read_queue_settings};
pub use sockets::connected_sockets;

/// What is read only on request, or left out on request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Wants<'a> {
    /// The drivers' hints.
    pub hints: bool,
    /// `/proc/interrupts`, also if `/sys/kernel/irq` has the handlers.
    pub interrupts: bool,
    /// The memory of each node.
    pub memory: bool,
    /// The CPUs of exclusive cpuset partitions.
    pub exclusive: bool,
    /// What else is on the nodes: GPUs, accelerators, disks, RDMA devices.
    pub neighbours: bool,
    /// What decides on the receive queue of a flow: hash, key, ntuple filters.
    pub flows: bool,
    /// How much of the interfaces' queues.
    pub queues: Queues,
    /// Not what only planning needs to know of an interface: its link, speed and MTU, what its slot can carry, how it polls,
    /// and its versions. A restore must not fail because of them.
    pub settings_only: bool,
    /// Drivers that the policy teaches.
    pub drivers: &'a [Taught],
}

/// What is read of queues.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Queues {
    /// Also their steering settings.
    #[default]
    Steering,
    /// The same without `rps_flow_cnt`, which only RFS needs: one of seven files for each queue.
    WithoutFlowCounts,
    /// Their numbers only; [`read_queue_settings`] reads the rest.
    Numbers,
}

impl Wants<'static> {
    /// Everything that a command or a policy may need.
    pub const EVERYTHING: Self = Self {
        hints: true,
        interrupts: true,
        memory: true,
        exclusive: true,
        neighbours: true,
        flows: true,
        queues: Queues::Steering,
        settings_only: false,
        drivers: &[],
    };
}
