//! Width and colour of an output, and the cells of its lines.

#[derive(Clone, Copy)]
pub struct Screen {
    pub width: usize,
    /// Colours only repeat the words.
    pub colour: bool,
}

impl Screen {
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

#[derive(Clone, Copy)]
pub enum Tone {
    Good,
    Warning,
    Alarm,
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
