//! Where a flow will arrive: from its addresses and ports to the receive queue, its IRQ and CPU, and the CPU of RPS.
//! Nothing is guessed: the answer names what is not known.

mod arrival;
mod ends;
mod toeplitz;

pub use arrival::{Arrival, Missing, Through, arrival, arrivals, ports_to};
pub use ends::{Flow, FlowError, Protocol, connections, parse_end};
pub use toeplitz::toeplitz;
