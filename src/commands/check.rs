//! `nicpin check`: compare the machine with the plan.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::{Args, ValueEnum};

use crate::commands::args::{General, SelectArgs};
use crate::commands::inputs::{Purpose, as_watched, read_to_judge};
use crate::commands::output;
use crate::commands::policy::PolicyArgs;
use crate::commands::sampling::seconds_since_1970;
use crate::screen;
use crate::watch::state;
use nicpin::apply;
use nicpin::report::check::{Check, CheckState, PluginStatus, Range, Thresholds};
use nicpin::report::exit::Exit;
use nicpin::root::Root;

#[derive(Debug, Args)]
pub struct CheckArgs {
    #[command(flatten)]
    pub select: SelectArgs,

    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: CheckFormat,

    /// The same as --format json
    #[arg(short, long, conflicts_with = "format")]
    json: bool,

    /// Write the metrics to this file, which is replaced (--format prometheus only)
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Warn if the local share of an interface, in percent, is outside of RANGE (--format nagios only)
    #[arg(long, value_name = "RANGE")]
    pub warning: Option<Range>,

    /// Critical if the local share of an interface, in percent, is outside of RANGE (--format nagios only)
    #[arg(long, value_name = "RANGE")]
    pub critical: Option<Range>,

    /// Count vectors that the kernel does not allow to move as differences
    #[arg(long)]
    pub strict: bool,

    /// Count settings that differ from the plan although they are as good as planned
    #[arg(long)]
    pub exact: bool,

    #[command(flatten)]
    pub policy: PolicyArgs,
}

impl CheckArgs {
    /// Writes metrics to a file.
    pub fn metrics(select: SelectArgs, policy: PolicyArgs, file: PathBuf) -> Self {
        Self {
            select,
            format: CheckFormat::Prometheus,
            json: false,
            output: Some(file),
            warning: None,
            critical: None,
            strict: false,
            exact: false,
            policy,
        }
    }

    pub fn format(&self) -> CheckFormat {
        if self.json {
            CheckFormat::Json
        } else {
            self.format
        }
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum CheckFormat {
    /// Text
    #[default]
    Table,
    /// The schema `nicpin.check/1`
    Json,
    /// Metrics
    Prometheus,
    /// The line and the exit codes of a monitoring plugin
    Nagios,
}

pub fn run(cli: &General, args: &CheckArgs, out: &mut String) -> Result<Exit> {
    let thresholds = Thresholds {
        warning: args.warning,
        critical: args.critical,
    };
    let checked = checked(cli, args);
    if args.format() == CheckFormat::Nagios {
        let check = checked.map_err(|error| format!("{error:#}"));
        let check = check.as_ref().map_err(String::as_str);
        *out += &screen::monitoring::line(check, thresholds);
        return Ok(check
            .map_or(PluginStatus::Unknown, |check| thresholds.judge(check))
            .into());
    }
    let check = checked?;
    match args.format() {
        CheckFormat::Json => *out += &screen::json(&check)?,
        CheckFormat::Prometheus => metrics(cli, &check, args.output.as_deref(), out)?,
        CheckFormat::Table | CheckFormat::Nagios => {
            let page = screen::check::check(&check, cli.verbose, &cli.apply);
            *out += &page.show(output::screen());
        }
    }
    Ok(check.exit())
}

fn checked(cli: &General, args: &CheckArgs) -> Result<Check> {
    let root = Root::open(&cli.root)?;
    let watcher = state::running(&root)?;
    let policy = as_watched(&args.policy, watcher.is_some_and(|of| of.avoids_exclusive));
    let (machine, plan) = read_to_judge(Purpose::Compare, cli, &root, &args.select, &policy)?;
    let check = apply::check(&root, &machine, &plan, args.select.is_given());
    let check = if args.strict { check.strict() } else { check };
    Ok(if args.exact { check.exact() } else { check })
}

/// Prints metrics, or replaces a file with them. The file keeps the time of the last success.
fn metrics(cli: &General, check: &Check, file: Option<&Path>, out: &mut String) -> Result<()> {
    let watcher = state::running(&Root::open(&cli.root)?)?;
    let last_success = if check.verdict == CheckState::Same {
        Some(seconds_since_1970())
    } else {
        let text = file.and_then(output::published);
        text.and_then(|text| screen::monitoring::last_success(&text))
    };
    let text = screen::monitoring::metrics(check, watcher.as_ref(), last_success);
    if let Some(file) = file {
        return output::publish(file, text.as_bytes());
    }
    *out += &text;
    Ok(())
}
