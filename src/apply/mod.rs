//! Writing a plan: under a lock, after the first-seen values are safe, one file after the other, each read back.
//! Takes no decision that the plan does not show.
//!
//! [`apply()`] and [`restore`] are all that a program needs that embeds nicpin.

mod channels;
mod fallback;
pub mod irqbalance;
mod lock;
mod proof;
mod reasons;
mod record;
mod session;
mod settings;
mod state;
mod trial;
mod undo;
mod write;

pub use lock::{Lock, LockError};
pub use proof::Proof;
pub use reasons::differences;
pub use record::Record;
pub use session::{ApplyError, Options, apply, apply_when_safe};
pub use state::StateError;
pub use trial::{Trial, TrialWatch};
pub use undo::{confirm, end_trial, restore};
pub use write::write_all;

use undo::put_back;

/// Where nicpin keeps its lock and its record. On a tmpfs: what it found before is of no use after a boot.
const STATE_DIR: &str = "/run/nicpin";
