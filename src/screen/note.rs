//! Notes as lines of a screen.

use nicpin::plan::note::Note;

use crate::screen::page::Page;

/// A note and its fix, as lines.
pub(crate) fn note(indent: &str, note: &Note) -> Page {
    lines(indent, "", note)
}

/// The same with `about`, the name of an interface, before the text.
pub(crate) fn lines(indent: &str, about: &str, note: &Note) -> Page {
    let mut page = Page::default();
    page.item(format!("{indent}note  "), format!("{about}{note}"));
    if let Some(advice) = note.advice() {
        page.line(format!(
            "{indent}      {}: {}",
            advice.kind(),
            advice.text()
        ));
    }
    page
}
