//! A run that goes forward in steps of any length. Stored states allow it to go back to any earlier
//! time.

use crate::history::{History, Mark};
use crate::watch::{Event, Watch};
use meshpace_core::{Duration, Time};
use meshpace_scenario::Point;
use meshpace_sim::{Config, Measurement, Outcome, World};

/// Longest interval between two checks of a run for marks.
const LOOK: Duration = Duration::from_millis(10);
/// Initial interval between stored states.
const SPACING: Duration = Duration::from_millis(500);
/// Largest number of stored states. If there are more, every second one is removed.
const MOST_STATES: usize = 64;
/// Largest number of events that wait to be taken. A page cannot draw more at once.
const MOST_EVENTS: usize = 200_000;

/// A run at one time.
#[derive(Clone)]
struct State {
    world: World<'static, Watch>,
    measurement: Measurement,
}

impl State {
    fn now(&self) -> Time {
        self.world.engine().now()
    }
}

/// Run of one point with one seed.
pub struct Playback {
    config: &'static Config,
    transports: Vec<String>,
    names: Vec<Option<String>>,
    seed: u64,
    state: State,
    /// Stored states in the order of time. The first is that of time zero.
    kept: Vec<State>,
    spacing: Duration,
    history: History,
    events: Vec<(Time, Event)>,
}

impl Playback {
    /// Creates the run of a point, drawn for `seed`, at time zero.
    pub fn new(point: &Point, seed: u64) -> Playback {
        let Point { transports, names, .. } = point.clone();
        let config = point.config.clone();
        // A world borrows its scenario, and states of the world are created and removed. The
        // scenario is therefore leaked. A page starts some dozens of runs, and their scenarios are
        // small.
        let config: &'static Config = Box::leak(Box::new(config));
        let world = World::new(config, seed, Watch::new(config.positions.len()));
        let state = State { world, measurement: Measurement::new(config) };
        Playback {
            config,
            transports,
            names,
            seed,
            kept: vec![state.clone()],
            state,
            spacing: SPACING,
            history: History::new(config),
            events: Vec::new(),
        }
    }

    /// Scenario, as drawn for the seed.
    pub fn config(&self) -> &Config {
        self.config
    }

    /// Name of each flow's transport in records.
    pub fn transports(&self) -> &[String] {
        &self.transports
    }

    /// Name of each flow, if the scenario gives it one.
    pub fn names(&self) -> &[Option<String>] {
        &self.names
    }

    /// Seed of the run.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Present time of the run.
    pub fn now(&self) -> Time {
        self.state.now()
    }

    /// Time at which the run ends.
    pub fn end(&self) -> Time {
        Time(self.config.duration.0)
    }

    /// True if the run is over.
    pub fn is_over(&self) -> bool {
        self.state.measurement.is_over(self.now())
    }

    /// Number of frames that were sent so far.
    pub fn frames(&self) -> u64 {
        self.state.world.engine().frames()
    }

    /// Hash of every transmission and delivery so far.
    pub fn fingerprint(&self) -> u64 {
        self.state.world.engine().fingerprint()
    }

    /// Measurements so far.
    pub fn outcome(&self) -> Outcome {
        self.state.measurement.outcome(&self.state.world)
    }

    /// Present state of the world, for modification.
    pub fn world(&mut self) -> &mut World<'static, Watch> {
        &mut self.state.world
    }

    /// Present state of the world.
    pub fn world_now(&self) -> &World<'static, Watch> {
        &self.state.world
    }

    /// Samples and marks of the run.
    pub fn history(&self) -> &History {
        &self.history
    }

    /// Sets whether events are kept for [`Playback::take_events`] from now on.
    pub fn watch(&mut self, yes: bool) {
        self.state.world.engine_mut().probe().keeps_frames = yes;
    }

    /// Takes the events since the last call, in the layout of [`Event::write`].
    pub fn take_events(&mut self) -> Vec<f64> {
        let mut numbers = Vec::with_capacity(self.events.len() * Event::FIELDS);
        self.events.drain(..).for_each(|(at, event)| event.write(at, &mut numbers));
        numbers
    }

    /// Runs until `until`, or until the end.
    pub fn advance(&mut self, until: Time) {
        let until = until.min(self.end());
        while self.now() < until && !self.is_over() {
            let now = self.now();
            let look = Time((now.0 / LOOK.0 + 1) * LOOK.0);
            // Samples are only due after the end of the known history. A state is stored only where
            // there is none yet.
            let sample = if now >= self.history.known() { self.history.next() } else { Time::NEVER };
            let state = self.next_state();
            self.run(until.min(look).min(sample).min(if state > now { state } else { Time::NEVER }));
            if self.now() >= state {
                self.keep();
            }
        }
    }

    /// Runs until the next frame is sent, or until the end.
    pub fn step(&mut self) {
        let frames = self.frames();
        while self.frames() == frames && !self.is_over() {
            let next = self.state.world.engine().next_event();
            self.advance(next);
        }
    }

    /// Goes back to the time at which the previous frame was sent; to time zero if there was none.
    pub fn step_back(&mut self) {
        let before = Time(self.now().0.saturating_sub(1));
        self.approach(before);
        self.watch(false);
        self.advance(before);
        let last = self.state.world.engine_mut().probe().last_frame;
        let target = last.unwrap_or(Time::ZERO);
        self.approach(Time(target.0.saturating_sub(1)));
        self.advance(Time(target.0.saturating_sub(1)));
        self.watch(true);
        self.events.clear();
        self.advance(target);
    }

    /// Restores the latest stored state that is not later than `at`. It does so only if the present
    /// is later than `at` or earlier than that state.
    pub fn approach(&mut self, at: Time) {
        let place = self.kept.partition_point(|state| state.now() <= at).saturating_sub(1);
        let kept = &self.kept[place];
        if self.now() > at || self.now() < kept.now() {
            self.state = kept.clone();
            self.events.clear();
        }
    }

    /// Time at which the next state is stored.
    fn next_state(&self) -> Time {
        self.kept.last().map_or(Time::ZERO, |last| last.now() + self.spacing)
    }

    fn keep(&mut self) {
        self.kept.push(self.state.clone());
        if self.kept.len() > MOST_STATES {
            self.spacing = self.spacing * 2;
            let mut place = 0;
            self.kept.retain(|_| {
                place += 1;
                place % 2 == 1
            });
        }
    }

    /// Runs until `until`. No check, sample or state may be due earlier.
    fn run(&mut self, until: Time) {
        let State { world, measurement } = &mut self.state;
        measurement.advance(world, until);
        let probe = world.engine_mut().probe();
        let keeps = probe.keeps_frames;
        for (at, event) in probe.events.drain(..) {
            match event {
                Event::LinkFailed { node, .. } => self.history.mark(at, Mark::LinkFailure, node.0),
                Event::Route { node, found: false, .. } => self.history.mark(at, Mark::RouteLost, node.0),
                Event::Route { node, found: true, .. } => self.history.mark(at, Mark::RouteFound, node.0),
                _ => {}
            }
            if keeps && self.events.len() < MOST_EVENTS {
                self.events.push((at, event));
            }
        }
        for (at, passed) in probe.packets.drain(..) {
            self.history.packet(at, passed);
        }
        if self.state.now() > self.history.known() {
            self.history.reached(&self.state.world);
        }
    }
}
