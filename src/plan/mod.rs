//! The planner: a pure function from a machine and a policy to a plan, without I/O, clock or environment. IRQ numbers
//! and link states do not change the plan.

mod allowed;
mod assign;
pub mod binding;
mod build;
mod candidates;
mod data;
mod device;
mod gain;
mod hash;
pub mod note;
mod notes;
mod objective;
mod place;
mod ports;
mod requests;
mod rfs;
mod rps;
mod score;
mod spread;
pub mod stored;
mod threads;
mod wanted;
mod why;
mod write;
mod xps;

pub use build::plan;
pub use data::{
    ChannelChange, DecidedBy, HostSummary, IrqbalancePlan, LeftOut, NodeSummary, Placement, Plan,
    PlannedInterface, PlannedNear, PlannedRss, PlannedRxQueue, PlannedThread, PlannedTxQueue,
    PlannedVector, SCHEMA,
};
pub(crate) use gain::cores_serving;
pub use note::{Found, Note, RssUnchanged, UsedFor};
pub use objective::{LoadAtSpeed, Measure, RdmaScore, Score};
pub(crate) use score::{Standing, standings};
pub use why::{Cause, Why};
pub use write::Write;

pub use crate::kinds::SettingKind;
pub use crate::machine::NodeSource;
