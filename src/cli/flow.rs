//! The command line of flow.

use clap::Args;

use crate::cli::ReportArgs;

#[derive(Debug, Args)]
#[command(after_help = "\
SRC and DST are the ends of a flow as its packets arrive: DST is this machine. The answer
follows the device's ntuple filters, its RSS hash, key and table, the affinity of the
queue's IRQ, NAPI threads and RPS, as they are now. What cannot be known is named, and the
exit code is 1; nothing is guessed.

With `-` connections are read from standard input as `ss -tinH` prints them; those of this
machine with itself are left out. A VLAN stands for the interface below it, and a bond for
each of its ports: which of them a packet arrives on is the sender's choice, or the
switch's. Of what a tunnel carries, the card sees the packets around it: ask about those.

Examples:
  nicpin flow eth2 10.0.0.1:5201 10.0.0.2:40001       queue, IRQ and CPU of one flow
  nicpin flow eth2 10.0.0.1 10.0.0.2:5201 --to-cpu 9  source ports that arrive on CPU 9
  ss -tinH | nicpin flow eth2 -                       how all connections spread
  nicpin flow --udp bond0 10.0.0.1:53 10.0.0.2:53     each port of a bond")]
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
