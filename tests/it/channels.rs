//! Changing the number of channels on request. A tree only holds ethtool's recorded answer; `tests/vm` tests on running
//! kernels that queues are added and removed.

use nix::errno::Errno;

use crate::support::host::read_and_plan;
use crate::support::machine::{Port, card, channels, two_nodes};
use crate::support::run::{Copy, good};
use crate::support::tree::Entry;
use nicpin::apply::{self, Options};
use nicpin::machine::Channels;

const ETH0: &str = "/nicpin/ethtool/eth0/channels";

#[test]
fn channels_stay_as_they_are_unless_asked() {
    let machine = Copy::of("dl980");
    let before = machine.read(ETH0);
    assert!(!machine.nicpin(&["plan"]).stdout.contains("Channels: "));
    assert_eq!(machine.nicpin(&["apply"]).code, 0);
    assert_eq!(machine.read(ETH0), before);
}

/// Equal hashes are equal plans.
#[test]
fn a_plan_that_changes_channels_has_another_hash() {
    let machine = Copy::of("two-socket-mlx4");
    let hash = |channels: &str| {
        let plan = machine.nicpin(&["plan", "--json", "--channels", channels]);
        let plan = plan.json();
        (
            plan["channels"] != serde_json::json!([]),
            plan["hash"].clone(),
        )
    };
    let [(false, same), (true, two), (true, four)] = ["keep", "2", "4"].map(hash) else {
        panic!("other channels");
    };
    assert!(same != two && two != four && four != same);
}

/// They were recorded only where a plan had an opinion about them, and not at all once the channels were others.
#[test]
fn settings_of_flows_that_a_later_apply_sets_are_restored_too() {
    for later in [&["--rfs", "32768"][..], &["--rss", "2"], &["--xps", "rxqs"]] {
        let machine = Copy::of("two-socket-mlx4");
        machine.write("/nicpin/ethtool/eth2/features", "{\"ntuple\":false}\n");
        let table = "queues 12, entries 128, table 0 1 2 3";
        let rss = format!("{{\"function\":1,\"table\":\"{table}\"}}\n");
        machine.write("/nicpin/ethtool/eth2/rss", &rss);
        for queue in 0..6 {
            let file = format!("/sys/class/net/eth2/queues/tx-{queue}/xps_rxqs");
            machine.put(&file, "0");
        }
        let before = machine.texts();
        good(&machine, &["apply", "--channels", "4", "eth2"]);
        good(&machine, &[&["apply", "eth2"], later].concat());
        assert_ne!(machine.texts(), before);
        good(&machine, &["restore"]);
        let texts =
            [&before, &machine.texts()].map(|texts| format!("{texts:#?}").replace("000", "0"));
        assert_eq!(texts[0], texts[1], "{later:?}");
    }
}

#[test]
fn auto_is_a_queue_per_candidate_core_and_restore_undoes_it() {
    let machine = Copy::of("dl980");
    let before = machine.read(ETH0);
    let plan = machine.nicpin(&["plan", "--channels", "auto", "eth0"]);
    assert!(
        plan.stdout.contains(
            "Channels: ethtool -L eth0 combined 8: a receive queue for each of 8 cores\n"
        ),
        "{}",
        plan.stdout
    );
    assert_eq!(
        machine
            .nicpin(&["check", "--channels", "auto", "eth0"])
            .code,
        2
    );
    let apply = machine.nicpin(&["apply", "--channels", "auto", "eth0"]);
    assert_eq!(apply.code, 0, "{}{}", apply.stdout, apply.stderr);
    assert!(
        apply
            .stdout
            .contains("\n  eth0  channels set to combined 8\n"),
        "{}",
        apply.stdout
    );
    assert_eq!(Channels::parse(&machine.read(ETH0)).unwrap().combined, 8);
    let again = machine.nicpin(&["apply", "--channels", "auto", "eth0", "--json"]);
    assert_eq!(again.json()["changed"], 0);
    let restore = machine.nicpin(&["restore"]);
    assert_eq!(restore.code, 0, "{}", restore.stdout);
    assert!(
        restore.stdout.contains("channels set to combined 16"),
        "{}",
        restore.stdout
    );
    assert_eq!(machine.read(ETH0), before);
}

/// With the channels the IRQ numbers change: a script would write to whatever has them then.
#[test]
fn a_plan_that_changes_channels_has_no_script() {
    let machine = Copy::of("dl980");
    let script = |channels: &str| {
        machine.nicpin(&["plan", "--channels", channels, "eth0", "--format", "sh"])
    };
    let refused = script("auto");
    assert_eq!(
        (refused.code, refused.stdout.as_str()),
        (64, ""),
        "{}",
        refused.stderr
    );
    assert_eq!(refused.stderr.lines().count(), 1, "{}", refused.stderr);
    for part in [
        "the channels of eth0",
        "the IRQ numbers change",
        "run `nicpin apply`",
        "--channels keep",
    ] {
        assert!(refused.stderr.contains(part), "{part}: {}", refused.stderr);
    }
    for same in ["keep", "16"] {
        let script = script(same);
        assert!(
            script.code == 0 && script.stdout.contains("\necho "),
            "{same}: {}",
            script.stderr
        );
    }
}

/// Some drivers do not report channels while the link is down: they do not count as restored.
#[test]
fn channels_that_are_not_reported_stay_in_the_record_for_the_next_restore() {
    let machine = Copy::of("dl980");
    let before = machine.read(ETH0);
    assert_eq!(
        machine
            .nicpin(&["apply", "--channels", "auto", "eth0"])
            .code,
        0
    );
    let applied = machine.read(ETH0);
    machine.remove(ETH0);
    let run = machine.nicpin(&["restore", "--json"]);
    assert_eq!(run.code, 0, "{run:?}");
    let absent = run.json()["absent"].clone();
    assert_eq!(absent.as_array().unwrap().len(), 1, "{absent}");
    assert!(
        absent[0].as_str().unwrap().ends_with(" port 0 channels"),
        "{absent}"
    );
    machine.write(ETH0, &applied);
    assert_eq!(machine.nicpin(&["restore"]).code, 0);
    assert_eq!(machine.read(ETH0), before);
    assert!(!machine.path("/run/nicpin/state.json").exists());
    // A malformed entry of the record is kept.
    assert_eq!(
        machine
            .nicpin(&["apply", "--channels", "auto", "eth0"])
            .code,
        0
    );
    let record = machine.read("/run/nicpin/state.json");
    machine.write(
        "/run/nicpin/state.json",
        &record.replace("max_rx", "most_rx"),
    );
    let run = machine.nicpin(&["restore"]);
    let said = run.words();
    assert_eq!(run.code, 1, "{}{}", run.stdout, run.stderr);
    assert!(
        said.contains("port 0 channels, but not a number of channels; correct the record"),
        "{said}"
    );
    machine.write("/run/nicpin/state.json", &record);
    assert_eq!(machine.nicpin(&["restore"]).code, 0);
    assert_eq!(machine.read(ETH0), before);
}

/// The command for so many channels of eth0, if they are to be changed.
fn planned_command(machine: &Copy, count: &str) -> Option<String> {
    let plan = machine.nicpin(&["plan", "--channels", count, "eth0", "--format", "json"]);
    let plan = plan.json();
    plan["channels"][0]["command"].as_str().map(str::to_owned)
}

#[test]
fn a_number_of_channels_is_limited_by_the_device() {
    let machine = Copy::of("dl980");
    let command = |count: &str| planned_command(&machine, count);
    assert_eq!(command("4").as_deref(), Some("ethtool -L eth0 combined 4"));
    assert_eq!(command("16"), None, "as it is");
    let most = Channels::parse(&machine.read(ETH0)).unwrap().max_combined;
    assert_eq!(
        command(&most.to_string()),
        Some(format!("ethtool -L eth0 combined {most}"))
    );
}

/// A device may have combined channels or separate ones, and then more of one kind than of the other.
#[test]
fn channels_keep_their_form_and_its_limit() {
    let machine = Copy::of("dl980");
    for (max, now, expected) in [
        ([8, 8, 0, 4], [0, 0, 0, 2], "ethtool -L eth0 combined 4"),
        ([4, 4, 0, 8], [2, 2, 0, 0], "ethtool -L eth0 rx 4 tx 4"),
    ] {
        machine.write(ETH0, &channels(max, now).to_text());
        let command = planned_command(&machine, "auto");
        assert_eq!(command.as_deref(), Some(expected));
    }
}

#[test]
fn channels_can_be_set_in_the_policy_file() {
    let machine = Copy::of("dl980");
    std::fs::create_dir_all(machine.path("/etc")).unwrap();
    machine.write(
        "/etc/nicpin.toml",
        "[[rule]]\nmatch = { driver = 'ixgbe' }\nset = { channels = 8 }\n",
    );
    let plan = machine.nicpin(&["plan", "--format", "json"]);
    let plan = plan.json();
    let changed: Vec<&str> = plan["channels"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| c["interface"].as_str().unwrap())
        .collect();
    assert_eq!(changed, ["eth0", "eth1"]);
    // With all else as planned, these would still change.
    assert_eq!(machine.nicpin(&["apply", "--channels", "keep"]).code, 0);
    let run = machine.nicpin(&["plan"]);
    assert!(run.stdout.starts_with("2 of "), "{}", run.stdout);
    // Channels that restore sets were not as recorded.
    assert_eq!(machine.nicpin(&["apply"]).code, 0);
    let count = |args: &[&str]| -> serde_json::Value { machine.nicpin(args).json() };
    let planned = count(&["restore", "--dry-run", "--json"]);
    let restored = count(&["restore", "--json"]);
    assert_eq!(restored["already"], planned["unchanged"], "{restored}");
}

#[test]
fn channels_that_the_device_does_not_support_are_reported() {
    let machine = Copy::of("dl980");
    let run = |args: &[&str]| {
        machine
            .nicpin(&[&["plan", "eth0", "--channels"], args].concat())
            .stdout
    };
    // A wish that cannot be met; of others that it can be met for, the first is reported.
    let most = "64 channels requested, but the device has 63 at most";
    for command in ["plan", "apply", "check", "status"] {
        machine.fails(
            &[command, "eth0", "--channels", "64"],
            64,
            &["--channels: ", most],
        );
    }
    assert!(run(&["63"]).contains("combined 63"), "{}", run(&["63"]));
    std::fs::create_dir_all(machine.path("/etc")).unwrap();
    let rule = "[[rule]]\nmatch = { name = 'eth0' }\nset = { channels = 64 }\n";
    machine.write("/etc/nicpin.toml", rule);
    let ruled = machine.nicpin(&["plan", "eth0", "eth1"]);
    assert!(
        ruled.code == 1 && ruled.stdout.contains(most),
        "{}{}",
        ruled.stdout,
        ruled.stderr
    );
    machine.remove("/etc/nicpin.toml");
    assert!(
        run(&["8", "--explain"])
            .contains("\nChannels: ethtool -L eth0 combined 8: as requested\nThe rest is planned again for the new queues.\n")
    );
    // A driver that answers without channels.
    machine.write(ETH0, "null\n");
    let fixed = "8 channels requested, but the driver has a fixed number";
    for format in ["table", "json", "sh"] {
        let args = ["plan", "eth0", "--channels", "8", "--format", format];
        let asked = machine.nicpin(&args);
        assert!(
            asked.code == 64 && asked.stderr.contains(fixed),
            "{asked:?}"
        );
    }
    machine.fails(&["apply", "eth0", "--channels", "8"], 64, &[fixed]);
    // It has so many receive queues.
    assert!(
        !run(&["16"]).contains(" requested, but"),
        "{}",
        run(&["16"])
    );
    assert!(
        run(&["keep"]).contains("16 queues for 8 cores. The driver has a fixed number"),
        "{}",
        run(&["keep"])
    );
    assert!(!run(&["keep"]).contains("Advice: "), "{}", run(&["keep"]));
    // A driver without a recorded answer may have one on the machine itself: nothing is known, and the interface stays.
    machine.remove(ETH0);
    let none = "8 channels requested, but the driver has given no answer on channels";
    for format in ["table", "json", "sh"] {
        let args = ["plan", "eth0", "--channels", "8", "--format", format];
        let asked = machine.nicpin(&args);
        let said = asked.words();
        assert!(asked.code == 1 && said.contains(none), "{said}");
        assert!(!said.contains("echo "), "{said}");
    }
    // Nothing is advised that was asked for in vain.
    assert!(!run(&["8"]).contains("Advice: "), "{}", run(&["8"]));
    let kept = run(&["keep"]);
    let advice = "16 queues for 8 cores; one queue for each core is enough, if the driver can, and";
    assert!(
        kept.contains(advice) && kept.contains("nicpin apply --channels 8 "),
        "{kept}"
    );
}

/// enic reports a maximum and has no `set_channels`.
#[test]
fn channels_that_a_driver_only_reports_are_left_alone() {
    let names = ["eth0-rx-0", "eth0-rx-1", "eth0-tx-0", "eth0-err"];
    let card = card("enic", Port::new("eth0", 10_000, 2, 1), 30, &names);
    let machine = Copy::build(&two_nodes([card]));
    let reported = channels([8, 8, 0, 0], [2, 1, 0, 0]).to_text();
    machine.put(ETH0, &reported);
    for count in ["keep", "auto", "1", "2", "8"] {
        let args = ["plan", "eth0", "--channels", count];
        let asked = machine.nicpin(&args);
        let said = asked.words() + &asked.stderr;
        assert!(!said.contains("ethtool -L"), "{said}");
        assert!(!said.contains("the device can have"), "{said}");
        let has_note = said.contains("the driver has a fixed number");
        assert_eq!(has_note, ["auto", "1", "8"].contains(&count), "{said}");
        let code = if ["1", "8"].contains(&count) { 64 } else { 0 };
        assert_eq!(asked.code, code, "{said}");
    }
}

#[test]
fn transmit_channels_alone_are_not_a_reason_to_change_channels() {
    let machine = Copy::of("dl980");
    machine.write(ETH0, &channels([4, 4, 0, 0], [4, 1, 0, 0]).to_text());
    let run = machine.nicpin(&["plan", "--channels", "auto", "eth0"]);
    assert!(!run.stdout.contains("ethtool -L"), "{}", run.stdout);
    machine.write(ETH0, &channels([4, 4, 0, 0], [2, 1, 0, 0]).to_text());
    let run = machine.nicpin(&["plan", "--channels", "auto", "eth0"]);
    let expected = "ethtool -L eth0 rx 4 tx 4: as many as the device can have, for 8 cores";
    assert!(run.stdout.contains(expected), "{}", run.stdout);
}

/// In many containers the channels can be changed and nothing else: the queues would be new and badly placed.
#[test]
fn channels_stay_as_they_are_if_nothing_else_can_be_written() {
    for read_only in ["/proc/irq/", "/sys/class/net/"] {
        let machine = Copy::of("dl980");
        let before = machine.snapshot();
        let root = machine.refusing_writes(Errno::EROFS, move |path| path.starts_with(read_only));
        let done = apply::apply(&root, Options::default(), |root| {
            read_and_plan(root, &[("channels", "8")], &["eth0"])
        });
        let done = done.unwrap();
        let refused = done.channels[0].refused.as_deref().unwrap();
        let why = format!("not changed, since {read_only}");
        assert!(
            refused.starts_with(&why) && refused.contains("(EROFS)"),
            "{refused}"
        );
        assert_eq!(Entry::File(machine.read(ETH0)), before[ETH0], "{read_only}");
        assert!(done.failed());
        assert_eq!(machine.nicpin(&["restore"]).code, 0);
        let text = |entry: &Entry| format!("{entry:?}").replace("\\n", "");
        let (before, now) = (before.values().map(text), machine.snapshot());
        assert!(now.values().map(text).eq(before), "{read_only}");
    }
}

/// The recorded answers of `ETHTOOL_GDRVINFO`, and the MTU.
#[test]
fn versions_of_driver_and_firmware_are_in_the_status() {
    let machine = Copy::of("dl980");
    let status = || -> serde_json::Value {
        let run = machine.nicpin(&["status", "--format", "json", "eth0"]);
        serde_json::from_str::<serde_json::Value>(&run.stdout).unwrap()["interfaces"][0].clone()
    };
    let before = status();
    for key in ["driver_version", "firmware", "mtu"] {
        assert!(
            before[key].is_null() && before.get(key).is_some(),
            "{key}: {before}"
        );
    }
    machine.write(
        "/nicpin/ethtool/eth0/driver",
        r#"{"version":"6.12.0","firmware":"22.31.1014 (MT_0000000359)"}"#,
    );
    machine.write("/sys/class/net/eth0/mtu", "9000\n");
    let after = status();
    let found = ["driver_version", "firmware", "mtu"].map(|key| after[key].clone());
    assert_eq!(
        found,
        [
            "6.12.0".into(),
            "22.31.1014 (MT_0000000359)".into(),
            serde_json::Value::from(9000)
        ]
    );
    let text = machine.nicpin(&["status", "-v", "eth0"]).stdout;
    let line = "  driver version 6.12.0, firmware 22.31.1014 (MT_0000000359), MTU 9000\n";
    assert!(text.contains(line), "{text}");
    machine.write(
        "/nicpin/ethtool/eth0/driver",
        r#"{"version":" ","firmware":"N/A"}"#,
    );
    assert!(status()["firmware"].is_null() && status()["driver_version"].is_null());
}

/// What a port can carry is that of its fastest link mode, whatever the link does.
#[test]
fn link_modes_weigh_the_queues() {
    let machine = Copy::of("two-socket-mlx4");
    let load = || {
        let run = machine.nicpin(&["plan", "--format", "json", "eth2"]);
        let plan = run.json();
        plan["score"]["max_load_kbps"].as_u64().unwrap()
    };
    let slower = load();
    machine.write(
        "/nicpin/ethtool/eth2/link-modes",
        r#"{"supported":["Autoneg","1000baseKX/Full","10000baseKX4/Full","80000baseKR4/Full","FIBRE"]}"#,
    );
    machine.write("/sys/class/net/eth2/speed", "-1\n");
    assert_eq!(load() / 2, slower);
}

/// Where `/sys` is of another network namespace, ethtool and netlink are about another interface of the same name.
#[test]
fn an_interface_of_another_namespace_has_no_answers() {
    let machine = Copy::of("dl980");
    machine.write("/nicpin/ethtool/eth0/other-namespace", "");
    let run = machine.nicpin(&["plan", "--channels", "2", "--format", "json", "eth0"]);
    let plan = run.json();
    let codes: Vec<&str> = plan["interfaces"][0]["notes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|note| note["code"].as_str().unwrap())
        .collect();
    assert!(
        codes.contains(&"other-namespace") && codes.contains(&"channels-unchanged"),
        "{codes:?}"
    );
    assert_eq!(plan["interfaces"][0]["channels"], serde_json::Value::Null);
}
