//! What is read of a machine.

/// What is only read when something asks for it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools)] // one question has nothing to do with another
pub struct Wants {
    /// The drivers' hints.
    pub hints: bool,
    /// `/proc/interrupts` also where `/sys/kernel/irq` tells of the handlers.
    pub interrupts: bool,
    /// How much memory each node has.
    pub memory: bool,
    /// Who polls the interfaces' queues.
    pub polling: bool,
    /// What of the interfaces' queues.
    pub queues: Queues,
}

/// What is read of queues.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Queues {
    /// How they are steered, too.
    #[default]
    Steering,
    /// Which there are; [`read_queue_settings`](crate::read::read_queue_settings) reads the rest.
    Numbers,
}

impl Wants {
    /// Whatever a command or a policy may ask for.
    pub const EVERYTHING: Self =
        Self { hints: true, interrupts: true, memory: true, polling: true, queues: Queues::Steering };
}
