//! What commands write: reports in the requested format, and files that the user names, which are not below --root.

use std::fs::OpenOptions;
use std::io::{self, ErrorKind, Write as _};
use std::path::Path;

use anyhow::{Result, bail};
use serde::Serialize;

use crate::cli::ReportArgs;
use crate::render;
use crate::root::errno_words;

/// A report as JSON or as the table that `table` makes.
pub(super) fn report<T: Serialize>(
    args: ReportArgs,
    report: &T,
    table: impl FnOnce(&T) -> String,
) -> Result<String> {
    if args.is_json() { Ok(render::json(report)?) } else { Ok(table(report)) }
}

/// Writes to standard output and flushes; `false` if the reader closed the pipe.
pub(super) fn print(bytes: &[u8]) -> Result<bool> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(error) => bail!("standard output: {}", errno_words(&error)),
    }
}

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
