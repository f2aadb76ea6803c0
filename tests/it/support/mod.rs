//! What the tests share: machines as values, and directory trees.

// Every test file is a crate of its own and uses its part of this.
#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::disallowed_methods
)]

pub mod captured;
pub mod host;
pub mod kernel;
pub mod machine;
pub mod machines;
pub mod run;
pub mod schema;
pub mod small;
pub mod tree;
pub mod trial;
pub mod two_node;

mod interrupts;
mod sysfs;
