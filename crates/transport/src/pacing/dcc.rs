//! Rate control by congestion marks: the interval between two segments grows with each ACK that
//! echoes a mark and shrinks with every other ACK.
//!
//! DCC, section IV and algorithm 2, per ACK, with intervals in seconds:
//!
//! ```text
//! ECN echo:   T_intv = beta T_intv                        beta = 1.05
//! otherwise:  T_intv = T_intv / (1 + alpha T_intv)        alpha = 0.1: the rate grows by 0.1 segments per second
//! T_lb <= T_intv <= T_ub = 2 average RTTs
//! T_lb = TX_d + DIFS + SIFS + T_ACK + backoff + TX_a + DIFS + SIFS + T_ACK + backoff
//! ```
//!
//! Readings of the paper: every ACK of the connection counts, including duplicates. The average RTT
//! uses the weight of RFC 6298, 1/8 on the new sample. In slow start the paper's lower bound is
//! "slightly larger"; here it is twice T_lb, and so is the first interval. Losses do not change the
//! interval. If the bounds cross, the lower one holds. The paper's timer checks every T_intv
//! whether the window is open. Here a segment that finds the window closed may leave as soon as it
//! opens, which loses no time.

use meshpace_core::{Duration, Rate, parameters};

/// Weight of the new sample in the average RTT (RFC 6298).
const RTT_WEIGHT: f64 = 0.125;

parameters! {
    /// Parameters of the rate rule.
    #[derive(Clone, PartialEq, Debug)]
    pub struct DccConfig {
        /// growth of the rate per unmarked ACK, in segments per second
        alpha: f64 = 0.1 => number(0.0, 1e6), Basic, "DCC, algorithm 2 and section V";
        /// factor on the interval per marked ACK
        beta: f64 = 1.05 => number(1.0, 1e6), Expert, "DCC, algorithm 2 and section V";
        /// upper bound of the interval, in average round trips
        upper_rtts: f64 = 2.0 => number(0.0, 1e6).above(0.0), Expert, "DCC, section 4";
        /// first interval, and its lower bound in slow start, as multiples of the lower bound
        slow_start_factor: f64 = 2.0 => number(1.0, 1e6), Expert, "DCC, section 4";
    }
    parts {
        /// The air times that T_lb adds up.
        mac: MacTimes = MacTimes::default();
    }
}

parameters! {
    /// The times of a link layer's exchange (IEEE 802.11b, long preamble).
    #[derive(Clone, PartialEq, Debug)]
    pub struct MacTimes {
        /// mean backoff of the MAC; by default 15.5 slots of 20 us
        backoff: Duration = Duration::from_micros(310) => TIME.from(0.0), Expert, "DCC, section 4";
        /// size of the header and check sequence of a data frame
        header as mac_header: u32 = 28 => whole("bytes", 0, 1000), Expert, "IEEE 802.11-1999, 7.2.2";
        /// rate of the MAC's ACK
        ack_rate: Rate = Rate::from_mbps(1) => RATE.above(0.0), Expert, "IEEE 802.11-1999, 9.6";
    }
    others {
        /// Preamble and PLCP header. Default 192 us.
        preamble: Duration = Duration::from_micros(192);
        /// SIFS. Default 10 us.
        sifs: Duration = Duration::from_micros(10);
        /// DIFS. Default 50 us.
        difs: Duration = Duration::from_micros(50);
    }
}

/// Bytes of a MAC ACK.
const MAC_ACK_BYTES: f64 = 14.0;
/// Bytes of the IP and TCP headers.
const TCP_IP_BYTES: u32 = 40;

impl DccConfig {
    /// T_lb in seconds for segments with `payload` bytes at the channel rate `rate`.
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

    /// The interval after an ACK, before its bounds are applied.
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
    /// T_intv in seconds; `None` before the channel rate is known.
    interval: Option<f64>,
    /// Average RTT in seconds; `None` before the first sample.
    rtt: Option<f64>,
}

impl Dcc {
    /// Creates the state for segments with `payload` bytes. The channel rate is not known yet.
    pub fn new(config: &DccConfig, payload: u32) -> Dcc {
        Dcc { config: config.clone(), payload, interval: None, rtt: None }
    }

    /// Sets the first interval to `interval` seconds instead of a multiple of T_lb.
    pub fn start_with(&mut self, interval: f64) {
        self.interval = Some(interval);
    }

    /// Takes an RTT sample in seconds.
    pub fn on_sample(&mut self, rtt: f64) {
        self.rtt = Some(self.rtt.map_or(rtt, |old| old + RTT_WEIGHT * (rtt - old)));
    }

    /// Sets the first interval from the channel rate, if there is no interval yet.
    pub fn on_path(&mut self, rate: Rate) {
        if self.interval.is_none() {
            self.interval = Some(self.config.slow_start_factor * self.config.lower_bound(self.payload, rate));
        }
    }

    /// An ACK arrived; `marked` is true if it echoes a congestion mark.
    pub fn on_ack(&mut self, marked: bool, slow_start: bool, rate: Rate) {
        self.on_path(rate);
        let lower = self.config.lower_bound(self.payload, rate);
        let lower = if slow_start { self.config.slow_start_factor * lower } else { lower };
        let upper = self.rtt.map_or(f64::INFINITY, |rtt| self.config.upper_rtts * rtt);
        self.interval = self.interval.map(|interval| self.config.step(interval, marked).min(upper).max(lower));
    }

    /// T_intv in seconds; `None` before the channel rate is known.
    pub fn interval_s(&self) -> Option<f64> {
        self.interval
    }

    /// T_intv; zero before the channel rate is known.
    pub fn interval(&self) -> Duration {
        Duration::from_secs_f64(self.interval.unwrap_or(0.0))
    }
}
