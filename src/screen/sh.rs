//! A plan as a shell script: the writes of `apply`, with their reasons.

use std::fmt::Write as _;

use crate::screen::text::count;
use nicpin::machine::Rss;
use nicpin::machine::setting::{shown, thread_of};
use nicpin::machine::wording::word;
use nicpin::plan::{Plan, Write, WriteKind};

/// One line `echo VALUE > PATH`, `ethtool` or `taskset` for each write; not for a plan that changes channels.
pub fn plan(plan: &Plan) -> String {
    let mut out = format!(
        "#!/bin/sh\n# nicpin plan {}: {}, {} already as planned\n",
        plan.hash,
        count(plan.writes.len(), "write"),
        plan.unchanged
    );
    for write in &plan.writes {
        let on = if write.interface.is_empty() {
            "machine"
        } else {
            &write.interface
        };
        // Writing to a String cannot fail.
        let _ = writeln!(
            out,
            "{}  # {on}: {} (now {})",
            command(write),
            write.why.replace(char::is_control, " "),
            write.current
        );
    }
    out
}

/// The command of a write.
fn command(write: &Write) -> String {
    match write.kind {
        WriteKind::Rss => format!("{} {}", shown(&write.path), rss(&write.value)),
        WriteKind::Ntuple => format!("{} {}", shown(&write.path), write.value),
        WriteKind::NapiThread => {
            format!(
                "taskset -p {} {}",
                write.value,
                thread_of(&write.path).unwrap_or_default()
            )
        }
        _ => format!("echo {} > {}", write.value, word(&write.path)),
    }
}

/// The arguments with which `ethtool -X` spreads flows over the same queues.
fn rss(table: &str) -> String {
    let Some(table) = Rss::parse(table).filter(|table| !table.is_default()) else {
        return "default".to_owned();
    };
    let reached = table.reached();
    let (first, last) = (
        reached.first().copied().unwrap_or(0),
        reached.last().copied().unwrap_or(0),
    );
    match (reached.len(), first) {
        (count, _) if count < (last - first + 1) as usize => {
            let weights =
                (0..=last).map(|queue| if reached.contains(&queue) { " 1" } else { " 0" });
            format!("weight{}", weights.collect::<String>())
        }
        (count, 0) => format!("equal {count}"),
        (count, _) => format!("equal {count} start {first}"),
    }
}
