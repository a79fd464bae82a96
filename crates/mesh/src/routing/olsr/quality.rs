//! Delivery ratios behind ETX: the shares of a neighbour's HELLOs that arrive.
//!
//! Source: De Couto, Aguayo, Bicket, Morris, "A high-throughput path metric for multi-hop wireless
//! routing", MobiCom 2003 (ETX = 1 / (d_f d_r)); olsrd 0.4.10 for the window: the last ten HELLOs,
//! received or missed. The ratio is always taken of ten, so that a new link starts at 1/10. A HELLO
//! counts as missed if none arrived for 1.5 intervals, and again after each further interval.
//!
//! Departures from olsrd: olsrd also detects losses by packet numbers. Costs are whole numbers
//! here, so that a sum does not depend on its order and both ends of a link compute the same.
//!
//! | Parameter | Value |
//! |---|---|
//! | window | 10 HELLOs |
//! | missed after | 3 s, then every 2 s |
//! | cost of a link without loss | [`ONE`] |

use super::{HELLO_INTERVAL, MAXJITTER};
use meshpace_core::{Duration, Time};

/// Number of HELLOs in the window.
const WINDOW: u32 = 10;
/// Time without a HELLO after which one counts as missed: 1.5 x HELLO_INTERVAL.
pub(super) const MISS_TIMEOUT: Duration = Duration(HELLO_INTERVAL.0 * 3 / 2);
/// Cost of a link without loss, and thereby the unit of ETX.
pub const ONE: u32 = 1024;

/// Reception of the last HELLOs of a neighbour.
#[derive(Clone, Debug)]
pub(super) struct Quality {
    /// One bit per HELLO, the newest in the lowest bit; set if the HELLO was received.
    history: u16,
    /// Time at which the last HELLO arrived.
    last_hello: Time,
    /// Time at which the next HELLO counts as missed.
    next_miss_at: Time,
}

impl Quality {
    /// Creates the state before the first HELLO.
    pub fn new() -> Self {
        Quality { history: 0, last_hello: Time::ZERO, next_miss_at: Time::NEVER }
    }

    /// Notes a received HELLO. The parts of a long HELLO arrive together and count once.
    pub fn received(&mut self, now: Time) {
        // Two HELLOs are at least an interval less the jitter apart.
        let same = self.next_miss_at != Time::NEVER
            && now.since(self.last_hello) < HELLO_INTERVAL.saturating_sub(MAXJITTER * 2);
        if !same {
            self.push(true);
            self.last_hello = now;
        }
        self.next_miss_at = now + MISS_TIMEOUT;
    }

    /// Counts the HELLOs that were missed until `now`. Returns whether the history changed.
    pub fn settle(&mut self, now: Time) -> bool {
        let before = self.history;
        let missed = self.next_miss_at <= now;
        while self.next_miss_at <= now {
            self.push(false);
            self.next_miss_at += HELLO_INTERVAL;
        }
        missed && before != self.history
    }

    /// Time at which the next HELLO counts as missed.
    pub fn next_miss(&self) -> Time {
        self.next_miss_at
    }

    /// Delivery ratio in 1/255, rounded.
    pub fn ratio(&self) -> u8 {
        ((self.history.count_ones() * 255 + WINDOW / 2) / WINDOW) as u8
    }

    /// Appends a HELLO to the history.
    fn push(&mut self, received: bool) {
        self.history = (self.history << 1 | u16::from(received)) & ((1 << WINDOW) - 1);
    }
}

/// Cost of a link with these delivery ratios (in 1/255): [`ONE`] x 65025 / (a b), rounded down;
/// `None` if a ratio is 0.
pub fn etx(a: u8, b: u8) -> Option<u32> {
    let product = u32::from(a) * u32::from(b);
    (ONE * 65_025).checked_div(product)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: f64) -> Time {
        Time::ZERO + Duration::from_secs_f64(seconds)
    }

    #[test]
    fn cost_is_the_inverse_product_of_the_ratios() {
        assert_eq!(etx(255, 255), Some(ONE));
        // 0.6 x 0.8 = 153/255 x 204/255 gives 1/0.48 = 2.08333 = 2133.33 / 1024.
        assert_eq!(etx(153, 204), Some(2133));
        assert_eq!(etx(204, 153), Some(2133));
        assert_eq!((etx(0, 255), etx(9, 0)), (None, None));
        assert_eq!(etx(1, 1), Some(65_025 * ONE));
    }

    #[test]
    fn a_new_link_starts_at_a_tenth_and_fills_in_ten_hellos() {
        let mut quality = Quality::new();
        assert_eq!((quality.ratio(), quality.next_miss()), (0, Time::NEVER));
        // n/10 of 255, rounded, is 25.5 up to 26, 51, 76.5 up to 77, 102, 127.5 up to 128.
        for (n, ratio) in [26, 51, 77, 102, 128, 153, 179, 204, 230, 255, 255].into_iter().enumerate() {
            quality.received(at(2.0 * n as f64));
            assert_eq!(quality.ratio(), ratio, "after {} HELLOs", n + 1);
        }
    }

    #[test]
    fn a_hello_is_missed_after_three_seconds_and_then_each_two() {
        let mut quality = Quality::new();
        for n in 0..10 {
            quality.received(at(2.0 * f64::from(n)));
        }
        assert_eq!(quality.next_miss(), at(21.0));
        assert!(!quality.settle(at(20.999)));
        assert!(quality.settle(at(21.0)));
        assert_eq!((quality.ratio(), quality.next_miss()), (230, at(23.0)));
        assert!(quality.settle(at(25.0)), "two at once");
        assert_eq!(quality.ratio(), 179);
        quality.received(at(26.0));
        assert_eq!((quality.ratio(), quality.next_miss()), (179, at(29.0)), "one received entered, one received left");
    }

    #[test]
    fn the_parts_of_one_hello_count_once() {
        let mut quality = Quality::new();
        for seconds in [0.0, 0.002, 0.004, 1.6, 1.602] {
            quality.received(at(seconds));
        }
        assert_eq!(quality.ratio(), 51);
    }
}
