//! Reference runs. They detect two builds of one version that give different results, because a
//! constant was changed in one of them or a compiler is faulty.
//!
//! The process that hands out a campaign makes two short runs and gives their fingerprints to the
//! workers, which make the same runs. One of them is the same for every campaign and has several
//! kinds of transports over several hops. The other one is the beginning of the campaign's first
//! point.

use meshpace_core::Duration;
use meshpace_scenario::estimate::Estimate;
use meshpace_scenario::{Point, Scenario, Source};
use serde::{Deserialize, Serialize};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;

/// Largest cost of the beginning of a campaign, estimated seconds of CPU time.
const COST_S: f64 = 0.05;
/// Smallest length of that beginning in simulated time.
const SHORTEST: Duration = Duration::from_millis(100);
/// Seed of both runs.
const SEED: u64 = 1;

/// Scenario of the run that is the same for every campaign.
const COMMON: &str = "\
duration = '3 s'
topology.kind = 'cross'
routing.protocol = 'aodv'
[[flow]]
transport = 'tcp-ap'
start = '0 s'
[[flow]]
transport = 'quiet-train'
start = '0.2 s'
[[flow]]
from = 0
to = 1
transport = 'tpa-2'
start = '0.4 s'
[[flow]]
from = 1
to = 0
transport = 'cubic'
start = '0.6 s'
";

/// Results of the reference runs of a campaign.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Reference {
    /// Fingerprint of the run that is the same for every campaign.
    common: String,
    /// Length of the campaign's beginning, nanoseconds of simulated time.
    length_ns: u64,
    /// Fingerprint of the campaign's beginning.
    own: String,
}

impl Reference {
    /// Makes the reference runs for a scenario.
    pub fn of(scenario: &Scenario) -> Reference {
        let length = scenario.points.first().map_or(SHORTEST, length);
        Reference { common: common().to_owned(), length_ns: length.0, own: own(scenario, length) }
    }

    /// Makes the same runs with this program and compares them.
    ///
    /// # Errors
    /// The results differ.
    pub fn check(&self, scenario: &Scenario) -> Result<(), String> {
        let here = Reference {
            common: common().to_owned(),
            length_ns: self.length_ns,
            own: own(scenario, Duration(self.length_ns)),
        };
        if here == *self {
            return Ok(());
        }
        let told = |reference: &Reference| format!("{} {}", reference.common, reference.own);
        Err(format!(
            "this build gives other results: the fingerprints of its reference runs are {}, those of the campaign are {}",
            told(&here),
            told(self)
        ))
    }
}

/// Fingerprint of the run that is the same for every campaign. The run is made once per process.
pub fn common() -> &'static str {
    static MADE: OnceLock<String> = OnceLock::new();
    MADE.get_or_init(|| {
        let source = Source { name: "the reference run".to_owned(), text: COMMON.to_owned(), sets: Vec::new() };
        let scenario = Scenario::read_with(source, &|name| Err(format!("{name}: there is no file")), "reference");
        scenario.map_or_else(|refusal| refusal.to_string(), |scenario| own(&scenario, Duration::from_secs(3)))
    })
}

/// Length of the beginning of a point whose cost stays small.
fn length(point: &Point) -> Duration {
    let whole = point.config.duration;
    let share = (COST_S / Estimate::of(point).cpu_s).min(1.0);
    Duration::from_secs_f64(whole.as_secs_f64() * share).max(SHORTEST).min(whole)
}

/// Fingerprint of the beginning of a scenario's first point.
fn own(scenario: &Scenario, length: Duration) -> String {
    let Some(Ok(point)) = scenario.points.first().map(|point| point.drawn(SEED)) else { return "none".to_owned() };
    let mut config = point.config.clone();
    (config.duration, config.warmup) = (length, Duration::ZERO);
    (config.series, config.watch) = (None, Vec::new());
    let made = catch_unwind(AssertUnwindSafe(|| meshpace_sim::run(&config, SEED).fingerprint));
    made.map_or_else(|_| "none".to_owned(), |fingerprint| format!("{fingerprint:016x}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn scenario(text: &str) -> Scenario {
        let source = Source { name: "test".to_owned(), text: text.to_owned(), sets: Vec::new() };
        Scenario::read(source, Path::new("."), "test").unwrap()
    }

    #[test]
    fn the_same_program_fulfils_it_and_one_with_another_constant_does_not() {
        let text = "duration = '100 s'\ntopology.hops = 3\nrouting.protocol = 'olsr'\n[[flow]]\nstart = '0 s'\n";
        let given = scenario(text);
        let reference = Reference::of(&given);
        assert_eq!(reference.check(&given), Ok(()));
        assert!(reference.length_ns < Duration::from_secs(100).0, "it is short");
        // A program in which a constant is another is one that reads the same scenario otherwise.
        let other = scenario(&format!("{text}segment = 1459\n"));
        assert!(reference.check(&other).unwrap_err().contains("this build gives other results"));
        let other = Reference { common: "0".repeat(16), ..reference };
        assert!(other.check(&given).is_err());
    }

    #[test]
    fn the_common_run_sends_something_by_every_transport() {
        let flows = &meshpace_sim::run(&scenario(COMMON).points[0].config, SEED).flows;
        assert!(flows.len() == 4 && flows.iter().all(|flow| flow.segments_sent > 0), "{flows:?}");
        assert_eq!(common().len(), 16);
    }
}
