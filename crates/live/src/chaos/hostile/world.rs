//! One run from its beginning to its end: the end under attack, its honest clients and the hostile
//! peers.

use super::super::faults::Mood;
use super::super::plan::{Habits, stream};
use super::super::stream::Application;
use super::super::wire::{Arrival, Flight, Wire};
use super::super::{Broken, Run, Trail};
use super::attack::Attack;
use super::held::Held;
use super::machine::Machine;
use super::peer::Peer;
use super::placed::Placed;
use super::plan::{End, Plan, client, own, target, victims};
use super::traffic::Traffic;
use meshpace_core::{Duration, Time};
use meshpace_session::Arrived;
use meshpace_session::handshake::{Tag, tag_of};
use meshpace_session::seal::number_of;
use meshpace_transport::work::take_steps;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::{IpAddr, SocketAddr};

/// Maximum number of steps of a run.
const MOST_STEPS: u64 = 1_000_000;

/// Time after the last action of hostile peers by which everything has ended. A connection
/// tolerates silence for 120 s, before which a timer of 60 s may have to expire. An opening or a
/// closing ends within the same time.
pub(super) const LATEST: Duration = Duration::from_secs(420);

/// Owner of the end of a connection that is not under attack.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Owner {
    Client(usize),
    Peer(usize),
}

/// An honest client.
pub(super) struct Client {
    pub(super) machine: Machine,
    pub(super) opens_at: Time,
    /// The client's connection and its tag; `None` before it is opened.
    pub(super) opened: Option<(u64, Tag)>,
}

/// State of a hostile peer that receives nothing any more: its connections, and the bytes that had
/// come from it and been sent to it when it stopped receiving.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deaf {
    pub(super) connections: u64,
    pub(super) came: u64,
    pub(super) left: u64,
}

/// State of a run.
pub(super) struct World {
    pub(super) plan: Plan,
    pub(super) now: Time,
    pub(super) target: Machine,
    pub(super) clients: Vec<Client>,
    pub(super) peers: Vec<Peer>,
    pub(super) deaf: Vec<Option<Deaf>>,
    wire: Wire,
    pub(super) traffic: Traffic,
    /// False acknowledgements of hostile peers: the time of arrival, and the tag of the end that
    /// has opened the connection.
    pub(super) lies: VecDeque<(Time, Tag)>,
    /// Pieces of BBR streams that hostile peers have sent and that have not arrived, by tag and
    /// number of their datagrams.
    pieces: BTreeSet<(Tag, u64)>,
    /// Address of each connection's peer at the last check, for the connections of the end under
    /// attack.
    pub(super) homes: BTreeMap<u64, IpAddr>,
    /// Owner of the other end of each connection of the end under attack, by the tag of the end
    /// that has opened it.
    pub(super) owners: BTreeMap<Tag, Owner>,
    pub(super) placed: Placed,
    pub(super) held: Held,
    /// Number of unfinished handshakes and of connections of the end under attack at the last check
    /// of places.
    pub(super) in_use: (usize, usize),
    trail: Trail,
    pub(super) run: Run,
}

impl World {
    pub(super) fn new(plan: Plan, trail: Trail) -> World {
        let honest = plan.clients.iter().enumerate().map(|(index, of)| Client {
            machine: Machine::new(
                client(index),
                plan.settings(End::Client(index)),
                stream(plan.seed, 520 + index as u64),
                false,
                Habits::default(),
            ),
            opens_at: of.opens_at,
            opened: None,
        });
        let hostile = plan.peers.iter().enumerate().map(|(index, of)| {
            let rngs = (stream(plan.seed, 540 + index as u64), stream(plan.seed, 560 + index as u64));
            let settings = plan.settings(End::Peer(index));
            Peer::new(index, of.clone(), settings, rngs, (!plan.listens, victims(plan.clients.len())))
        });
        let settings = plan.settings(End::Target);
        World {
            now: Time::ZERO,
            target: Machine::new(target(), settings, stream(plan.seed, 510), plan.listens, plan.habits.clone()),
            clients: honest.collect(),
            peers: hostile.collect(),
            deaf: vec![None; plan.peers.len()],
            wire: Wire::default(),
            traffic: Traffic::default(),
            lies: VecDeque::new(),
            pieces: BTreeSet::new(),
            homes: BTreeMap::new(),
            owners: BTreeMap::new(),
            held: Held::default(),
            placed: Placed::among(plan.addresses().map(|at| at.ip())),
            in_use: (0, 0),
            trail,
            run: Run { attacks: vec![0; Attack::ALL.len()], ..Run::empty(plan.seed, Mood::Hostile) },
            plan,
        }
    }

    /// Makes the run and returns its result.
    pub(super) fn run(mut self) -> Run {
        self.begin();
        let mut steps = 0;
        while self.run.broken.is_none() && self.step() {
            steps += 1;
            if steps >= MOST_STEPS {
                self.breaks("a run comes to an end", format!(": {steps} steps"));
            }
        }
        if self.run.broken.is_none() {
            self.judge();
        }
        self.count();
        self.run
    }

    pub(super) fn breaks(&mut self, invariant: &str, more: String) {
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

    fn tell_packet(&mut self, from: SocketAddr, to: SocketAddr, bytes: &[u8], what: &str) {
        if self.trail == Trail::Packets {
            let (number, length) = (number_of(bytes).unwrap_or(0), bytes.len());
            self.tell(|| format!("{from} > {to} number {number} {length} B {what}"));
        }
    }

    fn begin(&mut self) {
        for index in 0..self.peers.len() {
            if self.plan.listens {
                self.peers[index].open(self.now);
            } else {
                let (inner, habits) = (self.plan.peers[index].inner, self.plan.habits.clone());
                let (_, tag) = self.target.open(self.now, own(index)[0], inner, habits);
                self.owners.insert(tag, Owner::Peer(index));
                self.traffic.invite(own(index)[0]);
            }
            self.drain_peer(index);
        }
        self.drain_target();
    }

    /// True while the hostile peers act.
    fn is_hostile(&self) -> bool {
        self.now < self.plan.until
    }

    /// Time of the next event; [`Time::NEVER`] if there is none.
    fn next(&self) -> Time {
        let clients = self.clients.iter().map(|one| match one.opened {
            None => one.opens_at,
            Some(_) => one.machine.next_wakeup(),
        });
        let next = clients.fold(self.wire.next().min(self.target.next_wakeup()), Time::min);
        match self.is_hostile() {
            true => self.peers.iter().map(|peer| peer.next_wakeup()).fold(next, Time::min),
            false => next,
        }
    }

    /// Advances to the next event and handles it. Returns false if there are no more events.
    fn step(&mut self) -> bool {
        let next = self.next();
        if next == Time::NEVER {
            return false;
        }
        self.now = self.now.max(next);
        let now = self.now;
        while let Some(arrival) = self.wire.arrival(now) {
            if let Arrival::Datagram(flight) = arrival {
                self.deliver(flight);
            }
        }
        self.target.wake(now);
        self.drain_target();
        self.wake_clients();
        if self.is_hostile() {
            self.wake_peers();
        }
        self.check();
        true
    }

    fn wake_clients(&mut self) {
        for index in 0..self.clients.len() {
            let (now, one) = (self.now, &mut self.clients[index]);
            if one.opened.is_none() && one.opens_at <= now {
                let of = &self.plan.clients[index];
                let opened = one.machine.open(now, target(), of.inner, of.habits.clone());
                one.opened = Some(opened);
                self.owners.insert(opened.1, Owner::Client(index));
                self.tell(|| format!("client {index} opens a connection"));
            }
            self.clients[index].machine.wake(now);
            self.drain_client(index);
        }
    }

    fn wake_peers(&mut self) {
        for index in 0..self.peers.len() {
            let now = self.now;
            for attack in self.peers[index].wake(now) {
                let inner = self.plan.peers[index].inner;
                self.tell(|| format!("peer {index} ({inner:?}): {}", attack.name()));
            }
            self.drain_peer(index);
            if self.peers[index].deaf_since.is_some() && self.deaf[index].is_none() {
                let (came, left) = self.traffic_of(index);
                self.deaf[index] = Some(Deaf { connections: self.connections_of(index), came, left });
            }
        }
    }

    /// Number of connections that a hostile peer has with the end under attack.
    pub(super) fn connections_of(&self, index: usize) -> u64 {
        let parties = self.target.port.parties.values();
        let owners = parties.map(|party| self.owners.get(&party.application.opener));
        owners.filter(|owner| *owner == Some(&Owner::Peer(index))).count() as u64
    }

    /// Bytes that came from all addresses of a hostile peer, and bytes that were sent to them.
    pub(super) fn traffic_of(&self, index: usize) -> (u64, u64) {
        let all = self.peers[index].own.iter().map(|at| self.traffic.of(*at));
        all.fold((0, 0), |(came, left), (more, also)| (came + more, left + also))
    }

    /// Handles the arrival of a datagram.
    fn deliver(&mut self, flight: Flight) {
        let Flight { from, to, mut bytes, forged } = flight;
        let now = self.now;
        if to == target() {
            self.traffic.came(from, bytes.len(), !forged);
            let piece = tag_of(&bytes).zip(number_of(&bytes)).is_some_and(|piece| self.pieces.remove(&piece));
            let leaves = self.run.packets;
            take_steps();
            if let Arrived::Accepted(_) = self.target.receive(now, from, &mut bytes) {
                self.run.streams += 1;
            }
            let steps = take_steps();
            self.drain_target();
            // If more is sent than the acknowledgement, the work for it is counted too, so it is
            // not checked.
            if piece && self.run.packets - leaves <= 1 {
                self.check_work(steps);
            }
            return;
        }
        if let Some(index) = (0..self.clients.len()).find(|index| client(*index) == to) {
            self.traffic.heard(to);
            self.clients[index].machine.receive(now, from, &mut bytes);
            return self.drain_client(index);
        }
        let owner = self.peers.iter().position(|peer| peer.own.contains(&to));
        if let Some(index) = owner.filter(|_| self.is_hostile())
            && self.peers[index].receive(now, &mut bytes)
        {
            self.traffic.heard(to);
            return self.drain_peer(index);
        }
        // The datagram is for a victim, or for an address at which nobody receives.
        self.run.lost += 1;
    }

    /// Sends the waiting datagrams of the end under attack.
    fn drain_target(&mut self) {
        let at = self.now + self.plan.delay;
        self.check_backlog();
        for (to, bytes) in self.target.port.leaving() {
            self.run.packets += 1;
            self.tell_packet(target(), to, &bytes, "");
            if !self.traffic.left(to, bytes.len()) {
                let (came, left) = self.traffic.of(to);
                self.breaks(
                    "an address that has not answered gets at most three times what came from it",
                    format!(": {left} bytes to {to} for {came}"),
                );
            }
            self.wire.put(at, Arrival::Datagram(Flight { from: target(), to, bytes, forged: false }));
        }
    }

    /// Sends the waiting datagrams of an honest client.
    fn drain_client(&mut self, index: usize) {
        for (to, bytes) in self.clients[index].machine.port.leaving() {
            self.send(client(index), to, bytes, true);
        }
    }

    /// Sends the waiting datagrams of a hostile peer.
    fn drain_peer(&mut self, index: usize) {
        let peer = &mut self.peers[index];
        let own = peer.own;
        // A tag is recorded before the first datagram with it is sent.
        self.owners.extend(peer.opened.drain(..).map(|tag| (tag, Owner::Peer(index))));
        let arrives = self.now + self.plan.delay;
        self.pieces.extend(peer.take_pieces());
        self.lies.extend(peer.take_lies().into_iter().map(|opener| (arrives, opener)));
        for (from, bytes) in peer.leaving() {
            self.send(from, target(), bytes, own.contains(&from));
        }
    }

    /// Sends a datagram. `owns` is true if the source address belongs to the sender.
    fn send(&mut self, from: SocketAddr, to: SocketAddr, bytes: Vec<u8>, owns: bool) {
        let at = self.now + self.plan.delay;
        self.run.packets += 1;
        self.tell_packet(from, to, &bytes, if owns { "" } else { "forged source" });
        let forged = !(owns && self.traffic.hears(from));
        self.wire.put(at, Arrival::Datagram(Flight { from, to, bytes, forged }));
    }

    fn count(&mut self) {
        let run = &mut self.run;
        run.virtual_time = self.now.since(Time::ZERO);
        for peer in &self.peers {
            run.attacks.iter_mut().zip(&peer.taken).for_each(|(all, taken)| *all += taken);
        }
        let honest = self.clients.iter().filter_map(|one| one.opened).map(|(_, tag)| tag);
        let at_target: BTreeMap<Tag, &Application> = applications(&self.target).collect();
        let ours = self.clients.iter().flat_map(|one| applications(&one.machine));
        run.bytes = honest.filter_map(|tag| at_target.get(&tag)).map(|one| one.read).sum::<u64>()
            + ours.map(|(_, one)| one.read).sum::<u64>();
        let failed = |one: &&Application| matches!(one.ending, super::super::stream::Ending::Failed(_));
        run.failures = at_target.into_values().filter(failed).count() as u64;
    }
}

/// All applications that a machine has had, by the tag of the end that has opened the connection.
pub(super) fn applications(machine: &Machine) -> impl Iterator<Item = (Tag, &Application)> {
    let open = machine.port.parties.values().map(|party| (party.application.opener, &party.application.application));
    machine.gone.iter().map(|(tag, one)| (*tag, one)).chain(open)
}
