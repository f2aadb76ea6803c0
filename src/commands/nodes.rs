//! `nicpin nodes`: nodes, memory, distances and interfaces.

use anyhow::{Context as _, Result, ensure};
use clap::Args;

use crate::commands::args::{General, ReportArgs};
use crate::commands::bandwidth::BandwidthTest;
use crate::commands::inputs::{read_host, usage};
use crate::commands::output;
use crate::commands::sampling::Progress;
use crate::screen;
use nicpin::machine::topology::Rate;
use nicpin::machine::{Machine, Selection};
use nicpin::read::topology::l3_size;
use nicpin::read::{ReadOptions, topology};
use nicpin::report::exit::Exit;
use nicpin::report::nodes::Nodes;
use nicpin::root::{Root, sys};

#[derive(Args)]
pub struct NodesArgs {
    /// Measure the rate at which the CPUs of each node read the memory of each node
    #[arg(long)]
    bandwidth: bool,

    #[command(flatten)]
    report: ReportArgs,
}

pub fn run(cli: &General, args: &NodesArgs, out: &mut String) -> Result<Exit> {
    let root = Root::open(&cli.root)?;
    ensure!(
        !args.bandwidth || root.is_real(),
        usage("--bandwidth measures this machine, not the one that --root names")
    );
    let options = ReadOptions {
        memory: true,
        exclusive: true,
        neighbours: true,
        ..ReadOptions::default()
    };
    let (machine, policy) = read_host(cli, &root, options)?;
    let all = Selection {
        names: machine
            .interfaces
            .iter()
            .map(|interface| interface.name.clone())
            .collect(),
        ..Selection::default()
    };
    let plan = nicpin::plan::plan(&machine, &policy, &all);
    let usage = machine
        .topology
        .nodes
        .keys()
        .map(|&node| Ok((node, topology::memory_usage(&root, node)?)));
    let mut nodes = Nodes::new(&machine, &plan, usage.collect::<Result<_>>()?);
    if args.bandwidth {
        nodes.bandwidth = Some(measure(&root, &machine, &nodes)?);
    }
    *out += &output::report(args.report, &nodes, screen::nodes::nodes)?;
    Ok(Exit::Planned)
}

fn measure(root: &Root, machine: &Machine, nodes: &Nodes) -> Result<Vec<Rate>> {
    let allowed = sys::allowed_nodes()
        .context("the kernel or a container's seccomp profile refuses memory policies")?;
    let free = |id| {
        let node = nodes.nodes.iter().find(|node| node.node == id)?;
        node.usage.free_kib
    };
    // The largest sum of a node's L3 caches.
    let mut caches = None;
    for node in machine.topology.nodes.values() {
        let domains = machine
            .topology
            .l3_domains
            .iter()
            .filter(|domain| domain.intersects(&node.cpus));
        if let Some(cpu) = node.cpus.first() {
            let size = l3_size(root, cpu)?;
            caches = caches.max(size.map(|size| size.saturating_mul(domains.count() as u64)));
        }
    }
    let test = BandwidthTest::new(
        machine,
        &sys::affinity()?,
        &allowed.intersection(&nodes.nodes.iter().map(|node| node.node).collect()),
        free,
        caches,
    );
    let (pairs, mut progress) = (test.pairs(), Progress::default());
    test.run(|done| progress.say(&format!("measuring pair {} of {pairs}", done + 1)))
}
