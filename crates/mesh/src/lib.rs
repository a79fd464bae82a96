//! The 802.11 mesh: radio, MAC, link queue, routing. State machines without a clock, generic over the packets they carry.
//!
//! Every part is told the time and what happened, and answers with actions; the `sim` crate executes them, in virtual time for the
//! simulator and in real time for the emulator. Nothing here knows a transport.
#![warn(clippy::unwrap_used, clippy::print_stdout, clippy::print_stderr, clippy::missing_errors_doc)]
#![no_std]

extern crate alloc;

pub mod body;
pub mod category;
pub mod config;
pub mod link;
pub mod mac;
pub mod packet;
pub mod position;
pub mod radio;
pub mod routing;

pub use body::{Body, Queued};
pub use config::{
    AodvConfig, AodvDetection, EdcaConfig, HtConfig, LinkConfig, LocalRepair, MacConfig, MacProfile, MeshConfig,
    OlsrConfig, OlsrMetric, Position, Preamble, Propagation, RadioConfig, RateControl, Reception, RetryLimits,
    RoutingConfig, RtsPolicy,
};
pub use packet::{Asked, Packet};
