//! A port with the applications of its connections. It belongs to the end under attack, to an
//! honest client or to a hostile peer.

use super::super::plan::Habits;
use super::super::side::use_exchange;
use super::super::stream::{Application, Ending};
use meshpace_core::{Rng, Time};
use meshpace_session::handshake::{InnerTransport, Tag};
use meshpace_session::settings::Settings;
use meshpace_session::{Arrived, Party, Port};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

/// Maximum number of iterations of a connection and its application after one event.
const ROUNDS: u32 = 10_000;

/// Number of accepted connections in which as much is written as the plan says. Of hundreds of
/// connections, only few need much data to be attacked.
const WRITERS: usize = 8;
/// Maximum number of bytes that are written in each of the other accepted connections.
const LITTLE: u64 = 4_000;

/// An application, with the tag of the end that has opened its connection.
#[derive(Debug)]
pub(super) struct User {
    pub(super) opener: Tag,
    pub(super) application: Application,
}

/// A port with its applications.
#[derive(Debug)]
pub(super) struct Machine {
    pub(super) port: Port<User>,
    /// What the applications of the first [`WRITERS`] accepted connections write. The others write
    /// at most [`LITTLE`].
    habits: Habits,
    accepted: usize,
    /// Applications of removed connections, by the tag of the end that has opened each.
    pub(super) gone: BTreeMap<Tag, Application>,
    /// False while applications do not read.
    pub(super) reads: bool,
    /// True if an application has exceeded the number of iterations.
    pub(super) broken: bool,
    /// Connections that may have changed since [`Machine::take_touched`] was called.
    touched: BTreeSet<u64>,
    timers: Timers,
}

impl Machine {
    pub(super) fn new(address: SocketAddr, settings: Settings, rng: Rng, listens: bool, habits: Habits) -> Machine {
        let port = Port::seeded(Time::ZERO, address, settings, rng, listens);
        Machine {
            port,
            habits,
            accepted: 0,
            gone: BTreeMap::new(),
            reads: true,
            broken: false,
            touched: BTreeSet::new(),
            timers: Timers::default(),
        }
    }

    /// Opens a connection. Returns its number, and the tag of this end.
    pub(super) fn open(&mut self, now: Time, to: SocketAddr, inner: InnerTransport, habits: Habits) -> (u64, Tag) {
        let id = self
            .port
            .open_seeded(now, to, inner, |opener| User { opener, application: Application::new(opener, true, habits) });
        let tag = self.port.parties[&id].session.tag();
        self.work(id, now);
        (id, tag)
    }

    /// Handles a datagram that has arrived.
    pub(super) fn receive(&mut self, now: Time, from: SocketAddr, bytes: &mut [u8]) -> Arrived {
        let (habits, is_writer) = (&self.habits, self.accepted < WRITERS);
        let arrived = self.port.receive(now, from, bytes, |opener| {
            let habits = if is_writer { habits.clone() } else { habits.at_most(LITTLE) };
            User { opener, application: Application::new(opener, false, habits) }
        });
        self.accepted += usize::from(matches!(arrived, Arrived::Accepted(_)));
        match arrived {
            Arrived::Told(id) | Arrived::Accepted(id) => self.after(id, now),
            // A connection has examined the datagram, so its timer may have changed.
            Arrived::Refused => self.ids().into_iter().for_each(|id| self.set_timer(id, now)),
            Arrived::Settled => {}
        }
        arrived
    }

    pub(super) fn ids(&self) -> Vec<u64> {
        self.port.parties.keys().copied().collect()
    }

    /// Takes the numbers of the connections that may have changed since the last call, including
    /// removed ones.
    pub(super) fn take_touched(&mut self) -> BTreeSet<u64> {
        std::mem::take(&mut self.touched)
    }

    /// Does everything that is due.
    pub(super) fn wake(&mut self, now: Time) {
        self.port.wake_endpoint(now);
        for id in self.timers.due(now) {
            self.timers.set(id, Time::NEVER);
            self.work(id, now);
        }
    }

    /// Time of the next call of [`Machine::wake`].
    pub(super) fn next_wakeup(&self) -> Time {
        self.port.endpoint.next_wakeup().min(self.timers.next())
    }

    /// Sets the timer of a connection to the time at which the connection or its application is
    /// due.
    fn set_timer(&mut self, id: u64, now: Time) {
        let at = self.port.parties.get(&id).map_or(Time::NEVER, |party| wakes_at(party, now));
        self.timers.set(id, at);
    }

    /// Runs a connection and its application.
    pub(super) fn work(&mut self, id: u64, now: Time) {
        self.port.work(id, now);
        self.after(id, now);
    }

    fn after(&mut self, id: u64, now: Time) {
        self.touched.insert(id);
        self.use_connection(id, now);
        let ended = self.port.settle(id, now);
        self.use_connection(id, now);
        self.forget_if_due(id, now);
        for other in ended.into_iter().filter(|other| *other != id) {
            self.touched.insert(other);
            self.use_connection(other, now);
            self.forget_if_due(other, now);
        }
    }

    /// Removes a connection if it is due for that; otherwise sets its timer.
    fn forget_if_due(&mut self, id: u64, now: Time) {
        if let Some(Party { mut exchange, application: User { opener, mut application }, .. }) =
            self.port.forget_if_due(id, now)
        {
            // Data that have arrived can still be read.
            use_exchange(&mut application, now, &mut exchange, (true, true));
            self.gone.insert(opener, application);
        }
        self.set_timer(id, now);
    }

    fn use_connection(&mut self, id: u64, now: Time) {
        for _ in 0..ROUNDS {
            let Some(Party { exchange, application, .. }) = self.port.parties.get_mut(&id) else { return };
            if !use_exchange(&mut application.application, now, exchange, (self.reads, true)) {
                return;
            }
            self.port.work(id, now);
        }
        self.broken = true;
    }
}

/// Time at which a connection or its application is due.
fn wakes_at(party: &Party<User>, now: Time) -> Time {
    let application = &party.application.application;
    let acts = if application.ending == Ending::None { application.habits.after(now) } else { Time::NEVER };
    party.session.next_wakeup().min(acts)
}

/// Times at which the connections are due.
#[derive(Debug, Default)]
struct Timers {
    of: BTreeMap<u64, Time>,
    order: BTreeSet<(Time, u64)>,
}

impl Timers {
    fn set(&mut self, id: u64, at: Time) {
        if self.of.get(&id).is_some_and(|before| *before == at) {
            return;
        }
        if let Some(before) = self.of.remove(&id) {
            self.order.remove(&(before, id));
        }
        if at != Time::NEVER {
            self.of.insert(id, at);
            self.order.insert((at, id));
        }
    }

    fn next(&self) -> Time {
        self.order.first().map_or(Time::NEVER, |(at, _)| *at)
    }

    /// Connections that are due, in the order of their numbers.
    fn due(&self, now: Time) -> BTreeSet<u64> {
        self.order.iter().take_while(|(at, _)| *at <= now).map(|(_, id)| *id).collect()
    }
}
