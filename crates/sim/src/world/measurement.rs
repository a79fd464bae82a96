//! Measures a run. The caller advances it to its end at once or in steps of any length; the result is the same.

use super::loss::Arrivals;
use super::observe::{Cutter, Recorder};
use super::routes::{Absence, SAMPLE};
use super::{Counted, World};
use crate::config::Config;
use crate::outcome::{Outcome, jain};
use crate::packet::SimPacket;
use crate::probe::Probe;
use alloc::vec::Vec;
use meshpace_core::{Duration, Time};

/// The window of the short-term Jain index.
const JAIN_WINDOW: Duration = Duration::from_secs(2);

/// The measuring of one world, from time zero on.
#[derive(Clone)]
pub struct Measurement {
    begin: Time,
    end: Time,
    recorder: Option<Recorder>,
    /// From `begin` on.
    measured: Option<Measured>,
    /// Time at which it was over before `end`.
    ended: Option<Time>,
}

/// Measurements since the warm-up.
#[derive(Clone)]
struct Measured {
    baseline: Vec<Counted>,
    cutter: Option<Cutter>,
    /// Bytes that the flows had delivered when the present window of Jain's index began.
    before: Vec<u64>,
    window_end: Time,
    jain_sum: f64,
    windows: u32,
    idle_windows: u32,
}

impl Measurement {
    /// Nothing measured yet of a world of `config`.
    pub fn new(config: &Config) -> Measurement {
        Measurement {
            begin: Time(config.warmup.0),
            end: Time(config.duration.0),
            recorder: Recorder::new(config.series, config.flows.len()),
            measured: None,
            ended: None,
        }
    }

    /// True if there is nothing more to measure: the run is at its end, or its last batch is complete.
    pub fn is_over(&self, now: Time) -> bool {
        self.ended.is_some() || now >= self.end
    }

    /// Runs `world` until `until`, or to the end of the run if that is earlier.
    pub fn advance<O: Probe<SimPacket>>(&mut self, world: &mut World<'_, O>, until: Time) {
        let until = until.min(self.end);
        if self.ended.is_some() {
            return;
        }
        if self.measured.is_none() {
            world.advance_recording(until.min(self.begin), &mut self.recorder);
            if until < self.begin {
                return;
            }
        }
        let measured = self.measured.get_or_insert_with(|| Measured::new(world, self.begin));
        loop {
            // A window that the run does not complete does not count.
            let stop = measured.window_end.min(until);
            self.ended = world.advance_cutting(stop, &mut self.recorder, &mut measured.cutter);
            if self.ended.is_some() || measured.window_end > until {
                return;
            }
            measured.end_window(world);
        }
    }

    /// Outcome until the end or, of a run under way, until now. Before the measured interval it has no rates.
    pub fn outcome<O: Probe<SimPacket>>(&self, world: &World<'_, O>) -> Outcome {
        let now = self.ended.unwrap_or(world.engine().now().min(self.end));
        let Some(measured) = &self.measured else {
            let baseline: Vec<Counted> = world.flows.iter().map(|flow| flow.counted(now)).collect();
            return world.outcome(&baseline, now.max(self.begin), f64::NAN, 0);
        };
        let jain_2s = if measured.windows > 0 { measured.jain_sum / f64::from(measured.windows) } else { f64::NAN };
        let mut outcome = world.outcome(&measured.baseline, now, jain_2s, measured.idle_windows);
        outcome.series = self.recorder.as_ref().map(Recorder::series);
        outcome.batches = measured.cutter.as_ref().map(|cutter| cutter.batches.clone()).unwrap_or_default();
        outcome
    }
}

impl Measured {
    /// `world` is at the beginning of the measured interval.
    fn new<O: Probe<SimPacket>>(world: &mut World<'_, O>, begin: Time) -> Measured {
        let baseline: Vec<Counted> = world.flows.iter().map(|flow| flow.counted(begin)).collect();
        world.arrivals = baseline.iter().map(|counted| Arrivals::starting_at(counted.sender.segments_sent)).collect();
        if world.engine.motion().is_some() {
            world.absences = alloc::vec![Absence::default(); world.flows.len()];
            world.next_sample = begin + SAMPLE;
        }
        Measured {
            cutter: Cutter::new(world.config.batches, begin, &baseline),
            before: baseline.iter().map(|counted| counted.delivered).collect(),
            baseline,
            window_end: begin + JAIN_WINDOW,
            jain_sum: 0.0,
            windows: 0,
            idle_windows: 0,
        }
    }

    /// `world` is at the end of a window.
    fn end_window<O>(&mut self, world: &World<'_, O>) {
        let mut shares = Vec::with_capacity(world.flows.len());
        for (flow, before) in world.flows.iter().zip(&mut self.before) {
            let delivered = flow.delivered();
            shares.push((delivered - core::mem::replace(before, delivered)) as f64);
        }
        match jain(&shares) {
            Some(index) => {
                self.jain_sum += index;
                self.windows += 1;
            }
            None => self.idle_windows += 1,
        }
        self.window_end += JAIN_WINDOW;
    }
}
