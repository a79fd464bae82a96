//! Time stamps of the segments that were sent, used to verify acknowledgements.
//!
//! A receiver echoes the time stamp of the segment that arrived last. A peer that acknowledges data
//! which it has not received (RFC 9000, section 21.4) has to guess, to the microsecond, when they
//! were sent. Two rules detect it:
//!
//! - If an echo lies within the range of the stamps that were sent, but equals none of them, the
//!   connection ends.
//! - An acknowledgement of more data has to echo a segment whose arrival no such acknowledgement
//!   has shown yet, since at least one segment has arrived between the two. Otherwise it is
//!   ignored.

use alloc::collections::VecDeque;

/// Number of stamps that are remembered: twice the segments of the largest window.
const KEPT: usize = 512;

/// Judgement of an acknowledgement by its echo.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Echo {
    /// The segment was sent, and nothing contradicts its arrival.
    Plausible,
    /// The echo shows no new arrival.
    Stale,
    /// No segment with this stamp was sent.
    Invented,
}

/// Stamps of the last segments sent, each with whether an acknowledgement of more data has named
/// it.
#[derive(Clone, Debug, Default)]
pub struct Echoes {
    sent: VecDeque<(u32, bool)>,
    /// True if older stamps were forgotten.
    forgets: bool,
}

impl Echoes {
    /// Records that a segment with this stamp is sent.
    pub fn record(&mut self, stamp: u32) {
        if self.sent.len() == KEPT {
            self.sent.pop_front();
            self.forgets = true;
        }
        self.sent.push_back((stamp, false));
    }

    /// Judges an acknowledgement by its echo. `is_new` tells whether it acknowledges more data than
    /// any before.
    pub fn judge(&mut self, echo: u32, is_new: bool) -> Echo {
        let Some((oldest, _)) = self.sent.front() else { return Echo::Plausible };
        let is_older = (echo.wrapping_sub(*oldest) as i32) < 0;
        let mut same = self.sent.iter_mut().rev().filter(|(stamp, _)| *stamp == echo).peekable();
        if same.peek().is_none() {
            // The stamp is that of a SYN, which is not recorded, or it was forgotten.
            return match (is_older || echo == 0, is_new && !self.forgets) {
                (true, false) => Echo::Plausible,
                (true, true) => Echo::Stale,
                (false, _) => Echo::Invented,
            };
        }
        if !is_new {
            return Echo::Plausible;
        }
        match same.find(|(_, named)| !named) {
            Some((_, named)) => {
                *named = true;
                Echo::Plausible
            }
            None => Echo::Stale,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(stamps: impl IntoIterator<Item = u32>) -> Echoes {
        let mut echoes = Echoes::default();
        stamps.into_iter().for_each(|stamp| echoes.record(stamp));
        echoes
    }

    #[test]
    fn only_stamps_that_were_sent_are_plausible() {
        let mut echoes = sent([100, 220, 220, 350]);
        for (echo, judged) in
            [(100, Echo::Plausible), (150, Echo::Invented), (221, Echo::Invented), (351, Echo::Invented)]
        {
            assert_eq!(echoes.judge(echo, false), judged, "{echo}");
        }
        assert_eq!(echoes.judge(0, false), Echo::Plausible, "the SYN's");
        assert_eq!(echoes.judge(99, false), Echo::Plausible, "older than all that is known");
        assert_eq!(echoes.judge(0, true), Echo::Stale, "data have arrived since the SYN");
    }

    #[test]
    fn each_segment_shows_one_arrival() {
        let mut echoes = sent([100, 220, 220]);
        assert_eq!(echoes.judge(220, true), Echo::Plausible);
        assert_eq!(echoes.judge(220, true), Echo::Plausible, "two segments have this stamp");
        assert_eq!(echoes.judge(220, true), Echo::Stale);
        assert_eq!(echoes.judge(220, false), Echo::Plausible, "a window that opens");
        assert_eq!(echoes.judge(100, true), Echo::Plausible, "it was overtaken");
    }

    #[test]
    fn stamps_wrap_and_old_ones_are_forgotten() {
        let first = u32::MAX - 2_000;
        let mut echoes = sent((0..600).map(|number| first.wrapping_add(10 * number)));
        assert_eq!(echoes.judge(first.wrapping_add(10 * 599), true), Echo::Plausible);
        assert_eq!(echoes.judge(first.wrapping_add(10 * 300 + 1), true), Echo::Invented);
        assert_eq!(echoes.judge(first, true), Echo::Plausible, "nobody knows any more whether it was sent");
        assert_eq!(echoes.sent.len(), KEPT);
    }
}
