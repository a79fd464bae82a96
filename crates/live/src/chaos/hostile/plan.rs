//! Plan of a run with hostile peers, derived from its seed: the end under attack, its honest
//! clients, and the actions of each hostile peer.

use super::super::plan::{Habits, stream};
use super::attack::Attack;
use crate::tpa::{Options, Security};
use meshpace_core::{Duration, Rng, Time};
use meshpace_session::budget::Bounds;
use meshpace_session::handshake::InnerTransport;
use meshpace_session::settings::{Limits, Settings};
use meshpace_transport::{tpa, train};
use std::net::SocketAddr;
use std::sync::Arc;

const INNER: [InnerTransport; 3] = [InnerTransport::Tpa, InnerTransport::Trains, InnerTransport::Bbr];

/// Maximum numbers of bytes that the end under attack writes to each of its peers. Most runs use
/// the first number, and one run in sixteen uses the last.
const BYTES: [u64; 4] = [20_000, 60_000, 200_000, 1_000_000];

/// Number of parts in which the end under attack writes, if it does not write everything at once.
const BURSTS: u64 = 8;

/// Longest delay of a datagram, seconds.
const LONGEST_DELAY: f64 = 0.05;

/// An action of a hostile peer, repeated `count` times.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub(super) at: Time,
    pub(super) attack: Attack,
    pub(super) count: u32,
    pub(super) every: Duration,
}

/// Plan of a hostile peer.
#[derive(Clone, Debug)]
pub(super) struct PeerPlan {
    pub(super) inner: InnerTransport,
    /// Data that the peer writes as an honest peer would.
    pub(super) habits: Habits,
    pub(super) steps: Vec<Step>,
}

/// Plan of an honest client.
#[derive(Clone, Debug)]
pub(super) struct ClientPlan {
    pub(super) inner: InnerTransport,
    pub(super) opens_at: Time,
    pub(super) habits: Habits,
}

/// Plan of a run.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) seed: u64,
    /// True if the end under attack listens. Otherwise it opens a connection to each hostile peer.
    pub(super) listens: bool,
    /// Settings of all ends, except for keys and memory limits.
    settings: Settings,
    /// True if every end has its own key. Each key of a hostile peer is shared by two of them.
    has_keys: bool,
    /// Limits on the bytes in the buffers of the end under attack: for all connections, one source
    /// and one key. `None` for the default limits.
    pub(super) memory: Option<Bounds>,
    buffers: [Buffers; INNER.len()],
    /// Data that the end under attack writes in each connection.
    pub(super) habits: Habits,
    pub(super) delay: Duration,
    pub(super) peers: Vec<PeerPlan>,
    pub(super) clients: Vec<ClientPlan>,
    /// Time after which the hostile peers are silent.
    pub(super) until: Time,
}

/// Address of the end under attack.
pub(super) fn target() -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 1], 4000))
}

/// Address of an honest client.
pub(super) fn client(index: usize) -> SocketAddr {
    SocketAddr::from(([10, 1, 0, 1 + index as u8], 5000))
}

/// Addresses of a hostile peer, at which it receives. It connects from the first one, or listens
/// there.
pub(super) fn own(index: usize) -> [SocketAddr; 4] {
    let at = |host: u8, port: u16| SocketAddr::from(([10, 66, 1 + index as u8, host], port));
    [at(1, 4000), at(1, 4001), at(2, 4000), at(3, 4000)]
}

/// Addresses of uninvolved hosts and of honest clients.
pub(super) fn victims(clients: usize) -> Vec<SocketAddr> {
    let strangers = (1..=4).map(|host| SocketAddr::from(([192, 0, 2, host], 53)));
    let beside = (0..clients).flat_map(|index| [client(index), SocketAddr::new(client(index).ip(), 7)]);
    strangers.chain(beside).collect()
}

/// An end of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum End {
    Target,
    Client(usize),
    Peer(usize),
}

impl End {
    /// Private key of this end.
    fn key(self) -> [u8; 32] {
        match self {
            End::Target => [1; 32],
            End::Client(index) => [20 + index as u8; 32],
            End::Peer(index) => [40 + key_of(index) as u8; 32],
        }
    }
}

/// Number of the key that a hostile peer has.
pub(super) fn key_of(peer: usize) -> usize {
    peer / 2
}

/// Maximum number of bytes in the buffers of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Buffers {
    pub(super) send: usize,
    pub(super) receive: usize,
}

impl Buffers {
    fn of(settings: &Settings, inner: InnerTransport) -> Buffers {
        let settings = Arc::new(settings.clone()).with(inner);
        Buffers { send: settings.send_buffer, receive: settings.receive_buffer }
    }
}

impl Plan {
    /// Derives the plan of `seed`.
    pub(super) fn of(seed: u64) -> Plan {
        // The run uses random streams that no run without hostile peers uses.
        let mut rng = stream(seed, 500);
        let rng = &mut rng;
        let listens = rng.below(3) > 0;
        let until = Time((rng.uniform_in(3.0, 15.0) * 1e9) as u64);
        let settings = settings(rng);
        let bytes = BYTES[[0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 3][rng.below(16) as usize]];
        // Fewer peers are preferred to more: five or six find what several peers achieve together
        // not much sooner than three.
        let others = rng.below(6).min(rng.below(6));
        let count = 1 + if bytes == BYTES[3] { rng.below(2) } else { others };
        let peers = (0..count).map(|number| peer(rng, seed + number, listens, until)).collect();
        let has_keys = listens && rng.below(4) == 0;
        let memory = (rng.below(4) == 0).then(|| bounds(rng));
        // If memory is scarce, clients that come late have no guarantee, so there are none.
        let clients = if listens && memory.is_none() { 1 + rng.below(3) } else { 0 };
        Plan {
            seed,
            listens,
            buffers: INNER.map(|inner| Buffers::of(&settings, inner)),
            settings,
            has_keys,
            memory,
            habits: in_bursts(rng, bytes, until),
            delay: Duration((rng.uniform_in(0.001, LONGEST_DELAY) * 1e9) as u64),
            peers,
            clients: (0..clients).map(|_| client_plan(rng, until)).collect(),
            until,
        }
    }

    /// Settings of an end.
    pub(super) fn settings(&self, end: End) -> Settings {
        let mut settings = self.settings.clone();
        if let (End::Target, Some(bounds)) = (end, self.memory) {
            settings.limits.buffers = Some(bounds.port);
            settings.limits.buffers_per_source = Some(bounds.source);
            settings.limits.buffers_per_key = Some(bounds.key);
        }
        // Each end has a memory budget of its own.
        settings.budget = settings.limits.budget(None);
        if self.has_keys {
            let others = match end {
                End::Target => {
                    let clients = (0..self.clients.len()).map(End::Client);
                    clients.chain((0..self.peers.len()).map(End::Peer)).collect()
                }
                End::Client(_) | End::Peer(_) => vec![End::Target],
            };
            let peers = others.into_iter().map(|other| Security::public_key(&other.key())).collect();
            settings.security = Security::Keys { own: end.key(), peers };
        }
        settings
    }

    /// Limits of the end under attack.
    pub(super) fn limits(&self) -> Limits {
        self.settings.limits
    }

    /// True if the end under attack knows the keys of its peers.
    pub(super) fn has_keys(&self) -> bool {
        self.has_keys
    }

    /// Maximum number of bytes in the buffers of a connection with this inner transport.
    pub(super) fn buffers(&self, inner: InnerTransport) -> Buffers {
        let at = INNER.iter().position(|one| *one == inner);
        self.buffers[at.expect("every transport is in the table")]
    }

    /// All addresses from which datagrams come.
    pub(super) fn addresses(&self) -> impl Iterator<Item = SocketAddr> {
        (0..self.peers.len()).flat_map(own).chain(victims(self.clients.len()))
    }
}

fn at_once(bytes: u64) -> Habits {
    Habits { bursts: vec![(Time::ZERO, bytes)] }
}

/// Data that the end under attack writes: everything at once, or some now and the rest while the
/// hostile peers act.
fn in_bursts(rng: &mut Rng, bytes: u64, until: Time) -> Habits {
    let bytes = bytes / 2 + rng.below(bytes / 2);
    if rng.below(3) == 0 {
        return at_once(bytes);
    }
    let mut times: Vec<u64> = (0..BURSTS - 1).map(|_| rng.below(until.0)).collect();
    times.push(0);
    times.sort_unstable();
    let bursts = (1..).zip(times).map(|(number, at)| (Time(at), bytes * number / BURSTS));
    Habits { bursts: bursts.collect() }
}

/// Memory limits that some connections reach together.
fn bounds(rng: &mut Rng) -> Bounds {
    let port = (100_000 + rng.below(500_000)) as usize;
    let mut part = || port / (1 + rng.below(4) as usize);
    Bounds { port, source: part(), key: part() }
}

fn inner(rng: &mut Rng) -> InnerTransport {
    INNER[rng.below(3) as usize]
}

fn client_plan(rng: &mut Rng, until: Time) -> ClientPlan {
    let habits = Habits { bursts: vec![(Time::ZERO, 1 + rng.below(10_000))] };
    ClientPlan { inner: inner(rng), opens_at: Time(rng.below(until.0)), habits }
}

/// Actions that achieve more together. A third of the peers use only the actions of one of these
/// rows.
const THEMES: [&[Attack]; 3] =
    [&[Attack::ManyConnections, Attack::Move], &[Attack::AcknowledgeBlindly], &[Attack::TinyPieces]];

/// Plan of a peer. Its first action is chosen in turn from all actions, by `turn`.
fn peer(rng: &mut Rng, turn: u64, listens: bool, until: Time) -> PeerPlan {
    let fits = |attack: &&Attack| listens || attack.fits_opener();
    let all: Vec<Attack> = Attack::ALL.iter().filter(fits).copied().collect();
    let actions = 2 + rng.below(7);
    let theme = THEMES[rng.below(3) as usize];
    let has_theme = rng.below(3) == 0 && (listens || theme.iter().all(|attack| attack.fits_opener()));
    let steps = (0..actions).map(|number| {
        let attack = match number {
            _ if has_theme => theme[rng.below(theme.len() as u64) as usize],
            0 => all[turn as usize % all.len()],
            _ => all[rng.below(all.len() as u64) as usize],
        };
        let count = [1, 1 + rng.below(8), 1 + rng.below(24)][rng.below(3) as usize] as u32;
        let every = Duration::from_micros([0, rng.below(5_000), rng.below(300_000)][rng.below(3) as usize]);
        let (count, every) = match attack {
            // The repetitions last long enough for the acknowledgements to be believed or to be
            // detected.
            Attack::AcknowledgeBlindly => (20 + rng.below(80) as u32, Duration::from_micros(1_000 + rng.below(20_000))),
            // Each action opens up to four connections: together more than one source may have, and
            // more than it may begin in a second.
            Attack::ManyConnections | Attack::Unfinished => (count.min(12), every),
            _ => (count, every),
        };
        Step { at: Time(rng.below(until.0)), attack, count, every }
    });
    let steps = steps.collect();
    let written = rng.below(30_000);
    let mut habits = at_once(written);
    if rng.below(4) > 0 {
        // The peer does not end its stream while it acts.
        habits.bursts.push((until + Duration::from_secs(3600), written + 1));
    }
    PeerPlan { inner: inner(rng), habits, steps }
}

/// Settings of all ends: each has the keys of the others, and accepts every transport.
fn settings(rng: &mut Rng) -> Settings {
    let mut transport = tpa::Config { ack_block_end: true, fin_follows: true, ..tpa::Config::default() };
    transport.segment = 300 + rng.below(900) as u32;
    let mut options = Options::of(transport);
    options.trains = Some(train::Config::default());
    options.takes_tpa = true;
    let block = 1_200 * 12;
    options.receive_buffer = 3 * block + rng.below(60_000) as usize;
    options.send_buffer = 2 * block + rng.below(60_000) as usize;
    let per_source = 2 + rng.below(6) as usize;
    let half_open = 16 + rng.below(32) as usize;
    options.limits = Limits {
        // All hostile peers are in one network of 16 bits, which leaves one place in 32 to others.
        connections: 160,
        connections_per_source: per_source,
        half_open,
        half_open_per_source: half_open / 4,
        handshakes_per_second: 8 + rng.below(24) as u32,
        ..Limits::default()
    };
    options.security = match rng.below(3) {
        0 => Security::Opportunistic,
        _ => Security::Shared([1 + rng.below(255) as u8; 32]),
    };
    Settings::clone(&options.service().settings)
}
