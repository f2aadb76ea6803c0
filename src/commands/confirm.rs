//! `apply --try` and `nicpin confirm`: restore the settings after a time, unless they are confirmed.
//!
//! The watcher, a process in a session of its own, survives the end of the apply, of its terminal and of its login. If
//! the apply ends without reporting that it finished, the watcher restores at once.

use std::io::{BufRead as _, BufReader, IsTerminal as _, Read as _, Write as _, stdin};
use std::os::fd::AsFd as _;
use std::path::absolute;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use clap::Args;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::termios::{FlushArg, tcflush};
use nix::unistd::{getpgrp, tcgetpgrp};

use crate::commands::args::{General, LockArgs};
use crate::commands::inputs::open_to_write;
use crate::commands::output::{print, say};
use crate::screen::{self, with_prefix};
use crate::watch::journal;
use crate::watch::journal::Priority::{Notice, Warning};
use crate::watch::state;
use nicpin::apply::{Trial, TrialGuard, confirm, end_trial, end_watched_trial, stop_reason};
use nicpin::report::exit::Exit;
use nicpin::report::restored::TrialEnd;
use nicpin::root::{Root, sys};

#[derive(Args)]
pub struct ConfirmArgs {
    #[command(flatten)]
    lock: LockArgs,
}

#[derive(Args)]
pub struct AwaitConfirmArgs {
    /// Restore after this many seconds
    seconds: u64,
}

const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Pauses between the watcher's attempts to restore, each twice as long as the one before.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LAST_PAUSE: Duration = Duration::from_secs(60);
/// An apply on a terminal waits this long, after the trial, for its watcher to restore.
const GRACE: Duration = Duration::from_secs(2);
/// The watcher sends this to its apply when it has the lock; otherwise it sends the error.
const READY: &str = "ready";
/// The apply sends this to its watcher after the last write.
const FINISHED: &str = "finished\n";

pub fn run(cli: &General, args: &ConfirmArgs, out: &mut String) -> Result<Exit> {
    let root = open_to_write(cli)?;
    let was_idle = restores_nothing(&root);
    confirm(&root, args.lock.wait())?;
    out.push_str(if was_idle {
        "The apply --try had changed nothing; its trial has ended.\n"
    } else {
        "Confirmed: the settings of apply --try are kept.\n"
    });
    // As after an apply without `--try`.
    if state::resume(&root)? {
        out.push_str("nicpin watch is no longer paused.\n");
    }
    Ok(Exit::Planned)
}

pub struct TrialProcess(ChildStdin);

impl TrialProcess {
    pub fn start(cli: &General, seconds: u64) -> Result<Self> {
        let root = absolute(&cli.root).with_context(|| cli.root.display().to_string())?;
        // The running program, even if its file was replaced or removed.
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
            child.context("cannot start the watcher of --try; nothing was written")?;
        let mut answer = String::new();
        if let Some(stdout) = stdout {
            BufReader::new(stdout).read_line(&mut answer)?;
        }
        match (stdin, answer.trim_end()) {
            (Some(stdin), READY) => Ok(Self(stdin)),
            (_, "") => bail!("the watcher of --try ended; nothing was written"),
            (_, error) => bail!("{error}; so --try has no watcher, and nothing was written"),
        }
    }

    /// Starts the time of the trial; restores at once if the watcher has ended.
    pub fn go(mut self, root: &Root) -> Result<()> {
        let sent = self.0.write_all(FINISHED.as_bytes()).is_ok();
        if !sent && end_trial(root, Duration::MAX)?.is_some() {
            let left = Trial::load(root)?.and_then(|trial| trial.not_restored());
            let left = with_prefix(", but ", left);
            bail!("the watcher of --try ended; the settings were restored{left}");
        }
        Ok(())
    }
}

/// The watcher: `nicpin await-confirm`.
pub fn watch(cli: &General, args: &AwaitConfirmArgs) -> Result<Exit> {
    nix::unistd::setsid().context("setsid")?;
    // The caller's locks and pipes are not the watcher's.
    sys::close_from(3).context("close_range")?;
    let root = open_to_write(cli)?;
    let watch = TrialGuard::begin(&root);
    let answer = match &watch {
        Ok(_) => READY.to_owned(),
        Err(error) => error.to_string(),
    };
    print((answer + "\n").as_bytes())?;
    let watch = watch?;
    let mut message = String::new();
    // If the pipe was closed without the message, the apply was killed.
    let finished = stdin().read_to_string(&mut message).is_ok() && message == FINISHED;
    let end = Instant::now() + Duration::from_secs(if finished { args.seconds } else { 0 });
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            restore_unconfirmed(&root, &watch);
            return Ok(Exit::Planned);
        }
        if !watch.is_current(&root) || !waits(&root) {
            return Ok(Exit::Planned);
        }
        sleep(POLL_INTERVAL.min(left));
    }
}

fn restore_unconfirmed(root: &Root, watch: &TrialGuard) {
    const NOT_CONFIRMED: &str = "apply --try was not confirmed in time";
    let mut pause = FIRST_PAUSE;
    loop {
        let obstacle = match end_watched_trial(root, watch) {
            Ok(None) => return,
            Ok(Some(restored)) => {
                let trial = Trial::load(root).ok().flatten();
                let left = trial.and_then(|trial| trial.not_restored());
                if !restored.has_refused() {
                    let left = with_prefix(", but ", left);
                    let text = format!("{NOT_CONFIRMED}; the settings were restored{left}");
                    return journal::send(root, Notice, &text);
                }
                left.unwrap_or_default()
            }
            Err(error) => error.to_string(),
        };
        let text = format!(
            "{NOT_CONFIRMED}, and its settings stay: {obstacle}; trying again in {} s",
            pause.as_secs_f32()
        );
        journal::send(root, Warning, &text);
        sleep(pause);
        pause = LAST_PAUSE.min(2 * pause);
    }
}

/// An unreadable trial file counts as unconfirmed.
pub fn waits(root: &Root) -> bool {
    !matches!(Trial::waiting(root), Ok(None))
}

/// Whether no trial waits, or one whose apply changed nothing.
pub fn restores_nothing(root: &Root) -> bool {
    Trial::load(root).is_ok_and(|trial| trial.is_none_or(|trial| trial.found_all_as_planned(root)))
}

/// Asks on standard error: the report on standard output may be JSON.
pub fn ask(root: &Root, seconds: u64, wait: Duration, exit: Exit) -> Result<Exit> {
    let stdin = stdin();
    if !stdin.is_terminal() || stop_reason().is_some() || restores_nothing(root) {
        return Ok(exit);
    }
    let watch = TrialGuard::open(root)?;
    // Input typed before the question is no answer. In the background, tcflush would stop the process.
    if tcgetpgrp(&stdin).is_err() || tcgetpgrp(&stdin) == Ok(getpgrp()) {
        tcflush(&stdin, FlushArg::TCIFLUSH)?;
    }
    say("press Enter to keep the settings");
    let (mut listening, mut ended) = (true, TrialEnd::InTime);
    // The watcher may have to wait for another nicpin before it restores.
    let late = Instant::now() + Duration::from_secs(seconds) + GRACE;
    let interval = PollTimeout::try_from(POLL_INTERVAL).unwrap_or(PollTimeout::MAX);
    while waits(root) {
        let unwatched = watch.has_ended();
        if unwatched || Instant::now() > late {
            let undone = end_trial(root, Duration::MAX)
                .context("it was not confirmed, and cannot be restored")?;
            if undone.is_some() && unwatched {
                ended = TrialEnd::Unwatched;
            }
            break;
        }
        if !listening {
            sleep(POLL_INTERVAL);
        } else if poll(
            &mut [PollFd::new(stdin.as_fd(), PollFlags::POLLIN)],
            interval,
        )? > 0
        {
            // A terminal that was closed is not a confirmation.
            let read = stdin.lock().read_line(&mut String::new());
            listening = read.is_ok_and(|read| read > 0);
            if listening {
                confirm(root, wait)?;
                state::resume(root)?;
            }
        }
    }
    let Some(trial) = Trial::load(root)? else {
        say("kept");
        return Ok(exit);
    };
    say(&screen::applied::trial_over(
        trial.not_restored().as_deref(),
        ended,
    ));
    Ok(Exit::Failed)
}
