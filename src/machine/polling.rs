//! How an interface's queues are polled: settings under which the work is done later, or on another CPU than the one
//! that gets the interrupt (`Documentation/networking/napi.rst`).

use serde::Serialize;

use crate::machine::mask::MaskFile;
use crate::machine::netdev::Napi;
use crate::machine::vector::Source;

/// How an interface's queues are polled.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Polling {
    /// Whether each queue is polled by a kernel thread of its own (`threaded`).
    pub threaded: bool,
    /// Nanoseconds after the last packet until the kernel polls again by a timer (`gro_flush_timeout`).
    pub gro_flush_timeout: u64,
    /// The number of empty polls before the interrupt is enabled again (`napi_defer_hard_irqs`).
    pub napi_defer_hard_irqs: u32,
    /// Nanoseconds for which interrupts are off while a program polls, the most of all queues; 0 where the kernel does
    /// not report it (`irq-suspend-timeout`, Linux 6.13).
    pub irq_suspend_timeout: u32,
}

impl Polling {
    /// Whether interrupts are deferred while the queue is polled, which needs two settings, or suspended.
    pub fn defers_interrupts(self) -> bool {
        self.gro_flush_timeout > 0 && self.napi_defer_hard_irqs > 0 || self.irq_suspend_timeout > 0
    }

    /// Takes over what netlink reports of the queues, each of which may have settings of its own; the most of each.
    pub(crate) fn add(&mut self, napi: &Napi) {
        self.napi_defer_hard_irqs = self.napi_defer_hard_irqs.max(napi.defer_hard_irqs);
        self.gro_flush_timeout = self.gro_flush_timeout.max(napi.gro_flush_timeout.into());
        self.irq_suspend_timeout = self.irq_suspend_timeout.max(napi.irq_suspend_timeout);
    }
}

/// A kernel thread that polls an interface's queues where NAPI is threaded. The interrupt only wakes it; the packets are
/// processed on the CPU on which it runs.
#[derive(Debug, Clone, PartialEq)]
pub struct NapiThread {
    /// Its process id, which changes whenever the kernel creates it again.
    pub pid: u32,
    /// The kernel's number of its NAPI instance; `None` for one without a number, such as one that only sends.
    pub napi: Option<u32>,
    /// The IRQ of the queue vector that wakes it, and how that was determined; `None` if it could not be.
    pub woken_by: Option<(u32, Source)>,
    /// Whether it polls all the time, so that its queue gets no interrupts (Linux 6.19).
    pub busy_polls: bool,
    /// The CPUs on which the scheduler may run it (`sched_setaffinity(2)`).
    pub affinity: MaskFile,
}
