//! Colour on terminals. It only repeats what the words say.

use anstyle::{AnsiColor, Color, Style};

/// Whether text is coloured.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Paint(pub bool);

/// The meaning of a colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// As planned.
    Good,
    /// Unknown, pending or not proven.
    Doubtful,
    /// Not as planned.
    Bad,
    /// A command that fixes something.
    Fix,
    /// Neither good nor bad.
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

    /// The lines of a text, each in the colour of its tone; lines without a tone are plain.
    pub(crate) fn lines(self, text: &str, tones: &[Tone]) -> String {
        let tones = tones.iter().copied().chain(std::iter::repeat(Tone::Plain));
        text.lines().zip(tones).map(|(line, tone)| self.paint(tone, line) + "\n").collect()
    }
}

fn of(colour: AnsiColor) -> Style {
    Style::new().fg_color(Some(Color::Ansi(colour)))
}
