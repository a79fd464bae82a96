//! Delayed ACK: one ACK for every second segment, or when the first waiting segment has waited for
//! a given time.
//!
//! RFC 1122, section 4.2.3.2. The timer is that of ns-2 and of DCC, section V: 100 ms (the RFC
//! allows up to 500 ms). Segments are counted whatever their size, while the RFC counts full-sized
//! segments.
//!
//! `linux_window_2`: on the testbed of the TPA paper, section 5, the Linux receiver acknowledges
//! every segment of a sender whose window is clamped to 2, because waiting for the timer would cost
//! more than the ACK. The receiver of ns-2 does not do so.

use meshpace_core::parameter::{Form, TIME};
use meshpace_core::{Duration, parameters};

/// Range of the timer for all rules: the longest wait of a segment for its ACK. RFC 1122 allows at
/// most 0.5 s.
pub(super) const TIMER: Form = TIME.above(0.0).to(0.5);

parameters! {
    /// Parameters of the delayed ACK.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct Delayed {
        /// segments per ACK
        segments: u32 = 2 => whole("segments", 1, 255), Expert, "RFC 1122, 4.2.3.2";
        /// longest time for which a segment waits for its ACK
        timer: Duration = Duration::from_millis(100) => TIMER, Basic, "RFC 1122, 4.2.3.2; ns-2, interval_";
        /// whether every segment is acknowledged if the window is limited to two segments
        linux_window_2: bool = false => FLAG, Expert, "TPA, section 5";
    }
}

impl Delayed {
    /// Number of segments that one ACK waits for. `limit` is the limit of the sender's window in
    /// segments.
    pub(super) fn segments_per_ack(&self, limit: u32) -> u32 {
        if self.linux_window_2 && limit <= 2 { 1 } else { self.segments }
    }
}
