//! An option that has no effect is refused: every option of every command with each output format. And errors as JSON.

use std::collections::{BTreeMap, BTreeSet};

use clap::{Arg, Command};
use serde_json::Value;
use snapbox::{assert_data_eq, str};

use crate::commands::Cli;
use crate::support::run::{MachineTree, Run, fixture, nicpin};
use crate::support::{is_full, temporary};

/// What commands need to run at all on a copy of a machine.
const NEEDS: [(&str, &[&str]); 6] = [
    ("capture", &["-o", "OUT/capture.tar.gz"]),
    ("completions", &["fish"]),
    ("help", &["states"]),
    ("fleet", &["ROOT"]),
    ("flow", &["NAME", "10.0.0.1:1", "10.0.0.2:2"]),
    ("run", &["NAME", "--dry-run"]),
];

/// Commands that do not end by themselves, do not run on a copy, or never say the same twice.
const NOT_HERE: [&str; 5] = [
    "compare",
    "confirm",
    "irqbalance-policy",
    "measure",
    "watch",
];

/// Values that make a difference on some machine, in the order in which they are tried.
const VALUES: [(&str, &[&str]); 21] = [
    ("irq-cores", &["1"]),
    ("root", &["FIXTURES/x460"]),
    ("config", &["OUT/policy.toml"]),
    ("output", &["OUT/file"]),
    ("seconds", &["0.02"]),
    ("plan", &["OUT/plan.json"]),
    ("node", &["1", "0"]),
    ("cpus", &["1"]),
    ("memory", &["preferred"]),
    ("into", &["OUT"]),
    ("warning", &["101:"]),
    ("critical", &["101:"]),
    ("warning-not-judged", &["0"]),
    ("critical-not-judged", &["0"]),
    ("scope", &["all", "remote"]),
    ("exclude", &["1,40", "1"]),
    ("per", &["l3"]),
    ("xps", &["off"]),
    ("rps", &["0-3", "off"]),
    ("rfs", &["4096"]),
    ("channels", &["1"]),
];

/// Options whose effect is not in what one run on these machines prints and writes.
const ELSEWHERE: [(&str, &str); 25] = [
    ("color", "a preference for all commands"),
    ("wait", "another process has the lock"),
    ("prove", "interrupts that arrive"),
    ("try", "a process that waits"),
    ("atomic", "a write that fails"),
    ("strict", "IRQs that cannot be moved"),
    ("exact", "a machine as good as planned"),
    (
        "detailed-exitcode",
        "the exit code of a machine that differs",
    ),
    ("if-present", "a selector that matches nothing"),
    ("force", "a file that exists"),
    ("bandwidth", "the machine that the tests run on"),
    ("near", "the default, spelled out"),
    ("redact-names", "bytes of an archive"),
    ("identify", "bytes of an archive"),
    ("avoid-exclusive", "exclusive cpuset partitions"),
    ("no-avoid-cpu0", "verdicts that it does not change"),
    ("l3", "verdicts that it does not change"),
    ("siblings", "verdicts that it does not change"),
    ("widen", "a node without enough CPUs"),
    ("rss", "a device with an RSS table"),
    ("rdma", "an RDMA device"),
    ("napi-threads", "threaded NAPI"),
    ("irqbalance", "a running irqbalance"),
    ("fragments", "a flow without ports"),
    ("ports", "source ports to look for"),
];

fn defined() -> Command {
    let mut command = crate::commands::defined().disable_help_subcommand(true);
    command.build();
    command
}

fn ways(arg: &Arg) -> Vec<Vec<String>> {
    let long = arg.get_long().unwrap();
    let name = format!("--{long}");
    if !arg.get_action().takes_values() {
        return vec![vec![name]];
    }
    let known = VALUES.iter().find(|(option, _)| *option == long);
    let words = known.map(|(_, values)| values.iter().map(|value| (*value).to_owned()).collect());
    let values: Vec<String> = words.unwrap_or_else(|| {
        let possible = arg.get_possible_values();
        possible
            .iter()
            .map(|value| value.get_name().to_owned())
            .collect()
    });
    let split = |value: &String| {
        let words = [name.as_str()].into_iter().chain(value.split(' '));
        words.map(str::to_owned).collect()
    };
    assert!(!values.is_empty(), "{name} has no value here");
    values.iter().map(split).collect()
}

/// Machines on which options are tried, each with an interface.
const MACHINES: [(&str, &str); 3] = [
    ("two-node", "nic0"),
    ("four-node", "eth0"),
    ("dl980", "eth0"),
];

const POLICY: &str = "[defaults]\nscope = \"1\"\nxps = \"off\"\n";

/// Exit code, output and written files, without what repeats the options.
fn outcome(
    (machine, interface): (&str, &str),
    words: &[String],
    option: &[String],
) -> (i32, String) {
    let copy = ["apply", "restore"]
        .contains(&&*words[0])
        .then(|| MachineTree::of(machine));
    let root = copy
        .as_ref()
        .map_or(fixture(machine), |copy| copy.path("/"));
    let root = root.to_str().unwrap().trim_end_matches('/');
    let files = temporary();
    let out = files.path().to_str().unwrap();
    std::fs::write(files.path().join("policy.toml"), POLICY).unwrap();
    if option.iter().any(|word| word == "--plan") {
        let plan = nicpin(&["plan", "--json", "--root", root, interface]).stdout;
        std::fs::write(files.path().join("plan.json"), plan).unwrap();
    }
    if let Some(copy) = copy.as_ref().filter(|_| words[0] == "restore") {
        copy.nicpin(&["apply"]);
    }
    let resolved = |word: &String| {
        let word = word.replace("OUT", out).replace("ROOT", root);
        let word = word.replace("FIXTURES", fixture("").to_str().unwrap());
        word.replace("NAME", interface)
    };
    let mut all: Vec<String> = words.iter().chain(option).map(resolved).collect();
    let takes_root = !["fleet", "man", "help", "completions"].contains(&&*words[0]);
    if takes_root && !all.iter().any(|word| word == "--root") {
        all.extend(["--root".to_owned(), root.to_owned()]);
    }
    let run = nicpin(&all.iter().map(String::as_str).collect::<Vec<_>>());
    let written = std::fs::read_dir(files.path()).unwrap();
    let written: BTreeSet<_> = written.map(|file| file.unwrap().file_name()).collect();
    let texts = copy.as_ref().map(MachineTree::texts);
    let mut text = format!("{}{}{written:?}{texts:?}", run.stdout, run.stderr);
    if !option.is_empty() && run.code != 64 {
        let given = option.iter().map(resolved).collect::<Vec<_>>().join(" ");
        text = text.replace(&format!(" {given}"), "");
    }
    let text = text.replace(out, "").replace(root, "");
    let own = text
        .lines()
        .filter(|line| !line.contains("options given here"));
    (run.code, own.collect::<Vec<_>>().join("\n"))
}

/// Changes the outcome on one of the machines, or is refused by its name.
fn has_effect(
    words: &[String],
    way: &[String],
    before: &mut BTreeMap<(usize, Vec<String>), (i32, String)>,
) -> bool {
    // What is refused anyway needs no machine.
    let line = ["nicpin".into()].into_iter();
    if let Err(error) = Cli::of(line.chain(words.iter().chain(way).map(Into::into))) {
        return error.to_string().contains(&way[0]);
    }
    (0..MACHINES.len()).any(|at| {
        let without = before.entry((at, words.to_vec())).or_insert_with(|| {
            let first = outcome(MACHINES[at], words, &[]);
            assert!(
                at > 0 || first == outcome(MACHINES[at], words, &[]),
                "{words:?} differs each time"
            );
            assert_ne!(first.0, 64, "{words:?}: {}", first.1);
            first
        });
        let with = outcome(MACHINES[at], words, way);
        with != *without && (with.0 != 64 || with.1.contains(&way[0]))
    })
}

#[test]
fn an_option_without_an_effect_is_refused() {
    let (mut idle, mut before) = (Vec::new(), BTreeMap::new());
    let (defined, mut tried) = (defined(), 0);
    let globals = defined.get_arguments().filter(|arg| arg.is_global_set());
    let globals: Vec<&Arg> = globals.collect();
    for command in defined
        .get_subcommands()
        .filter(|command| !command.is_hide_set())
    {
        let name = command.get_name();
        if NOT_HERE.contains(&name) {
            continue;
        }
        let needs = NEEDS.iter().find(|(of, _)| *of == name);
        let needs = needs.map_or(&[][..], |(_, needs)| needs);
        let formats = command.get_arguments().find(|arg| arg.get_id() == "format");
        let formats = formats.map_or(vec![String::new()], |arg| {
            let values = arg.get_possible_values();
            values
                .iter()
                .map(|value| value.get_name().to_owned())
                .collect()
        });
        let own = command.get_arguments().filter(|arg| !arg.is_global_set());
        let is_tried = |arg: &&Arg| {
            let Some(long) = arg.get_long() else {
                return false;
            };
            let is_elsewhere = ELSEWHERE.iter().any(|(option, _)| *option == long);
            let is_needed = needs.contains(&&*format!("--{long}"));
            !is_elsewhere && !is_needed && !["format", "json", "help", "version"].contains(&long)
        };
        let options: Vec<&Arg> = own
            .chain(globals.iter().copied())
            .filter(is_tried)
            .collect();
        for (of, format) in formats.iter().enumerate() {
            let mut words = vec![name.to_owned()];
            words.extend(needs.iter().map(|word| (*word).to_owned()));
            if !format.is_empty() {
                words.extend(["--format".to_owned(), format.clone()]);
            }
            for (at, option) in options.iter().enumerate() {
                // In the fast tier every option with the first format, and a third with the others.
                if of > 0 && (at + of) % 3 != 0 && !is_full() {
                    continue;
                }
                // Options that the command has already, and those whose effect shows only with more hosts, connections
                // or ports.
                let long = option.get_long().unwrap();
                let is_known = [
                    // Another machine would be written to.
                    ("apply", "root"),
                    ("restore", "root"),
                    ("capture", "output"),
                    ("fleet", "verbose"),
                    ("flow", "udp"),
                    ("flow", "to-cpu"),
                ];
                if is_known.contains(&(name, long)) {
                    continue;
                }
                tried += 1;
                if !ways(option)
                    .iter()
                    .any(|way| has_effect(&words, way, &mut before))
                {
                    idle.push(format!("{} --{long}", words.join(" ")));
                }
            }
        }
    }
    assert!(
        idle.is_empty(),
        "no effect, and not refused:\n{}",
        idle.join("\n")
    );
    assert!(tried > 150, "only {tried} tried");
}

/// The machine shows an effect of neither option.
#[test]
fn options_beside_others_that_make_them_idle_are_refused() {
    for (line, option) in [
        ("plan --all -v", "--verbose"),
        ("plan --explain --all", "--all"),
        ("plan --workers -v", "--verbose"),
        ("plan --format sh --irqbalance stop", "--irqbalance"),
        ("plan --format sh -q", "--quiet"),
        ("status --all -v", "--verbose"),
        ("check --format nagios --irqbalance ignore", "--irqbalance"),
        ("check --format prometheus -q", "--quiet"),
        ("apply --dry-run --wait 5", "--wait"),
        ("apply --dry-run --strict", "--strict"),
        ("restore --dry-run --wait 5", "--wait"),
        ("measure --json --all", "--all"),
        ("measure --config x", "--config"),
        ("capture --force", "--force"),
        ("draw --force", "--force"),
        ("draw --force -o -", "--force"),
        ("draw --irqbalance stop", "--irqbalance"),
        ("draw --napi-threads keep", "--napi-threads"),
        ("compare --force nic0 -- true", "--force"),
        ("compare -v nic0 -- true", "--verbose"),
        ("confirm -v", "--verbose"),
        ("confirm --config x", "--config"),
        ("watch -q", "--quiet"),
        ("irqbalance-policy -v /sys/x 1", "--verbose"),
    ] {
        let words: Vec<&str> = line.split(' ').collect();
        let run = MachineTree::of("two-node").nicpin(&words);
        let begin = format!("nicpin: {option} ");
        assert!(
            run.code == 64 && run.stderr.starts_with(&begin),
            "{line}: {run:?}"
        );
        // Help leaves out options that the command always refuses.
        let (command, _) = line.split_once(' ').unwrap();
        if run
            .stderr
            .starts_with(&format!("{begin}nicpin {command}\n"))
        {
            let help = nicpin(&[command, "--help"]).stdout;
            assert!(!help.contains(option), "{line}: {help}");
        }
    }
    let capture = temporary();
    let file = capture
        .path()
        .join("capture.tar.gz")
        .to_str()
        .unwrap()
        .to_owned();
    MachineTree::of("two-node").nicpin(&["capture", "-o", &file]);
    let run = nicpin(&["status", "--seconds", "1", "--root", &file]);
    assert_eq!(
        (run.code, &*run.stderr),
        (
            64,
            "nicpin: --seconds has no effect: a capture has no counters\n"
        )
    );
    assert_eq!(
        nicpin(&["status", "--seconds", "0", "--root", &file]).code,
        0
    );
}

fn error_of(run: &Run) -> Value {
    let last = run.stdout.lines().last().unwrap_or_default();
    serde_json::from_str(last).unwrap_or_else(|e| panic!("{e}: {run:?}"))
}

#[test]
fn an_error_is_json_where_json_was_asked_for() {
    let machine = MachineTree::of("two-node");
    for (args, code, text) in [
        (&["plan", "--json", "eth9"][..], 1, "`eth9`"),
        (&["plan", "--format", "json", "eth9"], 1, "`eth9`"),
        (&["check", "--format=json", "eth9"], 1, "`eth9`"),
        (&["apply", "-j", "eth9"], 1, "`eth9`"),
        (&["--json", "eth9"], 1, "`eth9`"),
        (&["measure", "-wj", "eth9"], 1, "`eth9`"),
        (
            &["flow", "--json", "eth9", "10.0.0.1:1", "10.0.0.2:2"],
            1,
            "eth9",
        ),
        (
            &["nodes", "--json", "--bandwidth"],
            64,
            "--bandwidth measures this machine",
        ),
        (
            &["fleet", "--json"],
            64,
            "required arguments were not provided: <FILE>...",
        ),
        (
            &["plan", "--jsno", "--json"],
            64,
            "unexpected argument '--jsno' found",
        ),
        (
            &["plan", "--json", "--masks"],
            64,
            "--masks has no effect with --format json",
        ),
        (&["plan", "--json", "--exclude", "0-7"], 64, "--exclude: "),
        (
            &["apply", "--json", "--plan", "-", "--scope=all"],
            64,
            "'--plan <FILE|->' cannot be used with '--scope <",
        ),
        (
            &["apply", "--json", "--plan", "-", "nic0"],
            64,
            "'--plan <FILE|->' cannot be used with '[SELECTOR]...'",
        ),
        (
            &["run", "nic0", "--json", "--", "true"],
            64,
            "unexpected argument '--json' found",
        ),
        (
            &["confirm", "--json"],
            64,
            "unexpected argument '--json' found",
        ),
    ] {
        let run = machine.nicpin(args);
        let error = error_of(&run);
        assert_eq!(
            (run.code, run.stdout.lines().count()),
            (code, 1),
            "{args:?}: {run:?}"
        );
        assert_eq!(error["schema"], "nicpin.error/1", "{args:?}");
        assert_eq!(error["exit"], code, "{args:?}");
        let said = error["error"].as_str().unwrap();
        assert!(said.contains(text), "{args:?}: {said}");
        let line = run.stderr.lines().next().unwrap();
        let line = line
            .strip_prefix("nicpin: ")
            .unwrap_or_else(|| panic!("{run:?}"));
        assert!(
            said.starts_with(line.trim_end_matches(':')),
            "{line}\n{said}"
        );
    }
    for args in [
        &["plan", "eth9"][..],
        &["plan", "--format", "yaml"],
        &["draw", "-o", "/no/j.svg"],
    ] {
        let run = machine.nicpin(args);
        assert!(run.code != 0 && run.stdout.is_empty(), "{run:?}");
        assert!(run.stderr.starts_with("nicpin: "), "{run:?}");
    }
    // Words of another command are not nicpin's, and earlier output stays.
    let root = machine.path("/");
    let measure = |args: &[&str]| {
        let before = [
            "measure",
            "--root",
            root.to_str().unwrap(),
            "--seconds",
            "9",
        ];
        nicpin(&[&before, args].concat())
    };
    let run = measure(&["nic0", "--", "sh", "-c", "exit 3", "--json"]);
    assert!(
        run.code == 3 && !run.stdout.contains("nicpin.error"),
        "{run:?}"
    );
    let run = measure(&["--json", "nic0", "--", "sh", "-c", "exit 3"]);
    assert_eq!((run.code, run.stdout.lines().count()), (3, 2), "{run:?}");
    assert_eq!(error_of(&run)["exit"], 3);
}

#[test]
fn the_explanation_is_in_the_json_too() {
    let machine = MachineTree::of("dl980");
    let plan = |args: &[&str]| -> Value {
        let run = machine.nicpin(&[&["plan", "--json", "eth4"], args].concat());
        run.json()
    };
    let (mut explained, without) = (plan(&["--explain"]), plan(&[]));
    let lines = explained
        .as_object_mut()
        .unwrap()
        .remove("explanation")
        .unwrap();
    assert_eq!(explained, without);
    let lines: Vec<&str> = lines["eth4"]
        .as_array()
        .unwrap()
        .iter()
        .map(|line| line.as_str().unwrap())
        .collect();
    assert_data_eq!(
        lines.join("\n"),
        str![[r#"
eth4 bnx2x 0000:d3:00.0, 10 Gbit/s, node 7: CPUs 56-63,120-127 (8 cores)
node 7: numa_node of 0000:d3:00.0
queue 0 IRQ 148 any CPU (on 1) -> CPU 56 local (node 7), eth4-fp-0 by its name, as {if}-fp-{n} = combined; core 56,120 had 0 queues, the cache of CPUs 56-63,120-127 had 0
queue 1 IRQ 149 any CPU (on 2) -> CPU 57 local (node 7), eth4-fp-1 by its name, as {if}-fp-{n} = combined; core 57,121 had 0 queues, the cache of CPUs 56-63,120-127 had 1
queue 2 IRQ 150 any CPU (on 3) -> CPU 58 local (node 7), eth4-fp-2 by its name, as {if}-fp-{n} = combined; core 58,122 had 0 queues, the cache of CPUs 56-63,120-127 had 2
queue 3 IRQ 151 any CPU (on 4) -> CPU 59 local (node 7), eth4-fp-3 by its name, as {if}-fp-{n} = combined; core 59,123 had 0 queues, the cache of CPUs 56-63,120-127 had 3
control IRQ 147 unchanged control IRQ; unchanged, eth4 by its name, as {if} = combined if alone
XPS tx 0 none -> CPUs 0-1,8-9,16-17,24-25,32-33,40-41,48-49,56,60,64-65,72-73,80-81,88-89,96-97,104-105,112-113,120,124; nearest to the queue's CPU
XPS tx 1 none -> CPUs 2-3,10-11,18-19,26-27,34-35,42-43,50-51,57,61,66-67,74-75,82-83,90-91,98-99,106-107,114-115,121,125; nearest to the queue's CPU
XPS tx 2 none -> CPUs 4-5,12-13,20-21,28-29,36-37,44-45,52-53,58,62,68-69,76-77,84-85,92-93,100-101,108-109,116-117,122,126; nearest to the queue's CPU
XPS tx 3 none -> CPUs 6-7,14-15,22-23,30-31,38-39,46-47,54-55,59,63,70-71,78-79,86-87,94-95,102-103,110-111,118-119,123,127; nearest to the queue's CPU
RPS rx 0 off; the device can have more queues
RPS rx 1 off; the device can have more queues
RPS rx 2 off; the device can have more queues
RPS rx 3 off; the device can have more queues
"#]]
    );
    let stored = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(stored.path(), plan(&["--explain"]).to_string()).unwrap();
    let run = machine.nicpin(&["apply", "--plan", stored.path().to_str().unwrap()]);
    assert_eq!(run.code, 0, "{run:?}");
}

#[test]
fn verbose_lists_what_apply_and_restore_have_written() {
    let machine = MachineTree::of("two-node");
    let brief = machine.nicpin(&["apply", "--dry-run"]).stdout;
    let list = machine.nicpin(&["apply", "-v"]).stdout;
    let lines = |text: &str| {
        text.lines()
            .filter(|line| line.contains(" -> ") && line.contains("/proc/irq/"))
            .count()
    };
    assert_eq!(lines(&brief), 0);
    let writes = lines(&list);
    assert!(writes > 1, "{list}");
    assert_eq!(
        lines(&machine.nicpin(&["restore", "--verbose"]).stdout),
        writes
    );
    assert_eq!(lines(&machine.nicpin(&["apply"]).stdout), 0);
}
