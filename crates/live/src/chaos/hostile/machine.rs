//! A port and the applications at its connections, of the end under attack, of an honest client or of a hostile peer.

use super::super::plan::Habits;
use super::super::side::use_exchange;
use super::super::stream::{Application, Ending};
use crate::tpa::session::handshake::{InnerTransport, Tag};
use crate::tpa::session::port::{Arrived, Party, Port};
use crate::tpa::session::settings::Settings;
use meshpace_core::{Rng, Time};
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// Rounds of a connection and its application after one event.
const ROUNDS: u32 = 10_000;

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
    /// What applications of accepted connections write.
    habits: Habits,
    /// Applications of connections that are forgotten, by the tag of the end that has opened each.
    pub(super) gone: BTreeMap<Tag, Application>,
    /// False while applications do not read.
    pub(super) reads: bool,
    /// An application that never comes to rest.
    pub(super) broken: bool,
}

impl Machine {
    pub(super) fn new(address: SocketAddr, settings: Settings, rng: Rng, listens: bool, habits: Habits) -> Machine {
        let port = Port::new(Time::ZERO, address, settings, rng, listens);
        Machine { port, habits, gone: BTreeMap::new(), reads: true, broken: false }
    }

    /// Opens a connection; its number, and the tag of this end.
    pub(super) fn open(&mut self, now: Time, to: SocketAddr, inner: InnerTransport, habits: Habits) -> (u64, Tag) {
        let id = self
            .port
            .open(now, to, inner, |opener| User { opener, application: Application::new(opener, true, habits) });
        let tag = self.port.parties[&id].session.tag();
        self.work(id, now);
        (id, tag)
    }

    /// A datagram has arrived.
    pub(super) fn receive(&mut self, now: Time, from: SocketAddr, bytes: &mut [u8]) -> Arrived {
        let habits = &self.habits;
        let arrived = self.port.receive(now, from, bytes, |opener| User {
            opener,
            application: Application::new(opener, false, habits.clone()),
        });
        if let Arrived::Told(id) | Arrived::Accepted(id) = arrived {
            self.after(id, now);
        }
        arrived
    }

    pub(super) fn ids(&self) -> Vec<u64> {
        self.port.parties.keys().copied().collect()
    }

    /// Does what is due.
    pub(super) fn wake(&mut self, now: Time) {
        self.port.wake_endpoint(now);
        for id in self.ids() {
            if self.port.parties.get(&id).is_some_and(|party| wakes_at(party, now) <= now || acts_at(party, now)) {
                self.work(id, now);
            }
        }
    }

    /// When to be woken.
    pub(super) fn next_wakeup(&self, now: Time) -> Time {
        let parties = self.port.parties.values().map(|party| wakes_at(party, now));
        parties.fold(self.port.endpoint.next_wakeup(), Time::min)
    }

    /// A connection does what is due.
    pub(super) fn work(&mut self, id: u64, now: Time) {
        self.port.work(id, now);
        self.after(id, now);
    }

    fn after(&mut self, id: u64, now: Time) {
        self.use_connection(id, now);
        self.port.settle(id, now);
        self.use_connection(id, now);
        if let Some(Party { mut exchange, application: User { opener, mut application }, .. }) =
            self.port.forget_if_due(id, now)
        {
            // What has arrived can still be read.
            use_exchange(&mut application, now, &mut exchange, (true, true));
            self.gone.insert(opener, application);
        }
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

/// When a connection or its application is due.
fn wakes_at(party: &Party<User>, now: Time) -> Time {
    let application = &party.application.application;
    let acts = if application.ending == Ending::None { application.habits.after(now) } else { Time::NEVER };
    party.session.next_wakeup().min(acts)
}

/// True if an application writes more from now on.
fn acts_at(party: &Party<User>, now: Time) -> bool {
    let application = &party.application.application;
    application.ending == Ending::None && application.habits.bursts.iter().any(|(at, _)| *at == now)
}
