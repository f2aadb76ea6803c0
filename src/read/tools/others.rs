//! Tools that write affinities at certain moments and have no list of banned IRQs: tuned when it applies its profile,
//! systemd-udevd by a `.link` file when a device appears, a cloud's script at boot. Each is found by its files.

use std::collections::BTreeSet;

use crate::machine::others::OtherTool;
use crate::read::files::{name_in, read_best_effort};
use crate::read::tools::process::{self, Found};
use crate::root::Root;

/// Scripts that cloud images run at boot, and what they write.
const SCRIPTS: [(&str, &str); 4] = [
    (
        "/usr/bin/google_set_multiqueue",
        "vectors and XPS of Google's interfaces",
    ),
    (
        "/usr/sbin/google_set_multiqueue",
        "vectors and XPS of Google's interfaces",
    ),
    (
        "/usr/bin/ecs_mq_rps_rfs",
        "RPS, RFS and XPS of virtio interfaces",
    ),
    (
        "/usr/sbin/ecs_mq_rps_rfs",
        "RPS, RFS and XPS of virtio interfaces",
    ),
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

pub(super) fn read(root: &Root) -> Vec<OtherTool> {
    let mut tools: Vec<OtherTool> = tuned(root).into_iter().collect();
    tools.extend(links(root));
    for (path, writes) in SCRIPTS {
        if root.exists(path) {
            tools.push(OtherTool::CloudScript {
                path: path.to_owned(),
                writes: writes.to_owned(),
            });
        }
    }
    tools
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
        let Some(text) = profile_text(root, &profile) else {
            continue;
        };
        if let Some(what) = moves_interrupts(&text) {
            let (active, setting) = (name_in(&active).to_owned(), what.to_owned());
            return Some(OtherTool::Tuned {
                active,
                profile,
                setting,
            });
        }
        let included = text.lines().filter_map(|line| setting(line, "include"));
        left.extend(
            included
                .flat_map(|value| value.split([' ', ',', ';']))
                .map(str::to_owned),
        );
    }
    None
}

fn profile_text(root: &Root, profile: &str) -> Option<String> {
    PROFILES
        .iter()
        .find_map(|directory| read_best_effort(root, &format!("{directory}/{profile}/tuned.conf")))
}

/// The setting of a profile that moves interrupts: the plugin `irq`, or `isolated_cores` of the plugin `scheduler`.
fn moves_interrupts(text: &str) -> Option<&'static str> {
    let isolates =
        |line: &str| setting(line, "isolated_cores").is_some_and(|value| !value.is_empty());
    let irq = |line: &str| line.trim() == "[irq]" || setting(line, "type") == Some("irq");
    if text.lines().any(isolates) {
        Some("isolated_cores")
    } else {
        text.lines().any(irq).then_some("the plugin irq")
    }
}

/// The value that a line of an INI file gives a name.
fn setting<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let (key, value) = line.split_once('=')?;
    (key.trim() == name).then_some(value.trim())
}

/// The `.link` files and drop-ins with which systemd-udevd sets vectors.
fn links(root: &Root) -> Vec<OtherTool> {
    let (mut links, mut seen) = (Vec::new(), BTreeSet::new());
    for directory in LINK_DIRECTORIES {
        for name in names(root, directory) {
            let files = if name.strip_suffix(".link.d").is_some() {
                let added = names(root, &format!("{directory}/{name}"));
                let added = added
                    .into_iter()
                    .filter(|added| added.strip_suffix(".conf").is_some());
                added.map(|added| format!("{name}/{added}")).collect()
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
                    links.push(OtherTool::LinkFile {
                        path,
                        policy: policy.to_owned(),
                    });
                }
            }
        }
    }
    links
}

/// The value of `IRQAffinityPolicy=`, a word; what follows it is somebody's comment.
fn affinity_policy(line: &str) -> Option<&str> {
    setting(line, "IRQAffinityPolicy")
        .map(|value| value.split_ascii_whitespace().next().unwrap_or_default())
}

/// As [`read_best_effort`].
fn names(root: &Root, directory: &str) -> Vec<String> {
    root.list(directory).ok().flatten().unwrap_or_default()
}

/// The part of a line that is read; the rest is dropped.
pub(super) fn bare_line(path: &str) -> Option<fn(&str) -> Option<String>> {
    let name = path.rsplit('/').next().unwrap_or_default();
    if name == "tuned.conf" {
        return Some(|line| match setting(line, "include") {
            Some(value) => Some(format!(
                "include={}",
                value.split(['#', ';']).next().unwrap_or_default()
            )),
            None if setting(line, "type") == Some("irq") => Some("type=irq".to_owned()),
            None if setting(line, "isolated_cores").is_some_and(|value| !value.is_empty()) => {
                Some("isolated_cores=(left out)".to_owned())
            }
            None => (line.trim() == "[irq]").then(|| line.trim().to_owned()),
        });
    }
    let link = LINK_DIRECTORIES
        .iter()
        .any(|directory| path.starts_with(directory));
    link.then_some(|line| Some(format!("IRQAffinityPolicy={}", affinity_policy(line)?)))
}
