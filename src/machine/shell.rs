//! Text that a shell reads.

use std::borrow::Cow;

/// The text as a shell takes it for one word: an interface may be named with nearly any character.
pub fn word(text: &str) -> Cow<'_, str> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/_.-:@".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(format!("'{}'", text.replace('\'', r"'\''")))
    }
}

#[cfg(test)]
mod tests {
    use super::word;

    #[test]
    fn odd_names_are_quoted() {
        assert_eq!(
            word("/sys/class/net/eth0.5@x/queues"),
            "/sys/class/net/eth0.5@x/queues"
        );
        assert_eq!(
            word("/sys/class/net/a;b'c/q"),
            r"'/sys/class/net/a;b'\''c/q'"
        );
        assert_eq!(word(""), "''");
    }
}
