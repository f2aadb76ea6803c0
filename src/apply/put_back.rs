//! Bringing the machine back to texts that were read of it before.

use crate::apply::channels::change_channels;
use crate::apply::error::ApplyError;
use crate::apply::settings::{self, RestorePlan, Texts, UnusableText};
use crate::apply::write::write_each;
use crate::plan::Write;
use crate::read::{self, Wants};
use crate::report::outcome::{ChannelOutcome, RestoreOutcome, WriteResult};
use crate::root::Root;

/// Brings the machine back to these texts: channels first, since queues and vectors come and go with them.
pub(crate) fn put_back(root: &Root, texts: &Texts, why: &str) -> Result<RestoreOutcome, ApplyError> {
    let mut back = settings::back_to(texts, &read::machine(root, Wants::default())?, why);
    let changes = back.channels.iter().map(|other| (other.interface.as_str(), other.now, other.first));
    let mut channels = change_channels(root, changes);
    let refused = channels.iter().zip(&back.channels).filter(|(done, _)| done.refused.is_some());
    let mut refused: Vec<String> = refused.map(|(_, other)| other.key.clone()).collect();
    if !channels.is_empty() {
        back = settings::back_to(texts, &read::machine(root, Wants::default())?, why);
    }
    let (keys, writes): (Vec<String>, Vec<Write>) = back.writes.into_iter().unzip();
    let mut results = write_each(root, &writes);
    refused.extend(keys.into_iter().zip(&results).filter(|(_, done)| done.failed()).map(|(key, _)| key));
    for wrong in back.wrong {
        let (why, UnusableText { key, path, interface, text, .. }) = (wrong.words(), wrong);
        refused.push(key);
        match path {
            Some(path) => results.push(WriteResult::not_done(path, text, interface, why)),
            None => channels.push(ChannelOutcome { interface, wanted: text, refused: Some(why) }),
        }
    }
    let RestorePlan { unchanged, absent, .. } = back;
    Ok(RestoreOutcome { channels, results, unchanged, absent, refused, not_back: 0, irqbalance: None })
}
