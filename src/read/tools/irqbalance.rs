//! irqbalance: a daemon that moves every vector that is not banned, every ten seconds by default. Facts only;
//! `apply::irqbalance` sends requests to it.

use crate::machine::others::{Arguments, Irqbalance};
use crate::read::files::read_best_effort;
use crate::read::netlink::UNIX_SOCKETS;
use crate::read::netlink::listening;
use crate::read::tools::process::{self, Found, Process};
use crate::root::Root;

/// The policy script with which irqbalance asks nicpin, as in `dist/` and as packages install it.
pub const SCRIPT: &str = "nicpin-irqbalance-policy";

/// The files, each with the variable that it has where it names none: Debian and Ubuntu; Fedora, RHEL and SUSE;
/// Gentoo.
pub const FILES: [(&str, &str); 3] = [
    ("/etc/default/irqbalance", "IRQBALANCE_ARGS"),
    ("/etc/sysconfig/irqbalance", "IRQBALANCE_ARGS"),
    ("/etc/conf.d/irqbalance", "IRQBALANCE_OPTS"),
];
/// Every variable that one of them has had. `OPTIONS` is that of older Debian and Ubuntu releases, whose newer
/// services do not look at it.
const VARIABLES: [&str; 3] = ["IRQBALANCE_ARGS", "IRQBALANCE_OPTS", "OPTIONS"];

/// Where distributions install it.
const PROGRAMS: [&str; 2] = ["/usr/sbin/irqbalance", "/usr/bin/irqbalance"];
const LONGEST_VERSION: usize = 32;

/// The name of its process and of its service.
const NAME: &str = "irqbalance";
/// Where it makes its socket: `irqbalance812.sock` with its process id, by version 1.6 and later, and 1.5.
pub(super) const DIRECTORIES: [&str; 2] = ["/run/irqbalance", "/run"];
const PID_FILE: &str = "/run/irqbalance.pid";

/// Finds root's irqbalance: by its service, a process id file, or its socket in a directory of root's or without a file.
pub(crate) fn find(root: &Root) -> Found {
    process::find(root, NAME, |traces| {
        traces.in_file(root, PID_FILE);
        for directory in DIRECTORIES {
            let names = traces.read(directory, root.list(directory));
            let names = names.unwrap_or_default();
            let pids = names.iter().filter_map(|name| pid_of_socket(name));
            traces.pids.extend(pids);
        }
        if traces.pids.is_empty() {
            let wanted = |name: &str| pid_of_socket(name).is_some() || is_empty(name);
            let names = traces.read(UNIX_SOCKETS, listening(root, wanted));
            let (names, pids) = (names.unwrap_or_default(), &mut traces.pids);
            pids.extend(names.iter().filter_map(|name| pid_of_socket(name)));
            // Nothing else leads from such a socket to its process.
            if pids.is_empty() && !names.is_empty() {
                let found = traces.read("/proc", process::walk(root, NAME));
                traces.pids.extend(found);
            }
        }
        traces.pids.sort_unstable();
    })
}

/// The version of the installed irqbalance, which its program holds as a text; `None` where that cannot be read.
pub(crate) fn version(root: &Root) -> Option<String> {
    PROGRAMS.iter().find_map(|path| {
        let program = read_best_effort(root, path)?;
        let (_, after) = program.split_once("irqbalance version ")?;
        let version = after
            .split(|c: char| !c.is_ascii_alphanumeric() && !"._-+~".contains(c))
            .next()?;
        (!version.is_empty() && version.len() <= LONGEST_VERSION).then(|| version.to_owned())
    })
}

/// The start of root's irqbalance with this process id, in the kernel's ticks since boot.
pub(crate) fn started(root: &Root, pid: i32) -> Option<u64> {
    match Process::look(root, pid, NAME) {
        Process::Is { started } => Some(started),
        Process::IsNot | Process::Hidden => None,
    }
}

/// The process id in the name of a socket. That of one without a file begins with NUL, for which the kernel prints `@`.
pub(super) fn pid_of_socket(name: &str) -> Option<i32> {
    name.trim_matches('@')
        .strip_prefix(NAME)?
        .strip_suffix(".sock")?
        .parse()
        .ok()
}

/// Whether a name is all NUL, as irqbalance's since 1.5 where it cannot make a file.
fn is_empty(name: &str) -> bool {
    name.len() > 100 && name.bytes().all(|b| b == b'@')
}

pub(super) fn read(root: &Root, pid: i32) -> Irqbalance {
    let mut irqbalance = Irqbalance {
        pid,
        arguments: None,
        uses_policy_script: false,
        policy_script: None,
    };
    for (file, usual) in FILES {
        let Some(text) = read_best_effort(root, file) else {
            continue;
        };
        let variable = variable(&text).unwrap_or(usual);
        irqbalance.policy_script = text
            .lines()
            .rev()
            .find_map(|line| policy_script(line, variable));
        irqbalance.arguments = Some(Arguments {
            file: file.to_owned(),
            variable: variable.to_owned(),
        });
        break;
    }
    irqbalance.uses_policy_script = irqbalance.policy_script.as_ref().is_some_and(|script| {
        script.rsplit('/').next() == Some(SCRIPT) && root.exists(script)
            || root.exists(&format!("{script}/{SCRIPT}"))
    });
    irqbalance
}

/// The variable for arguments in a file: one that is set, else one in a comment.
fn variable(text: &str) -> Option<&'static str> {
    let set = |line: &str| {
        VARIABLES
            .into_iter()
            .find(|name| assigned(line, name).is_some())
    };
    let shown = |line: &str| set(line.trim_start_matches(['#', ' ']));
    text.lines()
        .find_map(set)
        .or_else(|| text.lines().find_map(shown))
}

/// The value that a line gives a variable.
fn assigned<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let line = line.trim_start();
    let line = line.strip_prefix("export ").unwrap_or(line).trim_start();
    line.strip_prefix(name)?.strip_prefix('=')
}

/// The policy script in the arguments of a line.
fn policy_script(line: &str, variable: &str) -> Option<String> {
    let mut words =
        assigned(line, variable)?.split(|c: char| c.is_whitespace() || c == '"' || c == '\'');
    let mut script = None;
    while let Some(word) = words.next() {
        script = match word
            .strip_prefix("--policyscript=")
            .or_else(|| word.strip_prefix("-l"))
        {
            Some("") => words.next(),
            Some(path) => Some(path),
            None if word == "--policyscript" => words.next(),
            None => script,
        };
    }
    script
        .filter(|path| path.starts_with('/'))
        .map(str::to_owned)
}

/// The part of a line that is read; the rest is dropped.
pub(super) fn bare_line(path: &str) -> Option<fn(&str) -> Option<String>> {
    if path == UNIX_SOCKETS {
        return Some(|line| {
            let name = line.rsplit(' ').next()?;
            (pid_of_socket(name).is_some() || is_empty(name)).then(|| name.to_owned())
        });
    }
    FILES
        .iter()
        .any(|(file, _)| *file == path)
        .then_some(|line| {
            let comment = line.trim_start().starts_with('#');
            let line = line.trim_start_matches(['#', ' ']);
            let name = VARIABLES
                .into_iter()
                .find(|name| assigned(line, name).is_some())?;
            let script = policy_script(line, name).map(|path| format!("--policyscript={path}"));
            let sign = if comment { "#" } else { "" };
            Some(format!(
                "{sign}{name}=\"{}\"",
                script.filter(|_| !comment).unwrap_or_default()
            ))
        })
}

/// The policy script in a line of a capture's file.
pub fn bare_script(line: &str) -> Option<String> {
    VARIABLES
        .into_iter()
        .find_map(|name| policy_script(line, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_is_the_one_that_the_file_has() {
        for (text, expected) in [
            ("IRQBALANCE_ARGS=\"\"\n", Some("IRQBALANCE_ARGS")),
            (
                "# see man irqbalance\n#IRQBALANCE_ARGS=\n",
                Some("IRQBALANCE_ARGS"),
            ),
            ("ENABLED=\"1\"\nOPTIONS=\"--banirq=3\"\n", Some("OPTIONS")),
            ("# OPTIONS=\nIRQBALANCE_OPTS=''\n", Some("IRQBALANCE_OPTS")),
            ("#IRQBALANCE_BANNED_CPULIST=\n", None),
            ("", None),
        ] {
            assert_eq!(variable(text), expected, "{text:?}");
        }
    }

    #[test]
    fn the_policy_script_in_each_form() {
        for (arguments, expected) in [
            ("\"--policyscript=/a/b\"", Some("/a/b")),
            ("\"-t 5 --policyscript /a/b -d\"", Some("/a/b")),
            ("'-l /a/b'", Some("/a/b")),
            ("-l/a/b", Some("/a/b")),
            ("\"-l /a --policyscript=/b\"", Some("/b")),
            ("\"--policyscript=relative\"", None),
            ("\"--policyscript=\"", None),
            ("\"--banirq=3\"", None),
            ("", None),
        ] {
            let line = format!("IRQBALANCE_ARGS={arguments}");
            assert_eq!(
                policy_script(&line, "IRQBALANCE_ARGS").as_deref(),
                expected,
                "{line}"
            );
        }
    }

    #[test]
    fn a_capture_has_the_variable_and_the_script_and_nothing_else() {
        let text =
            "# call Jo, 555-0199\nIRQBALANCE_ARGS=\"--banirq=7 -l /a/b\"\n#OPTIONS='x'\nSECRET=1\n";
        let bare = super::super::bare("/etc/default/irqbalance", text).unwrap();
        assert_eq!(
            bare,
            "IRQBALANCE_ARGS=\"--policyscript=/a/b\"\n#OPTIONS=\"\"\n"
        );
        assert_eq!(variable(&bare), variable(text));
        assert_eq!(super::super::bare("/etc/nicpin.toml", text), None);
    }
}
