//! `nicpin draw`: the machine as an SVG picture.

use anyhow::Result;

use crate::cli::{Cli, DrawArgs};
use crate::commands::inputs::{Purpose, read_and_plan};
use crate::commands::output;
use crate::read::Wants;
use crate::render;
use crate::report::exit::Exit;
use crate::report::picture::Picture;
use crate::root::Root;

pub(super) fn run(cli: &Cli, args: &DrawArgs, out: &mut String) -> Result<Exit> {
    let root = Root::open(&cli.root)?;
    let (machine, plan) =
        read_and_plan(Purpose::Look, cli, &root, &args.select, &args.policy, Wants::default())?;
    let svg = render::svg::picture(&Picture::new(&machine, &plan));
    match &args.output {
        Some(path) => output::write_file(path, svg.as_bytes(), args.force)?,
        None => out.push_str(&svg),
    }
    Ok(Exit::Planned)
}
