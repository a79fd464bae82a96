//! A stream for paths outside the mesh: BBR, selective reports, loss recovery by packet numbers.
//!
//! The congestion control is BBR as in Cardwell et al., "BBR: Congestion-Based Congestion Control",
//! ACM Queue 14(5), 2016, and draft-cardwell-iccrg-bbr-congestion-control-00 (`control`). The
//! delivery rate is that of draft-cheng-iccrg-delivery-rate-estimation-02 (`flight`). Segments are
//! numbered, a retransmission has a new number, and an ACK names ranges of numbers, as in QUIC (RFC
//! 9000, sections 13.2 and 19.3). Losses are detected as in RFC 9002, section 6 (`flight`).
//!
//! The stream has no handshake of its own: its driver has opened the connection, and both ends
//! begin in the established state.
//!
//! Departures: there is no ECN, no policer detection ("long-term" sampling), and no packet
//! conservation in recovery; losses are repaired at the rate of the model. A reordering that was
//! taken for a loss raises both thresholds (RFC 9002 allows it, sections 6.1.1 and 6.1.2).

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

/// Largest part of a segment, as a divisor, that a small message has, with or without the repeated
/// data before it.
const SMALL: u32 = 2;

/// Settings of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// Payload of a full segment, bytes, 1 to 65495.
    pub segment: u32,
    /// Room in bytes for received data that the application has not taken; offered in full once the
    /// application has taken a part of that amount.
    pub receive_buffer: u64,
    /// Bytes that each end may send before it gets more credit.
    pub first_credit: u64,
}
