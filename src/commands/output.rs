//! Reports, messages, and files that the user names, which are not below --root. All text for people is printed here,
//! without control characters of other origin.

use std::fs::{File, OpenOptions, Permissions, create_dir, remove_file, rename};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::{env, process};

use anyhow::{Result, bail};
use clap::Command;
use clap::error::ContextKind;
use itertools::Itertools as _;
use nix::errno::Errno;
use nix::libc::{O_NOFOLLOW, O_NONBLOCK};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use serde::Serialize;

use crate::commands::args::ReportArgs;
use crate::screen::page::{Page, Screen};
use crate::screen::{self, message, printable, text_if};
use nicpin::report::exit::{ERROR_SCHEMA, Exit};
use nicpin::root::{errno_words, remove_left};

pub fn report<T: Serialize>(
    args: ReportArgs,
    report: &T,
    table: impl FnOnce(&T) -> Page,
) -> Result<String> {
    if args.is_json() {
        Ok(printable(&screen::json(report)?).into_owned())
    } else {
        Ok(table(report).show(screen()))
    }
}

/// `says_failures`: also on standard error, since `--quiet` suppresses the report.
pub fn report_and_say<T: Serialize>(
    says_failures: bool,
    args: ReportArgs,
    report: &T,
    table: impl Fn(&T) -> Page,
) -> Result<String> {
    if says_failures {
        table(report).failures.iter().for_each(|text| say(text));
    }
    self::report(args, report, table)
}

/// Standard output: 60 to 200 columns of its terminal; coloured on a terminal, unless `NO_COLOR` is set.
pub fn screen() -> Screen {
    let stdout = io::stdout();
    let width = terminal_size::terminal_size_of(&stdout)
        .map(|(width, _)| usize::from(width.0).clamp(60, 200));
    let colour = anstream::AutoStream::choice(&stdout) != anstream::ColorChoice::Never;
    Screen {
        width: width.unwrap_or(Screen::default().width),
        colour,
    }
}

pub fn print(mut bytes: &[u8]) -> Result<bool> {
    let stdout = io::stdout().lock();
    while !bytes.is_empty() {
        match nix::unistd::write(&stdout, bytes) {
            Ok(written) => bytes = &bytes[written..],
            Err(Errno::EINTR) => {}
            // Another process that shares the pipe has made it non-blocking.
            Err(Errno::EAGAIN) => {
                let mut room = [PollFd::new(stdout.as_fd(), PollFlags::POLLOUT)];
                let _ = poll(&mut room, PollTimeout::NONE);
            }
            Err(Errno::EPIPE) => return Ok(false),
            Err(error) => bail!("standard output: {}", errno_words(&error.into())),
        }
    }
    Ok(true)
}

/// Takes `-` for standard output, as without the option.
pub fn named(file: Option<&PathBuf>) -> Option<&PathBuf> {
    file.filter(|file| *file != Path::new("-"))
}

/// Fails where [`write_file`] would.
pub fn check_new(path: &Path, force: bool) -> Result<()> {
    let wrong = match path.symlink_metadata().map(|found| found.file_type()) {
        _ if path == Path::new("-") => {
            "is not the name of a file; fix: use ./- for one of this name"
        }
        Ok(_) if !force => "file exists; fix: use --force to replace it",
        Ok(kind) if kind.is_symlink() => {
            "is a symbolic link, which is not replaced; fix: name the file that it leads to"
        }
        Ok(kind) if kind.is_fifo() || kind.is_socket() => {
            "is a FIFO or a socket, not a regular file"
        }
        _ => return Ok(()),
    };
    bail!("{}: {wrong}", path.display())
}

/// Replaces an existing file only with `force`, and keeps its mode.
///
/// A regular file is never incomplete: it is written beside its name first. A device is written to, and never removed.
/// A symbolic link is an error, and so is a FIFO: a user who may write to the directory could make nicpin wait forever.
pub fn write_file(path: &Path, bytes: &[u8], force: bool) -> Result<()> {
    write(path, bytes, force, None)
}

/// Writes for other users to read, with mode 0644; replaces an existing file as [`write_file`] does.
pub fn publish(path: &Path, bytes: &[u8]) -> Result<()> {
    write(path, bytes, true, Some(Permissions::from_mode(0o644)))
}

pub fn make_directory(path: &Path) -> Result<()> {
    match create_dir(path) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => path_error(path, &error),
        _ => Ok(()),
    }
}

fn path_error(path: &Path, error: &io::Error) -> Result<()> {
    bail!("{}: {}", path.display(), errno_words(error))
}

pub fn read_published(path: &Path) -> Option<String> {
    let is_file = path.symlink_metadata().is_ok_and(|found| found.is_file());
    let file = open_unfollowed(path, OpenOptions::new().read(true)).ok();
    let mut text = String::new();
    let read = file
        .filter(|_| is_file)?
        .take(MOST_PUBLISHED)
        .read_to_string(&mut text);
    read.is_ok().then_some(text)
}

/// Bytes: much more than the metrics of the largest machine.
const MOST_PUBLISHED: u64 = 16 << 20;

/// Neither follows a link nor waits for a FIFO.
fn open_unfollowed(path: &Path, how: &mut OpenOptions) -> io::Result<File> {
    how.custom_flags(O_NOFOLLOW | O_NONBLOCK).open(path)
}

fn write(path: &Path, bytes: &[u8], force: bool, mode: Option<Permissions>) -> Result<()> {
    check_new(path, force)?;
    let found = path.symlink_metadata().ok();
    let written = if found.as_ref().is_some_and(|found| !found.is_file()) {
        open_unfollowed(path, OpenOptions::new().write(true))
            .and_then(|mut file| file.write_all(bytes))
    } else {
        let mode = mode.or(found.map(|found| found.permissions()));
        replace(path, bytes, mode)
    };
    written.or_else(|error| path_error(path, &error))
}

fn replace(path: &Path, bytes: &[u8], permissions: Option<Permissions>) -> io::Result<()> {
    let name = path.file_name().ok_or(ErrorKind::IsADirectory)?;
    let above = path
        .parent()
        .filter(|above| *above != Path::new(""))
        .unwrap_or(".".as_ref());
    let above = OpenOptions::new().read(true).open(above);
    // A stale temporary file is harmless.
    if let (Some(name), Ok(above)) = (name.to_str(), above) {
        let _ = remove_left(&above.into(), &format!("{name}."), ".new");
    }
    let mut name = name.to_owned();
    name.push(format!(".{}.new", process::id()));
    let new = path.with_file_name(name);
    let mut file = File::create_new(&new)?;
    let write = || {
        file.write_all(bytes)?;
        if let Some(permissions) = permissions {
            file.set_permissions(permissions)?;
        }
        file.sync_all()?;
        rename(&new, path)
    };
    // The error of the write is reported, not that of the removal.
    write().inspect_err(|_| _ = remove_file(&new))
}

/// A run of the watcher has none: the watcher reports the run's messages as its own.
fn speaker() -> &'static str {
    let is_run = env::args_os()
        .nth(1)
        .is_some_and(|word| word == "watch-run");
    text_if(!is_run, "nicpin: ")
}

/// Only the message is lost if standard error is closed.
pub fn say(text: &str) {
    let _ = writeln!(io::stderr(), "{}{}", speaker(), message(text));
}

/// `json`: also prints the error as JSON, without the usage.
pub fn say_usage(mut error: clap::Error, json: bool) {
    // clap has no other way to print its errors without this word.
    let said = |error: &clap::Error| {
        let text = error.to_string();
        text.strip_prefix("error: ").unwrap_or(&text).to_owned()
    };
    let _ = write!(io::stderr(), "{}{}", speaker(), printable(&said(&error)));
    if json {
        error.remove(ContextKind::Usage);
        let reason = match error.remove(ContextKind::Custom) {
            Some(reason) => reason.to_string(),
            // Without `--help`, clap does not advise to try it.
            None => said(&error.with_cmd(&Command::new("").disable_help_flag(true))),
        };
        let reason = reason.split_whitespace().join(" ");
        say_as_json(&reason, Exit::Usage as u8);
    }
}

pub fn say_as_json(text: &str, exit: u8) {
    let error = ErrorDocument {
        schema: ERROR_SCHEMA,
        exit,
        error: &message(text),
    };
    if let Ok(line) = serde_json::to_string(&error) {
        // An error cannot be reported.
        let _ = print(format!("{}\n", printable(&line)).as_bytes());
    }
}

#[derive(Serialize)]
struct ErrorDocument<'a> {
    schema: &'static str,
    exit: u8,
    error: &'a str,
}
