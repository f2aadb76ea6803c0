//! What the kernel's errors mean, by the kind of setting (`net/core/net-sysfs.c`, `kernel/irq/proc.c`).

use std::io;

use nix::errno::Errno::{
    EACCES, EAGAIN, EBUSY, EINTR, EINVAL, EIO, ENODEV, ENOENT, ENOMEM, ENXIO, EOPNOTSUPP,
    EOVERFLOW, EPERM, EROFS, ESRCH,
};

use crate::cpuset::CpuSet;
use crate::machine::SettingKind::{self, NapiThread, Rps, Rss, Vector, Xps};
use crate::read::topology::read_online;
use crate::report::outcome::Outcome::{self, Managed, Refused, Vanished};
use crate::root::{Root, errno_of, errno_words};

/// Explains the kernel's answer to a write of `text`, with the fix.
pub(crate) fn refusal(
    root: &Root,
    kind: SettingKind,
    path: &str,
    text: &str,
    error: &io::Error,
) -> (Outcome, String) {
    let exists = || root.exists(path);
    let (outcome, why) = match (kind, errno_of(error)) {
        // EPERM since 6.12, where the file has no write bits; EIO before, and for an IRQ that was freed while the file
        // was open.
        (Vector, Some(EPERM)) if exists() && !has_write_bits(root, path) => {
            (Managed, ": the IRQ cannot be moved")
        }
        (Vector, Some(EIO)) if exists() => (Managed, ": the IRQ cannot be moved"),
        (Vector, Some(EACCES | EPERM)) => (Refused, "; fix: run as root, outside any container"),
        // Some interrupt controllers accept no affinity at all (DesignWare PCIe MSI).
        (Vector, Some(EINVAL)) if is_online(root, text) => (
            Refused,
            ": the interrupt controller does not accept this affinity",
        ),
        (Vector, Some(EINVAL)) => (Refused, ": none of the CPUs is online now; fix: run again"),
        (Rss, Some(EOPNOTSUPP | EINVAL)) => (
            Refused,
            ": the driver does not accept this RSS table; fix: leave out --rss",
        ),
        (Rps, Some(EINVAL)) => (
            Refused,
            ": the kernel takes no isolated or nohz_full CPU for RPS, and no other was named",
        ),
        (Xps, Some(ENOENT)) if exists() => (
            Vanished,
            ": an interface with one transmit queue has no XPS; fix: run again",
        ),
        (NapiThread, Some(ESRCH)) => (Vanished, ": the thread has ended; fix: run again"),
        (NapiThread, Some(EACCES | EPERM)) => (
            Refused,
            ": CAP_SYS_NICE is needed; fix: run as root, outside any container",
        ),
        (NapiThread, Some(EINVAL)) => (
            Refused,
            ": none of the CPUs is online now, or this thread cannot be moved",
        ),
        (_, Some(ENOENT)) => (Vanished, NO_FILE),
        // ENXIO also if an interrupt controller finds no target.
        (_, Some(ENODEV | ENXIO | EIO)) if !exists() => (Vanished, NO_FILE),
        (_, Some(EACCES | EPERM)) => (
            Refused,
            ": CAP_NET_ADMIN is needed; fix: run as root, outside any container",
        ),
        (_, Some(EROFS)) => (
            Refused,
            ": the file is mounted read-only; fix: run outside the container, or without ProtectKernelTunables= in the unit",
        ),
        (_, Some(EOVERFLOW)) => (
            Refused,
            ": the mask has more CPUs than this kernel; fix: run again",
        ),
        (_, Some(EBUSY | EAGAIN | EINTR)) => (
            Refused,
            ": an earlier change is still pending; fix: run again",
        ),
        (_, Some(ENOMEM)) => (
            Refused,
            ": the kernel is out of memory; fix: run again later",
        ),
        _ => (
            Refused,
            "; fix: run again, and report it if it happens again",
        ),
    };
    (outcome, errno_words(error) + why)
}

const NO_FILE: &str = ": the file no longer exists; fix: run again";

/// `None` if it can be written, or if that may change with the file.
pub(crate) fn why_not_writable(root: &Root, kind: SettingKind, path: &str) -> Option<String> {
    let error = root.check_writable(path).err().filter(|_| kind.is_file())?;
    let (outcome, why) = refusal(root, kind, path, "", &error);
    (outcome == Refused).then_some(why)
}

pub(crate) fn has_write_bits(root: &Root, path: &str) -> bool {
    matches!(root.read_opt_file(path), Ok(Some(file)) if file.mode & 0o200 != 0)
}

fn is_online(root: &Root, mask: &str) -> bool {
    let cpus = CpuSet::parse_kernel_mask(mask).unwrap_or_default();
    read_online(root).is_ok_and(|online| online.intersects(&cpus))
}
