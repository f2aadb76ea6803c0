//! The subcommands, a file each.

mod apply;
pub mod bandwidth;
mod capture;
mod check;
mod child;
mod compare;
pub mod completions;
mod confirm;
mod draw;
mod fleet;
mod flow;
mod inputs;
mod interrupt;
mod irqbalance_policy;
mod journal;
mod man;
mod measure;
mod nodes;
pub mod output;
mod plan;
mod restore;
mod run;
mod sampling;
mod status;
mod watch;
mod watched;

use std::borrow::Cow;

use anyhow::Result;

use crate::cli::{Cli, Command};
use crate::commands::child::CommandError;
use crate::commands::inputs::UsageError;
use crate::screen;
use nicpin::machine::SelectError;
use nicpin::plan::binding::BindingError;
use nicpin::policy::{ImpossibleCpu, NoEffect};
use nicpin::report::exit::Exit;

/// Runs a command; its output goes to `out`, made printable.
pub fn run(cli: &Cli, out: &mut String) -> Result<Exit> {
    match cli.color {
        clap::ColorChoice::Auto => anstream::ColorChoice::Auto,
        clap::ColorChoice::Always => anstream::ColorChoice::Always,
        clap::ColorChoice::Never => anstream::ColorChoice::Never,
    }
    .write_global();
    let result = dispatch(cli, out);
    // It has colours, and makes its text printable before.
    if !matches!(cli.command, Command::Status(_)) {
        make_printable(out);
    }
    result
}

fn make_printable(out: &mut String) {
    if let Cow::Owned(printable) = screen::printable(out) {
        *out = printable;
    }
}

fn dispatch(cli: &Cli, out: &mut String) -> Result<Exit> {
    match &cli.command {
        Command::Status(args) => status::run(cli, args, out),
        Command::Plan(args) => plan::run(cli, args, out),
        Command::Apply(args) => apply::run(cli, args, out),
        Command::Check(args) => check::run(cli, args, out),
        Command::Restore(args) => restore::run(cli, args, out),
        Command::Confirm(args) => confirm::run(cli, args, out),
        Command::Watch(args) => watch::run(cli, args),
        Command::Measure(args) => measure::run(cli, args, out),
        Command::Compare(args) => compare::run(cli, args, out),
        Command::Capture(args) => capture::run(cli, args, out),
        Command::Run(args) => run::run(cli, args, out),
        Command::Completions(args) => completions::run(args, out),
        Command::Draw(args) => draw::run(cli, args, out),
        Command::Flow(args) => flow::run(cli, args, out),
        Command::Fleet(args) => fleet::run(cli, args, out),
        Command::Man(args) => man::run(args, out),
        Command::Help(args) => man::help(args, out),
        Command::Nodes(args) => nodes::run(cli, args, out),
        Command::IrqbalancePolicy(args) => irqbalance_policy::run(cli, args, out),
        Command::AwaitConfirm(args) => confirm::watch(cli, args),
        Command::WatchRun(args) => watched::run(cli, args, out),
    }
}

/// Runs the part of a command that follows after its output was printed: `apply --try` on a terminal waits for a
/// confirmation. It may print more and change the exit code.
pub fn follow_up(cli: &Cli, exit: Exit, out: &mut String) -> Result<Exit> {
    let Command::Apply(args) = &cli.command else {
        return Ok(exit);
    };
    let exit = confirm::ask(cli, args, exit, out);
    make_printable(out);
    exit
}

/// The exit code of an error, or the status of a command that failed.
pub fn exit_of(error: &anyhow::Error) -> u8 {
    if let Some(failed) = error.downcast_ref::<CommandError>() {
        return failed.status;
    }
    let usage = matches!(error.downcast_ref(), Some(SelectError::Malformed { .. }))
        || matches!(error.downcast_ref(), Some(BindingError::NoCpu))
        || error.is::<ImpossibleCpu>()
        || error.is::<NoEffect>()
        || error.is::<UsageError>();
    (if usage { Exit::Usage } else { Exit::Failed }) as u8
}
