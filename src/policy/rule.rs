//! Rules of the policy: settings for the interfaces that match.

use std::str::FromStr;

use glob::Pattern;

use crate::machine::{Interface, Machine};
use crate::policy::settings::Settings;

/// Settings for the interfaces that match.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rule {
    pub(crate) matches: Match,
    pub(crate) set: Settings,
}

/// The keys of `match` in a rule, with their meaning.
pub const CONDITIONS: [(&str, &str); 6] = [
    (
        "name",
        "the interface's name, a pattern: \"ens*\", \"eth[02]\"",
    ),
    ("driver", "the driver's name, a pattern"),
    ("device", "the bus address, a pattern: \"0000:3b:00.?\""),
    ("node", "the interface's node, a number"),
    (
        "pci",
        "PCI vendor and device in hex, a pattern: \"15b3:1017\", \"15b3:*\"",
    ),
    (
        "speed",
        "what the port can carry in Mbit/s, else its speed: 10000, \">=25000\"; unknown matches none",
    ),
];

/// Conditions on an interface ([`CONDITIONS`]). All given ones must hold.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Match {
    /// The conditions as text: `name = "ens*", node = 1`.
    pub(crate) text: String,
    pub(crate) name: Option<Pattern>,
    pub(crate) driver: Option<Pattern>,
    pub(crate) device: Option<Pattern>,
    pub(crate) node: Option<u32>,
    pub(crate) pci: Option<Pattern>,
    pub(crate) speed: Option<Speed>,
}

impl Match {
    pub(crate) fn holds(&self, machine: &Machine, interface: &Interface) -> bool {
        let fits = |pattern: &Option<Pattern>, text: &str| {
            pattern.as_ref().is_none_or(|pattern| pattern.matches(text))
        };
        // As with selectors, the interface of that very name comes before those that match.
        let named = self.name.as_ref().map(Pattern::as_str);
        let fits_name = match named.filter(|name| machine.interface(name).is_some()) {
            Some(name) => interface.name == name,
            None => fits(&self.name, &interface.name),
        };
        // Whichever carriers are there.
        let carries = || interface.supported_mbps.or(interface.speed_mbps);
        fits_name
            && fits(
                &self.driver,
                interface.driver.as_deref().unwrap_or_default(),
            )
            && fits(&self.device, &interface.device.address)
            && fits(
                &self.pci,
                interface.device.pci_id.as_deref().unwrap_or_default(),
            )
            && self
                .node
                .is_none_or(|node| machine.nodes_of(interface).contains(node))
            && self
                .speed
                .is_none_or(|speed| carries().is_some_and(|mbps| speed.holds(mbps)))
    }
}

/// A condition on what a port can carry, in Mbit/s.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Speed {
    least: u32,
    most: u32,
}

impl Speed {
    fn holds(self, mbps: u32) -> bool {
        (self.least..=self.most).contains(&mbps)
    }
}

impl FromStr for Speed {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let digits = text.trim_start_matches(['<', '>', '=']);
        let (sign, number) = text.split_at(text.len() - digits.len());
        let number: Option<u32> = number.trim().parse().ok();
        let bounds = number.and_then(|mbps| match sign {
            "" | "=" => Some((mbps, mbps)),
            ">=" => Some((mbps, u32::MAX)),
            ">" => Some((mbps.checked_add(1)?, u32::MAX)),
            "<=" => Some((0, mbps)),
            "<" => Some((0, mbps.checked_sub(1)?)),
            _ => None,
        });
        let error =
            || format!("`{text}` is not a speed in Mbit/s such as 10000, >=25000 or <10000");
        bounds
            .map(|(least, most)| Self { least, most })
            .ok_or_else(error)
    }
}
