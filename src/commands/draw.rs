//! `nicpin draw`: the machine as an SVG picture.

use std::ffi::OsStr;
use std::time::SystemTime;

use anyhow::{Result, bail};

use crate::cli::{Cli, DrawArgs};
use crate::commands::inputs::{Purpose, UsageError, read_and_plan};
use crate::commands::output;
use crate::draw::picture::Picture;
use crate::draw::svg;
use crate::screen;
use nicpin::read::Wants;
use nicpin::report::exit::Exit;
use nicpin::root::Root;

pub(super) fn run(cli: &Cli, args: &DrawArgs, out: &mut String) -> Result<Exit> {
    let root = Root::open(&cli.root)?;
    let extension =
        |path: &std::path::PathBuf| path.extension().and_then(OsStr::to_str).map(str::to_owned);
    let kind = args.output.as_ref().and_then(extension);
    if let (Some(path), Some(kind @ ("png" | "pdf" | "ps" | "eps"))) =
        (&args.output, kind.as_deref())
    {
        let path = path.display();
        bail!(UsageError::new(format!(
            "{path}: the picture is an SVG; `nicpin draw | rsvg-convert -f {kind} -o {path}` makes this of it \
             (Debian: librsvg2-bin)"
        )));
    }
    let wants = Wants {
        memory: true,
        exclusive: true,
        neighbours: true,
        ..Wants::default()
    };
    let (machine, plan) = read_and_plan(
        Purpose::Compare,
        cli,
        &root,
        &args.select,
        &args.policy,
        wants,
    )?;
    let mut picture = Picture::new(&machine, &plan);
    picture.origin = origin(&root)?;
    picture.lines &= !args.no_lines;
    if args.now || args.planned {
        picture = picture.with_one_scene(args.planned);
    }
    let svg = svg::picture(&picture);
    let svg = screen::printable(&svg);
    match &args.output {
        Some(path) => output::write_file(path, svg.as_bytes(), args.force)?,
        None => out.push_str(&svg),
    }
    Ok(Exit::Planned)
}

/// The kernel's release; of the live machine also its name and the date in UTC, which a picture of a capture does not
/// give away.
fn origin(root: &Root) -> Result<String> {
    let line = |name: &str| root.read_opt(&format!("/proc/sys/kernel/{name}"));
    let release = line("osrelease")?.map(|release| format!("Linux {}", release.trim()));
    let mut words = Vec::new();
    if root.is_real() {
        words.extend(line("hostname")?.map(|host| host.trim().to_owned()));
        words.push(
            humantime::format_rfc3339_seconds(SystemTime::now()).to_string()[..10].to_owned(),
        );
    }
    words.extend(release);
    Ok(words.join(", "))
}
