//! Parts that all receivers of byte streams share: the data that has arrived, and the window that
//! is offered.

mod growth;
mod offer;
mod reassembly;

pub use growth::grown_window;
pub use offer::Offer;
pub use reassembly::Reassembly;
