//! What many runs have come to.

use super::faults::{Fault, Moment, cells};
use super::hostile::attack::Attack;
use super::{Broken, Run};
use std::collections::BTreeMap;

/// Broken invariants that are kept, each with its seed.
const KEPT: usize = 100;

/// How a number is spread over runs, to a hundredth.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Spread(pub BTreeMap<u64, u64>);

impl Spread {
    /// One more.
    pub fn add(&mut self, value: u64) {
        // Two digits and the place: the median is that to a hundredth.
        let mut step = 1;
        while value / step >= 1000 {
            step *= 10;
        }
        *self.0.entry(value / step * step).or_default() += 1;
    }

    /// The value that half of all do not exceed; 0 if there are none.
    pub fn median(&self) -> u64 {
        let all: u64 = self.0.values().sum();
        let mut before = 0;
        let found = self.0.iter().find(|(_, count)| {
            before += **count;
            2 * before >= all
        });
        found.map_or(0, |(value, _)| *value)
    }

    /// The greatest.
    pub fn greatest(&self) -> u64 {
        self.0.last_key_value().map_or(0, |(value, _)| *value)
    }
}

/// An invariant that was broken, and by which seed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Found {
    /// The run's seed.
    pub seed: u64,
    /// What it has broken.
    pub broken: Broken,
}

/// What many runs have come to.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Tally {
    /// Runs.
    pub runs: u64,
    /// Virtual time of all, ms.
    pub virtual_ms: u64,
    /// Datagrams sent, and lost.
    pub packets: u64,
    /// Those of them that were lost.
    pub lost: u64,
    /// Streams begun.
    pub streams: u64,
    /// Bytes read.
    pub bytes: u64,
    /// Datagrams of flows that have arrived.
    pub datagrams: u64,
    /// Ends of streams that failed with an error.
    pub failures: u64,
    /// Faults by name.
    pub faults: BTreeMap<String, u64>,
    /// Actions of hostile peers by name.
    pub attacks: BTreeMap<String, u64>,
    /// Datagrams by the name of the moment.
    pub moments: BTreeMap<String, u64>,
    /// Faults by moment and fault, "moment fault".
    pub hits: BTreeMap<String, u64>,
    /// Virtual time of a run, ms.
    pub times: Spread,
    /// Datagrams of a run.
    pub sent: Spread,
    /// Faults of a run, and actions of hostile peers.
    pub suffered: Spread,
    /// The longest wait after the last fault, ms.
    pub waits: Spread,
    /// Invariants broken: how many runs have, and the first of them.
    pub broken: u64,
    /// The first of them.
    pub found: Vec<Found>,
}

impl Tally {
    /// One run more.
    pub fn add(&mut self, run: &Run) {
        let milliseconds = run.virtual_time.0 / 1_000_000;
        self.runs += 1;
        self.virtual_ms += milliseconds;
        self.packets += run.packets;
        self.lost += run.lost;
        self.streams += run.streams;
        self.bytes += run.bytes;
        self.datagrams += run.datagrams;
        self.failures += run.failures;
        for (fault, count) in Fault::ALL.iter().zip(&run.faults).filter(|(_, count)| **count > 0) {
            *self.faults.entry(fault.name().to_owned()).or_default() += u64::from(*count);
        }
        for (attack, count) in Attack::ALL.iter().zip(&run.attacks).filter(|(_, count)| **count > 0) {
            *self.attacks.entry(attack.name().to_owned()).or_default() += u64::from(*count);
        }
        for (moment, count) in Moment::ALL.iter().zip(&run.moments).filter(|(_, count)| **count > 0) {
            *self.moments.entry(moment.name().to_owned()).or_default() += u64::from(*count);
        }
        for (moment, fault) in &run.hits {
            *self.hits.entry(format!("{} {}", moment.name(), fault.name())).or_default() += 1;
        }
        self.times.add(milliseconds);
        self.sent.add(run.packets);
        self.suffered.add(run.faults.iter().chain(&run.attacks).map(|count| u64::from(*count)).sum());
        self.waits.add(run.longest_wait.0 / 1_000_000);
        if let Some(broken) = &run.broken {
            self.broken += 1;
            if self.found.len() < KEPT {
                self.found.push(Found { seed: run.seed, broken: broken.clone() });
            }
        }
    }

    /// What others have come to as well.
    pub fn merge(&mut self, other: Tally) {
        self.runs += other.runs;
        self.virtual_ms += other.virtual_ms;
        self.packets += other.packets;
        self.lost += other.lost;
        self.streams += other.streams;
        self.bytes += other.bytes;
        self.datagrams += other.datagrams;
        self.failures += other.failures;
        for (into, from) in [
            (&mut self.faults, other.faults),
            (&mut self.attacks, other.attacks),
            (&mut self.moments, other.moments),
            (&mut self.hits, other.hits),
        ] {
            from.into_iter().for_each(|(name, count)| *into.entry(name).or_default() += count);
        }
        for (into, from) in [
            (&mut self.times, other.times),
            (&mut self.sent, other.sent),
            (&mut self.suffered, other.suffered),
            (&mut self.waits, other.waits),
        ] {
            from.0.into_iter().for_each(|(value, count)| *into.0.entry(value).or_default() += count);
        }
        self.broken += other.broken;
        self.found.extend(other.found);
        self.found.sort_by_key(|found| found.seed);
        self.found.truncate(KEPT);
    }

    /// Faults at moments that no run has had, of those that make sense.
    pub fn missing(&self) -> Vec<String> {
        let names = cells().map(|(moment, fault)| format!("{} {}", moment.name(), fault.name()));
        names.filter(|name| !self.hits.contains_key(name)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_are_right_to_a_hundredth() {
        let mut spread = Spread::default();
        (1..=99_999).for_each(|value| spread.add(value));
        let median = spread.median();
        assert!(median.abs_diff(50_000) <= 500, "{median}");
        assert_eq!((Spread::default().median(), spread.greatest()), (0, 99_900));
    }
}
