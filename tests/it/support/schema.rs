//! Holds JSON documents against their schemas in `docs/schema/`, strictly: users may meet further keys and words, tests
//! only those that the schema lists. Of JSON Schema it knows the words that those files use.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Formatter};
use std::path::Path;
use std::sync::LazyLock;

use regex_lite::Regex;
use serde::de::{Error as _, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

/// Schemas by name, without `.json`.
pub static SCHEMAS: LazyLock<BTreeMap<String, Value>> = LazyLock::new(|| {
    let pattern = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/schema/*.json");
    let files = glob::glob(pattern.to_str().unwrap()).unwrap();
    let schema = |path: &Path| {
        let text = std::fs::read_to_string(path).unwrap();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let value = serde_json::from_str(&text);
        (
            name,
            value.unwrap_or_else(|e| panic!("{}: {e}", path.display())),
        )
    };
    files.map(|path| schema(&path.unwrap())).collect()
});

/// Finds mistakes such as `/interfaces/0: unknown key "nod"`; none if the output is no JSON of nicpin.
pub fn mistakes(output: &str) -> Vec<String> {
    if !output.starts_with('{') {
        return Vec::new();
    }
    let documents: Result<Vec<Value>, _> = serde_json::Deserializer::from_str(output)
        .into_iter::<Once>()
        .map(|document| document.map(|Once(value)| value))
        .collect();
    match documents {
        Ok(documents) => documents.iter().flat_map(of_document).collect(),
        Err(error) => vec![format!("not JSON: {error}")],
    }
}

/// Keys that occur twice are an error: readers differ in which they take.
struct Once(Value);

impl<'de> Deserialize<'de> for Once {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(OnceVisitor).map(Once)
    }
}

struct OnceVisitor;

impl<'de> Visitor<'de> for OnceVisitor {
    type Value = Value;

    fn expecting(&self, to: &mut Formatter<'_>) -> fmt::Result {
        to.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some((key, Once(value))) = entries.next_entry::<String, _>()? {
            if map.insert(key.clone(), value).is_some() {
                return Err(A::Error::custom(format!("key {key:?} twice")));
            }
        }
        Ok(map.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(Once(value)) = items.next_element()? {
            list.push(value);
        }
        Ok(list.into())
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
}

/// Each document of the output meets its schema.
pub fn meets(output: &str) {
    let found = mistakes(output);
    assert!(found.is_empty(), "{found:#?}\n{output}");
}

fn of_document(document: &Value) -> Vec<String> {
    let schema = document["schema"].as_str().unwrap_or_default();
    let name = schema.strip_prefix("nicpin.").unwrap_or_default();
    let name = name.strip_suffix("/1").unwrap_or_default();
    let Some(top) = SCHEMAS.get(name) else {
        return vec![format!("docs/schema has no schema for {schema:?}")];
    };
    let mut check = Check {
        file: name,
        mistakes: Vec::new(),
    };
    check.value(top, document, "");
    check.mistakes
}

/// A reference in `file`: the schema, and the file that it is in.
pub fn resolved<'a>(file: &'a str, reference: &'a str) -> Option<(&'a str, &'static Value)> {
    let (other, pointer) = reference.split_once('#')?;
    let file = other.strip_suffix(".json").unwrap_or(file);
    Some((file, SCHEMAS.get(file)?.pointer(pointer)?))
}

struct Check<'a> {
    file: &'a str,
    mistakes: Vec<String>,
}

impl Check<'_> {
    /// An object has no keys beside those that the schema lists.
    fn value(&mut self, schema: &Value, value: &Value, at: &str) {
        let known = self.part(schema, value, at);
        for key in value.as_object().into_iter().flat_map(Map::keys) {
            if !known.contains(key) {
                self.wrong(at, &format!("unknown key {key:?}: describe it there"));
            }
        }
    }

    fn wrong(&mut self, at: &str, what: &str) {
        let file = self.file;
        self.mistakes
            .push(format!("docs/schema/{file}.json: {at}: {what}"));
    }

    /// Checks one of the schemas that the value has to meet; returns the keys that it knows.
    fn part(&mut self, schema: &Value, value: &Value, at: &str) -> BTreeSet<String> {
        let mut known = BTreeSet::new();
        for (word, wanted) in schema.as_object().unwrap() {
            let is_met = match word.as_str() {
                "$schema" | "$defs" | "title" | "description" => true,
                "type" => is_of_type(wanted, value),
                "const" => value == wanted,
                "enum" => wanted.as_array().unwrap().contains(value),
                // Words that later versions may add to.
                "examples" => value.is_null() || wanted.as_array().unwrap().contains(value),
                "minimum" => value.as_f64() >= wanted.as_f64() || !value.is_number(),
                "maximum" => value.as_f64() <= wanted.as_f64() || !value.is_number(),
                "pattern" => {
                    let pattern = Regex::new(wanted.as_str().unwrap()).unwrap();
                    value.as_str().is_none_or(|text| pattern.is_match(text))
                }
                "required" => {
                    let mut keys = wanted.as_array().unwrap().iter();
                    keys.all(|key| value.get(key.as_str().unwrap()).is_some())
                }
                "$ref" => {
                    let (file, schema) = resolved(self.file, wanted.as_str().unwrap()).unwrap();
                    let mut inner = Check {
                        file,
                        mistakes: Vec::new(),
                    };
                    known.append(&mut inner.part(schema, value, at));
                    self.mistakes.append(&mut inner.mistakes);
                    true
                }
                "allOf" => {
                    for schema in wanted.as_array().unwrap() {
                        known.append(&mut self.part(schema, value, at));
                    }
                    true
                }
                "anyOf" => wanted.as_array().unwrap().iter().any(|schema| {
                    let before = self.mistakes.len();
                    let mut keys = self.part(schema, value, at);
                    let is_met = self.mistakes.len() == before;
                    self.mistakes.truncate(before);
                    if is_met {
                        known.append(&mut keys);
                    }
                    is_met
                }),
                "items" => {
                    for (n, item) in value.as_array().into_iter().flatten().enumerate() {
                        self.value(wanted, item, &format!("{at}/{n}"));
                    }
                    true
                }
                "properties" => {
                    for (key, schema) in wanted.as_object().unwrap() {
                        known.insert(key.clone());
                        if let Some(value) = value.get(key) {
                            self.value(schema, value, &format!("{at}/{key}"));
                        }
                    }
                    true
                }
                "additionalProperties" => {
                    for (key, value) in value.as_object().into_iter().flatten() {
                        known.insert(key.clone());
                        self.value(wanted, value, &format!("{at}/{key}"));
                    }
                    true
                }
                _ => panic!("{}: {word} is not known to this test", self.file),
            };
            if !is_met {
                let wanted = serde_json::to_string(wanted).unwrap();
                self.wrong(at, &format!("{value} does not meet {word} {wanted}"));
            }
        }
        known
    }
}

fn is_of_type(wanted: &Value, value: &Value) -> bool {
    if let Some(types) = wanted.as_array() {
        return types.iter().any(|one| is_of_type(one, value));
    }
    match wanted.as_str().unwrap() {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "number" => value.is_number(),
        "integer" => value.is_i64() || value.is_u64(),
        other => panic!("type {other}"),
    }
}
