//! Rate control: at which MCS a station sends to which neighbour.
//!
//! A rule is a file here, a line of `rules!` below and its name in [`RateControl`]: a type that implements `RateRule`, one value for each neighbour. The MAC asks it for the rate of
//! each attempt with data and tells what became of the attempt; answers follow the rate of what they answer (IEEE Std 802.11-2016, 10.7.6.5),
//! and RTS, CTS and broadcasts stay at the basic rate. A station has the rules of the neighbours that it sends to in a list, which it searches from the front.

mod ideal;
mod listed;
mod minstrel;

use crate::radio::config::RateControl;
use crate::radio::ofdm::{Ofdm, OfdmRate};
use crate::radio::sinr::success;
use alloc::vec::Vec;
use meshpace_core::{Duration, NodeId, Rng, Time};

/// Makes of each line (a choice of [`RateControl`], and its rule) a rule of a neighbour.
macro_rules! rules {
    ($($name:ident $rule:ty;)*) => {
        /// State of rate control for a neighbour.
        #[derive(Clone, Debug)]
        #[expect(clippy::large_enum_variant, reason = "a mesh has one rule, and a station few neighbours")]
        enum Rule {
            $($name($rule),)*
        }

        impl Rule {
            fn new(set: &RateSet) -> Option<Rule> {
                match set.control {
                    RateControl::Fixed => None,
                    $(RateControl::$name => Some(Rule::$name(RateRule::new(set))),)*
                }
            }

            fn on_link_snr(&mut self, set: &RateSet, snr: f64) {
                match self {
                    $(Rule::$name(rule) => rule.on_link_snr(set, snr),)*
                }
            }

            fn on_link_mcs(&mut self, set: &RateSet, mcs: u8) {
                match self {
                    $(Rule::$name(rule) => rule.on_link_mcs(set, mcs),)*
                }
            }

            fn choose(&mut self, query: Query<'_>) -> Choice {
                match self {
                    $(Rule::$name(rule) => rule.choose(query),)*
                }
            }

            fn on_result(&mut self, mcs: u8, sent: u32, acknowledged: u32) {
                match self {
                    $(Rule::$name(rule) => rule.on_result(mcs, sent, acknowledged),)*
                }
            }
        }
    };
}

rules! {
    Ideal ideal::Ideal;
    Minstrel minstrel::Minstrel;
    Listed listed::Listed;
}

/// An attempt that is asked for.
struct Query<'a> {
    now: Time,
    set: &'a RateSet,
    /// Attempts in a row without an answer before it.
    failures: u32,
    rng: &'a mut Rng,
}

/// Choice for an attempt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Choice {
    /// The rate.
    pub mcs: u8,
    /// True if it only probes the rate: with one MPDU.
    pub probes: bool,
}

/// A rule.
trait RateRule {
    /// For a neighbour of which nothing is known.
    fn new(set: &RateSet) -> Self;
    /// The ratio of signal to noise with which the neighbour hears this station, a number.
    fn on_link_snr(&mut self, _set: &RateSet, _snr: f64) {}
    /// The MCS that the list of links has for the direction to the neighbour.
    fn on_link_mcs(&mut self, _set: &RateSet, _mcs: u8) {}
    /// The rate of the next attempt.
    fn choose(&mut self, query: Query<'_>) -> Choice;
    /// So many MPDUs went at a rate, and so many of them were acknowledged.
    fn on_result(&mut self, _mcs: u8, _sent: u32, _acknowledged: u32) {}
}

/// The rates of a mesh, the same for all its stations: MCS 0 to the one of `radio.rate`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RateSet {
    control: RateControl,
    ofdm: Ofdm,
    highest: u8,
    /// By MCS: payload bits per second of a station that is alone and loses nothing.
    speeds: [f64; 16],
    /// By MCS: bytes of the longest aggregate.
    most: [u32; 16],
}

/// Limits of aggregates.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Bytes.
    pub bytes: u32,
    /// MPDUs.
    pub mpdus: u32,
    /// Air time.
    pub longest: Duration,
    /// Bytes of an MPDU beside its packet.
    pub overhead: u32,
}

/// Bytes of the packets for which rates are compared.
const PACKET_BYTES: u32 = 1500;

impl RateSet {
    /// None if all links have one rate. `wait` tells for an MPDU of so many bytes how long, data and its answer not counted, an exchange takes, and
    /// the mean of its backoff in seconds.
    pub(super) fn new(
        control: RateControl,
        ofdm: Ofdm,
        limits: &Limits,
        wait: impl Fn(u32) -> (Duration, f64),
    ) -> Option<RateSet> {
        let OfdmRate::Ht { mcs: highest, .. } = ofdm.data else { return None };
        if control == RateControl::Fixed {
            return None;
        }
        let mpdu = PACKET_BYTES + limits.overhead;
        let subframe = 4 + mpdu.next_multiple_of(4);
        let (fixed, backoff) = wait(mpdu);
        let (mut speeds, mut most) = ([0.0; 16], [0; 16]);
        for mcs in 0..=highest.min(15) {
            let rate = ofdm.chosen(mcs);
            let bytes = limits.bytes.min(rate.bytes_within(limits.longest, ofdm.band));
            let mpdus = (bytes / subframe).min(limits.mpdus).max(1);
            let air = rate.air_time(if mpdus == 1 { mpdu } else { mpdus * subframe }, ofdm.band);
            let answer = rate.response().air_time(if mpdus == 1 { 14 } else { 32 }, ofdm.band);
            let time = (fixed + air + answer).as_secs_f64() + backoff;
            speeds[usize::from(mcs)] = f64::from(mpdus * PACKET_BYTES * 8) / time;
            most[usize::from(mcs)] = bytes;
        }
        Some(RateSet { control, ofdm, highest, speeds, most })
    }

    /// True if stations have to be told how well they are heard, or which rate the list of links has.
    pub fn wants_quality(&self) -> bool {
        matches!(self.control, RateControl::Ideal | RateControl::Listed)
    }

    /// Every MCS, ascending.
    fn all(&self) -> impl DoubleEndedIterator<Item = u8> + use<> {
        0..=self.highest
    }

    /// Payload bits per second at an MCS if nothing is lost.
    fn speed(&self, mcs: u8) -> f64 {
        self.speeds[usize::from(mcs & 15)]
    }

    /// Bytes of the longest aggregate at an MCS.
    pub(super) fn most(&self, mcs: u8) -> u32 {
        self.most[usize::from(mcs & 15)]
    }

    /// The probability that a packet arrives at an MCS and a ratio of signal to noise.
    fn delivery(&self, mcs: u8, snr: f64) -> f64 {
        let rate = self.ofdm.chosen(mcs);
        success(rate.model(), OfdmRate::NonHt(0).modulation(), rate.air_time(PACKET_BYTES + 38, self.ofdm.band), snr)
    }
}

/// State of rate control for one neighbour.
#[derive(Clone, Debug)]
struct Peer {
    node: NodeId,
    rule: Rule,
    failures: u32,
    /// Choice for the attempt that is prepared or under way.
    chosen: Option<Choice>,
}

/// The rates of one station.
#[derive(Clone, Debug, Default)]
pub struct Rates {
    peers: Vec<Peer>,
}

impl Rates {
    fn peer(&mut self, set: &RateSet, node: NodeId) -> Option<&mut Peer> {
        let place = match self.peers.iter().position(|peer| peer.node == node) {
            Some(place) => place,
            None => {
                self.peers.push(Peer { node, rule: Rule::new(set)?, failures: 0, chosen: None });
                self.peers.len() - 1
            }
        };
        self.peers.get_mut(place)
    }

    /// The neighbour hears this station with that ratio of signal to noise, a number.
    pub fn on_link_snr(&mut self, set: &RateSet, node: NodeId, snr: f64) {
        if let Some(peer) = self.peer(set, node) {
            peer.rule.on_link_snr(set, snr);
        }
    }

    /// The list of links has this MCS for the direction to the neighbour.
    pub fn on_link_mcs(&mut self, set: &RateSet, node: NodeId, mcs: u8) {
        if let Some(peer) = self.peer(set, node) {
            peer.rule.on_link_mcs(set, mcs);
        }
    }

    /// The rate of the next attempt; the same until its result is told.
    pub(super) fn choose(&mut self, now: Time, set: &RateSet, node: NodeId, rng: &mut Rng) -> Choice {
        let Some(peer) = self.peer(set, node) else { return Choice { mcs: 0, probes: false } };
        let query = Query { now, set, failures: peer.failures, rng };
        *peer.chosen.get_or_insert_with(|| peer.rule.choose(query))
    }

    /// The attempt is over. So many MPDUs were on the air, none if its RTS was lost, and so many were acknowledged.
    pub(super) fn on_result(&mut self, node: NodeId, sent: u32, acknowledged: u32) {
        let Some(peer) = self.peers.iter_mut().find(|peer| peer.node == node) else { return };
        let Some(Choice { mcs, .. }) = peer.chosen.take() else { return };
        if sent > 0 {
            peer.rule.on_result(mcs, sent, acknowledged);
        }
        peer.failures = if acknowledged > 0 { 0 } else { peer.failures + 1 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mac::Timing;
    use crate::mac::config::{HtConfig, MacConfig, MacProfile, RtsPolicy};
    use crate::radio::config::{Propagation, RadioConfig, Reception};
    use crate::radio::links::Links;
    use crate::radio::power::ratio;
    use crate::radio::{Band, Channel};
    use meshpace_core::rng::Purpose;

    fn radio(mcs: u8, rate_control: RateControl) -> RadioConfig {
        let ofdm = Ofdm { band: Band::Five, data: OfdmRate::mcs(mcs, false).unwrap(), basic: OfdmRate::NonHt(0) };
        let propagation = Propagation::Links(Links::default());
        let reception = Reception::Sinr;
        RadioConfig { ofdm: Some(ofdm), rate_control, propagation, reception, ..RadioConfig::default() }
    }

    fn timing(rate_control: RateControl, rts: RtsPolicy) -> Timing {
        let mac = MacConfig { profile: MacProfile::Ieee, rts, ht: Some(HtConfig::default()), ..MacConfig::default() };
        Timing::new(&mac, &radio(7, rate_control))
    }

    const PEER: NodeId = NodeId(3);

    #[test]
    fn ideal_has_the_best_goodput_by_arithmetic() {
        // 802.11n, one stream at 5 GHz: data bits per symbol of 4 us, and rate of answers in bits per symbol.
        const BITS: [(f64, f64); 8] =
            [(26., 24.), (52., 48.), (78., 48.), (104., 96.), (156., 96.), (208., 96.), (234., 96.), (260., 96.)];
        let symbols = |bytes: f64, bits: f64| 4.0 * libm::ceil((22.0 + 8.0 * bytes) / bits);
        let t = timing(RateControl::Ideal, RtsPolicy::Never);
        let set = t.rates.unwrap();
        let receivers: Vec<Channel> = (0..8).map(|mcs| Channel::new(&radio(mcs, RateControl::Fixed))).collect();
        let mut rates = Rates::default();
        let mut rng = Rng::stream(1, Purpose::Test, 0);
        let mut seen = Vec::new();
        for step in 0..640 {
            let snr = ratio(-2.0 + 0.04 * f64::from(step));
            // MPDUs of 1538 bytes, subframes of 1544, up to 64, 65,535 bytes and 5.484 ms.
            let goodput = |mcs: usize| {
                let (bits, answer) = BITS[mcs];
                let fits = |&n: &i32| {
                    n == 1
                        || f64::from(n) * 1544.0 <= 65_535.0 && 36.0 + symbols(f64::from(n) * 1544.0, bits) <= 5_484.0
                };
                let n = f64::from((1..=64).rev().find(fits).unwrap());
                let psdu = if n == 1.0 { 1538.0 } else { n * 1544.0 };
                let answer = 20.0 + symbols(if n == 1.0 { 14.0 } else { 32.0 }, answer);
                let time = 43.0 + 67.5 + 36.0 + symbols(psdu, bits) + 16.0 + answer;
                let air = OfdmRate::mcs(mcs as u8, false).unwrap().air_time(1538, Band::Five);
                n * 12_000.0 / time * receivers[mcs].sinr().success(air, snr)
            };
            rates.on_link_snr(&set, PEER, snr);
            let Choice { mcs, probes } = rates.choose(Time::ZERO, &set, PEER, &mut rng);
            rates.on_result(PEER, 1, 1);
            let best = (0..8).map(goodput).fold(0.0, f64::max);
            assert!(goodput(usize::from(mcs)) >= best * (1.0 - 1e-9) && !probes, "{snr}: MCS {mcs}");
            if seen.last() != Some(&mcs) && best > 0.0 {
                seen.push(mcs);
            }
        }
        // Every rate has its turn but 18 Mbit/s, if at all, and a faster one follows.
        assert!(seen.len() >= 7 && seen.is_sorted() && seen[0] == 0 && seen.last() == Some(&7), "{seen:?}");
    }

    #[test]
    fn listed_has_the_rate_of_the_link_or_the_highest() {
        let set = timing(RateControl::Listed, RtsPolicy::Never).rates.unwrap();
        let (mut rates, mut rng) = (Rates::default(), Rng::stream(1, Purpose::Test, 0));
        rates.on_link_mcs(&set, PEER, 2);
        rates.on_link_mcs(&set, NodeId(4), 12);
        // The third has no line.
        for (node, mcs) in [(PEER, 2), (NodeId(4), 7), (NodeId(5), 7)] {
            assert_eq!(rates.choose(Time::ZERO, &set, node, &mut rng), Choice { mcs, probes: false });
            rates.on_result(node, 8, 0);
            assert_eq!(rates.choose(Time::ZERO, &set, node, &mut rng).mcs, mcs, "losses change nothing");
        }
    }

    #[test]
    fn minstrel_goes_down_its_chain_and_looks_around_once_in_ten() {
        let t = timing(RateControl::Minstrel, RtsPolicy::Never);
        let set = t.rates.unwrap();
        let (mut rates, mut rng) = (Rates::default(), Rng::stream(1, Purpose::Test, 0));
        // MCS 0 to 4 always get through, 5 half of the times, 6 and 7 never.
        let arrives = [32, 32, 32, 32, 32, 16, 0, 0];
        let mut probes = 0;
        for attempt in 0..4_000 {
            let now = Time(attempt * 1_000_000);
            let choice = rates.choose(now, &set, PEER, &mut rng);
            assert_eq!(choice, rates.choose(now, &set, PEER, &mut rng), "the same until its result is known");
            let settled = attempt > 2_000;
            if choice.probes {
                probes += u32::from(settled);
            } else if settled {
                // 5 carries less than 4 with half of its MPDUs lost.
                assert!(choice.mcs == 4, "{choice:?}");
            }
            rates.on_result(PEER, 32, arrives[usize::from(choice.mcs)].max(1));
        }
        assert!((190..=201).contains(&probes), "{probes} of 2000");
        // Failures: twice 4, twice the second best, then the fastest of the reliable ones.
        let mut chain = Vec::new();
        while chain.len() < 6 {
            let Choice { mcs, probes } = rates.choose(Time(4_000_000_000), &set, PEER, &mut rng);
            if !probes {
                chain.push(mcs);
            }
            rates.on_result(PEER, if probes { 1 } else { 0 }, u32::from(probes));
        }
        assert_eq!(chain, [4, 4, 5, 5, 4, 4]);
    }
}
