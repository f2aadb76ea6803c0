//! The channels of an interface and their maximums (`struct ethtool_channels`, `include/uapi/linux/ethtool.h`).

use serde::{Deserialize, Serialize};

/// The limit of the numbers of channels and queues: drivers keep them in 16 bits.
pub(crate) const MAX_QUEUES: u32 = 1 << 16;

/// `struct ethtool_channels`: a channel is a vector with its queues.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
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
        self.rx.saturating_add(self.combined)
    }

    /// Maximum number of channels that receive.
    pub fn max_receiving(&self) -> u32 {
        self.max_rx.max(self.max_combined)
    }

    /// The same channels, with the current numbers as maximums.
    #[must_use]
    pub fn without_more(self) -> Self {
        let (max_rx, max_tx, max_other, max_combined) =
            (self.rx, self.tx, self.other, self.combined);
        Self {
            max_rx,
            max_tx,
            max_other,
            max_combined,
            ..self
        }
    }

    /// The arguments of `ethtool -L` that change `now` to this: `combined 6 rx 0`.
    pub fn difference(&self, now: &Self) -> String {
        let fields = FIELDS
            .iter()
            .zip(self.to_numbers().into_iter().zip(now.to_numbers()))
            .skip(4);
        let changed = fields.filter(|(_, (wanted, now))| wanted != now);
        let words: Vec<String> = changed
            .map(|(name, (wanted, _))| format!("{name} {wanted}"))
            .collect();
        words.join(" ")
    }

    /// The fields in the order of the kernel's structure.
    pub(crate) fn to_numbers(self) -> [u32; 8] {
        let Self {
            max_rx,
            max_tx,
            max_other,
            max_combined,
            rx,
            tx,
            other,
            combined,
        } = self;
        [
            max_rx,
            max_tx,
            max_other,
            max_combined,
            rx,
            tx,
            other,
            combined,
        ]
    }

    pub(crate) fn from_numbers(numbers: [u32; 8]) -> Self {
        let [
            max_rx,
            max_tx,
            max_other,
            max_combined,
            rx,
            tx,
            other,
            combined,
        ] = numbers;
        Self {
            max_rx,
            max_tx,
            max_other,
            max_combined,
            rx,
            tx,
            other,
            combined,
        }
    }

    /// The recorded form.
    #[doc(hidden)]
    pub fn to_text(&self) -> String {
        std::array::from_fn::<_, 8, _>(|at| format!("{} {}\n", FIELDS[at], self.to_numbers()[at]))
            .concat()
    }

    /// Reads the recorded form.
    #[doc(hidden)]
    pub fn parse(text: &str) -> Option<Self> {
        let mut numbers = [0; 8];
        for line in text.lines() {
            let (name, value) = line.split_once(' ')?;
            let at = FIELDS.iter().position(|field| *field == name)?;
            numbers[at] = value
                .trim()
                .parse()
                .ok()
                .filter(|value| *value <= MAX_QUEUES)?;
        }
        Some(Self::from_numbers(numbers))
    }
}

/// The names of the fields, in the order of the kernel's structure.
const FIELDS: [&str; 8] = [
    "max_rx",
    "max_tx",
    "max_other",
    "max_combined",
    "rx",
    "tx",
    "other",
    "combined",
];

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
        assert_eq!(Channels::parse("max_rx x\n"), None);
        assert_eq!(Channels::parse("speed 3\n"), None);
        assert_eq!(Channels::parse("max_combined 4294967295\n"), None);
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
