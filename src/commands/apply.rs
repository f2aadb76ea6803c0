//! `nicpin apply`: write the plan, read it back, report the changes.

use std::io::Read as _;
use std::io::stdin;
use std::mem::take;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, ensure};
use clap::{Args, value_parser};
use thiserror::Error;

use crate::commands::args::{General, LockArgs, ReportArgs, TargetArgs};
use crate::commands::confirm::{self, TrialProcess, waits};
use crate::commands::inputs::{
    Purpose, complete, from_top, open_to_write, read_and_plan, require_readable_vectors,
};
use crate::commands::output;
use crate::commands::plan::{document, exit, page};
use crate::screen;
use crate::screen::plan::PlanDetail;
use crate::start;
use crate::watch::state;
use nicpin::apply::{self, ApplyError, Options, Proof, Record, apply_when_safe, irqbalance};
use nicpin::machine::Machine;
use nicpin::plan::Plan;
use nicpin::plan::stored::{self, Change, Fitted};
use nicpin::read::{self, ReadOptions};
use nicpin::report::applied::{Applied, VectorProof, Watched};
use nicpin::report::difference::Differences;
use nicpin::report::exit::Exit;
use nicpin::root::Root;

#[derive(Args)]
pub struct ApplyArgs {
    #[command(flatten)]
    target: TargetArgs,

    #[command(flatten)]
    report: ReportArgs,

    /// Only print the plan, as `nicpin plan`
    #[arg(long, short = 'n', conflicts_with_all = ["trial", "prove", "atomic"])]
    dry_run: bool,

    /// Exit with 2 if something was changed
    #[arg(long)]
    detailed_exitcode: bool,

    /// Apply this output of `plan --format json` (`-`: standard input) if it fits the machine as it is now
    #[arg(long, value_name = "FILE|-", conflicts_with_all = ["SelectArgs", "PolicyArgs", "config"])]
    plan: Option<PathBuf>,

    /// Apply the part of the stored plan that still fits the machine
    #[arg(long, requires = "plan")]
    force: bool,

    /// Fail if an IRQ of a queue cannot be moved
    #[arg(long)]
    strict: bool,

    /// Stop at the first write that fails, and restore what was written before it
    #[arg(long)]
    atomic: bool,

    /// Watch interrupts for up to SECONDS, and report on which CPUs those of each queue arrived
    #[arg(long, value_name = "SECONDS", value_parser = value_parser!(u64).range(1..=3600))]
    prove: Option<u64>,

    /// Restore all settings after SECONDS, unless `nicpin confirm` or Enter on the terminal comes first
    #[arg(long = "try", value_name = "SECONDS", value_parser = value_parser!(u64).range(1..=86_400))]
    trial: Option<u64>,

    #[command(flatten)]
    lock: LockArgs,
}

pub fn run(cli: &General, args: &ApplyArgs, out: &mut String) -> Result<Exit> {
    let root = if args.dry_run {
        Root::open(&cli.root)?
    } else {
        open_to_write(cli)?
    };
    // Standard input may take long: read it before the lock is taken.
    let stored = args.plan.as_deref().map(read_stored).transpose()?;
    let mut changes = Vec::new();
    let mut plan = |root: &Root| match &stored {
        Some(stored) => fit(root, stored, args.force, &mut changes),
        None => read_and_plan(
            Purpose::Write,
            cli,
            root,
            &args.target,
            ReadOptions::default(),
        ),
    };
    let done = if args.dry_run {
        match plan(&root) {
            Ok((machine, plan)) => {
                return dry_run(cli, args, &root, (machine, plan), &changes, out);
            }
            Err(error) => Err(error),
        }
    } else {
        apply(cli, args, &root, plan)
    };
    let applied = match done {
        Ok(applied) => Applied { changes, ..applied },
        Err(error) => {
            let PlanDoesNotFit(hash) = error.downcast()?;
            Applied {
                hash,
                changes,
                misfit: true,
                ..Applied::default()
            }
        }
    };
    let table = |applied: &Applied| screen::applied::applied(applied, cli.verbose, &cli.given);
    let is_silent = cli.quiet && applied.failed();
    *out += &output::report_and_say(is_silent, args.report, &applied, table)?;
    let exit = applied.exit(args.detailed_exitcode);
    // Without a trial of its own there is nothing to confirm: another's may wait.
    match applied.trial {
        // The user must see the output before the question.
        Some(seconds) if cli.quiet || output::print(screen::printable(&take(out)).as_bytes())? => {
            confirm::ask(&root, seconds, args.lock.wait(), exit)
        }
        _ => Ok(exit),
    }
}

fn dry_run(
    cli: &General,
    args: &ApplyArgs,
    root: &Root,
    (machine, plan): (Machine, Plan),
    changes: &[Change],
    out: &mut String,
) -> Result<Exit> {
    for change in changes {
        let on = screen::interface_or_machine(&change.interface);
        output::say(&format!("differs from the plan: {on}: {}", change.text));
    }
    let detail = if cli.verbose {
        PlanDetail::Queues
    } else {
        PlanDetail::Runs
    };
    *out += &output::report(args.report, &document(&machine, &plan), |_| {
        page(cli, &machine, &plan, detail, false)
    })?;
    Ok(exit(root, &plan, args.detailed_exitcode))
}

fn apply(
    cli: &General,
    args: &ApplyArgs,
    root: &Root,
    make_plan: impl FnMut(&Root) -> Result<(Machine, Plan)>,
) -> Result<Applied> {
    let options = Options {
        wait: args.lock.wait(),
        atomic: args.atomic,
        trial: args.trial,
        repeats: false,
    };
    let (mut guard, mut watched) = (None, None);
    let mut done = apply_when_safe(root, options, make_plan, || {
        guard = args
            .trial
            .map(|seconds| TrialProcess::start(cli, seconds))
            .transpose()?;
        start::stop_apply()?;
        // A trial may yet be restored: the pause then ends with its confirmation.
        if args.trial.is_none() {
            watched = state::resume(root)?.then_some(Watched::Resumed);
        }
        Ok(())
    })?;
    start::release()?;
    let is_idle = confirm::restores_nothing(root);
    let written = Instant::now();
    guard.map_or(Ok(()), |watcher| watcher.go(root))?;
    if let (Some(seconds), None, None) = (args.prove, &done.undone, apply::stop_reason()) {
        match prove(root, &done, Duration::from_secs(seconds), args.trial) {
            Ok((proof, cut_short)) => {
                (done.proof, done.proof_cut_short) = (Some(proof), cut_short);
            }
            Err(error) => done.proof_error = Some(format!("{error:#}")),
        }
    }
    if done.trial.is_some() && state::running(root).is_ok_and(|watcher| watcher.is_some()) {
        watched = Some(Watched::WaitsForTrial);
    }
    let left = |seconds: u64| seconds.saturating_sub(written.elapsed().as_secs());
    Ok(Applied {
        unknown: nicpin::check::unknown(
            &done.machine,
            &done.plan,
            &Differences::default(),
            &Record::load(root),
        ),
        strict: args.strict,
        left: done.trial.filter(|_| !is_idle).map(left),
        watched,
        ..done
    })
}

/// Short, so that the command ends soon after all vectors are proven.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

fn prove(
    root: &Root,
    done: &Applied,
    time: Duration,
    trial: Option<u64>,
) -> Result<(Vec<VectorProof>, bool)> {
    let start = Instant::now();
    // The proof ends before the settings are restored: later interrupts arrive elsewhere.
    let end_of_trial = trial.map_or(Duration::MAX, |seconds| {
        Duration::from_secs(seconds).saturating_sub(2 * POLL_INTERVAL)
    });
    let mut proof = Proof::begin(root, done)?;
    let cut_short = loop {
        let left = time.saturating_sub(start.elapsed());
        let cut_short = !left.is_zero() && start.elapsed() >= end_of_trial && waits(root);
        if left.is_zero() || cut_short {
            break cut_short;
        }
        sleep(POLL_INTERVAL.min(left));
        if proof.look(root)? {
            break false;
        }
    };
    Ok((proof.finish(root)?, cut_short))
}

fn read_stored(path: &Path) -> Result<Plan> {
    let (mut name, mut text) = (path.display().to_string(), String::new());
    if name == "-" {
        name = "standard input".into();
        stdin()
            .take(stored::LONGEST as u64 + 1)
            .read_to_string(&mut text)
            .with_context(|| name.clone())?;
    } else {
        text = Root::open("/".as_ref())?.read(&from_top(path)?)?;
    }
    stored::parse(&text).map_err(|error| anyhow!("{name}: {error}"))
}

#[derive(Debug, Error)]
#[error("plan {0} does not fit this machine")]
struct PlanDoesNotFit(String);

fn fit(root: &Root, stored: &Plan, force: bool, out: &mut Vec<Change>) -> Result<(Machine, Plan)> {
    let options = ReadOptions {
        drivers: &stored.drivers,
        ..ReadOptions::default()
    };
    let mut machine = read::machine(root, options).map_err(ApplyError::from)?;
    complete(root, &mut machine);
    let Fitted { mut plan, changes } = stored::fit(stored, &machine);
    irqbalance::note_earlier_bans(root, &mut plan);
    let fits = changes.is_empty();
    *out = changes;
    ensure!(fits || force, PlanDoesNotFit(stored.hash.clone()));
    require_readable_vectors(root, &machine, &plan)?;
    Ok((machine, plan))
}
