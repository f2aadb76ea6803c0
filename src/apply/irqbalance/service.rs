//! irqbalance's service, by systemctl of a fixed place and without the environment: whoever starts nicpin does not
//! choose what runs.

use std::process::{Command, Stdio};

use crate::read::tools;
use crate::root::Root;

const SYSTEMCTL: [&str; 3] = ["/usr/bin/systemctl", "/bin/systemctl", "/run/current-system/sw/bin/systemctl"];
const UNIT: &str = "irqbalance.service";

/// Its process id, if it runs now.
pub(super) fn running(root: &Root) -> Option<i32> {
    let processes = tools::processes(root, &["irqbalance"]).ok()?;
    processes.first().map(|process| process.pid)
}

/// Stops the service; the reason if irqbalance still runs then.
pub(super) fn stop(root: &Root) -> Result<(), String> {
    systemctl(root, "stop")?;
    match running(root) {
        None => Ok(()),
        Some(pid) => Err(format!("{UNIT} is stopped, and process {pid} still runs: stop it by hand")),
    }
}

/// Starts the service.
pub(super) fn start(root: &Root) -> Result<(), String> {
    systemctl(root, "start")
}

fn systemctl(root: &Root, verb: &str) -> Result<(), String> {
    let program = SYSTEMCTL.iter().find(|path| root.is_real() && root.exists(path));
    let Some(program) = program else {
        return Err(format!("there is no systemctl here: {verb} irqbalance by hand"));
    };
    let mut command = Command::new(program);
    command.args([verb, UNIT]).env_clear().stdin(Stdio::null());
    let output = command.output().map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.lines().next().unwrap_or_default().trim();
    Err(format!("{program} {verb} {UNIT}: {} ({said}): see systemctl status irqbalance", output.status))
}
