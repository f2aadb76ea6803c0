//! Replaces the names that a site gives its interfaces, its host and its cgroups: the same name everywhere, in the same order.

use std::collections::{BTreeMap, BTreeSet};

use itertools::Itertools as _;

use nicpin::machine::interface::natural;
use nicpin::read::cgroups::CGROUPS;
use nicpin::read::interrupts::INTERRUPTS;
use nicpin::read::tools::RECORDED;
use nicpin::root::tree::{Entry, Tree};
use nicpin::root::{FileError, Root};

/// The directories that hold a file or directory for each interface, beside those named `net`.
const BY_INTERFACE: [&str; 3] = ["/nicpin/ethtool", "/nicpin/netlink", "/nicpin/threads"];
const NET: &str = "/sys/class/net";
/// The kernel's `IFNAMSIZ`, without the NUL.
const MAX_NAME: usize = 15;

/// Names and what replaces them; none if names stay.
#[derive(Debug, Default)]
pub(super) struct Names {
    interfaces: BTreeMap<String, String>,
    /// The host's name, and what it begins with before the domain.
    host: BTreeSet<String>,
}

impl Names {
    /// Of a machine.
    pub(super) fn of(tree: &Tree, root: &Root) -> Result<Self, FileError> {
        let mut names = tree.list(NET).unwrap_or_default();
        names.sort_by_key(|name| natural(name));
        let interfaces = names
            .into_iter()
            .enumerate()
            .map(|(number, name)| (name, format!("if{number}")));
        let host = root
            .read_opt("/proc/sys/kernel/hostname")?
            .unwrap_or_default();
        let host = host.trim();
        let short = host.split('.').next().unwrap_or_default();
        let hosts = [host, short].map(str::to_owned).into_iter();
        Ok(Self {
            interfaces: interfaces.collect(),
            // A name of one or two letters is in other words, too.
            host: hosts.filter(|name| name.len() > 2).collect(),
        })
    }

    pub(super) fn are_replaced(&self) -> bool {
        !self.interfaces.is_empty()
    }

    /// A path, or the target of a link.
    pub(super) fn in_path(&self, path: &str) -> String {
        let (mut done, mut above) = (String::new(), "");
        for (at, name) in path.split('/').enumerate() {
            let of_interfaces = above == "net" || BY_INTERFACE.contains(&&*done);
            let mut relations = ["lower_", "upper_"].into_iter();
            let relation = relations.find(|relation| name.starts_with(relation));
            let before = relation.unwrap_or_default();
            let own = &name[before.len()..];
            let shown = self
                .interfaces
                .get(own)
                .filter(|_| of_interfaces || relation.is_some())
                .map_or_else(|| self.without_host(own), Clone::clone);
            let slash = if at > 0 { "/" } else { "" };
            done = done + slash + before + &shown;
            above = name;
        }
        done
    }

    /// The text of a file: handlers have the names of their interfaces.
    pub(super) fn in_text(&self, path: &str, text: &str) -> String {
        if self.interfaces.is_empty() {
            return text.to_owned();
        }
        match path {
            INTERRUPTS => {
                let line = |line: &str| match line.rsplit_once("  ") {
                    Some((counts, names)) => format!("{counts}  {}", self.in_words(names)),
                    None => line.to_owned(),
                };
                text.split_inclusive('\n').map(line).collect()
            }
            _ if path.ends_with("/actions") => self.in_words(text),
            _ if path == RECORDED || path.starts_with("/etc/") => self.without_host(text),
            _ => text.to_owned(),
        }
    }

    /// A policy without comments; `None` if it has a pattern for names, which would match none of the others.
    pub(super) fn in_policy(&self, policy: &str) -> Option<String> {
        if self.interfaces.is_empty() {
            return Some(policy.to_owned());
        }
        let line = |line: &str| match line.split_once('=') {
            Some((key, value)) if key.trim() == "name" => {
                let other = self.interfaces.get(value.trim().trim_matches('"'))?;
                Some(format!("{key}= \"{other}\"\n"))
            }
            _ if line.contains("name") => None,
            _ => Some(line.to_owned()),
        };
        policy.split_inclusive('\n').map(line).collect()
    }

    /// Replaces each interface that is a word, or the part of one before or after a hyphen or the like.
    fn in_words(&self, text: &str) -> String {
        let (mut done, mut at) = (String::new(), 0);
        while at < text.len() {
            let rest = &text[at..];
            let is_start = !text[..at].ends_with(|c: char| c.is_ascii_alphanumeric());
            let ends = (1..=MAX_NAME.min(rest.len()))
                .rev()
                .filter(|&end| rest.is_char_boundary(end));
            let named = ends.filter(|_| is_start).find_map(|end| {
                let is_end = !rest[end..].starts_with(|c: char| c.is_ascii_alphanumeric());
                Some((end, self.interfaces.get(&rest[..end]).filter(|_| is_end)?))
            });
            let length = rest.chars().next().map_or(1, char::len_utf8);
            let (length, shown) =
                named.map_or((length, &rest[..length]), |(end, other)| (end, other));
            done.push_str(shown);
            at += length;
        }
        done
    }

    fn without_host(&self, text: &str) -> String {
        self.host
            .iter()
            .rev()
            .fold(text.to_owned(), |text, host| text.replace(host, "host"))
    }
}

/// Names of cgroups, which are those of containers, services and users, and what replaces them.
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
        let number =
            |(number, name): (usize, &str)| (name.to_owned(), format!("cgroup{number:04}"));
        Self((1..).zip(names).map(number).collect())
    }

    /// The number of names, if any is replaced by another one.
    pub(super) fn renamed(&self) -> Option<usize> {
        let is_renamed = self.0.iter().any(|(name, other)| name != other);
        is_renamed.then_some(self.0.len())
    }

    pub(super) fn in_path(&self, path: &str) -> String {
        let Some(below) = below(path) else {
            return path.to_owned();
        };
        let names = below
            .split('/')
            .map(|name| self.0.get(name).map_or(name, String::as_str));
        [CGROUPS].into_iter().chain(names).join("/")
    }
}

fn below(path: &str) -> Option<&str> {
    path.strip_prefix(CGROUPS)?.strip_prefix('/')
}
