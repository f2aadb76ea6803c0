//! The subcommands, a file each, and what they share: reading the machine, the policy and the selection.

mod apply;
mod capture;
mod check;
mod child;
mod compare;
mod completions;
mod confirm;
mod draw;
mod irqbalance_policy;
mod man;
mod measure;
mod nodes;
mod output;
mod plan;
mod restore;
mod run;
mod sampling;
mod status;

use std::mem::ManuallyDrop;
use std::process::ExitCode;

use anyhow::{Context as _, Result};

use crate::cli::{Cli, Command, PolicyArgs, SelectArgs};
use crate::machine::Machine;
use crate::machine::{SelectError, Selection};
use crate::plan::binding::BindingError;
use crate::plan::{Note, Plan};
use crate::policy::{ImpossibleCpu, Policy};
use crate::read;
use crate::read::{Queues, Wants};
use crate::report::check::Unplannable;
use crate::report::exit::Exit;
use crate::root::Root;

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Runs a command; what it prints goes to `out`.
pub fn run(cli: &Cli, out: &mut String) -> Result<Exit> {
    match &cli.command {
        Command::Status(args) => status::run(cli, args, out),
        Command::Plan(args) => plan::run(cli, args, out),
        Command::Apply(args) => apply::run(cli, args, out),
        Command::Check(args) => check::run(cli, args, out),
        Command::Restore(args) => restore::run(cli, args, out),
        Command::Confirm(args) => confirm::run(cli, args, out),
        Command::Measure(args) => measure::run(cli, args, out),
        Command::Compare(args) => compare::run(cli, args, out),
        Command::Capture(args) => capture::run(cli, args, out),
        Command::Run(args) => run::run(cli, args, out),
        Command::Completions(args) => completions::run(args, out),
        Command::Draw(args) => draw::run(cli, args, out),
        Command::Man(args) => man::run(args, out),
        Command::Nodes(args) => nodes::run(cli, args, out),
        Command::IrqbalancePolicy(args) => irqbalance_policy::run(cli, args, out),
        Command::AwaitConfirm(args) => confirm::watch(cli, args),
    }
}

/// What a command goes on with when its output is printed; it may print more, and exit otherwise.
pub fn follow_up(cli: &Cli, exit: Exit, out: &mut String) -> Result<Exit> {
    match &cli.command {
        Command::Apply(args) => confirm::ask(cli, args, exit, out),
        _ => Ok(exit),
    }
}

/// `--root` names another machine than the one that this process runs on.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct NotThisMachine(&'static str);

/// The exit code of an error.
pub fn exit_of(error: &anyhow::Error) -> Exit {
    let usage = matches!(error.downcast_ref(), Some(SelectError::Malformed { .. }))
        || matches!(error.downcast_ref(), Some(BindingError::NoCpu))
        || error.is::<ImpossibleCpu>()
        || error.is::<man::NoSuchCommand>()
        || error.is::<NotThisMachine>()
        || error.is::<Misspelt>();
    if usage { Exit::Usage } else { Exit::Failed }
}

/// A word that is neither a command nor an interface, and looks like a command.
#[derive(Debug, thiserror::Error)]
#[error("`{word}` is neither a command nor an interface; did you mean `nicpin {command}`?")]
struct Misspelt {
    word: String,
    command: String,
}

/// Where a site keeps its policy.
const CONFIG: &str = "/etc/nicpin.toml";

/// Opens the root of a command that writes.
fn open_to_write(cli: &Cli) -> Result<Root> {
    let root = Root::open(&cli.root)?;
    if root.is_capture() {
        let name = cli.root.display();
        anyhow::bail!(
            "{name}: a capture is read-only; run it on the machine itself, or on the unpacked tree"
        );
    }
    Ok(root)
}

/// A policy file: how an error names it, and its text; `None` where there is none.
type PolicyFile = (String, Option<String>);

/// What a command is going to do, which decides how much it has to believe what it reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// Reads and tells.
    Look,
    /// Writes: nobody but root and this user may have written what it goes by.
    Write,
}

fn read_policy_file(cli: &Cli, root: &Root, purpose: Purpose) -> Result<PolicyFile> {
    // A file named on the command line is this process's, not the machine's below the root.
    let Some(path) = &cli.config else {
        let text = match purpose {
            Purpose::Look => root.read_opt(CONFIG)?,
            Purpose::Write => root.read_believed(CONFIG)?,
        };
        return Ok((root.outside(CONFIG).display().to_string(), text));
    };
    let top = Root::open("/".as_ref())?;
    let absolute = std::path::absolute(path).with_context(|| path.display().to_string())?;
    let absolute = absolute.to_string_lossy();
    let believed = if purpose == Purpose::Write { top.read_believed(&absolute)? } else { None };
    Ok((path.display().to_string(), Some(believed.map_or_else(|| top.read(&absolute), Ok)?)))
}

fn parse_policy((name, text): &PolicyFile, args: &PolicyArgs) -> Result<Policy> {
    let mut policy = match text {
        Some(text) => Policy::parse(text).with_context(|| name.clone())?,
        None => Policy::default(),
    };
    policy.options = args.settings.clone();
    Ok(policy)
}

/// Refuses CPU lists that reach beyond the machine: in the file with their place, on the command line as usage.
fn check_cpus((name, text): &PolicyFile, policy: &Policy, possible: u32) -> Result<()> {
    if let Some(text) = text {
        Policy::parse_for(text, possible).with_context(|| name.clone())?;
    }
    Ok(policy.options.check(possible)?)
}

/// Reads the machine and plans what the command line asks for, to tell of it. Nothing is given back: the process ends
/// when that is told, and to free a large machine's hundred thousand parts one by one takes longer than to end.
fn read_and_plan(
    cli: &Cli,
    root: &Root,
    select: &SelectArgs,
    args: &PolicyArgs,
    wants: Wants,
) -> Result<(ManuallyDrop<Machine>, ManuallyDrop<Plan>)> {
    let (machine, plan) = read_and_plan_to(Purpose::Look, cli, root, select, args, wants)?;
    Ok((ManuallyDrop::new(machine), ManuallyDrop::new(plan)))
}

fn read_and_plan_to(
    purpose: Purpose,
    cli: &Cli,
    root: &Root,
    select: &SelectArgs,
    args: &PolicyArgs,
    wants: Wants,
) -> Result<(Machine, Plan)> {
    // Interfaces that were not asked for take their room, and nothing is written to their queues.
    let queues = if select.selectors.is_empty() { Queues::Steering } else { Queues::Numbers };
    let (mut machine, policy) = read_host(purpose, cli, root, args, Wants { queues, ..wants })?;
    let selection = Selection::new(&machine, &select.selectors, select.if_present)?;
    if queues == Queues::Numbers {
        read::read_queue_settings(root, &mut machine, &selection.names)?;
    }
    let plan = crate::plan::plan(&machine, &policy, &selection);
    Ok((machine, plan))
}

/// Reads the machine and what is wanted of it, and the policy for it.
fn read_host(
    purpose: Purpose,
    cli: &Cli,
    root: &Root,
    args: &PolicyArgs,
    wants: Wants,
) -> Result<(Machine, Policy)> {
    let file = read_policy_file(cli, root, purpose)?;
    let policy = parse_policy(&file, args)?;
    let machine = read::machine(root, Wants { hints: policy.wants_hints(), ..wants })?;
    check_cpus(&file, &policy, machine.topology.possible)?;
    Ok((machine, policy))
}

/// Interfaces that were asked for and cannot be planned, and why not.
fn unplannable(select: &SelectArgs, plan: &Plan) -> Vec<Unplannable> {
    if select.selectors.is_empty() { Vec::new() } else { Unplannable::of(plan, Note::is_unplannable) }
}

/// The same, and those that nobody asked for by name whose vectors cannot be read: then nothing is proven.
fn untold(select: &SelectArgs, plan: &Plan) -> Vec<Unplannable> {
    if select.selectors.is_empty() {
        Unplannable::of(plan, |note| matches!(note, Note::VectorsUnreadable { .. }))
    } else {
        unplannable(select, plan)
    }
}

/// Interfaces that nobody asked for by name, which are up and whose vectors are not understood.
fn left_alone(select: &SelectArgs, plan: &Plan) -> Vec<Unplannable> {
    let mut left = if select.selectors.is_empty() {
        Unplannable::of(plan, |note| matches!(note, Note::VectorsNotUnderstood { .. }))
    } else {
        Vec::new()
    };
    let up = |name: &str| plan.interfaces.iter().any(|i| i.name == name && i.link == "up");
    left.retain(|one| up(&one.interface));
    left
}
