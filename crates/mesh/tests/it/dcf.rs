//! Tests of one station's DCF, frame by frame. Times follow from IEEE 802.11-1999 and from
//! measurements of ns-2.35. They are computed by hand beside each expectation; none was copied from
//! a run.

use crate::parcel::Parcel;
use meshpace_core::rng::Purpose;
use meshpace_core::{Duration, NodeId, Rng, Time};
use meshpace_mesh::Queued;
use meshpace_mesh::mac::{Action, Arrival, Category, Dcf, EndingFrame, Frame, FrameKind, OrderedTime, Timing};
use meshpace_mesh::radio::{Arriving, Band, FrameRate, Ofdm, OfdmRate};
use meshpace_mesh::{Body, HtConfig, MacConfig, MacProfile, RadioConfig, RtsPolicy};

const ME: NodeId = NodeId(0);
const PEER: NodeId = NodeId(1);
const OTHER: NodeId = NodeId(2);
const STRONG: f64 = 1e-9;

fn arriving(id: u32, decodable: bool, end: Time) -> Arriving {
    Arriving { id, power: STRONG, decodable, rate: FrameRate::DATA, end }
}

const fn us(n: u64) -> Time {
    Time(n * 1000)
}

struct Station {
    mac: Dcf<Parcel>,
    timing: Timing,
    transmissions: u32,
}

impl Station {
    fn new(profile: MacProfile, rts: RtsPolicy) -> Station {
        let timing = Timing::new(&MacConfig { profile, rts, ..MacConfig::default() }, &RadioConfig::default());
        Station { mac: Dcf::new(ME, &timing, Rng::stream(1, Purpose::Backoff, 0)), timing, transmissions: 0 }
    }

    fn send(&mut self, now: Time) {
        self.mac.send(now, Queued { next_hop: PEER, body: Body::Data(Parcel::default()) }, &self.timing);
    }

    /// Runs the station's timers until it acts.
    fn act(&mut self) -> (Time, Action<Parcel>) {
        loop {
            let now = self.mac.next_wakeup(&self.timing);
            assert_ne!(now, Time::NEVER, "the station has nothing to do");
            match self.mac.on_timer(now, &self.timing) {
                Action::None => {}
                action => return (now, action),
            }
        }
    }

    fn transmits(&mut self) -> (Time, Frame<Parcel>) {
        match self.act() {
            (now, Action::Transmit(frame)) => (now, frame),
            (now, other) => panic!("expected a transmission, got {other:?} at {now}"),
        }
    }

    /// A frame arrives from `start` on, without others. The station takes no action of its own
    /// until then.
    fn hear(&mut self, start: Time, frame: Frame<Parcel>, decodable: bool) -> (Time, Action<Parcel>) {
        while self.mac.next_wakeup(&self.timing) < start {
            let now = self.mac.next_wakeup(&self.timing);
            assert_eq!(self.mac.on_timer(now, &self.timing), Action::None);
        }
        self.transmissions += 1;
        let end = start + frame.air_time;
        let arriving = arriving(self.transmissions, decodable, end);
        self.depart(start, arriving, &frame);
        (
            end,
            self.mac.on_frame_end(
                end,
                EndingFrame { id: self.transmissions, power: STRONG, frame: &frame, mpdus: &[] },
                &self.timing,
            ),
        )
    }

    /// A frame has been sent that will begin to arrive at `start`.
    fn depart(&mut self, start: Time, arriving: Arriving, frame: &Frame<Parcel>) {
        let (sender, nav_ns) = (frame.from, frame.nav.0 as u32);
        let arrival = Arrival { start, frame: arriving, nav_ns, sender, is_notified: true };
        self.mac.on_departure(OrderedTime::timer(start), arrival, &self.timing);
    }

    fn control(&self, kind: FrameKind, from: NodeId, to: NodeId, nav: u64) -> Frame<Parcel> {
        let (bytes, air_time) = match kind {
            FrameKind::Rts => (20, self.timing.rts_air),
            _ => (14, self.timing.ack_air),
        };
        Frame {
            kind,
            from,
            to,
            bytes,
            rate: FrameRate::BASIC,
            air_time,
            nav: Duration::from_micros(nav),
            sequence: 0,
            retry: false,
            body: None,
            category: Category::BestEffort,
            bitmap: 0,
        }
    }

    fn data(&self, to: NodeId, sequence: u16) -> Frame<Parcel> {
        let bytes = 1500 + self.timing.rules.data_overhead;
        Frame {
            kind: FrameKind::Data,
            from: PEER,
            to,
            bytes,
            rate: FrameRate::DATA,
            air_time: self.timing.data_air(bytes, false),
            nav: Duration::from_micros(314),
            sequence,
            retry: false,
            body: Some(Body::Data(Parcel::default())),
            category: Category::BestEffort,
            bitmap: 0,
        }
    }
}

#[test]
fn an_exchange_takes_the_published_times() {
    let mut station = Station::new(MacProfile::Ns2, RtsPolicy::Always);
    station.send(us(1000));
    let (at, rts) = station.transmits();
    // DIFS, then 0 to 30 whole slots.
    let backoff = at.since(us(1000)).0 - 50_000;
    assert!(backoff % 20_000 == 0 && backoff / 20_000 <= 30, "{backoff} ns");
    assert_eq!(rts.kind, FrameKind::Rts);
    // Duration field: 3 SIFS + CTS 304 + data 192 + (1500 + 34) * 4 = 6328 + ACK 304.
    assert_eq!(rts.nav, Duration::from_micros(30 + 304 + 6328 + 304));
    let cts = station.control(FrameKind::Cts, PEER, ME, 6000);
    let (end, action) = station.hear(at + Duration::from_micros(352 + 10 + 1), cts, true);
    assert_eq!(action, Action::None);
    let (at, data) = station.transmits();
    assert_eq!(at, end + Duration::from_micros(10), "data follows the CTS after a SIFS");
    assert_eq!((data.kind, data.bytes, data.air_time), (FrameKind::Data, 1534, Duration::from_micros(6328)));
    assert_eq!(data.nav, Duration::from_micros(314), "SIFS + ACK");
    let ack = station.control(FrameKind::Ack, PEER, ME, 0);
    let (_, action) = station.hear(at + Duration::from_micros(6328 + 10 + 1), ack, true);
    let data_air = Duration::from_micros(6328);
    assert_eq!(action, Action::Sent { next_hop: PEER, retries: 0, data_air });
    assert!(station.mac.wants_packet());
}

/// Lets the station send until it gives up. Returns the numbers of RTS and data frames. `answers`
/// is the number of RTS that are answered with a CTS.
fn attempts(profile: MacProfile, rts: RtsPolicy, mut answers: u32) -> (u32, u32) {
    let mut station = Station::new(profile, rts);
    station.send(us(1000));
    let (mut requests, mut data) = (0, 0);
    loop {
        match station.act() {
            (now, Action::Transmit(frame)) if frame.kind == FrameKind::Rts => {
                requests += 1;
                if answers > 0 {
                    answers -= 1;
                    let cts = station.control(FrameKind::Cts, PEER, ME, 6000);
                    station.hear(now + Duration::from_micros(363), cts, true);
                }
            }
            (_, Action::Transmit(frame)) => {
                data += 1;
                assert_eq!(frame.retry, data > 1, "only a repeated MPDU carries the retry bit");
            }
            (_, Action::Failed { retries, .. }) => {
                let answered = if rts == RtsPolicy::Always { requests - data } else { 0 };
                assert_eq!(retries, answered + data, "every attempt of this packet went without an answer");
                return (requests, data);
            }
            (now, other) => panic!("{other:?} at {now}"),
        }
    }
}

#[test]
fn retry_limits() {
    for profile in [MacProfile::Ns2, MacProfile::Ieee] {
        // 802.11-1999, 11.4.4: short retry limit 7, long retry limit 4.
        assert_eq!(attempts(profile, RtsPolicy::Always, 0), (7, 0), "no CTS");
        assert_eq!(attempts(profile, RtsPolicy::Always, 99), (4, 4), "no ACK after RTS/CTS");
        assert_eq!(attempts(profile, RtsPolicy::Never, 0), (0, 7), "no ACK without RTS");
        // A CTS resets the short retry count, but not the long one: 3 RTS without an answer, then
        // data frames are lost until the limit of 4.
        assert_eq!(attempts(profile, RtsPolicy::Always, 4), (4, 4));
    }
}

#[test]
fn the_contention_window_doubles_and_the_timeouts_are_right() {
    let mut station = Station::new(MacProfile::Ns2, RtsPolicy::Always);
    station.send(us(1000));
    let mut last = None;
    for window in [31u64, 63, 127, 255, 511, 1023, 1023] {
        let (at, _) = station.transmits();
        if let Some(last) = last {
            // RTS 352 + 2 + SIFS 10 + CTS 304 + 2 = 670 us without an answer, then DIFS and fewer
            // slots than the window.
            let backoff = at.since(last).0 - 670_000 - 50_000;
            assert!(backoff.is_multiple_of(20_000) && backoff / 20_000 < window, "{backoff} ns, window {window}");
        }
        last = Some(at);
    }
    assert!(matches!(station.act(), (_, Action::Failed { retries: 7, .. })));
}

#[test]
fn a_duplicate_is_acknowledged_and_not_delivered() {
    let mut station = Station::new(MacProfile::Ns2, RtsPolicy::Never);
    let frame = station.data(ME, 7);
    let (end, action) = station.hear(us(1000), frame, true);
    assert_eq!(action, Action::Deliver { from: PEER, body: Body::Data(Parcel { hops: 1, ..Parcel::default() }) });
    let (at, ack) = station.transmits();
    assert_eq!((at, ack.kind, ack.to), (end + Duration::from_micros(10), FrameKind::Ack, PEER));
    let frame = station.data(ME, 7);
    let (_, action) = station.hear(us(20_000), frame, true);
    assert_eq!(action, Action::None, "same sequence number");
    assert_eq!(station.transmits().1.kind, FrameKind::Ack);
    let frame = station.data(ME, 8);
    assert!(matches!(station.hear(us(40_000), frame, true).1, Action::Deliver { .. }));
}

#[test]
fn a_set_nav_keeps_a_station_from_answering_an_rts() {
    for profile in [MacProfile::Ns2, MacProfile::Ieee] {
        let mut station = Station::new(profile, RtsPolicy::Always);
        // A CTS of another station reserves 5 ms.
        let cts = station.control(FrameKind::Cts, OTHER, PEER, 5000);
        let (end, _) = station.hear(us(1000), cts, true);
        let rts = station.control(FrameKind::Rts, PEER, ME, 7000);
        station.hear(end + Duration::from_micros(100), rts, true);
        while station.mac.next_wakeup(&station.timing) != Time::NEVER {
            let now = station.mac.next_wakeup(&station.timing);
            assert_eq!(station.mac.on_timer(now, &station.timing), Action::None, "{profile:?}: no CTS");
        }
        let rts = station.control(FrameKind::Rts, PEER, ME, 7000);
        let (end, _) = station.hear(end + Duration::from_micros(6000), rts, true);
        let (at, answer) = station.transmits();
        assert_eq!((at, answer.kind), (end + Duration::from_micros(10), FrameKind::Cts), "{profile:?}");
        // The rest of the RTS's reservation after SIFS and CTS.
        assert_eq!(answer.nav, Duration::from_micros(7000 - 10 - 304));
    }
}

#[test]
fn ieee_resets_the_nav_of_an_rts_that_nothing_follows() {
    // 9.2.5.4: 2 SIFS + CTS 304 + 2 slots after the RTS = 364 us. ns-2 keeps the NAV.
    for (profile, answers) in [(MacProfile::Ns2, false), (MacProfile::Ieee, true)] {
        let mut station = Station::new(profile, RtsPolicy::Always);
        let foreign = station.control(FrameKind::Rts, OTHER, PEER, 7000);
        let (end, _) = station.hear(us(1000), foreign, true);
        let rts = station.control(FrameKind::Rts, PEER, ME, 7000);
        let (end, _) = station.hear(end + Duration::from_micros(400), rts, true);
        let at = station.mac.next_wakeup(&station.timing);
        assert_eq!(at, end + Duration::from_micros(10));
        let action = station.mac.on_timer(at, &station.timing);
        assert_eq!(matches!(action, Action::Transmit(_)), answers, "{profile:?}");
    }
}

#[test]
fn a_damaged_frame_costs_eifs() {
    // EIFS = 364 us. Under `ns2` DIFS follows it; in the standard EIFS replaces DIFS.
    for (profile, space) in [(MacProfile::Ns2, 364 + 50), (MacProfile::Ieee, 364)] {
        let mut station = Station::new(profile, RtsPolicy::Always);
        let noise = station.data(OTHER, 1);
        let (id, start) = (1, us(1000));
        let end = start + noise.air_time;
        station.depart(start, arriving(id, false, end), &noise);
        station.mac.catch_up(OrderedTime::timer(us(2000)), &station.timing);
        station.send(us(2000));
        station.mac.on_frame_end(end, EndingFrame { id, power: STRONG, frame: &noise, mpdus: &[] }, &station.timing);
        let (at, _) = station.transmits();
        let backoff = at.since(end).0 - space * 1000;
        assert!(backoff.is_multiple_of(20_000) && backoff / 20_000 <= 31, "{profile:?}: {backoff} ns");
    }
}

#[test]
fn ieee_waits_difs_after_a_collision_of_its_own() {
    // The other frame begins 3 us after this station's frame and ends 3 us after it. Its preamble
    // was missed, so there is no frame after which EIFS would apply (9.2.3.4). From the start of
    // the RTS: 352 + SIFS 10 + CTS 304 + slot 20, then DIFS 50.
    let mut station = Station::new(MacProfile::Ieee, RtsPolicy::Always);
    station.send(us(1000));
    let (start, rts) = station.transmits();
    let other = station.control(FrameKind::Rts, OTHER, PEER, 7000);
    let (begins, ends) = (start + Duration::from_micros(3), start + Duration::from_micros(3) + rts.air_time);
    station.depart(begins, arriving(1, true, ends), &other);
    station.mac.on_frame_end(ends, EndingFrame { id: 1, power: STRONG, frame: &other, mpdus: &[] }, &station.timing);
    let (again, _) = station.transmits();
    let backoff = again.since(start + Duration::from_micros(352 + 10 + 304 + 20 + 50)).0;
    assert!(backoff.is_multiple_of(20_000) && backoff / 20_000 <= 63, "{backoff} ns");
}

#[test]
fn ieee_sends_at_once_on_a_medium_that_was_idle() {
    let mut station = Station::new(MacProfile::Ieee, RtsPolicy::Always);
    station.send(us(1000));
    assert_eq!(station.transmits().0, us(1000), "9.2.5.1: idle for longer than DIFS, no backoff due");
}

/// A station that receives frames for others, with a record of its actions.
struct Bystander {
    mac: Dcf<Parcel>,
    timing: Timing,
    deeds: Vec<(Time, String)>,
}

impl Bystander {
    fn new(profile: MacProfile, seed: u64) -> Bystander {
        let timing = Timing::new(&profile.into(), &RadioConfig::default());
        Bystander { mac: Dcf::new(ME, &timing, Rng::stream(seed, Purpose::Backoff, 0)), timing, deeds: Vec::new() }
    }

    /// Runs the timers that are due before `now`.
    fn run(&mut self, now: Time) {
        while self.mac.next_wakeup(&self.timing) < now {
            let at = self.mac.next_wakeup(&self.timing);
            let action = self.mac.on_timer(at, &self.timing);
            if action != Action::None {
                self.deeds.push((at, format!("{action:?}")));
            }
        }
    }

    fn live(&mut self, now: Time) {
        self.run(now);
        self.mac.catch_up(OrderedTime::timer(now), &self.timing);
    }
}

#[test]
fn a_frame_processed_late_does_what_it_does_when_processed_at_once() {
    for (profile, seed) in [(MacProfile::Ns2, 1), (MacProfile::Ns2, 2), (MacProfile::Ieee, 3), (MacProfile::Ieee, 4)] {
        let mut rng = Rng::stream(seed, Purpose::Test, 0);
        let (mut late, mut prompt) = (Bystander::new(profile, seed), Bystander::new(profile, seed));
        let (mut now, mut edges, mut sent) = (Time(1_000_000), Vec::<Time>::new(), 0);
        for id in 0..4_000 {
            // Bursts, in which frames overlap and some leave within a propagation delay of each
            // other, alternate with pauses.
            now += Duration([rng.below(1_500), rng.below(300_000), rng.below(9_000_000)][rng.below(3) as usize] + 1);
            edges.sort();
            while edges.first().is_some_and(|&edge| edge < now) {
                // All events of that time have been handled by the next nanosecond.
                prompt.live(Time(edges.remove(0).0 + 1));
            }
            late.run(now);
            prompt.run(now);
            if rng.below(4) == 0 {
                late.live(now);
                prompt.live(now);
                assert_eq!(late.mac.wants_packet(), prompt.mac.wants_packet(), "seed {seed} frame {id}");
                if late.mac.wants_packet() {
                    sent += 1;
                    for station in [&mut late, &mut prompt] {
                        let packet = Queued { next_hop: PEER, body: Body::Data(Parcel::default()) };
                        station.mac.send(now, packet, &station.timing);
                    }
                }
            }
            let start = now + Duration(rng.below(1_800));
            let end = start + Duration(200_000 + rng.below(1_000_000));
            let power = STRONG / [1.0, 3.0, 30.0][rng.below(3) as usize];
            let frame = Arriving { id, power, decodable: rng.below(2) == 0, rate: FrameRate::BASIC, end };
            let nav_ns = rng.below(3) as u32 * 400_000;
            let arrival = Arrival { start, frame, nav_ns, sender: NodeId(2 + id as u16 % 7), is_notified: false };
            edges.extend([start, end]);
            for station in [&mut late, &mut prompt] {
                station.mac.on_departure(OrderedTime::timer(now), arrival, &station.timing);
            }
        }
        assert_eq!(late.deeds, prompt.deeds, "seed {seed}");
        assert!(sent > 20 && late.deeds.len() > 100, "seed {seed}: {sent} packets, {} deeds", late.deeds.len());
    }
}

/// An 802.11n station at MCS 7 without aggregates and RTS.
fn of_80211n(ht: HtConfig, seed: u64) -> Station {
    of_80211n_with(RtsPolicy::Never, ht, seed)
}

fn of_80211n_with(rts: RtsPolicy, ht: HtConfig, seed: u64) -> Station {
    let (data, basic) = (OfdmRate::mcs(7, false).unwrap(), OfdmRate::NonHt(0));
    let ofdm = Some(Ofdm { band: Band::Five, data, basic });
    let radio = RadioConfig { rate: data.rate(), basic_rate: basic.rate(), ofdm, ..RadioConfig::default() };
    let ht = Some(HtConfig { mpdus: 1, ..ht });
    let mac = MacConfig { profile: MacProfile::Ieee, rts, ht, ..MacConfig::default() };
    let timing = Timing::new(&mac, &radio);
    Station { mac: Dcf::new(ME, &timing, Rng::stream(seed, Purpose::Backoff, 0)), timing, transmissions: 0 }
}

/// The two standards for which [`by_the`] creates stations.
const STANDARDS: [&str; 2] = ["802.11n", "802.11b"];

/// An 802.11n station as above, or an 802.11b station under `ieee`.
fn by_the(standard: &str, seed: u64) -> Station {
    if standard == "802.11n" {
        return of_80211n(HtConfig::default(), seed);
    }
    let mac = MacConfig { profile: MacProfile::Ieee, rts: RtsPolicy::Never, ..MacConfig::default() };
    let timing = Timing::new(&mac, &RadioConfig::default());
    Station { mac: Dcf::new(ME, &timing, Rng::stream(seed, Purpose::Backoff, 0)), timing, transmissions: 0 }
}

#[test]
fn a_packet_that_comes_before_the_space_after_a_frame_is_over_needs_no_backoff_with_immediate_access() {
    for immediate in [false, true] {
        let mut gaps = std::collections::BTreeSet::new();
        for seed in 0..30 {
            let mut station = of_80211n(HtConfig { immediate: Some(immediate), ..HtConfig::default() }, seed);
            let data = station.data(ME, 1);
            let (end, _) = station.hear(us(1000), data, true);
            let (at, ack) = station.transmits();
            assert_eq!((at.since(end), ack.kind), (Duration::from_micros(16), FrameKind::Ack));
            let (over, sent) = (at + ack.air_time, at + ack.air_time + Duration::from_micros(6));
            while station.mac.next_wakeup(&station.timing) <= sent {
                let now = station.mac.next_wakeup(&station.timing);
                assert_eq!(station.mac.on_timer(now, &station.timing), Action::None);
            }
            station.send(sent);
            let (at, _) = station.transmits();
            gaps.insert(at.since(over).0 / 1_000);
        }
        // AIFS of best effort is 43 us. With a backoff, 0 to 15 slots of 9 us are added.
        if immediate {
            assert_eq!(gaps.into_iter().collect::<Vec<_>>(), [43]);
        } else {
            assert!(gaps.len() > 8 && gaps.iter().all(|gap| (gap - 43) % 9 == 0 && *gap <= 43 + 135), "{gaps:?}");
        }
    }
}

/// Time at which the frame of a station leaves, in slots from the end of the interframe space after
/// the last of `frames` frames that it receives. The second frame begins two slots after the
/// interframe space after the first.
fn slots_until_its_frame(busy_slot_counts: bool, seed: u64, frames: u32) -> u64 {
    let aifs = Duration::from_micros(43);
    let mut station = of_80211n(HtConfig { busy_slot_counts, immediate: Some(false), ..HtConfig::default() }, seed);
    let foreign = station.control(FrameKind::Ack, PEER, OTHER, 0);
    let (mut end, _) = station.hear(us(1000), foreign, true);
    station.send(end + Duration::from_micros(5));
    for _ in 1..frames {
        (end, _) = station.hear(end + aifs + Duration::from_micros(18), foreign, true);
    }
    let (at, _) = station.transmits();
    at.since(end + aifs).0 / 9_000
}

#[test]
fn the_slots_of_edca_count_that_in_which_the_medium_becomes_busy() {
    // From 802.11-2016, 10.22.2.4: a backoff of r slots is decremented at the end of AIFS and after
    // each idle slot. It is 0 at the boundary at which the frame leaves, r slots after AIFS. A
    // frame that begins at the third boundary leaves r - 3 of it, in the DCF r - 2.
    let mut interrupted = 0;
    for seed in 0..30 {
        for (busy_slot_counts, counted) in [(false, 2), (true, 3)] {
            let drawn = slots_until_its_frame(busy_slot_counts, seed, 1);
            if drawn > 2 {
                assert_eq!(slots_until_its_frame(busy_slot_counts, seed, 2), drawn - counted, "seed {seed}");
                interrupted += 1;
            }
        }
    }
    assert!(interrupted > 30, "{interrupted}");
}

#[test]
fn after_a_packet_that_was_given_up_the_next_one_waits_for_a_backoff() {
    // 802.11-2016, 10.3.4.3; 802.11-1999, 9.2.4. AIFS of best effort is 43 us and a slot 9 us. The
    // wait for the missing ACK is longer than AIFS. With 802.11b DIFS follows that wait. A packet
    // that arrives 60 us later would find the medium idle for DIFS, if there were no backoff of up
    // to 31 slots.
    for standard in STANDARDS {
        let mut gaps = std::collections::BTreeSet::new();
        for seed in 0..30 {
            let mut station = by_the(standard, seed);
            station.send(us(1000));
            let failed = loop {
                match station.act() {
                    (_, Action::Transmit(_)) => {}
                    (now, action) => {
                        assert!(matches!(action, Action::Failed { .. }), "{action:?}");
                        break now;
                    }
                }
            };
            let next = failed + Duration::from_micros(if standard == "802.11n" { 0 } else { 60 });
            while station.mac.next_wakeup(&station.timing) <= next {
                let now = station.mac.next_wakeup(&station.timing);
                assert_eq!(station.mac.on_timer(now, &station.timing), Action::None);
            }
            station.send(next);
            let (at, _) = station.transmits();
            gaps.insert(at.since(failed).0 / 1_000);
        }
        assert!(gaps.len() > 8, "{standard}: the backoff is drawn from 16 or 32 values: {gaps:?}");
    }
}

#[test]
fn a_packet_does_not_inherit_the_failures_of_the_one_before() {
    // 802.11-2016, 10.3.4.4: the long retry count belongs to an MPDU. The first packet gets six CTS
    // and no ACK, then sends seven RTS without a CTS. The second one gets CTS.
    let mut station = of_80211n_with(RtsPolicy::Always, HtConfig::default(), 1);
    let mut attempts = |at, mut answers: u32| {
        station.send(at);
        let mut sent = 0;
        loop {
            match station.act() {
                (now, Action::Transmit(frame)) if frame.kind == FrameKind::Rts => {
                    if answers > 0 {
                        answers -= 1;
                        let cts = station.control(FrameKind::Cts, PEER, ME, 6000);
                        station.hear(now + frame.air_time + station.timing.sifs, cts, true);
                    }
                }
                (_, Action::Transmit(_)) => sent += 1,
                (now, action) => {
                    assert!(matches!(action, Action::Failed { .. }), "{action:?}");
                    return (now, sent);
                }
            }
        }
    };
    let (failed, sent) = attempts(us(1000), 6);
    assert_eq!(sent, 6);
    assert_eq!(attempts(failed, 99).1, 7, "as often as if it were the first one");
}

#[test]
fn a_packet_that_comes_soon_after_a_nav_waits_for_the_interframe_space() {
    // AIFS for 802.11n, DIFS for 802.11b.
    for (standard, space) in STANDARDS.into_iter().zip([43, 50]) {
        let mut station = by_the(standard, 1);
        // The medium is reserved for 500 us after the frame, for an answer that this station does
        // not receive.
        let mut data = station.data(OTHER, 1);
        data.nav = Duration::from_micros(500);
        let (end, _) = station.hear(us(1000), data, true);
        let idle = end + Duration::from_micros(500);
        let sent = idle + Duration::from_micros(5);
        while station.mac.next_wakeup(&station.timing) <= sent {
            let now = station.mac.next_wakeup(&station.timing);
            assert_eq!(station.mac.on_timer(now, &station.timing), Action::None);
        }
        station.mac.catch_up(OrderedTime::timer(sent), &station.timing);
        station.send(sent);
        let (at, _) = station.transmits();
        assert!(at.since(idle) >= Duration::from_micros(space), "{standard}: {:?} after the NAV", at.since(idle));
    }
}

#[test]
fn a_new_frame_with_the_number_of_the_last_one_is_no_duplicate() {
    // 9.2.9: the number is used again after 4096 frames of that station to any receiver. A
    // duplicate has the retry bit.
    for standard in STANDARDS {
        let mut station = by_the(standard, 1);
        let mut delivered = Vec::new();
        for (at, retry) in [(1_000, false), (15_000, false), (29_000, true)] {
            let data = Frame { retry, ..station.data(ME, 7) };
            let (_, action) = station.hear(us(at), data, true);
            delivered.push(matches!(action, Action::Deliver { .. }));
            let (_, ack) = station.transmits();
            assert_eq!(ack.kind, FrameKind::Ack);
            let over = station.mac.next_wakeup(&station.timing);
            assert_eq!(station.mac.on_timer(over, &station.timing), Action::None);
        }
        assert_eq!(delivered, [true, true, false], "{standard}");
    }
}
