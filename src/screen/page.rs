//! The content of a screen: lines, items and tables, laid out when the screen is known.

use std::iter::once;
use std::ops::Range;

use itertools::Itertools as _;

use crate::screen::writer::{Writer, length};
use crate::screen::{Given, enclose, group_by_key, join_nonempty, text_if, unbroken, with_prefix};
use nicpin::machine::wording::{few, selector};
use nicpin::plan::{Measure, Note, Score};
use nicpin::report::difference::MeasureChange;

pub use crate::screen::cells::{Cell, Screen, Tone};

#[derive(Default)]
pub struct Page {
    blocks: Vec<Block>,
    pub(super) given: Given,
    /// Whole lists in notes, and all gains of the plan.
    in_full: bool,
    /// Printed also with `--quiet`.
    pub failures: Vec<String>,
}

enum Block {
    Line(String),
    Item(String, String),
    /// Indent, columns that are aligned to the right, and rows.
    Table(usize, Range<usize>, Vec<Vec<Cell>>),
}

pub const LEFT: Range<usize> = 0..0;
pub const FIGURES: Range<usize> = 1..usize::MAX;

impl Page {
    pub fn of(given: &Given, in_full: bool) -> Self {
        Self {
            given: given.clone(),
            in_full,
            ..Self::default()
        }
    }

    pub fn line(&mut self, text: impl Into<String>) {
        self.blocks.push(Block::Line(text.into()));
    }

    pub fn text(&mut self, text: impl Into<String>) {
        self.item("", text);
    }

    /// Further lines are indented below the text; an empty text adds nothing.
    pub fn item(&mut self, label: impl Into<String>, text: impl Into<String>) {
        let text = text.into();
        if !text.is_empty() {
            self.blocks.push(Block::Item(label.into(), text));
        }
    }

    pub fn failure(&mut self, label: &str, text: impl Into<String>) {
        let text = text.into();
        self.failures.push(format!("{label}{text}"));
        self.item(label, text);
    }

    /// Adds nothing without rows. Without an indent, an empty line comes first.
    pub fn columns<'h>(
        &mut self,
        indent: usize,
        right: Range<usize>,
        heads: impl IntoIterator<Item = &'h str>,
        rows: impl IntoIterator<Item: IntoIterator<Item: Into<Cell>>>,
    ) {
        let mut rows = rows.into_iter().map(cells).peekable();
        if rows.peek().is_some() {
            if indent == 0 {
                self.line("");
            }
            self.table(indent, right, once(cells(heads)).chain(rows));
        }
    }

    /// If the last column is not aligned to the right, its text continues below itself; if it is, columns that do not
    /// fit the screen follow below, again after the first.
    pub fn table(
        &mut self,
        indent: usize,
        right: Range<usize>,
        rows: impl IntoIterator<Item: IntoIterator<Item: Into<Cell>>>,
    ) {
        let rows = rows.into_iter().map(cells).collect();
        self.blocks.push(Block::Table(indent, right, rows));
    }

    /// Has all changed measures if in full, in the objective's order. Returns whether it mentions the queues of the
    /// busiest core.
    pub(crate) fn gain(
        &mut self,
        now: &Score,
        planned: &Score,
        interfaces: &[&MeasureChange],
    ) -> bool {
        let all = MeasureChange::of_machine(now, planned, interfaces);
        let told = if self.in_full {
            all.iter().collect()
        } else {
            MeasureChange::most_telling(&all)
        };
        let share = |score: &Score| Some(format!("{:.0}%", (score.local? * 100.0).floor()));
        let local = match (share(now), share(planned)) {
            (Some(from), Some(to)) if from != to && self.in_full => {
                let worse = text_if(planned.local < now.local, " (worse)");
                Some(format!("local queues {from}\u{a0}->\u{a0}{to}{worse}"))
            }
            _ => None,
        };
        let speeds = [now, planned].map(|score| Some(score.at_speed?.busiest_kbps / 1000));
        let gain = told.iter().map(|changed| match (changed.measure, speeds) {
            (Measure::BusiestLoad, [Some(now), Some(planned)])
                if self.in_full && now != planned =>
            {
                let speeds = format!(" ({now}\u{a0}->\u{a0}{planned}\u{a0}Mbit/s)");
                change(changed) + &speeds
            }
            _ => change(changed),
        });
        let gain = local.into_iter().chain(gain).join(", ");
        self.text(enclose("With the plan: ", [gain], "."));
        told.iter()
            .any(|changed| changed.measure == Measure::BusiestQueues)
    }

    pub(crate) fn text_of(&self, note: &Note) -> String {
        if self.in_full {
            format!("{note:#}")
        } else {
            note.to_string()
        }
    }

    pub(crate) fn names<'a>(&self, names: impl Iterator<Item = &'a str>) -> String {
        few(", ", names, self.in_full)
    }

    pub(crate) fn notes<'a>(&mut self, notes: impl IntoIterator<Item = (&'a str, &'a [Note])>) {
        self.first_notes("", notes, usize::MAX);
    }

    pub(crate) fn first_notes<'a>(
        &mut self,
        indent: &str,
        notes: impl IntoIterator<Item = (&'a str, &'a [Note])>,
        most: usize,
    ) -> usize {
        let notes = notes
            .into_iter()
            .flat_map(|(about, notes)| notes.iter().map(move |note| (about, note)))
            .collect_vec();
        let is_told = notes
            .iter()
            .any(|(_, note)| matches!(note, Note::VectorsUnreadable { .. }));
        let notes = notes
            .into_iter()
            // The notes of the interfaces say the same, with advice.
            .filter(|(_, note)| !is_told || !matches!(note, Note::NoProc | Note::NoProcIrq))
            .sorted_by_key(|(_, note)| !note.is_of_too_many_queues());
        let groups = group_by_key(notes.map(|(about, note)| {
            let text = self.text_of(note);
            let advice = note.advice();
            let labels = match &advice {
                Some(advice) if advice.optional => ["Advice: ", "Try: "],
                _ => ["Note: ", "Fix: "],
            };
            let (command, subject) = match note.command() {
                Some(command) => {
                    // A stored plan takes no other option of a plan.
                    let advised = command.options.iter().map(|(option, _)| *option);
                    let given = self.given.without(&advised.chain(["--plan"]).collect_vec());
                    let words = given.added_to(&command.to_string());
                    (words, Some(selector(command.interface)))
                }
                None => (with_prefix("", advice.map(|advice| advice.text)), None),
            };
            let is_command = subject.is_some() || note.shell().is_some();
            ((text, labels, command, is_command), (about, subject))
        }));
        for ((text, [label, follow], command, is_command), notes) in groups.iter().take(most) {
            let about = notes.iter().map(|(about, _)| *about);
            let about = self.names(about.filter(|about| !about.is_empty()));
            let subjects = notes.iter().filter_map(|(_, subject)| subject.as_deref());
            let command = once(&**command).chain(subjects).join(" ");
            let command = if *is_command {
                unbroken(&command)
            } else {
                command
            };
            let text = join_nonempty(": ", [&about, text]);
            let text = join_nonempty(". ", [&text, &with_prefix(follow, [command])]);
            self.item(format!("{indent}{label}"), text);
        }
        groups.len().saturating_sub(most)
    }

    pub fn show(&self, screen: Screen) -> String {
        let mut out = Writer {
            out: String::new(),
            screen,
            at: 0,
            gap: 0,
        };
        for block in &self.blocks {
            match block {
                Block::Line(text) => {
                    out.put(text, Tone::Plain);
                    out.end(0);
                }
                Block::Item(label, text) => {
                    let begin = label.trim_start();
                    out.gap = length(label) - length(begin);
                    let blanks = length(begin) - length(begin.trim_end());
                    let [begin, text] = [begin.trim_end(), text].map(Cell::from);
                    out.row(&[(0, &begin, blanks), (0, &text, 0)]);
                }
                Block::Table(indent, right, rows) => out.table(*indent, right, rows),
            }
        }
        out.out
    }
}

fn cells(row: impl IntoIterator<Item: Into<Cell>>) -> Vec<Cell> {
    row.into_iter().map(Into::into).collect()
}

pub(crate) fn change(changed: &MeasureChange) -> String {
    let MeasureChange {
        measure,
        now,
        planned,
    } = changed;
    let worse = text_if(!changed.is_better(), " (worse)");
    let name = match measure {
        Measure::BusiestLoad => "load of the busiest core",
        measure => measure.name(),
    };
    match (measure, now) {
        // If the capacity of ports is the width of a bus, it is no rate.
        (Measure::BusiestLoad, 1..) => {
            let sign = if planned > now { '+' } else { '-' };
            let percent = now.abs_diff(*planned) * 100 / now;
            format!("{name} {sign}{percent}%{worse}")
        }
        (Measure::BusiestShare, _) => format!("{name} {now}%\u{a0}->\u{a0}{planned}%{worse}"),
        _ => format!("{name} {now}\u{a0}->\u{a0}{planned}{worse}"),
    }
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
        // A command that is longer than a line can be copied, too.
        let text = shown(30, |page| {
            let command = "nicpin apply --exclude 0-3,8-11,16-19 eth0 eth1 eth2";
            page.text(format!("Fix: {}", unbroken(command)));
        });
        assert_eq!(
            text,
            "Fix: nicpin apply --exclude \\\n0-3,8-11,16-19 eth0 eth1 eth2\n"
        );
    }

    #[test]
    fn columns_are_aligned() {
        let long = "2,".repeat(30);
        let rows = [
            vec!["a", "b", "the end"],
            vec!["bbb", &long, "x"],
            vec!["alone"],
        ];
        let text = shown(100, |page| page.table(2, LEFT, rows.clone()));
        assert_eq!(
            text,
            format!("  a    b  the end\n  bbb  {long}  x\n  alone\n")
        );
        let rows = [vec!["NAME", "SHARE", "STATE"], vec!["eth10", "7%", "ok"]];
        let text = shown(100, |page| page.table(0, 1..2, rows.clone()));
        assert_eq!(text, "NAME   SHARE  STATE\neth10     7%  ok\n");
    }

    #[test]
    fn an_empty_last_cell_takes_no_line() {
        let rows = [["a name that fills it", "12", ""]];
        let text = shown(24, |page| page.table(0, LEFT, rows));
        assert_eq!(text, "a name that fills it  12\n");
    }

    #[test]
    fn long_headings_keep_their_spacing() {
        let heads = ["QUEUE", "IRQ", "AFFINITY OF THE VECTOR", "EFFECTIVE", "WHY"];
        let row = ["0", "71", "0", "0", "remote"];
        let text = shown(40, |page| {
            page.table(2, LEFT, [heads, row]);
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
        let text = shown(18, |page| page.table(0, 1..9, rows.clone()));
        assert_eq!(
            text,
            "from  to 0  to 1\n0       10    21\n\nfrom  to 2\n0       31\n"
        );
    }

    #[test]
    fn colours_take_no_room_and_texts_have_none_of_their_own() {
        let mut page = Page::default();
        let mut cells = ["eth0", "remote"].map(Cell::from);
        cells[1].tone = Tone::Alarm;
        page.table(0, LEFT, [cells]);
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
