//! A run that goes forward in steps of any length, and back to any earlier time by means of stored states.

use crate::history::{History, Mark};
use crate::watch::{Event, Watch};
use meshpace_core::{Duration, Time};
use meshpace_scenario::Point;
use meshpace_sim::{Config, Measurement, Outcome, World};

/// Interval at which a run is looked at for marks.
const LOOK: Duration = Duration::from_millis(10);
/// Interval between the kept states at first.
const SPACING: Duration = Duration::from_millis(500);
/// The most of them; then every other one is let go.
const MOST_STATES: usize = 64;
/// The most events that wait to be taken: what a page cannot draw at once anyway.
const MOST_EVENTS: usize = 200_000;

/// A run at a time.
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

/// The run of one point with one seed.
pub struct Playback {
    config: &'static Config,
    transports: Vec<String>,
    names: Vec<Option<String>>,
    seed: u64,
    state: State,
    /// In the order of time; the first is that of time zero.
    kept: Vec<State>,
    spacing: Duration,
    history: History,
    events: Vec<(Time, Event)>,
}

impl Playback {
    /// The run of a point, drawn for `seed`, at time zero.
    pub fn new(point: &Point, seed: u64) -> Playback {
        let Point { transports, names, .. } = point.clone();
        let config = point.config.clone();
        // A world borrows its scenario, and states of it come and go. A page begins some dozens of runs, whose scenarios are small.
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

    /// The scenario, as drawn for the seed.
    pub fn config(&self) -> &Config {
        self.config
    }

    /// The name of each flow's transport in records.
    pub fn transports(&self) -> &[String] {
        &self.transports
    }

    /// The name of each flow, if the scenario gives it one.
    pub fn names(&self) -> &[Option<String>] {
        &self.names
    }

    /// The seed.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// The time.
    pub fn now(&self) -> Time {
        self.state.now()
    }

    /// The time at which it ends.
    pub fn end(&self) -> Time {
        Time(self.config.duration.0)
    }

    /// True if the run is over.
    pub fn is_over(&self) -> bool {
        self.state.measurement.is_over(self.now())
    }

    /// Frames put on the air so far.
    pub fn frames(&self) -> u64 {
        self.state.world.engine().frames()
    }

    /// The hash of everything so far.
    pub fn fingerprint(&self) -> u64 {
        self.state.world.engine().fingerprint()
    }

    /// The measurements so far.
    pub fn outcome(&self) -> Outcome {
        self.state.measurement.outcome(&self.state.world)
    }

    /// The world as it is now.
    pub fn world(&mut self) -> &mut World<'static, Watch> {
        &mut self.state.world
    }

    /// The same, to look at.
    pub fn world_now(&self) -> &World<'static, Watch> {
        &self.state.world
    }

    /// Samples and marks.
    pub fn history(&self) -> &History {
        &self.history
    }

    /// Sets whether frames are kept for [`Playback::take_events`] from now on.
    pub fn watch(&mut self, yes: bool) {
        self.state.world.engine_mut().probe().keeps_frames = yes;
    }

    /// The events since the last call, in numbers.
    pub fn take_events(&mut self) -> Vec<f64> {
        let mut numbers = Vec::with_capacity(self.events.len() * Event::FIELDS);
        self.events.drain(..).for_each(|(at, event)| event.write(at, &mut numbers));
        numbers
    }

    /// Runs until `until`, or the end.
    pub fn advance(&mut self, until: Time) {
        let until = until.min(self.end());
        while self.now() < until && !self.is_over() {
            let now = self.now();
            let look = Time((now.0 / LOOK.0 + 1) * LOOK.0);
            // Samples are due at times that are not known yet, and states where there is none.
            let sample = if now >= self.history.known() { self.history.next() } else { Time::NEVER };
            let state = self.next_state();
            self.run(until.min(look).min(sample).min(if state > now { state } else { Time::NEVER }));
            if self.now() >= state {
                self.keep();
            }
        }
    }

    /// Runs until the next frame leaves its sender, or the end.
    pub fn step(&mut self) {
        let frames = self.frames();
        while self.frames() == frames && !self.is_over() {
            let next = self.state.world.engine().next_event();
            self.advance(next);
        }
    }

    /// Goes back to when the frame before left its sender; to time zero if there was none.
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

    /// Goes to the latest kept state that is not later than `at`, if the present is later than `at` or earlier than that state.
    pub fn approach(&mut self, at: Time) {
        let place = self.kept.partition_point(|state| state.now() <= at).saturating_sub(1);
        let kept = &self.kept[place];
        if self.now() > at || self.now() < kept.now() {
            self.state = kept.clone();
            self.events.clear();
        }
    }

    /// When the next state is to be kept.
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

    /// Runs until `until`, within which nothing has to be looked at.
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
