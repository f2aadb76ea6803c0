//! CPUs that the administrator keeps interrupts off, besides isolated ones: those outside
//! `/proc/irq/default_smp_affinity` (`irqaffinity=`, `TuneD`, CRI-O; `Documentation/core-api/irq/irq-affinity.rst`),
//! those of `isolcpus=managed_irq`, which without `domain` only the kernel's command line shows
//! (`Documentation/admin-guide/kernel-parameters.txt`), and those banned in a file of irqbalance's service.

use crate::cpuset::{CpuSet, MAX_CPUS};
use crate::machine::topology::KeptOff;
use crate::read::files::{assigned, read_best_effort};
use crate::root::{Result, Root};

pub const DEFAULT_AFFINITY: &str = "/proc/irq/default_smp_affinity";
const COMMAND_LINE: &str = "/proc/cmdline";
/// Debian; Fedora and its derivatives.
const IRQBALANCE: [&str; 2] = ["/etc/default/irqbalance", "/etc/sysconfig/irqbalance"];
/// `systemctl edit irqbalance`.
const DROP_INS: &str = "/etc/systemd/system/irqbalance.service.d";

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
    let mut drop_ins = root.list(DROP_INS).ok().flatten().unwrap_or_default();
    drop_ins.retain(|name| name.strip_suffix(".conf").is_some());
    let drop_ins = drop_ins.iter().map(|name| format!("{DROP_INS}/{name}"));
    for file in IRQBALANCE.map(str::to_owned).into_iter().chain(drop_ins) {
        let text = read_best_effort(root, &file).unwrap_or_default();
        found.extend(banned_cpus(&text).map(|cpus| (file, cpus)));
    }
    found
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
fn banned_cpus(text: &str) -> Option<CpuSet> {
    let value = |name: &str| {
        let mut settings = text.lines().filter_map(|line| {
            let unit = line.strip_prefix("Environment=").unwrap_or(line);
            assigned(unit.trim_start_matches(['"', '\'']), name)
        });
        let value = settings.next_back()?.split('#').next()?;
        Some(value.trim().trim_matches(['"', '\'']).to_owned())
    };
    let list = value("IRQBALANCE_BANNED_CPULIST");
    let list = list.and_then(|list| CpuSet::parse_list(&list).ok());
    let mask = || CpuSet::parse_kernel_mask(&value("IRQBALANCE_BANNED_CPUS")?).ok();
    list.or_else(mask).filter(|cpus| !cpus.is_empty())
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
        for (text, cpus) in [
            ("IRQBALANCE_BANNED_CPUS=fc\n", Some("2-7")),
            ("# IRQBALANCE_BANNED_CPUS=fc\n", None),
            (
                "IRQBALANCE_BANNED_CPULIST=\"2-3,8\" # pods\n",
                Some("2-3,8"),
            ),
            ("IRQBALANCE_BANNED_CPUS=00000001,00000000\n", Some("32")),
            (
                "IRQBALANCE_BANNED_CPULIST=\nIRQBALANCE_BANNED_CPUS=\n",
                None,
            ),
            ("IRQBALANCE_BANNED_CPULIST=-\n", None),
            (
                "[Service]\nEnvironment=\"IRQBALANCE_BANNED_CPULIST=2-3\"\n",
                Some("2-3"),
            ),
            ("Environment=IRQBALANCE_BANNED_CPULIST=4\n", Some("4")),
        ] {
            assert_eq!(
                banned_cpus(text).map(|set| set.to_string()).as_deref(),
                cpus,
                "{text}"
            );
        }
    }
}
