//! `nicpin check`: is the machine in the planned state.

use anyhow::Result;

use crate::apply::differences;
use crate::cli::{CheckArgs, Cli, ReportFormat};
use crate::commands::{Exit, left_alone, read_and_plan, untold};
use crate::host::{Root, Wants};
use crate::render;
use crate::render::check::{Check, Verdict};

pub(super) fn run(cli: &Cli, args: &CheckArgs, out: &mut String) -> Result<Exit> {
    let root = Root::open(&cli.root)?;
    let (host, plan) = read_and_plan(cli, &root, &args.select, &args.policy, Wants::default())?;
    let (differs, instead) = differences(&root, &host, &plan);
    let (unknown, left_alone) = (untold(&args.select, &plan), left_alone(&args.select, &plan));
    let check = Check::new(&plan, differs, instead, unknown, left_alone);
    if !args.quiet {
        out.push_str(&match args.format {
            ReportFormat::Table => render::check::check(&check),
            ReportFormat::Json => render::json(&check)?,
        });
    }
    Ok(match check.verdict {
        Verdict::Same => Exit::Planned,
        Verdict::Differs => Exit::Differs,
        Verdict::CouldNotTell => Exit::Failed,
    })
}
