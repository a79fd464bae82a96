//! Tests of a peer whose address changes, and of an observer who tries to make it look as if it had
//! changed.

use super::end::{End, Ending};
use super::settings::{self, Settings};
use crate::handshake::{InnerTransport, tag_of};
use crate::security::Security;
use meshpace_core::{Duration, Time};
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// Delay of a datagram.
const DELAY: Duration = Duration::from_millis(50);

/// Delay of a datagram to or from the observer, who is nearer to both ends.
const NEARER: Duration = Duration::from_millis(10);

const BYTES: u64 = 400_000;

/// Longest time for which a new address is checked before a connection moves there.
const MOST_HOLD: Duration = Duration::from_secs(1);

fn address(last: u8) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, last], 4000))
}

/// Behaviour of an observer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Observer {
    /// The observer does nothing.
    None,
    /// Sends a copy of the first end's datagrams from another address. The copy arrives before the
    /// original.
    Copies,
    /// Also forwards the datagrams that are sent to that address, so that challenges sent there are
    /// answered.
    PassesOn,
    /// Sends datagrams that have arrived once more, from another address.
    Replays,
}

/// Two ends. The first opens the connection, and its address changes.
struct Scene {
    now: Time,
    ends: [End; 2],
    /// Current address of the first end.
    place: SocketAddr,
    flights: BTreeMap<(Time, u64), (usize, SocketAddr, Vec<u8>)>,
    order: u64,
    observer: Observer,
    /// Bytes that came from the observer's address, and bytes that were sent to it.
    elsewhere: [usize; 2],
}

impl Scene {
    fn new(security: &Security, inner: InnerTransport, observer: Observer) -> Scene {
        Scene::saying(security, inner, observer, [BYTES; 2])
    }

    /// Creates a scene whose ends write these numbers of bytes.
    fn saying(security: &Security, inner: InnerTransport, observer: Observer, bytes: [u64; 2]) -> Scene {
        let settings = Settings { security: security.clone(), ..settings::carrying(inner) };
        let end = |index: u64| {
            let habits = (bytes[index as usize], Time::ZERO);
            End::new(Time::ZERO, address(1 + index as u8), settings.clone(), (3, 20 + index), index == 1, habits)
        };
        let mut scene = Scene {
            now: Time::ZERO,
            ends: [end(0), end(1)],
            place: address(1),
            flights: BTreeMap::new(),
            order: 0,
            observer,
            elsewhere: [0; 2],
        };
        scene.ends[0].open(scene.now, address(2));
        scene.depart();
        scene
    }

    fn send(&mut self, after: Duration, to: usize, from: SocketAddr, bytes: Vec<u8>) {
        self.order += 1;
        self.flights.insert((self.now + after, self.order), (to, from, bytes));
    }

    fn depart(&mut self) {
        for (to, bytes) in self.ends[0].leaving() {
            assert_eq!(to, address(2), "the second end stays where it is");
            let is_segment = tag_of(&bytes) != Some(0);
            if is_segment && self.observer != Observer::None {
                let after = if self.observer == Observer::Replays { DELAY + NEARER } else { NEARER };
                self.send(after, 1, address(66), bytes.clone());
            }
            self.send(DELAY, 1, self.place, bytes);
        }
        for (to, bytes) in self.ends[1].leaving() {
            if to == self.place {
                self.send(DELAY, 0, address(2), bytes);
            } else if to == address(66) {
                self.elsewhere[1] += bytes.len();
                if self.observer == Observer::PassesOn {
                    self.send(NEARER, 0, address(2), bytes);
                }
            }
        }
    }

    /// Runs until `latest`, or until everything is over.
    fn run(&mut self, latest: Time) {
        while self.now < latest && !self.is_over() {
            let flight = self.flights.first_key_value().map_or(Time::NEVER, |((at, _), _)| *at);
            let next = self.ends.iter().map(|end| end.next_wakeup(self.now)).fold(flight, Time::min).min(latest);
            self.now = self.now.max(next);
            while let Some(entry) = self.flights.first_entry().filter(|entry| entry.key().0 <= self.now) {
                let (end, from, mut bytes) = entry.remove();
                if from == address(66) {
                    self.elsewhere[0] += bytes.len();
                }
                self.ends[end].receive(self.now, from, &mut bytes);
                self.depart();
                assert!(self.elsewhere[1] <= self.elsewhere[0], "more than has come from there");
            }
            let now = self.now;
            self.ends.iter_mut().for_each(|end| end.wake(now));
            self.depart();
        }
    }

    fn is_over(&self) -> bool {
        self.ends.iter().all(|end| {
            let mut all = end.applications().peekable();
            all.peek().is_some() && all.all(|one| one.ending != Ending::None)
        })
    }

    /// True if both ends have read everything and know that all has arrived.
    fn is_well(&self) -> bool {
        self.is_over()
            && self
                .ends
                .iter()
                .all(|end| end.applications().all(|one| (one.read, &one.ending) == (BYTES, &Ending::Well)))
    }

    /// Address at which the second end assumes the first.
    fn believed(&self) -> SocketAddr {
        self.ends[1].parties().next().expect("a connection").session.peer()
    }

    fn read(&self) -> u64 {
        self.ends.iter().flat_map(End::applications).map(|one| one.read).sum()
    }

    fn moves(&self) -> u64 {
        self.ends[1].port.endpoint.counters().read().moves
    }
}

const MOVED: Time = Time(1_000_000_000);

fn keys() -> Security {
    Security::Shared([7; 32])
}

#[test]
fn a_listener_that_is_a_moment_late_is_asked_again_soon() {
    for inner in [InnerTransport::Tpa, InnerTransport::Trains, InnerTransport::Bbr] {
        let mut scene = Scene::new(&keys(), inner, Observer::None);
        scene.ends[1].set_listens(false);
        scene.run(Time(300_000_000));
        scene.ends[1].set_listens(true);
        // The timer of the request expires after 1 s; two round trips take 200 ms.
        scene.run(Time(750_000_000));
        assert!(scene.read() > 0, "{inner:?}");
    }
}

#[test]
fn who_is_told_for_ever_that_nobody_listens_asks_a_few_times() {
    let mut scene = Scene::new(&keys(), InnerTransport::Tpa, Observer::None);
    scene.ends[1].set_listens(false);
    scene.run(Time(29_000_000_000));
    // By its timer a request leaves at 0, 1, 3, 7 and 15 s.
    let strays = scene.ends[1].port.endpoint.counters().read().strays;
    assert!((10..=5 + 10).contains(&strays), "{strays}");
}

#[test]
fn a_connection_follows_its_peer_within_a_second() {
    for inner in [InnerTransport::Tpa, InnerTransport::Trains, InnerTransport::Bbr] {
        // BBR is through within a second.
        let moved = if inner == InnerTransport::Bbr { Time(500_000_000) } else { MOVED };
        let mut scene = Scene::new(&keys(), inner, Observer::None);
        scene.run(moved);
        assert!(!scene.is_over(), "it is to move under way");
        scene.place = address(5);
        // As the tunnel does, which looks where it is.
        scene.ends[0].parties_mut().for_each(|party| party.exchange.wishes.probe = true);
        scene.ends[0].work_all(moved);
        scene.run(moved + Duration::from_millis(900));
        assert_eq!(scene.believed(), address(5), "{inner:?}");
        let before = scene.read();
        scene.run(moved + Duration::from_secs(3));
        assert!(scene.read() > before || scene.is_over(), "nothing moves any more, {inner:?}");
        scene.run(Time::ZERO + Duration::from_secs(600));
        assert!(scene.is_well(), "{inner:?}");
        assert_eq!(scene.moves(), 1);
    }
}

#[test]
fn a_peer_that_moves_before_it_is_heard_for_the_first_time_is_accepted() {
    for inner in [InnerTransport::Tpa, InnerTransport::Trains, InnerTransport::Bbr] {
        let mut scene = Scene::new(&keys(), inner, Observer::None);
        // The acceptance arrives after two round trips.
        scene.run(Time(205_000_000));
        assert!(scene.flights.values().all(|(to, _, _)| *to == 1), "only the first end has sent something");
        assert!(!scene.flights.is_empty());
        assert_eq!(scene.ends[1].parties().count(), 0, "the second end has not heard any of it");
        scene.flights.clear();
        scene.place = address(5);
        scene.run(Time::ZERO + Duration::from_secs(600));
        assert!(scene.is_well(), "{inner:?}");
        assert_eq!(scene.moves(), 1);
    }
}

#[test]
fn what_waits_for_a_long_timer_leaves_as_soon_as_a_silent_peer_has_moved() {
    for inner in [InnerTransport::Tpa, InnerTransport::Trains, InnerTransport::Bbr] {
        // The first end has nothing to say, so that nobody knows where it is before it asks for a sign of life.
        let mut scene = Scene::saying(&keys(), inner, Observer::None, [0, BYTES]);
        scene.run(Time(500_000_000));
        // What is under way is lost, or its ACK would say where the first end is.
        scene.flights.clear();
        let keep_alive = scene.ends[0].port.settings().keep_alive.expect("it asks");
        scene.place = address(5);
        while scene.believed() != address(5) {
            scene.run(scene.now + Duration::from_millis(1));
            assert!(scene.now <= MOVED + keep_alive + MOST_HOLD, "{inner:?}");
        }
        let before = scene.read();
        assert!(before < BYTES);
        // A block of TPA is sent within six round trips. Its timer has come to 16 s by now, and BBR's to 10 s; that of trains is 2 s at most.
        let soon = if inner == InnerTransport::Trains { Duration::from_secs(2) } else { DELAY * 12 };
        scene.run(scene.now + soon + DELAY);
        assert!(scene.read() > before, "{inner:?}");
        scene.run(Time::ZERO + Duration::from_secs(600));
        assert_eq!((scene.read(), scene.is_over()), (BYTES, true), "{inner:?}");
    }
}

#[test]
fn a_silent_peer_that_has_moved_is_found_although_it_is_not_heard_at_first() {
    for inner in [InnerTransport::Tpa, InnerTransport::Trains, InnerTransport::Bbr] {
        // Either its question or what asks where it is, is lost.
        for question in [true, false] {
            let mut scene = Scene::saying(&keys(), inner, Observer::None, [0, BYTES]);
            // What is under way then is lost, and the ACK that is late as well.
            for step in 0..100 {
                scene.run(Time(500_000_000) + Duration::from_millis(5) * step);
                scene.flights.clear();
            }
            scene.place = address(5);
            let is_on_its_way =
                |scene: &Scene| scene.flights.values().any(|(end, from, _)| (*end, *from) == (1, address(5)));
            let is_asked = |scene: &Scene| scene.ends[1].parties().any(|party| party.session.is_moving());
            while !if question { is_on_its_way(&scene) } else { is_asked(&scene) } {
                scene.run(scene.now + Duration::from_millis(1));
                assert!(scene.now < Time(40_000_000_000), "{inner:?}");
            }
            scene.flights.clear();
            // The question comes again after 1 s, and three ways lie before it is believed.
            scene.run(scene.now + Duration::from_secs(1) + DELAY * 3 + MOST_HOLD);
            assert_eq!(scene.believed(), address(5), "{inner:?}, {question}");
        }
    }
}

#[test]
fn a_connection_follows_its_peer_there_and_back() {
    let mut scene = Scene::new(&keys(), InnerTransport::Tpa, Observer::None);
    for (number, place) in [5, 1, 6, 5, 1].into_iter().enumerate() {
        let at = MOVED + Duration::from_secs(2 * number as u64);
        scene.run(at);
        scene.place = address(place);
        scene.ends[0].parties_mut().for_each(|party| party.exchange.wishes.probe = true);
        scene.ends[0].work_all(at);
        scene.run(at + Duration::from_millis(900));
        if !scene.is_over() {
            assert_eq!(scene.believed(), address(place));
        }
    }
    scene.run(Time::ZERO + Duration::from_secs(600));
    assert!(scene.is_well());
}

#[test]
fn an_observer_with_the_peers_datagrams_moves_nothing() {
    for inner in [InnerTransport::Tpa, InnerTransport::Trains, InnerTransport::Bbr] {
        for observer in [Observer::Copies, Observer::PassesOn, Observer::Replays] {
            let mut scene = Scene::new(&keys(), inner, observer);
            while !scene.is_over() && scene.now < Time::ZERO + Duration::from_secs(600) {
                scene.run(scene.now + Duration::from_millis(100));
                if let Some(party) = scene.ends[1].parties().next() {
                    assert_eq!(party.session.peer(), address(1), "{observer:?} at {:?}", scene.now);
                }
            }
            assert!(scene.is_well(), "{observer:?}, {inner:?}");
            assert_eq!(scene.moves(), 0, "{observer:?}");
            let has_asked = scene.elsewhere[1] > 0;
            assert_eq!(
                has_asked,
                observer != Observer::Replays,
                "what has been here before asks nothing: {observer:?}"
            );
        }
    }
}

#[test]
fn without_encryption_nobody_moves() {
    let mut scene = Scene::new(&Security::Plain, InnerTransport::Tpa, Observer::None);
    scene.run(MOVED);
    scene.place = address(5);
    scene.run(MOVED + Duration::from_secs(20));
    assert_eq!((scene.believed(), scene.moves()), (address(1), 0));
}
