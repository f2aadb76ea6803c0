//! `nicpin status`: one screen on whether interrupts arrive where planned, and whether they will stay there.

use std::time::Duration;

use anyhow::{Result, bail};

use crate::cli::{Cli, StatusArgs};
use crate::commands::inputs::{
    Purpose, UsageError, apply_command, as_watched, read_and_plan, require_live_interfaces,
};
use crate::commands::output;
use crate::commands::sampling::Sampler;
use crate::screen;
use crate::screen::status::Detail;
use crate::watch;
use nicpin::apply::{self, Record, differences, irqbalance};
use nicpin::machine::SelectError;
use nicpin::machine::sample::CounterSelection;
use nicpin::plan::Note;
use nicpin::read::Wants;
use nicpin::report::exit::Exit;
use nicpin::report::status::Status;
use nicpin::root::Root;

/// How long interrupts are watched by default: a queue in use has some in this time.
const WATCH_TIME: Duration = Duration::from_secs(1);

pub(super) fn run(cli: &Cli, args: &StatusArgs, out: &mut String) -> Result<Exit> {
    let root = Root::open(&cli.root)?;
    let watcher = watch::state::running(&root)?;
    let avoids_exclusive = watcher.as_ref().is_some_and(|of| of.avoids_exclusive);
    let policy = as_watched(&args.policy, avoids_exclusive);
    let (machine, plan) = read_and_plan(
        Purpose::Compare,
        cli,
        &root,
        &args.select,
        &policy,
        Wants::default(),
    )
    .map_err(misspelt)?;
    require_live_interfaces(&root, &args.select)?;
    let vectors = plan
        .interfaces
        .iter()
        .flat_map(|interface| &interface.vectors);
    let threads = plan
        .interfaces
        .iter()
        .flat_map(|interface| &interface.threads);
    let wanted = CounterSelection {
        irqs: vectors.map(|vector| vector.irq).collect(),
        threads: threads.map(|thread| thread.pid).collect(),
        ..CounterSelection::default()
    };
    if root.is_capture() && args.seconds.is_some_and(|time| !time.is_zero()) {
        bail!(UsageError::new(
            "--seconds has no effect: a capture has no counters"
        ));
    }
    let time = args.seconds.unwrap_or(if root.is_real() {
        WATCH_TIME
    } else {
        Duration::ZERO
    });
    let delta = if time.is_zero() || wanted.irqs.is_empty() || root.is_capture() {
        None
    } else {
        let sleep = |time| {
            std::thread::sleep(time);
            false
        };
        Some(Sampler::begin(&root, wanted)?.over(time, cli.quiet, sleep)?)
    };
    let banned = plan
        .irqbalance
        .as_ref()
        .map(|running| irqbalance::banned_by_nicpin(&root, running.pid))
        .unwrap_or_default();
    let found = differences(&root, &machine, &plan);
    let unknown = apply::unknown(&root, &machine, &plan, &found, args.select.is_given());
    let applied = Record::exists(&root);
    let mut status = Status::new(
        &machine,
        &plan,
        &found,
        &unknown,
        delta.as_ref(),
        applied,
        &banned,
    );
    status.watcher = watcher;
    let of_record = |note: &&Note| matches!(note, Note::RecordUnreadable { .. });
    let notes = &mut unknown.iter().map(|one| &one.note);
    status.notes.extend(notes.find(of_record).cloned());
    if !args.policy.settings.is_empty() {
        status.notes.push(Note::Options);
    }
    let apply = apply_command();
    let detail = match (args.all, cli.verbose || args.select.is_given()) {
        (true, _) => Detail::Vectors,
        (false, true) => Detail::Interfaces,
        (false, false) => Detail::Summary,
    };
    out.push_str(&output::report(args.report, &status, |status| {
        screen::status::status(status, detail, &apply)
    })?);
    Ok(if unknown.is_empty() {
        Exit::Planned
    } else {
        Exit::Failed
    })
}

/// Replaces the error about a selector that matches nothing if the selector resembles a command.
fn misspelt(error: anyhow::Error) -> anyhow::Error {
    let Some(SelectError::Nothing { selector, .. }) = error.downcast_ref() else {
        return error;
    };
    match Cli::nearest_command(selector) {
        Some(command) => UsageError::new(format!(
            "`{selector}` is neither a command nor an interface; did you mean `nicpin {command}`?"
        ))
        .into(),
        None => error,
    }
}
