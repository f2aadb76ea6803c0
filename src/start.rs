//! The process: what it inherits from a caller must not decide what nicpin sees and does, and the commands that it
//! starts for the user get it back. Also its stack, its time and the signals that end it. Rust's runtime cares for
//! descriptors 0 to 2 and for broken pipes.

use std::cell::OnceCell;
use std::io;
use std::process::{Command, ExitCode};
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, channel};
use std::thread::{Builder, spawn};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Result;
use nix::sys::resource::{Resource, UsageWho, getrlimit, getrusage};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::time::{TimeVal, TimeValLike as _};

use nicpin::apply::stop;
use nicpin::root::sys::{self, Inherited};

static INHERITED: OnceLock<Inherited> = OnceLock::new();

/// Takes over the signals and the limit of open files; called once, before other threads.
pub fn prepare() -> io::Result<()> {
    let inherited = sys::take_over()?;
    // Only the first call has something to set.
    let _ = INHERITED.set(inherited);
    Ok(())
}

/// Bytes that the program needs at most; what is not touched costs no memory.
const STACK: u64 = 4 << 20;

/// A caller's limit (`ulimit -s`) may have made the stack of the first thread too small.
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

/// The first of these signals is caught, so that a command ends where its report and the machine are consistent; the
/// second one ends the process at once.
const ENDING: [Signal; 2] = [Signal::SIGINT, Signal::SIGTERM];

fn catch(then: impl FnOnce(Signal) + Send + 'static) -> Result<()> {
    let signals: SigSet = not_ignored(&ENDING).collect();
    signals.thread_block()?;
    spawn(move || {
        let Ok(signal) = signals.wait() else { return };
        then(signal);
        // The next signal finds this thread.
        let _ = signals.thread_unblock();
        loop {
            std::thread::park();
        }
    });
    Ok(())
}

pub fn stop_apply() -> Result<()> {
    catch(|signal| stop(format!("ended by {signal}")))
}

/// Gives the signals their usual effect on this thread.
pub fn release() -> Result<()> {
    Ok(SigSet::from_iter(ENDING).thread_unblock()?)
}

pub struct Signals {
    coming: Receiver<Signal>,
    came: OnceCell<Signal>,
}

impl Signals {
    pub fn catch() -> Result<Self> {
        let (send, coming) = channel();
        // The receiver may be gone at the end of the command.
        catch(move |signal| _ = send.send(signal))?;
        let came = OnceCell::new();
        Ok(Self { coming, came })
    }

    /// Also returns a signal that has come before.
    pub fn within(&self, time: Duration) -> Option<Signal> {
        let come = || self.coming.recv_timeout(time).ok();
        let signal = self.came.get().copied().or_else(come)?;
        Some(*self.came.get_or_init(|| signal))
    }
}

/// Lets a command of the user start as if the caller had started it.
pub fn as_of_caller(command: &mut Command) {
    if let Some(inherited) = INHERITED.get() {
        inherited.give_to(command);
    }
}

/// User and system time of all ended child processes and of their own children; see getrusage(2).
pub fn children_cpu() -> Result<Duration> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let micros = |time: TimeVal| u64::try_from(time.num_microseconds()).unwrap_or_default();
    Ok(Duration::from_micros(
        micros(usage.user_time()) + micros(usage.system_time()),
    ))
}

pub fn seconds_since_1970() -> u64 {
    let time = SystemTime::now().duration_since(UNIX_EPOCH);
    time.map_or(0, |time| time.as_secs())
}
