//! Where an error of reading is dropped: nowhere but in the places that are listed here, each with the reason.

use std::collections::BTreeMap;
use std::path::Path;

use crate::support::tree::{Entry, entries};

/// The functions that read evidence: what they return may not be dropped when it is an error.
const READERS: [&str; 30] = [
    "answer",
    "canonical",
    "connected_sockets",
    "counts",
    "counts_of",
    "is_there",
    "link_name",
    "list",
    "load",
    "machine",
    "netdev",
    "partitions",
    "read",
    "read_affinity",
    "read_as",
    "read_cpus",
    "read_effective",
    "read_in_parts",
    "read_names",
    "read_online",
    "read_opt",
    "read_opt_file",
    "read_state",
    "read_text",
    "read_trusted",
    "request",
    "rps_filter",
    "rss",
    "running",
    "stat_of",
];

/// Where evidence is read.
const ROOMS: [&str; 6] = [
    "read/",
    "kinds/",
    "apply/",
    "commands/",
    "watch/",
    "start.rs",
];

/// What drops an error.
const DROPS: [&str; 6] = [
    ".ok()",
    ".unwrap_or",
    ".is_ok",
    ".is_err",
    ".map_or(",
    ".or_else(",
];

/// Where an error of reading may be dropped: the file, how often, and why that is not taken for a machine on which all is
/// well.
const DROPPED: [(&str, usize, &str); 25] = [
    (
        "apply/channels.rs",
        1,
        "the change of channels answers for it",
    ),
    (
        "apply/irqbalance/mod.rs",
        2,
        "an unreadable record is something to undo; the number of a process that was started",
    ),
    (
        "apply/irqbalance/socket.rs",
        1,
        "a recorded answer of tests",
    ),
    (
        "apply/check.rs",
        1,
        "unknown, which apply::unknown says with the error",
    ),
    (
        "apply/record.rs",
        1,
        "what the policy has taught of drivers; the command itself says that the record cannot be read",
    ),
    (
        "apply/trial.rs",
        5,
        "read again by the ban; a record that is not reset says the same; what cannot be read counts as changed, and is \
         restored as a whole",
    ),
    (
        "apply/undo.rs",
        2,
        "what cannot be read is restored from the record",
    ),
    ("apply/write.rs", 1, "the write counts as refused then"),
    (
        "kinds/affinity.rs",
        1,
        "the error of the write is explained in fewer words",
    ),
    ("kinds/steering.rs", 1, "the write counts as refused then"),
    (
        "commands/apply.rs",
        1,
        "a watcher that cannot be read is not said to wait",
    ),
    (
        "commands/completions.rs",
        1,
        "completions have no place for messages",
    ),
    (
        "commands/confirm.rs",
        3,
        "what cannot be read still waits, and is said by the command itself",
    ),
    (
        "commands/inputs.rs",
        2,
        "weights only; a record that cannot be read is reported by the command itself; so is a watcher",
    ),
    ("watch/journal.rs", 1, "standard error is told instead"),
    (
        "commands/output.rs",
        1,
        "an error has its line on standard error",
    ),
    (
        "read/files.rs",
        2,
        "other programs' files, which decide on notes; a read that is not torn",
    ),
    (
        "read/sockets.rs",
        2,
        "other users' processes, whose node is unknown then",
    ),
    (
        "read/tools.rs",
        1,
        "other programs' files, which decide on notes",
    ),
    ("read/tools/process.rs", 2, "counted as hidden"),
    ("start.rs", 1, "no signal can be waited for"),
    (
        "read/vectors.rs",
        1,
        "counts that cannot be read: it is not known where an IRQ is",
    ),
    ("watch/child.rs", 1, "a number"),
    (
        "watch/files.rs",
        5,
        "an event: the run after it reads all again",
    ),
    (
        "watch/state.rs",
        3,
        "messages; a trial that cannot be read ends the run",
    ),
];

/// Where a file drops errors of reading, in its text without blanks.
fn dropped(text: &str) -> Vec<String> {
    let code = text.split("#[cfg(test)]").next().unwrap();
    let code = code.lines().map(|line| line.split("//").next().unwrap());
    let code: String = code.collect::<String>().split_whitespace().collect();
    let mut found: Vec<String> = ["letOk(", "Err(_)"]
        .iter()
        .flat_map(|dropped| code.match_indices(dropped))
        .map(|(at, _)| code[at..].chars().take(60).collect())
        .collect();
    for reader in READERS {
        for (at, call) in code.match_indices(&format!("{reader}(")) {
            if code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_') {
                continue;
            }
            let mut open = 1;
            let closes = |c: char| {
                open += i32::from(c == '(') - i32::from(c == ')');
                open == 0
            };
            let arguments = &code[at + call.len()..];
            let after = &arguments[arguments.find(closes).unwrap() + 1..];
            if DROPS.iter().any(|drops| after.starts_with(drops)) {
                found.push(code[at..].chars().take(60).collect());
            }
        }
    }
    found
}

#[test]
fn errors_of_reading_are_dropped_nowhere_but_where_that_is_said() {
    let mut found = BTreeMap::new();
    for (path, entry) in entries(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src")) {
        let file = path.trim_start_matches('/');
        let Entry::File(text) = entry else { continue };
        let drops = dropped(&text);
        if ROOMS.iter().any(|room| file.starts_with(room)) && !drops.is_empty() {
            found.insert(file.to_owned(), drops);
        }
    }
    for (file, count, why) in DROPPED {
        let here = found.remove(file).unwrap_or_default();
        assert_eq!(here.len(), count, "{file}, {why}: {here:#?}");
    }
    assert!(found.is_empty(), "{found:#?}");
    for planted in [
        "let names = root.list(path).ok().flatten();",
        "Record::load(root)\n    .unwrap_or_default()",
        "if let Ok(Some(text)) = root.read_opt(&format!(\"{path}/x\")) {}",
        "root.read_opt(a(b)).map_or(0, f)",
    ] {
        assert_eq!(dropped(planted).len(), 1, "{planted}");
    }
    for fine in [
        "root.list(path)?.unwrap_or_default()",
        "// root.list(path).ok()",
        "unread(x).ok()",
    ] {
        assert_eq!(dropped(fine).len(), 0, "{fine}");
    }
}
