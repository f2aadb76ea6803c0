//! Reads machine files and kernel answers into facts. Every file is read through the [`Root`](crate::root::Root).

pub mod cgroups;
pub mod counts;
pub mod ethtool;
pub(crate) mod files;
pub mod interfaces;
pub mod interrupts;
mod live;
pub mod memory;
mod mlx4;
pub mod names;
pub mod netlink;
mod numbering;
pub mod others;
mod polling;
pub mod programs;
mod rx_hash;
pub mod sample;
mod sockets;
mod sources;
pub(crate) mod threads;
pub mod tools;
pub mod topology;
pub mod vectors;
mod wants;

pub(crate) use live::settings;
pub use live::{host_name, machine, read_queue_settings};
pub use sockets::connected_sockets;
pub use wants::{Queues, Wants};
