//! The groups of options that commands have in common.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ColorChoice, ValueEnum};

use nicpin::plan::binding::MemoryBinding;

#[derive(Debug, Args)]
#[command(next_help_heading = "General options")]
pub struct General {
    /// The machine to read and write: `/`, the top of a tree that holds the same files, or a capture (read-only)
    #[arg(
        long,
        global = true,
        value_name = "DIR|FILE",
        default_value = "/",
        display_order = 900
    )]
    pub root: PathBuf,

    /// The policy file; ROOT/etc/nicpin.toml when it exists
    #[arg(long, global = true, value_name = "FILE", display_order = 901)]
    pub config: Option<PathBuf>,

    /// Print errors only; the exit code is the result
    #[arg(short, long, global = true, display_order = 902)]
    pub quiet: bool,

    /// Print all details
    #[arg(
        short,
        long,
        global = true,
        conflicts_with = "quiet",
        display_order = 903
    )]
    pub verbose: bool,

    /// Whether to use colours; auto: on a terminal, unless `NO_COLOR` is set
    #[arg(
        long,
        global = true,
        value_enum,
        default_value_t,
        value_name = "WHEN",
        display_order = 904
    )]
    pub color: ColorChoice,

    /// The command that makes everything as planned: `nicpin apply` with the selectors and the options of this command
    /// line that decide on the plan.
    #[arg(skip)]
    pub apply: String,
}

/// Parses a number of seconds, such as `0.5`.
pub fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text
        .parse()
        .ok()
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    // One day: a larger number is a typing error.
    seconds
        .filter(|seconds| seconds.as_secs() <= 86_400)
        .ok_or_else(|| format!("`{text}` is not a number of seconds from 0 to 86400"))
}

/// How long a command waits for the lock, in seconds.
pub const WAIT: u64 = 30;

#[derive(Debug, Args)]
pub struct LockArgs {
    /// Wait up to SECONDS for another nicpin that is writing
    #[arg(long, value_name = "SECONDS", default_value_t = WAIT)]
    pub wait: u64,
}

/// The values of `--memory`, with their help.
pub fn memory_binding() -> impl TypedValueParser<Value = MemoryBinding> {
    const VALUES: [(&str, &str, MemoryBinding); 3] = [
        (
            "bind",
            "From this node only; allocation fails when it is full",
            MemoryBinding::Bind,
        ),
        (
            "preferred",
            "From this node while it has free memory, then from others",
            MemoryBinding::Preferred,
        ),
        (
            "local",
            "From the node of the CPU that the program runs on, then from others",
            MemoryBinding::Local,
        ),
    ];
    let shown = VALUES.map(|(name, help, _)| PossibleValue::new(name).help(help));
    let value = |name: String| {
        VALUES
            .into_iter()
            .find(|of| of.0 == name)
            .unwrap_or(VALUES[0])
            .2
    };
    PossibleValuesParser::new(shown).map(value)
}

#[derive(Debug, Default, Args)]
pub struct SelectArgs {
    /// Interfaces: a name, a pattern (`ens*`, `eth[02]`), a PCI address (`3b:00.0`), `driver:mlx5_core`, `node:1` or an
    /// RDMA device (`mlx5_0`); a bond, VLAN or bridge stands for the interfaces below it. Without: all physical
    /// interfaces that are up or have queue vectors
    #[arg(value_name = "SELECTOR")]
    pub selectors: Vec<String>,

    /// Report a selector that matches nothing as a note, not as an error
    #[arg(long)]
    pub if_present: bool,
}

impl SelectArgs {
    /// Whether interfaces are asked for by name.
    pub(crate) fn is_given(&self) -> bool {
        !self.selectors.is_empty()
    }
}

#[derive(Debug, Clone, Copy, Args)]
pub struct ReportArgs {
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: ReportFormat,

    /// The same as --format json
    #[arg(short, long, conflicts_with = "format")]
    json: bool,
}

impl ReportArgs {
    pub fn is_json(self) -> bool {
        self.json || self.format == ReportFormat::Json
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum ReportFormat {
    /// Text
    #[default]
    Table,
    /// JSON
    Json,
}
