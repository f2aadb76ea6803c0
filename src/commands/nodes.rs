//! `nicpin nodes`: what sits where, and how fast memory is from there.

use std::io::{self, IsTerminal as _, Write as _};

use anyhow::{Context as _, Result};

use crate::bandwidth::{Course, Rate};
use crate::cli::{Cli, NodesArgs, PolicyArgs, ReportFormat};
use crate::commands::{Exit, NotThisMachine, Purpose, check_cpus, parse_policy, read_policy_file};
use crate::host::memory::Usage;
use crate::host::topology::l3_size;
use crate::host::{Host, Root, Wants};
use crate::nodes::Nodes;
use crate::render;
use crate::select::Selection;
use crate::sys;

pub(super) fn run(cli: &Cli, args: &NodesArgs, out: &mut String) -> Result<Exit> {
    let root = Root::open(&cli.root)?;
    if args.bandwidth && !root.is_real() {
        return Err(NotThisMachine("--bandwidth measures this machine, not what --root names").into());
    }
    let file = read_policy_file(cli, &root, Purpose::Look)?;
    let policy = parse_policy(&file, &PolicyArgs::default())?;
    let host = Host::read_for(&root, Wants { memory: true, ..Wants::default() })?;
    check_cpus(&file, &policy, host.topology.possible)?;
    let names = host.interfaces.iter().map(|interface| interface.name.clone()).collect();
    let plan = crate::plan::plan(&host, &policy, &Selection { names, ..Selection::default() });
    let usage = host.topology.nodes.keys().map(|&node| Ok((node, Usage::read(&root, node)?)));
    let mut nodes = Nodes::new(&host, &plan, usage.collect::<Result<_>>()?);
    if args.bandwidth {
        nodes.bandwidth = Some(measure(&root, &host, &nodes)?);
    }
    out.push_str(&match args.format {
        ReportFormat::Table => render::nodes::nodes(&nodes),
        ReportFormat::Json => render::json(&nodes)?,
    });
    Ok(Exit::Planned)
}

fn measure(root: &Root, host: &Host, nodes: &Nodes) -> Result<Vec<Rate>> {
    let words = "the kernel, or a container's seccomp profile, lets nobody choose memory by node";
    let allowed = sys::allowed_nodes().context(words)?;
    let with_memory = allowed.intersection(&nodes.ids());
    let free = |id: u32| nodes.nodes.iter().find(|node| node.node == id).and_then(|node| node.usage.free_kib);
    // Of the node that has most.
    let mut caches = None;
    for node in host.topology.nodes.values() {
        let domains = host.topology.l3_domains.iter().filter(|domain| domain.intersects(&node.cpus)).count();
        let Some(cpu) = node.cpus.first() else { continue };
        let size = l3_size(root, cpu)?;
        caches = caches.max(size.map(|size| size * domains as u64));
    }
    let course = Course::new(host, &sys::affinity()?, &with_memory, free, caches);
    let (pairs, terminal) = (course.pairs(), io::stderr().is_terminal());
    // Nothing is lost when nobody reads it.
    let say = |text: &str| _ = if terminal { write!(io::stderr(), "\r{text}\x1b[K") } else { Ok(()) };
    let rates = course.run(|done| say(&format!("measuring pair {} of {pairs}", (done + 1).min(pairs))));
    say("");
    Ok(rates?)
}
