//! How each kind of setting is read and written, and what the kernel's errors mean. Plain files need no file here.

mod access;
mod affinity;
pub(crate) mod channels;
mod ntuple;
mod rss;
mod steering;
mod threads;

use std::io;

use nix::errno::Errno::{
    self, EACCES, EAGAIN, EBUSY, EINTR, EIO, ENODEV, ENOENT, ENOMEM, ENXIO, EOVERFLOW, EPERM, EROFS,
};

use self::access::File;
pub(crate) use self::access::{Access, Answer};
pub(crate) use self::affinity::has_write_bits;
use crate::machine::SettingKind;
use crate::report::outcome::Outcome::{self, Refused, Vanished};
use crate::root::{Root, errno_of, errno_words};

pub(crate) fn access(kind: SettingKind) -> &'static dyn Access {
    match kind {
        SettingKind::Vector => &affinity::Affinity,
        SettingKind::Rss => &rss::Table,
        SettingKind::NapiThread => &threads::Thread,
        SettingKind::Rps => &steering::RpsFile,
        SettingKind::Xps => &steering::XpsFile,
        SettingKind::Ntuple => &ntuple::Ntuple,
        SettingKind::RpsFlow | SettingKind::XpsRxqs | SettingKind::Sysctl => &File,
    }
}

/// Explains the kernel's answer to a write (`net-sysfs.c`, `kernel/irq/proc.c`).
pub(crate) fn refusal(
    root: &Root,
    kind: SettingKind,
    path: &str,
    text: &str,
    error: &io::Error,
) -> (Outcome, String) {
    let errno = errno_of(error);
    let answer = |errno| Answer {
        root,
        path,
        text,
        errno,
    };
    let own = errno.and_then(|errno| access(kind).refusal(&answer(errno)));
    let (outcome, why) = own.unwrap_or_else(|| match errno {
        // ENXIO also if an interrupt controller finds no target.
        Some(ENOENT) => (Vanished, NO_FILE),
        Some(ENODEV | ENXIO | EIO) if !root.exists(path) => (Vanished, NO_FILE),
        errno => (Refused, words(errno)),
    });
    (outcome, errno_words(error) + why)
}

const NO_FILE: &str = ": the file no longer exists; fix: run again";

fn words(errno: Option<Errno>) -> &'static str {
    match errno {
        Some(EACCES | EPERM) => {
            ": CAP_NET_ADMIN is needed; fix: run as root, outside any container"
        }
        Some(EROFS) => {
            ": the file is mounted read-only; fix: run outside the container, or without ProtectKernelTunables= in the unit"
        }
        Some(EOVERFLOW) => ": the mask has more CPUs than this kernel; fix: run again",
        Some(EBUSY | EAGAIN | EINTR) => ": an earlier change is still pending; fix: run again",
        Some(ENOMEM) => ": the kernel is out of memory; fix: run again later",
        _ => "; fix: run again, and report it if it happens again",
    }
}

/// `None` if it can be written, or if that may change with the file.
pub(crate) fn why_not_writable(root: &Root, kind: SettingKind, path: &str) -> Option<String> {
    let error = root.check_writable(path).err().filter(|_| kind.is_file())?;
    let (outcome, why) = refusal(root, kind, path, "", &error);
    (outcome == Refused).then_some(why)
}
