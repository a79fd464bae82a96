//! The 802.11 mesh: radio, MAC, link queue and routing. All parts are state machines without a
//! clock, generic over the packets they carry.
//!
//! The caller hands each part the current time and an event, and the part returns actions. The
//! `sim` crate executes the actions, in virtual time for the simulator and in real time for the
//! emulator. This crate contains no transport protocol.
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
pub use packet::{AttemptRequest, Packet};
