//! Changing the number of channels on request. A tree only holds ethtool's recorded answer; `tests/vm` tests on running
//! kernels that queues are added and removed.

use nix::errno::Errno;
use serde_json::{Value, json};
use snapbox::{assert_data_eq, str};

use crate::support::host::read_and_plan;
use crate::support::machine::{Port, card, channels, two_nodes};
use crate::support::run::{MachineTree, assert_line, codes, document, expect, good, note, text};
use crate::support::tree::Entry;
use nicpin::apply::{self, Options};
use nicpin::machine::Channels;

const ETH0: &str = "/nicpin/ethtool/eth0/channels";

#[test]
fn channels_stay_as_they_are_unless_asked() {
    let machine = MachineTree::of("dl980");
    let before = machine.read(ETH0);
    assert_eq!(document(&machine, &["plan"])["channels"], json!([]));
    assert_eq!(machine.nicpin(&["apply"]).code, 0);
    assert_eq!(machine.read(ETH0), before);
}

/// Equal hashes are equal plans.
#[test]
fn a_plan_that_changes_channels_has_another_hash() {
    let machine = MachineTree::of("two-socket-mlx4");
    let hash = |channels: &str| {
        let plan = document(&machine, &["plan", "--channels", channels]);
        (plan["channels"] != json!([]), plan["hash"].clone())
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
        let machine = MachineTree::of("two-socket-mlx4");
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
    let machine = MachineTree::of("dl980");
    let before = machine.read(ETH0);
    let args = |command| [command, "--channels", "auto", "eth0"];
    let command = planned_command(&machine, "auto");
    assert_eq!(command.as_deref(), Some("ethtool -L eth0 combined 8"));
    let screens = || {
        let screens = ["plan", "check", "apply"].map(|command| machine.nicpin(&args(command)));
        assert_eq!(screens.each_ref().map(|run| run.code), [0, 2, 0]);
        let restored = machine.nicpin(&["restore"]);
        screens.map(|run| run.stdout).join("\n") + "\n" + &restored.stdout
    };
    expect("channels.txt", screens());
    let set = |to: &str| json!([{"interface": "eth0", "wanted": to, "refused": null}]);
    let applied = document(&machine, &args("apply"));
    assert_eq!(applied["channels"], set("combined 8"));
    assert_eq!(Channels::parse(&machine.read(ETH0)).unwrap().combined, 8);
    assert_eq!(document(&machine, &args("apply"))["changed"], 0);
    let restored = document(&machine, &["restore"]);
    assert_eq!(restored["channels"], set("combined 16"));
    assert_eq!(machine.read(ETH0), before);
}

/// With the channels the IRQ numbers change: a script would write to whatever has them then.
#[test]
fn a_plan_that_changes_channels_has_no_script() {
    let machine = MachineTree::of("dl980");
    let auto = ["plan", "--channels", "auto", "eth0", "--format", "sh"];
    assert_data_eq!(
        machine.fails(&auto, 64),
        str![[r"
nicpin: the plan changes the channels of eth0, and the IRQ numbers change with them: a script could write to another device; fix: run `nicpin apply` with the same options, or keep the channels with --channels keep

"]]
    );
    for same in ["keep", "16"] {
        let script = machine.nicpin(&["plan", "--channels", same, "eth0", "--format", "sh"]);
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
    let machine = MachineTree::of("dl980");
    let before = machine.read(ETH0);
    assert_eq!(
        machine
            .nicpin(&["apply", "--channels", "auto", "eth0"])
            .code,
        0
    );
    let applied = machine.read(ETH0);
    machine.remove(ETH0);
    let restored = document(&machine, &["restore"]);
    assert_eq!(restored["absent"], json!(["0000:0b:00.0 port 0 channels"]));
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
    let run = machine.nicpin(&["restore", "--json"]);
    let refused = run.json()["channels"].take();
    assert_eq!((run.code, &refused[0]["interface"]), (1, &json!("eth0")));
    assert_line(
        text(&refused[0], "refused"),
        str![[r"
recorded for 0000:0b:00.0 port 0 channels, but not a number of channels; correct the record, or set it by hand

"]],
    );
    machine.write("/run/nicpin/state.json", &record);
    assert_eq!(machine.nicpin(&["restore"]).code, 0);
    assert_eq!(machine.read(ETH0), before);
}

/// The command for so many channels of eth0, if they are to be changed.
fn planned_command(machine: &MachineTree, count: &str) -> Option<String> {
    let plan = document(machine, &["plan", "--channels", count, "eth0"]);
    let command = plan["channels"][0]["command"].as_str();
    command.map(str::to_owned)
}

#[test]
fn a_number_of_channels_is_limited_by_the_device() {
    let machine = MachineTree::of("dl980");
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
    let machine = MachineTree::of("dl980");
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
    let machine = MachineTree::of("dl980");
    std::fs::create_dir_all(machine.path("/etc")).unwrap();
    machine.write(
        "/etc/nicpin.toml",
        "[[rule]]\nmatch = { driver = 'ixgbe' }\nset = { channels = 8 }\n",
    );
    let plan = || {
        let plan = document(&machine, &["plan"]);
        let changed: Vec<Value> = plan["channels"]
            .as_array()
            .unwrap()
            .iter()
            .map(|change| change["interface"].clone())
            .collect();
        assert_eq!(changed, ["eth0", "eth1"]);
        plan
    };
    plan();
    // With all else as planned, these would still change.
    assert_eq!(machine.nicpin(&["apply", "--channels", "keep"]).code, 0);
    assert_eq!(plan()["writes"], json!([]));
    let screen = machine.nicpin(&["plan"]).stdout;
    assert_data_eq!(
        screen.lines().next().unwrap(),
        str!["2 of 182 settings would change. Apply: nicpin apply"]
    );
    // Channels that restore sets were not as recorded.
    assert_eq!(machine.nicpin(&["apply"]).code, 0);
    let planned = document(&machine, &["restore", "--dry-run"]);
    let restored = document(&machine, &["restore"]);
    assert_eq!(restored["already"], planned["unchanged"], "{restored}");
}

#[test]
fn channels_that_the_device_does_not_support_are_reported() {
    let machine = MachineTree::of("dl980");
    let plan = |count: &str, code: i32| {
        let run = machine.nicpin(&["plan", "eth0", "--channels", count, "--json"]);
        assert_eq!(run.code, code, "{run:?}");
        run.json()["interfaces"][0].take()
    };
    let fix = |note: &Value| note.get("fix").cloned();
    // A wish that cannot be met; of others that it can be met for, the first is reported.
    for command in ["plan", "apply", "check", "status"] {
        let said = machine.fails(&[command, "eth0", "--channels", "64"], 64);
        assert_data_eq!(
            said,
            str![[r"
nicpin: --channels: 64 channels requested, but the device has 63 at most

"]]
        );
    }
    let most = planned_command(&machine, "63");
    assert_eq!(most.as_deref(), Some("ethtool -L eth0 combined 63"));
    let asked = document(&machine, &["plan", "eth0", "--channels", "8"]);
    assert_data_eq!(text(&asked["channels"][0], "why"), str!["as requested"]);
    let rule = "[[rule]]\nmatch = { name = 'eth0' }\nset = { channels = 64 }\n";
    machine.put("/etc/nicpin.toml", rule);
    let ruled = machine.nicpin(&["plan", "eth0", "eth1", "--json"]);
    let eth0 = &ruled.json()["interfaces"][0];
    assert_eq!((ruled.code, &eth0["name"]), (1, &json!("eth0")));
    assert_data_eq!(
        text(note(eth0, "channels-at-most"), "text"),
        str!["64 channels requested, but the device has 63 at most"]
    );
    machine.remove("/etc/nicpin.toml");
    // A driver that answers without channels.
    machine.write(ETH0, "null\n");
    for format in ["table", "json", "sh"] {
        let args = ["plan", "eth0", "--channels", "8", "--format", format];
        let asked = machine.nicpin(&args);
        assert_eq!(asked.code, 64, "{asked:?}");
        assert_data_eq!(
            asked.stderr,
            str![[r"
nicpin: --channels: 8 channels requested, but the driver has a fixed number: the number stays as it is

"]]
        );
    }
    let said = machine.fails(&["apply", "eth0", "--channels", "8"], 64);
    assert_data_eq!(
        said,
        str![[r"
nicpin: --channels: 8 channels requested, but the driver has a fixed number: the number stays as it is

"]]
    );
    // It has so many receive queues.
    let eth0 = plan("16", 0);
    assert!(!codes(&eth0).contains(&"channels-unchanged"), "{eth0}");
    let eth0 = plan("keep", 0);
    let many = note(&eth0, "queues-exceed-cores");
    assert_eq!((&many["fixed"], fix(many)), (&json!(true), None));
    assert_data_eq!(
        text(many, "text"),
        str!["16 queues for 8 cores. The driver has a fixed number of queues"]
    );
    // A driver without a recorded answer may have one on the machine itself: nothing is known, and the interface stays.
    machine.remove(ETH0);
    let eth0 = plan("8", 1);
    assert_line(
        text(note(&eth0, "channels-unchanged"), "text"),
        str![[r"
8 channels requested, but the driver has given no answer on channels: the number stays as it is

"]],
    );
    // No note advises what was requested and could not be done.
    let notes = eth0["notes"].as_array().unwrap();
    assert!(notes.iter().all(|note| fix(note).is_none()), "{eth0}");
    for format in ["table", "json", "sh"] {
        let args = ["plan", "eth0", "--channels", "8", "--format", format];
        let asked = machine.nicpin(&args);
        assert!(asked.code == 1 && !asked.stdout.contains("echo "));
    }
    let eth0 = plan("keep", 0);
    let many = note(&eth0, "queues-exceed-cores");
    let advised = json!("nicpin apply --channels 8 eth0");
    assert_eq!((&many["unsure"], fix(many)), (&json!(true), Some(advised)));
    assert_line(
        text(many, "text"),
        str![[r"
16 queues for 8 cores; one queue for each core is enough, if the driver can, and a change takes the link down for a moment

"]],
    );
}

/// enic reports a maximum and has no `set_channels`.
#[test]
fn channels_that_a_driver_only_reports_are_left_alone() {
    let names = ["eth0-rx-0", "eth0-rx-1", "eth0-tx-0", "eth0-err"];
    let card = card("enic", Port::new("eth0", 10_000, 2, 1), 30, &names);
    let machine = MachineTree::build(&two_nodes([card]));
    // It says so of a tree without recorded channels, too.
    let unmet = machine.fails(&["plan", "eth0", "--channels", "1"], 64);
    let reported = channels([8, 8, 0, 0], [2, 1, 0, 0]).to_text();
    machine.put(ETH0, &reported);
    for (count, has_note) in [("keep", false), ("auto", true), ("2", false)] {
        let plan = document(&machine, &["plan", "eth0", "--channels", count]);
        assert_eq!(plan["channels"], json!([]));
        let eth0 = &plan["interfaces"][0];
        assert_eq!(codes(eth0).contains(&"channels-unchanged"), has_note);
        if has_note {
            assert_line(
                text(note(eth0, "channels-unchanged"), "text"),
                str![[r"
one channel per core requested, but the driver has a fixed number: the number stays as it is

"]],
            );
        }
    }
    let wish = |count| machine.fails(&["plan", "eth0", "--channels", count], 64);
    assert_data_eq!(
        unmet + &wish("1") + &wish("8"),
        str![[r"
nicpin: --channels: 1 channel requested, but the driver has a fixed number: the number stays as it is
nicpin: --channels: 1 channel requested, but the driver has a fixed number: the number stays as it is
nicpin: --channels: 8 channels requested, but the driver has a fixed number: the number stays as it is

"]]
    );
}

#[test]
fn transmit_channels_alone_are_not_a_reason_to_change_channels() {
    let machine = MachineTree::of("dl980");
    let change = |receive| {
        machine.write(ETH0, &channels([4, 4, 0, 0], [receive, 1, 0, 0]).to_text());
        document(&machine, &["plan", "--channels", "auto", "eth0"])["channels"].take()
    };
    assert_eq!(change(4), json!([]));
    let change = change(2);
    assert_eq!(change[0]["command"], "ethtool -L eth0 rx 4 tx 4");
    assert_data_eq!(
        text(&change[0], "why"),
        str!["as many as the device can have, for 8 cores"]
    );
}

/// In many containers the channels can be changed and nothing else: the queues would be new and badly placed.
#[test]
fn channels_stay_as_they_are_if_nothing_else_can_be_written() {
    let of_irqs = str![[r"
not changed, since /proc/irq/85/smp_affinity cannot be written: read-only file system (EROFS): the file is mounted read-only; fix: run outside the container, or without ProtectKernelTunables= in the unit

"]];
    let of_queues = str![[r"
not changed, since /sys/class/net/eth0/queues/rx-0/rps_cpus cannot be written: read-only file system (EROFS): the file is mounted read-only; fix: run outside the container, or without ProtectKernelTunables= in the unit

"]];
    for (read_only, why) in [("/proc/irq/", of_irqs), ("/sys/class/net/", of_queues)] {
        let machine = MachineTree::of("dl980");
        let before = machine.snapshot();
        let root = machine.refusing_writes(Errno::EROFS, move |path| path.starts_with(read_only));
        let done = apply::apply(&root, Options::default(), |root| {
            read_and_plan(root, &[("channels", "8")], &["eth0"])
        });
        let done = done.unwrap();
        assert_line(done.channels[0].refused.as_deref().unwrap(), why);
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
    let machine = MachineTree::of("dl980");
    let status = || document(&machine, &["status", "eth0"])["interfaces"][0].take();
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
            Value::from(9000)
        ]
    );
    let screen = machine.nicpin(&["status", "-v", "eth0"]).stdout;
    let line = screen.lines().find(|line| line.contains("firmware"));
    assert_data_eq!(
        line.unwrap(),
        str!["  driver version 6.12.0, firmware 22.31.1014 (MT_0000000359), MTU 9000"]
    );
    machine.write(
        "/nicpin/ethtool/eth0/driver",
        r#"{"version":" ","firmware":"N/A"}"#,
    );
    assert!(status()["firmware"].is_null() && status()["driver_version"].is_null());
}

/// What a port can carry is that of its fastest link mode, whatever the link does.
#[test]
fn link_modes_weigh_the_queues() {
    let machine = MachineTree::of("two-socket-mlx4");
    let load = || {
        let plan = document(&machine, &["plan", "eth2"]);
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
    let machine = MachineTree::of("dl980");
    machine.write("/nicpin/ethtool/eth0/other-namespace", "");
    let run = machine.nicpin(&["plan", "--channels", "2", "--format", "json", "eth0"]);
    let eth0 = run.json()["interfaces"][0].take();
    for code in ["other-namespace", "channels-unchanged"] {
        assert!(codes(&eth0).contains(&code), "{eth0}");
    }
    assert_eq!(eth0["channels"], Value::Null);
}
