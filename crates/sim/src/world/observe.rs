//! Measurements of parts of a run: windows of time from its start, and batches of delivered
//! packets.
//!
//! Batch means (A. M. Law, "Simulation Modeling and Analysis", section 9.5; AP05, section 5: 11
//! batches of 5,000 packets): a batch ends when the configured number of data segments, of all
//! flows together, have arrived for the first time. Departure: the number is tested every 0.1 s, so
//! that a batch has a few packets more than configured; its rates are divided by its actual length.

use super::flow::FlowCounters;
use crate::config::Batches;
use crate::outcome::{Batch, FlowWindow, Series, jain};
use alloc::vec::Vec;
use meshpace_core::{Duration, Time};
use meshpace_mesh::link::LinkState;

/// Time between two tests of the number of delivered packets.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);

impl FlowWindow {
    /// Measurements between two states of the counters.
    fn between(before: &FlowCounters, after: &FlowCounters, seconds: f64, hops: Option<u8>) -> FlowWindow {
        let mean = |sum: f64, sum_before: f64, n: u64, n_before: u64| (sum - sum_before) / (n - n_before) as f64;
        let (a, b) = (&after.sender, &before.sender);
        let delivered_bytes = after.delivered - before.delivered;
        FlowWindow {
            goodput_bps: delivered_bytes as f64 * 8.0 / seconds,
            delivered_bytes,
            rtt_mean_s: mean(a.rtt_sum_s, b.rtt_sum_s, a.rtt_samples, b.rtt_samples),
            cov_rtt: mean(a.cov_sum, b.cov_sum, a.cov_samples, b.cov_samples),
            interval_s: mean(a.interval_sum_s, b.interval_sum_s, a.interval_samples, b.interval_samples),
            segments_received: after.receiver.distinct_segments_received - before.receiver.distinct_segments_received,
            retransmissions: a.retransmissions - b.retransmissions,
            timeouts: a.timeouts - b.timeouts,
            transferring_s: (after.transferring - before.transferring).as_secs_f64(),
            hops,
        }
    }
}

/// Recorder of the time series.
#[derive(Clone)]
pub struct SeriesRecorder {
    window: Duration,
    before: Vec<FlowCounters>,
    windows: Vec<Vec<FlowWindow>>,
    links: Vec<Vec<Option<LinkState>>>,
}

impl SeriesRecorder {
    /// Creates a recorder of windows of length `window` from time zero; `None` without a length.
    pub fn new(window: Option<Duration>, flows: usize) -> Option<SeriesRecorder> {
        let before = alloc::vec![FlowCounters::default(); flows];
        window.map(|window| SeriesRecorder { window, before, windows: Vec::new(), links: Vec::new() })
    }

    /// End of the current window.
    pub fn next(&self) -> Time {
        Time::ZERO + self.window * (self.windows.len() as u64 + 1)
    }

    /// Ends the window, with the current counters and hops of each flow and the state of the links.
    pub fn take(&mut self, counted: Vec<(FlowCounters, Option<u8>)>, links: Vec<Option<LinkState>>) {
        self.links.push(links);
        let seconds = self.window.as_secs_f64();
        let window = |(before, (after, hops)): (&FlowCounters, &(FlowCounters, Option<u8>))| {
            FlowWindow::between(before, after, seconds, *hops)
        };
        self.windows.push(self.before.iter().zip(&counted).map(window).collect());
        self.before = counted.into_iter().map(|(counted, _)| counted).collect();
    }

    /// Complete windows.
    pub fn series(&self) -> Series {
        Series { window_s: self.window.as_secs_f64(), windows: self.windows.clone(), links: self.links.clone() }
    }
}

/// Recorder of the batches.
#[derive(Clone)]
pub struct BatchRecorder {
    rule: Batches,
    begin: Time,
    next: Time,
    before: Vec<FlowCounters>,
    /// Complete batches.
    pub batches: Vec<Batch>,
}

impl BatchRecorder {
    /// Starts the first batch at `begin`, when the flows' counters were `before`; `None` without
    /// batches.
    pub fn new(rule: Option<Batches>, begin: Time, before: &[FlowCounters]) -> Option<BatchRecorder> {
        rule.map(|rule| BatchRecorder {
            rule,
            begin,
            next: begin + CHECK_INTERVAL,
            before: before.to_vec(),
            batches: Vec::new(),
        })
    }

    /// Time of the next test.
    pub fn next(&self) -> Time {
        self.next
    }

    /// Tests the flows' counters at `now` and ends the batch if it is complete. Returns whether it
    /// was the last one.
    pub fn check(&mut self, now: Time, counted: &[(FlowCounters, Option<u8>)]) -> bool {
        self.next = now + CHECK_INTERVAL;
        let received = |counted: &FlowCounters| counted.receiver.distinct_segments_received;
        let packets: u64 =
            counted.iter().zip(&self.before).map(|((now, _), before)| received(now) - received(before)).sum();
        if packets < self.rule.packets {
            return false;
        }
        let seconds = now.since(self.begin).as_secs_f64();
        let window = |(before, (after, hops)): (&FlowCounters, &(FlowCounters, Option<u8>))| {
            FlowWindow::between(before, after, seconds, *hops)
        };
        let flows: Vec<FlowWindow> = self.before.iter().zip(counted).map(window).collect();
        let goodputs: Vec<f64> = flows.iter().map(|flow| flow.goodput_bps).collect();
        let retransmissions: u64 = flows.iter().map(|flow| flow.retransmissions).sum();
        self.batches.push(Batch {
            start_s: self.begin.as_secs_f64(),
            end_s: now.as_secs_f64(),
            aggregate_goodput_bps: goodputs.iter().sum(),
            jain: jain(&goodputs).unwrap_or(f64::NAN),
            retransmission_index: retransmissions as f64 / packets as f64,
            flows,
        });
        self.begin = now;
        self.before = counted.iter().map(|(counted, _)| *counted).collect();
        self.batches.len() as u64 == u64::from(self.rule.count)
    }
}
