//! Reads machine files and kernel answers into facts. Every file is read through the [`Root`](crate::root::Root).

#[cfg(feature = "cli")]
pub mod bandwidth;
#[cfg(feature = "cli")]
pub mod capture;
pub mod cgroups;
pub mod counts;
mod device;
#[cfg(feature = "cli")]
pub mod documents;
pub mod ethtool;
mod files;
#[cfg(feature = "cli")]
pub mod fleet;
pub mod interfaces;
pub mod interrupts;
mod live;
pub mod memory;
mod mlx4;
pub mod names;
mod neighbours;
pub mod netlink;
mod numbering;
mod others;
mod polling;
#[cfg(feature = "cli")]
mod redact;
pub mod sample;
mod sources;
pub(crate) mod threads;
pub mod tools;
pub mod topology;
pub(crate) mod torn;
pub mod vectors;
mod wants;

pub(crate) use live::settings;
pub use live::{host_name, machine, read_queue_settings};
pub use wants::{Queues, Wants};
