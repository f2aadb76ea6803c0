//! `nicpin run`: run a command on an interface's node.

use std::os::unix::process::CommandExt as _;
use std::process::Command;

use anyhow::{Result, bail};

use crate::cli::{Cli, PolicyArgs, RunArgs};
use crate::commands::child::CommandError;
use crate::commands::inputs::{Purpose, UsageError, plan_beside_all, read_host};
use crate::commands::output::{say, screen};
use crate::screen;
use crate::start::as_of_caller;
use nicpin::apply;
use nicpin::machine::Selection;
use nicpin::plan::binding::Binding;
use nicpin::policy::possible_cpus;
use nicpin::read::Wants;
use nicpin::report::exit::Exit;
use nicpin::root::Root;

pub(super) fn run(cli: &Cli, args: &RunArgs, out: &mut String) -> Result<Exit> {
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
