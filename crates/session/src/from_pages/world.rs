//! One run of a plan in virtual time: a listener, the ports that open connections to it, their
//! applications, and the network.

use super::application::{Application, End};
use super::codec::{is_piece, number, tag};
use super::hostile::{self, happens};
use super::memory;
use super::monitor::Monitor;
use super::plan::{Hostile, Kind, Observer, Plan, Protection, SOURCES, Talk};
use super::wire::{Datagram, Wire};
use crate::cipher::Cipher;
use crate::port::{Arrived, Port};
use crate::security::Security;
use crate::settings::carrying;
use crate::settings::{Limits, Settings};
use meshpace_core::rng::{Purpose, Rng};
use meshpace_core::{Duration, Time};
use meshpace_transport::tpa;
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// Number of the listener among the ports. The others open connections.
pub(super) const LISTENER: usize = 0;

/// Time by which every connection has ended by itself: 50 s until the network is calm, 300 s of
/// silence, and time to spare.
const ENDED: Time = Time(600_000_000_000);

/// Time by which a port has forgotten all connections. The remaining ones were reset at [`ENDED`].
const FORGOTTEN: Time = Time(1_000_000_000_000);

/// Time from which on the network loses nothing at random.
const CALM: Time = Time(50_000_000_000);

/// Time at which strangers stop beginning handshakes. Every talk begins earlier.
const FLOOD_ENDS: Time = Time(8_000_000_000);

/// Number of steps at the same virtual time after which a run counts as endless.
const MOST_AT_ONCE: u32 = 20_000;

/// Number of datagrams in flight above which a run counts as endless. It is more than all windows
/// of all ends hold.
const MOST_UNDER_WAY: usize = 100_000;

/// Action of the plan that is due at a time.
#[derive(Clone, Copy, Debug)]
enum Action {
    Start(usize),
    Happen(Kind),
    Listen,
    Flood,
}

/// Checks of a world while it runs.
#[derive(Clone, Copy)]
pub(super) struct Checks {
    /// Checks after every event.
    pub(super) always: fn(&mut World<'_>),
    /// Checks before the remaining connections are reset.
    pub(super) before_the_end: fn(&mut World<'_>),
    /// Checks after the last event.
    pub(super) at_the_end: fn(&mut World<'_>),
}

/// The state of a run.
pub(super) struct World<'a> {
    checks: Checks,
    pub(super) plan: &'a Plan,
    pub(super) now: Time,
    pub(super) ports: Vec<Port<Application>>,
    /// Present addresses of the ports, as the network sees them.
    pub(super) addresses: Vec<SocketAddr>,
    moves: u16,
    pub(super) wire: Wire,
    pub(super) monitor: Monitor,
    pub(super) rng: Rng,
    peers: Vec<hostile::Peer>,
    agenda: BTreeMap<(Time, usize), Action>,
    /// Talks by the opener's tag.
    talks: BTreeMap<u64, usize>,
    /// Applications of both ends of the talks that are over.
    pub(super) ended: Vec<[Option<Application>; 2]>,
    /// Whether each end of each talk has been open.
    opened: Vec<[bool; 2]>,
    /// Whether a process of each talk has restarted after the talk began.
    pub(super) cut: Vec<bool>,
    pub(super) started: Vec<Option<Time>>,
    /// A first request, which strangers copy.
    pub(super) template: Option<Vec<u8>>,
    pub(super) broken: Vec<String>,
    /// Hash of every datagram that has left, with its time and its destination port.
    pub(super) digest: u64,
}

fn settings(plan: &Plan, port: usize) -> Settings {
    let own = |port: usize| [port as u8 + 1; 32];
    let security = match plan.protection {
        Protection::Plain => Security::Plain,
        Protection::Opportunistic => Security::Opportunistic,
        Protection::Shared => Security::Shared([9; 32]),
        Protection::Known => {
            let others = if port == LISTENER { 1..=SOURCES } else { LISTENER..=LISTENER };
            Security::Keys { own: own(port), peers: others.map(|port| Security::public_key(&own(port))).collect() }
        }
    };
    let limits = match plan.are_limits_tight {
        false => Limits::default(),
        true => Limits {
            connections: 4,
            connections_per_source: 2,
            half_open: 8,
            half_open_per_source: 4,
            handshakes_per_second: 16,
            ..Limits::default()
        },
    };
    let carried = carrying(plan.carried);
    // "Over IPv4 and an MTU of 1500 bytes, 1452 (plain) or 1428 (encrypted) are left of the paper's
    // 1460 bytes."
    let segment = if plan.protection == Protection::Plain { 1452 } else { 1428 };
    Settings {
        transport: tpa::Config { segment, ..carried.transport.clone() },
        security,
        limits,
        aes: if port == LISTENER { plan.aes.1 } else { plan.aes.0 },
        key_life: plan.key_life,
        connect_timeout: Duration::from_secs(150),
        silence_timeout: Duration::from_secs(300),
        ..carried
    }
}

/// The actions by their time and their place in the plan, and the time spans in which nothing
/// arrives.
type Agenda = (BTreeMap<(Time, usize), Action>, Vec<(Time, Time)>);

fn agenda(plan: &Plan) -> Agenda {
    let time = |ms: u64| Time(ms * 1_000_000);
    let mut agenda: Vec<_> =
        plan.talks.iter().enumerate().map(|(at, talk)| (time(talk.starts_ms), Action::Start(at))).collect();
    let mut blackouts = Vec::new();
    for incident in &plan.incidents {
        let at = time(incident.at_ms);
        match incident.kind {
            Kind::Blackout { for_ms } => blackouts.push((at, time(incident.at_ms + for_ms))),
            Kind::NoListener { for_ms } => {
                agenda.push((at, Action::Happen(incident.kind)));
                agenda.push((time(incident.at_ms + for_ms), Action::Listen));
            }
            kind => agenda.push((at, Action::Happen(kind))),
        }
    }
    if plan.flood > 0 {
        agenda.push((Time(1_000_000), Action::Flood));
    }
    (agenda.into_iter().enumerate().map(|(at, (time, action))| ((time, at), action)).collect(), blackouts)
}

/// True if the observer adds anything to the network.
pub(super) fn is_active(observer: &Observer) -> bool {
    let Observer { altered, altered_openings, replayed, overtaken, complaints, invented } = *observer;
    altered + altered_openings + replayed + overtaken + complaints + invented > 0
}

/// True if the bytes of a talk must be those of its two applications: no end is hostile, and the
/// observer cannot forge anything.
pub(super) fn is_judged(plan: &Plan, talk: &Talk) -> bool {
    let is_protected = plan.protection != Protection::Plain || !is_active(&plan.observer);
    is_protected && talk.hostile.is_none() && plan.hostile_listener.is_none()
}

impl<'a> World<'a> {
    pub(super) fn new(plan: &'a Plan, checks: Checks) -> World<'a> {
        let rng = |index| Rng::stream(plan.seed, Purpose::Test, index);
        let address = |port: usize| match port {
            LISTENER => SocketAddr::from(([10, 0, 0, 1], 4000)),
            port => SocketAddr::from(([10, 1, port as u8, 1], 5000)),
        };
        let addresses: Vec<_> = (0..=SOURCES).map(address).collect();
        let port = |port: usize| {
            Port::seeded(Time::ZERO, addresses[port], settings(plan, port), rng(port as u64), port == LISTENER)
        };
        let (agenda, blackouts) = agenda(plan);
        World {
            checks,
            plan,
            now: Time::ZERO,
            ports: (0..=SOURCES).map(port).collect(),
            addresses,
            moves: 0,
            wire: Wire::new(plan.path, plan.observer, blackouts, CALM, rng(100)),
            monitor: Monitor::new(plan),
            rng: rng(101),
            peers: (0..=SOURCES).map(|_| hostile::Peer::default()).collect(),
            agenda,
            talks: BTreeMap::new(),
            ended: plan.talks.iter().map(|_| [None, None]).collect(),
            opened: vec![[false; 2]; plan.talks.len()],
            cut: vec![false; plan.talks.len()],
            started: vec![None; plan.talks.len()],
            template: None,
            broken: Vec::new(),
            digest: 0xcbf2_9ce4_8422_2325,
        }
    }

    /// Runs the plan up to the time `end`.
    pub(super) fn run_until(&mut self, end: Time) {
        while self.next() < end {
            self.now = self.now.max(self.next());
            self.step();
        }
    }

    /// Runs the plan to its end.
    pub(super) fn run(&mut self) {
        let mut at_once = 0;
        let mut is_resetting = false;
        loop {
            let next = self.next();
            if next >= ENDED && !is_resetting {
                is_resetting = true;
                self.now = ENDED;
                (self.checks.before_the_end)(self);
                self.reset_all();
                continue;
            }
            if next > FORGOTTEN {
                break;
            }
            at_once = if next > self.now { 0 } else { at_once + 1 };
            if at_once > MOST_AT_ONCE {
                self.broken.push(format!("\"everything ends\": at {} the same is done again and again", self.now));
                return;
            }
            if self.wire.len() > MOST_UNDER_WAY {
                let (count, now) = (self.wire.len(), self.now);
                self.broken.push(format!("\"everything ends\": at {now} {count} datagrams are under way"));
                return;
            }
            self.now = self.now.max(next);
            self.step();
        }
        (self.checks.at_the_end)(self);
    }

    /// Time of the next event.
    fn next(&self) -> Time {
        let agenda = self.agenda.keys().next().map_or(Time::NEVER, |(at, _)| *at);
        let wakes = self.ports.iter().map(|port| {
            let parties = port.parties.values().map(|party| {
                let acts = party.application.next_act(self.now, &party.exchange);
                party.session.next_wakeup().min(acts)
            });
            parties.min().unwrap_or(Time::NEVER).min(port.endpoint.next_wakeup())
        });
        agenda.min(self.wire.next()).min(wakes.min().unwrap_or(Time::NEVER))
    }

    fn step(&mut self) {
        while let Some(first) = self.agenda.first_entry().filter(|first| first.key().0 <= self.now) {
            let action = first.remove();
            self.take(action);
        }
        while let Some(datagram) = self.wire.arrival(self.now) {
            self.deliver(datagram);
        }
        let before = Time(self.now.0.saturating_sub(1));
        for port in 0..self.ports.len() {
            self.ports[port].wake_endpoint(self.now);
            let due = self.ports[port].parties.iter().filter(|(_, party)| {
                let acts = party.application.next_act(before, &party.exchange);
                party.session.next_wakeup().min(acts) <= self.now
            });
            let due: Vec<u64> = due.map(|(id, _)| *id).collect();
            due.into_iter().for_each(|id| self.touch(port, id));
            self.drain(port);
        }
        for complaint in std::mem::take(&mut self.wire.complaints) {
            let Some(port) = self.port_at(complaint.about.from) else { continue };
            let told =
                self.ports[port].complain(self.now, complaint.about.to, &complaint.about.bytes, complaint.report);
            told.into_iter().for_each(|id| self.touch(port, id));
        }
        (self.checks.always)(self);
    }

    fn take(&mut self, action: Action) {
        match action {
            Action::Start(talk) => self.start(talk),
            Action::Happen(kind) => self.happen(kind),
            Action::Listen => self.ports[LISTENER].set_listens(true),
            Action::Flood => {
                self.flood();
                let next = self.now + Duration::from_micros(1_000_000 / self.plan.flood);
                if next < FLOOD_ENDS {
                    self.agenda.insert((next, usize::MAX), Action::Flood);
                }
            }
        }
    }

    fn start(&mut self, talk: usize) {
        let plan = self.plan.talks[talk];
        let port = 1 + plan.source;
        let (listener, now) = (self.addresses[LISTENER], self.now);
        self.monitor.connects(port, listener);
        self.started[talk] = Some(now);
        let judged = is_judged(self.plan, &plan);
        let talks = &mut self.talks;
        let id = self.ports[port].open_seeded(now, listener, self.plan.carried, |tag| {
            talks.insert(tag, talk);
            Application::new(Some(talk), 0, plan, judged, now)
        });
        self.touch(port, id);
    }

    fn happen(&mut self, kind: Kind) {
        match kind {
            Kind::Blackout { .. } => {}
            Kind::NoListener { .. } => self.ports[LISTENER].set_listens(false),
            Kind::RestartListener => self.restart(LISTENER),
            Kind::RestartOpener { source } => self.restart(1 + source),
            Kind::Move { source, is_other_network } => {
                self.moves += 1;
                let address = &mut self.addresses[1 + source];
                match (is_other_network, *address) {
                    (true, _) => *address = SocketAddr::from(([10, 20 + self.moves as u8, source as u8, 1], 5000)),
                    (false, before) => address.set_port(before.port() + self.moves),
                }
            }
            Kind::Abort { talk, by_listener } => self.stop(talk, by_listener, true),
            Kind::LetGo { talk, by_listener } => self.stop(talk, by_listener, false),
        }
    }

    fn stop(&mut self, talk: usize, by_listener: bool, with_reset: bool) {
        let side = usize::from(by_listener);
        for port in 0..self.ports.len() {
            let parties = self.ports[port].parties.iter_mut();
            let mut of_talk =
                parties.filter(|(_, party)| party.application.talk == Some(talk) && party.application.side == side);
            if let Some((&id, party)) = of_talk.next() {
                party.application.stop(&mut party.exchange, with_reset);
                return self.touch(port, id);
            }
        }
    }

    /// Replaces the process at a port by a new one, without notice to its peers.
    fn restart(&mut self, port: usize) {
        let rng = Rng::stream(self.rng.next_u64(), Purpose::Test, port as u64);
        let new = Port::seeded(self.now, self.addresses[port], settings(self.plan, port), rng, port == LISTENER);
        let old = std::mem::replace(&mut self.ports[port], new);
        self.monitor.restarts(port);
        for (talk, plan) in self.plan.talks.iter().enumerate() {
            let is_concerned = port == LISTENER || port == 1 + plan.source;
            self.cut[talk] |= is_concerned && self.started[talk].is_some();
        }
        old.parties.into_values().for_each(|party| self.keep(party.application));
    }

    fn keep(&mut self, application: Application) {
        if let Some(sentence) = &application.broken {
            let (talk, side) = (application.talk, application.side);
            self.broken.push(format!(
                "\"the bytes read are the bytes written, in order\": talk {talk:?}, end {side}: {sentence}"
            ));
        }
        if let Some(talk) = application.talk {
            let side = application.side;
            self.ended[talk][side] = Some(application);
        }
    }

    fn reset_all(&mut self) {
        for port in 0..self.ports.len() {
            let ids: Vec<u64> = self.ports[port].parties.keys().copied().collect();
            for id in ids {
                if let Some(party) = self.ports[port].parties.get_mut(&id) {
                    party.application.stop(&mut party.exchange, true);
                }
                self.touch(port, id);
            }
        }
    }

    fn port_at(&self, address: SocketAddr) -> Option<usize> {
        self.addresses.iter().position(|own| *own == address)
    }

    /// The key of the direction whose datagrams begin like `bytes`, as the process at `port` has
    /// noted it.
    fn key(&self, port: usize, bytes: &[u8]) -> Option<(Cipher, [u8; 32])> {
        self.ports[port].keys().get(&tag(bytes)?).copied()
    }

    fn deliver(&mut self, datagram: Datagram) {
        let Some(port) = self.port_at(datagram.to) else { return self.strangers_get(&datagram) };
        let Datagram { from, mut bytes, .. } = datagram;
        let key = self.key(port, &bytes);
        self.monitor.arrives(port, from, &bytes, key);
        if self.claims(port, &bytes, key) {
            return;
        }
        let (plan, talks, now) = (self.plan, &self.talks, self.now);
        let arrived = self.ports[port].receive(now, from, &mut bytes, |opener| {
            let talk = talks.get(&opener).copied();
            let script = plan.talks[talk.unwrap_or(0)];
            Application::new(talk, 1, script, talk.is_some() && is_judged(plan, &script), now)
        });
        if let Arrived::Told(id) | Arrived::Accepted(id) = arrived {
            self.touch(port, id);
        }
        self.drain(port);
    }

    /// Runs a connection and its application after an event that concerns them, and forgets the
    /// connection if that is due.
    fn touch(&mut self, port: usize, id: u64) {
        let now = self.now;
        for _ in 0..2 {
            if let Some(party) = self.ports[port].parties.get_mut(&id) {
                party.application.act(now, &mut party.exchange);
            }
            self.ports[port].work(id, now);
            self.ports[port].settle(id, now);
        }
        if let Some(party) = self.ports[port].parties.get_mut(&id) {
            party.application.act(now, &mut party.exchange);
            if let (Some(talk), Some(_)) = (party.application.talk, party.application.opened_at) {
                self.opened[talk][party.application.side] = true;
            }
            let settings = self.ports[port].settings();
            let excess = memory::excess(settings, &self.ports[port].parties[&id]);
            self.broken.extend(excess);
        }
        if let Some(mut party) = self.ports[port].forget_if_due(id, now) {
            party.application.outlive(now, &mut party.exchange);
            self.keep(party.application);
        }
        self.drain(port);
    }

    /// Behaviour of the end at `port` in the connection whose datagrams to the peer begin with the
    /// tag `to`; `None` if that end is honest. Also returns whether both ends of that connection
    /// are open.
    fn stance(&self, port: usize, to: u64) -> (Option<Hostile>, bool) {
        let mut parties = self.ports[port].parties.values();
        let party = parties.find(|party| party.session.peer_tag() == Some(to));
        let talk = party.and_then(|party| party.application.talk);
        let hostile = match port {
            LISTENER => self.plan.hostile_listener,
            _ => talk.and_then(|talk| self.plan.talks[talk].hostile),
        };
        (hostile, talk.is_some_and(|talk| self.opened[talk] == [true; 2]))
    }

    /// Sends the datagrams that wait at a port.
    fn drain(&mut self, port: usize) {
        for (to, bytes) in self.ports[port].leaving() {
            let key = self.key(port, &bytes);
            self.monitor.leaves(self.now, port, to, &bytes, key);
            self.hash(to, &bytes);
            let from = self.addresses[port];
            let Some(name @ 1..) = tag(&bytes) else {
                if port != LISTENER && self.template.is_none() {
                    self.template = Some(bytes.clone());
                }
                self.wire.send(self.now, Datagram { from, to, bytes }, false);
                continue;
            };
            let (hostile, is_open) = self.stance(port, name);
            let Some(hostile) = hostile.filter(|_| key.is_none() || !is_piece(&bytes)) else {
                self.wire.send(self.now, Datagram { from, to, bytes }, is_open);
                continue;
            };
            let keys = key.map(|key| self.monitor.keys(name, key));
            let content = match keys {
                None => bytes[8..].to_vec(),
                Some(keys) => keys.open(&bytes).map(|(_, content)| content).unwrap_or_default(),
            };
            let keys = key.map(|key| self.monitor.keys(name, key));
            let sent = self.peers[port].sends(hostile, self.plan.carried, (name, content), keys, &mut self.rng);
            for sent in sent {
                let victim = SocketAddr::from(([192, 0, 2, 1 + self.rng.below(4) as u8], 9));
                let from = if sent.is_spoofed { victim } else { from };
                self.wire.send(self.now, Datagram { from, to, bytes: sent.bytes }, is_open);
            }
        }
    }

    /// Lets a hostile end drop a datagram and claim that it has arrived. Returns whether it did.
    fn claims(&mut self, port: usize, bytes: &[u8], key: Option<(Cipher, [u8; 32])>) -> bool {
        let Some(own @ 1..) = tag(bytes) else { return false };
        let mut parties = self.ports[port].parties.values();
        let Some(party) = parties.find(|party| party.session.tag() == own) else { return false };
        let (Some(name), to) = (party.session.peer_tag(), party.session.peer()) else { return false };
        let Some(hostile) = self.stance(port, name).0 else { return false };
        if !happens(&mut self.rng, hostile.claims) || (key.is_some() && is_piece(bytes)) {
            return false;
        }
        let content = match key {
            None => bytes.get(8..).map(<[u8]>::to_vec),
            Some(key) => self.monitor.keys(own, key).open(bytes).map(|(_, content)| content),
        };
        let Some(content) = content else { return false };
        let key = self.ports[port].keys().get(&name).copied();
        let keys = key.map(|key| self.monitor.keys(name, key));
        let claim = self.peers[port].claims(self.plan.carried, (name, &content), keys, &mut self.rng);
        let Some(claim) = claim else { return false };
        self.wire.send(self.now, Datagram { from: self.addresses[port], to, bytes: claim.bytes }, false);
        true
    }

    fn hash(&mut self, to: SocketAddr, bytes: &[u8]) {
        let words = bytes.chunks(8).map(number);
        for word in [self.now.0, u64::from(to.port())].into_iter().chain(words) {
            self.digest = (self.digest ^ word).wrapping_mul(0x0100_0000_01b3).rotate_left(29);
        }
    }

    /// Both applications of a talk, whether it still runs or is over.
    pub(super) fn applications(&self, talk: usize) -> [Option<&Application>; 2] {
        [0, 1].map(|side| {
            let parties = self.ports.iter().flat_map(|port| port.parties.values());
            let mut live = parties.map(|party| &party.application);
            let live = live.find(|application| application.talk == Some(talk) && application.side == side);
            live.or(self.ended[talk][side].as_ref())
        })
    }

    /// True if everything was written and read at this end of a talk.
    pub(super) fn is_well(application: Option<&Application>) -> bool {
        application.is_some_and(|application| application.end == Some(End::Well))
    }
}
