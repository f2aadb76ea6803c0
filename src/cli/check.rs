//! Command line of check.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::cli::{PolicyArgs, SelectArgs, help};
use nicpin::report::plugin::Range;

#[derive(Debug, Args)]
#[command(after_help = help::after("check"))]
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
