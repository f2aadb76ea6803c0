//! How an interface's queues are polled: settings under which the work is done later, or on another CPU than the one
//! that gets the interrupt (`Documentation/networking/napi.rst`).

use serde::Serialize;

/// How an interface's queues are polled.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(not(feature = "testing"), non_exhaustive)]
pub struct Polling {
    /// Whether each queue is polled by a thread of its own (`threaded`), which the scheduler may run anywhere.
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
