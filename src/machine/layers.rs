//! Layers: bonds, bridges and tunnels above interfaces, their other names, and RDMA devices beside them.

use std::collections::BTreeSet;

use crate::machine::others::Rdma;
use crate::machine::{Interface, Machine, Stacked};

/// Kinds of interfaces that wrap packets in others or encrypt them (`DEVTYPE`, `IFLA_INFO_KIND`).
const WRAPPING: [&str; 18] = [
    "bareudp",
    "erspan",
    "geneve",
    "gre",
    "gretap",
    "gtp",
    "ip6erspan",
    "ip6gre",
    "ip6gretap",
    "ip6tnl",
    "ipip",
    "macsec",
    "sit",
    "vti",
    "vti6",
    "vxlan",
    "wireguard",
    "xfrm",
];

impl Machine {
    pub(super) fn names_of<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let others = self.altnames.get(name).into_iter().flatten();
        others.map(String::as_str).chain([name])
    }

    pub(crate) fn stacked(&self, name: &str) -> Option<&Stacked> {
        self.stacked.iter().find(|stacked| stacked.name == name)
    }

    fn and_below<'a>(&'a self, top: &'a str) -> impl Iterator<Item = &'a str> {
        let (mut todo, mut seen) = (vec![top], BTreeSet::new());
        std::iter::from_fn(move || {
            loop {
                let name = todo.pop()?;
                if seen.insert(name) {
                    let lowers = self.stacked(name).map(|stacked| &stacked.lowers);
                    todo.extend(lowers.into_iter().flatten().map(String::as_str));
                    return Some(name);
                }
            }
        })
    }

    pub(super) fn below<'a>(&'a self, top: &'a str) -> impl Iterator<Item = &'a str> {
        self.and_below(top)
            .skip(1)
            .filter(|name| self.interface(name).is_some())
    }

    pub(super) fn of_rdma(&self, rdma: &Rdma) -> impl Iterator<Item = &Interface> {
        self.interfaces
            .iter()
            .filter(|interface| Some(&interface.device.address) == rdma.device.as_ref())
    }

    /// The kernel has no word for the kind of a team.
    pub(crate) fn has_bond_of(&self, ports: &[&Interface]) -> bool {
        let mut bonds = self.stacked.iter().filter(|stacked| match &stacked.kind {
            Some(kind) => kind == "bond",
            None => self.interface(&stacked.name).is_none(),
        });
        bonds.any(|bond| {
            let below: BTreeSet<&str> = self.below(&bond.name).collect();
            ports.iter().all(|port| below.contains(&*port.name))
        })
    }

    pub(crate) fn tunnel(&self, name: &str) -> Option<String> {
        let wraps = |name: &&str| {
            self.stacked(name)
                .and_then(|stacked| stacked.kind.as_deref())
                .or_else(|| self.others.virtual_interface(name)?.devtype.as_deref())
                .is_some_and(|kind| WRAPPING.contains(&kind))
        };
        self.and_below(name).find(wraps).map(str::to_owned)
    }
}
