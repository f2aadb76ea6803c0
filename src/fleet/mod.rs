//! `nicpin fleet`: classes of hardware among many machines, their plans, and why hosts are not as planned. Hosts are
//! only counted: memory grows with their names and differences alone.

pub mod documents;
pub mod fold;
mod host;
pub mod inputs;
mod shape;

use std::cmp::Reverse;
use std::collections::BTreeMap;

use host::one_line;
pub use host::{DriftCause, Host, HostOutcome, ReadHost};
use itertools::Itertools as _;
use serde::Serialize;
pub use shape::{Deviation, Shape};

use nicpin::machine::interface::natural;
use nicpin::report::check::CheckState::{CouldNotBeDetermined, Differs, Same};
use nicpin::report::exit::Exit;
use nicpin::report::interface::InterfaceState;

/// Maximum larger classes with which a class is compared.
const MOST_COMPARED: usize = 100;

/// With more deviations, two classes are machines of different kinds.
const MOST_DEVIATIONS: usize = 6;

/// Whether the machines are of the same kind: most of the interfaces are the same.
fn is_alike(machine: &Shape, deviations: &[Deviation]) -> bool {
    let having = |code| {
        deviations
            .iter()
            .filter(|deviation| deviation.code == code)
            .count()
    };
    let (missing, added) = (having("interface-missing"), having("interface-added"));
    deviations.len() <= MOST_DEVIATIONS && missing + added <= machine.interfaces.len() - added
}

#[derive(Default)]
pub struct FleetTally {
    plans: BTreeMap<(String, String), PlanTally>,
    failed: Vec<Failed>,
}

struct PlanTally {
    shape: Shape,
    names: BTreeMap<HostOutcome, Vec<Box<str>>>,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Failed {
    /// The host, or the file with the number of the line.
    pub source: String,
    pub error: String,
}

impl FleetTally {
    pub fn add(&mut self, name: &str, host: Result<Host, String>) {
        let host = match host {
            Ok(host) => host,
            Err(error) => return self.fail(name, &error),
        };
        let name = one_line(name).replace(|c: char| c.is_whitespace() || c == ',', "_");
        let plan = self.plans.entry((host.class, host.hash));
        let plan = plan.or_insert_with(|| PlanTally {
            shape: host.shape,
            names: BTreeMap::new(),
        });
        let names = plan.names.entry(host.outcome).or_default();
        names.push(name.into());
    }

    fn fail(&mut self, source: &str, error: &str) {
        self.failed.push(Failed {
            source: one_line(source),
            error: one_line(error),
        });
    }

    pub fn fail_unread(&mut self, mut printed: BTreeMap<String, String>) {
        for name in self
            .names()
            .chain(self.failed.iter().map(|failed| failed.source.as_str()))
        {
            printed.remove(name);
        }
        for (source, error) in printed {
            self.fail(&source, &error);
        }
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        self.plans.values().flat_map(PlanTally::hosts)
    }
}

impl PlanTally {
    fn hosts(&self) -> impl Iterator<Item = &str> {
        self.names.values().flatten().map(|name| &**name)
    }
}

/// The report about a fleet; its JSON form is `nicpin.fleet/1`.
#[derive(Serialize)]
pub struct Fleet<'a> {
    schema: &'static str,
    pub hosts: usize,
    pub planned: usize,
    pub differ: usize,
    pub undetermined: usize,
    /// Hosts that are not as planned, by state and reason, worst first.
    pub drift: Vec<Drift<'a>>,
    /// Hosts with interfaces that are up and cannot be judged, by these, most hosts first.
    pub not_judged: Vec<NotJudged<'a>>,
    /// Classes of hardware, most hosts first.
    pub classes: Vec<Class<'a>>,
    /// Hosts that were read more than once; each time counts.
    pub repeated: Vec<&'a str>,
    pub failed: Vec<Failed>,
}

/// A host with several causes counts in each.
#[derive(Serialize)]
pub struct Drift<'a> {
    pub state: Option<InterfaceState>,
    #[serde(flatten)]
    pub cause: &'a DriftCause,
    pub count: usize,
    pub hosts: Vec<&'a str>,
}

#[derive(Serialize)]
pub struct NotJudged<'a> {
    pub interfaces: &'a [String],
    pub count: usize,
    pub hosts: Vec<&'a str>,
}

#[derive(Serialize)]
#[allow(clippy::struct_field_names)] // as in JSON
pub struct Class<'a> {
    pub class: &'a str,
    pub count: usize,
    /// The most similar class with more hosts.
    pub like: Option<&'a str>,
    pub deviations: Vec<Deviation>,
    pub machine: &'a Shape,
    pub plans: Vec<PlanGroup<'a>>,
}

#[derive(Serialize)]
pub struct PlanGroup<'a> {
    pub hash: &'a str,
    pub count: usize,
    /// How its hosts differ from those with the most common plan of the class.
    pub deviations: Vec<Deviation>,
    pub hosts: Vec<&'a str>,
}

impl FleetTally {
    pub fn report(&self) -> Fleet<'_> {
        let (mut same, mut differ, mut undetermined) = (0, 0, 0);
        let mut drift: BTreeMap<_, Vec<&str>> = BTreeMap::new();
        let mut not_judged: BTreeMap<&[String], Vec<&str>> = BTreeMap::new();
        for (outcome, names) in self.plans.values().flat_map(|plan| &plan.names) {
            *match outcome.verdict {
                Same => &mut same,
                Differs => &mut differ,
                CouldNotBeDetermined => &mut undetermined,
            } += names.len();
            let names = || names.iter().map(|name| &**name);
            for cause in &outcome.causes {
                let with_cause = drift.entry((cause, outcome.state)).or_default();
                with_cause.extend(names());
            }
            if !outcome.not_judged.is_empty() {
                let with_these = not_judged.entry(&outcome.not_judged).or_default();
                with_these.extend(names());
            }
        }
        let drift = drift.into_iter().map(|((cause, state), hosts)| Drift {
            state,
            cause,
            count: hosts.len(),
            hosts: sort_hosts(hosts),
        });
        let not_judged = not_judged.into_iter().map(|(interfaces, hosts)| NotJudged {
            interfaces,
            count: hosts.len(),
            hosts: sort_hosts(hosts),
        });
        let repeated = self
            .names()
            .sorted_unstable()
            .dedup_with_count()
            .filter(|(times, _)| *times > 1);
        Fleet {
            schema: "nicpin.fleet/1",
            hosts: self.names().count(),
            planned: same,
            differ,
            undetermined,
            drift: drift
                .sorted_by_key(|group| Reverse((group.state, group.count)))
                .collect(),
            not_judged: not_judged
                .sorted_by_key(|group| Reverse(group.count))
                .collect(),
            classes: self.classes(),
            repeated: sort_hosts(repeated.map(|(_, name)| name).collect()),
            failed: self.failed.iter().cloned().sorted_unstable().collect(),
        }
    }

    fn classes(&self) -> Vec<Class<'_>> {
        let mut classes = Vec::new();
        for (class, plans) in &self.plans.iter().chunk_by(|((class, _), _)| class) {
            let mut plans = plans
                .map(|((_, hash), plan)| {
                    let hosts = sort_hosts(plan.hosts().collect());
                    let group = PlanGroup {
                        hash,
                        count: hosts.len(),
                        deviations: Vec::new(),
                        hosts,
                    };
                    (&plan.shape, group)
                })
                .sorted_by_key(|(_, group)| Reverse(group.count))
                .collect_vec();
            let machine = plans[0].0;
            for (shape, group) in &mut plans {
                group.deviations = shape.deviations(machine);
            }
            classes.push(Class {
                class,
                count: plans.iter().map(|(_, group)| group.count).sum(),
                like: None,
                deviations: Vec::new(),
                machine,
                plans: plans.into_iter().map(|(_, group)| group).collect(),
            });
        }
        classes.sort_by_key(|class| Reverse(class.count));
        for at in 1..classes.len() {
            let machine = classes[at].machine;
            if let Some((like, found)) = classes[..at.min(MOST_COMPARED)]
                .iter()
                .map(|other| (other.class, machine.deviations(other.machine)))
                .min_by_key(|(_, deviations)| deviations.len())
                .filter(|(_, found)| is_alike(machine, found))
            {
                (classes[at].like, classes[at].deviations) = (Some(like), found);
            }
        }
        classes
    }
}

fn sort_hosts(mut names: Vec<&str>) -> Vec<&str> {
    names.sort_unstable_by_key(|&name| (natural(name), name));
    names
}

impl Fleet<'_> {
    pub fn exit(&self) -> Exit {
        if self.hosts == 0 || self.undetermined > 0 || !self.failed.is_empty() {
            Exit::Failed
        } else if self.differ > 0 {
            Exit::Differs
        } else {
            Exit::Planned
        }
    }
}
