//! The policy file: its errors, settings without effect, and what overrides what.

use serde_json::Value;
use snapbox::{assert_data_eq, str};

use crate::support::run::{MachineTree, codes, document, expect, note, text};

/// The error of each policy, below its text.
fn errors(machine: &MachineTree, policies: &[&str]) -> String {
    let file = machine.path("/policy.toml");
    let apply = ["apply", "--config", file.to_str().unwrap()];
    let mut said = String::new();
    for policy in policies {
        machine.write("/policy.toml", policy);
        said += &format!("{policy}{}\n", machine.fails(&apply, 64));
    }
    said
}

#[test]
fn a_policy_file_with_an_error_names_line_and_column() {
    let machine = MachineTree::of("two-node");
    let said = errors(
        &machine,
        &[
            "[defaults]\nscope = 'near'\n",
            "[defaults]\n\nscoop = 'all'\n",
            "\n[[rule]]\nset = {}\n",
            "defaults = [\n",
            "[[rule]]\nmatch = {}\nscope = 'all'\n",
            "[[rule]]\nname = 'nic0'\nset = {}\n",
        ],
    );
    expect("policy.errors.txt", said);
    let said = machine.fails(&["plan", "--config", "/no/such/policy.toml"], 1);
    assert_data_eq!(
        said,
        str![[r"
nicpin: /no/such/policy.toml: no such file or directory (ENOENT); fix: name an existing file or directory

"]]
    );
    // The file of nothing is a policy without a line.
    let without = machine.nicpin(&["plan", "--json"]);
    let nothing = machine.nicpin(&["plan", "--json", "--config", "/dev/null"]);
    assert_eq!((nothing.code, nothing.stdout), (0, without.stdout));
}

#[test]
fn a_rule_is_for_the_interface_of_that_very_name_before_those_that_match() {
    let machine = MachineTree::of("two-node");
    let rename = |from: &str, to: &str| {
        let path = |name: &str| machine.path(&format!("/sys/class/net/{name}"));
        std::fs::rename(path(from), path(to)).unwrap();
    };
    let at = machine.path("/policy.toml").to_str().unwrap().to_owned();
    machine.write(
        "/policy.toml",
        "[[rule]]\nmatch = { name = 'nic[01]' }\nset = { scope = 'all' }\n",
    );
    let ruled = || {
        let run = machine.nicpin(&["plan", "--config", &at, "--format", "json"]);
        let plan = run.json();
        let interfaces = plan["interfaces"].as_array().unwrap().clone();
        let has_all = |i: &Value| i["candidates"] == "0-7";
        let names = interfaces
            .iter()
            .filter(|i| has_all(i))
            .map(|i| i["name"].clone());
        names.collect::<Vec<_>>()
    };
    assert_eq!(ruled(), ["nic0", "nic1"]);
    rename("nic0", "nic[01]");
    assert_eq!(ruled(), ["nic[01]"]);
}

/// One file may be for machines of several sizes: what cannot be met here concerns only the interfaces that it is about.
#[test]
fn cpus_that_the_machine_cannot_have() {
    let machine = MachineTree::of("two-node");
    let at = machine.path("/policy.toml").to_str().unwrap().to_owned();
    let planned = |text: &str| -> Value {
        machine.write("/policy.toml", text);
        let run = machine.nicpin(&["plan", "--json", "--config", &at]);
        assert_eq!(run.code, 0, "{}", run.stderr);
        run.json()
    };
    let nic1 = |plan: &Value, key: &str| {
        let mut all = plan["interfaces"].as_array().unwrap().iter();
        all.find(|one| one["name"] == "nic1").unwrap()[key].clone()
    };
    let rule = |set: &str| format!("[[rule]]\nmatch = {{ name = 'nic1' }}\nset = {{ {set} }}\n");
    assert_eq!(
        nic1(&planned("[defaults]\nexclude = '6-9'\n"), "candidates"),
        "4-5"
    );
    let some = planned(&rule("scope = '5,64'"));
    assert_eq!(nic1(&some, "candidates"), "5");
    let said = |plan: &Value| {
        let notes = nic1(plan, "notes");
        let mut notes = notes.as_array().unwrap().iter();
        let note = notes.find(|note| note["code"] == "cpus-unusable").unwrap();
        assert!(note["missing"].is_string(), "{note}");
        text(note, "text").to_owned()
    };
    assert_data_eq!(
        said(&some),
        str!["the policy names CPUs that are absent, offline or excluded: 64 of 5,64"]
    );
    let rps = planned("[defaults]\nrps = '7-8'\n");
    assert_data_eq!(
        said(&rps),
        str!["the policy names CPUs for RPS that are absent, offline or excluded: 8 of 7-8"]
    );
    for none in ["scope = '64'", "rps = '8'", "group = { mask = '100' }"] {
        machine.write("/policy.toml", &rule(none));
        let run = machine.nicpin(&["apply", "--json", "--config", &at]);
        let unknown = &run.json()["unknown"][0];
        assert_eq!(
            (run.code, [&unknown["interface"], &unknown["code"]]),
            (1, [&"nic1".into(), &"cpus-unusable".into()])
        );
        let check = machine.nicpin(&["check", "--config", &at, "nic0"]);
        assert_eq!(check.code, 0, "{none}: {}", check.stdout);
        assert_eq!(machine.nicpin(&["check", "--config", &at]).code, 1);
    }
    let options = ["--scope", "--exclude", "--rps", "--near"];
    let said = options.map(|option| machine.fails(&["plan", option, "0-8"], 64));
    assert_data_eq!(
        said.concat(),
        str![[r"
nicpin: --scope names CPU 8, and this machine has no CPU above 7
nicpin: --exclude names CPU 8, and this machine has no CPU above 7
nicpin: --rps names CPU 8, and this machine has no CPU above 7
nicpin: --near names CPU 8, and this machine has no CPU above 7

"]]
    );
}

#[test]
fn settings_without_effect_beside_others() {
    let machine = MachineTree::of("two-node");
    let said = [
        ["plan", "--scope", "4-7", "--irq-cores", "2"],
        ["plan", "--per", "l3", "--scope", "4-7"],
        ["plan", "--scope", "4-7", "--widen", "package"],
        ["plan", "--scope", "node:1", "--widen", "package"],
        ["plan", "--scope", "all", "--widen", "package"],
        ["plan", "--per", "l3", "--l3", "pack"],
    ]
    .map(|args| machine.fails(&args, 64));
    assert_data_eq!(
        said.concat(),
        str![[r"
nicpin: --irq-cores has no effect beside --scope 4-7; fix: leave one of them out
nicpin: --per has no effect beside --scope 4-7; fix: leave one of them out
nicpin: --widen has no effect beside --scope 4-7; fix: leave one of them out
nicpin: --widen has no effect beside --scope node:1; fix: leave one of them out
nicpin: --widen has no effect beside --scope all; fix: leave one of them out
nicpin: --l3 has no effect beside --per l3; fix: leave one of them out

"]]
    );
    assert_eq!(
        machine
            .nicpin(&["plan", "--scope", "4-7", "--irq-cores", "all"])
            .code,
        0
    );
    let said = errors(
        &machine,
        &[
            "[defaults]\nscope = '4-7'\nirq-cores = 2\n",
            "[[rule]]\nmatch = {}\nset = {}\n[[rule]]\nmatch = {}\nset = { group = '4-7', scope = 'all' }\n",
            "[defaults]\ngroup = '4-7'\nl3 = 'pack'\n",
            "[[rule]]\nmatch = {}\nset.skip = true\nset.rps = 'off'\n",
        ],
    );
    expect("policy-without-effect.errors.txt", said);
    let at = machine.path("/policy.toml").to_str().unwrap().to_owned();
    // A rule overrides what holds for others; an option that has an effect on some interface is not refused.
    machine.write(
        "/policy.toml",
        "[defaults]\nirq-cores = 2\n[[rule]]\nmatch = { name = 'nic1' }\nset = { scope = '4-7' }\n",
    );
    let plan = |args: &[&str]| machine.nicpin(&[&["plan", "--config", &at], args].concat());
    assert_eq!((plan(&[]).code, plan(&["--irq-cores", "1"]).code), (0, 0));
    let refused = ["plan", "--config", &at, "--irq-cores", "1", "nic1"];
    assert_data_eq!(
        machine.fails(&refused, 64),
        str![[r"
nicpin: --irq-cores has no effect on nic1 beside scope 4-7 of the policy file; fix: leave it out

"]]
    );
}

#[test]
fn what_the_policy_skips_is_named_and_is_not_counted_as_planned() {
    let machine = MachineTree::of("two-node");
    let at = machine.path("/policy.toml").to_str().unwrap().to_owned();
    let with = |args: &[&str]| machine.nicpin(&[args, &["--config", &at]].concat());
    // Other defaults are for what a rule does not skip.
    machine.write(
        "/policy.toml",
        "[defaults]\nskip = true\nscope = 'all'\n[[rule]]\nmatch = { name = 'nic1' }\nset = { skip = false }\n",
    );
    assert_eq!(with(&["apply"]).code, 0);
    for command in ["check", "status"] {
        let document = with(&[command, "--json"]).json();
        let states = document["interfaces"].as_array().unwrap();
        let states = states
            .iter()
            .map(|row| [text(row, "name"), text(row, "state")]);
        let skipped = ["nic0", "unsupported"];
        assert_eq!(states.filter(|row| *row == skipped).count(), 1, "{command}");
        assert_eq!(
            document["not_judged"],
            Value::Array(Vec::new()),
            "by choice"
        );
    }
    let first = |args: &[&str]| with(args).stdout.lines().next().unwrap().to_owned() + "\n";
    let said = [
        first(&["check"]),
        first(&["status"]),
        first(&["check", "nic0"]),
        first(&["status", "nic0"]),
        first(&["apply", "nic0"]),
        first(&["check", "--format", "nagios"]),
        first(&["check", "--format", "nagios", "nic0"]),
        machine.fails(&["plan", "--rps", "off", "nic0", "--config", &at], 64),
        machine.fails(&["plan", "--scope", "node:7", "--config", &at], 64),
    ];
    assert_data_eq!(
        said.concat(),
        str![[r"
1 of 1 interface is as planned; the policy skips nic0. 6 IRQs move at the next interrupt.
nic1 is set as planned; 6 IRQs move at the next interrupt; the policy skips nic0.
No interface is planned; the policy skips nic0.
No interface is planned; the policy skips nic0.
Nothing was written: there is no setting to plan.
NICPIN OK: 16 settings as planned, the policy skips nic0 | 'nic0_local'=50%;;;0;100 'nic1_local'=100%;;;0;100 settings_differ=0;;;0;16 not_judged=0;;;0;2
NICPIN OK: nothing is planned, the policy skips nic0 | 'nic0_local'=50%;;;0;100 settings_differ=0;;;0;0 not_judged=0;;;0;1
nicpin: --rps has no effect on nic0 beside skip of the policy file; fix: leave it out
nicpin: --scope: node 7 of the scope does not exist or has no usable CPU

"]]
    );
}

#[test]
fn a_rule_that_matches_no_interface_is_named() {
    let machine = MachineTree::of("two-node");
    std::fs::create_dir_all(machine.path("/etc")).unwrap();
    let rules = "[[rule]]\nmatch = { name = 'nic*' }\nset = {}\n\
                 [[rule]]\nmatch = { driver = \"mlx5*\", node = 1 }\nset = { skip = true }\n";
    machine.write("/etc/nicpin.toml", rules);
    let plan = document(&machine, &["plan"]);
    let code = "rule-unmatched";
    assert_eq!(codes(&plan).iter().filter(|of| **of == code).count(), 1);
    let named = note(&plan, code);
    assert_eq!(named["rule"], 2);
    assert_data_eq!(
        text(named, "text"),
        str![[r#"rule 2 of the policy (driver = "mlx5*", node = 1) matches no interface"#]]
    );
}

#[test]
fn the_policy_of_the_machine_is_used_and_options_override_it() {
    let machine = MachineTree::of("two-node");
    std::fs::create_dir_all(machine.path("/etc")).unwrap();
    machine.write(
        "/etc/nicpin.toml",
        "[[rule]]\nmatch = { name = 'nic1' }\nset = { scope = '1,3' }\n",
    );
    let cpus = |args: &[&str]| -> Vec<String> {
        let run = machine.nicpin(&[&["plan", "nic1", "--format", "json"], args].concat());
        let plan = run.json();
        let vectors = plan["interfaces"][0]["vectors"].as_array().unwrap().clone();
        vectors
            .iter()
            .filter_map(|vector| Some(vector["cpus"].as_str()?.to_owned()))
            .collect()
    };
    assert_eq!(cpus(&[]), ["1", "1", "3", "3", "1", "1", "3", "3"]);
    assert_eq!(cpus(&["--scope", "2"]), ["2"; 8]);
}

/// What an option wants and the machine does not have is a usage error; a rule of the policy concerns its interfaces only,
/// which stay as they are.
#[test]
fn a_wish_that_cannot_be_met_is_not_overruled() {
    let machine = MachineTree::of("two-node");
    for command in ["plan", "apply", "check", "status"] {
        let said = [["--exclude", "0-7"], ["--scope", "node:7"]]
            .map(|option| machine.fails(&[&[command], &option[..]].concat(), 64));
        assert_data_eq!(
            said.concat(),
            str![[r"
nicpin: --exclude: without CPUs 0-7 no CPU is left for its IRQs
nicpin: --scope: node 7 of the scope does not exist or has no usable CPU

"]]
        );
    }
    let one_node = MachineTree::of("tg3-and-ixgbe").nicpin(&["plan", "--scope", "remote"]);
    assert_eq!(one_node.code, 64, "{}", one_node.stderr);
    let before = machine.texts();
    std::fs::create_dir_all(machine.path("/etc")).unwrap();
    machine.write(
        "/etc/nicpin.toml",
        "[[rule]]\nmatch = { name = \"nic0\" }\nset = { scope = \"node:7\" }\n",
    );
    assert_eq!(machine.nicpin(&["plan"]).code, 1);
    assert_eq!(machine.nicpin(&["plan", "nic1"]).code, 0);
    let run = machine.nicpin(&["apply"]);
    assert_eq!(run.code, 1, "{}{}", run.stdout, run.stderr);
    let after = machine.texts();
    let changed = after
        .iter()
        .filter(|(path, text)| before.get(*path).is_some_and(|was| was != *text));
    let changed: Vec<_> = changed.map(|(path, _)| path.clone()).collect();
    assert!(
        !changed.is_empty()
            && !changed
                .iter()
                .any(|path| format!("{path:?}").contains("nic0")),
        "{changed:?}"
    );
    let json = |command: &str| -> Value {
        let run = machine.nicpin(&[command, "--json"]);
        run.json()
    };
    for command in ["check", "status"] {
        let found = json(command);
        let nic0 = found["interfaces"]
            .as_array()
            .unwrap()
            .iter()
            .find(|one| one["name"] == "nic0");
        assert_eq!(nic0.unwrap()["state"], "unknown", "{command}");
    }
    assert_eq!(machine.nicpin(&["check"]).code, 1);
    assert_eq!(machine.nicpin(&["check", "nic1"]).code, 0);
    // What the file and an option want of one interface; two options that only one interface cannot meet.
    let rule = |set: &str| {
        let rule = format!("[[rule]]\nmatch = {{ name = \"nic0\" }}\nset = {{ {set} }}\n");
        machine.write("/etc/nicpin.toml", &rule);
    };
    rule("scope = \"node:7\", exclude = \"2-3\"");
    let said = machine.fails(&["plan", "--rps", "2-3", "nic0"], 64);
    assert_data_eq!(
        said,
        str![[r"
nicpin: --rps: none of the policy's CPUs for RPS (2-3) can be used

"]]
    );
    rule("exclude = \"2-3\"");
    let both = ["plan", "--scope", "2-3", "--rps", "2-3"];
    assert_eq!(machine.nicpin(&both).code, 1);
}
