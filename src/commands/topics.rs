//! Pages of the manual, and those of topics, which are what several commands have in common.

use clap_mangen::roff::{Inline, bold};
use itertools::Itertools as _;

use self::Part::{Example, Heading, Item, Text, Value};
use nicpin::policy::{CONDITIONS, POLICY, RULES, SETTINGS};
use nicpin::report::interface::InterfaceState as State;
use nicpin::report::interface::InterfaceState::{
    Crowded, Drifted, Equivalent, Isolated, Pending, Remote, Unknown, Unproven, Unsupported,
    Untuned,
};

/// A page of the manual.
pub struct Page {
    /// The command or topic that it is about, as `nicpin help` and `nicpin man` take it; `None` for nicpin(8).
    pub about: Option<String>,
    /// Such as `nicpin-plan`, and the section of the manual.
    pub name: String,
    pub section: u8,
    /// What it is, or does, on one line.
    pub what: String,
    /// The usage of a command.
    pub synopsis: String,
    /// The description and what follows.
    pub parts: Vec<Part>,
}

pub enum Part {
    Heading(&'static str),
    /// Paragraphs, separated by empty lines.
    Text(String),
    /// A word and what it means.
    Item(Inline, String),
    /// A value of the word before, and what it means.
    Value(Inline, String),
    /// Lines.
    Example(String),
    /// The source of a page.
    Roff(String),
}

/// The pages that are about no command; what they say is also what `nicpin help TOPIC` prints.
pub fn topics() -> [Page; 3] {
    let topic = |about: &str, (name, section): (&str, u8), what: &str, parts| Page {
        about: Some(about.into()),
        name: name.into(),
        section,
        what: what.into(),
        synopsis: String::new(),
        parts,
    };
    [
        topic(
            "states",
            ("nicpin-states", 7),
            "the states of interfaces",
            states(),
        ),
        topic(
            "selectors",
            ("nicpin-selectors", 7),
            "how to name interfaces",
            selectors(),
        ),
        topic(
            "policy",
            ("nicpin.toml", 5),
            "the policy of nicpin",
            policy(),
        ),
    ]
}

/// What each state means, and the exit code of `check` for it, worst first.
pub const STATES: [(State, &str, &str); 11] = [
    (Unknown, "something that it needs could not be read", "1"),
    (
        Isolated,
        "IRQs are on isolated CPUs, and the plan moves them off these",
        "2",
    ),
    (
        Remote,
        "queue IRQs are on another node, and the plan moves them to the local one",
        "2",
    ),
    (
        Drifted,
        "something changed what apply had set, and a measure is worse for it",
        "2",
    ),
    (
        Crowded,
        "the busiest core with one of its queues has at least twice as many as the busiest would have as planned",
        "2",
    ),
    (
        Untuned,
        "settings differ, and the plan makes a measure better",
        "2",
    ),
    (
        Pending,
        "as planned; the kernel moves IRQs at their next interrupt",
        "0",
    ),
    (
        Equivalent,
        "settings differ, and the plan makes nothing better. `apply` and `watch` still restore the exact plan",
        "0, with `--exact` 2",
    ),
    (
        Unproven,
        "as planned; no interrupt was seen. `check`, trees and captures watch none",
        "0",
    ),
    (
        Unsupported,
        "nothing can be placed: its IRQs are kernel-managed, it has no queue IRQs, or their names are not recognized. \
         Left out of every count; selected by name, the last two are `unknown`",
        "0",
    ),
    (
        State::Ok,
        "as planned, and in a second of watching (`--seconds N`) all interrupts arrived where planned",
        "0",
    ),
];

fn states() -> Vec<Part> {
    let item = |(state, means, code): (State, &str, &str)| {
        Item(
            bold(state.name()),
            format!("{means}. check ends with {code}."),
        )
    };
    let text = "\
Each interface has one state, the same in status, check, JSON and metrics. Something is wrong only where the plan
makes something better: a measure of the plan or of steering, over the interface's own queues and the cores that they
are on. Unknown, isolated, remote and drifted are alarming; crowded and untuned can wait.";
    let mut parts = vec![Text(text.into()), Heading("States, worst first")];
    parts.extend(STATES.map(item));
    parts
}

fn selectors() -> Vec<Part> {
    let text = "\
Commands work on the interfaces that they are given. Several selectors are joined. Without one, they work on all
physical interfaces that are up or have queue IRQs. A selector that matches nothing is an error, and with
--if-present a note.";
    let forms = [
        (
            "eth2",
            "the interface of that name, or of that alternative name",
        ),
        (
            "'ens*'",
            "a pattern of names: * any characters, ? one, [02] one of these",
        ),
        (
            "3b:00.0",
            "a PCI address, as lspci prints it or with its domain: 0000:3b:00.0",
        ),
        (
            "driver:NAME",
            "the interfaces of a driver, such as driver:mlx5_core; a pattern",
        ),
        ("node:N", "the interfaces of devices on node N"),
        ("mlx5_0", "the interfaces of an RDMA device"),
        (
            "bond0",
            "a bond, team, VLAN, bridge or macvlan: the physical interfaces below it",
        ),
    ];
    let item = |(form, means): (&str, &str)| Item(bold(form), format!("{means}."));
    let examples =
        "nicpin status eth2\nnicpin plan 'ens*' driver:ice\nnicpin check --if-present bond0";
    let mut parts = vec![Text(text.into()), Heading("Forms")];
    parts.extend(forms.map(item));
    parts.extend([Heading("Examples"), Example(examples.into())]);
    parts
}

/// What nicpin.toml(5) says before the parts of a policy.
const ABOUT_POLICY: &str = "\
The policy says where the vectors, RPS and XPS of interfaces go. It is a TOML file, read by every command that plans:
from /etc/nicpin.toml if that exists, or from the file of --config. An unknown key or a wrong value is an error that names
line and column. apply and restore refuse a file that a user other than root and the one who runs nicpin may write or
replace.";

fn policy() -> Vec<Part> {
    let mut parts = [ABOUT_POLICY, POLICY]
        .map(|text| Text(text.into()))
        .into_iter()
        .collect_vec();
    for (title, for_interfaces) in [
        ("Settings of interfaces", true),
        ("Settings of the machine", false),
    ] {
        parts.push(Heading(title));
        for entry in SETTINGS
            .iter()
            .filter(|entry| entry.is_for_interfaces() == for_interfaces)
        {
            let help = format!("{}. {}", entry.help, entry.note);
            parts.push(Item(bold(entry.key), help.trim_end().into()));
            for (at, (value, means)) in entry.in_file().into_iter().enumerate() {
                let default = if at == 0 { " (the default)" } else { "" };
                parts.push(Value(bold(value), means + default));
            }
        }
    }
    parts.push(Heading("Conditions of a rule"));
    parts.extend(CONDITIONS.map(|(name, what)| Item(bold(name), what.into())));
    parts.extend([
        Heading("Examples"),
        Example(
            RULES
                .lines()
                .map(|line| line.trim_start_matches(['#', ' ']))
                .join("\n"),
        ),
    ]);
    parts
}
