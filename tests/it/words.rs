//! The field's words, in messages, help, pages and shipped files alike.

use std::path::Path;

/// Words and phrases of earlier versions that stopped a reader, and those that stand for them.
const NEVER: [(&str, &str); 16] = [
    ("left alone", "unchanged"),
    ("allow to move", "cannot be moved"),
    ("not allow", "cannot be"),
    ("carries no packets", "control IRQ"),
    ("cgroup has alone", "exclusive cpuset partition"),
    ("cgroups have alone", "exclusive cpuset partition"),
    ("exclusive to a cgroup", "in an exclusive cpuset partition"),
    ("kept free", "isolated or nohz_full"),
    ("completes nearest", "nearest to the queue's CPU"),
    ("disproved", "mismatch"),
    ("in vain", "without effect"),
    ("the score stays", "nothing"),
    ("far from that", "an outlier"),
    ("put back", "restored"),
    ("cure", "fix"),
    ("mend", "fix"),
];

/// Lines that a reader may see: of the source those that are no comments, without its tests.
fn lines(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap();
    let is_code = path.extension().is_some_and(|extension| extension == "rs");
    let until = if is_code {
        "#[cfg(test)]\nmod tests"
    } else {
        "\0"
    };
    let text = text.split(until).next().unwrap_or_default();
    let is_shown = |line: &&str| !(is_code && line.trim_start().starts_with("//"));
    text.lines().filter(is_shown).map(str::to_owned).collect()
}

/// Whether the phrase is in the line, and not as a part of another word.
fn has(line: &str, phrase: &str) -> bool {
    let is_end = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric() && c != '_');
    line.match_indices(phrase).any(|(at, _)| {
        is_end(line[..at].chars().next_back()) && is_end(line[at + phrase.len()..].chars().next())
    })
}

#[test]
fn words_that_stopped_a_reader_are_not_used_again() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    let mut count = 0;
    for pattern in [
        "src/**/*.rs",
        "*.md",
        "docs/**/*.md",
        "dist/**/*",
        "fixtures/expected/*.txt",
    ] {
        let files = glob::glob(root.join(pattern).to_str().unwrap()).unwrap();
        for file in files.map(Result::unwrap).filter(|file| file.is_file()) {
            count += 1;
            for line in lines(&file) {
                for (phrase, plain) in NEVER {
                    if has(&line, phrase) {
                        let file = file.strip_prefix(root).unwrap().display();
                        found.push(format!("{file}: `{phrase}`, plainer `{plain}`: {line}"));
                    }
                }
            }
        }
    }
    assert!(count > 200, "{count}");
    assert!(found.is_empty(), "{}", found.join("\n"));
    assert!(has("it is left alone;", "left alone") && !has("procured", "cure"));
}
