//! Folds names of hosts: `node[001-300]`, `r[1-4]n[01-40]`, as clush, pdsh and nodeset take them.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use itertools::Itertools as _;

use nicpin::cpuset::Inserted as _;
use nicpin::machine::interface::natural;

struct Alike<'a> {
    /// Text before each number, and after the last one.
    texts: &'a [&'a str],
    /// The width to which each number is padded with zeros, or 0.
    widths: Vec<usize>,
    /// The numbers in each place; a block stands for all combinations.
    blocks: BTreeSet<Vec<Vec<u64>>>,
}

/// Folds names, each once, in the order of the first of each.
pub fn fold(names: &[&str]) -> Vec<String> {
    let names = names.iter().map(|name| parts(name)).collect_vec();
    // Of the numbers of one width, one that begins with 0 shows that all are padded.
    let mut padded = BTreeSet::new();
    for (texts, numbers) in &names {
        for (place, number) in numbers.iter().enumerate() {
            if number.len() > 1 && number.starts_with('0') {
                padded.insert((texts, place, number.len()));
            }
        }
    }
    let mut alike: BTreeMap<_, BTreeSet<Vec<Vec<u64>>>> = BTreeMap::new();
    for (texts, numbers) in &names {
        let width = |(place, number): (usize, &&str)| {
            let is_padded = padded.contains(&(texts, place, number.len()));
            if is_padded { number.len() } else { 0 }
        };
        let widths = numbers.iter().enumerate().map(width).collect_vec();
        let block = numbers
            .iter()
            .map(|number| vec![number.parse().unwrap_or(0)]);
        alike
            .entry((&texts[..], widths))
            .or_default()
            .insert(block.collect());
    }
    let fold = |((texts, widths), blocks)| {
        Alike {
            texts,
            widths,
            blocks,
        }
        .fold()
    };
    let mut folded = alike.into_iter().flat_map(fold).collect_vec();
    folded.sort_unstable_by(|(a, _), (b, _)| natural(a).cmp(&natural(b)).then(a.cmp(b)));
    folded.into_iter().map(|(_, text)| text).collect()
}

fn parts(name: &str) -> (Vec<&str>, Vec<&str>) {
    let is_plain = |c: char| c.is_alphanumeric() || "-_.:".contains(c);
    if !name.chars().all(is_plain) {
        return (vec![name], Vec::new());
    }
    let (mut texts, mut numbers, mut begin) = (Vec::new(), Vec::new(), 0);
    for Range { start, end } in digits(name) {
        if end - start <= MOST_DIGITS {
            texts.push(&name[begin..start]);
            numbers.push(&name[start..end]);
            begin = end;
        }
    }
    texts.push(&name[begin..]);
    (texts, numbers)
}

/// With more digits, a number is no count of hosts.
const MOST_DIGITS: usize = 15;

fn digits(name: &str) -> impl Iterator<Item = Range<usize>> {
    let runs = name
        .as_bytes()
        .chunk_by(|a, b| a.is_ascii_digit() == b.is_ascii_digit());
    let mut at = 0;
    runs.filter_map(move |run| {
        let begin = at;
        at += run.len();
        run[0].is_ascii_digit().then_some(begin..at)
    })
}

impl Alike<'_> {
    fn fold(mut self) -> Vec<(String, String)> {
        for place in (0..self.widths.len()).rev() {
            let mut joined: BTreeMap<Vec<Vec<u64>>, BTreeSet<u64>> = BTreeMap::new();
            for mut block in self.blocks {
                let numbers = std::mem::take(&mut block[place]);
                joined.entry(block).or_default().extend(numbers);
            }
            let whole = joined.into_iter().map(|(mut block, numbers)| {
                block[place] = numbers.into_iter().collect();
                block
            });
            self.blocks = whole.inserted();
        }
        let blocks = self.blocks.iter();
        blocks
            .map(|block| {
                let first = block.iter().map(|numbers| &numbers[..1]).collect_vec();
                let all = block.iter().map(|numbers| &**numbers).collect_vec();
                (self.text(&first), self.text(&all))
            })
            .collect()
    }

    fn text(&self, block: &[&[u64]]) -> String {
        let mut out = String::new();
        for (place, text) in self.texts.iter().enumerate() {
            out += text;
            if let Some(numbers) = block.get(place) {
                out += &ranges(numbers, self.widths[place]);
            }
        }
        out
    }
}

/// `7`, `[001-300,305]`.
fn ranges(numbers: &[u64], width: usize) -> String {
    let runs = numbers.chunk_by(|a, b| a + 1 == *b);
    let text = runs
        .map(|run| match run {
            [first, .., last] => format!("{first:0width$}-{last:0width$}"),
            _ => format!("{:0width$}", run[0]),
        })
        .join(",");
    if numbers.len() == 1 {
        text
    } else {
        format!("[{text}]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folded(names: &str) -> String {
        fold(&names.split(' ').collect_vec()).join(" ")
    }

    #[test]
    fn names_fold_as_people_of_clusters_write_them() {
        for (names, expected) in [
            ("h3 h17 h120", "h[3,17,120]"),
            ("h10 h9 h8", "h[8-10]"),
            ("h1", "h1"),
            ("login node01 node02 node03", "login node[01-03]"),
            ("n001 n002 n1 n2 n100 n1000", "n[001-002,100] n[1-2,1000]"),
            ("n09 n10 n11", "n[09-11]"),
            ("r1n1 r1n2 r2n1 r2n2", "r[1-2]n[1-2]"),
            ("r1n1 r1n2 r2n1", "r1n[1-2] r2n1"),
            ("10.0.0.1 10.0.0.2 10.0.1.1", "10.0.0.[1-2] 10.0.1.1"),
            ("a1.example b1.example", "a1.example b1.example"),
            ("n1[x] n2[x]", "n1[x] n2[x]"),
            ("n0 n1 n1", "n[0-1]"),
        ] {
            assert_eq!(folded(names), expected, "{names}");
        }
        let many = (1..=300).map(|n| format!("node{n:03}")).collect_vec();
        assert_eq!(folded(&many.join(" ")), "node[001-300]");
    }

    fn unfold(text: &str) -> Vec<String> {
        let Some((before, (inside, after))) = text
            .split_once('[')
            .and_then(|(before, rest)| Some((before, rest.split_once(']')?)))
        else {
            return vec![text.to_owned()];
        };
        let numbers = inside.split(',').flat_map(|range| {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let width = if first.starts_with('0') {
                first.len()
            } else {
                0
            };
            let ends = [first, last].map(|end| end.parse::<u64>().unwrap());
            (ends[0]..=ends[1]).map(move |number| format!("{number:0width$}"))
        });
        let rest = unfold(after);
        numbers
            .flat_map(|number| {
                rest.iter()
                    .map(move |rest| format!("{before}{number}{rest}"))
            })
            .collect()
    }

    proptest::proptest! {
        #[test]
        fn folding_loses_and_adds_no_name(names in proptest::collection::btree_set("[an][0-3]{0,3}(n[01]{1,2})?", 0..40)) {
            let names = names.iter().map(String::as_str).collect_vec();
            let found = fold(&names).iter().flat_map(|text| unfold(text)).sorted_unstable().collect_vec();
            proptest::prop_assert_eq!(found, names);
        }
    }
}
