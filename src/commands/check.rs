//! `nicpin check`: compare the machine with the plan.

use anyhow::Result;

use crate::apply;
use crate::cli::{CheckArgs, Cli};
use crate::commands::inputs::{Purpose, read_and_plan};
use crate::commands::output;
use crate::read::Wants;
use crate::render;
use crate::report::exit::Exit;
use crate::root::Root;

pub(super) fn run(cli: &Cli, args: &CheckArgs, out: &mut String) -> Result<Exit> {
    let root = Root::open(&cli.root)?;
    let (machine, plan) =
        read_and_plan(Purpose::Look, cli, &root, &args.select, &args.policy, Wants::default())?;
    let check = apply::check(&root, &machine, &plan, args.select.is_given());
    out.push_str(&output::report(args.report, &check, render::check::check)?);
    Ok(check.exit())
}
