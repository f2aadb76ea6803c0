//! nicpin puts the interrupts and packet steering of Linux network interfaces on their own NUMA node, and proves that
//! they are there.

pub mod apply;
#[cfg(feature = "cli")]
pub mod cli;
#[cfg(feature = "cli")]
pub mod commands;
pub mod cpuset;
pub mod machine;
pub mod plan;
pub mod policy;
pub mod read;
#[cfg(feature = "cli")]
pub mod render;
pub mod report;
pub mod root;
pub mod sys;
#[cfg(feature = "testing")]
#[doc(hidden)]
pub mod testing;
