//! `nicpin check`: compare the machine with the plan.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::{Args, ValueEnum};

use self::CheckFormat::{Json, Nagios, Prometheus};
use crate::commands::args::{FormatArgs, General, TargetArgs};
use crate::commands::inputs::read_and_compare;
use crate::commands::output;
use crate::screen::monitoring::{self, last_success};
use crate::screen::{self, Given};
use crate::start::seconds_since_1970;
use nicpin::report::check::{Check, CheckState, PluginStatus, Range, Thresholds};
use nicpin::report::exit::Exit;
use nicpin::report::watcher::Watcher;
use nicpin::root::Root;

#[derive(Args)]
pub struct CheckArgs {
    #[command(flatten)]
    target: TargetArgs,

    #[command(flatten)]
    format: FormatArgs<CheckFormat>,

    /// Write the metrics to this file, which is replaced (--format prometheus only)
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Warn if the local share of an interface, in percent, is outside of RANGE (--format nagios only)
    #[arg(long, value_name = "RANGE")]
    warning: Option<Range>,

    /// Critical if the local share of an interface, in percent, is outside of RANGE (--format nagios only)
    #[arg(long, value_name = "RANGE")]
    critical: Option<Range>,

    /// Warn if the number of interfaces that are up and cannot be judged is outside of RANGE (--format nagios only)
    #[arg(long, value_name = "RANGE")]
    warning_not_judged: Option<Range>,

    /// Critical if that number is outside of RANGE (--format nagios only)
    #[arg(long, value_name = "RANGE")]
    critical_not_judged: Option<Range>,

    /// Count IRQs that cannot be moved as differences
    #[arg(long)]
    strict: bool,

    /// Count settings that differ from the plan although they are as good as planned
    #[arg(long)]
    exact: bool,
}

#[derive(Clone, Copy, Default, ValueEnum)]
enum CheckFormat {
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
    let checked = check_machine(cli, &args.target).map(|(check, watcher, given)| {
        let check = check.counting(args.strict, args.exact);
        (check, watcher, given)
    });
    let format = args.format.format;
    if let Nagios = format {
        return Ok(plugin(cli, args, checked.map(|(check, ..)| check)));
    }
    let (check, watcher, given) = checked?;
    let watcher = watcher.as_ref();
    match (format, output::named(args.output.as_ref())) {
        (Json, _) => *out += &screen::printable(&screen::json(&check)?),
        (Prometheus, None) => *out += &screen::printable(&metrics(&check, watcher, None)),
        (Prometheus, Some(file)) => publish(&check, watcher, file)?,
        _ => *out += &screen::check::check(&check, cli.verbose, &given).show(output::screen()),
    }
    Ok(check.exit())
}

fn plugin(cli: &General, args: &CheckArgs, checked: Result<Check>) -> Exit {
    let thresholds = Thresholds {
        local: [args.warning, args.critical],
        not_judged: [args.warning_not_judged, args.critical_not_judged],
    };
    let checked = checked.map_err(|error| format!("{error:#}"));
    let check = checked.as_ref().map_err(String::as_str);
    let line = monitoring::line(check, thresholds);
    if let Err(error) = output::print(if cli.quiet { b"" } else { line.as_bytes() }) {
        output::say(&format!("{error:#}"));
        // Exit code 1 would be WARNING to a monitoring system.
        return Exit::PluginUnknown;
    }
    check
        .map_or(PluginStatus::Unknown, |check| thresholds.judge(check))
        .into()
}

fn check_machine(cli: &General, target: &TargetArgs) -> Result<(Check, Option<Watcher>, Given)> {
    let root = Root::open(&cli.root)?;
    let (machine, plan, watcher, given) = read_and_compare(cli, &root, target)?;
    let check = nicpin::check(&root, &machine, &plan);
    Ok((check, watcher, given))
}

pub fn write_metrics(cli: &General, target: &TargetArgs, file: &Path) -> Result<Exit> {
    let (check, watcher, _) = check_machine(cli, target)?;
    publish(&check, watcher.as_ref(), file)?;
    Ok(check.exit())
}

fn publish(check: &Check, watcher: Option<&Watcher>, file: &Path) -> Result<()> {
    let last_success = output::read_published(file).and_then(|text| last_success(&text));
    output::publish(file, metrics(check, watcher, last_success).as_bytes())
}

fn metrics(check: &Check, watcher: Option<&Watcher>, last_success: Option<u64>) -> String {
    let is_planned = check.verdict == CheckState::Same;
    let now = is_planned.then(seconds_since_1970);
    monitoring::metrics(check, watcher, now.or(last_success))
}
