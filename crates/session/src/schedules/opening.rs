//! Tests of requests whose answers arrive twice, or so late that the request has changed in the
//! meantime.

use super::end::{End, Ending};
use super::settings::{self, Settings};
use crate::connection::Report;
use crate::handshake::{self, InnerTransport, Kind, Opening, tag_of};
use crate::security::Security;
use meshpace_core::{Duration, Time};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

/// Delay of a datagram.
const DELAY: Duration = Duration::from_millis(50);

pub(super) const BYTES: u64 = 20_000;

/// Length that only a padded request exceeds, and no other message of a handshake, bytes.
const PADDED: usize = 500;

pub(super) fn address(last: u8) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, last], 4000))
}

/// Two ends. The first opens the connection.
pub(super) struct Scene {
    pub(super) now: Time,
    pub(super) ends: [End; 2],
    pub(super) flights: BTreeMap<(Time, u64), (usize, Vec<u8>)>,
    order: u64,
    /// Last padded request of the first end.
    padded: Vec<u8>,
    /// Length of the longest datagram from the first end that does not belong to the handshake,
    /// bytes.
    longest: usize,
}

impl Scene {
    pub(super) fn new(inner: InnerTransport) -> Scene {
        Scene::with(inner, Security::Shared([7; 32]))
    }

    pub(super) fn with(inner: InnerTransport, security: Security) -> Scene {
        Scene::writing(inner, security, BYTES)
    }

    /// Creates a scene in which each application writes `bytes` bytes.
    pub(super) fn writing(inner: InnerTransport, security: Security, bytes: u64) -> Scene {
        let connect_timeout = Duration::from_secs(150);
        let settings = Settings { security, connect_timeout, ..settings::carrying(inner) };
        let end = |index: u64| {
            let habits = (bytes, Time::ZERO);
            End::new(Time::ZERO, address(1 + index as u8), settings.clone(), (4, 20 + index), index == 1, habits)
        };
        let ends = [end(0), end(1)];
        let mut scene =
            Scene { now: Time::ZERO, ends, flights: BTreeMap::new(), order: 0, padded: Vec::new(), longest: 0 };
        scene.ends[0].open(Time::ZERO, address(2));
        scene
    }

    /// Sends a datagram to the second end.
    pub(super) fn bring(&mut self, bytes: Vec<u8>) {
        self.order += 1;
        self.flights.insert((self.now + DELAY, self.order), (1, bytes));
    }

    /// Runs until `latest`. `copies` returns how often a datagram arrives.
    pub(super) fn run(&mut self, latest: Time, copies: &mut dyn FnMut(&[u8]) -> u64) {
        loop {
            for from in 0..2 {
                for (_, bytes) in self.ends[from].leaving() {
                    if from == 0 && tag_of(&bytes) != Some(0) {
                        self.longest = self.longest.max(bytes.len());
                    } else if from == 0 && bytes.len() > PADDED {
                        self.padded.clone_from(&bytes);
                    }
                    for _ in 0..copies(&bytes) {
                        self.order += 1;
                        self.flights.insert((self.now + DELAY, self.order), (1 - from, bytes.clone()));
                    }
                }
            }
            let flight = self.flights.first_key_value().map_or(Time::NEVER, |((at, _), _)| *at);
            let next = self.ends.iter().map(|end| end.next_wakeup(self.now)).fold(flight, Time::min);
            if next > latest {
                return self.now = latest;
            }
            self.now = self.now.max(next);
            match self.flights.first_entry().filter(|entry| entry.key().0 <= self.now) {
                Some(entry) => {
                    let (end, mut bytes) = entry.remove();
                    self.ends[end].receive(self.now, address(2 - end as u8), &mut bytes);
                }
                None => self.ends.iter_mut().for_each(|end| end.wake(self.now)),
            }
        }
    }

    /// True if both ends have read everything and know that all has arrived.
    pub(super) fn is_well(&self) -> bool {
        let has_all = |end: &End| end.applications().any(|one| (one.read, &one.ending) == (BYTES, &Ending::Well));
        self.ends.iter().all(has_all)
    }
}

#[test]
fn a_request_names_a_block_that_cannot_be_foreseen() {
    // An answer repeats it: who does not see the request has to guess it beside the tag. For trains and BBR it means nothing else.
    for inner in [InnerTransport::Tpa, InnerTransport::Trains, InnerTransport::Bbr] {
        let mut scene = Scene::new(inner);
        (1..16).for_each(|_| scene.ends[0].open(Time::ZERO, address(2)));
        let requests = scene.ends[0].leaving();
        let blocks = requests.iter().filter_map(|(_, bytes)| Some(Opening::decode(bytes)?.0.segment.block));
        assert!(blocks.collect::<BTreeSet<_>>().len() > 12, "{inner:?}");
    }
}

#[test]
fn an_answer_that_comes_twice_does_not_make_segments_smaller() {
    for inner in [InnerTransport::Tpa, InnerTransport::Trains, InnerTransport::Bbr] {
        let mut scene = Scene::new(inner);
        // The wire doubles everything and loses the first three padded requests: two escorts are answered without them, not three.
        let mut lost = 0;
        scene.run(Time(60_000_000_000), &mut |bytes| {
            let is_lost = tag_of(bytes) == Some(0) && bytes.len() > PADDED && lost < 3;
            lost += u32::from(is_lost);
            if is_lost { 0 } else { 2 }
        });
        assert!(scene.is_well(), "{inner:?}");
        assert_eq!(scene.longest, scene.padded.len(), "{inner:?}");
    }
}

#[test]
fn who_has_heard_no_acceptance_is_accepted_again_with_smaller_segments() {
    for inner in [InnerTransport::Tpa, InnerTransport::Trains, InnerTransport::Bbr] {
        let mut scene = Scene::new(inner);
        let is_acceptance =
            |bytes: &[u8]| Opening::decode(bytes).is_some_and(|(said, _)| said.kind == Kind::Acceptance);
        scene.run(Time(500_000_000), &mut |bytes| u64::from(!is_acceptance(bytes)));
        let (now, padded) = (scene.now, scene.padded.clone());
        assert!(!padded.is_empty());
        scene.ends[0].complain(now, address(2), &padded, Report::TooLong { mtu: 1280 });
        // Two round trips take 200 ms. By the timers of the first handshake nothing would come of it before 63 s have passed.
        scene.run(Time(1_000_000_000), &mut |_| 1);
        assert!(scene.ends[1].applications().any(|one| one.read > 0), "{inner:?}");
        scene.run(Time(60_000_000_000), &mut |_| 1);
        assert!(scene.is_well(), "{inner:?}");
        assert!(scene.longest <= 1280, "{inner:?}: {} B", scene.longest);
        assert_eq!(scene.ends[1].accepted, 1, "{inner:?}");
    }
}

#[test]
fn a_complaint_at_an_opening_neither_ends_it_nor_makes_segments_smaller_than_paths_are() {
    for inner in [InnerTransport::Tpa, InnerTransport::Trains, InnerTransport::Bbr] {
        let mut scene = Scene::new(inner);
        // The padded requests stay away until an observer has complained about one of each size.
        for (until, mtu) in [(120, 100), (500, 29)] {
            scene.run(Time(until * 1_000_000), &mut |bytes| u64::from(bytes.len() <= PADDED));
            let (now, padded) = (scene.now, scene.padded.clone());
            assert!(!padded.is_empty());
            scene.ends[0].complain(now, address(2), &padded, Report::TooLong { mtu });
        }
        scene.longest = 0;
        scene.run(Time(60_000_000_000), &mut |_| 1);
        assert!(scene.is_well(), "{inner:?}");
        // RFC 791, 3.1: every host takes 576 bytes.
        assert_eq!(scene.longest + 20 + 8, 576, "{inner:?}");
    }
}

#[test]
fn an_altered_copy_of_a_request_ends_no_opening_and_changes_none() {
    let opened = |inner, security: &Security, bit: Option<usize>| {
        let mut scene = Scene::with(inner, security.clone());
        scene.run(Time(120_000_000), &mut |bytes| u64::from(bytes.len() <= PADDED));
        let shown = scene.padded.clone();
        if let Some(bit) = bit {
            let mut altered = shown.clone();
            altered[bit / 8] ^= 1 << (bit % 8);
            scene.bring(altered);
        }
        scene.bring(shown);
        scene.run(Time(500_000_000), &mut |_| 1);
        scene.ends.each_ref().map(|end| end.port.parties.values().map(|one| one.session.inner()).collect::<Vec<_>>())
    };
    for (inner, security) in [
        (InnerTransport::Tpa, Security::Opportunistic),
        (InnerTransport::Trains, Security::Opportunistic),
        (InnerTransport::Bbr, Security::Shared([7; 32])),
    ] {
        assert_eq!(opened(inner, &security, None), [[inner], [inner]]);
        // Each bit of the head, and one of each byte of the key that Noise's message begins with.
        let (head, noise) = (8 * 8..8 * handshake::BYTES, 8 * handshake::BYTES..8 * (handshake::BYTES + 32));
        for bit in head.chain(noise.step_by(8)) {
            assert_eq!(opened(inner, &security, Some(bit)), [[inner], [inner]], "{security:?}: bit {bit}");
        }
    }
}

#[test]
fn who_is_accepted_is_known_until_his_answer_can_have_come() {
    let is_acceptance = |bytes: &[u8]| Opening::decode(bytes).is_some_and(|(said, _)| said.kind == Kind::Acceptance);
    for inner in [InnerTransport::Tpa, InnerTransport::Trains, InnerTransport::Bbr] {
        // Acceptances are lost until the listener gives the handshake up, 63 s after it has begun; then one request comes, a moment before or after that.
        for late in (0..200).step_by(10) {
            let mut scene = Scene::new(inner);
            scene.run(Time(62_900_000_000 + late * 1_000_000), &mut |bytes| u64::from(!is_acceptance(bytes)));
            assert_eq!(scene.ends[1].accepted, 0);
            scene.bring(scene.padded.clone());
            // A challenge, an acceptance and an answer take 250 ms.
            scene.run(Time(63_500_000_000), &mut |_| 1);
            assert_eq!(scene.ends[1].accepted, 1, "{inner:?}: {late} ms");
            scene.run(Time(100_000_000_000), &mut |_| 1);
            assert!(scene.is_well(), "{inner:?}: {late} ms");
        }
    }
}

#[test]
fn an_acceptance_that_comes_again_is_answered_at_once() {
    let is_acceptance = |bytes: &[u8]| Opening::decode(bytes).is_some_and(|(said, _)| said.kind == Kind::Acceptance);
    for (inner, security) in [
        (InnerTransport::Tpa, Security::Plain),
        (InnerTransport::Tpa, Security::Shared([7; 32])),
        (InnerTransport::Trains, Security::Shared([7; 32])),
        (InnerTransport::Bbr, Security::Shared([7; 32])),
    ] {
        let mut scene = Scene::writing(inner, security, 0);
        scene.ends.iter_mut().for_each(|end| end.rests = true);
        // What answers it is lost. A second later the opener would ask by itself.
        let mut acceptance = Vec::new();
        scene.run(Time(600_000_000), &mut |bytes| {
            if is_acceptance(bytes) {
                acceptance = bytes.to_vec();
            }
            u64::from(tag_of(bytes) == Some(0))
        });
        let mut answers = |now: Time| {
            scene.ends[0].receive(now, address(2), &mut acceptance.clone());
            scene.ends[0].leaving().iter().filter(|(_, bytes)| tag_of(bytes) != Some(0)).count()
        };
        assert_eq!(answers(Time(600_000_000)), 1, "{inner:?}");
        // Not to whoever has it and sends it again and again.
        assert_eq!(answers(Time(601_000_000)), 0, "{inner:?}");
    }
}

#[test]
fn whose_acceptance_was_heard_learns_so_before_he_forgets_it() {
    // Nothing is written, so that only questions leave besides the ACK. What answers the acceptance is lost, for so many seconds, and so is each acceptance
    // but one, of the listener who forgets after 63 s.
    for (inner, security) in [
        (InnerTransport::Tpa, Security::Plain),
        (InnerTransport::Tpa, Security::Shared([7; 32])),
        (InnerTransport::Trains, Security::Shared([7; 32])),
        (InnerTransport::Bbr, Security::Shared([7; 32])),
    ] {
        for dark in [1, 5, 20, 58] {
            let mut scene = Scene::writing(inner, security.clone(), 0);
            scene.ends.iter_mut().for_each(|end| end.rests = true);
            let (mut accepted, mut answered) = (0, 0);
            let mut copies = |bytes: &[u8]| {
                let says = Opening::decode(bytes).map(|(said, _)| said.kind);
                accepted += u64::from(says == Some(Kind::Acceptance));
                let answers = tag_of(bytes) != Some(0);
                answered += u64::from(answers);
                u64::from(if answers { answered > 1 } else { accepted <= 1 })
            };
            scene.run(Time(500_000_000), &mut copies);
            assert_eq!((scene.ends[0].parties().all(|one| one.exchange.is_open()), scene.ends[1].accepted), (true, 0));
            scene.run(Time(dark * 1_000_000_000), &mut |bytes| u64::from(tag_of(bytes) == Some(0)).min(copies(bytes)));
            assert_eq!(scene.ends[1].accepted, 0);
            scene.run(Time((dark + 5) * 1_000_000_000), &mut copies);
            assert_eq!(scene.ends[1].accepted, 1, "{inner:?}: {dark} s");
            // It has been heard, and is asked no more than anybody else is.
            let mut said = 0;
            scene.run(Time((dark + 13) * 1_000_000_000), &mut |_| {
                said += 1;
                1
            });
            assert_eq!(said, 0, "{inner:?}: {dark} s");
            scene.run(Time(300_000_000_000), &mut |_| 1);
            assert!(scene.ends.iter().flat_map(End::applications).all(|one| one.ending == Ending::None), "{inner:?}");
        }
    }
}
