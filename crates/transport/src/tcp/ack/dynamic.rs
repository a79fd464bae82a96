//! Dynamic delayed ACK: one ACK for d segments, where d grows from 1 to 4 during the transfer.
//!
//! E. Altman and T. Jimenez, "Novel Delayed ACK Techniques for Improving TCP Performance in
//! Multihop Wireless Networks", PWC 2003, as AP05, section 5, uses it. N is the number of the
//! segment in the stream, counted from 1:
//!
//! ```text
//! d(N) = 1 if N < l1;  2 if l1 <= N < l2;  3 if l2 <= N < l3;  4 if N >= l3
//! ```
//!
//! AP05 gives only the range of d. The thresholds 2, 5, 9 and the timer are those of the original
//! as it is commonly quoted. d depends on the position in the stream, so a loss does not reduce it.

use super::delayed::TIMER;
use alloc::format;
use meshpace_core::parameter::require;
use meshpace_core::{Duration, parameters};

parameters! {
    /// Parameters of the dynamic delayed ACK.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct Dynamic {
        /// numbers of the segments from which an ACK covers two, three and four segments
        thresholds: [u64; 3] = [2, 5, 9] => wholes(3, "segment numbers that rise", 1, 1 << 53), Expert,
            "Altman and Jimenez, PWC 2003; AP05, section 5";
        /// longest time for which a segment waits for its ACK
        timer: Duration = Duration::from_millis(100) => TIMER, Basic, "RFC 1122, 4.2.3.2; ns-2, interval_";
    }
    also |config| require(config.thresholds.is_sorted(), "thresholds", format!("{:?}", config.thresholds), "three segment numbers that rise");
}

impl Dynamic {
    /// d(N), the number of segments per ACK at segment `n`.
    pub(super) fn segments_per_ack(&self, n: u64) -> u32 {
        1 + self.thresholds.iter().filter(|&&threshold| n >= threshold).count() as u32
    }
}
