//! irqbalance's service, through systemctl at a fixed path and without environment variables, so that nobody else
//! chooses what root runs.

use std::process::{Command, Stdio};

use crate::read::tools::{self, Found};
use crate::root::Root;

const SYSTEMCTL: [&str; 3] = [
    "/usr/bin/systemctl",
    "/bin/systemctl",
    "/run/current-system/sw/bin/systemctl",
];
const UNIT: &str = "irqbalance.service";

/// irqbalance's process id; `None` if it does not run.
pub(super) fn running(root: &Root) -> Option<i32> {
    match tools::irqbalance::find(root) {
        Found::Running(pid) => Some(pid),
        Found::Hidden(_) | Found::No => None,
    }
}

/// Stops the service; an error if irqbalance still runs afterwards.
pub(super) fn stop(root: &Root) -> Result<(), String> {
    systemctl(root, &["stop"])?;
    match running(root) {
        None => Ok(()),
        Some(pid) => Err(format!(
            "{UNIT} is stopped, but process {pid} still runs; stop it by hand"
        )),
    }
}

/// Starts the service without waiting for it: systemd starts nothing that is ordered with nicpin's own unit while that
/// unit stops.
pub(super) fn start(root: &Root) -> Result<(), String> {
    systemctl(root, &["start", "--no-block"])
}

fn systemctl(root: &Root, verb: &[&str]) -> Result<(), String> {
    let words = verb.join(" ");
    let program = SYSTEMCTL
        .iter()
        .find(|path| root.is_real() && root.exists(path));
    let Some(program) = program else {
        return Err(format!(
            "systemctl was not found; {words} irqbalance by hand"
        ));
    };
    let mut command = Command::new(program);
    command
        .args(verb)
        .arg(UNIT)
        .env_clear()
        .stdin(Stdio::null());
    let output = command
        .output()
        .map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let message = String::from_utf8_lossy(&output.stderr);
    let message = message.lines().next().unwrap_or_default().trim();
    Err(format!(
        "{program} {words} {UNIT}: {} ({message}): see systemctl status irqbalance",
        output.status
    ))
}
