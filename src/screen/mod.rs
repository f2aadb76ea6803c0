//! Renders reports and plans as text or JSON. Nothing is decided or computed here.
//!
//! Text is made safe to print: names and texts of drivers, trees and other programs may hold control characters: a
//! terminal would take them for commands, or show other text than there is.

pub mod applied;
pub mod check;
pub mod fleet;
pub mod flow;
pub mod measure;
pub mod monitoring;
pub mod nodes;
pub mod page;
pub mod plan;
pub mod sh;
pub mod status;
mod text;
pub mod watch;
pub mod workers;

use std::borrow::Cow;

/// A report as indented JSON with a final newline.
pub fn json<T: serde::Serialize>(value: &T) -> serde_json::Result<String> {
    Ok(serde_json::to_string_pretty(value)? + "\n")
}

/// The limit of a message, in characters.
const MESSAGE: usize = 4000;

/// The text with each control character as JSON escapes it, `\u001b`, so that JSON stays the same value; newlines and
/// tabs stay.
pub fn printable(text: &str) -> Cow<'_, str> {
    // Nearly all text is, in megabytes of JSON. A part at a time has no branch for each byte.
    let plain = |byte: &u8| matches!(byte, b' '..=b'~') | matches!(byte, b'\n' | b'\t');
    if text
        .as_bytes()
        .chunks(64)
        .all(|part| part.iter().fold(true, |all, byte| all & plain(byte)))
    {
        return Cow::Borrowed(text);
    }
    let Some(first) = text.find(is_unsafe) else {
        return Cow::Borrowed(text);
    };
    let (mut safe, rest) = (text[..first].to_owned(), &text[first..]);
    for c in rest.chars() {
        if is_unsafe(c) {
            c.encode_utf16(&mut [0; 2])
                .iter()
                .for_each(|unit| safe.push_str(&format!("\\u{unit:04x}")));
        } else {
            safe.push(c);
        }
    }
    Cow::Owned(safe)
}

/// A message as one printable line of limited length.
pub fn message(text: &str) -> String {
    let line = text.replace(['\n', '\t'], " ");
    let line = printable(&line);
    match line.char_indices().nth(MESSAGE) {
        Some((end, _)) => format!("{}...", &line[..end]),
        None => line.into_owned(),
    }
}

/// Control characters, and characters that change the direction or the place of the text around them or that are
/// not seen.
fn is_unsafe(c: char) -> bool {
    (c.is_control() && c != '\n' && c != '\t')
        || matches!(
            c,
            '\u{ad}'
                | '\u{61c}'
                | '\u{180e}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped() {
        for (text, expected) in [
            ("plain \t text\n", "plain \t text\n"),
            ("größe 网卡 😀", "größe 网卡 😀"),
            (
                "\u{1b}[31m\u{9b}\r\u{7f}",
                "\\u001b[31m\\u009b\\u000d\\u007f",
            ),
            ("eth\u{202e}0\u{2066}\u{200b}", "eth\\u202e0\\u2066\\u200b"),
            ("a\u{e0041}b", "a\\udb40\\udc41b"),
        ] {
            assert_eq!(printable(text), expected, "{text:?}");
            assert_eq!(printable(expected), expected);
        }
    }

    #[test]
    fn a_message_is_one_line_of_limited_length() {
        assert_eq!(message("eth0:\n\u{1b}c `x`"), "eth0: \\u001bc `x`");
        assert_eq!(message(&"ä".repeat(5000)).chars().count(), MESSAGE + 3);
    }

    proptest::proptest! {
        /// JSON says the same after it was made printable.
        #[test]
        fn json_keeps_its_meaning(text in "\\PC{0,9}|(\u{9b}|\u{202e}|\u{e0041}|[\\x00-\\x7f]){0,9}") {
            let json = serde_json::to_string(&text).unwrap();
            let back: String = serde_json::from_str(&printable(&json)).unwrap();
            proptest::prop_assert_eq!(back, text);
        }
    }
}
