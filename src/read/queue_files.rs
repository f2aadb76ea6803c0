//! An interface's queues in use and their settings (`Documentation/ABI/testing/sysfs-class-net-queues`), its RSS table
//! and ntuple filters.

use itertools::Itertools as _;

use crate::drivers::Fact;
use crate::machine::channels::MAX_QUEUES;
use crate::machine::files::queue_files;
use crate::machine::{Interface, MaskFile, RxQueue, TxQueue};
use crate::read::files::{Dir, number, number_after};
use crate::read::{Queues, ethtool};
use crate::root::{Result, Root};

/// Reads the queues of an interface below one opened directory: a rename meanwhile does not mix those of two.
pub(crate) fn read_queues(root: &Root, interface: &mut Interface, wanted: Queues) -> Result<()> {
    let name = &interface.name;
    let queues = root.dir(queue_files(name));
    (interface.rx_queues, interface.tx_queues) =
        root.with_pinned([&queues.path], || read_pinned_queues(&queues, wanted))?;
    if interface.in_other_namespace || wanted == Queues::Numbers {
        return Ok(());
    }
    if interface.has_fact(Fact::AcceleratedRfs) {
        interface.ntuple = ethtool::ntuple(root, name)?;
    }
    interface.rss = ethtool::rss(root, name)?;
    Ok(())
}

fn read_pinned_queues(queues: &Dir, wanted: Queues) -> Result<(Vec<RxQueue>, Vec<TxQueue>)> {
    let (mut rx, mut tx) = (Vec::new(), Vec::new());
    for name in queues.names()? {
        let queue = queues.dir(&name);
        let mask = |file: &str, may_be_empty: bool| match wanted {
            Queues::Numbers => Ok(None),
            _ => read_mask(&queue, file, may_be_empty),
        };
        if let Some(index) = number_after(&name, "rx-", MAX_QUEUES) {
            rx.push(RxQueue {
                index,
                rps_cpus: mask("rps_cpus", false)?,
                rps_flow_cnt: match wanted {
                    Queues::Steering => queue.read_as("rps_flow_cnt", number)?,
                    _ => None,
                },
            });
        } else if let Some(index) = number_after(&name, "tx-", MAX_QUEUES) {
            tx.push(TxQueue {
                index,
                class: String::new(),
                xps_cpus: mask("xps_cpus", true)?,
                xps_rxqs: mask("xps_rxqs", true)?,
            });
        }
    }
    // The map shows whether the device has one queue by nature, which decides on its RPS.
    if let (Queues::Numbers, [only]) = (wanted, &mut tx[..]) {
        let queue = queues.dir(&format!("tx-{}", only.index));
        only.xps_cpus = read_mask(&queue, "xps_cpus", true)?;
    }
    rx.sort_unstable_by_key(|queue| queue.index);
    tx.sort_unstable_by_key(|queue| queue.index);
    read_classes(queues, &mut tx)?;
    Ok((rx, tx))
}

/// Each traffic class is a range of queues (`netdev_set_tc_queue`): if the first and the last queue are of class 0, all
/// are. Kernels before 4.10 have no such file, and one XPS map for all classes.
fn read_classes(queues: &Dir, tx: &mut [TxQueue]) -> Result<()> {
    let class = |queue: &TxQueue| queues.read_text(&format!("tx-{}/traffic_class", queue.index));
    let tx = tx.iter_mut().filter(|tx| tx.xps_cpus.is_some());
    let mut tx = tx.collect_vec();
    if let [first, .., last] = &tx[..] {
        let ends = [class(first)?, class(last)?];
        if ends.iter().any(|class| !["", "0"].contains(&class.trim())) {
            for queue in &mut tx {
                class(queue)?.trim().clone_into(&mut queue.class);
            }
        }
    }
    Ok(())
}

/// `may_be_empty`: with a single queue the kernel refuses to read `xps_cpus`, and dumps hold an empty file.
fn read_mask(queue: &Dir, file: &str, may_be_empty: bool) -> Result<Option<MaskFile>> {
    let mask = queue.read_as(file, |text| match text.trim() {
        "" if may_be_empty => Ok(None),
        text => MaskFile::parse(text).map(Some),
    })?;
    Ok(mask.flatten())
}
