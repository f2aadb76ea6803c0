//! `nicpin plan`: the writes that apply would perform.

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};

use self::PlanFormat::{Json, Sh, Table};
use crate::commands::args::{FormatArgs, General, TargetArgs};
use crate::commands::inputs::{Purpose, plan_read, read_and_plan, read_policy, usage};
use crate::commands::output::{say, screen};
use crate::screen;
use crate::screen::page::Page;
use crate::screen::plan::{PlanDetail, PlanDocument};
use nicpin::apply::irqbalance;
use nicpin::machine::{Machine, Selection};
use nicpin::plan::Plan;
use nicpin::policy::{IRQ_CORES, PolicyValue};
use nicpin::read::ReadOptions;
use nicpin::report::difference::{MeasureChange, NoteAbout, changes, moves_without_gain};
use nicpin::report::exit::Exit;
use nicpin::root::Root;

#[derive(Args)]
pub struct PlanArgs {
    #[command(flatten)]
    target: TargetArgs,

    #[command(flatten)]
    format: FormatArgs<PlanFormat>,

    /// List each IRQ and queue; by default many that are alike share a line
    #[arg(short, long)]
    all: bool,

    /// Also list each file that would change, with its current and planned mask in hex (table only)
    #[arg(long)]
    masks: bool,

    /// Print each queue with the reason for its CPU; with --json also as texts, in `explanation`
    #[arg(long, conflicts_with_all = ["masks", "workers"])]
    explain: bool,

    /// Print the CPUs of each interface's node that are left for applications, as other programs accept them
    #[arg(long, conflicts_with = "masks")]
    workers: bool,

    /// Exit with 2 if something would be changed
    #[arg(long)]
    detailed_exitcode: bool,
}

#[derive(Clone, Copy, Default, ValueEnum)]
enum PlanFormat {
    /// Text, as wide as the terminal; 100 columns without one
    #[default]
    Table,
    /// The schema `nicpin.plan/1`
    Json,
    /// The writes as `echo VALUE > PATH` lines
    Sh,
}

pub fn run(cli: &General, args: &PlanArgs, out: &mut String) -> Result<Exit> {
    let root = Root::open(&cli.root)?;
    let options = ReadOptions {
        memory: args.workers,
        ..ReadOptions::default()
    };
    let target = &args.target;
    let (machine, plan) = read_and_plan(Purpose::Look, cli, &root, target, options)?;
    let format = args.format.format;
    if let (Sh, Some(change)) = (format, plan.channels.first()) {
        bail!(usage(format!(
            "the plan changes the channels of {}, and the IRQ numbers change with them: a script could write to another \
             device; fix: run `nicpin apply` with the same options, or keep the channels with --channels keep",
            change.interface
        )));
    }
    *out = match format {
        Table if args.workers => {
            let (select, purpose) = (&target.select, Purpose::Look);
            let selection = Selection::new(&machine, &select.selectors, select.if_present)?;
            let (policy, _) = read_policy(purpose, cli, &root, &target.policy)?;
            let leaves_workers = |name: &str, cores: usize| {
                let mut policy = policy.clone();
                let cores = u32::try_from(cores).unwrap_or(u32::MAX);
                let entry = IRQ_CORES.entry();
                policy.options.set(&entry, PolicyValue::Number(cores));
                let has_workers = |plan: Plan| {
                    let mut interfaces = plan.interfaces.iter();
                    interfaces.any(|found| found.name == name && !found.worker_cpus.is_empty())
                };
                policy.check_effects().is_ok()
                    && plan_read(&machine, &policy, &selection).is_ok_and(has_workers)
            };
            screen::shell::workers(&machine, &plan, leaves_workers).show(screen())
        }
        Table => {
            let detail = match args.explain {
                true => PlanDetail::Reasons,
                false if args.all || cli.verbose => PlanDetail::Queues,
                false => PlanDetail::Runs,
            };
            page(cli, &machine, &plan, detail, args.masks).show(screen())
        }
        Json => screen::json(&PlanDocument {
            explanation: args.explain.then(|| screen::plan::explanation(&plan)),
            ..document(&machine, &plan)
        })?,
        Sh => screen::shell::script(&plan),
    };
    if args.workers || matches!(format, Sh) {
        say_unplanned(cli, &plan);
    }
    Ok(exit(&root, &plan, args.detailed_exitcode))
}

pub fn page(
    cli: &General,
    machine: &Machine,
    plan: &Plan,
    detail: PlanDetail,
    masks: bool,
) -> Page {
    let told = (&*changes(machine, plan), moves_without_gain(machine, plan));
    screen::plan::plan(plan, told, detail, masks, &cli.given)
}

pub fn document<'a>(machine: &Machine, plan: &'a Plan) -> PlanDocument<'a> {
    PlanDocument {
        plan,
        gains: changes(machine, plan).iter().any(MeasureChange::is_better),
        explanation: None,
    }
}

pub fn say_unplanned(cli: &General, plan: &Plan) {
    for note in plan.notes.iter().filter(|_| !cli.quiet) {
        if note.is_of_selection() {
            say(&note.to_string());
        }
    }
    for about in NoteAbout::unknown(plan) {
        say(&format!("{}: {}", about.interface, about.note));
    }
}

/// With `detailed`, it is [`Exit::Differs`] if apply would change something.
pub fn exit(root: &Root, plan: &Plan, detailed: bool) -> Exit {
    let would_change = || {
        !plan.writes.is_empty() || !plan.channels.is_empty() || irqbalance::would_change(root, plan)
    };
    if !NoteAbout::unknown(plan).is_empty() {
        Exit::Failed
    } else if detailed && would_change() {
        Exit::Differs
    } else {
        Exit::Planned
    }
}
