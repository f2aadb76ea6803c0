//! The command line: every option and its help text, in one place.

mod check;
mod default;
mod fleet;
mod flow;
mod help;
pub mod manual;
mod no_effect;
mod policy;
mod see;
mod show;
pub mod topics;
mod watch;
mod write;

pub use check::{CheckArgs, CheckFormat};
pub use fleet::FleetArgs;
pub use flow::FlowArgs;
pub use policy::PolicyArgs;
pub use see::{CompareArgs, MeasureArgs, StatusArgs};
pub use show::{CompletionsArgs, DrawArgs, HelpArgs, ManArgs, NodesArgs};
pub use watch::{WatchArgs, WatchRunArgs};
pub use write::{ApplyArgs, AwaitConfirmArgs, ConfirmArgs, RestoreArgs, WAIT};

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ColorChoice, Parser, Subcommand, ValueEnum};

use nicpin::cpuset::CpuSet;
use nicpin::plan::binding::{BindingRequest, MemoryBinding, NodeChoice};

/// Put the interrupts and packet steering of network interfaces on their own NUMA node: plan, prove, undo
#[derive(Debug, Parser)]
#[command(name = "nicpin", version, after_help = help::after("nicpin"), max_term_width = 100)]
#[command(disable_help_subcommand = true)]
#[command(
    override_usage = "nicpin [OPTIONS] [status] [SELECTOR]...\n       nicpin [OPTIONS] COMMAND"
)]
pub struct Cli {
    /// The machine to read and write: `/`, the top of a tree that holds the same files, or a capture (read-only)
    #[arg(
        long,
        global = true,
        value_name = "DIR|FILE",
        default_value = "/",
        display_order = 900,
        help_heading = "General options"
    )]
    pub root: PathBuf,

    /// The policy file; ROOT/etc/nicpin.toml when it exists
    #[arg(
        long,
        global = true,
        value_name = "FILE",
        display_order = 901,
        help_heading = "General options"
    )]
    pub config: Option<PathBuf>,

    /// Print errors only; the exit code is the result
    #[arg(
        short,
        long,
        global = true,
        display_order = 902,
        help_heading = "General options"
    )]
    pub quiet: bool,

    /// Print all details
    #[arg(
        short,
        long,
        global = true,
        conflicts_with = "quiet",
        display_order = 903,
        help_heading = "General options"
    )]
    pub verbose: bool,

    /// Whether to use colours; auto: on a terminal, unless `NO_COLOR` is set
    #[arg(
        long,
        global = true,
        value_enum,
        default_value_t,
        value_name = "WHEN",
        display_order = 904,
        help_heading = "General options"
    )]
    pub color: ColorChoice,

    #[command(subcommand)]
    pub command: Command,
}

/// The values of `--memory`, with their help.
pub fn memory_binding() -> impl TypedValueParser<Value = MemoryBinding> {
    let values = [
        (
            "bind",
            "From this node only; allocation fails when it is full",
        ),
        (
            "preferred",
            "From this node while it has free memory, then from others",
        ),
        (
            "local",
            "From the node of the CPU that the program runs on, then from others",
        ),
    ];
    let shown = values.map(|(name, help)| PossibleValue::new(name).help(help));
    PossibleValuesParser::new(shown).map(|name| match name.as_str() {
        "preferred" => MemoryBinding::Preferred,
        "local" => MemoryBinding::Local,
        _ => MemoryBinding::Bind,
    })
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show whether the interrupts of each interface arrive on its own node, and will stay there (the default)
    Status(StatusArgs),
    /// Print what apply would write; writes nothing, needs no root
    Plan(PlanArgs),
    /// Write the plan, read it back and report what changed
    #[command(visible_alias = "start")]
    Apply(ApplyArgs),
    /// Check whether the machine is in the planned state; writes nothing
    Check(CheckArgs),
    /// Restore the settings that the first apply found
    #[command(visible_alias = "stop")]
    Restore(RestoreArgs),
    /// Keep what `apply --try` has set
    Confirm(ConfirmArgs),
    /// Keep the planned state: apply again after each event that undoes it
    Watch(WatchArgs),
    /// Watch counters: interrupts by queue and CPU, the share that is local, throughput and its cost
    Measure(MeasureArgs),
    /// Run a command on an interface's node and on a remote node in turn, and compare what it costs
    Compare(CompareArgs),
    /// Record this machine as one file that --root accepts; needs no root
    Capture(CaptureArgs),
    /// Run a command on the CPUs and memory of an interface's node
    Run(RunArgs),
    /// Show the nodes: CPUs, memory, distances and the interfaces on each
    Nodes(NodesArgs),
    /// Report on many machines: classes of hardware, their plans, and why hosts are not as planned
    Fleet(FleetArgs),
    /// Show the queue, IRQ and CPU that a flow will arrive on, before its first packet
    Flow(FlowArgs),
    /// Draw the machine as SVG: nodes, cores, interfaces, and the CPU of each queue, now and planned
    Draw(DrawArgs),
    /// Print the completion script for a shell
    Completions(CompletionsArgs),
    /// Print a manual page, or write all of them
    Man(ManArgs),
    /// Print the help of a command, or about a topic: states, selectors, policy
    Help(HelpArgs),
    /// Started by `apply --try`: restores all settings unless `nicpin confirm` comes within SECONDS
    #[command(hide = true)]
    AwaitConfirm(AwaitConfirmArgs),
    /// Started by `nicpin watch`: applies once, or with `--observe` checks, and prints a report for it
    #[command(hide = true)]
    WatchRun(WatchRunArgs),
    /// Answer irqbalance as its policy script: print `ban=true` for IRQs that nicpin plans
    IrqbalancePolicy(IrqbalancePolicyArgs),
}

impl Command {
    /// Whether the output is a report, which `--quiet` leaves out, and not a document that was asked for.
    pub fn reports(&self) -> bool {
        use Command::{Completions, Draw, Help, IrqbalancePolicy, Man};
        !matches!(
            self,
            Completions(_) | Draw(_) | Help(_) | IrqbalancePolicy(_) | Man(_)
        )
    }
}

#[derive(Debug, Args)]
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

#[derive(Debug, Args)]
#[allow(clippy::struct_excessive_bools)] // each is one option
#[command(after_help = help::after("plan"))]
pub struct PlanArgs {
    #[command(flatten)]
    pub select: SelectArgs,

    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub format: PlanFormat,

    /// The same as --format json
    #[arg(short, long, conflicts_with = "format")]
    pub json: bool,

    /// List each vector and queue; by default many that are alike share a line
    #[arg(short, long)]
    pub all: bool,

    /// Also list each file with its current and planned mask in hex (table only)
    #[arg(long)]
    pub masks: bool,

    /// Print each queue with the reason for its CPU; with --json also as texts, in `explanation`
    #[arg(long, conflicts_with_all = ["masks", "workers"])]
    pub explain: bool,

    /// Print the CPUs of each interface's node that are left for applications, as other programs accept them
    #[arg(long, conflicts_with = "masks")]
    pub workers: bool,

    /// Exit with 2 if something would be changed
    #[arg(long)]
    pub detailed_exitcode: bool,

    #[command(flatten)]
    pub policy: PolicyArgs,
}

impl PlanArgs {
    pub fn format(&self) -> PlanFormat {
        if self.json {
            PlanFormat::Json
        } else {
            self.format
        }
    }
}

#[derive(Debug, Args)]
#[command(after_help = help::after("capture"))]
pub struct CaptureArgs {
    /// The file to write; by default standard output, unless it is a terminal
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Replace the file if it exists
    #[arg(long)]
    pub force: bool,

    /// Include host name, hardware addresses and time; rename no interface
    #[arg(long)]
    pub identify: bool,

    /// Also replace the names of interfaces and of the host
    #[arg(long, conflicts_with = "identify")]
    pub redact_names: bool,
}

#[derive(Debug, Args)]
#[command(after_help = help::after("run"))]
pub struct RunArgs {
    /// The interface, or any other selector that stands for interfaces on one node
    #[arg(value_name = "INTERFACE")]
    pub interface: String,

    /// On the interface's own node (the default)
    #[arg(long, group = "place")]
    pub near: bool,

    /// On the node with the greatest distance from it
    #[arg(long, group = "place")]
    pub far: bool,

    /// On node N
    #[arg(long, value_name = "N", group = "place")]
    pub node: Option<u32>,

    /// On these CPUs; the memory is still the node's
    #[arg(long, value_name = "CPULIST")]
    pub cpus: Option<CpuSet>,

    /// How strictly memory is bound to the node
    #[arg(long, value_parser = memory_binding(), default_value = "bind")]
    pub memory: MemoryBinding,

    /// Print the CPUs and the memory, and start nothing
    #[arg(long)]
    pub dry_run: bool,

    /// The command and its arguments
    #[arg(last = true, value_name = "CMD", required_unless_present = "dry_run")]
    pub command: Vec<OsString>,
}

impl RunArgs {
    pub fn wish(&self) -> BindingRequest {
        let place = match self.node {
            Some(node) => NodeChoice::Node(node),
            None if self.far => NodeChoice::Far,
            None => NodeChoice::Near,
        };
        BindingRequest {
            place,
            cpus: self.cpus.clone(),
            memory: self.memory,
        }
    }
}

#[derive(Debug, Args)]
#[command(after_help = help::after("irqbalance-policy"))]
pub struct IrqbalancePolicyArgs {
    /// Path of the device in /sys that has the IRQ
    #[arg(value_name = "DEVICE")]
    pub device: String,

    /// IRQ number
    #[arg(value_name = "IRQ")]
    pub irq: u32,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum PlanFormat {
    /// Text, at most 100 columns wide
    #[default]
    Table,
    /// The schema `nicpin.plan/1`
    Json,
    /// The writes as `echo VALUE > PATH` lines
    Sh,
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
