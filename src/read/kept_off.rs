//! CPUs that the administrator keeps interrupts off, besides isolated ones: those outside
//! `/proc/irq/default_smp_affinity` (`irqaffinity=`, `TuneD`, CRI-O; `Documentation/core-api/irq/irq-affinity.rst`),
//! those of `isolcpus=managed_irq`, which without `domain` only the kernel's command line shows
//! (`Documentation/admin-guide/kernel-parameters.txt`), and those banned in a file of irqbalance's service.

use std::collections::BTreeMap;

use itertools::{Itertools as _, chain};

use crate::cpuset::{CpuSet, MAX_CPUS};
use crate::machine::topology::KeptOff;
use crate::read::files::{assigned, read_best_effort};
use crate::root::{Result, Root};

pub const DEFAULT_AFFINITY: &str = "/proc/irq/default_smp_affinity";
const COMMAND_LINE: &str = "/proc/cmdline";
/// Debian; Fedora and its derivatives.
const ENVIRONMENT: [&str; 2] = ["/etc/default/irqbalance", "/etc/sysconfig/irqbalance"];
/// A file of the first hides one of that name in the others.
const UNITS: [&str; 3] = [
    "/etc/systemd/system",
    "/run/systemd/system",
    "/usr/lib/systemd/system",
];
const UNIT: &str = "irqbalance.service";

pub(super) fn read(root: &Root, online: &CpuSet) -> Result<Vec<KeptOff>> {
    let default = root.read_as(DEFAULT_AFFINITY, CpuSet::parse_kernel_mask)?;
    let outside = default.map(|default| (DEFAULT_AFFINITY.to_owned(), online.difference(&default)));
    // A capture has only these parts of the files.
    let others = root.gist("/nicpin/kept-off", || others(root))?;
    let all = outside.into_iter().chain(others);
    let online = all.map(|(by, cpus)| KeptOff {
        cpus: cpus.intersection(online),
        by,
    });
    Ok(online.filter(|kept| !kept.cpus.is_empty()).collect())
}

/// The CPUs of other lists, each with the file or option that has them.
fn others(root: &Root) -> Vec<(String, CpuSet)> {
    let mut found = Vec::new();
    let line = read_best_effort(root, COMMAND_LINE).unwrap_or_default();
    if let Some(cpus) = managed_cpus(&line) {
        found.push(("isolcpus=managed_irq in /proc/cmdline".to_owned(), cpus));
    }
    found.extend(banned_cpus(&irqbalance_files(root)));
    found
}

/// The unit, its drop-ins in systemd's order, and the environment files, whose assignments come after those of units.
fn irqbalance_files(root: &Root) -> Vec<(String, String)> {
    let mut units = BTreeMap::new();
    for directory in UNITS {
        let drop_ins = root.list(&format!("{directory}/{UNIT}.d")).ok().flatten();
        let drop_ins = drop_ins
            .into_iter()
            .flatten()
            .map(|name| format!("{UNIT}.d/{name}"));
        let drop_ins = drop_ins.filter(|name| name.strip_suffix(".conf").is_some());
        for name in chain([UNIT.to_owned()], drop_ins) {
            let path = format!("{directory}/{name}");
            if let Some(text) = read_best_effort(root, &path) {
                units.entry(name).or_insert((path, text));
            }
        }
    }
    let named = units.values().flat_map(|(_, text)| text.lines());
    let named = named.filter_map(|line| unit_setting(line, "EnvironmentFile"));
    let named = named.map(|path| path.trim().trim_start_matches('-').to_owned());
    let files = chain(ENVIRONMENT.map(str::to_owned), named).unique();
    let text = |path: String| read_best_effort(root, &path).map(|text| (path, text));
    let files = files.filter_map(text).collect_vec();
    chain(units.into_values(), files).collect()
}

fn managed_cpus(line: &str) -> Option<CpuSet> {
    // Words may be quoted, and those behind `--` are for init (`next_arg`, `parse_args`); N is the last CPU
    // (`bitmap_getnum`).
    let words = line
        .split_ascii_whitespace()
        .take_while(|word| *word != "--");
    let plain = words.map(|word| word.replace('"', ""));
    let isolated = plain.filter_map(|word| Some(word.strip_prefix("isolcpus=")?.to_owned()));
    let highest = (MAX_CPUS - 1).to_string();
    let lists = isolated.filter_map(|value| {
        let digit = value.find(|first: char| first.is_ascii_digit())?;
        let (flags, list) = value.split_at(digit);
        let mut flags = flags.split(',');
        flags
            .any(|flag| flag == "managed_irq")
            .then(|| CpuSet::parse_list(&list.replace('N', &highest)).ok())?
    });
    lists.reduce(|all, list| all.union(&list))
}

/// The last assignment counts.
fn banned_cpus(files: &[(String, String)]) -> Option<(String, CpuSet)> {
    let (mut list, mut mask) = (None, None);
    for (file, text) in files {
        let text = text.replace("\\\n", " ");
        for line in text.lines() {
            let unit = unit_setting(line, "Environment");
            if unit.is_some_and(|words| words.trim().is_empty()) {
                (list, mask) = (None, None);
            }
            let plain = line.split('#').next().unwrap_or_default();
            for word in unit.map_or_else(|| vec![unquoted(plain)], words) {
                if let Some(cpus) = assigned(&word, "IRQBALANCE_BANNED_CPULIST") {
                    list = Some((file, CpuSet::parse_list(cpus)));
                } else if let Some(cpus) = assigned(&word, "IRQBALANCE_BANNED_CPUS") {
                    mask = Some((file, CpuSet::parse_kernel_mask(cpus)));
                }
            }
        }
    }
    let found = chain(list, mask).map(|(file, cpus)| (file.clone(), cpus.unwrap_or_default()));
    found.into_iter().find(|(_, cpus)| !cpus.is_empty())
}

fn unit_setting<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let rest = line.trim_start().strip_prefix(name)?;
    rest.trim_start().strip_prefix('=')
}

/// The words of `Environment=`, which quotes hold together (`systemd.exec(5)`).
fn words(text: &str) -> Vec<String> {
    let mut quote = None;
    let is_between = |letter: char| match quote {
        Some(open) => {
            quote = quote.filter(|_| letter != open);
            false
        }
        None if ['"', '\''].contains(&letter) => {
            quote = Some(letter);
            false
        }
        None => letter.is_whitespace(),
    };
    text.split(is_between).map(unquoted).collect()
}

fn unquoted(text: &str) -> String {
    text.replace(['"', '\''], "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_command_line_and_irqbalance_keep_free() {
        for (line, cpus) in [
            (
                "quiet isolcpus=managed_irq,2-31,34-63 nosmt",
                Some("2-31,34-63"),
            ),
            ("isolcpus=nohz,domain,managed_irq,1", Some("1")),
            ("isolcpus=managed_irq,4-N", Some("4-8191")),
            ("isolcpus=\"managed_irq,2-3\" quiet", Some("2-3")),
            ("quiet -- isolcpus=managed_irq,1", None),
            ("isolcpus=domain,2-3", None),
            ("isolcpus=2-3", None),
            ("isolcpus=managed_irq", None),
            ("isolcpus=managed_irq,x", None),
            ("", None),
        ] {
            assert_eq!(
                managed_cpus(line).map(|set| set.to_string()).as_deref(),
                cpus,
                "{line}"
            );
        }
        for (texts, cpus) in [
            (&["IRQBALANCE_BANNED_CPUS=fc\n"][..], Some("2-7")),
            (&["# IRQBALANCE_BANNED_CPUS=fc\n"], None),
            (
                &["IRQBALANCE_BANNED_CPULIST=\"2-3,8\" # pods\n"],
                Some("2-3,8"),
            ),
            (&["IRQBALANCE_BANNED_CPUS=00000001,00000000\n"], Some("32")),
            (
                &["IRQBALANCE_BANNED_CPULIST=\nIRQBALANCE_BANNED_CPUS=\n"],
                None,
            ),
            (&["IRQBALANCE_BANNED_CPULIST=-\n"], None),
            (
                &["[Service]\nEnvironment=\"IRQBALANCE_BANNED_CPULIST=2-3\"\n"],
                Some("2-3"),
            ),
            (&["Environment=IRQBALANCE_BANNED_CPULIST=4\n"], Some("4")),
            (
                &["Environment = \"A=b c\" 'IRQBALANCE_BANNED_CPULIST=0-1'\n"],
                Some("0-1"),
            ),
            (
                &["Environment=\"A=1\" \\\n  IRQBALANCE_BANNED_CPULIST=\"2, 4\" B=3\n"],
                Some("2,4"),
            ),
            (
                &["Environment=IRQBALANCE_BANNED_CPULIST=4\nEnvironment=\n"],
                None,
            ),
            (
                &[
                    "Environment=IRQBALANCE_BANNED_CPULIST=4\n",
                    "IRQBALANCE_BANNED_CPULIST=5\n",
                ],
                Some("5"),
            ),
        ] {
            let files = texts.iter().map(|text| (String::new(), (*text).to_owned()));
            let banned = banned_cpus(&files.collect_vec()).map(|(_, cpus)| cpus.to_string());
            assert_eq!(banned.as_deref(), cpus, "{texts:?}");
        }
    }
}
