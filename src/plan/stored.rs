//! A stored plan, and whether it fits the machine now. The file is not trusted: no path in it is ever written to.
//! Vectors and queues are looked up on the machine.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::mem::take;

use itertools::Itertools as _;
use serde::{Deserialize, Serialize};

use crate::cpuset::{CpuSet, Inserted as _, MAX_CPUS, QueueSet};
use crate::kinds::{PortId, SettingKind, Value};
use crate::machine::files::FLOW_ENTRIES;
use crate::machine::{Interface, Machine, Vector};
use crate::plan::build::summary;
use crate::plan::data::{
    HostSummary, Plan, PlannedInterface, PlannedThread, PlannedVector, SCHEMA, not_judged,
};
use crate::plan::hash::{class, hash};
use crate::plan::notes::add_irqbalance;
use crate::plan::write::Write;

/// Maximum size of a stored plan, in bytes: with RPS and XPS of 4,096 queues on as many CPUs it has 35 MB.
pub const LONGEST: usize = 40 << 20;

/// The part of a document that is read first: it determines how to read the rest.
#[derive(Deserialize)]
pub(crate) struct Schema {
    pub(crate) schema: String,
}

/// A change of the machine since the plan was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Change {
    /// A fixed identifier, for programs.
    pub code: &'static str,
    pub interface: String,
    /// The change in words, without the name of the interface.
    pub text: String,
    /// Whether it makes a part of the plan inapplicable.
    pub left_out: bool,
}

#[derive(Debug)]
pub struct Fitted {
    /// The applicable part, with the writes that it takes now.
    pub plan: Plan,
    pub changes: Vec<Change>,
}

/// Reads a stored plan. Refuses one that contradicts itself, or that would have to be planned again after a change of
/// channels. An error says in words why.
pub fn parse(text: &str) -> Result<Plan, String> {
    let no_plan = |why: &dyn Display| {
        format!("is not a plan as `nicpin plan --format json` prints it: {why}")
    };
    if text.len() > LONGEST {
        return Err("is larger than 40 MiB; is it the right file?".to_owned());
    }
    let wrong = |error: serde_json::Error| no_plan(&error);
    let Schema { schema } = serde_json::from_str(text).map_err(wrong)?;
    if has_control_character(text) {
        return Err(no_plan(&"a text in it has a control character"));
    }
    if text.split('"').map(bytes_of_list).sum::<usize>() > LONGEST {
        return Err("its sets of CPUs take more than 40 MiB; is it the right file?".to_owned());
    }
    if schema != SCHEMA {
        return Err(format!(
            "its schema is `{schema}`, and this nicpin applies `{SCHEMA}`"
        ));
    }
    let mut plan: Plan = serde_json::from_str(text).map_err(wrong)?;
    if !plan.channels.is_empty() {
        let interfaces = plan.channels.iter().map(|change| &change.interface);
        return Err(format!(
            "it changes the channels of {} first, and the rest has to be planned for the new queues: run nicpin apply \
             with the options of that plan, without --plan",
            interfaces.format(", ")
        ));
    }
    let mut writes = take(&mut plan.writes);
    let wanted = plan.wanted().into_iter();
    let wanted = wanted.map(|((kind, number, _), wanted)| {
        let path = kind.path(wanted.interface, number);
        ((wanted.interface, kind, path), (number, wanted.value))
    });
    let wanted = wanted.inserted();
    for write in &mut writes {
        let number = setting_number(&plan, &wanted, write);
        write.number = number.map_err(|why| format!("it writes {}: {why}", write.path))?;
    }
    let mut flow_table = writes
        .iter()
        .filter(|write| write.kind == SettingKind::Sysctl);
    plan.flow_entries = flow_table.find_map(|write| write.value.parse().ok());
    plan.writes = writes;
    Ok(plan)
}

/// Whether a valid JSON text has a control character, literal or escaped. Parsed values would take many times its
/// memory.
fn has_control_character(json: &str) -> bool {
    let mut escaped = json.split(r"\\").flat_map(|part| part.split('\\').skip(1));
    let is_control = |rest: &str| match rest.as_bytes() {
        [b'u', digits @ ..] => matches!(
            digits,
            [b'0', b'0', b'0' | b'1' | b'8' | b'9', ..] | [b'0', b'0', b'7', b'f' | b'F', ..]
        ),
        rest => matches!(rest, [b'b' | b'f' | b'n' | b'r' | b't', ..]),
    };
    let is_raw = |c: char| c.is_control() && !c.is_ascii_whitespace();
    json.contains(is_raw) || escaped.any(is_control)
}

/// The bytes of the parsed set, which may be a hundred times as long as `0-8191`; 0 for any other text.
fn bytes_of_list(text: &str) -> usize {
    if !text
        .bytes()
        .all(|byte| byte.is_ascii_digit() || matches!(byte, b',' | b'-'))
    {
        return 0;
    }
    text.split([',', '-'])
        .flat_map(str::parse::<u32>)
        .max()
        .map_or(0, |last| last.min(MAX_CPUS) as usize / 8)
}

type ByFile<'a> = BTreeMap<(&'a str, SettingKind, String), (u32, Value<'a>)>;

/// An error says why the number does not follow from the plan's vectors and queues.
fn setting_number(plan: &Plan, wanted: &ByFile<'_>, write: &Write) -> Result<u32, &'static str> {
    let (path, value) = (&write.path, &write.value);
    if path.split('/').any(|name| name == ".." || name == ".") {
        Err("the path has a component `.` or `..`")
    } else if write.kind == SettingKind::Sysctl {
        let is_known = path == FLOW_ENTRIES && value.parse::<u32>().is_ok();
        let unknown = "the only file of this kind is net.core.rps_sock_flow_entries";
        is_known.then_some(0).ok_or(unknown)
    } else if plan.interface(&write.interface).is_none() {
        Err("its interface is not in the plan")
    } else {
        let is_same = |other: &Value<'_>| {
            write
                .kind
                .parse(value)
                .is_some_and(|value| value.is_same(other))
        };
        match wanted.get(&(&*write.interface, write.kind, path.clone())) {
            Some((number, value)) if is_same(value) => Ok(*number),
            Some(_) => Err("the value differs from that of its vector or queue"),
            None => Err("it belongs to no vector and no queue of the plan"),
        }
    }
}

pub fn fit(stored: &Plan, machine: &Machine) -> Fitted {
    let host = summary(&machine.topology);
    let mut changes = Changes::default();
    changes.compare_hosts(&stored.host, &host);
    let mut interfaces = Vec::new();
    for interface in &stored.interfaces {
        changes.interface.clone_from(&interface.name);
        match find_interface(interface, machine) {
            Ok(now) => interfaces.push(changes.fit_interface(interface, now, &host.online)),
            Err((code, text)) => changes.add(true, code, true, text),
        }
    }
    let mut plan = Plan {
        hash: hash(&host, &interfaces, &stored.channels),
        class: class(machine),
        not_judged: not_judged(&host, &interfaces),
        host,
        interfaces,
        ..stored.clone()
    };
    plan.compare(machine);
    let balancer = stored.irqbalance.as_ref().map(|balancer| balancer.action);
    add_irqbalance(machine, balancer.unwrap_or_default(), &mut plan);
    Fitted {
        plan,
        changes: changes.list,
    }
}

/// The error is a change: the interface is absent, or is another port or device.
fn find_interface<'a>(
    interface: &PlannedInterface,
    machine: &'a Machine,
) -> Result<&'a Interface, (&'static str, String)> {
    let (device, port) = (interface.device.clone(), interface.port.clone());
    let device = PortId { device, port };
    let is_it = |now: &&Interface| now.port_id() == device;
    let named = machine.interface(&interface.name);
    if let Some(now) = named.filter(is_it) {
        return Ok(now);
    }
    Err(match (named, machine.interfaces.iter().find(is_it)) {
        (Some(now), _) => (
            "device-changed",
            format!("has device {} now; the plan is for {device}", now.port_id()),
        ),
        (None, Some(there)) => (
            "interface-renamed",
            format!("device {device} is named {} now", there.name),
        ),
        (None, None) => (
            "interface-gone",
            format!("is absent, and so is device {device}"),
        ),
    })
}

#[derive(Default)]
struct Changes {
    interface: String,
    list: Vec<Change>,
}

impl Changes {
    fn add(&mut self, when: bool, code: &'static str, left_out: bool, text: impl Into<String>) {
        self.list.extend(when.then(|| Change {
            code,
            interface: self.interface.clone(),
            text: text.into(),
            left_out,
        }));
    }

    fn compare_hosts(&mut self, then: &HostSummary, now: &HostSummary) {
        let (were, are) = (then.possible, now.possible);
        let text = format!("there were {were} possible CPUs, now there are {are}");
        self.add(were != are, "possible-cpus-changed", false, text);
        let mut compare = |code, what, cpus: fn(&HostSummary) -> &CpuSet| {
            let (then, now) = (cpus(then), cpus(now));
            let text = format!("CPUs were {what}: {}, now {}", list(then), list(now));
            self.add(then != now, code, false, text);
        };
        compare("cpus-changed", "online", |host| &host.online);
        compare("isolation-changed", "isolated", |host| &host.isolated);
        compare("isolation-changed", "nohz_full", |host| &host.nohz_full);
        // Memory does not decide on any CPU.
        let on = |host: &HostSummary| {
            host.nodes
                .iter()
                .map(|node| (node.node, node.cpus.clone()))
                .collect_vec()
        };
        let moved = on(then) != on(now) && then.online == now.online;
        let text = "some CPUs are on other nodes than before";
        self.add(moved, "nodes-changed", false, text);
    }

    fn fit_interface(
        &mut self,
        interface: &PlannedInterface,
        now: &Interface,
        online: &CpuSet,
    ) -> PlannedInterface {
        let [was, is] =
            [&interface.driver, &now.driver].map(|name| name.as_deref().unwrap_or("none"));
        let text = format!("the driver was {was}, now {is}");
        self.add(
            interface.driver != now.driver,
            "driver-changed",
            false,
            text,
        );
        let then = (interface.rx_queues.len(), interface.tx_queues.len());
        let (rx, tx) = (now.rx_queues.len(), now.tx_queues.len());
        let fewer = rx < then.0 || tx < then.1;
        let text = format!(
            "had {} rx and {} tx queues, has {rx} rx and {tx} tx queues now",
            then.0, then.1
        );
        self.add(then != (rx, tx), "queue-count-changed", fewer, text);
        let mut fitted = PlannedInterface {
            vectors: self.vectors(interface, now),
            threads: self.threads(interface, now),
            ..interface.clone()
        };
        let gone = fitted
            .cpus_mut()
            .filter_map(|cpus| cpus.take_if(|cpus| !cpus.is_subset(online)));
        let gone = CpuSet::union_of(gone).difference(online);
        let possible = QueueSet::below(now.rss.as_ref().map_or(0, |now| now.queues));
        let table = fitted.rss.as_mut();
        if let Some(queues) =
            table.and_then(|rss| rss.queues.take_if(|queues| !queues.is_subset(&possible)))
        {
            let text = format!(
                "the RSS table was planned for queues {queues}, and can reach {}",
                list(&possible)
            );
            self.add(true, "rss-table-changed", true, text);
        }
        let text = format!("planned CPUs are not online: {gone}");
        self.add(!gone.is_empty(), "cpu-offline", true, text);
        fitted
    }

    fn vectors(&mut self, interface: &PlannedInterface, now: &Interface) -> Vec<PlannedVector> {
        let (mut gone, mut renumbered, mut renamed, mut fixed) = (vec![], vec![], vec![], vec![]);
        let (all, mut fitted) = (&interface.vectors, Vec::<PlannedVector>::new());
        for (at, planned) in interface.vectors.iter().enumerate() {
            let name = planned.role.with_queue(planned.queue);
            let Some(vector) = same_vector(&all[..at], planned, &now.vectors) else {
                gone.extend(planned.cpus.as_ref().map(|_| name));
                continue;
            };
            if planned.irq != vector.irq {
                renumbered.push(format!("{name} {} is now {}", planned.irq, vector.irq));
            }
            if planned.action != vector.action {
                renamed.push(format!(
                    "{name} {} is now {}",
                    planned.action, vector.action
                ));
            }
            if planned.cpus.is_some() && planned.movable && !vector.movable {
                fixed.push(name);
            }
            fitted.push(PlannedVector {
                irq: vector.irq,
                action: vector.action.clone(),
                affinity: vector.affinity.cpus.clone(),
                effective: vector.effective.clone(),
                counted: vector.counted.clone(),
                movable: planned.movable && vector.movable,
                cpus: planned.cpus.clone().filter(|_| vector.movable),
                ..planned.clone()
            });
        }
        let others = now
            .queue_vectors()
            .filter(|vector| !fitted.iter().any(|found| found.irq == vector.irq))
            .map(|vector| format!("{} ({})", vector.irq, vector.action));
        for (code, left_out, text, which) in [
            ("vectors-gone", true, "IRQs are absent", gone),
            ("irqs-changed", false, "other IRQ numbers", renumbered),
            ("handlers-changed", false, "other handlers", renamed),
            ("kernel-managed", true, "IRQs cannot be moved now", fixed),
            (
                "vectors-added",
                false,
                "IRQs are not in the plan",
                others.collect(),
            ),
        ] {
            let text = format!("{text}: {}", which.join(", "));
            self.add(!which.is_empty(), code, left_out, text);
        }
        fitted
    }

    fn threads(&mut self, interface: &PlannedInterface, now: &Interface) -> Vec<PlannedThread> {
        let mut unknown = now
            .threads
            .iter()
            .filter(|thread| now.vector_of(thread).is_none());
        let fitted = interface
            .threads
            .iter()
            .filter_map(|planned| {
                let mut threads = now.threads.iter();
                let thread = match planned.role {
                    Some(_) => threads.find(|thread| {
                        now.vector_of(thread).is_some_and(|vector| {
                            planned.role == Some(vector.role) && planned.queue == vector.queue
                        })
                    }),
                    None => unknown.next(),
                }?;
                Some(PlannedThread {
                    pid: thread.pid,
                    irq: now.vector_of(thread).map(|vector| vector.irq),
                    affinity: thread.affinity.cpus.clone(),
                    ..planned.clone()
                })
            })
            .collect_vec();
        let gone = interface.threads.len() - fitted.len();
        let text = format!("{gone} threads that poll queues are absent");
        self.add(gone > 0, "threads-gone", true, text);
        fitted
    }
}

/// The vector of the same queue, else of the same name (of several, the one at the same position), else of the same
/// IRQ. `before`: the preceding vectors of the plan.
fn same_vector<'a>(
    before: &[PlannedVector],
    planned: &PlannedVector,
    now: &'a [Vector],
) -> Option<&'a Vector> {
    let mut same_role = now.iter().filter(|vector| vector.role == planned.role);
    if planned.queue.is_some() {
        return same_role.find(|vector| vector.queue == planned.queue);
    }
    let is_same =
        |other: &&PlannedVector| (other.role, &other.action) == (planned.role, &planned.action);
    let before = before.iter().filter(is_same).count();
    same_role
        .clone()
        .filter(|vector| vector.action == planned.action)
        .nth(before)
        .or_else(|| same_role.find(|vector| vector.irq == planned.irq))
}

fn list(set: &impl Display) -> String {
    let text = set.to_string();
    if text.is_empty() {
        "none".to_owned()
    } else {
        text
    }
}
