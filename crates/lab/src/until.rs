//! More seeds for a campaign until the confidence interval of a quantity is narrow enough.
//!
//! A point has enough seeds as soon as the half width of the 95 % interval of the mean is within a
//! share of the mean. This is also the rule of registered experiments (`register::replication`).
//! However, a point gets at least [`FIRST`] seeds here. A few values may agree by chance, and the
//! interval then misses the mean more often than 1 in 20 (Law, "Simulation Modeling and Analysis",
//! section 9.4.1).
//!
//! A point that has too few seeds gets about half of the seeds that it is still expected to need.
//! The expectation uses that the half width falls with the square root of their number. The number
//! of seeds is a function of the records alone. It depends neither on the number of threads nor on
//! interruptions of the campaign.

use crate::backend::Backend;
use crate::campaign::{Campaign, Run};
use crate::record::Record;
use crate::record::metrics::{METRICS, Metric};
use crate::register::reproduction::Listener;
use crate::session::{Broken, Session};
use crate::statistics::{Estimate, digits, estimate};
use crate::summary::LEVEL;
use std::io;

/// Number of seeds that every point has.
pub const FIRST: u64 = 20;
/// Default of the largest number of seeds of a point.
pub const MOST: u64 = 400;

/// Rule that decides when a point has enough seeds.
#[derive(Clone, Copy, Debug)]
pub struct Until {
    metric: &'static Metric,
    /// Largest half width of the interval, as a share of the mean.
    within: f64,
    /// Number of seeds that every point has.
    first: u64,
    /// Largest number of seeds of a point.
    most: u64,
}

/// State of a point according to its records.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum State {
    /// The interval is narrow enough.
    Enough,
    /// The point needs this number of seeds in total.
    Needs(u64),
    /// The largest number of seeds is reached, and the interval is still too wide.
    Wide,
    /// Some run has no finite value of this quantity.
    Unmeasured,
}

impl Until {
    /// Reads a rule such as "goodput 2 %". Every point has `seeds` seeds, but at least [`FIRST`],
    /// and at most `most`.
    ///
    /// # Errors
    /// A sentence that says what was expected.
    pub fn parse(text: &str, seeds: Option<u64>, most: u64) -> Result<Until, String> {
        let form = "expected a quantity and a share of its mean, such as 'goodput 2 %'";
        let text = text.trim();
        let without = text.strip_suffix('%').ok_or_else(|| format!("\"{text}\": {form}"))?;
        let (name, share) =
            without.trim().rsplit_once(char::is_whitespace).ok_or_else(|| format!("\"{text}\": {form}"))?;
        let name = name.trim();
        let known = |metric: &&Metric| metric.plot == Some(name) || metric.name == name;
        let metric = METRICS.iter().find(known).ok_or_else(|| {
            let names: Vec<&str> = METRICS.iter().filter_map(|metric| metric.plot).collect();
            format!("there is no quantity \"{name}\": expected one of {}", names.join(", "))
        })?;
        let percent: f64 = share.parse().map_err(|_| format!("\"{share}\" is not a number: {form}"))?;
        if !(percent > 0.0 && percent <= 100.0) {
            return Err(format!("{share} %: expected more than 0 % and at most 100 %"));
        }
        let first = seeds.unwrap_or(FIRST).max(FIRST);
        if most < first {
            return Err(format!("the limit of {most} seeds is less than the {first} seeds that every point has"));
        }
        Ok(Until { metric, within: percent / 100.0, first, most })
    }

    /// Number of seeds that every point has.
    pub fn first(&self) -> u64 {
        self.first
    }

    /// Largest number of seeds of a point.
    pub fn most(&self) -> u64 {
        self.most
    }

    /// State of a point with these values, one for each of its first seeds in order.
    pub fn state(&self, values: &[f64]) -> State {
        let count = values.len() as u64;
        let Estimate { mean, half_width, .. } = estimate(values, LEVEL);
        let aim = self.within * mean.abs();
        match () {
            () if count < self.first => State::Needs(self.first),
            () if !half_width.is_finite() => State::Unmeasured,
            () if half_width <= aim => State::Enough,
            () if count >= self.most => State::Wide,
            () => {
                let expected = (count as f64 * (half_width / aim).powi(2)).min(self.most as f64);
                let missing = (expected - count as f64) / 2.0;
                State::Needs((count + 1 + missing as u64).min(self.most))
            }
        }
    }

    /// State of a point whose first seeds have these records.
    pub fn state_of(&self, records: &[Record]) -> State {
        self.state(&self.values(records))
    }

    fn values(&self, records: &[Record]) -> Vec<f64> {
        records.iter().map(|record| (self.metric.of)(record).unwrap_or(f64::NAN)).collect()
    }

    /// Sentence on a point whose interval was not reached. `None` if it was reached, or if more
    /// seeds are needed.
    pub fn told(&self, point: &str, records: &[Record]) -> Option<String> {
        let at = if point.is_empty() { String::new() } else { format!(" at {point}") };
        let (noun, percent) = (self.metric.noun, 100.0 * self.within);
        match self.state_of(records) {
            State::Enough | State::Needs(_) => None,
            State::Unmeasured => Some(format!(
                "until: {noun}{at} has no value in some of {} runs, so no number of seeds is enough",
                records.len()
            )),
            State::Wide => {
                let found = estimate(&self.values(records), LEVEL);
                let reached = 100.0 * found.half_width / found.mean.abs();
                Some(format!(
                    "until: {percent} % was not reached{at}: after {} seeds, the most allowed, the interval of {noun} is ± {} % of the mean",
                    records.len(),
                    digits(reached)
                ))
            }
        }
    }
}

/// A campaign whose points get more seeds until they have enough.
#[derive(Debug)]
pub struct Growing {
    until: Until,
    /// Number of seeds of each point so far.
    seeds: Vec<u64>,
    /// True for each point that gets no more seeds.
    is_done: Vec<bool>,
}

impl Growing {
    /// Creates the state in which every point has its first seeds.
    pub fn new(until: Until, campaign: &Campaign) -> Growing {
        let points = campaign.scenario.points.len();
        Growing { until, seeds: vec![until.first; points], is_done: vec![false; points] }
    }

    /// Runs of all points so far, in the order of the campaign. `campaign` has the largest number
    /// of seeds that a point may get.
    pub fn runs<'a>(&'a self, campaign: &'a Campaign) -> impl Iterator<Item = Run> + 'a {
        let per_point = campaign.seeds as usize;
        let of = move |(point, seeds): (usize, &u64)| (0..*seeds as usize).map(move |seed| point * per_point + seed);
        self.seeds.iter().enumerate().flat_map(of).map(|index| campaign.run(index))
    }

    /// Makes the missing runs, and those of more seeds until every point has enough. Returns how
    /// many runs failed. Stops after a failed run.
    ///
    /// # Errors
    /// The reason why it cannot be finished.
    pub fn make(
        &mut self,
        session: &mut Session,
        backend: &mut dyn Backend,
        listener: &mut dyn Listener,
    ) -> Result<usize, Broken> {
        loop {
            let todo = self.missing(session)?;
            if todo.is_empty() {
                return Ok(0);
            }
            let campaign = session.campaign();
            let is_more = |run: &&Run| run.seed - campaign.first_seed >= self.until.first;
            let more: Vec<Run> = todo.iter().filter(is_more).copied().collect();
            listener.on_more(session.work(&more));
            let failed = session.make(todo, backend, listener)?;
            if failed > 0 {
                return Ok(failed);
            }
        }
    }

    /// Runs that are to be made next. Empty if every point has enough seeds.
    ///
    /// # Errors
    /// Records cannot be read.
    pub fn missing(&mut self, session: &Session) -> io::Result<Vec<Run>> {
        loop {
            let (_, missing) = session.partition(self.runs(session.campaign()));
            if !missing.is_empty() || !self.grow(session)? {
                return Ok(missing);
            }
        }
    }

    /// Gives more seeds to the points that need them. Returns whether there is such a point.
    fn grow(&mut self, session: &Session) -> io::Result<bool> {
        let mut is_wanting = false;
        for point in 0..self.seeds.len() {
            if self.is_done[point] {
                continue;
            }
            match self.until.state_of(&self.records(session, point)?) {
                State::Needs(seeds) => (self.seeds[point], is_wanting) = (seeds, true),
                State::Enough | State::Wide | State::Unmeasured => self.is_done[point] = true,
            }
        }
        Ok(is_wanting)
    }

    /// Records of a point's seeds, in order.
    fn records(&self, session: &Session, point: usize) -> io::Result<Vec<Record>> {
        let campaign = session.campaign();
        let runs = (0..self.seeds[point]).map(|seed| campaign.run((point as u64 * campaign.seeds + seed) as usize));
        let lines = runs.filter_map(|run| session.line(run).transpose());
        lines.map(|line| Record::from_line(&line?).map_err(io::Error::other)).collect()
    }

    /// Sentences on the points whose interval was not reached.
    ///
    /// # Errors
    /// Records cannot be read.
    pub fn told(&self, session: &Session) -> io::Result<Vec<String>> {
        let mut told = Vec::new();
        let points = &session.campaign().scenario.points;
        for number in 0..points.len() {
            let values = points.values(number);
            let values: Vec<String> =
                values.iter().map(|(key, value)| format!("{key} = {}", crate::record::plain(value))).collect();
            told.extend(self.until.told(&values.join(", "), &self.records(session, number)?));
        }
        Ok(told)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Threads;
    use crate::campaign::Work;
    use crate::record::Record;
    use crate::session::Observer;
    use meshpace_core::rng::{Purpose, Rng};
    use meshpace_scenario::{Scenario, Source};
    use std::collections::BTreeSet;
    use std::path::Path;
    use std::sync::Arc;

    fn until() -> Until {
        Until::parse("goodput 2 %", None, MOST).unwrap()
    }

    /// Random value of the normal distribution with mean 0 and deviation 1 (Box and Muller, 1958).
    fn normal(rng: &mut Rng) -> f64 {
        let radius = (-2.0 * (1.0 - rng.uniform()).ln()).sqrt();
        radius * (std::f64::consts::TAU * rng.uniform()).cos()
    }

    /// Takes values until there are enough, and returns them with the last state.
    fn draw(value: &mut dyn FnMut() -> f64) -> (Vec<f64>, State) {
        let mut values = Vec::new();
        loop {
            match until().state(&values) {
                State::Needs(count) => values.extend((values.len() as u64..count).map(|_| value())),
                state => return (values, state),
            }
        }
    }

    /// Checks 200 repetitions with disjoint seeds. In at least 176 of them the interval contains
    /// the true mean. The mean number of seeds is at most 1.3 times the number that would be needed
    /// if the deviation were known, which is taken as at least 22. Values follow
    /// `100 (1 + spread * deviate)`, where the deviate has mean 0 and deviation 1.
    fn check(spread: f64, deviate: fn(&mut Rng) -> f64) {
        let (mut covered, mut seeds) = (0, 0);
        for repetition in 0..200 {
            let mut rng = Rng::stream(repetition, Purpose::Test, (1000.0 * spread) as u64);
            let (values, state) = draw(&mut || 100.0 * (1.0 + spread * deviate(&mut rng)));
            assert_eq!(state, State::Enough);
            let found = estimate(&values, LEVEL);
            covered += u64::from((found.mean - 100.0).abs() <= found.half_width);
            seeds += values.len();
        }
        let needed = (1.96_f64 * spread / 0.02).powi(2).max(22.0);
        let mean = seeds as f64 / 200.0;
        assert!(covered >= 176, "spread {spread}: {covered} of 200");
        assert!(mean <= 1.3 * needed, "spread {spread}: {mean} seeds instead of {needed}");
    }

    #[test]
    fn the_interval_has_the_true_mean_and_few_seeds_are_spent() {
        check(0.03, normal);
        check(0.08, normal);
        // Skewed to the right: an exponential deviate has skewness 2.
        check(0.15, |rng| rng.exponential(1.0) - 1.0);
    }

    #[test]
    fn a_wide_spread_stops_at_the_most_and_says_so() {
        let mut rng = Rng::stream(1, Purpose::Test, 0);
        let (values, state) = draw(&mut || 100.0 * (1.0 + 0.3 * normal(&mut rng)));
        assert_eq!((values.len() as u64, state), (MOST, State::Wide));
        let records: Vec<Record> =
            values.iter().map(|value| Record { aggregate_goodput_bps: *value, ..Record::default() }).collect();
        let told = until().told("topology.hops = 4", &records).unwrap();
        assert!(told.starts_with("until: 2 % was not reached at topology.hops = 4: after 400 seeds"), "{told}");
    }

    #[test]
    fn a_rule_is_read_with_its_quantity_and_a_wrong_one_says_what_is_expected() {
        for text in ["goodput 2 %", "aggregate_goodput_bps 2%", " goodput  2 % "] {
            let rule = Until::parse(text, None, 400).unwrap();
            assert_eq!(
                (rule.metric.name, rule.within, rule.first, rule.most),
                ("aggregate_goodput_bps", 0.02, 20, 400)
            );
        }
        assert_eq!(Until::parse("delay 5 %", Some(30), 400).unwrap().first, 30);
        assert_eq!(Until::parse("delay 5 %", Some(3), 400).unwrap().first, 20, "from 20 seeds on");
        for (text, most, why) in [
            ("goodput", 400, "'goodput 2 %'"),
            ("goodput 2", 400, "'goodput 2 %'"),
            ("speed 2 %", 400, "expected one of goodput, "),
            ("goodput x %", 400, "not a number"),
            ("goodput 0 %", 400, "more than 0 %"),
            ("goodput 2 %", 19, "less than the 20"),
        ] {
            let told = Until::parse(text, None, most).unwrap_err();
            assert!(told.contains(why), "{text}: {told}");
        }
    }

    #[test]
    fn no_number_of_seeds_is_enough_for_what_has_no_value() {
        let mut values = vec![1.0; 20];
        assert_eq!(until().state(&values), State::Enough);
        values[3] = f64::INFINITY;
        assert_eq!(until().state(&values), State::Unmeasured);
        values[3] = f64::NAN;
        assert_eq!(until().state(&values), State::Unmeasured);
    }

    struct Quiet;

    impl Observer for Quiet {
        fn on_kept(&mut self, _: &mut Session, _: &[Run], _: Work) -> io::Result<()> {
            Ok(())
        }
    }

    impl Listener for Quiet {
        fn on_known(&mut self, _: Work) {}

        fn on_more(&mut self, _: Work) {}

        fn say(&mut self, _: &str) {}
    }

    /// Makes a campaign of two points and returns the seeds of each. The longer point varies more.
    fn grow(session: &mut Session, jobs: usize) -> BTreeSet<(usize, u64)> {
        let stop = Arc::default();
        let until = Until::parse("goodput 6 %", None, 60).unwrap();
        let mut growing = Growing::new(until, session.campaign());
        let made = growing.make(session, &mut Threads::new(jobs, &stop), &mut Quiet);
        assert_eq!(made.unwrap(), 0);
        growing.runs(session.campaign()).map(|run| (run.point, run.seed)).collect()
    }

    #[test]
    fn the_seeds_depend_neither_on_the_threads_nor_on_an_interruption() {
        let text = "duration = '4 s'\n[[flow]]\n[sweep]\n\"topology.hops\" = [1, 4]\n".to_owned();
        let source = Source { name: "test".to_owned(), text, sets: Vec::new() };
        let scenario = Scenario::read(source, Path::new("."), "test").unwrap();
        let campaign = Arc::new(Campaign { scenario, first_seed: 1, seeds: 60 });
        let mut one = Session::in_memory(Arc::clone(&campaign));
        let runs = grow(&mut one, 1);
        let of = |point: usize| runs.iter().filter(|run| run.0 == point).count();
        assert!(of(0) == 20 && (21..60).contains(&of(1)), "one hop varies little, four vary: {} and {}", of(0), of(1));
        let mut two = Session::in_memory(Arc::clone(&campaign));
        assert_eq!(grow(&mut two, 2), runs);
        assert_eq!(two.lines().unwrap(), one.lines().unwrap());
        // Another start has made some of them, and one that is not among the first.
        let scratch = tempfile::tempdir().unwrap();
        let open = || Session::open(Arc::clone(&campaign), scratch.path(), &campaign.manifest(1), false).unwrap();
        let mut killed = open();
        let some = [0, 1, 5, 60, 77, 83].map(|index| campaign.run(index)).to_vec();
        killed.make(some, &mut Threads::new(1, &Arc::default()), &mut Quiet).unwrap();
        drop(killed);
        let mut again = open();
        assert_eq!(grow(&mut again, 2), runs);
        assert_eq!(again.lines().unwrap(), one.lines().unwrap());
    }
}
