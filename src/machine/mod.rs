//! The machine as a snapshot of facts, read once by [`read`](crate::read). Nothing later reads the machine again for
//! planning.

pub mod channels;
pub mod home;
pub mod interface;
pub mod link;
pub mod mask;
pub mod memory;
pub mod neighbours;
pub mod netdev;
pub mod others;
pub mod paths;
pub mod polling;
pub mod program;
pub mod rss;
pub mod rx_hash;
pub mod sample;
pub mod selection;
pub mod setting;
pub mod shell;
pub mod sockets;
pub mod tools;
pub mod topology;
pub mod vector;
pub mod wording;

mod facts;

pub use channels::Channels;
pub use facts::Machine;
pub use home::NodeSource;
pub use interface::{Device, Interface, RxQueue, Sharer, Stacked, TxQueue, VmbusChannel};
pub use link::PcieLink;
pub use mask::MaskFile;
pub use neighbours::{Neighbour, NeighbourKind};
pub use others::Others;
pub use polling::{NapiThread, Polling};
pub use program::{Program, ProgramCpus};
pub use rss::Rss;
pub use sample::{CountRow, Counts};
pub use selection::{SelectError, Selection};
pub use setting::{Setting, SettingValue, WriteKind};
pub use tools::OtherTools;
pub use topology::{Node, Topology};
pub use vector::{Role, Source, UnknownVector, Vector};
