//! Which queue has which IRQ, as the kernel reports it: the generic netlink family `netdev`
//! (`Documentation/netlink/specs/netdev.yaml`, Linux 6.8 and later).
//!
//! A queue has a NAPI instance and a NAPI instance has an IRQ. In a tree the answer is a text, a fact per line:
//!
//! ```text
//! queue rx 0 napi 8193
//! queue tx 0 napi 8193
//! napi 8193 irq 45 pid 0
//! ```
//!
//! `napi`, `irq` and `pid` (the thread of threaded NAPI) are absent where the kernel does not report them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use crate::cpuset::shown;
use crate::machine::channels::MAX_QUEUES;

/// The kernel's answer about one interface.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Netdev {
    /// The queues, without transmit queues for XDP.
    pub queues: Vec<NetdevQueue>,
    pub napis: Vec<Napi>,
}

/// A queue and the NAPI instance that polls it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct NetdevQueue {
    pub direction: Direction,
    /// N of `rx-N` or `tx-N`.
    pub id: u32,
    pub napi: Option<u32>,
}

/// The direction of a queue's packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Direction {
    Rx,
    Tx,
}

/// A NAPI instance: what polls queues after an interrupt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Napi {
    /// The kernel's number, which is valid within this answer only.
    pub id: u32,
    /// The IRQ, where the driver reports it.
    pub irq: Option<u32>,
    /// The thread of threaded NAPI; `None` if it runs in softirq context.
    pub pid: Option<u32>,
}

/// The queues that one IRQ serves.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IrqQueues {
    /// Receive queues.
    pub rx: BTreeSet<u32>,
    /// Transmit queues.
    pub tx: BTreeSet<u32>,
}

/// A line of a recorded answer that could not be parsed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "line {line}: `{text}` is not a netlink fact; expected `queue rx 0 napi 8193` or `napi 8193 irq 45 pid 0`"
)]
pub struct NetdevError {
    /// The line number, from 1.
    line: usize,
    text: String,
}

impl Netdev {
    /// Parses the recorded form.
    #[doc(hidden)]
    pub fn parse(text: &str) -> Result<Self, NetdevError> {
        let mut answer = Self::default();
        for (line, text) in (1..).zip(text.lines()) {
            answer.add(text).ok_or_else(|| NetdevError {
                line,
                text: shown(text),
            })?;
        }
        Ok(answer.in_order())
    }

    /// Sorts the answer as in the recorded form; the kernel lists the newest NAPI first.
    pub(crate) fn in_order(mut self) -> Self {
        self.queues.sort_unstable();
        self.queues.dedup();
        self.napis.sort_unstable();
        self.napis.dedup();
        self
    }

    fn add(&mut self, line: &str) -> Option<()> {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let number = |text: &str| text.parse::<u32>().ok();
        let queue = |text: &str| number(text).filter(|id| *id < MAX_QUEUES);
        match words[..] {
            ["queue", direction, id, ref rest @ ..] => {
                let direction = match direction {
                    "rx" => Direction::Rx,
                    "tx" => Direction::Tx,
                    _ => return None,
                };
                let napi = match rest {
                    [] => None,
                    ["napi", napi] => Some(number(napi)?),
                    _ => return None,
                };
                self.queues.push(NetdevQueue {
                    direction,
                    id: queue(id)?,
                    napi,
                });
            }
            ["napi", id, ref rest @ ..] => {
                let (irq, pid) = match rest {
                    [] => (None, None),
                    ["irq", irq] => (Some(number(irq)?), None),
                    ["pid", pid] => (None, Some(number(pid)?)),
                    ["irq", irq, "pid", pid] => (Some(number(irq)?), Some(number(pid)?)),
                    _ => return None,
                };
                self.napis.push(Napi::new(number(id)?, irq, pid));
            }
            _ => return None,
        }
        Some(())
    }

    /// The recorded form.
    #[doc(hidden)]
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        let field = |text: &mut String, name: &str, value: Option<u32>| {
            if let Some(value) = value {
                let _ = write!(text, " {name} {value}");
            }
        };
        for queue in &self.queues {
            let direction = if queue.direction == Direction::Rx {
                "rx"
            } else {
                "tx"
            };
            let _ = write!(text, "queue {direction} {}", queue.id);
            field(&mut text, "napi", queue.napi);
            text.push('\n');
        }
        for napi in &self.napis {
            let _ = write!(text, "napi {}", napi.id);
            field(&mut text, "irq", napi.irq);
            field(&mut text, "pid", napi.pid);
            text.push('\n');
        }
        text
    }

    /// The queues of each IRQ that serves any.
    #[doc(hidden)]
    pub fn by_irq(&self) -> BTreeMap<u32, IrqQueues> {
        let irqs: BTreeMap<u32, u32> = self
            .napis
            .iter()
            .filter_map(|napi| Some((napi.id, napi.irq?)))
            .collect();
        let mut found: BTreeMap<u32, IrqQueues> = BTreeMap::new();
        for queue in &self.queues {
            if let Some(&irq) = queue.napi.and_then(|napi| irqs.get(&napi)) {
                let of_irq = found.entry(irq).or_default();
                match queue.direction {
                    Direction::Rx => of_irq.rx.insert(queue.id),
                    Direction::Tx => of_irq.tx.insert(queue.id),
                };
            }
        }
        found
    }

    /// The IRQ of a queue, where it is reported.
    #[doc(hidden)]
    pub fn irq_of(&self, direction: Direction, id: u32) -> Option<u32> {
        let queue = self
            .queues
            .iter()
            .find(|queue| queue.direction == direction && queue.id == id)?;
        self.napis
            .iter()
            .find(|napi| Some(napi.id) == queue.napi)?
            .irq
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.queues.is_empty() && self.napis.is_empty()
    }
}

impl Napi {
    /// Process 0 means no thread. IRQ 0 means none.
    pub(crate) fn new(id: u32, irq: Option<u32>, pid: Option<u32>) -> Self {
        Self {
            id,
            irq: irq.filter(|&irq| irq != 0),
            pid: pid.filter(|&pid| pid != 0),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TEXT: &str = "queue rx 0 napi 8193\nqueue rx 1 napi 8194\nqueue tx 0 napi 8193\nqueue tx 1\n\
                        napi 8193 irq 45\nnapi 8194 irq 46 pid 612\nnapi 8195\n";

    #[test]
    fn the_recorded_form_is_read_back() {
        let answer = Netdev::parse(TEXT).unwrap();
        assert_eq!(answer.to_text(), TEXT);
        assert_eq!(
            answer.napis[1],
            Napi {
                id: 8194,
                irq: Some(46),
                pid: Some(612)
            }
        );
        assert_eq!(
            Netdev::parse("napi 8193 irq 45 pid 0\n").unwrap().napis,
            [Napi {
                id: 8193,
                irq: Some(45),
                pid: None
            }]
        );
        assert_eq!(Netdev::parse("").unwrap(), Netdev::default());
    }

    #[test]
    fn queues_meet_their_irq_by_way_of_the_napi() {
        let found = Netdev::parse(TEXT).unwrap().by_irq();
        let set = |ids: &[u32]| ids.iter().copied().collect::<BTreeSet<_>>();
        assert_eq!(
            found,
            BTreeMap::from([
                (
                    45,
                    IrqQueues {
                        rx: set(&[0]),
                        tx: set(&[0])
                    }
                ),
                (
                    46,
                    IrqQueues {
                        rx: set(&[1]),
                        tx: set(&[])
                    }
                )
            ])
        );
        let answer = Netdev::parse(TEXT).unwrap();
        assert_eq!(answer.irq_of(Direction::Rx, 1), Some(46));
        assert_eq!(
            (
                answer.irq_of(Direction::Tx, 1),
                answer.irq_of(Direction::Rx, 2)
            ),
            (None, None)
        );
    }

    #[test]
    fn what_is_no_fact_is_named_with_its_line() {
        for bad in [
            "queue",
            "queue rx",
            "queue xx 0",
            "queue rx x",
            "queue rx 0 napi",
            "queue rx 0 irq 5",
            "queue rx 0 napi 1 more",
            "napi",
            "napi -1",
            "napi 1 irq",
            "napi 1 irq 4294967296",
            "napi 1 pid 2 irq 3",
            "port 1",
            "",
        ] {
            let error = Netdev::parse(&format!("queue rx 0\n{bad}\n")).unwrap_err();
            assert_eq!((error.line, error.text.as_str()), (2, bad));
            assert!(
                error
                    .to_string()
                    .starts_with(&format!("line 2: `{bad}` is not a netlink fact")),
                "{error}"
            );
        }
    }

    /// A capture did not read back: Linux 6.12 lists NAPIs from the newest to the oldest.
    #[test]
    fn an_answer_in_any_order_is_the_same_answer() {
        let mut lines: Vec<&str> = TEXT.lines().collect();
        lines.reverse();
        let answer = Netdev::parse(&(lines.join("\n") + "\nqueue tx 1\n")).unwrap();
        assert_eq!(answer, Netdev::parse(TEXT).unwrap());
        assert_eq!(answer.to_text(), TEXT);
    }

    proptest! {
        #[test]
        fn no_text_is_too_odd(text in "[a-z0-9 \n\t-]{0,80}|\\PC{0,60}") {
            if let Ok(answer) = Netdev::parse(&text) {
                prop_assert_eq!(Netdev::parse(&answer.to_text()).unwrap(), answer);
            }
        }
    }
}
