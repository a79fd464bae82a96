//! Tests of sessions in virtual time: two ends joined by a hostile wire, run through thousands of
//! random schedules.
//!
//! A schedule is drawn from a seed (`plan`). It determines the transport, the protection and the
//! keys. It also determines loss, duplication, delay, reordering, a blackout, a narrow path,
//! forgery, replay, strangers that do not finish their handshakes, and a restart or an abort of one
//! end. The ends (`end`) are the code that `runtime` runs on sockets. The wire (`wire`) and the
//! clock (`world`) belong to the test.
//!
//! `MESHPACE_SCHEDULES` is the number of schedules that are run (default 100,000 with
//! `MESHPACE_SLOW=1`, else 5000). `MESHPACE_SEED` repeats a single one.

mod answers;
mod black_hole;
mod crowd;
mod end;
mod hostile;
mod margin;
mod observer;
mod opening;
mod plan;
mod roaming;
mod wire;
mod world;

use super::framing::decode_plain;
use super::handshake::{Kind, Opening};
use super::security::Security;
use super::settings::{self, Settings};
use crate::connection::Report;
use end::{End, Ending};
use meshpace_core::{Duration, Time};
use meshpace_transport::tpa::Flags;
use plan::{Mishap, Plan};
use std::net::SocketAddr;
use world::{Outcome, run};

/// Default number of schedules.
const SCHEDULES: u64 = 5000;

/// Default number of schedules with `MESHPACE_SLOW=1`.
const SLOW_SCHEDULES: u64 = 100_000;

/// Guard that prints how to repeat a schedule if its test fails.
struct Named<'a>(&'a Plan);

impl Drop for Named<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let seed = self.0.seed;
            eprintln!("MESHPACE_SEED={seed} cargo test -p meshpace-session --lib schedules repeats it: {:?}", self.0);
        }
    }
}

/// Seeds of the schedules that are run.
fn seeds() -> std::ops::Range<u64> {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().expect("a number"));
    if let Some(seed) = number("MESHPACE_SEED") {
        return seed..seed + 1;
    }
    let is_slow = std::env::var("MESHPACE_SLOW").is_ok_and(|value| value == "1");
    0..number("MESHPACE_SCHEDULES").unwrap_or(if is_slow { SLOW_SCHEDULES } else { SCHEDULES })
}

/// Checks the rules that hold for every schedule.
fn check(plan: &Plan, outcome: &Outcome) {
    let Outcome { applications: [openers, listeners], .. } = outcome;
    let opened = 1 + usize::from(matches!(plan.mishap, Mishap::Restart(0, _)));
    assert!(outcome.accepted <= opened, "a request that was played again has opened a connection");
    if plan.is_sealed() {
        assert!(!outcome.shows_payload, "payload that was to be encrypted");
    }
    if plan.is_to_arrive() {
        let read = outcome.applications.each_ref().map(|all| all.iter().map(|(read, _)| *read).collect::<Vec<_>>());
        assert_eq!(read, [[plan.bytes[1]], [plan.bytes[0]]], "bytes read: {outcome:?}");
        assert!(
            openers[0].1 == Ending::Well || listeners[0].1 == Ending::Well,
            "nobody knows that all is well: {outcome:?}"
        );
        // Checks the recognition itself: without encryption, the payload must be seen on the wire
        // unless both streams are shorter than 64 bytes.
        let is_seen = plan.is_sealed() || plan.bytes.iter().all(|bytes| *bytes < 64) || outcome.shows_payload;
        assert!(is_seen, "payload was not recognised");
    }
    if let Mishap::Restart(0, _) = plan.mishap
        && !plan.strangers
    {
        // The end that has restarted must read everything. At least one of the two ends must also
        // learn that everything has arrived; the last datagram to the other may be lost.
        let (read, ending) = openers.last().unwrap();
        let answered = listeners.contains(&(plan.bytes[0], Ending::Well));
        assert!(*read == plan.bytes[1] && (*ending == Ending::Well || answered), "{outcome:?}");
    }
}

#[test]
fn sessions_keep_their_word_over_any_wire() {
    let (mut schedules, mut forged, mut rekeyed, mut unwell, mut unheard) = (0, 0, 0, 0, 0);
    let seeds = seeds();
    let all = seeds.end - seeds.start > 1;
    for seed in seeds {
        let plan = Plan::of(seed);
        let named = Named(&plan);
        let outcome = run(&plan);
        check(&plan, &outcome);
        // Without forgeries the same arrives. Time passes otherwise, so that nothing can be said of what a mishap cuts off.
        if outcome.forged > 0 && plan.is_to_arrive() && seed % 4 == 0 {
            let clean = run(&Plan { forging: 0.0, ..plan.clone() });
            check(&plan, &clean);
            assert_eq!(clean.forged, 0);
        }
        schedules += 1;
        forged += outcome.forged;
        rekeyed += u64::from(outcome.rekeys);
        let is_unwell = outcome.applications.iter().flatten().any(|(_, ending)| *ending != Ending::Well);
        unwell += u64::from(is_unwell && !plan.is_to_arrive());
        unheard += u64::from(is_unwell && plan.is_to_arrive());
        drop(named);
    }
    eprintln!(
        "{schedules} schedules: {forged} forgeries, {rekeyed} with other keys under way, {unwell} ended by a mishap, \
         {unheard} without the last word"
    );
    // Where each answer to a repeated end is lost for as long as it is given, only one end knows that all has arrived.
    assert!(unheard <= 1 + schedules / 200, "{unheard} ends did not hear the last word");
    // A wire that never does what it is for proves nothing.
    assert!(!all || (forged > schedules && rekeyed > schedules / 200 && unwell > schedules / 100));
}

/// Delivers the datagrams that leave `from` to `to`. The first datagram of `kind` is not delivered
/// but returned, if there is one.
fn pass(now: Time, from: &mut End, to: &mut End, kind: Kind) -> Option<Vec<u8>> {
    let mut kept = None;
    for (_, mut bytes) in from.leaving() {
        if kept.is_none() && Opening::decode(&bytes).is_some_and(|(opening, _)| opening.kind == kind) {
            kept = Some(bytes);
        } else {
            to.receive(now, from.address(), &mut bytes);
        }
    }
    kept
}

#[test]
fn an_acceptance_changed_under_way_keeps_no_connection_from_being_opened() {
    let [a, b] = [1, 2].map(|host| SocketAddr::from(([10, 0, 0, host], 4000)));
    let settings = Settings { security: Security::Opportunistic, ..settings::plain() };
    let opened = |bit: usize| {
        let now = Time(5);
        let mut opener = End::new(now, a, settings.clone(), (1, 1), false, (0, now));
        let mut listener = End::new(now, b, settings.clone(), (1, 2), true, (0, now));
        opener.open(now, b);
        let mut acceptance = None;
        while acceptance.is_none() {
            assert_eq!(pass(now, &mut opener, &mut listener, Kind::Acceptance), None);
            acceptance = pass(now, &mut listener, &mut opener, Kind::Acceptance);
        }
        let mut genuine = acceptance.unwrap();
        let mut changed = genuine.clone();
        let is_bit = bit < 8 * changed.len();
        if is_bit {
            changed[bit / 8] ^= 1 << (bit % 8);
            opener.receive(now, b, &mut changed);
        }
        opener.receive(now, b, &mut genuine);
        let party = opener.parties().next().unwrap();
        assert!(party.exchange.is_open(), "bit {bit}: {:?}", party.exchange.phase);
        // And both ends mean the same connection.
        pass(now, &mut opener, &mut listener, Kind::Request);
        assert_eq!(listener.accepted, 1, "bit {bit}");
        is_bit
    };
    assert!((0..).take_while(|bit| opened(*bit)).count() > 8 * 100);
}

#[test]
fn who_shows_the_cookie_of_another_with_a_message_of_his_own_keeps_no_connection_from_being_opened() {
    let [a, b] = [1, 2].map(|host| SocketAddr::from(([10, 0, 0, host], 4000)));
    let keys = [[1; 32], [2; 32]];
    let [ours, theirs] = [(0, 1), (1, 0)]
        .map(|(own, peer)| Security::Keys { own: keys[own], peers: vec![Security::public_key(&keys[peer])] });
    let alike = |security: Security| [security.clone(), security];
    for securities in [alike(Security::Opportunistic), alike(Security::Shared([7; 32])), [ours, theirs]] {
        let opened = |place: usize| {
            let now = Time(5);
            let [ours, theirs] = securities.clone().map(|security| Settings { security, ..settings::plain() });
            let mut opener = End::new(now, a, ours, (1, 1), false, (0, now));
            let mut listener = End::new(now, b, theirs, (1, 2), true, (0, now));
            opener.open(now, b);
            assert_eq!(pass(now, &mut opener, &mut listener, Kind::Refusal), None);
            assert_eq!(pass(now, &mut listener, &mut opener, Kind::Refusal), None);
            let mut genuine = pass(now, &mut opener, &mut listener, Kind::Request).expect("it shows the cookie");
            let length = usize::from(u16::from_be_bytes([genuine[60], genuine[61]]));
            let mut changed = genuine.clone();
            if place < length {
                changed[62 + place] ^= 0x80;
            } else {
                // A byte more, of the padding.
                changed[61] += 1;
            }
            listener.receive(now, a, &mut changed);
            pass(now, &mut listener, &mut opener, Kind::Refusal);
            listener.receive(now, a, &mut genuine);
            pass(now, &mut listener, &mut opener, Kind::Refusal);
            let party = opener.parties().next().unwrap();
            assert!(party.exchange.is_open(), "place {place}: {:?}", party.exchange.phase);
            place < length
        };
        assert!((0..).take_while(|place| opened(*place)).count() >= 32);
    }
}

#[test]
fn one_forged_complaint_takes_no_end_from_the_peer() {
    let [a, b] = [1, 2].map(|host| SocketAddr::from(([10, 0, 0, host], 4000)));
    let mut now = Time(5);
    let [mut opener, mut listener] = [(a, 100), (b, 0)]
        .map(|(address, bytes)| End::new(now, address, settings::plain(), (1, bytes), address == b, (bytes, now)));
    opener.open(now, b);
    // All arrives but the opener's end.
    let mut end = None;
    while now < Time(3_000_000_000) {
        now += Duration::from_millis(10);
        opener.wake(now);
        listener.wake(now);
        for (_, mut bytes) in opener.leaving() {
            if decode_plain(&bytes).is_some_and(|(_, segment, _)| segment.flags.has(Flags::FIN)) {
                end = Some(bytes);
            } else {
                listener.receive(now, a, &mut bytes);
            }
        }
        assert_eq!(pass(now, &mut listener, &mut opener, Kind::Refusal), None);
    }
    opener.complain(now, b, &end.unwrap(), Report::Refused);
    assert_eq!(pass(now, &mut opener, &mut listener, Kind::Refusal), None);
    let party = listener.parties().next().expect("it was ended");
    assert_eq!((party.application.read, party.exchange.failure().map(|failure| failure.reason)), (100, None));
}

#[test]
fn a_schedule_is_the_same_again() {
    for seed in 0..20 {
        assert_eq!(run(&Plan::of(seed)), run(&Plan::of(seed)), "seed {seed}");
    }
}
