//! Random plans of a run: which ends talk, the transport and the protection, and the faults.
//!
//! proptest makes a plan from a seed alone, and simpler plans from one that fails. Every number
//! shrinks towards the value at which nothing happens.

use crate::handshake::InnerTransport;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

/// Protection of all connections of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Protection {
    Plain,
    Opportunistic,
    Shared,
    Known,
}

/// One run. Probabilities are per mille.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) seed: u64,
    pub(super) protection: Protection,
    pub(super) carried: InnerTransport,
    /// True for AES-256-GCM, at the openers and at the listener.
    pub(super) aes: (bool, bool),
    /// A key serves two to the power of this many datagrams.
    pub(super) key_life: u32,
    pub(super) path: Path,
    pub(super) observer: Observer,
    pub(super) talks: Vec<Talk>,
    pub(super) incidents: Vec<Incident>,
    /// True if the limits are so low that some of the talks reach them.
    pub(super) are_limits_tight: bool,
    /// Number of handshakes per second that strangers begin and do not finish.
    pub(super) flood: u64,
    /// Behaviour of a hostile listener, which has all keys and seals other content than its
    /// protocol wants to send. `None` if the listener is honest.
    pub(super) hostile_listener: Option<Hostile>,
}

/// Properties of the path between the ports and the listener.
#[derive(Clone, Copy, Debug)]
pub(super) struct Path {
    pub(super) delay_ms: u64,
    pub(super) jitter_ms: u64,
    pub(super) lost: u64,
    pub(super) doubled: u64,
    /// Largest IP packet, bytes.
    pub(super) width: usize,
}

/// An observer who reads all datagrams and adds datagrams of its own.
#[derive(Clone, Copy, Debug)]
pub(super) struct Observer {
    /// Altered copies of datagrams of open connections.
    pub(super) altered: u64,
    /// Altered copies of datagrams that open connections.
    pub(super) altered_openings: u64,
    /// Earlier datagrams that are sent again, from their original address or from one of the
    /// observer.
    pub(super) replayed: u64,
    /// Copies that arrive before the original, most of them from an address of the observer.
    pub(super) overtaken: u64,
    /// Strays, and ICMP messages of the network, about datagrams that leave.
    pub(super) complaints: u64,
    /// Datagrams of random bytes behind the right tag.
    pub(super) invented: u64,
}

/// A hostile peer that has the keys of its connections.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hostile {
    /// Datagrams whose header or length is changed.
    pub(super) changed: u64,
    /// Datagrams that are added.
    pub(super) added: u64,
    /// Datagrams with a forged source address.
    pub(super) spoofed: u64,
    /// Datagrams whose number jumps ahead.
    pub(super) jumps: u64,
    /// Received datagrams that the peer drops, and acknowledges together with everything sent
    /// before.
    pub(super) claims: u64,
}

/// One connection, and the behaviour of its two applications.
#[derive(Clone, Copy, Debug)]
pub(super) struct Talk {
    /// Number of the port that opens the connection.
    pub(super) source: usize,
    pub(super) starts_ms: u64,
    /// Bytes from the opener to the listener, and in the other direction.
    pub(super) bytes: [u64; 2],
    /// Number of parts in which each end writes.
    pub(super) parts: u64,
    /// Time between two parts.
    pub(super) pause_ms: u64,
    /// Pause of each writer after half of its stream.
    pub(super) silence_ms: u64,
    /// Bytes that each reader reads at once.
    pub(super) takes: usize,
    /// Time between two reads.
    pub(super) read_pause_ms: u64,
    pub(super) hostile: Option<Hostile>,
}

/// An event at a fixed time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Incident {
    pub(super) at_ms: u64,
    pub(super) kind: Kind,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    /// The network drops every datagram.
    Blackout {
        for_ms: u64,
    },
    /// A port has another address from now on: another port of its router, or an address in another
    /// network.
    Move {
        source: usize,
        is_other_network: bool,
    },
    /// A process ends without notice and restarts.
    RestartOpener {
        source: usize,
    },
    RestartListener,
    /// The listener accepts no new connections for a while.
    NoListener {
        for_ms: u64,
    },
    /// One end of a talk resets the connection.
    Abort {
        talk: usize,
        by_listener: bool,
    },
    /// One end of a talk lets go of the connection without reading on.
    LetGo {
        talk: usize,
        by_listener: bool,
    },
}

/// Number of ports that open connections.
pub(super) const SOURCES: usize = 4;

/// 0 in three of four cases, otherwise up to `most` per mille.
fn rarely(most: u64) -> impl Strategy<Value = u64> {
    prop_oneof![3 => Just(0), 1 => 1..=most]
}

fn hostile() -> impl Strategy<Value = Hostile> {
    (rarely(500), rarely(500), rarely(300), rarely(50), rarely(900))
        .prop_map(|(changed, added, spoofed, jumps, claims)| Hostile { changed, added, spoofed, jumps, claims })
}

fn talk() -> impl Strategy<Value = Talk> {
    let bytes = || prop_oneof![2 => 0..=3000_u64, 2 => 0..=60_000_u64];
    let writing = (1..=20_u64, rarely(3000), prop_oneof![9 => Just(0), 1 => 0..=100_000_u64]);
    let reading = (prop_oneof![3 => Just(1 << 16), 1 => 1000..=20_000_usize], rarely(3000));
    let hostile = option::weighted(0.2, hostile());
    (0..SOURCES, 0..=5000_u64, [bytes(), bytes()], writing, reading, hostile).prop_map(
        |(source, starts_ms, bytes, (parts, pause_ms, silence_ms), (takes, read_pause_ms), hostile)| Talk {
            source,
            starts_ms,
            bytes,
            parts,
            pause_ms,
            silence_ms,
            takes,
            read_pause_ms,
            hostile,
        },
    )
}

fn incident() -> impl Strategy<Value = Incident> {
    let talk = 0..8_usize;
    let kind = prop_oneof![
        (1..=15_000_u64).prop_map(|for_ms| Kind::Blackout { for_ms }),
        (0..SOURCES, any::<bool>()).prop_map(|(source, is_other_network)| Kind::Move { source, is_other_network }),
        (0..SOURCES, any::<bool>()).prop_map(|(source, is_other_network)| Kind::Move { source, is_other_network }),
        (0..SOURCES).prop_map(|source| Kind::RestartOpener { source }),
        Just(Kind::RestartListener),
        (1..=10_000_u64).prop_map(|for_ms| Kind::NoListener { for_ms }),
        (talk.clone(), any::<bool>()).prop_map(|(talk, by_listener)| Kind::Abort { talk, by_listener }),
        (talk, any::<bool>()).prop_map(|(talk, by_listener)| Kind::LetGo { talk, by_listener }),
    ];
    (0..=30_000_u64, kind).prop_map(|(at_ms, kind)| Incident { at_ms, kind })
}

fn path() -> impl Strategy<Value = Path> {
    let width = prop_oneof![5 => Just(1500), 1 => Just(1280), 1 => Just(576), 1 => 576..=1500_usize];
    (0..=200_u64, rarely(100), rarely(100), rarely(100), width)
        .prop_map(|(delay_ms, jitter_ms, lost, doubled, width)| Path { delay_ms, jitter_ms, lost, doubled, width })
}

fn observer() -> impl Strategy<Value = Observer> {
    (rarely(500), rarely(100), rarely(500), rarely(300), rarely(500), rarely(500)).prop_map(
        |(altered, altered_openings, replayed, overtaken, complaints, invented)| Observer {
            altered,
            altered_openings,
            replayed,
            overtaken,
            complaints,
            invented,
        },
    )
}

fn strategy(seed: u64) -> impl Strategy<Value = Plan> {
    let protection = prop_oneof![
        Just(Protection::Plain),
        Just(Protection::Opportunistic),
        Just(Protection::Shared),
        Just(Protection::Known),
    ];
    let carried = prop_oneof![Just(InnerTransport::Tpa), Just(InnerTransport::Trains), Just(InnerTransport::Bbr)];
    // A key serves more datagrams than are lost in a blackout. An end that misses all datagrams of
    // a key has lost the connection.
    let key_life = prop_oneof![1 => Just(20), 1 => 8..=10_u32];
    let ends = (protection, carried, any::<(bool, bool)>(), key_life);
    let talks = prop_oneof![9 => vec(talk(), 1..6), 1 => vec(talk(), 12..24)];
    let limits = prop_oneof![5 => Just(false), 1 => Just(true)];
    // Each handshake costs four multiplications on the curve. So rates that exceed a limit are
    // rather rare.
    let flood = prop_oneof![24 => Just(0), 3 => 1..=30_u64, 1 => 31..=200_u64];
    let hostile_listener = option::weighted(0.1, hostile());
    (ends, path(), observer(), talks, vec(incident(), 0..5), limits, flood, hostile_listener).prop_map(
        move |(ends, path, observer, talks, incidents, are_limits_tight, flood, hostile_listener)| {
            let (protection, carried, aes, key_life) = ends;
            Plan {
                seed,
                protection,
                carried,
                aes,
                key_life,
                path,
                observer,
                talks,
                incidents,
                are_limits_tight,
                flood,
                hostile_listener,
            }
        },
    )
}

/// The plans of `seed`. The first one is the seed's own plan; the others are simpler.
pub(super) fn plans(seed: u64) -> impl ValueTree<Value = Plan> {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let config = Config { failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &bytes));
    let tree = strategy(seed).new_tree(&mut runner);
    tree.expect("no strategy of a plan refuses a value")
}
