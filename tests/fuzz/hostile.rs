//! Whole machines that are made to break nicpin: a shipped machine with extreme numbers, deep paths, links that run in
//! circles, odd files, and strange characters in every text that is printed. Each command that reads is run.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::{Duration, Instant};

use clap::Parser as _;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike as _;

use super::{seeds, targets};
use crate::commands::Cli;
use crate::screen::page::Screen;
use crate::{commands, screen};
use nicpin::machine::sample::{CounterSelection, Delta};
use nicpin::read::sample::sample;
use nicpin::report::measure::{MeasuredInterface, Measurement};
use nicpin::root::Root;

const NUMBERS: [&str; 18] = [
    "0",
    "1",
    "-1",
    "2",
    "7",
    "63",
    "64",
    "255",
    "1023",
    "1024",
    "8191",
    "8192",
    "65535",
    "65536",
    "2147483648",
    "4294967295",
    "4294967296",
    "18446744073709551615",
];

/// A line that begins with FAKE must not be printed as one.
const STRANGE: [&str; 16] = [
    "",
    "\u{1b}[2J\u{9b}31m",
    "up\nFAKE\n",
    "up\rFAKE",
    "\u{202e}\u{2066}eth0",
    "\u{7f}\u{0}\u{1f}",
    "`$(reboot)`; 'x' \"y\"",
    "<&>]]>",
    "0-1,",
    "0-4,1-3:1/2",
    "ffffffff,ffffffff",
    ",,,",
    "../../../../../../..",
    "a, b,c  d",
    "\\u001b",
    "\u{10ffff}\u{e0041}\u{feff}",
];

/// Not all machines have these files.
const FILES: [&str; 22] = [
    "/proc/stat",
    "/proc/softirqs",
    "/proc/net/softnet_stat",
    "/proc/interrupts",
    "/proc/sys/kernel/osrelease",
    "/proc/sys/net/core/rps_sock_flow_entries",
    "/proc/sys/net/core/busy_poll",
    "/proc/812/stat",
    "/etc/nicpin.toml",
    "/etc/default/irqbalance",
    "/etc/tuned/active_profile",
    "/etc/systemd/network/10-net.link",
    "/run/nicpin/state.json",
    "/sys/devices/system/cpu/isolated",
    "/sys/devices/system/cpu/nohz_full",
    "/sys/devices/system/cpu/cpu0/cpu_capacity",
    "/sys/devices/system/node/node0/meminfo",
    "/sys/devices/system/node/node0/numastat",
    "/sys/devices/system/node/node1/distance",
    "/sys/devices/cpu_atom/cpus",
    "/sys/class/net/eth9/device/channels/3/cpu",
    "/sys/class/net/veth1/uevent",
];

/// Repeated changes double a text each time, and copy it six hundred times: the most bytes of a text that grows, and of
/// one that is copied.
const LONGEST: usize = 1 << 20;
const LONGEST_COPIED: usize = 1 << 14;

const COMMANDS: [&[&str]; 17] = [
    &["status", "--all", "--seconds", "0"],
    &["status", "--format", "json"],
    &["plan"],
    &["plan", "-v", "--rfs", "32768", "--rps", "0-3"],
    &[
        "plan",
        "--format",
        "json",
        "--scope",
        "all",
        "--channels",
        "auto",
    ],
    &["plan", "--format", "sh", "--scope", "remote"],
    &["plan", "node:0", "--if-present"],
    &[
        "plan",
        "--explain",
        "--avoid-exclusive",
        "--rss",
        "candidates",
        "--xps",
        "rxqs",
        "--rfs",
        "4096",
    ],
    &["check"],
    &["check", "--format", "json"],
    &["check", "--format", "prometheus"],
    &["check", "--format", "nagios"],
    &["nodes"],
    &["nodes", "--format", "json"],
    &["draw"],
    &["run", "eth0", "--dry-run"],
    &["capture", "--force", "--redact-names", "-o"],
];

/// [`COMMANDS`] with less of what they share.
const EACH_ONCE: [&[&str]; 5] = [
    &["status", "-v", "--seconds", "0"],
    &["check", "--format", "json"],
    &["nodes"],
    &["draw"],
    &["capture", "--force", "-o"],
];

/// A kind of damage, and what it makes of a file's text: `None` is a directory in its place.
type Damage = (&'static str, fn(&[u8]) -> Option<Vec<u8>>);

/// Damages of a bad disk, copy or author.
const DAMAGES: [Damage; 11] = [
    ("empty", |_| Some(Vec::new())),
    ("huge number", |text| {
        Some(renumbered(&String::from_utf8_lossy(text), 0, "4294967295").into_bytes())
    }),
    ("another huge number", |text| {
        let text = String::from_utf8_lossy(text);
        Some(renumbered(&text, text.len() / 2, "18446744073709551615").into_bytes())
    }),
    ("no number but a huge one", |_| {
        Some(b"99999999999999999999\n".to_vec())
    }),
    ("negative", |text| {
        Some(renumbered(&String::from_utf8_lossy(text), 0, "-2147483648").into_bytes())
    }),
    ("garbage", |_| Some("\u{1b}[2J no such\nFAKE\n".into())),
    ("NUL", |text| Some([b"\0", text, b"\0"].concat())),
    ("cut", |text| Some(text[..text.len() / 2].to_vec())),
    ("a line of 1 MB", |text| {
        Some(text.repeat((1 << 20) / text.len().max(1) + 1))
    }),
    ("a directory", |_| None),
    ("a link to itself", |_| Some(b"->.".to_vec())),
];

/// Tries each file of each machine with each damage, in an order that the seed gives, and again with other commands: at
/// least so many, and until the CPU time is over. All commands are run in turn, a few on each. Returns how many cases
/// there are, and how many were run.
pub(crate) fn damaged_files(seed: u64, least: usize, time: Duration) -> (usize, usize) {
    let trees = seeds::machines()
        .into_iter()
        .map(|tree| seeds::in_text(&tree));
    let bases = [
        include_str!("bases/bond.txt"),
        include_str!("bases/vmbus.txt"),
    ];
    let machines: Vec<_> = trees
        .chain(bases.map(str::to_owned))
        .map(|text| in_files(&text))
        .collect();
    let mut cases: Vec<(usize, &String, &Damage)> = Vec::new();
    for (at, machine) in machines.iter().enumerate() {
        for damage in &DAMAGES {
            cases.extend(machine.keys().map(|path| (at, path, damage)));
        }
    }
    let began = cpu_time();
    let (mut run, mut round) = (0, 0_u64);
    loop {
        let order_of = |&(at, path, (what, _)): &(usize, &String, &Damage)| {
            let mut hasher = DefaultHasher::new();
            (seed, round, at, path, what).hash(&mut hasher);
            hasher.finish()
        };
        cases.sort_by_cached_key(order_of);
        for case @ (at, path, damage) in &cases {
            if run >= least && cpu_time().saturating_sub(began) > time {
                return (cases.len(), run);
            }
            let mut machine = machines[*at].clone();
            damage_file(&mut machine, path, damage);
            let which = order_of(case) % COMMANDS.len() as u64;
            let which = usize::try_from(which).unwrap_or_default();
            let commands = [EACH_ONCE[which % EACH_ONCE.len()], COMMANDS[which]];
            let checked = std::panic::catch_unwind(|| check(&machine, &commands));
            assert!(checked.is_ok(), "machine {at}, {path}: {}", damage.0);
            run += 1;
        }
        round += 1;
    }
}

fn damage_file(machine: &mut BTreeMap<String, Vec<u8>>, path: &str, (what, damage): &Damage) {
    let text = &machine[path];
    match damage(text.strip_prefix(b"->").unwrap_or(text)) {
        Some(changed) if *what == "a link to itself" => {
            let name = path.rsplit('/').next().unwrap_or_default();
            let target = [&changed[..2], name.as_bytes()].concat();
            machine.insert(path.to_owned(), target);
        }
        Some(changed) => _ = machine.insert(path.to_owned(), changed),
        None => {
            machine.remove(path);
            machine.insert(format!("{path}/file"), Vec::new());
        }
    }
}

struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn next(&mut self) -> usize {
        let Some((first, rest)) = self.0.split_first() else {
            return 0;
        };
        self.0 = rest;
        usize::from(*first)
    }

    fn below(&mut self, limit: usize) -> usize {
        (if limit > 256 {
            self.next() << 8 | self.next()
        } else {
            self.next()
        }) % limit.max(1)
    }

    fn of(&mut self, texts: &[&'static str]) -> &'static str {
        texts[self.below(texts.len())]
    }

    fn take(&mut self, most: usize) -> &'a [u8] {
        let length = self.below(most).min(self.0.len());
        let (taken, rest) = self.0.split_at(length);
        self.0 = rest;
        taken
    }
}

fn renumbered(text: &str, which: usize, number: &str) -> String {
    let is_start = |at: &usize| {
        text.as_bytes()[*at].is_ascii_digit()
            && (*at == 0 || !text.as_bytes()[*at - 1].is_ascii_digit())
    };
    let starts: Vec<usize> = (0..text.len()).filter(is_start).collect();
    let Some(&start) = starts.get(which % starts.len().max(1)) else {
        return text.to_owned();
    };
    let end = text[start..]
        .find(|c: char| !c.is_ascii_digit())
        .map_or(text.len(), |length| start + length);
    format!("{}{number}{}", &text[..start], &text[end..])
}

/// By path; a link's text begins with `->`.
fn machine(bytes: &mut Bytes<'_>) -> BTreeMap<String, Vec<u8>> {
    let bases = [
        seeds::SMALL_MACHINE,
        include_str!("bases/bond.txt"),
        include_str!("bases/vmbus.txt"),
    ];
    let mut machine = in_files(bases[bytes.below(bases.len())]);
    for _ in 0..24 {
        if bytes.0.is_empty() {
            break;
        }
        change(&mut machine, bytes);
    }
    machine
}

fn in_files(text: &str) -> BTreeMap<String, Vec<u8>> {
    let mut machine = BTreeMap::new();
    for line in text.lines() {
        if let Some((path, target)) = line
            .split_once("->")
            .filter(|(path, _)| !path.contains('='))
        {
            machine.insert(path.to_owned(), format!("->{target}").into_bytes());
        } else if let Some((path, text)) = line.split_once('=') {
            machine.insert(path.to_owned(), text.replace("\\n", "\n").into_bytes());
        }
    }
    machine
}

/// Each small machine has an extreme number in one place of one file.
pub(crate) fn extreme_numbers() {
    let base = in_files(
        &seeds::SMALL_MACHINE
            .replace("drivers/igb", "drivers/mlx4_core")
            .replace("eth0-TxRx-0", "mlx4-1@0000:41:00.0"),
    );
    for (path, text) in base.iter().filter(|(_, text)| !text.starts_with(b"->")) {
        let text = String::from_utf8_lossy(text);
        for (which, number) in [
            (0, "4294967294"),
            (1, "4294967295"),
            (0, "18446744073709551615"),
        ] {
            let changed = renumbered(&text, which, number);
            if changed != *text {
                let mut machine = base.clone();
                machine.insert(path.clone(), changed.into_bytes());
                check(&machine, &EACH_ONCE);
            }
        }
    }
}

fn change(machine: &mut BTreeMap<String, Vec<u8>>, bytes: &mut Bytes<'_>) {
    let at = bytes.below(machine.len());
    let Some((path, text)) = machine
        .iter()
        .nth(at)
        .map(|(path, text)| (path.clone(), text.clone()))
    else {
        return;
    };
    let words = String::from_utf8_lossy(&text).into_owned();
    match bytes.below(12) {
        0 => _ = machine.insert(path, format!("{}\n", bytes.of(&NUMBERS)).into_bytes()),
        1 => _ = machine.insert(path, bytes.of(&STRANGE).as_bytes().to_vec()),
        2 => _ = machine.insert(path, bytes.take(200).to_vec()),
        3 => {
            _ = machine.insert(
                path,
                bytes.of(&STRANGE).repeat(bytes.below(4096)).into_bytes(),
            );
        }
        4 => {
            _ = machine.insert(
                path,
                renumbered(&words, bytes.next(), bytes.of(&NUMBERS)).into_bytes(),
            );
        }
        5 => {
            machine.remove(&path);
            machine.insert(renumbered(&path, bytes.next(), bytes.of(&NUMBERS)), text);
        }
        6 => {
            machine.remove(&path);
            let (above, name) = path.rsplit_once('/').unwrap_or_default();
            let between = if bytes.below(2) == 0 {
                "/x"
            } else {
                bytes.of(&STRANGE)
            };
            machine.insert(
                format!("{above}{}/{name}", between.repeat(bytes.below(80))),
                text,
            );
        }
        7 => _ = machine.remove(&path),
        8 => {
            let text = text[..text.len().min(LONGEST_COPIED)].to_vec();
            let (which, count) = (bytes.next(), bytes.below(600));
            let copies = (0..count)
                .map(|number| (renumbered(&path, which, &number.to_string()), text.clone()));
            machine.extend(copies.collect::<Vec<_>>());
        }
        9 => {
            let target = machine
                .keys()
                .nth(bytes.below(machine.len()))
                .cloned()
                .unwrap_or_default();
            let up = "../".repeat(bytes.below(40));
            machine.insert(
                path,
                format!("->{up}{}", target.trim_start_matches('/')).into_bytes(),
            );
        }
        10 => {
            let text = [bytes.of(&STRANGE), bytes.of(&NUMBERS), bytes.of(&STRANGE)].concat();
            let text = if bytes.below(2) == 0 {
                text.into_bytes()
            } else {
                bytes.take(250).to_vec()
            };
            machine.insert(bytes.of(&FILES).to_owned(), text);
        }
        _ => {
            let other = machine
                .values()
                .nth(bytes.below(machine.len()))
                .cloned()
                .unwrap_or_default();
            let mut both = [text, other].concat();
            both.truncate(LONGEST);
            machine.insert(path, both);
        }
    }
}

fn capture(machine: &BTreeMap<String, Vec<u8>>) -> Vec<u8> {
    let mut archive = tar::Builder::new(Vec::new());
    for (path, text) in machine {
        let path = path.trim_start_matches('/');
        let mut header = tar::Header::new_gnu();
        header.set_mode(if text.len() % 7 == 3 { 0o444 } else { 0o644 });
        header.set_size(0);
        // No machine has a file that tar cannot hold.
        let _ = if let Some(target) = text.strip_prefix(b"->") {
            header.set_entry_type(tar::EntryType::Symlink);
            archive.append_link(
                &mut header,
                path,
                String::from_utf8_lossy(target).into_owned(),
            )
        } else {
            header.set_size(text.len() as u64);
            archive.append_data(&mut header, path, text.as_slice())
        };
    }
    targets::compressed(&archive.into_inner().expect("memory takes every byte"))
}

/// Each command ends in time, and prints printable text without a line of another.
pub(crate) fn run(data: &[u8]) {
    check(&machine(&mut Bytes(data)), &COMMANDS);
}

fn check(machine: &BTreeMap<String, Vec<u8>>, commands: &[&[&str]]) {
    let dir = tempfile::tempdir_in("/dev/shm")
        .or_else(|_| tempfile::tempdir())
        .expect("there is a place");
    let (file, copy) = (dir.path().join("capture"), dir.path().join("copy"));
    std::fs::write(&file, capture(machine)).expect("there is space");
    let (file, copy) = (
        file.to_str().expect("a path"),
        copy.to_str().expect("a path"),
    );
    for command in commands {
        let started = cpu_time();
        let mut args = [&["nicpin"], *command].concat();
        if command.contains(&"capture") {
            args.push(copy);
        }
        let cli =
            Cli::try_parse_from(args.into_iter().chain(["--root", file])).expect("a command line");
        let mut out = String::new();
        let result = commands::run(&cli, &mut out);
        let code = result.as_ref().err().map(commands::exit_of);
        assert!(matches!(code, None | Some(1 | 64)), "{command:?}: {code:?}");
        let error = result
            .err()
            .map(|error| screen::message(&format!("{error:#}")))
            .unwrap_or_default();
        assert!(
            error.lines().count() <= 1 && error.chars().count() <= 4003,
            "{command:?}: {error}"
        );
        for text in [&out, &error] {
            assert!(
                matches!(screen::printable(text), std::borrow::Cow::Borrowed(_)),
                "{command:?}: {text:?}"
            );
            assert!(
                !text
                    .lines()
                    .any(|line| line.trim_start().starts_with("FAKE")),
                "{command:?}: {text}"
            );
        }
        if command.contains(&"json") && error.is_empty() {
            serde_json::from_str::<serde_json::Value>(&out).expect("JSON");
        }
        let took = cpu_time().saturating_sub(started);
        // libFuzzer looks at every comparison of strings: a command takes up to fifty times as long.
        let is_fuzzed = std::env::var_os("NICPIN_FUZZ_TARGET").is_some();
        let limit = Duration::from_secs(if is_fuzzed { 60 } else { 10 });
        assert!(took < limit, "{command:?} took {took:?} of CPU time");
        let memory =
            getrusage(UsageWho::RUSAGE_SELF).expect("it has no error for the caller itself");
        assert!(
            memory.max_rss() < 1 << 20,
            "{command:?}: {} KiB",
            memory.max_rss()
        );
    }
    measure(file);
}

/// The CPU time of this thread.
fn cpu_time() -> Duration {
    let usage = getrusage(UsageWho::RUSAGE_THREAD).expect("it has no error for the caller itself");
    let microseconds = [usage.user_time(), usage.system_time()].map(|time| time.num_microseconds());
    Duration::from_micros(microseconds.iter().sum::<i64>().unsigned_abs())
}

/// Counters of this machine after those of another, and the other way round.
fn measure(file: &str) {
    let (Ok(root), Ok(other)) = (
        Root::open(file.as_ref()),
        Root::read_capture(
            "other".as_ref(),
            &mut &*targets::compressed(&targets::tar(seeds::SMALL_MACHINE)),
        ),
    ) else {
        return;
    };
    let Ok(host) = nicpin::read::machine(&root, nicpin::read::ReadOptions::default()) else {
        return;
    };
    let plan = targets::planned(&host, &nicpin::policy::Policy::default());
    let subjects: Vec<MeasuredInterface> = plan
        .interfaces
        .iter()
        .map(|interface| MeasuredInterface::planned(interface, &host))
        .collect();
    let wanted: CounterSelection = MeasuredInterface::wanted(&subjects);
    let began = Instant::now();
    let (Ok(from), Ok(to)) = (
        sample(&other, &wanted, began),
        sample(&root, &wanted, began),
    ) else {
        return;
    };
    for (from, to) in [(&from, &to), (&to, &from), (&to, &to)] {
        let mut delta = Delta::between(from, to);
        delta.add(&delta.clone());
        screen::measure::measure(&Measurement::new(&host.topology, &subjects, &delta), true)
            .show(Screen::default());
    }
}
