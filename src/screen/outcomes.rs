//! The outcomes of writes, grouped, because thousands of files may have the same one.

use std::collections::BTreeMap;

use crate::screen::page::Page;
use crate::screen::text::{count, ranges};
use nicpin::machine::paths::{shown, thread_of};
use nicpin::report::outcome::{Outcome, WriteResult};

/// Failed writes with their reasons, fallbacks, and the number of successful writes by interface.
pub(crate) fn results(results: &[WriteResult]) -> Page {
    let mut changed: BTreeMap<&str, usize> = BTreeMap::new();
    let mut page = failures(results);
    for result in results {
        if let (Some(_), Some(detail)) = (&result.fallback, &result.detail) {
            page.item("fallback  ", format!("{}: {detail}", result.path));
        }
        if result.changed() {
            *changed.entry(&result.interface).or_default() += 1;
        }
    }
    for (interface, changes) in changed {
        let name = if interface.is_empty() {
            "machine"
        } else {
            interface
        };
        page.line(format!("changed   {name}: {}", count(changes, "setting")));
    }
    page
}

/// Failed writes, one message for those with the same outcome and detail.
pub(crate) fn failures<'a>(results: impl IntoIterator<Item = &'a WriteResult>) -> Page {
    let mut places: BTreeMap<(String, &str), usize> = BTreeMap::new();
    let mut groups: Vec<Vec<&WriteResult>> = Vec::new();
    for result in results
        .into_iter()
        .filter(|result| !result.changed() && result.outcome != Outcome::Already)
    {
        let words = (
            format!("{:?}", result.outcome).to_lowercase(),
            result.detail.as_deref().unwrap_or_default(),
        );
        if let Some(&place) = places.get(&words) {
            groups[place].push(result);
        } else {
            places.insert(words, groups.len());
            groups.push(vec![result]);
        }
    }
    let mut lines: Vec<(usize, String, String)> = Vec::new();
    for ((outcome, detail), place) in places {
        let what = match groups[place][..] {
            [WriteResult { path, value, .. }] => format!("{} <- {value}", shown(path)),
            ref group => files(group.iter().map(|result| result.path.as_str())),
        };
        lines.push((place, format!("{outcome:<10}"), format!("{what}: {detail}")));
    }
    lines.sort_unstable();
    let mut page = Page::default();
    for (_, outcome, what) in lines {
        page.item(outcome, what);
    }
    page
}

/// Files in short: `IRQs 71-76; eth2 xps_cpus of tx 0-5`.
fn files<'a>(paths: impl Iterator<Item = &'a str>) -> String {
    let numbered = |path: &'a str| {
        if let Some(rest) = path.strip_prefix("/proc/irq/") {
            return Some((
                "IRQs".to_owned(),
                rest.strip_suffix("/smp_affinity")?.parse().ok()?,
            ));
        }
        if let Some(pid) = thread_of(path) {
            return Some(("affinity of threads".to_owned(), pid));
        }
        let (interface, queue) = path
            .strip_prefix("/sys/class/net/")?
            .split_once("/queues/")?;
        let (queue, file) = queue.split_once('/')?;
        let (direction, number) = queue.split_once('-')?;
        Some((
            format!("{interface} {file} of {direction}"),
            number.parse::<u32>().ok()?,
        ))
    };
    let mut groups: Vec<(String, Vec<u32>)> = Vec::new();
    for path in paths {
        let (name, number) = numbered(path)
            .map_or((shown(path).into_owned(), None), |(name, number)| {
                (name, Some(number))
            });
        match groups.iter_mut().rev().find(|(other, _)| *other == name) {
            Some((_, numbers)) => numbers.extend(number),
            None => groups.push((name, number.into_iter().collect())),
        }
    }
    let words = groups
        .iter()
        .map(|(name, numbers)| format!("{name} {}", ranges(numbers)).trim_end().to_owned());
    words.collect::<Vec<_>>().join("; ")
}
