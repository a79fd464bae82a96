//! Minstrel for 802.11n: tries rates, and uses the rate with the best measured throughput.
//!
//! Source: F. Fietkau, D. Smithies, "Minstrel", documentation of Linux's mac80211
//! (wireless.wiki.kernel.org, Minstrel rate control algorithm), and `minstrel_ht` of Linux, whose
//! parameters are public: probabilities of delivery are averaged over intervals of 50 ms with a
//! weight of 75 % for the past; one attempt of ten is a probe of another rate; a chain of retries
//! goes from the rate with the best throughput to the second best and to the most reliable rate.
//!
//! - The throughput of a rate is its probability, at most 90 %, times its throughput without
//!   losses. It is zero if the probability is below 10 %.
//! - The most reliable rate is the rate with the highest probability, or the fastest rate above 95
//!   %.
//! - A probe carries one MPDU. Rates are probed in the order of a random shuffle, except the rate
//!   that is best at present. A rate that cannot be faster than the best rate is probed only at
//!   every twentieth turn.
//!
//! Departures: each rate of the chain gets two attempts, where Linux computes how many attempts fit
//! into 6 ms. A lost RTS is not counted against a rate. Rates are not grouped by streams and guard
//! interval, because there are sixteen at most.

use super::{Choice, Query, RateRule, RateSet};
use meshpace_core::{Duration, Rng, Time};

/// Time for which results are collected before the averages are updated.
const INTERVAL: Duration = Duration::from_millis(50);
/// Weight of the previous average.
const PAST: f64 = 0.75;
/// One attempt out of this many is a probe.
const ATTEMPTS_PER_PROBE: u32 = 10;
/// Probability below which the throughput of a rate counts as zero.
const MIN_PROBABILITY: f64 = 0.10;
/// Largest probability that is used in the throughput of a rate.
const MAX_PROBABILITY: f64 = 0.90;
/// Probability from which a rate counts as reliable.
const RELIABLE_PROBABILITY: f64 = 0.95;
/// A rate that cannot be better than the best one is probed once in this many turns.
const SLOW_PROBE_TURNS: u32 = 20;
/// Number of attempts with each rate of the chain.
const ATTEMPTS_PER_RATE: u32 = 2;

/// Statistics of a rate.
#[derive(Clone, Copy, Default, Debug)]
struct RateStatistics {
    sent: u32,
    acknowledged: u32,
    /// Average probability of delivery; `None` before the first interval with an attempt at this
    /// rate.
    probability: Option<f64>,
    skipped: u32,
}

/// State of the rule for one neighbour.
#[derive(Clone, Debug)]
pub struct Minstrel {
    rates: [RateStatistics; 16],
    update_at: Time,
    best: u8,
    second: u8,
    reliable: u8,
    attempts: u32,
    probes: u32,
    /// Shuffled order of the rates.
    order: [u8; 16],
    /// Index in `order` of the next rate to probe.
    place: usize,
}

impl Minstrel {
    fn probability(&self, mcs: u8) -> f64 {
        self.rates[usize::from(mcs)].probability.unwrap_or(0.0)
    }

    fn throughput(&self, set: &RateSet, mcs: u8) -> f64 {
        let probability = self.probability(mcs);
        if probability < MIN_PROBABILITY { 0.0 } else { set.speed(mcs) * probability.min(MAX_PROBABILITY) }
    }

    /// Updates the averages with the results of the last interval, and chooses the rates of the
    /// retry chain.
    fn update(&mut self, set: &RateSet) {
        for rate in &mut self.rates {
            if rate.sent > 0 {
                let now = f64::from(rate.acknowledged) / f64::from(rate.sent);
                rate.probability = Some(rate.probability.map_or(now, |before| PAST * before + (1.0 - PAST) * now));
                (rate.sent, rate.acknowledged) = (0, 0);
            }
        }
        // If rates are equal, the slowest is chosen: the iterators below are reversed, and `max_by`
        // returns the last maximum.
        let better = |one: &u8, other: &u8, by: &dyn Fn(u8) -> f64| by(*one).total_cmp(&by(*other));
        let by_throughput = |mcs| self.throughput(set, mcs);
        let best_of = |left_out: Option<u8>| {
            set.all()
                .filter(|&mcs| Some(mcs) != left_out)
                .rev()
                .max_by(|a, b| better(a, b, &by_throughput))
                .unwrap_or(0)
        };
        let best = best_of(None);
        let second = best_of(Some(best));
        let by_reliability = |mcs| match self.probability(mcs) {
            probability if probability >= RELIABLE_PROBABILITY => 1.0 + set.speed(mcs),
            probability => probability,
        };
        let reliable = set.all().rev().max_by(|a, b| better(a, b, &by_reliability)).unwrap_or(0);
        (self.best, self.second, self.reliable) = (best, second, reliable);
    }

    /// Chooses a rate to probe; `None` if no probe is due, or if the next rate in turn is not worth
    /// probing.
    fn choose_probe(&mut self, set: &RateSet, rng: &mut Rng) -> Option<u8> {
        if self.probes * ATTEMPTS_PER_PROBE >= self.attempts {
            return None;
        }
        if self.place >= self.order.len() {
            self.place = 0;
            for place in (1..self.order.len()).rev() {
                self.order.swap(place, rng.below(place as u64 + 1) as usize);
            }
        }
        let mcs = self.order[self.place];
        self.place += 1;
        if mcs == self.best || !set.all().any(|other| other == mcs) {
            return None;
        }
        let could_be_better = set.speed(mcs) * MAX_PROBABILITY > self.throughput(set, self.best);
        let rate = &mut self.rates[usize::from(mcs)];
        if !could_be_better {
            rate.skipped += 1;
            if rate.skipped < SLOW_PROBE_TURNS {
                return None;
            }
        }
        rate.skipped = 0;
        self.probes += 1;
        Some(mcs)
    }
}

impl RateRule for Minstrel {
    fn new(_set: &RateSet) -> Minstrel {
        Minstrel {
            rates: [RateStatistics::default(); 16],
            update_at: Time::ZERO,
            best: 0,
            second: 0,
            reliable: 0,
            attempts: 0,
            probes: 0,
            order: core::array::from_fn(|mcs| mcs as u8),
            place: 0,
        }
    }

    fn choose(&mut self, query: Query<'_>) -> Choice {
        let Query { now, set, failures, rng } = query;
        if now >= self.update_at {
            self.update(set);
            self.update_at = now + INTERVAL;
        }
        self.attempts += 1;
        if failures == 0
            && let Some(mcs) = self.choose_probe(set, rng)
        {
            return Choice { mcs, is_probe: true };
        }
        let chain = [self.best, self.second];
        let mcs = chain.get((failures / ATTEMPTS_PER_RATE) as usize).copied().unwrap_or(self.reliable);
        Choice { mcs, is_probe: false }
    }

    fn on_result(&mut self, mcs: u8, sent: u32, acknowledged: u32) {
        let rate = &mut self.rates[usize::from(mcs & 15)];
        (rate.sent, rate.acknowledged) = (rate.sent + sent, rate.acknowledged + acknowledged);
    }
}
