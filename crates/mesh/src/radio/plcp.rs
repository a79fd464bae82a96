//! Preamble and PLCP header, which precede every frame (IEEE Std 802.11b-1999, 18.2).

use meshpace_core::{Duration, Rate};

/// Long PLCP preamble and header: 192 bits at 1 Mbit/s.
pub const PLCP: Duration = Duration::from_micros(192);
/// Short PLCP preamble and header: 72 bits at 1 Mbit/s and 48 bits at 2 Mbit/s.
pub const SHORT_PLCP: Duration = Duration::from_micros(96);

/// Preamble of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Preamble {
    /// 192 us before every frame.
    #[default]
    Long,
    /// 96 us before frames of 2 Mbit/s and more; at 1 Mbit/s there is none but the long one (IEEE Std 802.11b-1999, 18.2).
    Short,
}

/// The time of preamble and PLCP header before a frame at `rate`.
#[inline]
pub fn plcp(preamble: Preamble, rate: Rate) -> Duration {
    if preamble == Preamble::Short && rate > Rate::from_mbps(1) { SHORT_PLCP } else { PLCP }
}
