//! The form of the table's rows.

use crate::machine::Role;

/// A driver, or several with the same facts.
#[derive(Debug, Clone, Copy)]
pub struct Driver {
    /// Names in sysfs, separated by blanks; empty in the row for all other drivers.
    pub names: &'static str,
    /// The name on the bus, if the interfaces have another.
    pub on_bus: Option<&'static str>,
    /// Patterns, as `Pattern::parse` takes them. Without any, names are read as those of a driver without a row.
    pub irqs: &'static [&'static str],
    pub rdma: &'static [&'static str],
    /// Names of queues as the driver gives them, and odd ones: `eth0-TxRx-3 = combined 3`.
    pub examples: &'static [&'static str],
    pub order: &'static [OrderPart],
    /// How the names of the IRQs begin by which its packets arrive, if these are of other devices and serve several
    /// interfaces; else empty.
    pub portals: &'static str,
    /// Columns of the page on drivers: meaning of the number in a name; affinities after ifdown and ifup; affinities
    /// after `ethtool -L`; XPS.
    pub page: [&'static str; 4],
    pub facts: &'static [Fact],
    /// Why the device's hash does not follow from the reported one, and the first Linux in which it does.
    pub doubt: Option<(Option<(u32, u32)>, &'static str)>,
}

#[derive(Debug, Clone, Copy)]
pub enum OrderPart {
    /// One vector for each queue of this role.
    Queues(Role),
    /// One vector for all queues of this role.
    All(Role),
    /// Control vectors: minimum and maximum.
    Others(usize, usize),
}

/// Behaviour that no file of the kernel reports, from the sources of Linux 6.1 to 6.19.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fact {
    /// Has `ndo_rx_flow_steer`, and a map of the queues' CPUs that follows the affinity of the vectors
    /// (`irq_cpu_rmap_add`).
    AcceleratedRfs,
    /// Vectors are numbered by channel: a receive queue, and a transmit queue of each traffic class.
    ChannelVectors,
    /// The channels of an interface over several functions alternate between them, and names count the channels of one
    /// function (`mlx5_sd_ch_ix_get_dev_ix`).
    ChannelsAlternate,
    /// Reports channels and a maximum, and has no `set_channels`.
    FixedChannels,
    /// Reports an RSS table, and has no `set_rxfh`.
    FixedRss,
    /// Affinity hints are not limited to the interface's node: i40e spreads over all nodes, ice, iavf and idpf request
    /// their CPUs before their node is set (6.15 and later), ena uses any CPU.
    HintsAnywhere,
    /// Keeps the vectors of queues where it has put them (`IRQ_NO_BALANCING` in `mvpp2_irqs_init`, `IRQF_NOBALANCING` in
    /// `ath11k_pci_alloc_msi`): the kernel refuses every write, whatever the mode of the file.
    KeepsAffinity,
    /// The kernel manages the affinity of the vectors (`PCI_IRQ_AFFINITY`): of Linux's own drivers, those on `libwx`.
    ManagedIrqs,
    /// Marks a hash of addresses and ports for the stack (`PKT_HASH_TYPE_L4`); otherwise the kernel computes its own.
    MarksL4,
    /// All devices have the IRQs of another one, an engine that moves the packets.
    OneEngine,
    /// `ndo_select_queue` picks the transmit queue without `netdev_pick_tx`, so that XPS is never read:
    /// `xennet_select_queue`, `mtk_select_queue`, `ravb_select_queue`.
    PicksTxQueue,
    /// The ports of a function have equal parts of one pool of vectors.
    PortsSharePool,
    /// Queue N of each port of a function uses vector N.
    PortsShareQueues,
    /// Queues beyond the first eight are on further functions, whose IRQs have the interface's name
    /// (`nicvf_request_sqs`).
    QueuesOnFunctions,
    /// Queue N uses vector N modulo the number of vectors (`be_evt_qs_create`, `hns3_nic_init_vector_data`,
    /// `ixgbe_alloc_q_vector`).
    QueuesWrap,
    /// A vector may serve a queue and RDMA; vectors beyond the queues serve RDMA alone.
    QueuesAndRdma,
    /// Sends a TCP flow to the receive queue with the number of the flow's transmit queue (`ixgbe_atr`, `i40e_atr`,
    /// `txgbe_atr`), which it tells the device at the SYN and at about every twentieth packet sent.
    SteersTcp,
    /// Sets the device's key from `netdev_rss_key_fill`; the key cannot be changed if the driver reports none.
    SystemKey,
}

impl Driver {
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
            portals: "",
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

    pub(super) const fn portals(self, portals: &'static str) -> Self {
        Self { portals, ..self }
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
