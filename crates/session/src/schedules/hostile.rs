//! Tests of a peer that has the keys of its connection and abuses them: it sends from the forged
//! address of a victim, or acknowledges data that it has not received.

use super::end::End;
use super::settings::{self, Settings};
use crate::connection::forging::Forgery;
use crate::engine::AnySegment;
use crate::handshake::InnerTransport;
use crate::path_frame::PathFrame;
use crate::security::Security;
use crate::settings::Limits;
use meshpace_core::{Duration, Time};
use meshpace_transport::flags::Flags;
use meshpace_transport::{bbr, tpa, train};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

const INNER: [InnerTransport; 3] = [InnerTransport::Tpa, InnerTransport::Trains, InnerTransport::Bbr];

/// Delay of a datagram.
const DELAY: Duration = Duration::from_millis(20);

/// Number of bytes that the end under attack has to send: more than fits into any receive buffer.
const BYTES: u64 = 40_000_000;

/// Time after the end of every test.
const NEVER_READS: Time = Time(3_600_000_000_000);

/// Index of the end that keeps to the protocol.
const HONEST: usize = 0;

/// Index of the end whose keys are abused.
const HOSTILE: usize = 1;

fn address(host: u8) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, host], 4000))
}

/// Address of a host that has no part in the connection.
fn victim() -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 1], 53))
}

/// An honest end and a hostile one, in virtual time.
struct Scene {
    now: Time,
    ends: [End; 2],
    /// Address that the datagrams of the hostile end come from.
    poses_as: SocketAddr,
    flights: BTreeMap<(Time, u64), (usize, SocketAddr, Vec<u8>)>,
    order: u64,
    /// Bytes that the honest end received from each address, and bytes that it sent to that
    /// address.
    traffic: BTreeMap<SocketAddr, [usize; 2]>,
    /// False once the hostile end drops all datagrams that arrive.
    hears: bool,
}

impl Scene {
    /// Connects the two ends. The honest end listens if `listens`, and opens the connection
    /// otherwise.
    fn new(inner: InnerTransport, listens: bool, limits: Limits) -> Scene {
        let security = Security::Shared([7; 32]);
        let settings = Settings { security, limits, ..settings::carrying(inner) };
        let end = |index: usize, bytes: u64, listens: bool| {
            let random = (11, 30 + index as u64);
            // The hostile end reads nothing, so the honest end always has more to send.
            let reads_at = if index == HOSTILE { NEVER_READS } else { Time::ZERO };
            End::new(Time::ZERO, address(1 + index as u8), settings.clone(), random, listens, (bytes, reads_at))
        };
        let mut scene = Scene {
            now: Time::ZERO,
            ends: [end(HONEST, BYTES, listens), end(HOSTILE, 0, !listens)],
            poses_as: address(2),
            flights: BTreeMap::new(),
            order: 0,
            traffic: BTreeMap::new(),
            hears: true,
        };
        let opener = if listens { HOSTILE } else { HONEST };
        scene.ends[opener].open(scene.now, address(2 - opener as u8));
        scene.depart();
        scene.run(Duration::from_millis(200));
        assert_eq!(scene.ends.each_ref().map(|end| end.parties().count()), [1, 1], "they are connected");
        scene
    }

    fn send(&mut self, to: usize, from: SocketAddr, bytes: Vec<u8>) {
        self.order += 1;
        self.flights.insert((self.now + DELAY, self.order), (to, from, bytes));
    }

    fn depart(&mut self) {
        for (to, bytes) in self.ends[HONEST].leaving() {
            self.traffic.entry(to).or_default()[1] += bytes.len();
            if to == address(2) && self.hears {
                self.send(HOSTILE, address(1), bytes);
            }
        }
        for (_, bytes) in self.ends[HOSTILE].leaving() {
            self.send(HONEST, self.poses_as, bytes);
        }
    }

    /// Advances the time by `span` and runs both ends.
    fn run(&mut self, span: Duration) {
        let until = self.now + span;
        while self.now < until {
            let flight = self.flights.first_key_value().map_or(Time::NEVER, |((at, _), _)| *at);
            let next = self.ends.iter().map(|end| end.next_wakeup(self.now)).fold(flight, Time::min);
            self.now = self.now.max(next.min(until));
            while let Some(entry) = self.flights.first_entry().filter(|entry| entry.key().0 <= self.now) {
                let (end, from, mut bytes) = entry.remove();
                if end == HONEST {
                    self.traffic.entry(from).or_default()[0] += bytes.len();
                }
                self.ends[end].receive(self.now, from, &mut bytes);
                self.depart();
            }
            let now = self.now;
            self.ends.iter_mut().for_each(|end| end.wake(now));
            self.depart();
        }
    }

    /// Sends this content from the hostile end, with the source address that it forges. Returns the
    /// number of the datagram.
    fn forge(&mut self, content: Forgery<'_>) -> u64 {
        let port = &mut self.ends[HOSTILE].port;
        let party = port.parties.values_mut().next().expect("a connection");
        let number = party.session.forge(content, &mut port.out).expect("it is encrypted");
        self.depart();
        number
    }

    /// Address at which the honest end assumes its peer. `None` once the connection is over.
    fn believed(&self) -> Option<SocketAddr> {
        self.ends[HONEST].parties().next().filter(|party| !party.session.is_over()).map(|party| party.session.peer())
    }

    /// Ratio of the bytes that the honest end has sent to the victim to the bytes that came from
    /// the victim's address.
    fn amplification(&self) -> f64 {
        let [came, left] = self.traffic.get(&victim()).copied().unwrap_or_default();
        left as f64 / came.max(1) as f64
    }
}

/// Returns a probe, which every transport answers: the shortest segment for which a datagram is
/// sent.
fn question(inner: InnerTransport) -> AnySegment {
    match inner {
        InnerTransport::Tpa => AnySegment::Tpa(tpa::Segment { flags: Flags::SYN, ..tpa::Segment::default() }),
        InnerTransport::Trains => AnySegment::Train(train::Segment { flags: Flags::SYN, ..train::Segment::default() }),
        InnerTransport::Bbr => AnySegment::Bbr(bbr::Segment { flags: Flags::SYN, ..bbr::Segment::default() }),
    }
}

#[test]
fn a_peer_that_guesses_responses_moves_no_connection_to_a_victim() {
    for (inner, listens) in INNER.into_iter().flat_map(|inner| [(inner, true), (inner, false)]) {
        let mut scene = Scene::new(inner, listens, Limits::default());
        scene.poses_as = victim();
        for _ in 0..200 {
            let number = scene.forge(Forgery::Segment(question(inner), &[]));
            for guess in [number, !number, number + 1, number.wrapping_sub(1), 0, 1] {
                scene.forge(Forgery::Path(PathFrame::Response(guess)));
            }
            // Longer than the connection waits for the old address to contradict.
            scene.run(Duration::from_millis(210));
            assert_ne!(scene.believed(), Some(victim()), "{inner:?}, listens: {listens}");
        }
        let [came, left] = scene.traffic[&victim()];
        assert!(came > 40_000 && left > 0 && left <= came, "{inner:?}: {left} bytes for {came}");
        assert!(scene.amplification() <= 3.0);
    }
}

#[test]
fn a_peer_that_has_answered_elsewhere_does_not_answer_for_a_victim() {
    // What was a right answer once is none to another challenge.
    for inner in INNER {
        let mut scene = Scene::new(inner, true, Limits::default());
        let mut seen = Vec::new();
        for round in 0..20 {
            scene.poses_as = if round % 2 == 0 { SocketAddr::from(([10, 0, 0, 2], 4001)) } else { address(2) };
            let number = scene.forge(Forgery::Segment(question(inner), &[]));
            seen.extend([number, !number]);
            scene.run(Duration::from_millis(300));
        }
        scene.poses_as = victim();
        for guess in seen {
            scene.forge(Forgery::Segment(question(inner), &[]));
            scene.forge(Forgery::Path(PathFrame::Response(guess)));
            scene.run(Duration::from_millis(250));
            assert_ne!(scene.believed(), Some(victim()), "{inner:?}");
        }
        assert!(scene.amplification() <= 3.0);
    }
}

/// Acknowledges everything that can have been sent, on behalf of a peer that has received nothing
/// since `heard`.
fn blind_acknowledgement(inner: InnerTransport, heard: &Heard, step: u64) -> AnySegment {
    match inner {
        InnerTransport::Tpa => {
            let flags = Flags::ACK;
            let block = tpa::segment::block_after(heard.block, (step / 24) as u16);
            let (ack_places, ack_tx, window) = ((1 << (1 + step % 12)) - 1, (1 + step % 24) as u8, 255);
            AnySegment::Tpa(tpa::Segment { ack_block: block, ack_places, ack_tx, window, flags, ..Default::default() })
        }
        InnerTransport::Trains => {
            let (ack, ts_ecr) = (heard.offset + 1300 * step, heard.stamp.wrapping_add(1000 * step as u32));
            let feedback = train::segment::Feedback { segments: 1, ..Default::default() };
            let (window, flags) = (255, Flags::ACK);
            AnySegment::Train(train::Segment { ack, ts_ecr, wait: 1, window, flags, feedback, ..Default::default() })
        }
        InnerTransport::Bbr => {
            let newest = heard.number + step;
            let mut report =
                bbr::Report { newest, expected: heard.offset, limit: 1 << 40, count: 1, ..bbr::Report::default() };
            report.ranges[0] = (0, newest.min(200) as u16 + 1);
            AnySegment::Bbr(bbr::Segment { flags: Flags::ACK, report, ..bbr::Segment::default() })
        }
    }
}

/// State of the last segment that a hostile end has received.
#[derive(Clone, Copy, Debug, Default)]
struct Heard {
    offset: u64,
    block: u16,
    stamp: u32,
    number: u64,
}

#[test]
fn a_peer_that_acknowledges_unseen_is_disconnected_or_gains_nothing() {
    for inner in INNER {
        let mut scene = Scene::new(inner, true, Limits::default());
        // The honest code behind the hostile end has acknowledged what arrived until now.
        let party = scene.ends[HOSTILE].parties().next().expect("a connection");
        let offset = party.exchange.receive.available() as u64;
        let sender = scene.ends[HONEST].parties().next().expect("a connection");
        let sent = sender.exchange.stats.segments_sent;
        let stamp = (scene.now.0 / 1000) as u32;
        // Where the sender is, the hostile end knows by what it has received.
        let blocks = offset / (12 * sender.session.payload()).max(1);
        let heard = Heard { offset, block: blocks as u16, stamp, number: sent };
        scene.hears = false;
        let before = scene.traffic[&address(2)][1];
        for step in 0..3000 {
            scene.forge(Forgery::Segment(blind_acknowledgement(inner, &heard, step), &[]));
            scene.run(Duration::from_millis(2));
            if scene.believed().is_none() {
                break;
            }
        }
        let more = scene.traffic[&address(2)][1] - before;
        // A window of its own, and what timers repeat in six seconds.
        assert!(more < 200_000, "{inner:?}: {more} bytes to a peer that receives nothing");
    }
}

#[test]
fn moves_lock_nobody_out_and_pass_no_limit() {
    let limits = Limits { connections: 40, connections_per_source: 10, handshakes_per_second: 5, ..Limits::default() };
    let mut scene = Scene::new(InnerTransport::Tpa, true, limits);
    let endpoint = &mut scene.ends[HONEST].port.endpoint;
    // Connections that were opened here count where the far end says it is.
    let place = |host: u8| SocketAddr::from(([10, 9, 0, host], 1));
    let mut moved = 0;
    for second in 0..10_u64 {
        for id in 0..20 {
            let now = Time::ZERO + Duration::from_secs(1 + second);
            moved += usize::from(endpoint.relocate(now, (place(1), place(2)), None, 1000 + second * 20 + id, false));
        }
    }
    assert_eq!(moved, 10, "as many as one source may have, five in a second");
    let (_, connections) = endpoint.in_use();
    assert_eq!(connections, 1 + moved);
    let crowded = endpoint.counters().read().crowded;
    assert_eq!(crowded, 190);
    let source: IpAddr = place(2).ip();
    assert_ne!(source, address(2).ip());
}
