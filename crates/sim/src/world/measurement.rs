//! Measurement of a run. The caller advances it to its end at once or in steps of any length; the
//! result is the same.

use super::loss::Arrivals;
use super::observe::{BatchRecorder, SeriesRecorder};
use super::routes::{Outage, SAMPLE};
use super::{FlowCounters, World};
use crate::config::Config;
use crate::outcome::{Outcome, jain};
use crate::packet::SimPacket;
use crate::probe::Probe;
use alloc::vec::Vec;
use meshpace_core::{Duration, Time};

/// Window of the short-term Jain index.
const JAIN_WINDOW: Duration = Duration::from_secs(2);

/// Measurement of one world, from time zero on.
#[derive(Clone)]
pub struct Measurement {
    begin: Time,
    end: Time,
    recorder: Option<SeriesRecorder>,
    /// Measurements of the measured interval; `None` before its start.
    measured: Option<Measured>,
    /// Time at which the run ended before `end`; `None` if it did not.
    ended: Option<Time>,
}

/// Measurements since the warm-up.
#[derive(Clone)]
struct Measured {
    baseline: Vec<FlowCounters>,
    batch_recorder: Option<BatchRecorder>,
    /// For each flow, the bytes delivered when the current window of Jain's index began.
    before: Vec<u64>,
    window_end: Time,
    jain_sum: f64,
    windows: u32,
    idle_windows: u32,
}

impl Measurement {
    /// Creates the measurement of a world of `config`, at time zero.
    pub fn new(config: &Config) -> Measurement {
        Measurement {
            begin: Time(config.warmup.0),
            end: Time(config.duration.0),
            recorder: SeriesRecorder::new(config.series, config.flows.len()),
            measured: None,
            ended: None,
        }
    }

    /// True if the measurement is complete: the run is at its end, or its last batch is complete.
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
            world.advance_series(until.min(self.begin), &mut self.recorder);
            if until < self.begin {
                return;
            }
        }
        let measured = self.measured.get_or_insert_with(|| Measured::new(world, self.begin));
        loop {
            // A window that the run does not complete does not count.
            let stop = measured.window_end.min(until);
            self.ended = world.advance_batches(stop, &mut self.recorder, &mut measured.batch_recorder);
            if self.ended.is_some() || measured.window_end > until {
                return;
            }
            measured.end_window(world);
        }
    }

    /// Outcome until the end or, during a run, until now. Before the measured interval it contains
    /// no rates.
    pub fn outcome<O: Probe<SimPacket>>(&self, world: &World<'_, O>) -> Outcome {
        let now = self.ended.unwrap_or(world.engine().now().min(self.end));
        let Some(measured) = &self.measured else {
            let baseline: Vec<FlowCounters> = world.flows.iter().map(|flow| flow.counters(now)).collect();
            return world.outcome(&baseline, now.max(self.begin), f64::NAN, 0);
        };
        let jain_2s = if measured.windows > 0 { measured.jain_sum / f64::from(measured.windows) } else { f64::NAN };
        let mut outcome = world.outcome(&measured.baseline, now, jain_2s, measured.idle_windows);
        outcome.series = self.recorder.as_ref().map(SeriesRecorder::series);
        outcome.batches =
            measured.batch_recorder.as_ref().map(|batch_recorder| batch_recorder.batches.clone()).unwrap_or_default();
        outcome
    }
}

impl Measured {
    /// Starts the measurements. `world` must be at the start of the measured interval.
    fn new<O: Probe<SimPacket>>(world: &mut World<'_, O>, begin: Time) -> Measured {
        let baseline: Vec<FlowCounters> = world.flows.iter().map(|flow| flow.counters(begin)).collect();
        world.arrivals = baseline.iter().map(|counted| Arrivals::starting_at(counted.sender.segments_sent)).collect();
        if world.engine.motion().is_some() {
            world.outages = alloc::vec![Outage::default(); world.flows.len()];
            world.next_sample = begin + SAMPLE;
        }
        Measured {
            batch_recorder: BatchRecorder::new(world.config.batches, begin, &baseline),
            before: baseline.iter().map(|counted| counted.delivered).collect(),
            baseline,
            window_end: begin + JAIN_WINDOW,
            jain_sum: 0.0,
            windows: 0,
            idle_windows: 0,
        }
    }

    /// Ends a window of Jain's index. `world` must be at the end of the window.
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
