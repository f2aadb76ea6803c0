//! `nicpin compare`: run a command near an interface and far from it, in turn.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, ensure};
use clap::{Args, value_parser};

use crate::commands::args::{General, Memory, ReportArgs};
use crate::commands::child::{self, CommandError};
use crate::commands::inputs::{read_beside_all, usage, wrong_place};
use crate::commands::output;
use crate::commands::sampling::{Progress, STEP, Sampler};
use crate::screen;
use crate::start::Signals;
use crate::start::children_cpu;
use nicpin::apply;
use nicpin::machine::Machine;
use nicpin::machine::sample::Delta;
use nicpin::plan::Note;
use nicpin::plan::binding::NodeChoice::{Far, Near, Node};
use nicpin::plan::binding::{Binding, BindingRequest};
use nicpin::report::compare::{ComparedRun, Comparison, Side};
use nicpin::report::exit::Exit;
use nicpin::report::measure::{MeasuredInterface, Measurement};
use nicpin::root::Root;

#[derive(Args)]
pub struct CompareArgs {
    /// The interface, or any other selector that stands for interfaces on one node
    #[arg(value_name = "INTERFACE")]
    interface: String,

    /// Number of runs on each node that count
    #[arg(short = 'n', long, value_name = "N", default_value_t = 5, value_parser = value_parser!(u16).range(1..=10_000))]
    runs: u16,

    /// Number of runs on each node before those, which do not count
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = value_parser!(u16).range(..=10_000))]
    warmup: u16,

    /// Use this node as near
    #[arg(long, value_name = "NODE")]
    near: Option<u32>,

    /// Use this node as far
    #[arg(long, value_name = "NODE")]
    far: Option<u32>,

    /// How strictly CMD's memory is bound to the node
    #[arg(long, value_enum, default_value = "bind")]
    memory: Memory,

    #[command(flatten)]
    report: ReportArgs,

    /// Also write the comparison to this file as JSON
    #[arg(long, value_name = "FILE")]
    export_json: Option<PathBuf>,

    /// Also write the comparison to this file as a Markdown table
    #[arg(long, value_name = "FILE")]
    export_markdown: Option<PathBuf>,

    /// Replace the files of --export-json and --export-markdown if they exist
    #[arg(long)]
    force: bool,

    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

pub fn run(cli: &General, args: &CompareArgs, out: &mut String) -> Result<Exit> {
    let root = Root::open(&cli.root)?;
    let (machine, bindings, subjects) = bindings(cli, &root, args)?;
    ensure!(
        root.is_real(),
        usage("the command would run on this machine, not on the one that --root names")
    );
    for file in args.export_json.iter().chain(&args.export_markdown) {
        output::check_new(file, args.force)?;
    }
    let interrupts = Signals::catch()?;
    let mut notes = notes(&bindings);
    let mut sides = bindings.each_ref().map(Side::new);
    let mut progress = Progress::default();
    // Each side is first in every other round, so that slow changes affect both.
    let sides_of = |round| [[0, 1], [1, 0]][usize::from(round % 2)].map(|side| (round, side));
    for (round, side) in (0..args.warmup + args.runs).flat_map(sides_of) {
        let turn = match round.checked_sub(args.warmup) {
            None => format!("warm-up {} of {}", round + 1, args.warmup),
            Some(run) => format!("run {} of {}", run + 1, args.runs),
        };
        let what = format!("{}, {turn}", ["near", "far"][side]);
        if !cli.quiet {
            progress.say(&what);
        }
        let sampler = Sampler::begin(&root, MeasuredInterface::wanted(&subjects))?;
        let run = run_once(&args.command, &interrupts, &bindings[side], sampler);
        let Some((whole, wall, cpu)) = run.with_context(|| what)? else {
            break;
        };
        if round >= args.warmup {
            let measure = Measurement::new(&machine.topology, &subjects, &whole);
            sides[side].runs.push(ComparedRun::new(&measure, wall, cpu));
            for note in measure.notes {
                if !notes.contains(&note) {
                    notes.push(note);
                }
            }
        }
    }
    drop(progress);
    let ended = sides.each_ref().map(|side| side.runs.len());
    ensure!(
        ended != [0, 0],
        "interrupted before the end of the first run that counts"
    );
    let command = args
        .command
        .iter()
        .map(|word| word.to_string_lossy().into_owned());
    let [near, far] = sides;
    let mut comparison = Comparison::new(&args.interface, command.collect(), near, far, notes);
    comparison.warmup = args.warmup;
    if let Some(file) = &args.export_json {
        output::write_file(file, screen::json(&comparison)?.as_bytes(), args.force)?;
    }
    if let Some(file) = &args.export_markdown {
        output::write_file(
            file,
            screen::measure::markdown(&comparison).as_bytes(),
            args.force,
        )?;
    }
    *out += &output::report(args.report, &comparison, screen::measure::compare)?;
    let ([near, far], wanted) = (ended, usize::from(args.runs));
    ensure!(
        ended == [wanted; 2],
        "interrupted after {near} near and {far} far of {wanted} runs each"
    );
    Ok(Exit::Planned)
}

fn bindings(
    cli: &General,
    root: &Root,
    args: &CompareArgs,
) -> Result<(Machine, [Binding; 2], Vec<MeasuredInterface>)> {
    let interface = &args.interface;
    let are_nodes_named = args.near.is_some() && args.far.is_some();
    let fix = "name the nodes to compare with --near N --far N";
    let (machine, plan, names, kind) = read_beside_all(cli, root, interface, are_nodes_named, fix)?;
    let binding = |node: Option<u32>, usual| {
        let wish = BindingRequest {
            place: node.map_or(usual, Node),
            cpus: None,
            memory: args.memory.into(),
        };
        Binding::new(&machine, &plan, interface, &names, &wish).map_err(wrong_place(node))
    };
    let sides = [binding(args.near, Near)?, binding(args.far, Far)?];
    let planned = plan
        .interfaces
        .iter()
        .filter(|interface| names.contains(&interface.name));
    let subjects = planned
        .map(|interface| MeasuredInterface::planned(interface, &machine))
        .chain(kind.map(|kind| MeasuredInterface::without_device(interface, &kind)))
        .collect();
    Ok((machine, sides, subjects))
}

fn notes([near, far]: &[Binding; 2]) -> Vec<Note> {
    let about = near.notes.iter().chain(&far.notes).cloned();
    let mut notes: Vec<Note> = about.map(|about| Note::Memory { about }).collect();
    let cpus = [near, far].map(|side| side.cpus.len());
    if near.nodes == far.nodes {
        let node = near.nodes.clone();
        notes.push(Note::SameNode { node });
    } else if cpus[0] != cpus[1] {
        let [near, far] = cpus;
        notes.push(Note::CpusUnlike { near, far });
    }
    notes
}

/// The delta of counters, and the command's wall-clock and CPU time; `None` after an interrupt.
fn run_once(
    command: &[OsString],
    interrupts: &Signals,
    binding: &Binding,
    mut sampler: Sampler,
) -> Result<Option<(Delta, Duration, Duration)>> {
    let (before, mut whole) = (children_cpu()?, Delta::default());
    let bind = || Ok(apply::bind(binding).map(drop)?);
    let (status, wall) = child::run(command, interrupts, bind, STEP, |_| {
        whole.add(&sampler.step()?);
        Ok(STEP)
    })?;
    if interrupts.within(Duration::ZERO).is_some() {
        return Ok(None);
    }
    // The command's status is not the result of the comparison.
    CommandError::check(command, status).map_err(|failed| anyhow!("{failed}"))?;
    let cpu = children_cpu()?.saturating_sub(before);
    Ok(Some((whole, wall, cpu)))
}
