//! What tests need beside the public items. No part of the interface: the feature `testing` is for this package's tests.

use std::io;
use std::ops::Deref;

pub use crate::apply::{bind, memory_policy};
pub use crate::plan::binding::{Binding, BindingRequest, MemoryBinding, NodeChoice};
pub use crate::read::bandwidth::BandwidthTest;
pub use crate::sys;

use crate::machine::netdev::Netdev;
use crate::read::netlink::Client;

/// What the kernel's `netdev` family tells of an interface by its index; an error where there is no such family.
pub fn ask_netdev(ifindex: u32) -> io::Result<Netdev> {
    Ok(Client::open()?.ask(ifindex))
}

/// Memory of one node, in pages of its own.
pub fn pages_of(node: u32, bytes: usize) -> io::Result<impl Deref<Target = [u8]>> {
    sys::pages_of(node, bytes)
}

/// The node of the page that a value lies on.
pub fn node_of<T>(value: &T) -> io::Result<u32> {
    sys::node_of(value)
}
