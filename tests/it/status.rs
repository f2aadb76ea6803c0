//! `nicpin status`: every shipped machine before and after an apply, the screen, and what it refuses.
//! `SNAPSHOTS=overwrite cargo test --test it -- status::` rewrites the expected output; read the difference before you
//! commit it.

use std::collections::BTreeMap;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use serde_json::{Value, json};
use snapbox::{assert_data_eq, str};

use crate::support::is_full;
use crate::support::machine::{Card, MachineSpec, Port, card, two_nodes};
use crate::support::run::{
    FIXTURES, MachineTree, assert_line, document, expect, fixture, nicpin, note, text,
};

/// The column of queues counts one direction, and a reason never more queues than there are.
#[test]
fn counts_of_queues_agree() {
    let names = [
        "eth0-rx-0",
        "eth0-tx-0",
        "eth0-tx-1",
        "eth0-tx-2",
        "eth0-tx-3",
    ];
    let port = Port::new("eth0", 1000, 1, 4).channels([1, 4, 0, 0], [1, 4, 0, 0]);
    let sends = MachineTree::build(&two_nodes([card("igb", port, 31, &names)]));
    let eth0 = &document(&sends, &["status"])["interfaces"][0];
    let counts = ["queues", "max_queues"].map(|key| &eth0[key]);
    assert_eq!(counts, [4, 4]);
    let row = sends.nicpin(&[]).stdout;
    let row = row.lines().find(|line| line.starts_with("eth0 "));
    assert_data_eq!(
        row.unwrap(),
        str!["eth0 is crowded: queues share cores needlessly. Fix: nicpin apply (10 writes)"]
    );
    let port = Port::new("eth0", 1000, 2, 2);
    let unknown = MachineTree::build(&two_nodes([card(
        "newnic",
        port,
        31,
        &["a", "b", "c", "d"],
    )]));
    for irq in 31..35 {
        unknown.put(&format!("proc/irq/{irq}/smp_affinity"), "20");
        let file = format!("proc/irq/{irq}/effective_affinity_list");
        unknown.put(&file, "5");
    }
    let check = unknown.nicpin(&["check", "--json"]).json();
    let eth0 = &check["interfaces"][0];
    let counts = ["state", "queue_vectors", "local"].map(|key| &eth0[key]);
    assert_eq!(counts, [&json!("remote"), &json!(4), &json!(0)]);
    expect("data-vectors.check.txt", unknown.nicpin(&["check"]).stdout);
}

#[test]
fn every_machine_looks_as_expected() {
    for name in FIXTURES {
        let machine = MachineTree::of(name);
        let found = machine.nicpin(&["status"]);
        assert_eq!((found.code, found.stderr.as_str()), (0, ""), "{name}");
        expect(&format!("{name}.status.txt"), found.stdout);
        assert_eq!(machine.nicpin(&["apply"]).code, 0);
        let applied = machine.nicpin(&["status"]);
        assert_eq!((applied.code, applied.stderr.as_str()), (0, ""), "{name}");
        expect(&format!("{name}.applied.txt"), applied.stdout);
    }
}

#[test]
fn the_json_form_is_as_expected() {
    let run = nicpin(&[
        "--root",
        fixture("two-socket-mlx4").to_str().unwrap(),
        "status",
        "--format",
        "json",
    ]);
    expect("two-socket-mlx4.status.json", run.stdout);
}

/// What comes before a command to be copied.
const COMMANDS: [&str; 5] = [
    "  taskset ",
    "  numactl ",
    "  dpdk ",
    "              CPUAffinity=",
    "kubelet ",
];

/// Every screen of every shipped machine at the width of the terminal. Only commands to be copied may be longer.
#[test]
fn screens_fit_the_terminal_and_cut_nothing() {
    let shipped = FIXTURES.map(|name| (name, MachineTree::of(name)));
    let screens = [
        &["status"][..],
        &["status", "-v"],
        &["status", "--all"],
        &["check"],
        &["check", "-v"],
        &["plan"],
        &["plan", "--all", "--masks"],
        &["plan", "--explain"],
        &["plan", "--workers"],
        &["nodes"],
    ];
    let server = [("server", MachineTree::unpacked("server.tar.gz"))];
    for (at, (name, machine)) in shipped.iter().chain(&server).enumerate() {
        let is_every_width = *name == "two-socket-mlx4";
        for (nth, args) in screens.into_iter().enumerate() {
            // In the fast tier a third of the screens of a machine.
            if !is_every_width && !is_full() && (at + nth) % 3 != 0 {
                continue;
            }
            let widths: &[(u16, usize)] = if is_every_width {
                &[(80, 80), (20, 60), (250, 200)]
            } else {
                &[(80, 80)]
            };
            for &(width, fits) in widths {
                let screen = machine.nicpin_on_terminal(args, width);
                assert!(
                    !screen.contains("..") && !screen.is_empty(),
                    "{name} {args:?}: {screen}"
                );
                let rows = screen
                    .lines()
                    .skip_while(|line| !line.starts_with("INTERFACE "));
                let mut rows = rows.take_while(|line| !line.is_empty());
                assert!(
                    width < 80
                        || ![&["status"][..], &["check"]].contains(&args)
                        || rows.all(|row| !row.starts_with(' ')),
                    "{name} {args:?} at {width}: {screen}"
                );
                for line in screen.lines().filter(|line| line.chars().count() > fits) {
                    let is_command = COMMANDS.iter().any(|command| line.contains(command));
                    assert!(
                        is_command || width == 20,
                        "{name} {args:?} at {width}: {line}"
                    );
                }
            }
        }
    }
}

/// 112 CPUs and ten interfaces: a row each in 80 columns, and nothing cut.
#[test]
fn a_large_server_is_one_screen() {
    let machine = MachineTree::unpacked("server.tar.gz");
    let lines = |args: &[&str]| machine.nicpin(args).stdout.lines().count();
    for (args, most) in [(&["status"][..], 45), (&["check"], 45)] {
        let screen = machine.nicpin_on_terminal(args, 80);
        assert!(screen.lines().count() <= most, "{screen}");
        for name in ["ens3f0", "ens1f0", "enp25s0f0", "ens1f0v3"] {
            let rows = screen
                .lines()
                .filter(|line| line.split(' ').next() == Some(name));
            assert_eq!(rows.count(), 1, "{name}: {screen}");
        }
    }
    let plan = machine.nicpin_on_terminal(&["plan"], 100);
    assert!(plan.lines().count() <= 120, "{plan}");
    expect("server.status.txt", machine.nicpin(&["status"]).stdout);
    expect("server.check.txt", machine.nicpin(&["check"]).stdout);
    expect("server.txt", machine.nicpin(&["plan"]).stdout);
    assert!(lines(&["status", "-v"]) > 500 && lines(&["status", "--all"]) > 1000);
    assert!(lines(&["check", "-v"]) > 1000 && lines(&["plan", "-v"]) > 1000);
}

/// Nothing is wrong with a machine that was never applied and whose vectors are local.
#[test]
fn only_what_apply_has_set_can_drift() {
    let machine = MachineTree::of("tg3-and-ixgbe");
    let states = |machine: &MachineTree| {
        let of = |command: &str| -> BTreeMap<String, String> {
            let report = machine.nicpin(&[command, "--json"]).json();
            let state = |of: &Value| text(of, "state").to_owned();
            let interfaces = report["interfaces"].as_array().unwrap().iter();
            let each = interfaces.map(|of| (text(of, "name").to_owned(), state(of)));
            each.chain([("worst".to_owned(), state(&report))]).collect()
        };
        let states = of("status");
        assert_eq!(states, of("check"));
        states
    };
    assert!(
        states(&machine).values().all(|state| state == "crowded"),
        "{:?}",
        states(&machine)
    );
    assert_eq!(machine.nicpin(&["apply"]).code, 0);
    assert!(
        states(&machine).values().all(|state| state == "pending"),
        "{:?}",
        states(&machine)
    );
    // XPS of another program: the score stays as it is.
    machine.write("/sys/class/net/p6p1/queues/tx-3/xps_cpus", "001\n");
    assert_eq!(states(&machine)["p6p1"], "drifted");
    let found = document(&machine, &["status", "p6p1"]);
    assert_eq!(found["interfaces"][0]["drifted"], 1);
    expect("drifted.status.txt", machine.nicpin(&["status"]).stdout);
    machine.remove("/run/nicpin/state.json");
    assert_eq!(states(&machine)["p6p1"], "untuned");
    assert_eq!(states(&machine)["em1"], "pending");
}

/// The line on what the plan gains: on one screen, and in full.
fn gain(machine: &MachineTree, args: &[&str]) -> Option<String> {
    gain_of(&machine.nicpin(&[&["status"], args].concat()).stdout)
}

fn gain_of(screen: &str) -> Option<String> {
    let (_, gain) = screen.split_once("\nWith the plan: ")?;
    let (gain, _) = gain.split_once(".\n")?;
    Some(gain.replace('\n', " "))
}

/// In full each measure of the objective, and nothing where none changes. Else three, and what reads without the objective
/// where there is any.
#[test]
fn what_the_plan_gains_is_three_measures_and_in_full_all() {
    let machine = MachineTree::of("two-socket-mlx4");
    assert_eq!(machine.nicpin(&["apply"]).code, 0);
    machine.settle();
    assert_eq!((gain(&machine, &[]), gain(&machine, &["-v"])), (None, None));
    machine.write("/sys/class/net/eth2/queues/tx-3/xps_cpus", "001\n");
    assert_data_eq!(
        gain(&machine, &[]).unwrap(),
        str!["CPUs not assigned to one tx queue 3 -> 0"]
    );
    machine.write("/proc/irq/71/smp_affinity", "001\n");
    machine.write("/proc/irq/71/effective_affinity_list", "0\n");
    assert_data_eq!(
        gain(&machine, &[]).unwrap(),
        str!["IRQs on another node 1 -> 0, CPUs that send through a farther node 8 -> 0"]
    );
    assert_line(
        gain(&machine, &["-v"]).unwrap(),
        str![[r"
local queues 90% -> 100%, IRQs on another node 1 -> 0, IRQs outside the allowed CPUs 1 -> 0, CPUs that send through a farther node 8 -> 0, CPUs not assigned to one tx queue 3 -> 0

"]],
    );
}

/// What gets worse is named also where more than three measures get better.
#[test]
fn what_the_plan_makes_worse_is_always_named() {
    let server = fixture("server.tar.gz");
    let of = |args: &[&str]| {
        let run = nicpin(&[args, &["--root", server.to_str().unwrap()]].concat());
        gain_of(&run.stdout).unwrap()
    };
    let short = of(&["status"]);
    assert_eq!(short, of(&["plan"]));
    let full = of(&["plan", "-v"]);
    assert_eq!(
        (&full, &full),
        (&of(&["plan", "--explain"]), &of(&["status", "-v"]))
    );
    let gains = [short, full].map(|gain| gain.replace(", ", ",\n"));
    assert_data_eq!(
        gains.join("\n\n"),
        str![[r"
IRQs on another node 224 -> 0,
pairs of queues that share a core 2439 -> 2994 (worse),
queues unevenly spread over an interface's cores 0 -> 7 (worse),
RDMA IRQs on the busiest core 8 -> 9 (worse)

IRQs on another node 224 -> 0,
queues on the busiest core 18 -> 14,
load of the busiest core -20% (11979 -> 9499 Mbit/s),
pairs of queues that share a core 2439 -> 2994 (worse),
queues unevenly spread over an interface's cores 0 -> 7 (worse),
queues 0 on one core 8 -> 1,
queues unevenly spread over a core's threads 15 -> 0,
RDMA IRQs off the local node 224 -> 0,
RDMA IRQs on the busiest core 8 -> 9 (worse),
CPUs not assigned to one tx queue 574 -> 26
"]]
    );
}

/// Where all cards share the busiest core, it stands below the table once, and each row has its own queues.
#[test]
fn queues_of_all_cards_on_the_busiest_core_stand_below_the_table() {
    let machine = MachineTree::of("tg3-and-ixgbe");
    let loads = |machine: &MachineTree| -> Vec<Value> {
        let status = document(machine, &["status"]);
        let interfaces = status["interfaces"].as_array().unwrap().iter();
        let keys = [
            "own_per_core",
            "own_per_core_planned",
            "max_per_core",
            "max_per_core_planned",
        ];
        let load = |of: &Value| keys.iter().map(|key| of[key].clone()).collect();
        let mut loads: Vec<Value> = interfaces.map(load).collect();
        loads.sort_by_key(ToString::to_string);
        loads
    };
    assert_eq!(loads(&machine), [json!([2, 1, 6, 2]), json!([4, 1, 6, 2])]);
    assert_eq!(machine.nicpin(&["apply"]).code, 0);
    // Also until the IRQs have moved.
    assert_eq!(loads(&machine), [json!([1, 1, 2, 2]), json!([1, 1, 2, 2])]);
    machine.settle();
    expect("settled.status.txt", machine.nicpin(&["status"]).stdout);
}

/// That one queue for each core is enough comes before all other notes, also where nobody knows what the driver can do. Of
/// many names there are three, and with -v all.
#[test]
fn notes_begin_with_the_number_of_queues_and_name_a_few_irqs() {
    let machine = MachineTree::of("two-node");
    let screen = |args: &[&str]| machine.nicpin(&[args, &["nic0"]].concat()).stdout;
    let names = machine.read("/proc/interrupts");
    let odd = ["virtio0-input", "virtio1-input"]
        .iter()
        .fold(names.clone(), |text, name| text.replace(name, "strange"));
    let odd = ["virtio0-output", "virtio1-output"]
        .iter()
        .fold(odd, |text, name| text.replace(name, "odd"));
    machine.write("/proc/interrupts", &odd);
    let data = document(&machine, &["plan", "nic0"]);
    let vectors = &note(&data["interfaces"][0], "data-vectors")["vectors"];
    assert_eq!(vectors.as_array().unwrap().len(), 8);
    let names_of_irqs = screen(&["plan"]) + "\n" + &screen(&["plan", "-v"]);
    machine.write("/proc/interrupts", &names);
    let advice =
        screen(&["plan", "--irq-cores", "1"]) + "\n" + &screen(&["plan", "-v", "--irq-cores", "1"]);
    expect("notes.txt", names_of_irqs + "\n" + &advice);
}

/// Nothing but what is said of the watcher depends on it.
#[test]
fn a_watcher_whose_state_cannot_be_read_keeps_no_command_from_its_report() {
    let machine = MachineTree::of("two-node");
    assert_eq!(machine.nicpin(&["apply"]).code, 0);
    machine.write("/run/nicpin/watch.json", "{");
    for args in [
        &["status"][..],
        &["check"],
        &["check", "--format", "prometheus"],
    ] {
        let run = machine.nicpin(args);
        assert!(run.code == 0 && !run.stdout.is_empty(), "{run:?}");
        assert_data_eq!(
            machine.rooted(&run.stderr),
            str![[r"
nicpin: ROOT/run/nicpin/watch.json: not the state of a watcher (EOF while parsing an object at line 1 column 1); it cannot be shown; fix: move the file away (what it says is lost) and run again

"]]
        );
    }
    // One may run: it is paused.
    let restored = machine.nicpin(&["restore", "--json"]);
    assert_eq!(
        (restored.code, &restored.json()["watcher_paused"]),
        (0, &json!(true))
    );
    assert_eq!(machine.nicpin(&["apply", "--try", "3600"]).code, 0);
    assert_eq!(machine.nicpin(&["restore"]).code, 0);
}

#[test]
fn no_command_means_status() {
    let machine = MachineTree::of("two-socket-mlx4");
    let whole = machine.nicpin(&["status"]);
    let one = machine.nicpin(&["status", "eth2"]);
    assert_ne!(whole.stdout, one.stdout);
    let status = document(&machine, &["status", "eth2"]);
    let [eth2] = status["interfaces"].as_array().unwrap().as_slice() else {
        panic!("{status}");
    };
    assert_eq!(eth2["name"], "eth2");
    assert_eq!(machine.nicpin(&[]).stdout, whole.stdout);
    assert_eq!(machine.nicpin(&["eth2"]).stdout, one.stdout);
    let every = machine.nicpin(&["status", "--all"]).stdout;
    assert_eq!(machine.nicpin(&["--all"]).stdout, every);
    assert!(
        every.lines().count() > whole.stdout.lines().count(),
        "{every}"
    );
    let first = nicpin(&[
        "--root",
        fixture("two-socket-mlx4").to_str().unwrap(),
        "eth2",
    ]);
    assert_eq!((first.code, first.stdout), (0, one.stdout));
}

#[test]
fn a_misspelt_command_is_a_usage_error_and_a_missing_interface_is_not() {
    let machine = MachineTree::of("two-socket-mlx4");
    assert_data_eq!(
        machine.fails(&["chekc"], 64),
        str![[r"
nicpin: `chekc` is neither a command nor an interface; did you mean `nicpin check`?

"]]
    );
    // Some are a letter or two from a command.
    let absent = ["eth7", "wlan0", "flow0", "node:9"];
    let said = absent.map(|name| machine.fails(&[name], 1));
    assert_data_eq!(
        said.concat(),
        str![[r"
nicpin: no interface matches `eth7`; there is eth0, eth2
nicpin: no interface matches `wlan0`; there is eth0, eth2
nicpin: no interface matches `flow0`; there is eth0, eth2
nicpin: no interface matches `node:9`; there is node:0, node:1

"]]
    );
    for seconds in ["-1", "1d", "nan", "100000"] {
        assert_eq!(
            machine
                .nicpin(&["status", &format!("--seconds={seconds}")])
                .code,
            64,
            "{seconds}"
        );
    }
}

/// Kernels that do not report effective CPUs keep offline CPUs in an affinity, and deliver to the others.
#[test]
fn offline_cpus_in_an_affinity_are_not_remote() {
    let machine = MachineTree::of("two-node");
    let plan = machine.nicpin(&["plan", "--json", "nic1"]).json();
    for vector in plan["interfaces"][0]["vectors"].as_array().unwrap() {
        let irq = format!("/proc/irq/{}", vector["irq"]);
        machine.write(&format!("{irq}/smp_affinity"), "f0\n");
        machine.remove(&format!("{irq}/effective_affinity_list"));
    }
    machine.write("/sys/devices/system/cpu/online", "0-6\n");
    let status = machine.nicpin(&["status", "--json", "nic1"]).json();
    assert_eq!(status["score_now"]["outside"], 0);
    let nic1 = &status["interfaces"][0];
    assert_eq!(nic1["local"], nic1["queue_vectors"], "{nic1}");
    assert_ne!(nic1["state"], "remote");
    // Offline CPUs alone are where nothing is.
    for vector in plan["interfaces"][0]["vectors"].as_array().unwrap() {
        machine.write(&format!("/proc/irq/{}/smp_affinity", vector["irq"]), "80\n");
    }
    assert_eq!(machine.nicpin(&["check", "nic1"]).code, 2);
}

/// Where a machine has one CPU, all is as planned: a kernel without `CONFIG_SMP` has no `smp_affinity`, one with `nosmp`
/// lets nobody write it, and `maxcpus=1` leaves one online.
#[test]
fn on_one_cpu_all_is_as_planned() {
    for (has_files, possible) in [(false, "0\n"), (true, "0\n"), (true, "0-7\n")] {
        let machine = MachineTree::of("two-node");
        for (file, cpus) in [("possible", possible), ("online", "0\n")] {
            machine.write(&format!("/sys/devices/system/cpu/{file}"), cpus);
        }
        for irq in std::fs::read_dir(machine.path("/proc/irq")).unwrap() {
            for file in std::fs::read_dir(irq.unwrap().path()).unwrap() {
                let file = file.unwrap().path();
                if has_files && file.ends_with("smp_affinity") {
                    std::fs::write(&file, "1\n").unwrap();
                    let mode = if possible == "0\n" { 0o444 } else { 0o644 };
                    std::fs::set_permissions(file, Permissions::from_mode(mode)).unwrap();
                } else {
                    std::fs::remove_file(file).unwrap();
                }
            }
        }
        assert_eq!(machine.nicpin(&["status"]).code, 0);
        let applied = machine.nicpin(&["apply", "--json"]);
        assert_eq!(applied.code, 0, "{}{}", applied.stdout, applied.stderr);
        let applied = applied.json();
        assert_eq!(applied["results"], json!([]));
        let check = machine.nicpin(&["check", "--json"]);
        let check = check.json();
        assert_eq!(check["state"], "unproven");
        assert_eq!(check["unmovable"], json!([]));
    }
    // Which queues its IRQs serve makes no difference.
    let mut spec = MachineSpec::new(&["0"]);
    let card = Card::new(
        "newnic",
        "pci0000:00",
        "0000:05:00.0",
        0,
        "8.0 GT/s PCIe",
        4,
    );
    let card = card.port(Port::new("eth0", 1000, 2, 2));
    spec.cards = vec![card.vectors(30, ["newnic-a", "newnic-b"], &[0], &[0])];
    let check = MachineTree::build(&spec).nicpin(&["check", "--json"]);
    let (code, check) = (check.code, check.json());
    assert_eq!((code, &check["state"]), (0, &json!("unproven")));
    assert_eq!(check["not_judged"], json!([]));
}

#[test]
fn status_needs_no_root_and_writes_nothing() {
    let machine = MachineTree::of("dl980");
    let expected = machine.nicpin(&["status"]).stdout;
    machine.open_to_all();
    let before = machine.snapshot();
    assert_eq!(machine.nicpin_as_nobody(&["status"]).stdout, expected);
    assert_eq!(machine.snapshot(), before);
}

#[test]
fn a_watched_tree_has_no_interrupts() {
    let machine = MachineTree::of("two-node");
    assert_eq!(machine.nicpin(&["apply"]).code, 0);
    for (irq, cpu) in effective_cpus(&machine) {
        machine.write(
            &format!("/proc/irq/{irq}/effective_affinity_list"),
            &format!("{cpu}\n"),
        );
        machine.write(
            &format!("/proc/irq/{irq}/effective_affinity"),
            &format!("{:x}\n", 1 << cpu),
        );
    }
    let status = |args: &[&str]| document(&machine, &[&["status"], args].concat());
    let watched = ["--seconds", "0.01"];
    for (args, per_second) in [(&[][..], Value::Null), (&watched, json!(0.0))] {
        let status = status(args);
        assert_eq!(status["state"], "unproven");
        assert_eq!(status["seconds"].is_null(), per_second.is_null());
        let interfaces = status["interfaces"].as_array().unwrap();
        let mut counted = interfaces.iter().map(|of| &of["per_second"]);
        assert!(counted.all(|counted| *counted == per_second), "{status}");
    }
    let screens = [&["status"][..], &[&["status"], &watched[..]].concat()]
        .map(|args| machine.nicpin(args).stdout);
    let verdicts = screens
        .each_ref()
        .map(|screen| screen.lines().next().unwrap());
    assert_data_eq!(
        verdicts.join("\n"),
        str![[r"
Both interfaces are as planned; interrupts were not watched.
Both interfaces are as planned; 2 of 2 interfaces had no interrupt in [..] s.
"]]
    );
}

/// The planned vectors of a machine in the planned state, and their CPUs.
fn effective_cpus(machine: &MachineTree) -> Vec<(u32, u32)> {
    let json = machine.nicpin(&["plan", "--format", "json"]).stdout;
    let plan: nicpin::plan::Plan = serde_json::from_str(&json).unwrap();
    let vectors = plan
        .interfaces
        .iter()
        .flat_map(|interface| &interface.vectors);
    vectors
        .filter_map(|vector| Some((vector.irq, vector.cpus.as_ref()?.first()?)))
        .collect()
}

#[test]
fn colour_is_for_terminals() {
    let root = fixture("two-socket-mlx4");
    let run = |variables: &[(&str, &str)]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_nicpin"));
        command
            .arg("--root")
            .arg(&root)
            .env_remove("NO_COLOR")
            .envs(variables.iter().copied());
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    };
    let plain = run(&[]);
    assert!(!plain.contains('\x1b'), "{plain}");
    let coloured = run(&[("CLICOLOR_FORCE", "1")]);
    assert!(coloured.contains("\x1b["), "{coloured}");
    assert_eq!(run(&[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]), plain);
}

#[test]
fn the_commands_on_screen_have_the_given_options() {
    let machine = MachineTree::of("dl980");
    let options = ["--exclude", "0-3", "--config", "/dev/null"];
    let status = document(&machine, &[&["status"], &options[..]].concat());
    for interface in status["interfaces"].as_array().unwrap() {
        let fix = "nicpin apply --exclude 0-3 --config /dev/null";
        let fix = format!("{fix} {}", text(interface, "name"));
        assert_eq!(text(interface, "fix"), fix);
    }
    let screens = [
        &["plan", "--if-present", "eth9", "eth1"][..],
        &["plan", "--exclude", "0-3", "eth4"],
        &[&["status"], &options[..], &["eth4"]].concat(),
    ];
    let screens = screens.map(|args| machine.nicpin(args).stdout);
    expect("commands-on-screen.txt", screens.join("\n"));
}

/// IRQs of one interface have yet to move, and two of the other have exchanged their CPUs.
#[test]
fn settings_that_are_as_good_are_not_said_to_be_as_planned() {
    let machine = MachineTree::of("two-socket-mlx4");
    assert_eq!(machine.nicpin(&["apply"]).code, 0);
    let states = || -> [Value; 2] {
        let status = document(&machine, &["status"]);
        [0, 1].map(|at: usize| status["interfaces"][at]["state"].clone())
    };
    let verdict = || {
        let screen = machine.nicpin(&["status"]).stdout;
        screen.lines().next().unwrap().to_owned()
    };
    assert_eq!(states(), ["pending", "pending"]);
    let applied = verdict();
    for (irq, cpu) in effective_cpus(&machine) {
        if (71..=76).contains(&irq) {
            let file = format!("/proc/irq/{irq}/effective_affinity_list");
            machine.write(&file, &format!("{cpu}\n"));
        }
    }
    machine.exchange([72, 74]);
    assert_eq!(states(), ["pending", "equivalent"]);
    assert_data_eq!(
        [applied, verdict()].join("\n"),
        str![[r"
Both interfaces are set as planned; 10 IRQs move at the next interrupt.
Both interfaces are set as planned, or as good; 4 IRQs move at the next interrupt.
"]]
    );
}
