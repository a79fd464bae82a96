//! How much a carrier may be handed: what it has not cut into segments yet is to be little, so that it is decided late what goes first.
//!
//! A connection tells what has not been acknowledged, and how many segments it has sent, which have [`SEGMENT`] bytes at most. So what waits in
//! it is at least what was handed to it less those. Where segments are shorter, it is handed more, up to what may be under way at all; how much
//! waits is known again whenever nothing is under way, or a train has come back whole.

use super::carrier::Carrier;
use meshpace_transport::Stats;

/// Payload of a full segment, bytes: of TPA, encrypted, over IPv4 and 1500 bytes.
const SEGMENT: usize = 1428;
/// Segments that may wait in the bulk carrier: as many as a thread that comes late needs, for a train that finds nothing more to send has ended.
const BULK: usize = 8;
/// Segments that may be under way or wait there: a train of 32, the next one, and the rest of one that lost something.
const TRAINS: usize = 96;
/// Segments that may wait in the express carrier.
const EXPRESS: usize = 3;

/// Bytes that may be under way or wait in BBR: what its buffer holds.
const BBR: usize = 4 << 20;

/// Bytes that may be handed over to a carrier by BBR, of which it has sent all but `unsent`, where `ahead` are to wait in bulk and `under_way` are
/// not acknowledged.
pub(super) fn room_of_bbr(carrier: Carrier, unsent: usize, under_way: usize, ahead: usize) -> usize {
    let (waiting, least) = match carrier {
        Carrier::Express => (EXPRESS * SEGMENT, 1),
        Carrier::Bulk => (ahead.max(2 * BULK * SEGMENT), BULK / 2 * SEGMENT),
    };
    let room = waiting.saturating_sub(unsent).min(BBR.saturating_sub(under_way));
    if room >= least { room } else { 0 }
}

/// What one carrier was handed.
#[derive(Debug)]
pub(super) struct Meter {
    waiting: usize,
    under_way: usize,
    /// Less than this is not worth a frame.
    least: usize,
    handed: u64,
    /// What had been cut, and the segments sent, when that was known last.
    before: u64,
    segments: u64,
    /// Trains that have come back, and those that had lost something; none where there are no trains.
    trains: Option<(u64, u64)>,
}

impl Meter {
    pub(super) fn new(carrier: Carrier) -> Meter {
        let (waiting, under_way, least) = match carrier {
            Carrier::Express => (EXPRESS * SEGMENT, 2 * EXPRESS * SEGMENT, 1),
            Carrier::Bulk => (BULK * SEGMENT, TRAINS * SEGMENT, BULK / 2 * SEGMENT),
        };
        let trains = (carrier == Carrier::Bulk).then_some((0, 0));
        Meter { waiting, under_way, least, handed: 0, before: 0, segments: 0, trains }
    }

    /// Bytes that may be handed over now, where `under_way` have not been acknowledged.
    pub(super) fn room(&mut self, under_way: usize, stats: &Stats) -> usize {
        let segments = stats.segments_sent - stats.retransmissions;
        let back = (stats.rtt_samples, stats.fast_retransmits);
        let whole = self.trains.is_some_and(|(trains, lost)| back.0 > trains && back.1 == lost);
        self.trains = self.trains.map(|_| back);
        if under_way == 0 || whole {
            // Of the next train one segment may have left already: it is taken for one that waits.
            (self.before, self.segments) = (self.handed.saturating_sub(under_way as u64), segments);
        }
        let cut = self.before + segments.saturating_sub(self.segments) * SEGMENT as u64;
        let waits = usize::try_from(self.handed.saturating_sub(cut)).unwrap_or(usize::MAX).min(under_way);
        let room = self.waiting.saturating_sub(waits).min(self.under_way.saturating_sub(under_way));
        if room >= self.least { room } else { 0 }
    }

    /// So many bytes were handed over.
    pub(super) fn on_handed(&mut self, bytes: usize) {
        self.handed += bytes as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(segments_sent: u64, retransmissions: u64) -> Stats {
        Stats { segments_sent, retransmissions, ..Stats::default() }
    }

    #[test]
    fn a_train_is_kept_going_with_little_waiting() {
        let mut meter = Meter::new(Carrier::Bulk);
        assert_eq!(meter.room(0, &sent(0, 0)), 8 * SEGMENT);
        meter.on_handed(8 * SEGMENT);
        // Three segments have left: not worth it. Four: that much more.
        assert_eq!(meter.room(8 * SEGMENT, &sent(3, 0)), 0);
        assert_eq!(meter.room(8 * SEGMENT, &sent(4, 0)), 4 * SEGMENT);
        // One that was sent again is no new one.
        assert_eq!(meter.room(8 * SEGMENT, &sent(4, 1)), 0);
        for segments in 1..23 {
            assert_eq!(meter.room((4 + 4 * segments) * SEGMENT, &sent(4 * segments as u64, 0)), 4 * SEGMENT);
            meter.on_handed(4 * SEGMENT);
        }
        // Nothing is acknowledged for three trains.
        assert_eq!(meter.room(96 * SEGMENT, &sent(96, 0)), 0);
        assert_eq!(meter.room(0, &sent(96, 0)), 8 * SEGMENT);
    }

    #[test]
    fn bbr_has_what_it_wants_ahead() {
        // As much as it wants, and 16 segments at least.
        assert_eq!(room_of_bbr(Carrier::Bulk, 0, 500_000, 125_000), 125_000);
        assert_eq!(room_of_bbr(Carrier::Bulk, 0, 0, 0), 16 * SEGMENT);
        // It is not worth it yet; the buffer is full.
        assert_eq!(room_of_bbr(Carrier::Bulk, 122_000, 500_000, 125_000), 0);
        assert_eq!(room_of_bbr(Carrier::Bulk, 0, 4 << 20, 1 << 20), 0);
        // Small messages do not fill it, whatever the path carries.
        assert_eq!(room_of_bbr(Carrier::Express, 100, 500_000, 125_000), 3 * SEGMENT - 100);
    }

    #[test]
    fn what_waits_is_known_when_a_train_has_come_back_whole() {
        let mut meter = Meter::new(Carrier::Bulk);
        meter.on_handed(40 * 1000);
        // Segments of 1000 bytes: all 32 of a train are acknowledged, and 8 wait. As many of 1428 would have been everything.
        let back = |rtt_samples, fast_retransmits| Stats { rtt_samples, fast_retransmits, ..sent(32, 0) };
        assert_eq!(meter.room(8000, &sent(32, 0)), 8 * SEGMENT);
        assert_eq!(meter.room(8000, &back(1, 0)), 0);
        // Of one that lost something it is not known what of it waits.
        let mut meter = Meter::new(Carrier::Bulk);
        meter.on_handed(40 * 1000);
        assert_eq!(meter.room(40_000, &back(1, 1)), 8 * SEGMENT);
    }

    #[test]
    fn small_messages_leave_room_for_the_next() {
        let mut meter = Meter::new(Carrier::Express);
        meter.on_handed(100);
        assert_eq!(meter.room(100, &sent(0, 0)), 3 * SEGMENT - 100);
        assert_eq!(meter.room(100, &sent(1, 0)), 3 * SEGMENT);
        meter.on_handed(3 * SEGMENT);
        // As if the message had filled its segment: what waits is counted too low, and never too high.
        assert_eq!(meter.room(100 + 3 * SEGMENT, &sent(1, 0)), SEGMENT - 100);
    }
}
