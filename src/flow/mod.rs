//! Where a flow will arrive: from its addresses and ports to the receive queue, its IRQ, the CPU of that, and the CPU of
//! RPS. A function of the facts; nothing is guessed: where an input is missing, the answer says which.

mod arrival;
mod ends;
mod toeplitz;

pub use arrival::{Arrival, Missing, Through, arrival, arrivals, ports_to};
pub use ends::{Flow, FlowError, Protocol, connections, parse_end};
pub use toeplitz::toeplitz;
