//! The register of published experiments: an ordinary scenario each, and beside it what was published, as data.

pub mod consistency;
pub mod data;
pub mod gain;
pub mod judge;
pub mod library;
pub mod results;
pub mod select;
pub mod table;

pub use gain::Gain;
pub use judge::{Judgement, Verdict, judge};
pub use library::{Effort, Register, Runs};
pub use results::{Choice, Results};
pub use table::Tables;

use crate::scenario::{Refusal, Scenario, Source};
use serde::Deserialize;
use std::path::Path;

/// One published experiment. Its files are part of the program, so that it can be repeated from anywhere.
#[derive(Clone, Copy, Debug)]
pub struct Experiment {
    /// Its id: the paper's tag and the figure, table or text result.
    pub id: &'static str,
    /// Other results that come from the same runs.
    pub also: &'static [&'static str],
    /// The scenario, TOML.
    pub scenario: &'static str,
    /// What was published, TOML.
    pub claims: &'static str,
}

/// All experiments of this version.
pub const EXPERIMENTS: &[Experiment] = &[
    Experiment {
        id: "AP05-F14",
        also: &[],
        scenario: include_str!("../../../../scenarios/ap05/F14.toml"),
        claims: include_str!("../../../../scenarios/ap05/F14.claims.toml"),
    },
    Experiment {
        id: "AP05-F15",
        also: &[],
        scenario: include_str!("../../../../scenarios/ap05/F15.toml"),
        claims: include_str!("../../../../scenarios/ap05/F15.claims.toml"),
    },
    Experiment {
        id: "TPA-T2",
        also: &["TPA-T3"],
        scenario: include_str!("../../../../scenarios/tpa/T2.toml"),
        claims: include_str!("../../../../scenarios/tpa/T2.claims.toml"),
    },
    Experiment {
        id: "TPA-T4",
        also: &["TPA-T5", "TPA-T6"],
        scenario: include_str!("../../../../scenarios/tpa/T4.toml"),
        claims: include_str!("../../../../scenarios/tpa/T4.claims.toml"),
    },
];

/// What was published, by its form.
#[derive(Clone, Debug)]
pub enum Account {
    /// Curves over hop counts.
    Figure(Published),
    /// Tables.
    Tables(Tables),
}

impl Experiment {
    /// The experiment called `id`, whatever its case.
    pub fn find(id: &str) -> Option<&'static Experiment> {
        EXPERIMENTS.iter().find(|experiment| experiment.is_called(id))
    }

    /// Whether `id` is its id or one of the others, whatever its case.
    pub fn is_called(&self, id: &str) -> bool {
        self.also.iter().chain([&self.id]).any(|name| name.eq_ignore_ascii_case(id))
    }

    /// What was published: tables if the file has columns, a figure otherwise.
    ///
    /// # Panics
    /// If the embedded file is wrong; a test reads every one.
    pub fn account(&self) -> Account {
        let value: toml::Table = self.read_claims();
        if value.contains_key("column") {
            Account::Tables(self.read_claims())
        } else {
            Account::Figure(self.read_claims())
        }
    }

    /// Tag of its paper, the part of the id before the dash.
    pub fn paper(&self) -> &'static str {
        self.id.split('-').next().unwrap_or(self.id)
    }

    /// The text the scenario is read from.
    pub fn source(&self) -> Source {
        Source { name: self.id.to_owned(), text: self.scenario.to_owned(), sets: Vec::new() }
    }

    /// The scenario.
    ///
    /// # Errors
    /// Those of the scenario; none for a released program.
    pub fn read(&self) -> Result<Scenario, Refusal> {
        Scenario::read(self.source(), Path::new(""), self.id)
    }

    fn read_claims<T: serde::de::DeserializeOwned>(&self) -> T {
        toml::from_str(self.claims).unwrap_or_else(|error| panic!("claims of {}: {error}", self.id))
    }

    /// What was published, if it is a figure.
    pub fn published(&self) -> Option<Published> {
        if let Account::Figure(published) = self.account() { Some(published) } else { None }
    }
}

/// What a paper says about one experiment.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// The experiment's id.
    pub id: String,
    /// What is shown.
    pub title: String,
    /// Where it was published.
    pub source: String,
    /// The transport that the others are compared with.
    pub baseline: String,
    /// The largest published gain over the baseline, per cent.
    pub published_gain_pct: f64,
    /// The variants of the scenario that are shown side by side, the paper's own first.
    #[serde(rename = "panel")]
    pub panels: Vec<Panel>,
    /// The curves that are, at every hop count, the best of several runs.
    #[serde(rename = "tuned", default)]
    pub tuned: Vec<Tuned>,
    /// The statements.
    #[serde(rename = "claim")]
    pub claims: Vec<Claim>,
}

/// A curve of which a parameter is tuned at every hop count: the value with the highest mean goodput counts.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tuned {
    /// The curve's name.
    pub id: String,
    /// The name in `flow.transport` of the runs it is chosen from.
    pub of: String,
    /// The parameter, as a path such as "/window/segments" into `flow.transport`.
    pub parameter: String,
    /// The parameter for people, with its unit.
    pub noun: String,
}

/// A variant of the scenario.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Panel {
    /// A short name.
    pub id: String,
    /// A title for people.
    pub title: String,
    /// What it is good for.
    pub note: String,
    /// The value of `routing` in the sweep.
    pub point: serde_json::Value,
}

/// A statement of a paper.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// The statement.
    pub text: String,
    /// Where it is made.
    pub source: String,
    /// How it is judged.
    pub check: Check,
}

/// How a statement is judged; the rules are in [`judge`](judge()).
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Check {
    /// The largest gain of a transport over another, over all hop counts.
    LargestGain {
        /// The transports judged, each for itself.
        of: Vec<String>,
        /// The transport they are compared with.
        over: String,
        /// The published gain, per cent.
        published_pct: f64,
        /// How far from it the gain may be, percentage points.
        tolerance_pct: f64,
    },
    /// A transport is above another at every hop count.
    Above {
        /// The transports judged, each for itself.
        of: Vec<String>,
        /// The transport they are compared with.
        over: String,
        /// First and last hop count of the range in which the shape must hold.
        core: [u64; 2],
    },
    /// A transport is above another beyond a hop count, where their curves cross.
    AboveBeyond {
        /// The transports judged, each for itself.
        of: Vec<String>,
        /// The transport they are compared with.
        over: String,
        /// The last hop count at which nothing is claimed.
        beyond: u64,
    },
    /// A transport is above each of several others.
    Best {
        /// The transports judged, each for itself.
        of: Vec<String>,
        /// Those they are compared with.
        over: Vec<String>,
        /// First and last hop count of the range in which the shape must hold.
        core: [u64; 2],
    },
    /// The gain of a transport over another lies in a range at every hop count.
    GainBetween {
        /// The transports judged, each for itself.
        of: Vec<String>,
        /// The transport they are compared with.
        over: String,
        /// Smallest and largest published gain, per cent; negative for a loss.
        published_pct: [f64; 2],
        /// How far outside of them a gain may be, percentage points.
        tolerance_pct: f64,
        /// First and last hop count of the range in which it must hold.
        core: [u64; 2],
    },
    /// The best value of a tuned parameter is small.
    TunedBelow {
        /// The tuned curves judged, each for itself.
        of: Vec<String>,
        /// The value it is below.
        limit: f64,
        /// First and last hop count of the range in which it must hold.
        core: [u64; 2],
    },
    /// Goodput falls with the hop count.
    Falls {
        /// The transports judged, each for itself.
        of: Vec<String>,
        /// A rise of less than this, per cent, does not break the shape.
        tolerance_pct: f64,
    },
    /// Nothing can be said yet.
    NotJudged {
        /// Why.
        why: String,
    },
}

impl Check {
    /// The transports that are judged, each for itself.
    pub fn subjects(&self) -> &[String] {
        match self {
            Check::LargestGain { of, .. }
            | Check::Above { of, .. }
            | Check::AboveBeyond { of, .. }
            | Check::Best { of, .. }
            | Check::GainBetween { of, .. }
            | Check::TunedBelow { of, .. }
            | Check::Falls { of, .. } => of,
            Check::NotJudged { .. } => &[],
        }
    }

    /// The transports they are compared with.
    pub fn others(&self) -> &[String] {
        match self {
            Check::LargestGain { over, .. }
            | Check::Above { over, .. }
            | Check::AboveBeyond { over, .. }
            | Check::GainBetween { over, .. } => std::slice::from_ref(over),
            Check::Best { over, .. } => over,
            Check::TunedBelow { .. } | Check::Falls { .. } | Check::NotJudged { .. } => &[],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_experiment_can_be_read_and_its_panels_and_transports_are_in_its_sweep() {
        for experiment in EXPERIMENTS {
            let scenario = experiment.read().unwrap_or_else(|refusal| panic!("{}", refusal.render(false)));
            let published = match experiment.account() {
                Account::Figure(published) => published,
                Account::Tables(tables) => {
                    assert_eq!(tables.id, experiment.id);
                    every_row_is_run(&tables, &scenario);
                    continue;
                }
            };
            assert_eq!(published.id, experiment.id);
            for panel in &published.panels {
                let swept = |point: &crate::scenario::Point| {
                    point.values.iter().any(|(key, value)| key == "routing" && *value == panel.point)
                };
                assert!(scenario.points.iter().any(swept), "{} has no point of panel {}", experiment.id, panel.id);
            }
            for name in
                published.claims.iter().flat_map(|claim| claim.check.subjects().iter().chain(claim.check.others()))
            {
                let tuned = published.tuned.iter().find(|tuned| tuned.id == *name).map(|tuned| tuned.of.as_str());
                let run = |point: &crate::scenario::Point| {
                    let matches = |label: &String| match tuned {
                        Some(of) => label.split('{').next() == Some(of),
                        None => label == name,
                    };
                    point.transports.iter().any(matches)
                };
                assert!(scenario.points.iter().any(run), "{} does not run {name}", experiment.id);
            }
        }
    }

    #[test]
    fn tables_of_the_same_runs_are_one_experiment() {
        for (name, id) in [("tpa-t6", "TPA-T4"), ("TPA-T3", "TPA-T2"), ("AP05-F15", "AP05-F15")] {
            assert_eq!(Experiment::find(name).map(|experiment| experiment.id), Some(id));
        }
    }

    fn every_row_is_run(tables: &Tables, scenario: &Scenario) {
        for group in &tables.groups {
            for row in &group.rows {
                for column in &tables.columns {
                    let has = |point: &crate::scenario::Point, key: &str, value: &serde_json::Value| {
                        point.values.iter().any(|(other, swept)| other == key && swept == value)
                    };
                    let run = |point: &&crate::scenario::Point| {
                        has(point, "flow.transport", &row.transport)
                            && group.point.iter().chain(&column.point).all(|(key, value)| has(point, key, value))
                    };
                    assert_eq!(scenario.points.iter().filter(run).count(), 1, "{}, {}", row.name, column.title);
                    assert!(row.published.keys().all(|id| tables.columns.iter().any(|column| column.id == *id)));
                }
            }
        }
        for claim in &tables.claims {
            assert!(tables.columns.iter().any(|column| column.id == claim.column), "{}", claim.text);
            for name in claim.of.iter().chain(&claim.over) {
                assert!(tables.groups.iter().any(|group| group.rows.iter().any(|row| row.name == *name)), "{name}");
            }
        }
    }

    #[test]
    fn f14_is_the_set_up_of_the_paper() {
        // AP05, sections 3 and 5: 2 Mbit/s, RTS/CTS, queue of 50, 1460-byte packets, chain; 3 x 5 x 10 points here.
        let scenario = Experiment::find("ap05-f14").unwrap().read().unwrap();
        assert_eq!(scenario.points.len(), 150);
        for point in &scenario.points {
            let radio = &point.config.mesh.radio;
            assert_eq!(radio.rate, meshpace_core::Rate::from_mbps(2));
            assert_eq!(radio.rts, meshpace_mesh::config::RtsPolicy::Always);
            assert_eq!(radio.queue, 50);
            let [flow] = &point.config.flows[..] else { panic!("one flow") };
            assert_eq!(flow.transport.segment(), 1460);
            assert_eq!(usize::from(flow.to.0), point.config.positions.len() - 1);
            assert_eq!((point.config.warmup.as_secs_f64(), point.config.duration.as_secs_f64()), (20.0, 200.0));
        }
    }
}
