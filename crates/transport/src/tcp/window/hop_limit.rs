//! Congestion window limit (CWL): the number of segments that a path of h hops can carry at the
//! same time.
//!
//! K. Chen, Y. Xue, K. Nahrstedt, "On Setting TCP's Congestion Window Limit in Mobile Ad Hoc
//! Networks", ICC 2003: the limit is at most about one fifth of the hops of a round trip. AP05,
//! section 5, gives two points: 1 segment for 4 hops, and fewer than 4 segments up to 10 hops. Two
//! rules agree with both points. The first is the adaptive rule of the original as it is commonly
//! quoted, where RTHC = 2h is the number of hops there and back:
//!
//! ```text
//! RTHC   <= 4  <= 8  <= 12  <= 20  <= 26  above
//! limit     2     1      2      3      4      5
//! ```
//!
//! The original stops at an RTHC of 30 (15 hops). Beyond that the limit stays 5.

use super::{Base, Rule};
use meshpace_core::words;

/// Rule by which the limit follows from the number of hops.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HopRule {
    /// The table above, by the hops of the round trip.
    Table,
    /// A quarter of the hops: max(1, floor(h / 4)).
    Quarter,
}

impl Rule for HopRule {
    fn on_hops(&mut self, base: &mut Base, hops: u8, max_window: u32) {
        base.set_limit(self.segments(hops).min(max_window));
    }
}

words! { HopRule: "table" = Table, "quarter" = Quarter }

impl HopRule {
    /// The limit in segments for a path of `hops` hops.
    pub fn segments(self, hops: u8) -> u32 {
        match self {
            HopRule::Table => match 2 * u32::from(hops) {
                0..=4 => 2,
                5..=8 => 1,
                9..=12 => 2,
                13..=20 => 3,
                21..=26 => 4,
                _ => 5,
            },
            HopRule::Quarter => (u32::from(hops) / 4).max(1),
        }
    }
}
