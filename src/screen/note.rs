//! Notes as lines of a screen.

use nicpin::plan::note::Note;
pub use nicpin::plan::note::text::{advice, fix, text};

use crate::screen::page::Page;

/// A note and its fix, as lines.
pub(crate) fn note(indent: &str, note: &Note) -> Page {
    lines(indent, "", note)
}

/// The same with `about`, the name of an interface, before the text.
pub(crate) fn lines(indent: &str, about: &str, note: &Note) -> Page {
    let mut page = Page::default();
    page.item(format!("{indent}note  "), format!("{about}{}", text(note)));
    if let Some((kind, command)) = advice(note) {
        page.line(format!("{indent}      {kind}: {command}"));
    }
    page
}
