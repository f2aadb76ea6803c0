//! Records that another version left in `/run/nicpin`: upgrade and downgrade between apply and restore. `records` has
//! what each released version writes on `fixtures/two-node`.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use snapbox::{assert_data_eq, str};

use crate::support::run::{MachineTree, good};

const RECORD: &str = "/run/nicpin/state.json";

fn record_of(version: &str) -> Value {
    let path = format!(
        "{}/tests/it/records/{version}.json",
        env!("CARGO_MANIFEST_DIR")
    );
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// two-node as another version's apply left it, and its settings before that.
fn applied_by_another(record: &Value) -> (MachineTree, BTreeMap<String, String>) {
    let machine = MachineTree::of("two-node");
    let before = machine.texts();
    good(&machine, &["apply"]);
    machine.write(RECORD, &record.to_string());
    (machine, before)
}

#[test]
fn a_record_of_the_version_before_is_used() {
    let record = record_of("0.1");
    let (machine, before) = applied_by_another(&record);
    good(&machine, &["check", "--exact"]);
    let again = machine.nicpin(&["apply", "--json"]).json();
    assert_eq!(again["changed"], 0);
    let now: Value = serde_json::from_str(&machine.read(RECORD)).unwrap();
    assert_eq!(now["first_seen"], record["first_seen"]);
    good(&machine, &["restore"]);
    assert_eq!(machine.texts(), before);
    assert!(!machine.path(RECORD).exists());
}

/// The record of a newer version of the same schema, after a downgrade.
#[test]
fn unknown_keys_of_a_record_are_ignored() {
    let mut record = record_of("0.1");
    record["written_by"] = json!({"version": "0.9"});
    for set in record["last_set"].as_object_mut().unwrap().values_mut() {
        set["reason"] = json!(["local"]);
        if let Some(irq) = set.get_mut("irq") {
            irq["domain"] = json!("PCI-MSI");
        }
    }
    let (machine, before) = applied_by_another(&record);
    good(&machine, &["check", "--exact"]);
    good(&machine, &["apply"]);
    good(&machine, &["restore"]);
    assert_eq!(machine.texts(), before);
}

#[test]
fn a_recorded_setting_of_an_unknown_kind_is_named_and_the_others_are_restored() {
    let mut record = record_of("0.1");
    record["first_seen"]["0000:21:00.0 port 0 rx-0 of_tomorrow"] = json!("1");
    let (machine, before) = applied_by_another(&record);
    let restored = machine.nicpin(&["restore"]);
    assert_eq!(restored.code, 0, "{restored:?}");
    assert!(
        restored.stdout.contains("of_tomorrow"),
        "{}",
        restored.stdout
    );
    assert_eq!(machine.texts(), before);
}

#[test]
fn a_record_of_a_newer_schema_is_refused_and_stays() {
    let mut record = record_of("0.1");
    record["schema"] = json!("nicpin.state/2");
    let (machine, _) = applied_by_another(&record);
    machine.write("/proc/irq/27/smp_affinity", "0f\n");
    let (text, before) = (machine.read(RECORD), machine.texts());
    let errors = ["apply", "restore"].map(|command| {
        let run = machine.nicpin(&[command]);
        assert_eq!(run.code, 1, "{run:?}");
        machine.rooted(&run.stderr)
    });
    assert_eq!(errors[0], errors[1]);
    assert_data_eq!(
        &errors[0],
        str![[r#"
nicpin: ROOT/run/nicpin/state.json: not a record of original settings (its schema is nicpin.state/2); nothing was written, because it could not be restored; fix: run the version of nicpin that wrote it, or move the file away

"#]]
    );
    assert_eq!((machine.read(RECORD), machine.texts()), (text, before));
}
