//! README.md, SECURITY.md, CONTRIBUTING.md and the pages in `docs/`: what they name exists, and their command lines are
//! valid.

mod page;
mod shell;

use std::collections::BTreeSet;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command as Process;

use clap::Parser as _;
use clap::error::ErrorKind;
use itertools::Itertools as _;

use self::page::Page;
use self::shell::commands;
use crate::commands::Cli;
use crate::commands::command_line::{nearest_command, nearest_option, with_command};
use crate::support::run::{MachineTree, Run, fixture, nicpin};
use crate::support::schema::SCHEMAS;
use crate::support::temporary;
use nicpin::drivers::{Driver, Fact};
use nicpin::policy::Policy;
use nicpin::report::difference::Reason;
use nicpin::report::interface::InterfaceState;

fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Pages outside of `docs` that packages have, too.
const TOP: [&str; 3] = ["README.md", "SECURITY.md", "CONTRIBUTING.md"];

fn pages() -> Vec<Page> {
    let docs = glob::glob(repository().join("docs/**/*.md").to_str().unwrap()).unwrap();
    let top = TOP.map(|name| repository().join(name));
    top.into_iter()
        .chain(docs.map(Result::unwrap))
        .map(|path| read(&path))
        .collect()
}

fn read(path: &Path) -> Page {
    Page {
        path: path.to_owned(),
        text: std::fs::read_to_string(path).unwrap(),
    }
}

/// Drivers of which the same is known share a line.
fn table_of_drivers() -> String {
    let mut lines: Vec<(Vec<&str>, [&str; 4])> = Vec::new();
    for row in Driver::all().iter().filter(|row| row.page != [""; 4]) {
        let at = lines.iter().position(|(_, page)| *page == row.page);
        let at = at.unwrap_or_else(|| {
            lines.push((Vec::new(), row.page));
            lines.len() - 1
        });
        lines[at].0.extend(row.names.split(' '));
    }
    let lines = lines.iter().map(|(names, page)| {
        let cells = [names.join(", ")]
            .into_iter()
            .chain(page.map(str::to_owned));
        cells.fold("|".to_owned(), |line, cell| match &*cell {
            "" => line + " |",
            cell => format!("{line} {cell} |"),
        })
    });
    lines.format("\n").to_string()
}

/// The text in `path` between `before` and `after`; `NICPIN_UPDATE` writes it.
fn assert_made(path: &str, before: &str, after: &str, text: &str) {
    let path = repository().join(path);
    let whole = read(&path).text;
    let (head, rest) = whole.split_once(before).unwrap();
    let (kept, tail) = rest.split_once(after).unwrap();
    if kept != text && std::env::var_os("NICPIN_UPDATE").is_some() {
        std::fs::write(path, [head, before, text, after, tail].concat()).unwrap();
    } else {
        let hint = "NICPIN_UPDATE=1 cargo test --test it -- documentation:: writes";
        assert_eq!(kept, text, "{hint} {}", path.display());
    }
}

#[test]
fn texts_about_states_are_made_from_their_rows() {
    let rows = InterfaceState::ROWS;
    let worst_first = rows.iter().rev();
    let table =
        worst_first.map(|row| format!("| `{}` | {} | {} |", row.name, row.means, row.check));
    let head = "| state | meaning | `check` |\n|---|---|---|\n";
    assert_made(
        "docs/json.md",
        head,
        "\n\n",
        &table.format("\n").to_string(),
    );
    let numbers = rows
        .iter()
        .map(|row| format!("{} {}", row.number, row.name));
    let head = "| `nicpin_interface_state` | `device` | ";
    assert_made(
        "docs/monitoring.md",
        head,
        " |\n",
        &numbers.format(", ").to_string(),
    );
    let options = rows.iter().enumerate().map(|(at, row)| {
        let (number, name) = (row.number, row.name);
        format!(r#"                "{number}": {{"index": {at}, "text": "{name}"}}"#)
    });
    let (head, end) = ("\"options\": {\n", "\n              }\n");
    let dashboard = "dist/prometheus/grafana-dashboard.json";
    assert_made(dashboard, head, end, &options.format(",\n").to_string());
}

#[test]
fn the_page_has_what_is_known_of_each_driver() {
    let path = "docs/kernels-and-drivers.md";
    let head = "|---|---|---|---|---|\n";
    assert_made(path, head, "\n\n", &table_of_drivers());
    let page = read(&repository().join(path));
    let steered = Driver::all().iter();
    let steered = steered.filter(|row| row.facts.contains(&Fact::AcceleratedRfs));
    for name in steered.filter_map(|row| row.names.split(' ').next()) {
        let (_, section) = page.text.split_once("## Accelerated RFS").unwrap();
        let (section, _) = section.split_once("\n## ").unwrap();
        assert!(
            section.contains(name) || name.starts_with("sfc"),
            "accelerated RFS: {name} is missing"
        );
    }
}

fn broken_links(page: &Page) -> Vec<String> {
    let broken = |link: &&str| {
        let (file, heading) = link.split_once('#').unwrap_or((link, ""));
        let path = if file.is_empty() {
            page.path.clone()
        } else {
            page.path.with_file_name(file)
        };
        let has = |path: &Path| {
            heading.is_empty() || read(path).headings().iter().any(|one| one == heading)
        };
        !(path.exists() && has(&path))
    };
    let links = page
        .links()
        .into_iter()
        .filter(|link| !link.contains("://"));
    links
        .filter(broken)
        .map(|link| page.said(&format!("the link {link} leads nowhere")))
        .collect()
}

fn absent_paths(page: &Page) -> Vec<String> {
    let is_absent = |path: &&str| {
        let pattern = repository().join(path);
        glob::glob(pattern.to_str().unwrap())
            .unwrap()
            .next()
            .is_none()
    };
    page.paths()
        .into_iter()
        .filter(is_absent)
        .map(|path| page.said(&format!("there is no {path}")))
        .collect()
}

fn absent_tests(page: &Page) -> Vec<String> {
    let sources = glob::glob(repository().join("tests/**/*.rs").to_str().unwrap()).unwrap();
    let sources: Vec<String> = sources
        .map(|path| std::fs::read_to_string(path.unwrap()).unwrap())
        .collect();
    let is_absent = |name: &&str| {
        !sources
            .iter()
            .any(|text| text.contains(&format!("fn {name}(")))
    };
    page.tests()
        .into_iter()
        .filter(is_absent)
        .map(|name| page.said(&format!("there is no test {name}")))
        .collect()
}

fn wrong_policies(page: &Page) -> Vec<String> {
    let said = |text: &String| {
        Policy::parse(text)
            .err()
            .map(|error| page.said(&format!("{error}")))
    };
    page.blocks("toml").iter().filter_map(said).collect()
}

#[derive(Default)]
struct Runs {
    machine: Option<MachineTree>,
    seen: BTreeSet<(Vec<String>, bool)>,
    count: usize,
}

/// Checks command lines by their definitions; those that end by themselves also run.
fn wrong_commands(page: &Page, runs: &mut Runs) -> Vec<String> {
    let in_blocks = page.shell_lines().into_iter().map(|line| (line, false));
    let in_text = page.quoted_commands().into_iter().map(|line| (line, true));
    let all = in_blocks
        .chain(in_text)
        .flat_map(|(line, is_name)| commands(&line).into_iter().map(move |args| (args, is_name)));
    // A line that stands on several pages is tried once.
    let all: BTreeSet<(Vec<String>, bool)> =
        all.filter(|line| runs.seen.insert(line.clone())).collect();
    let mut why = |args: &[String], is_name| match refused(args) {
        // In a text `nicpin run` names the command.
        Err(Refusal::Unfinished(_)) if is_name => None,
        Err(Refusal::Unfinished(why) | Refusal::Wrong(why)) => Some(why),
        Ok(()) => fails(args, runs),
    };
    let complaints = all
        .iter()
        .map(|(args, is_name)| (args, why(args, *is_name)));
    complaints
        .filter_map(|(args, why)| Some(page.said(&format!("nicpin {}: {}", args.join(" "), why?))))
        .collect()
}

enum Refusal {
    Unfinished(String),
    Wrong(String),
}

fn completed(args: &[String]) -> Vec<String> {
    let words = std::iter::once("nicpin".to_owned())
        .chain(args.iter().cloned())
        .map(Into::into);
    with_command(&crate::commands::defined(), words)
        .into_iter()
        .map(|word| word.into_string().unwrap())
        .collect()
}

fn meant(word: &str) -> Option<String> {
    let defined = crate::commands::defined();
    nearest_option(&defined, "", word)
        .or_else(|| nearest_command(&defined, word).map(str::to_owned))
}

fn refused(args: &[String]) -> Result<(), Refusal> {
    let words = completed(args);
    // `nicpin aply` would be the interface `aply`.
    let names_command = words.len() == args.len() + 1;
    if let Some(command) = args
        .iter()
        .filter(|word| !names_command && !word.starts_with('-'))
        .find_map(|word| meant(word))
    {
        return Err(Refusal::Wrong(format!("is {command} meant?")));
    }
    let Some(error) = Cli::try_parse_from(words)
        .err()
        .filter(clap::Error::use_stderr)
    else {
        return Ok(());
    };
    let why = error
        .to_string()
        .lines()
        .next()
        .unwrap_or_default()
        .to_owned();
    let is_missing =
        error.kind() == ErrorKind::MissingRequiredArgument || why.contains("a value is required");
    Err(if is_missing {
        Refusal::Unfinished(why)
    } else {
        Refusal::Wrong(why)
    })
}

/// Commands that end by themselves and start nothing.
const RUN: [&str; 8] = [
    "plan",
    "apply",
    "check",
    "restore",
    "nodes",
    "draw",
    "completions",
    "status",
];
/// Commands with `--if-present`.
const SELECT: [&str; 5] = ["plan", "apply", "check", "draw", "status"];
/// Options that need a file of the user's, take their time, or wait for an answer. Nothing is written to `/var`.
const NOT_RUN: [&str; 6] = [
    "--plan",
    "--try",
    "--prove",
    "--bandwidth",
    "--metrics",
    "--help",
];

fn fails(args: &[String], runs: &mut Runs) -> Option<String> {
    let mut words = completed(args);
    let command = RUN
        .into_iter()
        .find(|name| words.iter().any(|word| word == name))?;
    if words
        .iter()
        .any(|word| NOT_RUN.contains(&word.as_str()) || word.starts_with("/var/"))
    {
        return None;
    }
    runs.count += 1;
    // Nobody waits for a sample here.
    if let Some(at) = words.iter().position(|word| word == "--seconds") {
        "0.1".clone_into(&mut words[at + 1]);
    }
    let machine = runs.machine.get_or_insert_with(|| MachineTree::of("dl980"));
    let root = machine.path("/").to_str().unwrap().to_owned();
    let here = temporary();
    for name in ["fixtures", "dist"] {
        symlink(repository().join(name), here.path().join(name)).unwrap();
    }
    // The shipped machines are not written to.
    let writes = ["apply", "restore"].contains(&command);
    match words.iter().position(|word| word == "--root") {
        // The user's policy does not exist here.
        Some(at) if writes || !here.path().join(&words[at + 1]).exists() => words[at + 1] = root,
        Some(_) => {}
        None => words.extend(["--root".to_owned(), root]),
    }
    // The machine has not all the interfaces that examples name.
    if SELECT.contains(&command) && !words.contains(&"--if-present".to_owned()) {
        words.push("--if-present".to_owned());
    }
    let run = Run::of(
        Process::new(env!("CARGO_BIN_EXE_nicpin"))
            .args(&words[1..])
            .current_dir(here.path()),
    );
    let good: &[i32] =
        if command == "check" || words.iter().any(|word| word == "--detailed-exitcode") {
            &[0, 2]
        } else {
            &[0]
        };
    (!good.contains(&run.code)).then(|| format!("exit code {}: {}", run.code, run.stderr))
}

#[test]
fn links_paths_and_tests_exist() {
    let all = pages();
    assert!(all.len() > 8, "{}", all.len());
    for check in [broken_links, absent_paths, absent_tests, wrong_policies] {
        let complaints: Vec<String> = all.iter().flat_map(check).collect();
        assert!(complaints.is_empty(), "{}", complaints.join("\n"));
    }
}

#[test]
fn command_lines_are_valid() {
    let mut runs = Runs::default();
    let complaints: Vec<String> = pages()
        .iter()
        .flat_map(|page| wrong_commands(page, &mut runs))
        .collect();
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
    assert!(
        runs.count > 50,
        "only {} command lines were run",
        runs.count
    );
}

/// The pictures of the README are what the program prints: a whole screen, and a part of another one.
#[test]
fn outputs_are_those_of_the_program() {
    let machine = fixture("dl980");
    let printed = |command| nicpin(&[command, "--root", machine.to_str().unwrap()]).stdout;
    assert_made("README.md", "```text\n", "```", &printed("status"));
    let page = read(&repository().join("README.md"));
    let [_, plan, ..] = &page.blocks("text")[..] else {
        panic!("README.md has not two pictures");
    };
    let whole = printed("plan");
    assert!(whole.contains(&format!("\n\n{plan}\n")), "{plan}\n{whole}");
}

/// The pages in `docs`, without the tables that are written from the schemas.
fn written_pages() -> Vec<Page> {
    let mut all = pages();
    all.retain(|page| page.path.parent() == Some(&repository().join("docs")));
    all
}

#[test]
fn the_readme_names_every_page() {
    let readme = read(&repository().join("README.md"));
    for page in written_pages() {
        let link = shown(&page.path);
        assert!(
            readme.links().contains(&link.to_str().unwrap()),
            "README.md does not link {}",
            link.display()
        );
    }
}

#[test]
fn the_reference_has_every_document_and_reason() {
    let reference = read(&repository().join("docs/json.md")).text;
    let absent: Vec<&str> = SCHEMAS
        .values()
        .filter_map(|schema| schema["title"].as_str())
        .filter(|title| title.starts_with("nicpin.") && !reference.contains(title))
        .collect();
    assert!(absent.is_empty(), "docs/json.md lacks {absent:?}");
    for reason in Reason::ALL {
        assert!(reference.contains(reason.name()), "{}", reason.name());
    }
}

/// Packages have the pages, the schemas and the picture of the README below one directory, as here.
#[test]
fn links_work_where_packages_put_the_pages() {
    let picture = "fixtures/expected/two-socket-mlx4.svg";
    let build = std::fs::read_to_string(repository().join("dist/build")).unwrap();
    for installed in [&TOP.join(" "), picture, "\"$DOC/docs/{}\""] {
        assert!(build.contains(installed), "dist/build: {installed}");
    }
    for page in pages() {
        for link in page.links().iter().filter(|link| !link.contains("://")) {
            let (file, _) = link.split_once('#').unwrap_or((link, ""));
            let from = shown(page.path.parent().unwrap()).join(file);
            let from = from.to_str().unwrap().replace("docs/../", "");
            let from = from.replace("schema/../", "");
            let is_there = file.is_empty()
                || from.starts_with("docs/")
                || from == picture
                || TOP.contains(&from.as_str());
            assert!(is_there, "{}", page.said(&format!("packages lack {link}")));
        }
    }
}

#[test]
fn planted_mistakes_are_found() {
    let planted = |text: &str| {
        let page = Page {
            path: repository().join("docs/planted.md"),
            text: text.to_owned(),
        };
        let mut all = [broken_links, absent_paths, absent_tests, wrong_policies]
            .map(|check| check(&page))
            .concat();
        all.extend(wrong_commands(&page, &mut Runs::default()));
        all
    };
    for (text, complaint) in [
        (
            "See [this](nowhere.md).",
            "the link nowhere.md leads nowhere",
        ),
        (
            "See [this](../SECURITY.md#no-such-heading).",
            "the link ../SECURITY.md#no-such-heading leads nowhere",
        ),
        ("`tests/absent.rs` has it.", "there is no tests/absent.rs"),
        (
            "| promise | `tests/it/apply.rs` `a_test_that_is_absent` |",
            "there is no test a_test_that_is_absent",
        ),
        ("```toml\n[defaults]\nirq-core = 4\n```", "irq-core"),
        (
            "    nicpin plan --formt json",
            "nicpin plan --formt json: error: unexpected argument '--formt'",
        ),
        (
            "    sudo nicpin aply eth2",
            "nicpin aply eth2: is apply meant?",
        ),
        (
            "    x | cargo run -- plan --scope near  # here",
            "nicpin plan --scope near: error: invalid value 'near'",
        ),
        (
            "```sh\nif nicpin check --strit; then true; fi\n```",
            "unexpected argument '--strit'",
        ),
        (
            "    ssh host nicpin restore --all",
            "unexpected argument '--all'",
        ),
        (
            "```ini\nExecStart=/usr/bin/nicpin begin --quit\n```",
            "unexpected argument '--quit'",
        ),
        ("    nicpin plan --irq-cores 2 --scope 0-3", "exit code 64"),
        ("    nicpin plan --exclude 4000", "exit code 64"),
        (
            "| `echo 0` | `sudo nicpin apply --xps none eth1` |",
            "invalid value 'none'",
        ),
    ] {
        let found = planted(text);
        assert!(
            matches!(&found[..], [one] if one.contains(complaint)),
            "{text}: {found:?}"
        );
    }
    for text in [
        "[this](../README.md#install) `tests/vm/guest/*.sh` https://host/docs/none.md `fixtures/NAME`",
        "    sudo install -m 0755 target/release/nicpin /usr/bin/nicpin; systemctl enable --now nicpin",
        "    for s in remote local; do nicpin plan --scope $s eth2 > out; done  # nicpin nonsense",
        "```text\nnicpin --nonsense\n```",
        "`nicpin run` and `nicpin apply --channels` are names, `nicpin` and `nicpin::plan()` too.",
    ] {
        assert_eq!(planted(text), [] as [&str; 0], "{text}");
    }
}

fn shown(path: &Path) -> PathBuf {
    path.strip_prefix(repository()).unwrap_or(path).to_owned()
}
