//! Transmissions of a block: their numbers, the times at which they were sent, and the timers of
//! the outstanding segments.
//!
//! TPA, section 3.1: TxSeqNumber grows by one with each data segment sent, retransmissions
//! included, and starts anew with each block. Since an ACK names the transmission that triggered
//! it, every ACK gives a valid RTT sample, once per transmission.
//!
//! The number has 8 bits; the last 64 transmissions are remembered. A driver may let a block begin
//! with a higher number than 1. The numbers before it are then skipped. The number 0 is always
//! skipped: an ACK names it if no transmission triggered the ACK.

use crate::work::step;
use meshpace_core::Time;

/// Number of transmissions that are remembered. With a window of 3, an ACK that is 64 transmissions
/// late is useless as a sample.
const KEPT: usize = 64;

/// Number of values of the 8-bit TxSeqNumber.
const NUMBERS: u32 = 256;

#[derive(Clone, Copy, Debug)]
struct Transmission {
    at: Time,
    place: u8,
    /// True if an ACK has named this transmission.
    named: bool,
}

/// Retransmission timer of one segment.
#[derive(Clone, Copy, Debug)]
pub struct Timer {
    /// Time at which it expires.
    pub at: Time,
    /// True if the segment was sent while the sender was frozen.
    pub probe: bool,
}

/// Transmissions of one block.
#[derive(Clone, Debug)]
pub struct Flight {
    ring: [Transmission; KEPT],
    /// Number of transmissions of this block so far, plus the numbers skipped before the first of
    /// them.
    count: u32,
    /// Numbers skipped at the start of this block, and those that the next block will skip.
    skipped: u32,
    next_skipped: Option<u8>,
    /// Timers by place. An entry is valid only if its place is outstanding.
    pub timers: [Timer; 12],
}

impl Default for Flight {
    fn default() -> Flight {
        Flight {
            ring: [Transmission { at: Time::ZERO, place: 0, named: true }; KEPT],
            count: 0,
            skipped: 0,
            next_skipped: None,
            timers: [Timer { at: Time::NEVER, probe: false }; 12],
        }
    }
}

impl Flight {
    /// Starts a new block.
    pub fn restart(&mut self) {
        self.skipped = self.next_skipped.take().unwrap_or(0).into();
        self.count = self.skipped;
    }

    /// Makes the next block skip its first `numbers` transmission numbers, unless a number was
    /// already set for it.
    pub fn skip_next(&mut self, numbers: impl FnOnce() -> u8) {
        self.next_skipped.get_or_insert_with(numbers);
    }

    /// True if an ACK of `places` that names transmission `tx` cannot be true. That is the case if
    /// it names a number that this block skipped, or if it acknowledges places but names no
    /// transmission.
    pub fn is_deceiving(&self, tx: u8, places: u16) -> bool {
        match tx {
            0 => places != 0,
            _ => u32::from(tx) <= self.skipped && !self.has_sent(tx),
        }
    }

    /// Number of the first transmission of the next block.
    pub fn next_first(&self) -> u8 {
        self.next_skipped.unwrap_or(0).wrapping_add(1)
    }

    /// The path has changed: no transmission made so far gives an RTT sample.
    pub fn restart_samples(&mut self) {
        self.ring.iter_mut().for_each(|transmission| transmission.named = true);
    }

    /// Records that the segment at `place` is sent. Returns its TxSeqNumber, which is 1 or more.
    pub fn record(&mut self, now: Time, place: u8) -> u8 {
        self.count = self.count.saturating_add(1);
        if self.count.is_multiple_of(NUMBERS) {
            self.ring[self.count as usize % KEPT] = Transmission { at: now, place: u8::MAX, named: true };
            self.count += 1;
        }
        self.ring[self.count as usize % KEPT] = Transmission { at: now, place, named: false };
        self.count as u8
    }

    /// Number of transmissions of this block so far.
    pub fn count(&self) -> u32 {
        self.count - self.skipped
    }

    /// Place of the latest transmission.
    pub fn latest(&self) -> Option<u8> {
        (self.count() > 0).then(|| self.ring[self.count as usize % KEPT].place)
    }

    fn age(&self, tx: u8) -> u32 {
        u32::from((self.count as u8).wrapping_sub(tx))
    }

    /// True if this block has made transmission `tx`.
    pub fn has_sent(&self, tx: u8) -> bool {
        tx != 0 && self.age(tx) < self.count().min(NUMBERS)
    }

    /// Time of the last transmission of `place`, if it is remembered.
    pub fn sent_at(&self, place: u8) -> Option<Time> {
        let remembered = self.count().min(KEPT as u32);
        let mut ages = (0..remembered).inspect(|_| step()).map(|age| &self.ring[(self.count - age) as usize % KEPT]);
        ages.find(|transmission| transmission.place == place).map(|transmission| transmission.at)
    }

    /// Processes an ACK of `places` that names transmission `tx`. Returns when that transmission
    /// was sent, if it is remembered, was not named before, and belongs to one of the places.
    pub fn name(&mut self, tx: u8, places: u16) -> Option<Time> {
        let age = self.age(tx);
        if age >= self.count().min(KEPT as u32) {
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
        // Numbers 1 to 255, and, since 0 names no transmission, 1 to 45.
        for at in 1..=300 {
            let number = if at <= 255 { at } else { at - 255 };
            assert_eq!(flight.record(Time(at), (at % 12) as u8), number as u8);
        }
        // The last 64 numbers are remembered: 1 to 45, 0, and 238 to 255.
        assert_eq!(flight.name(45, 0xfff), Some(Time(300)));
        assert_eq!(flight.name(238, 0xfff), Some(Time(238)));
        assert_eq!(flight.name(237, 0xfff), None, "forgotten");
        assert!(flight.has_sent(237));
        assert_eq!((flight.name(0, 0xfff), flight.sent_at(0)), (None, Some(Time(300))));
    }

    #[test]
    fn skipped_numbers_are_no_transmissions() {
        let mut flight = Flight::default();
        flight.skip_next(|| 5);
        flight.skip_next(|| 9);
        assert_eq!(flight.next_first(), 6);
        assert_eq!(flight.record(Time(10), 0), 1, "the block under way goes on");
        flight.restart();
        assert_eq!((flight.count(), flight.latest(), flight.sent_at(0)), (0, None, None));
        assert_eq!([flight.record(Time(20), 0), flight.record(Time(30), 1)], [6, 7]);
        assert_eq!(flight.count(), 2);
        for tx in 0..=255 {
            assert_eq!(flight.has_sent(tx), tx == 6 || tx == 7, "{tx}");
            assert_eq!(flight.is_deceiving(tx, 1), tx <= 5, "{tx}");
        }
        assert!(!flight.is_deceiving(0, 0), "the ACK of a handshake, or of a window that opens");
        assert_eq!(flight.name(5, 0xfff), None);
        assert_eq!(flight.name(7, 0xfff), Some(Time(30)));
        flight.restart_samples();
        assert_eq!(flight.name(6, 0xfff), None, "it left for another address");
        flight.restart();
        assert_eq!((flight.next_first(), flight.record(Time(40), 0)), (1, 1), "nobody has said how many");
        // After a whole turn the skipped numbers have been used.
        flight.skip_next(|| 15);
        flight.restart();
        (0..300).for_each(|at| assert_ne!(flight.record(Time(at), 0), 0));
        assert!((1..=255).all(|tx| flight.has_sent(tx) && !flight.is_deceiving(tx, 1)));
    }
}
