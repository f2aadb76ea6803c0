//! `nicpin fleet`: many machines, from their documents or their captures.

use std::cell::RefCell;
use std::panic::{PanicHookInfo, set_hook};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread;

use anyhow::{Result, ensure};
use clap::Args;

use crate::commands::args::{General, ReportArgs, TargetArgs};
use crate::commands::inputs::{Purpose, read_and_plan};
use crate::commands::output;
use crate::fleet::documents::Input;
use crate::fleet::documents::Input::{Document, Failed, Machine, Text};
use crate::fleet::inputs::inputs;
use crate::fleet::{FleetTally, Host, ReadHost};
use crate::screen;
use nicpin::read::ReadOptions;
use nicpin::report::exit::Exit;
use nicpin::root::{FileError, Root};

#[derive(Args)]
pub struct FleetArgs {
    #[command(flatten)]
    report: ReportArgs,

    /// Plans, checks, captures, trees, directories of these, `-` or @LIST
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

pub fn run(cli: &General, args: &FleetArgs, out: &mut String) -> Result<Exit> {
    set_hook(Box::new(name_source));
    let tally = read(cli, args);
    let fleet = tally.report();
    for failed in &fleet.failed {
        output::say(&format!("{}: {}", failed.source, failed.error));
    }
    if fleet.hosts == 0 && fleet.failed.is_empty() {
        output::say(
            "no plan, check, capture or tree was found; fix: name files or directories that hold some",
        );
    }
    // Not appended, which would copy the names of all hosts.
    *out = if args.report.is_json() {
        screen::json(&fleet)?
    } else {
        screen::fleet::fleet(&fleet, cli.verbose)
    };
    Ok(fleet.exit())
}

thread_local! {
    /// The input that this thread reads, for the message of a panic.
    static SOURCE: RefCell<String> = RefCell::new("the files".to_owned());
}

/// A panic ends the report about all hosts: the user can leave out the one that caused it.
fn name_source(panic: &PanicHookInfo<'_>) {
    let at = panic
        .location()
        .map(ToString::to_string)
        .unwrap_or_default();
    SOURCE.with_borrow(|source| {
        output::say(&format!(
            "failed at {at} while reading {source}; fix: leave that out, and report it"
        ));
    });
}

/// Bytes, more than a capture takes; never touched.
const KEPT: usize = 16 << 20;

/// This thread finds and splits the inputs, one thread for each CPU reads them.
fn read(cli: &General, args: &FleetArgs) -> FleetTally {
    let workers = thread::available_parallelism().map_or(1, usize::from);
    // The next capture needs the memory of the one before. Until something larger was freed, glibc returns it each
    // time, which takes a twelfth of all CPU time.
    drop(std::hint::black_box(Vec::<u8>::with_capacity(KEPT)));
    // One input waits for each worker; no more of them are in memory.
    let (give, take) = mpsc::sync_channel::<Input>(workers);
    let take = Mutex::new(take);
    let next = || {
        take.lock()
            .unwrap_or_else(PoisonError::into_inner)
            .recv()
            .ok()
    };
    let tally = Mutex::new(FleetTally::default());
    let printed = thread::scope(|scope| {
        let work = || {
            while let Some(input) = next() {
                let hosts = hosts(cli, input);
                let mut tally = tally.lock().unwrap_or_else(PoisonError::into_inner);
                for (name, host) in hosts {
                    tally.add(&name, host);
                }
            }
        };
        for _ in 0..workers {
            scope.spawn(work);
        }
        let printed = inputs(&args.files, &mut |input| {
            // The workers end after the last input, not before.
            let _ = give.send(input);
        });
        drop(give);
        printed
    });
    let mut tally = tally.into_inner().unwrap_or_else(PoisonError::into_inner);
    tally.fail_unread(printed);
    tally
}

/// The hosts of an input, by their names; without one, by that of the input.
fn hosts(cli: &General, input: Input) -> Vec<(String, Result<Host, String>)> {
    match input {
        Failed { source, error }
        | Text {
            host: source,
            line: error,
        } => vec![(source, Err(error))],
        Document(document) => {
            let source = document.source();
            SOURCE.set(source.clone());
            let named = |(name, host): ReadHost| {
                let name = document.host.clone().or(name);
                let other = match host {
                    Ok(_) if document.alone => stem(Path::new(&document.file)),
                    _ => source.clone(),
                };
                (name.unwrap_or(other), host)
            };
            Host::parse(&document.text).into_iter().map(named).collect()
        }
        Machine(path) => {
            let source = path.display().to_string();
            SOURCE.set(source.clone());
            vec![match read_copy(cli, &path) {
                Ok((name, host)) => (name.unwrap_or_else(|| stem(&path)), host),
                Err(error) => {
                    let file_error = error.downcast_ref::<FileError>();
                    let reason = file_error.and_then(|error| error.reason_about(&path));
                    (source, Err(reason.unwrap_or_else(|| format!("{error:#}"))))
                }
            }]
        }
    }
}

fn read_copy(cli: &General, path: &Path) -> Result<ReadHost> {
    let root = Root::open(path)?;
    ensure!(
        !root.is_real(),
        "is this machine, not a copy of one; fix: use the output of `nicpin check --json`"
    );
    let (machine, plan) = read_and_plan(
        Purpose::Look,
        cli,
        &root,
        &TargetArgs::default(),
        ReadOptions::default(),
    )?;
    Ok(Host::from_check(&nicpin::check(&root, &machine, &plan))?)
}

fn stem(path: &Path) -> String {
    let name = path
        .file_name()
        .unwrap_or(path.as_os_str())
        .to_string_lossy();
    let ends = [".tar.gz", ".tgz", ".json", ".jsonl"];
    let stem = ends.iter().find_map(|end| name.strip_suffix(end));
    stem.filter(|stem| !stem.is_empty())
        .unwrap_or(&name)
        .to_owned()
}
