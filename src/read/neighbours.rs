//! Reads what else is on a node: GPUs, accelerators and disks on PCI, and RDMA devices.

use crate::machine::neighbours::{Neighbour, NeighbourKind};
use crate::read::device::device_path;
use crate::read::files::parse_node;
use crate::read::others::{PCI, RDMA};
use crate::root::{FileError, Root};

/// More PCI functions than any machine has.
const MAX_FUNCTIONS: usize = 65_536;

/// The neighbours, by kind and name. Virtual functions do not count: they are their physical function's.
pub(crate) fn neighbours(root: &Root) -> Result<Vec<Neighbour>, FileError> {
    let mut found = Vec::new();
    for name in root
        .list(PCI)?
        .unwrap_or_default()
        .into_iter()
        .take(MAX_FUNCTIONS)
    {
        let path = format!("{PCI}/{name}");
        let read = |file: &str| {
            Ok(root
                .read_opt(&format!("{path}/{file}"))?
                .unwrap_or_default())
        };
        let class: String = read("class")?;
        // The vendor decides only on displays.
        let vendor = if class.starts_with("0x03") {
            read("vendor")?
        } else {
            String::new()
        };
        if let Some(kind) = NeighbourKind::of(&class, &vendor) {
            found.extend(neighbour(root, kind, name, &path)?);
        }
    }
    for name in root.list(RDMA)?.unwrap_or_default() {
        // A software device has none.
        let Some(link) = root.canonical(&format!("{RDMA}/{name}/device")) else {
            continue;
        };
        found.extend(neighbour(
            root,
            NeighbourKind::Rdma,
            name,
            &device_path(root, &link),
        )?);
    }
    found.sort_by(|a, b| (a.kind, &a.name).cmp(&(b.kind, &b.name)));
    Ok(found)
}

/// A device at a path; `None` for a virtual function.
fn neighbour(
    root: &Root,
    kind: NeighbourKind,
    name: String,
    path: &str,
) -> Result<Option<Neighbour>, FileError> {
    if root.link_name(&format!("{path}/physfn")).is_some() {
        return Ok(None);
    }
    let node = root
        .read_opt(&format!("{path}/numa_node"))?
        .as_deref()
        .and_then(parse_node);
    Ok(Some(Neighbour {
        kind,
        name,
        driver: root.link_name(&format!("{path}/driver")),
        node,
    }))
}
