//! Fits text to the width of a screen.

use std::borrow::Cow;

pub(crate) use crate::report::wording::{count, speed};

/// The width of a screen, in columns.
pub(crate) const WIDTH: usize = 100;

/// The text, cut to a width; a cut is marked by two dots.
pub(crate) fn fit(text: &str, width: usize) -> Cow<'_, str> {
    if length(text) <= width {
        return Cow::Borrowed(text);
    }
    let kept: String = text.chars().take(width.saturating_sub(2)).collect();
    Cow::Owned(kept + "..")
}

/// The number of characters.
fn length(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.chars().count() }
}

/// The text in lines of at most [`WIDTH`], the first after `first`, the others after as many blanks. A word that is
/// longer than a line, such as the list of every other CPU, is broken after a comma.
pub(crate) fn wrap(first: &str, text: &str) -> String {
    let indent = " ".repeat(first.chars().count());
    let room = WIDTH.saturating_sub(indent.len()).max(20);
    let (mut out, mut line) = (String::new(), first.to_owned());
    let mut empty = true;
    for word in text.split_whitespace().flat_map(|word| broken(word, room)) {
        if !empty && line.chars().count() + 1 + word.chars().count() > WIDTH {
            out.push_str(&line);
            out.push('\n');
            line.clone_from(&indent);
            empty = true;
        }
        if !empty {
            line.push(' ');
        }
        line.push_str(word);
        empty = false;
    }
    out + &line + "\n"
}

/// The word in pieces of at most `room`, each but the last ending in a comma; a word without commas as it is.
fn broken(word: &str, room: usize) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = word;
    while rest.len() > room {
        let Some(at) = rest.char_indices().take_while(|&(at, _)| at < room).filter(|&(_, c)| c == ',').last()
        else {
            break;
        };
        let (piece, after) = rest.split_at(at.0 + 1);
        pieces.push(piece);
        rest = after;
    }
    pieces.push(rest);
    pieces
}

/// Rows as aligned columns, each as wide as its widest cell up to a limit; the last column takes what is left
/// of the screen. No blanks at the ends of lines.
pub(crate) fn columns(indent: usize, rows: &[Vec<String>], limits: &[usize]) -> String {
    let width = |column: usize| {
        let widest = rows.iter().filter_map(|row| row.get(column)).map(|cell| length(cell)).max();
        widest.unwrap_or(0).min(limits.get(column).copied().unwrap_or(WIDTH))
    };
    let widths: Vec<usize> = (0..limits.len()).map(width).collect();
    let mut out = String::new();
    for row in rows {
        let start = out.len();
        let mut at = indent;
        blanks(&mut out, indent);
        for (column, cell) in row.iter().enumerate() {
            let left = WIDTH.saturating_sub(at);
            let width = widths.get(column).copied().unwrap_or(left).min(left);
            let cell = fit(cell, width);
            out.push_str(&cell);
            at += length(&cell);
            if column + 1 < row.len() {
                let gap = width - length(&cell) + 2;
                blanks(&mut out, gap);
                at += gap;
            }
        }
        out.truncate(start + out[start..].trim_end().len());
        out.push('\n');
    }
    out
}

fn blanks(out: &mut String, count: usize) {
    out.extend(std::iter::repeat_n(' ', count));
}

/// A link's speed in few characters: `40G`, `2.5G`, `100M`.
pub(crate) fn short_speed(mbps: u32) -> String {
    speed(mbps).replace(" Gbit/s", "G").replace(" Mbit/s", "M")
}

/// A rate in few characters: `0`, `0.5`, `870`, `12.3k`, `4.1M`.
pub(crate) fn rate(per_second: f64) -> String {
    match per_second {
        0.0 => "0".to_owned(),
        // Not "0.0": a few interrupts are more than none.
        few if few < 0.05 => "<0.1".to_owned(),
        few if few < 9.95 => format!("{few:.1}"),
        some if some < 999.5 => format!("{some:.0}"),
        many if many < 999_950.0 => format!("{:.1}k", many / 1e3),
        many if many < 999_950_000.0 => format!("{:.1}M", many / 1e6),
        many => format!("{:.1}G", many / 1e9),
    }
}

/// Numbers as a list of ranges.
pub(crate) fn ranges(numbers: &[u32]) -> String {
    let mut numbers = numbers.to_vec();
    numbers.sort_unstable();
    numbers.dedup();
    let ranges = numbers.chunk_by(|a, b| a.checked_add(1) == Some(*b)).map(|range| match range {
        [first, .., last] => format!("{first}-{last}"),
        numbers => numbers.iter().map(u32::to_string).collect(),
    });
    ranges.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_ranges() {
        let numbers = [u32::MAX, 7, 9000, 5, 9001, 6, 7, 9];
        assert_eq!(ranges(&numbers), "5-7,9,9000-9001,4294967295");
        assert_eq!((ranges(&[4]).as_str(), ranges(&[]).as_str()), ("4", ""));
    }

    #[test]
    fn rates_are_short() {
        for (rate, text) in [
            (0.0, "0"),
            (0.01, "<0.1"),
            (0.5, "0.5"),
            (9.96, "10"),
            (870.2, "870"),
            (999.6, "1.0k"),
            (12_345.0, "12.3k"),
            (999_960.0, "1.0M"),
            (4.1e6, "4.1M"),
            (4.96e9, "5.0G"),
        ] {
            assert_eq!(super::rate(rate), text);
        }
        assert_eq!([40_000, 2_500, 100].map(short_speed), ["40G", "2.5G", "100M"]);
    }

    #[test]
    fn text_fits() {
        assert_eq!(fit("0-3,8", 5), "0-3,8");
        assert_eq!(fit("0,2,4,6,8", 6), "0,2,..");
        let wrapped = wrap("  note  ", &"word ".repeat(40));
        assert!(wrapped.lines().all(|line| line.len() <= WIDTH) && wrapped.lines().count() == 3, "{wrapped}");
        let rows =
            vec![vec!["a".to_owned(), "long text ".repeat(20)], vec!["bbb".to_owned(), "x".to_owned()]];
        let out = columns(2, &rows, &[8]);
        assert!(out.lines().all(|line| line.len() <= WIDTH), "{out}");
        assert!(out.ends_with("  bbb  x\n"), "{out}");
    }
}
