//! The command lines of nicpin in a line for a shell.

/// Programs that run another one, whose name follows their options.
const RUNNERS: [&str; 14] = [
    "ssh",
    "clush",
    "pdsh",
    "docker",
    "podman",
    "kubectl",
    "chroot",
    "timeout",
    "systemd-run",
    "nsenter",
    "ip",
    "xargs",
    "sudo",
    "watch",
];

pub fn commands(line: &str) -> Vec<Vec<String>> {
    let all = simple_commands(line);
    let of_loop = all
        .iter()
        .find(|words| words.first().is_some_and(|word| word == "for") && words.len() > 3);
    let variable = of_loop.map(|words| (format!("${}", words[1]), words[3].clone()));
    let value = |word: String| match &variable {
        Some((name, value)) if *name == word => value.clone(),
        _ => word,
    };
    let started = all.iter().filter_map(|words| arguments(words));
    started
        .map(|words| words.into_iter().map(value).collect())
        .collect()
}

/// Returns `None` if the simple command does not start nicpin.
fn arguments(words: &[String]) -> Option<Vec<String>> {
    let is_before = |word: &String| {
        [
            "do", "then", "else", "if", "while", "until", "!", "time", "exec", "env", "$",
        ]
        .contains(&word.as_str())
            || word.split_once('=').is_some_and(|(name, _)| {
                name.chars()
                    .all(|sign| sign.is_ascii_uppercase() || sign == '_')
            })
    };
    let at = words.iter().position(|word| !is_before(word))?;
    let words = &words[at..];
    // The program, or the image with it; no directory of that name in `--volume`.
    let is_nicpin = |word: &String| {
        let is_program = word == "nicpin" || word.ends_with("/nicpin") && !word.contains(':');
        is_program || word.starts_with("localhost/nicpin:")
    };
    let first = words.first()?;
    if is_nicpin(first) {
        Some(words[1..].to_vec())
    } else if first == "cargo"
        && words.get(1).is_some_and(|word| word == "run")
        && !words.contains(&"--example".to_owned())
    {
        let end = words.iter().position(|word| word == "--")?;
        Some(words[end + 1..].to_vec())
    } else if RUNNERS.contains(&first.as_str()) {
        // `sudo install target/release/nicpin /usr/bin/nicpin` starts no nicpin.
        let at = words.iter().position(is_nicpin)?;
        let other = words[1..at].iter().any(|word| {
            [
                "install",
                "rm",
                "apt",
                "apt-get",
                "dnf",
                "systemctl",
                "cp",
                "journalctl",
            ]
            .contains(&word.as_str())
        });
        (!other).then(|| words[at + 1..].to_vec())
    } else {
        None
    }
}

/// Words are without quotes; comments and the files of redirections are left out.
fn simple_commands(line: &str) -> Vec<Vec<String>> {
    let mut all = vec![Vec::new()];
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut to_file = false;
    let mut signs = line.chars();
    while let Some(sign) = signs.next() {
        match (quote, sign) {
            (Some(open), _) if sign == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(sign);
                word.get_or_insert_default();
            }
            (None, '\\') => word.get_or_insert_default().extend(signs.next()),
            (None, '#') if word.is_none() => break,
            (None, ' ' | '\t' | ';' | '|' | '&' | '(' | ')' | '<' | '>') => {
                let is_file = word.is_some() && std::mem::take(&mut to_file);
                // `2>` names a descriptor.
                let is_number = |done: &String| done.chars().all(|one| one.is_ascii_digit());
                let done = word.take().filter(|_| !is_file);
                let done = done.filter(|done| !(sign == '>' && is_number(done)));
                all.last_mut().unwrap().extend(done);
                match sign {
                    '<' | '>' => to_file = true,
                    ' ' | '\t' => {}
                    // `2>&1`
                    '&' if to_file => {}
                    _ => all.push(Vec::new()),
                }
            }
            _ => word.get_or_insert_default().push(sign),
        }
    }
    if let Some(done) = word.filter(|_| !to_file) {
        all.last_mut().unwrap().push(done);
    }
    all.retain(|words| !words.is_empty());
    all
}
