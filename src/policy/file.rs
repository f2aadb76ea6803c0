//! Parses the policy file (TOML) by the table of settings; every error has its line and column.

use std::ops::RangeInclusive;

use glob::Pattern as Glob;
use itertools::Itertools as _;
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use crate::cpuset::CpuSet;
use crate::drivers::{Pattern, Taught};
use crate::machine::wording::nearest;
use crate::policy::setting::{PolicyEntry, PolicyValue};
use crate::policy::table::{SETTINGS, SKIP};
use crate::policy::{CONDITIONS, Condition, Policy, Rule, Settings, find_entry};

/// An error in a policy file.
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

type Wrong = (usize, String);
type TomlKey<'t> = Spanned<DeString<'t>>;
type Toml<'t> = Spanned<DeValue<'t>>;

/// Maximum bytes of a policy file: thousands of rules; the parser makes a hundred times as much of it.
const LONGEST: usize = 256 << 10;

impl Policy {
    /// CPUs that a machine does not have are like offline ones.
    pub fn parse(text: &str) -> Result<Self, PolicyError> {
        policy(text).map_err(|(offset, message)| {
            let before = text.get(..offset).unwrap_or(text);
            let in_line = before.chars().rev().take_while(|c| *c != '\n');
            PolicyError {
                line: before.matches('\n').count() + 1,
                column: in_line.count() + 1,
                message,
            }
        })
    }
}

fn policy(text: &str) -> Result<Policy, Wrong> {
    if text.len() > LONGEST {
        let message = "the file is larger than 256 KiB; is it the right file?";
        return Err((0, message.to_owned()));
    }
    let document = DeTable::parse(text).map_err(|error| {
        (
            error.span().map_or(0, |span| span.start),
            error.message().to_owned(),
        )
    })?;
    let mut policy = Policy::default();
    for (key, item) in in_order(document.get_ref()) {
        match key.get_ref().as_ref() {
            "defaults" => policy.defaults = settings(item, false)?,
            "rule" => {
                let rules = array(item, "expected rules, each headed by [[rule]]")?;
                policy.rules = rules.iter().map(rule).try_collect()?;
            }
            "driver" => {
                for row in array(item, "expected drivers, each headed by [[driver]]")? {
                    policy.drivers.push(driver(row, &policy.drivers)?);
                }
            }
            _ => set(&mut policy.machine, key, item, false)?,
        }
    }
    Ok(policy)
}

fn rule(item: &Toml<'_>) -> Result<Rule, Wrong> {
    let (mut matches, mut given) = (None, None);
    for (key, item) in entries(
        item,
        r#"{ match = { name = "eth0" }, set = { rps = "off" } }"#,
    )? {
        match key.get_ref().as_ref() {
            "match" => matches = Some(conditions(item)?),
            "set" => given = Some(settings(item, true)?),
            name if find_entry(name).is_some() => {
                return Err(at(
                    key,
                    format!("`{name}` belongs in the `set` of the rule"),
                ));
            }
            name if CONDITIONS.iter().any(|(condition, _)| *condition == name) => {
                return Err(at(
                    key,
                    format!("`{name}` belongs in the `match` of the rule"),
                ));
            }
            _ => return Err(unknown("key", key, &["match", "set"])),
        }
    }
    let missing = |name| at(item, format!("the rule has no `{name}`"));
    let (conditions, text) = matches.ok_or_else(|| missing("match"))?;
    Ok(Rule {
        conditions,
        text,
        set: given.ok_or_else(|| missing("set"))?,
    })
}

fn driver(item: &Toml<'_>, before: &[Taught]) -> Result<Taught, Wrong> {
    let (mut name, mut irqs) = (None, None);
    for (key, item) in entries(
        item,
        r#"{ name = "newnic", irqs = ["newnic-{n} = combined"] }"#,
    )? {
        match key.get_ref().as_ref() {
            "name" => {
                let text = string(item)?;
                if before.iter().any(|row| row.name == text) {
                    return Err(at(
                        item,
                        format!("`{text}` has a [[driver]] before this one"),
                    ));
                }
                name = Some(text.to_owned());
            }
            "irqs" => {
                let rows = array(item, "expected a list of names, each with its meaning")?;
                let mut patterns: Vec<Pattern> = Vec::new();
                for row in rows {
                    let pattern = Pattern::taught(string(row)?).map_err(|wrong| at(row, wrong))?;
                    let mut before = patterns.iter();
                    if let Some(other) = before.find(|other| other.contradicts(&pattern)) {
                        let (row_text, other) = (pattern.row(), other.row());
                        return Err(at(row, format!("`{row_text}` contradicts `{other}`")));
                    }
                    patterns.push(pattern);
                }
                irqs = Some(patterns);
            }
            _ => return Err(unknown("key", key, &["name", "irqs"])),
        }
    }
    let missing = |name| at(item, format!("the driver has no `{name}`"));
    Ok(Taught {
        name: name.ok_or_else(|| missing("name"))?,
        irqs: irqs.ok_or_else(|| missing("irqs"))?,
    })
}

fn conditions(item: &Toml<'_>) -> Result<(Vec<Condition>, String), Wrong> {
    let (mut conditions, mut texts) = (Vec::new(), Vec::new());
    // In the order of their keys, whatever that of the file.
    for (key, item) in table(item, r#"{ name = "eth0" }"#)? {
        let (number, text) = (integer(item), item.get_ref().as_str());
        let pattern = || {
            let text = string(item)?;
            Glob::new(text)
                .map_err(|error| at(item, format!("`{text}` is not a pattern: {}", error.msg)))
        };
        conditions.push(match key.get_ref().as_ref() {
            "name" => Condition::Name(pattern()?),
            "driver" => Condition::Driver(pattern()?),
            "device" => Condition::Device(pattern()?),
            "pci" => Condition::Pci(pattern()?),
            "node" => {
                let node = number.as_ref().and_then(|node| node.parse().ok());
                Condition::Node(node.ok_or_else(|| at(item, "expected the number of a node"))?)
            }
            "speed" => {
                let text = number.as_deref().or(text).unwrap_or_default();
                let speeds = speeds(text).ok_or_else(|| {
                    let why = "is not a speed in Mbit/s such as 10000, >=25000 or <10000";
                    at(item, format!("`{text}` {why}"))
                });
                Condition::Speed(speeds?)
            }
            _ => return Err(unknown("condition", key, &CONDITIONS.map(|(name, _)| name))),
        });
        let value = number.or(text.map(|text| format!("{text:?}")));
        texts.push(format!("{} = {}", key.get_ref(), value.unwrap_or_default()));
    }
    Ok((conditions, texts.join(", ")))
}

/// Parses `10000`, `>=25000`.
fn speeds(text: &str) -> Option<RangeInclusive<u32>> {
    let digits = text.trim_start_matches(['<', '>', '=']);
    let (sign, number) = text.split_at(text.len() - digits.len());
    let mbps: u32 = number.trim().parse().ok()?;
    Some(match sign {
        "" | "=" => mbps..=mbps,
        ">=" => mbps..=u32::MAX,
        ">" => mbps.checked_add(1)?..=u32::MAX,
        "<=" => 0..=mbps,
        "<" => 0..=mbps.checked_sub(1)?,
        _ => return None,
    })
}

/// A rule may plan what the defaults skip, so that their other settings have an effect.
fn settings(item: &Toml<'_>, of_rule: bool) -> Result<Settings, Wrong> {
    let mut settings = Settings::default();
    let entries = entries(item, r#"{ rps = "off" }"#)?;
    for (key, item) in &entries {
        set(&mut settings, key, item, true)?;
    }
    let mut judged = settings.clone();
    if !of_rule {
        judged.remove(SKIP.key);
    }
    judged.check_effects("").map_err(|error| {
        let without = judged.without_effect(&judged).map(|(key, _)| key);
        let is_meant = |key: &TomlKey<'_>| Some(key.get_ref().as_ref()) == without;
        let key = entries.iter().find(|(key, _)| is_meant(key));
        let place = key.map_or(item.span(), |(key, _)| key.span());
        (place.start, error.0)
    })?;
    Ok(settings)
}

fn set(
    settings: &mut Settings,
    key: &TomlKey<'_>,
    item: &Toml<'_>,
    for_interfaces: bool,
) -> Result<(), Wrong> {
    let name = key.get_ref().as_ref();
    let Some(entry) = find_entry(name) else {
        let known: Vec<_> = SETTINGS
            .iter()
            .filter(|entry| entry.is_for_interfaces() == for_interfaces)
            .map(|entry| entry.key)
            .collect();
        return Err(if for_interfaces {
            unknown("setting", key, &known)
        } else {
            unknown(
                "key",
                key,
                &[&["defaults", "rule", "driver"], &known[..]].concat(),
            )
        });
    };
    if entry.is_for_interfaces() != for_interfaces {
        let place = if for_interfaces {
            "is a setting of the machine and belongs at the top of the file"
        } else {
            "belongs in [defaults], or in the `set` of a rule"
        };
        return Err(at(key, format!("`{name}` {place}")));
    }
    settings.set(entry, value(entry, item)?);
    Ok(())
}

fn value(entry: &PolicyEntry, item: &Toml<'_>) -> Result<PolicyValue, Wrong> {
    let value = match (item.get_ref(), entry.switch()) {
        (DeValue::Boolean(given), Some(_)) => entry.read(&given.to_string()),
        (_, Some(_)) => return Err(at(item, "expected a boolean, true or false")),
        (DeValue::String(text), _) => entry.read(text),
        (DeValue::Integer(_), _) if entry.forms.iter().any(|form| form.is_number()) => {
            entry.read(&integer(item).unwrap_or_default())
        }
        (DeValue::Table(_), _) if entry.takes_cpus() => Ok(PolicyValue::Cpus(cpus(item)?)),
        _ => {
            return Err(at(
                item,
                format!("expected a string: {}", entry.expected_values()),
            ));
        }
    };
    value.map_err(|error| at(item, error.0))
}

/// `{ cpus = "4-7" }` or `{ mask = "000000f0" }`.
fn cpus(item: &Toml<'_>) -> Result<CpuSet, Wrong> {
    let [(key, item)] = entries(item, "")?[..] else {
        return Err(at(
            item,
            "expected { cpus = \"4-7\" } or { mask = \"000000f0\" }",
        ));
    };
    let parse = match key.get_ref().as_ref() {
        "cpus" => CpuSet::parse_list,
        "mask" => CpuSet::parse_mask,
        _ => return Err(unknown("key", key, &["cpus", "mask"])),
    };
    match parse(string(item)?) {
        Ok(cpus) if cpus.is_empty() => Err(at(item, "expected at least one CPU")),
        cpus => cpus.map_err(|reason| at(item, reason)),
    }
}

fn unknown(what: &str, key: &TomlKey<'_>, known: &[&str]) -> Wrong {
    let name = key.get_ref().as_ref();
    let fix = match nearest(name, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("expected one of {}", known.join(", ")),
    };
    at(key, format!("unknown {what} `{name}`; {fix}"))
}

fn at<T>(place: &Spanned<T>, message: impl Into<String>) -> Wrong {
    (place.span().start, message.into())
}

fn table<'d, 't>(item: &'d Toml<'t>, example: &str) -> Result<&'d DeTable<'t>, Wrong> {
    let table = item.get_ref().as_table();
    table.ok_or_else(|| at(item, format!("expected a table such as {example}")))
}

fn array<'d, 't>(item: &'d Toml<'t>, expected: &str) -> Result<&'d [Toml<'t>], Wrong> {
    let array = item.get_ref().as_array();
    array
        .map(|array| &**array)
        .ok_or_else(|| at(item, expected))
}

fn entries<'d, 't>(
    item: &'d Toml<'t>,
    example: &str,
) -> Result<Vec<(&'d TomlKey<'t>, &'d Toml<'t>)>, Wrong> {
    table(item, example).map(in_order)
}

/// In the order of the file, so that the first error is reported.
fn in_order<'d, 't>(table: &'d DeTable<'t>) -> Vec<(&'d TomlKey<'t>, &'d Toml<'t>)> {
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_unstable_by_key(|(key, _)| key.span().start);
    entries
}

fn string<'d>(item: &'d Toml<'_>) -> Result<&'d str, Wrong> {
    item.get_ref()
        .as_str()
        .ok_or_else(|| at(item, "expected a string"))
}

/// An integer of any base as decimal text; unchanged if larger than any setting takes.
fn integer(item: &Toml<'_>) -> Option<String> {
    let integer = item.get_ref().as_integer()?;
    let number = i64::from_str_radix(integer.as_str(), integer.radix());
    Some(number.map_or_else(|_| integer.to_string(), |number| number.to_string()))
}

/// `None` if the text is not valid. Comments may say anything, so captures leave them out.
pub fn without_comments(text: &str) -> Option<String> {
    let policy = Policy::parse(text).ok()?;
    let bare = text.parse::<toml::Table>().ok()?.to_string();
    (Policy::parse(&bare).ok()? == policy).then_some(bare)
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
        let rule = "[[rule]]\nmatch = { name = 'a', driver = 'b' }\nset.skip = true # why\n";
        assert!(without_comments(rule).is_some());
    }
}
