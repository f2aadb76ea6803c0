//! `dist/nicpin.toml`: every setting with its values and its default, as comments and lines of a policy file.

use std::fmt::Display;

use itertools::Itertools as _;

use crate::policy::setting::Entry;
use crate::policy::table::SETTINGS;

pub use crate::policy::CONDITIONS;

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
    let settings = |for_interfaces| {
        let entries = SETTINGS.iter();
        entries
            .filter(move |entry| entry.is_for_interfaces() == for_interfaces)
            .map(about)
            .join("")
    };
    let about = POLICY.lines().map(|line| format!("# {line}"));
    let about = about.map(|line| format!("{}\n", line.trim_end())).join("");
    format!(
        "{HEAD}{about}{}\n[defaults]\n{}\n# Rules match by any of:\n{}#\n{RULES}",
        settings(false),
        settings(true),
        rows(CONDITIONS)
    )
}

/// A setting: what it decides, its values, and its default.
fn about(entry: &Entry) -> String {
    let end = if entry.note.is_empty() { "" } else { ". " };
    let about = format!("{}{end}{}:", entry.help, entry.note.trim_end_matches('.'));
    let mut text = "\n#".to_owned();
    let mut columns = 1;
    for word in about.split(' ') {
        columns += 1 + word.chars().count();
        if columns > COLUMNS {
            text.push_str("\n#");
            columns = 2 + word.chars().count();
        }
        text += &format!(" {word}");
    }
    let values = entry.in_file();
    let default = format!("{} = {}\n", entry.key, values[0].0);
    format!("{text}\n{}{default}", rows(values))
}

fn rows<T: Display>(rows: impl IntoIterator<Item = (T, T)>) -> String {
    let row = |(value, means)| format!("#   {value:<12} {means}\n");
    rows.into_iter().map(row).join("")
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
