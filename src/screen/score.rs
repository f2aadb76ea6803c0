//! The score of the current and of the planned state.

use crate::screen::page::Page;
use nicpin::plan::{MEASURES, RdmaScore, Score};

type Row = (&'static str, String, String);

/// The figures, now and planned: those of the objective that are not 0 both now and planned, in its order, and others.
fn rows(now: &Score, planned: &Score) -> Vec<Row> {
    let local = |score: &Score| {
        score.local.map_or("?".to_owned(), |local| {
            format!("{:.0}%", (local * 100.0).floor())
        })
    };
    let row = |what, of: fn(&Score) -> usize| (what, of(now).to_string(), of(planned).to_string());
    let mut rows = vec![("local queue IRQs", local(now), local(planned))];
    for measure in MEASURES {
        let [now, planned] = [now, planned].map(|score| (measure.of)(score) / measure.unit);
        if now.max(planned) > 0 {
            rows.push((measure.what, now.to_string(), planned.to_string()));
        }
    }
    rows.push(row("vectors on isolated CPUs", |score| score.on_isolated));
    if let (Some(now), Some(planned)) = (&now.rdma, &planned.rdma) {
        let row = |what, of: fn(&RdmaScore) -> usize| {
            (what, of(now).to_string(), of(planned).to_string())
        };
        rows.push(row("RDMA vectors on the local node", |rdma| rdma.local));
        rows.push(row("most RDMA vectors on a core", |rdma| rdma.max_per_core));
    }
    rows
}

/// Both scores, side by side.
pub(crate) fn table(now: &Score, planned: &Score) -> Page {
    let mut page = Page::default();
    page.line(format!("{:<36}{:>6}{:>9}", "score", "now", "planned"));
    for (what, now, planned) in rows(now, planned) {
        page.line(format!("  {what:<34}{now:>6}{planned:>9}"));
    }
    page
}

/// What the plan changes in the score, after a statement on what it changes.
pub(crate) fn gain(now: &Score, planned: &Score) -> String {
    let changed = rows(now, planned)
        .into_iter()
        .filter(|(_, now, planned)| now != planned);
    let changed: Vec<String> = changed
        .map(|(what, now, planned)| format!("{what} {now} to {planned}"))
        .collect();
    match changed.as_slice() {
        [] => "; the score stays as it is".to_owned(),
        changed => format!(": {}", changed.join(", ")),
    }
}
