//! Patterns of names: what they are made of, and how a name fits one.
//!
//! In a pattern `{if}` is an interface name, `{n}` the number, `{pci}` a PCI address (gve cuts its end off from block 100
//! on), `{h}` a decimal or hex number that counts something else, `{x}` any text or none, `{sep}` a hyphen or the like, `{ctl}` text with one of
//! [`CONTROL_WORDS`] behind the name of an interface, driver or device, `{control}` with one anywhere, `{way}` a text that is given beside the pattern. All else is literal, in either case.

/// Fits a pattern to `rest`, a name or its end; with `cut` it may end before literal text or number.
pub(super) fn fit<'a>(pattern: &str, way: &str, rest: &'a str, cut: bool) -> Option<Fit<'a>> {
    if pattern.is_empty() {
        return rest.is_empty().then(Fit::default);
    }
    let (literal, tail) = if let Some(tail) = pattern.strip_prefix("{way}") {
        (way, tail)
    } else {
        pattern.split_at(
            pattern
                .bytes()
                .position(|byte| byte == b'{')
                .unwrap_or(pattern.len()),
        )
    };
    if !literal.is_empty() {
        let length = literal.len().min(if cut { rest.len() } else { usize::MAX });
        let (text, rest) = rest.split_at_checked(length)?;
        if !text.eq_ignore_ascii_case(&literal[..length]) {
            return None;
        }
        let mut found = Fit::default();
        if length == literal.len() {
            found = fit(tail, way, rest, cut)?;
        }
        found.literals += length;
        return Some(found);
    }
    let (part, tail) = tail.strip_prefix('{')?.split_once('}')?;
    if rest.is_empty() && cut && part == "n" {
        return Some(Fit::default());
    }
    let (least, most) = span(part, rest);
    // The longest text first: an interface may hold all that its pattern has behind it (`a-rx-0-rx-1`). In a
    // name that was cut off the shortest, and never all: what follows in the pattern makes the difference.
    (least..=most)
        .map(|len| if cut { len } else { least + most - len })
        .find_map(|len| {
            let (text, rest) = rest.split_at_checked(len)?;
            if cut && rest.is_empty() && !tail.is_empty() || part == "pci" && !text.contains(':') {
                return None;
            }
            // Drivers keep a number in 16 bits.
            let number: Option<u16> = text.parse().ok();
            if part == "n" && number.is_none() {
                return None;
            }
            let mut found = fit(tail, way, rest, cut)?;
            match part {
                "n" => found.number = number.map(u32::from),
                "if" => found.interface = Some(text),
                _ => {}
            }
            Some(found)
        })
}

/// How many bytes of `rest` a placeholder may take, at least and at most; an empty range for none.
fn span(placeholder: &str, rest: &str) -> (usize, usize) {
    let run = |of: fn(&u8) -> bool| rest.bytes().take_while(of).count();
    match placeholder {
        // What the kernel takes for a name; alias names of old kernels hold a colon.
        "if" => (
            1,
            run(|byte| !byte.is_ascii_whitespace() && *byte != b'/').min(15),
        ),
        "n" => {
            let digits = run(u8::is_ascii_digit);
            (digits.max(1), digits)
        }
        "h" => (1, run(u8::is_ascii_hexdigit)),
        "sep" => (1, run(|byte| b"-:_. ".contains(byte)).min(1)),
        "pci" => (
            1,
            run(|byte| byte.is_ascii_hexdigit() || b":.".contains(byte)),
        ),
        "ctl" if !says_control(rest, words_of_owner(rest)) => (1, 0),
        "control" if !says_control(rest, 0) => (1, 0),
        "ctl" | "control" => (rest.len(), rest.len()),
        _ => (0, rest.len()),
    }
}

/// The match of a pattern.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Fit<'a> {
    pub(super) literals: usize,
    pub(super) number: Option<u32>,
    pub(super) interface: Option<&'a str>,
}

/// How many words of a name are its interface's or driver's, or of a platform device (`90900000.mac`).
fn words_of_owner(name: &str) -> usize {
    let address = name.split_once('.').map_or("", |(address, _)| address);
    let is_device = address.len() > 4 && address.bytes().all(|byte| byte.is_ascii_hexdigit());
    1 + usize::from(is_device)
}

/// Whether a control word stands behind so many words of a name.
fn says_control(name: &str, behind: usize) -> bool {
    name.split(['-', ':', '@', '_', '.', ' '])
        .skip(behind)
        .any(|word| {
            let word = word.trim_end_matches(|last: char| last.is_ascii_digit());
            let mut known = CONTROL_WORDS.iter();
            known.any(|known| known.eq_ignore_ascii_case(word))
        })
}

/// The words that `{ctl}` and `{control}` look for; digits may follow them.
const CONTROL_WORDS: &[&str] = &[
    "admin", "adminq", "aeq", "async", "aux", "ceq", "config", "control", "ctrl", "err", "error",
    "event", "exn", "fdir", "FWeventq", "hwc", "link", "lpi", "lsc", "mac", "mailbox", "mbox",
    "mbx", "mgmnt", "mgmt", "misc", "notify", "other", "phy", "pps", "ptp", "qerr", "safety",
    "wake", "wol",
];
