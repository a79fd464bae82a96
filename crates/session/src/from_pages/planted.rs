//! Tests of the checks: each test plants a fault and expects that the check for it reports the fault.

use super::application::{Application, End, bytes_of};
use super::checks;
use super::codec::Keys;
use super::monitor::Monitor;
use super::plan::{Hostile, Incident, Kind, Observer, Path, Plan, Protection, Talk};
use super::run;
use super::world::World;
use crate::budget::Account;
use crate::cipher::Cipher;
use crate::exchange::{Exchange, Phase};
use crate::failure::Reason;
use crate::handshake::InnerTransport;
use crate::settings::carrying;
use meshpace_core::{Duration, Time};
use std::net::SocketAddr;

const KEY: (Cipher, [u8; 32]) = (Cipher::ChaCha20Poly1305, [7; 32]);

/// One talk over a good path.
fn plan(carried: InnerTransport) -> Plan {
    let talk = Talk {
        source: 0,
        starts_ms: 0,
        bytes: [20_000, 3000],
        parts: 3,
        pause_ms: 10,
        silence_ms: 0,
        takes: 4096,
        read_pause_ms: 0,
        hostile: None,
    };
    let (altered, altered_openings, replayed, overtaken, complaints, invented) = (0, 0, 0, 0, 0, 0);
    Plan {
        seed: 1,
        protection: Protection::Known,
        carried,
        aes: (false, false),
        key_life: 20,
        path: Path { delay_ms: 5, jitter_ms: 0, lost: 0, doubled: 0, width: 1500 },
        observer: Observer { altered, altered_openings, replayed, overtaken, complaints, invented },
        talks: vec![talk],
        incidents: Vec::new(),
        are_limits_tight: false,
        flood: 0,
        hostile_listener: None,
    }
}

fn monitor() -> Monitor {
    Monitor::new(&plan(InnerTransport::Trains))
}

fn somebody() -> SocketAddr {
    SocketAddr::from(([10, 9, 9, 9], 1))
}

fn breaks(broken: &[String], sentence: &str) -> bool {
    broken.iter().any(|what| what.contains(sentence))
}

#[test]
fn a_good_run_breaks_nothing_and_one_without_a_path_does() {
    for carried in [InnerTransport::Tpa, InnerTransport::Trains, InnerTransport::Bbr] {
        let good = plan(carried);
        assert_eq!(run(&good).broken, Vec::<String>::new(), "{carried:?}");
        let kind = Kind::Blackout { for_ms: 900_000 };
        let dark = Plan { incidents: vec![Incident { at_ms: 20, kind }], ..good };
        assert!(breaks(&run(&dark).broken, "all of them arrive once the wire is good"), "{carried:?}");
    }
}

#[test]
fn two_hostile_ends_and_an_observer_who_repeats_come_to_an_end() {
    for carried in [InnerTransport::Tpa, InnerTransport::Trains, InnerTransport::Bbr] {
        for seed in 0..4 {
            let mut hostile = Plan { protection: Protection::Plain, seed, ..plan(carried) };
            let claims = Hostile { changed: 0, added: 500, spoofed: 0, jumps: 0, claims: 800 };
            (hostile.hostile_listener, hostile.talks[0].hostile) = (Some(claims), Some(claims));
            hostile.talks[0].bytes = [60_000; 2];
            (hostile.observer.replayed, hostile.observer.overtaken) = (500, 300);
            assert_eq!(run(&hostile).broken, Vec::<String>::new(), "{carried:?}, seed {seed}");
        }
    }
}

#[test]
fn places_that_are_not_given_back_are_noticed() {
    let plan = plan(InnerTransport::Tpa);
    let mut world = World::new(&plan, checks::ALL);
    world.run_until(Time(500_000_000));
    checks::at_the_end(&mut world);
    assert!(breaks(&world.broken, "gives its places back"), "{:?}", world.broken);
}

#[test]
fn other_bytes_and_an_early_end_are_noticed() {
    let plan = plan(InnerTransport::Tpa);
    let read = |bytes: &[u8]| {
        let mut exchange = Exchange::new(&carrying(InnerTransport::Tpa), 12 * 1428, Account::default());
        exchange.phase = Phase::Open;
        assert_eq!(exchange.receive.place(0, bytes), Ok(()));
        exchange.receive.deliver(bytes.len() as u64);
        let mut reader = Application::new(Some(0), 1, plan.talks[0], true, Time::ZERO);
        reader.act(Time::ZERO, &mut exchange);
        reader.broken
    };
    let mut bytes = bytes_of(1, 0, 5000);
    assert_eq!(read(&bytes), None);
    bytes[4321] ^= 1;
    assert!(read(&bytes).is_some_and(|what| what.contains("not those that were written")));
    let [mut writer, mut reader] = [0, 1].map(|side| Application::new(Some(0), side, plan.talks[0], true, Time::ZERO));
    (writer.written, reader.read, reader.has_read_end) = (5000, 5000, true);
    assert_eq!(checks::ends_elsewhere([Some(&writer), Some(&reader)]), None);
    reader.read = 4999;
    assert!(checks::ends_elsewhere([Some(&writer), Some(&reader)]).is_some());
}

#[test]
fn an_end_without_an_answer_is_excused_only_if_its_peer_closed_and_moved() {
    let mut plan = plan(InnerTransport::Trains);
    let closed_at = Time::ZERO + Duration::from_secs(10);
    let [mut one, mut other] = [0, 1].map(|side| Application::new(Some(0), side, plan.talks[0], true, Time::ZERO));
    for (application, peer) in [(&mut one, 1), (&mut other, 0)] {
        (application.read, application.has_read_end) = (plan.talks[0].bytes[peer], true);
    }
    (one.end, one.ended_at) = (Some(End::Well), Some(closed_at));
    other.end = Some(End::Failed(Reason::TimedOut, "no answer".into()));
    let source = plan.talks[0].source;
    let round_trip_ms = 2 * (plan.path.delay_ms + plan.path.jitter_ms);
    let moved = |at_ms, source| vec![Incident { at_ms, kind: Kind::Move { source, is_other_network: false } }];
    for (at_ms, source, is_excused) in [
        (10_000, source, true),
        (50_000, source, true),
        (10_000 - round_trip_ms - 1, source, false),
        (10_000, source + 1, false),
    ] {
        plan.incidents = moved(at_ms, source);
        let has_arrived = checks::has_arrived(&plan, 0, [Some(&one), Some(&other)]);
        assert_eq!(has_arrived, is_excused, "moved at {at_ms} ms");
    }
    plan.incidents = moved(10_000, source);
    other.read -= 1;
    assert!(!checks::has_arrived(&plan, 0, [Some(&one), Some(&other)]), "a byte is missing");
}

#[test]
fn a_number_that_serves_twice_and_what_is_in_the_clear_are_noticed() {
    let (mut monitor, to) = (monitor(), somebody());
    monitor.connects(1, to);
    let mut keys = Keys::new(KEY, 20);
    let [one, other] = [0, 1].map(|last| keys.seal(5, 0, &[last; 60]).unwrap());
    monitor.leaves(Time::ZERO, 1, to, &one, Some(KEY));
    assert_eq!(monitor.broken, Vec::<String>::new());
    monitor.leaves(Time::ZERO, 1, to, &other, Some(KEY));
    assert!(breaks(&monitor.broken, "serves twice"), "{:?}", monitor.broken);
    monitor.broken.clear();
    let clear = [&5_u64.to_be_bytes()[..], &[0; 60]].concat();
    for key in [None, Some(KEY)] {
        monitor.leaves(Time::ZERO, 1, to, &clear, key);
        assert!(breaks(&monitor.broken, "encrypted"), "{:?}", monitor.broken);
        monitor.broken.clear();
    }
}

#[test]
fn more_than_twice_the_bytes_to_who_has_not_answered_are_noticed() {
    let (mut monitor, to) = (monitor(), somebody());
    let mut keys = Keys::new(KEY, 20);
    monitor.arrives(0, to, &[1; 46], None);
    for number in 0..2 {
        monitor.leaves(Time::ZERO, 0, to, &keys.seal(5, number, &[1; 9]).unwrap(), Some(KEY));
        assert_eq!(monitor.broken, Vec::<String>::new());
    }
    monitor.leaves(Time::ZERO, 0, to, &keys.seal(5, 2, &[1; 9]).unwrap(), Some(KEY));
    assert!(breaks(&monitor.broken, "twice the bytes"), "{:?}", monitor.broken);
    // A response with the number of the challenge is an answer.
    monitor.broken.clear();
    let response = [&[2][..], &[1; 8]].concat();
    monitor.arrives(0, to, &keys.seal(6, 0, &response).unwrap(), Some(KEY));
    monitor.leaves(Time::ZERO, 0, to, &keys.seal(5, 3, &[0; 500]).unwrap(), Some(KEY));
    assert_eq!(monitor.broken, Vec::<String>::new());
}

#[test]
fn challenges_more_often_than_ten_times_a_second_are_noticed() {
    let (mut monitor, to) = (monitor(), somebody());
    monitor.connects(0, to);
    let mut keys = Keys::new(KEY, 20);
    for number in 0..11 {
        assert_eq!(monitor.broken, Vec::<String>::new());
        let now = Time::ZERO + Duration::from_millis(95 * number);
        monitor.leaves(now, 0, to, &keys.seal(5, number, &[1; 9]).unwrap(), Some(KEY));
    }
    assert!(breaks(&monitor.broken, "ten times a second"), "{:?}", monitor.broken);
}
