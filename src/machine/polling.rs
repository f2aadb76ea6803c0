//! Who polls an interface's queues, and when: settings under which the work is not, or not at once, done on the CPU that
//! the interrupt arrives on (`Documentation/networking/napi.rst`).

use serde::Serialize;

/// How an interface's queues are polled.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Polling {
    /// Whether each queue is polled by a thread of its own (`threaded`), which the scheduler may run anywhere.
    pub threaded: bool,
    /// For how many nanoseconds after the last packet the kernel looks again by itself (`gro_flush_timeout`).
    pub gro_flush_timeout: u64,
    /// How often it looks before it lets the card interrupt again (`napi_defer_hard_irqs`).
    pub napi_defer_hard_irqs: u32,
}

impl Polling {
    /// Whether interrupts are put off while somebody polls. The kernel wants both settings for it.
    pub fn defers_interrupts(self) -> bool {
        self.gro_flush_timeout > 0 && self.napi_defer_hard_irqs > 0
    }
}
