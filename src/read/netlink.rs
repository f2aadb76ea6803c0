//! Reads from netlink which queue has which IRQ (the generic family `netdev`), and what interfaces are also called.
//!
//! Incomplete answers are common: the family or a command is missing, the driver reports no IRQ, an interface that is
//! down has none. This is absence, and no error; a request that fails for another reason is one. A tree has answers in `/nicpin/netlink/INTERFACE` and `/nicpin/altnames`.

mod unix;
mod wire;

pub(crate) use unix::UNIX_SOCKETS;
pub(crate) use unix::listening;
pub use wire::Client;
pub use wire::messages;

use std::collections::BTreeMap;
use std::ffi::CStr;

use netlink_bindings::rt_link::{Ifinfomsg, Request};
use nix::sys::socket::SockProtocol;

use crate::machine::netdev::Netdev;
use crate::read::files::read_number;
use crate::root::{FileError, Root, is_absent};

/// Where a tree keeps answers of netlink.
const RECORDED: &str = "/nicpin/netlink";

/// Where a tree keeps other names of interfaces.
pub const ALTNAMES: &str = "/nicpin/altnames";
/// `RTEXT_FILTER_SKIP_STATS` (`include/uapi/linux/rtnetlink.h`).
const WITHOUT_COUNTERS: u32 = 1 << 3;

/// The other names of each interface that has any (`ip link property`, Linux 5.5 and later).
pub(crate) fn altnames(root: &Root) -> Result<BTreeMap<String, Vec<String>>, FileError> {
    let answer = root.answer(ALTNAMES, || {
        let mut request = Request::new().op_getlink_dump(&Ifinfomsg::new());
        request.encode().push_ext_mask(WITHOUT_COUNTERS);
        let mut client = Client::connect(SockProtocol::NetlinkRoute)?;
        let links = client.request(&request, |(_, link)| {
            let text = |name: &CStr| name.to_string_lossy().into_owned();
            // An attribute that is absent.
            let others = link.get_prop_list().ok()?.get_alt_ifname();
            Some((text(link.get_ifname().ok()?), others.map(text).collect()))
        })?;
        let links: BTreeMap<String, Vec<String>> = links.into_iter().collect();
        Ok(Some(links).filter(|links| !links.is_empty()))
    })?;
    Ok(answer.unwrap_or_default())
}

/// The kernel's netlink on a live machine, the recorded answers of a tree.
#[derive(Debug)]
pub(crate) struct Netlink {
    /// `None` in a tree, and on a kernel without the family.
    client: Option<Client>,
}

impl Netlink {
    pub(crate) fn open(root: &Root) -> Result<Self, FileError> {
        let client = match root.is_real().then(Client::open).transpose() {
            Err(error) if is_absent(&error) => None,
            client => client.map_err(|error| root.io_error(RECORDED, error))?,
        };
        Ok(Self { client })
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
            let Some((client, index)) = self.client.as_mut().zip(index) else {
                return Ok(None);
            };
            let answer = client.ask(index, threaded)?;
            Ok(Some(answer).filter(|answer| !answer.is_empty()))
        };
        let answer = root.answer(&format!("{RECORDED}/{interface}"), ask)?;
        Ok(answer
            .map(Netdev::in_order)
            .filter(|answer| !answer.is_empty()))
    }
}
