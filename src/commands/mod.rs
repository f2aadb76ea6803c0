//! The subcommands, a file each, and what they share: reading the machine, the policy and the selection.

mod apply;
mod check;
mod plan;
mod restore;

use std::process::ExitCode;

use anyhow::{Context as _, Result};

use crate::cli::{Cli, Command, PolicyArgs, SelectArgs};
use crate::host::{Host, Root, Wants};
use crate::plan::Plan;
use crate::policy::Policy;
use crate::select::{SelectError, Selection};

/// The exit codes. There are no others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// In the planned state.
    Planned = 0,
    /// The planned state could not be reached, or not be told.
    Failed = 1,
    /// Differs from the plan, or was changed where that was asked for.
    Differs = 2,
    /// The command line makes no sense.
    Usage = 64,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Runs a command; what it prints goes to `out`.
pub fn run(cli: &Cli, out: &mut String) -> Result<Exit> {
    match &cli.command {
        Command::Plan(args) => plan::run(cli, args, out),
        Command::Apply(args) => apply::run(cli, args, out),
        Command::Check(args) => check::run(cli, args, out),
        Command::Restore(args) => restore::run(cli, args, out),
    }
}

/// The exit code of an error.
pub fn exit_of(error: &anyhow::Error) -> Exit {
    match error.downcast_ref() {
        Some(SelectError::Malformed { .. }) => Exit::Usage,
        _ => Exit::Failed,
    }
}

/// Where a site keeps its policy.
const CONFIG: &str = "/etc/nicpin.toml";

fn read_policy(cli: &Cli, root: &Root, args: &PolicyArgs) -> Result<Policy> {
    // A file named on the command line is this process's, not the machine's below the root.
    let (name, text) = match &cli.config {
        Some(path) => {
            let top = Root::open("/".as_ref())?;
            let absolute = std::path::absolute(path).with_context(|| path.display().to_string())?;
            (path.display().to_string(), Some(top.read(&absolute.to_string_lossy())?))
        }
        None => (root.outside(CONFIG).display().to_string(), root.read_opt(CONFIG)?),
    };
    let mut policy = match text {
        Some(text) => {
            Policy::parse(&text).map_err(|error| anyhow::anyhow!("{name}: {}", one_line(&text, &error)))?
        }
        None => Policy::default(),
    };
    policy.options = args.settings();
    Ok(policy)
}

/// What toml says over several lines, in one: `line 3, column 9: ...`.
fn one_line(text: &str, error: &toml::de::Error) -> String {
    let Some(span) = error.span() else { return error.message().to_owned() };
    let before = &text[..span.start.min(text.len())];
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    format!("line {line}, column {column}: {}", error.message())
}

/// Reads the machine and plans what the command line asks for.
fn read_and_plan(cli: &Cli, root: &Root, select: &SelectArgs, args: &PolicyArgs) -> Result<(Host, Plan)> {
    let policy = read_policy(cli, root, args)?;
    let host = Host::read_for(root, Wants { hints: policy.wants_hints() })?;
    let selection = Selection::new(&host, &select.selectors, select.if_present)?;
    let plan = crate::plan::plan(&host, &policy, &selection);
    Ok((host, plan))
}

/// Interfaces that were asked for and cannot be planned, and why not.
fn unplannable(select: &SelectArgs, plan: &Plan) -> Vec<String> {
    if select.selectors.is_empty() {
        return Vec::new();
    }
    let stops = ["vectors-not-understood", "no-vectors"];
    let notes = plan.interfaces.iter().flat_map(|i| i.notes.iter().map(move |note| (i, note)));
    notes
        .filter(|(_, note)| stops.contains(&note.code.as_str()))
        .map(|(interface, note)| format!("{}: {}", interface.name, note.text))
        .collect()
}
