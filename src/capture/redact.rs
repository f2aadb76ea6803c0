//! Removes what could identify a machine: hardware and IP addresses, GUIDs, host names, serial numbers, comments, the
//! names of cgroups and units, and the places of a site's scripts; on request also a site's names of interfaces and its
//! host.
//!
//! Reading a machine does not open most files of that kind. As a second safeguard, files about identity are left out
//! even if they were read, and addresses are replaced in names and texts (`identity.rs`).

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use itertools::Itertools as _;
use serde_json::Value;

use crate::capture::identity::StandIns;
use nicpin::cpuset::Inserted as _;
use nicpin::drivers::Numbering::Plain;
use nicpin::drivers::{Taught, classify, may_be_cut};
use nicpin::machine::files::NET;
use nicpin::machine::interface::natural;
use nicpin::machine::{Machine, OtherTools};
use nicpin::policy::{Policy, without_comments};
use nicpin::read::cgroups::CGROUPS;
use nicpin::read::interrupts::{INTERRUPTS, Interrupts, parse};
use nicpin::read::links::{ALTNAMES, LOWERS};
use nicpin::read::tools::RECORDED;
use nicpin::root::Root;
use nicpin::root::tree::Entry::{Directory, File, Link};
use nicpin::root::tree::{Tree, TreeFile};

/// Directories with a file or directory for each interface, beside those named `net`.
const BY_INTERFACE: [&str; 3] = ["/nicpin/ethtool", "/nicpin/netlink", "/nicpin/threads"];
/// The kernel's `IFNAMSIZ`, without the NUL.
const MAX_NAME: usize = 15;
pub const POLICY: &str = "/etc/nicpin.toml";
/// Stands for irqbalance's policy script in a capture.
const SCRIPT_PLACE: &str = "/left-out/policyscript";
/// Stands for each unit of the policy in a capture.
const UNIT: &str = "left-out.service";

/// The last component of paths to files that identify a machine.
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

/// Returns no drivers if the policy is not valid.
pub fn taught_drivers(policy: &str) -> Vec<Taught> {
    Policy::parse(policy).unwrap_or_default().drivers
}

/// Also returns what was changed, a line each, for the user and not for the capture. `names`: also the names of
/// interfaces and of the host.
pub fn redact(
    tree: &Tree,
    root: &Root,
    machine: &Machine,
    names: bool,
) -> Result<(Tree, Vec<String>)> {
    let names = NamesToReplace::collect(tree, root, machine, names)?;
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
    let stand_ins = StandIns::collect(
        texts,
        addresses(root)?.into_iter().map(|(_, address)| address),
    );
    let mut redacted = Tree::default();
    for (path, entry) in tree.iter() {
        let (above, name) = path.rsplit_once('/').unwrap_or_default();
        let left_out = |why: &str| format!("{path} is left out: {why}");
        let is_named = [ALTNAMES, LOWERS].contains(&path) && !names.interfaces.is_empty();
        if is_named || IDENTITY.contains(&name) && !matches!(entry, Directory(_)) {
            changes.push(left_out("it can identify the machine"));
            continue;
        }
        let hidden = match entry {
            Directory(_) => entry.without_names(),
            Link(target) => Link(stand_ins.hide(&names.in_path(target), true)),
            File(file) => {
                let mut text = file.text.clone();
                if path == POLICY {
                    let Some(bare) = without_comments(&text) else {
                        changes.push(left_out("it is not a policy, or one that is too long"));
                        continue;
                    };
                    let bare = without_units(&bare, &mut changes);
                    let Some(bare) = names.in_policy(&bare) else {
                        changes.push(left_out("it has patterns of names"));
                        continue;
                    };
                    text = bare.into();
                } else if path == RECORDED {
                    text = without_script(&text, &mut changes).map_or(text, Into::into);
                }
                let shown = names.in_text(path, &text);
                let is_driver = path.starts_with("/nicpin/") && name == "driver";
                let hidden = stand_ins.hide(&shown, !is_driver);
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
        let place = stand_ins.hide(&renamed, true);
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

fn is_hardware_address(text: &str) -> bool {
    let pair = |part: &str| part.len() == 2 && part.bytes().all(|b| b.is_ascii_hexdigit());
    text.split(':').count() >= 6 && text.split(':').all(pair)
}

/// Returns `None` if no site chose the place of the script.
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

fn without_units(policy: &str, changes: &mut Vec<String>) -> String {
    let line = |line: &str| match line.split_once("unit:") {
        Some((before, _)) => {
            let quote = before.chars().next_back().unwrap_or('"');
            format!("{before}unit:{UNIT}{quote}\n")
        }
        None => line.to_owned(),
    };
    let other: String = policy.split_inclusive('\n').map(line).collect();
    if other != policy {
        changes.push(format!("units in {POLICY} are {UNIT} in the capture"));
    }
    other
}

/// The names that a site gives, and what replaces them: the same everywhere, in the same order, so that the capture of
/// a capture is the same.
struct NamesToReplace {
    /// Empty if the names stay.
    interfaces: BTreeMap<String, String>,
    /// The host's name, and its part before the domain.
    host: BTreeSet<String>,
    /// Names of containers, services and users.
    cgroups: BTreeMap<String, String>,
}

impl NamesToReplace {
    fn collect(tree: &Tree, root: &Root, machine: &Machine, all: bool) -> Result<Self> {
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
            interfaces: if all {
                interfaces(tree, machine)
            } else {
                BTreeMap::new()
            },
            // A name of one or two letters is in other words, too.
            host: hosts
                .filter(|name| name.len() > 2)
                .map(str::to_owned)
                .inserted(),
            cgroups: cgroups
                .map(|(number, name)| (name.to_owned(), format!("cgroup{number:04}")))
                .inserted(),
        })
    }

    fn in_path(&self, path: &str) -> String {
        let (mut done, mut above) = (String::new(), "");
        for (at, name) in path.split('/').enumerate() {
            // Below the `net` of `/proc` are settings of the kernel.
            let of_interfaces =
                above == "net" && !done.starts_with("/proc/") || BY_INTERFACE.contains(&&*done);
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
            done = done + slash + before + shown.map_or(own, |shown| shown);
            above = name;
        }
        done
    }

    /// Handlers have the names of their interfaces.
    fn in_text(&self, path: &str, text: &str) -> String {
        match path {
            _ if self.interfaces.is_empty() => text.to_owned(),
            INTERRUPTS => {
                let line = |line: &str| match line.rsplit_once("  ") {
                    Some((counts, names)) => format!("{counts}  {}", self.in_words(names)),
                    None => line.to_owned(),
                };
                text.split_inclusive('\n').map(line).collect()
            }
            _ if path.ends_with("/actions") => self.in_words(text),
            RECORDED => serde_json::from_str(text)
                .map_or_else(|_| text.to_owned(), |found| self.in_json(found).to_string()),
            _ => text.to_owned(),
        }
    }

    /// Returns `None` if the policy has a pattern of names, which would match none of the replaced ones.
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

    /// Names that stand as whole words or between punctuation.
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
                let other = self.interfaces.get(&rest[..end]).filter(|_| is_end)?;
                Some((end, &**other))
            });
            let length = rest.chars().next().map_or(1, char::len_utf8);
            let (length, shown) = named.unwrap_or((length, &rest[..length]));
            done.push_str(shown);
            at += length;
        }
        done
    }

    /// Replaces names in texts, but not in keys, which may have the same names.
    fn in_json(&self, found: Value) -> Value {
        match found {
            Value::String(text) => {
                let hosts = self.host.iter().rev();
                hosts
                    .fold(self.in_words(&text), |text, host| {
                        text.replace(host, "host")
                    })
                    .into()
            }
            Value::Array(all) => all.into_iter().map(|found| self.in_json(found)).collect(),
            Value::Object(all) => all
                .into_iter()
                .map(|(key, found)| (key, self.in_json(found)))
                .collect(),
            other => other,
        }
    }
}

/// Present names first, then those that only handlers have: a former name, or that of an interface in a container.
fn interfaces(tree: &Tree, machine: &Machine) -> BTreeMap<String, String> {
    let listed = tree.file(INTERRUPTS).ok();
    let listed = listed
        .and_then(|file| parse(&mut file.text.as_bytes()).ok())
        .unwrap_or_default();
    let handlers = handlers(machine, &listed);
    let policy = tree.file(POLICY).map(|file| taught_drivers(&file.text));
    let drivers = policy.unwrap_or_default();
    let named = |(driver, handler): &(Option<&str>, &str)| {
        let named = classify(*driver, handler, &drivers)?;
        // Without a known driver, the name may be that of any device.
        let name = named
            .interface
            .filter(|_| driver.is_some() || named.numbering != Plain)?;
        Some((natural(name), name.to_owned()))
    };
    let now = tree.list(NET).unwrap_or_default().into_iter();
    let now = now.sorted_unstable_by_key(|name| natural(name));
    let others = handlers.iter().filter_map(named).sorted_unstable();
    let all = now.chain(others.map(|(_, name)| name)).unique();
    let other = |(number, name): (usize, String)| {
        // A shorter name would not be read as one that its driver has cut.
        let is_cut = |(_, handler): &(_, &str)| handler.starts_with(&name) && may_be_cut(handler);
        let length = if handlers.iter().any(is_cut) {
            name.len()
        } else {
            0
        };
        // Not with zeros, which would make it look like an address.
        let other = format!("{:x<length$}", format!("if{number}"));
        (name, other)
    };
    all.enumerate().map(other).inserted()
}

fn handlers<'a>(machine: &'a Machine, listed: &'a Interrupts) -> Vec<(Option<&'a str>, &'a str)> {
    let known = machine.interfaces.iter().flat_map(|interface| {
        let unknown = interface.unknown_vectors.iter();
        let unknown = unknown.chain(&interface.vanished_vectors);
        let vectors = interface.vectors.iter().map(|vector| &vector.action);
        let handlers = vectors.chain(unknown.map(|vector| &vector.action));
        let driver = interface.driver.as_deref();
        handlers.flat_map(move |handlers| handlers.iter().map(move |name| (driver, name)))
    });
    let listed = listed.values().flatten().map(|name| (None, &**name));
    known.chain(listed).collect()
}

fn below_cgroups(path: &str) -> Option<&str> {
    path.strip_prefix(CGROUPS)?.strip_prefix('/')
}
