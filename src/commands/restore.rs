//! `nicpin restore`: put back what the first apply found.

use std::time::Duration;

use anyhow::Result;

use crate::apply::{Lock, Record, Written, change_channels, write_all};
use crate::cli::{Cli, ReportFormat, RestoreArgs};
use crate::commands::{Exit, open_to_write};
use crate::host::Host;
use crate::render;
use crate::render::report::Restored;

pub(super) fn run(cli: &Cli, args: &RestoreArgs, out: &mut String) -> Result<Exit> {
    let root = open_to_write(cli)?;
    let mut restored = Restored::default();
    if Record::exists(&root) {
        let _lock = Lock::take(&root, "restore", Duration::from_secs(args.lock.wait))?;
        let mut record = Record::load(&root)?;
        let mut back = record.writes_back(&Host::read(&root)?);
        let changes = back.channels.iter().map(|(interface, now, first)| (interface.as_str(), *now, *first));
        let channels = change_channels(&root, changes);
        if !channels.is_empty() {
            back = record.writes_back(&Host::read(&root)?);
        }
        let outcomes = write_all(&root, &back.writes);
        let failed = outcomes.iter().any(Written::failed) || channels.iter().any(|c| c.refused.is_some());
        restored = Restored::new(channels, outcomes, &back);
        // What was refused may be put back later; what is not there now may come back.
        if !failed {
            record.keep_only(&back.absent);
            record.save(&root)?;
        }
    }
    out.push_str(&match args.format {
        ReportFormat::Table => render::report::restored(&restored),
        ReportFormat::Json => render::json(&restored)?,
    });
    Ok(if restored.failed() { Exit::Failed } else { Exit::Planned })
}
