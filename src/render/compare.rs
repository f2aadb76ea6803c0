//! A comparison as a table: near and far side by side.

use crate::render::note::note;
use crate::render::text::{columns, count, wrap};
use crate::report::compare::{Comparison, Figure, Side, Spread};

pub fn compare(comparison: &Comparison) -> String {
    let side = |name: &str, side: &Side| {
        wrap(&format!("{name:<5} "), &format!("node {}, CPUs {}", side.nodes, side.cpus))
    };
    let runs = count(comparison.near.runs.len(), "run");
    let mut out = wrap(
        &format!("{}  ", comparison.interface),
        &format!("{} near and far, {runs} each, alternating", comparison.command.join(" ")),
    );
    out.push_str(&side("near", &comparison.near));
    out.push_str(&side("far", &comparison.far));
    out.push('\n');
    let mut rows =
        vec![["", "near", "(from, to)", "far", "(from, to)", "far/near"].map(str::to_owned).to_vec()];
    rows.extend(comparison.figures.iter().map(figure));
    out.push_str(&columns(0, &rows, &[24, 10, 18, 10, 18]));
    for note in &comparison.notes {
        out.push_str(&self::note("", note));
    }
    out
}

fn figure(figure: &Figure) -> Vec<String> {
    let (name, digits) = match figure.name {
        "wall_seconds" => ("wall s", 2),
        "cpu_seconds" => ("CPU s of the command", 2),
        "busy_cpu_seconds" => ("CPU s of the machine", 2),
        "softirq_cpu_seconds" => ("CPU s in softirqs", 2),
        "gbit_per_second" => ("Gbit/s", 3),
        "gbit_per_busy_cpu_second" => ("Gbit per CPU s", 3),
        "local_interrupts" => ("interrupts local", 0),
        "remote_interrupts" => ("interrupts remote", 0),
        other => (other, 0),
    };
    let middle = |spread: Option<Spread>| spread.map_or("-".to_owned(), |s| format!("{:.digits$}", s.median));
    let ends = |spread: Option<Spread>| {
        spread.map_or(String::new(), |s| format!("({:.digits$}, {:.digits$})", s.min, s.max))
    };
    vec![
        name.to_owned(),
        middle(figure.near),
        ends(figure.near),
        middle(figure.far),
        ends(figure.far),
        figure.far_to_near.map_or("-".to_owned(), |ratio| format!("{ratio:.2}")),
    ]
}
