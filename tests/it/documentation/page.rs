//! What a page of Markdown names.

use std::collections::BTreeSet;
use std::path::PathBuf;

pub struct Page {
    pub path: PathBuf,
    pub text: String,
}

const TOP: [&str; 8] = [
    "src/",
    "tests/",
    "docs/",
    "dist/",
    "fixtures/",
    "benches/",
    "examples/",
    ".ci/",
];

impl Page {
    pub fn said(&self, what: &str) -> String {
        format!("{}: {what}", super::shown(&self.path).display())
    }

    pub fn links(&self) -> Vec<&str> {
        let ends = self.text.split("](").skip(1);
        ends.filter_map(|rest| rest.split_once(')'))
            .map(|(target, _)| target)
            .collect()
    }

    /// Names headings as links do: in lower case, with hyphens in place of blanks, without other signs.
    pub fn headings(&self) -> Vec<String> {
        let titles = self.text.lines().filter(|line| line.starts_with('#'));
        titles
            .map(|title| {
                let title = title.trim_start_matches('#').trim().to_lowercase();
                let kept = title
                    .chars()
                    .filter(|sign| sign.is_alphanumeric() || [' ', '-', '_'].contains(sign));
                kept.map(|sign| if sign == ' ' { '-' } else { sign })
                    .collect()
            })
            .collect()
    }

    /// Paths and patterns of paths, without those that stand for any name (`fixtures/NAME`).
    pub fn paths(&self) -> Vec<&str> {
        let words = self
            .text
            .split(|sign: char| sign.is_whitespace() || "`()[]\"',;|".contains(sign));
        let any_name = |path: &str| {
            path.split('/')
                .any(|part| part.len() > 1 && part.chars().all(|sign| sign.is_ascii_uppercase()))
        };
        let words = words.map(|word| word.split('#').next().unwrap_or_default());
        let words = words.map(|word| word.trim_end_matches(['.', ':', '/']));
        words
            .filter(|word| TOP.iter().any(|top| word.starts_with(top)) && !any_name(word))
            .collect()
    }

    /// The functions that rows of tables name in backquotes.
    pub fn tests(&self) -> Vec<&str> {
        let rows = self
            .text
            .lines()
            .filter(|line| line.starts_with('|') && line.contains("`tests/"));
        let quoted = rows.flat_map(|row| row.split('`').skip(1).step_by(2));
        let is_name = |word: &&str| {
            word.matches('_').count() > 1
                && word
                    .chars()
                    .all(|sign| sign.is_ascii_alphanumeric() || sign == '_')
        };
        quoted.filter(is_name).collect()
    }

    pub fn blocks(&self, language: &str) -> Vec<String> {
        let mut blocks = Vec::new();
        for (number, language_of, line) in self.code() {
            if language_of != language {
                continue;
            }
            match blocks.last_mut() {
                Some((last, text)) if *last + 1 == number => {
                    (*last, *text) = (number, format!("{text}{line}\n"));
                }
                _ => blocks.push((number, format!("{line}\n"))),
            }
        }
        blocks.into_iter().map(|(_, text)| text).collect()
    }

    /// Indented blocks, fenced blocks for a shell, and the commands of units; continued lines as one.
    pub fn shell_lines(&self) -> Vec<String> {
        let mut lines: Vec<String> = Vec::new();
        let mut continues = false;
        for (_, language, line) in self.code() {
            let command = match language {
                "" | "sh" | "bash" | "shell" | "console" => line,
                _ => match line.split_once('=') {
                    Some((key, command)) if key.starts_with("Exec") => command,
                    _ => continue,
                },
            };
            match lines.last_mut().filter(|_| continues) {
                Some(last) => last.push_str(command.trim_start()),
                None => lines.push(command.to_owned()),
            }
            let last = lines.last_mut().unwrap();
            continues = last.ends_with('\\');
            last.truncate(last.trim_end_matches('\\').len());
        }
        lines
    }

    pub fn quoted_commands(&self) -> Vec<String> {
        let code: BTreeSet<usize> = self.code().into_iter().map(|(number, ..)| number).collect();
        let text = self
            .text
            .lines()
            .enumerate()
            .filter(|(number, _)| !code.contains(number));
        let text: Vec<&str> = text
            .map(|(_, line)| line)
            .filter(|line| !line.starts_with("```"))
            .collect();
        let text = text.join("\n");
        let quoted = text.split('`').skip(1).step_by(2);
        let commands = quoted
            .filter(|quoted| quoted.starts_with("nicpin ") || quoted.starts_with("sudo nicpin "));
        commands.map(|command| command.replace('\n', " ")).collect()
    }

    /// Number, language and text of each line of code.
    fn code(&self) -> Vec<(usize, &str, &str)> {
        let mut code = Vec::new();
        let mut fence = None;
        let mut indents = true;
        for (number, line) in self.text.lines().enumerate() {
            let bare = line.trim_start();
            if let Some(language) = bare.strip_prefix("```") {
                fence = if fence.is_some() {
                    None
                } else {
                    Some(language.trim())
                };
            } else if let Some(language) = fence {
                code.push((number, language, line));
            } else if let Some(line) = line.strip_prefix("    ").filter(|_| indents) {
                code.push((number, "", line));
            } else {
                indents = line.is_empty();
            }
        }
        code
    }
}
