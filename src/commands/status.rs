//! `nicpin status`: one screen on whether interrupts arrive where planned, and whether they will stay there.

use std::time::Duration;

use anyhow::{Result, ensure};
use clap::Args;

use crate::commands::args::{General, ReportArgs, TargetArgs, seconds};
use crate::commands::inputs::{read_and_compare, usage};
use crate::commands::output;
use crate::commands::sampling::Sampler;
use crate::screen;
use crate::screen::status::StatusDetail::{Interfaces, Summary, Vectors};
use nicpin::apply::irqbalance;
use nicpin::check::compare;
use nicpin::machine::sample::CounterSelection;
use nicpin::machine::wording::selector;
use nicpin::plan::Note;
use nicpin::report::exit::Exit;
use nicpin::report::status::Status;
use nicpin::root::Root;

#[derive(Args)]
pub struct StatusArgs {
    #[command(flatten)]
    target: TargetArgs,

    #[command(flatten)]
    report: ReportArgs,

    /// List all IRQs, also those that are as planned
    #[arg(short, long)]
    all: bool,

    /// Watch interrupts for N seconds; 0: do not watch. By default 1, and 0 for a tree or a capture
    #[arg(short, long, value_name = "N", value_parser = seconds(0.0))]
    seconds: Option<Duration>,
}

pub fn run(cli: &General, args: &StatusArgs, out: &mut String) -> Result<Exit> {
    let root = Root::open(&cli.root)?;
    let target = &args.target;
    let (machine, plan, watcher, given) = read_and_compare(cli, &root, target)?;
    let threads = plan
        .interfaces
        .iter()
        .flat_map(|interface| &interface.threads);
    let wanted = CounterSelection {
        irqs: plan.vectors().map(|vector| vector.irq).collect(),
        threads: threads.map(|thread| thread.pid).collect(),
        ..CounterSelection::default()
    };
    // A queue in use has some interrupts in a second.
    let time = args
        .seconds
        .unwrap_or(Duration::from_secs(u64::from(root.is_real())));
    ensure!(
        time.is_zero() || !root.is_capture(),
        usage("--seconds has no effect: a capture has no counters")
    );
    let delta = if time.is_zero() || wanted.irqs.is_empty() {
        None
    } else {
        let sampled = Sampler::begin(&root, wanted)
            .and_then(|mut sampler| sampler.over(time, cli.quiet, None));
        match sampled {
            // Nobody asked for it, and all else is known.
            Err(error) if args.seconds.is_none() => {
                output::say(&format!("interrupts are not watched: {error:#}"));
                None
            }
            sampled => Some(sampled?),
        }
    };
    let banned = plan
        .irqbalance
        .as_ref()
        .map(|running| irqbalance::banned_by_nicpin(&root, running.pid))
        .unwrap_or_default();
    let check = compare(&root, &machine, &plan, delta.as_ref());
    let exit = Exit::of(!check.unknown.is_empty());
    let mut status = Status::new(&machine, &plan, check, delta.as_ref(), &banned);
    status.watcher = watcher;
    let apply = given.added_to("nicpin apply");
    for interface in status
        .interfaces
        .iter_mut()
        .filter(|interface| interface.fix.is_some())
    {
        let fix = || format!("{apply} {}", selector(&interface.name));
        interface.fix = (!status.refused).then(fix);
    }
    if !target.policy.0.is_empty() {
        status.notes.push(Note::Options);
    }
    let detail = match args.all {
        true => Vectors,
        false if cli.verbose || target.is_given() => Interfaces,
        false => Summary,
    };
    let table = |status: &Status| screen::status::status(status, detail, &given);
    *out += &output::report(args.report, &status, table)?;
    Ok(exit)
}
