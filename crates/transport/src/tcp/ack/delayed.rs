//! Delayed ACK: one for every second segment, or when the first has waited.
//!
//! RFC 1122, section 4.2.3.2, with the timer of ns-2 and of DCC, section V: 100 ms (the RFC allows up to 500 ms). Segments
//! are counted whatever their size; the RFC counts full-sized ones.
//!
//! `linux_window_2`: on the testbed of the TPA paper, section 5, the Linux receiver acknowledges every segment of a sender
//! whose window is clamped to 2, for the timer would cost more than the ACK; the receiver of ns-2 does not.

use meshpace_core::Duration;
use meshpace_core::parameter::{ParameterError, require};

/// Parameters of the delayed ACK.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Delayed {
    /// Segments per ACK, 1 or more. Default 2 (RFC 1122).
    pub segments: u32,
    /// How long a segment waits for its ACK, above zero and at most 500 ms. Default 100 ms.
    pub timer: Duration,
    /// Whether every segment is acknowledged if the sender's window cannot exceed 2. Default false.
    pub linux_window_2: bool,
}

impl Default for Delayed {
    fn default() -> Delayed {
        Delayed { segments: 2, timer: Duration::from_millis(100), linux_window_2: false }
    }
}

impl Delayed {
    /// Whether every parameter is in its range.
    ///
    /// # Errors
    ///
    /// Names the first parameter that is not, its value and its range.
    pub fn check(&self) -> Result<(), ParameterError> {
        require((1..=255).contains(&self.segments), "ack.segments", self.segments, "1 to 255 segments")?;
        check_timer(self.timer)
    }

    /// Segments one ACK waits for.
    pub(super) fn segments_per_ack(&self, limit: u32) -> u32 {
        if self.linux_window_2 && limit <= 2 { 1 } else { self.segments }
    }
}

/// The range of every rule's timer: RFC 1122 allows no ACK to wait longer.
pub(super) fn check_timer(timer: Duration) -> Result<(), ParameterError> {
    let allowed = timer > Duration::ZERO && timer <= Duration::from_millis(500);
    require(allowed, "ack.timer", timer, "above 0 s, at most 0.5 s")
}
