//! The integration tests of this crate, in one program: one link instead of many.

mod ack;
mod arithmetic;
mod bbr_reports;
mod common;
mod conversation;
mod ecn;
mod flush;
mod named;
mod ns2;
mod pacing_vectors;
mod properties;
mod sack;
mod solo;
mod tcp_connection;
mod tcp_hosts;
mod tcp_wire;
mod tpa_common;
mod tpa_conversation;
mod tpa_properties;
mod tpa_vectors;
mod tpa_window;
mod tpa_wire;
mod train;
mod train_hosts;
mod vectors;
mod windows;
