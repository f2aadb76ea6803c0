//! Who polls a card's queues, and when: settings under which the work is not, or not at once, done on the CPU that
//! the interrupt arrives on.
//!
//! Read from `/sys/class/net/INTERFACE` (`Documentation/ABI/testing/sysfs-class-net`,
//! `Documentation/networking/napi.rst`).

use serde::Serialize;

use crate::host::interfaces::read_number;
use crate::host::root::{FileError, Root};

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

    pub(crate) fn read(root: &Root, path: &str) -> Result<Self, FileError> {
        let number = |name: &str| -> Result<u64, FileError> {
            // Absent on kernels before each was added: what it sets is not done there.
            Ok(root
                .read_opt(&format!("{path}/{name}"))?
                .and_then(|text| text.trim().parse().ok())
                .unwrap_or(0))
        };
        Ok(Self {
            threaded: number("threaded")? > 0,
            gro_flush_timeout: number("gro_flush_timeout")?,
            napi_defer_hard_irqs: u32::try_from(number("napi_defer_hard_irqs")?).unwrap_or(u32::MAX),
        })
    }
}

/// Whether sockets poll although their programs did not ask for it.
pub(crate) fn sockets_poll(root: &Root) -> Result<bool, FileError> {
    let set = |name: &str| -> Result<bool, FileError> {
        Ok(read_number(root, &format!("/proc/sys/net/core/{name}"))?.is_some_and(|value| value > 0))
    };
    Ok(set("busy_read")? || set("busy_poll")?)
}
