//! `dist/nicpin.toml`: every setting with its values and its default, as comments and lines of a policy file.

use std::fmt::Write as _;

use crate::policy::setting::Entry;
use crate::policy::table::SETTINGS;

pub use crate::policy::rule::CONDITIONS;

const HEAD: &str = "\
# The policy of nicpin: /etc/nicpin.toml. Every line is a comment or a default, so the unedited file
# changes nothing. `nicpin plan --explain` shows which rules matched, and the reason for the CPU of each vector.
#
";

/// How the parts of a policy combine. Paragraphs are separated by empty lines.
pub const POLICY: &str = "\
Settings in [defaults] apply to every interface. Every [[rule]] that matches an interface overrides them, in the order
of the file. Command-line options override all of them.

In place of a list of CPUs a mask is accepted, as the kernel prints it: { mask = \"0000010f\" }.
";

/// Example rules.
pub const RULES: &str = "\
# [[rule]]
# match = { driver = \"mlx5_core\", speed = \">=100000\" }
# set = { irq-cores = 8, rps = \"off\" }
#
# [[rule]]
# match = { pci = \"8086:1521\" }             # the board's own ports
# set = { skip = true }
#
# [[rule]]
# match = { name = \"eth[67]\" }
# set = { group = { cpus = \"60-63\" } }
";

const COLUMNS: usize = 120;

/// The file.
pub fn example() -> String {
    let (defaults, machine): (Vec<_>, Vec<_>) =
        SETTINGS.iter().partition(|entry| entry.is_for_interfaces());
    let mut text = HEAD.to_owned();
    for line in POLICY.lines() {
        text.push_str(format!("# {line}").trim_end());
        text.push('\n');
    }
    for entry in machine {
        add(&mut text, entry);
    }
    text.push_str("\n[defaults]\n");
    for entry in defaults {
        add(&mut text, entry);
    }
    text.push_str("\n# Rules match by any of:\n");
    rows(&mut text, CONDITIONS);
    text + "#\n" + RULES
}

fn add(text: &mut String, entry: &Entry) {
    let values = entry.in_file();
    let end = if entry.note.is_empty() { "" } else { ". " };
    let about = format!("{}{end}{}:", entry.help, entry.note.trim_end_matches('.'));
    text.push_str("\n#");
    let mut columns = 1;
    for word in about.split(' ') {
        columns += 1 + word.chars().count();
        if columns > COLUMNS {
            text.push_str("\n#");
            columns = 2 + word.chars().count();
        }
        let _ = write!(text, " {word}");
    }
    text.push('\n');
    rows(
        text,
        values
            .iter()
            .map(|(value, means)| (value.as_str(), means.as_str())),
    );
    if let Some((value, _)) = values.first() {
        let _ = writeln!(text, "{} = {value}", entry.key);
    }
}

fn rows<'a>(text: &mut String, rows: impl IntoIterator<Item = (&'a str, &'a str)>) {
    for (value, means) in rows {
        let _ = writeln!(text, "#   {value:<12} {means}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_fit_120_columns() {
        let example = example();
        let wide = example.lines().find(|line| line.chars().count() > COLUMNS);
        assert_eq!(wide, None);
    }
}
