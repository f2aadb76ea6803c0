//! What a screen can show, and the cells of its lines.

#[derive(Clone, Copy)]
pub struct Screen {
    pub width: usize,
    /// Whether states are coloured. A colour only repeats the words.
    pub colour: bool,
}

impl Screen {
    /// A screen on which no line is broken.
    pub const UNBROKEN: Self = Self {
        width: usize::MAX,
        colour: false,
    };
}

impl Default for Screen {
    fn default() -> Self {
        Self {
            width: 100,
            colour: false,
        }
    }
}

/// The meaning of a colour.
#[derive(Clone, Copy)]
pub enum Tone {
    /// Good, and proven.
    Good,
    /// Worth a look.
    Warning,
    /// Wrong.
    Alarm,
    /// Neither good nor bad.
    Plain,
}

pub struct Cell {
    pub(super) text: String,
    pub tone: Tone,
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self {
            text: text.into(),
            tone: Tone::Plain,
        }
    }
}
