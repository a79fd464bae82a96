//! BBR: how fast, and how much may be under way.
//!
//! draft-cardwell-iccrg-bbr-congestion-control-00, sections 4.1 to 4.3. Rates are in bytes per second.
//!
//! Departure: the start is also over after a round that lost much, as in version 02 of the draft, section 4.3.1.3. Without it an application
//! that waits for the peer's credit may stay in it for ever: losses keep the peer's reader waiting, and a round in which there was nothing to
//! send does not count for whether the pipe is full. There 2 % are enough; here it takes [`LOSSY`], since radio links lose some per cent of what is sent.

use super::flight::News;
use meshpace_core::{Duration, Time};

/// 2/ln 2, the least gain that doubles the rate each round trip (section 4.3.2.1).
const STARTUP: f64 = 2.885;
/// Gains of the pacing rate in turn, each for a round trip (section 4.3.4.1).
const CYCLE: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
/// Gain of the window where the rate is probed (section 4.2.3).
const WINDOW: f64 = 2.0;
/// Rounds that a rate counts for (section 4.1.1.3, BtlBwFilterLen).
const ROUNDS: usize = 10;
/// Time for which a least RTT counts, and time for which it is probed (section 4.1.2, 4.3.5).
const RTT_LIFE: Duration = Duration::from_secs(10);
const RTT_PROBE: Duration = Duration::from_millis(200);
/// Growth within a round that a pipe which is not full shows, and how many rounds without are enough (section 4.3.2.2).
const GROWTH: f64 = 1.25;
const FLAT: u32 = 3;
/// Segments lost in a round, and that as a part of what arrived in it, that show that the pipe is full.
const LOSSES: u32 = 6;
const LOSSY: f64 = 0.1;
/// Segments: of the first window (RFC 6928), and of the least (section 4.2.3, BBRMinPipeCwnd).
const FIRST: u64 = 10;
const LEAST: u64 = 4;
/// The RTT of the first rate, before there is a sample (section 4.2.1).
const UNKNOWN_RTT: f64 = 1e-3;
/// Share of the estimated rate at which the sender paces, below 1 so that no queue is left (as Linux has it since 2016).
const MARGIN: f64 = 0.99;
/// Largest allowance for data that are acknowledged in a bunch, as time at the estimated rate, seconds (as Linux has it since 2019).
const BUNCH: f64 = 0.1;

/// State of the control.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// Doubles the rate each round trip.
    Startup,
    /// Drains the queue of the start.
    Drain,
    /// Holds the rate, and tries for more now and then.
    ProbeRate,
    /// Sends little, so that the least RTT shows.
    ProbeRtt,
}

/// The control.
#[derive(Clone, PartialEq, Debug)]
pub struct Control {
    segment: u64,
    phase: Phase,
    /// The most that was measured in each of the last rounds; the place of this one.
    rates: [f64; ROUNDS],
    round: usize,
    /// The round ends when what is sent from now on is delivered.
    round_ends: u64,
    min_rtt: Option<Duration>,
    min_rtt_at: Time,
    /// The rate that growth is measured from, and rounds without.
    full: f64,
    flat: u32,
    is_full: bool,
    /// Segments lost and bytes that arrived in this round.
    lost: u32,
    arrived: u64,
    /// Place in the cycle, and since when.
    step: usize,
    step_since: Time,
    step_lost: bool,
    probe_until: Time,
    /// Segments per round trip at least before the pipe is known to be full.
    least: u64,
    window: u64,
    /// The window before it was cut.
    before: u64,
    /// Start of a bunch, bytes reported since then, and the most of them beyond the rate in this half of the rounds and in the one before.
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

    /// For a connection that may begin with small messages, which is none in the simulator: before the pipe is known to be full it paces by the least
    /// window per round trip, and not by a segment.
    pub fn for_messages(self) -> Control {
        Control { least: LEAST, ..self }
    }

    /// The state of the control.
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// Bytes that may be under way.
    pub fn window(&self) -> u64 {
        match self.phase {
            Phase::ProbeRtt => self.window.min(self.least()),
            _ => self.window,
        }
    }

    /// The rate of the path, bytes per second; 0 before it is known.
    pub fn rate(&self) -> f64 {
        self.rates.iter().fold(0.0, |most, rate| f64::max(most, *rate))
    }

    /// Least RTT of the last seconds.
    pub fn min_rtt(&self) -> Option<Duration> {
        self.min_rtt
    }

    /// The rate that segments leave at, bytes per second.
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
            // Before the pipe is known to be full, so many segments per round trip at least: small messages, or one that took long, say nothing of
            // what the path carries, and what is sent by their rate may take for ever (section 4.2.1 does not go below the first rate either).
            let least = if self.is_full { 0.0 } else { (self.least * self.segment) as f64 / rtt };
            return (gain * rate * MARGIN).max(least);
        }
        gain * (FIRST * self.segment) as f64 / rtt
    }

    fn least(&self) -> u64 {
        let half = (0.5 * self.product()) as u64;
        half.max(LEAST * self.segment)
    }

    /// Bytes that the path holds.
    fn product(&self) -> f64 {
        self.rate() * self.min_rtt.unwrap_or_default().as_secs_f64()
    }

    /// A report has come after which `under_way` bytes are, and `delivered` are there in all.
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
            // Who has little to send keeps what is known.
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

    /// A round is over: whether its losses show that the pipe is full.
    fn watch_losses(&mut self) {
        let (lost, arrived) = (core::mem::take(&mut self.lost), core::mem::take(&mut self.arrived));
        self.is_full |= lost >= LOSSES && f64::from(lost) > LOSSY * (arrived as f64 / self.segment as f64);
    }

    /// Notes whether the pipe is full: the rate has not grown for some rounds (section 4.3.2.2).
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
        // Any but the one that drains: which one matters where several flows would try at the same time.
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
        // As many as the peer gathers for a report, and the host sends at once (section 4.2.3.2).
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

    /// Reports that come in bunches seem to leave nothing under way in between: as much more may be.
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

    /// Nothing was heard for several timeouts: the path may be another.
    pub fn on_silence(&mut self) {
        self.before = self.before.max(self.window);
        self.window = LEAST * self.segment;
    }
}
