//! Channels before everything else: queues, vectors and their masks come and go with them.

use std::time::{Duration, Instant};

use crate::machine::Channels;
use crate::read::ethtool::set_channels;
use crate::report::outcome::ChannelOutcome;
use crate::root::Root;
use crate::root::errno_words;

/// How long a driver may take to have its new queues.
const PATIENCE: Duration = Duration::from_secs(10);

/// Gives interfaces their channels, and waits until each has its queues.
pub(crate) fn change_channels<'a>(
    root: &Root,
    changes: impl IntoIterator<Item = (&'a str, Channels, Channels)>,
) -> Vec<ChannelOutcome> {
    let change = |(interface, current, wanted): (&str, Channels, Channels)| ChannelOutcome {
        interface: interface.to_owned(),
        wanted: wanted.difference(&current),
        refused: change_one(root, interface, wanted).err(),
    };
    changes.into_iter().map(change).collect()
}

fn change_one(root: &Root, interface: &str, wanted: Channels) -> Result<(), String> {
    set_channels(root, interface, &wanted).map_err(|error| {
        let fix = match error.raw_os_error() {
            Some(nix::libc::EPERM | nix::libc::EACCES) => "run as root",
            Some(nix::libc::EINVAL) => {
                "the RSS table, flow rules or XDP may use a queue that would go; ethtool -X INTERFACE default resets the table"
            }
            Some(nix::libc::EBUSY) => "the card is busy; run again",
            _ => "the driver does not take it",
        };
        format!("{}: {fix}", errno_words(&error))
    })?;
    // A tree has no driver that would make queues.
    if !root.is_real() {
        return Ok(());
    }
    let start = Instant::now();
    loop {
        let queues =
            root.list(&format!("/sys/class/net/{interface}/queues")).ok().flatten().unwrap_or_default();
        let receiving = queues.iter().filter(|name| name.starts_with("rx-")).count();
        if receiving == wanted.receiving() as usize {
            return Ok(());
        }
        if start.elapsed() > PATIENCE {
            let seconds = PATIENCE.as_secs();
            return Err(format!("taken, but after {seconds} s the interface has {receiving} receive queues"));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}
