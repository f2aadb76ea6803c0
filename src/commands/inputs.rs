//! The inputs of commands: the root, the policy, and the machine with its plan.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, absolute};
use std::slice;

use anyhow::{Context as _, Error, Result, bail, ensure};
use itertools::Itertools as _;
use nix::errno::Errno;

use crate::commands::args::{General, PolicyArgs, TargetArgs};
use crate::commands::output::say;
use crate::screen::{Given, count_if_any, enclose, with_prefix};
use crate::watch::state;
use nicpin::apply::{Record, Trial, TrialGuard, irqbalance};
use nicpin::machine::files::NET;
use nicpin::machine::selection::without_device;
use nicpin::machine::wording::few;
use nicpin::machine::{Interface, Machine, Program, ProgramCpus, Selection};
use nicpin::plan::binding::BindingError;
use nicpin::plan::{Found, Note, Plan, RssUnchanged};
use nicpin::policy::Policy;
use nicpin::read::{self, Queues, ReadOptions};
use nicpin::report::difference::NoteAbout;
use nicpin::report::watcher::Watcher;
use nicpin::root::{FileError, Root};

/// An error of the command line that only the machine or the command itself reveals.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct UsageError(String);

pub fn usage(text: impl Into<String>) -> UsageError {
    UsageError(text.into())
}

/// A node that was named, and that this machine cannot give, is an error of the command line.
pub fn wrong_place(node: Option<u32>) -> impl FnOnce(BindingError) -> Error {
    move |error| match node {
        Some(_) => usage(error.to_string()).into(),
        None => error.into(),
    }
}

pub const CONFIG: &str = "/etc/nicpin.toml";

/// Refuses a capture, which nothing can be written to.
pub fn open_to_write(cli: &General) -> Result<Root> {
    let root = Root::open(&cli.root)?;
    ensure!(
        !root.is_capture(),
        "{}: a capture is read-only; fix: run the command on the machine itself, or on the unpacked tree",
        cli.root.display()
    );
    Ok(root)
}

pub fn from_top(path: &Path) -> Result<String> {
    let absolute = absolute(path).with_context(|| path.display().to_string())?;
    Ok(absolute.to_string_lossy().into_owned())
}

#[derive(Clone, Copy, PartialEq)]
pub enum Purpose {
    Look,
    /// Reads only, and compares with the last apply: programs count with the CPUs that they had then.
    Compare,
    /// Files that other users may write are not trusted.
    Write,
}

/// Also returns the text of the policy file; `None` if there is no file.
pub fn read_policy(
    purpose: Purpose,
    cli: &General,
    root: &Root,
    args: &PolicyArgs,
) -> Result<(Policy, Option<String>)> {
    let top = Root::open("/".as_ref())?;
    let (base, name, path) = match &cli.config {
        None => (root, root.outside(CONFIG), CONFIG.into()),
        Some(path) => (&top, path.clone(), from_top(path)?),
    };
    let text = match purpose {
        // Counts as an empty file.
        _ if path == "/dev/null" => Some(String::new()),
        Purpose::Write => base.read_trusted(&path)?,
        Purpose::Look | Purpose::Compare => base.read_opt(&path)?,
    };
    if text.is_none() && cli.config.is_some() {
        let answer = Errno::ENOENT.into();
        bail!(FileError::Io { path: name, answer });
    }
    let file = Policy::parse(text.as_deref().unwrap_or_default());
    let policy = Policy {
        options: args.0.clone(),
        ..file.with_context(|| name.display().to_string())?
    };
    policy.check_effects()?;
    Ok((policy, text))
}

/// Serves commands that only read and have no policy options.
pub fn read_host(
    cli: &General,
    root: &Root,
    options: ReadOptions<'_>,
) -> Result<(Machine, Policy)> {
    read_machine(Purpose::Look, cli, root, &PolicyArgs::default(), options)
}

/// CPUs that the machine cannot have are usage errors in options; in the policy file, which machines may share, they
/// count as offline.
fn read_machine(
    purpose: Purpose,
    cli: &General,
    root: &Root,
    args: &PolicyArgs,
    options: ReadOptions<'_>,
) -> Result<(Machine, Policy)> {
    let (policy, _) = read_policy(purpose, cli, root, args)?;
    let mut options = ReadOptions {
        drivers: &policy.drivers,
        ..options
    };
    options.hints = policy.wants_hints();
    options.exclusive |= policy.wants_exclusive();
    // RFS decides on flows; a command that writes also records the flow counts.
    let is_used = options.flows || purpose == Purpose::Write;
    let wants_flow_counts = is_used || policy.wants_flow_counts();
    if options.queues == Queues::Steering && !wants_flow_counts {
        options.queues = Queues::WithoutFlowCounts;
    }
    let mut machine = read::machine(root, options)?;
    policy.options.check(machine.topology.possible)?;
    machine.programs = programs(purpose, root, &policy)?;
    if let Some(record) = complete(root, &mut machine) {
        record.mark_unmovable(root, &mut machine);
    }
    Ok((machine, policy))
}

/// An unreadable record is ignored: check and apply report it.
pub fn complete(root: &Root, machine: &mut Machine) -> Option<Record> {
    let record = Record::load(root).ok()?;
    record.complete(machine);
    Some(record)
}

/// For a comparison, and for programs that do not run, the CPUs are those that an earlier apply recorded.
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
        if let Some(cpus) = record
            .near(&program)
            .cloned()
            .filter(|_| now.is_none() || purpose == Purpose::Compare)
        {
            found.insert(program, ProgramCpus { cpus, now });
        }
    }
    Ok(found)
}

pub fn require_interfaces(root: &Root, if_present: bool, machine: &Machine) -> Result<()> {
    let mut missing = Vec::new();
    for path in [NET, "/proc/irq"] {
        if !root.exists(path) {
            missing.push(format!("{} does not exist", root.outside(path).display()));
        }
    }
    if machine.interfaces.is_empty() {
        let functions = machine.others.cards.len();
        let have = if functions == 1 { "has" } else { "have" };
        let without = count_if_any(
            functions,
            "network function",
            &format!(" {have} no interface"),
        );
        let virtuals = machine.others.virtuals.iter();
        let virtuals = virtuals.filter(|known| known.name != "lo");
        let virtuals = virtuals.map(|known| format!("{} is {}", known.name, known.kind));
        let on_host = "; in a container, run nicpin on the host";
        let virtuals = Some(few(", ", virtuals, false)).filter(|named| !named.is_empty());
        missing.push(
            "no interface has a device".to_owned()
                + &with_prefix(", and ", [without])
                + &enclose(": ", virtuals, on_host),
        );
    }
    let missing = missing.join("; ");
    ensure!(
        if_present || missing.is_empty(),
        "nothing can be planned: {missing}"
    );
    Ok(())
}

pub fn require_vectors(root: &Root, machine: &Machine) -> Result<()> {
    if let Some(path) = machine.missing() {
        bail!(root.nothing_in(path));
    }
    Ok(())
}

/// Fails if vectors are unreadable because a file is absent: RPS and XPS must not be written without them.
pub fn require_readable_vectors(root: &Root, machine: &Machine, plan: &Plan) -> Result<()> {
    let is_unreadable = |note: &Note| matches!(note, Note::VectorsUnreadable { .. });
    let mut notes = plan
        .interfaces
        .iter()
        .flat_map(|interface| &interface.notes);
    if notes.any(is_unreadable) {
        require_vectors(root, machine)?;
    }
    Ok(())
}

/// Fails if the machine shows no interfaces, unless with `--if-present`.
pub fn read_and_plan(
    purpose: Purpose,
    cli: &General,
    root: &Root,
    target: &TargetArgs,
    mut options: ReadOptions<'_>,
) -> Result<(Machine, Plan)> {
    let select = &target.select;
    // Other interfaces only take part in the placement, without the settings of their queues.
    if target.is_given() {
        options.queues = Queues::Numbers;
    }
    let (mut machine, policy) = read_machine(purpose, cli, root, &target.policy, options)?;
    let selection = Selection::new(&machine, &select.selectors, select.if_present)?;
    if target.is_given() {
        read::read_queue_settings(root, &mut machine, &selection.names)?;
    }
    let mut plan = plan_read(&machine, &policy, &selection)?;
    plan.host.name = read::host_name(root)?;
    irqbalance::note_earlier_bans(root, &mut plan);
    if purpose == Purpose::Write {
        require_readable_vectors(root, &machine, &plan)?;
    }
    // An interface in the plan whose vectors cannot be read is reported by its name.
    if plan.interfaces.is_empty() {
        require_interfaces(root, select.if_present, &machine)?;
    }
    Ok((machine, plan))
}

/// Plans for a machine that was read; an error if it cannot meet the options.
pub fn plan_read(machine: &Machine, policy: &Policy, selection: &Selection) -> Result<Plan> {
    let is_selected = |interface: &&Interface| selection.names.contains(&interface.name);
    policy.check_options(machine, machine.interfaces.iter().filter(is_selected))?;
    let plan = nicpin::plan::plan(machine, policy, selection);
    require_met(policy, &plan)?;
    Ok(plan)
}

/// Leaves out CPUs of exclusive cpuset partitions that a running watcher leaves out, also in suggested commands. An
/// unreadable state of the watcher is only reported.
pub fn read_and_compare(
    cli: &General,
    root: &Root,
    target: &TargetArgs,
) -> Result<(Machine, Plan, Option<Watcher>, Given)> {
    let watcher = state::running(root).unwrap_or_else(|error| {
        say(&format!("{error:#}"));
        None
    });
    let compared = target.as_watched(
        watcher
            .as_ref()
            .is_some_and(|watcher| watcher.avoids_exclusive),
    );
    let (machine, mut plan) = read_and_plan(
        Purpose::Compare,
        cli,
        root,
        &compared,
        ReadOptions::default(),
    )?;
    // Apply and confirm report a file that cannot be read.
    let trial = Trial::load(root).ok().flatten();
    let trial = trial.filter(|trial| !trial.found_all_as_planned(root));
    plan.notes.extend(trial.and_then(|trial| {
        if trial.over {
            return (trial.not_restored()).map(|left| Note::TrialNotRestored { left });
        }
        Some(Note::TrialWaits {
            seconds: trial.seconds,
            unwatched: TrialGuard::open(root).is_ok_and(|watch| watch.has_ended()),
        })
    }));
    let mut given = cli.given.clone();
    let leaves_out = plan
        .interfaces
        .iter()
        .any(|interface| !interface.exclusive.is_empty());
    if leaves_out && compared.policy.0 != target.policy.0 {
        given.options.push(vec!["--avoid-exclusive".to_owned()]);
    }
    Ok((machine, plan, watcher, given))
}

/// If only some interfaces cannot meet an option, or the policy file requests it, they are only reported.
fn require_met(policy: &Policy, plan: &Plan) -> Result<()> {
    let unmet = NoteAbout::of(plan, |_, note| match note {
        // On nodes where the program does not run, the request has no effect, unless there are no others.
        Note::Near {
            found: Found::Nowhere,
            ..
        } => true,
        // The driver's answer on the machine itself, or later, is unknown.
        Note::ChannelsUnchanged { fixed, .. } => *fixed && note.is_unmet(),
        Note::RssUnchanged { because, .. } => *because != RssUnchanged::NoTable,
        note => note.is_unmet(),
    });
    let mut of_options = unmet.iter().map(|about| {
        let setting = about.note.unmet_setting();
        (about, setting.unwrap_or("near"))
    });
    let Some((first, option)) = of_options.find(|(_, option)| policy.options.has(option)) else {
        return Ok(());
    };
    let planned = plan.interfaces.iter();
    let planned = planned.filter(|interface| !interface.notes.contains(&Note::Skipped));
    // An interface may have several.
    let concerned = unmet.iter().map(|about| &about.interface).dedup();
    let concerns_all =
        plan.interfaces.len() == 1 || unmet.iter().map(|about| &about.note).all_equal();
    let prefix = if concerns_all {
        String::new()
    } else {
        format!("{}: ", first.interface)
    };
    ensure!(
        concerned.count() < planned.count(),
        UsageError(format!("--{option}: {prefix}{}", first.note))
    );
    Ok(())
}

/// Plans all interfaces in use, as the plan shows the CPUs without interrupts, and names those that `interface` selects.
/// Also says what it is if it has no device: then options have to name its nodes, as `is_node_named` says that they do
/// and `fix` how.
pub fn read_beside_all(
    cli: &General,
    root: &Root,
    interface: &String,
    is_node_named: bool,
    fix: &str,
) -> Result<(Machine, Plan, Vec<String>, Option<String>)> {
    let options = ReadOptions {
        memory: true,
        ..ReadOptions::default()
    };
    let (machine, policy) = read_host(cli, root, options)?;
    let kind = without_device(&machine, interface);
    let names = match &kind {
        None => Selection::new(&machine, slice::from_ref(interface), false)?.names,
        Some(_) if is_node_named => BTreeSet::new(),
        Some(kind) => bail!("`{interface}` is {kind} and has no node; fix: {fix}"),
    };
    let mut all = Selection::new(&machine, &[], false)?;
    all.names.extend(names.iter().cloned());
    let plan = nicpin::plan::plan(&machine, &policy, &all);
    Ok((machine, plan, names.into_iter().collect(), kind))
}
