//! Tests of what an end answers and which messages it believes: requests of older builds, datagrams
//! of strangers, strays, and errors that the network reports.

use super::end::Ending;
use super::opening::{BYTES, Scene, address};
use crate::cipher::Suite;
use crate::connection::Report;
use crate::failure::Reason;
use crate::handshake::{Cookie, InnerTransport, Kind, Opening, Protection, Terms, stray, understand_stray};
use crate::security::Security;
use meshpace_core::{Duration, Time};
use meshpace_transport::tpa::{Flags, Segment};
use std::collections::BTreeSet;

/// All kinds of protection: none, with an unauthenticated peer, with a shared secret, and with
/// known keys.
fn protections() -> [Security; 4] {
    let own = [1; 32];
    let known = Security::Keys { own, peers: vec![Security::public_key(&own)] };
    [Security::Plain, Security::Opportunistic, Security::Shared([7; 32]), known]
}

fn ms(number: u64) -> Time {
    Time(number * 1_000_000)
}

#[test]
fn each_connection_has_tags_of_its_own() {
    let mut scene = Scene::new(InnerTransport::Tpa);
    (1..32).for_each(|_| scene.ends[0].open(Time::ZERO, address(2)));
    let (mut openers, mut acceptors) = (BTreeSet::new(), BTreeSet::new());
    scene.run(ms(1000), &mut |bytes| {
        if let Some((said, _)) = Opening::decode(bytes) {
            openers.insert(said.opener);
            acceptors.extend((said.kind == Kind::Acceptance).then_some(said.acceptor));
        }
        1
    });
    for tags in [&openers, &acceptors] {
        assert_eq!(tags.len(), 32, "{tags:x?}");
        // Of 32 random numbers one bit is the same in all with a probability of 2^-31.
        let (all, any) = tags.iter().fold((u64::MAX, 0), |(all, any), tag| (all & tag, any | tag));
        assert_eq!((all, any), (0, u64::MAX));
    }
    assert!(openers.is_disjoint(&acceptors) && !openers.contains(&0));
}

#[test]
fn a_request_without_the_key_opens_a_round_trip_later() {
    // When the opener's connection is open, if its first request arrives without the key; and the challenges that it took.
    let opened = |security: &Security, strips: bool| {
        let mut scene = Scene::with(InnerTransport::Tpa, security.clone());
        let mut first = Vec::new();
        scene.run(ms(10), &mut |bytes| {
            first = bytes.to_vec();
            u64::from(!strips)
        });
        if strips {
            let (request, message) = Opening::decode(&first).unwrap();
            assert_eq!(message.len(), 32);
            scene.bring(request.encode(&[], 0));
        }
        let is_open = |scene: &Scene| scene.ends[0].parties().all(|one| one.exchange.is_open());
        let at = (1..100).map(|step| 10 + 10 * step).find(|at| {
            scene.run(ms(*at), &mut |_| 1);
            is_open(&scene)
        });
        scene.run(Time(60_000_000_000), &mut |_| 1);
        assert!(scene.is_well(), "{security:?}");
        let challenges = scene.ends[1].port.endpoint.counters().read().challenges;
        (at.expect("it is open within a second"), challenges)
    };
    for security in &protections()[1..] {
        // There and back takes 100 ms. What is brought by hand leaves 10 ms late.
        assert_eq!(opened(security, false), (200, 1), "{security:?}");
        assert_eq!(opened(security, true), (310, 2), "{security:?}");
    }
}

#[test]
fn that_nobody_has_the_port_ends_an_opening_at_once() {
    for inner in [InnerTransport::Tpa, InnerTransport::Trains, InnerTransport::Bbr] {
        for security in protections() {
            let mut scene = Scene::with(inner, security.clone());
            let mut request = Vec::new();
            scene.run(ms(300), &mut |bytes| {
                request = bytes.to_vec();
                0
            });
            assert!(scene.ends[0].applications().all(|one| one.ending == Ending::None));
            scene.ends[0].complain(scene.now, address(2), &request, Report::Refused);
            let ended = |one: &super::end::Application| one.ending == Ending::Failed(Reason::Refused);
            assert!(scene.ends[0].applications().all(ended), "{inner:?}, {security:?}");
        }
    }
}

#[test]
fn without_encryption_a_stray_is_believed_at_once() {
    for security in protections() {
        let mut scene = Scene::with(InnerTransport::Tpa, security.clone());
        scene.ends.iter_mut().for_each(|end| end.rests = true);
        scene.run(ms(400), &mut |_| 1);
        // The tag that the opener's datagrams begin with: an observer sees it, and so does a peer that has begun anew.
        let tag = scene.ends[0].parties().next().unwrap().session.peer_tag().unwrap();
        scene.ends[0].receive(scene.now, address(2), &mut stray(tag));
        let ending = |scene: &Scene| scene.ends[0].applications().next().unwrap().ending.clone();
        if security == Security::Plain {
            assert_eq!(ending(&scene), Ending::Failed(Reason::Reset));
            continue;
        }
        assert_eq!(ending(&scene), Ending::None, "{security:?}");
        // Its peer answers the question that follows.
        scene.run(Time(60_000_000_000), &mut |_| 1);
        assert_eq!(ending(&scene), Ending::None, "{security:?}");
    }
}

#[test]
fn no_more_than_a_thousand_strays_and_refusals_leave_in_a_second() {
    let mut scene = Scene::new(InnerTransport::Tpa);
    let request = Opening {
        kind: Kind::Request,
        protection: Protection::Plain,
        suite: Suite::default(),
        trains: false,
        terms: Terms::of(&scene.ends[1].port.settings().transport),
        opener: 1,
        acceptor: 0,
        cookie: Cookie::default(),
        segment: Segment { flags: Flags::SYN, window: 255, ..Segment::default() },
    };
    // 3000 datagrams of no connection, and as many requests for another protection, each second.
    let mut answers = Vec::new();
    for number in 0..30_000u64 {
        let now = Time(number * Duration::from_secs(1).0 / 3000);
        let opener = (1 << 40) + number;
        for mut said in [[&opener.to_be_bytes()[..], &[0; 12]].concat(), Opening { opener, ..request }.encode(&[], 0)] {
            scene.ends[1].receive(now, address(9), &mut said);
            for (to, answer) in scene.ends[1].leaving() {
                let is_stray = understand_stray(&answer) == Some(opener);
                let kind = Opening::decode(&answer).map(|(said, _)| said.kind);
                assert!(to == address(9) && (is_stray || kind == Some(Kind::Refusal)), "{kind:?}");
                assert!(answer.len() <= said.len(), "the answer is longer");
                answers.push(now);
            }
        }
    }
    for second in 0..10 {
        let within = Time(second * 1_000_000_000)..Time((second + 1) * 1_000_000_000);
        assert_eq!(answers.iter().filter(|at| within.contains(at)).count(), 1000, "second {second}");
    }
    // What is shorter than a stray is not answered, however few have come.
    scene.ends[1].receive(Time(20_000_000_000), address(9), &mut [1; 19]);
    assert!(scene.ends[1].leaving().is_empty());
}

#[test]
fn data_that_arrive_again_are_no_reason_for_who_has_read_them_to_reset() {
    for inner in [InnerTransport::Tpa, InnerTransport::Trains, InnerTransport::Bbr] {
        let mut scene = Scene::new(inner);
        let has_read = |scene: &Scene| scene.ends[1].parties().any(|one| one.application.read == BYTES);
        while !has_read(&scene) {
            scene.run(scene.now + Duration::from_millis(1), &mut |_| 1);
            assert!(scene.now < ms(60_000), "{inner:?}");
        }
        // The second end closes. Its acknowledgements are lost, so that the first end repeats data.
        scene.ends[1].abort(scene.now);
        scene.flights.clear();
        scene.run(scene.now + Duration::from_millis(100), &mut |_| 0);
        scene.run(Time(60_000_000_000), &mut |_| 1);
        assert!(scene.is_well(), "{inner:?}");
    }
}
