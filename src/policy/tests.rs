//! Which settings apply to an interface, and what is refused.

use super::*;
use crate::cpuset::CpuSet;

fn interface(name: &str, driver: &str) -> Interface {
    Interface {
        name: name.into(),
        driver: Some(driver.into()),
        ..Interface::default()
    }
}

#[test]
fn later_rules_and_options_override() {
    let mut policy = Policy::parse(
        "[defaults]\nscope = 'all'\nrps = 'off'\n\
         [[rule]]\nmatch = { driver = 'mlx5*' }\nset = { scope = 'local', exclude = '0-1' }\n\
         [[rule]]\nmatch = { name = 'ens1*', driver = 'mlx5_core' }\nset = { scope = '4-7' }\n",
    )
    .unwrap();
    let choice = policy.choice(&Machine::default(), &interface("ens1f0", "mlx5_core"));
    assert_eq!(
        choice.get(&SCOPE),
        Scope::Cpus(CpuSet::parse_list("4-7").unwrap())
    );
    assert_eq!(
        (choice.get(&RPS), choice.get(&EXCLUDE).to_string()),
        (RpsMode::Off, "0-1".to_owned())
    );
    assert_eq!(choice.rules, [1, 2]);
    assert_eq!(
        policy
            .choice(&Machine::default(), &interface("ens2f0", "mlx5_core"))
            .get(&SCOPE),
        Scope::Local
    );
    assert_eq!(
        policy
            .choice(&Machine::default(), &interface("ens1f0", "igb"))
            .get(&SCOPE),
        Scope::All
    );
    policy.options = Settings::of([("scope", "remote")]).unwrap();
    assert_eq!(
        policy
            .choice(&Machine::default(), &interface("ens1f0", "mlx5_core"))
            .get(&SCOPE),
        Scope::Remote
    );
}

#[test]
fn every_setting_is_read() {
    let text = "[defaults]\nscope = 'hint'\nexclude = '0'\nirq-cores = 2\nper = 'l3'\nwiden = 'package'\n\
                siblings = true\navoid-cpu0 = false\nrps = '1-3'\nxps = 'keep'\nrfs = 32768\nchannels = 6\n\
                group = 'l3'\nskip = true\n";
    let policy = Policy::parse(text);
    let choice = policy
        .unwrap()
        .choice(&Machine::default(), &interface("eth0", "igb"));
    assert_eq!(choice.get(&SCOPE), Scope::Hint);
    assert_eq!(choice.get(&EXCLUDE), CpuSet::single(0));
    assert_eq!(choice.get(&IRQ_CORES), Some(2));
    assert!(choice.get(&ONE_PER_L3) && choice.get(&WIDEN));
    assert!(choice.get(&SIBLINGS) && !choice.get(&AVOID_CPU0) && choice.get(&SKIP));
    assert_eq!(
        choice.get(&RPS),
        RpsMode::Cpus(CpuSet::parse_list("1-3").unwrap())
    );
    assert_eq!(choice.get(&XPS), Xps::Keep);
    assert_eq!(choice.get(&RFS), Rfs::Entries(32768));
    assert_eq!(choice.get(&CHANNELS), ChannelCount::Count(6));
    assert_eq!(choice.get(&GROUP), Some(Group::L3));
}

#[test]
fn a_default_can_be_given_over_what_came_before() {
    for entry in SETTINGS.iter().filter(|entry| entry.is_for_interfaces()) {
        let values = entry.in_file();
        for (other, _) in &values[1..] {
            let text = format!(
                "[defaults]\n{key} = {other}\n[[rule]]\nmatch = {{}}\nset = {{ {key} = {default} }}\n",
                key = entry.key,
                default = values[0].0
            );
            let policy = Policy::parse(&text).unwrap();
            let default =
                Policy::parse(&format!("[defaults]\n{} = {}\n", entry.key, values[0].0)).unwrap();
            assert_ne!(policy.defaults, default.defaults, "{text}");
            let eth0 = interface("eth0", "igb");
            assert_eq!(
                policy.choice(&Machine::default(), &eth0).settings,
                default.choice(&Machine::default(), &eth0).settings,
                "{text}"
            );
        }
    }
}

#[test]
fn settings_of_the_machine() {
    let mut policy = Policy::parse("irqbalance = 'stop'\n").unwrap();
    assert_eq!(
        (policy.get(&IRQBALANCE), Policy::default().get(&IRQBALANCE)),
        (Balancer::Stop, Balancer::Ban)
    );
    policy.options = Settings::of([("irqbalance", "ignore")]).unwrap();
    assert_eq!(policy.get(&IRQBALANCE), Balancer::Ignore);
}

#[test]
fn patterns_have_brackets() {
    let text = "[[rule]]\nmatch = { name = 'eth[02]', driver = 'i[!x]*' }\nset = {}\n";
    let policy = Policy::parse(text).unwrap();
    let rules = |name, driver| {
        policy
            .choice(&Machine::default(), &interface(name, driver))
            .rules
    };
    assert_eq!(
        (rules("eth0", "igb"), rules("eth2", "igb")),
        (vec![1], vec![1])
    );
    assert!(rules("eth1", "igb").is_empty() && rules("eth0", "ixgbe").is_empty());
}

#[test]
fn groups() {
    for (given, expected) in [
        ("{ cpus = '4-7' }", "4-7"),
        ("{ mask = '00000000,000000f0' }", "4-7"),
        ("'4,5-7'", "4-7"),
    ] {
        let policy = Policy::parse(&format!("[defaults]\ngroup = {given}\n")).unwrap();
        let group = policy.defaults.get(&GROUP).unwrap();
        assert_eq!(
            group,
            Some(Group::Cpus(CpuSet::parse_list(expected).unwrap()))
        );
    }
    for bad in [
        "'l2'",
        "{ cpus = '' }",
        "{ mask = 'zz' }",
        "3",
        "{ cpu = '1' }",
    ] {
        assert!(
            Policy::parse(&format!("[defaults]\ngroup = {bad}\n")).is_err(),
            "{bad}"
        );
    }
}

#[test]
fn errors_have_a_line_and_a_column() {
    for (text, expected) in [
        (
            "[defaults]\nscope = 'near'\n",
            "line 2, column 9: `near` is not one of local, all, remote, hint, a node such as node:1, or a CPU list",
        ),
        (
            "[defaults]\nscoop = 'local'\n",
            "line 2, column 1: unknown setting `scoop`; did you mean `scope`?",
        ),
        (
            "[defaults]\nspeed = 'local'\n",
            "unknown setting `speed`; expected one of scope, near, exclude, irq-cores,",
        ),
        (
            "[default]\n",
            "line 1, column 2: unknown key `default`; did you mean `defaults`?",
        ),
        (
            "x = 1\n",
            "unknown key `x`; expected one of defaults, rule, driver, only-gain, irqbalance",
        ),
        (
            "scope = 'all'\n",
            "line 1, column 1: `scope` belongs in [defaults], or in the `set` of a rule",
        ),
        (
            "[defaults]\nirqbalance = 'ban'\n",
            "line 2, column 1: `irqbalance` is a setting of the machine",
        ),
        (
            "[[rule]]\nmatch = { nam = 'x' }\nset = {}\n",
            "line 2, column 11: unknown condition `nam`; did you mean",
        ),
        (
            "[[rule]]\nmatch = { name = 'eth[0' }\nset = {}\n",
            "line 2, column 18: `eth[0` is not a pattern: ",
        ),
        (
            "[[rule]]\nmatch = { speed = 'fast' }\nset = {}\n",
            "`fast` is not a speed in Mbit/s such as 10000",
        ),
        (
            "[[rule]]\nmatch = { node = -1 }\nset = {}\n",
            "line 2, column 18: expected the number of a node",
        ),
        (
            "[[rule]]\nmatch = 'eth0'\nset = {}\n",
            "line 2, column 9: expected a table such as { name = \"eth0\" }",
        ),
        (
            "[[rule]]\nmatch = {}\n",
            "line 1, column 1: the rule has no `set`",
        ),
        (
            "[rule]\nmatch = {}\n",
            "expected rules, each headed by [[rule]]",
        ),
        (
            "[defaults]\nxps = 'of'\nexclude = ''\nscope = 'x'\n",
            "line 2, column 7",
        ),
        ("[defaults]\nexclude = '3-1'\n", "runs downwards"),
        (
            "[defaults]\nexclude = 'all'\n",
            "`all` is not a CPU list such as 0-3,8",
        ),
        (
            "[defaults]\nrfs = 99999999999999999999\n",
            "`99999999999999999999` is not one of keep, off, or a number of flows",
        ),
        (
            "[defaults]\nexclude = 3\n",
            "expected a string: a CPU list such as 0-3,8",
        ),
        ("[defaults]\nsiblings = 'yes'\n", "expected a boolean"),
        ("[defaults]\nrfs = 0\n", "a number of flows"),
        (
            "[defaults]\nrfs = -5\n",
            "`-5` is not one of keep, off, or a number of flows",
        ),
        ("[defaults]\nirq-cores = 0\n", "line 2, column 13"),
        (
            "[defaults]\ngroup = { cpus = '1', mask = '2' }\n",
            "line 2, column 9",
        ),
        (
            "[defaults]\ngroup = { cpu = '1' }\n",
            "line 2, column 11: unknown key `cpu`",
        ),
        (
            "[defaults]\ngroup = { mask = 'zz' }\n",
            "line 2, column 18: `zz` is not a CPU mask",
        ),
    ] {
        let error = Policy::parse(text).unwrap_err().to_string();
        assert!(error.contains(expected), "{text:?} gave {error}");
    }
}
