//! `nicpin capture`: record this machine as one file.

use std::io::{self, IsTerminal as _};
use std::mem::take;
use std::path::PathBuf;

use anyhow::{Result, bail, ensure};
use clap::Args;

use crate::capture::Capture;
use crate::commands::args::General;
use crate::commands::inputs::{require_interfaces, require_vectors};
use crate::commands::output::{named, print, say, write_file};
use crate::screen::group_sorted;
use nicpin::machine::wording::count;
use nicpin::report::exit::Exit;

#[derive(Args)]
pub struct CaptureArgs {
    /// The file to write; by default, and for `-`, standard output, unless it is a terminal
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Replace the file if it exists
    #[arg(long)]
    force: bool,

    /// Include host name, hardware addresses and time; rename no interface
    #[arg(long)]
    identify: bool,

    /// Also replace the names of interfaces and of the host
    #[arg(long, conflicts_with = "identify")]
    redact_names: bool,
}

pub fn run(cli: &General, args: &CaptureArgs, out: &mut String) -> Result<Exit> {
    let output = named(args.output.as_ref());
    ensure!(
        output.is_some() || !io::stdout().is_terminal(),
        "a capture is binary and is not printed on a terminal; fix: name a file with -o FILE, or redirect standard output"
    );
    let mut capture = Capture::read(&cli.root)?;
    if args.identify {
        capture.identify()?;
    } else {
        capture.redact(args.redact_names)?;
    }
    let bytes = capture.tree.pack()?;
    if let Some(path) = output {
        write_file(path, &bytes, args.force)?;
        let numbers = [
            count(capture.interfaces(), "interface"),
            count(capture.files(), "file"),
            count(bytes.len(), "byte"),
        ];
        *out += &format!("{}: {}\n", path.display(), numbers.join(", "));
    } else {
        print(&bytes)?;
    }
    if !cli.quiet {
        unreadable_files(&capture.refused)
            .chain(take(&mut capture.redacted))
            .for_each(|line| say(&line));
    }
    if let Some(error) = capture.unreadable {
        bail!("{error}; the capture holds only what was read before this error");
    }
    if capture.interfaces() == 0 {
        require_interfaces(&capture.root, false, &capture.machine)?;
    }
    require_vectors(&capture.root, &capture.machine)?;
    Ok(Exit::Planned)
}

/// A device has one `affinity_hint` per IRQ: one line names all files of a kind.
fn unreadable_files(refused: &[String]) -> impl Iterator<Item = String> {
    let kinds = group_sorted(refused.iter().map(|path| (path.rsplit('/').next(), path)));
    kinds.into_values().map(|paths| {
        let others = match paths.len() {
            1 => "is".to_owned(),
            many => format!("and {} others are", many - 1),
        };
        format!(
            "{} {others} left out: permission denied; fix: run as root to include them",
            paths[0]
        )
    })
}
