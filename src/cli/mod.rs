//! The command line: every option and its help text, in one place.

mod check;
mod default;
mod fleet;
mod flow;
pub mod manual;
mod no_effect;
mod policy;
mod see;
mod show;
mod watch;
mod write;

pub use check::{CheckArgs, CheckFormat};
pub use fleet::FleetArgs;
pub use flow::FlowArgs;
pub use policy::PolicyArgs;
pub use see::{CompareArgs, MeasureArgs, StatusArgs};
pub use show::{CompletionsArgs, DrawArgs, ManArgs, NodesArgs};
pub use watch::{WatchArgs, WatchRunArgs};
pub use write::{ApplyArgs, AwaitConfirmArgs, ConfirmArgs, RestoreArgs, WAIT};

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ColorChoice, Parser, Subcommand, ValueEnum};

use nicpin::cpuset::CpuSet;
use nicpin::plan::binding::{BindingRequest, MemoryBinding, NodeChoice};

/// The exit codes and first examples, for `nicpin --help`; the manual pages take the exit codes from here.
const EXIT_CODES: &str = "\
Exit codes: 0 in the planned state; 1 it could not be reached, or could not be
determined; 2 check: the machine differs from the plan (with --detailed-exitcode:
plan would change something, apply changed something); 64 usage error. run and measure
end with the status of the command that they run; 127 or 126 if it cannot be started.
check --format nagios ends with the codes of monitoring plugins: 0 to 3.

Examples:
  nicpin                             do interrupts arrive on the interfaces' own nodes
  nicpin plan                        what would be written, and why; needs no root
  sudo nicpin apply                  write it
  nicpin check                       is the machine still in the planned state
  sudo nicpin restore                restore the settings from before the first apply
  nicpin plan --help                 options and examples of a command";

/// Put the interrupts and packet steering of network interfaces on their own NUMA node: plan, prove, undo
#[derive(Debug, Parser)]
#[command(name = "nicpin", version, after_help = EXIT_CODES, max_term_width = 100)]
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
        use Command::{Completions, Draw, IrqbalancePolicy, Man};
        !matches!(
            self,
            Completions(_) | Draw(_) | IrqbalancePolicy(_) | Man(_)
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
#[command(after_help = "\
Exit codes: 0 planned; 1 the machine cannot be read or planned; 2 with --detailed-exitcode:
something would be changed; 64 usage error.

Examples:
  nicpin plan                        all interfaces, as a table
  nicpin plan --masks eth2           also each file with its mask in hex
  nicpin plan --format sh bond0      the same writes as a shell script
  nicpin plan --explain eth2         the reason for each setting
  nicpin plan --workers eth2         the CPUs that are left for applications
  nicpin plan --root fixtures/dl980  another machine, from its files")]
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
#[command(after_help = "\
The file is a gzip-compressed tar archive of the files that nicpin reads. It holds no
hardware or IP addresses or GUIDs (others are in their places), host name, serial numbers,
processes, comments of configuration files or places of irqbalance's scripts. It does hold
the names of interfaces, of tuned profiles and of .link files, the policy with its
patterns of names, PCI ids and the kernel's release: a class of hardware needs the last
two. All counts in /proc/interrupts are 0: no plan depends on them, and the same machine
gives the same bytes. What is left out or renamed is listed on standard error.

Examples:
  nicpin capture -o machine.tar.gz              to attach to a bug report
  nicpin capture --redact-names -o m.tar.gz     without names that the site gave
  nicpin plan --root machine.tar.gz             the plan of that machine, on any other
  ssh machine nicpin capture > machine.tar.gz   without a file on the machine
  mkdir machine; tar -C machine -xzf machine.tar.gz   to read it, or to make a fixture")]
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
#[command(after_help = "\
CMD replaces nicpin (exec), so signals reach CMD and the exit status is CMD's. CMD gets
the CPUs of the node to which the plan sends no interrupts if they are at least half of its
CPUs, else all of them; isolated CPUs only if --cpus names them.

Exit codes: 1 the interface has no such node; 64 usage error; 126 CMD cannot be executed;
127 there is no such command. Otherwise the status is CMD's.

Examples:
  nicpin run eth2 -- iperf3 -s                  on eth2's node, on CPUs without interrupts
  nicpin run --far eth2 -- iperf3 -s            on the node farthest from it, to compare
  nicpin run --memory preferred eth2 -- redis   may use other nodes' memory when its own is full
  nicpin run --cpus 8-11 eth2 -- ./worker       these CPUs, and the memory of eth2's node
  nicpin run --dry-run eth2                     only print the CPUs and the memory
  nicpin run --dry-run --root fixtures/dl980 eth2")]
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
#[command(after_help = "\
irqbalance's --policyscript= takes the path of a program, without arguments, or of a
directory of programs: install dist/irqbalance/nicpin-irqbalance-policy, name it in
irqbalance's arguments (`nicpin plan` prints the line, and the file of this distribution
that it belongs in), and restart irqbalance. The exit code is 0 whether a line is printed
or not; the script exits with 1 where none is, which means no policy to irqbalance.

Examples:
  nicpin irqbalance-policy /sys/bus/pci/devices/0000:3b:00.0 71    as irqbalance runs it
  IRQBALANCE_ARGS=\"--policyscript=/usr/lib/nicpin/nicpin-irqbalance-policy\"")]
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
