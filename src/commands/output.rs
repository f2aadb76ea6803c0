//! Files that the user names for output: written with the user's rights, and not below --root.

use std::fs::OpenOptions;
use std::io::{self, ErrorKind, Write as _};
use std::path::Path;

use anyhow::Result;

use crate::root::errno_words;

/// Writes a file; an existing one is replaced only with `force`.
pub(super) fn write_file(path: &Path, bytes: &[u8], force: bool) -> Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create(force).truncate(force).create_new(!force);
    let message = |error: &io::Error| match error.kind() {
        ErrorKind::AlreadyExists => format!("{}: file exists; use --force to replace it", path.display()),
        _ => format!("{}: {}", path.display(), errno_words(error)),
    };
    let written = options.open(path).and_then(|mut file| {
        file.write_all(bytes).inspect_err(|_| {
            // Leave no partial file. The error of the write is reported, not that of the removal.
            let _ = std::fs::remove_file(path);
        })
    });
    written.map_err(|error| anyhow::anyhow!(message(&error)))
}
