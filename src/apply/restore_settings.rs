//! Restores settings that were read before.

use crate::apply::channels::change_channels;
use crate::apply::error::ApplyError;
use crate::apply::settings::{self, RestorePlan, Texts, UnusableText};
use crate::apply::write::write_each;
use crate::plan::Write;
use crate::read::{self, Wants};
use crate::report::outcome::{ChannelOutcome, RestoreOutcome, WriteResult};
use crate::root::Root;

/// Restores these texts: channels first, since queues and vectors are created and removed with them.
pub(crate) fn restore_settings(root: &Root, texts: &Texts, why: &str) -> Result<RestoreOutcome, ApplyError> {
    let mut planned = settings::plan_restore(texts, &read::machine(root, Wants::default())?, why);
    let changes =
        planned.channels.iter().map(|change| (change.interface.as_str(), change.now, change.recorded));
    let mut channels = change_channels(root, changes);
    let refused = channels.iter().zip(&planned.channels).filter(|(done, _)| done.refused.is_some());
    let mut refused: Vec<String> = refused.map(|(_, change)| change.key.clone()).collect();
    if !channels.is_empty() {
        planned = settings::plan_restore(texts, &read::machine(root, Wants::default())?, why);
    }
    let (keys, writes): (Vec<String>, Vec<Write>) = planned.writes.into_iter().unzip();
    let mut results = write_each(root, &writes);
    refused.extend(keys.into_iter().zip(&results).filter(|(_, done)| done.failed()).map(|(key, _)| key));
    for unusable in planned.unusable {
        let (why, UnusableText { key, path, interface, text, .. }) = (unusable.reason(), unusable);
        refused.push(key);
        match path {
            Some(path) => results.push(WriteResult::not_done(path, text, interface, why)),
            None => channels.push(ChannelOutcome { interface, wanted: text, refused: Some(why) }),
        }
    }
    let RestorePlan { unchanged, absent, .. } = planned;
    Ok(RestoreOutcome { channels, results, unchanged, absent, refused, not_restored: 0, irqbalance: None })
}
