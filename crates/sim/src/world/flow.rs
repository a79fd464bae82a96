//! The state of a flow: its application, its connection, and the previous connection, which may still be closing.

use super::gap::Gaps;
use crate::config::Flow;
use crate::traffic::Application;
use meshpace_core::rng::Purpose;
use meshpace_core::{Duration, NodeId, Rng, Time};
use meshpace_transport::{Config, Endpoint, Role, Stats};

/// Connections a flow has at a time.
pub const CONNECTIONS: usize = 2;

/// One end of a connection.
#[derive(Clone)]
pub struct End {
    pub endpoint: Endpoint,
    pub node: NodeId,
    pub peer: NodeId,
    /// Time at which the engine's timer is set for this end.
    pub timer: Time,
    /// The hops that the endpoint was last told.
    pub path: Option<u8>,
    /// A neighbour and the power with which it was last heard, dBm.
    pub power: Option<(NodeId, f32)>,
}

/// A connection: the sender's end, the receiver's end.
#[derive(Clone)]
pub struct Connection {
    pub number: u16,
    pub ends: [End; 2],
}

impl Connection {
    fn new(number: u16, config: &Config, from: NodeId, to: NodeId) -> Connection {
        let end = |role, node, peer| End {
            endpoint: Endpoint::new(config, role),
            node,
            peer,
            timer: Time::NEVER,
            path: None,
            power: None,
        };
        Connection { number, ends: [end(Role::Sender, from, to), end(Role::Receiver, to, from)] }
    }
}

/// Counters of a flow so far; those of an interval are a difference.
#[derive(Clone, Copy, Default)]
pub struct Counted {
    /// Payload delivered to the receiver's application, bytes.
    pub delivered: u64,
    /// Counters of its senders.
    pub sender: Stats,
    /// Counters of its receivers.
    pub receiver: Stats,
    /// Time for which files were under way.
    pub transferring: Duration,
}

impl Counted {
    fn add(&mut self, connection: &Connection) {
        let [sender, receiver] = &connection.ends;
        self.delivered += receiver.endpoint.delivered();
        self.sender += *sender.endpoint.stats();
        self.receiver += *receiver.endpoint.stats();
    }
}

/// A flow under way.
#[derive(Clone)]
pub struct FlowState {
    pub application: Application,
    /// Time at which the application starts.
    pub begin: Time,
    /// Connection `n` is at place `n % 2`.
    pub connections: [Option<Connection>; CONNECTIONS],
    /// The number of the present one.
    present: u16,
    /// Counters of earlier connections.
    past: Counted,
    /// When it waited and got nothing.
    pub gaps: Gaps,
    /// True if every byte that is written arrives, unless the connection ends.
    is_reliable: bool,
}

impl FlowState {
    /// Flow `number`, measured from `warmup` on.
    pub fn new(flow: &Flow, number: u64, seed: u64, warmup: Time) -> FlowState {
        let mut rng = Rng::stream(seed, Purpose::FlowStart, number);
        let jitter = Duration::from_secs_f64(rng.uniform_in(0.0, flow.start_jitter.as_secs_f64()));
        let begin = flow.start + jitter;
        FlowState {
            application: Application::new(flow, number, begin, seed),
            begin,
            connections: [Some(Connection::new(0, &flow.transport, flow.from, flow.to)), None],
            present: 0,
            past: Counted::default(),
            gaps: Gaps::new(warmup, flow.stop.unwrap_or(Time::NEVER)),
            is_reliable: !matches!(flow.transport, Config::Udp(_)),
        }
    }

    /// True if data wait to be delivered after a delivery. Datagrams are lost: of those nobody knows until the next is written.
    #[inline]
    pub fn has_more(&self) -> bool {
        let written = self.application.written();
        match self.application.is_files() {
            true => self.application.is_transferring(),
            false => written == u64::MAX || self.is_reliable && written > self.delivered(),
        }
    }

    /// The place of the present connection.
    #[inline]
    pub fn present(&self) -> usize {
        usize::from(self.present) % CONNECTIONS
    }

    /// The connection at a place.
    #[inline]
    pub fn at(&mut self, place: usize) -> Option<&mut Connection> {
        self.connections[place].as_mut()
    }

    /// The place of connection `number`, unless it is forgotten.
    #[inline]
    pub fn place_of(&self, number: u16) -> Option<usize> {
        let place = usize::from(number) % CONNECTIONS;
        self.connections[place].as_ref().filter(|connection| connection.number == number).map(|_| place)
    }

    /// Puts a new connection in the place of the one before the present one, which is forgotten, said goodbye or not.
    pub fn reconnect(&mut self, config: &Config, from: NodeId, to: NodeId) {
        self.present = self.present.wrapping_add(1);
        let place = self.present();
        if let Some(old) = self.connections[place].take() {
            self.past.add(&old);
        }
        self.connections[place] = Some(Connection::new(self.present, config, from, to));
    }

    /// Payload delivered so far, bytes.
    pub fn delivered(&self) -> u64 {
        let delivered = |connection: &Connection| connection.ends[1].endpoint.delivered();
        self.past.delivered + self.connections.iter().flatten().map(delivered).sum::<u64>()
    }

    /// Counters at `now`.
    pub fn counted(&self, now: Time) -> Counted {
        let mut counted = self.past;
        self.connections.iter().flatten().for_each(|connection| counted.add(connection));
        counted.transferring = self.application.transferring(now);
        counted
    }
}
