//! Rate control by marks: the interval between two segments grows with each echoed mark and shrinks with every other ACK.
//!
//! DCC, section IV and algorithm 2, per ACK, intervals in seconds:
//!
//! ```text
//! ECN echo:   T_intv = beta T_intv                        beta = 1.05
//! otherwise:  T_intv = T_intv / (1 + alpha T_intv)        alpha = 0.1: the rate grows by 0.1 segments per second
//! T_lb <= T_intv <= T_ub = 2 average RTTs
//! T_lb = TX_d + DIFS + SIFS + T_ACK + backoff + TX_a + DIFS + SIFS + T_ACK + backoff
//! ```
//!
//! Readings: every ACK of the connection counts, duplicates too; the average RTT is that of RFC 6298's weight, 1/8 on the
//! new sample; in slow start the lower bound, "slightly larger" there, is twice T_lb, and so is the first interval; losses
//! leave the interval alone; if the bounds cross, the lower one holds. The paper's timer asks every T_intv whether the
//! window is open; here a segment that finds it closed may leave as soon as it opens, which loses no time.

use meshpace_core::parameter::{ParameterError, require};
use meshpace_core::{Duration, Rate};

/// Weight on the new sample of the average RTT (RFC 6298).
const RTT_WEIGHT: f64 = 0.125;

/// Parameters of the rate rule.
#[derive(Clone, PartialEq, Debug)]
pub struct DccConfig {
    /// alpha: segments per second by which the rate grows per unmarked ACK, 0 or more. Default 0.1 (DCC, section V).
    pub alpha: f64,
    /// beta: factor on the interval per marked ACK, 1 or more. Default 1.05 (DCC, section V).
    pub beta: f64,
    /// The upper bound in average RTTs, above 0. Default 2 (DCC, section IV).
    pub upper_rtts: f64,
    /// The lower bound in slow start, and the first interval, in units of T_lb, 1 or more. Default 2.
    pub slow_start_factor: f64,
    /// The air times that T_lb adds up.
    pub mac: MacTimes,
}

/// The times of a link layer's exchange (IEEE 802.11b, long preamble).
#[derive(Clone, PartialEq, Debug)]
pub struct MacTimes {
    /// Preamble and PLCP header. Default 192 us.
    pub preamble: Duration,
    /// SIFS. Default 10 us.
    pub sifs: Duration,
    /// DIFS. Default 50 us.
    pub difs: Duration,
    /// Mean backoff. Default 310 us, 15.5 slots of 20 us.
    pub backoff: Duration,
    /// Bytes of a data frame's header and check sequence. Default 28.
    pub header: u32,
    /// Rate of the MAC ACK. Default 1 Mbit/s.
    pub ack_rate: Rate,
}

/// Bytes of a MAC ACK.
const MAC_ACK_BYTES: f64 = 14.0;
/// Bytes of the IP and TCP headers.
const TCP_IP_BYTES: u32 = 40;

impl Default for DccConfig {
    fn default() -> DccConfig {
        DccConfig { alpha: 0.1, beta: 1.05, upper_rtts: 2.0, slow_start_factor: 2.0, mac: MacTimes::default() }
    }
}

impl Default for MacTimes {
    fn default() -> MacTimes {
        MacTimes {
            preamble: Duration::from_micros(192),
            sifs: Duration::from_micros(10),
            difs: Duration::from_micros(50),
            backoff: Duration::from_micros(310),
            header: 28,
            ack_rate: Rate::from_mbps(1),
        }
    }
}

impl DccConfig {
    /// Whether every parameter is in its range.
    ///
    /// # Errors
    ///
    /// Names the first parameter that is not, its value and its range.
    pub fn check(&self) -> Result<(), ParameterError> {
        let finite_from = |x: f64, least: f64| x.is_finite() && x >= least;
        require(finite_from(self.alpha, 0.0), "pacing.alpha", self.alpha, "0 or more segments per second")?;
        require(finite_from(self.beta, 1.0), "pacing.beta", self.beta, "1 or more")?;
        let upper = self.upper_rtts;
        require(upper > 0.0 && upper.is_finite(), "pacing.upper_rtts", upper, "above 0")?;
        require(
            finite_from(self.slow_start_factor, 1.0),
            "pacing.slow_start_factor",
            self.slow_start_factor,
            "1 or more",
        )?;
        require(self.mac.ack_rate.0 > 0, "pacing.ack_rate", self.mac.ack_rate, "a rate above zero")
    }

    /// T_lb in seconds for segments of `payload` bytes at channel rate `rate`.
    pub fn lower_bound(&self, payload: u32, rate: Rate) -> f64 {
        let mac = &self.mac;
        let preamble = mac.preamble.as_secs_f64();
        let frame = |bytes: u32| preamble + 8.0 * f64::from(bytes) / rate.as_bps_f64();
        let acknowledged = mac.difs.as_secs_f64()
            + mac.sifs.as_secs_f64()
            + mac.backoff.as_secs_f64()
            + preamble
            + 8.0 * MAC_ACK_BYTES / mac.ack_rate.as_bps_f64();
        let header = TCP_IP_BYTES.saturating_add(mac.header);
        frame(header.saturating_add(payload)) + frame(header) + 2.0 * acknowledged
    }

    /// The interval after an ACK, before its bounds.
    pub fn step(&self, interval: f64, marked: bool) -> f64 {
        if marked { self.beta * interval } else { interval / (1.0 + self.alpha * interval) }
    }
}

/// State of the rate rule.
#[derive(Clone, PartialEq, Debug)]
pub struct Dcc {
    config: DccConfig,
    /// Payload bytes of a segment.
    payload: u32,
    /// T_intv, seconds; none before the rate of the channel is known.
    interval: Option<f64>,
    /// Average RTT, seconds; none before the first sample.
    rtt: Option<f64>,
}

impl Dcc {
    /// Nothing known yet.
    pub fn new(config: &DccConfig, payload: u32) -> Dcc {
        Dcc { config: config.clone(), payload, interval: None, rtt: None }
    }

    /// Starts with `interval` seconds instead of a multiple of T_lb.
    pub fn start_with(&mut self, interval: f64) {
        self.interval = Some(interval);
    }

    /// Takes an RTT sample in seconds.
    pub fn on_sample(&mut self, rtt: f64) {
        self.rtt = Some(self.rtt.map_or(rtt, |old| old + RTT_WEIGHT * (rtt - old)));
    }

    /// The first segment is about to leave.
    pub fn on_path(&mut self, rate: Rate) {
        if self.interval.is_none() {
            self.interval = Some(self.config.slow_start_factor * self.config.lower_bound(self.payload, rate));
        }
    }

    /// An ACK arrived, with an echoed mark or not.
    pub fn on_ack(&mut self, marked: bool, slow_start: bool, rate: Rate) {
        self.on_path(rate);
        let lower = self.config.lower_bound(self.payload, rate);
        let lower = if slow_start { self.config.slow_start_factor * lower } else { lower };
        let upper = self.rtt.map_or(f64::INFINITY, |rtt| self.config.upper_rtts * rtt);
        self.interval = self.interval.map(|interval| self.config.step(interval, marked).min(upper).max(lower));
    }

    /// T_intv in seconds; none before the first ACK.
    pub fn interval_s(&self) -> Option<f64> {
        self.interval
    }

    /// T_intv.
    pub fn interval(&self) -> Duration {
        Duration::from_secs_f64(self.interval.unwrap_or(0.0))
    }
}
