//! A plan that was stored in a file, and whether it fits the machine as it is now. The file is not trusted: no path in it
//! is ever written to. Its vectors and queues are looked up on the machine, and the writes are made from those.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::cpuset::{CpuSet, QueueSet};
use crate::machine::WriteKind;
use crate::machine::paths::FLOW_ENTRIES;
use crate::machine::{Interface, Machine, NapiThread, Vector};
use crate::plan::build::summary;
use crate::plan::data::{
    HostSummary, Plan, PlannedInterface, PlannedThread, PlannedVector, SCHEMA,
};
use crate::plan::differences::WriteList;
use crate::plan::hash::{class, hash};
use crate::plan::irqbalance;
use crate::plan::write::{Planned, Target, Write};

/// The text is not a plan, or the plan cannot be applied by itself.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoredError {
    /// Not JSON of this schema.
    #[error("is not a plan as `nicpin plan --format json` prints it: {0}")]
    Text(String),
    /// Another schema, or another version of it.
    #[error("its schema is `{0}`, and this nicpin applies `nicpin.plan/1`")]
    Schema(String),
    /// It holds a write that no plan may hold.
    #[error("it writes {path}: {reason}")]
    Write {
        /// The file.
        path: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// It changes channels, and the queues after that are not in it.
    #[error(
        "it changes the channels of {0} first, and the rest has to be planned for the new queues: run `nicpin apply --channels`"
    )]
    Channels(String),
}

/// Something that has changed since the plan was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Change {
    /// A fixed identifier, for programs.
    pub code: &'static str,
    /// The interface; empty for the whole machine.
    pub interface: String,
    /// What has changed, in words, without the name of the interface.
    pub text: String,
    /// Whether a part of the plan cannot be applied because of it.
    pub left_out: bool,
}

/// A stored plan on the machine as it is now.
#[derive(Debug, Clone, PartialEq)]
pub struct Fitted {
    /// The part that can be applied, with the writes that it takes now.
    pub plan: Plan,
    pub changes: Vec<Change>,
}

/// Reads a stored plan, and refuses one that contradicts itself.
pub fn parse(text: &str) -> Result<Plan, StoredError> {
    #[derive(Deserialize)]
    struct Versioned {
        schema: String,
    }
    let error = |error: serde_json::Error| StoredError::Text(error.to_string());
    if has_control_character(text) {
        return Err(StoredError::Text(
            "a text in it has a control character".to_owned(),
        ));
    }
    let Versioned { schema } = serde_json::from_str(text).map_err(error)?;
    if schema != SCHEMA {
        return Err(StoredError::Schema(schema));
    }
    let plan: Plan = serde_json::from_str(text).map_err(error)?;
    if let Some(change) = plan.channels.first() {
        return Err(StoredError::Channels(change.interface.clone()));
    }
    let mut wanted = AllWanted::new();
    for interface in &plan.interfaces {
        for Planned {
            kind,
            number,
            target,
            ..
        } in interface.wanted()
        {
            let path = kind.path(&interface.name, number);
            wanted
                .entry((&interface.name, kind, path))
                .or_insert(target);
        }
    }
    for write in &plan.writes {
        check(&wanted, write).map_err(|reason| StoredError::Write {
            path: write.path.clone(),
            reason,
        })?;
    }
    Ok(plan)
}

/// Whether a string of a JSON text has a control character, which is always escaped.
fn has_control_character(json: &str) -> bool {
    let mut rest = json;
    while let Some((_, escape)) = rest.split_once('\\') {
        let code = escape
            .strip_prefix('u')
            .and_then(|code| u32::from_str_radix(code.get(..4)?, 16).ok());
        if escape.starts_with(['b', 'f', 'n', 'r', 't'])
            || code.and_then(char::from_u32).is_some_and(char::is_control)
        {
            return true;
        }
        rest = escape.get(1..).unwrap_or_default();
    }
    json.contains(|c: char| c.is_control() && !matches!(c, '\n' | '\r' | '\t'))
}

/// Planned settings by interface, kind and file.
type AllWanted<'a> = BTreeMap<(&'a str, WriteKind, String), Target<'a>>;

/// Refuses a write that does not follow from the plan's vectors and queues.
fn check(wanted: &AllWanted<'_>, write: &Write) -> Result<(), &'static str> {
    if write
        .path
        .split('/')
        .any(|name| name == ".." || name == ".")
    {
        return Err("the path has a component `.` or `..`");
    }
    if write.kind == WriteKind::Sysctl {
        let is_right =
            *write.path == *FLOW_ENTRIES && write.value.to_string().parse::<u32>().is_ok();
        return is_right
            .then_some(())
            .ok_or("the only file of this kind is net.core.rps_sock_flow_entries");
    }
    match wanted.get(&(&*write.interface, write.kind, write.path.clone())) {
        None if wanted
            .keys()
            .all(|(interface, ..)| **interface != *write.interface) =>
        {
            Err("its interface is not in the plan")
        }
        None => Err("it belongs to no vector and no queue of the plan"),
        Some(wanted) if !wanted.is(&write.value.to_string()) => {
            Err("the value differs from that of its vector or queue")
        }
        Some(_) => Ok(()),
    }
}

/// Matches a stored plan with the machine.
pub fn fit(stored: &Plan, machine: &Machine) -> Fitted {
    let now = summary(machine);
    let mut changes = Changes {
        interface: String::new(),
        list: Vec::new(),
    };
    changes.of_machine(&stored.host, &now);
    let mut settings = WriteList::default();
    let mut interfaces = Vec::new();
    for planned in &stored.interfaces {
        changes.interface.clone_from(&planned.name);
        let Some(interface) = changes.find(planned, machine) else {
            continue;
        };
        let fitted = changes.of_interface(planned, interface, &now.online);
        settings.gather(machine, interface, &fitted);
        interfaces.push(fitted);
    }
    let entries = stored
        .writes
        .iter()
        .find(|write| write.kind == WriteKind::Sysctl);
    if let Some((write, entries)) =
        entries.and_then(|write| Some((write, write.value.to_string().parse().ok()?)))
    {
        settings.flow_entries(machine, entries, &write.why);
    }
    let (writes, unchanged) = settings.in_order();
    let hash = hash(&now, &interfaces);
    let mut plan = Plan {
        hash,
        class: class(machine),
        host: now,
        interfaces,
        writes,
        unchanged,
        ..stored.clone()
    };
    let balancer = stored.irqbalance.as_ref().map(|balancer| balancer.action);
    irqbalance::add(machine, balancer.unwrap_or_default(), &mut plan);
    Fitted {
        plan,
        changes: changes.list,
    }
}

/// Collects what has changed.
struct Changes {
    interface: String,
    list: Vec<Change>,
}

impl Changes {
    fn add(&mut self, code: &'static str, left_out: bool, text: String) {
        self.list.push(Change {
            code,
            interface: self.interface.clone(),
            text,
            left_out,
        });
    }

    fn of_machine(&mut self, then: &HostSummary, now: &HostSummary) {
        if then.possible != now.possible {
            let text = format!(
                "there were {} possible CPUs, now there are {}",
                then.possible, now.possible
            );
            self.add("possible-cpus-changed", false, text);
        }
        let sets = [
            (
                "cpus-changed",
                "CPUs were online",
                &then.online,
                &now.online,
            ),
            (
                "isolation-changed",
                "CPUs were isolated",
                &then.isolated,
                &now.isolated,
            ),
            (
                "isolation-changed",
                "CPUs were nohz_full",
                &then.nohz_full,
                &now.nohz_full,
            ),
        ];
        for (code, what, then, now) in sets {
            if then != now {
                self.add(
                    code,
                    false,
                    format!("{what}: {}, now {}", list(then), list(now)),
                );
            }
        }
        if then.nodes != now.nodes && then.online == now.online {
            self.add(
                "nodes-changed",
                false,
                "some CPUs are on other nodes than before".to_owned(),
            );
        }
    }

    /// The planned interface on this machine; `None` when it is absent or has another device.
    fn find<'a>(
        &mut self,
        planned: &PlannedInterface,
        machine: &'a Machine,
    ) -> Option<&'a Interface> {
        let named = machine.interface(&planned.name);
        if let Some(interface) =
            named.filter(|interface| interface.device.address == planned.device)
        {
            return Some(interface);
        }
        let there = machine
            .interfaces
            .iter()
            .find(|interface| interface.device.address == planned.device);
        match (named, there) {
            (Some(named), _) => {
                let text = format!(
                    "has device {} now; the plan is for {}",
                    named.device.address, planned.device
                );
                self.add("device-changed", true, text);
            }
            (None, Some(there)) => {
                self.add(
                    "interface-renamed",
                    true,
                    format!("device {} is named {} now", planned.device, there.name),
                );
            }
            (None, None) => {
                self.add(
                    "interface-gone",
                    true,
                    format!("is absent, and so is device {}", planned.device),
                );
            }
        }
        None
    }

    /// The plan of an interface, reduced to what the interface has now.
    fn of_interface(
        &mut self,
        planned: &PlannedInterface,
        now: &Interface,
        online: &CpuSet,
    ) -> PlannedInterface {
        let mut fitted = planned.clone();
        if planned.driver != now.driver {
            let name =
                |driver: &Option<String>| driver.clone().unwrap_or_else(|| "none".to_owned());
            let text = format!(
                "the driver was {}, now {}",
                name(&planned.driver),
                name(&now.driver)
            );
            self.add("driver-changed", false, text);
        }
        let queues = |rx: usize, tx: usize| format!("{rx} rx and {tx} tx queues");
        let then = (planned.rx_queues.len(), planned.tx_queues.len());
        let (rx, tx) = (now.rx_queues.len(), now.tx_queues.len());
        if then != (rx, tx) {
            let fewer = rx < then.0 || tx < then.1;
            let text = format!("had {}, has {} now", queues(then.0, then.1), queues(rx, tx));
            self.add("queue-count-changed", fewer, text);
        }
        fitted.vectors = self.vectors(planned, now);
        fitted.threads = self.threads(planned, now);
        let mut gone = BTreeSet::new();
        for cpus in fitted.cpus_mut() {
            let offline = cpus.take_if(|cpus| !cpus.is_subset(online));
            gone.extend(offline.iter().flat_map(CpuSet::iter));
        }
        let possible = now.rss.as_ref().map(|now| QueueSet::below(now.queues));
        let possible = possible.unwrap_or_default();
        let table = fitted.rss.as_mut().map(|rss| &mut rss.queues);
        let wrong = table.and_then(|queues| queues.take_if(|queues| !queues.is_subset(&possible)));
        if let Some(queues) = wrong {
            let possible = if possible.is_empty() {
                "none".to_owned()
            } else {
                possible.to_string()
            };
            let text =
                format!("the RSS table was planned for queues {queues}, and can reach {possible}");
            self.add("rss-table-changed", true, text);
        }
        let gone = gone.into_iter().collect::<CpuSet>().difference(online);
        if !gone.is_empty() {
            self.add(
                "cpu-offline",
                true,
                format!("planned CPUs are not online: {gone}"),
            );
        }
        fitted
    }

    /// The planned vectors that exist, with their current IRQ numbers.
    fn vectors(&mut self, planned: &PlannedInterface, now: &Interface) -> Vec<PlannedVector> {
        let (mut gone, mut renumbered, mut renamed, mut fixed) = (vec![], vec![], vec![], vec![]);
        let mut fitted = Vec::new();
        for planned in &planned.vectors {
            let Some(vector) = now.vectors.iter().find(|vector| is_same(planned, vector)) else {
                gone.extend(planned.cpus.as_ref().map(|_| name(planned)));
                continue;
            };
            if planned.irq != vector.irq {
                renumbered.push(format!(
                    "{} {} is now {}",
                    name(planned),
                    planned.irq,
                    vector.irq
                ));
            }
            if planned.action != vector.action {
                renamed.push(format!(
                    "{} {} is now {}",
                    name(planned),
                    planned.action,
                    vector.action
                ));
            }
            if planned.cpus.is_some() && planned.movable && !vector.movable {
                fixed.push(name(planned));
            }
            fitted.push(PlannedVector {
                irq: vector.irq,
                action: vector.action.clone(),
                affinity: vector.affinity.cpus.clone(),
                effective: vector.effective.clone(),
                movable: vector.movable,
                cpus: planned.cpus.clone().filter(|_| vector.movable),
                ..planned.clone()
            });
        }
        let others = now
            .vectors
            .iter()
            .filter(|v| v.is_queue_vector() && !planned.vectors.iter().any(|p| is_same(p, v)));
        let others: Vec<String> = others
            .map(|vector| format!("{} ({})", vector.irq, vector.action))
            .collect();
        let lists = [
            ("vectors-gone", true, "vectors are absent: ", gone),
            ("irqs-changed", false, "other IRQ numbers: ", renumbered),
            ("handlers-changed", false, "other handlers: ", renamed),
            (
                "kernel-managed",
                true,
                "vectors are managed by the kernel now: ",
                fixed,
            ),
            (
                "vectors-added",
                false,
                "vectors are not in the plan: ",
                others,
            ),
        ];
        for (code, left_out, text, which) in lists {
            if !which.is_empty() {
                self.add(code, left_out, format!("{text}{}", which.join(", ")));
            }
        }
        fitted
    }
}

impl Changes {
    /// The planned threads that exist, with their current process ids.
    fn threads(&mut self, planned: &PlannedInterface, now: &Interface) -> Vec<PlannedThread> {
        let vector_of = |thread: &NapiThread| {
            let (irq, _) = thread.woken_by?;
            now.vectors.iter().find(|vector| vector.irq == irq)
        };
        let mut unknown = now
            .threads
            .iter()
            .filter(|thread| vector_of(thread).is_none());
        let mut fitted = Vec::new();
        for planned in &planned.threads {
            let is_same = |vector: &Vector| {
                planned.role == Some(vector.role) && planned.queue == vector.queue
            };
            let thread = match planned.role {
                Some(_) => now
                    .threads
                    .iter()
                    .find(|thread| vector_of(thread).is_some_and(is_same)),
                None => unknown.next(),
            };
            fitted.extend(thread.map(|thread| PlannedThread {
                pid: thread.pid,
                irq: vector_of(thread).map(|vector| vector.irq),
                affinity: thread.affinity.cpus.clone(),
                ..planned.clone()
            }));
        }
        let gone = planned.threads.len() - fitted.len();
        if gone > 0 {
            self.add(
                "threads-gone",
                true,
                format!("{gone} threads that poll queues are absent"),
            );
        }
        fitted
    }
}

/// Whether these are the same vector: of the same queue, or control vectors with the same name or IRQ.
fn is_same(planned: &PlannedVector, vector: &Vector) -> bool {
    planned.role == vector.role
        && match planned.queue {
            Some(queue) => vector.queue == Some(queue),
            None => planned.action == vector.action || planned.irq == vector.irq,
        }
}

fn name(vector: &PlannedVector) -> String {
    let role = format!("{:?}", vector.role).to_lowercase();
    vector
        .queue
        .map_or(role.clone(), |queue| format!("{role} {queue}"))
}

fn list(cpus: &CpuSet) -> String {
    if cpus.is_empty() {
        "none".to_owned()
    } else {
        cpus.to_string()
    }
}
