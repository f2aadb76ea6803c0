//! Removes what could identify a machine: hardware and IP addresses, GUIDs, host names, serial numbers, comments, and
//! the places of a site's scripts; on request also the names that a site gives.
//!
//! Reading a machine does not open most of the files that hold them. This is a second safeguard: files about identity
//! are left out even if they were read, and addresses are replaced in names and texts (`identity.rs`).

mod identity;
mod names;

use identity::StandIns;
use names::{Cgroups, Names};

use nicpin::machine::OtherTools;
use nicpin::policy::without_comments;
use nicpin::read::netlink::ALTNAMES;
use nicpin::read::tools::RECORDED;
use nicpin::root::tree::{Entry, Tree, TreeFile};
use nicpin::root::{FileError, Root};

const NET: &str = "/sys/class/net";
/// Where a site keeps its policy.
pub(super) const POLICY: &str = "/etc/nicpin.toml";
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
/// of the host. Adds to `changes` what was changed, a line each, for the user and not for the capture.
pub(super) fn redact(
    tree: &Tree,
    root: &Root,
    names: bool,
    changes: &mut Vec<String>,
) -> Result<Tree, FileError> {
    let names = if names {
        Names::of(tree, root)?
    } else {
        Names::default()
    };
    let cgroups = Cgroups::of(tree);
    if let Some(last) = cgroups.renamed() {
        changes.push(format!(
            "cgroups are cgroup0001 to cgroup{last:04} in the capture"
        ));
    }
    let texts = tree.iter().flat_map(|(path, entry)| match entry {
        Entry::Directory(_) => [path, ""],
        Entry::Link(target) => [path, target],
        Entry::File(file) => [path, &file.text],
    });
    let own = addresses(root)?.into_iter().map(|(_, address)| address);
    let stand_ins = StandIns::of(texts, own);
    let mut redacted = Tree::default();
    for (path, entry) in tree.iter() {
        let (above, name) = path.rsplit_once('/').unwrap_or_default();
        let left_out = |why: &str| format!("{path} is left out: {why}");
        let is_named = path == ALTNAMES && names.are_replaced();
        if is_named || IDENTITY.contains(&name) && !matches!(entry, Entry::Directory(_)) {
            changes.push(left_out("it can identify the machine"));
            continue;
        }
        let hidden = match entry {
            Entry::Directory(_) => entry.without_names(),
            Entry::Link(target) => Entry::Link(stand_ins.hide(&names.in_path(target))),
            Entry::File(file) => {
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
                    text = without_script(&text, changes).map_or(text, Into::into);
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
                Entry::File(TreeFile { text, ..*file })
            }
        };
        let renamed = names.in_path(&cgroups.in_path(path));
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
    Ok(redacted)
}

/// The hardware address of each interface that has one.
pub(super) fn addresses(root: &Root) -> Result<Vec<(String, String)>, FileError> {
    let mut addresses = Vec::new();
    for name in root.list(NET)?.unwrap_or_default() {
        let address = root.read_opt(&format!("{NET}/{name}/address"))?;
        let address = address.map(|address| address.trim().to_owned());
        let address = address.filter(|address| is_hardware_address(address));
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
