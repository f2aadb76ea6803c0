//! Every setting. To add one: its entry here, and its name in [`SETTINGS`]. The option with its help and completions,
//! the file's key with its checks and nicpin.toml(5) are made from it; a test compares `dist/nicpin.toml`.

#![allow(missing_docs)] // `help` documents a setting, and the third part of a word its value

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use crate::cpuset::{CpuSet, NodeSet};
use crate::machine::Program;
use crate::policy::setting::{AllowedIn, Form, PolicyEntry, PolicySetting, PolicyValue};

/// In the order of the documentation.
pub static SETTINGS: LazyLock<Vec<PolicyEntry>> = LazyLock::new(|| {
    vec![
        SCOPE.entry(),
        NEAR.entry(),
        EXCLUDE.entry(),
        IRQ_CORES.entry(),
        ONE_PER_L3.entry(),
        PACK_L3.entry(),
        WIDEN.entry(),
        SIBLINGS.entry(),
        AVOID_CPU0.entry(),
        AVOID_EXCLUSIVE.entry(),
        RPS.entry(),
        XPS.entry(),
        RFS.entry(),
        RSS.entry(),
        KEEP_RDMA.entry(),
        KEEP_NAPI_THREADS.entry(),
        CHANNELS.entry(),
        GROUP.entry(),
        SKIP.entry(),
        ONLY_GAIN.entry(),
        IRQBALANCE.entry(),
    ]
});

#[derive(Debug, Clone, PartialEq)]
pub enum Scope {
    Local,
    All,
    Remote,
    Hint,
    Nodes(NodeSet),
    Cpus(CpuSet),
}

pub static SCOPE: PolicySetting<Scope> = PolicySetting::new(
    "scope",
    "Whose CPUs take the IRQs",
    &[
        ("local", Scope::Local, "the interface's own node"),
        ("all", Scope::All, "every node"),
        ("remote", Scope::Remote, "every node but its own"),
        (
            "hint",
            Scope::Hint,
            "where the driver hints, whatever node that is",
        ),
    ],
)
.forms(
    &[
        Form::Nodes("these nodes"),
        Form::Cpus("these CPUs; if they are on several nodes, those on its own"),
    ],
    |value| match value {
        PolicyValue::Nodes(nodes) => Some(Scope::Nodes(nodes)),
        value => value.cpus().map(Scope::Cpus),
    },
);

#[derive(Debug, Clone, PartialEq)]
pub enum Near {
    Cpus(CpuSet),
    Program(Program),
}

pub static NEAR: PolicySetting<Option<Near>> = PolicySetting::new(
    "near",
    "The program in whose L3 domains the IRQs go, on other cores than its own while there are any",
    &[("", None, "none")],
)
.note("Always within the scope. Nothing changes where the program may run in all L3 domains.")
.forms(
    &[
        Form::Cpus("one that runs on these CPUs"),
        Form::Program("a unit of systemd; pid:812: a process"),
    ],
    |value| match value {
        PolicyValue::Program(program) => Some(Some(Near::Program(program))),
        value => value.cpus().map(|cpus| Some(Near::Cpus(cpus))),
    },
);

pub static EXCLUDE: PolicySetting<CpuSet> = PolicySetting::new(
    "exclude",
    "CPUs that take no interrupts and no RPS work",
    const { &[("", CpuSet::new(), "none")] },
)
.note("Isolated and nohz_full CPUs are left out without being named.")
.forms(&[Form::Cpus("these CPUs")], PolicyValue::cpus);

pub static IRQ_CORES: PolicySetting<Option<usize>> = PolicySetting::new(
    "irq-cores",
    "How many cores of each node take queue IRQs, spread over its L3 domains",
    &[("all", None, "as many as there are queues")],
)
.note("The rest is left to applications.")
.forms(
    &[Form::Number {
        most: 65_536,
        counted: "cores",
        example: "4",
    }],
    |value| value.number().map(|cores| Some(cores as usize)),
);

pub static ONE_PER_L3: PolicySetting<bool> = PolicySetting::new(
    "per",
    "Which cores take queue IRQs",
    &[
        ("core", false, "every one"),
        ("l3", true, "one of each L3 domain"),
    ],
);

pub static PACK_L3: PolicySetting<bool> = PolicySetting::new(
    "l3",
    "Which L3 domains take queue IRQs, where that changes nothing else",
    &[
        ("spread", false, "all of them, evenly"),
        ("pack", true, "as few as possible"),
    ],
)
.note(
    "Pack leaves whole domains to applications; \
     spread gives each application's domain some queues.",
);

pub static WIDEN: PolicySetting<bool> = PolicySetting::new(
    "widen",
    "What happens when there are more queues than cores on the node",
    &[
        ("never", false, "queues share the node's cores"),
        (
            "package",
            true,
            "queues also use the nearest nodes of the same package (sub-NUMA clustering, NPS)",
        ),
    ],
);

pub static SIBLINGS: PolicySetting<bool> = PolicySetting::new(
    "siblings",
    "Whether SMT siblings count as cores of their own",
    &[
        ("false", false, "count a core and its SMT siblings as one"),
        ("true", true, "count SMT siblings as cores of their own"),
    ],
);

pub static AVOID_CPU0: PolicySetting<bool> = PolicySetting::new(
    "avoid-cpu0",
    "Whether the core of CPU 0 is used last",
    &[
        ("true", true, "use the core of CPU 0 last"),
        ("false", false, "treat the core of CPU 0 like any other"),
    ],
);

pub static AVOID_EXCLUSIVE: PolicySetting<bool> = PolicySetting::new(
    "avoid-exclusive",
    "Whether CPUs of exclusive cpuset partitions are left out like isolated ones",
    &[
        ("false", false, "treat them like any other"),
        (
            "true",
            true,
            "leave out CPUs of exclusive cpuset partitions",
        ),
    ],
)
.note("nicpin watch leaves them out unless the file has this setting.");

#[derive(Debug, Clone, PartialEq)]
pub enum RpsMode {
    Auto,
    Off,
    Cpus(CpuSet),
}

pub static RPS: PolicySetting<RpsMode> = PolicySetting::new(
    "rps",
    "Receive packet steering",
    &[
        ("auto", RpsMode::Auto, "where hardware queues are missing"),
        ("off", RpsMode::Off, "never"),
    ],
)
.forms(&[Form::Cpus("from every queue to these CPUs")], |value| {
    value.cpus().map(RpsMode::Cpus)
});

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Xps {
    Auto,
    Off,
    Keep,
    ReceiveQueues,
}

pub static XPS: PolicySetting<Xps> = PolicySetting::new(
    "xps",
    "Transmit packet steering",
    &[
        (
            "auto",
            Xps::Auto,
            "each CPU sends on the queue whose CPU is nearest",
        ),
        ("off", Xps::Off, "none"),
        ("keep", Xps::Keep, "leave unchanged"),
        (
            "rxqs",
            Xps::ReceiveQueues,
            "each flow sends on the transmit queue with the number of its receive queue; others as with auto",
        ),
    ],
);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rfs {
    Keep,
    Off,
    Entries(u32),
}

pub static RFS: PolicySetting<Rfs> = PolicySetting::new(
    "rfs",
    "Receive flow steering",
    &[
        ("keep", Rfs::Keep, "leave unchanged"),
        ("off", Rfs::Off, "none"),
    ],
)
.note(
    "The machine has one flow table; its size is the largest number that an interface \
     requests. Where the driver has accelerated RFS, ntuple filters are turned on for it.",
)
// The kernel's own limit for the table (`net/core/sysctl_net_core.c`).
.forms(
    &[Form::Number {
        most: 1 << 29,
        counted: "flows over all interfaces",
        example: "32768",
    }],
    |value| value.number().map(Rfs::Entries),
);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RssQueues {
    Keep,
    Candidates,
    First(u32),
}

pub static RSS: PolicySetting<RssQueues> = PolicySetting::new(
    "rss",
    "Receive queues that RSS's indirection table sends flows to, evenly",
    &[
        ("keep", RssQueues::Keep, "leave unchanged"),
        (
            "candidates",
            RssQueues::Candidates,
            "one queue on each candidate core",
        ),
    ],
)
.note("Only the table of context 0; the hash function and its key stay.")
.forms(
    &[Form::Number {
        most: 65_536,
        counted: "queues",
        example: "4",
    }],
    |value| value.number().map(RssQueues::First),
);

pub static KEEP_RDMA: PolicySetting<bool> = PolicySetting::new(
    "rdma",
    "IRQs that signal RDMA completions",
    &[
        ("spread", false, "as queue IRQs, after all of them"),
        ("keep", true, "leave unchanged"),
    ],
);

pub static KEEP_NAPI_THREADS: PolicySetting<bool> = PolicySetting::new(
    "napi-threads",
    "Threads that poll the queues, where NAPI is threaded",
    &[
        (
            "follow",
            false,
            "each on a free SMT sibling of the CPU that its queue interrupts, else on that CPU",
        ),
        ("keep", true, "leave unchanged"),
    ],
)
.note("Threaded NAPI is not turned on or off.");

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChannelCount {
    Keep,
    Auto,
    Count(u32),
}

pub static CHANNELS: PolicySetting<ChannelCount> = PolicySetting::new(
    "channels",
    "Channels of the device",
    &[
        ("keep", ChannelCount::Keep, "leave unchanged"),
        (
            "auto",
            ChannelCount::Auto,
            "one receiving channel for each candidate core",
        ),
    ],
)
.note("With most drivers, a change takes the link down for a moment.")
.forms(
    &[Form::Number {
        most: u32::MAX,
        counted: "receiving channels",
        example: "8",
    }],
    |value| value.number().map(ChannelCount::Count),
);

#[derive(Debug, Clone, PartialEq)]
pub enum Group {
    L3,
    Cpus(CpuSet),
}

pub static GROUP: PolicySetting<Option<Group>> = PolicySetting::new(
    "group",
    "Several CPUs for each IRQ in place of one",
    &[
        ("off", None, "one CPU for each IRQ"),
        (
            "l3",
            Some(Group::L3),
            "all CPUs of the L3 domain of its CPU",
        ),
    ],
)
.forms(&[Form::Cpus("these CPUs for every IRQ")], |value| {
    value.cpus().map(|cpus| Some(Group::Cpus(cpus)))
})
.given(AllowedIn::InFile);

pub static SKIP: PolicySetting<bool> = PolicySetting::new(
    "skip",
    "Whether interfaces are unchanged",
    &[
        ("false", false, "plan them"),
        ("true", true, "change nothing about them"),
    ],
)
.given(AllowedIn::InFile);

pub static ONLY_GAIN: PolicySetting<bool> = PolicySetting::new(
    "only-gain",
    "Whether IRQs and steering that are as good as planned stay as they are",
    &[
        (
            "false",
            false,
            "the plan does not depend on what is set now",
        ),
        (
            "true",
            true,
            "write only what makes a measure better; the plan depends on what is set now",
        ),
    ],
)
.given(AllowedIn::ForMachine);

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Balancer {
    #[default]
    Ban,
    Stop,
    Ignore,
    Refuse,
}

pub static IRQBALANCE: PolicySetting<Balancer> = PolicySetting::new(
    "irqbalance",
    "What apply does about irqbalance, which would move planned IRQs",
    &[
        ("ban", Balancer::Ban, "have it leave the planned IRQs alone"),
        (
            "stop",
            Balancer::Stop,
            "stop its service; restore starts it again",
        ),
        ("ignore", Balancer::Ignore, "let it move planned IRQs"),
        ("refuse", Balancer::Refuse, "write nothing while it runs"),
    ],
)
.given(AllowedIn::ForMachine);
