//! Other names and lower interfaces, as netlink reports them; in a tree, from `/nicpin/altnames` and `/nicpin/lowers`.

use std::collections::BTreeMap;
use std::ffi::CStr;
use std::io;

use netlink_bindings::rt_link::{Ifinfomsg, IterableLinkAttrs, Request};
use nix::sys::socket::SockProtocol;
use serde::{Deserialize, Serialize};

use crate::cpuset::Inserted as _;
use crate::read::netlink::{Client, attribute};
use crate::root::{Result, Root};

pub const ALTNAMES: &str = "/nicpin/altnames";
pub const LOWERS: &str = "/nicpin/lowers";
/// `RTEXT_FILTER_SKIP_STATS` (`include/uapi/linux/rtnetlink.h`).
const WITHOUT_COUNTERS: u32 = 1 << 3;

type Altnames = BTreeMap<String, Vec<String>>;
/// `/sys` has no `lower_*` for tunnels with `dev`, nor for a vxlan before Linux 5.4.
type Lowers = BTreeMap<String, Lower>;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Lower {
    pub(crate) on: String,
    /// `IFLA_INFO_KIND` of the upper interface.
    pub(crate) kind: String,
}

struct Link {
    index: u32,
    name: String,
    altnames: Vec<String>,
    lower: Option<(u32, String)>,
}

pub(crate) fn links(root: &Root) -> Result<(Altnames, Lowers)> {
    let mut asked = None;
    let altnames = root.answer(ALTNAMES, || {
        let named = asked.insert(all_links()?).iter();
        let named = named.filter(|link| !link.altnames.is_empty());
        let named: Altnames = named
            .map(|link| (link.name.clone(), link.altnames.clone()))
            .inserted();
        Ok((!named.is_empty()).then_some(named))
    })?;
    let lowers = root.answer(LOWERS, || {
        let links = asked.unwrap_or_default();
        let lowers = lowers(&links);
        Ok((!lowers.is_empty()).then_some(lowers))
    })?;
    Ok((altnames.unwrap_or_default(), lowers.unwrap_or_default()))
}

fn lowers(links: &[Link]) -> Lowers {
    let names: BTreeMap<u32, &String> =
        links.iter().map(|link| (link.index, &link.name)).inserted();
    let on = |link: &Link| {
        let (index, kind) = link.lower.clone()?;
        let on = (*names.get(&index)?).clone();
        Some((link.name.clone(), Lower { on, kind }))
    };
    links.iter().filter_map(on).inserted()
}

/// Kinds whose link is their peer, not a lower interface.
const PAIRS: [&CStr; 3] = [c"veth", c"vxcan", c"netkit"];
/// `IFLA_INFO_DATA`, and in it `IFLA_VXLAN_LINK` (`include/uapi/linux/if_link.h`).
const INFO_DATA: u16 = 2;
const VXLAN_LINK: u16 = 3;

fn all_links() -> io::Result<Vec<Link>> {
    let mut request = Request::new().op_getlink_dump(&Ifinfomsg::new());
    request.encode().push_ext_mask(WITHOUT_COUNTERS);
    Client::connect(SockProtocol::NetlinkRoute)?.request(&request, |(head, link)| {
        let text = |name: &CStr| name.to_string_lossy().into_owned();
        // The getter fails if the attribute is absent.
        let altnames = link
            .get_prop_list()
            .map(|list| list.get_alt_ifname().map(text).collect());
        let index = u32::try_from(head.ifi_index).ok()?;
        Some(Link {
            index,
            name: text(link.get_ifname().ok()?),
            altnames: altnames.unwrap_or_default(),
            lower: lower(&link).filter(|(lower, _)| *lower != index),
        })
    })
}

/// The lower interface's index in this network namespace, and the upper one's kind.
fn lower(link: &IterableLinkAttrs<'_>) -> Option<(u32, String)> {
    let info = link.get_linkinfo().ok()?;
    let kind = info.get_kind().ok().filter(|kind| !PAIRS.contains(kind))?;
    let number = |bytes: &[u8]| Some(u32::from_ne_bytes(*bytes.first_chunk()?));
    let of_vxlan = || {
        let data = attribute(info.get_buf(), INFO_DATA).filter(|_| kind == c"vxlan")?;
        number(attribute(data, VXLAN_LINK)?)
    };
    let is_elsewhere = link.get_link_netnsid().is_ok();
    let index = of_vxlan().or_else(|| link.get_link().ok().filter(|_| !is_elsewhere))?;
    (index != 0).then(|| (index, kind.to_string_lossy().into_owned()))
}

#[cfg(test)]
mod tests {
    use netlink_bindings::rt_link::OpGetlinkDump;

    use super::*;

    #[test]
    fn what_a_link_is_on_is_read_from_its_own_attributes() {
        let attribute = |kind: u16, value: &[u8]| {
            let length = u16::try_from(4 + value.len()).unwrap();
            let mut bytes = [&length.to_ne_bytes()[..], &kind.to_ne_bytes(), value].concat();
            bytes.resize(bytes.len().next_multiple_of(4), 0);
            bytes
        };
        let number = |kind: u16, value: u32| attribute(kind, &value.to_ne_bytes());
        // `IFLA_LINKINFO` with `IFLA_INFO_KIND` and `IFLA_INFO_DATA`.
        let info = |kind: &str, data: &[u8]| {
            let kind = attribute(1, format!("{kind}\0").as_bytes());
            attribute(18, &[kind, attribute(2, data)].concat())
        };
        let read = |attributes: &[Vec<u8>]| {
            let bytes = [&[0; 16][..], &attributes.concat()].concat();
            let (_, link) = OpGetlinkDump::decode_request(&bytes);
            lower(&link)
        };
        // `IFLA_LINK`, `IFLA_LINK_NETNSID`, `IFLA_VXLAN_LINK`.
        let (link, netnsid, vxlan) = (5, 37, 3);
        assert_eq!(
            read(&[number(link, 4), info("ip6gre", &[])]),
            Some((4, "ip6gre".to_owned()))
        );
        assert_eq!(
            read(&[number(link, 9), info("vxlan", &number(vxlan, 4))]),
            Some((4, "vxlan".to_owned()))
        );
        assert_eq!(read(&[number(link, 4), info("veth", &[])]), None);
        assert_eq!(
            read(&[number(link, 4), number(netnsid, 0), info("macvlan", &[])]),
            None
        );
        assert_eq!(read(&[number(link, 0), info("sit", &[])]), None);
        assert_eq!(read(&[number(link, 4)]), None);
        let list = [
            ("tunnel0", 7, Some(4)),
            ("nic1", 4, None),
            ("gone", 8, Some(3)),
        ];
        let links = list.map(|(name, index, on)| Link {
            index,
            name: name.to_owned(),
            altnames: Vec::new(),
            lower: on.map(|on| (on, "gre".to_owned())),
        });
        let (on, kind) = ("nic1".to_owned(), "gre".to_owned());
        assert_eq!(
            lowers(&links),
            BTreeMap::from([("tunnel0".to_owned(), Lower { on, kind })])
        );
    }
}
