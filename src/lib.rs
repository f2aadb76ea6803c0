//! nicpin puts the interrupts and packet steering of Linux network interfaces on their own NUMA node, and shows that they
//! are there. This library is the planner and the applier of the program `nicpin`, for programs that embed them.
//!
//! Data flows one way, and every step is a function of what the step before returned:
//!
//! 1. A [`Root`] is where files are read and written: `/` is this machine, any other directory a copy of one.
//! 2. [`machine()`] reads it once into a [`Machine`]: plain values, which nothing changes later. [`ReadOptions`] names
//!    the optional facts to read.
//! 3. A [`Selection`] names the interfaces, a [`Policy`] says what is wanted of them, and [`plan()`] makes the [`Plan`]:
//!    for each vector and queue its CPUs and the reason, each [`Write`] that is needed, and [`Note`]s. It reads no file:
//!    the same machine and the same policy give the same plan.
//! 4. [`apply()`] takes a lock, records the first values, writes the plan and reads each write back. [`restore()`] writes
//!    the first values again, [`check()`] compares and writes nothing.
//! 5. Reports say how that went: [`Applied`], [`Restored`] and [`Check`], with the counts, verdicts and
//!    exit codes ([`Exit`]) of the program. They are serialized as the program prints them in JSON.
//!
//! ```
//! use nicpin::{Exit, Policy, ReadOptions, Root, Selection};
//!
//! let root = Root::open("fixtures/two-node".as_ref())?; // a copy of a machine; "/" is this one
//! let machine = nicpin::machine(&root, ReadOptions::default())?;
//! let selection = Selection::new(&machine, &["driver:igb".to_owned()], true)?;
//! let plan = nicpin::plan(&machine, &Policy::default(), &selection);
//! for write in &plan.writes {
//!     println!("{} to {}: {}", write.value, write.path, write.why);
//! }
//! let check = nicpin::check(&root, &machine, &plan);
//! assert_eq!(check.exit() == Exit::Planned, plan.writes.is_empty());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Features
//!
//! `cli` (default) brings the crates of the program, on which no code of the library depends: take
//! `default-features = false`.
//!
//! Modules that are not documented here are the program's and its tests', and change without notice.

#![warn(unreachable_pub)]

#[doc(hidden)]
pub mod apply;
#[doc(hidden)]
pub mod check;
#[doc(hidden)]
pub mod cpuset;
#[doc(hidden)]
pub mod drivers;
#[doc(hidden)]
pub mod flow;
#[doc(hidden)]
pub mod kinds;
#[doc(hidden)]
pub mod machine;
#[doc(hidden)]
pub mod plan;
#[doc(hidden)]
pub mod policy;
#[doc(hidden)]
pub mod read;
#[doc(hidden)]
pub mod report;
#[doc(hidden)]
pub mod root;

pub use apply::{ApplyError, Options, Proof, apply, confirm, end_trial, restore};
pub use check::check;
pub use cpuset::{CpuSet, MaskWidth, NodeSet};
pub use kinds::{PortId, SettingId, SettingName};
pub use machine::netdev::{Direction, Napi, Netdev, NetdevQueue};
pub use machine::others::{
    Arguments, Irqbalance, Neighbour, NeighbourKind, OtherTool, Rdma, UnusedFunction, Virtual,
};
pub use machine::{
    Channels, Device, HandlerNames, Interface, Machine, MaskFile, Node, OtherTools, Others,
    PcieLink, Polling, Role, RxQueue, SelectError, Selection, Sharer, Source, Stacked, Topology,
    TreeInterrupt, TxQueue, UnknownVector, Vector, VmbusChannel,
};
pub use plan::note::{NoVectors, UsedFor};
pub use plan::stored::Change;
pub use plan::{
    ChannelChange, DecidedBy, HostSummary, IrqbalancePlan, LeftOut, NodeSource, NodeSummary, Note,
    Placement, Plan, PlannedInterface, PlannedRxQueue, PlannedThread, PlannedTxQueue,
    PlannedVector, Score, SettingKind, Why, Write, plan,
};
pub use policy::PolicyError;
pub use policy::{Balancer, Policy, Rule, SettingError, Settings};
pub use read::{Queues, ReadOptions, machine, read_queue_settings};
pub use report::applied::{Applied, Evidence, VectorProof};
pub use report::check::{Check, CheckState};
pub use report::difference::{Difference, Fallback, NoteAbout, Reason};
pub use report::exit::Exit;
pub use report::outcome::{
    ChannelOutcome, IrqbalanceAction, IrqbalanceOutcome, Outcome, Tally, WriteResult,
};
pub use report::restored::Restored;
pub use root::{FileError, Root};
