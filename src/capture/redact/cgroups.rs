//! Replaces the names of cgroups, which are those of containers, services and users. Services whose processes are looked
//! for, such as irqbalance's, keep theirs: they are found by it.

use std::collections::{BTreeMap, BTreeSet};

use nicpin::read::cgroups::CGROUPS;
use nicpin::root::tree::{Entry, Tree};

/// Names of cgroups and what replaces them.
#[derive(Debug, Default)]
pub(super) struct Cgroups(BTreeMap<String, String>);

impl Cgroups {
    /// Of a tree. The order of names stays, so that the capture of a capture is the same.
    pub(super) fn of(tree: &Tree) -> Self {
        let directories = tree
            .iter()
            .filter(|(_, entry)| matches!(entry, Entry::Directory(_)));
        let names: BTreeSet<&str> = directories
            .filter_map(|(path, _)| below(path))
            .flat_map(|path| path.split('/'))
            .collect();
        let services = tree
            .iter()
            .filter_map(|(path, _)| below(path)?.strip_suffix("/cgroup.procs"));
        let kept: BTreeSet<&str> = services.flat_map(|path| path.split('/')).collect();
        let names = names.difference(&kept);
        let number =
            |(number, name): (usize, &&str)| ((*name).to_owned(), format!("cgroup{number:04}"));
        Self((1..).zip(names).map(number).collect())
    }

    /// Whether any name is replaced by another one.
    pub(super) fn changes(&self) -> bool {
        self.0.iter().any(|(name, other)| name != other)
    }

    /// The number of names.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn in_path(&self, path: &str) -> String {
        let Some(below) = below(path) else {
            return path.to_owned();
        };
        let names = below
            .split('/')
            .map(|name| self.0.get(name).map_or(name, String::as_str));
        [CGROUPS]
            .into_iter()
            .chain(names)
            .collect::<Vec<_>>()
            .join("/")
    }
}

fn below(path: &str) -> Option<&str> {
    path.strip_prefix(CGROUPS)?.strip_prefix('/')
}
