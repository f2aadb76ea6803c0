//! The command line, and a file for each subcommand.

mod apply;
mod args;
pub mod bandwidth;
mod capture;
mod check;
mod child;
pub mod command_line;
mod compare;
pub mod completions;
mod confirm;
mod draw;
mod fleet;
mod flow;
pub mod help;
mod inputs;
mod irqbalance_policy;
mod man;
mod measure;
mod nodes;
pub mod output;
mod plan;
mod restore;
mod run;
mod sampling;
mod status;
pub mod topics;
mod watch;
mod watch_run;

use std::borrow::Cow;
use std::ffi::OsString;

use anstream::ColorChoice as Colours;
use anyhow::{Result, bail};
use clap::ColorChoice::{Always, Auto, Never};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use itertools::Itertools as _;

use self::Command::{
    Apply, AwaitConfirm, Capture, Check, Compare, Completions, Confirm, Draw, Fleet, Flow, Help,
    IrqbalancePolicy, Man, Measure, Nodes, Plan, Restore, Run, Status, Watch, WatchRun,
};
use crate::commands::args::General;
use crate::commands::child::CommandError;
use crate::commands::command_line::{
    given, hide_refused, nearest_command, nearest_option, with_command, without_effect,
};
use crate::commands::help::HelpText;
use crate::commands::inputs::{UsageError, usage};
use crate::screen;
use nicpin::machine::SelectError;
use nicpin::policy::{PolicyError, SettingError};
use nicpin::report::exit::Exit;

/// Put the interrupts and packet steering of network interfaces on their own NUMA node: plan, prove, undo
#[derive(Parser)]
#[command(name = "nicpin", version, max_term_width = 100)]
#[command(disable_help_subcommand = true)]
#[command(
    override_usage = "nicpin [OPTIONS] [status] [SELECTOR]...\n       nicpin [OPTIONS] COMMAND"
)]
pub struct Cli {
    #[command(flatten)]
    pub general: General,

    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand)]
pub enum Command {
    /// Show whether the interrupts of each interface arrive on its own node, and will stay there (the default)
    Status(status::StatusArgs),
    /// Print what apply would write; writes nothing, needs no root
    Plan(plan::PlanArgs),
    /// Write the plan, read it back and report what changed
    #[command(visible_alias = "start")]
    Apply(apply::ApplyArgs),
    /// Check whether the machine is in the planned state; writes nothing
    Check(check::CheckArgs),
    /// Restore the settings that the first apply found
    #[command(visible_alias = "stop")]
    Restore(restore::RestoreArgs),
    /// Keep what `apply --try` has set
    Confirm(confirm::ConfirmArgs),
    /// Keep the planned state: apply again after each event that undoes it
    Watch(watch::WatchArgs),
    /// Watch counters: interrupts by queue and CPU, the share that is local, throughput and its cost
    Measure(measure::MeasureArgs),
    /// Run a command on an interface's node and on a remote node in turn, and compare what it costs
    Compare(compare::CompareArgs),
    /// Record this machine as one file that --root accepts; needs no root
    Capture(capture::CaptureArgs),
    /// Run a command on the CPUs and memory of an interface's node
    Run(run::RunArgs),
    /// Show the nodes: CPUs, memory, distances and the interfaces on each
    Nodes(nodes::NodesArgs),
    /// Report on many machines: classes of hardware, their plans, and why hosts are not as planned
    Fleet(fleet::FleetArgs),
    /// Show the queue, IRQ and CPU that a flow will arrive on, before its first packet
    Flow(flow::FlowArgs),
    /// Draw the machine as SVG: nodes, cores, interfaces, and the CPU of each queue, now and planned
    Draw(draw::DrawArgs),
    /// Print the completion script for a shell
    Completions(completions::CompletionsArgs),
    /// Print a manual page, or write all of them
    Man(man::ManArgs),
    /// Print the help of a command, or about a topic: states, selectors, policy
    Help(man::HelpArgs),
    /// Started by `apply --try`: restores all settings unless `nicpin confirm` comes within SECONDS
    #[command(hide = true)]
    AwaitConfirm(confirm::AwaitConfirmArgs),
    /// Started by `nicpin watch`: applies once, or with `--observe` checks, and prints a report for it
    #[command(hide = true)]
    WatchRun(watch_run::WatchRunArgs),
    /// Answer irqbalance as its policy script: print `ban=true` for IRQs that nicpin plans
    IrqbalancePolicy(irqbalance_policy::IrqbalancePolicyArgs),
}

/// Only help needs the help texts.
pub fn defined() -> clap::Command {
    let with_help = |command: clap::Command| {
        let help = HelpText::of(command.get_name());
        command.after_help(help.after_options())
    };
    let mut command = with_help(Cli::command()).mut_subcommands(with_help);
    // Gives each command the general options, too.
    command.build();
    command.mut_subcommands(hide_refused)
}

impl Cli {
    /// The first argument is the name of the program.
    pub fn of(args: impl IntoIterator<Item = OsString>) -> Result<Self, clap::Error> {
        let mut command = Self::command();
        let args = with_command(&command, args);
        let matches = match command.try_get_matches_from_mut(&args) {
            Err(help) if help.kind() == ErrorKind::DisplayHelp => {
                defined().try_get_matches_from(args)?
            }
            matches => {
                matches.map_err(|error| with_tip(name_given(error, &args), &command, &args))?
            }
        };
        let name = matches.subcommand_name().unwrap_or_default();
        if let (Some(reason), Some(command)) =
            (without_effect(&matches), command.find_subcommand_mut(name))
        {
            let mut error = command.error(ErrorKind::ArgumentConflict, &reason);
            error.insert(ContextKind::Custom, ContextValue::String(reason));
            return Err(error);
        }
        let mut cli = Self::from_arg_matches(&matches)?;
        cli.general.given = given(&command, &matches);
        name.clone_into(&mut cli.general.command);
        Ok(cli)
    }
}

/// Of the arguments that cannot stand beside one, names those that were given: clap names all of a group.
fn name_given(mut error: clap::Error, args: &[OsString]) -> clap::Error {
    let Some(ContextValue::Strings(all)) = error.get(ContextKind::PriorArg) else {
        return error;
    };
    let is_given = |name: &&String| {
        let name = name.split(' ').next().unwrap_or_default();
        let mut words = args.iter().map(|arg| arg.to_string_lossy());
        words.any(|word| word.split('=').next() == Some(name))
    };
    let mut given = all.iter().filter(is_given).cloned().collect_vec();
    if given.is_empty() {
        given = all
            .iter()
            .filter(|name| !name.starts_with('-'))
            .cloned()
            .collect();
    }
    if given.is_empty() {
        return error;
    }
    let given = match <[String; 1]>::try_from(given) {
        Ok([given]) => ContextValue::String(given),
        Err(given) => ContextValue::Strings(given),
    };
    error.insert(ContextKind::PriorArg, given);
    error
}

/// Clap takes an unknown option for a value; it may be a format, or an option of another command.
fn with_tip(mut error: clap::Error, command: &clap::Command, args: &[OsString]) -> clap::Error {
    let own = args
        .iter()
        .skip(1)
        .find_map(|arg| command.find_subcommand(arg));
    let option = match (error.kind(), own, error.get(ContextKind::InvalidArg)) {
        (ErrorKind::UnknownArgument, Some(own), Some(ContextValue::String(given))) => {
            nearest_option(command, own.get_name(), given.trim_start_matches('-'))
        }
        _ => None,
    };
    if let Some(option) = option {
        let tips = vec![format!("'nicpin {option}' exists").into()];
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
    }
    error
}

pub fn run(cli: &Cli, out: &mut String) -> Result<Exit> {
    match cli.general.color {
        Auto => Colours::Auto,
        Always => Colours::Always,
        Never => Colours::Never,
    }
    .write_global();
    let result = dispatch(cli, out).map_err(|error| misspelt(error, &cli.general.command));
    match screen::printable(out) {
        // These have colours, and make their texts printable before.
        Cow::Owned(printable) if !matches!(cli.command, Status(_) | Check(_)) => *out = printable,
        _ => {}
    }
    result
}

fn dispatch(cli: &Cli, out: &mut String) -> Result<Exit> {
    let general = &cli.general;
    match &cli.command {
        Status(args) => status::run(general, args, out),
        Plan(args) => plan::run(general, args, out),
        Apply(args) => apply::run(general, args, out),
        Check(args) => check::run(general, args, out),
        Restore(args) => restore::run(general, args, out),
        Confirm(args) => confirm::run(general, args, out),
        Watch(args) => watch::run(general, args),
        Measure(args) => measure::run(general, args, out),
        Compare(args) => compare::run(general, args, out),
        Capture(args) => capture::run(general, args, out),
        Run(args) => run::run(general, args, out),
        Completions(args) => completions::run(args, out),
        Draw(args) => draw::run(general, args, out),
        Flow(args) => flow::run(general, args, out),
        Fleet(args) => fleet::run(general, args, out),
        Man(args) => man::run(&defined(), args, out),
        Help(args) => man::help(defined(), args, out),
        Nodes(args) => nodes::run(general, args, out),
        IrqbalancePolicy(args) => irqbalance_policy::run(general, args, out),
        AwaitConfirm(args) => confirm::watch(general, args),
        WatchRun(args) => {
            let mut watcher = Cli::of(["nicpin".into()].into_iter().chain(args.watcher.clone()))?;
            let Watch(watch_args) = &watcher.command else {
                bail!("a run of nicpin watch is started by nicpin watch");
            };
            // The watcher's copy of a policy whose file has become invalid.
            watcher.general.config = general.config.clone().or(watcher.general.config);
            watch_run::run(&watcher.general, watch_args, args, out)
        }
    }
}

/// Explains a selector that matches nothing and is the name of an option (`plan explain`), or, without a command,
/// resembles one. A name with a digit (`wlan0`, `node:9`) resembles none.
fn misspelt(error: anyhow::Error, command: &str) -> anyhow::Error {
    let Some(SelectError::Nothing { selector, .. }) = error.downcast_ref() else {
        return error;
    };
    if selector.contains(|letter: char| letter.is_ascii_digit()) {
        return error;
    }
    let defined = defined();
    let nearest = nearest_command(&defined, selector).filter(|_| command == "status");
    let nearest = nearest.map(str::to_owned);
    let nearest = nearest.or_else(|| nearest_option(&defined, command, selector));
    let Some(nearest) = nearest else {
        return error;
    };
    let text = if nearest == *selector {
        format!(
            "`{nearest}` is a command, which comes before its options and selectors: nicpin {nearest} ..."
        )
    } else {
        format!(
            "`{selector}` is neither a command nor an interface; did you mean `nicpin {nearest}`?"
        )
    };
    usage(text).into()
}

pub fn exit_of(error: &anyhow::Error) -> u8 {
    if let Some(failed) = error.downcast_ref::<CommandError>() {
        return failed.status;
    }
    let is_usage = error.is::<UsageError>()
        || error.is::<SettingError>()
        || error.is::<PolicyError>()
        || matches!(error.downcast_ref(), Some(SelectError::Malformed { .. }));
    (if is_usage { Exit::Usage } else { Exit::Failed }) as u8
}
