//! BBR congestion control: the pacing rate and the window.
//!
//! Source: draft-cardwell-iccrg-bbr-congestion-control-00, sections 4.1 to 4.3. Rates are in bytes
//! per second.
//!
//! Departure: Startup also ends after a round with many losses, as in version 02 of the draft,
//! section 4.3.1.3. Without this rule, an application that waits for credit of the peer may stay in
//! Startup for ever. Losses keep the peer's application waiting for data, and a round in which the
//! sender had nothing to send does not count in the decision whether the pipe is full. In the draft
//! a loss of 2 % is enough; here it has to exceed [`LOSSY`], since radio links lose some per cent
//! of what is sent.

use super::flight::News;
use meshpace_core::{Duration, Time};

/// 2/ln 2, the least gain that doubles the rate each round trip (section 4.3.2.1).
const STARTUP: f64 = 2.885;
/// Gains of the pacing rate, used one after the other for a round trip each (section 4.3.4.1).
const CYCLE: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
/// Gain of the window in [`Phase::ProbeRate`] (section 4.2.3).
const WINDOW: f64 = 2.0;
/// Number of rounds for which a measured rate counts (section 4.1.1.3, BtlBwFilterLen).
const ROUNDS: usize = 10;
/// Time for which a least RTT counts, and duration of a probe of the RTT (sections 4.1.2 and
/// 4.3.5).
const RTT_LIFE: Duration = Duration::from_secs(10);
const RTT_PROBE: Duration = Duration::from_millis(200);
/// Growth of the rate that shows that the pipe is not full, and number of rounds without it that
/// show that the pipe is full (section 4.3.2.2).
const GROWTH: f64 = 1.25;
const FLAT: u32 = 3;
/// Least number of lost segments in a round, and least ratio of them to the segments that arrived,
/// that show that the pipe is full.
const LOSSES: u32 = 6;
const LOSSY: f64 = 0.1;
/// First window (RFC 6928) and least window (section 4.2.3, BBRMinPipeCwnd), in segments.
const FIRST: u64 = 10;
const LEAST: u64 = 4;
/// RTT that the first pacing rate assumes before there is a sample, in seconds (section 4.2.1).
/// Values up to 2.8 ms give the same runs: the first window leaves within the millisecond by which a
/// sender may be late (`sender`), and the simulator paces nothing before the first ACK.
const UNKNOWN_RTT: f64 = 1e-3;
/// Ratio of the pacing rate to the estimated rate, below 1 so that no queue is left (as in Linux
/// since 2016).
const MARGIN: f64 = 0.99;
/// Largest allowance for data that are acknowledged in a bunch, as time at the estimated rate, in
/// seconds (as in Linux since 2019).
const BUNCH: f64 = 0.1;

/// State of the control.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// Doubles the rate each round trip.
    Startup,
    /// Drains the queue that Startup has built.
    Drain,
    /// Keeps the rate, and probes for a higher one from time to time.
    ProbeRate,
    /// Sends little, so that the least RTT can be measured.
    ProbeRtt,
}

/// The congestion control of one sender.
#[derive(Clone, PartialEq, Debug)]
pub struct Control {
    segment: u64,
    phase: Phase,
    /// Highest rate measured in each of the last rounds; `round` is the index of the current one.
    rates: [f64; ROUNDS],
    round: usize,
    /// The round ends when this many bytes are delivered: everything sent before the round began.
    round_ends: u64,
    min_rtt: Option<Duration>,
    min_rtt_at: Time,
    /// Rate from which growth is measured, and number of rounds in a row without growth.
    full: f64,
    flat: u32,
    is_full: bool,
    /// Segments lost and bytes arrived in the current round.
    lost: u32,
    arrived: u64,
    /// Index in the cycle of gains, and the time since which that gain is used.
    step: usize,
    step_since: Time,
    step_lost: bool,
    probe_until: Time,
    /// Least number of segments per round trip before the pipe is known to be full.
    least: u64,
    window: u64,
    /// Window before it was reduced after a silence; 0 if it was not.
    before: u64,
    /// Start of a bunch of reports, bytes reported since then, and the largest excess of such bytes
    /// over the rate, in the current and in the previous half of the rounds.
    bunch_since: Time,
    bunch: u64,
    bunches: [u64; 2],
    bunch_rounds: usize,
}

impl Control {
    pub fn new(segment: u32) -> Control {
        let segment = u64::from(segment);
        Control {
            segment,
            phase: Phase::Startup,
            rates: [0.0; ROUNDS],
            round: 0,
            round_ends: 0,
            min_rtt: None,
            min_rtt_at: Time::ZERO,
            full: 0.0,
            flat: 0,
            is_full: false,
            lost: 0,
            arrived: 0,
            step: 0,
            step_since: Time::ZERO,
            step_lost: false,
            probe_until: Time::NEVER,
            least: 1,
            window: FIRST * segment,
            before: 0,
            bunch_since: Time::ZERO,
            bunch: 0,
            bunches: [0; 2],
            bunch_rounds: 0,
        }
    }

    /// Variant for a connection that may begin with small messages; the simulator does not use it.
    /// Until the pipe is known to be full, the sender paces at least at the least window per round
    /// trip, and not at one segment per round trip.
    pub fn for_messages(self) -> Control {
        Control { least: LEAST, ..self }
    }

    /// Current phase.
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// Window: bytes that may be in flight.
    pub fn window(&self) -> u64 {
        match self.phase {
            Phase::ProbeRtt => self.window.min(self.least()),
            _ => self.window,
        }
    }

    /// Estimated rate of the path in bytes per second; 0 before it is known.
    pub fn rate(&self) -> f64 {
        self.rates.iter().fold(0.0, |most, rate| f64::max(most, *rate))
    }

    /// Least RTT of the last seconds.
    pub fn min_rtt(&self) -> Option<Duration> {
        self.min_rtt
    }

    /// Pacing rate in bytes per second.
    pub fn pacing_rate(&self) -> f64 {
        let gain = match self.phase {
            Phase::Startup => STARTUP,
            Phase::Drain => 1.0 / STARTUP,
            Phase::ProbeRate => CYCLE[self.step],
            Phase::ProbeRtt => 1.0,
        };
        let rate = self.rate();
        let rtt = self.min_rtt.map_or(UNKNOWN_RTT, Duration::as_secs_f64).max(1e-6);
        if rate > 0.0 {
            // Before the pipe is known to be full, the rate is at least this number of segments per
            // round trip. Small messages, or one that took long, say nothing about what the path
            // carries. Data sent at their rate might take for ever (section 4.2.1 does not go below
            // the first rate either).
            let least = if self.is_full { 0.0 } else { (self.least * self.segment) as f64 / rtt };
            return (gain * rate * MARGIN).max(least);
        }
        gain * (FIRST * self.segment) as f64 / rtt
    }

    fn least(&self) -> u64 {
        let half = (0.5 * self.product()) as u64;
        half.max(LEAST * self.segment)
    }

    /// Bytes that the path holds: the bandwidth-delay product.
    fn product(&self) -> f64 {
        self.rate() * self.min_rtt.unwrap_or_default().as_secs_f64()
    }

    /// Processes a report. After it, `under_way` bytes are in flight and `delivered` bytes have
    /// been delivered in total.
    pub fn on_report(&mut self, now: Time, news: &News, under_way: u64, delivered: u64) {
        self.step_lost |= news.lost > 0;
        self.lost += news.lost;
        self.arrived += news.bytes;
        if news.bytes == 0 {
            return;
        }
        let is_new_round = news.delivered_before >= self.round_ends;
        if is_new_round {
            self.round_ends = delivered;
            self.round = (self.round + 1) % ROUNDS;
            self.rates[self.round] = 0.0;
        }
        self.allow_for_bunches(now, news.bytes, is_new_round);
        if let Some(rate) = news.rate.filter(|rate| !news.limited || *rate >= self.rate()) {
            self.rates[self.round] = self.rates[self.round].max(rate);
        } else if is_new_round {
            // A sender that has little to send keeps the known rate.
            self.rates[self.round] = self.rate();
        }
        if is_new_round {
            self.watch_losses();
            if !news.limited {
                self.watch_growth();
            }
        }
        self.on_rtt(now, news.rtt, under_way);
        self.change_phase(now, under_way);
        self.set_window(news.bytes, delivered);
    }

    /// Decides at the end of a round whether its losses show that the pipe is full.
    fn watch_losses(&mut self) {
        let (lost, arrived) = (core::mem::take(&mut self.lost), core::mem::take(&mut self.arrived));
        self.is_full |= lost >= LOSSES && f64::from(lost) > LOSSY * (arrived as f64 / self.segment as f64);
    }

    /// Detects a full pipe: the rate has not grown for some rounds (section 4.3.2.2).
    fn watch_growth(&mut self) {
        if self.is_full {
            return;
        }
        if self.rate() >= GROWTH * self.full {
            (self.full, self.flat) = (self.rate(), 0);
        } else {
            self.flat += 1;
            self.is_full = self.flat >= FLAT;
        }
    }

    fn on_rtt(&mut self, now: Time, rtt: Option<Duration>, under_way: u64) {
        let is_old = now.since(self.min_rtt_at) > RTT_LIFE;
        if let Some(rtt) = rtt
            && (is_old || self.min_rtt.is_none_or(|least| rtt <= least))
        {
            (self.min_rtt, self.min_rtt_at) = (Some(rtt), now);
        }
        if is_old && self.phase != Phase::ProbeRtt && self.is_full {
            (self.phase, self.probe_until) = (Phase::ProbeRtt, Time::NEVER);
        }
        if self.phase != Phase::ProbeRtt {
            return;
        }
        if self.probe_until == Time::NEVER {
            if under_way <= self.least() {
                self.probe_until = now.saturating_add(RTT_PROBE.max(self.min_rtt.unwrap_or_default()));
            }
        } else if now >= self.probe_until {
            self.min_rtt_at = now;
            self.begin_cycle(now);
        }
    }

    fn begin_cycle(&mut self, now: Time) {
        // Any gain but the one that drains may be the first. A random choice would matter only
        // where several flows probe at the same time.
        (self.phase, self.step, self.step_since) = (Phase::ProbeRate, 2, now);
    }

    fn change_phase(&mut self, now: Time, under_way: u64) {
        let product = self.product();
        match self.phase {
            Phase::Startup if self.is_full => self.phase = Phase::Drain,
            Phase::Drain if under_way as f64 <= product => self.begin_cycle(now),
            Phase::ProbeRate => {
                let lasted = now.since(self.step_since) > self.min_rtt.unwrap_or_default();
                let goes_on = match CYCLE[self.step] {
                    gain if gain > 1.0 => lasted && (self.step_lost || under_way as f64 >= gain * product),
                    gain if gain < 1.0 => lasted || under_way as f64 <= product,
                    _ => lasted,
                };
                if goes_on {
                    (self.step, self.step_since, self.step_lost) = ((self.step + 1) % CYCLE.len(), now, false);
                }
            }
            _ => {}
        }
    }

    fn set_window(&mut self, bytes: u64, delivered: u64) {
        let gain = if self.phase == Phase::ProbeRate || self.phase == Phase::ProbeRtt { WINDOW } else { STARTUP };
        // As many segments as the peer gathers for a report, and as the host sends at once (section
        // 4.2.3.2).
        let quanta = 3 * 2 * self.segment;
        let target = (gain * self.product()) as u64 + quanta + self.bunches[0].max(self.bunches[1]);
        if self.before > 0 {
            self.window = self.window.max(self.before);
            self.before = 0;
        }
        if self.is_full {
            self.window = (self.window + bytes).min(target);
        } else if self.window < target || delivered < FIRST * self.segment {
            self.window += bytes;
        }
        self.window = self.window.max(LEAST * self.segment);
    }

    /// Measures reports that arrive in bunches. Between bunches nothing seems to be in flight, so
    /// that the window grows by the size of a bunch.
    fn allow_for_bunches(&mut self, now: Time, bytes: u64, is_new_round: bool) {
        if is_new_round {
            self.bunch_rounds += 1;
            if self.bunch_rounds >= ROUNDS / 2 {
                (self.bunch_rounds, self.bunches) = (0, [0, self.bunches[0]]);
            }
        }
        let rate = self.rate();
        let mut expected = rate * now.since(self.bunch_since).as_secs_f64();
        if self.bunch as f64 <= expected {
            (self.bunch_since, self.bunch, expected) = (now, 0, 0.0);
        }
        self.bunch += bytes;
        let beyond = (self.bunch as f64 - expected).clamp(0.0, BUNCH * rate) as u64;
        if self.is_full {
            self.bunches[0] = self.bunches[0].max(beyond.min(self.window));
        }
    }

    /// Nothing was heard for several timeouts: the path may have changed.
    pub fn on_silence(&mut self) {
        self.before = self.before.max(self.window);
        self.window = LEAST * self.segment;
    }
}
