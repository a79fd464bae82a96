//! One end of the wire: an endpoint, its connections, and an application for each connection.

use super::plan::stream;
use crate::connection::Report;
use crate::content::byte;
use crate::exchange::{Delivery, Exchange, Phase};
use crate::failure::Reason;
use crate::handshake::Tag;
use crate::port::{Arrived, Party, Port};
use crate::settings::Settings;
use meshpace_core::{Rng, Time};
use std::net::SocketAddr;

/// Result of a connection as its application sees it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Ending {
    /// The connection has not ended.
    None,
    /// Everything has arrived in both directions.
    Well,
    /// The connection failed for this reason.
    Failed(Reason),
}

/// Application that writes one stream, and reads and checks another.
#[derive(Debug)]
pub struct Application {
    /// Number of the stream that it writes, and the length of that stream, bytes.
    writes: (u64, u64),
    /// Number of the stream that it reads.
    reads: u64,
    /// Time before which it does not read.
    reads_at: Time,
    /// True if it does not close the connection after it has written everything.
    rests: bool,
    rng: Rng,
    written: u64,
    /// Number of bytes read. Each of them was as expected.
    pub read: u64,
    has_read_all: bool,
    pub ending: Ending,
}

impl Application {
    /// Creates an application that writes `bytes` bytes. The two streams of a connection are
    /// numbered by the tag of the opener and by the direction.
    pub fn new(opener: Tag, is_opener: bool, bytes: u64, reads_at: Time) -> Application {
        let [writes, reads] = [is_opener, !is_opener].map(|ours| opener ^ u64::from(ours));
        let rng = stream(opener, 7 + u64::from(is_opener));
        let (written, read, has_read_all) = (0, 0, false);
        let (rests, ending) = (false, Ending::None);
        Application { writes: (writes, bytes), reads, reads_at, rests, rng, written, read, has_read_all, ending }
    }

    /// Writes, reads and closes as far as it can. Returns whether it did anything.
    fn act(&mut self, now: Time, exchange: &mut Exchange) -> bool {
        let mut acted = false;
        let (stream, bytes) = self.writes;
        while self.written < bytes && !exchange.wishes.write_closed {
            let length = (1 + self.rng.below(700)).min(bytes - self.written);
            let chunk: Vec<u8> = (self.written..self.written + length).map(|at| byte(stream, at)).collect();
            let Some(Ok(taken)) = exchange.write(&chunk) else { break };
            self.written += taken as u64;
            acted = true;
        }
        let has_written_all = self.written == bytes && !exchange.is_opening() && !self.rests;
        if has_written_all && !exchange.wishes.write_closed {
            exchange.wishes.write_closed = true;
            acted = true;
        }
        let mut into = [0; 512];
        while !self.has_read_all && now >= self.reads_at && !exchange.wishes.read_closed {
            let most = 1 + self.rng.below(512) as usize;
            match exchange.read(&mut into[..most]) {
                Some(Ok(0)) => self.has_read_all = true,
                Some(Ok(length)) => {
                    for found in &into[..length] {
                        assert_eq!(*found, byte(self.reads, self.read), "byte {} of a stream", self.read);
                        self.read += 1;
                    }
                }
                Some(Err(_)) | None => break,
            }
            acted = true;
        }
        if self.ending == Ending::None {
            self.ending = match &exchange.phase {
                Phase::Failed(failure) => Ending::Failed(failure.reason),
                Phase::Done => Ending::Well,
                _ if self.has_read_all && exchange.delivery == Delivery::Finished => Ending::Well,
                _ => Ending::None,
            };
        }
        // The application reads what has arrived before it drops the connection.
        let waits = !self.has_read_all && self.reads_at > now;
        if self.ending != Ending::None && !waits && !exchange.wishes.dropped {
            exchange.let_go();
            acted = true;
        }
        acted
    }
}

/// One end of the wire.
#[derive(Debug)]
pub struct End {
    pub port: Port<Application>,
    /// Applications of the connections that were forgotten.
    pub gone: Vec<Application>,
    /// Number of connections that were accepted.
    pub accepted: usize,
    /// Behaviour of each application here: number of bytes that it writes, and the time at which it
    /// begins to read.
    habits: (u64, Time),
    /// True if applications do not close after they have written everything.
    pub rests: bool,
}

impl End {
    /// Creates an end at `address` that draws its random numbers from stream `index` of `seed`.
    pub fn new(
        now: Time,
        address: SocketAddr,
        settings: Settings,
        (seed, index): (u64, u64),
        listens: bool,
        habits: (u64, Time),
    ) -> End {
        let port = Port::seeded(now, address, settings, stream(seed, index), listens);
        End { port, gone: Vec::new(), accepted: 0, habits, rests: false }
    }

    pub fn address(&self) -> SocketAddr {
        self.port.endpoint.local()
    }

    /// Connections of this end.
    pub fn parties(&self) -> impl Iterator<Item = &Party<Application>> {
        self.port.parties.values()
    }

    pub fn parties_mut(&mut self) -> impl Iterator<Item = &mut Party<Application>> {
        self.port.parties.values_mut()
    }

    fn ids(&self) -> Vec<u64> {
        self.port.parties.keys().copied().collect()
    }

    /// Sets whether there is a listener from now on.
    pub fn set_listens(&mut self, listens: bool) {
        self.port.set_listens(listens);
    }

    /// Opens a connection.
    pub fn open(&mut self, now: Time, peer: SocketAddr) {
        let (bytes, reads_at) = self.habits;
        let inner = self.port.settings().inner();
        let id = self.port.open_seeded(now, peer, inner, |tag| Application::new(tag, true, bytes, reads_at));
        self.work(id, now);
    }

    /// Processes a datagram from the address `from`. Returns false if it was found not to be from
    /// the peer of a connection.
    pub fn receive(&mut self, now: Time, from: SocketAddr, datagram: &mut [u8]) -> bool {
        let (bytes, reads_at) = self.habits;
        match self.port.receive(now, from, datagram, |opener| Application::new(opener, false, bytes, reads_at)) {
            Arrived::Refused => return false,
            Arrived::Settled => {}
            Arrived::Told(id) => self.after(id, now),
            Arrived::Accepted(id) => {
                self.accepted += 1;
                self.after(id, now);
            }
        }
        true
    }

    /// Processes an error that the network reports about a datagram to `peer`; `datagram` is the
    /// beginning of that datagram.
    pub fn complain(&mut self, now: Time, peer: SocketAddr, datagram: &[u8], report: Report) {
        if let Some(id) = self.port.complain(now, peer, datagram, report) {
            self.after(id, now);
        }
    }

    /// Lets the applications drop all connections.
    pub fn abort(&mut self, now: Time) {
        for id in self.ids() {
            if let Some(party) = self.port.parties.get_mut(&id) {
                party.exchange.let_go();
            }
            self.work(id, now);
        }
    }

    /// Performs all actions that are due.
    pub fn wake(&mut self, now: Time) {
        self.port.wake_endpoint(now);
        for id in self.ids() {
            let party = &self.port.parties[&id];
            if party.session.next_wakeup() <= now || party.application.reads_at == now {
                self.work(id, now);
            }
        }
    }

    /// Time of the next action.
    pub fn next_wakeup(&self, now: Time) -> Time {
        let of = |party: &Party<Application>| {
            let reads_at = party.application.reads_at;
            party.session.next_wakeup().min(if reads_at > now { reads_at } else { Time::NEVER })
        };
        self.parties().map(of).fold(self.port.endpoint.next_wakeup(), Time::min)
    }

    /// Runs all connections.
    pub fn work_all(&mut self, now: Time) {
        self.ids().into_iter().for_each(|id| self.work(id, now));
    }

    fn work(&mut self, id: u64, now: Time) {
        self.port.work(id, now);
        self.after(id, now);
    }

    /// Completes a step of a connection: its application acts, and the connection is removed if it
    /// is over.
    fn after(&mut self, id: u64, now: Time) {
        for _ in 0..1000 {
            if !self.act(id, now) {
                break;
            }
        }
        self.port.settle(id, now);
        self.act(id, now);
        if let Some(Party { mut exchange, mut application, .. }) = self.port.forget_if_due(id, now) {
            // An application that has not read yet may still read: the data that has arrived
            // belongs to it.
            application.reads_at = Time::ZERO;
            application.act(now, &mut exchange);
            self.gone.push(application);
        }
    }

    /// Lets the application of a connection act. Returns whether it did anything.
    fn act(&mut self, id: u64, now: Time) -> bool {
        let Some(Party { exchange, application, .. }) = self.port.parties.get_mut(&id) else { return false };
        application.rests = self.rests;
        let acted = application.act(now, exchange);
        if acted {
            self.port.work(id, now);
        }
        acted
    }

    /// Removes all outgoing datagrams from the queue and returns them, each with its destination.
    pub fn leaving(&mut self) -> Vec<(SocketAddr, Vec<u8>)> {
        self.port.leaving()
    }

    /// All applications, including those whose connections were forgotten.
    pub fn applications(&self) -> impl Iterator<Item = &Application> {
        self.gone.iter().chain(self.parties().map(|party| &party.application))
    }
}
