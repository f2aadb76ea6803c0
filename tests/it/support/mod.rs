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

/// Whether the whole of each grid is tried, as `.ci/full` wants it, not only the cases that find the most.
pub fn is_full() -> bool {
    std::env::var_os("NICPIN_FULL").is_some()
}

/// How often a property is tried. The seed is always the same (`.cargo/config.toml`), but in `.ci/full`.
pub fn cases(few: u32) -> proptest::test_runner::Config {
    proptest::test_runner::Config {
        cases: if is_full() { 10 * few } else { few },
        ..proptest::test_runner::Config::default()
    }
}
