//! `nicpin plan`: what apply would write.

use anyhow::{Result, bail};

use crate::cli::{Cli, PlanArgs, PlanFormat};
use crate::commands::inputs::{
    Purpose, UsageError, apply_command, read_and_plan, require_live_interfaces,
};
use crate::commands::output::screen;
use crate::screen::{self, plan::Detail};
use nicpin::plan::{Note, Plan};
use nicpin::read::Wants;
use nicpin::report::difference::Unplannable;
use nicpin::report::exit::Exit;
use nicpin::root::Root;

pub(super) fn run(cli: &Cli, args: &PlanArgs, out: &mut String) -> Result<Exit> {
    let root = Root::open(&cli.root)?;
    let wants = Wants {
        memory: args.workers,
        ..Wants::default()
    };
    let (machine, plan) =
        read_and_plan(Purpose::Look, cli, &root, &args.select, &args.policy, wants)?;
    if let (PlanFormat::Sh, Some(change)) = (args.format(), plan.channels.first()) {
        bail!(UsageError::new(format!(
            "the plan changes the channels of {}, and the IRQ numbers change with them: a script could write to another \
             device; fix: run `nicpin apply` with the same options, or keep the channels with --channels keep",
            change.interface
        )));
    }
    require_live_interfaces(&root, &args.select)?;
    *out = match args.format() {
        PlanFormat::Table if args.workers => screen::workers::plan(&machine, &plan).show(screen()),
        PlanFormat::Table => {
            let detail = match (args.explain, args.all || cli.verbose) {
                (true, _) => Detail::Reasons,
                (false, true) => Detail::Queues,
                (false, false) => Detail::Runs,
            };
            screen::plan::plan(&plan, detail, args.masks, &apply_command()).show(screen())
        }
        PlanFormat::Json if args.explain => screen::json(&screen::plan::Explained::new(&plan))?,
        PlanFormat::Json => screen::json(&plan)?,
        PlanFormat::Sh => screen::sh::plan(&plan),
    };
    Ok(exit(&plan, args.select.is_given(), args.detailed_exitcode))
}

/// The exit code of a plan that is printed only.
pub(super) fn exit(plan: &Plan, given: bool, detailed: bool) -> Exit {
    // Without /proc nothing is known of any vector, which is all that such a plan says.
    let is_unknown = |note: &Note| {
        note.is_unknown()
            && !matches!(
                note,
                Note::VectorsUnreadable {
                    missing: Some(_),
                    ..
                }
            )
    };
    let unknown = Unplannable::of(plan, is_unknown);
    if !Unplannable::requested(plan, given).is_empty() || !unknown.is_empty() {
        Exit::Failed
    } else if detailed && !(plan.writes.is_empty() && plan.channels.is_empty()) {
        Exit::Differs
    } else {
        Exit::Planned
    }
}
