//! The form of a row of the table.

use crate::machine::Role;

/// A driver, or several with the same facts.
#[derive(Debug, Clone, Copy)]
pub struct Driver {
    /// The drivers' names in sysfs, separated by blanks; empty in the row for drivers without one.
    pub names: &'static str,
    /// The name of the driver on the bus, if its interfaces have another.
    pub on_bus: Option<&'static str>,
    /// Patterns of the IRQs' names, as `Pattern::parse` takes them. Without any, names are read as those of a driver
    /// without a row.
    pub irqs: &'static [&'static str],
    pub rdma: &'static [&'static str],
    /// Examples of names with their meaning, `eth0-TxRx-3 = combined 3`, for patterns with placeholders.
    pub examples: &'static [&'static str],
    pub order: &'static [OrderPart],
    /// Columns of the page on drivers: what the number in a name counts; affinities after ifdown and ifup; affinities
    /// after `ethtool -L`; XPS.
    pub page: [&'static str; 4],
    pub facts: &'static [Fact],
    /// Why the device's hash does not follow from the reported one, and the first release of Linux in which it does.
    pub doubt: Option<(Option<(u32, u32)>, &'static str)>,
}

#[derive(Debug, Clone, Copy)]
pub enum OrderPart {
    /// One vector for each queue of this role.
    Queues(Role),
    /// Control vectors: minimum and maximum number.
    Others(usize, usize),
}

/// Behaviour of drivers that no file of the kernel reports. Read in the sources of Linux 6.1 to 6.19.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fact {
    /// The driver has `ndo_rx_flow_steer`, and a map of the queues' CPUs that follows the affinity of the vectors
    /// (`irq_cpu_rmap_add`).
    AcceleratedRfs,
    /// Vectors are numbered by channel: one receive queue, and a transmit queue of each traffic class.
    ChannelVectors,
    /// The channels of an interface over several functions alternate between the functions, and names count the
    /// channels of one function (`mlx5_sd_ch_ix_get_dev_ix`).
    ChannelsAlternate,
    /// The driver reports channels and a maximum, and has no `set_channels`.
    FixedChannels,
    /// The driver reports an RSS table, and has no `set_rxfh`.
    FixedRss,
    /// Affinity hints are not limited to the interface's node: i40e spreads over all nodes, ice, iavf and idpf request
    /// their CPUs before their node is set (6.15 and later), ena uses any CPU.
    HintsAnywhere,
    /// The driver lets the kernel manage the affinity of its vectors (`PCI_IRQ_AFFINITY`): of Linux's own, those on
    /// `libwx`.
    ManagedIrqs,
    /// The driver marks a hash of addresses and ports as such for the stack (`PKT_HASH_TYPE_L4`); otherwise the kernel
    /// computes its own.
    MarksL4,
    /// The IRQs of all its devices are those of one other device, an engine that moves the packets.
    OneEngine,
    /// The ports of a function have equal parts of one pool of vectors.
    PortsSharePool,
    /// Queue N of each port of a function uses vector N.
    PortsShareQueues,
    /// A vector may serve a queue and RDMA; vectors beyond the queues serve RDMA alone.
    QueuesAndRdma,
    /// The driver sends a TCP flow to the receive queue with the number of the flow's transmit queue (`ixgbe_atr`,
    /// `i40e_atr`, `txgbe_atr`): it tells the device at the SYN and at about every twentieth packet sent.
    SteersTcp,
    /// The driver sets the device's key from `netdev_rss_key_fill`, and the key cannot be changed if it reports none.
    SystemKey,
}

impl Driver {
    /// A row without facts: the drivers' names, the patterns of their IRQs' names, and examples of these.
    pub(super) const fn new(
        names: &'static str,
        irqs: &'static [&'static str],
        examples: &'static [&'static str],
    ) -> Self {
        Self {
            names,
            on_bus: None,
            irqs,
            rdma: &[],
            examples,
            order: &[],
            page: [""; 4],
            facts: &[],
            doubt: None,
        }
    }

    pub(super) const fn bus_driver(self, name: &'static str) -> Self {
        let on_bus = Some(name);
        Self { on_bus, ..self }
    }

    pub(super) const fn rdma(self, rdma: &'static [&'static str]) -> Self {
        Self { rdma, ..self }
    }

    pub(super) const fn order(self, order: &'static [OrderPart]) -> Self {
        Self { order, ..self }
    }

    pub(super) const fn page(self, page: [&'static str; 4]) -> Self {
        Self { page, ..self }
    }

    pub(super) const fn facts(self, facts: &'static [Fact]) -> Self {
        Self { facts, ..self }
    }

    pub(super) const fn doubt(self, until: Option<(u32, u32)>, why: &'static str) -> Self {
        let doubt = Some((until, why));
        Self { doubt, ..self }
    }
}
