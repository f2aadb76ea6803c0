//! The command line: every option and its help text, in one place.

mod default;
pub mod manual;
mod policy;
mod see;
mod show;

pub use policy::PolicyArgs;
pub use see::{CompareArgs, MeasureArgs, StatusArgs};
pub use show::{CompletionsArgs, DrawArgs, ManArgs, NodesArgs};

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::cpuset::CpuSet;
use crate::plan::binding::{BindingRequest, MemoryBinding, NodeChoice};

/// Exit codes, as every command's help tells them.
const EXIT_CODES: &str = "\
Exit codes: 0 in the planned state; 1 could not be reached, or not be told;
2 check: differs from the plan (with --detailed-exitcode: plan would change
something, apply has changed something); 64 usage.

Examples:
  nicpin                             is every card's work on its own node
  nicpin plan                        what would be written, and why; needs no root
  sudo nicpin apply                  write it
  nicpin check                       is it still so
  sudo nicpin restore                as it was before
  nicpin plan --help                 options and examples of a command";

/// Puts the interrupts and packet steering of network cards on their own NUMA node: plan, prove, undo.
#[derive(Debug, Parser)]
#[command(name = "nicpin", version, after_help = EXIT_CODES, max_term_width = 100)]
#[command(override_usage = "nicpin [OPTIONS] [status] [SELECTOR]...\n       nicpin [OPTIONS] COMMAND")]
pub struct Cli {
    /// The machine to read and write: `/`, the top of a tree that holds the same files, or a capture (read-only)
    #[arg(long, global = true, value_name = "DIR|FILE", default_value = "/", display_order = 900)]
    pub root: PathBuf,

    /// The policy file; ROOT/etc/nicpin.toml when it exists
    #[arg(long, global = true, value_name = "FILE", display_order = 901)]
    pub config: Option<PathBuf>,

    /// What to do
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Say on one screen whether each interface's work is on its own node, and will stay there (the default)
    Status(StatusArgs),
    /// Print what apply would write; writes nothing, needs no root
    Plan(PlanArgs),
    /// Write the plan, read it back and say what changed
    #[command(visible_alias = "start")]
    Apply(ApplyArgs),
    /// Say whether the machine is in the planned state; reads only
    Check(CheckArgs),
    /// Put back what the first apply found
    #[command(visible_alias = "stop")]
    Restore(RestoreArgs),
    /// Keep what `apply --try` has set
    Confirm(ConfirmArgs),
    /// Watch counters: interrupts by queue and CPU, the share that is local, throughput and its cost
    Measure(MeasureArgs),
    /// Run a command near and far from an interface by turns, and say what the distance costs
    Compare(CompareArgs),
    /// Record this machine as one file that --root accepts; reads only, needs no root
    Capture(CaptureArgs),
    /// Run a command on an interface's node: its CPUs, its memory
    Run(RunArgs),
    /// Show the nodes: CPUs, memory, distances and the interfaces on each
    Nodes(NodesArgs),
    /// Draw the machine as SVG: nodes, cores, interfaces, and the CPU of each queue, now and planned
    Draw(DrawArgs),
    /// Print what a shell needs to complete nicpin's command lines
    Completions(CompletionsArgs),
    /// Print a page of the manual, or write all of them
    Man(ManArgs),
    /// What `apply --try` starts to watch the time: puts everything back unless it is confirmed
    #[command(hide = true)]
    AwaitConfirm(AwaitConfirmArgs),
    /// Answer irqbalance, as its policy script: `ban=true` for IRQs that nicpin plans
    IrqbalancePolicy(IrqbalancePolicyArgs),
}

/// Which interfaces.
#[derive(Debug, Args)]
pub struct SelectArgs {
    /// Interfaces: a name, a pattern (`ens*`, `eth[02]`), `pci:0000:3b:00.0`, `driver:mlx5_core`, `node:1` or an RDMA device
    /// (`mlx5_0`); a bond, VLAN or bridge stands for what is below it. None: every interface that is up or has queue vectors
    #[arg(value_name = "SELECTOR")]
    pub selectors: Vec<String>,

    /// A selector that matches nothing is a note, not an error
    #[arg(long)]
    pub if_present: bool,
}

/// `nicpin plan`.
#[derive(Debug, Args)]
#[allow(clippy::struct_excessive_bools)] // each is a flag of its own
#[command(after_help = "\
Examples:
  nicpin plan                        every card, as a table
  nicpin plan --masks eth2           with the hex masks and the files they go to
  nicpin plan --format sh bond0      the same writes as a shell script
  nicpin plan --explain eth2         why each vector and queue goes where it goes
  nicpin plan --workers eth2         which CPUs to give the application
  nicpin plan --root fixtures/dl980  another machine, from its files")]
pub struct PlanArgs {
    /// Which interfaces.
    #[command(flatten)]
    pub select: SelectArgs,

    /// How to print it
    #[arg(long, value_enum, default_value_t)]
    pub format: PlanFormat,

    /// In a table, also every file with its mask in hex, now and planned
    #[arg(long)]
    pub masks: bool,

    /// One line of reason for every choice, in place of the table
    #[arg(long, conflicts_with_all = ["masks", "workers"])]
    pub explain: bool,

    /// The CPUs that each card's node has left for applications, in the forms that other programs take
    #[arg(long, conflicts_with = "masks")]
    pub workers: bool,

    /// Exit 2 when something would be changed
    #[arg(long)]
    pub detailed_exitcode: bool,

    /// Options that override the policy file.
    #[command(flatten)]
    pub policy: PolicyArgs,
}

/// `nicpin apply`.
#[derive(Debug, Args)]
#[allow(clippy::struct_excessive_bools)] // each is a flag of its own
#[command(after_help = "\
What it takes where it is not run by root: /proc/irq and /run/nicpin belong to root
(CAP_DAC_OVERRIDE); RPS, RFS, XPS and channels take CAP_NET_ADMIN. plan, check and
capture take nothing.

Examples:
  nicpin apply                       every card; a second run writes nothing
  nicpin apply --if-present ens2f0   at boot, where the card may be missing
  nicpin apply --format json eth2    for provisioning: see `changed` in the output
  nicpin plan --format json > p.json; nicpin apply --plan p.json
  nicpin apply --atomic --prove 3    all or nothing, and where the interrupts then arrive
  nicpin apply --try 60 eth2         put back in a minute unless `nicpin confirm` or Enter comes")]
pub struct ApplyArgs {
    /// Which interfaces.
    #[command(flatten)]
    pub select: SelectArgs,

    /// How to print the outcome
    #[arg(long, value_enum, default_value_t)]
    pub format: ReportFormat,

    /// Exit 2 when something was changed
    #[arg(long)]
    pub detailed_exitcode: bool,

    /// Apply this plan, made by `plan --format json` (`-`: from standard input), if it fits the machine as it is now
    #[arg(long, value_name = "FILE|-", conflicts_with_all = ["SelectArgs", "PolicyArgs", "config"])]
    pub plan: Option<PathBuf>,

    /// Apply what still fits of a plan that does not wholly
    #[arg(long, requires = "plan")]
    pub force: bool,

    /// Stop at the first write that fails, and take back what was written
    #[arg(long)]
    pub atomic: bool,

    /// Wait at most so long for interrupts, and say on which CPUs each queue's arrived
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub prove: Option<u64>,

    /// Put everything back after so long, unless `nicpin confirm`, or Enter on the terminal, comes first
    #[arg(long = "try", value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub trial: Option<u64>,

    /// How long to wait for another nicpin that is writing
    #[command(flatten)]
    pub lock: LockArgs,

    /// Options that override the policy file.
    #[command(flatten)]
    pub policy: PolicyArgs,
}

/// `nicpin check`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  nicpin check || nicpin apply       re-apply what something else has moved
  nicpin check -q eth2               for scripts: only the exit code")]
pub struct CheckArgs {
    /// Which interfaces.
    #[command(flatten)]
    pub select: SelectArgs,

    /// How to print the answer
    #[arg(long, value_enum, default_value_t)]
    pub format: ReportFormat,

    /// Print nothing but errors; the exit code tells
    #[arg(short, long)]
    pub quiet: bool,

    /// Options that override the policy file.
    #[command(flatten)]
    pub policy: PolicyArgs,
}

/// `nicpin restore`.
#[derive(Debug, Args)]
#[command(after_help = "\
Puts back the allowed CPUs. The kernel moves an interrupt when its CPU is no longer
allowed, so a vector may go on being served where it is within the wider set.

Examples:
  nicpin restore                     as it was before the first apply
  nicpin restore --format json       for provisioning: see `changed` in the output")]
pub struct RestoreArgs {
    /// How to print the outcome
    #[arg(long, value_enum, default_value_t)]
    pub format: ReportFormat,

    /// How long to wait for another nicpin that is writing
    #[command(flatten)]
    pub lock: LockArgs,
}

/// `nicpin confirm`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  nicpin confirm                     keep what `apply --try` has set
  nicpin apply --try 60 < /dev/null && ping -c 3 192.0.2.1 && nicpin confirm
                                     in a script, where nobody is there to press Enter")]
pub struct ConfirmArgs {
    /// How long to wait for another nicpin that is writing
    #[command(flatten)]
    pub lock: LockArgs,
}

/// `nicpin await-confirm`.
#[derive(Debug, Args)]
pub struct AwaitConfirmArgs {
    /// How long
    pub seconds: u64,
}

/// `nicpin capture`.
#[derive(Debug, Args)]
#[command(after_help = "\
The file holds what nicpin has read, as a tree in tar and gzip: no hardware or IP
addresses, host name, serial numbers, processes or comments of the policy file. In
/proc/interrupts every count is 0: no plan depends on them, and the same machine gives
the same file. What is left out or renamed is said on standard error.

Examples:
  nicpin capture -o machine.tar.gz              to attach to a report
  nicpin plan --root machine.tar.gz             anywhere: the plan of that machine
  ssh machine nicpin capture > machine.tar.gz      without a file on the machine
  mkdir machine; tar -C machine -xzf machine.tar.gz   to read it, or to make a fixture of it")]
pub struct CaptureArgs {
    /// The file to write; standard output when that is no terminal
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Replace the file if it is there
    #[arg(long)]
    pub force: bool,

    /// Say whose machine it is: host name, hardware addresses and the time; change no names
    #[arg(long)]
    pub identify: bool,
}

/// `nicpin run`.
#[derive(Debug, Args)]
#[command(after_help = "\
CMD takes the place of nicpin, so that signals and the exit status are its own. Only
when nothing could be started the status is nicpin's: 1, or 64 for a bad command line.
Its CPUs are those of the node that take no interrupts by the plan, when that is half
of them or more, else all of them; never isolated ones, unless --cpus names them.

Examples:
  nicpin run eth2 -- iperf3 -s                  on eth2's node, away from its interrupts
  nicpin run --far eth2 -- iperf3 -s            on the node farthest from it, to compare
  nicpin run --memory preferred eth2 -- redis   may use other nodes' memory when its own is full
  nicpin run --cpus 8-11 eth2 -- ./worker       these CPUs, and the memory of eth2's node
  nicpin run --dry-run eth2                     only say which CPUs and memory that would be
  nicpin run --dry-run --root fixtures/dl980 eth2")]
pub struct RunArgs {
    /// The interface, or any other selector that stands for interfaces on one node
    #[arg(value_name = "INTERFACE")]
    pub interface: String,

    /// Where, how, and with which memory.
    #[command(flatten)]
    pub wish: WishArgs,

    /// Start nothing; say which CPUs and memory it would be
    #[arg(long)]
    pub dry_run: bool,

    /// The command and its arguments
    #[arg(last = true, value_name = "CMD", required_unless_present = "dry_run")]
    pub command: Vec<OsString>,
}

/// Where a program is to run.
#[derive(Debug, Args)]
pub struct WishArgs {
    /// On the interface's own node (the default)
    #[arg(long, group = "place")]
    pub near: bool,

    /// On the node that is farthest from it
    #[arg(long, group = "place")]
    pub far: bool,

    /// On this node
    #[arg(long, value_name = "N", group = "place")]
    pub node: Option<u32>,

    /// On these CPUs, instead of the node's; the memory is still the node's
    #[arg(long, value_name = "CPULIST")]
    pub cpus: Option<CpuSet>,

    /// How firmly its memory is bound to the node
    #[arg(long, value_enum, default_value_t)]
    pub memory: MemoryBinding,
}

impl WishArgs {
    /// What was said on the command line.
    pub fn wish(&self) -> BindingRequest {
        let place = match self.node {
            Some(node) => NodeChoice::Node(node),
            None if self.far => NodeChoice::Far,
            None => NodeChoice::Near,
        };
        BindingRequest { place, cpus: self.cpus.clone(), memory: self.memory }
    }
}

/// `nicpin irqbalance-policy`.
#[derive(Debug, Args)]
#[command(after_help = "\
irqbalance takes the path of a program, without arguments, or a directory of such:
install dist/irqbalance/nicpin-irqbalance-policy, name it in irqbalance's arguments
(`nicpin plan` prints the line and the file of this distribution), and restart
irqbalance. Exit code 0 with and without a line; the script turns silence into 1,
which is irqbalance's word for no policy.

Examples:
  nicpin irqbalance-policy /sys/bus/pci/devices/0000:3b:00.0 71    as irqbalance asks
  IRQBALANCE_ARGS=\"--policyscript=/usr/lib/nicpin/nicpin-irqbalance-policy\"")]
pub struct IrqbalancePolicyArgs {
    /// The device in /sys that has the IRQ
    #[arg(value_name = "DEVICE")]
    pub device: String,

    /// The IRQ
    #[arg(value_name = "IRQ")]
    pub irq: u32,
}

/// Waiting for the lock.
#[derive(Debug, Args)]
pub struct LockArgs {
    /// Wait at most so long for another nicpin that is writing
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    pub wait: u64,
}

/// How `plan` prints.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum PlanFormat {
    /// For people, at most 100 columns wide
    #[default]
    Table,
    /// The schema `nicpin.plan/1`
    Json,
    /// The writes as `echo VALUE > PATH` lines
    Sh,
}

/// How other commands print.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum ReportFormat {
    /// For people
    #[default]
    Table,
    /// For programs
    Json,
}
