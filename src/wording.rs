//! Words that plans and screens have in common.

/// `1 write`, `2 writes`.
pub(crate) fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}
