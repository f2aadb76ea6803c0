//! Queues and their IRQs as the kernel reports them (`Documentation/netlink/specs/netdev.yaml`, Linux 6.8). A queue has
//! a NAPI instance, and that has an IRQ; each is absent if not reported.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use self::Direction::{Rx, Tx};
use crate::machine::channels::queue_number;

/// The kernel's answer about one interface.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Netdev {
    /// Without transmit queues for XDP.
    pub queues: Vec<NetdevQueue>,
    pub napis: Vec<Napi>,
}

/// A queue and the NAPI instance that polls it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct NetdevQueue {
    pub direction: Direction,
    /// N of `rx-N` or `tx-N`.
    #[serde(deserialize_with = "queue_number")]
    pub id: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub napi: Option<u32>,
    /// Takes the packets instead of the kernel's stack (Linux 6.12).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<QueueUser>,
}

#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, thiserror::Error,
)]
#[serde(rename_all = "kebab-case")]
pub enum QueueUser {
    #[error("AF_XDP sockets")]
    AfXdp,
    #[error("io_uring")]
    IoUring,
    /// `Documentation/networking/devmem.rst`.
    #[error("device memory")]
    DeviceMemory,
}

/// The direction of a queue's packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    Rx,
    Tx,
}

impl Direction {
    pub fn name(self) -> &'static str {
        match self {
            Self::Rx => "rx",
            Self::Tx => "tx",
        }
    }
}

/// A NAPI instance, which polls queues after an interrupt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Napi {
    /// Valid within this answer only.
    pub id: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub irq: Option<u32>,
    /// The thread of threaded NAPI; `None` in softirq context.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// The thread polls all the time (Linux 6.19): its queues get no interrupts.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub busy_polls: bool,
    /// Of this instance (Linux 6.13); 0 if not reported.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub defer_hard_irqs: u32,
    /// Nanoseconds; 0 if not reported.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub gro_flush_timeout: u32,
    /// Nanoseconds; 0 if not reported.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub irq_suspend_timeout: u32,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde's form
fn is_zero(number: &u32) -> bool {
    *number == 0
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IrqQueues {
    pub rx: BTreeSet<u32>,
    pub tx: BTreeSet<u32>,
}

impl Netdev {
    /// Sorts, as the kernel lists the newest NAPI first, and removes duplicates. IRQ 0 and process 0 mean none.
    pub(crate) fn in_order(mut self) -> Self {
        for napi in &mut self.napis {
            napi.irq = napi.irq.filter(|&irq| irq != 0);
            napi.pid = napi.pid.filter(|&pid| pid != 0);
        }
        self.queues.sort_unstable();
        self.queues.dedup();
        self.napis.sort_unstable();
        self.napis.dedup();
        self
    }

    fn napi_of(&self, queue: &NetdevQueue) -> Option<&Napi> {
        self.napis.iter().find(|napi| Some(napi.id) == queue.napi)
    }

    #[doc(hidden)]
    pub fn by_irq(&self) -> BTreeMap<u32, IrqQueues> {
        let mut found: BTreeMap<u32, IrqQueues> = BTreeMap::new();
        for queue in &self.queues {
            if let Some(irq) = self.napi_of(queue).and_then(|napi| napi.irq) {
                let of_irq = found.entry(irq).or_default();
                match queue.direction {
                    Rx => of_irq.rx.insert(queue.id),
                    Tx => of_irq.tx.insert(queue.id),
                };
            }
        }
        found
    }

    #[doc(hidden)]
    pub fn irq_of(&self, direction: Direction, id: u32) -> Option<u32> {
        self.napi_of(
            self.queues
                .iter()
                .find(|queue| queue.direction == direction && queue.id == id)?,
        )?
        .irq
    }

    /// Receive queues whose packets bypass the kernel's stack.
    pub(crate) fn taken(&self) -> impl Iterator<Item = (u32, QueueUser)> {
        self.queues
            .iter()
            .filter(|queue| queue.direction == Rx)
            .filter_map(|queue| Some((queue.id, queue.user?)))
    }

    /// A queue may get packets without interrupts.
    pub(crate) fn may_be_silent(&self, id: u32) -> bool {
        self.queues.iter().any(|queue| {
            queue.id == id
                && (queue.user.is_some()
                    || self
                        .napi_of(queue)
                        .is_some_and(|napi| napi.busy_polls || napi.irq_suspend_timeout > 0))
        })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.queues.is_empty() && self.napis.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"
        {"queues":[
        {"direction":"tx","id":1},
        {"direction":"tx","id":0,"napi":8193},
        {"direction":"rx","id":1,"napi":8194},
        {"direction":"rx","id":0,"napi":8193}],
        "napis":[{"id":8195,"irq":0},{"id":8194,"irq":46,"pid":612},{"id":8193,"irq":45,"pid":0},{"id":8195}]}"#;

    fn answer(text: &str) -> Netdev {
        serde_json::from_str::<Netdev>(text).unwrap().in_order()
    }

    #[test]
    fn an_answer_in_any_order_is_the_same_answer() {
        let answer = answer(TEXT);
        let napi = |id, irq, pid| Napi {
            id,
            irq,
            pid,
            ..Napi::default()
        };
        assert_eq!(
            answer.napis,
            [
                napi(8193, Some(45), None),
                napi(8194, Some(46), Some(612)),
                napi(8195, None, None)
            ]
        );
        let text = serde_json::to_string(&answer).unwrap();
        assert!(text.ends_with(r#"{"id":8195}]}"#), "{text}");
        assert_eq!(self::answer(&text), answer);
    }

    #[test]
    fn queues_meet_their_irq_by_way_of_the_napi() {
        let answer = answer(TEXT);
        let queues = |rx: &[u32], tx: &[u32]| IrqQueues {
            rx: rx.iter().copied().collect(),
            tx: tx.iter().copied().collect(),
        };
        assert_eq!(
            answer.by_irq(),
            BTreeMap::from([(45, queues(&[0], &[0])), (46, queues(&[1], &[]))])
        );
        assert_eq!(answer.irq_of(Direction::Rx, 1), Some(46));
        assert_eq!(
            (
                answer.irq_of(Direction::Tx, 1),
                answer.irq_of(Direction::Rx, 2)
            ),
            (None, None)
        );
        let both = self::answer(
            r#"{"queues":[{"direction":"rx","id":0,"napi":1},{"direction":"tx","id":0,"napi":2}],
                "napis":[{"id":1,"irq":98},{"id":2,"irq":98}]}"#,
        );
        assert_eq!(both.by_irq(), BTreeMap::from([(98, queues(&[0], &[0]))]));
    }

    #[test]
    fn what_is_no_answer_is_refused() {
        for (now, then) in [
            ("\"rx\",\"id\":0", "\"up\",\"id\":0"),
            ("\"id\":0,", "\"id\":65536,"),
            ("\"id\":0,", "\"id\":-1,"),
            ("\"id\":0,", ""),
            ("\"irq\":46", "\"irq\":4294967296"),
            ("\"irq\":46", "\"irq\":\"none\""),
        ] {
            let bad = TEXT.replace(now, then);
            assert!(
                bad != TEXT && serde_json::from_str::<Netdev>(&bad).is_err(),
                "{bad}"
            );
        }
    }
}
