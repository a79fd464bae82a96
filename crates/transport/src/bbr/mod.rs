//! A stream for paths that are no mesh: BBR, selective reports, recovery by packet numbers.
//!
//! The congestion control is BBR as in Cardwell et al., "BBR: Congestion-Based Congestion Control", ACM Queue 14(5), 2016, and
//! draft-cardwell-iccrg-bbr-congestion-control-00 (`control`), with the delivery rate of
//! draft-cheng-iccrg-delivery-rate-estimation-02 (`flight`). Segments are numbered, what is sent again has a new number, and an ACK
//! names ranges of numbers, as in QUIC (RFC 9000, sections 13.2 and 19.3); losses are found as RFC 9002, section 6 says (`flight`).
//!
//! It has no handshake of its own: whoever runs it has opened the connection, and both ends begin established.
//!
//! Departures: no ECN, no policer detection ("long-term" sampling), no packet conservation in recovery: losses are repaired at the rate
//! that the model gives. A reordering that was taken for loss raises both thresholds (RFC 9002 allows it,
//! sections 6.1.1 and 6.1.2).

mod connection;
pub(crate) mod control;
pub(crate) mod flight;
mod lost;
mod piece;
mod receiver;
mod segment;
mod sender;
#[cfg(test)]
mod tests;

pub use connection::Connection;
pub use control::Phase;
pub use segment::{RANGES, Report, Segment};

/// The part of a segment, as a divisor, that a small message has at most, and what repeats others together with those.
const SMALL: u32 = 2;

/// Settings of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// Payload of a full segment, bytes, 1 to 65495.
    pub segment: u32,
    /// Bytes received beyond what the application has taken that there is room for, once it has taken a part of as much.
    pub receive_buffer: u64,
    /// Bytes that either end may send before it is told more.
    pub first_credit: u64,
}
