//! Colour, where somebody looks at a terminal. It repeats what words say and says nothing by itself.

use anstyle::{AnsiColor, Color, Style};

/// Whether text is coloured.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Paint(pub bool);

/// What a piece of text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// As it should be.
    Good,
    /// Worth a look.
    Doubtful,
    /// Not as it should be.
    Bad,
    /// What to type.
    Fix,
    /// Neither here nor there.
    Plain,
}

impl Paint {
    /// The text in the colour of its tone.
    pub fn paint(self, tone: Tone, text: &str) -> String {
        let style = match tone {
            Tone::Plain => return text.to_owned(),
            _ if !self.0 => return text.to_owned(),
            Tone::Good => of(AnsiColor::Green),
            Tone::Doubtful => of(AnsiColor::Yellow),
            Tone::Bad => of(AnsiColor::Red).bold(),
            Tone::Fix => of(AnsiColor::Cyan),
        };
        format!("{style}{text}{style:#}")
    }

    /// The lines of a text, each in the colour of its tone; what is left of them is plain.
    pub(crate) fn lines(self, text: &str, tones: &[Tone]) -> String {
        let tones = tones.iter().copied().chain(std::iter::repeat(Tone::Plain));
        text.lines().zip(tones).map(|(line, tone)| self.paint(tone, line) + "\n").collect()
    }
}

fn of(colour: AnsiColor) -> Style {
    Style::new().fg_color(Some(Color::Ansi(colour)))
}
