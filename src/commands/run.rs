//! `nicpin run`: run a command on an interface's node.

use crate::commands::args::General;
use crate::commands::args::memory_binding;
use crate::commands::child::CommandError;
use crate::commands::help;
use crate::commands::inputs::{Purpose, UsageError, plan_beside_all, read_host};
use crate::commands::output::{say, screen};
use crate::commands::policy::PolicyArgs;
use crate::screen;
use crate::start::as_of_caller;
use anyhow::{Result, bail};
use clap::Args;
use nicpin::apply;
use nicpin::cpuset::CpuSet;
use nicpin::machine::Selection;
use nicpin::plan::binding::Binding;
use nicpin::plan::binding::BindingRequest;
use nicpin::plan::binding::MemoryBinding;
use nicpin::plan::binding::NodeChoice;
use nicpin::policy::possible_cpus;
use nicpin::read::Wants;
use nicpin::report::exit::Exit;
use nicpin::root::Root;
use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

#[derive(Debug, Args)]
#[command(after_help = help::after("run"))]
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

pub(super) fn run(cli: &General, args: &RunArgs, out: &mut String) -> Result<Exit> {
    let root = Root::open(&cli.root)?;
    if !root.is_real() && !args.dry_run {
        let text = "the command would run on this machine, not on the one that --root names; --dry-run prints its CPUs";
        bail!(UsageError::new(text));
    }
    let wants = Wants {
        memory: true,
        ..Wants::default()
    };
    let (machine, policy) = read_host(Purpose::Look, cli, &root, &PolicyArgs::default(), wants)?;
    let selected = Selection::new(&machine, std::slice::from_ref(&args.interface), false)?;
    let names: Vec<String> = selected.names.into_iter().collect();
    let plan = plan_beside_all(&machine, &policy, &names)?;
    let wish = args.wish();
    if let Some(cpus) = &wish.cpus {
        possible_cpus("cpus", cpus, machine.topology.possible)?;
    }
    let binding = Binding::new(&machine, &plan, &args.interface, &names, &wish)?;
    if args.dry_run {
        // Binding this process shows what the kernel would grant; nothing else is affected.
        let left = if root.is_real() {
            Some(apply::bind(&binding)?)
        } else {
            None
        };
        let page = screen::nodes::binding(&args.interface, &binding, left.as_ref());
        out.push_str(&page.show(screen()));
        return Ok(Exit::Planned);
    }
    let [program, arguments @ ..] = args.command.as_slice() else {
        bail!("no command to run")
    };
    let left = apply::bind(&binding)?;
    for note in screen::nodes::binding_notes(&binding, Some(&left))
        .iter()
        .filter(|_| !cli.quiet)
    {
        say(note);
    }
    let mut command = Command::new(program);
    as_of_caller(&mut command);
    let error = command.args(arguments).exec();
    bail!(CommandError::not_started(program, &error))
}
