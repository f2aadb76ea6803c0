//! `nicpin run`: run a command on an interface's node.

use std::io::{self, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use anyhow::{Result, bail};

use crate::apply;
use crate::cli::{Cli, PolicyArgs, RunArgs};
use crate::commands::inputs::{NotThisMachine, Purpose, read_host};
use crate::machine::{Machine, Selection};
use crate::plan::Plan;
use crate::plan::binding::{Binding, BindingError, BindingRequest};
use crate::policy::possible_cpus;
use crate::read::Wants;
use crate::render;
use crate::report::exit::Exit;
use crate::root::{Root, errno_words};

pub(super) fn run(cli: &Cli, args: &RunArgs, out: &mut String) -> Result<Exit> {
    let root = Root::open(&cli.root)?;
    if !root.is_real() && !args.dry_run {
        let text = "the command would run on this machine, not on the one that --root names; --dry-run prints its CPUs";
        return Err(NotThisMachine(text).into());
    }
    let user = User::read(cli, &root, &args.interface)?;
    let binding = user.binding(&args.wish.wish())?;
    if args.dry_run {
        // Binding this process shows what the kernel would grant; nothing else is affected.
        let left = if root.is_real() { Some(apply::bind(&binding)?) } else { None };
        out.push_str(&render::binding::binding(&args.interface, &binding, left.as_ref()));
        return Ok(Exit::Planned);
    }
    let [program, arguments @ ..] = args.command.as_slice() else { bail!("no command to run") };
    let left = apply::bind(&binding)?;
    for note in render::binding::notes(&binding, Some(&left)) {
        // A closed standard error must not keep the command from running.
        let _ = writeln!(io::stderr(), "nicpin: {note}");
    }
    let error = Command::new(program).args(arguments).exec();
    bail!("{}: {}", program.to_string_lossy(), errno_words(&error))
}

/// A program that uses the interfaces of a selector, with the facts from which its CPUs and memory are chosen.
pub(super) struct User {
    machine: Machine,
    /// The plan of all interfaces, so that the program gets CPUs without interrupts.
    plan: Plan,
    selector: String,
    names: Vec<String>,
}

impl User {
    pub(super) fn read(cli: &Cli, root: &Root, selector: &str) -> Result<Self> {
        let wants = Wants { memory: true, ..Wants::default() };
        let (machine, policy) = read_host(Purpose::Look, cli, root, &PolicyArgs::default(), wants)?;
        let selected = Selection::new(&machine, &[selector.to_owned()], false)?;
        let mut all = Selection::new(&machine, &[], false)?;
        all.names.extend(selected.names.iter().cloned());
        let plan = crate::plan::plan(&machine, &policy, &all);
        Ok(Self { machine, plan, selector: selector.to_owned(), names: selected.names.into_iter().collect() })
    }

    pub(super) fn binding(&self, wish: &BindingRequest) -> Result<Binding> {
        if let Some(cpus) = &wish.cpus {
            possible_cpus("--cpus", cpus, self.machine.topology.possible)?;
        }
        let binding = Binding::new(&self.machine, &self.plan, &self.selector, &self.names, wish);
        binding.map_err(|error: BindingError| error.into())
    }
}
