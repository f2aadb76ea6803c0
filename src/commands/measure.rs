//! `nicpin measure`: sample counters for a time or while a command runs.

use crate::commands::args::General;
use crate::commands::args::ReportArgs;
use crate::commands::args::SelectArgs;
use crate::commands::args::seconds;
use crate::commands::child::{self, ChildExit, CommandError};
use crate::commands::help;
use crate::commands::inputs::{Purpose, read_host};
use crate::commands::interrupt::Interrupts;
use crate::commands::output::{print, screen};
use crate::commands::policy::PolicyArgs;
use crate::commands::sampling::{STEP, Sampler};
use crate::screen;
use anyhow::{Result, bail};
use clap::Args;
use nicpin::machine::sample::Delta;
use nicpin::machine::selection::without_device;
use nicpin::machine::{Machine, Selection};
use nicpin::plan::Note;
use nicpin::read::{self, Wants};
use nicpin::report::connections::Connections;
use nicpin::report::exit::Exit;
use nicpin::report::measure::{Measure, MeasuredInterface};
use nicpin::root::Root;
use std::ffi::OsString;
use std::io::{self, IsTerminal as _};
use std::time::Duration;

/// As [`seconds`], without 0.
fn nonzero_seconds(text: &str) -> Result<Duration, String> {
    seconds(text)
        .ok()
        .filter(|time| *time >= Duration::from_millis(1))
        .ok_or_else(|| format!("`{text}` is not a number of seconds from 0.001 to 86400"))
}

#[derive(Debug, Args)]
#[command(after_help = help::after("measure"))]
pub struct MeasureArgs {
    #[command(flatten)]
    pub select: SelectArgs,

    #[command(flatten)]
    pub report: ReportArgs,

    /// Length of a sample; by default 1, with CMD as long as it runs
    #[arg(short, long, value_name = "N", value_parser = nonzero_seconds)]
    pub seconds: Option<Duration>,

    /// Number of samples; by default 1, with --watch unlimited
    #[arg(short, long, value_name = "N", conflicts_with = "command", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,

    /// Sample until interrupted; on a terminal each sample replaces the one before
    #[arg(short, long, conflicts_with = "command")]
    pub watch: bool,

    /// Also list vectors without interrupts and idle CPUs
    #[arg(short, long)]
    pub all: bool,

    /// Measure while this command runs
    #[arg(last = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}

const SAMPLE: Duration = Duration::from_secs(1);

pub(super) fn run(cli: &General, args: &MeasureArgs, out: &mut String) -> Result<Exit> {
    let root = Root::open(&cli.root)?;
    if root.is_capture() {
        bail!(
            "{}: a capture has no counters; fix: measure on the machine itself",
            cli.root.display()
        );
    }
    let (machine, _) = read_host(
        Purpose::Look,
        cli,
        &root,
        &PolicyArgs::default(),
        Wants {
            flows: true,
            ..Wants::default()
        },
    )?;
    let (subjects, notes) = subjects(&machine, &args.select)?;
    let watch = Sampler::begin(&root, MeasuredInterface::wanted(&subjects))?;
    let mut session = MeasureSession {
        root: &root,
        machine: &machine,
        subjects: &subjects,
        notes: &notes,
        watch,
        args,
        interrupts: Interrupts::catch()?,
        quiet: cli.quiet,
        all: args.all || cli.verbose,
    };
    if args.command.is_empty() {
        session.samples()?;
        return Ok(Exit::Planned);
    }
    let (whole, connections, ended) = session.during_command()?;
    let mut measure = session.measure(&whole, connections);
    measure.whole = true;
    out.push_str(&session.text(&measure)?);
    match CommandError::of(&args.command, ended.status) {
        Some(failure) => bail!(failure),
        None => Ok(Exit::Planned),
    }
}

/// The interfaces to measure, and notes on selectors that match nothing.
fn subjects(machine: &Machine, select: &SelectArgs) -> Result<(Vec<MeasuredInterface>, Vec<Note>)> {
    let mut subjects = Vec::new();
    let mut selectors = Vec::new();
    for selector in &select.selectors {
        match without_device(machine, selector) {
            Some(kind) => subjects.push(MeasuredInterface::without_device(selector, &kind)),
            None => selectors.push(selector.clone()),
        }
    }
    if !subjects.is_empty() && selectors.is_empty() {
        return Ok((subjects, Vec::new()));
    }
    let selection = Selection::new(machine, &selectors, select.if_present)?;
    // The plan maps vectors to queues; that does not depend on the policy.
    let plan = nicpin::plan::plan(machine, &nicpin::policy::Policy::default(), &selection);
    subjects.extend(plan.interfaces.iter().map(MeasuredInterface::planned));
    let notes = plan
        .notes
        .into_iter()
        .filter(|note| note.is_absent() || *note == Note::NothingToDo);
    Ok((subjects, notes.collect()))
}

struct MeasureSession<'a> {
    root: &'a Root,
    machine: &'a Machine,
    subjects: &'a [MeasuredInterface],
    notes: &'a [Note],
    watch: Sampler<'a>,
    args: &'a MeasureArgs,
    interrupts: Interrupts,
    quiet: bool,
    /// Whether vectors without interrupts and idle CPUs are listed.
    all: bool,
}

impl MeasureSession<'_> {
    fn measure(&self, delta: &Delta, connections: Option<Connections>) -> Measure {
        let mut measure = Measure::new(&self.machine.topology, self.subjects, delta);
        measure.notes.extend_from_slice(self.notes);
        measure.connections = connections;
        measure
    }

    /// Where the connections of this moment arrive.
    fn connections(&self) -> Result<Option<Connections>> {
        let sockets = read::connected_sockets(self.root, &self.machine.topology)?;
        let measured = self.subjects.iter().map(|subject| subject.name.as_str());
        let measured = measured.collect();
        Ok(sockets.map(|sockets| Connections::new(self.machine, &measured, &sockets)))
    }

    fn text(&self, measure: &Measure) -> Result<String> {
        if self.args.report.is_json() {
            // One sample a line.
            return Ok(screen::printable(&(serde_json::to_string(measure)? + "\n")).into_owned());
        }
        Ok(screen::measure::measure(measure, self.all).show(screen()))
    }

    fn print(&self, text: &str) -> Result<bool> {
        if self.quiet {
            Ok(true)
        } else {
            print(text.as_bytes())
        }
    }

    /// Takes the samples and prints each when it is complete.
    fn samples(&mut self) -> Result<()> {
        let time = self.args.seconds.unwrap_or(SAMPLE);
        let terminal = io::stdout().is_terminal();
        let redraws = self.args.watch && !self.args.report.is_json();
        let last = match (self.args.count, self.args.watch) {
            (Some(count), _) => count,
            (None, true) => u64::MAX,
            (None, false) => 1,
        };
        for number in 1..=last {
            let quiet = self.quiet || redraws && terminal && number > 1;
            let pause = |time| self.interrupts.within(time).is_some();
            let delta = self.watch.over(time, quiet, pause)?;
            let interrupted = pause(Duration::ZERO);
            // The samples before are the report.
            if interrupted && self.args.watch && number > 1 {
                break;
            }
            let text = self.text(&self.measure(&delta, self.connections()?))?;
            let text = match redraws {
                true if terminal => redraw(&text),
                true if number > 1 => format!("\n{text}"),
                _ => text,
            };
            if !self.print(&text)? || interrupted {
                break;
            }
        }
        Ok(())
    }

    /// Runs the command. Returns the delta of the counters over the whole run, the connections of the last second in
    /// which it ran, and how it ended.
    fn during_command(&mut self) -> Result<(Delta, Option<Connections>, ChildExit)> {
        let mut running = child::start(&self.args.command, &self.interrupts, || Ok(()))?;
        let interval = self.args.seconds;
        let (mut whole, mut part) = (Delta::default(), Delta::default());
        let mut connections = None;
        loop {
            let left = interval.map_or(STEP, |time| time.saturating_sub(part.elapsed).min(STEP));
            let ended = running.wait(left)?;
            let delta = self.watch.step()?;
            whole.add(&delta);
            part.add(&delta);
            if let Some(ended) = ended {
                return Ok((whole, connections, ended));
            }
            connections = self.connections()?;
            if interval.is_some_and(|time| part.elapsed >= time) {
                self.print(&self.text(&self.measure(&part, connections.clone()))?)?;
                part = Delta::default();
            }
        }
    }
}

/// Terminal escapes to draw the text from the top left corner over the text before it.
fn redraw(text: &str) -> String {
    format!("\x1b[H{}\x1b[J", text.replace('\n', "\x1b[K\n"))
}
