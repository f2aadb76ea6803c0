//! Reads and writes one setting in the way of its kind, and explains the kernel's errors.

use std::io;

use nix::errno::Errno::{
    self, EACCES, EAGAIN, EBUSY, EINTR, EIO, ENODEV, ENOENT, ENOMEM, ENXIO, EOVERFLOW, EPERM, EROFS,
};

use crate::kinds::{Access, Answer, Meaning, SettingKind, on_or_off};
use crate::machine::{Channels, Rss};
use crate::plan::Write;
use crate::read::files::read_affinity;
use crate::read::topology::read_online;
use crate::read::{ethtool, threads};
use crate::report::outcome::Outcome::{self, Managed, Refused, Vanished};
use crate::root::{FileError, Root, errno_of, errno_words};

/// `None` if the setting is absent.
pub(super) fn read(root: &Root, write: &Write) -> Result<Option<String>, FileError> {
    let interface = &write.interface;
    Ok(match write.kind.access {
        Access::File => root.read_opt(&write.path)?,
        Access::AffinityFile => read_affinity(root, &write.path)?.map(|file| file.text.to_string()),
        Access::Thread => threads::affinity(root, interface, write.number)?,
        Access::RssTable => ethtool::rss(root, interface)?.map(|rss| rss.to_setting()),
        Access::Ntuple => ethtool::ntuple(root, interface)?.map(|on| on_or_off(on).to_owned()),
        Access::Channels => ethtool::channels(root, interface)?.0.map(Channels::to_text),
    })
}

pub(super) fn set(root: &Root, write: &Write, text: &str) -> io::Result<()> {
    let interface = &write.interface;
    let wrong = || io::Error::other(format!("not {}", write.kind.form.expected()));
    match write.kind.access {
        Access::File | Access::AffinityFile => root.write(&write.path, text),
        Access::Thread => threads::set_affinity(root, interface, write.number, text),
        Access::RssTable => {
            let table = Rss::parse(text).ok_or_else(wrong)?;
            ethtool::set_rss(root, interface, &table)
        }
        Access::Ntuple => ethtool::set_ntuple(root, interface, text == on_or_off(true)),
        Access::Channels => {
            let channels = Channels::parse(text).ok_or_else(wrong)?;
            ethtool::set_channels(root, interface, &channels)
        }
    }
}

/// Explains the kernel's answer to a write (`net-sysfs.c`, `kernel/irq/proc.c`).
pub(super) fn refusal(
    root: &Root,
    kind: SettingKind,
    path: &str,
    text: &str,
    error: &io::Error,
) -> (Outcome, String) {
    let errno = errno_of(error);
    let exists = || root.exists(path);
    let own = errno.and_then(|errno| {
        (kind.meaning)(&Answer {
            errno,
            text,
            exists: &exists,
            has_write_bits: &|| has_write_bits(root, path),
            refuses_same: &|| {
                let held = root.read_text(path);
                held.is_ok_and(|held| root.write(path, held.trim()).is_err())
            },
            online: &|| read_online(root).ok(),
        })
    });
    let (outcome, why) = match own {
        Some(Meaning::Unmovable(why)) => (Managed, why),
        Some(Meaning::Refused(why)) => (Refused, why),
        Some(Meaning::Vanished(why)) => (Vanished, why),
        None => match errno {
            // ENXIO also if an interrupt controller finds no target.
            Some(ENOENT) => (Vanished, NO_FILE),
            Some(ENODEV | ENXIO | EIO) if !exists() => (Vanished, NO_FILE),
            errno => (Refused, words(errno)),
        },
    };
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
pub(super) fn why_not_writable(root: &Root, kind: SettingKind, path: &str) -> Option<String> {
    let error = root.check_writable(path).err().filter(|_| kind.is_file())?;
    let (outcome, why) = refusal(root, kind, path, "", &error);
    (outcome == Refused).then_some(why)
}

pub(super) fn has_write_bits(root: &Root, path: &str) -> bool {
    matches!(root.read_opt_file(path), Ok(Some(file)) if file.mode & 0o200 != 0)
}
