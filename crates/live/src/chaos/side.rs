//! One machine: a process with a port, its connections, and the applications that use them.

use super::faults::Moment;
use super::flow::{FlowEnd, Over};
use super::plan::{Kind, Plan, stream};
use super::seat::Seat;
use super::stream::{Application, Ending, Got};
use super::tunnel::Tunnel;
use super::wire::Flight;
use crate::tunnel::session::NAME;
use crate::tunnel::{Beginning, decode, missing};
use meshpace_core::Time;
use meshpace_session::connection::Report;
use meshpace_session::exchange::{Delivery, Exchange, Phase};
use meshpace_session::failure::Reason;
use meshpace_session::handshake::{InnerTransport, Tag, tag_of};
use meshpace_session::seal::number_of;
use meshpace_session::{Arrived, Party, Port};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;

/// Maximum number of datagrams that the kernel stores for a process that does not run.
const INBOX: usize = 64;

/// Maximum number of iterations of a session and its applications after one event.
const ROUNDS: u32 = 10_000;

/// Identity of an application's stream.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum StreamName {
    Connection(Tag),
    Tunnelled([u8; NAME], u32),
}

/// State of one machine.
#[derive(Debug)]
pub(crate) struct Side {
    /// Number of the end: 0 opens connections, 1 listens.
    pub(crate) end: usize,
    pub(crate) port: Port<Seat>,
    /// Current address of the machine.
    pub(crate) address: SocketAddr,
    life: u64,
    /// Time until which the machine has no process.
    pub(crate) dead_until: Time,
    /// Time until which the process does not run.
    pub(crate) stopped_until: Time,
    /// Time until which the kernel accepts no datagrams from the process.
    pub(crate) full_until: Time,
    /// Time from which the applications read.
    pub(crate) reads_from: Time,
    /// Time from which the applications write.
    pub(crate) writes_from: Time,
    /// Time until which the process does not listen.
    pub(crate) unlistened_until: Time,
    /// Datagrams that arrived while the process did not run.
    inbox: VecDeque<Flight>,
    /// Applications of connections that have been removed, or of processes that have ended.
    gone: BTreeMap<StreamName, Application>,
    /// Ends of flows of processes that have ended.
    gone_flows: BTreeMap<([u8; NAME], u32), FlowEnd>,
    tunnels: Vec<Tunnel>,
    /// Sessions of which only one carrier has been accepted, with the carriers so far.
    waiting: BTreeMap<[u8; NAME], [Option<u64>; 2]>,
    pub(crate) accepted: usize,
    /// Tags and numbers of the datagrams that open connections have accepted.
    taken: BTreeSet<(Tag, u64)>,
    /// The first rule that was violated.
    pub(crate) broken: Option<String>,
}

/// Initial address of a machine.
pub(crate) fn home(end: usize) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 1 + end as u8], 4000))
}

impl Side {
    pub(crate) fn new(plan: &Plan, end: usize) -> Side {
        Side {
            end,
            port: Side::process(plan, end, 0, Time::ZERO),
            address: home(end),
            life: 0,
            dead_until: Time::ZERO,
            stopped_until: Time::ZERO,
            full_until: Time::ZERO,
            reads_from: Time::ZERO,
            writes_from: Time::ZERO,
            unlistened_until: Time::ZERO,
            inbox: VecDeque::new(),
            gone: BTreeMap::new(),
            gone_flows: BTreeMap::new(),
            tunnels: Vec::new(),
            waiting: BTreeMap::new(),
            accepted: 0,
            taken: BTreeSet::new(),
            broken: None,
        }
    }

    fn process(plan: &Plan, end: usize, life: u64, now: Time) -> Port<Seat> {
        let rng = stream(plan.seed, 10 + 2 * life + end as u64);
        Port::seeded(now, home(end), plan.settings[end].clone(), rng, end == 1)
    }

    /// Opens the connections of the plan.
    pub(crate) fn open(&mut self, plan: &Plan, now: Time) {
        let far = home(1);
        match plan.kind {
            Kind::Stream(inner) => {
                let habits = plan.habits[0].clone();
                let id = self
                    .port
                    .open_seeded(now, far, inner, |tag| Seat::Stream(tag, Application::new(tag, true, habits)));
                self.work(plan, id, now);
            }
            Kind::Tunnel(inner) => {
                // Both connections are opened at the same time, as in `tunnel::dialing`.
                let bulk = self.port.open_seeded(now, far, inner, |_| Seat::Carrier);
                let express = self.port.open_seeded(now, far, InnerTransport::Tpa, |_| Seat::Carrier);
                let mut name = [0; NAME];
                name.iter_mut()
                    .zip(stream(plan.seed, 50 + self.life).next_u64().to_be_bytes())
                    .for_each(|(to, from)| *to = from);
                let bbr = inner == InnerTransport::Bbr;
                self.tunnels.push(Tunnel::new([express, bulk], name, true, bbr, plan));
                self.work(plan, bulk, now);
                self.work(plan, express, now);
            }
        }
    }

    /// True if the machine has a process and the process runs.
    pub(crate) fn runs(&self, now: Time) -> bool {
        now >= self.dead_until && now >= self.stopped_until
    }

    /// Handles a datagram that arrives at this machine. Returns what the process did with it;
    /// `None` if the process has not received it.
    pub(crate) fn arrive(&mut self, plan: &Plan, now: Time, flight: Flight) -> Option<Arrived> {
        if now < self.dead_until {
            return None;
        }
        if now < self.stopped_until {
            if self.inbox.len() < INBOX {
                self.inbox.push_back(flight);
            }
            return None;
        }
        Some(self.receive(plan, now, flight))
    }

    fn receive(&mut self, plan: &Plan, now: Time, mut flight: Flight) -> Arrived {
        let habits = &plan.habits[1];
        let name = tag_of(&flight.bytes).filter(|tag| *tag != 0).zip(number_of(&flight.bytes));
        let arrived = self.port.receive(now, flight.from, &mut flight.bytes, |opener| match plan.kind {
            Kind::Stream(_) => Seat::Stream(opener, Application::new(opener, false, habits.clone())),
            Kind::Tunnel(_) => Seat::Newcomer(Vec::new()),
        });
        if matches!(arrived, Arrived::Told(_) | Arrived::Accepted(_))
            && let Some(name) = name.filter(|_| plan.protected().sealed)
            && !self.taken.insert(name)
        {
            self.broken.get_or_insert_with(|| format!("datagram {} of tag {:x} is taken twice", name.1, name.0));
        }
        match arrived {
            Arrived::Refused | Arrived::Settled => {}
            Arrived::Told(id) => self.after(plan, id, now),
            Arrived::Accepted(id) => {
                self.accepted += 1;
                self.after(plan, id, now);
            }
        }
        arrived
    }

    /// Handles an error that the network reports about a datagram to `peer`, of which it quotes the
    /// beginning.
    pub(crate) fn complain(&mut self, plan: &Plan, now: Time, peer: SocketAddr, quoted: &[u8], report: Report) {
        if self.runs(now)
            && let Some(id) = self.port.complain(now, peer, quoted, report)
        {
            self.after(plan, id, now);
        }
    }

    /// Ends the process without closing its connections. Another process starts at `until`.
    pub(crate) fn crash(&mut self, until: Time) {
        let parties = std::mem::take(&mut self.port.parties);
        let mut killed: Vec<(StreamName, Application)> = Vec::new();
        for party in parties.into_values() {
            if let Seat::Stream(tag, application) = party.application {
                killed.push((StreamName::Connection(tag), application));
            }
        }
        for tunnel in std::mem::take(&mut self.tunnels) {
            let names = tunnel.streams.iter().map(|(number, one)| (tunnel.key(*number), one.clone()));
            killed.extend(names.map(|((name, number), one)| (StreamName::Tunnelled(name, number), one)));
            self.gone_flows.extend(tunnel.flows.iter().map(|(number, one)| (tunnel.key(*number), one.clone())));
        }
        for (name, mut application) in killed {
            application.killed = true;
            self.gone.insert(name, application);
        }
        self.waiting.clear();
        self.inbox.clear();
        self.port.out = Default::default();
        self.dead_until = until;
        self.stopped_until = Time::ZERO;
        self.full_until = Time::ZERO;
    }

    /// Aborts all connections and sessions on behalf of the applications.
    pub(crate) fn abort(&mut self, plan: &Plan, now: Time) {
        for tunnel in &mut self.tunnels {
            tunnel.streams.values_mut().filter(|one| one.ending == Ending::None).for_each(|one| one.aborted = true);
            tunnel.end(&mut self.port, "this end lets go".to_owned());
        }
        for id in self.ids() {
            if let Some(Party { exchange, application: Seat::Stream(_, application), .. }) =
                self.port.parties.get_mut(&id)
                && application.ending == Ending::None
            {
                application.aborted = true;
                exchange.let_go();
                exchange.wishes.abort = true;
            }
            self.work(plan, id, now);
        }
    }

    fn ids(&self) -> Vec<u64> {
        self.port.parties.keys().copied().collect()
    }

    /// Does everything that is due.
    pub(crate) fn wake(&mut self, plan: &Plan, now: Time) {
        if self.dead_until > Time::ZERO && now >= self.dead_until {
            self.dead_until = Time::ZERO;
            self.life += 1;
            self.port = Side::process(plan, self.end, self.life, now);
            if self.end == 0 {
                self.open(plan, now);
            }
        }
        if !self.runs(now) {
            return;
        }
        if self.end == 1 {
            self.port.set_listens(now >= self.unlistened_until);
        }
        // As in the runtime after an absence, the waiting datagrams are handled before the timers.
        while let Some(flight) = self.inbox.pop_front() {
            self.receive(plan, now, flight);
        }
        self.port.wake_endpoint(now);
        for id in self.ids() {
            let Some(party) = self.port.parties.get(&id) else { continue };
            let acts = match &party.application {
                Seat::Stream(_, application) => {
                    application.ending == Ending::None && application.habits.bursts.iter().any(|(at, _)| *at == now)
                }
                Seat::Carrier | Seat::Newcomer(_) => false,
            };
            if party.session.next_wakeup() <= now || acts || now == self.reads_from || now == self.writes_from {
                self.work(plan, id, now);
            }
        }
        self.work_tunnels(plan, now);
    }

    /// Time of the next call of [`Side::wake`].
    pub(crate) fn next_wakeup(&self, now: Time) -> Time {
        if now < self.dead_until {
            return self.dead_until;
        }
        if now < self.stopped_until {
            return self.stopped_until;
        }
        let later = |at: Time| if at > now { at } else { Time::NEVER };
        let of = |party: &Party<Seat>| {
            let acts = match &party.application {
                Seat::Stream(_, application) if application.ending == Ending::None => application.habits.after(now),
                _ => Time::NEVER,
            };
            party.session.next_wakeup().min(acts)
        };
        let itself = self.port.endpoint.next_wakeup().min(later(self.full_until)).min(later(self.unlistened_until));
        let itself = itself.min(later(self.reads_from)).min(later(self.writes_from));
        let itself = self.port.parties.values().map(of).fold(itself, Time::min);
        self.tunnels.iter().map(|tunnel| tunnel.next_wakeup(now)).fold(itself, Time::min)
    }

    fn work(&mut self, plan: &Plan, id: u64, now: Time) {
        self.port.work(id, now);
        self.after(plan, id, now);
    }

    /// Runs the user of a connection after any event of the connection, and removes the connection
    /// if it has ended.
    fn after(&mut self, plan: &Plan, id: u64, now: Time) {
        let may = (now >= self.reads_from, now >= self.writes_from);
        self.use_connection(plan, id, now, may);
        self.port.settle(id, now);
        self.use_connection(plan, id, now, may);
        if let Some(Party { mut exchange, application, .. }) = self.port.forget_if_due(id, now)
            && let Seat::Stream(tag, mut application) = application
        {
            // An application that has not read yet still can, because data that have arrived belong
            // to it.
            use_exchange(&mut application, now, &mut exchange, (true, true));
            self.gone.insert(StreamName::Connection(tag), application);
        }
    }

    fn use_connection(&mut self, plan: &Plan, id: u64, now: Time, may: (bool, bool)) {
        for _ in 0..ROUNDS {
            let Some(Party { exchange, application, .. }) = self.port.parties.get_mut(&id) else { return };
            let acted = match application {
                Seat::Stream(_, application) => use_exchange(application, now, exchange, may),
                Seat::Carrier => return self.work_tunnels(plan, now),
                Seat::Newcomer(_) => self.greet(plan, id),
            };
            if let Some(failure) = self.port.parties.get(&id).and_then(|party| party.exchange.failure())
                && matches!(failure.reason, Reason::Protocol | Reason::Internal)
            {
                let why = failure.message.clone();
                self.broken.get_or_insert(why);
            }
            if !acted {
                return;
            }
            self.port.work(id, now);
        }
        self.broken.get_or_insert("an application comes to an end".to_owned());
    }

    /// Reads the preamble of a connection that an accepting tunnel has received. Returns true if
    /// anything was done.
    fn greet(&mut self, plan: &Plan, id: u64) -> bool {
        let Some(Party { exchange, application: Seat::Newcomer(read), .. }) = self.port.parties.get_mut(&id) else {
            return false;
        };
        let more = missing(read).unwrap_or(0);
        if more > 0 {
            let mut into = vec![0; more];
            match exchange.read(&mut into) {
                Some(Ok(length)) if length > 0 => read.extend_from_slice(&into[..length]),
                None => return false,
                Some(_) => {
                    exchange.let_go();
                    return !std::mem::replace(&mut exchange.wishes.dropped, true);
                }
            }
            return true;
        }
        let Ok(Beginning::Carrier(carrier, name)) = decode(read) else {
            self.broken.get_or_insert("a carrier begins with its preamble".to_owned());
            return false;
        };
        if let Some(party) = self.port.parties.get_mut(&id) {
            party.application = Seat::Carrier;
            if carrier == crate::tunnel::session::Carrier::Express {
                party.exchange.wishes.hold_acks = Some(meshpace_core::Duration::from_millis(10));
            }
        }
        let places = self.waiting.entry(name).or_default();
        places[carrier as usize] = Some(id);
        if let [Some(express), Some(bulk)] = *places {
            self.waiting.remove(&name);
            let bbr = self.port.parties.get(&bulk).is_some_and(|party| party.session.inner() == InnerTransport::Bbr);
            self.tunnels.push(Tunnel::new([express, bulk], name, false, bbr, plan));
        }
        true
    }

    /// Runs all sessions of tunnels.
    fn work_tunnels(&mut self, _: &Plan, now: Time) {
        let may = (now >= self.reads_from, now >= self.writes_from);
        let mut tunnels = std::mem::take(&mut self.tunnels);
        for tunnel in &mut tunnels {
            for _ in 0..ROUNDS {
                match tunnel.act(now, &mut self.port, may) {
                    Ok(false) => break,
                    Ok(true) => {}
                    Err(why) => {
                        self.broken.get_or_insert(why.clone());
                        tunnel.end(&mut self.port, why);
                    }
                }
                for id in self.ids() {
                    if matches!(self.port.parties.get(&id), Some(Party { application: Seat::Carrier, .. })) {
                        self.port.work(id, now);
                    }
                }
            }
        }
        self.tunnels = tunnels;
        // Closes carriers whose session was never completed.
        let wanted = |id: &u64| self.waiting.values().flatten().flatten().any(|waiting| waiting == id);
        let lost: Vec<u64> = self.ids().into_iter().filter(|id| wanted(id)).collect();
        for id in lost {
            if let Some(Party { exchange, .. }) = self.port.parties.get_mut(&id)
                && (exchange.is_over() || exchange.end_of_stream)
                && !exchange.wishes.dropped
            {
                exchange.let_go();
                self.port.work(id, now);
            }
        }
    }

    /// All applications of all processes so far, by stream.
    pub(crate) fn applications(&self) -> BTreeMap<StreamName, &Application> {
        let mut all: BTreeMap<StreamName, &Application> = self.gone.iter().map(|(name, one)| (*name, one)).collect();
        for party in self.port.parties.values() {
            if let Seat::Stream(tag, application) = &party.application {
                all.insert(StreamName::Connection(*tag), application);
            }
        }
        for tunnel in &self.tunnels {
            for (number, application) in &tunnel.streams {
                let (name, number) = tunnel.key(*number);
                all.insert(StreamName::Tunnelled(name, number), application);
            }
        }
        all
    }

    /// All flow ends of all processes so far, by session and number.
    pub(crate) fn flows(&self) -> BTreeMap<([u8; NAME], u32), FlowEnd> {
        let of = |tunnel: &Tunnel| {
            tunnel.flows.iter().map(|(number, one)| (tunnel.key(*number), one.clone())).collect::<Vec<_>>()
        };
        self.tunnels.iter().flat_map(of).chain(self.gone_flows.clone()).collect()
    }

    /// Sessions that have not ended.
    pub(crate) fn open_tunnels(&mut self) -> impl Iterator<Item = &mut Tunnel> {
        self.tunnels.iter_mut().filter(|tunnel| tunnel.failure.is_none())
    }

    /// Amount of progress: bytes read, ends of streams reached, connections opened or ended,
    /// datagrams received.
    pub(crate) fn progress(&self) -> u64 {
        let of = |one: &Application| one.read + u64::from(one.saw_end) + u64::from(one.ending != Ending::None);
        let seats = self.port.parties.values().map(|party| match &party.application {
            Seat::Stream(_, application) => of(application) + u64::from(party.exchange.is_open()),
            _ => u64::from(party.exchange.is_open()),
        });
        let tunnelled = self.tunnels.iter().flat_map(|tunnel| tunnel.streams.values().map(of));
        let of_flow = |one: &FlowEnd| one.came + u64::from(one.over != Over::No);
        let flows = self.tunnels.iter().flat_map(|tunnel| tunnel.flows.values()).chain(self.gone_flows.values());
        let flows = flows.map(of_flow);
        seats.chain(tunnelled).chain(self.gone.values().map(of)).chain(flows).sum()
    }

    /// True if an application waits for anything.
    pub(crate) fn is_waiting(&self) -> bool {
        let waits = |one: &Application| one.ending == Ending::None;
        let seats =
            self.port.parties.values().any(|party| matches!(&party.application, Seat::Stream(_, one) if waits(one)));
        let of = |tunnel: &Tunnel| tunnel.failure.is_none();
        seats || self.tunnels.iter().any(of)
    }

    /// True if an open session will open a stream later.
    pub(crate) fn opens_later(&self, now: Time) -> bool {
        self.tunnels.iter().any(|tunnel| tunnel.opens_at() > now && tunnel.opens_at() != Time::NEVER)
    }

    /// Descriptions of the applications that wait.
    pub(crate) fn waiting(&self, now: Time) -> Vec<String> {
        let of = |name: String, one: &Application| {
            let Application { written, closed, read, saw_end, .. } = one;
            let all = one.habits.all();
            format!(
                "end {} {name}: written {written} of {all}, closed {closed}, read {read}, to its end {saw_end}",
                self.end
            )
        };
        let seats = self.port.parties.values().map(|party| {
            let Party { session, exchange, application } = party;
            let wakes = session.next_wakeup().since(now).as_secs_f64();
            let kept = (exchange.send.len(), exchange.receive.available());
            let state = format!(
                "{:?} {:?}, {:?}, {kept:?} B kept, {:?}, wakes in {wakes:.1} s",
                session.inner(),
                exchange.phase,
                exchange.delivery,
                exchange.sending
            );
            match application {
                Seat::Stream(_, one) if one.ending == Ending::None => of(state, one),
                Seat::Stream(_, one) => format!("end {}: over ({:?})", self.end, one.ending),
                Seat::Carrier | Seat::Newcomer(_) => format!("end {} carrier: {state}", self.end),
            }
        });
        let tunnelled = self.tunnels.iter().flat_map(|tunnel| {
            let waiting = tunnel.streams.iter().filter(|(_, one)| one.ending == Ending::None);
            waiting.map(|(number, one)| of(format!("stream {number}"), one))
        });
        seats.chain(tunnelled).collect()
    }

    /// Takes the last moment of a tunnel since the previous call.
    pub(crate) fn take_noted(&mut self) -> Option<Moment> {
        self.tunnels.iter_mut().find_map(Tunnel::take_noted)
    }

    /// All sessions of tunnels.
    pub(crate) fn tunnels(&self) -> &[Tunnel] {
        &self.tunnels
    }
}

/// Runs an application with its connection. Returns true if anything was done.
pub(super) fn use_exchange(
    application: &mut Application,
    now: Time,
    exchange: &mut Exchange,
    (reads, writes): (bool, bool),
) -> bool {
    let mut acted = false;
    if writes && !exchange.wishes.write_closed {
        acted |= application.write(now, |bytes| match exchange.write(bytes) {
            Some(Ok(taken)) => taken,
            Some(Err(_)) | None => 0,
        });
    }
    let may_close = application.has_written_all() && exchange.is_open() && !exchange.wishes.write_closed;
    if may_close {
        exchange.wishes.write_closed = true;
        application.closed = true;
        acted = true;
    }
    if reads && !exchange.wishes.read_closed && exchange.is_readable() {
        acted |= application.read(|into| match exchange.read(into) {
            Some(Ok(0)) => Got::End,
            Some(Ok(length)) => Got::Bytes(length),
            Some(Err(_)) | None => Got::Nothing,
        });
    }
    if application.ending == Ending::None {
        application.ending = match &exchange.phase {
            Phase::Failed(failure) => Ending::Failed(failure.message.clone()),
            Phase::Done if application.saw_end => Ending::Well,
            _ if application.saw_end && exchange.delivery == Delivery::Finished => Ending::Well,
            _ => Ending::None,
        };
    }
    // The application reads the data that have arrived before it closes.
    let has_read = application.saw_end || reads;
    if application.ending != Ending::None && has_read && !exchange.wishes.dropped {
        exchange.let_go();
        acted = true;
    }
    acted
}
