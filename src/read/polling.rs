//! How an interface's queues are polled: settings under which the work is done later, or on another CPU than the one
//! that gets the interrupt.
//!
//! Read from `/sys/class/net/INTERFACE` (`Documentation/ABI/testing/sysfs-class-net`,
//! `Documentation/networking/napi.rst`).

use crate::machine::Polling;
use crate::read::files::read_number;
use crate::root::{FileError, Root};

pub(crate) fn read(root: &Root, path: &str) -> Result<Polling, FileError> {
    // Each is absent on kernels older than the setting.
    let number = |name: &str| -> Result<u64, FileError> {
        Ok(read_number(root, &format!("{path}/{name}"))?.unwrap_or(0))
    };
    Ok(Polling {
        threaded: number("threaded")? > 0,
        gro_flush_timeout: number("gro_flush_timeout")?,
        napi_defer_hard_irqs: u32::try_from(number("napi_defer_hard_irqs")?).unwrap_or(u32::MAX),
        irq_suspend_timeout: 0,
    })
}

/// Whether sockets poll by default.
pub(crate) fn sockets_poll(root: &Root) -> Result<bool, FileError> {
    let set = |name: &str| -> Result<bool, FileError> {
        Ok(read_number(root, &format!("/proc/sys/net/core/{name}"))?
            .is_some_and(|value: u32| value > 0))
    };
    Ok(set("busy_read")? || set("busy_poll")?)
}
