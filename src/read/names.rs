//! The names of interrupt actions: one table of how drivers name their vectors.
//!
//! Names are one of three sources; netlink and the order of a device's vectors are the others. A name does not show
//! which interface the vector belongs to: the caller knows that it belongs to the device, compares the interface or the
//! address in the name, and sees all vectors of the device. This module considers one name alone.

mod pattern;

use crate::machine::Role;

use pattern::{Fit, fit};

use Numbering::{Mlx4, Plain, Rank, Shared, Tg3, TxThenRx};
use Role::{Combined, Control, Rdma, Rx, Tx};

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
    /// data vector, else control. Drivers that name every vector alike (atlantic, lan743x, mvpp2) are out of
    /// reach here: the caller sees several of these on one device and does not guess.
    Plain,
    /// tg3's `eth0-2`: vector 0 is link and transmit, vectors 1.. are the receive (or combined) queues 0...
    Tg3,
    /// mlx4's `mlx4-3@...`: the number of a completion event queue, from 1. Each port of the function has an equal
    /// part of them; the caller, who knows the ports, has found the port and the number in its part.
    Mlx4,
    /// One vector serves all queues of the role.
    Shared,
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
    /// The PCI address inside the action as written; gve cuts its end off from block 100 on.
    pub address: Option<&'a str>,
}

/// The meaning of `action` for `driver`, the name of the bus driver as in sysfs (`mlx4_core`, `virtio_net`, `ixgbe`;
/// `None` if unknown).
///
/// A driver that is not in the table is expected to follow the common patterns. Names that contain their driver
/// (`mlx5_comp3@pci:...`) are read by that driver's patterns. `None` is a name that matches no pattern.
pub fn classify<'a>(driver: Option<&str>, action: &'a str) -> Option<ActionName<'a>> {
    DriverPatterns::of(driver).classify(action)
}

/// How one driver names its vectors: the rows of the table to look through for each of its names.
#[derive(Debug)]
pub(crate) struct DriverPatterns(Vec<&'static Row>);

impl DriverPatterns {
    /// That of a driver, as [`classify`] takes it.
    pub(crate) fn of(driver: Option<&str>) -> Self {
        let is_own = |row: &&Row| row.drivers.split(' ').any(|name| Some(name) == driver);
        let mut rows: Vec<&Row> = TABLE.iter().filter(is_own).collect();
        if rows.is_empty() {
            // Names may begin with their driver's name. Sub-functions share their parents' names.
            let telling = |row: &Row| !row.text.starts_with('{') && row.drivers != "mlx5_core.sf";
            let general = TABLE.iter();
            rows = general
                .filter(|row| row.drivers.is_empty() || telling(row))
                .collect();
        }
        Self(rows)
    }

    /// As [`classify`].
    pub(crate) fn classify<'a>(&self, action: &'a str) -> Option<ActionName<'a>> {
        let (row, found) = self.pick(action)?;
        Some(ActionName {
            role: row.role,
            numbering: row.numbering,
            number: found.number,
            interface: found.interface,
            address: found.address,
        })
    }

    /// The row that fits best, and the match.
    fn pick<'a>(&self, action: &'a str) -> Option<(&'static Row, Fit<'a>)> {
        let fits = self.0.iter().filter_map(|row| {
            let is_cut = row.cut > 0 && action.len() == row.cut;
            Some((*row, fit(row.text, action, is_cut)?))
        });
        // The first of those that fit equally well.
        fits.rev()
            .max_by_key(|(row, found)| (!row.role.is_queue(), found.literals))
    }
}

/// A pattern of the names of some drivers; [`pattern`] has its placeholders. The order of the rows does not matter: an
/// RDMA or control row wins over a queue row, and then the row with more literal text wins.
#[derive(Debug, Clone, Copy)]
struct Row {
    /// Names of drivers as in sysfs, a blank between two; none for the drivers that no row names.
    drivers: &'static str,
    text: &'static str,
    role: Role,
    numbering: Numbering,
    /// The length in bytes at which the driver truncates the name; 0 for never.
    cut: usize,
}

const fn row(
    drivers: &'static str,
    pattern: &'static str,
    role: Role,
    numbering: Numbering,
) -> Row {
    Row {
        drivers,
        text: pattern,
        role,
        numbering,
        cut: 0,
    }
}

const fn both(drivers: &'static str, pattern: &'static str) -> Row {
    row(drivers, pattern, Combined, Numbering::Queue)
}

const fn rx(drivers: &'static str, pattern: &'static str) -> Row {
    row(drivers, pattern, Rx, Numbering::Queue)
}

const fn tx(drivers: &'static str, pattern: &'static str) -> Row {
    row(drivers, pattern, Tx, Numbering::Queue)
}

/// A vector for RDMA completions.
const fn rdma(drivers: &'static str, pattern: &'static str) -> Row {
    row(drivers, pattern, Rdma, Numbering::Queue)
}

const fn ctl(drivers: &'static str, pattern: &'static str) -> Row {
    row(drivers, pattern, Control, Numbering::None)
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
const INTEL: &str = "alx amd-xgbe dwc-xlgmac e1000e fm10k igb igbvf igc ixgbe ixgbevf";
const ICE: &str = "ice ice.sf";
const IRDMA: &str = "i40e iavf ice idpf";
const BNXT: &str = "bnge bnxt_en";
const MLX4: &str = "mlx4_core mlx4_en";
const SFC: &str = "sfc sfc_ef100 sfc_falcon sfc_siena";
const VIRTIO: &str = "virtio_net virtio-pci";
const NICVF: &str = "nicvf thunder-nicvf";
const OTX2: &str = "rvu_nicpf rvu_nicvf";
const OCTEP: &str = "octeon_ep octeon_ep_vf";
const NFP: &str = "nfp nfp_netvf";
const HINIC: &str = "hinic hinic3";
const WANGXUN: &str = "ngbe ngbevf txgbe txgbevf";
const ENETC: &str = "fsl_enetc fsl_enetc_vf nxp_enetc4";
const LIQUIDIO: &str = "LiquidIO LiquidIO_VF";

/// Drivers that give a vector the bare interface name, always or when they have but one.
const BARE: &str = "8139cp 8139too alx amd-xgbe atlantic b44 be2net bcmgenet bgmac-enet bnx2 bnx2x cxgb3 \
    cxgb4 dwc-xlgmac e1000 e1000e enic fbnic fm10k gem ibmveth igb igbvf igc ixgbe ixgbevf macb mvneta mvpp2 \
    ngbe ngbevf niu r8125 r8168 r8169 rtase sfc sfc_ef100 sfc_falcon sfc_siena tg3 tn40xx txgbe txgbevf vif \
    vmxnet3";

static TABLE: &[Row] = &[
    row(BARE, "{if}", Combined, Plain),
    // igb and its kin number queues, ixgbe and its kin vectors; the two differ where a vector has several.
    both(INTEL, "{if}-TxRx-{n}"),
    rx(INTEL, "{if}-rx-{n}"),
    tx(INTEL, "{if}-tx-{n}"),
    ctl(INTEL, "{if}-unused"),
    ctl("amd-xgbe", "{if}-pcs"),
    ctl("amd-xgbe", "{if}-ecc"),
    ctl("amd-xgbe", "{if}-i2c"),
    both(WANGXUN, "{if}-TxRx-{n}").by(Rank),
    ctl(WANGXUN, "txgbe-link-irq"),
    both("fbnic", "{if}-TxRx-{n}"),
    tx("fbnic", "{if}-Tx-{n}"),
    ctl("fbnic", "{pci}"),
    // After the address: misc, ll_ts, and the vectors of the flow director, which look like queues.
    both("i40e", "i40e-{if}-TxRx-{n}"),
    rx("i40e", "i40e-{if}-rx-{n}"),
    tx("i40e", "i40e-{if}-tx-{n}"),
    ctl("i40e", "i40e-{pci}:{x}"),
    both("iavf", "iavf-{if}-TxRx-{n}"),
    rx("iavf", "iavf-{if}-rx-{n}"),
    tx("iavf", "iavf-{if}-tx-{n}"),
    ctl("iavf", "iavf-{pci}:{x}"),
    both(ICE, "ice-{if}-TxRx-{n}"),
    both(ICE, "ice-{if}-TxRx-{n}-{h}"), // two queues on a vector; the first counts
    rx(ICE, "ice-{if}-rx-{n}"),
    tx(ICE, "ice-{if}-tx-{n}"),
    ctl(ICE, "ice-{pci}:{x}"),
    both("idpf", "idpf-{if}-TxRx-{n}").by(Rank),
    rx("idpf", "idpf-{if}-Rx-{n}").by(Rank),
    tx("idpf", "idpf-{if}-Tx-{n}").by(Rank),
    ctl("idpf", "idpf-Mailbox-{h}"),
    ctl(IRDMA, "irdma{x}"),
    rdma(IRDMA, "irdma-{x}-CEQ-{n}"),
    // It also signals asynchronous events.
    rdma(IRDMA, "irdma-{x}-AEQCEQ-{n}"),
    // Linux 6.1 and older give no number.
    rdma(IRDMA, "CEQ{n}").cut(3),
    rdma(IRDMA, "AEQCEQ{n}").cut(6),
    // Broadcom.
    both(BNXT, "{if}-TxRx-{n}").cut(17),
    rx(BNXT, "{if}-rx-{n}").by(Rank).cut(17),
    tx(BNXT, "{if}-tx-{n}").by(Rank).cut(17),
    rdma(BNXT, "bnxt_re-nq-{n}@pci:{pci}"),
    ctl(BNXT, "bnxt_re-{x}@pci:{pci}"),
    rdma(BNXT, "bnxt_qplib_nq-{n}"),
    ctl(BNXT, "bnxt_qplib_{x}"),
    both("bnx2", "{if}-{n}"),
    both("bnx2x", "{if}-fp-{n}"),
    both("tg3", "{if}-txrx-{n}").by(Rank).cut(15),
    rx("tg3", "{if}-rx-{n}").by(Rank).cut(15),
    tx("tg3", "{if}-tx-{n}").by(Rank).cut(15),
    both("tg3", "{if}-{n}").by(Tg3),
    // Mellanox. The vectors that a function lends to its sub-functions (or has itself, as seen from there) carry
    // queues, but none of this interface.
    both(MLX4, "mlx4-{n}@{pci}").by(Mlx4),
    both(MLX4, "{if}-{n}"),
    rx(MLX4, "{if}-rx-{n}"),
    both(MLX4, "mlx4_core@pci:{pci}").by(Shared),
    ctl(MLX4, "mlx4-async@pci:{pci}"),
    rdma(MLX4, "mlx4-comp-{n}@pci:{pci}"),
    // A port and a number of the port.
    rdma(MLX4, "mlx4-ib-{h}-{n}@{x}").by(Rank),
    both("mlx5_core", "mlx5_comp{n}@pci:{pci}"),
    both("mlx5_core", "mlx5_combined{h}@pci:{pci}").by(Shared),
    ctl("mlx5_core", "mlx5_async{x}@pci:{pci}"),
    ctl("mlx5_core", "mlx5_{x}_eq@pci:{pci}"),
    ctl("mlx5_core", "mlx5_sf_{x}@pci:{pci}"),
    both("mlx5_core.sf", "mlx5_sf_comp{n}@pci:{pci}").by(Rank),
    ctl("mlx5_core.sf", "mlx5_sf_ctrl{h}@pci:{pci}"),
    ctl("mlx5_core.sf", "mlx5_comp{h}@pci:{pci}"),
    ctl("mlx5_core.sf", "mlx5_async{x}@pci:{pci}"),
    // Clouds and hypervisors.
    both("ena", "{if}-Tx-Rx-{n}"),
    ctl("ena", "ena-mgmnt@pci:{pci}"),
    rdma("ena efa", "efa-comp{n}@pci:{pci}"),
    ctl("ena efa", "efa-{x}@pci:{pci}"),
    rdma("erdma", "erdma-ceq{n}@pci:{pci}"),
    ctl("erdma", "erdma-common@pci:{pci}"),
    both("gve gvnic", "gve-ntfy-blk{n}@pci:{pci}").by(TxThenRx),
    both("gve gvnic", "{if}-ntfy-block.{n}").by(TxThenRx),
    ctl("gve gvnic", "gve-mgmnt@pci:{pci}"),
    ctl("gve gvnic", "{if}-mgmnt"),
    both("mana", "mana_q{n}@pci:{pci}"),
    row("mana", "mana_intr", Combined, Plain),
    ctl("mana", "mana_hwc@pci:{pci}"),
    // The dot distinguishes a network queue from `virtio5-input`, a random number generator.
    rx(VIRTIO, "virtio{h}-input.{n}"),
    tx(VIRTIO, "virtio{h}-output.{n}"),
    both(VIRTIO, "virtio{h}-virtqueues").by(Shared),
    both(VIRTIO, "virtio{h}").by(Shared),
    ctl(VIRTIO, "virtio{h}-config"),
    ctl(VIRTIO, "virtio{h}-control"),
    both("vmxnet3", "{if}-rxtx-{n}").by(Rank),
    rx("vmxnet3", "{if}-rx-{n}").by(Rank),
    tx("vmxnet3", "{if}-tx-{n}").by(Rank),
    ctl("vmxnet3", "{if}-event-{h}"),
    rx("vif", "vif{h}-q{n}-rx"),
    tx("vif", "vif{h}-q{n}-tx"),
    rx("vif", "{if}-q{n}-rx"),
    tx("vif", "{if}-q{n}-tx"),
    rx("vif", "{if}-rx").by(Shared),
    tx("vif", "{if}-tx").by(Shared),
    rx("ibmvnic", "ibmvnic-{h}-rx{n}"),
    tx("ibmvnic", "ibmvnic-{h}-tx{n}"),
    ctl("ibmvnic", "ibmvnic-{h}"),
    // HiSilicon, Huawei.
    both("hns3", "hns3-{pci}-TxRx-{n}").by(Rank),
    rx("hns3", "hns3-{pci}-Rx-{n}").by(Rank),
    tx("hns3", "hns3-{pci}-Tx-{n}").by(Rank),
    both("hns3", "{if}-TxRx-{n}").by(Rank),
    ctl("hns3", "hclge-misc-{pci}"),
    ctl("hns3", "hclgevf-misc-{pci}"),
    rdma("hns3", "hns-{pci}-ceq-{n}"),
    rdma("hns3", "hns-ceq-{n}"),
    ctl("hns3", "hns-{x}"),
    rx("hns-nic", "{if}-rx{n}"),
    tx("hns-nic", "{if}-tx{n}"),
    rx(HINIC, "{if}_rxq{n}"),
    tx(HINIC, "{if}_txq{n}"),
    both(HINIC, "{if}_qp{n}"),
    ctl(HINIC, "hinic{x}_aeq{h}@pci:{pci}"),
    ctl(HINIC, "hinic{x}_ceq{h}@pci:{pci}"),
    // Solarflare; each XDP channel belongs to a CPU and is no queue of the interface.
    both(SFC, "{if}-{n}"),
    rx(SFC, "{if}-rx-{n}"),
    tx(SFC, "{if}-tx-{n}"),
    ctl(SFC, "{if}-xdp-{h}"),
    ctl(SFC, "{if}-ptp"),
    ctl(SFC, "{if}-mae"),
    ctl(SFC, "{if}-iov"),
    // Chelsio, Emulex, Cisco.
    rx("cxgb4", "{if}-Rx{n}"),
    both("cxgb4vf", "{if}-{n}"),
    both("cxgb3", "{if}-{n}").by(Rank),
    ctl("cxgb4 cxgb4vf", "{if}-FWeventq"),
    ctl("cxgb4", "{if}-mirrorrxq{h}"),
    ctl("cxgb4", "{if}-eorxq{h}"),
    rdma("cxgb4", "{if}-iw_cxgb4{n}"),
    ctl("cxgb4", "{if}-cxgb4i{h}"),
    both("be2net", "{if}-q{n}"),
    rdma("be2net", "ocrdma{h}-{n}"),
    rx("enic", "{if}-rx-{n}"),
    tx("enic", "{if}-tx-{n}"),
    ctl("enic", "{if}-err"),
    ctl("enic", "{if}-notify"),
    // QLogic. The last receive ring of qlcnic shares its vector with transmit ring 0.
    both("qede", "{if}-fp-{n}"),
    both("qede", "{h}:{h}.{h}").by(Shared),
    ctl("qede", "sp-{h}-{h}:{h}.{h}"),
    rdma("qede", "qedr{n}@pci:{pci}"),
    rx("qlcnic", "{if}-rx-{n}"),
    rx("qlcnic", "{if}-tx-0-rx-{n}"),
    tx("qlcnic", "{if}-tx-{n}"),
    both("qlcnic", "qlcnic").by(Shared),
    ctl("qlcnic", "qlcnic-MB"),
    both("netxen_nic", "{if}[{n}]"),
    // Marvell, Cavium.
    both(NICVF, "{if}-rxtx-{n}"),
    ctl(NICVF, "{if}-sq-{h}"),
    ctl(NICVF, "{if}-rbdr-{h}"),
    ctl(NICVF, "{if}-qset-err-{h}"),
    ctl(NICVF, "NICVF Mbox"),
    both(OTX2, "{if}-rxtx-{n}"),
    ctl(OTX2, "{if}-qerr"),
    ctl(OTX2, "RVU{x}"),
    both(LIQUIDIO, "LiquidIO{h}-{x}-rxtx-{n}"),
    ctl(LIQUIDIO, "LiquidIO{h}-{x}-aux"),
    both(OCTEP, "{if}-q{n}"),
    ctl(OCTEP, "{if}-epf_{x}"),
    both("sky2", "sky2@pci:{pci}").by(Shared),
    both("skge", "skge@pci:{pci}").by(Shared),
    // Netronome, Pensando, Fungible.
    both(NFP, "{if}-rxtx-{n}"),
    ctl(NFP, "{if}-lsc"),
    ctl(NFP, "{if}-exn"),
    both("ionic", "ionic-{if}-L{h}-rx{n}"),
    tx("ionic", "ionic-{if}-L{h}-tx{n}"),
    ctl("ionic", "ionic-{x}-L{h}-admin{x}"),
    ctl("ionic", "ionic-{x}-L{h}-notif{x}"),
    ctl("ionic", "ionic-{x}-L{h}-hwst{x}"),
    ctl("ionic pds_core", "pds_core-{x}"),
    rx("funeth", "{if}-rx-{n}"),
    tx("funeth", "{if}-tx-{n}"),
    ctl("funeth", "{pci}-adminq"),
    ctl("funeth", "{pci}-q[{h}]"),
    // Systems on a chip. A DPAA portal belongs to a CPU and serves every interface there.
    both(ENETC, "{if}-rxtx{n}"),
    ctl(ENETC, "{if}-vfmsg{x}"),
    ctl("fsl_dpaa2_eth", "dpio.{h}"),
    ctl("fsl_dpaa2_eth", "dpni.{h}"),
    ctl("fsl_dpa", "QMan portal {h}"),
    rx("fsl-gianfar", "{if}_g{n}_rx"),
    tx("fsl-gianfar", "{if}_g{n}_tx"),
    ctl("fsl-gianfar", "{if}_g{h}_er"),
    row("fec mtk_soc_eth brcm-asp2", "{h}.ethernet", Combined, Plain),
    row("lan743x", "lan743x", Combined, Plain),
    both("netsec", "netsec").by(Shared),
    rx("am65-cpsw-nuss", "{x}-rx{n}"),
    tx("am65-cpsw-nuss", "{x}-tx{n}"),
    rx("xgene-enet", "{if}-rx-{n}"),
    tx("xgene-enet", "{if}-txc-{n}"),
    both("xgene-enet", "{if}-rx-txc").by(Shared),
    both("tsnep", "{if}-txrx-{n}"),
    row("tsnep", "{if}-mac", Combined, Plain), // with queue 0
    // Others.
    both("rtase", "{if}_int{n}"),
    rx("niu", "{if}-rx-{n}"),
    tx("niu", "{if}-tx-{n}"),
    ctl("niu", "{if}:MAC"),
    ctl("niu", "{if}:MIF"),
    ctl("niu", "{if}:SYSERR"),
    both("ehea", "{if}-queue{n}"),
    ctl("ehea", "{if}-aff"),
    rx("bna", "{if} CQ {n}").by(Rank),
    tx("bna", "{if} TXQ {n}").by(Rank),
    ctl("bna", "bna"),
    // The numbers of a driver that no row names may begin anywhere. stmmac, with a driver name a board, is
    // here.
    both(OTHERS, "{if}-TxRx-{n}").by(Rank),
    both(OTHERS, "{if}-Tx-Rx-{n}").by(Rank),
    both(OTHERS, "{if}-rxtx-{n}").by(Rank),
    rx(OTHERS, "{if}-rx-{n}").by(Rank),
    tx(OTHERS, "{if}-tx-{n}").by(Rank),
    rx(OTHERS, "{if}:rx-{n}").by(Rank),
    tx(OTHERS, "{if}:tx-{n}").by(Rank),
    row(OTHERS, "{if}", Combined, Plain),
    ctl(OTHERS, "{ctl}"),
];

#[cfg(test)]
mod tests;
