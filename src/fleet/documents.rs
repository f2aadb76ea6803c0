//! JSON documents in a stream. Only one document of each host is in memory at a time.

use std::collections::BTreeMap;
use std::mem::{replace, take};
use std::path::PathBuf;

/// Maximum bytes of all incomplete documents of a stream, and of a line.
pub const MOST: usize = 64 << 20;

#[derive(Debug, PartialEq, Eq)]
pub enum Input {
    /// A capture, or a tree with the files of a machine.
    Machine(PathBuf),
    Document(Document),
    Text {
        host: String,
        line: String,
    },
    Failed {
        source: String,
        error: String,
    },
}

#[derive(Debug, PartialEq, Eq)]
pub struct Document {
    pub file: String,
    /// The number of its first line.
    pub line: usize,
    /// The name before the document's lines.
    pub host: Option<String>,
    /// Whether it is the only one of its file.
    pub alone: bool,
    pub text: String,
}

impl Document {
    pub fn source(&self) -> String {
        format!("{}:{}", self.file, self.line)
    }
}

/// Splits a stream into JSON documents: on one line or many, one after the other or in a list, with or without the name
/// of the host before each line (`host: line`), as clush and pdsh print them. Lines of different hosts may alternate.
pub struct Documents<'a> {
    source: &'a str,
    lines: usize,
    open: BTreeMap<Option<String>, Open>,
    bytes: usize,
    /// The first complete document, until it is known whether there are more.
    first: Option<Document>,
    /// Whether a document was complete, and whether a line that is no JSON was reported.
    found: bool,
    reported: bool,
    give: &'a mut dyn FnMut(Input),
}

/// An incomplete document; its text is empty between documents.
#[derive(Default)]
struct Open {
    line: usize,
    text: String,
    /// Braces that are not closed yet.
    depth: usize,
}

const NO_END: &str = "the JSON document does not end";

impl Open {
    /// Where the document ends in `text`, the rest of a line.
    fn end(&mut self, text: &str) -> Option<usize> {
        // No string of JSON goes on in the next line.
        let (mut in_string, mut escaped) = (false, false);
        for (at, byte) in text.bytes().enumerate() {
            match byte {
                _ if escaped => escaped = false,
                b'\\' if in_string => escaped = true,
                b'"' => in_string = !in_string,
                b'{' if !in_string => self.depth += 1,
                b'}' if !in_string && self.depth == 1 => return Some(at + 1),
                b'}' if !in_string => self.depth -= 1,
                _ => {}
            }
        }
        None
    }
}

impl<'a> Documents<'a> {
    pub fn new(source: &'a str, give: &'a mut dyn FnMut(Input)) -> Self {
        Self {
            source,
            lines: 0,
            open: BTreeMap::new(),
            bytes: 0,
            first: None,
            found: false,
            reported: false,
            give,
        }
    }

    pub fn line(&mut self, line: &str) {
        self.lines += 1;
        let (host, mut text) = split(line.trim_end_matches(['\n', '\r']));
        let host = host.map(str::to_owned);
        let mut open = self.open.remove(&host).unwrap_or_default();
        self.bytes -= open.text.len();
        // Only the first line of a document begins with a brace.
        if text.starts_with('{') && !open.text.is_empty() {
            self.fail(host.clone(), take(&mut open).line, NO_END);
        }
        loop {
            if open.text.is_empty() {
                text = text.trim_start_matches(|c: char| c.is_whitespace() || "[],".contains(c));
                if text.is_empty() {
                    return;
                }
                if !begins_object(text) {
                    return self.other(host.as_deref(), text);
                }
                open.line = self.lines;
            }
            let Some(end) = open.end(text) else {
                open.text += text;
                open.text += "\n";
                return self.keep(host, open);
            };
            let document = take(&mut open);
            self.complete(host.clone(), document.line, document.text + &text[..end]);
            text = &text[end..];
        }
    }

    fn keep(&mut self, host: Option<String>, open: Open) {
        if self.bytes + open.text.len() > MOST {
            return self.fail(
                host,
                open.line,
                &format!("more than {MOST} bytes of documents that do not end"),
            );
        }
        self.bytes += open.text.len();
        self.open.insert(host, open);
    }

    pub fn end(mut self) {
        let is_empty = self.open.is_empty() && !self.reported;
        while let Some((host, open)) = self.open.pop_first() {
            self.fail(host, open.line, NO_END);
        }
        if let Some(mut only) = self.first.take() {
            only.alone = true;
            (self.give)(Input::Document(only));
        }
        if !self.found && is_empty {
            self.fail(
                Some(self.source.to_owned()),
                0,
                "holds no JSON printed by nicpin",
            );
        }
    }

    fn complete(&mut self, host: Option<String>, line: usize, text: String) {
        let document = Document {
            file: self.source.to_owned(),
            line,
            host,
            alone: false,
            text,
        };
        if !replace(&mut self.found, true) {
            self.first = Some(document);
            return;
        }
        for document in self.first.take().into_iter().chain([document]) {
            (self.give)(Input::Document(document));
        }
    }

    fn fail(&mut self, host: Option<String>, line: usize, error: &str) {
        let source = host.unwrap_or_else(|| format!("{}:{line}", self.source));
        let error = error.to_owned();
        (self.give)(Input::Failed { source, error });
    }

    fn other(&mut self, host: Option<&str>, line: &str) {
        // Messages of clush and pdsh about the hosts: 1 and 2 are exit codes of check.
        let is_tool = host.is_some_and(|host| host == "clush" || host.starts_with("pdsh@"));
        let (host, line) = match line.split_once(": ").filter(|_| is_tool) {
            Some((_, said)) if said.ends_with("code 1") || said.ends_with("code 2") => return,
            Some((host, said)) => (Some(host), said),
            None if is_tool => return,
            None => (host, line),
        };
        if let Some(host) = host {
            let (host, line) = (host.to_owned(), line.to_owned());
            (self.give)(Input::Text { host, line });
        } else if !replace(&mut self.reported, true) {
            self.fail(
                None,
                self.lines,
                &format!("is not JSON printed by nicpin: {line}"),
            );
        }
    }
}

fn begins_object(text: &str) -> bool {
    let rest = text.strip_prefix('{').map(str::trim_start);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['"', '}']))
}

fn split(line: &str) -> (Option<&str>, &str) {
    let is_letter = |c: char| c.is_alphanumeric() || "._-:@%".contains(c);
    // A host without output has an empty line.
    match line
        .split_once(": ")
        .or_else(|| Some((line.strip_suffix(':')?, "")))
    {
        Some((name, rest)) if !name.is_empty() && name.chars().all(is_letter) => (Some(name), rest),
        _ => (None, line),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(lines: &[&str]) -> Vec<Input> {
        let mut found = Vec::new();
        let mut give = |printed| found.push(printed);
        let mut documents = Documents::new("f", &mut give);
        for line in lines {
            documents.line(line);
        }
        documents.end();
        found
    }

    fn document(line: usize, host: Option<&str>, alone: bool, text: &str) -> Input {
        Input::Document(Document {
            file: "f".to_owned(),
            line,
            host: host.map(str::to_owned),
            alone,
            text: text.to_owned(),
        })
    }

    #[test]
    fn documents_of_one_and_of_many_lines() {
        assert_eq!(
            printed(&["{\"a\": 1}\n"]),
            [document(1, None, true, "{\"a\": 1}")]
        );
        let many = printed(&[
            "{",
            "  \"a\": \"}\\\"{\"",
            "}",
            "{\"b\": [{}]} {}",
            "[{}, {}]",
        ]);
        let anonymous = |line, text| document(line, None, false, text);
        assert_eq!(
            many,
            [
                anonymous(1, "{\n  \"a\": \"}\\\"{\"\n}"),
                anonymous(4, "{\"b\": [{}]}"),
                anonymous(4, "{}"),
                anonymous(5, "{}"),
                anonymous(5, "{}")
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
        let of_host = |line, host, text| document(line, Some(host), false, text);
        assert_eq!(
            found,
            [
                of_host(2, "h2", "{\n}"),
                of_host(1, "h1", "{\n  \"a\": 1\n}"),
                of_host(6, "h3", "{}")
            ]
        );
    }

    #[test]
    fn what_is_no_document_is_named_and_the_rest_goes_on() {
        let text = |host: &str, line: &str| Input::Text {
            host: host.to_owned(),
            line: line.to_owned(),
        };
        let failed = |source: &str, error: &str| Input::Failed {
            source: source.to_owned(),
            error: error.to_owned(),
        };
        let found = printed(&[
            "h1: ssh: connect to host h1 port 22: Connection refused",
            "clush: h[2-3] (2): exited with exit code 2",
            "clush: h1: exited with exit code 255",
            "h4: {\"a\": ",
            "h4: {}",
            "h7: {broken",
            "h7: {\"c\":",
            "h7: 1}",
            "what",
            "what again",
            "{\"b\": 1",
            "pdsh@adm: h5: ssh exited with exit code 2",
            "pdsh@adm: h6: ssh exited with exit code 255",
        ]);
        assert_eq!(
            found,
            [
                text("h1", "ssh: connect to host h1 port 22: Connection refused"),
                text("h1", "exited with exit code 255"),
                failed("h4", "the JSON document does not end"),
                text("h7", "{broken"),
                document(5, Some("h4"), false, "{}"),
                document(7, Some("h7"), false, "{\"c\":\n1}"),
                failed("f:9", "is not JSON printed by nicpin: what"),
                text("h6", "ssh exited with exit code 255"),
                failed("f:11", "the JSON document does not end"),
            ]
        );
        assert_eq!(
            printed(&[]),
            [failed("f", "holds no JSON printed by nicpin")]
        );
    }

    /// Its braces are counted in one pass.
    #[test]
    fn a_document_that_seems_to_end_at_each_line_takes_no_time() {
        let mut lines = vec!["{\"a\": {"];
        for _ in 0..100_000 {
            lines.extend(["}", ",\"b\": {"]);
        }
        lines.extend(["}", "}"]);
        let found = printed(&lines);
        assert!(
            matches!(&found[..], [Input::Document(document)] if document.alone && document.text.len() > 100_000)
        );
    }

    #[test]
    fn documents_that_do_not_end_have_a_bound() {
        let long = format!("{{\"a\": \"{}\",", "x".repeat(MOST / 3));
        let found = printed(&[
            "h1: {",
            &format!("h2: {long}"),
            &format!("h3: {long}"),
            &format!("h4: {long}"),
            "h1: }",
        ]);
        let failed: Vec<_> = found
            .iter()
            .filter_map(|input| match input {
                Input::Failed { source, .. } => Some(source.as_str()),
                _ => None,
            })
            .collect();
        assert_eq!(failed, ["h4", "h2", "h3"]);
        assert!(
            matches!(&found[..], [.., Input::Document(document)] if document.host.as_deref() == Some("h1"))
        );
    }
}
