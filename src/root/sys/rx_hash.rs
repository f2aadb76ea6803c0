//! Ioctls about the receive queue of a flow: RSS contexts with their keys, the fields that are hashed, ntuple filters
//! (`include/uapi/linux/ethtool.h`). None needs a privilege.

use nix::errno::Errno;

use super::ethtool::{EthtoolCommand, EthtoolRxfh, ethtool, get_feature};

const ETHTOOL_GRXFH: u32 = 0x29;
const ETHTOOL_GRXCLSRLCNT: u32 = 0x2e;
const ETHTOOL_GRXCLSRULE: u32 = 0x2f;
const ETHTOOL_GRXCLSRLALL: u32 = 0x30;
const ETHTOOL_GRSSH: u32 = 0x46;

/// The most bytes of table and key: 2048 entries (Linux 6.12 has no larger table), and a key of 256 bytes.
const MAX_CONFIG: usize = 2048 * 4 + 256;

/// The most filters that are read.
const MAX_FILTERS: usize = 2048;

/// `struct ethtool_rxnfc` with room for the locations of rules.
#[repr(C)]
struct Rules {
    cmd: u32,
    flow_type: u32,
    data: u64,
    spec: [u8; 168],
    /// The number of rules, or the RSS context of one.
    count: u32,
    locations: [u32; MAX_FILTERS],
}

/// `struct ethtool_rxfh` with its table and key.
#[repr(C)]
struct Context {
    header: EthtoolRxfh,
    config: [u8; MAX_CONFIG],
}

// SAFETY: laid out as in the kernel's header; the kernel writes at most `count` locations, which is at most
// `MAX_FILTERS`.
unsafe impl EthtoolCommand for Rules {}
// SAFETY: as above; it is only made with sizes of table and key that together fit into `config`.
unsafe impl EthtoolCommand for Context {}

/// An RSS context: function, transformation, key, table. The error is EOPNOTSUPP where the driver has none.
pub(crate) fn get_context(
    interface: &str,
    context: u32,
) -> Result<(u8, u8, Vec<u8>, Vec<u32>), Errno> {
    let mut sizes = EthtoolRxfh::new(ETHTOOL_GRSSH, context);
    ethtool(interface, &mut sizes)?;
    let (table, key) = (sizes.table_size as usize * 4, sizes.key_size as usize);
    if table + key > MAX_CONFIG {
        return Err(Errno::EOPNOTSUPP);
    }
    let header = EthtoolRxfh {
        cmd: ETHTOOL_GRSSH,
        context,
        ..sizes
    };
    let mut whole = Box::new(Context {
        header,
        config: [0; MAX_CONFIG],
    });
    ethtool(interface, &mut *whole)?;
    let entries = whole.config[..table].chunks_exact(4);
    Ok((
        whole.header.function,
        whole.header.transform,
        whole.config[table..table + key].to_vec(),
        entries
            .map(|entry| u32::from_ne_bytes([entry[0], entry[1], entry[2], entry[3]]))
            .collect(),
    ))
}

/// The fields that the device hashes of a type of flow (`RXH_*`).
pub(crate) fn get_fields(interface: &str, flow_type: u32) -> Result<u32, Errno> {
    let mut command = rules(ETHTOOL_GRXFH);
    command.flow_type = flow_type;
    ethtool(interface, &mut *command)?;
    Ok(u32::try_from(command.data).unwrap_or(u32::MAX))
}

/// Whether the device's hash is given to the stack.
pub(crate) fn gives_hash(interface: &str) -> Result<bool, Errno> {
    Ok(get_feature(interface, "rx-hashing")?.0)
}

/// The ntuple filters: each as the kernel has it, with its RSS context.
pub(crate) fn get_filters(interface: &str) -> Result<Vec<([u8; 168], u32)>, Errno> {
    let mut command = rules(ETHTOOL_GRXCLSRLCNT);
    ethtool(interface, &mut *command)?;
    if command.count as usize > MAX_FILTERS {
        return Err(Errno::E2BIG);
    }
    command.cmd = ETHTOOL_GRXCLSRLALL;
    if command.count == 0 {
        return Ok(Vec::new());
    }
    ethtool(interface, &mut *command)?;
    let count = (command.count as usize).min(MAX_FILTERS);
    let filter = |&location: &u32| {
        let mut command = rules(ETHTOOL_GRXCLSRULE);
        command.spec[160..164].copy_from_slice(&location.to_ne_bytes());
        ethtool(interface, &mut *command)?;
        Ok((command.spec, command.count))
    };
    command.locations[..count].iter().map(filter).collect()
}

fn rules(cmd: u32) -> Box<Rules> {
    Box::new(Rules {
        cmd,
        flow_type: 0,
        data: 0,
        spec: [0; 168],
        count: 0,
        locations: [0; MAX_FILTERS],
    })
}
