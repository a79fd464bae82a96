//! Preamble and PLCP header, which precede every frame (IEEE Std 802.11b-1999, 18.2).

use meshpace_core::{Duration, Rate};

/// Time of the long PLCP preamble and header: 192 bits at 1 Mbit/s.
pub const PLCP: Duration = Duration::from_micros(192);
/// Time of the short PLCP preamble and header: 72 bits at 1 Mbit/s and 48 bits at 2 Mbit/s.
pub const SHORT_PLCP: Duration = Duration::from_micros(96);

/// Length of the preamble of frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Preamble {
    /// Long preamble: 192 us before every frame.
    #[default]
    Long,
    /// Short preamble: 96 us before frames of 2 Mbit/s and more. At 1 Mbit/s the long preamble is
    /// the only one (IEEE Std 802.11b-1999, 18.2).
    Short,
}

/// Time of the preamble and PLCP header before a frame at `rate`.
#[inline]
pub fn plcp(preamble: Preamble, rate: Rate) -> Duration {
    if preamble == Preamble::Short && rate > Rate::from_mbps(1) { SHORT_PLCP } else { PLCP }
}
