//! `nicpin measure`: sample counters for a time or while a command runs.

use std::ffi::OsString;
use std::io::{self, IsTerminal as _};
use std::time::Duration;

use anyhow::{Result, ensure};
use clap::{Args, value_parser};

use crate::commands::args::{General, ReportArgs, SelectArgs, seconds};
use crate::commands::child::{self, CommandError};
use crate::commands::inputs::{read_host, require_interfaces, require_vectors};
use crate::commands::output::{print, say, screen};
use crate::commands::sampling::{STEP, Sampler};
use crate::screen;
use crate::start::Signals;
use nicpin::machine::sample::Delta;
use nicpin::machine::selection::without_device;
use nicpin::machine::{Machine, Selection};
use nicpin::plan::Note;
use nicpin::policy::Policy;
use nicpin::read::{self, ReadOptions};
use nicpin::report::exit::Exit;
use nicpin::report::flow::Connections;
use nicpin::report::measure::{MeasuredInterface, Measurement};
use nicpin::root::Root;

#[derive(Args)]
pub struct MeasureArgs {
    #[command(flatten)]
    select: SelectArgs,

    #[command(flatten)]
    report: ReportArgs,

    /// Length of a sample; by default 1, with CMD as long as it runs
    #[arg(short, long, value_name = "N", value_parser = seconds(0.001))]
    seconds: Option<Duration>,

    /// Number of samples; by default 1, with --watch unlimited
    #[arg(short, long, value_name = "N", conflicts_with = "command", value_parser = value_parser!(u64).range(1..))]
    count: Option<u64>,

    /// Sample until interrupted; on a terminal each sample replaces the one before
    #[arg(short, long, conflicts_with = "command")]
    watch: bool,

    /// Also list IRQs without interrupts and idle CPUs
    #[arg(short, long)]
    all: bool,

    /// Measure while this command runs
    #[arg(last = true, value_name = "CMD")]
    command: Vec<OsString>,
}

pub fn run(cli: &General, args: &MeasureArgs, out: &mut String) -> Result<Exit> {
    let root = Root::open(&cli.root)?;
    ensure!(
        !root.is_capture(),
        "{}: a capture has no counters; fix: measure on the machine itself",
        cli.root.display()
    );
    let (machine, subjects, notes) = read_subjects(cli, args, &root, args.select.if_present)?;
    if subjects.is_empty() {
        require_interfaces(&root, args.select.if_present, &machine)?;
    }
    let has_device = subjects.iter().any(|subject| subject.kind.is_none());
    let counts_all = if has_device {
        require_vectors(&root, &machine)
    } else {
        Ok(())
    };
    let sampler = Sampler::begin(&root, MeasuredInterface::wanted(&subjects))?;
    let interrupts = Signals::catch()?;
    let session = MeasureSession {
        cli,
        args,
        root: &root,
        machine,
        subjects,
        notes,
    };
    if args.command.is_empty() {
        session.samples(sampler, &interrupts)?;
        counts_all?;
    } else {
        let ended = session.during_command(sampler, &interrupts, out);
        if let Err(uncounted) = counts_all {
            say(&format!("{uncounted:#}"));
        }
        ended?;
    }
    Ok(Exit::Planned)
}

fn read_subjects(
    cli: &General,
    args: &MeasureArgs,
    root: &Root,
    if_present: bool,
) -> Result<(Machine, Vec<MeasuredInterface>, Vec<Note>)> {
    let options = ReadOptions {
        flows: true,
        ..ReadOptions::default()
    };
    let (machine, _) = read_host(cli, root, options)?;
    let (mut subjects, mut selectors) = (Vec::new(), Vec::new());
    for selector in &args.select.selectors {
        match without_device(&machine, selector) {
            Some(kind) => subjects.push(MeasuredInterface::without_device(selector, &kind)),
            None => selectors.push(selector.clone()),
        }
    }
    if !subjects.is_empty() && selectors.is_empty() {
        return Ok((machine, subjects, Vec::new()));
    }
    let selection = Selection::new(&machine, &selectors, if_present)?;
    // The plan maps vectors to queues, independent of the policy.
    let mut plan = nicpin::plan::plan(&machine, &Policy::default(), &selection);
    let planned = plan.interfaces.iter();
    subjects.extend(planned.map(|interface| MeasuredInterface::planned(interface, &machine)));
    plan.notes.retain(Note::is_of_selection);
    Ok((machine, subjects, plan.notes))
}

struct MeasureSession<'a> {
    cli: &'a General,
    args: &'a MeasureArgs,
    root: &'a Root,
    machine: Machine,
    subjects: Vec<MeasuredInterface>,
    notes: Vec<Note>,
}

impl MeasureSession<'_> {
    fn connections(&self) -> Result<Option<Connections>> {
        let sockets = read::connected_sockets(self.root, &self.machine.topology)?;
        let measured = self
            .subjects
            .iter()
            .map(|subject| subject.name.as_str())
            .collect();
        Ok(sockets.map(|sockets| Connections::new(&self.machine, &measured, &sockets)))
    }

    fn text(&self, delta: &Delta, connections: Option<Connections>, whole: bool) -> Result<String> {
        let mut measure = Measurement::new(&self.machine.topology, &self.subjects, delta);
        measure.notes.extend_from_slice(&self.notes);
        (measure.connections, measure.whole) = (connections, whole);
        if self.args.report.is_json() {
            return Ok(screen::printable(&(serde_json::to_string(&measure)? + "\n")).into_owned());
        }
        let all = self.args.all || self.cli.verbose;
        Ok(screen::measure::measure(&measure, all).show(screen()))
    }

    fn print(&self, text: &str) -> Result<bool> {
        Ok(self.cli.quiet || print(text.as_bytes())?)
    }

    fn samples(mut self, mut sampler: Sampler<'_>, interrupts: &Signals) -> Result<()> {
        let time = self.args.seconds.unwrap_or(STEP);
        let terminal = io::stdout().is_terminal();
        let redraws = self.args.watch && !self.args.report.is_json();
        let unlimited = if self.args.watch { u64::MAX } else { 1 };
        let last = self.args.count.unwrap_or(unlimited);
        for number in 1..=last {
            let quiet = self.cli.quiet || redraws && terminal && number > 1;
            let delta = sampler.over(time, quiet, Some(interrupts))?;
            let interrupted = interrupts.within(Duration::ZERO).is_some();
            // The earlier samples are the report.
            if interrupted && self.args.watch && number > 1 {
                break;
            }
            let text = self.text(&delta, self.connections()?, false)?;
            let text = match redraws {
                // From the top left corner over the text before it.
                true if terminal => format!("\x1b[H{}\x1b[J", text.replace('\n', "\x1b[K\n")),
                true if number > 1 => format!("\n{text}"),
                _ => text,
            };
            if !self.print(&text)? || interrupted || number == last {
                break;
            }
            let is_same = delta.irqs_changed.is_empty() && delta.interfaces_changed.is_empty();
            if !is_same || self.awaits_vectors() {
                self.read_again(&mut sampler)?;
            }
        }
        Ok(())
    }

    fn awaits_vectors(&self) -> bool {
        let mut subjects = self.subjects.iter();
        subjects.any(|subject| subject.kind.is_none() && subject.vectors.is_empty())
    }

    /// IRQ numbers change when an interface or its vectors are created again. A vanished interface may return.
    fn read_again(&mut self, sampler: &mut Sampler<'_>) -> Result<()> {
        (self.machine, self.subjects, self.notes) =
            read_subjects(self.cli, self.args, self.root, true)?;
        sampler.change(MeasuredInterface::wanted(&self.subjects))
    }

    fn during_command(
        &self,
        mut sampler: Sampler<'_>,
        interrupts: &Signals,
        out: &mut String,
    ) -> Result<()> {
        let interval = self.args.seconds.unwrap_or(Duration::MAX);
        let short = sampler.interval();
        let (mut whole, mut part) = (Delta::default(), Delta::default());
        let (mut connections, mut looked) = (None, Duration::ZERO);
        let step = |ended: bool| {
            let delta = sampler.step()?;
            whole.add(&delta);
            part.add(&delta);
            if !ended {
                if connections.is_none() || whole.elapsed >= looked + STEP {
                    (connections, looked) = (self.connections()?, whole.elapsed);
                }
                if part.elapsed >= interval {
                    self.print(&self.text(&part, connections.clone(), false)?)?;
                    part = Delta::default();
                }
            }
            Ok(interval.saturating_sub(part.elapsed).min(short))
        };
        let command = &self.args.command;
        let (status, _) = child::run(command, interrupts, || Ok(()), interval.min(short), step)?;
        *out += &self.text(&whole, connections, true)?;
        Ok(CommandError::check(command, status)?)
    }
}
