//! Compares a connection in the simulator with the same connection over sockets, with the same
//! losses. The segments and their order must be the same.
//!
//! Both worlds run the same state machines. The test compares everything around them: both must
//! report events to the machines in the same order and send exactly the segments of the machines.
//! Packets are lost by their number in each direction.
//!
//! Both use the parameters of the wire, whose RTO has a larger margin than the simulator's default,
//! and the paper's rule that a block waits until it is full.
//!
//! Three things are not compared: times; WinSize, which is a number of segments here and the space
//! of a buffer there; and the number of the first block, which is random on the wire. The
//! handshake's cookie, which the simulator does not need, is in the first packet of each direction
//! on the wire.
#![expect(
    clippy::disallowed_methods,
    reason = "waiting for the last packets, and for a watch of how late the machine is"
)]

use crate::common::noise;
use crate::mesh_pair::converse;
use meshpace_core::rng::Purpose;
use meshpace_core::{Duration, Rng, Time};
use meshpace_live::testbed::{Impairment, Link, Loss, tun_link::ADDRESSES};
use meshpace_live::tpa::framing::decode_plain;
use meshpace_live::tpa::handshake::{Kind, Opening};
use meshpace_live::tpa::{Options, Security, TpaPort};
use meshpace_mesh::MeshConfig;
use meshpace_testing::{Class, skipped};
use meshpace_transport::tpa::{self, Segment, segment::blocks_between};
use meshpace_transport::{PathInfo, Role};
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// Reaction time of an application: greater than zero, but far below any timer.
const REACTION: Duration = Duration::from_millis(1);

/// Lateness of a packet, in ms, that does not yet change what is sent. It applies because the link
/// itself has no delay.
const ROOM: u64 = 40;

/// A compared segment: the side that sent it, whether it was lost, and its fields without those
/// that necessarily differ.
type Trace = Vec<(usize, bool, Segment)>;

fn plain(segment: &Segment) -> Segment {
    Segment { window: 0, offset: 0, ..*segment }
}

/// The conversation in the simulator. The client writes `bytes` once it is connected, and closes.
/// The server closes when it has read them. Each packet is delayed by `delay` first.
fn simulate(config: &tpa::Config, bytes: u64, losses: &[BTreeSet<u64>; 2], delay: impl FnMut() -> Duration) -> Trace {
    let config = tpa::Config { close_with_peer: false, ..config.clone() };
    let mut ends = [Role::Sender, Role::Receiver].map(|role| tpa::Connection::new(&config, role));
    let path = PathInfo { hops: 1, rate: MeshConfig::default().radio.rate, received_power_dbm: None };
    ends.iter_mut().for_each(|end| end.on_path(path));
    ends[0].open(Time::ZERO);
    let (mut wrote, mut closed, mut acts_at) = (false, false, Time::NEVER);
    let trace = converse(&mut ends, losses, 1, delay, |now, ends| {
        if acts_at <= now {
            acts_at = Time::NEVER;
            if !wrote && ends[0].state() == tpa::State::Established {
                wrote = true;
                ends[0].write(now, bytes);
                ends[0].close(now);
            } else if !closed && ends[1].has_peer_closed() {
                closed = true;
                ends[1].close(now);
            }
        }
        // The applications react a little later, as threads do.
        let client_acts = !wrote && ends[0].state() == tpa::State::Established;
        let server_acts = !closed && ends[1].has_peer_closed();
        if (client_acts || server_acts) && acts_at == Time::NEVER {
            acts_at = now + REACTION;
        }
        acts_at
    });
    trace.into_iter().map(|(side, lost, segment)| (side, lost, plain(&segment))).collect()
}

/// The same conversation over sockets in two namespaces.
fn live(config: &tpa::Config, bytes: u64, losses: &[BTreeSet<u64>; 2]) -> Trace {
    // Each direction begins with the packet of the cookie exchange. A repeated request has an
    // additional short packet, its escort.
    let escorts = |side: usize, index: u64| u64::from(side == 0 && losses[0].contains(&0) && index > 1);
    let impairment = |side: usize| Impairment {
        loss: Loss::Indices(losses[side].iter().map(|index| index + 1 + escorts(side, *index)).collect()),
        ..Impairment::default()
    };
    let link = Link::new(impairment(0), impairment(1), 1500, true).expect("there was one a moment ago");
    let options = Options { transport: config.clone(), security: Security::Plain, ..Options::default() };
    let [from, to] = ADDRESSES.map(|address| SocketAddr::from((address, 5000)));
    let sent = noise(1, bytes as usize);
    let listener = link.sides[1].run(|| TpaPort::with_options(to, options.clone()).unwrap().listen(1).unwrap());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let stream =
                link.sides[0].run(|| TpaPort::with_options(from, options.clone()).unwrap().connect(to).unwrap());
            // The client writes and closes at once, before the first block can be acknowledged.
            (&stream).write_all(&sent).unwrap();
            stream.shutdown(Shutdown::Write).unwrap();
            assert_eq!((&stream).read(&mut [0]).unwrap(), 0);
            stream.close().unwrap();
        });
        let stream = listener.accept().unwrap().0;
        let mut got = Vec::new();
        (&stream).read_to_end(&mut got).unwrap();
        assert!(got == sent);
        stream.close().unwrap();
    });
    // The last acknowledgements are still in flight.
    std::thread::sleep(std::time::Duration::from_millis(300));
    let mut firsts = [None; 2];
    let mut trace = Trace::new();
    for passed in link.take_record() {
        // The datagram follows an IP header without options and a UDP header.
        let datagram = &passed.bytes[28..];
        let opening = Opening::decode(datagram).map(|(opening, _)| opening);
        // The simulator has no cookies: neither requests without a cookie nor the challenges that
        // contain one.
        if opening.is_some_and(|it| it.kind == Kind::Challenge || (it.kind == Kind::Request && it.cookie == [0; 16])) {
            continue;
        }
        let opening = opening.map(|opening| (opening.segment, &[][..]));
        let data = || decode_plain(datagram).map(|(_, segment, payload)| (segment, payload));
        let (mut segment, payload) = opening.or_else(data).expect("we sent it");
        let syn = segment.flags.has(tpa::Flags::SYN);
        let (own, other) = (passed.from, 1 - passed.from);
        if syn {
            firsts[own] = Some(segment.block);
            segment.payload = 0;
        }
        if let Some(first) = firsts[own].filter(|_| syn || segment.place != 0) {
            segment.block = blocks_between(first, segment.block);
        }
        if let Some(first) = firsts[other].filter(|_| segment.flags.has(tpa::Flags::ACK)) {
            segment.ack_block = blocks_between(first, segment.ack_block);
        }
        assert!(syn || payload.len() == usize::from(segment.payload));
        trace.push((passed.from, passed.copies == 0, plain(&segment)));
    }
    trace
}

/// Largest number of trials on the wire. The first trial in which the machine was not late counts.
const TRIALS: usize = 10;

/// Result of `during`, and the largest lateness, in ms, of a thread that wakes up every 5 ms during
/// that time.
fn lateness<T>(during: impl FnOnce() -> T) -> (T, u64) {
    let period = std::time::Duration::from_millis(5);
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let watch = scope.spawn(|| {
            let mut most = std::time::Duration::ZERO;
            while !over.load(Ordering::Relaxed) {
                let slept = Instant::now();
                std::thread::sleep(period);
                most = most.max(slept.elapsed() - period);
            }
            most.as_millis() as u64
        });
        let result = during();
        over.store(true, Ordering::Relaxed);
        (result, watch.join().unwrap())
    })
}

fn compare(name: &str, losses: [&[u64]; 2]) {
    if let Some(reason) = Link::missing() {
        skipped(Class::Rights, reason);
        return;
    }
    // This segment fits into a datagram of 1500 bytes with a tag.
    let config = tpa::Config { segment: 1452, waits_to_fill: true, ..Options::named(name).unwrap().transport };
    let losses = losses.map(|indices| indices.iter().copied().collect::<BTreeSet<u64>>());
    let bytes = 3 * 12 * 1452 + 700;
    let simulated = simulate(&config, bytes, &losses, || Duration::ZERO);
    let of = |side: usize, trace: &Trace| trace.iter().filter(|sent| sent.0 == side).copied().collect::<Vec<_>>();
    for seed in 0..20 {
        let mut rng = Rng::stream(seed, Purpose::Test, 0);
        let late = simulate(&config, bytes, &losses, || Duration::from_millis(rng.below(ROOM + 1)));
        assert!((0..2).all(|side| of(side, &late) == of(side, &simulated)), "{name}: no room, seed {seed}");
    }
    // Two threads that are late one after the other may use up the tolerance together.
    let mut trials = (0..TRIALS).map(|_| lateness(|| live(&config, bytes, &losses)));
    let Some((lived, _)) = trials.find(|(_, late)| *late < ROOM / 2) else {
        let reason = format!("the machine was late by {} ms and more in each of {TRIALS} trials", ROOM / 2);
        skipped(Class::Rights, reason);
        return;
    };
    for (side, lost_here) in losses.iter().enumerate() {
        let (simulated, lived) = (of(side, &simulated), of(side, &lived));
        for (index, (a, b)) in simulated.iter().zip(&lived).enumerate() {
            assert_eq!(a, b, "{name}: packet {index} of side {side}, in the simulator and on the wire");
        }
        assert_eq!(simulated.len(), lived.len(), "{name}: packets of side {side}");
        let lost = simulated.iter().filter(|sent| sent.1).count();
        assert_eq!(lost, lost_here.len(), "{name}: losses of side {side} that hit anything");
    }
    let again = |trace: &Trace| trace.iter().filter(|sent| sent.0 == 0 && sent.2.payload > 0).count();
    assert!(losses[0].is_empty() || again(&simulated) > 37, "{name}: nothing was sent twice");
}

#[test]
fn without_losses() {
    compare("tpa-2", [&[], &[]]);
}

#[test]
fn with_data_lost() {
    compare("tpa-2", [&[4, 5, 17], &[]]);
}

#[test]
fn with_acknowledgements_lost() {
    compare("tpa-3", [&[7], &[3, 4, 9]]);
}

#[test]
fn with_the_opening_lost() {
    compare("tpa*-3", [&[0, 12], &[0]]);
}
