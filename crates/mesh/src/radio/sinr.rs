//! Which of several overlapping frames a receiver keeps: by signal to noise and interference, with bit errors.
//!
//! Sources: M. Lacage, T. Henderson, "Yet another network simulator", WNS2 2006 (chunks of constant interference, bit
//! errors of each); IEEE Std 802.11-1999, 15.4.8.4 (clear channel assessment by energy and by carrier); ns-3.44 as measured.
//! The rule:
//!
//! - A receiver that neither receives nor transmits locks onto a frame whose preamble it detects: at least `detect_w`, and
//!   `detect_ratio` above noise and interference for [`DETECTION`]. A frame that begins in that time and takes the ratio away
//!   ends the reception of the first, and is received itself if it has the ratio. Frames that begin later, however strong, are
//!   interference until the frame ends, and a frame whose preamble was missed is interference to its end.
//! - A frame is decoded with the probability that none of its bits is wrong. In each stretch of constant interference the
//!   bits have the error rate of their modulation ([`super::bit_errors`]) at P / (N + sum of the other powers); preamble
//!   and PLCP header count as bits at 1 Mbit/s, those of OFDM at 6 Mbit/s. The MPDUs of an aggregate are judged one by one.
//! - The medium is busy while a frame is received or all powers together reach `sense_w`.
//!
//! A node that begins to transmit gives up what it was receiving. Departures: during
//! detection the medium counts as busy (ns-3: only from its end, or by energy), noise is the same everywhere.

use super::bit_errors::Modulation;
use super::frame::{Arriving, FrameEnd, FrameRate, FrameStart, RateKind};
use super::ofdm::Ofdm;
use super::rate_model::RateModel;
use alloc::vec::Vec;
use meshpace_core::{Duration, Rng, Time};

/// Time for which a preamble must be above noise and interference before the receiver stays with its frame (ns-3.44:
/// `ThresholdPreambleDetectionModel`, evaluated 4 us after the start).
pub const DETECTION: Duration = Duration::from_micros(4);

/// Parameters of the rule.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SinrConfig {
    /// Noise over the channel, receiver included, W.
    pub noise_w: f64,
    /// Power of everything together from which the medium is busy (T_cs), W.
    pub sense_w: f64,
    /// Weakest frame whose preamble is detected, W.
    pub detect_w: f64,
    /// Least ratio of such a frame to noise and interference, a number.
    pub detect_ratio: f64,
    /// Modulations of frames, by their rate.
    pub rates: Rates,
    /// Modulation of preambles and headers.
    pub header: Modulation,
}

/// The rates of a mesh.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Rates {
    /// That of unicast data.
    pub data: RateModel,
    /// That of RTS, CTS and broadcasts.
    pub basic: RateModel,
    /// That of what acknowledges data.
    pub response: RateModel,
    /// Those of OFDM, where stations choose.
    pub ofdm: Option<Ofdm>,
}

impl Rates {
    fn of(&self, rate: FrameRate) -> RateModel {
        match (rate.kind(), &self.ofdm) {
            (RateKind::Basic, _) => self.basic,
            (RateKind::Response, _) => self.response,
            (RateKind::Chosen(_) | RateKind::Answering(_), Some(ofdm)) => ofdm.rate_of(rate).model(),
            (RateKind::Data | RateKind::Chosen(_) | RateKind::Answering(_), _) => self.data,
        }
    }
}

impl SinrConfig {
    /// The probability that a unicast data frame of `air_time` is decoded at the ratio `sinr` throughout.
    pub fn success(&self, air_time: Duration, sinr: f64) -> f64 {
        success(self.rates.data, self.header, air_time, sinr)
    }
}

/// The probability that a frame of a rate and `air_time`, with headers of the modulation `header`, is decoded at the ratio `sinr` throughout.
pub fn success(rate: RateModel, header: Modulation, air_time: Duration, sinr: f64) -> f64 {
    let RateModel { modulation, header: header_time } = rate;
    let payload = air_time.saturating_sub(header_time);
    let header = header.log_success(sinr, bits(header, header_time));
    libm::exp(header + modulation.log_success(sinr, bits(modulation, payload)))
}

/// The frame being received.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Held {
    id: u32,
    power: f64,
    /// Time at which its preamble is detected for good.
    detected: Time,
    /// Time at which its header and it itself end here.
    header_end: Time,
    end: Time,
    modulation: Modulation,
    /// The logarithm of the probability that no bit was wrong until `counted`.
    log_success: f64,
    counted: Time,
    /// Decoded if that probability exceeds this number in the end, uniform on [0, 1).
    luck: f64,
}

/// A receiver by that rule.
#[derive(Clone, Debug)]
pub struct Sinr {
    config: SinrConfig,
    rng: Rng,
    /// Frames arriving, and the sum of their powers, W.
    arriving: u32,
    total: f64,
    held: Option<Held>,
    /// Of the frame held, under OFDM: until when it had which ratio.
    stretches: Vec<(Time, f64)>,
}

impl Sinr {
    /// A receiver on a quiet medium. `rng` decides about bit errors.
    pub fn new(config: SinrConfig, rng: Rng) -> Sinr {
        Sinr { config, rng, arriving: 0, total: 0.0, held: None, stretches: Vec::new() }
    }

    /// True if the medium is busy.
    #[inline]
    pub fn busy(&self) -> bool {
        self.held.is_some() || self.total >= self.config.sense_w
    }

    /// Until when the preamble of the frame being received is being detected; [`Time::ZERO`] if there is none.
    pub fn detecting_until(&self) -> Time {
        self.held.map_or(Time::ZERO, |held| held.detected)
    }

    /// A frame begins to arrive.
    pub fn on_start(&mut self, now: Time, frame: Arriving, transmitting: bool) -> FrameStart {
        let was_busy = self.busy();
        self.count(now);
        self.arriving += 1;
        self.total += frame.power;
        if self.held.is_some_and(|held| now < held.detected && !self.is_above(held.power)) {
            self.held = None;
        }
        let detected = frame.power >= self.config.detect_w && self.is_above(frame.power);
        if self.held.is_none() && !transmitting && detected {
            let RateModel { modulation, header } = self.config.rates.of(frame.rate);
            self.stretches.clear();
            self.held = Some(Held {
                id: frame.id,
                power: frame.power,
                detected: now + DETECTION,
                header_end: now + header,
                end: frame.end,
                modulation,
                log_success: 0.0,
                counted: now,
                luck: self.rng.uniform(),
            });
            FrameStart::Locked
        } else {
            match (was_busy, self.busy()) {
                (false, true) => FrameStart::Sensed,
                (true, false) => FrameStart::Quiet,
                _ => FrameStart::Interference,
            }
        }
    }

    /// True if a frame of `power` W is as far above noise and all other powers as its preamble needs.
    fn is_above(&self, power: f64) -> bool {
        power >= self.config.detect_ratio * (self.config.noise_w + libm::fmax(self.total - power, 0.0))
    }

    /// This node begins to transmit.
    #[inline]
    pub fn on_own_transmission(&mut self) {
        self.held = None;
    }

    /// True if transmission `id`, which ends now, has been received without error.
    pub fn decodes(&self, now: Time, id: u32) -> bool {
        self.held.is_some_and(|held| held.id == id && self.after(held, now).is_lucky())
    }

    /// Transmission `id`, which arrived with `power` W, ends.
    pub fn on_end(&mut self, now: Time, id: u32, power: f64) -> Option<FrameEnd> {
        let was_busy = self.busy();
        self.count(now);
        self.arriving -= 1;
        // No rounding is left over once the medium is quiet.
        self.total = if self.arriving == 0 { 0.0 } else { libm::fmax(self.total - power, 0.0) };
        match self.held {
            Some(held) if held.id == id => {
                self.held = None;
                Some(match held.is_lucky() {
                    true => FrameEnd::Decoded,
                    false if self.would_pass(&held) => FrameEnd::Collided,
                    false => FrameEnd::Damaged,
                })
            }
            _ => (was_busy && !self.busy()).then_some(FrameEnd::Quiet),
        }
    }

    /// True if a frame would have been decoded if nothing but noise had been there.
    fn would_pass(&self, held: &Held) -> bool {
        let start = held.detected.since(Time::ZERO).saturating_sub(DETECTION);
        let header = bits(self.config.header, held.header_end.since(Time::ZERO).saturating_sub(start));
        let payload = bits(held.modulation, held.end.since(held.header_end));
        let snr = held.power / self.config.noise_w;
        let log_success = self.config.header.log_success(snr, header) + held.modulation.log_success(snr, payload);
        held.luck < libm::exp(log_success)
    }

    /// The ratio of the frame held to noise and interference as they are.
    fn ratio(&self, held: &Held) -> f64 {
        held.power / (self.config.noise_w + libm::fmax(self.total - held.power, 0.0))
    }

    /// True if there may be aggregates, whose MPDUs are judged one by one.
    fn keeps_stretches(&self) -> bool {
        matches!(self.config.header, Modulation::Coded(_))
    }

    /// Time at which the frame being received ends, if there is one.
    pub fn held_until(&self) -> Option<Time> {
        self.held.map(|held| held.end)
    }

    /// Transmission `id`, an aggregate of MPDUs of so many bytes one after the other, is about to end. Which of the MPDUs are
    /// received, a bit for each; None if it is not the frame held. Draws for each.
    pub fn receive_each(&mut self, now: Time, id: u32, mpdus: impl Iterator<Item = u32> + Clone) -> Option<u64> {
        let held = self.held.filter(|held| held.id == id)?;
        self.count(now);
        let bytes: u32 = mpdus.clone().sum();
        let (start, payload) = (held.header_end, held.end.since(held.header_end));
        let begin = Time(held.detected.0.saturating_sub(DETECTION.0));
        let header = self.log_success_between(begin, start, self.config.header);
        if self.rng.uniform() >= libm::exp(header) {
            return Some(0);
        }
        let (mut received, mut before) = (0, 0);
        for (place, length) in mpdus.enumerate() {
            let at = |part: u32| start + Duration(payload.0 * u64::from(part) / u64::from(bytes.max(1)));
            let success = self.log_success_between(at(before), at(before + length), held.modulation);
            received |= u64::from(self.rng.uniform() < libm::exp(success)) << place;
            before += length;
        }
        Some(received)
    }

    /// The logarithm of the probability that nothing of the frame held was wrong in a part of it that is over.
    fn log_success_between(&self, from: Time, to: Time, modulation: Modulation) -> f64 {
        let (mut sum, mut since) = (0.0, Time::ZERO);
        for &(until, ratio) in &self.stretches {
            let (first, last) = (since.max(from), until.min(to));
            if first < last {
                sum += modulation.log_success(ratio, bits(modulation, last.since(first)));
            }
            since = until;
        }
        sum
    }

    /// True if the preamble of a frame of `power` W is detected on a quiet medium.
    pub fn could_detect(&self, power: f64) -> bool {
        power >= self.config.detect_w && power >= self.config.detect_ratio * self.config.noise_w
    }

    /// Counts the errors until now, before the interference changes.
    fn count(&mut self, now: Time) {
        if let Some(held) = self.held {
            if self.keeps_stretches() {
                self.stretches.push((now.min(held.end), self.ratio(&held)));
            }
            self.held = Some(self.after(held, now));
        }
    }

    /// `held` with the errors until `now` counted, the interference being what it is.
    fn after(&self, mut held: Held, now: Time) -> Held {
        let now = now.min(held.end);
        let sinr = self.ratio(&held);
        let turn = held.header_end.clamp(held.counted, now.max(held.counted));
        let header = bits(self.config.header, turn.since(held.counted));
        let payload = bits(held.modulation, now.since(turn));
        held.log_success += self.config.header.log_success(sinr, header) + held.modulation.log_success(sinr, payload);
        held.counted = now.max(held.counted);
        held
    }
}

impl Held {
    fn is_lucky(&self) -> bool {
        self.luck < libm::exp(self.log_success)
    }
}

/// Bits of `modulation` in a stretch of time.
fn bits(modulation: Modulation, time: Duration) -> f64 {
    time.as_secs_f64() * modulation.bits_per_second()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::radio::power::{ratio, watts};
    use crate::radio::two_ray;
    use meshpace_core::rng::Purpose;

    /// The receiver of the reference measurements with ns-3: 2 Mbit/s, two-ray, noise of 7 dB above thermal.
    fn ns3() -> SinrConfig {
        SinrConfig {
            noise_w: watts(-93.6),
            sense_w: two_ray::SENSE_THRESHOLD_W,
            detect_w: two_ray::DECODE_THRESHOLD_W,
            detect_ratio: ratio(4.0),
            rates: Rates {
                data: long(Modulation::Dqpsk2),
                basic: long(Modulation::Dbpsk1),
                response: long(Modulation::Dbpsk1),
                ofdm: None,
            },
            header: Modulation::Dbpsk1,
        }
    }

    /// With the long preamble.
    fn long(modulation: Modulation) -> RateModel {
        RateModel { modulation, header: Duration::from_micros(192) }
    }

    fn at_11_mbps() -> SinrConfig {
        SinrConfig { rates: Rates { data: long(Modulation::Cck11), ..ns3().rates }, ..ns3() }
    }

    fn receiver(config: SinrConfig, seed: u64) -> Sinr {
        Sinr::new(config, Rng::stream(seed, Purpose::Radio, 0))
    }

    const LENGTH: Duration = Duration::from_micros(6328);

    fn frame(id: u32, power: f64, end: Time) -> Arriving {
        Arriving { id, power, decodable: true, rate: FrameRate::DATA, end }
    }

    #[test]
    fn what_interference_destroys_is_a_collision_and_what_noise_destroys_is_none() {
        let end = Time::ZERO + LENGTH;
        // A frame of two hundred metres under one of fifty, which lasts as long.
        let mut rx = receiver(ns3(), 1);
        rx.on_start(Time::ZERO, frame(1, two_ray::received_power(200.0), end), false);
        rx.on_start(Time::ZERO + Duration::from_micros(300), frame(2, two_ray::received_power(50.0), end), false);
        assert_eq!(rx.on_end(end, 1, two_ray::received_power(200.0)), Some(FrameEnd::Collided));
        // One as strong as the noise, at a receiver that detects it: half of the bits are guesses.
        let deaf = SinrConfig { sense_w: 0.0, detect_w: 0.0, detect_ratio: 0.0, ..ns3() };
        let mut rx = receiver(deaf, 1);
        rx.on_start(Time::ZERO, frame(1, deaf.noise_w, end), false);
        assert_eq!(rx.on_end(end, 1, deaf.noise_w), Some(FrameEnd::Damaged));
    }

    /// Number of 100 frames from `wanted` metres that survive a frame from `other` metres that overlaps all but the first or
    /// last 100 us of them.
    fn survivors(wanted: f64, other: f64, wanted_first: bool) -> usize {
        let (wanted, other) = (two_ray::received_power(wanted), two_ray::received_power(other));
        (0..100)
            .filter(|&seed| {
                let mut rx = receiver(ns3(), seed);
                let (early, late) = (Time::ZERO, Time::ZERO + Duration::from_micros(100));
                let (w, o) = if wanted_first { (early, late) } else { (late, early) };
                let mut starts = [(w, 1, wanted), (o, 2, other)];
                starts.sort_by_key(|start| start.0);
                for (at, id, power) in starts {
                    rx.on_start(at, frame(id, power, at + LENGTH), false);
                }
                let mut decoded = false;
                for (at, id, power) in starts {
                    let outcome = rx.on_end(at + LENGTH, id, power);
                    decoded |= id == 1 && outcome == Some(FrameEnd::Decoded);
                }
                assert!(!rx.busy());
                decoded
            })
            .count()
    }

    #[test]
    fn what_ns3_was_measured_to_capture() {
        // 100 of 100 frames pass where a hidden terminal is 360 m or 400 m away, at 12 dB and 8.2 dB.
        assert_eq!(survivors(200.0, 400.0, true), 100);
        assert_eq!(survivors(200.0, 360.0, true), 100);
        assert_eq!(survivors(249.0, 400.0, true), 100);
        // A frame from 400 m cannot be decoded and does not hold the receiver: the wanted one may also come later.
        assert_eq!(survivors(200.0, 400.0, false), 100);
        // Once locked, the receiver stays with a frame that can be decoded, however strong the later one is.
        assert_eq!(survivors(50.0, 240.0, false), 0);
        assert_eq!(survivors(240.0, 100.0, true), 0, "15 dB too weak");
    }

    #[test]
    fn frames_pass_as_often_as_the_error_rates_say() {
        // 11 Mbit/s at 7 dB of signal to noise, 1536 bytes: 1309 us, of which 192 us are header.
        let config = at_11_mbps();
        let air_time = Duration::from_micros(192) + Duration(1536 * 8 * 1_000_000 / 11_000);
        let power = config.noise_w * ratio(7.0);
        let config = SinrConfig { detect_w: 0.0, sense_w: power * 2.0, ..config };
        let mut rx = receiver(config, 1);
        let mut decoded = 0;
        let end = Time::ZERO + air_time;
        for id in 0..4000 {
            assert_eq!(rx.on_start(Time::ZERO, frame(id, power, end), false), FrameStart::Locked);
            let expected = rx.decodes(end, id);
            let outcome = rx.on_end(end, id, power);
            assert_eq!(outcome == Some(FrameEnd::Decoded), expected, "asked before and after");
            decoded += u32::from(expected);
        }
        // Q(sqrt(4 * 5.012)) = 3.77e-6 from a table; the terms at 6 and 8 S add 16 * 2.1e-8 and 174 * 1.2e-10: a bit error
        // rate of 4.55e-5, and (1 - 4.55e-5)^12288 = 0.572.
        let share = f64::from(decoded) / 4000.0;
        assert!((share - 0.572).abs() < 0.03, "{share}");
        assert!((config.success(air_time, ratio(7.0)) - 0.572).abs() < 0.003);
    }

    #[test]
    fn interference_counts_only_while_it_lasts() {
        // Half of a frame under an interferer that leaves 7 dB has the square root of the chance of the whole.
        let config = SinrConfig { noise_w: 1e-20, ..at_11_mbps() };
        let power = watts(-50.0);
        let (other, end) = (power / ratio(7.0), Time::ZERO + Duration::from_micros(1192));
        let chance = |from: u64, to: u64| {
            let mut rx = receiver(config, 1);
            rx.on_start(Time::ZERO, frame(1, power, end), false);
            rx.on_start(Time(from * 1000), frame(2, other, Time(to * 1000)), false);
            assert_eq!(rx.on_end(Time(to * 1000), 2, other), None);
            libm::exp(rx.after(rx.held.unwrap(), end).log_success)
        };
        let whole = chance(192, 1192);
        assert!((0.5..0.8).contains(&whole), "{whole}");
        assert!((chance(192, 692) - libm::sqrt(whole)).abs() < 1e-12);
        assert!((chance(400, 900) - libm::sqrt(whole)).abs() < 1e-12);
        // The header is safe at 7 dB.
        assert!((chance(0, 192) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn of_two_equal_frames_within_the_detection_time_neither_is_received() {
        // Either order of the same two frames gives the same: at 0 dB there is no preamble to be detected.
        let near = two_ray::received_power(200.0);
        for gap in [0, 1, 3_999] {
            let mut rx = receiver(ns3(), 1);
            let (first, second) = (Time(1_000), Time(1_000 + gap));
            assert_eq!(rx.on_start(first, frame(1, near, first + LENGTH), false), FrameStart::Locked);
            assert_eq!(rx.on_start(second, frame(2, near, second + LENGTH), false), FrameStart::Interference);
            assert!(rx.held.is_none() && rx.busy(), "there is energy on the medium");
            assert!(!rx.decodes(first + LENGTH, 1));
            assert_eq!(rx.on_end(first + LENGTH, 1, near), None);
            assert_eq!(rx.on_end(second + LENGTH, 2, near), Some(FrameEnd::Quiet));
        }
        let mut rx = receiver(ns3(), 1);
        rx.on_start(Time(0), frame(1, near, Time(0) + LENGTH), false);
        rx.on_start(Time(4_000), frame(2, near, Time(4_000) + LENGTH), false);
        assert_eq!(rx.held.map(|held| held.id), Some(1), "detected before the other began");
    }

    #[test]
    fn the_stronger_of_two_frames_within_the_detection_time_is_received_whichever_is_first() {
        let (strong, weak) = (two_ray::received_power(120.0), two_ray::received_power(240.0));
        for strong_first in [true, false] {
            let mut rx = receiver(ns3(), 1);
            let powers = if strong_first { [(1, strong), (2, weak)] } else { [(2, weak), (1, strong)] };
            for (id, power) in powers {
                rx.on_start(Time(7), frame(id, power, Time(7) + LENGTH), false);
            }
            assert_eq!(rx.held.map(|held| held.id), Some(1), "12 dB above the other");
        }
    }

    #[test]
    fn a_lost_preamble_leaves_a_quiet_medium_if_its_energy_is_not_sensed() {
        let config = SinrConfig { sense_w: watts(-60.0), detect_w: 0.0, ..ns3() };
        let power = watts(-80.0);
        let mut rx = receiver(config, 1);
        assert_eq!(rx.on_start(Time(1), frame(1, power, Time(9)), false), FrameStart::Locked);
        assert_eq!(rx.on_start(Time(1), frame(2, power, Time(9)), false), FrameStart::Quiet);
        assert!(!rx.busy());
        assert_eq!(rx.on_end(Time(9), 1, power), None);
        assert_eq!(rx.on_end(Time(9), 2, power), None);
    }

    #[test]
    fn energy_alone_makes_the_medium_busy_and_idle() {
        let mut rx = receiver(ns3(), 1);
        let far = two_ray::received_power(700.0);
        assert_eq!(rx.on_start(Time(1), frame(1, far, Time(9)), false), FrameStart::Interference);
        assert!(!rx.busy(), "700 m is not sensed");
        // A second and third one are, together: 1.56e-11 W are 2.6 times what comes from 700 m.
        assert_eq!(rx.on_start(Time(2), frame(2, far, Time(9)), false), FrameStart::Interference);
        assert_eq!(rx.on_start(Time(3), frame(3, far, Time(9)), false), FrameStart::Sensed);
        assert!(rx.busy());
        assert_eq!(rx.on_end(Time(9), 1, far), Some(FrameEnd::Quiet));
        assert_eq!(rx.on_end(Time(9), 2, far), None);
        assert_eq!(rx.on_end(Time(9), 3, far), None);
        assert_eq!(rx.total, 0.0);
    }

    #[test]
    fn a_transmission_gives_up_what_was_being_received() {
        let mut rx = receiver(ns3(), 1);
        let near = two_ray::received_power(200.0);
        assert_eq!(rx.on_start(Time(1), frame(1, near, Time(9)), false), FrameStart::Locked);
        rx.on_own_transmission();
        assert_eq!(rx.on_start(Time(2), frame(2, near, Time(8)), true), FrameStart::Interference);
        assert!(rx.busy(), "there is energy on the medium");
        assert_eq!(rx.on_end(Time(8), 2, near), None);
        assert_eq!(rx.on_end(Time(9), 1, near), Some(FrameEnd::Quiet));
    }
}
