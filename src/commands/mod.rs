//! The subcommands, one file each, and what they share: reading the machine, the policy and the selection.

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

/// Runs a command; its output goes to `out`.
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

/// Runs the part of a command that follows after its output was printed: `apply --try` on a terminal waits for a
/// confirmation. It may print more and change the exit code.
pub fn follow_up(cli: &Cli, exit: Exit, out: &mut String) -> Result<Exit> {
    match &cli.command {
        Command::Apply(args) => confirm::ask(cli, args, exit, out),
        _ => Ok(exit),
    }
}

/// The command works on the running machine only, and `--root` names another.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct NotThisMachine(&'static str);

pub fn exit_of(error: &anyhow::Error) -> Exit {
    let usage = matches!(error.downcast_ref(), Some(SelectError::Malformed { .. }))
        || matches!(error.downcast_ref(), Some(BindingError::NoCpu))
        || error.is::<ImpossibleCpu>()
        || error.is::<man::NoSuchCommand>()
        || error.is::<NotThisMachine>()
        || error.is::<Misspelt>();
    if usage { Exit::Usage } else { Exit::Failed }
}

/// An argument that is neither a command nor an interface, and resembles a command.
#[derive(Debug, thiserror::Error)]
#[error("`{word}` is neither a command nor an interface; did you mean `nicpin {command}`?")]
struct Misspelt {
    word: String,
    command: String,
}

/// Default policy file, below the root.
const CONFIG: &str = "/etc/nicpin.toml";

/// Opens the root for a command that writes; a capture is refused.
fn open_to_write(cli: &Cli) -> Result<Root> {
    let root = Root::open(&cli.root)?;
    if root.is_capture() {
        let name = cli.root.display();
        anyhow::bail!(
            "{name}: a capture is read-only; run the command on the machine itself, or on the unpacked tree"
        );
    }
    Ok(root)
}

/// Name of a policy file, as errors print it, and its text; `None` if there is no file.
type PolicyFile = (String, Option<String>);

/// Whether a command writes to the machine, which decides which policy files it trusts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// The command only reads.
    Look,
    /// The command writes: files that users other than root and this one may write are not trusted.
    Write,
}

fn read_policy_file(cli: &Cli, root: &Root, purpose: Purpose) -> Result<PolicyFile> {
    // A path from the command line is not below --root.
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
    let trusted = if purpose == Purpose::Write { top.read_believed(&absolute)? } else { None };
    Ok((path.display().to_string(), Some(trusted.map_or_else(|| top.read(&absolute), Ok)?)))
}

fn parse_policy((name, text): &PolicyFile, args: &PolicyArgs) -> Result<Policy> {
    let mut policy = match text {
        Some(text) => Policy::parse(text).with_context(|| name.clone())?,
        None => Policy::default(),
    };
    policy.options = args.settings.clone();
    Ok(policy)
}

/// Refuses CPU lists with CPUs that the machine cannot have. In the policy file the error has line and column, on the
/// command line it is a usage error.
fn check_cpus((name, text): &PolicyFile, policy: &Policy, possible: u32) -> Result<()> {
    if let Some(text) = text {
        Policy::parse_for(text, possible).with_context(|| name.clone())?;
    }
    Ok(policy.options.check(possible)?)
}

/// Reads the machine and plans the selected interfaces, for a command that only reads. The values are never dropped: the
/// process ends after its output, and to free the many allocations of a large machine takes longer than to exit.
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
    // Interfaces that are not selected take part in the placement only: the settings of their queues are not needed.
    let queues = if select.selectors.is_empty() { Queues::Steering } else { Queues::Numbers };
    let (mut machine, policy) = read_host(purpose, cli, root, args, Wants { queues, ..wants })?;
    let selection = Selection::new(&machine, &select.selectors, select.if_present)?;
    if queues == Queues::Numbers {
        read::read_queue_settings(root, &mut machine, &selection.names)?;
    }
    let plan = crate::plan::plan(&machine, &policy, &selection);
    Ok((machine, plan))
}

/// Reads the policy, and the machine with the facts in `wants`.
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

/// Selected interfaces that cannot be planned, with the reason.
fn unplannable(select: &SelectArgs, plan: &Plan) -> Vec<Unplannable> {
    if select.selectors.is_empty() { Vec::new() } else { Unplannable::of(plan, Note::is_unplannable) }
}

/// Interfaces whose state cannot be determined: selected ones that cannot be planned, and without selectors all those
/// whose vectors cannot be read.
fn undetermined(select: &SelectArgs, plan: &Plan) -> Vec<Unplannable> {
    if select.selectors.is_empty() {
        Unplannable::of(plan, |note| matches!(note, Note::VectorsUnreadable { .. }))
    } else {
        unplannable(select, plan)
    }
}

/// Without selectors: interfaces that are up and whose vectors are not understood.
fn left_alone(select: &SelectArgs, plan: &Plan) -> Vec<Unplannable> {
    let mut left = if select.selectors.is_empty() {
        Unplannable::of(plan, |note| matches!(note, Note::VectorsNotUnderstood { .. }))
    } else {
        Vec::new()
    };
    let up = |name: &str| plan.interfaces.iter().any(|i| i.name == name && i.link == "up");
    left.retain(|interface| up(&interface.interface));
    left
}
