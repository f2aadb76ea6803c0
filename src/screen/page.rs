//! What is printed: lines, items and tables, laid out when the screen is known. All screens are made of it.

use anstyle::{AnsiColor, Color, Style};

use crate::screen::printable;

/// Where text is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Screen {
    /// In columns.
    pub width: usize,
    /// Whether states are coloured. A colour only repeats what the words say.
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
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Tone {
    /// Good, and proven.
    Good,
    /// Worth a look.
    Warning,
    /// Wrong.
    Alarm,
    /// Neither good nor bad.
    #[default]
    Plain,
}

/// A text in its tone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cell {
    text: String,
    tone: Tone,
}

impl Cell {
    pub fn new(text: impl Into<String>, tone: Tone) -> Self {
        Self {
            text: text.into(),
            tone,
        }
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self::new(text, Tone::Plain)
    }
}

/// Lines, items and tables, from top to bottom.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Page(Vec<Block>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Block {
    /// Printed as it is, however long.
    Line(String),
    /// A label, and a text that continues below itself.
    Item(String, String),
    Table {
        indent: usize,
        /// The first column that is aligned to the right, and the first after it that is not.
        right: (usize, usize),
        rows: Vec<Vec<Cell>>,
    },
}

impl Page {
    /// A line that is never broken, such as a command to be copied.
    pub fn line(&mut self, text: impl Into<String>) {
        self.0.push(Block::Line(text.into()));
    }

    /// A text that continues below itself, after its label.
    pub fn item(&mut self, label: impl Into<String>, text: impl Into<String>) {
        self.0.push(Block::Item(label.into(), text.into()));
    }

    /// Aligned columns, each as wide as its widest cell. The last cell of a row continues below itself.
    pub fn table<C: Into<Cell>>(&mut self, indent: usize, rows: impl IntoIterator<Item = Vec<C>>) {
        self.aligned(indent, (0, 0), rows);
    }

    /// A table with columns from `right.0` to before `right.1` aligned to the right. If the last one is, too, columns
    /// that do not fit the screen follow below, again after the first.
    pub fn aligned<C: Into<Cell>>(
        &mut self,
        indent: usize,
        right: (usize, usize),
        rows: impl IntoIterator<Item = Vec<C>>,
    ) {
        let cells = |row: Vec<C>| row.into_iter().map(Into::into).collect();
        let rows: Vec<Vec<Cell>> = rows.into_iter().map(cells).collect();
        if !rows.is_empty() {
            self.0.push(Block::Table {
                indent,
                right,
                rows,
            });
        }
    }

    pub fn add(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// The text for this screen, printable but for its colours.
    pub fn show(&self, screen: Screen) -> String {
        let mut out = Writer {
            out: String::new(),
            screen,
            at: 0,
            gap: 0,
        };
        for block in &self.0 {
            match block {
                Block::Line(text) => {
                    out.put(text, Tone::Plain);
                    out.end(0);
                }
                Block::Item(label, text) => {
                    let begin = label.trim_start();
                    out.gap = length(label) - length(begin);
                    let label = Cell::from(begin.trim_end());
                    out.row(&[label, text.as_str().into()], |_, cell| {
                        Place::left(length(begin) - length(&cell.text))
                    });
                }
                Block::Table {
                    indent,
                    right,
                    rows,
                } => out.table(*indent, *right, rows),
            }
        }
        out.out
    }
}

/// Cells wider than this do not widen their column.
const WIDEST: usize = 48;
/// Where the rest of a line continues if less than this is left beside its beginning.
const LEAST_ROOM: usize = 24;
/// The indent of what continues a line of several cells.
const CONTINUED: usize = 6;

/// Blanks before and after a cell.
struct Place {
    before: usize,
    after: usize,
}

impl Place {
    fn left(after: usize) -> Self {
        Self { before: 0, after }
    }
}

struct Writer {
    out: String,
    screen: Screen,
    /// Columns of the line so far.
    at: usize,
    /// Blanks before what comes next on the line.
    gap: usize,
}

impl Writer {
    fn table(&mut self, indent: usize, right: (usize, usize), rows: &[Vec<Cell>]) {
        let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
        let are_figures = columns > 1 && right.1 >= columns;
        let width = |column: usize| {
            let has_it = |row: &&Vec<Cell>| column + usize::from(!are_figures) < row.len();
            let cells = rows.iter().filter(has_it);
            let widths = cells.map(|row| length(&row[column].text));
            widths.filter(|&width| width <= WIDEST).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let place = |column: usize, cell: &Cell| {
            let blanks = widths[column].saturating_sub(length(&cell.text));
            if (right.0..right.1).contains(&column) {
                Place {
                    before: blanks,
                    after: 2,
                }
            } else {
                Place::left(blanks + 2)
            }
        };
        let mut begin = usize::from(are_figures);
        loop {
            let mut end = columns;
            if are_figures {
                let room = self.screen.width.saturating_sub(indent + widths[0]);
                let mut taken = 0;
                let fits = |column: &usize| {
                    taken += widths[*column] + 2;
                    taken <= room || *column == begin
                };
                end = begin + (begin..columns).take_while(fits).count();
            }
            for row in rows {
                self.gap = indent;
                let range = begin.min(row.len())..end.min(row.len());
                if are_figures {
                    for column in std::iter::once(0).chain(range) {
                        let Place { before, after } = place(column, &row[column]);
                        self.gap += before;
                        self.put(&row[column].text, row[column].tone);
                        self.gap += after;
                    }
                    self.end(0);
                } else {
                    self.row(&row[range], place);
                }
            }
            if end >= columns {
                return;
            }
            self.end(0);
            begin = end;
        }
    }

    /// Cells beside each other, the last of which continues below itself. Those that do not fit continue below.
    fn row(&mut self, cells: &[Cell], place: impl Fn(usize, &Cell) -> Place) {
        let Some((last, cells)) = cells.split_last() else {
            return self.end(0);
        };
        let width = self.screen.width;
        let indent = self.gap + CONTINUED;
        for (column, cell) in cells.iter().enumerate() {
            let Place { before, after } = place(column, cell);
            let length = length(&cell.text);
            let fits = self.at + self.gap + before + length <= width;
            if fits {
                self.gap += before;
            } else if self.at > 0 && indent + length <= width {
                self.end(indent);
            }
            self.words(cell, indent);
            self.gap += after;
        }
        let at = self.at + self.gap;
        let longest = last.text.split([' ', ',']).map(length).max().unwrap_or(0);
        let room = longest.max(LEAST_ROOM);
        if self.at > 0 && at + length(&last.text) > width && at + room > width {
            self.end(indent);
        }
        self.words(last, self.at + self.gap);
        self.end(0);
    }

    /// Adds words; further lines begin after `indent`. A word that is longer than a line, such as a list of CPUs, is
    /// broken after a comma.
    fn words(&mut self, cell: &Cell, indent: usize) {
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
            if !line.is_empty() && taken + 1 + length(word) > width {
                self.put(&line, cell.tone);
                self.end(indent);
                line.clear();
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
        self.put(&line, cell.tone);
    }

    fn put(&mut self, text: &str, tone: Tone) {
        if text.is_empty() {
            return;
        }
        self.out.push_str(&" ".repeat(self.gap));
        self.at += self.gap + length(text);
        self.gap = 0;
        let text = text.replace(['\n', '\t', '\u{a0}'], " ");
        let text = printable(&text);
        let of = |colour: AnsiColor| Style::new().fg_color(Some(Color::Ansi(colour)));
        let style = match tone {
            _ if !self.screen.colour => Style::new(),
            Tone::Plain => Style::new(),
            Tone::Good => of(AnsiColor::Green),
            Tone::Warning => of(AnsiColor::Yellow),
            Tone::Alarm => of(AnsiColor::Red).bold(),
        };
        self.out.push_str(&format!("{style}{text}{style:#}"));
    }

    /// Ends the line; the next begins after `indent`.
    fn end(&mut self, indent: usize) {
        self.out.push('\n');
        (self.at, self.gap) = (0, indent);
    }
}

/// The number of columns that a text takes.
fn length(text: &str) -> usize {
    text.chars().count()
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
    pieces.extend((!rest.is_empty()).then_some(rest));
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(width: usize, page: impl FnOnce(&mut Page)) -> String {
        let mut built = Page::default();
        page(&mut built);
        built.show(Screen {
            width,
            colour: false,
        })
    }

    #[test]
    fn texts_continue_below_themselves() {
        let text = shown(42, |page| {
            page.item("  note  ", "word ".repeat(12));
            page.line("the end of a line that is longer than the screen");
        });
        assert_eq!(
            text,
            "  note  word word word word word word word\n        word word word word word\n\
             the end of a line that is longer than the screen\n"
        );
        // No room beside the beginning.
        let text = shown(42, |page| {
            page.item("  tx 0  0,2,4,6,8,10,12,14,16,18,20,22,24  ", "near it");
        });
        assert_eq!(
            text,
            "  tx 0  0,2,4,6,8,10,12,14,16,18,20,22,24\n        near it\n"
        );
        let text = shown(30, |page| {
            page.item("", "To fix it run nicpin\u{a0}apply\u{a0}eth0");
        });
        assert_eq!(text, "To fix it run\nnicpin apply eth0\n");
    }

    #[test]
    fn columns_are_aligned() {
        let long = "2,".repeat(30);
        let rows = [
            vec!["a", "b", "the end"],
            vec!["bbb", &long, "x"],
            vec!["alone"],
        ];
        let text = shown(100, |page| page.table(2, rows.clone()));
        assert_eq!(
            text,
            format!("  a    b  the end\n  bbb  {long}  x\n  alone\n")
        );
        let rows = [vec!["NAME", "SHARE", "STATE"], vec!["eth10", "7%", "ok"]];
        let text = shown(100, |page| page.aligned(0, (1, 2), rows.clone()));
        assert_eq!(text, "NAME   SHARE  STATE\neth10     7%  ok\n");
    }

    #[test]
    fn long_headings_keep_their_spacing() {
        let heads = ["QUEUE", "IRQ", "AFFINITY OF THE VECTOR", "EFFECTIVE", "WHY"];
        let row = ["0", "71", "0", "0", "remote"];
        let text = shown(40, |page| {
            page.table(2, [heads.to_vec(), row.to_vec()]);
        });
        let expected = "  QUEUE  IRQ  AFFINITY OF THE VECTOR\n        EFFECTIVE  WHY\n\
                        \x20 0      71   0                       0\n        remote\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn columns_of_figures_follow_below() {
        let rows = [
            vec!["from", "to 0", "to 1", "to 2"],
            vec!["0", "10", "21", "31"],
        ];
        let text = shown(18, |page| page.aligned(0, (1, 9), rows.clone()));
        assert_eq!(
            text,
            "from  to 0  to 1\n0       10    21\n\nfrom  to 2\n0       31\n"
        );
    }

    #[test]
    fn colours_take_no_room_and_texts_have_none_of_their_own() {
        let mut page = Page::default();
        page.table(
            0,
            [vec![Cell::from("eth0"), Cell::new("remote", Tone::Alarm)]],
        );
        page.item("", "a\u{1b}[31mb");
        let text = page.show(Screen {
            width: 20,
            colour: true,
        });
        assert_eq!(
            text,
            "eth0  \u{1b}[1m\u{1b}[31mremote\u{1b}[0m\na\\u001b[31mb\n"
        );
    }
}
