//! Reads machine files and kernel answers into facts, all through the [`Root`](crate::root::Root).

pub mod cgroups;
mod delivery;
mod device;
mod device_tree;
pub mod ethtool;
pub(crate) mod files;
pub mod handlers;
pub mod interfaces;
pub mod interrupts;
pub mod kept_off;
pub mod links;
mod live;
mod members;
mod mlx4;
mod names;
pub mod netlink;
pub mod others;
mod queue_counts;
mod queue_files;
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

/// The optional facts to read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReadOptions<'a> {
    /// The drivers' affinity hints.
    pub hints: bool,
    /// `/proc/interrupts`, also if `/sys/kernel/irq` has the handlers.
    pub interrupts: bool,
    pub memory: bool,
    /// The CPUs of exclusive cpuset partitions.
    pub exclusive: bool,
    /// Other devices on the nodes: GPUs, accelerators, disks, RDMA devices.
    pub neighbours: bool,
    /// The facts that decide on the receive queue of a flow: hash, key, ntuple filters.
    pub flows: bool,
    pub queues: Queues,
    /// Leaves out facts that only planning needs (link, speed, MTU, capability of the slot, polling, versions): a
    /// restore must not fail because of them.
    pub settings_only: bool,
    /// Drivers that the policy teaches.
    pub drivers: &'a [Taught],
}

/// How much of the queues is read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Queues {
    /// Numbers and steering settings.
    #[default]
    Steering,
    /// Without `rps_flow_cnt`, which only RFS needs: one of seven files for each queue.
    WithoutFlowCounts,
    /// Numbers only; [`read_queue_settings`] reads the rest.
    Numbers,
}

impl ReadOptions<'static> {
    /// All facts that a command or a policy may need.
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
