//! Every parser on the seeds of its fuzz target: whole, cut off and with small changes. `fuzz/run.sh` searches for new
//! paths through the code. A process shows only its own memory, so each test has one.

use std::time::Duration;

use proptest::prelude::*;

use crate::support::run::in_its_own_process;
use crate::support::{cases, is_full};
use crate::targets::TARGETS;
use crate::{hostile, seeds};

#[test]
fn every_seed_passes_every_fuzz_target() {
    if !in_its_own_process("fuzz_seeds::every_seed_passes_every_fuzz_target") {
        return;
    }
    for target in TARGETS {
        let seeds = seeds::of(target.name);
        assert!(!seeds.is_empty(), "{}", target.name);
        for seed in seeds {
            (target.run)(&seed);
        }
    }
}

/// A `dev_port` of 4294967295 ended every command, and `fleet` with it.
#[test]
fn no_number_in_a_file_ends_a_command() {
    if !in_its_own_process("fuzz_seeds::no_number_in_a_file_ends_a_command") {
        return;
    }
    hostile::extreme_numbers();
}

/// The same damages on any machine; in the full tier, as many more as two minutes of CPU time take.
#[test]
fn a_damaged_file_ends_no_command_but_with_its_exit_code() {
    if !in_its_own_process("fuzz_seeds::a_damaged_file_ends_no_command_but_with_its_exit_code") {
        return;
    }
    let time = Duration::from_secs(if is_full() { 120 } else { 0 });
    let seed = std::env::var("PROPTEST_RNG_SEED").map_or(1, |seed| seed.parse().unwrap());
    let (all, run) = hostile::damaged_files(seed, 30, time);
    assert!(all > 10_000, "{all}");
    println!("{all} damaged files, {run} runs");
}

#[test]
fn seeds_that_are_cut_and_changed_a_little() {
    if !in_its_own_process("fuzz_seeds::seeds_that_are_cut_and_changed_a_little") {
        return;
    }
    let index = any::<prop::sample::Index>;
    let change = (index(), "[0-9a-f,:\\- \\n]|\\PC");
    let changes = prop::collection::vec(change, 0..6);
    let config = ProptestConfig {
        failure_persistence: None,
        ..cases(100)
    };
    let seeds = TARGETS.map(|target| seeds::of(target.name).into_iter().collect::<Vec<_>>());
    proptest!(config, |(which in index(), seed in index(), cut in index(), changes in changes)| {
        let target = which.get(&TARGETS);
        let mut data = seed.get(&seeds[which.index(TARGETS.len())]).clone();
        for (at, text) in changes {
            let at = at.index(data.len() + 1);
            data.splice(at..(at + text.len()).min(data.len()), text.bytes());
        }
        data.truncate(cut.index(data.len() * 2 + 1));
        (target.run)(&data);
    });
}
