//! Patterns of names: what they are made of, and how a name fits one.
//!
//! In a pattern `{if}` is an interface name, `{n}` the number, `{pci}` a PCI address, `{h}` a decimal or hex number that
//! counts something else, `{x}` any text or none, `{ctl}` text with one of [`CONTROL_WORDS`] in it. All else is literal,
//! in either case.

/// A part of a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// Text, in either case.
    Literal(&'static str),
    /// `{if}`
    Interface,
    /// `{n}`
    Number,
    /// `{pci}`
    Address,
    /// `{h}`
    OtherNumber,
    /// `{ctl}`
    Control,
    /// `{x}`
    Any,
}

/// The parts of a pattern.
pub(super) fn parts(pattern: &'static str) -> Vec<Part> {
    // What is before a brace is literal; what is after an opening one is a placeholder.
    let mut parts = Vec::new();
    for piece in pattern.split_inclusive(['{', '}']) {
        parts.push(match piece {
            "{" => continue,
            "if}" => Part::Interface,
            "n}" => Part::Number,
            "pci}" => Part::Address,
            "h}" => Part::OtherNumber,
            "ctl}" => Part::Control,
            "x}" => Part::Any,
            text => Part::Literal(text.trim_end_matches('{')),
        });
    }
    parts
}

/// Fits the parts of a pattern to `rest`, a name or its end; with `cut` it may end before literal text or number.
pub(super) fn fit<'a>(parts: &[Part], rest: &'a str, cut: bool) -> Option<Fit<'a>> {
    let Some((&part, tail)) = parts.split_first() else {
        return rest.is_empty().then(Fit::default);
    };
    if let Part::Literal(literal) = part {
        let length = if cut {
            literal.len().min(rest.len())
        } else {
            literal.len()
        };
        let (text, rest) = rest.split_at_checked(length)?;
        if !text.eq_ignore_ascii_case(&literal[..length]) {
            return None;
        }
        let found = if length < literal.len() {
            Fit::default()
        } else {
            fit(tail, rest, cut)?
        };
        return Some(Fit {
            literals: length + found.literals,
            ..found
        });
    }
    if rest.is_empty() && cut && part == Part::Number {
        return Some(Fit::default());
    }
    let (least, most) = span(part, rest);
    // The longest text first: an interface may hold all that its pattern has behind it (`a-rx-0-rx-1`). In a
    // name that was cut off the shortest, and never all: what follows in the pattern makes the difference.
    (least..=most)
        .map(|len| if cut { len } else { least + most - len })
        .find_map(|len| {
            let (text, rest) = rest.split_at_checked(len)?;
            let number = if part == Part::Number {
                // Drivers keep it in 16 bits.
                Some(text.parse::<u16>().ok()?.into())
            } else {
                None
            };
            let all = cut && rest.is_empty() && !tail.is_empty();
            if all || (part == Part::Address && !text.contains(':')) {
                return None;
            }
            let found = fit(tail, rest, cut)?;
            Some(match part {
                Part::Number => Fit { number, ..found },
                Part::Interface => Fit {
                    interface: Some(text),
                    ..found
                },
                Part::Address => Fit {
                    address: Some(text),
                    ..found
                },
                _ => found,
            })
        })
}

/// How many bytes of `rest` a placeholder may take, at least and at most; an empty range for none.
fn span(placeholder: Part, rest: &str) -> (usize, usize) {
    let run = |of: fn(&u8) -> bool| rest.bytes().take_while(of).count();
    match placeholder {
        // What the kernel takes for a name; alias names of old kernels hold a colon.
        Part::Interface => (
            1,
            run(|byte| !byte.is_ascii_whitespace() && *byte != b'/').min(15),
        ),
        Part::Number => {
            let digits = run(u8::is_ascii_digit);
            (digits.max(1), digits)
        }
        Part::OtherNumber => (1, run(u8::is_ascii_hexdigit)),
        Part::Address => (
            1,
            run(|byte| byte.is_ascii_hexdigit() || matches!(byte, b':' | b'.')),
        ),
        Part::Control if !says_control(rest) => (1, 0),
        Part::Control => (rest.len(), rest.len()),
        Part::Any | Part::Literal(_) => (0, rest.len()),
    }
}

/// The match of a pattern.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Fit<'a> {
    pub(super) literals: usize,
    pub(super) number: Option<u32>,
    pub(super) interface: Option<&'a str>,
    pub(super) address: Option<&'a str>,
}

/// Whether a control word stands behind the first word of a name; that one is an interface's or a driver's.
fn says_control(name: &str) -> bool {
    name.split(['-', ':', '@', '_', '.', ' '])
        .skip(1)
        .any(|word| {
            let word = word.trim_end_matches(|last: char| last.is_ascii_digit());
            CONTROL_WORDS
                .iter()
                .any(|known| known.eq_ignore_ascii_case(word))
        })
}

/// The words that `{ctl}` looks for; digits may follow them.
const CONTROL_WORDS: &[&str] = &[
    "admin", "adminq", "aeq", "async", "aux", "ceq", "config", "control", "ctrl", "err", "event",
    "exn", "fdir", "FWeventq", "hwc", "link", "lpi", "lsc", "mac", "mailbox", "mbox", "mbx",
    "mgmnt", "mgmt", "misc", "notify", "ptp", "qerr", "safety", "wol",
];
