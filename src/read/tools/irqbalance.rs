//! irqbalance moves every vector that is not banned, every ten seconds by default. `apply::irqbalance` sends requests.

use std::io;

use netlink_bindings::unix_diag::{Req, Request, ShowFlags};
use nix::libc::AF_UNIX;
use nix::sys::socket::SockProtocol;

use crate::machine::others::{Arguments, Irqbalance};
use crate::read::files::{assigned, name_of, read_best_effort};
use crate::read::netlink::Client;
use crate::read::tools::process::{self, FoundProcess};
use crate::root::{Result, Root};

/// The policy script with which irqbalance asks nicpin, in `dist/` and in packages.
const SCRIPT: &str = "nicpin-irqbalance-policy";

/// Environment files of the service, each with its variable for arguments: Debian, Ubuntu; Fedora, RHEL, SUSE; Gentoo.
const FILES: [(&str, &str); 3] = [
    ("/etc/default/irqbalance", "IRQBALANCE_ARGS"),
    ("/etc/sysconfig/irqbalance", "IRQBALANCE_ARGS"),
    ("/etc/conf.d/irqbalance", "IRQBALANCE_OPTS"),
];
/// All variables that such files have had. Newer services of Debian and Ubuntu ignore `OPTIONS`.
const VARIABLES: [&str; 3] = ["IRQBALANCE_ARGS", "IRQBALANCE_OPTS", "OPTIONS"];

const PROGRAMS: [&str; 2] = ["/usr/sbin/irqbalance", "/usr/bin/irqbalance"];
const LONGEST_VERSION: usize = 32;

const NAME: &str = "irqbalance";
/// Directories of its socket, named like `irqbalance812.sock` by process id: version 1.6 and later, and 1.5.
const DIRECTORIES: [&str; 2] = ["/run/irqbalance", "/run"];
const PID_FILE: &str = "/run/irqbalance.pid";
/// All Unix sockets, a name at the end of each line, with `@` for each NUL in a name without a file.
const UNIX_SOCKETS: &str = "/proc/net/unix";
/// `TCP_LISTEN` (`include/net/tcp_states.h`), also the state of a listening Unix socket.
const LISTEN: u32 = 10;

pub(crate) fn find(root: &Root) -> FoundProcess {
    process::find(root, NAME, |traces| {
        traces.in_file(root, PID_FILE);
        for directory in DIRECTORIES {
            let names = traces.read(directory, root.list(directory));
            traces.pids.extend(
                names
                    .iter()
                    .flatten()
                    .filter_map(|name| pid_of_socket(name)),
            );
        }
        if traces.pids.is_empty() {
            let names = traces.read(UNIX_SOCKETS, sockets(root));
            let mut names = names.iter().flatten();
            let pids = names.clone().filter_map(|name| pid_of_socket(name));
            traces.pids.extend(pids);
            // Only a walk leads from a name without a process id to the process.
            if names.any(|name| is_empty(name)) {
                let found = traces.read("/proc", process::walk(root, NAME));
                traces.pids.extend(found);
            }
        }
        traces.pids.sort_unstable();
    })
}

/// Root's listening sockets without a file that may be irqbalance's. [`UNIX_SOCKETS`], which lists every process's
/// sockets without their owners, is read only if the kernel does not answer a request for listening ones.
fn sockets(root: &Root) -> Result<Option<Vec<String>>> {
    let listed = || {
        let text = root.read_opt(UNIX_SOCKETS)?;
        Ok(text.map(|text| text.lines().filter_map(socket_in).collect()))
    };
    if !root.is_real() {
        return listed();
    }
    listening().map_or_else(|_| listed(), |names| Ok(Some(names)))
}

fn listening() -> io::Result<Vec<String>> {
    let mut request = Req::new();
    request.sdiag_family = u8::try_from(AF_UNIX).map_err(io::Error::other)?;
    request.udiag_states = 1 << LISTEN;
    request.udiag_show = ShowFlags::Name as u32 | ShowFlags::Uid as u32;
    let request = Request::new().op_unix_diag_dump(&request);
    Client::connect(SockProtocol::NetlinkSockDiag)?.request(&request, |(_, reply)| {
        // Linux 5.3 and later report the owner.
        (reply.get_uid().unwrap_or_default() == 0).then(|| {
            socket_in(&String::from_utf8_lossy(reply.get_name().ok()?).replace('\0', "@"))
        })?
    })
}

pub(crate) fn version(root: &Root) -> Option<String> {
    PROGRAMS.iter().find_map(|path| {
        let program = read_best_effort(root, path)?;
        let (_, after) = program.split_once("irqbalance version ")?;
        let version = after
            .split(|c: char| !c.is_ascii_alphanumeric() && !"._-+~".contains(c))
            .next()?;
        (1..=LONGEST_VERSION)
            .contains(&version.len())
            .then(|| version.to_owned())
    })
}

/// In the kernel's ticks since boot.
pub(crate) fn process_start(root: &Root, pid: i32) -> Option<u64> {
    process::process_start(root, pid, NAME).ok().flatten()
}

/// A name without a file begins with NUL, which the kernel prints as `@`.
fn pid_of_socket(name: &str) -> Option<i32> {
    name.trim_matches('@')
        .strip_prefix(NAME)?
        .strip_suffix(".sock")?
        .parse()
        .ok()
}

/// Whether a name is all NUL: irqbalance 1.5 and later use it if they cannot make a file.
fn is_empty(name: &str) -> bool {
    name.len() > 100 && name.bytes().all(|byte| byte == b'@')
}

pub(super) fn read(root: &Root, pid: i32) -> Irqbalance {
    let read = |(file, usual)| Some((file, usual, read_best_effort(root, file)?));
    let Some((file, usual, text)) = FILES.into_iter().find_map(read) else {
        return Irqbalance {
            pid,
            ..Irqbalance::default()
        };
    };
    let variable = variable(&text).unwrap_or(usual);
    let policy_script = text
        .lines()
        .rev()
        .find_map(|line| policy_script(line, variable));
    Irqbalance {
        pid,
        uses_policy_script: policy_script.as_ref().is_some_and(|script| {
            name_of(script) == SCRIPT && root.exists(script)
                || root.exists(&format!("{script}/{SCRIPT}"))
        }),
        policy_script,
        arguments: Some(Arguments {
            file: file.to_owned(),
            variable: variable.to_owned(),
        }),
    }
}

fn variable(text: &str) -> Option<&'static str> {
    let set_in = |line: &str| {
        VARIABLES
            .into_iter()
            .find(|name| assigned(line, name).is_some())
    };
    text.lines().find_map(set_in).or_else(|| {
        text.lines()
            .find_map(|line| set_in(line.trim_start_matches(['#', ' '])))
    })
}

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

fn socket_in(line: &str) -> Option<String> {
    let name = line.rsplit(' ').next()?;
    (is_empty(name) || pid_of_socket(name).is_some()).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::root::tree::{Entry, Tree, TreeFile};

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
        let mut tree = Tree::default();
        let file = TreeFile {
            text: text.into(),
            ..TreeFile::default()
        };
        tree.add("/etc/default/irqbalance", Entry::File(file))
            .unwrap();
        let found = read(&Root::of_tree("/".as_ref(), tree), 7);
        assert_eq!(
            serde_json::to_string(&found).unwrap(),
            r#"{"pid":7,"arguments":{"file":"/etc/default/irqbalance","variable":"IRQBALANCE_ARGS"},"uses_policy_script":false,"policy_script":"/a/b"}"#
        );
    }
}
