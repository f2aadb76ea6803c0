//! The file format of a capture: a [`Tree`] as a tar archive compressed with gzip.

use std::io::{self, BufReader, ErrorKind, Read, Seek, SeekFrom};
use std::str;

use bstr::{ByteSlice as _, ByteVec as _};
use flate2::read::GzDecoder;
use flate2::{Compression, GzBuilder};
use tar::EntryType::{Directory, Regular, Symlink, XGlobalHeader};
use tar::Header;

use self::ArchiveError::{Invalid, NotCapture, TooLarge, Unsupported};
use crate::root::tree::{ABOUT, Entry, MAX_SIZE, TOO_MUCH, Tree, TreeFile};

pub const SCHEMA: &str = "nicpin.capture/2";
/// Uncompressed bytes. A machine with 4096 CPUs needs a fifth of it.
const LIMIT: u64 = 128 << 20;
/// Bytes of a file that is not UTF-8: its text may be three times as large.
const NO_TEXT: usize = 1 << 20;
const PATH_MAX: usize = 4096;
const SHOWN: usize = 100;
const TOO_LONG: &str = "is longer than a path may be";

#[derive(Debug, thiserror::Error)]
pub(crate) enum ArchiveError {
    #[error("not a capture: {0}; fix: name a directory, or a file made by `nicpin capture`")]
    NotCapture(&'static str),
    #[error("damaged or truncated ({0}); fix: copy or capture it again")]
    Damaged(#[from] io::Error),
    #[error("larger than {} MB uncompressed, which no machine needs; fix: capture it again", LIMIT >> 20)]
    TooLarge,
    #[error("not a valid capture: `{entry}` {reason}; fix: capture it again")]
    Invalid { entry: String, reason: &'static str },
    #[error(
        "the format `{0}` is not supported; fix: use the version of nicpin that made the capture"
    )]
    Unsupported(String),
}

impl Tree {
    pub(crate) fn unpack(archive: &mut impl Read) -> Result<Self, ArchiveError> {
        Self::unpack_at_most(archive, LIMIT)
    }

    fn unpack_at_most(archive: &mut impl Read, limit: u64) -> Result<Self, ArchiveError> {
        let mut magic = Vec::new();
        archive.take(2).read_to_end(&mut magic)?;
        if magic != [0x1f, 0x8b] {
            return Err(NotCapture("it is not compressed with gzip"));
        }
        // tar reads headers of 512 bytes.
        let mut unpacked = BufReader::new(GzDecoder::new(magic.chain(archive))).take(limit);
        // Read to the end, where gzip has its checksum.
        let tree = Self::from_tar(&mut unpacked).and_then(|tree| {
            io::copy(&mut unpacked, &mut io::sink())?;
            Ok(tree)
        });
        // An archive that is cut off at the limit also looks damaged.
        if unpacked.limit() == 0 {
            return Err(TooLarge);
        }
        let tree = tree?;
        let about = tree.file(ABOUT).ok();
        let kind = about.map(|about| about.text.lines().next().unwrap_or_default());
        match kind.filter(|kind| *kind != SCHEMA) {
            Some(kind) => Err(Unsupported(kind.chars().take(SHOWN).collect())),
            None => Ok(tree),
        }
    }

    fn from_tar(bytes: &mut impl Read) -> Result<Self, ArchiveError> {
        let mut tree = Self::default();
        let mut archive = tar::Archive::new(Forward { bytes, at: 0 });
        for entry in archive.entries_with_seek()? {
            tree.add_entry(entry?)?;
        }
        if matches!(tree.entry(""), Some(Entry::Directory(names)) if names.is_empty()) {
            Err(NotCapture("it is empty"))
        } else {
            Ok(tree)
        }
    }

    fn add_entry(&mut self, mut entry: tar::Entry<'_, impl Read>) -> Result<(), ArchiveError> {
        let name = entry.path_bytes().into_owned();
        let invalid = |reason| Invalid {
            entry: name.chars().take(SHOWN).collect(),
            reason,
        };
        let path = tree_path(&name).map_err(invalid)?;
        let added = match entry.header().entry_type() {
            // The first entry of `git archive`.
            XGlobalHeader => return Ok(()),
            _ if path.is_empty() => return Ok(()),
            Directory => return self.add_directory(&path).map_err(invalid),
            Regular if entry.size() > MAX_SIZE as u64 => Err(TOO_MUCH),
            Regular => {
                let mut bytes = vec![0; usize::try_from(entry.size()).unwrap_or(MAX_SIZE)];
                entry.read_exact(&mut bytes)?;
                let mode = entry.header().mode()? & 0o7777;
                let text = String::from_utf8(bytes).or_else(|error| match error.as_bytes() {
                    bytes if bytes.len() > NO_TEXT => Err("is large and not a text"),
                    bytes => Ok(String::from_utf8_lossy(bytes).into_owned()),
                });
                text.map(|text| {
                    Entry::File(TreeFile {
                        mode,
                        text: text.into(),
                    })
                })
            }
            Symlink => match entry.link_name_bytes().unwrap_or_default() {
                target if target.len() > PATH_MAX => Err(TOO_LONG),
                target => Ok(Entry::Link(String::from_utf8_lossy(&target).into_owned())),
            },
            _ => Err("is not a file, directory or symbolic link"),
        };
        added
            .and_then(|entry| self.add(&path, entry))
            .map_err(invalid)
    }

    /// Packs the tree; equal trees give equal bytes.
    pub fn pack(&self) -> io::Result<Vec<u8>> {
        let mut archive = tar::Builder::new(
            GzBuilder::new()
                .mtime(0)
                .write(Vec::new(), Compression::best()),
        );
        for (path, entry) in self.iter() {
            let (kind, mode, size) = match entry {
                // 0755: a user who unpacks the archive can remove it again.
                Entry::Directory(_) => (Directory, 0o755, 0),
                Entry::File(file) => (Regular, file.mode, file.text.len()),
                Entry::Link(_) => (Symlink, 0o777, 0),
            };
            let mut header = Header::new_gnu();
            header.set_mtime(0);
            header.set_uid(0);
            header.set_gid(0);
            header.set_entry_type(kind);
            header.set_mode(mode);
            header.set_size(size as u64);
            let path = &path[1..];
            match entry {
                Entry::Directory(_) => {
                    archive.append_data(&mut header, format!("{path}/"), io::empty())
                }
                Entry::File(file) => archive.append_data(&mut header, path, file.text.as_bytes()),
                Entry::Link(target) => archive.append_link(&mut header, path, target),
            }?;
        }
        archive.into_inner()?.finish()
    }
}

/// A stream in which tar can seek. Otherwise tar skips by reading into a buffer of 32 KiB, which it zeroes for each
/// entry: most of the time of `nicpin fleet` with 10,000 captures.
struct Forward<R> {
    bytes: R,
    at: u64,
}

impl<R: Read> Read for Forward<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.bytes.read(buffer)?;
        self.at += read as u64;
        Ok(read)
    }
}

impl<R: Read> Seek for Forward<R> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let SeekFrom::Current(skip) = to else {
            return Err(ErrorKind::Unsupported.into());
        };
        let skip = u64::try_from(skip).map_err(io::Error::other)?;
        if io::copy(&mut self.bytes.by_ref().take(skip), &mut io::sink())? < skip {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        self.at += skip;
        Ok(self.at)
    }
}

/// `/sys/class` for an archive's `./sys/class/`.
fn tree_path(name: &[u8]) -> Result<String, &'static str> {
    if name.len() > PATH_MAX {
        return Err(TOO_LONG);
    }
    if name.starts_with(b"/") {
        return Err("is an absolute path");
    }
    let mut path = Vec::with_capacity(name.len() + 1);
    for part in name.split(|&byte| byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." => return Err("leaves the tree"),
            _ => {
                path.push(b'/');
                path.extend(part);
            }
        }
    }
    Ok(path.into_string_lossy())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::root::tree::tests::tree;

    #[test]
    fn an_archive_is_read_back_unchanged() {
        let packed = tree().pack().unwrap();
        assert_eq!(Tree::unpack(&mut packed.as_slice()).unwrap(), tree());
        assert_eq!(packed, tree().pack().unwrap());
    }

    #[test]
    fn the_uncompressed_size_is_limited() {
        let packed = tree().pack().unwrap();
        assert!(matches!(
            Tree::unpack_at_most(&mut packed.as_slice(), 4096),
            Err(ArchiveError::TooLarge)
        ));
    }

    #[test]
    fn an_archive_truncated_at_any_length_is_an_error() {
        let packed = tree().pack().unwrap();
        for length in 0..packed.len() {
            assert!(
                Tree::unpack(&mut &packed[..length]).is_err(),
                "{length} of {} bytes",
                packed.len()
            );
        }
    }
}
