//! The result of `check` as text.

use std::collections::BTreeMap;

use crate::render::note::text;
use crate::render::text::{columns, count, wrap};
use crate::report::check::{Check, CheckState, Unplannable};
use crate::report::difference::{Difference, Fallback, Reason};

pub fn check(check: &Check) -> String {
    let mut out = String::new();
    let mut reasons: BTreeMap<(&str, Reason), (usize, Option<&str>)> = BTreeMap::new();
    let mut rows = Vec::new();
    for Difference { write, reason, detail } in &check.differs {
        rows.push(vec![
            write.interface.to_string(),
            write.path.clone(),
            format!("is {}, planned {}", write.current, write.value),
        ]);
        let (many, first) = reasons.entry((&write.interface, *reason)).or_insert((0, detail.as_deref()));
        *many += 1;
        *first = (*first).filter(|first| Some(*first) == detail.as_deref());
    }
    out.push_str(&columns(0, &rows, &[15, 48]));
    for ((interface, reason), (many, detail)) in reasons {
        let name = if interface.is_empty() { "machine" } else { interface };
        let detail = detail.map(|detail| format!("; {detail}")).unwrap_or_default();
        let text = format!("{name}: {}: {}{detail}", count(many, "setting"), reason_words(reason));
        out.push_str(&wrap("because  ", &text));
    }
    for Fallback { path, planned, holds } in &check.fallbacks {
        let text =
            format!("{path}: {holds}, planned {planned}: the planned CPU had no free interrupt vector");
        out.push_str(&wrap("fallback  ", &text));
    }
    for change in &check.channels {
        out.push_str(&wrap(&format!("{}  channels, planned  ", change.interface), &change.command));
    }
    for Unplannable { interface, note } in &check.unknown {
        out.push_str(&wrap(
            "could not be determined  ",
            &format!("{interface}: {} ({})", text(note), note.code()),
        ));
    }
    for note in &check.notes {
        out.push_str(&wrap("note  ", &text(note)));
    }
    for Unplannable { interface, note } in &check.left_alone {
        out.push_str(&wrap("left alone  ", &format!("{interface}: {}", text(note))));
    }
    out.push_str(&match check.verdict {
        CheckState::Same => format!("same: {} as planned\n", count(check.same, "setting")),
        CheckState::Differs => {
            let differs = check.differs.len() + check.channels.len();
            let refused = check.differs.iter().all(|difference| difference.reason == Reason::KernelRefused);
            let fix = if refused && check.channels.is_empty() {
                "the kernel refused what apply wrote"
            } else {
                "nicpin apply fixes them"
            };
            format!("differs: {differs} of {} settings; {fix}\n", check.same + differs)
        }
        CheckState::CouldNotBeDetermined => {
            "could not be determined: not every requested interface can be planned\n".to_owned()
        }
    });
    out
}

/// A reason: its word in JSON, and its meaning.
fn reason_words(reason: Reason) -> &'static str {
    match reason {
        Reason::NotApplied => "not-applied: no apply has set it yet",
        Reason::MovedByOther => {
            "moved-by-other: changed since the last apply by another program, the driver or the kernel"
        }
        Reason::QueueCountChanged => {
            "queue-count-changed: the number of queues has changed since the last apply"
        }
        Reason::KernelRefused => "kernel-refused: the kernel refused it at the last apply",
        Reason::CpuOffline => "cpu-offline: its CPU went offline",
        Reason::IrqRecreated => "irq-recreated: the driver has allocated its vectors again",
        Reason::PlanChanged => "plan-changed: the machine or the policy has changed since the last apply",
    }
}
