//! nicpin and other tools on machines of many shapes: the table of `compared_with_other_tools/README.md`.
//!
//! The other tools' writes are recorded, see [`compared_with_other_tools::recorded`]. `cargo test --test it -- compared_with_other_tools::
//! --nocapture` prints the whole table; `SNAPSHOTS=overwrite cargo test --test it -- compared_with_other_tools::` rewrites the part
//! in that page.

mod facts;
mod machines;
mod measure;
mod recorded;
mod table;

use std::path::Path;
use std::sync::LazyLock;

use self::table::Table;

/// The machines that the page shows.
const SHOWN: [&str; 3] = [
    "two cards on one node, siblings n and n+32",
    "half of the node isolated",
    "12 queues on 4 cores",
];

static TABLE: LazyLock<Table> = LazyLock::new(|| Table::of(&machines::all()));

#[test]
fn nicpin_is_first_or_level() {
    println!("{}\n{}", TABLE.full(), TABLE.summary());
    assert_eq!(
        TABLE.ahead(),
        [],
        "the cells in which a tool is ahead of nicpin for nothing"
    );
}

#[test]
fn the_table_fits_100_columns() {
    for line in TABLE.full().lines().chain(TABLE.summary().lines()) {
        assert!(line.chars().count() <= 96, "{line}");
    }
}

#[test]
fn the_page_shows_this_table() {
    const BEGIN: &str = "<!-- SNAPSHOTS=overwrite cargo test --test it -- compared_with_other_tools:: -->\n\n```text\n";
    const END: &str = "```\n\n<!-- end of the table -->\n";
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/compared_with_other_tools/README.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once(BEGIN).unwrap();
    let (kept, after) = rest.split_once(END).unwrap();
    let lines = format!("{}\n{}", TABLE.of_machines(&SHOWN), TABLE.summary());
    let printed = format!("{}\n", lines.trim_end());
    if std::env::var_os("SNAPSHOTS").is_some_and(|value| value == "overwrite") {
        std::fs::write(&path, [before, BEGIN, &printed, END, after].concat()).unwrap();
    } else {
        assert_eq!(
            kept, printed,
            "SNAPSHOTS=overwrite cargo test --test it -- compared_with_other_tools:: writes it anew"
        );
    }
}
