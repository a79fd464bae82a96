//! A run with hostile peers, drawn from its seed: the end under attack, its honest clients, and what each hostile peer does when.

use super::super::plan::{Habits, stream};
use super::attack::Attack;
use crate::tpa::session::handshake::InnerTransport;
use crate::tpa::session::settings::{Limits, Settings};
use crate::tpa::{Options, Security};
use meshpace_core::{Duration, Rng, Time};
use meshpace_transport::{tpa, train};
use std::net::SocketAddr;

const INNER: [InnerTransport; 3] = [InnerTransport::Tpa, InnerTransport::Trains, InnerTransport::Bbr];

/// Bytes that the end under attack writes to each of its peers: in most runs the first number at most, in one of sixteen the last.
const BYTES: [u64; 4] = [20_000, 60_000, 200_000, 1_500_000];

/// Time that a datagram takes at most.
const LONGEST_DELAY: f64 = 0.05;

/// An action of a hostile peer, repeated `count` times.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub(super) at: Time,
    pub(super) attack: Attack,
    pub(super) count: u32,
    pub(super) every: Duration,
}

/// A hostile peer.
#[derive(Clone, Debug)]
pub(super) struct PeerPlan {
    pub(super) inner: InnerTransport,
    /// What it writes as an honest peer would.
    pub(super) habits: Habits,
    pub(super) steps: Vec<Step>,
}

/// An honest client.
#[derive(Clone, Debug)]
pub(super) struct ClientPlan {
    pub(super) inner: InnerTransport,
    pub(super) opens_at: Time,
    pub(super) habits: Habits,
}

/// A run.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) seed: u64,
    /// The end under attack listens. Otherwise it opens a connection to each hostile peer.
    pub(super) listens: bool,
    pub(super) settings: Settings,
    /// What the end under attack writes in each connection.
    pub(super) habits: Habits,
    pub(super) delay: Duration,
    pub(super) peers: Vec<PeerPlan>,
    pub(super) clients: Vec<ClientPlan>,
    /// From then on nothing is heard of the hostile peers.
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

/// Addresses of a hostile peer, where it hears what arrives. It connects from the first, or listens there.
pub(super) fn own(index: usize) -> [SocketAddr; 4] {
    let at = |host: u8, port: u16| SocketAddr::from(([10, 66, 1 + index as u8, host], port));
    [at(1, 4000), at(1, 4001), at(2, 4000), at(3, 4000)]
}

/// Addresses of those who have no part in this, and of honest clients.
pub(super) fn victims(clients: usize) -> Vec<SocketAddr> {
    let strangers = (1..=4).map(|host| SocketAddr::from(([192, 0, 2, host], 53)));
    let beside = (0..clients).flat_map(|index| [client(index), SocketAddr::new(client(index).ip(), 7)]);
    strangers.chain(beside).collect()
}

impl Plan {
    /// The run of `seed`.
    pub(super) fn of(seed: u64) -> Plan {
        // Streams of random numbers that no run without hostile peers has.
        let mut rng = stream(seed, 500);
        let rng = &mut rng;
        let listens = rng.below(3) > 0;
        let until = Time((rng.uniform_in(3.0, 15.0) * 1e9) as u64);
        let settings = settings(rng);
        let bytes = BYTES[[0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 3][rng.below(16) as usize]];
        let count = 1 + rng.below(if bytes == BYTES[3] { 2 } else { 6 });
        let peers = (0..count).map(|number| peer(rng, seed + number, listens, until)).collect();
        let clients = if listens { 1 + rng.below(3) } else { 0 };
        Plan {
            seed,
            listens,
            settings,
            habits: at_once(bytes / 2 + rng.below(bytes / 2)),
            delay: Duration((rng.uniform_in(0.001, LONGEST_DELAY) * 1e9) as u64),
            peers,
            clients: (0..clients).map(|_| client_plan(rng, until)).collect(),
            until,
        }
    }
}

fn at_once(bytes: u64) -> Habits {
    Habits { bursts: vec![(Time::ZERO, bytes)] }
}

fn inner(rng: &mut Rng) -> InnerTransport {
    INNER[rng.below(3) as usize]
}

fn client_plan(rng: &mut Rng, until: Time) -> ClientPlan {
    let habits = Habits { bursts: vec![(Time::ZERO, 1 + rng.below(10_000))] };
    ClientPlan { inner: inner(rng), opens_at: Time(rng.below(until.0)), habits }
}

/// Actions that attain more together; a third of the peers keep to one of these rows.
const THEMES: [&[Attack]; 3] =
    [&[Attack::ManyConnections, Attack::Move], &[Attack::AcknowledgeBlindly], &[Attack::TinyPieces]];

/// A peer whose first action is one of all in turn, as `turn` says.
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
        let count = [1, 1 + rng.below(8), 1 + rng.below(60)][rng.below(3) as usize] as u32;
        let every = Duration::from_micros([0, rng.below(5_000), rng.below(300_000)][rng.below(3) as usize]);
        let (count, every) = match attack {
            // Long enough to be believed, or to be found out.
            Attack::AcknowledgeBlindly => (20 + rng.below(80) as u32, Duration::from_micros(1_000 + rng.below(20_000))),
            _ => (count, every),
        };
        Step { at: Time(rng.below(until.0)), attack, count, every }
    });
    let steps = steps.collect();
    let written = rng.below(30_000);
    let mut habits = at_once(written);
    if rng.below(4) > 0 {
        // It does not end its stream while it acts.
        habits.bursts.push((until + Duration::from_secs(3600), written + 1));
    }
    PeerPlan { inner: inner(rng), habits, steps }
}

/// Settings of all ends: each has the keys of the others, and takes every transport.
fn settings(rng: &mut Rng) -> Settings {
    let mut transport = tpa::Config { ack_block_end: true, ..tpa::Config::default() };
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
