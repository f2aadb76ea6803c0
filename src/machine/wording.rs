//! Wording that plans and screens share.

/// `1 write`, `2 writes`.
pub fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// A link's speed: `40 Gbit/s`, `2.5 Gbit/s`, `100 Mbit/s`.
pub fn speed(mbps: u32) -> String {
    if mbps >= 1000 && mbps % 100 == 0 {
        format!("{}.{}", mbps / 1000, mbps % 1000 / 100).replace(".0", "") + " Gbit/s"
    } else {
        format!("{mbps} Mbit/s")
    }
}
