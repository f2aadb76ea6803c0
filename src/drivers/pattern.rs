//! Patterns of names, and how a name fits one.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use self::Numbering::{
    Lent, Mlx4, Paired, PairedRank, Plain, Queue, Rank, Realtek, RxThenTx, Shared, Tg3, TxThenRx,
};
use crate::machine::Role::{self, Combined, Control, Data, Rdma, Rx, Tx};

/// A pattern of names and its meaning, `eth{n}-rx = rx`, as in the table and in the policy file.
///
/// `{if}` is an interface name, `{n}` the number, `{way}` one of `WAYS`, which is the role, `{pci}` a PCI address (gve
/// truncates it from block 100 on), `{h}` a decimal or hex number that counts something else, `{hh}` one of two digits,
/// `{x}` any text or none, `{sep}` a hyphen or the like, `{ctl}` text with one of `CONTROL_WORDS` after the name of an
/// interface, driver or device, `{control}` text with one anywhere. All else is literal, ignoring case.
///
/// The meaning is a role, and how the number becomes a queue: as it is, or by one of `NUMBERINGS`; without a number the
/// vector has all queues of the role. `, cut 15`: the driver truncates names at that length.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Pattern {
    row: Cow<'static, str>,
    length: usize,
    /// `None` if the name has it, as `{way}`.
    role: Option<Role>,
    pub(super) numbering: Numbering,
    /// The length in bytes at which the driver truncates the name; 0 for never.
    pub(super) cut: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Numbering {
    Queue,
    /// The k-th smallest number on the device (on the interface, if the name has one) of vectors with this role, alone
    /// or among others, is queue k. tg3 counts from 1, hns3 by two, and bnxt's transmit vectors from the end of its
    /// receive vectors.
    Rank,
    /// gve: of n blocks the first n/2 are transmit queues, the others receive queues, each from 0. The role is
    /// `Combined` until the caller, who knows n, has determined it.
    TxThenRx,
    /// qede: of n vectors the first receive, the last send, and those between do both if rx + tx > n; transmit queues
    /// are numbered from the first vector that sends (`qede_alloc_fp_array`).
    RxThenTx,
    /// No number, usually the bare interface name: the data vector if the device has no other, else control. The caller
    /// does not guess where a driver gives all vectors one name (atlantic, lan743x, mvpp2, and with long interface
    /// names e1000e and igbvf).
    Plain,
    /// tg3's `eth0-2`: vector 0 is link and transmit, the others are the receive (or combined) queues from 0.
    Tg3,
    /// mlx4's `mlx4-3@...`: the number of a completion event queue, from 1. Each port has an equal share; the caller,
    /// who knows the ports, finds the number within the share.
    Mlx4,
    /// Realtek's own drivers: vectors below the number of receive queues receive, these two send, and the others (21 or
    /// 29: link) do neither. Interrupts of version 2 (RTL8125B): 16 and 18; 5 (RTL8125D): 16 and 17; 6 (RTL8127): 8 and
    /// 9 (`rtl8125_tx_interrupt_with_vector`). `None`: not known, as with versions 3 and 4 (RTL8126, RTL8125BP), whose
    /// receive vectors send, and 7 (RTL8125CP: 27 and 28).
    Realtek(Option<[u32; 2]>),
    /// The number of a virtqueue: 2N receives for queue N, 2N + 1 sends (mlx5's vDPA, `alloc_vector`).
    Virtqueue,
    Shared,
    /// Like `Queue`; also sends unless other vectors do (ionic).
    Paired,
    /// Like `Rank`; also sends unless other vectors do (fbnic, which numbers vectors and calls receiving ones `TxRx`).
    PairedRank,
    /// Serves the queues of another function, which may have an interface elsewhere.
    Lent,
    /// No number: control, or data of an unknown queue.
    None,
}

/// The words for `{way}`, and the role of each.
const WAYS: [(&str, Role); 5] = [
    ("TxRx", Combined),
    ("rx", Rx),
    ("tx", Tx),
    ("rxtx", Combined),
    ("Tx-Rx", Combined),
];

const ROLES: [Role; 6] = [Combined, Rx, Tx, Data, Rdma, Control];

pub(crate) const RTL8125B: Numbering = Realtek(Some([16, 18]));
pub(crate) const RTL8125D: Numbering = Realtek(Some([16, 17]));

/// How a number becomes a queue; from `of gve` on, each belongs to one driver.
const NUMBERINGS: [(&str, Numbering); 13] = [
    ("by order", Rank),
    ("if alone", Plain),
    ("or rx", Paired),
    ("or rx by order", PairedRank),
    ("of another function", Lent),
    ("of gve", TxThenRx),
    ("of qede", RxThenTx),
    ("of tg3", Tg3),
    ("of mlx4", Mlx4),
    ("of r8125", RTL8125B),
    ("of r8126", Realtek(None)),
    ("of r8127", Realtek(Some([8, 9]))),
    ("of vdpa", Numbering::Virtqueue),
];

/// The placeholders allowed in the policy file, with their meaning.
pub const PLACEHOLDERS: [(&str, &str); 6] = [
    ("n", "the number of the queue"),
    ("if", "the name of the interface"),
    ("way", "rx, tx, rxtx, TxRx or Tx-Rx, which is the role"),
    ("pci", "a PCI address"),
    ("h", "a decimal or hex number that does not matter"),
    ("x", "any text, or none"),
];

impl Pattern {
    pub fn parse(row: impl Into<Cow<'static, str>>) -> Result<Self, String> {
        let row = row.into();
        let (text, meaning) = row.rsplit_once('=').unwrap_or((&row, ""));
        let (text, meaning) = (text.trim(), meaning.trim());
        let (meaning, cut) = meaning.split_once(", cut ").unwrap_or((meaning, "0"));
        let (word, rest) = meaning.split_once(' ').unwrap_or((meaning, ""));
        let role = ROLES.into_iter().find(|role| role.name() == word);
        let rest = match (role, text.contains("{way}")) {
            (Some(_), false) => rest.trim(),
            (None, true) => meaning,
            (Some(_), true) => {
                return Err(format!(
                    "`{text}` has its role in {{way}}; leave out `{word}`"
                ));
            }
            (None, false) => {
                let known = ROLES.map(Role::name).join(", ");
                return Err(format!(
                    "`{text}` needs its role, as in `{text} = rx`; expected one of {known}"
                ));
            }
        };
        let mut numberings = NUMBERINGS.iter();
        let numbering = match rest {
            "" if matches!(role, Some(Control | Data)) => Numbering::None,
            "" if text.contains("{n}") => Queue,
            "" => Shared,
            rest => {
                let found = numberings.find(|(name, _)| *name == rest);
                let unknown =
                    || format!("`{rest}` is not a numbering; expected `by order`, or nothing");
                found.ok_or_else(unknown)?.1
            }
        };
        Ok(Self {
            length: text.len(),
            role,
            numbering,
            cut: cut
                .parse()
                .map_err(|_| format!("`{cut}` is not a length"))?,
            row: row.trim().to_owned().into(),
        })
    }

    /// Refuses the numberings of single drivers.
    pub fn taught(row: &str) -> Result<Self, String> {
        let found = Self::parse(row.to_owned())?;
        let text = found.text();
        if found.cut > 0 || !matches!(found.numbering, Queue | Rank | Shared | Numbering::None) {
            return Err(format!(
                "`{text}`: expected a role, and `by order` or nothing"
            ));
        }
        let mut seen = Vec::new();
        for part in text.split('{').skip(1) {
            let name = part.split_once('}').map(|(name, _)| name);
            let name = name.filter(|name| PLACEHOLDERS.iter().any(|(known, _)| known == name));
            let Some(name) = name else {
                let known = PLACEHOLDERS
                    .map(|(name, _)| format!("{{{name}}}"))
                    .join(", ");
                return Err(format!("`{text}`: `{{` begins one of {known}"));
            };
            if ["n", "if", "way"].contains(&name) && seen.contains(&name) {
                return Err(format!("`{text}` has {{{name}}} twice"));
            }
            seen.push(name);
        }
        if text.is_empty() || text == "{x}" {
            return Err("a pattern that fits every name tells nothing".to_owned());
        }
        Ok(found)
    }

    /// Whether both fit the same names and tell another meaning.
    pub(crate) fn contradicts(&self, other: &Self) -> bool {
        let meaning = |of: &Self| (of.role, of.numbering);
        self.text().eq_ignore_ascii_case(other.text()) && meaning(self) != meaning(other)
    }

    pub fn row(&self) -> &str {
        &self.row
    }

    fn text(&self) -> &str {
        &self.row[..self.length]
    }

    pub(super) fn matches(&self, action: &str) -> bool {
        self.fits(action).next().is_some()
    }

    /// Each with the word for `{way}`.
    pub(super) fn roles(&self) -> impl DoubleEndedIterator<Item = (&'static str, Role)> + use<> {
        let own = self.role.map(|role| ("", role));
        let ways = WAYS.into_iter().filter(move |_| own.is_none());
        own.into_iter().chain(ways)
    }

    pub(super) fn fits<'p, 'a>(
        &'p self,
        action: &'a str,
    ) -> impl DoubleEndedIterator<Item = (&'p Self, Role, Fit<'a>)> {
        let is_cut = self.cut > 0 && action.len() == self.cut;
        self.roles().filter_map(move |(way, role)| {
            Some((self, role, fit(self.text(), way, action, is_cut)?))
        })
    }
}

impl TryFrom<String> for Pattern {
    type Error = String;

    fn try_from(row: String) -> Result<Self, String> {
        Self::taught(&row)
    }
}

impl From<Pattern> for String {
    fn from(pattern: Pattern) -> Self {
        pattern.row.into_owned()
    }
}

/// `rest`: a name or its end; with `cut` it may end before literal text or a number.
fn fit<'a>(pattern: &str, way: &str, rest: &'a str, cut: bool) -> Option<Fit<'a>> {
    if pattern.is_empty() {
        return rest.is_empty().then(Fit::default);
    }
    let (literal, tail) = if let Some(tail) = pattern.strip_prefix("{way}") {
        (way, tail)
    } else {
        pattern.split_at(
            pattern
                .bytes()
                .position(|byte| byte == b'{')
                .unwrap_or(pattern.len()),
        )
    };
    if !literal.is_empty() {
        let length = literal.len().min(if cut { rest.len() } else { usize::MAX });
        let (text, rest) = rest.split_at_checked(length)?;
        if !text.eq_ignore_ascii_case(&literal[..length]) {
            return None;
        }
        let mut found = Fit::default();
        if length == literal.len() {
            found = fit(tail, way, rest, cut)?;
        }
        found.literals += length;
        return Some(found);
    }
    let (part, tail) = tail.strip_prefix('{')?.split_once('}')?;
    if rest.is_empty() && cut && part == "n" {
        return Some(Fit::default());
    }
    let (least, most) = span(part, rest);
    // The longest text first: an interface may contain all that follows it in the pattern (`a-rx-0-rx-1`). In a
    // truncated name the shortest first, and never all of it: the following text makes the difference.
    (least..=most)
        .map(|len| if cut { len } else { least + most - len })
        .find_map(|len| {
            let (text, rest) = rest.split_at_checked(len)?;
            if cut && rest.is_empty() && !tail.is_empty() || part == "pci" && !text.contains(':') {
                return None;
            }
            // Drivers keep a number in 16 bits.
            let number: Option<u16> = match part {
                "n" => Some(text.parse().ok()?),
                _ => None,
            };
            let mut found = fit(tail, way, rest, cut)?;
            match part {
                "n" => found.number = number.map(u32::from),
                "if" => found.interface = Some(text),
                _ => {}
            }
            Some(found)
        })
}

/// The minimum and maximum bytes of `rest` that a placeholder may take; an empty range if it cannot.
fn span(placeholder: &str, rest: &str) -> (usize, usize) {
    let run = |is_part: fn(&u8) -> bool| rest.bytes().take_while(is_part).count();
    match placeholder {
        // The kernel's rule for names; alias names of old kernels contain a colon.
        "if" => (
            1,
            run(|byte| !byte.is_ascii_whitespace() && *byte != b'/').min(15),
        ),
        "n" => {
            let digits = run(u8::is_ascii_digit);
            (digits.max(1), digits)
        }
        "h" => (1, run(u8::is_ascii_hexdigit)),
        "hh" => (2, run(u8::is_ascii_hexdigit).min(2)),
        "sep" => (1, run(|byte| b"-:_. ".contains(byte)).min(1)),
        "pci" => (
            1,
            run(|byte| byte.is_ascii_hexdigit() || b":.".contains(byte)),
        ),
        "ctl" if !says_control(rest, words_of_owner(rest)) => (1, 0),
        "control" if !says_control(rest, 0) => (1, 0),
        "ctl" | "control" => (rest.len(), rest.len()),
        _ => (0, rest.len()),
    }
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Fit<'a> {
    pub(super) literals: usize,
    pub(super) number: Option<u32>,
    pub(super) interface: Option<&'a str>,
}

/// The owner is an interface or driver, one word, or a platform device, two (`90900000.mac`).
fn words_of_owner(name: &str) -> usize {
    1 + usize::from(platform_name(name).is_some())
}

/// What follows the address of a platform device: `ethernet` of `82300000.ethernet`.
pub(super) fn platform_name(device: &str) -> Option<&str> {
    let (address, name) = device.split_once('.')?;
    let is_address = address.len() > 4 && address.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_address.then_some(name)
}

fn says_control(name: &str, behind: usize) -> bool {
    name.split(['-', ':', '@', '_', '.', ' '])
        .skip(behind)
        .any(|word| {
            let word = word.trim_end_matches(|last: char| last.is_ascii_digit());
            let mut known = CONTROL_WORDS.iter();
            known.any(|known| known.eq_ignore_ascii_case(word))
        })
}

/// Digits may follow these words.
const CONTROL_WORDS: &[&str] = &[
    "admin", "adminq", "aeq", "async", "aux", "ceq", "config", "control", "ctrl", "err", "error",
    "event", "exn", "fdir", "FWeventq", "hwc", "link", "lpi", "lsc", "mac", "mailbox", "mbox",
    "mbx", "mgmnt", "mgmt", "misc", "notify", "other", "phy", "pps", "ptp", "qerr", "safety",
    "sfty", "ts", "wake", "wol",
];
