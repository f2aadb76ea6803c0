//! The names of interrupt actions: one table of how drivers name their vectors.
//!
//! Names are one of three sources; netlink and the order of a device's vectors are the others. A name does not show
//! which interface the vector belongs to: the caller knows that it belongs to the device, compares the interface in the
//! name, and sees all vectors of the device. This module considers one name alone.

mod pattern;

use pattern::{Fit, fit};

use self::Numbering::{Mlx4, Paired, Plain, Queue, Rank, Rtl8125, Shared, Tg3, TxThenRx};
use self::Role::{Combined, Control, Rdma, Rx, Tx};
use crate::machine::Role;

/// How the number in a vector's name becomes a queue number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Numbering {
    /// The number is the queue.
    Queue,
    /// The number only orders: the k-th smallest of this role on the device (of this interface, where the
    /// name holds one) is queue k. tg3 counts from 1, hns3 by two, and bnxt's transmit vectors from where its
    /// receive vectors end.
    Rank,
    /// gve: of n blocks the first n/2 are transmit queues 0.., the others receive queues 0... The role is
    /// `Combined` until the caller, who knows n, has determined it.
    TxThenRx,
    /// A name without a number, usually the bare interface name: the data vector if the device has no other
    /// data vector, else control. Drivers that name every vector alike (atlantic, lan743x, mvpp2, and with long
    /// interface names e1000e and igbvf) are out of reach here: the caller sees several of these on one device and
    /// does not guess.
    Plain,
    /// tg3's `eth0-2`: vector 0 is link and transmit, vectors 1.. are the receive (or combined) queues 0...
    Tg3,
    /// mlx4's `mlx4-3@...`: the number of a completion event queue, from 1. Each port of the function has an equal
    /// part of them; the caller, who knows the ports, has found the port and the number in its part.
    Mlx4,
    /// r8125, by the hardware: vectors below the number of receive queues receive, 16 and 18 send, the others (21: link) do
    /// neither. That is the second version of its interrupts (RTL8125B): `rtl8125_tx_interrupt_with_vector` of Realtek.
    Rtl8125,
    /// One vector serves all queues of the role.
    Shared,
    /// As `Queue` of a vector that also sends, unless other vectors do that (ionic).
    Paired,
    /// Control: no number.
    None,
}

/// The meaning of one action name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ActionName<'a> {
    /// The vector's role.
    pub role: Role,
    /// What [`number`](Self::number) means.
    pub numbering: Numbering,
    /// The number in the name. `None` where the numbering has none, and where the driver cut its own name off
    /// before it (tg3 keeps 15 characters, older bnxt 17). A cut inside the number cannot be seen in one
    /// name: two vectors of one role then have the same number.
    pub number: Option<u32>,
    /// The interface name inside the action as written; most drivers keep the old one after a rename.
    pub interface: Option<&'a str>,
}

/// The meaning of `action` for `driver`, the name of the bus driver as in sysfs (`mlx4_core`, `virtio_net`, `ixgbe`;
/// `None` if unknown).
///
/// A driver that is not in the table is expected to follow the common patterns. Names that contain their driver
/// (`mlx5_comp3@pci:...`) are read by that driver's patterns. `None` is a name that matches no pattern.
pub fn classify<'a>(driver: Option<&str>, action: &'a str) -> Option<ActionName<'a>> {
    DriverPatterns::of(driver).classify(action)
}

/// The meaning of a name in `interrupt-names` of a device tree (`rx`, `tx3`, `rx_irq`, `pps`); `None` for one that does not
/// tell what it is for (`macirq`, `int0`).
pub(crate) fn in_device_tree(name: &str) -> Option<ActionName<'static>> {
    let found = DriverPatterns(IN_DEVICE_TREE.iter().collect()).classify(name)?;
    Some(ActionName {
        interface: None,
        ..found
    })
}

/// Whether some driver truncates names that begin with the interface's at the length of this one.
pub fn may_be_cut(action: &str) -> bool {
    let mut rows = TABLE.iter().flat_map(|(_, rows)| *rows);
    rows.any(|row| row.cut == action.len() && row.text.starts_with("{if}"))
}

/// How one driver names its vectors: the rows of the table to look through for each of its names.
#[derive(Debug)]
pub(crate) struct DriverPatterns(Vec<&'static Row>);

impl DriverPatterns {
    /// That of a driver, as [`classify`] takes it.
    pub(crate) fn of(driver: Option<&str>) -> Self {
        let mut rows: Vec<&Row> = TABLE
            .iter()
            .filter(|(drivers, _)| drivers.split(' ').any(|name| Some(name) == driver))
            .flat_map(|(_, rows)| *rows)
            .collect();
        if rows.is_empty() {
            for (drivers, of_drivers) in TABLE {
                // Names may begin with their driver's name. Sub-functions share their parents' names.
                let others = *drivers == OTHERS;
                let telling =
                    |row: &&Row| others || !row.text.starts_with('{') && *drivers != "mlx5_core.sf";
                rows.extend(of_drivers.iter().filter(telling));
            }
        }
        Self(rows)
    }

    /// As [`classify`].
    pub(crate) fn classify<'a>(&self, action: &'a str) -> Option<ActionName<'a>> {
        let (row, role, found) = self.pick(action)?;
        Some(ActionName {
            role,
            numbering: row.numbering,
            number: found.number,
            interface: found.interface,
        })
    }

    /// The row that fits best, the role by it, and the match.
    fn pick<'a>(&self, action: &'a str) -> Option<(&'static Row, Role, Fit<'a>)> {
        let fits = self.0.iter().flat_map(|row| {
            let is_cut = row.cut > 0 && action.len() == row.cut;
            let of = move |&(way, role)| Some((*row, role, fit(row.text, way, action, is_cut)?));
            row.ways.iter().filter_map(of)
        });
        // The first of those that fit equally well.
        fits.rev()
            .max_by_key(|(_, role, found)| (!role.is_queue(), found.literals))
    }
}

/// A pattern of the names of some drivers; [`pattern`] has its placeholders. The order of the rows does not matter: an
/// RDMA or control row wins over a queue row, and then the row with more literal text wins.
#[derive(Debug, Clone, Copy)]
struct Row {
    text: &'static str,
    ways: Ways,
    numbering: Numbering,
    /// The length in bytes at which the driver truncates the name; 0 for never.
    cut: usize,
}

/// The roles of vectors with such names, each with what stands for it in place of `{way}`.
type Ways = &'static [(&'static str, Role)];

const fn row(text: &'static str, ways: Ways, numbering: Numbering) -> Row {
    Row {
        text,
        ways,
        numbering,
        cut: 0,
    }
}

/// With `{way}`: a vector that receives, sends, or both.
const fn all(text: &'static str) -> Row {
    let ways = &[("TxRx", Combined), ("rx", Rx), ("tx", Tx)];
    row(text, ways, Queue)
}

/// With `{way}`: a vector that receives, or one that sends.
const fn each(text: &'static str) -> Row {
    row(text, &[("rx", Rx), ("tx", Tx)], Queue)
}

const fn both(text: &'static str) -> Row {
    row(text, &[("", Combined)], Queue)
}

const fn rx(text: &'static str) -> Row {
    row(text, &[("", Rx)], Queue)
}

/// With `{way}`: as drivers of which little is known name vectors, which number them in any way.
const fn usual(text: &'static str) -> Row {
    let ways = &[
        ("TxRx", Combined),
        ("rxtx", Combined),
        ("Tx-Rx", Combined),
        ("rx", Rx),
        ("tx", Tx),
    ];
    row(text, ways, Rank)
}

const fn tx(text: &'static str) -> Row {
    row(text, &[("", Tx)], Queue)
}

/// A vector for RDMA completions.
const fn rdma(text: &'static str) -> Row {
    row(text, &[("", Rdma)], Queue)
}

const fn ctl(text: &'static str) -> Row {
    row(text, &[("", Control)], Numbering::None)
}

impl Row {
    const fn by(self, numbering: Numbering) -> Self {
        Self { numbering, ..self }
    }

    const fn cut(self, cut: usize) -> Self {
        Self { cut, ..self }
    }
}

const OTHERS: &str = "";

/// Names of drivers as in sysfs, a blank between two, and how they name their vectors. [`OTHERS`] are the drivers that
/// no other row names.
static TABLE: &[(&str, &[Row])] = &[
    // The bare interface name, always or when they have but one vector.
    (
        "8139cp 8139too alx amd-xgbe atlantic b44 be2net bcmgenet bgmac-enet bnx2 bnx2x cxgb3 \
    cxgb4 dwc-xlgmac e1000 e1000e enic fbnic fm10k gem ibmveth igb igbvf igc ixgbe ixgbevf macb mvneta mvpp2 \
    ngbe ngbevf niu r8125 r8168 r8169 sfc sfc_ef100 sfc_falcon sfc_siena tg3 tn40xx txgbe txgbevf vif \
    vmxnet3",
        &[both("{if}").by(Plain)],
    ),
    // The vendor's driver, from RTL8125B on; it names even a single vector so.
    ("r8125", &[both("{if}-{n}").by(Rtl8125)]),
    // igb and its kin number queues, ixgbe and its kin vectors; the two differ where a vector has several.
    (
        "alx amd-xgbe dwc-xlgmac e1000e fm10k igb igbvf igc ixgbe ixgbevf",
        &[all("{if}-{way}-{n}"), ctl("{if}-unused")],
    ),
    (
        "amd-xgbe",
        &[ctl("{if}-pcs"), ctl("{if}-ecc"), ctl("{if}-i2c")],
    ),
    (
        "ngbe ngbevf txgbe txgbevf",
        &[both("{if}-TxRx-{n}").by(Rank), ctl("txgbe-link-irq")],
    ),
    (
        "fbnic",
        &[both("{if}-TxRx-{n}"), tx("{if}-Tx-{n}"), ctl("{pci}")],
    ),
    // After the address: misc, ll_ts, and the vectors of the flow director, which look like queues.
    ("i40e", &[all("i40e-{if}-{way}-{n}"), ctl("i40e-{pci}:{x}")]),
    ("iavf", &[all("iavf-{if}-{way}-{n}"), ctl("iavf-{pci}:{x}")]),
    // The name of iavf before Linux 4.20.
    (
        "i40evf",
        &[all("i40evf-{if}-{way}-{n}"), ctl("i40evf-{pci}:{x}")],
    ),
    (
        "ice ice.sf",
        &[
            both("ice-{if}-TxRx-{n}"),
            both("ice-{if}-TxRx-{n}-{h}"), // two queues on a vector; the first counts
            each("ice-{if}-{way}-{n}"),
            ctl("ice-{pci}:{x}"),
        ],
    ),
    (
        "idpf",
        &[all("idpf-{if}-{way}-{n}").by(Rank), ctl("idpf-Mailbox-{h}")],
    ),
    (
        "i40e iavf ice idpf",
        &[
            ctl("irdma{x}"),
            rdma("irdma-{x}-CEQ-{n}"),
            // It also signals asynchronous events.
            rdma("irdma-{x}-AEQCEQ-{n}"),
            // Linux 6.1 and older give no number.
            rdma("CEQ{n}").cut(3),
            rdma("AEQCEQ{n}").cut(6),
        ],
    ),
    // Broadcom.
    (
        "bnge bnxt_en",
        &[
            both("{if}-TxRx-{n}").cut(17),
            each("{if}-{way}-{n}").by(Rank).cut(17),
            rdma("bnxt_re-nq-{n}@pci:{pci}"),
            ctl("bnxt_re-{x}@pci:{pci}"),
            rdma("bnxt_qplib_nq-{n}"),
            ctl("bnxt_qplib_{x}"),
        ],
    ),
    ("bnx2", &[both("{if}-{n}")]),
    ("bnx2x", &[both("{if}-fp-{n}")]),
    (
        "tg3",
        &[
            all("{if}-{way}-{n}").by(Rank).cut(15),
            both("{if}-{n}").by(Tg3),
        ],
    ),
    // Mellanox. The vectors that a function lends to its sub-functions (or has itself, as seen from there) carry
    // queues, but none of this interface.
    (
        "mlx4_core mlx4_en",
        &[
            both("mlx4-{n}@{pci}").by(Mlx4),
            both("{if}-{n}"),
            rx("{if}-rx-{n}"),
            both("mlx4_core@pci:{pci}").by(Shared),
            ctl("mlx4-async@pci:{pci}"),
            rdma("mlx4-comp-{n}@pci:{pci}"),
            // A port and a number of the port.
            rdma("mlx4-ib-{h}-{n}@{x}").by(Rank),
        ],
    ),
    (
        "mlx5_core",
        &[
            both("mlx5_comp{n}@pci:{pci}"),
            both("mlx5_combined{h}@pci:{pci}").by(Shared),
            ctl("mlx5_async{x}@pci:{pci}"),
            ctl("mlx5_{x}_eq@pci:{pci}"),
            ctl("mlx5_sf_{x}@pci:{pci}"),
        ],
    ),
    (
        "mlx5_core.sf",
        &[
            both("mlx5_sf_comp{n}@pci:{pci}").by(Rank),
            ctl("mlx5_sf_ctrl{h}@pci:{pci}"),
            ctl("mlx5_comp{h}@pci:{pci}"),
            ctl("mlx5_async{x}@pci:{pci}"),
        ],
    ),
    // Clouds and hypervisors.
    ("ena", &[both("{if}-Tx-Rx-{n}"), ctl("ena-mgmnt@pci:{pci}")]),
    (
        "ena efa",
        &[rdma("efa-comp{n}@pci:{pci}"), ctl("efa-{x}@pci:{pci}")],
    ),
    (
        "erdma",
        &[
            rdma("erdma-ceq{n}@pci:{pci}"),
            ctl("erdma-common@pci:{pci}"),
        ],
    ),
    (
        "gve gvnic",
        &[
            both("gve-ntfy-blk{n}@pci:{pci}").by(TxThenRx),
            both("{if}-ntfy-block.{n}").by(TxThenRx),
            ctl("gve-mgmnt@pci:{pci}"),
            ctl("{if}-mgmnt"),
        ],
    ),
    (
        "mana",
        &[
            both("mana_q{n}@pci:{pci}"),
            // By MSI index, of which 0 is that of mana_hwc (series of 2026).
            both("mana_msi{n}@pci:{pci}").by(Rank),
            both("mana_intr").by(Plain),
            ctl("mana_hwc@pci:{pci}"),
        ],
    ),
    // The dot distinguishes a network queue from `virtio5-input`, a random number generator.
    (
        "virtio_net virtio-pci",
        &[
            rx("virtio{h}-input.{n}"),
            tx("virtio{h}-output.{n}"),
            both("virtio{h}-virtqueues").by(Shared),
            both("virtio{h}").by(Shared),
            ctl("virtio{h}-config"),
            ctl("virtio{h}-control"),
        ],
    ),
    (
        "vmxnet3",
        &[
            both("{if}-rxtx-{n}").by(Rank),
            each("{if}-{way}-{n}").by(Rank),
            ctl("{if}-event-{h}"),
        ],
    ),
    (
        "vif",
        &[
            each("vif{h}-q{n}-{way}"),
            each("{if}-q{n}-{way}"),
            each("{if}-{way}").by(Shared),
        ],
    ),
    (
        "ibmvnic",
        &[each("ibmvnic-{h}-{way}{n}"), ctl("ibmvnic-{h}")],
    ),
    // HiSilicon, Huawei.
    (
        "hns3",
        &[
            all("hns3-{pci}-{way}-{n}").by(Rank),
            both("{if}-TxRx-{n}").by(Rank),
            ctl("hclge-misc-{pci}"),
            ctl("hclgevf-misc-{pci}"),
            rdma("hns-{pci}-ceq-{n}"),
            rdma("hns-ceq-{n}"),
            ctl("hns-{x}"),
        ],
    ),
    ("hns-nic", &[each("{if}-{way}{n}")]),
    (
        "hinic hinic3",
        &[
            each("{if}_{way}q{n}"),
            both("{if}_qp{n}"),
            ctl("hinic{x}_aeq{h}@pci:{pci}"),
            ctl("hinic{x}_ceq{h}@pci:{pci}"),
        ],
    ),
    // Solarflare; each XDP channel belongs to a CPU and is no queue of the interface.
    (
        "sfc sfc_ef100 sfc_falcon sfc_siena",
        &[
            both("{if}-{n}"),
            each("{if}-{way}-{n}"),
            ctl("{if}-xdp-{h}"),
            ctl("{if}-ptp"),
            ctl("{if}-mae"),
            ctl("{if}-iov"),
        ],
    ),
    // Chelsio, Emulex, Cisco.
    ("cxgb4", &[rx("{if}-Rx{n}")]),
    ("cxgb4vf", &[both("{if}-{n}")]),
    ("cxgb3", &[both("{if}-{n}").by(Rank)]),
    ("cxgb4 cxgb4vf", &[ctl("{if}-FWeventq")]),
    (
        "cxgb4",
        &[
            ctl("{if}-mirrorrxq{h}"),
            ctl("{if}-eorxq{h}"),
            rdma("{if}-iw_cxgb4{n}"),
            ctl("{if}-cxgb4i{h}"),
        ],
    ),
    ("be2net", &[both("{if}-q{n}"), rdma("ocrdma{h}-{n}")]),
    (
        "enic",
        &[each("{if}-{way}-{n}"), ctl("{if}-err"), ctl("{if}-notify")],
    ),
    // QLogic. The last receive ring of qlcnic shares its vector with transmit ring 0.
    (
        "qede",
        &[
            both("{if}-fp-{n}"),
            both("{h}:{h}.{h}").by(Shared),
            ctl("sp-{h}-{h}:{h}.{h}"),
            rdma("qedr{n}@pci:{pci}"),
        ],
    ),
    (
        "qlcnic",
        &[
            rx("{if}-rx-{n}"),
            rx("{if}-tx-0-rx-{n}"),
            tx("{if}-tx-{n}"),
            both("qlcnic").by(Shared),
            ctl("qlcnic-MB"),
        ],
    ),
    ("netxen_nic", &[both("{if}[{n}]")]),
    // Marvell, Cavium.
    (
        "nicvf thunder-nicvf",
        &[
            both("{if}-rxtx-{n}"),
            ctl("{if}-sq-{h}"),
            ctl("{if}-rbdr-{h}"),
            ctl("{if}-qset-err-{h}"),
            ctl("NICVF Mbox"),
        ],
    ),
    (
        "rvu_nicpf rvu_nicvf",
        &[both("{if}-rxtx-{n}"), ctl("{if}-qerr"), ctl("RVU{x}")],
    ),
    (
        "LiquidIO LiquidIO_VF",
        &[both("LiquidIO{h}-{x}-rxtx-{n}"), ctl("LiquidIO{h}-{x}-aux")],
    ),
    (
        "octeon_ep octeon_ep_vf",
        &[both("{if}-q{n}"), ctl("{if}-epf_{x}")],
    ),
    ("sky2", &[both("sky2@pci:{pci}").by(Shared)]),
    ("skge", &[both("skge@pci:{pci}").by(Shared)]),
    // Netronome, Pensando, Fungible.
    (
        "nfp nfp_netvf",
        &[both("{if}-rxtx-{n}"), ctl("{if}-lsc"), ctl("{if}-exn")],
    ),
    (
        "ionic",
        &[
            both("ionic-{if}-L{h}-rx{n}").by(Paired),
            tx("ionic-{if}-L{h}-tx{n}"),
            ctl("ionic-{x}-L{h}-admin{x}"),
            ctl("ionic-{x}-L{h}-notif{x}"),
            ctl("ionic-{x}-L{h}-hwst{x}"),
        ],
    ),
    ("ionic pds_core", &[ctl("pds_core-{x}")]),
    (
        "funeth",
        &[
            each("{if}-{way}-{n}"),
            ctl("{pci}-adminq"),
            ctl("{pci}-q[{h}]"),
        ],
    ),
    // Systems on a chip. A DPAA portal belongs to a CPU and serves every interface there.
    (
        "fsl_enetc fsl_enetc_vf nxp_enetc4",
        &[both("{if}-rxtx{n}"), ctl("{if}-vfmsg{x}")],
    ),
    ("fsl_dpaa2_eth", &[ctl("dpio.{h}"), ctl("dpni.{h}")]),
    ("fsl_dpa", &[ctl("QMan portal {h}")]),
    (
        "fsl-gianfar",
        &[each("{if}_g{n}_{way}"), ctl("{if}_g{h}_er")],
    ),
    (
        "fec mtk_soc_eth brcm-asp2",
        &[both("{h}.ethernet").by(Plain)],
    ),
    ("lan743x", &[both("lan743x").by(Plain)]),
    ("netsec", &[both("netsec").by(Shared)]),
    // With one receive flow it has the device's bare name.
    (
        "am65-cpsw-nuss",
        &[each("{x}-{way}{n}"), rx("{h}.ethernet").by(Shared)],
    ),
    (
        "xgene-enet",
        &[
            rx("{if}-rx-{n}"),
            tx("{if}-txc-{n}"),
            both("{if}-rx-txc").by(Shared),
        ],
    ),
    (
        "tsnep",
        &[
            both("{if}-txrx-{n}"),
            both("{if}-mac").by(Shared), // with queue 0
        ],
    ),
    // Others.
    // The first vector has no number, and queue 0.
    ("rtase", &[both("{if}_int{n}"), both("{if}").by(Shared)]),
    (
        "niu",
        &[
            each("{if}-{way}-{n}"),
            ctl("{if}:MAC"),
            ctl("{if}:MIF"),
            ctl("{if}:SYSERR"),
        ],
    ),
    ("renesas_eth_sw", &[ctl("rswitch: gwca{h}_rxts{h}")]),
    ("ehea", &[both("{if}-queue{n}"), ctl("{if}-aff")]),
    (
        "bna",
        &[
            rx("{if} CQ {n}").by(Rank),
            tx("{if} TXQ {n}").by(Rank),
            ctl("bna"),
        ],
    ),
    // The numbers of a driver that no row names may begin anywhere. stmmac, with a driver name a board, is
    // here.
    (
        OTHERS,
        &[
            usual("{if}{sep}{way}{sep}{n}"),
            usual("{if}{sep}{way}{n}"),
            usual("{if}{sep}{way}q{n}"),
            each("{if}{sep}{way}").by(Shared),
            // A platform device.
            each("{h}.{x}{sep}{way}{sep}{n}").by(Rank),
            each("{h}.{x}{sep}{way}{n}").by(Rank),
            each("{h}.{x}{sep}{way}q{n}").by(Rank),
            each("{h}.{x}{sep}{way}").by(Shared),
            both("{if}").by(Plain),
            ctl("{ctl}"),
        ],
    ),
];

/// Names in a device tree.
static IN_DEVICE_TREE: &[Row] = &[
    each("{way}").by(Shared),
    each("{way}{sep}irq").by(Shared),
    each("{way}{n}").by(Rank),
    each("{way}q{n}").by(Rank),
    each("{way}{sep}{n}").by(Rank),
    ctl("{control}"),
];

#[cfg(test)]
mod tests;
