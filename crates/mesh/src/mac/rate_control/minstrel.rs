//! Minstrel for 802.11n: rates are tried, and the one that has carried most is used.
//!
//! Source: F. Fietkau, D. Smithies, "Minstrel", documentation of Linux's mac80211 (wireless.wiki.kernel.org, Minstrel rate control algorithm), and
//! `minstrel_ht` there, whose parameters are public: probabilities of delivery are averaged over intervals of 50 ms with a weight of 75 % for the
//! past; one attempt of ten looks around; a chain of retries goes from the best throughput to the second best and to the most reliable rate.
//!
//! - The throughput of a rate is its probability, 90 % at most, times what it would carry without losses; nothing below 10 %.
//! - The most reliable rate is that of the highest probability, or the fastest of those above 95 %.
//! - A look-around goes with one MPDU, in the order of a random shuffle, to a rate that is neither in use nor known to be good. One that cannot
//!   be faster than the present best is tried once in twenty turns.
//!
//! Departures: each rate of the chain gets two attempts, where Linux asks how many fit into 6 ms. A lost RTS says nothing about a rate. Rates are not
//! put into groups by streams and guard interval: there are sixteen at most.

use super::{Choice, Query, RateRule, RateSet};
use meshpace_core::{Duration, Rng, Time};

/// Time for which results are collected before the averages are taken.
const INTERVAL: Duration = Duration::from_millis(50);
/// Weight of the past.
const PAST: f64 = 0.75;
/// One attempt of so many looks around.
const LOOK_AROUND: u32 = 10;
/// Probabilities: below which a rate is of no use, from which it counts as that, and from which it is reliable.
const USELESS: f64 = 0.10;
const AS_GOOD_AS_IT_GETS: f64 = 0.90;
const RELIABLE: f64 = 0.95;
/// A rate that cannot be better is tried once in so many turns.
const SLOW_TURNS: u32 = 20;
/// Attempts with each rate of the chain.
const ATTEMPTS: u32 = 2;

/// Statistics of a rate.
#[derive(Clone, Copy, Default, Debug)]
struct Tried {
    sent: u32,
    acknowledged: u32,
    /// None before the first interval in which it was tried.
    probability: Option<f64>,
    skipped: u32,
}

/// The rule.
#[derive(Clone, Debug)]
pub struct Minstrel {
    rates: [Tried; 16],
    update_at: Time,
    best: u8,
    second: u8,
    reliable: u8,
    attempts: u32,
    looks: u32,
    /// A shuffle of the rates, and the place in it.
    order: [u8; 16],
    place: usize,
}

impl Minstrel {
    fn probability(&self, mcs: u8) -> f64 {
        self.rates[usize::from(mcs)].probability.unwrap_or(0.0)
    }

    fn throughput(&self, set: &RateSet, mcs: u8) -> f64 {
        let probability = self.probability(mcs);
        if probability < USELESS { 0.0 } else { set.speed(mcs) * probability.min(AS_GOOD_AS_IT_GETS) }
    }

    fn update(&mut self, set: &RateSet) {
        for rate in &mut self.rates {
            if rate.sent > 0 {
                let now = f64::from(rate.acknowledged) / f64::from(rate.sent);
                rate.probability = Some(rate.probability.map_or(now, |before| PAST * before + (1.0 - PAST) * now));
                (rate.sent, rate.acknowledged) = (0, 0);
            }
        }
        // Of equal ones the slowest, which comes first.
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
            probability if probability >= RELIABLE => 1.0 + set.speed(mcs),
            probability => probability,
        };
        let reliable = set.all().rev().max_by(|a, b| better(a, b, &by_reliability)).unwrap_or(0);
        (self.best, self.second, self.reliable) = (best, second, reliable);
    }

    /// A rate to look at, if it is time and there is one worth it.
    fn look_around(&mut self, set: &RateSet, rng: &mut Rng) -> Option<u8> {
        if self.looks * LOOK_AROUND >= self.attempts {
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
        let could_be_better = set.speed(mcs) * AS_GOOD_AS_IT_GETS > self.throughput(set, self.best);
        let rate = &mut self.rates[usize::from(mcs)];
        if !could_be_better {
            rate.skipped += 1;
            if rate.skipped < SLOW_TURNS {
                return None;
            }
        }
        rate.skipped = 0;
        self.looks += 1;
        Some(mcs)
    }
}

impl RateRule for Minstrel {
    fn new(_set: &RateSet) -> Minstrel {
        Minstrel {
            rates: [Tried::default(); 16],
            update_at: Time::ZERO,
            best: 0,
            second: 0,
            reliable: 0,
            attempts: 0,
            looks: 0,
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
            && let Some(mcs) = self.look_around(set, rng)
        {
            return Choice { mcs, probes: true };
        }
        let chain = [self.best, self.second];
        let mcs = chain.get((failures / ATTEMPTS) as usize).copied().unwrap_or(self.reliable);
        Choice { mcs, probes: false }
    }

    fn on_result(&mut self, mcs: u8, sent: u32, acknowledged: u32) {
        let rate = &mut self.rates[usize::from(mcs & 15)];
        (rate.sent, rate.acknowledged) = (rate.sent + sent, rate.acknowledged + acknowledged);
    }
}
