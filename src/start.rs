//! What comes before anything else: what a caller has left to this process must not decide what nicpin sees and does, and
//! the commands that it starts for the user get it back. Rust's runtime cares for descriptors 0 to 2 and for broken pipes.

use std::io;
use std::process::{Command, ExitCode};
use std::sync::OnceLock;
use std::thread::Builder;

use nix::sys::resource::{Resource, getrlimit};
use nix::sys::signal::Signal;

use nicpin::root::sys::{self, Inherited};

static INHERITED: OnceLock<Inherited> = OnceLock::new();

/// Takes over the signals. Called once, before other threads.
pub fn prepare() -> io::Result<()> {
    let inherited = sys::take_over_signals()?;
    // Only the first call has something to set.
    let _ = INHERITED.set(inherited);
    Ok(())
}

/// What the program needs at most, in bytes; what is not touched costs no memory.
const STACK: u64 = 4 << 20;

/// Runs the program where it has a stack, however small a caller's limit (`ulimit -s`) has made that of the first thread.
pub fn with_stack(program: fn() -> ExitCode) -> ExitCode {
    let limit = getrlimit(Resource::RLIMIT_STACK).map_or(STACK, |(soft, _)| soft);
    if limit >= STACK {
        return program();
    }
    let stack = usize::try_from(STACK).unwrap_or(usize::MAX);
    let started = Builder::new().stack_size(stack).spawn(program);
    // A panic has said what it was.
    started.map_or_else(
        |_| program(),
        |thread| thread.join().unwrap_or(ExitCode::FAILURE),
    )
}

/// Those of the signals that the caller did not have ignored.
pub fn not_ignored(signals: &[Signal]) -> impl Iterator<Item = Signal> {
    let is_ignored = |signal: &Signal| {
        INHERITED
            .get()
            .is_some_and(|caller| caller.ignores(*signal))
    };
    signals
        .iter()
        .copied()
        .filter(move |signal| !is_ignored(signal))
}

/// Lets a command of the user start as if the caller had started it.
pub fn as_of_caller(command: &mut Command) {
    if let Some(inherited) = INHERITED.get() {
        inherited.give_to(command);
    }
}
