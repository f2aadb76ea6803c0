//! `nicpin run`: run a command on an interface's node.

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};
use clap::Args;

use crate::commands::args::{General, Memory};
use crate::commands::child::CommandError;
use crate::commands::inputs::{read_beside_all, require_vectors, usage, wrong_place};
use crate::commands::output::{say, screen};
use crate::screen;
use crate::start::as_of_caller;
use nicpin::apply;
use nicpin::cpuset::CpuSet;
use nicpin::plan::binding::NodeChoice::{Far, Near, Node};
use nicpin::plan::binding::{Binding, BindingRequest};
use nicpin::policy::possible_cpus;
use nicpin::report::exit::Exit;
use nicpin::root::Root;

#[derive(Args)]
pub struct RunArgs {
    /// The interface, or any other selector that stands for interfaces on one node
    #[arg(value_name = "INTERFACE")]
    interface: String,

    /// On the interface's own node (the default)
    #[arg(long, group = "place")]
    near: bool,

    /// On the node with the greatest distance from it
    #[arg(long, group = "place")]
    far: bool,

    /// On node N
    #[arg(long, value_name = "N", group = "place")]
    node: Option<u32>,

    /// On these CPUs; the memory is still the node's
    #[arg(long, value_name = "CPULIST")]
    cpus: Option<CpuSet>,

    /// How strictly memory is bound to the node
    #[arg(long, value_enum, default_value = "bind")]
    memory: Memory,

    /// Print the CPUs and the memory, and start nothing
    #[arg(long)]
    dry_run: bool,

    /// The command and its arguments
    #[arg(last = true, value_name = "CMD", required_unless_present = "dry_run")]
    command: Vec<OsString>,
}

pub fn run(cli: &General, args: &RunArgs, out: &mut String) -> Result<Exit> {
    let root = Root::open(&cli.root)?;
    ensure!(
        root.is_real() || args.dry_run,
        usage(
            "the command would run on this machine, not on the one that --root names; --dry-run prints its CPUs"
        )
    );
    let (is_node_named, fix) = (args.node.is_some(), "name the node with --node N");
    let (machine, plan, names, _) =
        read_beside_all(cli, &root, &args.interface, is_node_named, fix)?;
    if let Some(cpus) = &args.cpus {
        possible_cpus("cpus", cpus, machine.topology.possible)?;
    }
    let wish = BindingRequest {
        place: match args.node {
            Some(node) => Node(node),
            None if args.far => Far,
            None => Near,
        },
        cpus: args.cpus.clone(),
        memory: args.memory.into(),
    };
    let binding = Binding::new(&machine, &plan, &args.interface, &names, &wish)
        .map_err(wrong_place(args.node))?;
    // Binding this process shows what the kernel would grant, and affects nothing else.
    let left = root.is_real().then(|| apply::bind(&binding)).transpose()?;
    if args.dry_run {
        let page = screen::nodes::binding(&args.interface, &binding, left.as_ref());
        *out += &page.show(screen());
        require_vectors(&root, &machine)?;
        return Ok(Exit::Planned);
    }
    let command = args.command.split_first();
    let (program, arguments) = command.context("no command to run")?;
    if !cli.quiet {
        for note in screen::nodes::binding_notes(&binding, left.as_ref()) {
            say(&note);
        }
    }
    let mut command = Command::new(program);
    as_of_caller(&mut command);
    bail!(CommandError::not_started(
        program,
        &command.args(arguments).exec()
    ))
}
