//! Reads the policy file (TOML) by the table of settings. Every error has its line and column.

use glob::Pattern;
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use crate::cpuset::CpuSet;
use crate::policy::choice::Policy;
use crate::policy::rule::{CONDITIONS, Match, Rule};
use crate::policy::setting::{Entry, Value};
use crate::policy::settings::{Settings, named};
use crate::policy::table::SETTINGS;

/// An error in a policy file, with its position.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {message}")]
pub struct PolicyError {
    /// Counted from 1.
    pub line: usize,
    /// In characters, counted from 1.
    pub column: usize,
    /// A single line.
    pub message: String,
}

type Key<'t> = Spanned<DeString<'t>>;
type Item<'t> = Spanned<DeValue<'t>>;

impl Policy {
    /// Parses a policy file. CPUs that a machine does not have are like offline ones.
    pub fn parse(text: &str) -> Result<Self, PolicyError> {
        File { text }.policy()
    }
}

struct File<'t> {
    text: &'t str,
}

impl<'t> File<'t> {
    fn policy(&self) -> Result<Policy, PolicyError> {
        let document = DeTable::parse(self.text).map_err(|error| {
            self.error(error.span().map_or(0, |span| span.start), error.message())
        })?;
        let mut policy = Policy::default();
        for (key, item) in in_order(document.get_ref()) {
            match key.get_ref().as_ref() {
                "defaults" => policy.defaults = self.settings(item)?,
                "rule" => {
                    let rules = item.get_ref().as_array();
                    let rules = rules
                        .ok_or_else(|| self.at(item, "expected rules, each headed by [[rule]]"))?;
                    policy.rules = rules
                        .iter()
                        .map(|rule| self.rule(rule))
                        .collect::<Result<_, _>>()?;
                }
                name => match named(name) {
                    Some(entry) if !entry.is_for_interfaces() => {
                        policy.machine.set(entry, self.value(entry, item)?);
                    }
                    Some(_) => {
                        let text =
                            format!("`{name}` belongs in [defaults], or in the `set` of a rule");
                        return Err(self.at(key, &text));
                    }
                    None => {
                        let machine = SETTINGS.iter().filter(|entry| !entry.is_for_interfaces());
                        let names = ["defaults", "rule"]
                            .into_iter()
                            .chain(machine.map(|entry| entry.key));
                        return Err(self.unknown("key", key, names));
                    }
                },
            }
        }
        Ok(policy)
    }

    fn rule(&self, item: &Item<'t>) -> Result<Rule, PolicyError> {
        let (mut matches, mut set) = (None, None);
        for (key, item) in in_order(self.table(item)?) {
            match key.get_ref().as_ref() {
                "match" => matches = Some(self.matches(item)?),
                "set" => set = Some(self.settings(item)?),
                _ => return Err(self.unknown("key", key, ["match", "set"])),
            }
        }
        let missing = |name| move || self.at(item, &format!("the rule has no `{name}`"));
        Ok(Rule {
            matches: matches.ok_or_else(missing("match"))?,
            set: set.ok_or_else(missing("set"))?,
        })
    }

    fn matches(&self, item: &Item<'t>) -> Result<Match, PolicyError> {
        let (mut matches, mut conditions) = (Match::default(), Vec::new());
        for (key, item) in in_order(self.table(item)?) {
            match key.get_ref().as_ref() {
                "name" => matches.name = Some(self.pattern(item)?),
                "driver" => matches.driver = Some(self.pattern(item)?),
                "device" => matches.device = Some(self.pattern(item)?),
                "pci" => matches.pci = Some(self.pattern(item)?),
                "node" => {
                    let node = integer(item.get_ref()).and_then(|node| node.parse().ok());
                    matches.node =
                        Some(node.ok_or_else(|| self.at(item, "expected the number of a node"))?);
                }
                "speed" => {
                    let number = integer(item.get_ref());
                    let text = number
                        .as_deref()
                        .or(item.get_ref().as_str())
                        .unwrap_or_default();
                    matches.speed = Some(
                        text.parse()
                            .map_err(|error: String| self.at(item, &error))?,
                    );
                }
                _ => return Err(self.unknown("condition", key, CONDITIONS.map(|(name, _)| name))),
            }
            let quoted = || item.get_ref().as_str().map(|text| format!("{text:?}"));
            let value = integer(item.get_ref()).or_else(quoted).unwrap_or_default();
            conditions.push(format!("{} = {value}", key.get_ref()));
        }
        Ok(Match {
            text: conditions.join(", "),
            ..matches
        })
    }

    fn pattern(&self, item: &Item<'t>) -> Result<Pattern, PolicyError> {
        let text = item
            .get_ref()
            .as_str()
            .ok_or_else(|| self.at(item, "expected a string"))?;
        Pattern::new(text)
            .map_err(|error| self.at(item, &format!("`{text}` is not a pattern: {}", error.msg)))
    }

    /// The settings of `[defaults]` or of a rule.
    fn settings(&self, item: &Item<'t>) -> Result<Settings, PolicyError> {
        let mut settings = Settings::default();
        for (key, item) in in_order(self.table(item)?) {
            let name = key.get_ref().as_ref();
            match named(name) {
                Some(entry) if entry.is_for_interfaces() => {
                    settings.set(entry, self.value(entry, item)?);
                }
                Some(_) => {
                    let text = format!(
                        "`{name}` is a setting of the machine and belongs at the top of the file"
                    );
                    return Err(self.at(key, &text));
                }
                None => {
                    let known = SETTINGS.iter().filter(|entry| entry.is_for_interfaces());
                    return Err(self.unknown("setting", key, known.map(|entry| entry.key)));
                }
            }
        }
        Ok(settings)
    }

    fn value(&self, entry: &Entry, item: &Item<'t>) -> Result<Value, PolicyError> {
        let value = match item.get_ref() {
            DeValue::Boolean(given) if entry.switch().is_some() => entry.read(&given.to_string()),
            _ if entry.switch().is_some() => {
                return Err(self.at(item, "expected a boolean, true or false"));
            }
            DeValue::String(text) => entry.read(text),
            DeValue::Integer(_) if entry.number.is_some() => {
                entry.read(&integer(item.get_ref()).unwrap_or_default())
            }
            DeValue::Table(_) if entry.cpus.is_some() => Ok(Value::Cpus(self.cpus(item)?)),
            _ => return Err(self.at(item, &format!("expected a string: {}", entry.expected()))),
        };
        value.map_err(|error| self.at(item, &error.to_string()))
    }

    /// CPUs in an explicit form: `{ cpus = "4-7" }` or `{ mask = "000000f0" }`.
    fn cpus(&self, item: &Item<'t>) -> Result<CpuSet, PolicyError> {
        let mut given = in_order(self.table(item)?).into_iter();
        let (Some((key, text)), None) = (given.next(), given.next()) else {
            return Err(self.at(
                item,
                "expected { cpus = \"4-7\" } or { mask = \"000000f0\" }",
            ));
        };
        let parse = match key.get_ref().as_ref() {
            "cpus" => CpuSet::parse_list,
            "mask" => CpuSet::parse_mask,
            _ => return Err(self.unknown("key", key, ["cpus", "mask"])),
        };
        let cpus = parse(
            text.get_ref()
                .as_str()
                .ok_or_else(|| self.at(text, "expected a string"))?,
        );
        let cpus = cpus.map_err(|error| self.at(text, &error.to_string()))?;
        if cpus.is_empty() {
            Err(self.at(text, "expected at least one CPU"))
        } else {
            Ok(cpus)
        }
    }

    fn table<'d>(&self, item: &'d Item<'t>) -> Result<&'d DeTable<'t>, PolicyError> {
        item.get_ref()
            .as_table()
            .ok_or_else(|| self.at(item, "expected a table"))
    }

    fn unknown(
        &self,
        what: &str,
        key: &Key<'t>,
        known: impl IntoIterator<Item = &'static str>,
    ) -> PolicyError {
        let (name, known) = (
            key.get_ref().as_ref(),
            known.into_iter().collect::<Vec<_>>(),
        );
        let near = known
            .iter()
            .map(|known| (strsim::damerau_levenshtein(name, known), known))
            .min();
        let fix = match near {
            Some((distance, near)) if distance <= 2 && distance * 2 < name.len() => {
                format!("did you mean `{near}`?")
            }
            _ => format!("expected one of {}", known.join(", ")),
        };
        self.at(key, &format!("unknown {what} `{name}`; {fix}"))
    }

    fn at<T>(&self, place: &Spanned<T>, message: &str) -> PolicyError {
        self.error(place.span().start, message)
    }

    fn error(&self, offset: usize, message: &str) -> PolicyError {
        let before = self.text.get(..offset).unwrap_or(self.text);
        let line = before.matches('\n').count() + 1;
        let column = before
            .rsplit('\n')
            .next()
            .unwrap_or_default()
            .chars()
            .count()
            + 1;
        PolicyError {
            line,
            column,
            message: message.to_owned(),
        }
    }
}

/// The entries in the order of the file, so that the first error is reported.
fn in_order<'d, 't>(table: &'d DeTable<'t>) -> Vec<(&'d Key<'t>, &'d Item<'t>)> {
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    entries
}

/// An integer of any base, as decimal text.
fn integer(value: &DeValue<'_>) -> Option<String> {
    let integer = value.as_integer()?;
    Some(
        i64::from_str_radix(integer.as_str(), integer.radix())
            .ok()?
            .to_string(),
    )
}

/// A policy file without its comments, which may say anything; `None` when it is none.
pub fn without_comments(text: &str) -> Option<String> {
    let bare = text.parse::<toml::Table>().ok()?.to_string();
    (Policy::parse(&bare).ok()? == Policy::parse(text).ok()?).then_some(bare)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_go_and_the_meaning_stays() {
        let bare = without_comments("# of machine db7\n[defaults]\nexclude = \"0-1\" # ask Ann\n")
            .unwrap();
        assert_eq!(bare, "[defaults]\nexclude = \"0-1\"\n");
        assert_eq!(without_comments("exclude = \n"), None);
    }
}
