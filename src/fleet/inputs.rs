//! What `nicpin fleet` is given: captures, trees, directories of these, lists of paths, and JSON, in files or as a stream
//! with or without the names of hosts before each line, as clush and pdsh print them.
//!
//! The files are the user's and not below a root. Only one document of each host is in memory at a time.

use std::collections::BTreeMap;
use std::fs::{DirEntry, File};
use std::io::{self, BufRead, BufReader, Read as _};
use std::path::{Path, PathBuf};

use crate::fleet::documents::{Document, Documents, Printed};
use nicpin::root::errno_words;

/// Directories in directories that are read; it ends links that run in circles.
const DEPTH: usize = 8;

/// The most bytes of a line: more than the plan of any machine.
const LINE: u64 = 64 << 20;

/// The first bytes of a capture, as gzip begins.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Something to be read, or that could not be.
#[derive(Debug)]
pub enum Input {
    /// A capture, or a tree with the files of a machine.
    Machine(PathBuf),
    Document(Document),
    Failed {
        source: String,
        error: String,
    },
}

/// Finds the inputs that the arguments name, and gives them one by one. Returns the hosts that printed something other
/// than JSON, with the first such line: that is an error if nothing else comes from them.
pub fn inputs(arguments: &[PathBuf], give: &mut dyn FnMut(Input)) -> BTreeMap<String, String> {
    let mut inputs = Inputs {
        give,
        printed: BTreeMap::new(),
    };
    for argument in arguments {
        inputs.argument(argument);
    }
    inputs.printed
}

struct Inputs<'a> {
    give: &'a mut dyn FnMut(Input),
    printed: BTreeMap<String, String>,
}

impl Inputs<'_> {
    fn fail(&mut self, source: &Path, error: &io::Error) {
        (self.give)(Input::Failed {
            source: source.display().to_string(),
            error: errno_words(error),
        });
    }

    fn argument(&mut self, argument: &Path) {
        let list = argument
            .to_str()
            .and_then(|argument| argument.strip_prefix('@'))
            .map(Path::new);
        match list {
            _ if argument == Path::new("-") => {
                self.documents("standard input", &mut io::stdin().lock());
            }
            Some(list) => {
                if let Err(error) = self.list(list) {
                    self.fail(list, &error);
                }
            }
            None => self.path(argument, 0),
        }
    }

    /// A file with one path a line.
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
                self.path(Path::new(path), 0);
            }
        }
        Ok(())
    }

    fn path(&mut self, path: &Path, depth: usize) {
        let read = if path.is_dir() {
            self.directory(path, depth)
        } else {
            self.file(path)
        };
        if let Err(error) = read {
            self.fail(path, &error);
        }
    }

    /// A tree of a machine, or a directory of inputs.
    #[allow(clippy::disallowed_methods)] // the user's directory
    fn directory(&mut self, path: &Path, depth: usize) -> io::Result<()> {
        if ["sys", "proc"].iter().any(|top| path.join(top).is_dir()) {
            (self.give)(Input::Machine(path.to_owned()));
            return Ok(());
        }
        if depth >= DEPTH {
            return Err(io::Error::other(format!(
                "more than {DEPTH} directories deep"
            )));
        }
        let entries: Vec<DirEntry> = std::fs::read_dir(path)?.collect::<io::Result<_>>()?;
        let mut names: Vec<_> = entries.into_iter().map(|entry| entry.file_name()).collect();
        names.sort();
        for name in names
            .iter()
            .filter(|name| !name.as_encoded_bytes().starts_with(b"."))
        {
            self.path(&path.join(name), depth + 1);
        }
        Ok(())
    }

    fn file(&mut self, path: &Path) -> io::Result<()> {
        let mut file = open(path)?;
        if file.fill_buf()?.starts_with(&GZIP) {
            (self.give)(Input::Machine(path.to_owned()));
        } else {
            self.documents(&path.display().to_string(), &mut file);
        }
        Ok(())
    }

    fn documents(&mut self, source: &str, text: &mut dyn BufRead) {
        let mut documents = Documents::new(source);
        let mut line = Vec::new();
        loop {
            line.clear();
            match text.take(LINE).read_until(b'\n', &mut line) {
                Ok(0) => break,
                Ok(length) if length as u64 == LINE => {
                    let error = format!("has a line of more than {LINE} bytes");
                    (self.give)(Input::Failed {
                        source: source.to_owned(),
                        error,
                    });
                    return;
                }
                Ok(_) => documents.line(&String::from_utf8_lossy(&line), &mut |printed| {
                    self.take(printed);
                }),
                Err(error) => {
                    (self.give)(Input::Failed {
                        source: source.to_owned(),
                        error: errno_words(&error),
                    });
                    return;
                }
            }
        }
        documents.end(&mut |printed| self.take(printed));
    }

    fn take(&mut self, printed: Printed) {
        match printed {
            Printed::Document(document) => (self.give)(Input::Document(document)),
            Printed::Failed { source, error } => (self.give)(Input::Failed { source, error }),
            Printed::Text { host, line } => _ = self.printed.entry(host).or_insert(line),
        }
    }
}

#[allow(clippy::disallowed_methods)] // the user's file
fn open(path: &Path) -> io::Result<BufReader<File>> {
    Ok(BufReader::with_capacity(1 << 16, File::open(path)?))
}
