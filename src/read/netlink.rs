//! Reads from the generic netlink family `netdev` which queue has which IRQ.
//!
//! Incomplete answers are common: the family or a command is missing, the driver reports no IRQ, an interface that is
//! down has none. This is absence, never an error. In a tree the answer is read from `/nicpin/netlink/INTERFACE`.

mod unix;
mod wire;

pub(crate) use unix::UNIX_SOCKETS;
pub(crate) use unix::listening;
pub use wire::Client;
pub use wire::messages;

use crate::machine::netdev::Netdev;
use crate::read::files::read_number;
use crate::root::{FileError, Root};

/// Where a tree keeps answers of netlink.
const RECORDED: &str = "/nicpin/netlink";

/// The kernel's netlink on a live machine, the recorded answers of a tree.
#[derive(Debug)]
pub(crate) struct Netlink {
    /// `None` in a tree, and on a kernel without the family.
    client: Option<Client>,
}

impl Netlink {
    pub(crate) fn open(root: &Root) -> Self {
        Self {
            client: if root.is_real() {
                Client::open().ok()
            } else {
                None
            },
        }
    }

    /// The answer about an interface; `None` if there is none. `threaded`: whether `/sys` reports that its NAPI is.
    pub(crate) fn netdev(
        &mut self,
        root: &Root,
        interface: &str,
        threaded: bool,
    ) -> Result<Option<Netdev>, FileError> {
        let index = match &self.client {
            Some(_) => read_number(root, &format!("/sys/class/net/{interface}/ifindex"))?,
            None => None,
        };
        let ask = || {
            let answer = self.client.as_mut()?.ask(index?, threaded);
            Some(answer).filter(|answer| !answer.is_empty())
        };
        let answer = root.answer(&format!("{RECORDED}/{interface}"), ask)?;
        Ok(answer
            .map(Netdev::in_order)
            .filter(|answer| !answer.is_empty()))
    }
}
