//! A request to end before the next write, from a signal.

use std::sync::OnceLock;

static REQUEST: OnceLock<String> = OnceLock::new();

/// Asks the applies and restores of this process to write nothing more; `why` goes to the reasons of the writes that
/// are left out, as in `ended by SIGTERM`. An atomic apply restores what it has written.
pub fn stop(why: String) {
    let _ = REQUEST.set(why);
}

/// Why to write nothing more; `None` unless [`stop`] was called.
pub fn stopped() -> Option<&'static str> {
    REQUEST.get().map(String::as_str)
}
