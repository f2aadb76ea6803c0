//! How an interface's queues are polled: settings under which the work is done later, or on another CPU than the one
//! that gets the interrupt (`Documentation/networking/napi.rst`).

use serde::Serialize;

use crate::machine::mask::MaskFile;
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
}

impl Polling {
    /// Whether interrupts are deferred while the queue is polled. This needs both settings.
    pub fn defers_interrupts(self) -> bool {
        self.gro_flush_timeout > 0 && self.napi_defer_hard_irqs > 0
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
    /// The CPUs on which the scheduler may run it (`sched_setaffinity(2)`).
    pub affinity: MaskFile,
}
