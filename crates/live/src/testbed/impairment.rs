//! Impairment of the packets of one direction of a link: loss, duplication, reordering, a queue and
//! delay.
//!
//! The impairment is a pure function of a seed and of the order, sizes and times of the packets.
//! Losses can also be given by index: the n-th packet of this direction, counted from 0.

use meshpace_core::rng::Purpose;
use meshpace_core::{Duration, Rate, Rng, Time};
use std::collections::{BTreeSet, VecDeque};

/// Packets that are lost.
#[derive(Clone, Debug, PartialEq)]
pub enum Loss {
    /// Each packet is lost with this probability, 0..=1.
    Random(f64),
    /// The packets with these indices are lost, counted from 0 in each direction.
    Indices(BTreeSet<u64>),
}

/// Impairment of one direction of a link.
#[derive(Clone, Debug, PartialEq)]
pub struct Impairment {
    /// Constant one-way delay.
    pub delay: Duration,
    /// Packets that are lost.
    pub loss: Loss,
    /// Probability that a packet is duplicated.
    pub duplicate: f64,
    /// Probability that a packet is delayed by `reorder_delay` in addition, so that later packets
    /// overtake it.
    pub reorder: f64,
    /// Additional delay of a reordered packet.
    pub reorder_delay: Duration,
    /// Bit rate. `None`: no limit.
    pub rate: Option<Rate>,
    /// Maximum number of packets that wait for the bit rate. Further packets are dropped.
    pub queue: usize,
    /// Size in bytes of the longest packet that passes. Longer packets are lost without an error
    /// message.
    pub largest: usize,
    /// Beginning and end of an outage, relative to the first packet of the direction. All packets
    /// are lost during the outage.
    pub outage: Option<(Duration, Duration)>,
    /// Seed of the random choices.
    pub seed: u64,
}

impl Default for Impairment {
    /// A link without impairments.
    fn default() -> Impairment {
        Impairment {
            delay: Duration::ZERO,
            loss: Loss::Random(0.0),
            duplicate: 0.0,
            reorder: 0.0,
            reorder_delay: Duration::from_millis(3),
            rate: None,
            queue: 50,
            largest: usize::MAX,
            outage: None,
            seed: 1,
        }
    }
}

/// State of one direction.
#[derive(Clone, Debug)]
pub struct Direction {
    impairment: Impairment,
    rng: Rng,
    /// Number of packets so far.
    count: u64,
    /// Time of the first packet; `None` before it.
    first: Option<Time>,
    /// Times at which the packets that wait, or are being sent at the bit rate, will have been
    /// sent.
    leaving: VecDeque<Time>,
}

impl Direction {
    /// Creates a direction through which no packet has passed. `index` distinguishes the directions
    /// of a link.
    pub fn new(impairment: Impairment, index: u64) -> Direction {
        let rng = Rng::stream(impairment.seed, Purpose::Test, index);
        Direction { impairment, rng, count: 0, first: None, leaving: VecDeque::new() }
    }

    /// Times at which the copies of a packet of `bytes` bytes that enters at `now` leave the link:
    /// none, one or two.
    pub fn pass(&mut self, now: Time, bytes: usize) -> [Option<Time>; 2] {
        let index = self.count;
        self.count += 1;
        // All random numbers are drawn for each packet, so that one choice does not change the
        // others.
        let [loss, twice, late] = [(); 3].map(|()| self.rng.next_u64() as f64 / 2f64.powi(64));
        let age = now.since(*self.first.get_or_insert(now));
        let down = self.impairment.outage.is_some_and(|(from, until)| age >= from && age < until);
        let lost = down
            || bytes > self.impairment.largest
            || match &self.impairment.loss {
                Loss::Random(probability) => loss < *probability,
                Loss::Indices(indices) => indices.contains(&index),
            };
        if lost {
            return [None; 2];
        }
        let Some(left) = self.leave(now, bytes) else { return [None; 2] };
        let held = if late < self.impairment.reorder { self.impairment.reorder_delay } else { Duration::ZERO };
        let out = left + self.impairment.delay + held;
        [Some(out), (twice < self.impairment.duplicate).then_some(out)]
    }

    /// Time at which the last bit has been sent. `None` if the queue is full.
    fn leave(&mut self, now: Time, bytes: usize) -> Option<Time> {
        let Some(rate) = self.impairment.rate else { return Some(now) };
        while self.leaving.front().is_some_and(|left| *left <= now) {
            self.leaving.pop_front();
        }
        // One of the packets is being sent, and the others wait.
        if self.leaving.len() > self.impairment.queue {
            return None;
        }
        let start = self.leaving.back().copied().unwrap_or(now).max(now);
        let left = start + Duration::from_secs_f64(bytes as f64 * 8.0 / rate.as_bps_f64());
        self.leaving.push_back(left);
        Some(left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn direction(impairment: Impairment) -> Direction {
        Direction::new(impairment, 0)
    }

    #[test]
    fn losses_by_index_hit_those_packets() {
        let loss = Loss::Indices([1, 3].into());
        let mut direction = direction(Impairment { loss, delay: Duration(5), ..Impairment::default() });
        let out: Vec<_> = (0..5).map(|i| direction.pass(Time(i), 100)[0]).collect();
        assert_eq!(out, [Some(Time(5)), None, Some(Time(7)), None, Some(Time(9))]);
    }

    #[test]
    fn an_outage_loses_everything_for_a_while() {
        let outage = Some((Duration(10), Duration(20)));
        let mut direction = direction(Impairment { outage, ..Impairment::default() });
        let out: Vec<_> = [100, 109, 110, 119, 120].map(|at| direction.pass(Time(at), 9)[0].is_some()).into();
        assert_eq!(out, [true, true, false, false, true]);
    }

    #[test]
    fn a_rate_spaces_packets_and_its_queue_overflows() {
        // 1000 bytes at 8 Mbit/s take 1 ms.
        let rate = Some(Rate::from_mbps(8));
        let mut direction = direction(Impairment { rate, queue: 2, ..Impairment::default() });
        let ms = |n: u64| Some(Time(n * 1_000_000));
        let out: Vec<_> = (0..4).map(|_| direction.pass(Time(0), 1000)[0]).collect();
        assert_eq!(out, [ms(1), ms(2), ms(3), None], "one sent, two wait");
        assert_eq!(direction.pass(Time(1_000_000), 1000)[0], ms(4));
    }

    #[test]
    fn chances_are_those_asked_for() {
        let seed = 7;
        let reorder_delay = Duration(1000);
        let mut direction = direction(Impairment {
            loss: Loss::Random(0.02),
            duplicate: 0.05,
            reorder: 0.1,
            reorder_delay,
            seed,
            ..Impairment::default()
        });
        let out: Vec<_> = (0..100_000).map(|_| direction.pass(Time(0), 100)).collect();
        let share = |test: fn(&[Option<Time>; 2]) -> bool| out.iter().filter(|o| test(o)).count() as f64 / 1e5;
        // Five standard deviations of a binomial with 100 000 draws.
        assert!((share(|o| o[0].is_none()) - 0.02).abs() < 0.0023);
        assert!((share(|o| o[1].is_some()) - 0.049).abs() < 0.0035);
        assert!((share(|o| o[0] == Some(Time(1000))) - 0.098).abs() < 0.0048);
    }
}
