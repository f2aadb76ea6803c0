//! Other tools that write affinities on this machine: irqbalance, from which IRQs can be banned while it runs; and those
//! that write at certain moments, have no list of banned IRQs and can only be reported: tuned when it applies its profile,
//! systemd-udevd by a `.link` file when a device appears, a cloud's script at boot. Each is found by its files.

pub mod irqbalance;
mod process;

use std::collections::BTreeSet;

use crate::machine::OtherTools;
use crate::machine::others::OtherTool;
use crate::read::files::{name_in, name_of, read_best_effort};
use crate::root::Root;

pub(crate) use process::Found;
pub use process::is_unrelated_process;
pub(in crate::read) use process::stat_of;

/// Scripts that cloud images run at boot, and what they write.
const SCRIPTS: [(&str, &str); 2] = [
    (
        "google_set_multiqueue",
        "vectors and XPS of Google's interfaces",
    ),
    ("ecs_mq_rps_rfs", "RPS, RFS and XPS of virtio interfaces"),
];

/// Where systemd-udevd looks for `.link` files; a name in an earlier one hides it in the later ones.
const LINK_DIRECTORIES: [&str; 4] = [
    "/etc/systemd/network",
    "/run/systemd/network",
    "/usr/local/lib/systemd/network",
    "/usr/lib/systemd/network",
];

/// Where tuned looks for its profiles: its own since 2.24, and before.
const PROFILES: [&str; 4] = [
    "/etc/tuned/profiles",
    "/etc/tuned",
    "/usr/lib/tuned/profiles",
    "/usr/lib/tuned",
];
const TUNED_PID_FILE: &str = "/run/tuned/tuned.pid";
const ACTIVE_PROFILE: &str = "/etc/tuned/active_profile";

/// Finds them. Nothing of this ends a command: what cannot be read could not be determined.
pub(crate) fn read(root: &Root) -> OtherTools {
    let (irqbalance, irqbalance_hidden) = match irqbalance::find(root) {
        Found::Running(pid) => (Some(irqbalance::read(root, pid)), None),
        Found::Hidden(path) => (None, Some(path)),
        Found::No => (None, None),
    };
    let mut others = Vec::from_iter(tuned(root));
    others.extend(links(root));
    for (name, writes) in SCRIPTS {
        for directory in ["/usr/bin", "/usr/sbin"] {
            let path = format!("{directory}/{name}");
            if root.exists(&path) {
                let writes = writes.to_owned();
                others.push(OtherTool::CloudScript { path, writes });
            }
        }
    }
    OtherTools {
        irqbalance,
        irqbalance_hidden,
        others,
    }
}

/// tuned, if it runs and its active profile moves interrupts.
fn tuned(root: &Root) -> Option<OtherTool> {
    let active = read_best_effort(root, ACTIVE_PROFILE)?;
    let found = process::find(root, "tuned", |traces| traces.in_file(root, TUNED_PID_FILE));
    if !matches!(found, Found::Running(_)) {
        return None;
    }
    let mut left: Vec<String> = active.split_whitespace().rev().map(str::to_owned).collect();
    let mut seen = BTreeSet::new();
    while let Some(profile) = left.pop() {
        // The name becomes part of a path, and a profile may include itself.
        if profile.contains('/') || !seen.insert(profile.clone()) {
            continue;
        }
        let mut files = PROFILES
            .iter()
            .map(|above| format!("{above}/{profile}/tuned.conf"));
        let Some(text) = files.find_map(|file| read_best_effort(root, &file)) else {
            continue;
        };
        let setting = if text.lines().any(isolates) {
            "isolated_cores"
        } else if text
            .lines()
            .any(|line| is_irq_unit(line) || is_irq_type(line))
        {
            "the plugin irq"
        } else {
            let included = text
                .lines()
                .filter_map(|line| value(line, "include"))
                .flat_map(|names| names.split([' ', ',', ';']));
            left.extend(included.map(str::to_owned));
            continue;
        };
        return Some(OtherTool::Tuned {
            active: name_in(&active).to_owned(),
            profile,
            setting: setting.to_owned(),
        });
    }
    None
}

/// Whether a line of a profile moves interrupts by the plugin `scheduler`.
fn isolates(line: &str) -> bool {
    value(line, "isolated_cores").is_some_and(|cores| !cores.is_empty())
}

/// Whether it begins a unit that is named as the plugin `irq`, which moves interrupts.
fn is_irq_unit(line: &str) -> bool {
    line.trim() == "[irq]"
}

/// Whether it makes a unit one of that plugin.
fn is_irq_type(line: &str) -> bool {
    value(line, "type") == Some("irq")
}

/// The value that a line of an INI file gives a name.
fn value<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let (key, value) = line.split_once('=')?;
    (key.trim() == name).then_some(value.trim())
}

/// The `.link` files and drop-ins with which systemd-udevd sets vectors.
fn links(root: &Root) -> Vec<OtherTool> {
    let names = |directory: &str| root.list(directory).ok().flatten().unwrap_or_default();
    let (mut links, mut seen) = (Vec::new(), BTreeSet::new());
    for directory in LINK_DIRECTORIES {
        for name in names(directory) {
            let files = if name.strip_suffix(".link.d").is_some() {
                let mut added = names(&format!("{directory}/{name}"));
                added.retain(|added| added.strip_suffix(".conf").is_some());
                added
                    .into_iter()
                    .map(|added| format!("{name}/{added}"))
                    .collect()
            } else if name.strip_suffix(".link").is_some() {
                vec![name]
            } else {
                continue;
            };
            for file in files.into_iter().filter(|file| seen.insert(file.clone())) {
                let path = format!("{directory}/{file}");
                let text = read_best_effort(root, &path).unwrap_or_default();
                let policy = text.lines().filter_map(affinity_policy).next_back();
                if let Some(policy) = policy.filter(|policy| !policy.is_empty()) {
                    let policy = policy.to_owned();
                    links.push(OtherTool::LinkFile { path, policy });
                }
            }
        }
    }
    links
}

/// The value of `IRQAffinityPolicy=`, a word; what follows it is somebody's comment.
fn affinity_policy(line: &str) -> Option<&str> {
    Some(
        value(line, "IRQAffinityPolicy")?
            .split_ascii_whitespace()
            .next()
            .unwrap_or_default(),
    )
}

/// The lines of a file that are read here, and nothing else of it: what a capture may keep. `None` for a file that is
/// none of theirs.
pub fn bare(path: &str, text: &str) -> Option<String> {
    let bare = process::bare(path, text);
    if bare.is_some() {
        return bare;
    }
    let line: fn(&str) -> Option<String> = if path == irqbalance::UNIX_SOCKETS {
        irqbalance::bare_socket
    } else if irqbalance::FILES.iter().any(|(file, _)| *file == path) {
        irqbalance::bare_arguments
    } else if name_of(path) == "tuned.conf" {
        bare_profile
    } else if LINK_DIRECTORIES.iter().any(|above| path.starts_with(above)) {
        |line| Some(format!("IRQAffinityPolicy={}", affinity_policy(line)?))
    } else {
        return None;
    };
    Some(
        text.lines()
            .filter_map(line)
            .map(|line| line + "\n")
            .collect(),
    )
}

fn bare_profile(line: &str) -> Option<String> {
    let included = value(line, "include").and_then(|names| names.split(['#', ';']).next());
    Some(match included {
        Some(names) => format!("include={names}"),
        None if is_irq_type(line) => "type=irq".to_owned(),
        None if is_irq_unit(line) => "[irq]".to_owned(),
        None if isolates(line) => "isolated_cores=(left out)".to_owned(),
        None => return None,
    })
}

/// Whether a name in a directory is a fact without being opened.
pub fn is_fact(directory: &str, name: &str) -> bool {
    irqbalance::DIRECTORIES.contains(&directory) && irqbalance::pid_of_socket(name).is_some()
}
