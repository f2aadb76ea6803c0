//! `nicpin completions`: scripts for shells, which run nicpin again at each Tab; and the answers to them.

use std::env;
use std::ffi::{OsStr, OsString};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use clap::{Args, Command};
use clap_complete::Shell;
use clap_complete::engine::{
    ArgValueCandidates, ArgValueCompleter, CompletionCandidate, SubcommandCandidates, complete,
};
use clap_complete::env::Shells;
use itertools::Itertools as _;

use crate::commands::command_line;
use crate::commands::man::pages;
use nicpin::machine::Machine;
use nicpin::machine::selection::selectors;
use nicpin::read::{self, ReadOptions};
use nicpin::report::exit::Exit;
use nicpin::root::Root;

#[derive(Args)]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

const VARIABLE: &str = "NICPIN_COMPLETE";

/// Bash splits words at `:` and `=`, which occur in selectors and options, and replaces only the last part, `$2`. Words
/// after `--` are completed as bash does it.
const BASH: &str = include_str!("nicpin.bash");

pub fn run(args: &CompletionsArgs, out: &mut String) -> Result<Exit> {
    let name = args.shell.to_string();
    if name == "bash" {
        *out += BASH;
        return Ok(Exit::Planned);
    }
    let (shells, mut script) = (Shells::builtins(), Vec::new());
    let shell = shells.completer(&name).context("no such shell")?;
    shell.write_registration(VARIABLE, "nicpin", "nicpin", "nicpin", &mut script)?;
    *out += &String::from_utf8(script)?;
    Ok(Exit::Planned)
}

pub fn answer_shell(defined: fn() -> Command) -> Result<bool> {
    let Some(name) = env::var_os(VARIABLE).filter(|name| !name.is_empty()) else {
        return Ok(false);
    };
    let defined = &defined();
    let words: Vec<OsString> = env::args_os()
        .skip_while(|word| word != "--")
        .skip(1)
        .collect();
    let (directory, mut answer) = (env::current_dir().ok(), Vec::new());
    if name == "bash" {
        answer = bash_candidates(defined, words, directory.as_deref())?.into_bytes();
    } else {
        let (shells, name) = (Shells::builtins(), name.to_string_lossy());
        let shell = shells.completer(&name).context("no such shell")?;
        let mut command = command_of(defined, &words);
        shell.write_complete(&mut command, words, directory.as_deref(), &mut answer)?;
    }
    io::stdout().write_all(&answer)?;
    Ok(true)
}

/// Returns one candidate per line for the part that bash replaces, which is the first of `parts`.
fn bash_candidates(
    defined: &Command,
    parts: Vec<OsString>,
    directory: Option<&Path>,
) -> Result<String> {
    let mut parts = parts.into_iter();
    let typed = parts.next().unwrap_or_default();
    let words = join_words(parts.collect(), &typed);
    let last = words.len().saturating_sub(1);
    if words[..last].contains(&"--".into()) {
        return Ok(String::new());
    }
    let kept = words
        .last()
        .map_or(0, |word| word.len().saturating_sub(typed.len()));
    let found = complete(&mut command_of(defined, &words), words, last, directory)?;
    let mut values = found
        .iter()
        .map(|candidate| candidate.get_value().to_string_lossy())
        .filter(|value| is_plain(value))
        .collect_vec();
    // Options only after a dash, unless there are no other candidates.
    if kept == 0 && typed.is_empty() && values.iter().any(|value| !value.starts_with('-')) {
        values.retain(|value| !value.starts_with('-'));
    }
    Ok(values
        .iter()
        .map(|value| value.get(kept..).unwrap_or(value))
        .flat_map(|line| [line, "\n"])
        .collect())
}

/// `typed` is the last word up to the cursor, without the part before a separator.
fn join_words(mut parts: Vec<OsString>, typed: &OsStr) -> Vec<OsString> {
    let is_separator = |part: &OsString| {
        !part.is_empty() && part.as_encoded_bytes().iter().all(|b| b":=".contains(b))
    };
    if let Some(last) = parts.last_mut().filter(|last| !is_separator(last)) {
        typed.clone_into(last);
    }
    let (mut words, mut continues): (Vec<OsString>, _) = (Vec::new(), false);
    for part in parts {
        let separates = is_separator(&part);
        match words.last_mut() {
            Some(word) if separates || continues => word.push(part),
            _ => words.push(part),
        }
        continues = separates;
    }
    words
}

fn command_of(defined: &Command, words: &[OsString]) -> Command {
    let (typed, before) = match words {
        [before @ .., typed] => (typed.clone(), before),
        [] => (OsString::new(), words),
    };
    let root = root(before);
    let mut known = with_candidates(defined, &root);
    let spelled_out = command_line::with_command(&known, before.iter().cloned());
    if spelled_out.len() == before.len() {
        return known;
    }
    if spelled_out.last().is_some_and(|word| word == "status") {
        // The first word may be a command or a selector of `status`.
        let first = SubcommandCandidates::new(move || names(&root, &typed));
        return known.allow_external_subcommands(true).add(first);
    }
    known.build();
    known
        .find_subcommand("status")
        .cloned()
        .unwrap_or(known)
        .name("nicpin")
}

fn root(words: &[OsString]) -> PathBuf {
    let pairs = words.windows(2).filter(|pair| pair[0] == "--root");
    let joined = words
        .iter()
        .filter_map(|word| word.to_str()?.strip_prefix("--root="));
    pairs
        .map(|pair| &*pair[1])
        .chain(joined.map(OsStr::new))
        .next()
        .unwrap_or("/".as_ref())
        .into()
}

fn with_candidates(defined: &Command, root: &Path) -> Command {
    let by = |find: fn(&Path, &OsStr) -> Vec<CompletionCandidate>| {
        let root = root.to_owned();
        ArgValueCompleter::new(move |typed: &OsStr| find(&root, typed))
    };
    let about = || {
        let defined = defined.clone();
        ArgValueCandidates::new(move || {
            let pages = pages(&defined).unwrap_or_default().into_iter();
            let abouts = pages.filter_map(|page| page.about);
            abouts.map(CompletionCandidate::new).collect()
        })
    };
    defined.clone().mut_subcommands(|command| {
        let compares = command.get_name() == "compare";
        command.mut_args(|arg| match arg.get_id().as_str() {
            "selectors" | "interface" => arg.add(by(names)),
            "about" => arg.add(about()),
            "node" => arg.add(by(nodes)),
            "near" | "far" if compares => arg.add(by(nodes)),
            _ => arg,
        })
    })
}

fn machine(root: &Path) -> Machine {
    let read = |root| read::machine(&root, ReadOptions::default()).ok();
    Root::open(root).ok().and_then(read).unwrap_or_default()
}

/// PCI addresses only if a part is typed, since most people mean names.
fn names(root: &Path, typed: &OsStr) -> Vec<CompletionCandidate> {
    let (machine, typed) = (machine(root), typed.to_string_lossy());
    let of_kind = |kind| selectors(&machine, kind);
    let mut all = [of_kind(""), of_kind("driver"), of_kind("node")].concat();
    if !typed.is_empty() {
        for address in of_kind("pci") {
            let bare = address.trim_start_matches("pci:").to_owned();
            all.extend(bare.strip_prefix("0000:").map(str::to_owned));
            all.extend([bare, address]);
        }
    }
    let about = |name: &str| {
        let interface = machine.interface(name)?;
        let node = match machine.nodes_of(interface) {
            nodes if nodes.is_empty() => "no node".to_owned(),
            nodes => format!("node {nodes}"),
        };
        let driver = interface.driver.as_deref().unwrap_or("driver unknown");
        Some(format!("{driver}, {node}").into())
    };
    all.retain(|name| name.starts_with(&*typed) && is_plain(name));
    all.iter()
        .map(|name| CompletionCandidate::new(name).help(about(name)))
        .collect()
}

/// Whether a shell takes the text literally. Others are left out: bash inserts candidates unquoted, and the name of an
/// interface may be `n$(id>f)`.
fn is_plain(text: &str) -> bool {
    text.chars()
        .all(|c| c.is_alphanumeric() || "_-.,:/@%+=".contains(c))
}

fn nodes(root: &Path, typed: &OsStr) -> Vec<CompletionCandidate> {
    let nodes = machine(root).topology.nodes;
    nodes
        .keys()
        .map(ToString::to_string)
        .filter(|id| id.starts_with(&*typed.to_string_lossy()))
        .map(CompletionCandidate::new)
        .collect()
}
