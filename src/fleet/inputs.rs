//! The inputs of `nicpin fleet`: captures, trees, directories of these, lists of paths, and JSON. The files are the
//! user's and not below a root.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use nix::libc::{O_NOCTTY, O_NONBLOCK};

use crate::fleet::documents::Input::{Failed, Machine, Text};
use crate::fleet::documents::{Documents, Input, MOST};
use crate::fleet::host::one_line;
use nicpin::root::errno_words;

/// Maximum depth of directories; ends links that run in circles.
const DEPTH: usize = 8;

/// Maximum hosts of which lines that are no JSON are kept.
const MOST_HOSTS: usize = 100_000;

const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Gives the inputs one by one. Returns the hosts that printed something other than JSON, with the first such line: an
/// error if nothing else comes from them.
pub fn inputs(arguments: &[PathBuf], give: &mut dyn FnMut(Input)) -> BTreeMap<String, String> {
    let mut printed = BTreeMap::new();
    let mut inputs = Inputs {
        give: &mut |input| match input {
            Text { host, line } => {
                if printed.len() < MOST_HOSTS {
                    printed.entry(host).or_insert_with(|| one_line(&line));
                }
            }
            input => give(input),
        },
        directories: BTreeSet::new(),
    };
    for argument in arguments {
        inputs.directories.clear();
        let list = argument.to_str().and_then(|name| name.strip_prefix('@'));
        let (path, read) = match list.map(Path::new) {
            None if argument == Path::new("-") => {
                inputs.documents("standard input", &mut io::stdin().lock());
                continue;
            }
            None => (&**argument, inputs.path(argument, 0)),
            Some(list) => (list, inputs.list(list)),
        };
        inputs.or_fail(path, read);
    }
    printed
}

struct Inputs<'a> {
    give: &'a mut dyn FnMut(Input),
    /// Device and inode of each directory that was read: links may lead there again.
    directories: BTreeSet<(u64, u64)>,
}

impl Inputs<'_> {
    fn or_fail(&mut self, source: &Path, read: io::Result<()>) {
        if let Err(error) = read {
            (self.give)(Failed {
                source: source.display().to_string(),
                error: errno_words(&error),
            });
        }
    }

    fn list(&mut self, list: &Path) -> io::Result<()> {
        let lines: Box<dyn BufRead> = if list == Path::new("-") {
            Box::new(io::stdin().lock())
        } else {
            Box::new(open(list)?)
        };
        for line in lines.lines() {
            let line = line?;
            let path = line.trim();
            if !path.is_empty() && !path.starts_with('#') {
                let read = self.path(path.as_ref(), 0);
                self.or_fail(path.as_ref(), read);
            }
        }
        Ok(())
    }

    /// Reads a capture, documents, a tree, or a directory of these.
    #[allow(clippy::disallowed_methods)] // the user's directory
    fn path(&mut self, path: &Path, depth: usize) -> io::Result<()> {
        if !path.is_dir() {
            let mut file = open(path)?;
            if file.fill_buf()?.starts_with(&GZIP) {
                (self.give)(Machine(path.to_owned()));
            } else {
                self.documents(&path.display().to_string(), &mut file);
            }
            return Ok(());
        }
        if ["sys", "proc"].iter().any(|top| path.join(top).is_dir()) {
            (self.give)(Machine(path.to_owned()));
            return Ok(());
        }
        if depth >= DEPTH {
            return Err(io::Error::other(format!(
                "more than {DEPTH} directories deep"
            )));
        }
        let found = path.metadata()?;
        if !self.directories.insert((found.dev(), found.ino())) {
            return Ok(());
        }
        let mut names: Vec<_> = std::fs::read_dir(path)?
            .map(|entry| Ok(entry?.file_name()))
            .collect::<io::Result<_>>()?;
        names.retain(|name| !name.as_encoded_bytes().starts_with(b"."));
        names.sort_unstable();
        for name in names {
            let path = path.join(name);
            let read = self.path(&path, depth + 1);
            self.or_fail(&path, read);
        }
        Ok(())
    }

    fn documents(&mut self, source: &str, text: &mut dyn BufRead) {
        let mut documents = Documents::new(source, self.give);
        let mut line = Vec::new();
        let error = loop {
            line.clear();
            match text.take(MOST as u64).read_until(b'\n', &mut line) {
                Ok(0) => return documents.end(),
                Ok(MOST) => break format!("has a line of more than {MOST} bytes"),
                Ok(_) => documents.line(&String::from_utf8_lossy(&line)),
                Err(error) => break errno_words(&error),
            }
        };
        let source = source.to_owned();
        (self.give)(Failed { source, error });
    }
}

#[allow(clippy::disallowed_methods)] // the user's file
fn open(path: &Path) -> io::Result<BufReader<File>> {
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(O_NONBLOCK | O_NOCTTY);
    let file = options.open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other(
            "is a FIFO, a device or a socket, not a regular file",
        ));
    }
    Ok(BufReader::with_capacity(1 << 16, file))
}
