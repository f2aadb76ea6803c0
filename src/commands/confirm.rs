//! `apply --try` and `nicpin confirm`: keep what was set, or see it put back.
//!
//! The time is watched by a process of its own, started before the first write and in a session of its own: it
//! outlives the apply, its terminal and its login. Until the apply says that it has finished, its end is a failure,
//! and everything is put back at once.

use std::io::{BufRead as _, BufReader, IsTerminal as _, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, bail};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::apply::{Trial, TrialWatch, confirm, end_trial};
use crate::cli::{ApplyArgs, AwaitConfirmArgs, Cli, ConfirmArgs};
use crate::commands::open_to_write;
use crate::render;
use crate::report::exit::Exit;
use crate::report::restored::TrialEnd;
use crate::root::Root;

/// How often a trial is looked at.
const BEAT: Duration = Duration::from_millis(100);
/// How long to wait for another nicpin before what is on trial is put back. No apply takes so long.
const LOCK: Duration = Duration::from_secs(3600);
/// How long after the end of the time an apply on a terminal waits for what its watcher does.
const GRACE: Duration = Duration::from_secs(2);
/// What the apply says to its watcher when it has finished.
const FINISHED: &str = "finished\n";

pub(super) fn run(cli: &Cli, args: &ConfirmArgs, out: &mut String) -> Result<Exit> {
    confirm(&open_to_write(cli)?, Duration::from_secs(args.lock.wait))?;
    out.push_str("kept: what apply --try has set stays\n");
    Ok(Exit::Planned)
}

/// The process that watches the time, as the apply sees it.
pub(super) struct Watcher {
    stdin: ChildStdin,
}

impl Watcher {
    /// Starts it, and returns when it watches.
    pub(super) fn start(cli: &Cli, seconds: u64) -> Result<Self> {
        let root = std::path::absolute(&cli.root).with_context(|| cli.root.display().to_string())?;
        // The program that runs, whatever has become of its file.
        let child = Command::new("/proc/self/exe")
            .args(["await-confirm", &seconds.to_string(), "--root"])
            .arg(root)
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        let Child { stdin, stdout, .. } =
            child.context("cannot start the process that watches --try; nothing was written")?;
        let mut ready = String::new();
        if let Some(stdout) = stdout {
            BufReader::new(stdout).read_line(&mut ready)?;
        }
        match stdin {
            Some(stdin) if !ready.is_empty() => Ok(Self { stdin }),
            _ => bail!("the process that watches --try has failed; nothing was written"),
        }
    }

    /// Lets the time begin. If nobody watches it, all is put back at once.
    pub(super) fn go(mut self, root: &Root) -> Result<()> {
        if self.stdin.write_all(FINISHED.as_bytes()).is_err() && end_trial(root, LOCK)?.is_some() {
            let left = Trial::load(root)?.and_then(|trial| trial.not_back());
            let left = left.map(|left| format!(", but {left}")).unwrap_or_default();
            bail!("the process that watches --try has died; what was set was put back{left}");
        }
        Ok(())
    }
}

/// Watches the time, in a process of its own.
pub(super) fn watch(cli: &Cli, args: &AwaitConfirmArgs) -> Result<Exit> {
    nix::unistd::setsid().context("setsid")?;
    let root = open_to_write(cli)?;
    let _watch = TrialWatch::take(&root)?.ok_or_else(|| anyhow!("another apply --try is waiting"))?;
    let mut stdout = std::io::stdout();
    stdout.write_all(b"ready\n").and_then(|()| stdout.flush())?;
    let mut said = String::new();
    // Without that word the apply was killed.
    let finished = std::io::stdin().read_to_string(&mut said).is_ok() && said == FINISHED;
    let end = Instant::now() + Duration::from_secs(if finished { args.seconds } else { 0 });
    while Instant::now() < end {
        if !waits(&root) {
            return Ok(Exit::Planned);
        }
        std::thread::sleep(BEAT.min(end.saturating_duration_since(Instant::now())));
    }
    end_trial(&root, LOCK)?;
    Ok(Exit::Planned)
}

/// Whether a trial is still to be confirmed. One that cannot be read was not.
pub(super) fn waits(root: &Root) -> bool {
    Trial::load(root).map_or(true, |trial| trial.is_some_and(|trial| !trial.over))
}

/// On a terminal, waits for Enter or for the end of the trial.
pub(super) fn ask(cli: &Cli, args: &ApplyArgs, exit: Exit, out: &mut String) -> Result<Exit> {
    let stdin = std::io::stdin();
    if args.trial.is_none() || !stdin.is_terminal() {
        return Ok(exit);
    }
    let root = open_to_write(cli)?;
    // Nothing was set.
    if Trial::load(&root).is_ok_and(|trial| trial.is_none()) {
        return Ok(exit);
    }
    let mut listening = true;
    let mut ended = TrialEnd::InTime;
    // The watcher needs a moment to put back, and another nicpin may keep it waiting.
    let late = Duration::from_secs(args.trial.unwrap_or_default()) + GRACE;
    let start = Instant::now();
    while waits(&root) {
        let watch = TrialWatch::take(&root)?;
        if watch.is_some() || start.elapsed() > late {
            // Nobody watches the time, or whoever does has been stopped.
            let undone = end_trial(&root, LOCK).context("nobody confirmed it, and it cannot be put back")?;
            if undone.is_some() && watch.is_some() {
                ended = TrialEnd::Unwatched;
            }
            break;
        }
        if !listening {
            std::thread::sleep(BEAT);
            continue;
        }
        let mut fds = [PollFd::new(stdin.as_fd(), PollFlags::POLLIN)];
        if poll(&mut fds, PollTimeout::try_from(BEAT).unwrap_or(PollTimeout::MAX))? == 0 {
            continue;
        }
        let mut line = String::new();
        // A terminal that is gone confirms nothing.
        if stdin.lock().read_line(&mut line).is_ok_and(|read| read > 0) {
            confirm(&root, Duration::from_secs(args.lock.wait))?;
        } else {
            listening = false;
        }
    }
    let Some(trial) = Trial::load(&root)? else {
        out.push_str("kept\n");
        return Ok(exit);
    };
    out.push_str(&render::applied::trial_over(trial.not_back().as_deref(), ended));
    Ok(Exit::Failed)
}
