//! Cost and capacity of one access to the channel, where several packets are sent as one aggregate.
//!
//! Without aggregates, an access carries one packet, and the segments of a train are sent an
//! interval apart. With aggregates, that interval would keep segments from waiting for each other,
//! so that every access would carry one packet again. Here the aggregate is the unit of pacing. As
//! many segments as an aggregate holds are sent at once, and the next ones follow after n t_g. t_g
//! is the air time of the exchange with the aggregate, and n = min(4, h) for h hops. Up to three
//! hops, all nodes that send data hear each other, and spacing gains nothing.

use super::estimator::reuse_hops;
use crate::PathInfo;
use meshpace_core::Duration;

/// Air times of a link with aggregates (IEEE Std 802.11-2016, 9.7).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Access {
    /// Air time of an exchange without the bits of data: spaces, mean backoff, RTS and CTS if they
    /// are used, preambles, acknowledgement.
    pub fixed: Duration,
    /// Additional bytes of a packet in an aggregate.
    pub frame_bytes: u32,
    /// Largest number of packets in an aggregate.
    pub packets: u32,
    /// Largest number of bytes in an aggregate.
    pub bytes: u32,
    /// Largest air time of the bits of an aggregate.
    pub longest: Duration,
}

/// Number of hops up to which all nodes that send data hear each other.
pub(super) const NEAR_HOPS: u8 = 3;
/// Largest number of segments of a train: the window of a block acknowledgement.
const WINDOW: u32 = 64;

impl Access {
    /// Number of packets of `bytes` bytes in an aggregate, at least 1.
    pub fn packets(&self, path: &PathInfo, bytes: u32) -> u32 {
        let each = bytes + self.frame_bytes;
        let by_time = self.longest.as_secs_f64() / path.rate.time_for(each).as_secs_f64();
        self.packets.min(self.bytes / each).min(by_time as u32).max(1)
    }

    /// Air time of an exchange with `count` packets of `bytes` bytes, in seconds.
    pub fn exchange(&self, path: &PathInfo, bytes: u32, count: u32) -> f64 {
        (self.fixed + path.rate.time_for(count * (bytes + self.frame_bytes))).as_secs_f64()
    }
}

/// Pacing of a train by aggregates.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Aggregates {
    /// Segments in an aggregate.
    pub segments: u32,
    /// Time between the last segment of an aggregate and the first of the next, in seconds.
    pub space: f64,
    /// Number of segments of the current aggregate that were sent.
    gathered: u32,
}

impl Aggregates {
    /// Creates the pacing for packets of `bytes` bytes, with aggregates `floor` times n t_g apart.
    /// `None` if an access carries one packet.
    pub fn new(access: &Access, path: &PathInfo, bytes: u32, floor: f64) -> Option<Aggregates> {
        let segments = access.packets(path, bytes);
        let near = path.hops <= NEAR_HOPS;
        let space = if near { 0.0 } else { floor * reuse_hops(path.hops) * access.exchange(path, bytes, segments) };
        (segments > 1).then_some(Aggregates { segments, space, gathered: 0 })
    }

    /// Counts a segment that is sent. Returns the time until the next one may be sent, in seconds.
    pub fn next_gap(&mut self) -> f64 {
        self.gathered = (self.gathered + 1) % self.segments;
        if self.gathered == 0 { self.space } else { 0.0 }
    }

    /// Begins a train. Returns its largest number of segments: at least two aggregates and `usual`
    /// segments.
    pub fn begin_train(&mut self, usual: u32) -> u32 {
        self.gathered = 0;
        (2 * self.segments).clamp(usual.min(WINDOW), WINDOW.max(usual))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use meshpace_core::Rate;

    /// Link at MCS 7 with RTS: 5484 us less a preamble of 36 us; AIFS 43, 7.5 slots of 9 us,
    /// RTS 52, CTS 44, three SIFS of 16, block ACK 32.
    const ACCESS: Access = Access {
        fixed: Duration::from_micros(43 + 67 + 52 + 44 + 48 + 36 + 32),
        frame_bytes: 42,
        packets: 64,
        bytes: 65_535,
        longest: Duration::from_micros(5_448),
    };

    fn path(hops: u8) -> PathInfo {
        PathInfo { hops, rate: Rate::from_mbps(65), received_power_dbm: None }
    }

    #[test]
    fn an_aggregate_ends_at_the_first_of_its_limits() {
        // 1542 bytes at 65 Mbit/s are 189.8 us: 28 of them.
        assert_eq!(ACCESS.packets(&path(1), 1500), 28);
        assert_eq!(Access { packets: 4, ..ACCESS }.packets(&path(1), 1500), 4);
        assert_eq!(Access { bytes: 8_000, ..ACCESS }.packets(&path(1), 1500), 5);
        assert_eq!(ACCESS.packets(&PathInfo { rate: Rate::from_mbps(1), ..path(1) }, 1500), 1);
    }

    #[test]
    fn segments_leave_in_aggregates_and_far_ones_are_spaced() {
        let mut near = Aggregates::new(&ACCESS, &path(3), 1500, 1.07).unwrap();
        assert_eq!(near.begin_train(32), 56);
        assert!((0..200).all(|_| near.next_gap() == 0.0));
        let mut far = Aggregates::new(&ACCESS, &path(5), 1500, 1.07).unwrap();
        let gaps: Vec<f64> = (0..56).map(|_| far.next_gap()).collect();
        // By hand: 322 us and 28 times 189.8 us, four hops, 7 % more.
        let space = 1.07 * 4.0 * (322e-6 + 28.0 * 1542.0 * 8.0 / 65e6);
        for (place, gap) in gaps.into_iter().enumerate() {
            assert!((gap - if place % 28 == 27 { space } else { 0.0 }).abs() < 1e-8, "{place}: {gap}");
        }
        let one = Access { packets: 1, ..ACCESS };
        assert_eq!(Aggregates::new(&one, &path(5), 1500, 1.07), None);
    }
}
