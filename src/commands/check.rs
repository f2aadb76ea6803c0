//! `nicpin check`: compare the machine with the plan.

use anyhow::Result;

use crate::apply::{Record, differences};
use crate::cli::{CheckArgs, Cli, ReportFormat};
use crate::commands::inputs::read_and_plan;
use crate::commands::unplanned::{left_alone, undetermined};
use crate::machine::Machine;
use crate::plan::{Note, Plan};
use crate::read::Wants;
use crate::render;
use crate::report::check::Check;
use crate::report::check::Unplannable;

use crate::report::exit::Exit;
use crate::root::Root;

pub(super) fn run(cli: &Cli, args: &CheckArgs, out: &mut String) -> Result<Exit> {
    let root = Root::open(&cli.root)?;
    let (machine, plan) = read_and_plan(cli, &root, &args.select, &args.policy, Wants::default())?;
    let (differs, fallbacks) = differences(&root, &machine, &plan);
    let (mut unknown, left_alone) = (undetermined(&args.select, &plan), left_alone(&args.select, &plan));
    if args.select.selectors.is_empty() {
        unknown.extend(without_recorded_vectors(&root, &machine, &plan));
    }
    let check = Check::new(&plan, differs, fallbacks, unknown, left_alone);
    if !args.quiet {
        out.push_str(&match args.format {
            ReportFormat::Table => render::check::check(&check),
            ReportFormat::Json => render::json(&check)?,
        });
    }
    Ok(check.exit())
}

/// Interfaces that are up and have no vectors, although an earlier apply recorded some: their state cannot be
/// determined.
fn without_recorded_vectors(root: &Root, machine: &Machine, plan: &Plan) -> Vec<Unplannable> {
    let mut without = Unplannable::of(plan, |note| matches!(note, Note::NoVectors { .. }));
    if without.is_empty() {
        return without;
    }
    let record = Record::load(root).unwrap_or_default();
    let had = |name: &str| {
        let interface = machine.interfaces.iter().find(|interface| interface.name == name);
        interface.is_some_and(|interface| interface.link == "up" && record.has_vectors_of(interface))
    };
    without.retain(|interface| had(&interface.interface));
    without
}
