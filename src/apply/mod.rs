//! Writing a plan: under a lock, after the first-seen values are safe, one file after the other, each read back.
//! Takes no decision that the plan does not show.
//!
//! [`apply()`] and [`restore`] are all that a program needs that embeds nicpin.

mod bind;
mod channels;
mod error;
mod fallback;
pub mod irqbalance;
mod lock;
mod proof;
mod put_back;
mod reasons;
mod record;
mod session;
mod settings;
mod state;
mod trial;
mod undo;
mod write;

pub use bind::{BindError, bind, memory_policy};
pub use error::ApplyError;
pub use lock::{Lock, LockError};
pub use proof::Proof;
pub use reasons::differences;
pub use record::Record;
pub use session::{Options, apply, apply_when_safe};
pub use state::StateError;
pub use trial::{Trial, TrialWatch};
pub use undo::{confirm, end_trial, restore};
pub use write::write_all;
