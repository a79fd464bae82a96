//! One run from its beginning to its end: two machines, the wire or a network between them, and the
//! faults.

use super::faults::{Fault, Moment, Mood};
use super::flow;
use super::network::{Network, Passed};
use super::plan::{Kind, Plan, stream};
use super::planner::Planner;
use super::side::{Side, StreamName, home};
use super::stream::{Application, Ending, compare, rests};
use super::tunnel::Tunnel;
use super::watch::{Sender, Watch};
use super::wire::{Arrival, Flight, Notice, Wire};
use super::{Broken, Run, Trail};
use crate::tpa::Security;
use meshpace_core::{Duration, Rng, Time};
use meshpace_session::connection::Report;
use meshpace_session::handshake::{InnerTransport, Kind as Message, Opening, stray, tag_of};
use meshpace_session::noise::key_of;
use meshpace_session::seal::number_of;
use meshpace_session::{Arrived, Port};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

/// Time after the last fault by which everything has ended. The longest times are:
///
/// - An opening may last 150 s, after a retransmission has waited for 60 s.
/// - The silence of a peer may last 120 s, after a retransmission has waited for 60 s.
/// - The peer of an application that is gone may continue for 60 s.
/// - TIME-WAIT lasts 10 s.
const LATEST: Duration = Duration::from_secs(600);

/// Time after the last fault by which no application waits for anything, whatever has failed.
pub(super) const LONGEST: Duration = Duration::from_secs(330);

/// Longest wait of an application in runs in which an observer forges and few datagrams are lost.
const SOON: Duration = Duration::from_secs(20);

/// Longest retransmission timeout (`rto.max`). If the wire was silent, the timeout may have been
/// doubled up to this value, and it has to expire first.
///
/// A peer that has moved and has nothing to send is found by its next probe. In runs with weather
/// the probe is sent after at most 71 s (`tpa::liveness`): a quarter of the time from the first
/// probe, after 15 s, to the end of the allowed silence of 300 s. Together with the second that a
/// move takes, this is less than the sum of this timeout and [`SOON`].
const TIMER: Duration = Duration::from_secs(60);

/// Time for which a network is advanced after no end has anything left to do, because datagrams in
/// flight may still arrive.
const LINGER: Duration = Duration::from_secs(30);

/// Maximum number of steps of a run.
const MOST_STEPS: u64 = 2_000_000;

/// Maximum number of datagrams that are stored for replay.
const KEPT: usize = 32;

/// Maximum number of messages that wait for the kernel, as in `meshpace_session::outbox`.
const OUTBOX: usize = 4096;

/// Bytes that a session promises to all streams together, as in `tunnel::session`.
const PROMISED: u64 = 64 << 20;
/// Bytes that a session promises to each stream at first, as in `tunnel::session`.
const FIRST: u64 = 16 << 10;

/// Length of the IPv4 and UDP headers in bytes.
const HEADERS: usize = 28;

/// Number of bytes of a handshake message that carry information: the head of a request and the
/// first key of Noise.
const OPENING: usize = 96;

/// Number of unknown hosts that one [`Fault::Crowd`] simulates.
const STRANGERS: u64 = 24;

/// State of a run.
pub(crate) struct World {
    plan: Plan,
    now: Time,
    sides: [Side; 2],
    wire: Wire,
    /// Network that replaces the wire for the datagrams that the ends send. Injected datagrams
    /// still arrive over the wire.
    network: Option<Box<dyn Network>>,
    /// Number of datagrams that entered the network, and number of those that left it.
    carried: [u64; 2],
    watch: Watch,
    planner: Planner,
    /// Randomness of loss, duplication and delay.
    weather: Rng,
    /// Randomness of the faults' effects.
    rng: Rng,
    /// Datagrams that connections have recently accepted, for replay.
    kept: Vec<Flight>,
    /// For each end: time until which the wire drops the datagrams from that end.
    dark_until: [Time; 2],
    mtu: usize,
    /// Time after which there are no more faults.
    calm: Time,
    /// Time at which anything last progressed or no application was waiting, and the amount of
    /// progress at that time.
    moved: (Time, u64),
    /// Time for which quiet trains may continue after the time limit of the other transports.
    carrying: Duration,
    /// True while everything sent has arrived and applications will send more later.
    rests: bool,
    /// All addresses that the ends have had.
    addresses: BTreeSet<SocketAddr>,
    trail: Trail,
    run: Run,
}

impl World {
    pub(crate) fn new(plan: Plan, network: Option<Box<dyn Network>>, trail: Trail) -> World {
        let sides = [0, 1].map(|end| Side::new(&plan, end));
        let sealed = plan.protected().sealed;
        World {
            now: Time::ZERO,
            wire: Wire::default(),
            network,
            carried: [0; 2],
            watch: Watch::new(sealed, plan.settings[0].key_life),
            planner: Planner::new(&plan),
            weather: stream(plan.seed, 1),
            rng: stream(plan.seed, 2),
            kept: Vec::new(),
            dark_until: [Time::ZERO; 2],
            mtu: 65_535,
            calm: plan.hostile_until,
            moved: (Time::ZERO, 0),
            carrying: Duration::ZERO,
            rests: false,
            addresses: sides.iter().map(|side| side.address).collect(),
            sides,
            trail,
            run: Run::empty(plan.seed, plan.mood),
            plan,
        }
    }

    /// Makes the run and returns its result.
    pub(crate) fn run(mut self) -> Run {
        if let Some(words) = self.network.as_ref().map(|network| network.words()) {
            self.tell(|| words);
        }
        self.sides[0].open(&self.plan, Time::ZERO);
        self.drain();
        let mut steps = 0;
        while self.run.broken.is_none() && self.step() {
            steps += 1;
            if steps >= MOST_STEPS {
                self.breaks("a run comes to an end", String::new());
            }
        }
        if self.run.broken.is_none() {
            self.judge();
        }
        self.run.virtual_time = self.now.since(Time::ZERO);
        self.run.lost += self.carried[0].saturating_sub(self.carried[1]);
        self.run
    }

    fn breaks(&mut self, invariant: &str, more: String) {
        let at = self.now.as_secs_f64();
        self.run
            .broken
            .get_or_insert_with(|| Broken { invariant: invariant.to_owned(), detail: format!("at {at:.3} s{more}") });
    }

    fn tell(&mut self, what: impl FnOnce() -> String) {
        if self.trail >= Trail::Faults {
            self.run.trail.push(format!("{:10.4} s  {}", self.now.as_secs_f64(), what()));
        }
    }

    fn tell_packet(&mut self, end: usize, moment: Moment, flight: &Flight, what: &str) {
        if self.trail == Trail::Packets {
            let tag = tag_of(&flight.bytes).unwrap_or(0) >> 48;
            let Flight { from, to, bytes, .. } = flight;
            let number = number_of(bytes).filter(|_| tag != 0 && self.plan.protected().sealed).unwrap_or(0);
            let length = bytes.len();
            self.tell(|| {
                format!("end {end} {from} > {to} tag {tag:04x} number {number} {length} B {} {what}", moment.name())
            });
        }
    }

    /// Advances to the next event and handles it. Returns false if there are no more events.
    fn step(&mut self) -> bool {
        let mut next = self.sides.iter().map(|side| side.next_wakeup(self.now)).fold(self.wire.next(), Time::min);
        let until = if next == Time::NEVER { self.now + LINGER } else { self.now.max(next) };
        let passed = self.network.as_mut().and_then(|network| network.advance(until));
        next = passed.as_ref().map_or(next, |passed| passed.at);
        if next == Time::NEVER {
            return false;
        }
        self.now = self.now.max(next);
        let now = self.now;
        if let Some(Passed { from, to, bytes, .. }) = passed {
            self.carried[1] += 1;
            self.deliver(Flight { from, to, bytes, forged: false });
            self.drain();
        }
        while let Some(arrival) = self.wire.arrival(now) {
            match arrival {
                Arrival::Datagram(flight) => self.deliver(flight),
                Arrival::Departure(end, flight) => self.carry(end, &flight),
                Arrival::Notice(Notice { from, to, quoted, report }) => {
                    let World { sides, plan, .. } = self;
                    if let Some(side) = sides.iter_mut().find(|side| side.address == from) {
                        side.complain(plan, now, to, &quoted, report);
                    }
                }
            }
            self.drain();
        }
        for end in 0..2 {
            self.sides[end].wake(&self.plan, now);
            self.drain();
        }
        self.end_flows();
        self.check();
        true
    }

    /// Checks the invariants that hold at all times.
    fn check(&mut self) {
        let now = self.now;
        for end in 0..2 {
            let side = &mut self.sides[end];
            if let Some(why) = side.broken.take() {
                return self.breaks("no end contradicts itself or its peer", format!(": end {end}: {why}"));
            }
            let limits = side.port.settings().limits;
            let (unfinished, connections) = side.port.endpoint.in_use();
            let full = side.port.out.full.len();
            let places = unfinished <= limits.half_open && connections <= limits.connections;
            let is_kept = side.port.endpoint.unfinished() <= limits.half_open;
            let bounded = side.tunnels().iter().all(|tunnel| {
                let (incoming, _, promised) = tunnel.kept();
                incoming <= promised && promised <= PROMISED + FIRST * tunnel.streams.len() as u64
            });
            let few_datagrams = side.tunnels().iter().all(Tunnel::few_datagrams_wait);
            if !(places && is_kept && bounded && few_datagrams && full <= OUTBOX) {
                return self.breaks("memory is bounded", format!(": end {end}: {unfinished} {connections} {full}"));
            }
            let addresses = &self.addresses;
            let elsewhere = self.plan.protected().sealed
                && side.port.parties.values().any(|party| !addresses.contains(&party.session.peer()));
            if elsewhere {
                return self.breaks("nobody else moves a connection", format!(": end {end}"));
            }
        }
        let progress = self.sides[0].progress() + self.sides[1].progress();
        let is_waiting = self.sides.iter().any(Side::is_waiting);
        if self.rests {
            self.rests = self.is_resting();
            self.moved = (now, progress);
        }
        if progress != self.moved.1 || !is_waiting {
            let waited = now.since(self.moved.0.max(self.calm));
            if self.moved.1 != progress && now > self.calm {
                self.run.longest_wait = self.run.longest_wait.max(waited);
            }
            self.moved = (now, progress);
            self.rests = self.is_resting();
        }
        if now.since(self.calm) > LONGEST {
            self.carrying = self.carrying.max(self.trains_take());
        }
        if now > self.calm && is_waiting {
            let waited = now.since(self.moved.0.max(self.calm));
            let bound = match self.plan.mood {
                Mood::Observer => SOON,
                Mood::Weather if self.waits_for_news_alone() => LONGEST,
                Mood::Weather => TIMER + SOON,
                Mood::Rough | Mood::Hostile => LONGEST,
            };
            if waited > bound {
                let waited = waited.as_secs_f64();
                let who = [self.sides[0].waiting(now), self.sides[1].waiting(now)].concat();
                return self
                    .breaks("nobody alive waits longer than stated", format!(": {waited:.1} s: {}", who.join("; ")));
            }
            if now.since(self.calm) > LONGEST + self.carrying {
                let who = [self.sides[0].waiting(now), self.sides[1].waiting(now)].concat();
                return self.breaks("whose peer is gone hears of it", format!(": {}", who.join("; ")));
            }
        }
        if now.since(self.calm) > LATEST + self.carrying {
            self.breaks("a run comes to an end", String::new());
        }
    }

    /// True if all other streams are finished and only the listener has not learnt so from a peer
    /// that has moved. A reset is not repeated, and a peer that has ended does not show its new
    /// address. Datagrams to the old address reach no host. The listener therefore detects the end
    /// by silence, for which runs with weather allow 300 s.
    fn waits_for_news_alone(&self) -> bool {
        let [opener, listener] = &self.sides;
        let waits = |one: &Application| one.ending == Ending::None;
        opener.address != home(0) && !opener.is_waiting() && !listener.applications().into_values().any(waits)
    }

    /// Longest time that quiet trains need for the data they carry. An attacker who can read a
    /// request can make their segments short.
    fn trains_take(&self) -> Duration {
        let parties = self.sides.iter().flat_map(|side| side.port.parties.values());
        let trains = parties.filter(|party| party.session.inner() == InnerTransport::Trains);
        trains.map(|party| self.plan.carrying(party.session.payload())).max().unwrap_or(Duration::ZERO)
    }

    /// The other end of a session; `None` if the session has ended there.
    fn other_of(&self, tunnel: &Tunnel) -> Option<&Tunnel> {
        self.sides[1].tunnels().iter().find(|other| other.failure.is_none() && tunnel.is_other_of(other))
    }

    /// Allows sessions to end if all datagrams of their flows have been sent and received.
    fn end_flows(&mut self) {
        let now = self.now;
        if self.plan.flows.is_empty() {
            return;
        }
        let rests = |tunnel: &Tunnel| {
            let other = self
                .other_of(tunnel)
                .filter(|other| tunnel.flows_act_at() == Time::NEVER && other.flows_act_at() == Time::NEVER);
            other.is_some_and(|other| tunnel.flows_rest_with(now, other))
        };
        let open = self.sides[0].tunnels().iter().filter(|tunnel| tunnel.failure.is_none());
        let rest: Vec<bool> = open.map(|tunnel| tunnel.flows_rest || rests(tunnel)).collect();
        let mut is_new = false;
        for (tunnel, rests) in self.sides[0].open_tunnels().zip(rest) {
            is_new |= rests && !std::mem::replace(&mut tunnel.flows_rest, rests);
        }
        if is_new {
            self.sides[0].wake(&self.plan, now);
            self.drain();
        }
    }

    /// True if applications wait only for the time at which they write more.
    fn is_resting(&self) -> bool {
        let now = self.now;
        let all = [self.sides[0].applications(), self.sides[1].applications()];
        let names: BTreeSet<&StreamName> = all.iter().flat_map(BTreeMap::keys).collect();
        let goes_on = all.iter().flat_map(BTreeMap::values).any(|one| one.goes_on(now));
        let flows_go_on = self.sides.iter().flat_map(Side::tunnels).any(|tunnel| {
            let at = tunnel.flows_act_at();
            at > now && at != Time::NEVER && tunnel.failure.is_none()
        });
        (goes_on || flows_go_on || self.sides[0].opens_later(now))
            && self.sides[0].tunnels().iter().filter(|tunnel| tunnel.failure.is_none()).all(|tunnel| {
                tunnel.flows_rest || self.other_of(tunnel).is_some_and(|other| tunnel.flows_rest_with(now, other))
            })
            && names.iter().all(|name| rests(now, [0, 1].map(|end| all[end].get(name).copied())))
    }

    /// Handles the arrival of a datagram.
    fn deliver(&mut self, flight: Flight) {
        let now = self.now;
        let Flight { from, to, forged, .. } = flight;
        let Some(end) = self.sides.iter().position(|side| side.address == to) else { return };
        if now < self.sides[end].dead_until {
            // Half of all machines report that the port is not in use.
            if self.rng.below(2) == 0 {
                let quoted = flight.bytes[..flight.bytes.len().min(64)].to_vec();
                let notice = Notice { from, to, quoted, report: Report::Refused };
                self.wire.put(now + self.plan.delay, Arrival::Notice(notice));
            }
            return;
        }
        let is_opening = tag_of(&flight.bytes).is_none_or(|tag| tag == 0);
        let is_moving = self.sides[end].port.parties.values().any(|party| party.session.is_moving());
        let is_elsewhere = !self.addresses.contains(&from);
        let looks = forged && !is_opening && !is_moving && !is_elsewhere && self.plan.protected().sealed;
        let looks = looks && self.sides[end].runs(now) && self.rng.below(4) == 0;
        // The whole state is compared: a datagram that the peer did not send, or sent before, must
        // not change anything in a connection.
        let state =
            |side: &Side| format!("{:?}", side.port.parties.values().map(|party| &party.session).collect::<Vec<_>>());
        let before = looks.then(|| state(&self.sides[end]));
        let unfinished = self.sides[end].port.endpoint.unfinished();
        let kept = (!forged).then(|| flight.clone());
        let arrived = self.sides[end].arrive(&self.plan, now, flight);
        if let Some(kept) = kept.filter(|_| matches!(arrived, Some(Arrived::Told(_) | Arrived::Accepted(_)))) {
            if self.kept.len() == KEPT {
                let place = self.rng.below(KEPT as u64) as usize;
                self.kept.swap_remove(place);
            }
            self.kept.push(kept);
        }
        if let (Some(before), Some(Arrived::Refused)) = (&before, arrived)
            && *before != state(&self.sides[end])
        {
            self.breaks("what nobody sent changes nothing", String::new());
        }
        if forged && is_opening && self.sides[end].port.endpoint.unfinished() > unfinished {
            self.breaks("a cookie is good for its request alone, and from its address", String::new());
        }
        if before.is_some() && matches!(arrived, Some(Arrived::Told(_))) {
            self.breaks("what nobody sent is nobody's", String::new());
        }
    }

    /// Sends the waiting datagrams of both ends.
    fn drain(&mut self) {
        let now = self.now;
        for end in 0..2 {
            let side = &mut self.sides[end];
            if now < side.full_until || !side.runs(now) {
                continue;
            }
            let from = side.address;
            let leaving = side.port.leaving();
            let mut noted = if leaving.is_empty() { None } else { side.take_noted() };
            for (to, bytes) in leaving {
                // A fault may have ended the process meanwhile.
                if !self.sides[end].runs(now) {
                    return;
                }
                self.depart(end, Flight { from, to, bytes, forged: false }, noted.take());
            }
        }
    }

    /// Handles a datagram that an end sends.
    fn depart(&mut self, end: usize, flight: Flight, noted: Option<Moment>) {
        let now = self.now;
        if !self.addresses.contains(&flight.to) {
            // The datagram is for an unknown host, which does not receive it, or for an address
            // that a host had before.
            return;
        }
        self.run.packets += 1;
        let tag = tag_of(&flight.bytes).unwrap_or(0);
        let side = &self.sides[end];
        let party = side.port.parties.values().find(|party| party.session.peer_tag() == Some(tag));
        let is_closed = party.is_some_and(|party| party.exchange.window_closed)
            || self.sides[1 - end]
                .port
                .parties
                .values()
                .any(|party| party.session.tag() == tag && party.exchange.window_closed);
        let sender = Sender {
            inner: party.filter(|party| !party.session.is_over()).map(|party| party.session.inner()),
            key: side.port.keys().get(&tag).copied(),
            noted,
            is_closed,
        };
        let moment = match self.watch.see(now, &flight.bytes, &sender) {
            Ok(moment) => moment,
            Err(invariant) => return self.breaks(invariant, format!(": end {end}")),
        };
        self.run.moments[moment as usize] += 1;
        let mut passes = true;
        if self.plan.observed && now < self.plan.hostile_until && !moment.is_opening() {
            self.complain_thrice(&flight);
        }
        if let Some(fault) = self.planner.next(now, moment)
            && let Some(stays) = self.suffer(end, fault, moment, &flight)
        {
            passes = stays;
            self.planner.on_done(fault, moment);
            self.run.hit(moment, fault);
            self.tell(|| format!("{} at {} of end {end}", fault.name(), moment.name()));
        }
        // A network loses, duplicates and delays datagrams on its own.
        let hostile = now < self.plan.hostile_until && self.network.is_none();
        let is_lost = hostile && self.weather.uniform() < self.plan.loss;
        let is_doubled = hostile && self.weather.uniform() < self.plan.doubling;
        let later = if hostile { (self.weather.uniform() * self.plan.jitter.0 as f64) as u64 } else { 0 };
        let too_long = flight.bytes.len() + HEADERS > self.mtu;
        if !passes || is_lost || too_long || now < self.dark_until[end] {
            self.run.lost += 1;
            self.tell_packet(end, moment, &flight, "lost");
            return self.watch.on_lost(&flight.bytes);
        }
        self.tell_packet(end, moment, &flight, "");
        if self.network.is_some() {
            return self.carry(end, &flight);
        }
        let at = now + self.plan.delay + Duration(later);
        if is_doubled {
            self.wire.put(at + Duration(later / 2 + 1), Arrival::Datagram(flight.clone()));
        }
        self.wire.put(at, Arrival::Datagram(flight));
    }

    /// The observer sends the sender of a datagram every kind of false message that the datagram
    /// cannot be delivered.
    fn complain_thrice(&mut self, flight: &Flight) {
        let at = self.now + Duration(1);
        let tag = tag_of(&flight.bytes).unwrap_or(0);
        for _ in 0..3 {
            let stray = Flight { from: flight.to, to: flight.from, bytes: stray(tag).to_vec(), forged: true };
            self.wire.put(at, Arrival::Datagram(stray));
            for report in [Report::Refused, Report::TooLong { mtu: 100 }, Report::HostUnreachable] {
                self.notice(at, flight, report);
            }
        }
    }

    /// Passes a datagram to the network.
    fn carry(&mut self, end: usize, flight: &Flight) {
        if let Some(network) = &mut self.network {
            self.carried[0] += 1;
            network.send(end, flight.from, flight.to, &flight.bytes);
        }
    }

    /// Delays a datagram of an end until `at`.
    fn hold_back(&mut self, at: Time, end: usize, flight: &Flight) {
        let flight = flight.clone();
        match self.network {
            Some(_) => self.wire.put(at, Arrival::Departure(end, flight)),
            None => self.wire.put(at + self.plan.delay, Arrival::Datagram(flight)),
        }
    }

    fn notice(&mut self, at: Time, flight: &Flight, report: Report) {
        let quoted = flight.bytes[..flight.bytes.len().min(64)].to_vec();
        self.wire.put(at, Arrival::Notice(Notice { from: flight.from, to: flight.to, quoted, report }));
    }

    /// Records that a fault lasts until `until`. Returns `until`.
    fn until(&mut self, until: Time) -> Time {
        self.calm = self.calm.max(until);
        until
    }

    fn seconds(&mut self, least: f64, most: f64) -> Duration {
        Duration((self.rng.uniform_in(least, most) * 1e9) as u64)
    }

    /// Applies `fault` to a datagram that is being sent. Returns whether the datagram is still
    /// sent, or `None` if the fault cannot be applied now.
    fn suffer(&mut self, end: usize, fault: Fault, moment: Moment, flight: &Flight) -> Option<bool> {
        let now = self.now;
        let rough = self.plan.mood == Mood::Rough;
        let soon = now + self.plan.delay;
        let mut forged = Flight { forged: true, ..flight.clone() };
        let sides = [end, 1 - end];
        match fault {
            Fault::Drop => {
                self.until(now + Duration::from_secs(1));
                return Some(false);
            }
            Fault::Outage => {
                let span = self.seconds(0.1, if rough { 40.0 } else { 8.0 });
                let until = self.until(now + span);
                let both = self.rng.below(2) == 0;
                self.dark_until[end] = until;
                if both {
                    self.dark_until[1 - end] = until;
                }
                return Some(false);
            }
            Fault::Repeat => {
                for _ in 0..=self.rng.below(3) {
                    let later = self.seconds(0.0, 3.0);
                    self.hold_back(now + later, end, flight);
                }
            }
            Fault::Delay => {
                let most = if self.plan.mood == Mood::Observer { 1.0 } else { 5.0 };
                let span = self.seconds(0.05, most);
                self.until(soon + span);
                self.hold_back(now + span, end, flight);
                return Some(false);
            }
            Fault::Corrupt => {
                // The rest of a handshake message is padding.
                let most = if moment.is_opening() { OPENING } else { usize::MAX };
                let bit = self.rng.below(8 * flight.bytes.len().min(most) as u64) as usize;
                forged.bytes[bit / 8] ^= 1 << (bit % 8);
                // The copy still is the same request if only bits changed that its cookie does not
                // protect.
                let said = |bytes: &[u8]| {
                    let (said, noise) = Opening::decode(bytes)?;
                    Some((said.kind, said.prologue(), said.inner(), said.cookie, key_of(noise).to_vec()))
                };
                forged.forged = !moment.is_opening() || said(&forged.bytes) != said(&flight.bytes);
                let at = self.near();
                self.wire.put(at, Arrival::Datagram(forged));
            }
            Fault::Cut => {
                let length = self.rng.below(flight.bytes.len() as u64) as usize;
                forged.bytes.truncate(length);
                let at = self.near();
                self.wire.put(at, Arrival::Datagram(forged));
            }
            Fault::Replay => {
                let later = self.seconds(0.1, 20.0);
                self.wire.put(soon + later, Arrival::Datagram(flight.clone()));
                if !self.kept.is_empty() {
                    let which = self.rng.below(self.kept.len() as u64) as usize;
                    let old = Flight { forged: true, ..self.kept[which].clone() };
                    if tag_of(&old.bytes) != Some(0) {
                        self.wire.put(soon, Arrival::Datagram(old));
                    }
                }
            }
            Fault::Elsewhere => {
                forged.from = SocketAddr::from(([10, 0, 0, 66], 66));
                let at = self.near();
                self.wire.put(at, Arrival::Datagram(forged));
            }
            Fault::Stray => {
                let tag = tag_of(&flight.bytes).filter(|tag| *tag != 0)?;
                for _ in 0..3 {
                    let stray = Flight { from: flight.to, to: flight.from, bytes: stray(tag).to_vec(), forged: true };
                    self.wire.put(now + Duration(1), Arrival::Datagram(stray));
                }
            }
            Fault::Refuse => {
                let (asked, _) = Opening::decode(&flight.bytes)?;
                let (from, to) = if end == 0 { (flight.to, flight.from) } else { (flight.from, flight.to) };
                let acceptor = self.rng.below(2);
                let refusal = Opening { kind: Message::Refusal, acceptor, cookie: Default::default(), ..asked };
                let bytes = refusal.encode(&[], 0);
                self.wire.put(now + Duration(1), Arrival::Datagram(Flight { from, to, bytes, forged: true }));
            }
            Fault::Guess => {
                let length = 1 + self.rng.below(200);
                forged.bytes = (0..length).map(|_| self.rng.below(256) as u8).collect();
                forged.bytes[0] |= 1;
                self.wire.put(soon, Arrival::Datagram(forged));
            }
            Fault::NoPort => self.notice(now + Duration(1), flight, Report::Refused),
            Fault::NoRoute => self.notice(now + Duration(1), flight, Report::HostUnreachable),
            Fault::TooBig => {
                let mtu = 68 + self.rng.below(1400) as u32;
                self.notice(now + Duration(1), flight, Report::TooLong { mtu });
            }
            Fault::Crash | Fault::CrashPeer => {
                let whose = sides[usize::from(fault == Fault::CrashPeer)];
                let span = self.seconds(0.0, 10.0);
                let until = self.until(now + span);
                self.sides[whose].crash(until.max(now + Duration(1)));
            }
            Fault::Abort | Fault::AbortPeer => {
                let whose = sides[usize::from(fault == Fault::AbortPeer)];
                if !self.sides[whose].runs(now) {
                    return None;
                }
                let World { sides, plan, .. } = self;
                sides[whose].abort(plan, now);
            }
            Fault::Stop | Fault::StopPeer => {
                let whose = sides[usize::from(fault == Fault::StopPeer)];
                let span = self.seconds(0.01, if rough { 60.0 } else { 8.0 });
                let until = self.until(now + span);
                self.sides[whose].stopped_until = self.sides[whose].stopped_until.max(until);
            }
            Fault::FullBuffer => {
                let span = self.seconds(0.01, if rough { 20.0 } else { 4.0 });
                self.sides[end].full_until = self.until(now + span);
            }
            Fault::SlowReader => {
                let span = self.seconds(0.1, 20.0);
                self.sides[1 - end].reads_from = self.until(now + span);
            }
            Fault::SlowWriter => {
                let span = self.seconds(0.1, 20.0);
                self.sides[end].writes_from = self.until(now + span);
            }
            Fault::Move => return self.relocate(),
            Fault::Unlisten => {
                let span = self.seconds(0.01, 3.0);
                self.sides[1].unlistened_until = self.until(now + span);
                self.sides[1].port.set_listens(false);
            }
            Fault::Crowd => self.crowd()?,
            Fault::Narrow => self.mtu = [1300, 600][self.rng.below(2) as usize],
        }
        let _ = moment;
        Some(true)
    }

    /// Random time from now until some time after a datagram that is sent now arrives.
    fn near(&mut self) -> Time {
        let span = 2 * self.plan.delay.0 + 1_000_000;
        self.now + Duration(self.rng.below(span))
    }

    /// Gives the opening end another address.
    fn relocate(&mut self) -> Option<bool> {
        let now = self.now;
        let known = |side: &Side| {
            let parties = side.port.parties.values();
            parties.filter(|party| party.exchange.is_open()).map(|party| party.session.tag()).collect::<BTreeSet<_>>()
        };
        let (ours, theirs) = (known(&self.sides[0]), known(&self.sides[1]));
        let all = self.sides[0]
            .port
            .parties
            .values()
            .all(|party| party.session.peer_tag().is_some_and(|tag| theirs.contains(&tag)));
        // The other end can follow only once it has the connection.
        if self.plan.mood != Mood::Rough && (ours.is_empty() || !all) {
            return None;
        }
        let address = SocketAddr::from(([10, 0, 1, 1 + self.rng.below(200) as u8], 4000));
        self.sides[0].address = address;
        self.addresses.insert(address);
        self.until(now + Duration::from_secs(40));
        if self.rng.below(2) == 0 {
            // The tunnel does the same when it detects a new local address.
            self.sides[0].port.parties.values_mut().for_each(|party| party.exchange.wishes.probe = true);
        }
        Some(true)
    }

    /// Lets unknown hosts begin handshakes at the listener, answer its challenges, and receive
    /// nothing more.
    fn crowd(&mut self) -> Option<()> {
        let now = self.now;
        if !self.sides[1].runs(now) {
            return None;
        }
        let settings = &self.plan.settings[0];
        if !matches!(settings.security, Security::Plain | Security::Opportunistic) {
            return None;
        }
        let network = self.rng.below(200) as u8;
        for number in 0..STRANGERS {
            let from = SocketAddr::from(([172, 16, network, number as u8], 5000));
            let rng = stream(self.plan.seed, 1000 + number);
            let mut stranger: Port<()> = Port::seeded(now, from, settings.clone(), rng, false);
            let id = stranger.open_seeded(now, home(1), settings.inner(), |_| ());
            stranger.work(id, now);
            for _ in 0..2 {
                for (_, bytes) in stranger.leaving() {
                    let flight = Flight { from, to: home(1), bytes, forged: true };
                    self.sides[1].arrive(&self.plan, now, flight);
                }
                let (to_strangers, others): (Vec<_>, Vec<_>) =
                    self.sides[1].port.leaving().into_iter().partition(|(to, _)| *to == from);
                for (to, bytes) in others {
                    self.wire.put(
                        now + self.plan.delay,
                        Arrival::Datagram(Flight { from: home(1), to, bytes, forged: false }),
                    );
                }
                for (_, mut bytes) in to_strangers {
                    if matches!(Opening::decode(&bytes), Some((Opening { kind: Message::Challenge, .. }, _))) {
                        stranger.receive(now, home(1), &mut bytes, |_| ());
                    }
                }
            }
        }
        Some(())
    }

    /// Checks the invariants that hold at the end of a run.
    fn judge(&mut self) {
        for end in 0..2 {
            let port = &self.sides[end].port;
            let left = (port.parties.len(), port.endpoint.unfinished(), port.endpoint.connections().count());
            if left != (0, 0, 0) || port.endpoint.in_use() != (0, 0) {
                let in_use = port.endpoint.in_use();
                return self.breaks("all places are given back", format!(": end {end}: {left:?} {in_use:?}"));
            }
        }
        // The values are copied, because the run is changed meanwhile.
        let all = [0, 1].map(|end| {
            let side: &Side = &self.sides[end];
            side.applications().into_iter().map(|(name, one)| (name, one.told())).collect::<BTreeMap<_, _>>()
        });
        let names: BTreeSet<StreamName> = all.iter().flat_map(BTreeMap::keys).copied().collect();
        let crowded = self.run.faults[Fault::Crowd as usize] > 0;
        for name in &names {
            let [opener, acceptor] = [all[0].get(name), all[1].get(name)];
            if let Err(invariant) = compare([opener, acceptor]) {
                return self.breaks(invariant, format!(": {name:?}: {opener:?} {acceptor:?}"));
            }
            if opener.is_none() && acceptor.is_some_and(|one| one.read > 0 || !crowded) {
                return self.breaks("a request that is played again opens nothing", format!(": {name:?}"));
            }
            self.run.streams += 1;
            for one in [opener, acceptor].into_iter().flatten() {
                self.run.bytes += one.read;
                if let Ending::Failed(why) = &one.ending {
                    self.run.failures += 1;
                    self.tell(|| format!("{name:?} ends: {why}"));
                }
            }
        }
        let gentle = self.plan.mood != Mood::Rough;
        let flows = [0, 1].map(|end| self.sides[end].flows());
        let keys: BTreeSet<_> = flows.iter().flat_map(BTreeMap::keys).copied().collect();
        if gentle && keys.len() != self.plan.flows.len() {
            return self.breaks("all that was to begin has begun", format!(": {} flows", keys.len()));
        }
        for key in keys {
            let ends = [0, 1].map(|end| flows[end].get(&key));
            if let Err(invariant) = flow::compare(ends, gentle) {
                return self.breaks(invariant, format!(": {key:?}: {ends:?}"));
            }
            self.run.datagrams += ends.into_iter().flatten().map(|one| one.came).sum::<u64>();
        }
        if gentle {
            self.judge_gentle(&all, &names);
        }
    }

    /// Checks that nothing has failed in a run whose faults allow no failure.
    fn judge_gentle(&mut self, all: &[BTreeMap<StreamName, Application>; 2], names: &BTreeSet<StreamName>) {
        let expected = match self.plan.kind {
            Kind::Stream(_) => 1,
            Kind::Tunnel(_) => self.plan.streams.len(),
        };
        let met = names.iter().filter(|name| all[0].contains_key(name)).count();
        if met != expected {
            return self.breaks("all that was to begin has begun", format!(": {met} of {expected}"));
        }
        for name in names {
            let [Some(opener), acceptor] = [all[0].get(name), all[1].get(name)] else { continue };
            let breaks = opener.aborted || acceptor.is_some_and(|one| one.aborted);
            let has_all = |own: &Application, peer: &Application| own.read == peer.habits.all() && own.saw_end;
            let arrived = acceptor.is_some_and(|acceptor| has_all(opener, acceptor) && has_all(acceptor, opener));
            let is_well = opener.ending == Ending::Well || acceptor.is_some_and(|one| one.ending == Ending::Well);
            if !(breaks || (arrived && is_well)) {
                return self.breaks(
                    "what only had bad weather or an observer arrives",
                    format!(": {name:?}: {opener:?} {acceptor:?}"),
                );
            }
        }
    }
}
