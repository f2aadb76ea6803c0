//! Files that commands write for the user, as the user: no files of the machine that is read.

use std::fs::OpenOptions;
use std::io::{self, ErrorKind, Write as _};
use std::path::Path;

use anyhow::Result;

use crate::root::errno_words;

/// Writes a whole file; one that is there is replaced with `force` only.
pub(super) fn write_file(path: &Path, bytes: &[u8], force: bool) -> Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create(force).truncate(force).create_new(!force);
    let said = |error: &io::Error| match error.kind() {
        ErrorKind::AlreadyExists => format!("{}: exists; --force replaces it", path.display()),
        _ => format!("{}: {}", path.display(), errno_words(error)),
    };
    let written = options.open(path).and_then(|mut file| {
        file.write_all(bytes).inspect_err(|_| {
            // Half a file is none; the error that is told is the first.
            let _ = std::fs::remove_file(path);
        })
    });
    written.map_err(|error| anyhow::anyhow!(said(&error)))
}
