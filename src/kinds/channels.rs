//! The numbers of channels (`ethtool -L`): queues, vectors and their masks come and go with them.

use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::errno::Errno::{EACCES, EBUSY, EINVAL, EPERM};

use crate::cpuset::QueueSet;
use crate::machine::Channels;
use crate::machine::setting::queue_files;
use crate::read::ethtool::{self, set_channels};
use crate::root::{Root, errno_of, errno_words};

const PATIENCE: Duration = Duration::from_secs(10);
const QUEUE_IN_USE: &str = "the RSS table, a flow rule or XDP may use a queue that this removes; `ethtool -X INTERFACE default` resets the table";

/// Returns when the queues are there. `resets_rss`: the RSS table is set afterwards, and may be reset before.
pub(crate) fn set(
    root: &Root,
    interface: &str,
    wanted: &Channels,
    resets_rss: bool,
) -> Result<(), String> {
    if resets_rss {
        reset_rss(root, interface, wanted);
    }
    set_channels(root, interface, wanted).map_err(|error| {
        let fix = match errno_of(&error) {
            None => return error.to_string(),
            Some(EPERM | EACCES) => "run as root",
            Some(EINVAL) => QUEUE_IN_USE,
            Some(EBUSY) => "the device is busy; fix: run again",
            _ => "the driver does not accept this number of channels",
        };
        format!("{}: {fix}", errno_words(&error))
    })?;
    let start = Instant::now();
    // A tree has no driver that creates queues.
    while root.is_real() {
        let queues = root
            .list(&queue_files(interface))
            .map_err(|error| error.to_string())?
            .into_iter()
            .flatten();
        let receiving = queues.filter(|name| name.starts_with("rx-")).count();
        if receiving == wanted.receiving() as usize {
            break;
        }
        if start.elapsed() > PATIENCE {
            let seconds = PATIENCE.as_secs();
            return Err(format!(
                "accepted, but the interface has {receiving} receive queues after {seconds} s"
            ));
        }
        sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// The kernel refuses to remove a queue that an RSS table names, unless the table is the default. The change of
/// channels reports the errors of both.
fn reset_rss(root: &Root, interface: &str, wanted: &Channels) {
    let Ok(Some(rss)) = ethtool::rss(root, interface) else {
        return;
    };
    if rss.reached().last() >= Some(&wanted.receiving()) {
        let default = rss.spread_over(&QueueSet::below(rss.queues));
        let _ = ethtool::set_rss(root, interface, &default);
    }
}
