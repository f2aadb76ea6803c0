//! What commands are given: the root, the policy, and the machine with its plan.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, bail, ensure};
use itertools::Itertools as _;
use nix::errno::Errno;

use crate::commands::args::{General, SelectArgs};
use crate::commands::policy::PolicyArgs;
use nicpin::apply::Record;
use nicpin::machine::{Interface, Machine, Program, ProgramCpus, Selection};
use nicpin::plan::{Found, Note, Plan};
use nicpin::policy::{AVOID_EXCLUSIVE, EXCLUDE, NEAR, Policy, SCOPE, Value};
use nicpin::read::{self, Queues, Wants};
use nicpin::report::difference::Unplannable;
use nicpin::root::{FileError, Root};

/// A command line that only the machine or the command itself shows to be wrong.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct UsageError(String);

impl UsageError {
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

/// Default policy file, below the root.
pub const CONFIG: &str = "/etc/nicpin.toml";

/// Opens the root for a command that writes; a capture is refused.
pub fn open_to_write(cli: &General) -> Result<Root> {
    let root = Root::open(&cli.root)?;
    ensure!(
        !root.is_capture(),
        "{}: a capture is read-only; fix: run the command on the machine itself, or on the unpacked tree",
        cli.root.display()
    );
    Ok(root)
}

/// Whether a command writes to the machine, which decides which policy files it trusts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// The command only reads.
    Look,
    /// The command only reads, and compares with what apply has set: programs count where they were then.
    Compare,
    /// The command writes: files that users other than root and this one may write are not trusted.
    Write,
}

/// The policy, with the text of its file; `None` if there is no file.
pub fn read_policy(
    purpose: Purpose,
    cli: &General,
    root: &Root,
    args: &PolicyArgs,
) -> Result<(Policy, Option<String>)> {
    let top = Root::open("/".as_ref())?;
    // A path from the command line is not below --root.
    let (of, name, path) = match &cli.config {
        None => (root, root.outside(CONFIG), CONFIG.into()),
        Some(path) => {
            let absolute = std::path::absolute(path).with_context(|| path.display().to_string())?;
            (&top, path.clone(), absolute.to_string_lossy().into_owned())
        }
    };
    let text = match purpose {
        // As a file without a line.
        _ if path == "/dev/null" => Some(String::new()),
        Purpose::Write => of.read_trusted(&path)?,
        Purpose::Look | Purpose::Compare => of.read_opt(&path)?,
    };
    if text.is_none() && cli.config.is_some() {
        let answer = Errno::ENOENT.into();
        bail!(FileError::Io { path: name, answer });
    }
    let file = text.as_deref().map(Policy::parse).transpose();
    let policy = Policy {
        options: args.settings.clone(),
        ..file
            .with_context(|| name.display().to_string())?
            .unwrap_or_default()
    };
    policy.check_effects()?;
    Ok((policy, text))
}

/// Reads the machine, with the facts in `wants`, and the policy for a command without options of the policy that looks at
/// it.
pub fn read_host(cli: &General, root: &Root, wants: Wants) -> Result<(Machine, Policy)> {
    read_machine(Purpose::Look, cli, root, &PolicyArgs::default(), wants)
}

/// Reads the policy, and the machine with the facts in `wants`. Options with CPUs that the machine cannot have are usage
/// errors; those of the policy file, which other machines may share, are like offline ones.
fn read_machine(
    purpose: Purpose,
    cli: &General,
    root: &Root,
    args: &PolicyArgs,
    wants: Wants,
) -> Result<(Machine, Policy)> {
    let (policy, _) = read_policy(purpose, cli, root, args)?;
    // A command that writes also records them.
    let without_flow_counts = purpose != Purpose::Write && !policy.wants_flow_counts();
    let wants = Wants {
        hints: policy.wants_hints(),
        exclusive: wants.exclusive || policy.wants_exclusive(),
        queues: match wants.queues {
            Queues::Steering if without_flow_counts => Queues::WithoutFlowCounts,
            queues => queues,
        },
        ..wants
    };
    let mut machine = read::machine(root, wants)?;
    policy.options.check(machine.topology.possible)?;
    machine.programs = programs(purpose, root, &policy)?;
    // What ports can carry whose interfaces are in another network namespace decides on the weights of queues. A record
    // that cannot be read is reported where more depends on it.
    if machine.interfaces.iter().any(Interface::is_elsewhere) {
        if let Ok(record) = Record::load(root) {
            let interfaces = machine.interfaces.iter_mut();
            for interface in interfaces.filter(|interface| interface.is_elsewhere()) {
                interface.supported_mbps = record.carries(interface);
            }
        }
    }
    Ok((machine, policy))
}

/// Where the programs of a policy may run; with those of an earlier apply for a comparison, and for programs that do not
/// run.
fn programs(
    purpose: Purpose,
    root: &Root,
    policy: &Policy,
) -> Result<BTreeMap<Program, ProgramCpus>> {
    let wanted = policy.programs();
    if wanted.is_empty() {
        return Ok(BTreeMap::new());
    }
    let mut found = read::cgroups::programs(root, &wanted)?;
    let record = Record::load(root)?;
    for program in wanted {
        let now = found.get(&program).and_then(|found| found.now.clone());
        let recorded = record.near(&program).cloned();
        if let Some(cpus) = recorded.filter(|_| now.is_none() || purpose == Purpose::Compare) {
            found.insert(program, ProgramCpus { cpus, now });
        }
    }
    Ok(found)
}

/// Reads the machine and plans the selected interfaces.
pub fn read_and_plan(
    purpose: Purpose,
    cli: &General,
    root: &Root,
    select: &SelectArgs,
    args: &PolicyArgs,
    wants: Wants,
) -> Result<(Machine, Plan)> {
    // Interfaces that are not selected take part in the placement only: the settings of their queues are not needed.
    let queues = if select.is_given() {
        Queues::Numbers
    } else {
        Queues::Steering
    };
    let (mut machine, policy) = read_machine(purpose, cli, root, args, Wants { queues, ..wants })?;
    let selection = Selection::new(&machine, &select.selectors, select.if_present)?;
    let is_selected = |interface: &&Interface| selection.names.contains(&interface.name);
    policy.check_options(&machine, machine.interfaces.iter().filter(is_selected))?;
    if queues == Queues::Numbers {
        read::read_queue_settings(root, &mut machine, &selection.names)?;
    }
    let mut plan = nicpin::plan::plan(&machine, &policy, &selection);
    plan.host.name = read::host_name(root)?;
    require_met(&policy, &plan)?;
    Ok((machine, plan))
}

/// Refuses an option that this machine cannot meet for any interface. Where it can for others, or where the policy file
/// says so, those for which it cannot are reported.
fn require_met(policy: &Policy, plan: &Plan) -> Result<()> {
    // On nodes where the program does not run, its wish is none, unless there are no others.
    let is_unmet = |note: &Note| {
        let is_nowhere = matches!(
            note,
            Note::Near {
                found: Found::Nowhere,
                ..
            }
        );
        is_nowhere || note.is_unmet()
    };
    let unmet = Unplannable::of(plan, is_unmet);
    let Some(first) = unmet.first() else {
        return Ok(());
    };
    let options = &policy.options;
    let (option, is_given) = match first.note {
        Note::NoCpuLeft { .. } => ("exclude", options.get(&EXCLUDE).is_some()),
        Note::Near { .. } => ("near", options.get(&NEAR).is_some()),
        _ => ("scope", options.get(&SCOPE).is_some()),
    };
    ensure!(
        !is_given || unmet.len() < plan.interfaces.len(),
        UsageError(format!("--{option}: {}", first.note))
    );
    Ok(())
}

/// As [`read_and_plan`], for a command that judges the machine. One of which nothing can be seen is refused; with
/// `--if-present` it may have no interface.
pub fn read_to_judge(
    purpose: Purpose,
    cli: &General,
    root: &Root,
    select: &SelectArgs,
    args: &PolicyArgs,
) -> Result<(Machine, Plan)> {
    let (machine, plan) = read_and_plan(purpose, cli, root, select, args, Wants::default())?;
    // An interface in the plan whose vectors cannot be read is reported by its name.
    if select.if_present || !plan.interfaces.is_empty() {
        return Ok((machine, plan));
    }
    let absent = [INTERFACES, "/proc/irq"]
        .into_iter()
        .filter(|path| !root.exists(path));
    let mut missing = absent
        .map(|path| format!("{} does not exist", root.outside(path).display()))
        .collect_vec();
    if machine.interfaces.is_empty() {
        let functions = machine.others.cards.len();
        let mut text = "no interface has a device".to_owned();
        if functions > 0 {
            text += &format!(", and {functions} network functions have no interface");
        }
        missing.push(text);
    }
    let missing = missing.join("; ");
    ensure!(missing.is_empty(), "nothing can be planned: {missing}");
    Ok((machine, plan))
}

/// Where the kernel lists interfaces.
const INTERFACES: &str = "/sys/class/net";

/// Refuses to plan this machine where the kernel's list of interfaces is absent.
pub fn require_live_interfaces(root: &Root, select: &SelectArgs) -> Result<()> {
    ensure!(
        !root.is_real() || select.if_present || root.exists(INTERFACES),
        "nothing can be planned: {INTERFACES} does not exist"
    );
    Ok(())
}

/// The options of the policy for a command that judges what a running watcher keeps: CPUs that the watcher leaves out
/// because cgroups have them alone are left out here, too.
pub fn as_watched(args: &PolicyArgs, avoids_exclusive: bool) -> PolicyArgs {
    let mut args = args.clone();
    if avoids_exclusive && args.settings.get(&AVOID_EXCLUSIVE).is_none() {
        args.settings
            .set(&AVOID_EXCLUSIVE.entry(), Value::Word("true"));
    }
    args
}

/// The plan of these interfaces and all others in use, which shows the CPUs that no interrupts are sent to.
pub fn plan_beside_all(machine: &Machine, policy: &Policy, names: &[String]) -> Result<Plan> {
    let mut all = Selection::new(machine, &[], false)?;
    all.names.extend(names.iter().cloned());
    Ok(nicpin::plan::plan(machine, policy, &all))
}
