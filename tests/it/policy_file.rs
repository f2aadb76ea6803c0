//! The policy file: its errors, settings without effect, and what overrides what.

use crate::support::run::Copy;

#[test]
fn a_policy_file_with_an_error_names_line_and_column() {
    let machine = Copy::of("two-node");
    let file = machine.path("/policy.toml");
    let at = file.to_str().unwrap().to_owned();
    for (text, has) in [
        (
            "[defaults]\nscope = 'near'\n",
            "policy.toml: line 2, column 9: `near` is not one of local, all, remote",
        ),
        (
            "[defaults]\n\nscoop = 'all'\n",
            "line 3, column 1: unknown setting `scoop`; did you mean `scope`?",
        ),
        (
            "\n[[rule]]\nset = {}\n",
            "line 2, column 1: the rule has no `match`",
        ),
        ("defaults = [\n", "line "),
    ] {
        machine.write("/policy.toml", text);
        machine.fails(&["apply", "--config", &at], 64, &[has]);
    }
    machine.fails(
        &["plan", "--config", "/no/such/policy.toml"],
        1,
        &["/no/such/policy.toml: no such file"],
    );
    let without = machine.nicpin(&["plan", "--json"]);
    let nothing = machine.nicpin(&["plan", "--json", "--config", "/dev/null"]);
    assert_eq!((nothing.code, nothing.stdout), (0, without.stdout));
}

#[test]
fn a_rule_is_for_the_interface_of_that_very_name_before_those_that_match() {
    let machine = Copy::of("two-node");
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
        let has_all = |i: &serde_json::Value| i["candidates"] == "0-7";
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

/// One file may be for machines of several sizes: such CPUs concern only the interfaces of their rule.
#[test]
fn cpus_that_the_machine_cannot_have() {
    let machine = Copy::of("two-node");
    let at = machine.path("/policy.toml").to_str().unwrap().to_owned();
    let planned = |text: &str| -> serde_json::Value {
        machine.write("/policy.toml", text);
        let run = machine.nicpin(&["plan", "--json", "--config", &at]);
        assert_eq!(run.code, 0, "{}", run.stderr);
        run.json()
    };
    let nic1 = |plan: &serde_json::Value, key: &str| {
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
    let notes = nic1(&some, "notes").to_string();
    assert!(
        notes.contains("the policy names CPUs that are absent, offline or excluded: 64 of 5,64"),
        "{notes}"
    );
    let rps = nic1(&planned("[defaults]\nrps = '7-8'\n"), "notes").to_string();
    assert!(
        rps.contains(
            "the policy names CPUs for RPS that are absent, offline or excluded: 8 of 7-8"
        ),
        "{rps}"
    );
    for none in ["scope = '64'", "rps = '8'", "group = { mask = '100' }"] {
        machine.write("/policy.toml", &rule(none));
        let run = machine.nicpin(&["apply", "--config", &at]);
        assert_eq!(run.code, 1, "{}", run.stdout);
        let words = &run.words();
        assert!(words.contains("nic1: none of the policy's CPUs"), "{words}");
        let check = machine.nicpin(&["check", "--config", &at, "nic0"]);
        assert_eq!(check.code, 0, "{none}: {}", check.stdout);
        assert_eq!(machine.nicpin(&["check", "--config", &at]).code, 1);
    }
    for option in ["scope", "exclude", "rps", "near"] {
        let says = format!("--{option} names CPU 8, and this machine has no CPU above 7");
        machine.fails(&["plan", &format!("--{option}"), "0-8"], 64, &[&says]);
    }
}

#[test]
fn settings_without_effect_beside_others() {
    let machine = Copy::of("two-node");
    for (args, has) in [
        (
            &["--scope", "4-7", "--irq-cores", "2"][..],
            "--irq-cores has no effect beside --scope 4-7; fix: leave one",
        ),
        (
            &["--per", "l3", "--scope", "4-7"],
            "--per has no effect beside --scope 4-7; fix: leave one",
        ),
        (
            &["--scope", "4-7", "--widen", "package"],
            "--widen has no effect beside --scope 4-7; fix: leave one",
        ),
        (
            &["--scope", "node:1", "--widen", "package"],
            "--widen has no effect beside --scope node:1; fix: leave one",
        ),
        (
            &["--scope", "all", "--widen", "package"],
            "--widen has no effect beside --scope all; fix: leave one",
        ),
        (
            &["--per", "l3", "--l3", "pack"],
            "--l3 has no effect beside --per l3; fix: leave one",
        ),
    ] {
        machine.fails(&[&["plan"], args].concat(), 64, &[has]);
    }
    assert_eq!(
        machine
            .nicpin(&["plan", "--scope", "4-7", "--irq-cores", "all"])
            .code,
        0
    );
    let file = machine.path("/policy.toml");
    let at = file.to_str().unwrap().to_owned();
    for (text, has) in [
        (
            "[defaults]\nscope = '4-7'\nirq-cores = 2\n",
            "policy.toml: line 3, column 1: irq-cores has no effect beside scope 4-7;",
        ),
        (
            "[[rule]]\nmatch = {}\nset = {}\n[[rule]]\nmatch = {}\nset = { group = '4-7', scope = 'all' }\n",
            "policy.toml: line 6, column 24: scope has no effect beside group 4-7;",
        ),
        (
            "[defaults]\ngroup = '4-7'\nl3 = 'pack'\n",
            "policy.toml: line 3, column 1: l3 has no effect beside group 4-7;",
        ),
    ] {
        machine.write("/policy.toml", text);
        machine.fails(&["apply", "--config", &at], 64, &[has]);
    }
    // An option that has an effect on some interface is not refused, although a rule overrides it for others.
    machine.write(
        "/policy.toml",
        "[defaults]\nirq-cores = 2\n[[rule]]\nmatch = { name = 'nic1' }\nset = { scope = '4-7' }\n",
    );
    let plan = |args: &[&str]| machine.nicpin(&[&["plan", "--config", &at], args].concat());
    assert_eq!((plan(&[]).code, plan(&["--irq-cores", "1"]).code), (0, 0));
    let has =
        "--irq-cores has no effect on nic1 beside scope 4-7 of the policy file; fix: leave it out";
    machine.fails(
        &["plan", "--config", &at, "--irq-cores", "1", "nic1"],
        64,
        &[has],
    );
}

#[test]
fn a_rule_that_matches_no_interface_is_named() {
    let machine = Copy::of("two-node");
    std::fs::create_dir_all(machine.path("/etc")).unwrap();
    let rules = "[[rule]]\nmatch = { name = 'nic*' }\nset = {}\n\
                 [[rule]]\nmatch = { driver = \"mlx5*\", node = 1 }\nset = { skip = true }\n";
    machine.write("/etc/nicpin.toml", rules);
    let run = machine.nicpin(&["plan"]);
    let named = "rule 2 of the policy (driver = \"mlx5*\", node = 1) matches no interface";
    assert!(
        run.code == 0 && run.stdout.contains(named),
        "{}",
        run.stdout
    );
    assert!(!run.stdout.contains("rule 1 "), "{}", run.stdout);
}

#[test]
fn the_policy_of_the_machine_is_used_and_options_override_it() {
    let machine = Copy::of("two-node");
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

/// An option that the machine cannot meet is a usage error; a rule leaves its interfaces as they are.
#[test]
fn a_wish_that_cannot_be_met_is_not_overruled() {
    let machine = Copy::of("two-node");
    for (options, said) in [
        (
            ["--exclude", "0-7"],
            "--exclude: without CPUs 0-7 no CPU is left",
        ),
        (
            ["--scope", "node:7"],
            "--scope: node 7 of the policy's scope has no usable CPU",
        ),
    ] {
        for command in ["plan", "apply", "check", "status"] {
            let run = machine.nicpin(&[&[command], &options[..]].concat());
            assert_eq!(run.code, 64, "{command}: {}", run.stderr);
            assert!(run.stderr.contains(said), "{}", run.stderr);
        }
    }
    let one_node = Copy::of("tg3-and-ixgbe").nicpin(&["plan", "--scope", "remote"]);
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
    let json = |command: &str| -> serde_json::Value {
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
}
