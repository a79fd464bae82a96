//! Dynamic delayed ACK: one ACK for d segments, d growing from 1 to 4 as the transfer goes on.
//!
//! E. Altman and T. Jimenez, "Novel Delayed ACK Techniques for Improving TCP Performance in Multihop Wireless Networks",
//! PWC 2003, as AP05, section 5, uses it. With N the number of the segment, from 1:
//!
//! ```text
//! d(N) = 1 if N < l1;  2 if l1 <= N < l2;  3 if l2 <= N < l3;  4 if N >= l3
//! ```
//!
//! AP05 gives only the range of d; the thresholds 2, 5, 9 and the timer are those of the original as commonly quoted. d
//! follows the place in the stream, so that a loss does not set it back.

use super::delayed::check_timer;
use alloc::format;
use meshpace_core::Duration;
use meshpace_core::parameter::{ParameterError, require};

/// Parameters of the dynamic delayed ACK.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Dynamic {
    /// l1, l2, l3: the segment numbers from which d is 2, 3 and 4, rising. Default 2, 5, 9.
    pub thresholds: [u64; 3],
    /// How long a segment waits for its ACK, above zero and at most 500 ms. Default 100 ms.
    pub timer: Duration,
}

impl Default for Dynamic {
    fn default() -> Dynamic {
        Dynamic { thresholds: [2, 5, 9], timer: Duration::from_millis(100) }
    }
}

impl Dynamic {
    /// Whether every parameter is in its range.
    ///
    /// # Errors
    ///
    /// Names the first parameter that is not, its value and its range.
    pub fn check(&self) -> Result<(), ParameterError> {
        let [l1, l2, l3] = self.thresholds;
        let shown = format!("{l1}, {l2}, {l3}");
        require(1 <= l1 && l1 <= l2 && l2 <= l3, "ack.thresholds", shown, "three segment numbers from 1 that rise")?;
        check_timer(self.timer)
    }

    /// d(N).
    pub(super) fn segments_per_ack(&self, n: u64) -> u32 {
        1 + self.thresholds.iter().filter(|&&threshold| n >= threshold).count() as u32
    }
}
