//! `nicpin compare`: run a command near an interface and far from it, in turn.

use std::ffi::OsString;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use nix::sys::resource::{UsageWho, getrusage};

use crate::apply;
use crate::cli::{Cli, CompareArgs, PolicyArgs};
use crate::commands::inputs::{Purpose, UsageError, plan_beside_all, read_host};
use crate::commands::sampling::{Progress, STEP, Sampler};
use crate::commands::{child, output};
use crate::machine::growth::Growth;
use crate::machine::selection::without_device;
use crate::machine::{Machine, Selection};
use crate::plan::Note;
use crate::plan::binding::{Binding, BindingRequest, NodeChoice};
use crate::policy::Policy;
use crate::read::Wants;
use crate::render;
use crate::report::compare::{ComparedRun, Comparison, Side};
use crate::report::exit::Exit;
use crate::report::measure::{Measure, MeasuredInterface};
use crate::root::Root;

pub(super) fn run(cli: &Cli, args: &CompareArgs, out: &mut String) -> Result<Exit> {
    let root = Root::open(&cli.root)?;
    let (machine, policy) = read_host(
        Purpose::Look,
        cli,
        &root,
        &PolicyArgs::default(),
        Wants { memory: true, ..Wants::default() },
    )?;
    let Sides { near, far, subjects, mut notes } = sides(&machine, &policy, args)?;
    if !root.is_real() {
        bail!(UsageError::new("the command would run on this machine, not on the one that --root names"));
    }
    let places = [(near, "near"), (far, "far")];
    let mut sides = places.each_ref().map(|(binding, _)| Side::new(binding));
    let mut progress = Progress::new();
    for turn in 1..=args.runs {
        for ((binding, name), side) in places.iter().zip(&mut sides) {
            progress.say(&format!("{name}, run {turn} of {}", args.runs));
            let (run, run_notes) = run_once(&root, &machine, &subjects, &args.command, binding)
                .with_context(|| format!("{name}, run {turn} of {}", args.runs))?;
            side.runs.push(run);
            notes.extend(run_notes.into_iter().filter(|note| !notes.contains(note)).collect::<Vec<_>>());
        }
    }
    drop(progress);
    let command = args.command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let [near, far] = sides;
    let comparison = Comparison::new(&args.interface, command, near, far, notes);
    out.push_str(&output::report(args.report, &comparison, render::compare::compare)?);
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
            "`{}` is {kind} and has no node; name the nodes to compare with --near N --far N",
            args.interface
        );
    }
    let names = match virtual_kind {
        Some(_) => Vec::new(),
        None => {
            Selection::new(machine, std::slice::from_ref(&args.interface), false)?.names.into_iter().collect()
        }
    };
    let plan = plan_beside_all(machine, policy, &names)?;
    let binding = |place: NodeChoice| {
        let wish = BindingRequest { place, cpus: None, memory: args.memory };
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
    Ok(Sides { notes: notes(&near, &far), near, far, subjects })
}

/// Differences between the two sides other than the distance.
fn notes(near: &Binding, far: &Binding) -> Vec<Note> {
    let about = near.notes.iter().chain(&far.notes);
    let mut notes: Vec<Note> = about.map(|about| Note::Memory { about: about.clone() }).collect();
    if near.nodes == far.nodes {
        notes.push(Note::SameNode { node: near.nodes.clone() });
    } else if near.cpus.len() != far.cpus.len() {
        notes.push(Note::CpusUnlike { near: near.cpus.len(), far: far.cpus.len() });
    }
    notes
}

fn run_once(
    root: &Root,
    machine: &Machine,
    subjects: &[MeasuredInterface],
    command: &[OsString],
    binding: &Binding,
) -> Result<(ComparedRun, Vec<Note>)> {
    let mut watch = Sampler::begin(root, MeasuredInterface::wanted(subjects))?;
    let before = children_cpu()?;
    let running = child::start(command, || Ok(apply::bind(binding).map(drop)?))?;
    let mut whole = Growth::default();
    let ended = loop {
        let ended = running.wait(STEP)?;
        whole.add(&watch.step()?);
        if let Some(ended) = ended {
            break ended;
        }
    };
    if let Some(failure) = child::failure(command, ended.status) {
        bail!(failure);
    }
    let measure = Measure::new(&machine.topology, subjects, &whole);
    Ok((ComparedRun::new(&measure, ended.wall, children_cpu()?.saturating_sub(before)), measure.notes))
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
