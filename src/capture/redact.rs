//! Removes what could identify a machine: hardware and IP addresses, GUIDs, host names, serial numbers, comments, the names
//! of cgroups, and the places of a site's scripts; on request also the names that a site gives to interfaces and its host.
//!
//! Reading a machine does not open most of the files that hold them. This is a second safeguard: files about identity
//! are left out even if they were read, and addresses are replaced in names and texts (`identity.rs`).

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;

use crate::capture::identity::StandIns;
use nicpin::machine::OtherTools;
use nicpin::machine::interface::natural;
use nicpin::machine::setting::NET;
use nicpin::policy::without_comments;
use nicpin::read::cgroups::CGROUPS;
use nicpin::read::interrupts::INTERRUPTS;
use nicpin::read::netlink::ALTNAMES;
use nicpin::read::tools::RECORDED;
use nicpin::root::Root;
use nicpin::root::tree::Entry::{Directory, File, Link};
use nicpin::root::tree::{Tree, TreeFile};

/// The directories that hold a file or directory for each interface, beside those named `net`.
const BY_INTERFACE: [&str; 3] = ["/nicpin/ethtool", "/nicpin/netlink", "/nicpin/threads"];
/// The kernel's `IFNAMSIZ`, without the NUL.
const MAX_NAME: usize = 15;
/// Where a site keeps its policy.
pub const POLICY: &str = "/etc/nicpin.toml";
/// The policy script of irqbalance in a capture.
const SCRIPT_PLACE: &str = "/left-out/policyscript";

/// Files that identify a machine, by the last component of their path.
const IDENTITY: [&str; 20] = [
    "address",
    "board_serial",
    "boot_id",
    "broadcast",
    "chassis_serial",
    "cmdline",
    "domainname",
    "hostname",
    "ifalias",
    "machine-id",
    "node_desc",
    "node_guid",
    "phys_port_id",
    "phys_switch_id",
    "product_serial",
    "product_uuid",
    "serial",
    "serial_number",
    "sys_image_guid",
    "vpd",
];

/// Removes from a tree what could identify the machine. `root` is that machine; `names`: also the names of interfaces and
/// of the host. Also returns what was changed, a line each, for the user and not for the capture.
pub fn redact(tree: &Tree, root: &Root, names: bool) -> Result<(Tree, Vec<String>)> {
    let names = Names::of(tree, root, names)?;
    let mut changes = Vec::new();
    if names.cgroups.iter().any(|(name, other)| name != other) {
        let last = names.cgroups.len();
        changes.push(format!(
            "cgroups are cgroup0001 to cgroup{last:04} in the capture"
        ));
    }
    let texts = tree.iter().flat_map(|(path, entry)| match entry {
        Directory(_) => [path, ""],
        Link(target) => [path, target],
        File(file) => [path, &file.text],
    });
    let stand_ins = StandIns::of(
        texts,
        addresses(root)?.into_iter().map(|(_, address)| address),
    );
    let mut redacted = Tree::default();
    for (path, entry) in tree.iter() {
        let (above, name) = path.rsplit_once('/').unwrap_or_default();
        let left_out = |why: &str| format!("{path} is left out: {why}");
        let is_named = path == ALTNAMES && !names.interfaces.is_empty();
        if is_named || IDENTITY.contains(&name) && !matches!(entry, Directory(_)) {
            changes.push(left_out("it can identify the machine"));
            continue;
        }
        let hidden = match entry {
            Directory(_) => entry.without_names(),
            Link(target) => Link(stand_ins.hide(&names.in_path(target))),
            File(file) => {
                let mut text = file.text.clone();
                if path == POLICY {
                    let Some(bare) = without_comments(&text) else {
                        changes.push(left_out("it is not a policy"));
                        continue;
                    };
                    let Some(bare) = names.in_policy(&bare) else {
                        changes.push(left_out("it has patterns of names"));
                        continue;
                    };
                    text = bare.into();
                } else if path == RECORDED {
                    text = without_script(&text, &mut changes).map_or(text, Into::into);
                }
                let shown = names.in_text(path, &text);
                let hidden = stand_ins.hide(&shown);
                if hidden != shown {
                    changes.push(format!(
                        "{path} has addresses in it; the capture has others"
                    ));
                }
                if *hidden != *text {
                    text = hidden.into();
                }
                File(TreeFile { text, ..*file })
            }
        };
        let renamed = names.in_path(path);
        let place = stand_ins.hide(&renamed);
        if place != renamed && above == NET {
            let new = place.rsplit('/').next().unwrap_or_default();
            changes.push(format!(
                "{name} has a hardware address in its name; the capture calls it {new}, and so does its plan"
            ));
        }
        redacted.add(&place, hidden).map_err(|reason| {
            root.content_error(path, format!("{reason} when renamed; fix: use --identify"))
        })?;
    }
    Ok((redacted, changes))
}

/// The hardware address of each interface that has one.
pub fn addresses(root: &Root) -> Result<Vec<(String, String)>> {
    let mut addresses = Vec::new();
    for name in root.list(NET)?.unwrap_or_default() {
        let address = root
            .read_opt(&format!("{NET}/{name}/address"))?
            .map(|address| address.trim().to_owned())
            .filter(|address| is_hardware_address(address));
        addresses.extend(address.map(|address| (name, address)));
    }
    Ok(addresses)
}

/// Six or more pairs of hex digits.
fn is_hardware_address(text: &str) -> bool {
    let pair = |part: &str| part.len() == 2 && part.bytes().all(|b| b.is_ascii_hexdigit());
    text.split(':').count() >= 6 && text.split(':').all(pair)
}

/// What was found of other tools, with irqbalance's policy script in another place, if it is in one that a site chose.
fn without_script(found: &str, changes: &mut Vec<String>) -> Option<String> {
    let mut tools: OtherTools = serde_json::from_str(found).ok()?;
    let script = tools.irqbalance.as_mut()?.policy_script.as_mut()?;
    if script.starts_with("/usr/") {
        return None;
    }
    SCRIPT_PLACE.clone_into(script);
    changes.push(format!(
        "irqbalance's policy script is {SCRIPT_PLACE} in the capture"
    ));
    serde_json::to_string(&tools).ok()
}

/// The names that a site gives, and what replaces them: the same name everywhere, in the same order, so that the capture
/// of a capture is the same.
struct Names {
    /// None if these stay.
    interfaces: BTreeMap<String, String>,
    /// The host's name, and what it begins with before the domain.
    host: BTreeSet<String>,
    /// Those of containers, services and users.
    cgroups: BTreeMap<String, String>,
}

impl Names {
    /// Of a machine; `all`: also of its interfaces and host.
    fn of(tree: &Tree, root: &Root, all: bool) -> Result<Self> {
        let mut interfaces = tree.list(NET).unwrap_or_default();
        interfaces.sort_by_key(|name| natural(name));
        interfaces.retain(|_| all);
        let host = root.read_opt("/proc/sys/kernel/hostname")?;
        let host = host.as_deref().filter(|_| all).unwrap_or_default().trim();
        let short = host.split('.').next().unwrap_or_default();
        let hosts = [host, short].into_iter();
        let cgroups: BTreeSet<&str> = tree
            .iter()
            .filter(|(_, entry)| matches!(entry, Directory(_)))
            .filter_map(|(path, _)| below_cgroups(path))
            .flat_map(|path| path.split('/'))
            .collect();
        let cgroups = (1..).zip(cgroups);
        Ok(Self {
            interfaces: (0..)
                .zip(interfaces)
                .map(|(number, name)| (name, format!("if{number}")))
                .collect(),
            // A name of one or two letters is in other words, too.
            host: hosts
                .filter(|name| name.len() > 2)
                .map(str::to_owned)
                .collect(),
            cgroups: cgroups
                .map(|(number, name)| (name.to_owned(), format!("cgroup{number:04}")))
                .collect(),
        })
    }

    /// A path, or the target of a link.
    fn in_path(&self, path: &str) -> String {
        let (mut done, mut above) = (String::new(), "");
        for (at, name) in path.split('/').enumerate() {
            let of_interfaces = above == "net" || BY_INTERFACE.contains(&&*done);
            let mut relations = ["lower_", "upper_"].into_iter();
            let relation = relations.find(|relation| name.starts_with(relation));
            let before = relation.unwrap_or_default();
            let own = &name[before.len()..];
            let is_cgroup = done.starts_with(CGROUPS) && below_cgroups(path).is_some();
            let shown = match self.interfaces.get(own) {
                _ if is_cgroup => self.cgroups.get(own),
                shown => shown.filter(|_| of_interfaces || relation.is_some()),
            };
            let slash = if at > 0 { "/" } else { "" };
            done =
                done + slash + before + &shown.map_or_else(|| self.without_host(own), Clone::clone);
            above = name;
        }
        done
    }

    /// The text of a file: handlers have the names of their interfaces.
    fn in_text(&self, path: &str, text: &str) -> String {
        if self.interfaces.is_empty() {
            return text.to_owned();
        }
        match path {
            INTERRUPTS => {
                let line = |line: &str| match line.rsplit_once("  ") {
                    Some((counts, names)) => format!("{counts}  {}", self.in_words(names)),
                    None => line.to_owned(),
                };
                text.split_inclusive('\n').map(line).collect()
            }
            _ if path.ends_with("/actions") => self.in_words(text),
            _ if path == RECORDED || path.starts_with("/etc/") => self.without_host(text),
            _ => text.to_owned(),
        }
    }

    /// A policy without comments; `None` if it has a pattern for names, which would match none of the others.
    fn in_policy(&self, policy: &str) -> Option<String> {
        if self.interfaces.is_empty() {
            return Some(policy.to_owned());
        }
        let line = |line: &str| match line.split_once('=') {
            Some((key, value)) if key.trim() == "name" => {
                let other = self.interfaces.get(value.trim().trim_matches('"'))?;
                Some(format!("{key}= \"{other}\"\n"))
            }
            _ if line.contains("name") => None,
            _ => Some(line.to_owned()),
        };
        policy.split_inclusive('\n').map(line).collect()
    }

    /// Replaces each interface that is a word, or the part of one before or after a hyphen or the like.
    fn in_words(&self, text: &str) -> String {
        let (mut done, mut at) = (String::new(), 0);
        while at < text.len() {
            let rest = &text[at..];
            let is_start = !text[..at].ends_with(|c: char| c.is_ascii_alphanumeric());
            let ends = (1..=MAX_NAME.min(rest.len()))
                .rev()
                .filter(|&end| rest.is_char_boundary(end));
            let named = ends.filter(|_| is_start).find_map(|end| {
                let is_end = !rest[end..].starts_with(|c: char| c.is_ascii_alphanumeric());
                Some((end, self.interfaces.get(&rest[..end]).filter(|_| is_end)?))
            });
            let length = rest.chars().next().map_or(1, char::len_utf8);
            let (length, shown) =
                named.map_or((length, &rest[..length]), |(end, other)| (end, other));
            done.push_str(shown);
            at += length;
        }
        done
    }

    fn without_host(&self, text: &str) -> String {
        self.host
            .iter()
            .rev()
            .fold(text.to_owned(), |text, host| text.replace(host, "host"))
    }
}

fn below_cgroups(path: &str) -> Option<&str> {
    path.strip_prefix(CGROUPS)?.strip_prefix('/')
}
