//! Tests of an attacker without keys who reads all packets and forges as many: strays, and errors
//! that the network might report about a datagram. The same messages also come after a peer that
//! has really restarted, so the tests cover that case too.

use super::end::{End, Ending};
use super::plan::stream;
use crate::connection::Report;
use crate::failure::Reason;
use crate::handshake::{InnerTransport, Opening, stray, tag_of};
use crate::security::Security;
use crate::settings::{self, Settings};
use meshpace_core::{Duration, Time};
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// Delay of a datagram.
const DELAY: Duration = Duration::from_millis(200);

/// Loss ratio of the path.
const LOSS: f64 = 0.05;

fn address(end: usize) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 1 + end as u8], 4000))
}

/// Two ends, and the path between them.
struct Scene {
    now: Time,
    settings: Settings,
    ends: [End; 2],
    flights: BTreeMap<(Time, u64), (usize, Vec<u8>)>,
    sent: u64,
    loss: meshpace_core::Rng,
    /// True if the observer forges messages.
    is_observed: bool,
    /// True if the second end does not know BBR.
    is_old: bool,
    /// Longest datagram that the path carries from each end, bytes.
    longest: [usize; 2],
    /// True if the path reports an error for longer datagrams.
    tells: bool,
}

impl Scene {
    /// Opens a connection from the first end. Both ends write `bytes` bytes.
    fn new(bytes: u64, inner: InnerTransport) -> Scene {
        Scene::with(bytes, inner, Security::Opportunistic)
    }

    fn with(bytes: u64, inner: InnerTransport, security: Security) -> Scene {
        let settings = Settings { security, ..settings::carrying(inner) };
        let ends = [0, 1].map(|end| Scene::end(&settings, end, bytes, 0));
        let mut scene = Scene {
            now: Time::ZERO,
            settings,
            ends,
            flights: BTreeMap::new(),
            sent: 0,
            loss: stream(1, 9),
            is_observed: false,
            is_old: false,
            longest: [usize::MAX; 2],
            tells: false,
        };
        scene.ends[0].open(scene.now, address(1));
        scene.depart();
        scene
    }

    fn end(settings: &Settings, end: usize, bytes: u64, life: u64) -> End {
        End::new(
            Time::ZERO,
            address(end),
            settings.clone(),
            (1, 20 + 2 * life + end as u64),
            end == 1,
            (bytes, Time::ZERO),
        )
    }

    /// Puts the datagrams that leave the ends on the path. The observer forges its messages about
    /// each before the datagram arrives.
    fn depart(&mut self) {
        let said: Vec<(usize, Vec<u8>)> =
            (0..2).flat_map(|end| self.ends[end].leaving().into_iter().map(move |(_, bytes)| (end, bytes))).collect();
        for (end, bytes) in said {
            if self.is_observed {
                self.forge(end, &bytes);
            }
            self.sent += 1;
            if self.tells && bytes.len() > self.longest[end] {
                let mtu = self.longest[end] as u32 + 28;
                self.ends[end].complain(self.now, address(1 - end), &bytes, Report::TooLong { mtu });
            }
            if self.loss.uniform() >= LOSS && bytes.len() <= self.longest[end] {
                self.flights.insert((self.now + DELAY, self.sent), (1 - end, bytes));
            }
        }
    }

    /// Sends `end` three copies each of a forged stray, of an error that nobody has the peer's
    /// port, and of an error that the datagram is too long.
    fn forge(&mut self, end: usize, datagram: &[u8]) {
        let Some(tag) = tag_of(datagram).filter(|tag| *tag != 0) else { return };
        let peer = address(1 - end);
        for _ in 0..3 {
            self.ends[end].receive(self.now, peer, &mut stray(tag));
            self.ends[end].complain(self.now, peer, datagram, Report::Refused);
            self.ends[end].complain(self.now, peer, datagram, Report::TooLong { mtu: 100 });
        }
    }

    /// Runs until `is_over` is true, at most to `latest`.
    fn run(&mut self, latest: Time, is_over: impl Fn(&Scene) -> bool) {
        while !is_over(self) && self.now < latest {
            let flight = self.flights.first_key_value().map_or(Time::NEVER, |((at, _), _)| *at);
            let next = self.ends.iter().map(|end| end.next_wakeup(self.now)).fold(flight, Time::min).min(latest);
            self.now = self.now.max(next);
            while let Some(entry) = self.flights.first_entry().filter(|entry| entry.key().0 <= self.now) {
                let (end, mut bytes) = entry.remove();
                if self.is_old && end == 1 {
                    bytes = without_bbr(bytes);
                }
                self.ends[end].receive(self.now, address(1 - end), &mut bytes);
                self.depart();
            }
            let now = self.now;
            self.ends.iter_mut().for_each(|end| end.wake(now));
            self.depart();
        }
    }

    fn endings(&self) -> [Vec<(u64, Ending)>; 2] {
        self.ends.each_ref().map(|end| end.applications().map(|one| (one.read, one.ending.clone())).collect())
    }

    fn is_over(&self) -> bool {
        self.endings().iter().flatten().all(|(_, ending)| *ending != Ending::None)
    }
}

/// Returns a datagram as an end sees it that ignores the request for BBR.
fn without_bbr(bytes: Vec<u8>) -> Vec<u8> {
    let Some((mut opening, noise)) = Opening::decode(&bytes) else { return bytes };
    opening.segment.congested = false;
    opening.encode(noise, bytes.len())
}

#[test]
fn with_a_listener_that_does_not_know_bbr_it_is_quiet_trains() {
    for (is_old, carried_by) in [(false, InnerTransport::Bbr), (true, InnerTransport::Trains)] {
        let mut scene = Scene::new(60_000, InnerTransport::Bbr);
        scene.is_old = is_old;
        scene.run(Time::ZERO + Duration::from_secs(2), |_| false);
        let found = scene.ends.each_ref().map(|end| end.parties().next().expect("a connection").session.inner());
        assert_eq!(found, [carried_by; 2]);
        scene.run(Time::ZERO + Duration::from_secs(600), Scene::is_over);
        let all = vec![(60_000, Ending::Well)];
        assert_eq!(scene.endings(), [all.clone(), all]);
    }
}

#[test]
fn an_observer_ends_no_connection_that_moves() {
    for inner in [InnerTransport::Tpa, InnerTransport::Trains, InnerTransport::Bbr] {
        let mut scene = Scene::new(60_000, inner);
        scene.is_observed = true;
        scene.run(Time::ZERO + Duration::from_secs(600), |scene| scene.now > Time(3_000_000_000) && scene.is_over());
        let all = vec![(60_000, Ending::Well)];
        assert_eq!(scene.endings(), [all.clone(), all], "{inner:?}");
    }
}

#[test]
fn an_observer_ends_no_connection_that_rests() {
    for inner in [InnerTransport::Tpa, InnerTransport::Trains, InnerTransport::Bbr] {
        let mut scene = Scene::new(0, inner);
        // Neither application closes: there is nothing to read for an hour.
        scene.ends.iter_mut().for_each(|end| end.rests = true);
        scene.run(Time::ZERO + Duration::from_secs(20), |_| false);
        scene.is_observed = true;
        scene.run(Time::ZERO + Duration::from_secs(3600), |_| false);
        let none = vec![(0, Ending::None)];
        assert_eq!(scene.endings(), [none.clone(), none], "{inner:?}");
    }
}

#[test]
fn an_observer_ends_no_connection_whose_reader_is_slow() {
    for inner in [InnerTransport::Tpa, InnerTransport::Trains, InnerTransport::Bbr] {
        let settings = Settings { security: Security::Opportunistic, ..settings::carrying(inner) };
        let bytes = if inner == InnerTransport::Bbr { 6_000_000 } else { 400_000 };
        let mut scene = Scene::new(bytes, inner);
        // The second end reads after half a minute: for as long its window is closed.
        let habits = (0, Time(30_000_000_000));
        scene.ends[1] = End::new(Time::ZERO, address(1), settings, (1, 21), true, habits);
        scene.is_observed = true;
        scene.run(Time::ZERO + Duration::from_secs(600), |scene| scene.now > Time(40_000_000_000) && scene.is_over());
        assert_eq!(scene.endings(), [vec![(0, Ending::Well)], vec![(bytes, Ending::Well)]], "{inner:?}");
    }
}

/// Runs until the application at `end` has read more, for at most two minutes, and then for five
/// seconds.
fn run_until_more_is_read(scene: &mut Scene, end: usize) {
    let (before, limit) = (scene.endings()[end][0].0, scene.now + Duration::from_secs(120));
    while scene.endings()[end][0].0 == before && scene.now < limit {
        scene.run(scene.now + Duration::from_secs(1), |_| false);
    }
    scene.run(scene.now + Duration::from_secs(5), |_| false);
    let [(read, ending)] = &scene.endings()[end][..] else { panic!("one connection") };
    assert!(!matches!(ending, Ending::Failed(_)) && *read > before, "{end}: {read} {before} {ending:?}");
}

#[test]
fn an_observer_ends_no_connection_whose_timer_is_long() {
    for inner in [InnerTransport::Tpa, InnerTransport::Trains, InnerTransport::Bbr] {
        let mut scene = Scene::new(100_000_000, inner);
        scene.run(Time::ZERO + Duration::from_secs(2), |_| false);
        // As long as only short ones pass, the timer of the first end doubles and doubles, while it
        // acknowledges what the other one writes.
        scene.longest[0] = 100;
        scene.run(Time::ZERO + Duration::from_secs(27), |_| false);
        scene.longest[0] = usize::MAX;
        scene.is_observed = true;
        run_until_more_is_read(&mut scene, 0);
        run_until_more_is_read(&mut scene, 1);
    }
}

#[test]
fn an_observer_ends_no_connection_whose_segments_were_lost_for_five_seconds() {
    for inner in [InnerTransport::Tpa, InnerTransport::Trains, InnerTransport::Bbr] {
        let mut scene = Scene::new(100_000_000, inner);
        scene.is_observed = true;
        scene.run(Time::ZERO + Duration::from_secs(2), |_| false);
        // Several segments are lost, and some that are sent again: the next one passes.
        scene.longest[0] = 100;
        scene.run(Time::ZERO + Duration::from_secs(7), |_| false);
        scene.longest[0] = usize::MAX;
        run_until_more_is_read(&mut scene, 1);
    }
}

#[test]
fn a_path_that_becomes_narrower_and_says_so_is_used_in_pieces() {
    for inner in [InnerTransport::Tpa, InnerTransport::Trains, InnerTransport::Bbr] {
        let mut scene = Scene::new(100_000_000, inner);
        scene.run(Time::ZERO + Duration::from_secs(2), |_| false);
        (scene.longest, scene.tells) = ([600; 2], true);
        scene.run(scene.now + Duration::from_secs(10), |_| false);
        let before = scene.endings().map(|ends| ends[0].0);
        scene.run(scene.now + Duration::from_secs(5), |_| false);
        for (ends, before) in scene.endings().iter().zip(before) {
            let [(read, ending)] = &ends[..] else { panic!("one connection") };
            assert!(*ending == Ending::None && *read > before, "{inner:?}: {read} {before} {ending:?}");
        }
    }
}

#[test]
fn without_encryption_a_path_that_becomes_too_narrow_and_says_so_ends_the_connection_soon() {
    for inner in [InnerTransport::Tpa, InnerTransport::Trains, InnerTransport::Bbr] {
        let mut scene = Scene::with(100_000_000, inner, Security::Plain);
        scene.run(Time::ZERO + Duration::from_secs(2), |_| false);
        (scene.longest, scene.tells) = ([600; 2], true);
        let narrow = scene.now;
        scene.run(narrow + Duration::from_secs(60), Scene::is_over);
        let took = scene.now.since(narrow);
        // What leaves is doubled in time, up to twice the time that it takes to be sure.
        assert!(scene.is_over() && took <= Duration::from_secs(30), "{took:?}, {inner:?}: {:?}", scene.endings());
    }
}

#[test]
fn without_encryption_a_path_that_silently_becomes_too_narrow_ends_the_connection_at_both_ends() {
    for inner in [InnerTransport::Tpa, InnerTransport::Trains, InnerTransport::Bbr] {
        let mut scene = Scene::with(100_000_000, inner, Security::Plain);
        scene.run(Time::ZERO + Duration::from_secs(2), |_| false);
        scene.longest = [600; 2];
        let narrow = scene.now;
        scene.run(narrow + Duration::from_secs(300), Scene::is_over);
        let took = scene.now.since(narrow);
        assert!(scene.is_over() && took <= Duration::from_secs(150), "{took:?}, {inner:?}: {:?}", scene.endings());
        let failed = |(_, ending): &(u64, Ending)| matches!(ending, Ending::Failed(_));
        assert!(scene.endings().iter().flatten().all(failed), "{inner:?}: {:?}", scene.endings());
    }
}

#[test]
fn a_peer_that_has_begun_anew_is_given_up_soon() {
    for inner in [InnerTransport::Tpa, InnerTransport::Trains, InnerTransport::Bbr] {
        let mut scene = Scene::new(100_000_000, inner);
        scene.run(Time::ZERO + Duration::from_secs(2), |_| false);
        let restarted = scene.now;
        scene.ends[1] = Scene::end(&scene.settings, 1, 0, 1);
        scene.run(restarted + Duration::from_secs(60), |scene| scene.endings()[0][0].1 != Ending::None);
        assert_eq!(scene.endings()[0][0].1, Ending::Failed(Reason::Reset), "{inner:?}");
        let took = scene.now.since(restarted);
        assert!(took < Duration::from_secs(15), "{took:?}, {inner:?}");
    }
}

#[test]
fn a_peer_that_has_begun_anew_unnoticed_is_given_up_soon_after_the_first_question() {
    for inner in [InnerTransport::Tpa, InnerTransport::Trains, InnerTransport::Bbr] {
        let mut scene = Scene::new(0, inner);
        scene.ends[0].rests = true;
        scene.ends[1].rests = true;
        scene.run(Time::ZERO + Duration::from_secs(20), |_| false);
        scene.ends[1] = Scene::end(&scene.settings, 1, 0, 1);
        scene.run(Time::ZERO + Duration::from_secs(600), |scene| scene.endings()[0][0].1 != Ending::None);
        assert_eq!(scene.endings()[0][0].1, Ending::Failed(Reason::Reset), "{inner:?}");
        // It is asked when it has been silent for 30 s, and once a second from its first answer on.
        let took = scene.now.since(Time::ZERO);
        assert!(took < Duration::from_secs(45), "{took:?}, {inner:?}");
    }
}
