//! The schemas of the JSON documents. `support::run` holds every document of every test against them.

use std::collections::BTreeSet;
use std::path::Path;

use regex_lite::Regex;
use serde_json::{Value, json};

use crate::support::run::{fixture, nicpin};
use crate::support::schema::{SCHEMAS, mistakes, resolved};

/// State files, which are for nicpin alone.
const STATE: [&str; 5] = ["irqbalance", "state", "try", "watch", "watch-paused"];

#[test]
fn every_document_has_a_schema() {
    let name = Regex::new(r#""nicpin\.([a-z-]+)/1""#).unwrap();
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/**/*.rs");
    let mut named = BTreeSet::new();
    for path in glob::glob(sources.to_str().unwrap()).unwrap() {
        let text = std::fs::read_to_string(path.unwrap()).unwrap();
        named.extend(name.captures_iter(&text).map(|found| found[1].to_owned()));
    }
    named.retain(|name| !STATE.contains(&name.as_str()));
    let described = SCHEMAS.keys().filter(|name| *name != "common");
    assert_eq!(named, described.cloned().collect());
}

/// Calls `visit` with each schema of a file, and whether it describes a key.
fn each<'a>(schema: &'a Value, is_key: bool, visit: &mut dyn FnMut(&'a Value, bool)) {
    visit(schema, is_key);
    for (word, below) in schema.as_object().unwrap() {
        let below: Vec<&Value> = match word.as_str() {
            "properties" | "$defs" => below.as_object().unwrap().values().collect(),
            "allOf" | "anyOf" => below.as_array().unwrap().iter().collect(),
            "items" | "additionalProperties" => vec![below],
            _ => Vec::new(),
        };
        for one in below {
            each(one, word == "properties", visit);
        }
    }
}

#[test]
fn every_key_is_described_and_every_reference_leads_somewhere() {
    let mut keys = 0;
    for (file, schema) in &*SCHEMAS {
        each(schema, false, &mut |one, is_key| {
            let text = one.get("description").and_then(Value::as_str);
            keys += usize::from(is_key);
            assert!(!is_key || text.is_some(), "{file}: {one}");
            if let Some(reference) = one.get("$ref") {
                assert!(
                    resolved(file, reference.as_str().unwrap()).is_some(),
                    "{one}"
                );
            }
            for key in one
                .get("required")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
            {
                let is_there = one["properties"].get(key.as_str().unwrap()).is_some();
                assert!(is_there, "{file}: {key} is required and not described");
            }
        });
    }
    assert!(keys > 300, "only {keys} keys");
    let parts = SCHEMAS
        .values()
        .filter_map(|schema| schema["$defs"].as_object());
    let names: Vec<&String> = parts.flat_map(serde_json::Map::keys).collect();
    let once: BTreeSet<&String> = names.iter().copied().collect();
    assert_eq!(names.len(), once.len(), "{names:?}");
}

#[test]
fn expected_documents_meet_their_schemas() {
    let mut count = 0;
    for path in glob::glob(fixture("expected/*.json").to_str().unwrap()).unwrap() {
        let path = path.unwrap();
        let found = mistakes(&std::fs::read_to_string(&path).unwrap());
        assert!(found.is_empty(), "{}: {found:#?}", path.display());
        count += 1;
    }
    assert!(count > 5, "only {count} documents");
}

fn tables() -> String {
    let mut page = "# Keys of the JSON documents\n\n\
        Written from the schemas in this directory by `NICPIN_UPDATE=1 cargo test --test it -- schemas::`. [The \
        reference](../json.md) says what may change. *?* marks keys that may be absent; `common.json` has the parts that \
        several documents share.\n"
        .to_owned();
    let documents = SCHEMAS.iter().filter(|(file, _)| *file != "common");
    for (_, schema) in documents {
        page += &format!("\n## {}\n", schema["title"].as_str().unwrap());
        page += &table(schema);
        page += &parts(schema);
    }
    page + "\n## Parts of several documents\n" + &parts(&SCHEMAS["common"])
}

fn parts(schema: &Value) -> String {
    let mut text = String::new();
    for (name, part) in schema["$defs"].as_object().into_iter().flatten() {
        text += &format!("\n### {name}\n{}", table(part));
    }
    text
}

fn table(schema: &Value) -> String {
    let mut text = format!("\n{}", schema["description"].as_str().unwrap());
    for part in schema["allOf"].as_array().into_iter().flatten() {
        text += &format!(" It has all keys of {}, too.", kind(part));
    }
    text.push('\n');
    let words = words(schema);
    if !words.is_empty() {
        text += &format!("\nOne of {words}.\n");
    }
    let Some(keys) = schema["properties"].as_object() else {
        return text;
    };
    let required = schema["required"].as_array().into_iter().flatten();
    let required: Vec<&str> = required.map(|key| key.as_str().unwrap()).collect();
    let optional = keys
        .keys()
        .map(String::as_str)
        .filter(|key| !required.contains(key));
    text += "\n| key | value | meaning |\n|---|---|---|\n";
    for key in required.iter().copied().chain(optional) {
        let mark = if required.contains(&key) { "" } else { " ?" };
        let (one, words) = (&keys[key], self::words(&keys[key]));
        let words = if words.is_empty() {
            words
        } else {
            format!(": {words}")
        };
        let meaning = one["description"].as_str().unwrap();
        text += &format!("| `{key}`{mark} | {}{words} | {meaning} |\n", kind(one));
    }
    text
}

fn words(schema: &Value) -> String {
    let words = schema["enum"].as_array().or(schema["examples"].as_array());
    let words = words.into_iter().flatten().filter_map(Value::as_str);
    words
        .map(|word| format!("`{word}`"))
        .collect::<Vec<_>>()
        .join(", ")
}

/// Says, for example, `text or null`, `list of [write](#write)`.
fn kind(schema: &Value) -> String {
    if let Some(reference) = schema["$ref"].as_str() {
        let name = reference.rsplit('/').next().unwrap();
        return format!("[{name}](#{name})");
    }
    if let Some(value) = schema["const"].as_str() {
        return format!("`{value}`");
    }
    if let Some(any) = schema["anyOf"].as_array() {
        return any.iter().map(kind).collect::<Vec<_>>().join(" or ");
    }
    let one = |name: &str| match name {
        "array" => format!("list of {}", kind(&schema["items"])),
        "object" => format!("object of {}", kind(&schema["additionalProperties"])),
        "string" => "text".to_owned(),
        "boolean" => "true or false".to_owned(),
        "integer" => "integer".to_owned(),
        other => other.to_owned(),
    };
    match &schema["type"] {
        Value::Array(all) => {
            let all = all.iter().map(|name| one(name.as_str().unwrap()));
            all.collect::<Vec<_>>().join(" or ")
        }
        name => one(name.as_str().unwrap()),
    }
}

#[test]
fn the_tables_of_keys_are_those_of_the_schemas() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/schema/README.md");
    let tables = tables();
    if std::env::var_os("NICPIN_UPDATE").is_some() {
        std::fs::write(&path, &tables).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap();
    assert!(
        kept == tables,
        "NICPIN_UPDATE=1 cargo test --test it -- schemas:: writes {} again",
        path.display()
    );
}

type Change = fn(&mut Value);

#[test]
fn mistakes_in_documents_are_found() {
    let root = fixture("two-node");
    let plan = nicpin(&["plan", "--json", "--root", root.to_str().unwrap()]).stdout;
    let plan: Value = serde_json::from_str(&plan).unwrap();
    let cases: [(Change, &str); 9] = [
        (|plan| plan["new"] = json!(1), r#": unknown key "new""#),
        (
            |plan| plan["interfaces"][0]["vectors"][0]["new"] = json!(1),
            r#"/interfaces/0/vectors/0: unknown key "new""#,
        ),
        (
            |plan| drop(plan.as_object_mut().unwrap().remove("hash")),
            "does not meet required",
        ),
        (
            |plan| plan["unchanged"] = json!("3"),
            "/unchanged: \"3\" does not meet type",
        ),
        (
            |plan| plan["unchanged"] = json!(-3),
            "/unchanged: -3 does not meet minimum",
        ),
        (
            |plan| plan["host"]["online"] = json!("0-"),
            "/host/online: \"0-\" does not meet pattern",
        ),
        (
            |plan| plan["interfaces"][0]["vectors"][0]["role"] = json!("both"),
            "/role: \"both\" does not meet enum",
        ),
        (
            |plan| plan["writes"][0]["kind"] = json!("affinity"),
            "/writes/0/kind: \"affinity\" does not meet examples",
        ),
        (
            |plan| plan["schema"] = json!("nicpin.plan/2"),
            "no schema for \"nicpin.plan/2\"",
        ),
    ];
    assert_eq!(mistakes(&plan.to_string()), [] as [&str; 0]);
    for (change, complaint) in cases {
        let mut wrong = plan.clone();
        change(&mut wrong);
        let found = mistakes(&wrong.to_string());
        assert!(
            matches!(&found[..], [one] if one.contains(complaint)),
            "{complaint}: {found:?}"
        );
    }
}
