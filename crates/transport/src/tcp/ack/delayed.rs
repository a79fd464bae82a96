//! Delayed ACK: one for every second segment, or when the first has waited.
//!
//! RFC 1122, section 4.2.3.2, with the timer of ns-2 and of DCC, section V: 100 ms (the RFC allows up to 500 ms). Segments
//! are counted whatever their size; the RFC counts full-sized ones.
//!
//! `linux_window_2`: on the testbed of the TPA paper, section 5, the Linux receiver acknowledges every segment of a sender
//! whose window is clamped to 2, for the timer would cost more than the ACK; the receiver of ns-2 does not.

use meshpace_core::parameter::{Form, TIME};
use meshpace_core::{Duration, parameters};

/// The longest wait of a segment for its ACK under any rule: RFC 1122 allows no more.
pub(super) const TIMER: Form = TIME.above(0.0).to(0.5);

parameters! {
    /// Parameters of the delayed ACK.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct Delayed {
        /// segments per ACK
        segments: u32 = 2 => whole("segments", 1, 255), Expert, "RFC 1122, 4.2.3.2";
        /// the longest wait
        timer: Duration = Duration::from_millis(100) => TIMER, Basic, "RFC 1122, 4.2.3.2; ns-2, interval_";
        /// every segment where the window is limited to two
        linux_window_2: bool = false => FLAG, Expert, "TPA, section 5";
    }
}

impl Delayed {
    /// Segments one ACK waits for.
    pub(super) fn segments_per_ack(&self, limit: u32) -> u32 {
        if self.linux_window_2 && limit <= 2 { 1 } else { self.segments }
    }
}
