//! Items for tests beside the public ones. Not part of the interface: the feature `testing` is for this package's
//! tests.

use std::io;
#[cfg(feature = "cli")]
use std::ops::Deref;

#[cfg(feature = "cli")]
pub use crate::apply::{bind, memory_policy};
#[cfg(feature = "cli")]
pub use crate::plan::binding::{Binding, BindingRequest, MemoryBinding, NodeChoice};
#[cfg(feature = "cli")]
pub use crate::read::bandwidth::BandwidthTest;
pub use crate::sys;

use crate::machine::netdev::Netdev;
use crate::read::netlink::Client;

/// The answer of the kernel's `netdev` family about an interface by its index; an error without this family.
pub fn ask_netdev(ifindex: u32) -> io::Result<Netdev> {
    Ok(Client::open()?.ask(ifindex, false))
}

/// Allocates pages on one node.
#[cfg(feature = "cli")]
pub fn pages_of(node: u32, bytes: usize) -> io::Result<impl Deref<Target = [u8]>> {
    sys::pages_of(node, bytes)
}

/// The node of the page that holds a value.
#[cfg(feature = "cli")]
pub fn node_of<T>(value: &T) -> io::Result<u32> {
    sys::node_of(value)
}
