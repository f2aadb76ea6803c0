//! A comparison as a table, near and far one below the other, and the same table in Markdown.

use crate::screen::note::note;
use crate::screen::page::Page;
use crate::screen::text::count;
use nicpin::report::compare::{Comparison, Figure, Spread};

pub fn compare(comparison: &Comparison) -> Page {
    let mut page = Page::default();
    page.item(format!("{}  ", comparison.interface), what(comparison));
    for (name, side) in [("near  ", &comparison.near), ("far   ", &comparison.far)] {
        page.item(
            name,
            format!("node {}, CPUs {}", side.nodes, side.cpus.short()),
        );
    }
    page.line("");
    let mut rows = vec![HEADER.map(str::to_owned).to_vec()];
    rows.extend(comparison.figures.iter().flat_map(figure));
    page.table(0, rows);
    for note in &comparison.notes {
        page.add(self::note("", note));
    }
    page
}

/// The comparison as a section of a Markdown document.
pub fn markdown(comparison: &Comparison) -> String {
    let Comparison {
        interface,
        near,
        far,
        ..
    } = comparison;
    let mut out = format!(
        "`{interface}`: `{}`\n\n",
        what(comparison).replace('`', "'")
    );
    out.push_str(&format!(
        "* near: node {}, CPUs {}\n",
        near.nodes, near.cpus
    ));
    out.push_str(&format!("* far: node {}, CPUs {}\n\n", far.nodes, far.cpus));
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    out.push_str(&line(&HEADER.map(str::to_owned)));
    out.push_str("|:---|:---|---:|---:|---:|---:|---:|\n");
    for row in comparison.figures.iter().flat_map(figure) {
        out.push_str(&line(&row));
    }
    for note in &comparison.notes {
        out.push_str(&format!("\nNote: {note}\n"));
    }
    out
}

const HEADER: [&str; 7] = [
    "",
    "",
    "median",
    "mean ± deviation",
    "from",
    "to",
    "far/near",
];

/// The command and how often it ran.
fn what(comparison: &Comparison) -> String {
    let (near, far) = (comparison.near.runs.len(), comparison.far.runs.len());
    let runs = if near == far {
        format!("{} each", count(near, "run"))
    } else {
        format!("{} near, {far} far", count(near, "run"))
    };
    let warmup = match comparison.warmup {
        0 => String::new(),
        runs => format!(" after {runs} to warm up"),
    };
    format!(
        "{} near and far, {runs}{warmup}, in alternating order",
        comparison.command.join(" ")
    )
}

/// Two rows, near and far.
fn figure(figure: &Figure) -> [Vec<String>; 2] {
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
    let number = |value: f64| format!("{value:.digits$}");
    let row = |name: &str, side: &str, spread: Option<Spread>, ratio: String| {
        let cell = |of: fn(&Spread) -> f64| {
            spread
                .as_ref()
                .map_or("-".to_owned(), |spread| number(of(spread)))
        };
        let deviation = spread.and_then(|spread| spread.stddev);
        let mean = cell(|spread| spread.mean)
            + &deviation.map_or(String::new(), |by| format!(" ± {by:.digits$}"));
        let (name, side) = (name.to_owned(), side.to_owned());
        vec![
            name,
            side,
            cell(|spread| spread.median),
            mean,
            cell(|spread| spread.min),
            cell(|spread| spread.max),
            ratio,
        ]
    };
    let deviation = figure
        .far_to_near_stddev
        .map_or(String::new(), |by| format!(" ± {by:.2}"));
    let ratio = figure
        .far_to_near
        .map_or("-".to_owned(), |ratio| format!("{ratio:.2}{deviation}"));
    [
        row(name, "near", figure.near, String::new()),
        row("", "far", figure.far, ratio),
    ]
}
