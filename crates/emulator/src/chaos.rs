//! The mesh under the chaos runner of the live stack (`meshpace_live::chaos`). Datagrams of the
//! runner cross a chain of 802.11 nodes in virtual time, as real IP packets.
//!
//! The mesh of a run is drawn from its plan: 2 to 6 hops with the machines at both ends, one of
//! three radios, queues, and static routes or AODV. Until the time at which the plan ends the
//! hostile phase, links fade, a relay disappears and returns, and datagrams of other nodes cross a
//! relay.

use crate::address::{ipv4, mac};
use crate::frame::HEADER;
use crate::medium::{Medium, Mode};
use etherparse::PacketBuilder;
use meshpace_core::{NodeId, Rate, Rng, Time};
use meshpace_live::chaos::faults::Mood;
use meshpace_live::chaos::plan::{Plan, stream};
use meshpace_live::chaos::{Network, Passed, Run, Trail, run_over};
use meshpace_mesh::config::{
    AodvConfig, HtConfig, LinkConfig, LocalRepair, MacConfig, MacProfile, MeshConfig, Position, Propagation,
    RadioConfig, Reception, RoutingConfig, RtsPolicy,
};
use meshpace_mesh::radio::{Band, Channel, Links, Ofdm, OfdmRate};
use meshpace_sim::Config;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::net::{IpAddr, SocketAddr};

/// Random stream of a plan from which the mesh is drawn. Nothing else of a run uses it.
const STREAM: u64 = 4;

/// Length of the headers of IPv4 and UDP in bytes.
const HEADERS: usize = 28;

/// Destination port of the neighbour's datagrams.
const DISCARD: u16 = 9;

/// Longest fade of a link, seconds.
const LONGEST_FADE: f64 = 3.0;

/// Run of a seed over the mesh.
pub fn run(seed: u64, trail: Trail) -> Run {
    run_over(&|plan| Box::new(Air::of(plan)), seed, trail)
}

/// Event of the mesh that no machine causes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Event {
    /// A wall between two nodes is added (true), or one of the walls between them is removed
    /// (false).
    Wall(NodeId, NodeId, bool),
    /// A neighbour sends a datagram of this many bytes.
    Crossing(usize),
}

/// The mesh of a run.
struct Air {
    medium: Medium,
    /// Nodes of the two machines.
    ends: [NodeId; 2],
    /// Source and destination of the neighbour's datagrams.
    neighbours: [NodeId; 2],
    rate: Rate,
    /// Events in the order of time.
    events: std::vec::IntoIter<(Time, Event)>,
    /// Number of walls between two nodes.
    walls: BTreeMap<(NodeId, NodeId), u32>,
    words: String,
}

/// Positions of the nodes: a chain, then two neighbours on both sides of a relay, then, if there is
/// a bypass, a node over which routes can avoid the relay.
struct Places {
    hops: u16,
    /// The relay that the neighbours use and that disappears.
    relay: u16,
    has_bypass: bool,
}

impl Places {
    fn draw(rng: &mut Rng, has_bypass: bool) -> Places {
        let hops = 2 + rng.below(5) as u16;
        Places { hops, relay: 1 + rng.below(u64::from(hops) - 1) as u16, has_bypass }
    }

    fn count(&self) -> u16 {
        self.hops + 3 + u16::from(self.has_bypass)
    }

    /// Position of a node. The unit is the distance between neighbours of the chain.
    fn place(&self, node: u16) -> (f64, f64) {
        let relay = f64::from(self.relay);
        match node.checked_sub(self.hops + 1) {
            None => (f64::from(node), 0.0),
            Some(0) => (relay, -1.0),
            Some(1) => (relay, 1.0),
            Some(_) => (relay, 0.4),
        }
    }

    fn distance(&self, one: u16, other: u16) -> f64 {
        let (from, to) = (self.place(one), self.place(other));
        (from.0 - to.0).hypot(from.1 - to.1)
    }

    fn pairs(&self) -> impl Iterator<Item = (u16, u16)> {
        let count = self.count();
        (0..count).flat_map(move |from| (0..count).map(move |to| (from, to))).filter(|(from, to)| from != to)
    }
}

/// Draws one of three radios: 802.11b, where the frame of the nearest sender is received, or
/// 802.11a or 802.11n, where noise and interference cause bit errors.
fn draw_radio(rng: &mut Rng, places: &Places) -> (RadioConfig, MacConfig, String) {
    let rts = [RtsPolicy::Always, RtsPolicy::Never][rng.below(2) as usize];
    let mut mac = MacConfig { profile: MacProfile::Ieee, rts, ..MacConfig::default() };
    let mut radio = RadioConfig::default();
    let kind = rng.below(4);
    if kind < 2 {
        radio.rate = Rate::from_mbps([1, 2, 11][rng.below(3) as usize]);
        if kind == 0 {
            mac.profile = MacProfile::Ns2;
        }
        return (radio, mac, "802.11b".to_owned());
    }
    let (number, basic) = (rng.below(5) as u8, OfdmRate::NonHt(0));
    let mpdus = [1, 8, 64][rng.below(3) as usize];
    let data = if kind == 2 { OfdmRate::NonHt(number) } else { OfdmRate::Ht { mcs: number, short_guard: false } };
    mac.ht = (kind == 3).then(|| HtConfig { mpdus, ..HtConfig::default() });
    radio.ofdm = Some(Ofdm { band: Band::Five, data, basic });
    (radio.rate, radio.basic_rate) = (data.rate(), basic.rate());
    radio.reception = Reception::Sinr;
    (radio.noise_dbm, radio.carrier_sense_dbm) = (-94.0, -62.0);
    // Sets the propagation first, so that the ratio below is that of this radio. Positions have no
    // influence where links are given.
    radio.propagation = Propagation::Links(Links::default());
    let share = [0.9, 0.99][rng.below(2) as usize];
    // A frame that cannot be detected in the noise is not received, so the ratio is at least that
    // of detection.
    let link = Channel::snr_for(&radio, share).max(radio.detect_ratio_db);
    let powers = places.pairs().filter(|(from, to)| from < to).flat_map(|(from, to)| {
        let distance = places.distance(from, to);
        // Direct neighbours decode each other's frames. Nodes two hops apart only disturb each
        // other: if they decoded broadcasts, which are sent at a low rate, AODV would find routes
        // over which no data passes. Nodes further apart do not hear each other.
        let ratio = if distance < 1.2 {
            link + rng.uniform_in(0.0, 15.0)
        } else if distance < 2.2 {
            radio.detect_ratio_db - rng.uniform_in(1.0, 7.0)
        } else {
            return Vec::new();
        };
        let (from, to, power) = (NodeId(from), NodeId(to), radio.noise_dbm + ratio);
        vec![(from, to, power), (to, from, power)]
    });
    let links = Links::new(powers.collect());
    radio.propagation = Propagation::Links(links);
    let name = if kind == 2 { "802.11a".to_owned() } else { format!("802.11n with {mpdus} MPDUs") };
    (radio, mac, name)
}

/// Events until `until`, in the order of time, and a description of them.
fn draw_events(rng: &mut Rng, places: &Places, mood: Mood, until: Time) -> (Vec<(Time, Event)>, String) {
    let (end, mut events, mut words) = (until.as_secs_f64(), Vec::new(), String::new());
    let at = |seconds: f64| Time((seconds * 1e9) as u64).min(until);
    let gentle = mood == Mood::Observer;
    let wall = |events: &mut Vec<_>, one: u16, other: u16, from: f64, to: f64| {
        events.push((at(from), Event::Wall(NodeId(one), NodeId(other), true)));
        events.push((at(to), Event::Wall(NodeId(one), NodeId(other), false)));
    };
    // Links fade. The two numbers are the mean time between fades and the mean length of a fade, in
    // seconds. Where all data has to arrive, fades are rarer the more links there are, so that the
    // whole path exists two thirds of the time. The wire also loses at most 30 % there. A listener
    // gives up a handshake that does not progress for 63 s.
    let (gap, fade) = [(f64::INFINITY, 0.0), (5.0, 0.1), (1.0, 0.5)][rng.below(if gentle { 2 } else { 3 }) as usize];
    let gap = if mood == Mood::Rough { gap } else { gap * f64::from(places.hops) };
    if gap < end {
        let _ = write!(words, ", links fade for {fade} s every {gap} s");
        for link in 0..places.hops {
            let mut from = rng.exponential(gap);
            while from < end {
                let to = from + rng.exponential(fade).min(LONGEST_FADE);
                wall(&mut events, link, link + 1, from, to);
                from = to + rng.exponential(gap);
            }
        }
    }
    // A relay disappears and returns.
    let longest = if mood == Mood::Rough { 40.0 } else { 8.0 };
    for _ in 0..if gentle { 0 } else { rng.below(3) } {
        let from = rng.uniform_in(0.0, end);
        let to = from + rng.uniform_in(0.5, longest);
        let relay = places.relay;
        let _ = write!(words, ", n{relay} is away from {from:.1} s to {:.1} s", to.min(end));
        for node in (0..places.count()).filter(|node| *node != relay) {
            wall(&mut events, relay, node, from, to);
        }
    }
    // A neighbour's datagrams cross the relay from time to time.
    let (rate, length) = (rng.uniform_in(5.0, if gentle { 15.0 } else { 60.0 }), 100 + rng.below(1300) as usize);
    if rng.below(3) > 0 {
        let _ = write!(words, ", {rate:.0} datagrams of {length} B a second cross n{} at times", places.relay);
        let mut from = rng.exponential(5.0);
        while from < end {
            let to = from + rng.exponential(5.0);
            while from < to.min(end) {
                events.push((at(from), Event::Crossing(length)));
                from += 1.0 / rate;
            }
            from = to + rng.exponential(5.0);
        }
    }
    // The sort is stable: events at the same time keep the order in which they were drawn.
    events.sort_by_key(|(at, _)| *at);
    (events, words)
}

impl Air {
    fn of(plan: &Plan) -> Air {
        let rng = &mut stream(plan.seed, STREAM);
        let has_aodv = rng.below(3) == 0;
        let has_bypass = has_aodv && rng.below(2) == 0;
        let places = Places::draw(rng, has_bypass);
        let (radio, mac, name) = draw_radio(rng, &places);
        let limit = [10, 50, 200][rng.below(3) as usize];
        let mut words = format!("{} hops of {name} at {:.1} Mbit/s", places.hops, radio.rate.0 as f64 / 1e6);
        let _ = write!(words, ", queues of {limit}{}", if has_aodv { ", AODV" } else { "" });
        let (events, more) = draw_events(rng, &places, plan.mood, plan.hostile_until);
        words += &more;
        let spacing = rng.uniform_in(200.0, 230.0);
        let position = |node| {
            let (x, y) = places.place(node);
            Position { x: spacing * x, y: spacing * y }
        };
        let rate = radio.rate;
        let routing = RoutingConfig::Aodv(AodvConfig::repairing(LocalRepair::Rfc3561));
        let config = Config {
            positions: (0..places.count()).map(position).collect(),
            mesh: MeshConfig {
                radio,
                mac,
                routing: if has_aodv { routing } else { RoutingConfig::Static },
                link: LinkConfig { limit, ..LinkConfig::default() },
            },
            ..Config::default()
        };
        Air {
            medium: Medium::new(&config, Mode::Ours, plan.seed, Box::new(())),
            ends: [NodeId(0), NodeId(places.hops)],
            neighbours: [NodeId(places.hops + 1), NodeId(places.hops + 2)],
            rate,
            events: events.into_iter(),
            walls: BTreeMap::new(),
            words,
        }
    }

    fn put(&mut self, [from, to]: [NodeId; 2], [source, destination]: [SocketAddr; 2], bytes: &[u8]) {
        let (IpAddr::V4(own), IpAddr::V4(peer)) = (source.ip(), destination.ip()) else { return };
        let builder = PacketBuilder::ethernet2(mac(from), mac(to)).ipv4(own.octets(), peer.octets(), 64);
        let mut frame = Vec::with_capacity(HEADER + HEADERS + bytes.len());
        if builder.udp(source.port(), destination.port()).write(&mut frame, bytes).is_ok() {
            self.medium.send(from, &frame, &mut Vec::new());
        }
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Wall(one, other, comes) => {
                let walls = self.walls.entry((one.min(other), one.max(other))).or_default();
                *walls = if comes { *walls + 1 } else { walls.saturating_sub(1) };
                let is_up = *walls == 0;
                self.medium.set_link(one, other, is_up);
            }
            Event::Crossing(length) => {
                let ends = self.neighbours.map(|node| SocketAddr::from((ipv4(node), DISCARD)));
                self.put(self.neighbours, ends, &vec![0; length]);
            }
        }
    }
}

impl Network for Air {
    fn words(&self) -> String {
        self.words.clone()
    }

    fn hops(&self) -> u8 {
        self.ends[1].0 as u8
    }

    fn rate(&self) -> Rate {
        self.rate
    }

    fn send(&mut self, end: usize, from: SocketAddr, to: SocketAddr, bytes: &[u8]) {
        self.put([self.ends[end], self.ends[1 - end]], [from, to], bytes);
    }

    fn advance(&mut self, until: Time) -> Option<Passed> {
        loop {
            let next = self.events.as_slice().first().map_or(Time::NEVER, |(at, _)| *at);
            while let Some(delivery) = self.medium.advance(until.min(next)) {
                if !self.ends.contains(&delivery.node) {
                    continue;
                }
                let packet = delivery.packet;
                let of = packet.facts.conversation;
                let [from, to] = [0, 1].map(|end| SocketAddr::from((of.addresses[end], of.ports[end])));
                let bytes = packet.sent().get(HEADER + HEADERS..).unwrap_or_default().to_vec();
                return Some(Passed { at: delivery.due, from, to, bytes });
            }
            if next > until {
                return None;
            }
            if let Some((_, event)) = self.events.next() {
                self.happen(event);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use meshpace_core::Duration;
    use meshpace_live::chaos::Tally;

    /// Number of seeds if the environment does not set one.
    const SEEDS: u64 = 48;

    #[test]
    fn no_seed_breaks_an_invariant() {
        let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().expect("a number"));
        let seeds = number("MESHPACE_CHAOS").unwrap_or(SEEDS);
        let mut tally = Tally::default();
        for seed in 0..seeds {
            let run = run(seed, Trail::Nothing);
            assert_eq!(run.broken, None, "meshpace dev chaos --seed {seed} --radio repeats it");
            tally.add(&run);
        }
        let (seconds, packets, faults) = (tally.times.median() / 1000, tally.sent.median(), tally.suffered.median());
        eprintln!("{seeds} seeds; medians {seconds} s, {packets} packets, {faults} faults");
        if seeds >= SEEDS {
            // A run that proves nothing must not pass.
            assert!(seconds >= 30 && packets >= 200 && faults >= 3, "{seconds} s, {packets} packets, {faults} faults");
            assert!(tally.bytes > 1_000_000 && tally.datagrams > 20 && tally.lost > 500, "{tally:?}");
        }
    }

    #[test]
    fn a_seed_says_all() {
        for seed in 0..6 {
            assert_eq!(run(seed, Trail::Packets), run(seed, Trail::Packets), "seed {seed}");
        }
    }

    /// Sends a datagram from end to end every 100 ms, until 10 s after the end of the hostile
    /// phase. Every byte of a datagram is its number. Returns the numbers and arrival times, in
    /// order.
    fn send_through(air: &mut Air, until: Time) -> Vec<(u8, Time)> {
        let ends = [1, 2].map(|end| SocketAddr::from(([10, 0, 0, end], 4000)));
        let (mut came, mut at) = (Vec::new(), Time::ZERO);
        for number in 0.. {
            while let Some(passed) = air.advance(at) {
                assert_eq!(([passed.from, passed.to], passed.bytes.len()), (ends, 500));
                assert_eq!(passed.bytes, [passed.bytes[0]; 500], "not another byte");
                came.push((passed.bytes[0], passed.at));
            }
            if at > until + Duration::from_secs(10) {
                break;
            }
            air.send(0, ends[0], ends[1], &[(number % 251) as u8; 500]);
            at += Duration::from_millis(100);
        }
        came
    }

    #[test]
    fn a_mesh_loses_in_bursts_and_is_calm_when_hostility_ends() {
        let (mut bursts, mut late) = (0, 0);
        for plan in (0..24).map(Plan::of) {
            let mut air = Air::of(&plan);
            let words = air.words();
            let came = send_through(&mut air, plan.hostile_until);
            let since = |seconds| plan.hostile_until + Duration::from_secs(seconds);
            // One datagram is sent every 100 ms.
            let after = came.iter().filter(|(_, at)| *at > since(2) && *at < since(10)).count();
            assert!(after >= 70, "seed {}: {after} of 80: {words}", plan.seed);
            let mut gaps = came.windows(2).map(|pair| pair[1].1.since(pair[0].1));
            bursts += usize::from(gaps.any(|gap| gap >= Duration::from_millis(1500)));
            late += usize::from(came.iter().any(|(number, at)| {
                let sent = (0..).map(|lap| Time(100_000_000 * (u64::from(*number) + 251 * lap)));
                at.since(sent.take_while(|sent| sent <= at).last().unwrap_or(*at)) > Duration::from_secs(1)
            }));
        }
        eprintln!("of 24 meshes {bursts} lose in bursts, {late} delay by more than 1 s");
        assert!(bursts >= 5 && late >= 1, "{bursts} {late}");
    }
}
