//! The command line of flow.

use clap::Args;

use crate::cli::{ReportArgs, help};

#[derive(Debug, Args)]
#[command(after_help = help::after("flow"))]
pub struct FlowArgs {
    /// The interface that the flow arrives on
    pub interface: String,

    /// Where it comes from: ADDRESS:PORT; `-` to read connections from standard input
    #[arg(value_name = "SRC")]
    pub source: String,

    /// Where it goes to: ADDRESS:PORT of this machine
    #[arg(value_name = "DST")]
    pub destination: Option<String>,

    /// UDP instead of TCP
    #[arg(long)]
    pub udp: bool,

    /// The packets are fragments, which have no ports: SRC and DST are addresses
    #[arg(long)]
    pub fragments: bool,

    /// List source ports with which the flow arrives on this CPU; SRC needs no port then
    #[arg(long, value_name = "CPU")]
    pub to_cpu: Option<u32>,

    /// How many of these ports to list
    #[arg(long, value_name = "N", default_value_t = 16, requires = "to_cpu")]
    pub ports: usize,

    #[command(flatten)]
    pub report: ReportArgs,
}
