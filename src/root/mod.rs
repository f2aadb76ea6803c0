//! All file access of nicpin, below one root directory.
//!
//! The root is `/` on a live machine, a directory with a copy of its files, or a capture, which is read into memory and
//! is read-only. Paths start at the root (`/proc/irq/71/smp_affinity`). Links are followed as that machine would follow
//! them and never lead out of the root. An absent file is `None`, not an error.

pub mod archive;
mod error;
pub mod faults;
mod files;
mod open;
mod regular;
pub mod sys;
pub mod tree;
mod trusted;

pub use error::{FileError, errno_words};
pub(crate) use error::{errno_of, is_absent};
pub use files::{Recorded, Root};
pub use trusted::remove_left;
