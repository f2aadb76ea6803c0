//! Splits a stream into JSON documents: one a line, or over many lines as nicpin prints them, one after the other or in a
//! list, and each line with or without the name of its host, as clush and pdsh print them (`host: line`). The lines of
//! different hosts may alternate.

use std::collections::BTreeMap;

/// The most bytes of a document.
const LONGEST: usize = 64 << 20;

/// The most hosts whose documents are incomplete: a tool that runs commands on more at a time is not known.
const MOST_OPEN: usize = 16_384;

/// A JSON document of a host.
#[derive(Debug, PartialEq, Eq)]
pub struct Document {
    /// Where it begins: the file with the number of the line.
    pub source: String,
    /// The host by the name before its lines.
    pub host: Option<String>,
    /// Whether it is the only one of its file.
    pub alone: bool,
    pub text: String,
}

/// What a stream holds.
#[derive(Debug, PartialEq, Eq)]
pub enum Printed {
    Document(Document),
    /// Something else that a host printed.
    Text {
        host: String,
        line: String,
    },
    /// A document that does not end, or something else without the name of a host.
    Failed {
        source: String,
        error: String,
    },
}

/// The documents of one stream.
pub struct Documents {
    source: String,
    lines: usize,
    /// The documents that have begun, by host.
    open: BTreeMap<Option<String>, Open>,
    /// The first complete document, until it is known whether there are more.
    first: Option<Document>,
    found: usize,
    /// Whether a line that is no JSON was reported.
    reported: bool,
}

/// A document that has begun.
#[derive(Default)]
struct Open {
    line: usize,
    text: String,
    /// Braces and brackets that are open.
    depth: usize,
    in_string: bool,
    escaped: bool,
}

impl Documents {
    pub fn new(source: &str) -> Self {
        let source = source.to_owned();
        Self {
            source,
            lines: 0,
            open: BTreeMap::new(),
            first: None,
            found: 0,
            reported: false,
        }
    }

    /// Takes the next line.
    pub fn line(&mut self, line: &str, give: &mut dyn FnMut(Printed)) {
        self.lines += 1;
        let line = line.strip_suffix('\n').unwrap_or(line);
        let line = line.strip_suffix('\r').unwrap_or(line);
        let (host, mut rest) = split(line);
        let host = host.map(str::to_owned);
        // Only the first line of a document begins with a brace.
        if rest.starts_with('{')
            && let Some(open) = self.open.remove(&host)
        {
            give(self.unfinished(host.as_deref(), &open));
        }
        while !rest.is_empty() {
            let Some(open) = self.open.get_mut(&host) else {
                rest = rest.trim_start_matches(|c: char| c.is_whitespace() || "[],".contains(c));
                if rest.starts_with('{') && self.open.len() < MOST_OPEN {
                    self.open.insert(
                        host.clone(),
                        Open {
                            line: self.lines,
                            ..Open::default()
                        },
                    );
                    continue;
                }
                if !rest.is_empty() {
                    self.other(host, rest, give);
                }
                return;
            };
            let end = open.take(rest);
            if open.text.len() > LONGEST {
                let open = self.open.remove(&host).unwrap_or_default();
                give(self.unfinished(host.as_deref(), &open));
                return;
            }
            let Some(end) = end else { return };
            rest = &rest[end..];
            if let Some(Open { line, text, .. }) = self.open.remove(&host) {
                self.complete(
                    Document {
                        source: self.place(line),
                        host: host.clone(),
                        alone: false,
                        text,
                    },
                    give,
                );
            }
        }
    }

    /// The stream has ended.
    pub fn end(mut self, give: &mut dyn FnMut(Printed)) {
        if let Some(mut only) = self.first.take() {
            only.alone = self.found == 1;
            give(Printed::Document(only));
        }
        for (host, open) in &self.open {
            give(self.unfinished(host.as_deref(), open));
        }
        if self.found == 0 && self.open.is_empty() && !self.reported {
            give(Printed::Failed {
                source: self.source,
                error: "holds no JSON of nicpin".to_owned(),
            });
        }
    }

    fn place(&self, line: usize) -> String {
        format!("{}:{line}", self.source)
    }

    fn complete(&mut self, document: Document, give: &mut dyn FnMut(Printed)) {
        self.found += 1;
        if self.found == 1 {
            self.first = Some(document);
            return;
        }
        if let Some(first) = self.first.take() {
            give(Printed::Document(first));
        }
        give(Printed::Document(document));
    }

    fn unfinished(&self, host: Option<&str>, open: &Open) -> Printed {
        let source = host.map_or_else(|| self.place(open.line), str::to_owned);
        Printed::Failed {
            source,
            error: "the JSON document does not end".to_owned(),
        }
    }

    /// A line that belongs to no document.
    fn other(&mut self, host: Option<String>, line: &str, give: &mut dyn FnMut(Printed)) {
        match host {
            // What clush says of the hosts themselves: 1 and 2 are exit codes of check.
            Some(tool) if tool == "clush" => {
                if let Some((hosts, text)) = line.split_once(": ")
                    && !["1", "2"]
                        .iter()
                        .any(|code| text == format!("exited with exit code {code}"))
                {
                    give(Printed::Text {
                        host: hosts.to_owned(),
                        line: text.to_owned(),
                    });
                }
            }
            Some(host) => give(Printed::Text {
                host,
                line: line.to_owned(),
            }),
            None if self.reported => {}
            None => {
                self.reported = true;
                let error = format!(
                    "is no JSON of nicpin: {}",
                    line.chars().take(80).collect::<String>()
                );
                give(Printed::Failed {
                    source: self.place(self.lines),
                    error,
                });
            }
        }
    }
}

impl Open {
    /// Takes the text up to the end of the document, and gives where that is; `None` if it goes on in the next line.
    fn take(&mut self, text: &str) -> Option<usize> {
        for (at, byte) in text.bytes().enumerate() {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' if self.in_string => self.escaped = true,
                b'"' => self.in_string = !self.in_string,
                _ if self.in_string => {}
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => {
                    self.depth = self.depth.saturating_sub(1);
                    if self.depth == 0 {
                        self.text.push_str(&text[..=at]);
                        return Some(at + 1);
                    }
                }
                _ => {}
            }
        }
        self.text.push_str(text);
        self.text.push('\n');
        None
    }
}

/// The name of the host before a line, if there is one, and the rest.
fn split(line: &str) -> (Option<&str>, &str) {
    let is_name = |name: &&str| {
        !name.is_empty()
            && name
                .chars()
                .all(|c| c.is_alphanumeric() || "._-:@%".contains(c))
    };
    // A host without output has an empty line.
    let line_end = line
        .strip_suffix(':')
        .filter(|name| is_name(name))
        .map(|name| (name, ""));
    match line
        .split_once(": ")
        .or(line_end)
        .filter(|(name, _)| is_name(name))
    {
        Some((name, rest)) => (Some(name), rest),
        None => (None, line),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(lines: &[&str]) -> Vec<Printed> {
        let (mut documents, mut found) = (Documents::new("f"), Vec::new());
        for line in lines {
            documents.line(line, &mut |printed| found.push(printed));
        }
        documents.end(&mut |printed| found.push(printed));
        found
    }

    fn document(source: &str, host: Option<&str>, alone: bool, text: &str) -> Printed {
        let (source, host, text) = (source.to_owned(), host.map(str::to_owned), text.to_owned());
        Printed::Document(Document {
            source,
            host,
            alone,
            text,
        })
    }

    #[test]
    fn documents_of_one_and_of_many_lines() {
        assert_eq!(
            printed(&["{\"a\": 1}\n"]),
            [document("f:1", None, true, "{\"a\": 1}")]
        );
        let many = printed(&[
            "{",
            "  \"a\": \"}\\\"{\"",
            "}",
            "{\"b\": [{}]} {}",
            "[{}, {}]",
        ]);
        let one = |line, text| document(line, None, false, text);
        assert_eq!(
            many,
            [
                one("f:1", "{\n  \"a\": \"}\\\"{\"\n}"),
                one("f:4", "{\"b\": [{}]}"),
                one("f:4", "{}"),
                one("f:5", "{}"),
                one("f:5", "{}")
            ]
        );
    }

    #[test]
    fn lines_of_hosts_alternate() {
        let found = printed(&[
            "h1: {",
            "h2: {",
            "h1:   \"a\": 1",
            "h2: }",
            "h1: }",
            "h3: {}",
        ]);
        let of = |line, host, text| document(line, Some(host), false, text);
        assert_eq!(
            found,
            [
                of("f:2", "h2", "{\n}"),
                of("f:1", "h1", "{\n  \"a\": 1\n}"),
                of("f:6", "h3", "{}")
            ]
        );
    }

    #[test]
    fn what_is_no_document_is_named_and_the_rest_goes_on() {
        let text = |host: &str, line: &str| Printed::Text {
            host: host.to_owned(),
            line: line.to_owned(),
        };
        let failed = |source: &str, error: &str| Printed::Failed {
            source: source.to_owned(),
            error: error.to_owned(),
        };
        let found = printed(&[
            "h1: ssh: connect to host h1 port 22: Connection refused",
            "clush: h[2-3] (2): exited with exit code 2",
            "clush: h1: exited with exit code 255",
            "h4: {\"a\": ",
            "h4: {}",
            "what",
            "what again",
            "{\"b\": 1",
        ]);
        assert_eq!(
            found,
            [
                text("h1", "ssh: connect to host h1 port 22: Connection refused"),
                text("h1", "exited with exit code 255"),
                failed("h4", "the JSON document does not end"),
                failed("f:6", "is no JSON of nicpin: what"),
                document("f:5", Some("h4"), true, "{}"),
                failed("f:8", "the JSON document does not end"),
            ]
        );
        assert_eq!(printed(&[]), [failed("f", "holds no JSON of nicpin")]);
    }
}
