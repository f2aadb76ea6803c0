//! `nicpin flow`: the queue, IRQ and CPU that a flow will arrive on, before its first packet.

use std::io::Read as _;
use std::io::stdin;
use std::net::SocketAddr;

use anyhow::{Context as _, Result, bail, ensure};
use clap::Args;

use crate::commands::args::{General, ReportArgs};
use crate::commands::inputs::{read_host, usage};
use crate::commands::output;
use crate::screen;
use nicpin::flow::{Flow, Protocol, Through, connections, parse_end};
use nicpin::read::ReadOptions;
use nicpin::report::exit::Exit;
use nicpin::report::flow::Flows;
use nicpin::root::Root;

#[derive(Args)]
pub struct FlowArgs {
    /// The interface that the flow arrives on
    interface: String,

    /// Where it comes from: ADDRESS:PORT; `-` to read connections from standard input
    #[arg(value_name = "SRC")]
    source: String,

    /// Where it goes to: ADDRESS:PORT of this machine
    #[arg(value_name = "DST")]
    destination: Option<String>,

    /// UDP instead of TCP
    #[arg(long)]
    udp: bool,

    /// The packets are fragments, which have no ports: SRC and DST are addresses
    #[arg(long, conflicts_with = "to_cpu")]
    fragments: bool,

    /// List source ports with which the flow arrives on this CPU; SRC needs no port then
    #[arg(long, value_name = "CPU")]
    to_cpu: Option<u32>,

    /// How many of these ports to list
    #[arg(long, value_name = "N", default_value_t = 16, requires = "to_cpu")]
    ports: usize,

    #[command(flatten)]
    report: ReportArgs,
}

/// Maximum size of the connections on standard input, in bytes: some 500,000 lines.
const MOST: u64 = 64 << 20;

pub fn run(cli: &General, args: &FlowArgs, out: &mut String) -> Result<Exit> {
    let asked = parse_flows(args)?;
    let root = Root::open(&cli.root)?;
    let options = ReadOptions {
        flows: true,
        ..ReadOptions::default()
    };
    let (machine, _) = read_host(cli, &root, options)?;
    let through = Through::new(&machine, &args.interface)?;
    let flows = match (args.to_cpu, &asked[..]) {
        (Some(cpu), [Some(flow)]) => {
            let online = &machine.topology.online;
            ensure!(
                online.contains(cpu),
                usage(format!(
                    "--to-cpu {cpu}: not an online CPU of this machine ({online})"
                ))
            );
            Flows::to_cpu(&machine, &through, flow, cpu, args.ports)
        }
        _ => Flows::new(&machine, &through, &asked),
    };
    *out += &output::report(args.report, &flows, screen::flow::flows)?;
    Ok(flows.exit())
}

/// With `--to-cpu` there is a single flow, from any port.
fn parse_flows(args: &FlowArgs) -> Result<Vec<Option<Flow>>> {
    let to_cpu = args.to_cpu;
    if args.source == "-" {
        ensure!(
            args.destination.is_none() && to_cpu.is_none() && !args.udp && !args.fragments,
            usage(
                "`-` reads connections from standard input: it takes no DST, --to-cpu, --udp or --fragments"
            )
        );
        let mut text = String::new();
        let read = stdin().take(MOST + 1).read_to_string(&mut text);
        let read = read.context("standard input")? as u64;
        ensure!(read <= MOST, "standard input: more than {} MiB", MOST >> 20);
        let found = connections(&text)
            .map_err(|(line, error)| usage(format!("standard input, line {line}: {error}")))?;
        ensure!(!found.is_empty(), "standard input: has no connection");
        return Ok(found);
    }
    let missing = "DST is missing: the address and port of this machine that it goes to";
    let destination = args.destination.as_ref().ok_or_else(|| usage(missing))?;
    let end = |text: &str| parse_end(text).map_err(|error| usage(error.to_string()));
    let ((source, port), (destination, to)) = (end(&args.source)?, end(destination)?);
    ensure!(
        source.is_ipv4() == destination.is_ipv4(),
        usage("SRC and DST are not both IPv4 or both IPv6")
    );
    ensure!(
        !args.fragments || port.is_none() && to.is_none(),
        usage("--fragments have no ports: SRC and DST take none")
    );
    ensure!(
        to_cpu.is_none() || port.is_none(),
        usage("--to-cpu looks for source ports: SRC takes none")
    );
    let any = (args.fragments || to_cpu.is_some()).then_some(0);
    let (Some(port), Some(to)) = (port.or(any), to.or(args.fragments.then_some(0))) else {
        bail!(usage("SRC and DST need a port, such as 10.0.0.1:5201"));
    };
    let protocol = if args.udp {
        Protocol::Udp
    } else {
        Protocol::Tcp
    };
    let [from, to] = [(source, port), (destination, to)].map(SocketAddr::from);
    Ok(vec![Some(Flow {
        fragment: args.fragments,
        ..Flow::new(protocol, from, to)
    })])
}
