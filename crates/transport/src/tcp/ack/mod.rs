//! How are segments acknowledged.

/// When the receiver sends an ACK.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Config {
    /// At once for every data segment (RFC 5681, section 4.2 allows it; ns-2 `TCPSink`).
    EverySegment,
}
