//! `nicpin watch`: apply again after every event that undoes affinity.

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::Args;

use crate::commands::args::{General, TargetArgs};
use crate::commands::inputs::{CONFIG, Purpose, from_top, open_to_write, read_policy, usage};
use crate::watch::{Watch, watch};
use nicpin::policy::Policy;
use nicpin::read::topology;
use nicpin::report::exit::Exit;
use nicpin::root::Root;

#[derive(Args)]
pub struct WatchArgs {
    #[command(flatten)]
    pub target: TargetArgs,

    /// Write no setting: report what apply would change
    #[arg(long)]
    pub observe: bool,

    /// Also run when another program writes the affinity of a planned IRQ
    #[arg(long, conflicts_with = "observe")]
    guard: bool,

    /// After each run, write metrics for Prometheus to this file, as `nicpin check --format prometheus --output`
    #[arg(long, value_name = "FILE")]
    pub metrics: Option<PathBuf>,
}

pub fn run(cli: &General, args: &WatchArgs) -> Result<Exit> {
    // Without links, as in the path of the policy: a directory is watched by one name.
    let root = Root::open(&open_to_write(cli)?.base().canonicalize()?)?;
    let path = cli.config.clone().unwrap_or_else(|| root.outside(CONFIG));
    let refused = watch(Watch {
        root: &root,
        policy_path: from_top(&path)?,
        read_policy: &|| valid_policy(cli, args, &root),
        observe: args.observe,
        guard: args.guard,
        metrics: args.metrics.is_some(),
        verbose: cli.verbose,
    })?;
    match refused {
        Some(error) => bail!(usage(error)),
        None => Ok(Exit::Planned),
    }
}

fn valid_policy(cli: &General, args: &WatchArgs, root: &Root) -> Result<(Policy, Option<String>)> {
    let purpose = if args.observe {
        Purpose::Look
    } else {
        Purpose::Write
    };
    let (policy, text) = read_policy(purpose, cli, root, &args.target.policy)?;
    policy.options.check(topology::read(root)?.possible)?;
    Ok((policy, text))
}
