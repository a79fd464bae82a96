//! `--report`: data of a run that the page needs besides the records.

use meshpace_lab::campaign::{Campaign, Run};
use meshpace_lab::record::{Record, is_kept};
use meshpace_lab::routes::Routes;
use meshpace_mesh::radio::{Channel, connectivity};
use meshpace_report::picture::{self, Map, Subject};
use meshpace_scenario::Point;
use meshpace_sim::{Mobility, Outcome};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// Largest number of nodes for which the page has a map.
const MAPPED: usize = 500;

/// Observes the first run of a campaign's last point. The map shows the hops of this run.
#[derive(Clone, Default)]
pub struct Watch(Arc<Mutex<Option<Routes>>>);

impl Watch {
    /// True if `run` is the run to observe.
    pub fn is_of(campaign: &Campaign, run: Run) -> bool {
        run.point + 1 == campaign.scenario.points.len() && run.seed == campaign.first_seed
    }

    /// Makes the run and observes it.
    pub fn run(&self, point: &Point, run: Run) -> Outcome {
        let mut routes = Routes::new(&point.config);
        let outcome = meshpace_sim::run_with(&point.config, run.seed, &mut routes);
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(routes);
        outcome
    }

    fn hops(&self) -> Vec<Vec<(usize, usize, u64)>> {
        let routes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        routes.as_ref().map(Routes::hops).unwrap_or_default()
    }
}

/// Checks that the page can be written, before anything is run.
///
/// # Errors
/// A sentence for people.
pub fn check(page: &Path) -> Result<(), String> {
    // The page has further files beside it, so it cannot be a device.
    if is_kept(page) && (!page.is_file() || page.starts_with("/dev")) {
        return Err(format!(
            "--report: {} is not a plain file; give another name, such as report.html",
            page.display()
        ));
    }
    let beside = page.parent().filter(|place| *place != Path::new(""));
    match beside.filter(|place| !place.is_dir()) {
        Some(place) => Err(format!("--report: the directory {} does not exist; create it first", place.display())),
        None if page.is_dir() => {
            Err(format!("--report: {} is a directory; give the name of a file in it", page.display()))
        }
        None => {
            let place = beside.unwrap_or(Path::new("."));
            // Every file of the page is first written as a temporary file in the same directory.
            tempfile::Builder::new().prefix(".meshpace-").tempfile_in(place).map(drop).map_err(|error| {
                let why =
                    error.get_ref().and_then(|inner| inner.source()).map_or(error.to_string(), ToString::to_string);
                format!("--report: {} cannot be written: {why}", place.display())
            })
        }
    }
}

/// Writes the page of a campaign.
///
/// # Errors
/// The errors of [`picture::write`].
pub fn write(page: &Path, campaign: &Campaign, amount: &str, records: &[Record], watch: &Watch) -> Result<(), String> {
    let source = &campaign.scenario.source;
    let sets: String = source.sets.iter().map(|set| format!(" --set {}", quoted(set))).collect();
    let seeds = format!(" --seed {} {amount}", campaign.first_seed);
    let command = format!("meshpace run {}{seeds}{sets}", quoted(&source.name));
    let points = &campaign.scenario.points;
    let last = points.len().checked_sub(1).and_then(|last| points.build(last).ok());
    let map = last.and_then(|point| map(&point, campaign.first_seed, watch));
    let (title, settings) = (campaign.scenario.name.as_str(), &campaign.scenario.plot);
    picture::write(page, &Subject { title, command: &command, records, map: map.as_ref(), settings })
}

/// Quotes a word for a shell, if that is necessary.
fn quoted(word: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "_-./:,+@%=".contains(letter);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// Map of the nodes, links and flows of a point as drawn for a seed; `None` if the mesh is too
/// large for a useful map.
fn map(point: &Point, seed: u64, watch: &Watch) -> Option<Map> {
    let drawn = point.drawn(seed).ok()?;
    let config = &drawn.config;
    let nodes: Vec<(f64, f64)> = config.positions.iter().map(|place| (place.x, place.y)).collect();
    let flows = config.flows.iter().zip(&drawn.transports);
    let flows = flows.map(|(flow, name)| (flow.from.index(), flow.to.index(), name.clone())).collect();
    let links =
        || connectivity::links(&config.positions, &Channel::new(&config.mesh.radio), config.firewall.as_deref());
    (nodes.len() <= MAPPED).then(|| Map {
        nodes,
        links: links(),
        flows,
        names: drawn.names.clone(),
        routes: watch.hops(),
        of: match config.mobility {
            Mobility::Still => format!("seed {seed}"),
            _ => format!(
                "seed {seed}; nodes move: places and links are those at the start, hops are those of the whole run"
            ),
        },
    })
}
