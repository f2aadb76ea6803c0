//! The screen that text is for: its width, and whether it has colours.
//!
//! Renderers write lines of any length. A tab in a line is not printed: it marks where the line continues when it is
//! broken.

use anstyle::{AnsiColor, Color, Style};

/// Where text is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Screen {
    /// In columns.
    pub width: usize,
    /// Whether text is coloured. A colour only repeats what the words say.
    pub colour: bool,
}

impl Default for Screen {
    fn default() -> Self {
        Self {
            width: 100,
            colour: false,
        }
    }
}

/// The meaning of a colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// Good, and proven.
    Good,
    /// Worth a look.
    Warning,
    /// Wrong.
    Alarm,
    /// A command that fixes something.
    Fix,
    /// Neither good nor bad.
    Plain,
}

/// Where the rest of a line continues if less than this is left beside its beginning.
const LEAST_ROOM: usize = 24;

impl Screen {
    /// The text in the colour of its tone.
    pub fn paint(self, tone: Tone, text: &str) -> String {
        let of = |colour: AnsiColor| Style::new().fg_color(Some(Color::Ansi(colour)));
        let style = match tone {
            Tone::Plain => return text.to_owned(),
            _ if !self.colour => return text.to_owned(),
            Tone::Good => of(AnsiColor::Green),
            Tone::Warning => of(AnsiColor::Yellow),
            Tone::Alarm => of(AnsiColor::Red).bold(),
            Tone::Fix => of(AnsiColor::Cyan),
        };
        format!("{style}{text}{style:#}")
    }

    /// The lines of a text, each in the colour of its tone; lines without a tone are plain.
    pub(crate) fn lines(self, text: &str, tones: &[Tone]) -> String {
        let tones = tones.iter().copied().chain(std::iter::repeat(Tone::Plain));
        text.lines()
            .zip(tones)
            .map(|(line, tone)| self.paint(tone, line) + "\n")
            .collect()
    }

    /// The text in lines that fit the width, broken at blanks. A word that is longer than a line, such as a list of
    /// CPUs, is broken after a comma. Lines without a tab, such as commands to be copied, stay as they are.
    pub fn fold(self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        for line in text.lines() {
            match line.split_once('\t') {
                Some((first, rest)) if length(first) + length(rest) > self.width => {
                    self.break_line(&mut out, first, rest);
                }
                Some((first, rest)) => out.push_str(format!("{first}{rest}").trim_end()),
                None => out.push_str(line),
            }
            out.push('\n');
        }
        out
    }

    fn break_line(self, out: &mut String, first: &str, rest: &str) {
        if length(first) + LEAST_ROOM <= self.width {
            out.push_str(first);
            return self.add_words(out, rest, length(first), length(first));
        }
        let (begin, margin) = (first.trim(), length(first) - length(first.trim_start()));
        let indent = margin + 6;
        out.push_str(&" ".repeat(margin));
        if margin + length(begin) <= self.width {
            out.push_str(begin);
        } else {
            self.add_words(out, begin, margin, indent);
        }
        out.push('\n');
        out.push_str(&" ".repeat(indent));
        self.add_words(out, rest, indent, indent);
    }

    /// Adds the words of a text to a line that has `at` columns; further lines begin after `indent`.
    fn add_words(self, out: &mut String, text: &str, mut at: usize, indent: usize) {
        let room = self.width - indent.min(self.width - LEAST_ROOM);
        let mut begins = true;
        for word in text.split_whitespace().flat_map(|word| pieces(word, room)) {
            let columns = length(word);
            if !begins && at + 1 + columns > self.width {
                out.push('\n');
                out.push_str(&" ".repeat(indent));
                (at, begins) = (indent, true);
            }
            if !begins {
                out.push(' ');
                at += 1;
            }
            out.push_str(word);
            at += columns;
            begins = false;
        }
    }
}

/// The number of columns that a text takes: colours take none.
pub(crate) fn length(text: &str) -> usize {
    if !text.contains('\x1b') {
        return text.chars().count();
    }
    let mut parts = text.split('\x1b');
    let plain = parts.next().map_or(0, |part| part.chars().count());
    plain
        + parts
            .map(|part| {
                part.split_once('m')
                    .map_or(0, |(_, text)| text.chars().count())
            })
            .sum::<usize>()
}

/// The word in pieces of at most `room`, each but the last ending in a comma; a word without commas as it is.
fn pieces(word: &str, room: usize) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = word;
    while length(rest) > room {
        let commas = rest
            .char_indices()
            .take_while(|&(at, _)| at < room)
            .filter(|&(_, c)| c == ',');
        let Some((at, _)) = commas.last() else { break };
        let (piece, after) = rest.split_at(at + 1);
        pieces.push(piece);
        rest = after;
    }
    pieces.push(rest);
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_broken_where_they_continue_below_their_text() {
        let screen = Screen {
            width: 42,
            colour: false,
        };
        let folded = screen.fold(&format!("  note  \t{}\nthe end\n", "word ".repeat(12)));
        assert_eq!(
            folded,
            "  note  word word word word word word word\n        word word word word word\nthe end\n"
        );
        // No room beside the beginning.
        let folded = screen.fold(&format!(
            "  tx 0  {}  \tnear it\n",
            "0,2,4,6,8,10,12,14,16,18,20,22,24"
        ));
        assert_eq!(
            folded,
            "  tx 0  0,2,4,6,8,10,12,14,16,18,20,22,24\n        near it\n"
        );
    }

    #[test]
    fn colours_take_no_room() {
        let screen = Screen {
            width: 40,
            colour: true,
        };
        let painted = screen.paint(Tone::Alarm, "word word word");
        assert_eq!(length(&painted), 14);
        assert_eq!(
            screen.fold(&format!("{painted}\t{painted}\n")),
            format!("{painted}{painted}\n")
        );
    }
}
