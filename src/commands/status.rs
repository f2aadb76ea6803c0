//! `nicpin status`: one screen on whether it worked, and whether it will stay so.

use std::time::Duration;

use anyhow::{Result, anyhow};

use crate::apply::{Record, irqbalance};
use crate::cli::{Cli, ReportFormat, StatusArgs};
use crate::commands::sampling::Sampler;
use crate::commands::{Misspelt, read_and_plan, unplannable};
use crate::machine::SelectError;
use crate::machine::sample::CounterSelection;
use crate::plan::Note;
use crate::read::Wants;
use crate::render;
use crate::render::style::Paint;
use crate::report::exit::Exit;
use crate::report::status::Status;
use crate::root::Root;

/// Long enough for a queue in use to be seen, short enough to wait for.
const LIVE: Duration = Duration::from_secs(1);

pub(super) fn run(cli: &Cli, args: &StatusArgs, out: &mut String) -> Result<Exit> {
    let root = Root::open(&cli.root)?;
    let wants = Wants { polling: true, ..Wants::default() };
    let (machine, plan) = read_and_plan(cli, &root, &args.select, &args.policy, wants).map_err(misspelt)?;
    let vectors = plan.interfaces.iter().flat_map(|interface| &interface.vectors);
    let wanted =
        CounterSelection { irqs: vectors.map(|vector| vector.irq).collect(), ..CounterSelection::default() };
    let time = args.seconds.unwrap_or(if root.is_real() { LIVE } else { Duration::ZERO });
    let growth = if time.is_zero() || wanted.irqs.is_empty() || root.is_capture() {
        None
    } else {
        Some(Sampler::begin(&root, wanted)?.over(time, false)?)
    };
    let told =
        plan.irqbalance.as_ref().map(|running| irqbalance::told(&root, running.pid)).unwrap_or_default();
    let mut status = Status::new(&machine, &plan, growth.as_ref(), Record::exists(&root), &told);
    if !args.policy.settings.is_empty() {
        status.notes.push(Note::Options);
    }
    out.push_str(&match args.format {
        ReportFormat::Table => {
            let every = args.all || !args.select.selectors.is_empty();
            render::status::status(&status, args.all, every, wanted_colour())
        }
        ReportFormat::Json => render::json(&status)?,
    });
    Ok(if unplannable(&args.select, &plan).is_empty() { Exit::Planned } else { Exit::Failed })
}

/// A word that is no interface was perhaps meant to be a command.
fn misspelt(error: anyhow::Error) -> anyhow::Error {
    let Some(SelectError::Nothing { selector, .. }) = error.downcast_ref() else { return error };
    match Cli::nearest_command(selector) {
        Some(command) => anyhow!(Misspelt { word: selector.clone(), command }),
        None => error,
    }
}

/// Colour on a terminal, and not where `NO_COLOR` is set.
fn wanted_colour() -> Paint {
    let choice = anstream::AutoStream::choice(&std::io::stdout());
    Paint(choice != anstream::ColorChoice::Never)
}
