//! Parts that the tests share: machines as values, and directory trees.

// `tests/it`, `tests/this_machine` and the benchmark use their parts of this.
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
pub mod tree;
pub mod trial;
pub mod two_node;

mod interrupts;
mod sysfs;

use std::path::Path;
use std::time::{Duration, Instant};

use nix::sys::statvfs::{FsFlags, statvfs};
use tempfile::TempDir;

/// `.ci/full` tries the whole of each grid, other runs the cases that find the most.
pub fn is_full() -> bool {
    std::env::var_os("NICPIN_FULL").is_some()
}

/// The directory is removed with the value. It is in memory, where a copy of a machine takes a tenth of the time, if
/// there is room for many and programs may be started from there.
pub fn temporary() -> TempDir {
    let memory = "/dev/shm";
    let is_fit = statvfs(memory).is_ok_and(|of| {
        let room = of.blocks_available() * of.fragment_size();
        room > 1 << 30 && !of.flags().contains(FsFlags::ST_NOEXEC)
    });
    let place = if is_fit {
        Path::new(memory)
    } else {
        &std::env::temp_dir()
    };
    tempfile::tempdir_in(place).unwrap()
}

/// Fails after a minute.
pub fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(60), "not {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The seed is always the same (`.cargo/config.toml`), but in `.ci/full`.
pub fn cases(few: u32) -> proptest::test_runner::Config {
    proptest::test_runner::Config {
        cases: if is_full() { 10 * few } else { few },
        ..proptest::test_runner::Config::default()
    }
}
