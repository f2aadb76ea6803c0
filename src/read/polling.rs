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
    let file = |name: &str| format!("{path}/{name}");
    Ok(Polling {
        threaded: read_number::<u32>(root, &file("threaded"))?.is_some_and(|mode| mode > 0),
        gro_flush_timeout: read_number(root, &file("gro_flush_timeout"))?.unwrap_or_default(),
        napi_defer_hard_irqs: read_number(root, &file("napi_defer_hard_irqs"))?.unwrap_or_default(),
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
