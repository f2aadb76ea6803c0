//! The channels of an interface and their maximums (`struct ethtool_channels`, `include/uapi/linux/ethtool.h`).

use serde::{Deserialize, Serialize};

/// `struct ethtool_channels`: a channel is a vector with its queues.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(not(feature = "testing"), non_exhaustive)]
pub struct Channels {
    /// Maximum number of receive-only channels.
    pub max_rx: u32,
    /// Maximum number of transmit-only channels.
    pub max_tx: u32,
    /// Maximum number of channels for other uses (link events, SR-IOV).
    pub max_other: u32,
    /// Maximum number of channels that receive and transmit.
    pub max_combined: u32,
    /// Receive channels now.
    pub rx: u32,
    /// Transmit channels now.
    pub tx: u32,
    /// Other channels now.
    pub other: u32,
    /// Combined channels now.
    pub combined: u32,
}

impl Channels {
    /// The number of channels that receive.
    pub fn receiving(&self) -> u32 {
        self.rx + self.combined
    }

    /// Maximum number of channels that receive.
    pub fn max_receiving(&self) -> u32 {
        self.max_rx.max(self.max_combined)
    }

    /// The arguments of `ethtool -L` after the interface for `count` receiving channels.
    pub fn set_arguments(&self, count: u32) -> String {
        if self.max_combined > 0 { format!("combined {count}") } else { format!("rx {count}") }
    }

    /// The same channels, with the current numbers as maximums.
    #[must_use]
    pub fn without_more(self) -> Self {
        let (max_rx, max_tx, max_other, max_combined) = (self.rx, self.tx, self.other, self.combined);
        Self { max_rx, max_tx, max_other, max_combined, ..self }
    }

    /// The arguments of `ethtool -L` that change `now` to this: `combined 6 rx 0`.
    pub fn difference(&self, now: &Self) -> String {
        let fields = [
            ("rx", self.rx, now.rx),
            ("tx", self.tx, now.tx),
            ("other", self.other, now.other),
            ("combined", self.combined, now.combined),
        ];
        let changed = fields.iter().filter(|(_, wanted, now)| wanted != now);
        let words: Vec<String> = changed.map(|(name, wanted, _)| format!("{name} {wanted}")).collect();
        words.join(" ")
    }

    /// The recorded form.
    #[doc(hidden)]
    pub fn to_text(&self) -> String {
        let fields = [
            ("max_rx", self.max_rx),
            ("max_tx", self.max_tx),
            ("max_other", self.max_other),
            ("max_combined", self.max_combined),
            ("rx", self.rx),
            ("tx", self.tx),
            ("other", self.other),
            ("combined", self.combined),
        ];
        fields.map(|(name, value)| format!("{name} {value}\n")).concat()
    }

    /// Reads the recorded form.
    #[doc(hidden)]
    pub fn parse(text: &str) -> Option<Self> {
        let mut channels = Self::default();
        for line in text.lines() {
            let (name, value) = line.split_once(' ')?;
            let value = value.trim().parse().ok()?;
            let field = match name {
                "max_rx" => &mut channels.max_rx,
                "max_tx" => &mut channels.max_tx,
                "max_other" => &mut channels.max_other,
                "max_combined" => &mut channels.max_combined,
                "rx" => &mut channels.rx,
                "tx" => &mut channels.tx,
                "other" => &mut channels.other,
                "combined" => &mut channels.combined,
                _ => return None,
            };
            *field = value;
        }
        Some(channels)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_recorded_form_is_read_back() {
        let channels =
            Channels { max_other: 1, max_combined: 63, other: 1, combined: 8, ..Channels::default() };
        assert_eq!(Channels::parse(&channels.to_text()), Some(channels));
        assert_eq!((channels.receiving(), channels.max_receiving()), (8, 63));
        assert_eq!(channels.set_arguments(12), "combined 12");
        assert_eq!(Channels::parse("max_rx x\n"), None);
        assert_eq!(Channels::parse("speed 3\n"), None);
    }
}
