//! `nicpin check`: compare the machine with the plan.

use anyhow::Result;

use crate::apply;
use crate::cli::{CheckArgs, Cli};
use crate::commands::inputs::{Purpose, read_and_plan, require_interfaces};
use crate::commands::output;
use crate::read::Wants;
use crate::render;
use crate::report::check::Check;
use crate::report::exit::Exit;
use crate::root::Root;

pub(super) fn run(cli: &Cli, args: &CheckArgs, out: &mut String) -> Result<Exit> {
    let root = Root::open(&cli.root)?;
    let (machine, plan) =
        read_and_plan(Purpose::Look, cli, &root, &args.select, &args.policy, Wants::default())?;
    require_interfaces(&root, &machine, &plan, &args.select)?;
    let mut check = apply::check(&root, &machine, &plan, args.select.is_given());
    if args.strict {
        check = check.strict();
    }
    let table = |check: &Check| render::check::check(check, &plan.host, cli.verbose);
    out.push_str(&output::report(args.report, &check, table)?);
    Ok(check.exit())
}
