//! The simulator for a browser. It reads a scenario, runs it in steps of any length, shows its
//! state, and goes back to an earlier time.
//!
//! JavaScript uses [`Scenario`] and [`Player`]. The modules do their work and also run outside of a
//! browser. Times are in seconds. Lists of numbers are flat arrays; the function that returns an
//! array documents its layout. All other data are JSON.
#![warn(clippy::unwrap_used, clippy::print_stdout, clippy::print_stderr)]

pub mod air;
pub mod history;
pub mod load;
pub mod packets;
pub mod playback;
pub mod report;
pub mod watch;

use load::{Files, Loaded};
use meshpace_core::Time;
use playback::Playback;
use wasm_bindgen::prelude::wasm_bindgen;

/// Revision of the model. A page compares it with the revision of a record.
#[wasm_bindgen(js_name = modelRevision)]
pub fn model_revision() -> u32 {
    meshpace_sim::MODEL_REVISION
}

/// Sends panics to the browser's console. A page calls this function once, before all others.
#[wasm_bindgen(js_name = tellPanics)]
pub fn tell_panics() {
    console_error_panic_hook::set_once();
}

/// Names of all transports, as a list in JSON.
#[wasm_bindgen]
pub fn transports() -> String {
    let names: Vec<&str> = meshpace_transport::names::table().iter().map(|entry| entry.name).collect();
    serde_json::Value::from(names).to_string()
}

/// A scenario and its files, which are added before the scenario is read.
#[wasm_bindgen]
pub struct Scenario {
    name: String,
    text: String,
    files: Files,
    loaded: Option<Loaded>,
}

#[wasm_bindgen]
impl Scenario {
    /// Creates a scenario from `text`, a TOML file called `name`.
    #[wasm_bindgen(constructor)]
    pub fn new(name: String, text: String) -> Scenario {
        Scenario { name, text, files: Files::default(), loaded: None }
    }

    /// Adds a file that the scenario names, such as a map or a trace.
    #[wasm_bindgen(js_name = addFile)]
    pub fn add_file(&mut self, name: String, content: Vec<u8>) {
        self.files.insert(name, content);
    }

    /// Reads the scenario with the `--set` arguments `sets`. Returns its points; see
    /// [`Loaded::describe`].
    ///
    /// # Errors
    /// All errors of the scenario, with line and key, as text for people.
    pub fn read(&mut self, sets: Vec<String>) -> Result<String, String> {
        let loaded = Loaded::read(&self.name, &self.text, sets, &self.files)?;
        let described = loaded.describe().to_string();
        self.loaded = Some(loaded);
        Ok(described)
    }

    /// Starts the run of a point with a seed (a whole number).
    ///
    /// # Errors
    /// If the point does not exist, if the mesh is too large to be drawn, or if no placement is
    /// found for this seed.
    pub fn play(&self, point: usize, seed: f64) -> Result<Player, String> {
        let loaded = self.loaded.as_ref().ok_or("read the scenario first")?;
        Ok(Player { playback: loaded.play(point, seed as u64)? })
    }
}

/// A run that can be stepped through.
#[wasm_bindgen]
pub struct Player {
    playback: Playback,
}

#[wasm_bindgen]
impl Player {
    /// The constant part of the picture (nodes, links, flows), as JSON; see [`report::stage`].
    pub fn stage(&self) -> String {
        report::stage(&self.playback).to_string()
    }

    /// Present time of the run, seconds.
    pub fn now(&self) -> f64 {
        self.playback.now().as_secs_f64()
    }

    /// True if the run is at its end.
    #[wasm_bindgen(js_name = isOver)]
    pub fn is_over(&self) -> bool {
        self.playback.is_over()
    }

    /// Number of frames that were sent so far.
    pub fn frames(&self) -> f64 {
        self.playback.frames() as f64
    }

    /// Runs until `seconds`, or until the end. If `watched` is true, every event is kept for
    /// [`Player::events`].
    pub fn advance(&mut self, seconds: f64, watched: bool) {
        self.playback.watch(watched);
        self.playback.advance(time(seconds));
    }

    /// Runs until the next frame is sent, or until the end.
    pub fn step(&mut self) {
        self.playback.watch(true);
        self.playback.step();
    }

    /// Goes back to the time at which the previous frame was sent.
    #[wasm_bindgen(js_name = stepBack)]
    pub fn step_back(&mut self) {
        self.playback.step_back();
    }

    /// Restores the latest saved state that is not later than `seconds`. It does so only if the
    /// present is later than `seconds` or earlier than that state. [`Player::advance`] then runs
    /// the rest.
    pub fn approach(&mut self, seconds: f64) {
        self.playback.approach(time(seconds));
    }

    /// Takes the events since the last call. Each has [`watch::Event::FIELDS`] values in the layout
    /// of [`watch::Event::write`].
    pub fn events(&mut self) -> Vec<f64> {
        self.playback.take_events()
    }

    /// State of every node at the present time, [`report::NODE_FIELDS`] values each; see
    /// [`report::nodes`].
    pub fn nodes(&mut self) -> Vec<f64> {
        report::nodes(&mut self.playback)
    }

    /// Present path of each flow according to routing, as a list of nodes; -1 follows each path.
    pub fn routes(&self) -> Vec<i32> {
        report::routes(&self.playback)
    }

    /// Measurements until now, as JSON with the names of records; see [`report::record`].
    pub fn record(&self) -> String {
        report::record(&self.playback).to_string()
    }

    /// Samples for plots from number `from` on, up to the latest time that was ever reached; see
    /// [`history::History::samples`].
    pub fn samples(&self, from: usize) -> Vec<f64> {
        self.playback.history().samples(from)
    }

    /// Queue of a node, or of all nodes together, at each sample from number `from` on; see
    /// [`history::History::queues`].
    pub fn queues(&self, node: i32, from: usize) -> Vec<f64> {
        self.playback.history().queues(node, from)
    }

    /// Time-sequence graph of a flow between two times, seconds; see
    /// [`history::History::sequence`].
    pub fn sequence(&self, flow: usize, from: f64, to: f64) -> Vec<f64> {
        self.playback.history().sequence(flow, time(from), time(to))
    }

    /// Air time by link until now; see [`air::AirTime::write`].
    #[wasm_bindgen(js_name = airTime)]
    pub fn air_time(&mut self) -> Vec<f64> {
        self.playback.world().engine_mut().probe().air.write()
    }

    /// Marks up to the latest time that was ever reached, three values each; see
    /// [`history::History::marks`].
    pub fn marks(&self) -> Vec<f64> {
        self.playback.history().marks()
    }

    /// Hash of every transmission and delivery until now, in hexadecimal, in the form of records.
    pub fn fingerprint(&self) -> String {
        format!("{:016x}", self.playback.fingerprint())
    }
}

/// Converts a time from JavaScript. A value that is not a valid time becomes zero.
fn time(seconds: f64) -> Time {
    Time((seconds.max(0.0) * 1e9).round() as u64)
}
