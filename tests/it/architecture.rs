//! The house: which room of `src` may use which, and that no two files use each other.
//!
//! The tokens of each file are searched for paths (`crate::`, `super::`, `self::` and modules of the file's own), in
//! `use` items and elsewhere alike. Comments, strings and `#[cfg(test)]` modules do not count; nor do the re-exports of
//! a `mod.rs`, which stand for the file that they lead to.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// Each room and those that it may use: first the library's, then the program's.
const ROOMS: [(&str, &[&str]); 20] = [
    ("cpuset", &[]),
    ("machine", &["cpuset"]),
    ("drivers", &["cpuset", "machine"]),
    ("kinds", &["cpuset", "machine"]),
    ("policy", &["cpuset", "machine", "drivers"]),
    ("plan", &["cpuset", "machine", "drivers", "kinds", "policy"]),
    ("flow", &["cpuset", "machine", "drivers"]),
    (
        "report",
        &[
            "cpuset", "machine", "drivers", "kinds", "policy", "plan", "flow",
        ],
    ),
    ("root", &["cpuset"]),
    ("read", &["cpuset", "machine", "drivers", "root"]),
    (
        "apply",
        &[
            "cpuset", "machine", "drivers", "policy", "plan", "report", "root", "read", "kinds",
        ],
    ),
    (
        "check",
        &[
            "cpuset", "machine", "kinds", "plan", "report", "root", "read", "apply",
        ],
    ),
    ("screen", &["lib", "fleet"]),
    ("capture", &["lib"]),
    ("fleet", &["lib"]),
    ("draw", &["lib", "screen"]),
    ("start", &["lib"]),
    ("watch", &["lib", "start", "screen"]),
    (
        "commands",
        &[
            "lib", "start", "screen", "capture", "fleet", "draw", "watch",
        ],
    ),
    ("main", &["lib", "start", "commands"]),
];

/// The rooms of the library, which `lib` stands for.
const LIBRARY: [&str; 12] = [
    "cpuset", "machine", "drivers", "kinds", "policy", "plan", "flow", "report", "root", "read",
    "apply", "check",
];

/// The rooms that touch no file, clock or environment, and what they may not use for that.
const PURE: [&str; 9] = [
    "cpuset", "machine", "drivers", "kinds", "policy", "plan", "flow", "report", "screen",
];
const EFFECTS: [&str; 16] = [
    "anstream",
    "nix",
    "std::env",
    "std::fs",
    "std::io::stderr",
    "std::io::stdin",
    "std::io::stdout",
    "std::net::TcpListener",
    "std::net::TcpStream",
    "std::net::UdpSocket",
    "std::os",
    "std::process::Command",
    "std::process::exit",
    "std::process::id",
    "std::thread",
    "std::time::Instant",
];

/// The modules of a crate by path (`plan::place`), each with the paths that its file names.
type Files = BTreeMap<String, Vec<Named>>;

#[derive(Debug, Clone)]
struct Named {
    path: Vec<String>,
    line: usize,
    /// Whether a `pub use` item names it.
    exported: bool,
}

fn parse(text: &str) -> Vec<Named> {
    paths(text.parse().unwrap())
}

/// Paths of at least two parts, `use` trees spread out.
fn paths(tokens: TokenStream) -> Vec<Named> {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut found = Vec::new();
    let (mut at, mut exported) = (0, false);
    while at < tokens.len() {
        match &tokens[at] {
            TokenTree::Punct(hash) if hash.as_char() == '#' && is_for_tests(tokens.get(at + 1)) => {
                at = after_item(&tokens, at + 2);
                continue;
            }
            TokenTree::Punct(end) if end.as_char() == ';' => exported = false,
            // A module within the file: what is above it is the file.
            TokenTree::Ident(word) if word == "mod" => {
                if let Some(TokenTree::Group(group)) = tokens.get(at + 2) {
                    found.extend(paths(group.stream()).into_iter().map(from_above));
                    at += 2;
                }
            }
            TokenTree::Ident(word) if word == "pub" => exported = is_use(&tokens[at + 1..]),
            TokenTree::Ident(_) => {
                at = path(&tokens, at, &[], exported, &mut found);
                continue;
            }
            TokenTree::Group(group) => found.extend(paths(group.stream())),
            _ => {}
        }
        at += 1;
    }
    found
}

/// Names what a module within the file names as the file would.
fn from_above(mut named: Named) -> Named {
    if named.path[0] == "super" {
        "self".clone_into(&mut named.path[0]);
    }
    named
}

fn is_use(after: &[TokenTree]) -> bool {
    let skip = usize::from(matches!(after.first(), Some(TokenTree::Group(_))));
    matches!(after.get(skip), Some(TokenTree::Ident(word)) if word == "use")
}

fn is_for_tests(attribute: Option<&TokenTree>) -> bool {
    attribute.is_some_and(|attribute| attribute.to_string().replace(' ', "") == "[cfg(test)]")
}

fn after_item(tokens: &[TokenTree], from: usize) -> usize {
    let ends = |token: &TokenTree| match token {
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
        TokenTree::Punct(punct) => punct.as_char() == ';',
        _ => false,
    };
    tokens[from..]
        .iter()
        .position(ends)
        .map_or(tokens.len(), |length| from + length + 1)
}

/// The paths of the braces at its end are separate. Returns the place after it.
fn path(
    tokens: &[TokenTree],
    from: usize,
    before: &[String],
    exported: bool,
    found: &mut Vec<Named>,
) -> usize {
    let (mut at, mut path, line) = (from, before.to_vec(), tokens[from].span().start().line);
    while let Some(TokenTree::Ident(word)) = tokens.get(at) {
        path.push(word.to_string());
        let separated = tokens[at + 1..]
            .iter()
            .take(2)
            .filter(|token| token.to_string() == ":")
            .count()
            == 2;
        at += 1;
        if !separated {
            break;
        }
        at += 2;
        if let Some(TokenTree::Group(group)) = tokens.get(at) {
            if group.delimiter() == Delimiter::Brace {
                let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                let mut next = 0;
                while next < inner.len() {
                    next = match &inner[next] {
                        TokenTree::Ident(_) => self::path(&inner, next, &path, exported, found),
                        _ => next + 1,
                    };
                }
                return at + 1;
            }
        }
    }
    if path.len() > 1 {
        found.push(Named {
            path,
            line,
            exported,
        });
    }
    at
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Use {
    from: String,
    to: String,
    line: usize,
}

fn uses(files: &Files) -> (BTreeSet<Use>, BTreeSet<Use>) {
    let (mut inner, mut outer) = (BTreeSet::new(), BTreeSet::new());
    for (file, named) in files {
        for Named {
            path,
            line,
            exported,
        } in named
        {
            match absolute(file, path, files) {
                // A module names its own for others.
                Some(path) if *exported && path.starts_with(&format!("{file}::")) => {}
                Some(path) => {
                    let to = file_of(&path, files, 0);
                    if to != *file {
                        inner.insert(Use {
                            from: file.clone(),
                            to,
                            line: *line,
                        });
                    }
                }
                None => {
                    outer.insert(Use {
                        from: file.clone(),
                        to: path.join("::"),
                        line: *line,
                    });
                }
            }
        }
    }
    (inner, outer)
}

/// A path from the crate's root; `None` for one of another crate, or of something in scope.
fn absolute(module: &str, path: &[String], files: &Files) -> Option<String> {
    let below = |module: &str, rest: &[String]| {
        let parts = [module].into_iter().chain(rest.iter().map(String::as_str));
        parts
            .filter(|part| !part.is_empty())
            .collect::<Vec<_>>()
            .join("::")
    };
    match path[0].as_str() {
        "crate" | "nicpin" => Some(below("", &path[1..])),
        "self" => Some(below(module, &path[1..])),
        "super" => {
            let parent = module.rsplit_once("::").map_or("", |(parent, _)| parent);
            let above = path.get(1).is_some_and(|part| part == "super");
            if above {
                absolute(parent, &path[1..], files)
            } else {
                Some(below(parent, &path[1..]))
            }
        }
        child if files.contains_key(&below(module, &[child.to_owned()])) => {
            Some(below(module, path))
        }
        _ => None,
    }
}

/// Re-exports are followed.
fn file_of(path: &str, files: &Files, depth: usize) -> String {
    let mut module = path;
    while !files.contains_key(module) {
        module = module.rsplit_once("::").map_or("", |(parent, _)| parent);
    }
    let item = path[module.len()..]
        .trim_start_matches("::")
        .split("::")
        .next()
        .unwrap_or_default();
    let exports = files[module].iter().filter(|named| named.exported);
    for export in exports {
        if export.path.last().is_some_and(|last| last == item) && depth < 4 {
            if let Some(origin) = absolute(module, &export.path, files) {
                return file_of(&origin, files, depth + 1);
            }
        }
    }
    module.to_owned()
}

fn room(file: &str) -> &str {
    file.split("::").next().unwrap_or_default()
}

fn faults(files: &Files) -> Vec<String> {
    let place = |used: &Use| format!("{}:{}", file_name(&used.from), used.line);
    let (inner, outer) = uses(files);
    let mut faults = Vec::new();
    for used in inner.iter().filter(|used| !used.from.is_empty()) {
        let (from, to) = (room(&used.from), room(&used.to));
        let may = ROOMS
            .iter()
            .find(|(room, _)| *room == from)
            .map(|(_, may)| *may);
        let group = if LIBRARY.contains(&to) { "lib" } else { to };
        if from != to && !may.is_some_and(|may| may.contains(&to) || may.contains(&group)) {
            faults.push(format!(
                "{}: {from} may not use {to} ({})",
                place(used),
                used.to
            ));
        }
    }
    for used in outer.iter().filter(|used| PURE.contains(&room(&used.from))) {
        // An error's number is a value.
        let mut effects = EFFECTS
            .iter()
            .filter(|_| !used.to.starts_with("nix::errno::"));
        if let Some(effect) =
            effects.find(|effect| format!("{}::", used.to).starts_with(&format!("{effect}::")))
        {
            faults.push(format!(
                "{}: {} is pure and may not use {effect}",
                place(used),
                room(&used.from)
            ));
        }
    }
    let mut next: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for used in &inner {
        next.entry(&used.from).or_default().insert(&used.to);
    }
    let reaches = |from: &str, to: &str| {
        let (mut seen, mut left) = (BTreeSet::new(), vec![from]);
        while let Some(file) = left.pop() {
            left.extend(
                next.get(file)
                    .into_iter()
                    .flatten()
                    .filter(|file| seen.insert(**file)),
            );
        }
        seen.contains(to)
    };
    for used in inner.iter().filter(|used| reaches(&used.to, &used.from)) {
        faults.push(format!(
            "{}: {} and {} use each other",
            place(used),
            used.from,
            used.to
        ));
    }
    faults
}

fn file_name(module: &str) -> String {
    let path = format!("src/{}", module.replace("::", "/"));
    let is_alone = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join(format!("{path}.rs"))
        .exists();
    if is_alone {
        path + ".rs"
    } else {
        path + "/mod.rs"
    }
}

fn read(directory: &Path, module: &str, files: &mut Files) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        let below = if module.is_empty() {
            name.to_owned()
        } else {
            format!("{module}::{name}")
        };
        if path.is_dir() {
            read(&path, &below, files);
        } else if path.extension().is_some_and(|end| end == "rs") {
            let module = if ["lib", "mod"].contains(&name) {
                module.to_owned()
            } else {
                below
            };
            files.insert(module, parse(&fs::read_to_string(&path).unwrap()));
        }
    }
}

static OF_THIS_CRATE: LazyLock<Files> = LazyLock::new(|| {
    let mut files = Files::new();
    read(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("src"),
        "",
        &mut files,
    );
    files
});

#[test]
fn rooms_use_those_below_them_and_files_use_no_circle() {
    let files = &*OF_THIS_CRATE;
    let missing: Vec<&str> = ROOMS
        .iter()
        .map(|(room, _)| *room)
        .filter(|room| !files.contains_key(*room))
        .collect();
    assert!(missing.is_empty(), "no such room: {missing:?}");
    let faults = faults(files);
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

#[test]
fn a_planted_use_is_found() {
    for (file, planted, expected) in [
        (
            "plan::place",
            "use crate::root::Root;",
            "src/plan/place.rs:1: plan may not use root (root::files)",
        ),
        (
            "plan::place",
            "use crate::{read, machine::Machine};",
            "src/plan/place.rs:1: plan may not use read (read)",
        ),
        (
            "screen::shell",
            "fn f() { crate::commands::Cli::parse() }",
            "src/screen/shell.rs:1: screen may not use commands (commands)",
        ),
        (
            "report::check",
            "fn f() { assert!(crate::root::sys::affinity()) }",
            "src/report/check.rs:1: report may not use root (root::sys)",
        ),
        (
            "machine::topology",
            "use super::super::plan::Plan;",
            "src/machine/topology.rs:1: machine may not use plan",
        ),
        (
            "policy::file",
            "use std::{fmt, fs::File};",
            "src/policy/file.rs:1: policy is pure and may not use std::fs",
        ),
        ("cpuset::text", "pub use crate::cpuset::words::Words;", ""),
        (
            "apply::lock",
            "use crate::apply::session::Options;",
            "src/apply/lock.rs:1: apply::lock and apply::session use each other",
        ),
        (
            "plan::place",
            "#[cfg(test)] mod tests { use crate::root::Root; }",
            "",
        ),
        ("plan::place", "// use crate::root::Root;", ""),
    ] {
        let mut files = OF_THIS_CRATE.clone();
        files
            .entry(file.to_owned())
            .or_default()
            .extend(parse(planted));
        let found = faults(&files).join("\n");
        if expected.is_empty() {
            assert_eq!(found, "", "{planted}");
        } else {
            assert!(found.contains(expected), "{planted}: {found}");
        }
    }
}
