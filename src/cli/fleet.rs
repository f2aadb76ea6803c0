//! Command line of fleet.

use std::path::PathBuf;

use clap::Args;

use crate::cli::{ReportArgs, help};

#[derive(Debug, Args)]
#[command(after_help = help::after("fleet"))]
pub struct FleetArgs {
    #[command(flatten)]
    pub report: ReportArgs,

    /// Plans, checks, captures, trees, directories of these, `-` or @LIST
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
}
