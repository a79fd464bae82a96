//! The simulator for a browser: it reads a scenario, runs it in steps of any length, shows its state, and goes back to an earlier time.
//!
//! JavaScript sees [`Scenario`] and [`Player`]; their work is done in modules that also run outside of a browser. Times are seconds, lists of numbers
//! are flat arrays whose layout stands beside the function that returns them, and everything else is JSON.
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

/// The revision of the model, which a page compares with that of a record.
#[wasm_bindgen(js_name = modelRevision)]
pub fn model_revision() -> u32 {
    meshpace_sim::MODEL_REVISION
}

/// Sends panics to the browser's console. To be called once, before everything else.
#[wasm_bindgen(js_name = tellPanics)]
pub fn tell_panics() {
    console_error_panic_hook::set_once();
}

/// The names of all transports, as a list in JSON.
#[wasm_bindgen]
pub fn transports() -> String {
    let names: Vec<&str> = meshpace_transport::names::table().iter().map(|entry| entry.name).collect();
    serde_json::Value::from(names).to_string()
}

/// A scenario being put together, and then read.
#[wasm_bindgen]
pub struct Scenario {
    name: String,
    text: String,
    files: Files,
    loaded: Option<Loaded>,
}

#[wasm_bindgen]
impl Scenario {
    /// The scenario in `text`, a TOML file called `name`.
    #[wasm_bindgen(constructor)]
    pub fn new(name: String, text: String) -> Scenario {
        Scenario { name, text, files: Files::default(), loaded: None }
    }

    /// Adds a file that the scenario names: a map, a trace.
    #[wasm_bindgen(js_name = addFile)]
    pub fn add_file(&mut self, name: String, content: Vec<u8>) {
        self.files.insert(name, content);
    }

    /// Reads it as `--set` arguments change it. Returns its points, as [`Loaded::describe`] has them.
    ///
    /// # Errors
    /// Everything that is wrong with it, with line and key, for people.
    pub fn read(&mut self, sets: Vec<String>) -> Result<String, String> {
        let loaded = Loaded::read(&self.name, &self.text, sets, &self.files)?;
        let described = loaded.describe().to_string();
        self.loaded = Some(loaded);
        Ok(described)
    }

    /// Begins the run of a point with a seed (a whole number).
    ///
    /// # Errors
    /// A point that is not there, a mesh too large to be drawn, or places that cannot be drawn for this seed.
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
    /// The fixed part of the picture (nodes, links, flows), as JSON: [`report::stage`].
    pub fn stage(&self) -> String {
        report::stage(&self.playback).to_string()
    }

    /// The time, seconds.
    pub fn now(&self) -> f64 {
        self.playback.now().as_secs_f64()
    }

    /// Whether the run is at its end.
    #[wasm_bindgen(js_name = isOver)]
    pub fn is_over(&self) -> bool {
        self.playback.is_over()
    }

    /// Frames put on the air so far.
    pub fn frames(&self) -> f64 {
        self.playback.frames() as f64
    }

    /// Runs until `seconds`, or the end. With `watched` every event is kept for [`Player::events`].
    pub fn advance(&mut self, seconds: f64, watched: bool) {
        self.playback.watch(watched);
        self.playback.advance(time(seconds));
    }

    /// Runs until the next frame leaves its sender, or the end.
    pub fn step(&mut self) {
        self.playback.watch(true);
        self.playback.step();
    }

    /// Goes back to when the frame before left its sender.
    #[wasm_bindgen(js_name = stepBack)]
    pub fn step_back(&mut self) {
        self.playback.step_back();
    }

    /// Restores the latest saved state that is not later than `seconds`, if the present is later than `seconds` or earlier than that
    /// state; then [`Player::advance`] runs the rest.
    pub fn approach(&mut self, seconds: f64) {
        self.playback.approach(time(seconds));
    }

    /// Takes the events since the last call: [`watch::Event::FIELDS`] numbers each, as [`watch::Event::write`] lays them out.
    pub fn events(&mut self) -> Vec<f64> {
        self.playback.take_events()
    }

    /// Every node as it is now, [`report::NODE_FIELDS`] numbers each: [`report::nodes`].
    pub fn nodes(&mut self) -> Vec<f64> {
        report::nodes(&mut self.playback)
    }

    /// The way of each flow as routing knows it now: its nodes, each flow closed by -1.
    pub fn routes(&self) -> Vec<i32> {
        report::routes(&self.playback)
    }

    /// What has been measured until now, as JSON with the names of records: [`report::record`].
    pub fn record(&self) -> String {
        report::record(&self.playback).to_string()
    }

    /// The samples for plots from number `from` on, of the whole time that was ever reached: [`history::History::samples`].
    pub fn samples(&self, from: usize) -> Vec<f64> {
        self.playback.history().samples(from)
    }

    /// The queue of a node, or of all together, at each sample from number `from` on: [`history::History::queues`].
    pub fn queues(&self, node: i32, from: usize) -> Vec<f64> {
        self.playback.history().queues(node, from)
    }

    /// The time-sequence graph of a flow between two times, seconds: [`history::History::sequence`].
    pub fn sequence(&self, flow: usize, from: f64, to: f64) -> Vec<f64> {
        self.playback.history().sequence(flow, time(from), time(to))
    }

    /// Air time by link until now: [`air::AirTime::write`].
    #[wasm_bindgen(js_name = airTime)]
    pub fn air_time(&mut self) -> Vec<f64> {
        self.playback.world().engine_mut().probe().air.write()
    }

    /// What stands out in the time that was ever reached, three numbers each: [`history::History::marks`].
    pub fn marks(&self) -> Vec<f64> {
        self.playback.history().marks()
    }

    /// The hash of every transmission and delivery until now, in hexadecimal, as records have it.
    pub fn fingerprint(&self) -> String {
        format!("{:016x}", self.playback.fingerprint())
    }
}

/// A time of JavaScript; what is no time is zero.
fn time(seconds: f64) -> Time {
    Time((seconds.max(0.0) * 1e9).round() as u64)
}
