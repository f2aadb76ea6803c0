//! `nicpin draw`: the machine as an SVG picture.

use std::ffi::OsStr;
use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::Args;

use crate::commands::args::{General, TargetArgs};
use crate::commands::inputs::{Purpose, read_and_plan, usage};
use crate::commands::output::{named, write_file};
use crate::commands::plan::{exit, say_unplanned};
use crate::draw::Picture;
use crate::screen;
use crate::start::seconds_since_1970;
use nicpin::machine::wording::word;
use nicpin::read::ReadOptions;
use nicpin::report::exit::Exit;
use nicpin::root::Root;

#[derive(Args)]
pub struct DrawArgs {
    #[command(flatten)]
    target: TargetArgs,

    /// The file to write; by default, and for `-`, standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Replace the file if it exists
    #[arg(long)]
    force: bool,

    /// Draw only where the queues are now
    #[arg(long)]
    now: bool,

    /// Draw only where the plan wants the queues
    #[arg(long, conflicts_with = "now")]
    planned: bool,

    /// Draw no lines from queues to CPUs
    #[arg(long)]
    no_lines: bool,
}

pub fn run(cli: &General, args: &DrawArgs, out: &mut String) -> Result<Exit> {
    let root = Root::open(&cli.root)?;
    let output = named(args.output.as_ref());
    if let Some(path) = output {
        if let Some(kind @ ("png" | "pdf" | "ps" | "eps")) =
            path.extension().and_then(OsStr::to_str)
        {
            let path = path.to_string_lossy();
            let to = word(&path);
            bail!(usage(format!(
                "{path}: the picture is an SVG; `nicpin draw ... | rsvg-convert -f {kind} -o {to}` makes this of it \
                 (Debian: librsvg2-bin)"
            )));
        }
    }
    let options = ReadOptions {
        memory: true,
        exclusive: true,
        neighbours: true,
        ..ReadOptions::default()
    };
    let (machine, plan) = read_and_plan(Purpose::Compare, cli, &root, &args.target, options)?;
    let mut picture = Picture::new(&machine, &plan);
    picture.origin = origin(&root)?;
    picture.lines &= !args.no_lines;
    if args.now || args.planned {
        picture.keep_state(args.planned);
    }
    let svg = picture.svg();
    let svg = screen::printable(&svg);
    match output {
        Some(path) => write_file(path, svg.as_bytes(), args.force)?,
        None => *out += &svg,
    }
    say_unplanned(cli, &plan);
    Ok(exit(&root, &plan, false))
}

/// The kernel's release; for the live machine also its name and the date in UTC, which a picture of a capture does not
/// reveal.
fn origin(root: &Root) -> Result<String> {
    let line = |name: &str| root.read_opt(&format!("/proc/sys/kernel/{name}"));
    let release = line("osrelease")?.map(|release| format!("Linux {}", release.trim()));
    let mut words = Vec::new();
    if root.is_real() {
        words.extend(line("hostname")?.map(|host| host.trim().to_owned()));
        let now = screen::date(seconds_since_1970());
        words.extend(now.map(|now| now[..10].to_owned()));
    }
    words.extend(release);
    Ok(words.join(", "))
}
