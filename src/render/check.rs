//! What `check` found, as a value for JSON and as text.

use std::collections::BTreeMap;

use crate::render::note::text;
use crate::render::text::{columns, count, wrap};
use crate::report::check::Check;
use crate::report::check::CheckState;
use crate::report::check::Unplannable;
use crate::report::difference::Difference;
use crate::report::difference::Fallback;
use crate::report::difference::Reason;

/// `check` for people.
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
        let text = format!("{name}: {}: {}{detail}", count(many, "value"), reason_words(reason));
        out.push_str(&wrap("because  ", &text));
    }
    for Fallback { path, planned, holds } in &check.instead {
        let text = format!("{path}: {holds} for {planned}, since the kernel had no room there");
        out.push_str(&wrap("instead  ", &text));
    }
    for change in &check.channels {
        out.push_str(&wrap(&format!("{}  channels, planned  ", change.interface), &change.command));
    }
    for Unplannable { interface, note } in &check.unknown {
        out.push_str(&wrap("could not tell  ", &format!("{interface}: {} ({})", text(note), note.code())));
    }
    for note in &check.notes {
        out.push_str(&wrap("note  ", &text(note)));
    }
    for Unplannable { interface, note } in &check.left_alone {
        out.push_str(&wrap("left alone  ", &format!("{interface}: {}", text(note))));
    }
    out.push_str(&match check.verdict {
        CheckState::Same => format!("same: {} as planned\n", count(check.same, "value")),
        CheckState::Differs => {
            let differs = check.differs.len() + check.channels.len();
            let refused = check.differs.iter().all(|difference| difference.reason == Reason::KernelRefused);
            let fix = if refused && check.channels.is_empty() {
                "the kernel refused what apply wrote"
            } else {
                "nicpin apply mends it"
            };
            format!("differs: {differs} of {}; {fix}\n", check.same + differs)
        }
        CheckState::CouldNotTell => {
            "could not tell: not everything that was asked for can be planned\n".to_owned()
        }
    });
    out
}

/// A reason with its fixed word and in words for people.
fn reason_words(reason: Reason) -> &'static str {
    match reason {
        Reason::NotApplied => "not-applied: no apply has set it",
        Reason::MovedByOther => {
            "moved-by-other: changed since the last apply by another program, the driver or the kernel"
        }
        Reason::QueueCountChanged => "queue-count-changed",
        Reason::KernelRefused => "kernel-refused: not taken at the last apply",
        Reason::CpuOffline => "cpu-offline: its CPU went offline",
        Reason::IrqRecreated => "irq-recreated: the driver has allocated its vectors anew",
        Reason::PlanChanged => "plan-changed: the machine or the policy is another than at the last apply",
    }
}
