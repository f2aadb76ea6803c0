//! The files in `dist/`, for packagers: they work with this binary.

use std::fmt::Display;
use std::os::unix::fs::PermissionsExt as _;

use itertools::Itertools as _;

use crate::commands::help::HelpText;
use crate::support::run::{MachineTree, nicpin};
use crate::support::temporary;
use nicpin::policy::{CONDITIONS, Policy, PolicyEntry, SETTINGS};

fn unit() -> Vec<String> {
    lines("nicpin.service")
}

fn lines(unit: &str) -> Vec<String> {
    let path = format!("{}/dist/systemd/{unit}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).unwrap();
    let lines = text
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty());
    lines.map(str::to_owned).collect()
}

/// With `ProtectKernelTunables=` every write to /proc/irq fails with EROFS.
#[test]
fn the_unit_may_write_proc_irq_and_sees_the_interfaces() {
    for line in unit().into_iter().chain(lines("nicpin-watch.service")) {
        for key in [
            "ProtectKernelTunables",
            "PrivateNetwork",
            "ProcSubset",
            "ReadOnlyPaths",
            "InaccessiblePaths",
            "PrivateUsers",
        ] {
            assert!(!line.starts_with(key), "{line}");
        }
    }
    for needed in [
        "Type=oneshot",
        "RemainAfterExit=yes",
        "RuntimeDirectory=nicpin",
    ] {
        assert!(unit().iter().any(|line| line == needed), "{needed}");
    }
}

/// `tests/vm/guest/unit.sh` starts the unit and measures its exposure.
#[test]
fn the_unit_has_limits_and_ends() {
    for needed in [
        "TimeoutStartSec=",
        "TimeoutStopSec=",
        "MemoryMax=",
        "TasksMax=",
        "UMask=0077",
        "CapabilityBoundingSet=CAP_NET_ADMIN CAP_SYS_NICE",
        // The threads that poll queues need it.
        "SystemCallFilter=sched_setaffinity",
        "RestrictAddressFamilies=AF_NETLINK AF_UNIX",
        "SystemCallArchitectures=native",
        "SystemCallFilter=@system-service",
        // A system call that the filter does not know must not kill nicpin between two writes.
        "SystemCallErrorNumber=EPERM",
    ] {
        assert!(
            unit().iter().any(|line| line.starts_with(needed)),
            "{needed}"
        );
    }
}

/// The lines from `CapabilityBoundingSet=` on are those of nicpin.service, but for `PrivateTmp=`, which would make it
/// wait for all file systems.
#[test]
fn the_watchers_unit_is_confined_and_early() {
    let (once, watch) = (unit(), lines("nicpin-watch.service"));
    for needed in [
        "Type=notify",
        "ExecStart=/usr/bin/nicpin watch --if-present",
        "Restart=on-failure",
        "Before=network-pre.target",
        "DefaultDependencies=no",
        "Conflicts=nicpin.service",
        "RuntimeDirectoryPreserve=yes",
        // Its own /proc, which `ProtectControlGroups=` brings, shows inotify no write of others.
        "BindPaths=/proc/irq",
    ] {
        assert!(watch.iter().any(|line| line == needed), "{needed}");
    }
    assert!(
        once.iter()
            .any(|line| line == "Conflicts=nicpin-watch.service")
    );
    assert!(
        !watch.iter().any(|line| line.starts_with("ExecStop")),
        "the end of the watcher restores nothing"
    );
    let confined = |lines: &[String]| -> Vec<String> {
        let from = lines
            .iter()
            .position(|line| line.starts_with("CapabilityBoundingSet="))
            .unwrap();
        let to = lines.iter().position(|line| line == "[Install]").unwrap();
        lines[from..to]
            .iter()
            .filter(|line| *line != "PrivateTmp=yes")
            .cloned()
            .collect()
    };
    assert_eq!(confined(&watch), confined(&once));
}

#[test]
fn the_units_commands_apply_and_restore() {
    let machine = MachineTree::of("two-node");
    let before = machine.read("/proc/irq/36/smp_affinity");
    for (key, expected) in [("ExecStart=", "02"), ("ExecStop=", before.trim())] {
        let unit = unit();
        let command = unit.iter().find_map(|line| line.strip_prefix(key)).unwrap();
        let args: Vec<&str> = command
            .strip_prefix("/usr/bin/nicpin ")
            .unwrap()
            .split(' ')
            .collect();
        assert_eq!(machine.nicpin(&args).code, 0, "{command}");
        assert_eq!(
            machine.read("/proc/irq/36/smp_affinity").trim(),
            expected,
            "{command}"
        );
    }
}

/// `systemctl enable nicpin` in an image must not make the machines fail that have no network card.
#[test]
fn the_unit_succeeds_on_a_machine_without_interfaces() {
    let machine = MachineTree::of("two-node");
    machine.remove("/sys/class/net");
    std::fs::create_dir(machine.path("/sys/class/net")).unwrap();
    for key in ["ExecStart=", "ExecStop="] {
        let unit = unit();
        let command = unit.iter().find_map(|line| line.strip_prefix(key)).unwrap();
        let args = command.strip_prefix("/usr/bin/nicpin ").unwrap();
        let run = machine.nicpin(&args.split(' ').collect::<Vec<_>>());
        assert_eq!(run.code, 0, "{command}: {}", run.stderr);
    }
}

#[test]
fn units_name_pages_that_exist() {
    let pages = temporary();
    assert_eq!(
        nicpin(&["man", "--into", pages.path().to_str().unwrap()]).code,
        0
    );
    let mut named = 0;
    for unit in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/dist/systemd")).unwrap() {
        let unit = std::fs::read_to_string(unit.unwrap().path()).unwrap();
        let documents = unit
            .lines()
            .filter_map(|line| line.strip_prefix("Documentation="));
        for page in documents
            .flat_map(str::split_whitespace)
            .filter_map(|word| word.strip_prefix("man:nicpin"))
        {
            let file = format!("nicpin{}", page.replace('(', ".").replace(')', ""));
            let section = &file[file.len() - 1..];
            assert!(
                pages.path().join(format!("man{section}/{file}")).exists(),
                "there is no {file}"
            );
            named += 1;
        }
    }
    assert!(named > 0);
}

/// irqbalance runs the script with `exec SCRIPT DEVICE IRQ` in a shell; exit code 1 means no policy.
#[test]
fn irqbalances_policy_script_asks_nicpin() {
    let machine = MachineTree::of("two-node");
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/dist/irqbalance/nicpin-irqbalance-policy"
    );
    let nicpin = machine.path("/nicpin-here");
    let root = machine.path("/");
    let wrapper = format!(
        "#!/bin/sh\nexec {} \"$@\" --root {}\n",
        env!("CARGO_BIN_EXE_nicpin"),
        root.display()
    );
    let script = std::fs::read_to_string(path).unwrap();
    assert!(script.contains("/usr/bin/nicpin "), "{script}");
    machine.write("/nicpin-here", &wrapper);
    machine.write(
        "/policy",
        &script.replace("/usr/bin/nicpin", &format!("sh {}", nicpin.display())),
    );
    let ask = |irq: &str| {
        let command = format!("exec sh {} /sys {irq}", machine.path("/policy").display());
        let output = std::process::Command::new("sh")
            .args(["-c", &command])
            .output()
            .unwrap();
        (
            output.status.code(),
            String::from_utf8(output.stdout).unwrap(),
        )
    };
    // An IRQ of a queue, a control vector, a machine that cannot be read, and no IRQ: irqbalance takes 2 and more as
    // errors.
    assert_eq!(ask("36"), (Some(0), "ban=true\n".to_owned()));
    assert_eq!(ask("35"), (Some(1), String::new()));
    assert_eq!(ask("x"), (Some(64), String::new()));
    machine.write("/proc/interrupts", "");
    assert_eq!(ask("36"), (Some(1), String::new()));
    assert_eq!(
        std::fs::metadata(path).unwrap().permissions().mode() & 0o777,
        0o755
    );
}

const HEAD: &str = "\
# The policy of nicpin: /etc/nicpin.toml. Each setting is a comment, with its default, so the unedited file changes
# nothing. `nicpin plan --explain` shows which rules matched, and the reason for the CPU of each IRQ.
#
";

const COLUMNS: usize = 120;

/// `dist/nicpin.toml`: every setting with its values and its default, as comments.
fn example() -> String {
    let settings = |for_interfaces| {
        SETTINGS
            .iter()
            .filter(move |entry| entry.is_for_interfaces() == for_interfaces)
            .map(described)
            .join("")
    };
    let comments = |text: &str| {
        let lines = text.lines();
        lines
            .map(|line| format!("{}\n", format!("# {line}").trim_end()))
            .join("")
    };
    let help = HelpText::of("policy");
    let (about, rules) = (comments(&help.more), comments(&help.examples));
    format!(
        "{HEAD}{about}{}\n[defaults]\n{}\n# Rules match by any of:\n{}#\n{rules}",
        settings(false),
        settings(true),
        rows(CONDITIONS)
    )
}

fn described(entry: &PolicyEntry) -> String {
    let end = if entry.note.is_empty() { "" } else { ". " };
    let about = format!("{}{end}{}:", entry.help, entry.note.trim_end_matches('.'));
    let mut text = "\n#".to_owned();
    let mut columns = 1;
    for word in about.split(' ') {
        columns += 1 + word.chars().count();
        if columns > COLUMNS {
            text.push_str("\n#");
            columns = 2 + word.chars().count();
        }
        text += &format!(" {word}");
    }
    let values = entry.in_file();
    let default = format!("# {} = {}\n", entry.key, values[0].0);
    format!("{text}\n{}{default}", rows(values))
}

fn rows<T: Display>(rows: impl IntoIterator<Item = (T, T)>) -> String {
    rows.into_iter()
        .map(|(value, means)| format!("#   {value:<12} {means}\n"))
        .join("")
}

/// `SNAPSHOTS=overwrite cargo test --test it -- dist::` rewrites it.
#[test]
fn the_example_policy_is_made_from_the_table_of_settings() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/dist/nicpin.toml");
    let example = example();
    let wide = example.lines().find(|line| line.chars().count() > COLUMNS);
    assert_eq!(wide, None);
    if std::env::var_os("SNAPSHOTS").is_some_and(|value| value == "overwrite") {
        std::fs::write(path, &example).unwrap();
    }
    assert_eq!(std::fs::read_to_string(path).unwrap(), example);
}

#[test]
fn the_example_policy_is_the_default_policy_and_every_line_is_good() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/dist/nicpin.toml");
    let machine = MachineTree::of("dl980");
    let plain = machine.nicpin(&["plan"]);
    let text = std::fs::read_to_string(path).unwrap();
    // On the watcher and beside it, a setting has an effect also where its value is the default.
    assert_eq!(Policy::parse(&text).unwrap(), Policy::default());
    std::fs::create_dir(machine.path("/etc")).unwrap();
    machine.write("/etc/nicpin.toml", &text);
    let with_example = machine.nicpin(&["plan"]);
    assert_eq!((with_example.code, with_example.stderr.as_str()), (0, ""));
    assert_eq!(plain.stdout, with_example.stdout);
    let setting = |line: &str| {
        let rest = line.strip_prefix("# ")?;
        let begins = rest.starts_with("[[rule]]")
            || rest
                .split_once(" = ")
                .is_some_and(|(key, _)| !key.contains(' '));
        begins.then(|| rest.to_owned())
    };
    let all: Vec<String> = text
        .lines()
        .map(|line| setting(line).unwrap_or_else(|| line.to_owned()))
        .collect();
    machine.write("/all.toml", &(all.join("\n") + "\n"));
    let run = machine.nicpin(&[
        "plan",
        "--config",
        machine.path("/all.toml").to_str().unwrap(),
        "eth3",
    ]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    assert_eq!(
        all.iter()
            .filter(|line| line.starts_with("[[rule]]"))
            .count(),
        3
    );
    let words = run.words();
    assert!(words.contains("by rule 1"), "{}", run.stdout);
}

/// Nothing is compiled before, and packages whose tools are there are made.
#[test]
fn a_build_says_first_which_tools_are_missing() {
    let tools = temporary();
    let link = |name: &str| {
        let mut found = ["/usr/bin", "/bin"]
            .into_iter()
            .map(|dir| std::path::Path::new(dir).join(name));
        let found = found.find(|path| path.exists()).unwrap();
        std::os::unix::fs::symlink(found, tools.path().join(name)).unwrap();
    };
    for name in ["bash", "dirname", "readlink", "sed", "stat"] {
        link(name);
    }
    let script = |name: &str, text: &str| {
        let path = tools.path().join(name);
        std::fs::write(&path, format!("#!/bin/bash\n{text}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    };
    let build = |args: &[&str]| {
        let run = std::process::Command::new("/bin/bash")
            .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/dist/build"))
            .args(args)
            .env("PATH", tools.path())
            .output()
            .unwrap();
        (run.status.code(), String::from_utf8(run.stderr).unwrap())
    };
    let rust = "build: nothing can be made; missing: cargo rustc (Rust 1.85 or later: https://rustup.rs)\n";
    assert_eq!(build(&[]), (Some(1), rust.to_owned()));
    script("rustc", "echo host: x86_64-unknown-linux-gnu");
    script("cargo", "echo compiling >&2; exit 7");
    let (code, said) = build(&[]);
    assert!(
        code == Some(1) && said.contains("missing: cc python3 (Debian: apt install gcc"),
        "{said}"
    );
    for name in ["cc", "python3", "dpkg-deb"] {
        script(name, "exit 7");
    }
    let (code, said) = build(&["--rpm", "--deb"]);
    let missing = "build: no rpm; missing: rpmbuild (Debian: apt install rpm; Fedora: dnf install rpm-build)\n";
    assert_eq!((code, &*said), (Some(1), missing));
    let (_, said) = build(&[]);
    assert!(
        said.starts_with(missing) && said.ends_with("compiling\n"),
        "{said}"
    );
    let (_, said) = build(&["--deb"]);
    assert_eq!(said, "compiling\n");
    assert_eq!(build(&["--dep"]).0, Some(64));
}
