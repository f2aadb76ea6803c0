//! Every setting. To add one: its entry here, and its name in [`SETTINGS`]. The option with its help and its
//! completions, the key of the file with its checks, `dist/nicpin.toml` and nicpin.toml(5) are made from the entry.

#![allow(missing_docs)] // `help` documents a setting, and the third part of a word its value

use std::convert::identity;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use crate::cpuset::{CpuSet, NodeSet};
use crate::machine::Program;
use crate::policy::setting::{Entry, Form, Given, Number, Setting, Word};

/// All settings, in the order in which they are documented.
pub static SETTINGS: LazyLock<Vec<Entry>> = LazyLock::new(|| {
    vec![
        SCOPE.entry(),
        NEAR.entry(),
        EXCLUDE.entry(),
        IRQ_CORES.entry(),
        PER.entry(),
        L3.entry(),
        WIDEN.entry(),
        SIBLINGS.entry(),
        AVOID_CPU0.entry(),
        AVOID_EXCLUSIVE.entry(),
        RPS.entry(),
        XPS.entry(),
        RFS.entry(),
        RSS.entry(),
        RDMA.entry(),
        NAPI_THREADS.entry(),
        CHANNELS.entry(),
        GROUP.entry(),
        SKIP.entry(),
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

pub static SCOPE: Setting<Scope> = Setting {
    key: "scope",
    help: "Whose CPUs take the vectors",
    note: "",
    default: Word("local", Scope::Local, "the interface's own node"),
    words: &[
        Word("all", Scope::All, "every node"),
        Word("remote", Scope::Remote, "every node but its own"),
        Word(
            "hint",
            Scope::Hint,
            "where the driver hints, whatever node that is",
        ),
    ],
    forms: &[
        Form::Cpus("these CPUs", Scope::Cpus),
        Form::Nodes("these nodes", Scope::Nodes),
    ],
    given: Given::Anywhere,
};

#[derive(Debug, Clone, PartialEq)]
pub enum Near {
    Cpus(CpuSet),
    Program(Program),
}

pub static NEAR: Setting<Option<Near>> = Setting {
    key: "near",
    help: "A program whose L3 domains take the vectors, on other cores than its own while there are any",
    note: "The scope is still the bound. Nothing changes where the program may run in all L3 domains.",
    default: Word("", None, "none"),
    words: &[],
    forms: &[
        Form::Cpus("one that runs on these CPUs", |cpus| Some(Near::Cpus(cpus))),
        Form::Program("a process, or a unit of systemd", |program| {
            Some(Near::Program(program))
        }),
    ],
    given: Given::Anywhere,
};

pub static EXCLUDE: Setting<CpuSet> = Setting {
    key: "exclude",
    help: "CPUs that take no interrupts and no RPS work",
    note: "Isolated and nohz_full CPUs are left out without being named.",
    default: Word("", CpuSet::new(), "none"),
    words: &[],
    forms: &[Form::Cpus("these CPUs", identity)],
    given: Given::Anywhere,
};

pub static IRQ_CORES: Setting<Option<usize>> = Setting {
    key: "irq-cores",
    help: "How many cores of each node take queue vectors, spread over its L3 domains",
    note: "The rest is left to applications.",
    default: Word("all", None, "as many as there are queues"),
    words: &[],
    forms: &[Form::Number(
        Number {
            range: 1..=65_536,
            of: "cores",
            example: 4,
        },
        |cores| Some(cores as usize),
    )],
    given: Given::Anywhere,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Per {
    Core,
    L3,
}

pub static PER: Setting<Per> = Setting {
    key: "per",
    help: "Which cores take queue vectors",
    note: "",
    default: Word("core", Per::Core, "every one"),
    words: &[Word("l3", Per::L3, "one of each L3 domain")],
    forms: &[],
    given: Given::Anywhere,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Domains {
    Spread,
    Pack,
}

pub static L3: Setting<Domains> = Setting {
    key: "l3",
    help: "Which L3 domains take queue vectors, where that changes nothing else",
    note: "Pack leaves whole domains to applications; spread gives each application's domain some queues.",
    default: Word("spread", Domains::Spread, "all of them, evenly"),
    words: &[Word("pack", Domains::Pack, "as few as possible")],
    forms: &[],
    given: Given::Anywhere,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Widen {
    Never,
    Package,
}

pub static WIDEN: Setting<Widen> = Setting {
    key: "widen",
    help: "What happens when there are more queues than cores on the node",
    note: "",
    default: Word("never", Widen::Never, "queues share the node's cores"),
    words: &[Word(
        "package",
        Widen::Package,
        "queues also use the nearest nodes of the same package (sub-NUMA clustering, NPS)",
    )],
    forms: &[],
    given: Given::Anywhere,
};

pub static SIBLINGS: Setting<bool> = Setting {
    key: "siblings",
    help: "Whether SMT siblings count as cores of their own",
    note: "",
    default: Word("false", false, "count a core and its SMT siblings as one"),
    words: &[Word(
        "true",
        true,
        "count SMT siblings as cores of their own",
    )],
    forms: &[],
    given: Given::Anywhere,
};

pub static AVOID_CPU0: Setting<bool> = Setting {
    key: "avoid-cpu0",
    help: "Whether the core of CPU 0 is used last",
    note: "",
    default: Word("true", true, "use the core of CPU 0 last"),
    words: &[Word(
        "false",
        false,
        "treat the core of CPU 0 like any other",
    )],
    forms: &[],
    given: Given::Anywhere,
};

pub static AVOID_EXCLUSIVE: Setting<bool> = Setting {
    key: "avoid-exclusive",
    help: "Whether CPUs of exclusive cpuset partitions are left out like isolated ones",
    note: "nicpin watch leaves them out unless the file has this setting.",
    default: Word("false", false, "treat them like any other"),
    words: &[Word(
        "true",
        true,
        "leave out CPUs of exclusive cpuset partitions",
    )],
    forms: &[],
    given: Given::Anywhere,
};

#[derive(Debug, Clone, PartialEq)]
pub enum Rps {
    Auto,
    Off,
    Cpus(CpuSet),
}

pub static RPS: Setting<Rps> = Setting {
    key: "rps",
    help: "Receive packet steering",
    note: "",
    default: Word("auto", Rps::Auto, "where hardware queues are missing"),
    words: &[Word("off", Rps::Off, "never")],
    forms: &[Form::Cpus("from every queue to these CPUs", Rps::Cpus)],
    given: Given::Anywhere,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Xps {
    Auto,
    Off,
    Keep,
    ReceiveQueues,
}

pub static XPS: Setting<Xps> = Setting {
    key: "xps",
    help: "Transmit packet steering",
    note: "",
    default: Word(
        "auto",
        Xps::Auto,
        "each CPU sends on the queue whose CPU is nearest",
    ),
    words: &[
        Word("off", Xps::Off, "none"),
        Word("keep", Xps::Keep, "leave unchanged"),
        Word(
            "rxqs",
            Xps::ReceiveQueues,
            "each flow sends on the queue of the number that it receives on; others as with auto",
        ),
    ],
    forms: &[],
    given: Given::Anywhere,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rfs {
    Keep,
    Off,
    Entries(u32),
}

pub static RFS: Setting<Rfs> = Setting {
    key: "rfs",
    help: "Receive flow steering",
    note: "The machine has one flow table; its size is the largest number that an interface requests. Where the driver \
           has accelerated RFS, ntuple filters are turned on for it.",
    default: Word("keep", Rfs::Keep, "leave unchanged"),
    words: &[Word("off", Rfs::Off, "none")],
    // The kernel's own limit for the table (`net/core/sysctl_net_core.c`).
    forms: &[Form::Number(
        Number {
            range: 1..=1 << 29,
            of: "flows over all interfaces",
            example: 32768,
        },
        Rfs::Entries,
    )],
    given: Given::Anywhere,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RssQueues {
    Keep,
    Candidates,
    First(u32),
}

pub static RSS: Setting<RssQueues> = Setting {
    key: "rss",
    help: "Receive queues that RSS's indirection table sends flows to, evenly",
    note: "Only the table of context 0; the hash function and its key stay.",
    default: Word("keep", RssQueues::Keep, "leave unchanged"),
    words: &[Word(
        "candidates",
        RssQueues::Candidates,
        "one queue on each candidate core",
    )],
    forms: &[Form::Number(
        Number {
            range: 1..=65_536,
            of: "queues",
            example: 4,
        },
        RssQueues::First,
    )],
    given: Given::Anywhere,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rdma {
    Spread,
    Keep,
}

pub static RDMA: Setting<Rdma> = Setting {
    key: "rdma",
    help: "Vectors that signal RDMA completions",
    note: "",
    default: Word(
        "spread",
        Rdma::Spread,
        "as queue vectors, after all of them",
    ),
    words: &[Word("keep", Rdma::Keep, "leave unchanged")],
    forms: &[],
    given: Given::Anywhere,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NapiThreads {
    Follow,
    Keep,
}

pub static NAPI_THREADS: Setting<NapiThreads> = Setting {
    key: "napi-threads",
    help: "Threads that poll the queues, where NAPI is threaded",
    note: "Whether it is threaded stays as it is.",
    default: Word(
        "follow",
        NapiThreads::Follow,
        "each on a free SMT sibling of the CPU that its queue interrupts, else on that CPU",
    ),
    words: &[Word("keep", NapiThreads::Keep, "leave unchanged")],
    forms: &[],
    given: Given::Anywhere,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChannelCount {
    Keep,
    Auto,
    Count(u32),
}

pub static CHANNELS: Setting<ChannelCount> = Setting {
    key: "channels",
    help: "Channels of the device",
    note: "With most drivers, a change takes the link down for a moment.",
    default: Word("keep", ChannelCount::Keep, "leave unchanged"),
    words: &[Word(
        "auto",
        ChannelCount::Auto,
        "one receiving channel for each candidate core",
    )],
    forms: &[Form::Number(
        Number {
            range: 1..=u32::MAX,
            of: "receiving channels",
            example: 8,
        },
        ChannelCount::Count,
    )],
    given: Given::Anywhere,
};

#[derive(Debug, Clone, PartialEq)]
pub enum Group {
    L3,
    Cpus(CpuSet),
}

pub static GROUP: Setting<Option<Group>> = Setting {
    key: "group",
    help: "Several CPUs for each vector in place of one",
    note: "",
    default: Word("off", None, "one CPU for each vector"),
    words: &[Word(
        "l3",
        Some(Group::L3),
        "all CPUs of the L3 domain of its CPU",
    )],
    forms: &[Form::Cpus("these CPUs for every vector", |cpus| {
        Some(Group::Cpus(cpus))
    })],
    given: Given::InFile,
};

pub static SKIP: Setting<bool> = Setting {
    key: "skip",
    help: "Whether interfaces are unchanged",
    note: "",
    default: Word("false", false, "plan them"),
    words: &[Word("true", true, "change nothing about them")],
    forms: &[],
    given: Given::InFile,
};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Balancer {
    #[default]
    Ban,
    Stop,
    Ignore,
    Refuse,
}

pub static IRQBALANCE: Setting<Balancer> = Setting {
    key: "irqbalance",
    help: "What apply does about irqbalance, which would move planned vectors",
    note: "",
    default: Word("ban", Balancer::Ban, "have it leave the planned IRQs alone"),
    words: &[
        Word(
            "stop",
            Balancer::Stop,
            "stop its service; restore starts it again",
        ),
        Word("ignore", Balancer::Ignore, "let it move planned vectors"),
        Word("refuse", Balancer::Refuse, "write nothing while it runs"),
    ],
    forms: &[],
    given: Given::ForMachine,
};
