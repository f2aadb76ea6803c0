//! Writing a plan: under a lock, after the first-seen values are safe, one file after the other, each read back.
//! Takes no decision that the plan does not show.

mod channels;
mod lock;
mod record;
mod write;

pub use channels::{ChannelOutcome, change_channels};
pub use lock::{Lock, LockError};
pub use record::{Back, Record, RecordError};
pub use write::{Outcome, Written, write_all};

/// Where nicpin keeps its lock and its record. On a tmpfs: what it found before is of no use after a boot.
const STATE_DIR: &str = "/run/nicpin";
