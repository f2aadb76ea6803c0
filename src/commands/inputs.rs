//! What commands are given: the root, the policy, and the machine with its plan.

use crate::commands::args::General;
use crate::commands::args::SelectArgs;
use crate::commands::policy::PolicyArgs;
use anyhow::{Context as _, Result};
use nicpin::apply::Record;
use nicpin::machine::{Interface, Machine, Program, ProgramCpus, Selection};
use nicpin::plan::{Found, Note, Plan};
use nicpin::policy::{AVOID_EXCLUSIVE, EXCLUDE, NEAR, Policy, SCOPE, Value};
use nicpin::read::{self, Queues, Wants};
use nicpin::report::difference::Unplannable;
use nicpin::root::{FileError, Root};
use std::collections::BTreeMap;

/// A command line that only the machine or the command itself shows to be wrong.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct UsageError(String);

impl UsageError {
    pub(super) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

/// Default policy file, below the root.
pub(super) const CONFIG: &str = "/etc/nicpin.toml";

/// Opens the root for a command that writes; a capture is refused.
pub(super) fn open_to_write(cli: &General) -> Result<Root> {
    let root = Root::open(&cli.root)?;
    if root.is_capture() {
        let name = cli.root.display();
        anyhow::bail!(
            "{name}: a capture is read-only; fix: run the command on the machine itself, or on the unpacked tree"
        );
    }
    Ok(root)
}

/// Whether a command writes to the machine, which decides which policy files it trusts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// The command only reads.
    Look,
    /// The command only reads, and compares with what apply has set: programs count where they were then.
    Compare,
    /// The command writes: files that users other than root and this one may write are not trusted.
    Write,
}

/// Name of the policy file, as errors print it, and its text; `None` if there is no file.
fn read_policy_file(
    cli: &General,
    root: &Root,
    purpose: Purpose,
) -> Result<(String, Option<String>)> {
    // A path from the command line is not below --root.
    let Some(path) = &cli.config else {
        let text = match purpose {
            Purpose::Look | Purpose::Compare => root.read_opt(CONFIG)?,
            Purpose::Write => root.read_trusted(CONFIG)?,
        };
        return Ok((root.outside(CONFIG).display().to_string(), text));
    };
    let top = Root::open("/".as_ref())?;
    let absolute = std::path::absolute(path).with_context(|| path.display().to_string())?;
    let absolute = absolute.to_string_lossy();
    let text = match purpose {
        Purpose::Look | Purpose::Compare => top.read(&absolute)?,
        Purpose::Write => top.read_trusted(&absolute)?.ok_or_else(|| FileError::Io {
            path: path.clone(),
            answer: nix::errno::Errno::ENOENT.into(),
        })?,
    };
    Ok((path.display().to_string(), Some(text)))
}

/// Reads the machine and plans the selected interfaces.
pub(super) fn read_and_plan(
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
    let (mut machine, policy) = read_host(purpose, cli, root, args, Wants { queues, ..wants })?;
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
fn require_met(policy: &Policy, plan: &Plan) -> Result<(), UsageError> {
    // On nodes where the program does not run, its wish is none, unless there are no others.
    let is_nowhere = |note: &Note| {
        matches!(
            note,
            Note::Near {
                found: Found::Nowhere,
                ..
            }
        )
    };
    let unmet = Unplannable::of(plan, |note| is_nowhere(note) || note.is_unmet());
    let Some(first) = unmet
        .first()
        .filter(|_| unmet.len() == plan.interfaces.len())
    else {
        return Ok(());
    };
    let (option, is_given) = match first.note {
        Note::NoCpuLeft { .. } => ("exclude", policy.options.get(&EXCLUDE).is_some()),
        Note::Near { .. } => ("near", policy.options.get(&NEAR).is_some()),
        _ => ("scope", policy.options.get(&SCOPE).is_some()),
    };
    if is_given {
        return Err(UsageError(format!("--{option}: {}", first.note)));
    }
    Ok(())
}

/// The options of the policy for a command that judges what a running watcher keeps: CPUs that the watcher leaves out
/// because cgroups have them alone are left out here, too.
pub(super) fn as_watched(args: &PolicyArgs, avoids_exclusive: bool) -> PolicyArgs {
    let mut args = args.clone();
    if avoids_exclusive && args.settings.get(&AVOID_EXCLUSIVE).is_none() {
        args.settings
            .set(&AVOID_EXCLUSIVE.entry(), Value::Word("true"));
    }
    args
}

/// Where the kernel lists interfaces, and the affinity of IRQs.
const INTERFACES: &str = "/sys/class/net";
const IRQS: &str = "/proc/irq";

/// Refuses to judge a machine of which nothing can be seen. With `--if-present` it may have no interface.
pub(super) fn require_interfaces(
    root: &Root,
    machine: &Machine,
    plan: &Plan,
    select: &SelectArgs,
) -> Result<()> {
    // An interface in the plan whose vectors cannot be read is reported by its name.
    if select.if_present || !plan.interfaces.is_empty() {
        return Ok(());
    }
    let mut missing: Vec<String> = [INTERFACES, IRQS]
        .into_iter()
        .filter(|path| !root.exists(path))
        .map(|path| format!("{} does not exist", root.outside(path).display()))
        .collect();
    if machine.interfaces.is_empty() {
        missing.push(match machine.others.cards.len() {
            0 => "no interface has a device".to_owned(),
            functions => {
                format!(
                    "no interface has a device, and {functions} network functions have no interface"
                )
            }
        });
    }
    anyhow::ensure!(
        missing.is_empty(),
        "nothing can be planned: {}",
        missing.join("; ")
    );
    Ok(())
}

/// Refuses to plan this machine where the kernel's list of interfaces is absent.
pub(super) fn require_live_interfaces(root: &Root, select: &SelectArgs) -> Result<()> {
    let missing = root.is_real() && !select.if_present && !root.exists(INTERFACES);
    anyhow::ensure!(
        !missing,
        "nothing can be planned: {INTERFACES} does not exist"
    );
    Ok(())
}

/// The policy, with the text of its file; `None` if there is no file.
pub(super) fn read_policy(
    purpose: Purpose,
    cli: &General,
    root: &Root,
    args: &PolicyArgs,
) -> Result<(Policy, Option<String>)> {
    let (name, text) = read_policy_file(cli, root, purpose)?;
    let file = text
        .as_deref()
        .map(|text| Policy::parse(text).with_context(|| name.clone()))
        .transpose()?;
    let policy = Policy {
        options: args.settings.clone(),
        ..file.unwrap_or_default()
    };
    policy.check_effects()?;
    Ok((policy, text))
}

/// Reads the policy, and the machine with the facts in `wants`. Options with CPUs that the machine cannot have are usage
/// errors; those of the policy file, which other machines may share, are like offline ones.
pub(super) fn read_host(
    purpose: Purpose,
    cli: &General,
    root: &Root,
    args: &PolicyArgs,
    wants: Wants,
) -> Result<(Machine, Policy)> {
    let (policy, _) = read_policy(purpose, cli, root, args)?;
    // A command that writes also records them.
    let without_flow_counts = purpose != Purpose::Write && !policy.wants_flow_counts();
    let queues = match wants.queues {
        Queues::Steering if without_flow_counts => Queues::WithoutFlowCounts,
        queues => queues,
    };
    let mut machine = read::machine(
        root,
        Wants {
            hints: policy.wants_hints(),
            exclusive: wants.exclusive || policy.wants_exclusive(),
            queues,
            ..wants
        },
    )?;
    policy.options.check(machine.topology.possible)?;
    machine.programs = programs(purpose, root, &policy)?;
    recall_ports(root, &mut machine);
    Ok((machine, policy))
}

/// What ports can carry whose interfaces are in another network namespace, as the record has it: it decides on the weights
/// of queues. A record that cannot be read is reported where more depends on it.
fn recall_ports(root: &Root, machine: &mut Machine) {
    let elsewhere = machine.interfaces.iter_mut();
    let mut elsewhere = elsewhere
        .filter(|interface| interface.is_elsewhere())
        .peekable();
    if elsewhere.peek().is_none() {
        return;
    }
    if let Ok(record) = Record::load(root) {
        for interface in elsewhere {
            interface.supported_mbps = record.carries(interface);
        }
    }
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
        let recorded = recorded.filter(|_| now.is_none() || purpose == Purpose::Compare);
        if let Some(cpus) = recorded {
            found.insert(program, ProgramCpus { cpus, now });
        }
    }
    Ok(found)
}

/// The plan of these interfaces and all others in use, which shows the CPUs that no interrupts are sent to.
pub(super) fn plan_beside_all(
    machine: &Machine,
    policy: &Policy,
    names: &[String],
) -> Result<Plan> {
    let mut all = Selection::new(machine, &[], false)?;
    all.names.extend(names.iter().cloned());
    Ok(nicpin::plan::plan(machine, policy, &all))
}
