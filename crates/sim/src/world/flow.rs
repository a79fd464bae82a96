//! State of a flow: its application, its connection, and the previous connection, which may still
//! be closing.

use super::gap::Gaps;
use crate::config::Flow;
use crate::traffic::Application;
use meshpace_core::rng::Purpose;
use meshpace_core::{Duration, NodeId, Rng, Time};
use meshpace_transport::{Config, Endpoint, Role, Stats};

/// Number of connections that a flow keeps at a time.
pub const CONNECTIONS: usize = 2;

/// One end of a connection.
#[derive(Clone)]
pub struct End {
    pub endpoint: Endpoint,
    pub node: NodeId,
    pub peer: NodeId,
    /// Time of the engine's timer for this end.
    pub timer: Time,
    /// Number of hops that was last reported to the endpoint.
    pub path: Option<u8>,
    /// Neighbour and the power in dBm with which it was last received.
    pub power: Option<(NodeId, f32)>,
}

/// Connection with the ends of the sender and of the receiver.
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

/// Counters of a flow since time zero. Those of an interval are differences.
#[derive(Clone, Copy, Default)]
pub struct FlowCounters {
    /// Payload delivered to the receiver's application, in bytes.
    pub delivered: u64,
    /// Counters of the sending endpoints.
    pub sender: Stats,
    /// Counters of the receiving endpoints.
    pub receiver: Stats,
    /// Total time of the file transfers.
    pub transferring: Duration,
}

impl FlowCounters {
    fn add(&mut self, connection: &Connection) {
        let [sender, receiver] = &connection.ends;
        self.delivered += receiver.endpoint.delivered();
        self.sender += *sender.endpoint.stats();
        self.receiver += *receiver.endpoint.stats();
    }
}

/// State of a flow during a run.
#[derive(Clone)]
pub struct FlowState {
    pub application: Application,
    /// Time at which the application starts.
    pub begin: Time,
    /// Connections; connection `n` is at index `n % 2`.
    pub connections: [Option<Connection>; CONNECTIONS],
    /// Number of the current connection.
    current: u16,
    /// Counters of earlier connections.
    past: FlowCounters,
    /// Times without a delivery while data was waiting.
    pub gaps: Gaps,
    /// True if every written byte is delivered unless the connection ends.
    is_reliable: bool,
}

impl FlowState {
    /// Creates flow `number`, which is measured from `warmup` on.
    pub fn new(flow: &Flow, number: u64, seed: u64, warmup: Time) -> FlowState {
        let mut rng = Rng::stream(seed, Purpose::FlowStart, number);
        let jitter = Duration::from_secs_f64(rng.uniform_in(0.0, flow.start_jitter.as_secs_f64()));
        let begin = flow.start + jitter;
        FlowState {
            application: Application::new(flow, number, begin, seed),
            begin,
            connections: [Some(Connection::new(0, &flow.transport, flow.from, flow.to)), None],
            current: 0,
            past: FlowCounters::default(),
            gaps: Gaps::new(warmup, flow.stop.unwrap_or(Time::NEVER)),
            is_reliable: !matches!(flow.transport, Config::Udp(_)),
        }
    }

    /// True if data still waits to be delivered after a delivery. Datagrams may be lost without
    /// notice, so after a delivery none is considered waiting until the next write.
    #[inline]
    pub fn has_more(&self) -> bool {
        let written = self.application.written();
        match self.application.is_files() {
            true => self.application.is_transferring(),
            false => written == u64::MAX || self.is_reliable && written > self.delivered(),
        }
    }

    /// Index of the current connection.
    #[inline]
    pub fn current(&self) -> usize {
        usize::from(self.current) % CONNECTIONS
    }

    /// Connection at an index.
    #[inline]
    pub fn at(&mut self, place: usize) -> Option<&mut Connection> {
        self.connections[place].as_mut()
    }

    /// Index of connection `number`; `None` if the connection was removed.
    #[inline]
    pub fn place_of(&self, number: u16) -> Option<usize> {
        let place = usize::from(number) % CONNECTIONS;
        self.connections[place].as_ref().filter(|connection| connection.number == number).map(|_| place)
    }

    /// Creates a new connection in place of the one before the current one, which is removed
    /// whether or not it is closed.
    pub fn reconnect(&mut self, config: &Config, from: NodeId, to: NodeId) {
        self.current = self.current.wrapping_add(1);
        let place = self.current();
        if let Some(old) = self.connections[place].take() {
            self.past.add(&old);
        }
        self.connections[place] = Some(Connection::new(self.current, config, from, to));
    }

    /// Payload delivered so far, in bytes.
    pub fn delivered(&self) -> u64 {
        let delivered = |connection: &Connection| connection.ends[1].endpoint.delivered();
        self.past.delivered + self.connections.iter().flatten().map(delivered).sum::<u64>()
    }

    /// Counters at `now`.
    pub fn counters(&self, now: Time) -> FlowCounters {
        let mut counted = self.past;
        self.connections.iter().flatten().for_each(|connection| counted.add(connection));
        counted.transferring = self.application.transferring(now);
        counted
    }
}
