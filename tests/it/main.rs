//! The tests of this package but those that depend on the machine (`tests/this_machine`): the program on copies of the
//! machines in `fixtures/`, and the library.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::disallowed_methods)] // tests, on trees of their own
#![allow(clippy::print_stdout)] // the tables of tests/it/compare.rs
#![allow(clippy::too_many_lines)] // tests are tables

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
mod captures;
mod channels;
mod check;
mod compare;
mod completions;
mod confined;
mod crashes;
mod devices;
mod dist;
mod documentation;
mod drivers;
mod exclusive;
mod faults;
mod fixtures;
mod fleets;
mod flows;
mod fuzz;
mod gain;
mod help;
mod identity;
mod irqbalance;
mod limits;
mod locality;
mod manual;
mod measure;
mod monitoring;
mod napi_threads;
mod near;
mod near_far;
mod neighbours;
mod nodes;
mod not_understood;
mod optimum;
mod options;
mod pictures;
mod plans;
mod policy_file;
mod processes;
mod proof;
mod properties;
mod rss;
mod rules;
mod run;
mod sample;
mod schemas;
mod shapes;
mod sizes;
mod sources;
mod start_of_process;
mod states;
mod status;
mod steering;
mod stop;
mod stored;
mod taught;
mod terminal;
mod topology;
mod trial;
mod trial_terminal;
mod trusted;
mod undo;
mod unreadable;
mod versions;
mod watching;
mod writers;
