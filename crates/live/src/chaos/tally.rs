//! Statistics of many runs.

use super::faults::{Fault, Moment, cells};
use super::hostile::attack::Attack;
use super::{Broken, Run};
use std::collections::BTreeMap;

/// Maximum number of violated invariants that are stored, each with its seed.
const KEPT: usize = 100;

/// Distribution of a value over runs, with three significant digits.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Spread(pub BTreeMap<u64, u64>);

impl Spread {
    /// Adds a value.
    pub fn add(&mut self, value: u64) {
        // Only the first three digits are kept, which is precise enough for the median.
        let mut step = 1;
        while value / step >= 1000 {
            step *= 10;
        }
        *self.0.entry(value / step * step).or_default() += 1;
    }

    /// Median: the smallest value that at least half of all values do not exceed. 0 if there are no
    /// values.
    pub fn median(&self) -> u64 {
        let all: u64 = self.0.values().sum();
        let mut before = 0;
        let found = self.0.iter().find(|(_, count)| {
            before += **count;
            2 * before >= all
        });
        found.map_or(0, |(value, _)| *value)
    }

    /// Largest value; 0 if there are no values.
    pub fn greatest(&self) -> u64 {
        self.0.last_key_value().map_or(0, |(value, _)| *value)
    }
}

/// A violated invariant, with the seed of the run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Found {
    /// Seed of the run.
    pub seed: u64,
    /// The invariant that was violated.
    pub broken: Broken,
}

/// Statistics of many runs.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Tally {
    /// Number of runs.
    pub runs: u64,
    /// Total virtual time, ms.
    pub virtual_ms: u64,
    /// Number of datagrams that were sent.
    pub packets: u64,
    /// Number of those datagrams that were lost.
    pub lost: u64,
    /// Number of streams that were opened.
    pub streams: u64,
    /// Number of bytes that applications have read.
    pub bytes: u64,
    /// Number of datagrams of tunnel flows that have arrived.
    pub datagrams: u64,
    /// Number of stream ends that failed with an error.
    pub failures: u64,
    /// Number of faults, by name.
    pub faults: BTreeMap<String, u64>,
    /// Number of actions of hostile peers, by name.
    pub attacks: BTreeMap<String, u64>,
    /// Number of datagrams, by the name of the moment.
    pub moments: BTreeMap<String, u64>,
    /// Number of faults, by moment and fault: "moment fault".
    pub hits: BTreeMap<String, u64>,
    /// Virtual time per run, ms.
    pub times: Spread,
    /// Number of datagrams per run.
    pub sent: Spread,
    /// Number of faults and actions of hostile peers per run.
    pub suffered: Spread,
    /// Longest wait after the last fault per run, ms.
    pub waits: Spread,
    /// Number of runs that have violated an invariant.
    pub broken: u64,
    /// Violated invariants of the runs with the lowest seeds.
    pub found: Vec<Found>,
}

impl Tally {
    /// Adds a run.
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

    /// Adds the statistics of other runs.
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

    /// Combinations of moment and fault that make sense and have not occurred in any run.
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
