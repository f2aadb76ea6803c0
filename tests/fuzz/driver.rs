//! The libFuzzer program for the target that `NICPIN_FUZZ_TARGET` names. With `NICPIN_FUZZ_SEEDS=DIRECTORY` it writes
//! the target's seeds there and runs nothing.
#![no_main]
#![allow(clippy::unwrap_used, clippy::expect_used)]

// The program's rooms, which no library exports.
#[path = "../../src/capture/mod.rs"]
#[allow(dead_code, unreachable_pub)]
mod capture;
#[path = "../../src/commands/mod.rs"]
#[allow(dead_code, unreachable_pub)]
mod commands;
#[path = "../../src/draw/mod.rs"]
#[allow(dead_code, unreachable_pub)]
mod draw;
#[path = "../../src/fleet/mod.rs"]
#[allow(dead_code, unreachable_pub)]
mod fleet;
#[path = "../../src/screen/mod.rs"]
#[allow(dead_code, unreachable_pub)]
mod screen;
#[path = "../../src/start.rs"]
#[allow(dead_code, unreachable_pub)]
mod start;
#[path = "../../src/watch/mod.rs"]
#[allow(dead_code, unreachable_pub)]
mod watch;

#[allow(dead_code)]
#[path = "hostile.rs"]
mod hostile;
#[path = "seeds.rs"]
mod seeds;
#[path = "targets.rs"]
mod targets;

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;

static TARGET: LazyLock<targets::Target> = LazyLock::new(|| {
    let name = std::env::var("NICPIN_FUZZ_TARGET").expect("NICPIN_FUZZ_TARGET names a target");
    let target = *targets::TARGETS
        .iter()
        .find(|target| target.name == name)
        .expect("there is such a target");
    if let Some(directory) = std::env::var_os("NICPIN_FUZZ_SEEDS") {
        for (at, seed) in seeds::of(target.name).iter().enumerate() {
            std::fs::write(
                std::path::Path::new(&directory).join(format!("seed-{at}")),
                seed,
            )
            .unwrap();
        }
        std::process::exit(0);
    }
    target
});

fuzz_target!(init: LazyLock::force(&TARGET), |data: &[u8]| (TARGET.run)(data));
