//! Two ends, the wire between them, and strangers: the run of one schedule from beginning to end.

use super::end::{Application, End, Ending};
use super::plan::{Mishap, Plan, stream};
use super::wire::{Flight, Wire};
use crate::content::shows_payload;
use crate::handshake::{Kind, Opening, tag_of};
use crate::port::Party;
use meshpace_core::{Rng, Time};
use std::net::SocketAddr;

/// Time by which everything must have ended. The wire is hostile for at most 30 s. The longest
/// waits after that are for a silent peer (120 s, possibly after the wait for a retransmission),
/// for the peer of an application that is gone (60 s), and TIME-WAIT (10 s).
const LATEST: Time = Time(900_000_000_000);

/// Most steps of a schedule.
const MOST_STEPS: usize = 300_000;

/// Result of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// Bytes read and ending of each application of both ends, in the order in which their
    /// connections were forgotten.
    pub applications: [Vec<(u64, Ending)>; 2],
    /// Number of connections that the listener accepted.
    pub accepted: usize,
    /// Number of datagrams that were forged or replayed. Strays are not counted.
    pub forged: u64,
    /// True if payload was visible on the wire.
    pub shows_payload: bool,
    /// True if a datagram was seen that was sealed with the second key of a direction.
    pub rekeys: bool,
    /// Time at which everything was over.
    pub at: Time,
}

/// State of the run of a schedule.
struct World {
    plan: Plan,
    now: Time,
    ends: [End; 2],
    strangers: Vec<(Time, End)>,
    wire: Wire,
    /// Random numbers that only select which forgeries are checked in detail.
    looker: Rng,
    mishap: Mishap,
    shows_payload: bool,
    rekeys: bool,
}

fn address(host: u8) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, host], 4000 + u16::from(host)))
}

/// Runs a schedule, and checks that nothing is left of its connections.
pub fn run(plan: &Plan) -> Outcome {
    let mut world = World::new(plan.clone());
    world.ends[0].open(Time::ZERO, address(2));
    let mut steps = 0;
    while world.step() {
        steps += 1;
        assert!(steps < MOST_STEPS, "it turns in a circle at {:?}", world.now);
        let parties = || world.ends.each_ref().map(|end| end.parties().collect::<Vec<_>>());
        assert!(world.now < LATEST, "not over: {:#?}", parties());
    }
    for end in &world.ends {
        assert!(end.port.parties.is_empty(), "nobody will wake {:?}", end.port.parties);
        assert_eq!(end.port.endpoint.unfinished(), 0, "places of unfinished handshakes");
        assert_eq!(end.port.endpoint.connections().count(), 0, "tags of connections");
        assert_eq!(end.port.endpoint.in_use(), (0, 0), "places of sources");
    }
    let of = |end: &End| end.applications().map(|one| (one.read, one.ending.clone())).collect();
    Outcome {
        applications: [of(&world.ends[0]), of(&world.ends[1])],
        accepted: world.ends[1].accepted,
        forged: world.wire.forged,
        shows_payload: world.shows_payload,
        rekeys: world.rekeys,
        at: world.now,
    }
}

impl World {
    fn new(plan: Plan) -> World {
        let ends = [0, 1].map(|end| World::end(&plan, end, 0, Time::ZERO));
        let mut rng = stream(plan.seed, 3);
        let count = if plan.strangers { 1 + rng.below(4) } else { 0 };
        let strangers = (0..count).map(|index| {
            let at = Time(rng.below(5_000_000_000));
            let settings = plan.settings[0].clone();
            let habits = (0, Time::ZERO);
            (at, End::new(at, address(10 + index as u8), settings, (plan.seed, 100 + index), false, habits))
        });
        let strangers = strangers.collect();
        let wire = Wire::new(&plan);
        let (looker, mishap) = (stream(plan.seed, 4), plan.mishap);
        World { now: Time::ZERO, ends, strangers, wire, looker, mishap, shows_payload: false, rekeys: false, plan }
    }

    /// Creates end `end`; `life` is the number of its restarts.
    fn end(plan: &Plan, end: usize, life: u64, now: Time) -> End {
        let habits = (plan.bytes[end], plan.reads_at[end]);
        let randomness = (plan.seed, 10 + 2 * life + end as u64);
        End::new(now, address(1 + end as u8), plan.settings[end].clone(), randomness, end == 1, habits)
    }

    /// Advances to the time of the next event. Returns false if there is none.
    fn step(&mut self) -> bool {
        let mishap_at = match self.mishap {
            Mishap::None => Time::NEVER,
            Mishap::Restart(_, at) | Mishap::Abort(_, at) => at,
        };
        let ends = self.ends.iter().map(|end| end.next_wakeup(self.now));
        let strangers = self.strangers.iter().map(|(at, _)| *at);
        let next = ends.chain(strangers).fold(self.wire.next().min(mishap_at), Time::min);
        if next == Time::NEVER {
            return false;
        }
        self.now = self.now.max(next);
        let now = self.now;
        if mishap_at <= now {
            self.suffer();
        }
        while let Some(flight) = self.wire.arrival(now) {
            self.deliver(flight);
            self.drain();
        }
        self.ends.iter_mut().for_each(|end| end.wake(now));
        for (at, stranger) in &mut self.strangers {
            if *at <= now {
                // A stranger sends a request and answers the challenge. It never processes the
                // acceptance.
                stranger.open(now, address(2));
                *at = Time::NEVER;
            }
        }
        self.drain();
        true
    }

    fn suffer(&mut self) {
        let now = self.now;
        match std::mem::replace(&mut self.mishap, Mishap::None) {
            Mishap::None => {}
            Mishap::Restart(end, _) => {
                self.ends[end] = World::end(&self.plan, end, 1, now);
                if end == 0 {
                    self.ends[0].open(now, address(2));
                }
            }
            Mishap::Abort(end, _) => self.ends[end].abort(now),
        }
    }

    /// Delivers a datagram to its destination.
    fn deliver(&mut self, mut flight: Flight) {
        let Flight { from, to, forged, .. } = flight;
        let is_opening = tag_of(&flight.bytes).is_none_or(|tag| tag == 0);
        let now = self.now;
        if let Some((_, stranger)) = self.strangers.iter_mut().find(|(_, stranger)| stranger.address() == to) {
            if matches!(Opening::decode(&flight.bytes), Some((Opening { kind: Kind::Challenge, .. }, _))) {
                stranger.receive(now, from, &mut flight.bytes);
            }
            return;
        }
        let Some(end) = self.ends.iter_mut().find(|end| end.address() == to) else { return };
        let is_elsewhere = !(1..=2).any(|known| from == address(known));
        let is_moving = end.parties().any(|party| party.session.is_moving());
        if self.plan.is_sealed() && (is_elsewhere || is_moving) {
            // The datagram may be genuine, and the peer may have moved as far as the connection
            // knows. The peer never moves here, so the connection must stay at its address.
            end.receive(now, from, &mut flight.bytes);
            let is_here = |party: &Party<Application>| (1..=2).any(|known| party.session.peer() == address(known));
            assert!(end.parties().all(is_here), "moved by somebody who is not the peer");
            return;
        }
        if !forged || is_opening || self.looker.below(8) > 0 {
            end.receive(now, from, &mut flight.bytes);
            return;
        }
        // A datagram that the peer did not send, or sent before, must not change any state of a
        // connection.
        let state = |end: &End| format!("{:?}", end.parties().map(|party| &party.session).collect::<Vec<_>>());
        let before = state(end);
        end.receive(now, from, &mut flight.bytes);
        assert_eq!(before, state(end), "changed by what nobody sent");
    }

    /// Puts the datagrams that leave the ends on the wire.
    fn drain(&mut self) {
        let now = self.now;
        for end in self.ends.iter_mut().chain(self.strangers.iter_mut().map(|(_, stranger)| stranger)) {
            let from = end.address();
            for (to, bytes) in end.leaving() {
                self.shows_payload |= shows_payload(&bytes);
                if let Some(number) =
                    bytes[8..].first_chunk().filter(|_| self.plan.is_sealed() && tag_of(&bytes) != Some(0))
                {
                    self.rekeys |= u64::from_be_bytes(*number) >> self.plan.settings[0].key_life == 1;
                }
                self.wire.send(&self.plan, now, Flight { from, to, bytes, forged: false });
            }
        }
        for notice in std::mem::take(&mut self.wire.notices) {
            if let Some(end) = self.ends.iter_mut().find(|end| end.address() == notice.from) {
                end.complain(now, notice.to, &notice.quoted, notice.report);
            }
        }
    }
}
