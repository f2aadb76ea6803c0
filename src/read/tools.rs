//! Other tools that write affinities, found by their files: irqbalance, from which IRQs can be banned while it runs,
//! and those that can only be reported: tuned, systemd-udevd by a `.link` file, a cloud's script at boot.

pub mod irqbalance;
mod process;

use std::collections::BTreeSet;

use itertools::Itertools as _;
pub use process::stat_of;

use crate::machine::OtherTools;
use crate::machine::others::OtherTool::{self, CloudScript, LinkFile, LinkRps, Tuned};
use crate::read::files::{name_in, read_best_effort};
use crate::root::Root;

/// Path of the result in a capture, which has none of the files.
pub const RECORDED: &str = "/nicpin/other-tools";

const SCRIPTS: [(&str, &str); 2] = [
    (
        "google_set_multiqueue",
        "vectors and XPS of Google's interfaces",
    ),
    ("ecs_mq_rps_rfs", "RPS, RFS and XPS of virtio interfaces"),
];

/// Where systemd-udevd looks for `.link` files; a name in an earlier directory hides it in later ones.
const LINK_DIRECTORIES: [&str; 4] = [
    "/etc/systemd/network",
    "/run/systemd/network",
    "/usr/local/lib/systemd/network",
    "/usr/lib/systemd/network",
];

/// Where tuned looks for profiles: since 2.24, and before.
const PROFILES: [&str; 4] = [
    "/etc/tuned/profiles",
    "/etc/tuned",
    "/usr/lib/tuned/profiles",
    "/usr/lib/tuned",
];
const TUNED_PID_FILE: &str = "/run/tuned/tuned.pid";
const ACTIVE_PROFILE: &str = "/etc/tuned/active_profile";

/// No error ends a command: an unreadable tool counts as undetermined.
pub(crate) fn find(root: &Root) -> OtherTools {
    let (irqbalance, irqbalance_hidden) = match irqbalance::find(root) {
        Ok(pid) => (pid.map(|pid| irqbalance::read(root, pid)), None),
        Err(path) => (None, Some(path)),
    };
    let mut others = Vec::from_iter(tuned(root));
    others.extend(links(root));
    for ((name, writes), directory) in SCRIPTS
        .into_iter()
        .cartesian_product(["/usr/bin", "/usr/sbin"])
    {
        let path = format!("{directory}/{name}");
        if root.exists(&path) {
            others.push(CloudScript {
                path,
                writes: writes.to_owned(),
            });
        }
    }
    OtherTools {
        irqbalance,
        irqbalance_hidden,
        others,
    }
}

fn tuned(root: &Root) -> Option<OtherTool> {
    let active = read_best_effort(root, ACTIVE_PROFILE)?;
    if !matches!(
        process::find(root, "tuned", |traces| traces.in_file(root, TUNED_PID_FILE)),
        Ok(Some(_))
    ) {
        return None;
    }
    let mut left: Vec<String> = active.split_whitespace().rev().map(str::to_owned).collect();
    let mut seen = BTreeSet::new();
    while let Some(profile) = left.pop() {
        // The name becomes part of a path, and a profile may include itself.
        if profile.contains('/') || !seen.insert(profile.clone()) {
            continue;
        }
        let read = |above| read_best_effort(root, &format!("{above}/{profile}/tuned.conf"));
        let Some(text) = PROFILES.into_iter().find_map(read) else {
            continue;
        };
        let has_irq_unit = || {
            text.lines().any(|line| line.trim() == "[irq]")
                || values(&text, "type").any(|plugin| plugin == "irq")
        };
        let setting = if values(&text, "isolated_cores").any(|cores| !cores.is_empty()) {
            "isolated_cores"
        } else if has_irq_unit() {
            "the plugin irq"
        } else {
            left.extend(
                values(&text, "include")
                    .flat_map(|names| names.split([' ', ',', ';']))
                    .map(str::to_owned),
            );
            continue;
        };
        return Some(Tuned {
            active: name_in(&active).to_owned(),
            profile,
            setting: setting.to_owned(),
        });
    }
    None
}

fn values<'a>(text: &'a str, name: &'a str) -> impl Iterator<Item = &'a str> {
    text.lines()
        .filter_map(|line| line.split_once('='))
        .filter_map(move |(key, value)| (key.trim() == name).then_some(value.trim()))
}

fn links(root: &Root) -> Vec<OtherTool> {
    let names = |directory: &str| root.read_names(directory).unwrap_or_default();
    let (mut links, mut seen) = (Vec::new(), BTreeSet::new());
    for directory in LINK_DIRECTORIES {
        for name in names(directory) {
            let files = if name.strip_suffix(".link.d").is_some() {
                let mut added = names(&format!("{directory}/{name}"));
                added.retain(|added| added.strip_suffix(".conf").is_some());
                added
                    .iter()
                    .map(|added| format!("{name}/{added}"))
                    .collect()
            } else if name.strip_suffix(".link").is_some() {
                vec![name]
            } else {
                continue;
            };
            for file in files.into_iter().filter(|file| seen.insert(file.clone())) {
                let path = format!("{directory}/{file}");
                let text = root.read_text(&path).unwrap_or_default();
                let value = values(&text, "IRQAffinityPolicy").last();
                // The value is one word; a comment may follow.
                let policy = value.and_then(|value| value.split_ascii_whitespace().next());
                links.extend(policy.map(|policy| LinkFile {
                    path: path.clone(),
                    policy: policy.to_owned(),
                }));
                let mask = values(&text, "ReceivePacketSteeringCPUMask").last();
                let is_of_mask = |word: &&str| {
                    let is_list =
                        |text: &str| text.bytes().all(|byte| b"0123456789-,".contains(&byte));
                    ["all", "disable"].contains(word) || is_list(word)
                };
                let words = mask.into_iter().flat_map(str::split_ascii_whitespace);
                let mask = words.take_while(is_of_mask).join(" ");
                if !mask.is_empty() {
                    links.push(LinkRps { path, mask });
                }
            }
        }
    }
    links
}
