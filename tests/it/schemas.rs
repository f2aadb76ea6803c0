//! The schemas of the JSON documents. That every document of every test meets its schema is held where the binary is run
//! (`support::run`).

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

/// Calls `visit` with each schema of a file, and whether it is that of a key.
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

type Change = fn(&mut Value);

/// Every kind of mistake, once.
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
