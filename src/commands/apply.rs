//! `nicpin apply`: write the plan, read it back, say what changed.

use std::time::Duration;

use anyhow::Result;

use crate::apply::{Options, apply_when_safe};
use crate::cli::{ApplyArgs, Cli, ReportFormat};
use crate::commands::confirm::Watcher;
use crate::commands::{Exit, Purpose, open_to_write, read_and_plan_to, unplannable};
use crate::render;
use crate::render::report::Applied;

pub(super) fn run(cli: &Cli, args: &ApplyArgs, out: &mut String) -> Result<Exit> {
    let root = open_to_write(cli)?;
    let options =
        Options { wait: Duration::from_secs(args.lock.wait), atomic: args.atomic, trial: args.trial };
    let mut watcher = None;
    let done = apply_when_safe(
        &root,
        options,
        |root| read_and_plan_to(Purpose::Write, cli, root, &args.select, &args.policy),
        || {
            watcher = args.trial.map(|seconds| Watcher::start(cli, seconds)).transpose()?;
            Ok(())
        },
    )?;
    if let Some(watcher) = watcher {
        watcher.go()?;
    }
    let applied = Applied::new(&done, args.trial, unplannable(&args.select, &done.plan));
    out.push_str(&match args.format {
        ReportFormat::Table => render::report::applied(&applied),
        ReportFormat::Json => render::json(&applied)?,
    });
    Ok(if applied.failed() {
        Exit::Failed
    } else if args.detailed_exitcode && applied.changed > 0 {
        Exit::Differs
    } else {
        Exit::Planned
    })
}
