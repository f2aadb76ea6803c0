//! `nicpin nodes`: nodes, memory, distances and interfaces; with `--bandwidth` the memory read rate between nodes.

use std::io::{self, IsTerminal as _, Write as _};

use anyhow::{Context as _, Result};

use crate::cli::{Cli, NodesArgs, PolicyArgs, ReportFormat};
use crate::commands::inputs::{NotThisMachine, Purpose, read_host};
use crate::machine::memory::Rate;
use crate::machine::{Machine, Selection};
use crate::read::bandwidth::BandwidthTest;
use crate::read::topology::l3_size;
use crate::read::{Wants, memory};
use crate::render;
use crate::report::exit::Exit;
use crate::report::nodes::Nodes;
use crate::root::Root;
use crate::sys;

pub(super) fn run(cli: &Cli, args: &NodesArgs, out: &mut String) -> Result<Exit> {
    let root = Root::open(&cli.root)?;
    if args.bandwidth && !root.is_real() {
        return Err(NotThisMachine("--bandwidth measures this machine, not the one that --root names").into());
    }
    let wants = Wants { memory: true, ..Wants::default() };
    let (machine, policy) = read_host(Purpose::Look, cli, &root, &PolicyArgs::default(), wants)?;
    let names = machine.interfaces.iter().map(|interface| interface.name.clone()).collect();
    let plan = crate::plan::plan(&machine, &policy, &Selection { names, ..Selection::default() });
    let usage = machine.topology.nodes.keys().map(|&node| Ok((node, memory::usage(&root, node)?)));
    let mut nodes = Nodes::new(&machine, &plan, usage.collect::<Result<_>>()?);
    if args.bandwidth {
        nodes.bandwidth = Some(measure(&root, &machine, &nodes)?);
    }
    out.push_str(&match args.format {
        ReportFormat::Table => render::nodes::nodes(&nodes),
        ReportFormat::Json => render::json(&nodes)?,
    });
    Ok(Exit::Planned)
}

fn measure(root: &Root, machine: &Machine, nodes: &Nodes) -> Result<Vec<Rate>> {
    let words = "the kernel or a container's seccomp profile refuses memory policies";
    let allowed = sys::allowed_nodes().context(words)?;
    let with_memory = allowed.intersection(&nodes.ids());
    let free = |id: u32| nodes.nodes.iter().find(|node| node.node == id).and_then(|node| node.usage.free_kib);
    // The sum of the L3 caches of the node that has most.
    let mut caches = None;
    for node in machine.topology.nodes.values() {
        let domains =
            machine.topology.l3_domains.iter().filter(|domain| domain.intersects(&node.cpus)).count();
        let Some(cpu) = node.cpus.first() else { continue };
        let size = l3_size(root, cpu)?;
        caches = caches.max(size.map(|size| size * domains as u64));
    }
    let test = BandwidthTest::new(machine, &sys::affinity()?, &with_memory, free, caches);
    let (pairs, terminal) = (test.pairs(), io::stderr().is_terminal());
    // A closed standard error loses the progress line only.
    let say = |text: &str| _ = if terminal { write!(io::stderr(), "\r{text}\x1b[K") } else { Ok(()) };
    let rates = test.run(|done| say(&format!("measuring pair {} of {pairs}", (done + 1).min(pairs))));
    say("");
    Ok(rates?)
}
