//! The transmissions of a block: their numbers, when they left, and the timers of the segments outstanding.
//!
//! TPA, section 3.1: TxSeqNumber grows by one with each data segment sent, also a repeated one, and starts over with each
//! block. Since an ACK names the transmission that triggered it, every ACK gives a valid RTT sample, once per transmission.
//! The number has 8 bits; the last 64 transmissions are remembered.

use meshpace_core::Time;

/// Transmissions remembered. A window of 3 and an ACK that is 64 transmissions late is no sample anyone needs.
const KEPT: usize = 64;

/// Values of the 8-bit number.
const NUMBERS: u32 = 256;

#[derive(Clone, Copy, Debug)]
struct Transmission {
    at: Time,
    place: u8,
    /// An ACK has named it.
    named: bool,
}

/// The timer of one segment.
#[derive(Clone, Copy, Debug)]
pub struct Timer {
    /// Time at which it expires.
    pub at: Time,
    /// True if the segment was sent while frozen.
    pub probe: bool,
}

/// The transmissions of one block.
#[derive(Clone, Debug)]
pub struct Flight {
    ring: [Transmission; KEPT],
    /// Transmissions of this block so far.
    count: u32,
    /// The timers by place; what they hold counts only for places outstanding.
    pub timers: [Timer; 12],
}

impl Default for Flight {
    fn default() -> Flight {
        Flight {
            ring: [Transmission { at: Time::ZERO, place: 0, named: true }; KEPT],
            count: 0,
            timers: [Timer { at: Time::NEVER, probe: false }; 12],
        }
    }
}

impl Flight {
    /// A new block begins.
    pub fn restart(&mut self) {
        self.count = 0;
    }

    /// The segment at `place` leaves; returns its TxSeqNumber, from 1.
    pub fn record(&mut self, now: Time, place: u8) -> u8 {
        self.count = self.count.saturating_add(1);
        self.ring[self.count as usize % KEPT] = Transmission { at: now, place, named: false };
        self.count as u8
    }

    /// Transmissions of this block so far.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// The place of the latest transmission.
    pub fn latest(&self) -> Option<u8> {
        (self.count > 0).then(|| self.ring[self.count as usize % KEPT].place)
    }

    fn age(&self, tx: u8) -> u32 {
        u32::from((self.count as u8).wrapping_sub(tx))
    }

    /// True if transmission `tx` of this block has taken place.
    pub fn has_sent(&self, tx: u8) -> bool {
        self.age(tx) < self.count.min(NUMBERS)
    }

    /// Time at which the last transmission of `place` left, if it is remembered.
    pub fn sent_at(&self, place: u8) -> Option<Time> {
        let remembered = self.count.min(KEPT as u32);
        let mut ages = (0..remembered).map(|age| &self.ring[(self.count - age) as usize % KEPT]);
        ages.find(|transmission| transmission.place == place).map(|transmission| transmission.at)
    }

    /// An ACK of `places` names transmission `tx`: when that one left, if it is remembered, was not named before, and is
    /// among the places.
    pub fn name(&mut self, tx: u8, places: u16) -> Option<Time> {
        let age = self.age(tx);
        if age >= self.count.min(KEPT as u32) {
            return None;
        }
        let transmission = &mut self.ring[(self.count - age) as usize % KEPT];
        if transmission.named || places & (1 << transmission.place) == 0 {
            return None;
        }
        transmission.named = true;
        Some(transmission.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_transmission_gives_one_sample() {
        let mut flight = Flight::default();
        assert_eq!(flight.record(Time(10), 0), 1);
        assert_eq!(flight.record(Time(20), 1), 2);
        assert_eq!(flight.record(Time(30), 0), 3);
        assert_eq!(flight.name(1, 0b01), Some(Time(10)), "the first copy, not the repeated one");
        assert_eq!(flight.name(1, 0b11), None, "a second time");
        assert_eq!(flight.name(2, 0b01), None, "an ACK that does not hold what triggered it");
        assert!(flight.has_sent(3) && !flight.has_sent(4) && !flight.has_sent(0));
    }

    #[test]
    fn the_number_wraps() {
        let mut flight = Flight::default();
        for at in 1..=300 {
            assert_eq!(flight.record(Time(at), (at % 12) as u8), at as u8);
        }
        // 300 is 44 modulo 256; 44 - 63 wraps to 237, whose transmission was the 237th.
        assert_eq!(flight.name(44, 0xfff), Some(Time(300)));
        assert_eq!(flight.name(237, 0xfff), Some(Time(237)));
        assert_eq!(flight.name(236, 0xfff), None, "forgotten");
        assert!(flight.has_sent(236));
    }
}
