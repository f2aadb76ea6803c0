//! RSS, accelerated RFS and `xps_rxqs`: planned, set, checked and restored. A tree holds a recorded answer; `tests/vm`
//! tests on running kernels that traffic follows.

use nix::errno::Errno;

use crate::support::host::read_and_plan;
use crate::support::run::{Copy, Run};
use crate::support::two_node::atomic;
use crate::support::{host, temporary};
use nicpin::apply;
use nicpin::cpuset::CpuSet;
use nicpin::machine::Rss;
use nicpin::root::faults::FileAction;

const ETH0: &str = "/nicpin/ethtool/eth0/rss";
/// As igb sets it: in blocks, which is not the kernel's default.
const BLOCKS: &str = "{\"function\":1,\"table\":\"queues 16, entries 128, \
    table 0*8 1*8 2*8 3*8 4*8 5*8 6*8 7*8 8*8 9*8 10*8 11*8 12*8 13*8 14*8 15*8\"}\n";
const DEFAULT: &str = "{\"function\":1,\"table\":\"queues 16, entries 128, \
    table 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15\"}\n";

/// A recorded table, with a hash function of `ETH_RSS_HASH_*`.
fn recorded(function: u8, table: &str) -> String {
    format!("{{\"function\":{function},\"table\":\"{table}\"}}\n")
}

/// dl980, where eth0 has 16 queues on the 8 cores of node 0, with this table.
fn machine(table: &str) -> Copy {
    let machine = Copy::of("dl980");
    machine.write(ETH0, table);
    machine
}

fn ok(run: &Run) -> String {
    assert_eq!(run.code, 0, "{}{}", run.stdout, run.stderr);
    run.words()
}

fn json(run: &Run) -> serde_json::Value {
    serde_json::from_str(&run.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}{}", run.stdout, run.stderr))
}

#[test]
fn a_table_stays_as_it_is_unless_asked() {
    let machine = machine(BLOCKS);
    let without = Copy::of("dl980");
    let plan = |machine: &Copy| json(&machine.nicpin(&["plan", "eth0", "--json"]));
    let (with, without) = (plan(&machine), plan(&without));
    assert_eq!(
        (&with["hash"], &with["writes"]),
        (&without["hash"], &without["writes"])
    );
    assert_eq!(without["interfaces"][0].get("rss"), None);
    let rss = &with["interfaces"][0]["rss"];
    assert_eq!(
        (&rss["now"], &rss["queues"]),
        (&"0-15".into(), &serde_json::Value::Null)
    );
    ok(&machine.nicpin(&["apply", "eth0"]));
    assert!(!machine.read("/run/nicpin/state.json").contains(" rss\""));
    // Somebody else's table outlives a restore of what nicpin has set.
    let other = BLOCKS.replace("15*8", "0*8");
    machine.write(ETH0, &other);
    ok(&machine.nicpin(&["restore"]));
    assert_eq!(machine.read(ETH0), other);
}

#[test]
fn the_first_queues_take_all_flows_and_restore_undoes_it() {
    for table in [BLOCKS, DEFAULT] {
        let machine = machine(table);
        let args = ["eth0", "--rss", "4"];
        let run = |command: &str| machine.nicpin(&[&[command], &args[..]].concat());
        let plan = run("plan").stdout;
        assert!(plan.contains(" to 0-15 -> 0-3; the first queues"), "{plan}");
        let script = machine
            .nicpin(&["plan", "eth0", "--rss", "4", "--format", "sh"])
            .stdout;
        assert!(
            script.contains("\nethtool -X eth0 equal 4  # eth0: the first queues, as requested"),
            "{script}"
        );
        assert_eq!(run("check").code, 2);
        ok(&run("apply"));
        assert_eq!(
            machine.read(ETH0),
            recorded(1, "queues 16, entries 128, table 0 1 2 3")
        );
        ok(&run("check"));
        assert!(ok(&run("apply")).contains("changed=0 "));
        let status = ok(&machine.nicpin(&["status", "eth0", "--rss", "4"]));
        assert!(
            status.contains("RSS table reaches 4 of 16 queues;"),
            "{status}"
        );
        assert!(
            machine
                .read("/run/nicpin/state.json")
                .contains("0000:0b:00.0 port 0 rss")
        );
        ok(&machine.nicpin(&["restore"]));
        assert_eq!(machine.read(ETH0), table);
    }
}

/// More queues than cores: a second queue on a core takes no load off it.
#[test]
fn candidates_are_a_queue_on_each_core() {
    let machine = machine(DEFAULT);
    let plan = json(&machine.nicpin(&["plan", "eth0", "--rss", "candidates", "--json"]));
    assert_eq!(plan["interfaces"][0]["rss"]["queues"], "0-7");
    let codes = |plan: &serde_json::Value| plan["interfaces"][0]["notes"].to_string();
    assert!(
        !codes(&plan).contains("queues-exceed-cores"),
        "{}",
        codes(&plan)
    );
    let few = ["plan", "eth0", "--irq-cores", "2", "--json"];
    let kept = json(&machine.nicpin(&few));
    let fix = "nicpin apply --irq-cores 2 --rss candidates eth0";
    assert!(
        codes(&kept).contains(fix) && !codes(&kept).contains("takes the link down"),
        "{}",
        codes(&kept)
    );
    // What was given stands there once.
    assert!(machine.nicpin(&few[..4]).words().contains(fix));
    let plan = json(&machine.nicpin(&[&few[..], &["--rss", "candidates"]].concat()));
    assert_eq!(plan["interfaces"][0]["rss"]["queues"], "0-1");
    assert!(
        !codes(&plan).contains("queues-exceed-cores"),
        "{}",
        codes(&plan)
    );
    // Without a table, advice is about channels.
    machine.remove(ETH0);
    assert!(codes(&json(&machine.nicpin(&few))).contains("--channels "));
}

#[test]
fn another_hand_is_named() {
    let machine = machine(DEFAULT);
    let args = |command| [command, "eth0", "--rss", "4"];
    ok(&machine.nicpin(&args("apply")));
    machine.write(ETH0, &DEFAULT.replace("table 0 1 2 3 ", "table 9 9 9 9 "));
    let check = machine.nicpin(&[&args("check")[..], &["-v"]].concat());
    let said = check.words();
    assert_eq!(check.code, 2, "{said}");
    assert!(
        said.contains(
            "ethtool -X eth0 flows to queues 4-15 unevenly -> flows to queues 0-3 evenly"
        ),
        "{said}"
    );
    assert!(
        said.contains("changed since apply, by another program") && !said.contains("/nicpin/"),
        "{said}"
    );
    ok(&machine.nicpin(&args("apply")));
    ok(&machine.nicpin(&args("check")));
}

/// The interface is unknown and stays as it is; where the answer is known not to change, it is an error of usage.
#[test]
fn a_table_that_cannot_be_set_is_refused() {
    let strange = recorded(8, "queues 16, entries 128, table 0 1");
    for (table, wish, code, because) in [
        (None, "4", 1, "the driver reports no RSS table"),
        (None, "candidates", 1, "the driver reports no RSS table"),
        (Some(&*strange), "4", 64, "hash function 8 is not known"),
        (Some(DEFAULT), "99", 64, "its table can reach 16 at most"),
    ] {
        let machine = Copy::of("dl980");
        if let Some(table) = table {
            machine.write(ETH0, table);
        }
        let before = machine.texts();
        for command in [
            &["plan"][..],
            &["plan", "--format", "sh"],
            &["apply"],
            &["check"],
        ] {
            let run = machine.nicpin(&[command, &["eth0", "--rss", wish]].concat());
            assert_eq!(run.code, code, "{command:?} {wish}: {}", run.stderr);
            let said = run.words() + &run.stderr;
            assert!(said.contains(because), "{command:?} {wish}: {said}");
        }
        let mut after = machine.texts();
        after.retain(|path, _| !path.starts_with("run/"));
        assert_eq!(after, before, "{wish}");
        // Others are applied.
        let args = |command| [command, "eth0", "eth1", "--rss", wish];
        machine.write("/nicpin/ethtool/eth1/rss", DEFAULT);
        if code == 1 {
            assert_eq!(machine.nicpin(&args("apply")).code, 1);
            assert_ne!(machine.read("/nicpin/ethtool/eth1/rss"), DEFAULT);
            let check = machine.nicpin(&args("check"));
            let unknown = check.stdout.matches(": unknown: ").count();
            assert_eq!((check.code, unknown), (1, 1), "{}", check.stdout);
        }
        // A rule of the policy concerns what it matches.
        let rule = format!("[defaults]\nrss = '{wish}'\n").replace("'99'", "99");
        machine.put("etc/nicpin.toml", &rule.replace("'4'", "4"));
        assert_eq!(machine.nicpin(&["check", "eth0"]).code, 1, "{rule}");
    }
    // XOR and CRC32 select an entry as Toeplitz does.
    let machine = machine(&DEFAULT.replace("\"function\":1", "\"function\":2"));
    ok(&machine.nicpin(&["apply", "eth0", "--rss", "2"]));
    assert_eq!(
        machine.read(ETH0),
        recorded(2, "queues 16, entries 128, table 0 1")
    );
    machine.write(ETH0, &recorded(1, "queues 16, entries 0, table 0"));
    machine.fails(
        &["plan", "eth0"],
        1,
        &["/nicpin/ethtool/eth0/rss: ", "not an RSS table"],
    );
}

/// A default table follows the channels: it is not what it was with other ones.
#[test]
fn channels_and_table_are_restored_together() {
    let machine = machine(DEFAULT);
    let before = machine.texts();
    let run = ok(&machine.nicpin(&["apply", "eth0", "--channels", "4", "--rss", "2"]));
    assert!(run.contains("channels set to combined 4"), "{run}");
    assert!(machine.read(ETH0).ends_with("table 0 1\"}\n"));
    // The driver has its own table for the channels.
    ok(&machine.nicpin(&["restore"]));
    assert_eq!(machine.texts(), before);
}

/// What cannot be restored is known before any write.
#[test]
fn a_dry_run_of_restore_names_what_restore_refuses() {
    let machine = machine(BLOCKS);
    ok(&machine.nicpin(&["apply", "eth0", "--rss", "4"]));
    let fewer = |queues: u32, table| recorded(1, &format!("queues {queues}, entries 128, {table}"));
    machine.write(ETH0, &fewer(8, "table 0 1 2 3 4 5 6 7"));
    let state = "/run/nicpin/state.json";
    let record = machine.read(state);
    let zeros = "rx-0 rps_cpus\": \"00000000,00000000,00000000,00000000";
    machine.write(state, &record.replacen(zeros, "rx-0 rps_cpus\": \"x", 1));
    for (many, already) in [(32, 32), (0, 64)] {
        let dry = machine.nicpin(&["restore", "-n"]);
        let restored = machine.nicpin(&["restore"]);
        let [first, second] = [&dry, &restored].map(Run::words);
        let expected = format!(
            "{many} settings would be restored; 2 could not be restored; {already} already as recorded."
        );
        assert!(first.contains(&expected), "{first}");
        for reason in [
            "an RSS table that fits this device",
            "a CPU mask that fits this machine",
        ] {
            let reason = format!("but not {reason}; correct the record, or set it by hand");
            assert!(
                first.contains(&reason) && second.contains(&reason),
                "{first}{second}"
            );
        }
        assert_eq!((dry.code, restored.code), (1, 1));
    }
    let dry = machine.nicpin(&["restore", "-n", "--quiet"]);
    assert_eq!((dry.code, dry.stderr.lines().count()), (1, 2));
    // With the channels that are restored first the table fits.
    machine.write(ETH0, BLOCKS);
    machine.write(state, &record);
    ok(&machine.nicpin(&["restore"]));
    ok(&machine.nicpin(&["apply", "eth0", "--channels", "4", "--rss", "2"]));
    machine.write(ETH0, &fewer(4, "table 0 1"));
    let dry = ok(&machine.nicpin(&["restore", "-n"]));
    assert!(dry.contains("channels of eth0 combined 16"), "{dry}");
}

#[test]
fn a_trial_and_an_atomic_apply_undo_the_table() {
    let machine = machine(BLOCKS);
    let before = machine.texts();
    ok(&machine.nicpin(&["apply", "eth0", "--rss", "4", "--try", "1"]));
    crate::support::trial::watched_to_the_end(&machine);
    assert_eq!(machine.read(ETH0), BLOCKS);
    // What comes after the table is refused, and then the table itself.
    for (refused, at) in [
        (
            "/sys/class/net/",
            "/sys/class/net/eth0/queues/tx-0/xps_cpus",
        ),
        (ETH0, ETH0),
    ] {
        let root = machine.refusing(Errno::EACCES, move |access| {
            access.action == FileAction::Write
                && access.path.starts_with(refused)
                && !access.value.contains("*8")
        });
        let done = apply::apply(&root, atomic(), |root| {
            read_and_plan(root, &[("rss", "4")], &["eth0"])
        });
        let done = done.unwrap();
        assert!(done.failed() && done.undone.as_ref().unwrap().complete());
        let mut refusals = done
            .results
            .iter()
            .filter(|result| result.failed())
            .map(|result| &*result.path);
        assert_eq!(refusals.next_back(), Some(at));
        let now = machine.texts();
        assert!(
            before.iter().all(|(path, text)| now[path] == *text),
            "{refused}"
        );
    }
}

#[test]
fn a_stored_plan_fits_the_table_that_is_there() {
    let machine = machine(DEFAULT);
    let plan = machine
        .nicpin(&["plan", "eth0", "--rss", "4", "--json"])
        .stdout;
    machine.write("/plan.json", &plan);
    let stored = machine.path("/plan.json");
    let apply = |more: &[&str]| {
        machine.nicpin(&[&["apply", "--plan", stored.to_str().unwrap()], more].concat())
    };
    let small = recorded(0, "queues 2, entries 128, table 0 1");
    machine.write(ETH0, &small);
    let run = apply(&["--force"]);
    assert!(
        run.stdout.contains("RSS table was planned for queues 0-3"),
        "{}{}",
        run.stdout,
        run.stderr
    );
    assert_eq!(machine.read(ETH0), small);
    machine.write(ETH0, DEFAULT);
    ok(&apply(&[]));
    assert!(machine.read(ETH0).ends_with("table 0 1 2 3\"}\n"));
    // A value that is not what the plan says of the interface.
    machine.write(
        "/plan.json",
        &plan.replace("table 0 1 2 3\"", "table 0 1 2 9\""),
    );
    assert_eq!(apply(&[]).code, 1);
}

/// ixgbevf reports its table, and has no function to set one.
#[test]
fn a_table_that_can_only_be_read_is_not_advised() {
    for (driver, is_advised) in [("ixgbe", true), ("ixgbevf", false)] {
        let mut machine = host::machine(2, 4, 1, 4);
        host::add(&mut machine, "eth0", Some(0), 4);
        let eth0 = &mut machine.interfaces[0];
        eth0.driver = Some(driver.to_owned());
        eth0.rss = Rss::parse("queues 4, entries 128, table 0 1 2 3");
        eth0.vectors[1].movable = false;
        eth0.vectors[1].effective = Some(CpuSet::single(6));
        for (options, note) in [
            (&[("irq-cores", "2")][..], "queues-exceed-cores"),
            (&[], "rss-beyond-candidates"),
        ] {
            let plan = host::plan_with(&machine, options, &[]);
            let mut notes = host::of(&plan, "eth0").notes.iter();
            let note = notes.find(|found| found.code() == note).unwrap();
            let command = note.command().map(|(command, _)| command);
            assert_eq!(
                command.is_some_and(|command| command.contains("--rss candidates")),
                is_advised,
                "{driver}: {note}"
            );
        }
        let plan = host::plan_with(&machine, &[("rss", "2")], &[]);
        let eth0 = host::of(&plan, "eth0");
        let is_planned = eth0.rss.as_ref().unwrap().queues.is_some();
        let because = "RSS over 2 queues requested, but the driver cannot set its RSS table";
        let has_note = eth0.notes.iter().any(|note| note.to_string() == because);
        assert_eq!((is_planned, has_note), (is_advised, !is_advised));
    }
}

/// As of ice with more queues than vectors (`TxRx-0-1`): a vector serves two queues that follow each other.
#[test]
fn the_first_queues_are_on_vectors_of_their_own_while_there_are_any() {
    let mut machine = host::machine(1, 8, 1, 8);
    host::add(&mut machine, "eth0", Some(0), 16);
    let eth0 = &mut machine.interfaces[0];
    eth0.vectors.truncate(8);
    for (vector, queue) in eth0.vectors.iter_mut().zip(0..) {
        vector.queue = Some(2 * queue);
    }
    eth0.rss = Some(Rss {
        table: (0..128).map(|at| at % 16).collect(),
        queues: 16,
        function: 1,
    });
    let first = |count| {
        let plan = host::plan_with(&machine, &[("rss", count)], &[]);
        let rss = host::of(&plan, "eth0").rss.clone().unwrap();
        rss.queues.unwrap().to_string()
    };
    assert_eq!(first("8"), "0,2,4,6,8,10,12,14");
    assert_eq!(first("3"), "0,2,4");
    assert_eq!(first("10"), "0-4,6,8,10,12,14");
}

/// A queue whose vector cannot be moved from an isolated or remote CPU gets no flows, and is a finding without `--rss`.
#[test]
fn vectors_that_cannot_be_moved_are_left_out() {
    let mut machine = host::machine(2, 4, 1, 4);
    host::add(&mut machine, "eth0", Some(0), 4);
    let eth0 = &mut machine.interfaces[0];
    eth0.rss = Some(Rss {
        table: (0..128).map(|at| at % 4).collect(),
        queues: 4,
        function: 1,
    });
    eth0.vectors[1].movable = false;
    eth0.vectors[1].effective = Some(CpuSet::single(6));
    let codes = |options: &[(&str, &str)]| {
        let plan = host::plan_with(&machine, options, &[]);
        let eth0 = host::of(&plan, "eth0").clone();
        let notes: Vec<String> = eth0.notes.iter().map(nicpin::plan::Note::code).collect();
        (
            eth0.rss.unwrap().queues.map(|queues| queues.to_string()),
            notes.contains(&"rss-beyond-candidates".to_owned()),
        )
    };
    assert_eq!(codes(&[]), (None, true));
    assert_eq!(
        codes(&[("rss", "candidates")]),
        (Some("0,2-3".to_owned()), false)
    );
    assert_eq!(codes(&[("rss", "4")]), (Some("0-3".to_owned()), true));
    assert_eq!(codes(&[("rss", "1")]), (Some("0".to_owned()), false));
    let plan = host::plan_with(&machine, &[("rss", "candidates")], &[]);
    let script = crate::screen::shell::script(&plan);
    assert!(
        script.contains("ethtool -X eth0 weight 1 0 1 1  #"),
        "{script}"
    );
}

#[test]
fn a_capture_has_the_table() {
    let machine = machine(BLOCKS);
    let out = temporary();
    let file = out.path().join("c.tar.gz");
    ok(&machine.nicpin(&["capture", "--redact-names", "-o", file.to_str().unwrap()]));
    let plan = |root: &str| {
        json(&crate::support::run::nicpin(&[
            "plan",
            "--root",
            root,
            "--rss",
            "candidates",
            "--json",
        ]))
    };
    let (there, here) = (
        plan(file.to_str().unwrap()),
        plan(machine.path("/").to_str().unwrap()),
    );
    assert_eq!(there["interfaces"][0]["rss"], here["interfaces"][0]["rss"]);
    assert_eq!(there["interfaces"][0]["rss"]["queues"], "0-7");
}

/// The switch of accelerated RFS, of drivers that have it and only with RFS.
#[test]
fn ntuple_filters_come_with_rfs_and_go_with_restore() {
    const FEATURES: &str = "/nicpin/ethtool/eth2/features";
    let machine = Copy::of("two-socket-mlx4");
    let ntuple = |on: Option<bool>| serde_json::json!({ "ntuple": on }).to_string() + "\n";
    let (off, on) = (ntuple(Some(false)), ntuple(Some(true)));
    machine.write(FEATURES, &off);
    let without = ok(&machine.nicpin(&["plan", "eth2"]));
    assert!(!without.contains("ntuple"), "{without}");
    let run = |command: &str| machine.nicpin(&[command, "eth2", "--rfs", "32768"]);
    let plan = ok(&run("plan"));
    assert!(plan.contains("ntuple on; accelerated RFS"), "{plan}");
    let script = machine
        .nicpin(&["plan", "eth2", "--rfs", "32768", "--format", "sh"])
        .stdout;
    assert!(
        script.ends_with("\nethtool -K eth2 ntuple on  # eth2: accelerated RFS (now off)\n"),
        "{script}"
    );
    ok(&run("apply"));
    assert_eq!(machine.read(FEATURES), on);
    ok(&run("check"));
    machine.write(FEATURES, &off);
    let check = machine.nicpin(&["check", "-v", "eth2", "--rfs", "32768"]);
    assert_eq!(check.code, 2);
    for part in [
        "ethtool -K eth2 ntuple  off -> on\n",
        "changed since apply, ",
    ] {
        assert!(check.stdout.contains(part), "{}", check.stdout);
    }
    ok(&run("apply"));
    ok(&machine.nicpin(&["restore"]));
    assert_eq!(machine.read(FEATURES), off);
    // Where the driver does not allow it, or it was on before.
    for text in [&ntuple(None), &on] {
        machine.write(FEATURES, text);
        ok(&run("apply"));
        ok(&machine.nicpin(&["restore"]));
        assert_eq!(machine.read(FEATURES), *text);
    }
    // ixgbe has such filters, and no accelerated RFS.
    let other = Copy::of("dl980");
    other.write("/nicpin/ethtool/eth0/features", &off);
    assert!(!ok(&other.nicpin(&["plan", "eth0", "--rfs", "32768"])).contains("ntuple"));
}

#[test]
fn transmit_queues_for_receive_queues() {
    let machine = Copy::of("dl980");
    let before = machine.texts();
    let file = |queue: usize| format!("/sys/class/net/eth0/queues/tx-{queue}/xps_rxqs");
    let rxqs = |queue: usize| machine.read(&file(queue)).trim().to_owned();
    let run = |command: &str| machine.nicpin(&[command, "eth0", "--xps", "rxqs"]);
    assert_eq!((rxqs(0), rxqs(15)), ("0000".to_owned(), "0000".to_owned()));
    let other = Copy::of("two-socket-mlx4");
    let none = "--xps: xps_rxqs requested, but the kernel has none for some of its queues";
    for args in [&["plan"][..], &["check"], &["apply"], &["status"]] {
        other.fails(&[args, &["--xps", "rxqs"]].concat(), 64, &[none]);
    }
    let plan = ok(&machine.nicpin(&["plan", "eth0", "--xps", "rxqs", "--all"]));
    assert!(plan.contains("XPS tx 15 flows of rx 15 first; "), "{plan}");
    ok(&run("apply"));
    assert_eq!(
        (rxqs(0), rxqs(5), rxqs(15)),
        ("0001".to_owned(), "0020".to_owned(), "8000".to_owned())
    );
    ok(&run("check"));
    assert!(ok(&run("apply")).contains("changed=0 "));
    machine.write(&file(5), "0100\n");
    let check = machine
        .nicpin(&["check", "-v", "eth0", "--xps", "rxqs"])
        .stdout;
    for part in ["tx-5 xps_rxqs  rx 8 -> rx 5\n", "changed since apply, "] {
        assert!(check.contains(part), "{check}");
    }
    // The same CPUs as without it, and no note that xps_rxqs takes precedence.
    let json = |xps: &str| json(&machine.nicpin(&["plan", "eth0", "--xps", xps, "--json"]));
    let (with, without) = (json("rxqs"), json("auto"));
    assert_ne!(with["hash"], without["hash"]);
    for (a, b) in with["interfaces"][0]["tx_queues"]
        .as_array()
        .unwrap()
        .iter()
        .zip(without["interfaces"][0]["tx_queues"].as_array().unwrap())
    {
        assert_eq!(a["xps_cpus"], b["xps_cpus"]);
        assert_eq!(
            (&a["xps_rxqs"], b.get("xps_rxqs")),
            (&a["queue"].to_string().into(), None)
        );
    }
    let has_note = |plan: &serde_json::Value| {
        plan["interfaces"][0]["notes"]
            .to_string()
            .contains("xps-rxqs-set")
    };
    assert!(!has_note(&with) && has_note(&without));
    ok(&machine.nicpin(&["restore"]));
    assert_eq!(machine.texts(), before);
}

/// Every receive queue has one transmit queue, whichever are more.
#[test]
fn receive_queues_are_dealt_to_fewer_transmit_queues() {
    let mut machine = host::machine(1, 8, 1, 8);
    host::add(&mut machine, "eth0", Some(0), 6);
    machine.interfaces[0].tx_queues.truncate(4);
    let plan = host::plan_with(&machine, &[("xps", "rxqs")], &[]);
    let rxqs = host::of(&plan, "eth0")
        .tx_queues
        .iter()
        .map(|tx| tx.xps_rxqs.as_ref().unwrap().to_string());
    assert_eq!(rxqs.collect::<Vec<_>>(), ["0,4", "1,5", "2", "3"]);
}
