//! The channels of an interface (`struct ethtool_channels`, `include/uapi/linux/ethtool.h`).

use itertools::Itertools as _;
use serde::de::Deserializer;
use serde::{Deserialize, Serialize};

/// Above any number of channels or queues: drivers use 16 bits.
pub(crate) const MAX_QUEUES: u32 = 1 << 16;

pub(crate) fn queue_number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    u16::deserialize(deserializer).map(u32::from)
}

/// Current and maximum numbers of channels; a channel is a vector with its queues.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Channels {
    #[serde(deserialize_with = "queue_number")]
    pub max_rx: u32,
    #[serde(deserialize_with = "queue_number")]
    pub max_tx: u32,
    /// Link events, SR-IOV.
    #[serde(deserialize_with = "queue_number")]
    pub max_other: u32,
    /// Channels that receive and transmit.
    #[serde(deserialize_with = "queue_number")]
    pub max_combined: u32,
    #[serde(deserialize_with = "queue_number")]
    pub rx: u32,
    #[serde(deserialize_with = "queue_number")]
    pub tx: u32,
    #[serde(deserialize_with = "queue_number")]
    pub other: u32,
    #[serde(deserialize_with = "queue_number")]
    pub combined: u32,
}

impl Channels {
    /// Number of channels that receive.
    pub fn receiving(&self) -> u32 {
        self.rx.saturating_add(self.combined)
    }

    pub(crate) fn is_combined(&self) -> bool {
        self.max_combined > 0 && (self.combined > 0 || self.max_rx == 0)
    }

    /// Maximum of receiving channels in their current form (combined, or rx and tx).
    pub fn max_receiving(&self) -> u32 {
        if self.is_combined() {
            self.max_combined
        } else {
            self.max_rx
        }
    }

    /// Maximum of the direction that has more channels now.
    pub fn max_busier(&self) -> u32 {
        if self.is_combined() || self.tx <= self.rx {
            self.max_receiving()
        } else {
            self.max_tx
        }
    }

    /// Replaces the maximums by the current numbers.
    #[must_use]
    pub fn without_more(self) -> Self {
        Self {
            max_rx: self.rx,
            max_tx: self.tx,
            max_other: self.other,
            max_combined: self.combined,
            ..self
        }
    }

    /// The arguments of `ethtool -L` that change `now` to these channels: `combined 6 rx 0`.
    pub fn difference(&self, now: &Self) -> String {
        let fields = [
            ("rx", self.rx, now.rx),
            ("tx", self.tx, now.tx),
            ("other", self.other, now.other),
            ("combined", self.combined, now.combined),
        ];
        fields
            .iter()
            .filter(|(_, wanted, now)| wanted != now)
            .map(|(name, wanted, _)| format!("{name} {wanted}"))
            .format(" ")
            .to_string()
    }

    /// In the order of the kernel's structure.
    fn fields(&mut self) -> [&mut u32; 8] {
        [
            &mut self.max_rx,
            &mut self.max_tx,
            &mut self.max_other,
            &mut self.max_combined,
            &mut self.rx,
            &mut self.tx,
            &mut self.other,
            &mut self.combined,
        ]
    }

    pub(crate) fn to_numbers(mut self) -> [u32; 8] {
        self.fields().map(|field| *field)
    }

    /// Caps numbers that no driver can have.
    pub(crate) fn from_numbers(numbers: [u32; 8]) -> Self {
        let mut channels = Self::default();
        for (field, number) in channels.fields().into_iter().zip(numbers) {
            *field = number.min(u16::MAX.into());
        }
        channels
    }

    #[doc(hidden)]
    pub fn to_text(self) -> String {
        serde_json::to_string(&self).unwrap_or_default()
    }

    #[doc(hidden)]
    pub fn parse(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_recorded_form_is_read_back() {
        let channels = Channels {
            max_other: 1,
            max_combined: 63,
            other: 1,
            combined: 8,
            ..Channels::default()
        };
        assert_eq!(Channels::parse(&channels.to_text()), Some(channels));
        assert_eq!((channels.receiving(), channels.max_receiving()), (8, 63));
        let text = channels.to_text();
        for (now, then) in [
            ("63", "4294967295"),
            ("63", "-1"),
            ("63", "\"63\""),
            ("max_rx", "speed"),
        ] {
            assert_eq!(Channels::parse(&text.replace(now, then)), None, "{then}");
        }
        assert_eq!(Channels::from_numbers([u32::MAX; 8]).max_rx, 65535);
        assert_eq!(
            Channels {
                rx: 2,
                combined: u32::MAX,
                ..Channels::default()
            }
            .receiving(),
            u32::MAX
        );
    }
}
