//! The parts that all receivers of byte streams share: what has arrived, and the window that is offered.

mod offer;
mod reassembly;

pub use offer::Offer;
pub use reassembly::Reassembly;
