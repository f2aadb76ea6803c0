//! Writes a plan: under a lock, after the original settings are recorded, one file after the other, each read back.
//! Makes no decision that the plan does not show.

mod access;
mod bind;
mod channels;
mod error;
pub mod irqbalance;
mod lock;
mod proof;
mod record;
mod restore_settings;
mod session;
mod settings;
mod state;
mod trial;
mod undo;
mod write;

pub use bind::bind;
pub use error::ApplyError;
pub use lock::{Lock, TrialGuard, stop, stop_reason};
pub use proof::Proof;
pub use record::Record;
pub(crate) use record::{Irq, LastSet};
pub use session::{Options, apply, apply_when_safe};
pub(crate) use settings::of_plan;
pub use settings::planned_settings;
pub use state::{STATE_DIR, StateFile};
pub use trial::Trial;
pub use undo::{confirm, end_trial, end_watched_trial, restore, to_restore};
pub use write::write_all;
