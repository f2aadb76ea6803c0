//! Every file access of nicpin, below one root directory.
//!
//! The root is `/` on a live machine, the top of a tree that holds the same files, or a capture of one, which is read into
//! memory and cannot be written to. Paths are those of the machine (`/proc/irq/71/smp_affinity`) whatever the root;
//! links in a tree are followed as that machine would follow them and never lead out of it. Absence is an answer (`None`),
//! not an error.

pub(crate) mod archive;
mod directories;
mod error;
pub mod faults;
mod files;
mod open;
pub(crate) mod recorded;
mod trusted;

pub use error::{FileError, errno_words};
pub use files::Root;
