//! `nicpin compare`: run a command near an interface and far from it, in turn.

use crate::commands::args::General;
use crate::commands::args::ReportArgs;
use crate::commands::args::memory_binding;
use crate::commands::child::{self, CommandError};
use crate::commands::help;
use crate::commands::inputs::{Purpose, UsageError, plan_beside_all, read_host};
use crate::commands::interrupt::Interrupts;
use crate::commands::output;
use crate::commands::policy::PolicyArgs;
use crate::commands::sampling::{Progress, STEP, Sampler};
use crate::screen;
use anyhow::{Context as _, Result, bail};
use clap::Args;
use nicpin::apply;
use nicpin::machine::sample::Delta;
use nicpin::machine::selection::without_device;
use nicpin::machine::{Machine, Selection};
use nicpin::plan::Note;
use nicpin::plan::binding::MemoryBinding;
use nicpin::plan::binding::{Binding, BindingRequest, NodeChoice};
use nicpin::policy::Policy;
use nicpin::read::Wants;
use nicpin::report::compare::{ComparedRun, Comparison, Side};
use nicpin::report::exit::Exit;
use nicpin::report::measure::{Measure, MeasuredInterface};
use nicpin::root::Root;
use nix::sys::resource::{UsageWho, getrusage};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Args)]
#[command(after_help = help::after("compare"))]
pub struct CompareArgs {
    /// The interface, or any other selector that stands for interfaces on one node
    #[arg(value_name = "INTERFACE")]
    pub interface: String,

    /// Number of runs on each node that count
    #[arg(short = 'n', long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    pub runs: u16,

    /// Number of runs on each node before those, which do not count
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(..=10_000))]
    pub warmup: u16,

    /// Use this node as near
    #[arg(long, value_name = "NODE")]
    pub near: Option<u32>,

    /// Use this node as far
    #[arg(long, value_name = "NODE")]
    pub far: Option<u32>,

    /// How strictly CMD's memory is bound to the node
    #[arg(long, value_parser = memory_binding(), default_value = "bind")]
    pub memory: MemoryBinding,

    #[command(flatten)]
    pub report: ReportArgs,

    /// Also write the comparison to this file as JSON
    #[arg(long, value_name = "FILE")]
    pub export_json: Option<PathBuf>,

    /// Also write the comparison to this file as a Markdown table
    #[arg(long, value_name = "FILE")]
    pub export_markdown: Option<PathBuf>,

    /// Replace the files of --export-json and --export-markdown if they exist
    #[arg(long)]
    pub force: bool,

    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}

pub(super) fn run(cli: &General, args: &CompareArgs, out: &mut String) -> Result<Exit> {
    let root = Root::open(&cli.root)?;
    let (machine, policy) = read_host(
        Purpose::Look,
        cli,
        &root,
        &PolicyArgs::default(),
        Wants {
            memory: true,
            ..Wants::default()
        },
    )?;
    let Sides {
        near,
        far,
        subjects,
        mut notes,
    } = sides(&machine, &policy, args)?;
    if !root.is_real() {
        bail!(UsageError::new(
            "the command would run on this machine, not on the one that --root names"
        ));
    }
    // Before the runs, which may take long.
    for file in args.export_json.iter().chain(&args.export_markdown) {
        output::check_new(file, args.force)?;
    }
    let interrupts = Interrupts::catch()?;
    let places = [(near, "near"), (far, "far")];
    let mut sides = places.each_ref().map(|(binding, _)| Side::new(binding));
    let mut progress = Progress::new();
    'runs: for round in 0..args.warmup + args.runs {
        let turn = match round.checked_sub(args.warmup) {
            None => format!("warm-up {} of {}", round + 1, args.warmup),
            Some(run) => format!("run {} of {}", run + 1, args.runs),
        };
        // Each side is first in every other round, so that what changes with time weighs on both.
        for side in if round % 2 == 0 { [0, 1] } else { [1, 0] } {
            let (binding, name) = &places[side];
            if !cli.quiet {
                progress.say(&format!("{name}, {turn}"));
            }
            let run = run_once(
                &root,
                &machine,
                &subjects,
                &args.command,
                &interrupts,
                binding,
            )
            .with_context(|| format!("{name}, {turn}"))?;
            let Some((run, run_notes)) = run else {
                break 'runs;
            };
            if round >= args.warmup {
                sides[side].runs.push(run);
                let new: Vec<Note> = run_notes
                    .into_iter()
                    .filter(|note| !notes.contains(note))
                    .collect();
                notes.extend(new);
            }
        }
    }
    drop(progress);
    let [near, far] = sides;
    let ended = [near.runs.len(), far.runs.len()];
    if ended == [0, 0] {
        bail!("interrupted before the end of the first run that counts");
    }
    let command = args
        .command
        .iter()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let mut comparison = Comparison::new(&args.interface, command, near, far, notes);
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
    out.push_str(&output::report(
        args.report,
        &comparison,
        screen::measure::compare,
    )?);
    let wanted = usize::from(args.runs);
    if ended != [wanted, wanted] {
        bail!(
            "interrupted after {} near and {} far of {wanted} runs each",
            ended[0],
            ended[1]
        );
    }
    Ok(Exit::Planned)
}

/// Where the command runs, and which interfaces are measured.
struct Sides {
    near: Binding,
    far: Binding,
    subjects: Vec<MeasuredInterface>,
    notes: Vec<Note>,
}

fn sides(machine: &Machine, policy: &Policy, args: &CompareArgs) -> Result<Sides> {
    let virtual_kind = without_device(machine, &args.interface);
    if let (Some(kind), None, _) | (Some(kind), _, None) = (&virtual_kind, args.near, args.far) {
        bail!(
            "`{}` is {kind} and has no node; fix: name the nodes to compare with --near N --far N",
            args.interface
        );
    }
    let names = match virtual_kind {
        Some(_) => Vec::new(),
        None => Selection::new(machine, std::slice::from_ref(&args.interface), false)?
            .names
            .into_iter()
            .collect(),
    };
    let plan = plan_beside_all(machine, policy, &names)?;
    let binding = |place: NodeChoice| {
        let wish = BindingRequest {
            place,
            cpus: None,
            memory: args.memory,
        };
        Binding::new(machine, &plan, &args.interface, &names, &wish)
    };
    let near = binding(args.near.map_or(NodeChoice::Near, NodeChoice::Node))?;
    let far = binding(args.far.map_or(NodeChoice::Far, NodeChoice::Node))?;
    let subjects = match virtual_kind {
        Some(kind) => vec![MeasuredInterface::without_device(&args.interface, &kind)],
        None => plan
            .interfaces
            .iter()
            .filter(|i| names.contains(&i.name))
            .map(MeasuredInterface::planned)
            .collect(),
    };
    Ok(Sides {
        notes: notes(&near, &far),
        near,
        far,
        subjects,
    })
}

/// Differences between the two sides other than the distance.
fn notes(near: &Binding, far: &Binding) -> Vec<Note> {
    let about = near.notes.iter().chain(&far.notes);
    let mut notes: Vec<Note> = about
        .map(|about| Note::Memory {
            about: about.clone(),
        })
        .collect();
    if near.nodes == far.nodes {
        notes.push(Note::SameNode {
            node: near.nodes.clone(),
        });
    } else if near.cpus.len() != far.cpus.len() {
        notes.push(Note::CpusUnlike {
            near: near.cpus.len(),
            far: far.cpus.len(),
        });
    }
    notes
}

/// `None` if an interrupt came.
fn run_once(
    root: &Root,
    machine: &Machine,
    subjects: &[MeasuredInterface],
    command: &[OsString],
    interrupts: &Interrupts,
    binding: &Binding,
) -> Result<Option<(ComparedRun, Vec<Note>)>> {
    let mut watch = Sampler::begin(root, MeasuredInterface::wanted(subjects))?;
    let before = children_cpu()?;
    let mut running = child::start(command, interrupts, || Ok(apply::bind(binding).map(drop)?))?;
    let mut whole = Delta::default();
    let ended = loop {
        let ended = running.wait(STEP)?;
        whole.add(&watch.step()?);
        if let Some(ended) = ended {
            break ended;
        }
    };
    if interrupts.within(Duration::ZERO).is_some() {
        return Ok(None);
    }
    if let Some(failed) = CommandError::of(command, ended.status) {
        // Its status is not the result of the comparison.
        bail!("{failed}");
    }
    let measure = Measure::new(&machine.topology, subjects, &whole);
    let cpu = children_cpu()?.saturating_sub(before);
    Ok(Some((
        ComparedRun::new(&measure, ended.wall, cpu),
        measure.notes,
    )))
}

/// CPU time, user and system, of all ended child processes and of their own children; see getrusage(2).
fn children_cpu() -> Result<Duration> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let time = |time: nix::sys::time::TimeVal| {
        let (seconds, micros) = (u64::try_from(time.tv_sec()), u64::try_from(time.tv_usec()));
        Duration::from_secs(seconds.unwrap_or(0)) + Duration::from_micros(micros.unwrap_or(0))
    };
    Ok(time(usage.user_time()) + time(usage.system_time()))
}
