//! `nicpin apply`: write the plan, read it back, say what changed.

use std::time::Duration;

use anyhow::Result;

use crate::apply::{Lock, Record, change_channels, write_all};
use crate::cli::{ApplyArgs, Cli, ReportFormat};
use crate::commands::{Exit, Purpose, open_to_write, read_and_plan_to, unplannable};
use crate::render;
use crate::render::report::Applied;

pub(super) fn run(cli: &Cli, args: &ApplyArgs, out: &mut String) -> Result<Exit> {
    let root = open_to_write(cli)?;
    // Read and planned under the lock, so that no other nicpin writes between plan and apply.
    let lock = Lock::take(&root, "apply", Duration::from_secs(args.lock.wait))?;
    let (host, mut plan) = read_and_plan_to(Purpose::Write, cli, &root, &args.select, &args.policy)?;
    let mut record = Record::load(&root)?;
    if record.add(&host, &plan) {
        record.save(&root)?;
    }
    let changes =
        plan.channels.iter().map(|change| (change.interface.as_str(), change.current, change.wanted));
    let channels = change_channels(&root, changes);
    if !channels.is_empty() {
        // Other queues and vectors now: everything else is planned for them. What came with them goes with them
        // when the channels are put back, and is not for the record.
        (_, plan) = read_and_plan_to(Purpose::Write, cli, &root, &args.select, &args.policy)?;
    }
    let outcomes = write_all(&root, &plan.writes);
    drop(lock);
    let applied = Applied::new(&plan, channels, outcomes, unplannable(&args.select, &plan));
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
