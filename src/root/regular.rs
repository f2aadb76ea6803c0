//! Regular files: no FIFO or device is read or written, and no endless file is read.

use std::fs::File;
use std::io::{self, ErrorKind, Read as _};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use nix::errno::Errno;
use nix::fcntl::{self, OFlag};
use nix::sys::stat::{self, FileStat, Mode, SFlag};

/// Opens FIFOs, devices and terminals without waiting.
pub(super) const AT_ONCE: OFlag = OFlag::O_NONBLOCK.union(OFlag::O_NOCTTY);

pub(super) fn open_component(
    directory: impl AsFd,
    name: &str,
    flags: OFlag,
) -> Result<OwnedFd, Errno> {
    let flags = flags | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    // The mode of a file that is created.
    fcntl::openat(directory, name, flags, Mode::S_IRUSR | Mode::S_IWUSR)
}

pub(super) fn kind(stat: &FileStat) -> SFlag {
    SFlag::from_bits_truncate(stat.st_mode & SFlag::S_IFMT.bits())
}

fn check_regular(file: &File) -> io::Result<FileStat> {
    let stat = stat::fstat(file)?;
    check_kind(&stat)?;
    Ok(stat)
}

fn check_kind(stat: &FileStat) -> io::Result<()> {
    let what = match kind(stat) {
        SFlag::S_IFREG => return Ok(()),
        SFlag::S_IFDIR => return Err(Errno::EISDIR.into()),
        SFlag::S_IFIFO => "a FIFO",
        SFlag::S_IFCHR | SFlag::S_IFBLK => "a device",
        _ => "a socket",
    };
    Err(io::Error::other(format!("is {what}, not a regular file")))
}

/// Fails for a file that is not regular, or has a hard link, which may be outside the root.
pub(super) fn check_writable(file: &File) -> io::Result<FileStat> {
    let stat = check_regular(file)?;
    if stat.st_nlink < 2 {
        Ok(stat)
    } else {
        Err(io::Error::other("has another name (a hard link)"))
    }
}

/// In bytes. `/proc/interrupts` of 8,192 CPUs has 40 MB and a list of them 40 kB; of 2,048 queues on 4,096 CPUs, the
/// record has 30 MB and the threads 2.5 MB. A parsed answer may take thirty times its size.
fn limit(path: &str) -> u64 {
    match path {
        "/proc/interrupts" => 256 << 20,
        _ if path.starts_with("/sys/") || path.starts_with("/proc/irq/") => 1 << 20,
        _ if path.starts_with("/nicpin/") => 4 << 20,
        _ => 64 << 20,
    }
}

/// Returns the mode. `/dev/null`, by which containers mask files, is an empty file.
pub(super) fn check_readable(file: &File, path: &str) -> io::Result<u32> {
    let stat = stat::fstat(file)?;
    if kind(&stat) != SFlag::S_IFCHR || stat.st_rdev != stat::makedev(1, 3) {
        check_kind(&stat)?;
    }
    check_size(u64::try_from(stat.st_size).unwrap_or(u64::MAX), path)?;
    Ok(stat.st_mode & 0o7777)
}

pub(super) fn check_size(bytes: u64, path: &str) -> io::Result<()> {
    let limit = limit(path);
    if bytes <= limit {
        return Ok(());
    }
    Err(io::Error::other(format!(
        "is larger than {} MiB; is it the right file?",
        limit >> 20
    )))
}

pub(super) fn read_whole<T>(
    mut file: &File,
    path: &str,
    keep: impl FnOnce(&[u8]) -> T,
) -> io::Result<(u32, T)> {
    let mode = check_readable(file, path)?;
    // Some kernel files end after the first read (`proc_dointvec`).
    let mut page = [0; 4096];
    let first = loop {
        match file.read(&mut page) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            read => break &page[..read?],
        }
    };
    if first.len() < page.len() && is_printed_at_once(path) {
        return Ok((mode, keep(first)));
    }
    let mut bytes = first.to_vec();
    file.take(limit(path)).read_to_end(&mut bytes)?;
    check_size(bytes.len() as u64, path)?;
    Ok((mode, keep(&bytes)))
}

pub(super) fn text(bytes: &[u8]) -> Arc<str> {
    String::from_utf8_lossy(bytes).into()
}

/// Whether a read that leaves room has reached the end. True for attributes; cgroup files and others of `/proc` are
/// printed line by line, and a read ends before the line for which the kernel's buffer has no room.
fn is_printed_at_once(path: &str) -> bool {
    path.starts_with("/proc/irq/") || path.starts_with("/sys/") && !path.starts_with("/sys/fs/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_any_size_is_read_whole() {
        let file = tempfile::NamedTempFile::new().unwrap();
        for size in [0, 1, 4095, 4096, 4097, 9000] {
            file.as_file().set_len(size).unwrap();
            for path in ["/sys/class/net/eth0/mtu", "/proc/net/dev"] {
                let (_, length) = read_whole(&file.reopen().unwrap(), path, <[u8]>::len).unwrap();
                assert_eq!(length as u64, size, "{path}");
            }
        }
    }
}
