//! Many machines at once: classes of hardware, their plans, and why hosts are not as planned. Hosts are added one by one
//! and only counted: the names are the only thing that grows with their number, beside what differs.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::Serialize;

use crate::fleet::host::{Cause, Host, Outcome, one_line};
use crate::fleet::shape::{Deviation, Shape};
use nicpin::machine::interface::natural;
use nicpin::report::check::CheckState;
use nicpin::report::exit::Exit;
use nicpin::report::interface::InterfaceState;

/// Classes with more hosts with which a class is compared.
const MOST_COMPARED: usize = 100;

/// With more deviations, two classes are machines of different kinds.
const MOST_DEVIATIONS: usize = 6;

/// Whether a machine with these deviations is of the same kind: most of the interfaces are the same.
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

/// The hosts so far.
#[derive(Debug, Default)]
pub struct Tally {
    /// By class and hash.
    plans: BTreeMap<(String, String), PlanTally>,
    failed: Vec<Failed>,
}

#[derive(Debug)]
struct PlanTally {
    shape: Shape,
    names: BTreeMap<Outcome, Vec<Box<str>>>,
}

/// A file or a host that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Failed {
    /// The file, with the number of the line, or the host.
    pub source: String,
    pub error: String,
}

impl Tally {
    pub fn add(&mut self, name: &str, host: Host) {
        let Host {
            class,
            hash,
            outcome,
            shape,
        } = host.cleaned();
        let plan = self
            .plans
            .entry((class, hash))
            .or_insert_with(|| PlanTally {
                shape,
                names: BTreeMap::new(),
            });
        let is_between = |c: char| c.is_whitespace() || c == ',';
        let name = one_line(name).replace(is_between, "_");
        plan.names.entry(outcome).or_default().push(name.into());
    }

    pub fn fail(&mut self, source: &str, error: &str) {
        self.failed.push(Failed {
            source: one_line(source),
            error: one_line(error),
        });
    }

    pub fn merge(&mut self, other: Self) {
        for (plan, theirs) in other.plans {
            let PlanTally { shape, names } = theirs;
            let ours = self.plans.entry(plan).or_insert_with(|| PlanTally {
                shape,
                names: BTreeMap::new(),
            });
            for (outcome, names) in names {
                ours.names.entry(outcome).or_default().extend(names);
            }
        }
        self.failed.extend(other.failed);
    }

    /// Adds the hosts that printed other lines, and no JSON.
    pub fn fail_unread(&mut self, mut printed: BTreeMap<String, String>) {
        let failed = self.failed.iter().map(|failed| failed.source.as_str());
        for name in self.names().chain(failed) {
            printed.remove(name);
        }
        for (source, error) in printed {
            self.fail(&source, &error);
        }
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        let plans = self.plans.values();
        plans.flat_map(PlanTally::hosts)
    }
}

impl PlanTally {
    fn hosts(&self) -> impl Iterator<Item = &str> {
        self.names.values().flatten().map(|name| &**name)
    }
}

/// The report about a fleet; its JSON form is `nicpin.fleet/1`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Fleet<'a> {
    schema: &'static str,
    /// Hosts that were read.
    pub hosts: usize,
    /// Those in the planned state.
    pub planned: usize,
    /// Those that differ from their plan.
    pub differ: usize,
    /// Those whose state could not be determined.
    pub undetermined: usize,
    /// The hosts that are not in the planned state, by state and reason, worst first.
    pub drift: Vec<Drift<'a>>,
    /// Classes of hardware, those with most hosts first.
    pub classes: Vec<Class<'a>>,
    /// Hosts that were read more than once; each time counts.
    pub repeated: Vec<&'a str>,
    /// What could not be read.
    pub failed: Vec<Failed>,
}

/// Hosts in one state for one reason. A host with several reasons is in several.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Drift<'a> {
    /// The worst state of the host's interfaces; `None` when it is not known, as from a plan.
    pub state: Option<InterfaceState>,
    #[serde(flatten)]
    pub cause: &'a Cause,
    pub count: usize,
    pub hosts: Vec<&'a str>,
}

/// Hosts with the same hardware.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[allow(clippy::struct_field_names)] // as in JSON
pub struct Class<'a> {
    pub class: &'a str,
    pub count: usize,
    /// The class with more hosts that is most like it; `None` if none is.
    pub like: Option<&'a str>,
    /// How it differs from that.
    pub deviations: Vec<Deviation>,
    /// CPUs, nodes and interfaces of a host with the most common plan.
    pub machine: &'a Shape,
    /// Those with most hosts first.
    pub plans: Vec<PlanGroup<'a>>,
}

/// Hosts of a class with the same plan.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlanGroup<'a> {
    pub hash: &'a str,
    pub count: usize,
    /// How its hosts differ from those with the most common plan of the class.
    pub deviations: Vec<Deviation>,
    pub hosts: Vec<&'a str>,
}

impl Tally {
    pub fn report(&self) -> Fleet<'_> {
        let mut drift: BTreeMap<(Reverse<Option<InterfaceState>>, &Cause), Vec<&str>> =
            BTreeMap::new();
        let mut by_verdict: BTreeMap<CheckState, usize> = BTreeMap::new();
        let mut by_class: BTreeMap<&str, Vec<(&str, &PlanTally, usize)>> = BTreeMap::new();
        for ((class, hash), plan) in &self.plans {
            let mut count = 0;
            for (outcome, names) in &plan.names {
                let many = names.len();
                count += many;
                *by_verdict.entry(outcome.verdict).or_default() += many;
                for cause in &outcome.causes {
                    drift
                        .entry((Reverse(outcome.state), cause))
                        .or_default()
                        .extend(names.iter().map(|name| &**name));
                }
            }
            by_class.entry(class).or_default().push((hash, plan, count));
        }
        let of = |verdict| by_verdict.get(&verdict).copied().unwrap_or_default();
        let drift = drift
            .into_iter()
            .map(|((Reverse(state), cause), mut hosts)| {
                sort(&mut hosts);
                Drift {
                    state,
                    cause,
                    count: hosts.len(),
                    hosts,
                }
            });
        let mut drift: Vec<Drift<'_>> = drift.collect();
        drift.sort_by_key(|group| Reverse((group.state, group.count)));
        let mut failed = self.failed.clone();
        failed.sort();
        Fleet {
            schema: "nicpin.fleet/1",
            hosts: by_verdict.values().sum(),
            planned: of(CheckState::Same),
            differ: of(CheckState::Differs),
            undetermined: of(CheckState::CouldNotBeDetermined),
            drift,
            classes: classes(by_class),
            repeated: self.repeated(),
            failed,
        }
    }

    fn repeated(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.names().collect();
        names.sort_unstable();
        let mut repeated: Vec<&str> = names
            .chunk_by(|a, b| a == b)
            .filter(|same| same.len() > 1)
            .map(|same| same[0])
            .collect();
        sort(&mut repeated);
        repeated
    }
}

fn classes<'a>(
    by_class: BTreeMap<&'a str, Vec<(&'a str, &'a PlanTally, usize)>>,
) -> Vec<Class<'a>> {
    let class = |(class, mut plans): (&'a str, Vec<(&'a str, &'a PlanTally, usize)>)| {
        plans.sort_by_key(|(_, _, count)| Reverse(*count));
        let machine = &plans[0].1.shape;
        let plan = |(hash, plan, count): (&'a str, &'a PlanTally, usize)| {
            let mut hosts: Vec<&str> = plan.hosts().collect();
            sort(&mut hosts);
            PlanGroup {
                hash,
                count,
                deviations: plan.shape.deviations(machine),
                hosts,
            }
        };
        Class {
            class,
            count: plans.iter().map(|(.., count)| count).sum(),
            like: None,
            deviations: Vec::new(),
            machine,
            plans: plans.into_iter().map(plan).collect(),
        }
    };
    let mut classes: Vec<Class<'a>> = by_class.into_iter().map(class).collect();
    classes.sort_by_key(|class| Reverse(class.count));
    for at in 1..classes.len() {
        let larger = classes[..at.min(MOST_COMPARED)].iter();
        let deviations =
            larger.map(|other| (other.class, classes[at].machine.deviations(other.machine)));
        let nearest = deviations.min_by_key(|(_, deviations)| deviations.len());
        if let Some((like, deviations)) =
            nearest.filter(|(_, found)| is_alike(classes[at].machine, found))
        {
            (classes[at].like, classes[at].deviations) = (Some(like), deviations);
        }
    }
    classes
}

/// Sorts names so that `h2` comes before `h10`.
fn sort(names: &mut [&str]) {
    names.sort_unstable_by(|a, b| natural(a).cmp(&natural(b)).then(a.cmp(b)));
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
