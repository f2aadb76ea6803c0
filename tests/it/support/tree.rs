//! Directory trees: written, read, copied and compared.

// The tree belongs to the test; nicpin itself reads through `Root`.
#![allow(clippy::disallowed_methods)]

use std::collections::BTreeMap;
use std::fs::{self, FileType};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use nicpin::cpuset::CpuSet;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    File(String),
    Link(PathBuf),
}

/// Writes one or more lines, the last of which is ended here, and makes the directories above.
pub fn put(dir: &Path, path: &str, text: &str) {
    let path = place(dir, path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, format!("{text}\n"))
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}

/// Also makes the directories above.
pub fn link(dir: &Path, path: &str, target: &str) {
    let path = place(dir, path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    symlink(target, &path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}

pub fn make_dir(dir: &Path, path: &str) {
    fs::create_dir_all(place(dir, path)).unwrap();
}

/// Each IRQ whose affinity is one CPU moves there, as in the kernel at its next interrupt.
pub fn settle(dir: &Path) {
    for irq in fs::read_dir(dir.join("proc/irq")).unwrap() {
        let [affinity, effective] = ["smp_affinity", "effective_affinity_list"]
            .map(|file| irq.as_ref().unwrap().path().join(file));
        if let (Ok(mask), true) = (fs::read_to_string(affinity), effective.exists()) {
            let cpus = CpuSet::parse_kernel_mask(mask.trim()).unwrap();
            if cpus.len() == 1 {
                fs::write(effective, format!("{cpus}\n")).unwrap();
            }
        }
    }
}

/// Reads a file without the end of its last line.
pub fn read(dir: &Path, path: &str) -> String {
    let path = place(dir, path);
    let text =
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.strip_suffix('\n').unwrap_or(&text).to_owned()
}

/// Files and links by path from the top, which begins with `/`; none if there is no tree.
pub fn entries(dir: &Path) -> BTreeMap<String, Entry> {
    let mut found = BTreeMap::new();
    if dir.is_dir() {
        collect(dir, "", &mut found);
    }
    found
}

/// The same tree gives the same bytes.
pub fn pack(dir: &Path) -> Vec<u8> {
    let mut archive = tar::Builder::new(flate2::write::GzEncoder::new(
        Vec::new(),
        flate2::Compression::best(),
    ));
    for (path, entry) in entries(dir) {
        let path = path.trim_start_matches('/');
        let mut header = tar::Header::new_gnu();
        header.set_mode(0o644);
        match entry {
            Entry::File(text) => {
                header.set_size(text.len() as u64);
                archive
                    .append_data(&mut header, path, text.as_bytes())
                    .unwrap();
            }
            Entry::Link(target) => {
                header.set_entry_type(tar::EntryType::Symlink);
                header.set_size(0);
                archive.append_link(&mut header, path, target).unwrap();
            }
        }
    }
    archive.into_inner().unwrap().finish().unwrap()
}

pub fn unpack(archive: &Path, dir: &Path) {
    let file =
        fs::File::open(archive).unwrap_or_else(|error| panic!("{}: {error}", archive.display()));
    tar::Archive::new(flate2::read::GzDecoder::new(file))
        .unpack(dir)
        .unwrap();
}

/// Writes what [`entries`] has read.
pub fn write_entries(dir: &Path, entries: &BTreeMap<String, Entry>) {
    let mut above = PathBuf::new();
    for (path, entry) in entries {
        let path = place(dir, path);
        let parent = path.parent().unwrap();
        if parent != above {
            fs::create_dir_all(parent).unwrap();
            parent.clone_into(&mut above);
        }
        let written = match entry {
            Entry::File(text) => fs::write(&path, text),
            Entry::Link(target) => symlink(target, &path),
        };
        written.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }
}

/// Links stay links.
pub fn copy_tree(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for (name, kind) in listed(from) {
        let (from, to) = (from.join(&name), to.join(&name));
        if kind.is_symlink() {
            symlink(fs::read_link(&from).unwrap(), &to).unwrap();
        } else if kind.is_dir() {
            copy_tree(&from, &to);
        } else {
            fs::copy(&from, &to).unwrap();
        }
    }
}

/// Lists names, sorted.
pub fn names(dir: &Path) -> Vec<String> {
    listed(dir).into_iter().map(|(name, _)| name).collect()
}

/// Lists names with their types, sorted. A link is a link.
fn listed(dir: &Path) -> Vec<(String, FileType)> {
    let entries = fs::read_dir(dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display()));
    let mut listed: Vec<_> = entries
        .map(|entry| {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            (name, entry.file_type().unwrap())
        })
        .collect();
    listed.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    listed
}

fn collect(dir: &Path, above: &str, found: &mut BTreeMap<String, Entry>) {
    for (name, kind) in listed(dir) {
        let (full, path) = (dir.join(&name), format!("{above}/{name}"));
        if kind.is_symlink() {
            found.insert(path, Entry::Link(fs::read_link(&full).unwrap()));
        } else if kind.is_dir() {
            collect(&full, &path, found);
        } else if kind.is_file() {
            found.insert(path, Entry::File(fs::read_to_string(&full).unwrap()));
        }
    }
}

/// Takes a path with or without a leading `/`.
fn place(dir: &Path, path: &str) -> PathBuf {
    dir.join(path.trim_start_matches('/'))
}
