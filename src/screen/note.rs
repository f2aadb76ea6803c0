//! Notes as lines of a screen.

use nicpin::plan::note::Note;
pub use nicpin::plan::note::text::{advice, fix, text};

use crate::screen::text::wrap;

/// A note and its fix, as lines.
pub(crate) fn note(indent: &str, note: &Note) -> String {
    lines(indent, "", note)
}

/// The same with `about`, the name of an interface, before the text.
pub(crate) fn lines(indent: &str, about: &str, note: &Note) -> String {
    let mut out = wrap(
        &format!("{indent}note  "),
        &format!("{about}{}", text(note)),
    );
    if let Some((kind, command)) = advice(note) {
        out.push_str(&format!("{indent}      {kind}: {command}\n"));
    }
    out
}
