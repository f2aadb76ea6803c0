//! `nicpin restore`: restore the settings that the first apply found.

use anyhow::{Result, bail};
use clap::Args;
use nix::errno::Errno;

use crate::commands::args::{General, LockArgs, ReportArgs, TargetArgs};
use crate::commands::inputs::{Purpose, open_to_write, read_and_plan};
use crate::commands::output;
use crate::watch::state;
use crate::{screen, start};
use nicpin::apply::{self, restore};
use nicpin::machine::files::NET;
use nicpin::read::ReadOptions;
use nicpin::report::exit::Exit;
use nicpin::report::restored::Restored;
use nicpin::root::Root;

#[derive(Args)]
pub struct RestoreArgs {
    /// Print what would be restored and write nothing
    #[arg(long, short = 'n')]
    dry_run: bool,

    #[command(flatten)]
    report: ReportArgs,

    #[command(flatten)]
    lock: LockArgs,
}

pub fn run(cli: &General, args: &RestoreArgs, out: &mut String) -> Result<Exit> {
    if args.dry_run {
        let root = Root::open(&cli.root)?;
        let mut planned = apply::to_restore(&root)?;
        if planned.is_empty() {
            require_directory(&root)?;
        }
        planned.not_judged = not_judged(cli, &root);
        let (is_silent, table) = (
            cli.quiet && planned.refused() > 0,
            screen::applied::to_restore,
        );
        *out += &output::report_and_say(is_silent, args.report, &planned, table)?;
        return Ok(planned.exit());
    }
    let root = open_to_write(cli)?;
    start::stop_apply()?;
    // Before the lock is taken: a run of the watcher that waits for it must find the pause.
    let was_paused = state::PAUSE.exists(&root);
    let watcher_paused = state::pause(&root)?;
    let undone = restore(&root, args.lock.wait());
    if undone.is_err() && watcher_paused && !was_paused {
        state::resume(&root)?;
    }
    let undone = undone?;
    if undone.is_none() {
        require_directory(&root)?;
    }
    let restored = Restored {
        watcher_paused,
        not_judged: not_judged(cli, &root),
        ..undone.unwrap_or_else(|| Restored::default().with_counts())
    };
    let table = |restored: &Restored| screen::applied::restored(restored, cli.verbose);
    let is_silent = cli.quiet && restored.failed();
    *out += &output::report_and_say(is_silent, args.report, &restored, table)?;
    Ok(restored.exit())
}

/// That there is no record of an apply says something only of a machine.
fn require_directory(root: &Root) -> Result<()> {
    if !root.is_there(NET)? {
        bail!(root.io_error(NET, Errno::ENOENT));
    }
    Ok(())
}

/// A restore does not need the facts of planning: an error is only reported.
fn not_judged(cli: &General, root: &Root) -> Option<Vec<String>> {
    let mut target = TargetArgs::default();
    target.select.if_present = true;
    match read_and_plan(Purpose::Look, cli, root, &target, ReadOptions::default()) {
        Ok((_, plan)) => Some(plan.not_judged),
        Err(error) => {
            output::say(&format!(
                "cannot tell which interfaces cannot be judged: {error:#}"
            ));
            None
        }
    }
}
