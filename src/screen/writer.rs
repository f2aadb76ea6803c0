//! Lays out the lines of a screen.

use std::ops::Range;

use anstyle::{AnsiColor, Style};
use itertools::Itertools as _;

use crate::screen::cells::Tone::{Alarm, Good, Plain, Warning};
use crate::screen::cells::{Cell, Screen, Tone};
use crate::screen::{printable, text_if};

const WIDEST: usize = 48;
/// Blanks between columns.
const GAP: usize = 2;
/// Characters beside the beginning of a line; with fewer, the rest continues below.
const LEAST_ROOM: usize = 24;
/// Indent of the continuation of a line of several cells.
const CONTINUED: usize = 6;

pub(super) struct Writer {
    pub(super) out: String,
    pub(super) screen: Screen,
    pub(super) at: usize,
    pub(super) gap: usize,
}

impl Writer {
    pub(super) fn table(&mut self, indent: usize, right: &Range<usize>, rows: &[Vec<Cell>]) {
        let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
        let are_figures = columns > 1 && right.end >= columns;
        let width = |column: usize| {
            // The last cell of a row continues below itself.
            rows.iter()
                .filter_map(|row| row.get(column..)?.split_first())
                .filter(|(_, after)| are_figures || !after.is_empty())
                .map(|(cell, _)| length(&cell.text))
                .filter(|&width| width <= WIDEST)
                .max()
                .unwrap_or(0)
        };
        let widths = (0..columns).map(width).collect_vec();
        let Some(first) = widths.first() else { return };
        // Columns of figures that do not fit follow below, again after the first.
        let (mut parts, mut taken) = (vec![vec![0]], indent + first);
        for (column, width) in widths.iter().enumerate().skip(1) {
            taken += width + GAP;
            if are_figures && taken > self.screen.width && parts[parts.len() - 1].len() > 1 {
                taken = indent + first + width + GAP;
                parts.push(vec![0]);
            }
            let last = parts.len() - 1;
            parts[last].push(column);
        }
        for (at, part) in parts.iter().enumerate() {
            if at > 0 {
                self.end(0);
            }
            for row in rows {
                self.gap = indent;
                let cells = part.iter().filter_map(|&column| {
                    let cell = row.get(column)?;
                    let blanks = widths[column].saturating_sub(length(&cell.text));
                    Some(if right.contains(&column) {
                        (blanks, cell, GAP)
                    } else {
                        (0, cell, blanks + GAP)
                    })
                });
                self.row(&cells.collect_vec());
            }
        }
    }

    /// Each cell has blanks before and after it. Cells that do not fit continue below, the last one below itself.
    pub(super) fn row(&mut self, cells: &[(usize, &Cell, usize)]) {
        let Some(((before, last, _), cells)) = cells.split_last() else {
            return self.end(0);
        };
        let width = self.screen.width;
        let indent = self.gap + CONTINUED;
        for (before, cell, after) in cells {
            let length = length(&cell.text);
            if self.at + self.gap + before + length <= width {
                self.gap += before;
            } else if self.at > 0 && indent + length <= width {
                self.end(indent);
            }
            self.words(cell, indent);
            self.gap += after;
        }
        self.gap += before;
        let at = self.at + self.gap;
        let longest = last.text.split([' ', ',']).map(length).max().unwrap_or(0);
        let needed = length(&last.text).min(longest.max(LEAST_ROOM));
        if self.at > 0 && !last.text.is_empty() && at + needed > width {
            self.end(indent);
        }
        self.words(last, self.at + self.gap);
        self.end(0);
    }

    pub(super) fn words(&mut self, cell: &Cell, indent: usize) {
        let width = self.screen.width;
        if self.at + self.gap + length(&cell.text) <= width {
            return self.put(&cell.text, cell.tone);
        }
        let begin = indent.max(self.at + self.gap);
        let room = width - begin.min(width.saturating_sub(LEAST_ROOM));
        let mut line = String::new();
        let words = cell.text.split([' ', '\n', '\t']);
        for word in words.flat_map(|word| pieces(word, room)) {
            let taken = self.at + self.gap + length(&line);
            if !line.is_empty() && taken + 1 + length(&word) > width {
                self.put(&line, cell.tone);
                self.end(indent);
                line.clear();
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line += &word;
        }
        self.put(&line, cell.tone);
    }

    pub(super) fn put(&mut self, text: &str, tone: Tone) {
        if text.is_empty() {
            return;
        }
        self.out += &" ".repeat(self.gap);
        self.at += self.gap + length(text);
        self.gap = 0;
        let text = text.replace(['\n', '\t', '\u{a0}'], " ");
        let text = printable(&text);
        let style = match tone {
            _ if !self.screen.colour => Style::new(),
            Plain => Style::new(),
            Good => AnsiColor::Green.on_default(),
            Warning => AnsiColor::Yellow.on_default(),
            Alarm => AnsiColor::Red.on_default().bold(),
        };
        self.out += &format!("{style}{text}{style:#}");
    }

    pub(super) fn end(&mut self, indent: usize) {
        self.out.push('\n');
        (self.at, self.gap) = (0, indent);
    }
}

pub(super) fn length(text: &str) -> usize {
    text.chars().count()
}

/// A list is split after a comma, a command between two words, with the backslash of a shell.
fn pieces(word: &str, room: usize) -> impl Iterator<Item = String> {
    let is_command = word.contains('\u{a0}');
    let (at, more) = if is_command { ('\u{a0}', 1) } else { (',', 0) };
    let pieces = word.split_inclusive(at).map(str::to_owned);
    let pieces = pieces.coalesce(move |piece, next| {
        // All pieces but the last end in a blank, and the backslash follows.
        let end = if next.ends_with(at) { more } else { 0 };
        if length(&piece) + length(&next) + end <= room {
            Ok(piece + &next)
        } else {
            Err((piece, next))
        }
    });
    pieces.map(move |piece| {
        let is_broken = is_command && piece.ends_with(at);
        piece + text_if(is_broken, "\\")
    })
}
