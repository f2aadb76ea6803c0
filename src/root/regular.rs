//! Regular files: no FIFO or device is read or written, and no endless file is read.

use std::fs::File;
use std::io::{self, Read as _};

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::stat::{self, FileStat, SFlag};

/// For files that may turn out to be FIFOs, devices or terminals: opening them does not wait.
pub(super) const AT_ONCE: OFlag = OFlag::O_NONBLOCK.union(OFlag::O_NOCTTY);

/// An error for a file that is not regular or too large.
pub(super) fn check_readable(file: &File, path: &str) -> io::Result<()> {
    let stat = stat::fstat(file)?;
    check_regular(&stat)?;
    check_size(usize::try_from(stat.st_size).unwrap_or(usize::MAX), path)
}

/// An error for a file that is not regular, or has another name, which may be outside the root.
pub(super) fn check_writable(stat: &FileStat) -> io::Result<()> {
    check_regular(stat)?;
    if stat.st_nlink < 2 {
        Ok(())
    } else {
        Err(io::Error::other("has another name (a hard link)"))
    }
}

pub(super) fn kind(stat: &FileStat) -> SFlag {
    SFlag::from_bits_truncate(stat.st_mode & SFlag::S_IFMT.bits())
}

fn check_regular(stat: &FileStat) -> io::Result<()> {
    let what = match kind(stat) {
        SFlag::S_IFREG => return Ok(()),
        SFlag::S_IFDIR => return Err(Errno::EISDIR.into()),
        SFlag::S_IFIFO => "a FIFO",
        SFlag::S_IFCHR | SFlag::S_IFBLK => "a device",
        _ => "a socket",
    };
    Err(io::Error::other(format!("is {what}, not a regular file")))
}

/// An error for a file that is larger than any of its kind. A list of 8,192 CPUs has 40 kB; the record and the plan of
/// 4,096 queues have a few MB, and `/proc/interrupts` has 40 MB with as many CPUs.
fn check_size(bytes: usize, path: &str) -> io::Result<()> {
    let limit = match path {
        "/proc/interrupts" => 256,
        _ if has_one_value(path) => 1,
        _ => 64,
    };
    if bytes <= limit << 20 {
        return Ok(());
    }
    Err(io::Error::other(format!(
        "is larger than {limit} MiB; is it the right file?"
    )))
}

fn has_one_value(path: &str) -> bool {
    path.starts_with("/sys/") || path.starts_with("/proc/irq/")
}

/// Reads a whole file, opened [`AT_ONCE`]. Files with one value end with the first short read: sysfs returns at most a
/// page at a time (`kernfs_file_read_iter`), `/proc/irq` the whole value. Another read for the end would be a third of
/// the work, and so would the check of a file that has such a value: a FIFO or device is found by having none, or more.
pub(super) fn read_bytes(file: &mut File, path: &str, buffer: &mut Vec<u8>) -> io::Result<usize> {
    const PAGE: usize = 4096;
    buffer.resize(buffer.len().max(PAGE), 0);
    let first = if has_one_value(path) {
        read_some(file, &mut buffer[..PAGE])
    } else {
        Ok(0)
    };
    if let Ok(length @ 1..PAGE) = first {
        return Ok(length);
    }
    check_readable(file, path)?;
    let mut length = first?;
    loop {
        check_size(length, path)?;
        if length == buffer.len() {
            buffer.resize(2 * length, 0);
        }
        match read_some(file, &mut buffer[length..])? {
            0 => return Ok(length),
            more => length += more,
        }
    }
}

/// As [`read_bytes`], a text.
pub(super) fn read_text(file: &mut File, path: &str) -> io::Result<String> {
    let mut buffer = Vec::new();
    let length = read_bytes(file, path, &mut buffer)?;
    buffer.truncate(length);
    String::from_utf8(buffer).map_err(|_| io::Error::other("is not UTF-8 text"))
}

fn read_some(file: &mut File, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match file.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}
