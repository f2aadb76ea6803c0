//! `nicpin draw`: the machine as a picture.

use anyhow::Result;

use crate::cli::{Cli, DrawArgs};
use crate::commands::{Exit, output, read_and_plan};
use crate::host::{Root, Wants};
use crate::picture::Picture;
use crate::render;

pub(super) fn run(cli: &Cli, args: &DrawArgs, out: &mut String) -> Result<Exit> {
    let root = Root::open(&cli.root)?;
    let (host, plan) = read_and_plan(cli, &root, &args.select, &args.policy, Wants::default())?;
    let svg = render::svg::picture(&Picture::new(&host, &plan));
    match &args.output {
        Some(path) => output::write_file(path, svg.as_bytes(), args.force)?,
        None => out.push_str(&svg),
    }
    Ok(Exit::Planned)
}
