//! All tests but those of the machine that they run on (`tests/this_machine`): the program on copies of the machines in
//! `fixtures/`, and the library.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::disallowed_methods)] // tests, on trees of their own
#![allow(clippy::print_stdout)] // the tables of tests/it/compared_with_other_tools.rs
#![allow(clippy::too_many_lines)] // tests are tables
#![allow(clippy::needless_raw_string_hashes)] // as SNAPSHOTS=overwrite writes them

// The program's rooms, as `src/main.rs` has them: no library exports them.
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

#[path = "../../benches/speed/machines.rs"]
#[allow(dead_code)]
mod bench_machines;
#[path = "../fuzz/hostile.rs"]
#[allow(dead_code)]
mod hostile;
#[path = "../fuzz/seeds.rs"]
#[allow(dead_code)]
mod seeds;
#[path = "../fuzz/targets.rs"]
#[allow(dead_code)]
mod targets;

mod support;

mod apply;
mod architecture;
mod archives;
mod bad_input;
mod benchmark_machines;
mod capture_privacy;
mod captures;
mod channels;
mod check;
mod compare;
mod compared_with_other_tools;
mod completions;
mod control_characters;
mod costly_machines;
mod counter_deltas;
mod crashes;
mod default_policy;
mod device_irqs;
mod dist;
mod documentation;
mod drivers;
mod exclusive_cpus;
mod files_others_may_write;
mod fixtures;
mod fleets;
mod flows;
mod functions_without_interface;
mod fuzz_seeds;
mod help;
mod hostile_trees;
mod interface_nodes;
mod irqbalance;
mod manual;
mod measure;
mod monitoring;
mod napi_threads;
mod near_a_program;
mod neighbours;
mod nodes;
mod not_understood;
mod only_moves_that_gain;
mod optimum;
mod options;
mod other_writers;
mod pictures;
mod plans;
mod policy_file;
mod processes_of_other_tools;
mod proof_by_counters;
mod properties;
mod rdma_vectors;
mod records_of_other_versions;
mod restore;
mod rss;
mod run;
mod schemas;
mod selectors;
mod signals;
mod start_of_process;
mod states;
mod status;
mod steering;
mod stored_plans;
mod taught_drivers;
mod topology;
mod trial;
mod trial_terminal;
mod unreadable;
mod unusual_machines;
mod vector_queues;
mod watching;
mod write_errors;
