//! Bans IRQs over irqbalance's socket, or stops its service. `/run/nicpin/irqbalance.json` records this before it is
//! done: restore undoes exactly that, and `nicpin irqbalance-policy` answers from it if it cannot read the devices.

mod socket;

use std::collections::{BTreeMap, BTreeSet};
use std::mem::take;
use std::process::{Command, Stdio};

use serde::{Deserialize, Serialize};
pub use socket::Setup;
use socket::{BanError, Daemon, RECORDED, SHORT_TIMEOUT, TIMEOUT};

use crate::apply::error::ApplyError;
use crate::apply::state::StateFile;
use crate::cpuset::Inserted as _;
use crate::machine::{Interface, Machine};
use crate::plan::{IrqbalancePlan, Note, Plan};
use crate::policy::Balancer::{Ban, Ignore, Refuse, Stop};
use crate::read::tools;
use crate::report::outcome::IrqbalanceAction::{
    Banned, NotRequested, Refused, Started, Stopped, Unbanned,
};
use crate::report::outcome::{IrqbalanceAction, IrqbalanceOutcome};
use crate::root::{FileError, Root};

const FILE: StateFile = StateFile {
    path: "/run/nicpin/irqbalance.json",
    schema: "nicpin.irqbalance/1",
    what: "a record of bans for irqbalance",
    not_done: "irqbalance was not asked to ban IRQs, because that could not be undone",
};

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IrqbalanceRecord {
    /// Process id and start time: a restarted irqbalance has no bans.
    process: Option<(i32, u64)>,
    pub banned: BTreeSet<u32>,
    /// With their devices: after channels change, a number may be another vector's.
    pub planned: BTreeMap<u32, RecordedIrq>,
    pub stopped: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedIrq {
    pub device: String,
    pub action: String,
}

impl IrqbalanceRecord {
    pub fn load(root: &Root) -> Result<Self, FileError> {
        Ok(FILE.load(root)?.unwrap_or_default())
    }

    fn save(&self, root: &Root) -> Result<(), FileError> {
        if *self == Self::default() {
            FILE.remove(root)
        } else {
            FILE.save(root, self)
        }
    }

    fn is_of(&self, root: &Root, pid: i32) -> bool {
        self.process.is_some() && self.process == process_and_start(root, pid)
    }

    /// Removes IRQs that belong to another device by now; returns the banned ones among them.
    fn remove_stale<'a>(&mut self, machine: &'a Machine) -> BTreeSet<u32> {
        let vectors = |interface: &'a Interface| {
            (interface.vectors.iter()).map(|vector| (vector.irq, &*interface.device.address))
        };
        let now: BTreeSet<(u32, &str)> = machine.interfaces.iter().flat_map(vectors).inserted();
        self.planned
            .retain(|irq, was| now.contains(&(*irq, &was.device)));
        let (banned, stale) = take(&mut self.banned)
            .into_iter()
            .partition(|irq| self.planned.contains_key(irq));
        self.banned = banned;
        stale
    }

    fn add_plan(&mut self, plan: &Plan) {
        for interface in &plan.interfaces {
            for vector in interface
                .vectors
                .iter()
                .filter(|vector| vector.cpus.is_some())
            {
                let (device, action) = (interface.device.clone(), vector.action.to_string());
                self.planned
                    .insert(vector.irq, RecordedIrq { device, action });
            }
        }
    }
}

fn process_and_start(root: &Root, pid: i32) -> Option<(i32, u64)> {
    Some((pid, tools::irqbalance::process_start(root, pid)?))
}

/// The action, whether it changed anything, and the number of IRQs.
type Done = (IrqbalanceAction, bool, usize);

fn outcome(pid: Option<i32>, irqs: usize, done: Result<Done, BanError>) -> IrqbalanceOutcome {
    let detail = done.as_ref().err().map(BanError::to_string);
    let (done, changed, irqs) = done.unwrap_or_else(|error| match error {
        BanError::NotRequested(_) => (NotRequested, false, irqs),
        _ => (Refused, false, irqs),
    });
    IrqbalanceOutcome {
        pid,
        done,
        changed,
        irqs,
        detail,
    }
}

fn not_held(held: usize, requested: usize) -> BanError {
    BanError::Other(format!(
        "irqbalance reports only {held} of {requested} IRQs as banned; fix: run again"
    ))
}

pub fn may_write(plan: &Plan) -> Result<(), ApplyError> {
    let refused = |why| Err(ApplyError::Irqbalance(why));
    if let Some(running) = plan
        .irqbalance
        .as_ref()
        .filter(|balancer| balancer.action == Refuse)
    {
        return refused(format!(
            "irqbalance runs (process {}) and would change the affinities again; nothing was written: stop it, or use \
             --irqbalance ban or stop",
            running.pid
        ));
    }
    for note in &plan.notes {
        if let Note::IrqbalanceUnknown {
            hidden,
            action: Refuse,
        } = note
        {
            return refused(format!(
                "whether irqbalance runs could not be determined, because {hidden} cannot be read; nothing was written: \
                 run as root, or use --irqbalance ban or ignore"
            ));
        }
    }
    Ok(())
}

/// Before the plan's writes: irqbalance could move a vector between its write and its ban.
pub fn before_writes(
    root: &Root,
    machine: &Machine,
    plan: &Plan,
    repeats: bool,
) -> Option<IrqbalanceOutcome> {
    let balancer = plan.irqbalance.as_ref();
    let balancer = balancer.filter(|balancer| !balancer.irqs.is_empty())?;
    let (pid, count) = (balancer.pid, balancer.irqs.len());
    let banned_before = banned_by_nicpin(root, pid);
    let is_banned = |irq: &u32| banned_before.contains(irq);
    let done = match balancer.action {
        Ban => {
            let time = if repeats { SHORT_TIMEOUT } else { TIMEOUT };
            let daemon = Daemon::with_timeout(time, root, pid);
            let changed = match ban(root, machine, plan, balancer, &daemon) {
                // irqbalance scans the machine, or is stopped. A later apply looks whether the bans still hold.
                Err(BanError::Silent { .. }) if repeats && balancer.irqs.iter().all(is_banned) => {
                    Ok(false)
                }
                // The policy script works even if the socket does not answer.
                Err(error) if balancer.lasts && !matches!(error, BanError::Other(_)) => {
                    let asks = "its policy script asks nicpin when irqbalance starts";
                    Err(BanError::NotRequested(format!("{error}; {asks}")))
                }
                banned => banned,
            };
            changed.map(|changed| (Banned, changed, count))
        }
        Stop => stop(root),
        Ignore | Refuse => return None,
    };
    Some(outcome(Some(pid), count, done))
}

/// For a plan that ignores irqbalance: bans of an earlier apply still hold, by irqbalance itself or, if it cannot be
/// asked, by the record.
pub fn note_earlier_bans(root: &Root, plan: &mut Plan) {
    let Some(IrqbalancePlan {
        pid,
        irqs,
        action: Ignore,
        ..
    }) = &plan.irqbalance
    else {
        return;
    };
    let recorded = banned_by_nicpin(root, *pid);
    if recorded.is_empty() {
        return;
    }
    let now = Daemon::with_timeout(SHORT_TIMEOUT, root, *pid)
        .banned_irqs()
        .unwrap_or(recorded);
    for note in &mut plan.notes {
        if let Note::IrqbalanceRunning { left_alone, .. } = note {
            *left_alone = irqs.iter().filter(|irq| now.contains(irq)).count();
        }
    }
}

fn ban(
    root: &Root,
    machine: &Machine,
    plan: &Plan,
    balancer: &IrqbalancePlan,
    daemon: &Daemon<'_>,
) -> Result<bool, BanError> {
    let mut record = IrqbalanceRecord::load(root)?;
    // Bans of an earlier process are gone with it.
    if !record.is_of(root, balancer.pid) {
        record.banned.clear();
    }
    record.process = process_and_start(root, balancer.pid);
    // IRQ numbers that belong to other vectors by now are not nicpin's to ban.
    let stale = record.remove_stale(machine);
    // A restarted irqbalance has also lost the bans of interfaces outside this plan.
    let irqs: BTreeSet<u32> = record
        .planned
        .keys()
        .chain(&balancer.irqs)
        .copied()
        .collect();
    let expected = &irqs | &record.banned;
    let now = daemon.setup(&expected)?.banned;
    let list = &(&now - &stale) | &irqs;
    record.banned.extend(&irqs - &now);
    record.add_plan(plan);
    record.save(root)?;
    if list != now {
        if !list.is_subset(&expected) {
            // IRQs banned by others have to be named again: check that the longer request can be read.
            daemon.setup(&list)?;
        }
        daemon.ban(&list)?;
        let held = (&list & &daemon.banned_irqs()?).len();
        if held < list.len() {
            return Err(not_held(held, list.len()));
        }
    }
    Ok(list != now)
}

fn stop(root: &Root) -> Result<Done, BanError> {
    if !root.is_real() {
        return Err(BanError::of_copy());
    }
    let mut record = IrqbalanceRecord::load(root)?;
    // Only an irqbalance that its unit has started can be started again.
    record.stopped |= systemctl(root, "is-active").is_ok();
    record.save(root)?;
    systemctl(root, "stop")?;
    match running(root)? {
        None => Ok((Stopped, true, 0)),
        Some(pid) => Err(BanError::Other(format!(
            "{UNIT} is stopped, but process {pid} still runs; stop it by hand"
        ))),
    }
}

pub fn undo_since(root: &Root, before: &IrqbalanceRecord) -> Option<IrqbalanceOutcome> {
    let undone = match IrqbalanceRecord::load(root) {
        Ok(record) if record == *before => return None,
        record => record
            .map_err(BanError::from)
            .and_then(|record| undo(root, before, &record)),
    };
    // irqbalance may have been started; its number is only shown.
    let pid = running(root).unwrap_or(None);
    Some(outcome(pid, 0, undone))
}

/// None if the record cannot be read.
pub fn banned_by_nicpin(root: &Root, pid: i32) -> BTreeSet<u32> {
    match IrqbalanceRecord::load(root) {
        Ok(record) if record.is_of(root, pid) => record.planned.into_keys().collect(),
        _ => BTreeSet::new(),
    }
}

/// As far as the record shows: only root can ask irqbalance.
pub fn would_change(root: &Root, plan: &Plan) -> bool {
    let balancer = plan.irqbalance.as_ref();
    let Some(balancer) = balancer.filter(|balancer| !balancer.irqs.is_empty()) else {
        return false;
    };
    match balancer.action {
        Ban if root.is_real() || root.exists(RECORDED) => {
            let banned = banned_by_nicpin(root, balancer.pid);
            !balancer.irqs.iter().all(|irq| banned.contains(irq))
        }
        Stop => root.is_real(),
        Ban | Ignore | Refuse => false,
    }
}

/// True if the record cannot be read.
pub fn has_something_to_undo(root: &Root) -> bool {
    IrqbalanceRecord::load(root).map_or(true, |record| record != IrqbalanceRecord::default())
}

fn undo(
    root: &Root,
    before: &IrqbalanceRecord,
    record: &IrqbalanceRecord,
) -> Result<Done, BanError> {
    let (mut done, mut unbanned) = (Unbanned, 0);
    match running(root)? {
        None if record.stopped && !before.stopped => {
            // Without waiting: systemd starts nothing that is ordered with nicpin's own unit while that unit stops.
            systemctl(root, "start --no-block")?;
            done = Started;
        }
        Some(pid) if record.is_of(root, pid) => {
            let daemon = Daemon::with_timeout(TIMEOUT, root, pid);
            let now = daemon.banned_irqs()?;
            let list = &now - &(&record.banned - &before.banned);
            unbanned = now.len() - list.len();
            if unbanned > 0 {
                daemon.setup(&list)?;
                daemon.ban(&list)?;
                let held = daemon.banned_irqs()?;
                if held != list {
                    return Err(not_held((&held & &list).len(), list.len()));
                }
            }
        }
        // irqbalance was restarted or has ended, and its bans with it.
        _ => {}
    }
    before.save(root)?;
    let changed = unbanned > 0 || done == Started;
    Ok((done, changed, unbanned))
}

/// At fixed paths and run without environment variables, so that nobody else chooses what root runs.
const SYSTEMCTL: [&str; 3] = [
    "/usr/bin/systemctl",
    "/bin/systemctl",
    "/run/current-system/sw/bin/systemctl",
];
const UNIT: &str = "irqbalance.service";

fn running(root: &Root) -> Result<Option<i32>, BanError> {
    let unknown = |path| format!("{path} cannot be read, so it is unknown whether irqbalance runs");
    tools::irqbalance::find(root).map_err(|path| BanError::Other(unknown(path)))
}

fn systemctl(root: &Root, words: &str) -> Result<(), BanError> {
    let mut found = SYSTEMCTL.iter();
    let Some(program) = found.find(|path| root.is_real() && root.exists(path)) else {
        let why = format!("systemctl was not found; {words} irqbalance by hand");
        return Err(BanError::Other(why));
    };
    let output = Command::new(program)
        .args(words.split(' '))
        .arg(UNIT)
        .env_clear()
        .stdin(Stdio::null())
        .output()
        .map_err(|error| BanError::Other(format!("{program}: {error}")))?;
    if output.status.success() {
        return Ok(());
    }
    let message = String::from_utf8_lossy(&output.stderr);
    let message = message.lines().next().unwrap_or_default().trim();
    Err(BanError::Other(format!(
        "{program} {words} {UNIT}: {} ({message}): see systemctl status irqbalance",
        output.status
    )))
}
