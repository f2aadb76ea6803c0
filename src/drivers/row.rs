//! What a row of the table holds.

use crate::machine::Role;

/// A driver, or several of which the same is known.
#[derive(Debug, Clone, Copy)]
pub struct Driver {
    /// Their names in sysfs, a blank between two; empty in the row of those that no other row names.
    pub names: &'static str,
    /// The name of the driver on the bus, where its interfaces have another.
    pub on_bus: Option<&'static str>,
    /// The names of their IRQs and what each means, as `Pattern::parse` takes them. With none they are read as those of
    /// a driver without a row.
    pub irqs: &'static [&'static str],
    /// Those that their RDMA driver requests.
    pub rdma: &'static [&'static str],
    /// Examples of names, with what they mean: `eth0-TxRx-3 = combined 3`.
    pub examples: &'static [&'static str],
    /// The order of vectors that have all the same name.
    pub order: &'static [Run],
    /// What the page on drivers says of them: what the number in a name counts; what becomes of affinities at ifdown and ifup
    /// and at `ethtool -L`; and of XPS.
    pub page: [&'static str; 4],
    /// What else is known.
    pub facts: &'static [Fact],
    /// Why the device's hash does not follow from what is reported, and the first release of Linux in which it does.
    pub doubt: Option<(Option<(u32, u32)>, &'static str)>,
}

/// A part of the vectors of a device, in their order.
#[derive(Debug, Clone, Copy)]
pub enum Run {
    /// One for each queue of this role.
    Queues(Role),
    /// Control vectors, at least and at most so many.
    Others(usize, usize),
}

/// What drivers do and no file of the kernel reports. Read in the sources of Linux 6.1 to 6.19.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fact {
    /// `ndo_rx_flow_steer`, and a map of the queues' CPUs that follows the affinity of the vectors (`irq_cpu_rmap_add`).
    AcceleratedRfs,
    /// A vector is numbered by channel: it has the receive queue of its number, and a transmit queue of each traffic class.
    ChannelVectors,
    /// The channels of an interface over several functions alternate between these, and the names count those of one
    /// (`mlx5_sd_ch_ix_get_dev_ix`).
    ChannelsAlternate,
    /// It reports channels and a maximum, and has no `set_channels`.
    FixedChannels,
    /// It reports an RSS table, and has no `set_rxfh`.
    FixedRss,
    /// Its hints are not limited to the interface's node: i40e spreads over all nodes, ice, iavf and idpf request their CPUs
    /// before their node is set (6.15 and later), ena uses any CPU.
    HintsAnywhere,
    /// It marks a hash of addresses and ports as such for the stack (`PKT_HASH_TYPE_L4`); otherwise the kernel computes
    /// its own.
    MarksL4,
    /// The IRQs of all of its devices are those of one other device, an engine that moves the packets.
    OneEngine,
    /// The ports of a function have equal parts of one pool of vectors.
    PortsSharePool,
    /// Queue N of each port of a function uses the vector of that number.
    PortsShareQueues,
    /// A vector may serve a queue and RDMA; RDMA alone uses those beyond the queues.
    QueuesAndRdma,
    /// It sends a TCP flow to the queue with the number of the one that sends for it (`ixgbe_atr`, `i40e_atr`,
    /// `txgbe_atr`): it tells the device at its SYN and at every twentieth packet or so that is sent.
    SteersTcp,
    /// It sets the device's key from `netdev_rss_key_fill` and has no way to change it where it reports none.
    SystemKey,
}

impl Driver {
    /// A row of which nothing is known yet.
    pub(super) const fn named(names: &'static str) -> Self {
        Self {
            names,
            on_bus: None,
            irqs: &[],
            rdma: &[],
            examples: &[],
            order: &[],
            page: [""; 4],
            facts: &[],
            doubt: None,
        }
    }
}
