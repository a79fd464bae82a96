//! Applications: when they connect, write and stop.
//!
//! An application is told when its timer fires and what has been delivered, works on its sending endpoint, and answers
//! when it wants to be woken. Sources: AP05 and AP10 (files and pauses), TPA (MP3), LLAP (speech). The papers do not say whether an HTTP-like flow
//! uses one connection for each file or one for all: here one for each file, with `persistent` one for all.

use crate::config::{Flow, TraceWrite, Traffic};
use alloc::vec::Vec;
use meshpace_core::rng::{Purpose, pareto};
use meshpace_core::{Duration, Rate, Rng, Time};
use meshpace_transport::Endpoint;

/// A file that was transferred.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Completion {
    /// Time at which its application began to connect or, on a connection that was there, to write.
    pub start: Time,
    /// Time at which its last byte reached the receiver's application.
    pub end: Time,
    /// Its size.
    pub bytes: u64,
}

/// The application of a flow.
#[derive(Clone, Debug)]
pub struct Application {
    traffic: Traffic,
    /// Bytes per write of the traffic kinds that write at a rate.
    segment: u32,
    begin: Time,
    stop: Time,
    started: bool,
    /// Writes so far, to place the next one without rounding errors adding up.
    ticks: u64,
    rng: Rng,
    /// The file under way.
    file: Option<File>,
    completions: Vec<Completion>,
    /// Bytes written to the present connection.
    served: u64,
    /// Bytes written to all of them; as many as there are for a transfer without an end.
    written: u64,
    /// Time for which files were under way, all but the present one.
    transferring: Duration,
}

#[derive(Clone, Copy, Debug)]
struct File {
    start: Time,
    bytes: u64,
    /// Bytes that the connection has delivered in all when the file is there.
    complete_at: u64,
}

impl Application {
    /// The application of `flow`, which has `number`; it acts first at `begin`.
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

    /// True if the action due at `now` wants a connection of its own instead of the one it had.
    pub fn wants_connection(&self, now: Time) -> bool {
        matches!(self.traffic, Traffic::Http { persistent: false, .. }) && self.started && now < self.stop
    }

    /// Does what is due; returns when to act again. `trace` is what a flow of that kind replays.
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

    fn write_at(&mut self, rate: Rate, jitter: Duration, now: Time, endpoint: &mut Endpoint) -> Time {
        endpoint.write(now, u64::from(self.segment));
        self.written += u64::from(self.segment);
        self.ticks += 1;
        let bits = u128::from(self.segment) * 8 * u128::from(self.ticks) * 1_000_000_000;
        let planned = self.begin + Duration((bits / u128::from(rate.0)) as u64);
        // Around the plan, not around the last write: the rate stays what it is.
        planned + Duration(self.rng.below(jitter.0))
    }

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

    /// Bytes written so far, to all connections; `u64::MAX` by a transfer without an end.
    #[inline]
    pub fn written(&self) -> u64 {
        self.written
    }

    /// True if files come one after another, with nothing to send between them.
    #[inline]
    pub fn is_files(&self) -> bool {
        matches!(self.traffic, Traffic::Http { .. })
    }

    /// True if a file is under way.
    pub fn is_transferring(&self) -> bool {
        self.file.is_some()
    }

    /// The present connection has delivered `delivered` bytes by now, or, with `ended`, will deliver no more. Returns
    /// when to act again, if that has changed.
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
            // The only connection there is.
            return Some(Time::NEVER);
        }
        let pause = Duration::from_secs_f64(self.rng.exponential(mean_pause.as_secs_f64()));
        Some(now.saturating_add(pause).min(self.stop).max(now))
    }

    /// The files that were transferred.
    pub fn completions(&self) -> &[Completion] {
        &self.completions
    }

    /// Time for which files have been under way by `now`.
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
            // The mapping of `Rng::exponential`, which draws its own u.
            let pause: f64 = -0.1 * libm::log1p(-u);
            assert!((pause - seconds).abs() < 5e-7, "u = {u}");
        }
    }
}
