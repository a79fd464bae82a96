//! Applications: the times at which they connect, write and stop.
//!
//! The world calls an application when its timer fires and when data was delivered. The application
//! acts on its sending endpoint and returns the time of its next timer. Sources: AP05 and AP10
//! (files and pauses), TPA (MP3), LLAP (speech). The papers do not state whether an HTTP-like flow
//! uses one connection for each file or one for all files. Here each file has its own connection;
//! with `persistent`, one connection serves all.

use crate::config::{Flow, TraceWrite, Traffic};
use alloc::vec::Vec;
use meshpace_core::rng::{Purpose, pareto};
use meshpace_core::{Duration, Rate, Rng, Time};
use meshpace_transport::Endpoint;

/// A file whose transfer is complete.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Completion {
    /// Time at which the application began to connect or, on an existing connection, to write.
    pub start: Time,
    /// Time at which the last byte reached the receiver's application.
    pub end: Time,
    /// Size of the file in bytes.
    pub bytes: u64,
}

/// Application of a flow.
#[derive(Clone, Debug)]
pub struct Application {
    traffic: Traffic,
    /// Bytes per write, for traffic that writes at a rate.
    segment: u32,
    begin: Time,
    stop: Time,
    started: bool,
    /// Number of writes so far. The next write is computed from it, so that rounding errors do not
    /// accumulate.
    ticks: u64,
    rng: Rng,
    /// File whose transfer is in progress.
    file: Option<File>,
    completions: Vec<Completion>,
    /// Bytes written to the current connection.
    served: u64,
    /// Bytes written to all connections; `u64::MAX` for an endless transfer.
    written: u64,
    /// Total time of the file transfers, except the current one.
    transferring: Duration,
}

#[derive(Clone, Copy, Debug)]
struct File {
    start: Time,
    bytes: u64,
    /// Total number of bytes that the connection has delivered when the file is complete.
    complete_at: u64,
}

impl Application {
    /// Creates the application of `flow`, which has `number`. Its first action is at `begin`.
    pub fn new(flow: &Flow, number: u64, begin: Time, seed: u64) -> Application {
        Application {
            traffic: flow.traffic,
            segment: flow.transport.segment(),
            begin,
            stop: flow.stop.unwrap_or(Time::NEVER),
            started: false,
            ticks: 0,
            rng: Rng::stream(seed, Purpose::Traffic, number),
            file: None,
            completions: Vec::new(),
            served: 0,
            written: 0,
            transferring: Duration::ZERO,
        }
    }

    /// True if the action due at `now` needs a new connection.
    pub fn wants_connection(&self, now: Time) -> bool {
        matches!(self.traffic, Traffic::Http { persistent: false, .. }) && self.started && now < self.stop
    }

    /// Executes the action that is due, and returns the time of the next one. `trace` is the trace
    /// of a flow that replays one.
    pub fn act(&mut self, now: Time, endpoint: &mut Endpoint, trace: &[TraceWrite]) -> Time {
        if now >= self.stop {
            endpoint.close(now);
            return Time::NEVER;
        }
        let fresh = !self.started || self.wants_connection(now);
        self.started = true;
        if fresh {
            endpoint.open(now);
        }
        let next = match self.traffic {
            Traffic::Ftp => {
                endpoint.write_endless(now);
                self.written = u64::MAX;
                self.stop
            }
            Traffic::Cbr { rate } => self.write_at(rate, Duration::ZERO, now, endpoint),
            Traffic::FixedRate { rate, jitter } => self.write_at(rate, jitter, now, endpoint),
            Traffic::Http { mean_size, shape, persistent, .. } => {
                let bytes = libm::ceil(pareto(mean_size, shape, self.rng.uniform())) as u64;
                self.served = if persistent { self.served + bytes } else { bytes };
                self.file = Some(File { start: now, bytes, complete_at: self.served });
                endpoint.write(now, bytes);
                self.written += bytes;
                if !persistent {
                    endpoint.close(now);
                }
                Time::NEVER
            }
            Traffic::Trace { .. } => self.replay(now, endpoint, trace),
        };
        next.min(self.stop)
    }

    /// Writes one segment. Returns the time of the next write at `rate`, with `jitter`.
    fn write_at(&mut self, rate: Rate, jitter: Duration, now: Time, endpoint: &mut Endpoint) -> Time {
        endpoint.write(now, u64::from(self.segment));
        self.written += u64::from(self.segment);
        self.ticks += 1;
        let bits = u128::from(self.segment) * 8 * u128::from(self.ticks) * 1_000_000_000;
        let planned = self.begin + Duration((bits / u128::from(rate.0)) as u64);
        // The time is relative to the plan and not to the last write, so that the rate stays exact.
        planned + Duration(self.rng.below(jitter.0))
    }

    /// Executes the writes of a trace that are due. Returns the time of the next one.
    fn replay(&mut self, now: Time, endpoint: &mut Endpoint, trace: &[TraceWrite]) -> Time {
        while let Some(write) = trace.get(self.ticks as usize) {
            let at = self.begin.saturating_add(write.after);
            if at > now {
                return at;
            }
            endpoint.write(now, write.bytes);
            self.written += write.bytes;
            self.ticks += 1;
        }
        endpoint.close(now);
        Time::NEVER
    }

    /// Bytes written so far to all connections; `u64::MAX` for an endless transfer.
    #[inline]
    pub fn written(&self) -> u64 {
        self.written
    }

    /// True if the traffic consists of files, with nothing to send between them.
    #[inline]
    pub fn is_files(&self) -> bool {
        matches!(self.traffic, Traffic::Http { .. })
    }

    /// True if a file transfer is in progress.
    pub fn is_transferring(&self) -> bool {
        self.file.is_some()
    }

    /// Notes that the current connection has delivered `delivered` bytes so far or, with `ended`,
    /// will deliver no more. Returns the time of the next action if it has changed.
    pub fn on_progress(&mut self, now: Time, delivered: u64, ended: bool) -> Option<Time> {
        let file = self.file?;
        let Traffic::Http { mean_pause, persistent, .. } = self.traffic else { return None };
        if delivered >= file.complete_at {
            self.completions.push(Completion { start: file.start, end: now, bytes: file.bytes });
        } else if !ended {
            return None;
        }
        self.file = None;
        self.transferring = self.transferring + now.since(file.start);
        if ended && persistent {
            // There is no other connection.
            return Some(Time::NEVER);
        }
        let pause = Duration::from_secs_f64(self.rng.exponential(mean_pause.as_secs_f64()));
        Some(now.saturating_add(pause).min(self.stop).max(now))
    }

    /// Completed file transfers.
    pub fn completions(&self) -> &[Completion] {
        &self.completions
    }

    /// Total time of the file transfers until `now`.
    pub fn transferring(&self, now: Time) -> Duration {
        self.transferring + self.file.map_or(Duration::ZERO, |file| now.since(file.start))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_of_systems_4() {
        let cases = [(0.1, 10_727.7), (0.5, 15_874.0), (0.9, 46_415.9), (0.99, 215_443.5)];
        for (u, bytes) in cases {
            assert!((pareto(30_000.0, 1.5, u) - bytes).abs() < 0.05, "u = {u}");
        }
        assert!((pareto(30_000.0, 1.5, 0.0) - 10_000.0).abs() < 1e-9, "the smallest file is the scale, 10 KB");
        for (u, seconds) in [(0.1, 0.010_536), (0.5, 0.069_315), (0.9, 0.230_259)] {
            // The mapping is that of `Rng::exponential`, which draws its own u.
            let pause: f64 = -0.1 * libm::log1p(-u);
            assert!((pause - seconds).abs() < 5e-7, "u = {u}");
        }
    }
}
