//! One name for every row of the table, the traps among them, and odd text.

use std::fmt::Write as _;

use super::*;

/// Driver, action, and what is to be read from it: role, numbering, number, interface.
const NAMES: &[(&str, &str, &str)] = &[
    ("r8169", "enp6s0", "combined plain - enp6s0"),
    ("igb", "eth0-TxRx-7", "combined queue 7 eth0"),
    ("igc", "eno2-rx-0", "rx queue 0 eno2"),
    ("igb", "eth3-tx-3", "tx queue 3 eth3"),
    ("igc", "eth0-unused", "control none - eth0"),
    ("ixgbe", "eth2", "combined plain - eth2"),
    ("amd-xgbe", "eth0-TxRx-1", "combined queue 1 eth0"),
    ("amd-xgbe", "eth0-pcs", "control none - eth0"),
    ("amd-xgbe", "eth0-ecc", "control none - eth0"),
    ("amd-xgbe", "eth0-i2c", "control none - eth0"),
    ("txgbe", "eth0-TxRx-5", "combined rank 5 eth0"),
    ("txgbe", "txgbe-link-irq", "control none - -"),
    ("fbnic", "eth0-TxRx-2", "combined queue 2 eth0"),
    ("fbnic", "eth0-Tx-9", "tx queue 9 eth0"),
    ("fbnic", "0000:01:00.0", "control none - -"),
    ("i40e", "i40e-ens1f0-TxRx-103", "combined queue 103 ens1f0"),
    ("i40e", "i40e-ens1f0-rx-0", "rx queue 0 ens1f0"),
    ("i40e", "i40e-ens1f0-tx-0", "tx queue 0 ens1f0"),
    ("i40e", "i40e-0000:86:00.0:misc", "control none - -"),
    (
        "iavf",
        "iavf-ens3f0v13-TxRx-3",
        "combined queue 3 ens3f0v13",
    ),
    ("iavf", "iavf-eth0-rx-1", "rx queue 1 eth0"),
    ("iavf", "iavf-eth0-tx-1", "tx queue 1 eth0"),
    ("iavf", "iavf-0000:d8:03.5:mbx", "control none - -"),
    (
        "i40evf",
        "i40evf-enp94s2f1-TxRx-3",
        "combined queue 3 enp94s2f1",
    ),
    ("i40evf", "i40evf-eth0-rx-1", "rx queue 1 eth0"),
    ("i40evf", "i40evf-eth0-tx-1", "tx queue 1 eth0"),
    ("i40evf", "i40evf-0000:5e:0a.1:mbx", "control none - -"),
    ("ice", "ice-ens2f1-TxRx-12", "combined queue 12 ens2f1"),
    ("ice", "ice-ens2f1-TxRx-0-1", "combined queue 0 ens2f1"),
    ("ice", "ice-eth0-rx-2", "rx queue 2 eth0"),
    ("ice", "ice-eth0-tx-2", "tx queue 2 eth0"),
    ("ice", "ice-0000:82:00.0:ll_ts", "control none - -"),
    ("idpf", "idpf-eth0-TxRx-1", "combined rank 1 eth0"),
    ("idpf", "idpf-eth0-Rx-4", "rx rank 4 eth0"),
    ("idpf", "idpf-eth0-Tx-9", "tx rank 9 eth0"),
    ("idpf", "idpf-Mailbox-0", "control none - -"),
    ("ice", "irdma-0000:4b:00.0-CEQ-3", "rdma queue 3 -"),
    ("idpf", "irdma-0000:4b:00.0-AEQCEQ-0", "rdma queue 0 -"),
    ("ice", "irdma-0000:4b:00.0-AEQ", "control none - -"),
    ("i40e", "CEQ", "rdma queue - -"),
    ("ice", "AEQCEQ", "rdma queue - -"),
    ("bnxt_en", "eth0-TxRx-0", "combined queue 0 eth0"),
    ("bnxt_en", "eth0-rx-0", "rx rank 0 eth0"),
    ("bnxt_en", "eth0-tx-4", "tx rank 4 eth0"),
    ("bnxt_en", "bnxt_re-nq-0@pci:0000:65:00.0", "rdma queue 0 -"),
    (
        "bnxt_en",
        "bnxt_re-creq@pci:0000:65:00.0",
        "control none - -",
    ),
    ("bnxt_en", "bnxt_qplib_nq-1", "rdma queue 1 -"),
    ("bnxt_en", "bnxt_qplib_creq", "control none - -"),
    ("bnx2", "em1-3", "combined queue 3 em1"),
    ("bnx2x", "eth0-fp-0", "combined queue 0 eth0"),
    ("tg3", "eth0-txrx-1", "combined rank 1 eth0"),
    ("tg3", "eth0-rx-4", "rx rank 4 eth0"),
    ("tg3", "eth0-tx-0", "tx rank 0 eth0"),
    ("tg3", "eth0-0", "combined tg3 0 eth0"),
    ("mlx4_core", "mlx4-3@0000:82:00.0", "combined mlx4 3 -"),
    ("mlx4_en", "eth2-0", "combined queue 0 eth2"),
    ("mlx4_core", "eth2-rx-0", "rx queue 0 eth2"),
    (
        "mlx4_core",
        "mlx4_core@pci:0000:82:00.0",
        "combined shared - -",
    ),
    (
        "mlx4_core",
        "mlx4-async@pci:0000:07:00.0",
        "control none - -",
    ),
    (
        "mlx4_core",
        "mlx4-comp-0@pci:0000:07:00.0",
        "rdma queue 0 -",
    ),
    ("mlx4_core", "mlx4-ib-1-0@0000:07:00.0", "rdma rank 0 -"),
    (
        "mlx5_core",
        "mlx5_comp7@pci:0000:17:00.0",
        "combined queue 7 -",
    ),
    (
        "mlx5_core",
        "mlx5_combined0@pci:0000:82:00.0",
        "combined shared - -",
    ),
    (
        "mlx5_core",
        "mlx5_async63@pci:0000:82:00.0",
        "control none - -",
    ),
    (
        "mlx5_core",
        "mlx5_pages_eq@pci:0000:82:00.0",
        "control none - -",
    ),
    (
        "mlx5_core",
        "mlx5_sf_comp8@pci:0000:82:00.0",
        "control none - -",
    ),
    (
        "mlx5_core.sf",
        "mlx5_sf_comp8@pci:0000:82:00.0",
        "combined rank 8 -",
    ),
    (
        "mlx5_core.sf",
        "mlx5_sf_ctrl0@pci:0000:82:00.0",
        "control none - -",
    ),
    (
        "mlx5_core.sf",
        "mlx5_comp7@pci:0000:82:00.0",
        "control none - -",
    ),
    (
        "mlx5_core.sf",
        "mlx5_async0@pci:0000:82:00.0",
        "control none - -",
    ),
    ("ena", "ens5-Tx-Rx-3", "combined queue 3 ens5"),
    ("ena", "ena-mgmnt@pci:0000:00:05.0", "control none - -"),
    ("efa", "efa-comp0@pci:0000:00:06.0", "rdma queue 0 -"),
    ("efa", "efa-mgmnt@pci:0000:00:06.0", "control none - -"),
    ("erdma", "erdma-ceq7@pci:0000:00:07.0", "rdma queue 7 -"),
    ("erdma", "erdma-common@pci:0000:00:07.0", "control none - -"),
    (
        "gve",
        "gve-ntfy-blk3@pci:0000:00:04.0",
        "combined txthenrx 3 -",
    ),
    ("gve", "eth0-ntfy-block.3", "combined txthenrx 3 eth0"),
    ("gve", "gve-mgmnt@pci:0000:00:04.0", "control none - -"),
    ("gve", "eth0-mgmnt", "control none - eth0"),
    ("mana", "mana_q0@pci:7870:00:00.0", "combined queue 0 -"),
    ("mana", "mana_msi16@pci:7870:00:00.0", "combined rank 16 -"),
    ("mana", "mana_intr", "combined plain - -"),
    ("mana", "mana_hwc@pci:7870:00:00.0", "control none - -"),
    ("virtio_net", "virtio0-input.0", "rx queue 0 -"),
    ("virtio_net", "virtio12-output.11", "tx queue 11 -"),
    ("virtio_net", "virtio1-virtqueues", "combined shared - -"),
    ("virtio_net", "virtio3", "combined shared - -"),
    ("virtio_net", "virtio0-config", "control none - -"),
    ("virtio_net", "virtio0-control", "control none - -"),
    ("vmxnet3", "eth0-rxtx-0", "combined rank 0 eth0"),
    ("vmxnet3", "eth0-rx-4", "rx rank 4 eth0"),
    ("vmxnet3", "eth0-tx-0", "tx rank 0 eth0"),
    ("vmxnet3", "eth0-event-8", "control none - eth0"),
    ("vif", "vif0-q1-rx", "rx queue 1 -"),
    ("vif", "vif0-q1-tx", "tx queue 1 -"),
    ("vif", "eth0-q3-rx", "rx queue 3 eth0"),
    ("vif", "eth0-q3-tx", "tx queue 3 eth0"),
    ("vif", "eth0-rx", "rx shared - eth0"),
    ("vif", "eth0-tx", "tx shared - eth0"),
    ("ibmvnic", "ibmvnic-30000003-rx0", "rx queue 0 -"),
    ("ibmvnic", "ibmvnic-3000000a-tx1", "tx queue 1 -"),
    ("ibmvnic", "ibmvnic-30000003", "control none - -"),
    ("hns3", "hns3-0000:7d:00.0-TxRx-14", "combined rank 14 -"),
    ("hns3", "hns3-0000:7d:00.0-Rx-0", "rx rank 0 -"),
    ("hns3", "hns3-0000:7d:00.0-Tx-0", "tx rank 0 -"),
    ("hns3", "eth0-TxRx-2", "combined rank 2 eth0"),
    ("hns3", "hclge-misc-0000:7d:00.0", "control none - -"),
    ("hns3", "hclgevf-misc-0000:7d:01.0", "control none - -"),
    ("hns3", "hns-0000:7d:00.0-ceq-3", "rdma queue 3 -"),
    ("hns3", "hns-ceq-2", "rdma queue 2 -"),
    ("hns3", "hns-0000:7d:00.0-aeq-0", "control none - -"),
    ("hns-nic", "eth0-rx15", "rx queue 15 eth0"),
    ("hns-nic", "eth0-tx0", "tx queue 0 eth0"),
    ("hinic", "eth0_rxq0", "rx queue 0 eth0"),
    ("hinic", "eth0_txq0", "tx queue 0 eth0"),
    ("hinic3", "eth0_qp0", "combined queue 0 eth0"),
    ("hinic3", "hinic3_aeq1@pci:0000:82:00.0", "control none - -"),
    ("hinic", "hinic_ceq0@pci:0000:82:00.0", "control none - -"),
    ("sfc", "eth0-0", "combined queue 0 eth0"),
    ("sfc", "eth0-rx-0", "rx queue 0 eth0"),
    ("sfc", "eth0-tx-0", "tx queue 0 eth0"),
    ("sfc", "eth0-xdp-0", "control none - eth0"),
    ("sfc_siena", "eth0-ptp", "control none - eth0"),
    ("sfc_ef100", "eth0-mae", "control none - eth0"),
    ("sfc_siena", "eth0-iov", "control none - eth0"),
    ("cxgb4", "eth0-Rx0", "rx queue 0 eth0"),
    ("cxgb4vf", "eth0-1", "combined queue 1 eth0"),
    ("cxgb3", "eth1-4", "combined rank 4 eth1"),
    ("cxgb4", "eth0-FWeventq", "control none - eth0"),
    ("cxgb4", "eth0-mirrorrxq0", "control none - eth0"),
    ("cxgb4", "eth0-eorxq0", "control none - eth0"),
    ("cxgb4", "eth0-iw_cxgb40", "rdma queue 0 eth0"),
    ("cxgb4", "eth0-cxgb4i3", "control none - eth0"),
    ("be2net", "eth0-q5", "combined queue 5 eth0"),
    ("be2net", "ocrdma0-1", "rdma queue 1 -"),
    ("enic", "eth0-rx-0", "rx queue 0 eth0"),
    ("enic", "eth0-tx-0", "tx queue 0 eth0"),
    ("enic", "eth0-err", "control none - eth0"),
    ("enic", "eth0-notify", "control none - eth0"),
    ("qede", "eth0-fp-0", "combined queue 0 eth0"),
    ("qede", "82:00.01", "combined shared - -"),
    ("qede", "sp-0-82:00.00", "control none - -"),
    ("qede", "qedr3@pci:0000:65:00.0", "rdma queue 3 -"),
    ("qlcnic", "eth0-rx-0", "rx queue 0 eth0"),
    ("qlcnic", "eth0-tx-0-rx-3", "rx queue 3 eth0"),
    ("qlcnic", "eth0-tx-1", "tx queue 1 eth0"),
    ("qlcnic", "qlcnic", "combined shared - -"),
    ("qlcnic", "qlcnic-MB", "control none - -"),
    ("netxen_nic", "eth0[0]", "combined queue 0 eth0"),
    ("nicvf", "eth0-rxtx-0", "combined queue 0 eth0"),
    ("nicvf", "eth0-sq-0", "control none - eth0"),
    ("nicvf", "eth0-rbdr-0", "control none - eth0"),
    ("nicvf", "eth0-qset-err-0", "control none - eth0"),
    ("nicvf", "NICVF Mbox", "control none - -"),
    ("rvu_nicpf", "eth0-rxtx-7", "combined queue 7 eth0"),
    ("rvu_nicvf", "eth0-qerr", "control none - eth0"),
    ("rvu_nicpf", "RVUPF0 AFPF Mbox", "control none - -"),
    ("LiquidIO", "LiquidIO0-pf0-rxtx-3", "combined queue 3 -"),
    ("LiquidIO", "LiquidIO0-pf0-aux", "control none - -"),
    ("octeon_ep", "eth0-q2", "combined queue 2 eth0"),
    ("octeon_ep", "eth0-epf_mbox_rint0", "control none - eth0"),
    ("sky2", "sky2@pci:0000:02:00.0", "combined shared - -"),
    ("skge", "skge@pci:0000:05:00.0", "combined shared - -"),
    ("nfp", "eth0-rxtx-0", "combined queue 0 eth0"),
    ("nfp", "eth0-lsc", "control none - eth0"),
    ("nfp", "eth0-exn", "control none - eth0"),
    ("ionic", "ionic-eth0-L0-rx0", "combined paired 0 eth0"),
    ("ionic", "ionic-eth0-L0-tx15", "tx queue 15 eth0"),
    ("ionic", "ionic-0000:b5:00.0-L0-admin", "control none - -"),
    ("ionic", "ionic-0000:b5:00.0-L0-notif", "control none - -"),
    ("ionic", "ionic-eth0-L0-hwsta", "control none - -"),
    ("ionic", "pds_core-0-adminq", "control none - -"),
    ("funeth", "eth0-rx-0", "rx queue 0 eth0"),
    ("funeth", "eth0-tx-0", "tx queue 0 eth0"),
    ("funeth", "0000:01:00.0-adminq", "control none - -"),
    ("funeth", "0000:01:00.0-q[2]", "control none - -"),
    ("fsl_enetc", "eth0-rxtx0", "combined queue 0 eth0"),
    ("fsl_enetc", "eth0-vfmsg", "control none - eth0"),
    ("fsl_dpaa2_eth", "dpio.7", "control none - -"),
    ("fsl_dpaa2_eth", "dpni.1", "control none - -"),
    ("fsl_dpa", "QMan portal 0", "control none - -"),
    ("fsl-gianfar", "eth0_g0_rx", "rx queue 0 eth0"),
    ("fsl-gianfar", "eth0_g1_tx", "tx queue 1 eth0"),
    ("fsl-gianfar", "eth0_g0_er", "control none - eth0"),
    ("fec", "30be0000.ethernet", "combined plain - -"),
    ("lan743x", "lan743x", "combined plain - -"),
    ("netsec", "netsec", "combined shared - -"),
    ("am65-cpsw-nuss", "8000000.ethernet-rx0", "rx queue 0 -"),
    ("am65-cpsw-nuss", "8000000.ethernet-tx7", "tx queue 7 -"),
    ("am65-cpsw-nuss", "8000000.ethernet", "rx shared - -"),
    ("xgene-enet", "eth0-rx-0", "rx queue 0 eth0"),
    ("xgene-enet", "eth0-txc-0", "tx queue 0 eth0"),
    ("xgene-enet", "eth0-rx-txc", "combined shared - eth0"),
    ("tsnep", "eth0-txrx-1", "combined queue 1 eth0"),
    ("tsnep", "eth0-mac", "combined shared - eth0"),
    ("rtase", "eth0", "combined shared - eth0"),
    ("rtase", "eth0_int1", "combined queue 1 eth0"),
    ("niu", "eth0-rx-0", "rx queue 0 eth0"),
    ("niu", "eth0-tx-0", "tx queue 0 eth0"),
    ("niu", "eth0:MAC", "control none - eth0"),
    ("niu", "eth0:MIF", "control none - eth0"),
    ("niu", "eth0:SYSERR", "control none - eth0"),
    ("ehea", "eth0-queue0", "combined queue 0 eth0"),
    ("ehea", "eth0-aff", "control none - eth0"),
    ("bna", "eth0 CQ 0", "rx rank 0 eth0"),
    ("bna", "eth0 TXQ 0", "tx rank 0 eth0"),
    ("bna", "bna", "control none - -"),
    ("r8125", "eth0-16", "combined rtl8125 16 eth0"),
    ("renesas_eth_sw", "rswitch: gwca0_rxts0", "control none - -"),
    ("forcedeth", "eth0-rx", "rx shared - eth0"),
    ("pasemi_mac", "eth0 tx", "tx shared - eth0"),
    ("forcedeth", "eth0-other", "control none - -"),
    ("", "c080000.ethernet:rxq4", "rx rank 4 -"),
    ("ipqess-edma", "c080000.ethernet:txq12", "tx rank 12 -"),
    ("", "c080000.ethernet-rx2", "rx rank 2 -"),
    ("", "c080000.ethernet-tx2", "tx rank 2 -"),
    ("", "c080000.ethernet-rx-2", "rx rank 2 -"),
    ("", "c080000.ethernet-tx-2", "tx rank 2 -"),
    ("", "c080000.ethernet-rx", "rx shared - -"),
    ("", "c080000.ethernet-tx", "tx shared - -"),
    ("", "eth0-rxq1", "rx rank 1 eth0"),
    ("", "eth0-txq1", "tx rank 1 eth0"),
    ("", "eth0_rxtxq1", "combined rank 1 eth0"),
    ("", "eth0:rx3", "rx rank 3 eth0"),
    ("", "eth0.tx3", "tx rank 3 eth0"),
    ("", "eth0_rxtx3", "combined rank 3 eth0"),
    ("", "eth0-TxRx-0", "combined rank 0 eth0"),
    ("", "ens5-Tx-Rx-0", "combined rank 0 ens5"),
    ("", "eth0-rxtx-2", "combined rank 2 eth0"),
    ("", "eth0-txrx-2", "combined rank 2 eth0"),
    ("", "eth0-rx-1", "rx rank 1 eth0"),
    ("", "eth0-tx-1", "tx rank 1 eth0"),
    ("dwc-eth-dwmac", "eth0:rx-0", "rx rank 0 eth0"),
    ("rk_gmac-dwmac", "eth0:tx-3", "tx rank 3 eth0"),
    ("a-driver-to-come", "enp1s0", "combined plain - enp1s0"),
    ("dwc-eth-dwmac", "eth0:mac", "control none - -"),
];

fn words(named: Option<ActionName>) -> String {
    let Some(named) = named else {
        return "unknown".to_owned();
    };
    let mut text = format!("{:?} {:?} ", named.role, named.numbering).to_lowercase();
    match named.number {
        Some(number) => write!(text, "{number}").unwrap(),
        None => text.push('-'),
    }
    text + " " + named.interface.unwrap_or("-")
}

fn read(driver: &str, action: &str) -> String {
    words(classify(
        Some(driver).filter(|driver| !driver.is_empty()),
        action,
    ))
}

#[track_caller]
fn expect(cases: &[(&str, &str, &str)]) {
    for (driver, action, expected) in cases {
        assert_eq!(read(driver, action), *expected, "{driver}: {action}");
    }
}

#[test]
fn names_read_as_their_drivers_mean_them() {
    expect(NAMES);
}

/// Each row with its drivers and one of its ways.
fn rows() -> impl Iterator<Item = (&'static str, &'static Row, &'static str, Role)> {
    let rows = TABLE
        .iter()
        .flat_map(|(drivers, rows)| rows.iter().map(move |row| (*drivers, row)));
    rows.flat_map(|(drivers, row)| {
        let ways = row.ways.iter();
        ways.map(move |&(way, role)| (drivers, row, way, role))
    })
}

#[test]
fn names_in_a_device_tree() {
    for (name, expected) in [
        ("rx", "rx shared - -"),
        ("tx_irq", "tx shared - -"),
        ("rx3", "rx rank 3 -"),
        ("txq-0", "unknown"),
        ("txq0", "tx rank 0 -"),
        ("tx-2", "tx rank 2 -"),
        ("pps", "control none - -"),
        ("eth_wake_irq", "control none - -"),
        ("macirq", "unknown"),
        ("int0", "unknown"),
        ("fdma", "unknown"),
    ] {
        assert_eq!(words(in_device_tree(name)), expected, "{name}");
    }
}

#[test]
fn every_row_is_hit_by_a_name() {
    let hit = |row: &Row, role: Role| {
        NAMES.iter().any(|(driver, action, _)| {
            DriverPatterns::of(Some(driver))
                .pick(action)
                .is_some_and(|(picked, of, _)| std::ptr::eq(picked, row) && of == role)
        })
    };
    let missed: Vec<_> = rows()
        .filter(|(_, row, _, role)| !hit(row, *role))
        .collect();
    assert!(
        missed.is_empty(),
        "rows without a name in the tests: {missed:#?}"
    );
}

#[test]
fn rows_are_well_formed() {
    for (drivers, row, way, role) in rows() {
        let places: Vec<&str> = row
            .text
            .split('{')
            .skip(1)
            .map(|place| place.split('}').next().unwrap())
            .collect();
        let count = |name| places.iter().filter(|place| **place == name).count();
        assert!(
            places
                .iter()
                .all(|place| ["if", "n", "pci", "h", "ctl", "x", "way", "sep"].contains(place)),
            "{row:?}"
        );
        assert!(
            row.text.is_ascii() && count("if") <= 1 && count("pci") <= 1,
            "{row:?}"
        );
        assert_eq!(count("way"), usize::from(!way.is_empty()), "{row:?}");
        let numbered = matches!(
            row.numbering,
            Numbering::Queue | Rank | TxThenRx | Tg3 | Mlx4 | Paired | Rtl8125
        );
        assert_eq!(count("n"), usize::from(numbered), "{row:?}");
        assert_eq!(
            role == Role::Control,
            row.numbering == Numbering::None,
            "{row:?}"
        );
        assert!(
            !drivers.contains("  ") && drivers.trim() == drivers,
            "{row:?}"
        );
    }
}

#[test]
fn no_two_rows_fit_equally_well() {
    for (driver, action, _) in NAMES {
        let (best, role, found) = DriverPatterns::of(Some(driver)).pick(action).unwrap();
        let of_best = |row: &Row| std::ptr::eq(row, best);
        let of_others = rows().any(|(drivers, row, ..)| drivers == OTHERS && of_best(row));
        let equals = rows().filter(|(drivers, row, way, of)| {
            let ours =
                drivers.split(' ').any(|name| name == *driver) || of_others && *drivers == OTHERS;
            let fits = fit(row.text, way, action, action.len() == row.cut);
            let same = fits.is_some_and(|fits| fits.literals == found.literals);
            ours && same && of.is_queue() == role.is_queue()
        });
        assert_eq!(equals.count(), 1, "{driver}: {action}");
    }
}

#[test]
fn control_vectors_that_look_like_queues() {
    expect(&[
        ("i40e", "i40e-0000:01:00.0:fdir-TxRx-0", "control none - -"),
        ("ice", "ice-0000:82:00.0:ctrl-TxRx-0", "control none - -"),
        ("i40e", "irdma-0000:3b:00.0-AEQ", "control none - -"),
        (
            "mlx5_core",
            "mlx5_async@pci:0000:19:00.0",
            "control none - -",
        ),
        (
            "mlx5_core",
            "mlx5_async0@pci:0000:19:00.0",
            "control none - -",
        ),
        (
            "mlx5_core",
            "mlx5_cmd_eq@pci:0000:19:00.0",
            "control none - -",
        ),
        (
            "mlx5_core",
            "mlx5_async_eq@pci:0000:19:00.0",
            "control none - -",
        ),
        (
            "mlx5_core",
            "mlx5_sf_ctrl0@pci:0000:19:00.0",
            "control none - -",
        ),
        ("nicvf", "eth0-qset-err-1", "control none - eth0"),
        ("rvu_nicpf", "RVUPF1_FLR0", "control none - -"),
        ("rvu_nicvf", "RVUVFAF Mbox", "control none - -"),
        (
            "a-driver-to-come",
            "new-0000:01:00.0:fdir-TxRx-0",
            "control none - -",
        ),
        ("a-driver-to-come", "eth0-ctrl-rx-0", "control none - -"),
        ("dwc-eth-dwmac", "eth0:safety-ce", "control none - -"),
    ]);
}

#[test]
fn names_of_other_devices_are_unknown_and_telling_names_are_not() {
    expect(&[
        ("virtio_net", "virtio5-input", "unknown"),
        ("virtio_net", "virtio3-req.0", "unknown"),
        ("virtio_net", "virtio0-cursor", "unknown"),
        ("mlx5_core", "eth0-TxRx-0", "unknown"),
        ("mlx4_core", "nvme0q1", "unknown"),
        ("i40e", "ens1f0-TxRx-0", "unknown"),
        ("ena", "eth0-Tx-Rx-", "unknown"),
        ("gve", "gve-ntfy-blk@pci:0000:00:04.0", "unknown"),
        ("igb", "PCIe PME", "unknown"),
        ("", "PCIe PME", "unknown"),
        ("", "mlx5_comp0@pci:0000:82:00.0", "combined queue 0 -"),
        ("", "", "unknown"),
        ("igb", "", "unknown"),
    ]);
}

#[test]
fn an_interface_is_captured_whole_and_as_written() {
    fn captured<'a>(driver: Option<&str>, action: &'a str) -> Option<&'a str> {
        classify(driver, action)?.interface
    }
    for interface in [
        "eth1",
        "eth10",
        "br-lan",
        "en-p0",
        "eth0.5",
        "ens1f0np0",
        "a-rx-0",
        "p@1",
        "rx-0",
        "TxRx-0",
        "wan:1",
        "ünï",
        "fifteen-bytes-1",
    ] {
        for (driver, prefix) in [("igb", ""), ("i40e", "i40e-"), ("ice", "ice-"), ("", "")] {
            let driver = Some(driver).filter(|driver| !driver.is_empty());
            let action = format!("{prefix}{interface}-TxRx-3");
            assert_eq!(captured(driver, &action), Some(interface), "{action}");
        }
        assert_eq!(
            captured(Some("vmxnet3"), &format!("{interface}-rx-12")),
            Some(interface)
        );
        assert_eq!(
            captured(Some("ena"), &format!("{interface}-Tx-Rx-0")),
            Some(interface)
        );
        assert_eq!(captured(Some("r8169"), interface), Some(interface));
    }
    for odd in [
        "sixteen-bytes-16-TxRx-0",
        "eth/0-TxRx-0",
        "eth 0-TxRx-0",
        "-TxRx-0",
    ] {
        assert_eq!(
            classify(Some("ixgbevf"), odd).filter(|named| named.number.is_some()),
            None,
            "{odd}"
        );
    }
}

#[test]
fn numbers_are_decimal_and_fit() {
    expect(&[
        ("igb", "eth0-TxRx-0", "combined queue 0 eth0"),
        ("igb", "eth0-TxRx-10", "combined queue 10 eth0"),
        ("i40e", "i40e-eth0-TxRx-65535", "combined queue 65535 eth0"),
        ("i40e", "i40e-eth0-TxRx-65536", "unknown"),
        ("i40e", "i40e-eth0-TxRx-1a", "unknown"),
        ("i40e", "i40e-eth0-TxRx--1", "unknown"),
        ("i40e", "i40e-eth0-TxRx-٣", "unknown"),
    ]);
}

#[test]
fn names_that_their_driver_cut_off_have_no_number() {
    expect(&[
        (
            "bnxt_en",
            "eno12399np0-TxRx-",
            "combined queue - eno12399np0",
        ),
        (
            "bnxt_en",
            "enp65s0f0np0-TxRx",
            "combined queue - enp65s0f0np0",
        ),
        (
            "bnxt_en",
            "enp129s0f0np0-TxR",
            "combined queue - enp129s0f0np0",
        ),
        (
            "bnxt_en",
            "enp129s0f0np0-TxRx-14",
            "combined queue 14 enp129s0f0np0",
        ),
        (
            "bnxt_en",
            "ens10f0np0-TxRx-0",
            "combined queue 0 ens10f0np0",
        ),
        ("bnxt_en", "eth0-TxRx-", "unknown"),
        ("tg3", "enp2s0f0np0-rx-", "rx rank - enp2s0f0np0"),
        ("tg3", "enp130s0f0-txrx", "combined rank - enp130s0f0"),
        ("tg3", "enp130s0f0-rx-1", "rx rank 1 enp130s0f0"),
        ("tg3", "enx001122334455", "combined plain - enx001122334455"),
        (
            "gve",
            "gve-ntfy-blk100@pci:0000:00:04.",
            "combined txthenrx 100 -",
        ),
    ]);
}

#[test]
fn roles_are_written_in_lower_case() {
    for role in [
        Role::Combined,
        Role::Rx,
        Role::Tx,
        Role::Rdma,
        Role::Control,
    ] {
        assert_eq!(serde_json::to_value(role).unwrap(), role.name());
        assert_eq!(
            serde_json::from_value::<Role>(role.name().into()).unwrap(),
            role
        );
    }
}

#[test]
fn odd_text_neither_panics_nor_leaves_the_name() {
    let odd = [
        "",
        "-",
        "{if}",
        "é",
        "\0",
        ":",
        "-TxRx-",
        "99999999999999999999",
    ];
    for (driver, action, _) in NAMES {
        for at in (0..=action.len()).step_by(2) {
            for text in odd {
                let action = format!("{}{text}{}", &action[..at], &action[at..]);
                for driver in [driver, ""] {
                    if let Some(named) = classify(Some(driver), &action) {
                        assert!(
                            named
                                .interface
                                .is_none_or(|name| action.contains(name) && name.len() <= 15)
                        );
                    }
                }
            }
        }
    }
    let long = "-TxRx-0".repeat(2000) + &"a:0".repeat(2000);
    for (driver, ..) in NAMES {
        assert_eq!(classify(Some(driver), &long), None, "{driver}");
    }
}
