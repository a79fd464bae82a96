//! Rate control: the MCS with which a station sends to each neighbour.
//!
//! A rule is a file in this folder, a line of `rules!` below and a name in [`RateControl`]. It is a
//! type that implements `RateRule`, with one value for each neighbour. The MAC asks the rule for
//! the rate of each data attempt and reports the result of the attempt. The rate of a response
//! follows from the rate of the frame that it answers (IEEE Std 802.11-2016, 10.7.6.5); RTS, CTS
//! and broadcasts use the basic rate. A station keeps the states of its neighbours in a list, which
//! is searched from the front.

mod ideal;
mod listed;
mod minstrel;

use crate::radio::config::RateControl;
use crate::radio::ofdm::{Ofdm, OfdmRate};
use crate::radio::sinr::success;
use alloc::vec::Vec;
use meshpace_core::{Duration, NodeId, Rng, Time};

/// Generates the enum of rules. Each line has a choice of [`RateControl`] and the type of its rule.
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

/// Query for the rate of an attempt.
struct Query<'a> {
    now: Time,
    set: &'a RateSet,
    /// Number of consecutive attempts without an answer before this one.
    failures: u32,
    rng: &'a mut Rng,
}

/// Choice of a rule for an attempt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Choice {
    /// Number of the rate.
    pub mcs: u8,
    /// True if the attempt is a probe of the rate, with one MPDU.
    pub is_probe: bool,
}

/// Rule of rate control, for one neighbour.
trait RateRule {
    /// Creates the state for a neighbour without any measurements.
    fn new(set: &RateSet) -> Self;
    /// Sets the signal-to-noise ratio, as a plain number, with which the neighbour receives this
    /// station.
    fn on_link_snr(&mut self, _set: &RateSet, _snr: f64) {}
    /// Sets the MCS that the list of links contains for the direction to the neighbour.
    fn on_link_mcs(&mut self, _set: &RateSet, _mcs: u8) {}
    /// Chooses the rate of the next attempt.
    fn choose(&mut self, query: Query<'_>) -> Choice;
    /// Reports that `sent` MPDUs were transmitted at a rate and `acknowledged` of them were
    /// acknowledged.
    fn on_result(&mut self, _mcs: u8, _sent: u32, _acknowledged: u32) {}
}

/// Rates of a mesh, the same for all stations: MCS 0 to the MCS of `radio.rate`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RateSet {
    control: RateControl,
    ofdm: Ofdm,
    highest: u8,
    /// Payload in bit/s of a lone station without losses, by MCS.
    speeds: [f64; 16],
    /// Bytes of the longest aggregate, by MCS.
    most: [u32; 16],
}

/// Limits of aggregates.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Largest size in bytes.
    pub bytes: u32,
    /// Largest number of MPDUs.
    pub mpdus: u32,
    /// Longest air time.
    pub longest: Duration,
    /// Bytes of an MPDU in addition to its packet.
    pub overhead: u32,
}

/// Size in bytes of the packets for which rates are compared.
const PACKET_BYTES: u32 = 1500;

impl RateSet {
    /// Creates the set of rates; `None` if all links have one rate. `wait` takes the size of an
    /// MPDU in bytes. It returns the duration of an exchange without the data frame and its answer,
    /// and the mean of its backoff in seconds.
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

    /// True if the stations need the signal-to-noise ratio of each link, or its MCS from the list
    /// of links.
    pub fn wants_quality(&self) -> bool {
        matches!(self.control, RateControl::Ideal | RateControl::Listed)
    }

    /// All MCS, ascending.
    fn all(&self) -> impl DoubleEndedIterator<Item = u8> + use<> {
        0..=self.highest
    }

    /// Payload in bit/s at an MCS without losses.
    fn speed(&self, mcs: u8) -> f64 {
        self.speeds[usize::from(mcs & 15)]
    }

    /// Bytes of the longest aggregate at an MCS.
    pub(super) fn most(&self, mcs: u8) -> u32 {
        self.most[usize::from(mcs & 15)]
    }

    /// Probability that a packet arrives at an MCS and a signal-to-noise ratio.
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
    /// Choice for the attempt that is prepared or in progress.
    chosen: Option<Choice>,
}

/// State of rate control of one station.
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

    /// Sets the signal-to-noise ratio, as a plain number, with which the neighbour receives this
    /// station.
    pub fn on_link_snr(&mut self, set: &RateSet, node: NodeId, snr: f64) {
        if let Some(peer) = self.peer(set, node) {
            peer.rule.on_link_snr(set, snr);
        }
    }

    /// Sets the MCS that the list of links contains for the direction to the neighbour.
    pub fn on_link_mcs(&mut self, set: &RateSet, node: NodeId, mcs: u8) {
        if let Some(peer) = self.peer(set, node) {
            peer.rule.on_link_mcs(set, mcs);
        }
    }

    /// Chooses the rate of the next attempt. The choice stays the same until the result of the
    /// attempt is reported.
    pub(super) fn choose(&mut self, now: Time, set: &RateSet, node: NodeId, rng: &mut Rng) -> Choice {
        let Some(peer) = self.peer(set, node) else { return Choice { mcs: 0, is_probe: false } };
        let query = Query { now, set, failures: peer.failures, rng };
        *peer.chosen.get_or_insert_with(|| peer.rule.choose(query))
    }

    /// Reports a finished attempt: the number of transmitted MPDUs, zero if the RTS was lost, and
    /// the number of acknowledged MPDUs.
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
        // The parameters are those of 802.11n with one stream at 5 GHz: data bits per symbol of 4
        // us, and rate of answers in bits per symbol.
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
            // MPDUs have 1538 bytes and subframes 1544; an aggregate has up to 64 MPDUs, 65,535
            // bytes and 5.484 ms.
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
            let Choice { mcs, is_probe } = rates.choose(Time::ZERO, &set, PEER, &mut rng);
            rates.on_result(PEER, 1, 1);
            let best = (0..8).map(goodput).fold(0.0, f64::max);
            assert!(goodput(usize::from(mcs)) >= best * (1.0 - 1e-9) && !is_probe, "{snr}: MCS {mcs}");
            if seen.last() != Some(&mcs) && best > 0.0 {
                seen.push(mcs);
            }
        }
        // Every rate must be chosen for some ratio, except perhaps 18 Mbit/s, and the chosen rate
        // must grow with the ratio.
        assert!(seen.len() >= 7 && seen.is_sorted() && seen[0] == 0 && seen.last() == Some(&7), "{seen:?}");
    }

    #[test]
    fn listed_has_the_rate_of_the_link_or_the_highest() {
        let set = timing(RateControl::Listed, RtsPolicy::Never).rates.unwrap();
        let (mut rates, mut rng) = (Rates::default(), Rng::stream(1, Purpose::Test, 0));
        rates.on_link_mcs(&set, PEER, 2);
        rates.on_link_mcs(&set, NodeId(4), 12);
        // The third link is not listed.
        for (node, mcs) in [(PEER, 2), (NodeId(4), 7), (NodeId(5), 7)] {
            assert_eq!(rates.choose(Time::ZERO, &set, node, &mut rng), Choice { mcs, is_probe: false });
            rates.on_result(node, 8, 0);
            assert_eq!(rates.choose(Time::ZERO, &set, node, &mut rng).mcs, mcs, "losses change nothing");
        }
    }

    #[test]
    fn minstrel_goes_down_its_chain_and_looks_around_once_in_ten() {
        let t = timing(RateControl::Minstrel, RtsPolicy::Never);
        let set = t.rates.unwrap();
        let (mut rates, mut rng) = (Rates::default(), Rng::stream(1, Purpose::Test, 0));
        // MCS 0 to 4 always get through, MCS 5 half of the times, MCS 6 and 7 never.
        let arrives = [32, 32, 32, 32, 32, 16, 0, 0];
        let mut probes = 0;
        for attempt in 0..4_000 {
            let now = Time(attempt * 1_000_000);
            let choice = rates.choose(now, &set, PEER, &mut rng);
            assert_eq!(choice, rates.choose(now, &set, PEER, &mut rng), "the same until its result is known");
            let settled = attempt > 2_000;
            if choice.is_probe {
                probes += u32::from(settled);
            } else if settled {
                // MCS 5 carries less than MCS 4 because half of its MPDUs are lost.
                assert!(choice.mcs == 4, "{choice:?}");
            }
            rates.on_result(PEER, 32, arrives[usize::from(choice.mcs)].max(1));
        }
        assert!((190..=201).contains(&probes), "{probes} of 2000");
        // The chain of failures is: two attempts at MCS 4, two at the second best, then the fastest
        // of the reliable rates.
        let mut chain = Vec::new();
        while chain.len() < 6 {
            let Choice { mcs, is_probe } = rates.choose(Time(4_000_000_000), &set, PEER, &mut rng);
            if !is_probe {
                chain.push(mcs);
            }
            rates.on_result(PEER, if is_probe { 1 } else { 0 }, u32::from(is_probe));
        }
        assert_eq!(chain, [4, 4, 5, 5, 4, 4]);
    }
}
