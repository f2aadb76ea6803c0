//! `nicpin check`: compare the machine with the plan.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Result;

use crate::cli::{CheckArgs, CheckFormat, Cli};
use crate::commands::inputs::{
    Purpose, apply_command, as_watched, read_and_plan, require_interfaces,
};
use crate::commands::output;
use crate::screen;
use crate::watch::state;
use nicpin::apply;
use nicpin::read::Wants;
use nicpin::report::check::{Check, CheckState};
use nicpin::report::exit::Exit;
use nicpin::report::plugin::{PluginStatus, Thresholds};
use nicpin::root::Root;

pub(super) fn run(cli: &Cli, args: &CheckArgs, out: &mut String) -> Result<Exit> {
    let thresholds = Thresholds {
        warning: args.warning,
        critical: args.critical,
    };
    let checked = checked(cli, args);
    if args.format() == CheckFormat::Nagios {
        let (status, check) = match checked {
            Ok(check) => (thresholds.judge(&check), Ok(check)),
            Err(error) => (PluginStatus::Unknown, Err(format!("{error:#}"))),
        };
        let check = check.as_ref().map_err(String::as_str);
        out.push_str(&screen::monitoring::line(check, thresholds));
        return Ok(status.into());
    }
    let check = checked?;
    match args.format() {
        CheckFormat::Json => out.push_str(&screen::json(&check)?),
        CheckFormat::Prometheus => metrics(cli, &check, args.output.as_deref(), out)?,
        CheckFormat::Table | CheckFormat::Nagios => {
            let page = screen::check::check(&check, cli.verbose, &apply_command());
            out.push_str(&page.show(output::screen()));
        }
    }
    Ok(check.exit())
}

fn checked(cli: &Cli, args: &CheckArgs) -> Result<Check> {
    let root = Root::open(&cli.root)?;
    let watcher = state::running(&root)?;
    let policy = as_watched(&args.policy, watcher.is_some_and(|of| of.avoids_exclusive));
    let (machine, plan) = read_and_plan(
        Purpose::Compare,
        cli,
        &root,
        &args.select,
        &policy,
        Wants::default(),
    )?;
    require_interfaces(&root, &machine, &plan, &args.select)?;
    let check = apply::check(&root, &machine, &plan, args.select.is_given());
    let check = if args.strict { check.strict() } else { check };
    Ok(if args.exact { check.exact() } else { check })
}

/// Prints metrics, or replaces a file with them. The file keeps the time of the last success.
fn metrics(cli: &Cli, check: &Check, file: Option<&Path>, out: &mut String) -> Result<()> {
    let watcher = state::running(&Root::open(&cli.root)?)?;
    let last_success = match check.verdict {
        CheckState::Same => SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .ok()
            .map(|time| time.as_secs()),
        _ => file
            .and_then(output::published)
            .and_then(|text| screen::monitoring::last_success(&text)),
    };
    let text = screen::monitoring::metrics(check, watcher.as_ref(), last_success);
    if let Some(file) = file {
        return output::publish(file, text.as_bytes());
    }
    out.push_str(&text);
    Ok(())
}
