//! What decides on the receive queue of a flow, as ethtool reports it; in a tree the recorded answer,
//! `/nicpin/ethtool/INTERFACE/rx-hash`.

use std::collections::BTreeMap;

use nix::errno::Errno;

use crate::machine::rx_hash::{Filter, FilterTarget, FlowKind, Key, RssContext, RxHash};
use crate::machine::setting::ETHTOOL;
use crate::root::sys::ethtool as ioctls;
use crate::root::{FileError, Root};

/// The key that `netdev_rss_key_fill` gives to drivers (`Documentation/admin-guide/sysctl/net.rst`).
const SYSTEM_KEY: &str = "/proc/sys/net/core/netdev_rss_key";

const RELEASE: &str = "/proc/sys/kernel/osrelease";

/// Reads it; `None` in a tree without a recorded answer.
pub(crate) fn read(root: &Root, interface: &str) -> Result<Option<RxHash>, FileError> {
    let path = format!("{ETHTOOL}/{interface}/rx-hash");
    let (mut release, mut system_key) = (None, Key::default());
    if root.is_real() {
        let parse = |text: &str| {
            Key::parse(text).ok_or_else(|| root.content_error(SYSTEM_KEY, "is not a key"))
        };
        system_key = root.parse_opt(SYSTEM_KEY, parse)?.unwrap_or_default();
        release = root.read_opt(RELEASE)?.as_deref().and_then(numbers);
    }
    root.answer(&path, || Ok(Some(ask(interface, release, system_key))))
}

/// Major and minor number of a release such as `6.12.95-amd64`.
fn numbers(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

fn ask(interface: &str, release: Option<(u32, u32)>, system_key: Key) -> RxHash {
    let filters = match ioctls::get_filters(interface) {
        Err(Errno::EOPNOTSUPP) => Some(Vec::new()),
        filters => filters.ok(),
    };
    let filters = filters.map(|filters| {
        let parsed = filters
            .iter()
            .map(|(spec, context)| Filter::parse(spec, *context));
        parsed.collect::<Vec<Filter>>()
    });
    let filter_count = filters
        .as_ref()
        .and_then(|filters| u32::try_from(filters.len()).ok());
    let filters = filters.unwrap_or_default();
    let mut contexts: BTreeMap<u32, RssContext> = BTreeMap::new();
    let named = filters.iter().filter_map(|filter| match filter.to {
        FilterTarget::Context { context, .. } => Some(context),
        _ => None,
    });
    for number in [0].into_iter().chain(named) {
        if let Ok((function, transform, key, table)) = ioctls::get_context(interface, number) {
            if !table.is_empty() {
                let key = Key(key);
                contexts.insert(
                    number,
                    RssContext {
                        function,
                        transform,
                        key,
                        table,
                    },
                );
            }
        }
    }
    let fields = FlowKind::ALL
        .iter()
        .filter_map(|(kind, number)| Some((*kind, ioctls::get_fields(interface, *number).ok()?)));
    RxHash {
        contexts,
        fields: fields.collect(),
        to_stack: ioctls::gives_hash(interface).ok(),
        filter_count,
        filters,
        release,
        system_key,
    }
}
