//! The command line of `nicpin watch`, and those of the runs that it starts.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::parser::ValueSource;
use clap::{ArgAction, Args, CommandFactory as _};

use crate::cli::{Cli, PolicyArgs, SelectArgs};

#[derive(Debug, Args)]
#[command(after_help = "\
Applies once, then waits for what undoes affinity: interfaces that are opened, closed,
added or removed, ethtool -L, drivers, CPUs that go offline and online, resume, a restart
of irqbalance, a changed policy file. After 200 ms without a further event (2 s at most)
it runs `nicpin apply --if-present` as a child process; every 5 minutes, too. After six
runs in a row there are pauses of 8 to 60 s. Links that are virtual cause no run.

A setting that is restored three times in ten minutes, without an event of the kernel in
between, is left alone for an hour, then two, four and so on, with a warning. While
`apply --try` waits for its confirmation, and after `nicpin restore` until the next
`nicpin apply`, nothing is written. `nicpin status` shows the last five runs.

SIGHUP: read the policy file again. SIGUSR1: run at once. SIGTERM: end; settings stay.

Exit codes: 0 ended by SIGTERM or SIGINT; 1 it could not begin to watch, or another
watcher runs; 64 usage error. What a run cannot write is reported and tried again.

Examples:
  systemctl enable --now nicpin-watch    as a service
  nicpin watch --observe                 write nothing: report what differs after each event
  nicpin watch --guard driver:mlx5_core  also restore what other programs write, at once")]
pub struct WatchArgs {
    #[command(flatten)]
    pub select: SelectArgs,

    /// Write no setting: report what apply would change
    #[arg(long)]
    pub observe: bool,

    /// Also run when another program writes the affinity of a planned vector
    #[arg(long, conflicts_with = "observe")]
    pub guard: bool,

    /// After each run, write metrics for Prometheus to this file, as `nicpin check --format prometheus --output`
    #[arg(long, value_name = "FILE")]
    pub metrics: Option<PathBuf>,

    #[command(flatten)]
    pub policy: PolicyArgs,
}

/// The arguments for another command: its name and own options, then those of this process's command line that it takes,
/// too: options of the policy, global ones, and selectors. `config` replaces the policy file.
pub fn arguments_for(own: &[&str], config: Option<&Path>) -> Result<Vec<OsString>, clap::Error> {
    let matches = Cli::matches()?;
    let given = matches.subcommand().map(|(_, given)| given);
    let mut defined = Cli::command();
    defined.build();
    let command = own
        .first()
        .and_then(|command| defined.find_subcommand(command));
    let mut options: Vec<OsString> = own.iter().map(OsString::from).collect();
    options.push("--if-present".into());
    let mut selectors = vec![OsString::from("--")];
    for (arg, given) in command
        .into_iter()
        .flat_map(clap::Command::get_arguments)
        .zip(given.into_iter().cycle())
    {
        let id = arg.get_id().as_str();
        let name = || OsString::from(format!("--{}", arg.get_long().unwrap_or_default()));
        if let ("config", Some(path)) = (id, config) {
            options.extend([name(), path.into()]);
        } else if given.try_contains_id(id).is_err()
            || given.value_source(id) != Some(ValueSource::CommandLine)
            || ["if_present", "quiet", "verbose"].contains(&id)
        {
        } else if matches!(arg.get_action(), ArgAction::SetTrue) {
            options.push(name());
        } else {
            for value in given.get_raw(id).into_iter().flatten() {
                if arg.is_positional() {
                    selectors.push(value.to_owned());
                } else {
                    options.extend([name(), value.to_owned()]);
                }
            }
        }
    }
    options.extend(selectors);
    Ok(options)
}
