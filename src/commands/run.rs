//! `nicpin run`: run a command on an interface's node.

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::slice;

use anyhow::{Result, bail, ensure};
use clap::Args;
use itertools::Itertools as _;

use crate::commands::args::{General, memory_binding};
use crate::commands::child::CommandError;
use crate::commands::inputs::{UsageError, plan_beside_all, read_host};
use crate::commands::output::{say, screen};
use crate::screen;
use crate::start::as_of_caller;
use nicpin::apply;
use nicpin::cpuset::CpuSet;
use nicpin::machine::Selection;
use nicpin::plan::binding::{Binding, BindingRequest, MemoryBinding, NodeChoice};
use nicpin::policy::possible_cpus;
use nicpin::read::Wants;
use nicpin::report::exit::Exit;
use nicpin::root::Root;

#[derive(Debug, Args)]
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

pub fn run(cli: &General, args: &RunArgs, out: &mut String) -> Result<Exit> {
    let root = Root::open(&cli.root)?;
    ensure!(
        root.is_real() || args.dry_run,
        UsageError::new(
            "the command would run on this machine, not on the one that --root names; --dry-run prints its CPUs"
        )
    );
    let wants = Wants {
        memory: true,
        ..Wants::default()
    };
    let (machine, policy) = read_host(cli, &root, wants)?;
    let selected = Selection::new(&machine, slice::from_ref(&args.interface), false)?;
    let names = selected.names.into_iter().collect_vec();
    let plan = plan_beside_all(&machine, &policy, &names)?;
    if let Some(cpus) = &args.cpus {
        possible_cpus("cpus", cpus, machine.topology.possible)?;
    }
    let far = if args.far {
        NodeChoice::Far
    } else {
        NodeChoice::Near
    };
    let wish = BindingRequest {
        place: args.node.map_or(far, NodeChoice::Node),
        cpus: args.cpus.clone(),
        memory: args.memory,
    };
    let binding = Binding::new(&machine, &plan, &args.interface, &names, &wish)?;
    // Binding this process shows what the kernel would grant; nothing else is affected.
    let left = root.is_real().then(|| apply::bind(&binding)).transpose()?;
    if args.dry_run {
        let page = screen::nodes::binding(&args.interface, &binding, left.as_ref());
        *out += &page.show(screen());
        return Ok(Exit::Planned);
    }
    let [program, arguments @ ..] = args.command.as_slice() else {
        bail!("no command to run")
    };
    if !cli.quiet {
        let notes = screen::nodes::binding_notes(&binding, left.as_ref());
        for note in &notes {
            say(note);
        }
    }
    let mut command = Command::new(program);
    as_of_caller(&mut command);
    let error = command.args(arguments).exec();
    bail!(CommandError::not_started(program, &error))
}
