//! SIGINT and SIGTERM: the first one is caught, so that a command ends where its report and the machine are consistent.
//! The second one ends the process at once.

use std::cell::OnceCell;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use anyhow::Result;
use nix::sys::signal::{SigSet, Signal};

use crate::start::not_ignored;
use nicpin::apply::stop;

const SIGNALS: [Signal; 2] = [Signal::SIGINT, Signal::SIGTERM];

/// Calls `then` on another thread when the first signal comes. Called before any other thread is started.
pub fn catch(then: impl FnOnce(Signal) + Send + 'static) -> Result<()> {
    let signals: SigSet = not_ignored(&SIGNALS).collect();
    signals.thread_block()?;
    std::thread::spawn(move || {
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

/// Lets the first signal end apply or restore after the current write.
pub fn stop_apply() -> Result<()> {
    catch(|signal| stop(format!("ended by {signal}")))
}

/// Gives the signals their usual effect on this thread.
pub fn release() -> Result<()> {
    Ok(SigSet::from_iter(SIGNALS).thread_unblock()?)
}

/// The first signal, to wait for.
pub struct Interrupts {
    coming: Receiver<Signal>,
    came: OnceCell<Signal>,
}

impl Interrupts {
    pub fn catch() -> Result<Self> {
        let (send, coming) = channel();
        // The receiver may be gone at the end of the command.
        catch(move |signal| _ = send.send(signal))?;
        Ok(Self {
            coming,
            came: OnceCell::new(),
        })
    }

    /// The signal that has come, or comes within this time.
    pub fn within(&self, time: Duration) -> Option<Signal> {
        let come = || self.coming.recv_timeout(time).ok();
        let signal = self.came.get().copied().or_else(come)?;
        Some(*self.came.get_or_init(|| signal))
    }
}
