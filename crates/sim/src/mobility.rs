//! Movement: the position of every node at any time, as straight legs at constant speed.
//!
//! There are two models. *Scripted*: a list of moves, with each node resting in between. *Random
//! waypoint* (D. Johnson, D. Maltz, "Dynamic source routing in ad hoc wireless networks", 1996): a
//! node chooses a point of a rectangle and a speed, moves there, pauses, and chooses again. The
//! model starts in its stationary regime, so that no initial time must be discarded until speeds
//! and densities have settled (W. Navidi, T. Camp, "Stationary distributions for the random
//! waypoint mobility model", IEEE Trans. Mobile Computing 3(1), 2004; J.-Y. Le Boudec, M. Vojnovic,
//! "Perfect simulation and stationarity of a class of mobility models", INFOCOM 2005):
//!
//! - A node is paused with probability pause / (pause + mean trip time), where the mean trip time
//!   is the mean length of a trip times E[1/v]. Its position is then uniform, and the rest of the
//!   pause is uniform, too.
//! - Otherwise the node is on a trip. The density of the trip's ends is proportional to their
//!   distance, the node is uniformly distributed on the trip, and the density of its speed is
//!   proportional to 1/v, that is v = v_min^(1-u) v_max^u.
//!
//! Legs are drawn one at a time, from a stream of the node's own. Memory does not grow with
//! simulated time, and the path of a node does not depend on when its position is queried.

use alloc::vec::Vec;
use meshpace_core::rng::Purpose;
use meshpace_core::{Duration, NodeId, Rng, Time};
use meshpace_mesh::config::Position;
use meshpace_mesh::radio::{Neighbours, Vicinity};

/// Distance in metres that nodes may move before the grid that finds neighbours is filled again. A
/// longer distance means fewer fillings and larger cells.
const SLACK_M: f64 = 50.0;

/// Movement of nodes.
#[derive(Clone, PartialEq, Debug, Default)]
pub enum Mobility {
    /// All nodes stay at their positions.
    #[default]
    Still,
    /// The nodes make these moves. The moves of a node are in the order of time and do not overlap.
    Scripted(Vec<Move>),
    /// Random waypoint. The positions at time zero are drawn, too.
    Waypoint(Waypoint),
}

/// One leg of a node: it leaves its position at `start` and moves straight to `to`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Move {
    /// Node that moves.
    pub node: NodeId,
    /// Time of departure.
    pub start: Time,
    /// Time of arrival; later than `start`.
    pub end: Time,
    /// Position of arrival.
    pub to: Position,
}

/// Random waypoint in a rectangle with a corner at (0, 0).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Waypoint {
    /// Width of the rectangle in m; above zero.
    pub width: f64,
    /// Height of the rectangle in m; above zero.
    pub height: f64,
    /// Lowest speed in m/s; above zero, because there is no stationary regime otherwise.
    pub min_speed: f64,
    /// Highest speed in m/s; at least the lowest.
    pub max_speed: f64,
    /// Pause between two trips.
    pub pause: Duration,
    /// Seed of the movement in place of the run's seed, so that several runs have the same
    /// movement. `None`: the run's seed.
    pub seed: Option<u64>,
}

impl Waypoint {
    /// Probability that a node is paused.
    pub fn paused_share(&self) -> f64 {
        let trip = mean_trip(self.width, self.height) * self.mean_inverse_speed();
        let pause = self.pause.as_secs_f64();
        pause / (pause + trip)
    }

    /// E[1/v] over trips, in s/m.
    pub fn mean_inverse_speed(&self) -> f64 {
        let (low, high) = (self.min_speed, self.max_speed);
        if high > low { libm::log(high / low) / (high - low) } else { 1.0 / low }
    }

    /// Speed of a node that is observed on a trip, for `u` uniform on [0, 1).
    pub fn stationary_speed(&self, u: f64) -> f64 {
        self.min_speed * libm::pow(self.max_speed / self.min_speed, u)
    }

    fn anywhere(&self, rng: &mut Rng) -> Position {
        let x = rng.uniform_in(0.0, self.width);
        Position { x, y: rng.uniform_in(0.0, self.height) }
    }

    /// First leg of a node, from time zero.
    fn first_leg(&self, rng: &mut Rng) -> Leg {
        if rng.uniform() < self.paused_share() {
            let left = self.pause.as_secs_f64() * rng.uniform();
            return Leg::rest(self.anywhere(rng), Time::ZERO, Duration::from_secs_f64(left));
        }
        let diagonal = libm::hypot(self.width, self.height);
        let (from, to) = loop {
            let (from, to) = (self.anywhere(rng), self.anywhere(rng));
            if rng.uniform() * diagonal < from.distance(to) {
                break (from, to);
            }
        };
        let done = rng.uniform();
        let here = Position { x: from.x + done * (to.x - from.x), y: from.y + done * (to.y - from.y) };
        let speed = self.stationary_speed(rng.uniform());
        Leg::trip(here, to, Time::ZERO, speed)
    }

    /// Leg of a node after `leg`.
    fn next_leg(&self, leg: &Leg, rng: &mut Rng) -> Leg {
        if leg.is_trip && self.pause > Duration::ZERO {
            return Leg::rest(leg.to, leg.end, self.pause);
        }
        let to = self.anywhere(rng);
        Leg::trip(leg.to, to, leg.end, rng.uniform_in(self.min_speed, self.max_speed))
    }
}

/// Mean distance of two points that are uniform in a rectangle (B. Ghosh, "Random distances within
/// a rectangle and between two rectangles", Bull. Calcutta Math. Soc. 43, 1951): 0.521405 for the
/// unit square.
pub fn mean_trip(width: f64, height: f64) -> f64 {
    let (a, b) = (width, height);
    let d = libm::hypot(a, b);
    let (a2, b2) = (a * a, b * b);
    let algebraic = a * a2 / b2 + b * b2 / a2 + d * (3.0 - a2 / b2 - b2 / a2);
    let logarithmic = b2 / a * libm::log((a + d) / b) + a2 / b * libm::log((b + d) / a);
    (algebraic + 2.5 * logarithmic) / 15.0
}

#[derive(Clone, Copy, PartialEq, Debug)]
struct Leg {
    from: Position,
    to: Position,
    start: Time,
    end: Time,
    is_trip: bool,
}

impl Leg {
    fn rest(place: Position, start: Time, duration: Duration) -> Leg {
        Leg { from: place, to: place, start, end: start.saturating_add(duration), is_trip: false }
    }

    fn trip(from: Position, to: Position, start: Time, speed: f64) -> Leg {
        // A trip takes at least a nanosecond, so that time always advances.
        let duration = Duration::from_secs_f64(from.distance(to) / speed).max(Duration(1));
        Leg { from, to, start, end: start.saturating_add(duration), is_trip: true }
    }

    fn at(&self, now: Time) -> Position {
        if now >= self.end {
            return self.to;
        }
        let share = now.since(self.start).0 as f64 / self.end.since(self.start).0 as f64;
        Position {
            x: self.from.x + share * (self.to.x - self.from.x),
            y: self.from.y + share * (self.to.y - self.from.y),
        }
    }

    /// Speed in m/s; 0 at rest.
    fn speed(&self) -> f64 {
        if self.is_trip { self.from.distance(self.to) / self.end.since(self.start).as_secs_f64() } else { 0.0 }
    }
}

/// Source of the next legs of a node.
#[derive(Clone, Debug)]
enum Plan {
    /// Remaining moves of a script, with the next move last.
    Script(Vec<Move>),
    Waypoint(Waypoint, Rng),
}

#[derive(Clone, Debug)]
struct Walker {
    leg: Leg,
    plan: Plan,
}

impl Walker {
    /// Position of the node at `now`, which must not be earlier than in previous calls.
    fn at(&mut self, now: Time) -> Position {
        match &mut self.plan {
            Plan::Script(moves) => {
                while let Some(next) = moves.pop_if(|next| next.start <= now) {
                    self.leg = Leg { from: self.leg.to, to: next.to, start: next.start, end: next.end, is_trip: true };
                }
            }
            Plan::Waypoint(waypoint, rng) => {
                while self.leg.end <= now {
                    self.leg = waypoint.next_leg(&self.leg, rng);
                }
            }
        }
        self.leg.at(now)
    }
}

/// Movement of all nodes of one run. It must be queried in the order of time.
///
/// The stations that sense a transmission are determined when it begins, from the positions at that
/// instant. The grid used for this is filled again whenever a node may have moved by more than its
/// slack.
#[derive(Clone, Debug)]
pub struct Motion {
    walkers: Vec<Walker>,
    /// Grid of positions; `None` before the first table, which gives the reach of the radio.
    vicinity: Option<Vicinity>,
    /// Time for which a filled grid is valid.
    lifetime: Duration,
    /// Time at which the grid must be filled again.
    expires: Time,
}

impl Motion {
    /// Creates the movement of nodes that are at `positions` at time zero (under random waypoint
    /// only their number matters). `None` if the nodes do not move.
    pub fn new(positions: &[Position], mobility: &Mobility, seed: u64) -> Option<Motion> {
        let rests = |&place: &Position| Leg::rest(place, Time::ZERO, Duration::ZERO);
        let (walkers, fastest): (Vec<Walker>, f64) = match mobility {
            Mobility::Still => return None,
            Mobility::Scripted(moves) => {
                let mut walkers: Vec<Walker> = positions
                    .iter()
                    .map(|place| Walker { leg: rests(place), plan: Plan::Script(Vec::new()) })
                    .collect();
                let mut places = positions.to_vec();
                let mut fastest = 0.0;
                for leg in moves {
                    let place = core::mem::replace(&mut places[leg.node.index()], leg.to);
                    fastest = libm::fmax(fastest, place.distance(leg.to) / leg.end.since(leg.start).as_secs_f64());
                }
                for &leg in moves.iter().rev() {
                    if let Plan::Script(script) = &mut walkers[leg.node.index()].plan {
                        script.push(leg);
                    }
                }
                (walkers, fastest)
            }
            Mobility::Waypoint(waypoint) => {
                let walker = |node| {
                    let mut rng = Rng::stream(waypoint.seed.unwrap_or(seed), Purpose::Mobility, node as u64);
                    Walker { leg: waypoint.first_leg(&mut rng), plan: Plan::Waypoint(*waypoint, rng) }
                };
                ((0..positions.len()).map(walker).collect(), waypoint.max_speed)
            }
        };
        // The margin of one percent covers the rounding of a leg's end, which changes its speed.
        let lifetime = Duration::from_secs_f64(SLACK_M / (fastest * 1.01));
        Some(Motion { walkers, vicinity: None, lifetime, expires: Time::ZERO })
    }

    /// Position of `node` at `now`.
    pub fn position(&mut self, node: NodeId, now: Time) -> Position {
        self.walkers[node.index()].at(now)
    }

    /// Positions of all nodes at `now`.
    pub fn positions(&mut self, now: Time) -> Vec<Position> {
        self.walkers.iter_mut().map(|walker| walker.at(now)).collect()
    }

    /// Speed in m/s of `node` on the leg of the last query; 0 at rest.
    pub fn speed(&self, node: NodeId) -> f64 {
        self.walkers[node.index()].leg.speed()
    }

    /// Writes the neighbour table of a transmission that `sender` begins now into slot `slot` of
    /// `tables`. Returns a cursor to its first entry and its end.
    pub fn table(&mut self, sender: NodeId, now: Time, slot: u32, tables: &mut Neighbours) -> (u32, u32) {
        let Motion { walkers, vicinity, lifetime, expires } = self;
        let vicinity = vicinity.get_or_insert_with(|| Vicinity::new(tables.channel(), SLACK_M));
        if now >= *expires {
            vicinity.fill(walkers.iter_mut().map(|walker| walker.at(now)));
            *expires = now.saturating_add(*lifetime);
        }
        let place = walkers[sender.index()].at(now);
        let others = vicinity.near(place).filter(|&node| node != sender);
        tables.around(slot, sender, place, others.map(|node| (node, walkers[node.index()].at(now))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parameters of random waypoint in TPA, section 6.4.4.
    const TPA: Waypoint = Waypoint {
        width: 1000.0,
        height: 1000.0,
        min_speed: 1.0,
        max_speed: 9.0,
        pause: Duration::from_secs(20),
        seed: None,
    };

    fn nowhere(nodes: usize) -> Vec<Position> {
        alloc::vec![Position { x: 0.0, y: 0.0 }; nodes]
    }

    #[test]
    fn vectors_of_systems_4() {
        assert!((mean_trip(1.0, 1.0) - 0.521_405).abs() < 5e-7);
        assert!((mean_trip(1000.0, 1000.0) - 521.4).abs() < 0.05);
        assert!((TPA.mean_inverse_speed() - 0.274_653).abs() < 5e-7);
        assert!((mean_trip(1000.0, 1000.0) * TPA.mean_inverse_speed() - 143.205).abs() < 1e-3);
        assert!((TPA.paused_share() - 0.122_545).abs() < 5e-7);
        assert!((TPA.stationary_speed(0.5) - 3.0).abs() < 1e-12);
        assert!((1.0 / TPA.mean_inverse_speed() - 3.641).abs() < 5e-4);
    }

    #[test]
    fn a_flat_rectangle_is_a_line() {
        // Two points on a segment have a mean distance of a third of its length.
        assert!((mean_trip(3000.0, 0.01) - 1000.0).abs() < 0.1);
        assert!((mean_trip(700.0, 1900.0) - mean_trip(1900.0, 700.0)).abs() < 1e-9);
    }

    /// Share of paused nodes, mean speed of the other nodes, and number of nodes in the middle
    /// ninth of the square.
    fn census(nodes: usize, seed: u64, at_s: u64) -> (f64, f64, f64) {
        let mut motion = Motion::new(&nowhere(nodes), &Mobility::Waypoint(TPA), seed).unwrap();
        let (mut paused, mut speeds, mut inner) = (0u32, 0.0, 0u32);
        for node in (0..nodes).map(|node| NodeId(node as u16)) {
            let place = motion.position(node, Time(at_s * 1_000_000_000));
            assert!((0.0..=1000.0).contains(&place.x) && (0.0..=1000.0).contains(&place.y));
            inner += u32::from((place.x - 500.0).abs() < 1000.0 / 6.0 && (place.y - 500.0).abs() < 1000.0 / 6.0);
            let speed = motion.speed(node);
            paused += u32::from(speed == 0.0);
            speeds += speed;
        }
        let nodes = nodes as f64;
        (f64::from(paused) / nodes, speeds / (nodes - f64::from(paused)), f64::from(inner) / nodes)
    }

    #[test]
    fn the_stationary_regime_holds_from_the_start_on() {
        // With 240,000 nodes the share of paused nodes has a relative standard error of 0.5 %, and
        // the mean speed of 0.1 %. The number of nodes in the middle, where nodes gather, is
        // compared with that after 1000 s of movement, when the initial state no longer matters.
        let mut settled = None;
        for at_s in [1000, 0, 7, 100] {
            let (mut paused, mut speed, mut inner) = (0.0, 0.0, 0.0);
            for seed in 1..=4 {
                let (p, s, i) = census(60_000, seed, at_s);
                (paused, speed, inner) = (paused + p / 4.0, speed + s / 4.0, inner + i / 4.0);
            }
            assert!((paused / 0.122_545 - 1.0).abs() < 0.02, "{paused} paused at {at_s} s");
            assert!((speed / 3.641 - 1.0).abs() < 0.02, "{speed} m/s at {at_s} s");
            let settled = *settled.get_or_insert(inner);
            assert!(settled > 0.15, "a uniform density has 0.111 there, this one {settled}");
            assert!((inner / settled - 1.0).abs() < 0.02, "{inner} in the middle at {at_s} s, {settled} in the end");
        }
    }

    #[test]
    fn a_path_does_not_depend_on_when_it_is_looked_at() {
        let all = Mobility::Waypoint(TPA);
        let mut often = Motion::new(&nowhere(3), &all, 5).unwrap();
        let mut once = Motion::new(&nowhere(3), &all, 5).unwrap();
        for ms in 0..600_000 {
            often.position(NodeId(1), Time(ms * 1_000_000));
        }
        let end = Time(600_000_000_000);
        assert_eq!(often.position(NodeId(1), end), once.position(NodeId(1), end));
        let other = Motion::new(&nowhere(3), &all, 6).unwrap().position(NodeId(1), end);
        assert_ne!(once.position(NodeId(1), end), other);
        let fixed = Mobility::Waypoint(Waypoint { seed: Some(5), ..TPA });
        assert_eq!(once.positions(end), Motion::new(&nowhere(3), &fixed, 6).unwrap().positions(end));
    }

    #[test]
    fn a_script_is_followed() {
        let at = |x, y| Position { x, y };
        let second = |s: u64| Time(s * 1_000_000_000);
        let moves = alloc::vec![
            Move { node: NodeId(1), start: second(10), end: second(20), to: at(100.0, 0.0) },
            Move { node: NodeId(1), start: second(20), end: second(30), to: at(100.0, 50.0) },
        ];
        let mut motion = Motion::new(&[at(9.0, 9.0), at(0.0, 0.0)], &Mobility::Scripted(moves), 1).unwrap();
        let expected = [(0, 0.0, 0.0), (10, 0.0, 0.0), (15, 50.0, 0.0), (20, 100.0, 0.0), (25, 100.0, 25.0)];
        for (s, x, y) in expected.into_iter().chain([(30, 100.0, 50.0), (99, 100.0, 50.0)]) {
            assert_eq!(motion.position(NodeId(1), second(s)), at(x, y), "at {s} s");
            assert_eq!(motion.position(NodeId(0), second(s)), at(9.0, 9.0));
        }
    }

    #[test]
    fn everybody_in_range_is_in_the_table_while_all_move() {
        let mut motion = Motion::new(&nowhere(200), &Mobility::Waypoint(Waypoint { width: 4000.0, ..TPA }), 3).unwrap();
        let channel = meshpace_mesh::radio::Channel::new(&meshpace_mesh::RadioConfig::default());
        let mut tables = Neighbours::moving(&channel, 200);
        // With 50 m of slack at 9 m/s, 37 s cover a fresh grid, an old one, and a refilled one.
        for now in (0..300).map(|step| Time(step * 1_300_000_000)) {
            let sender = NodeId((now.0 / 1_300_000_000 * 7 % 200) as u16);
            let (first, end) = motion.table(sender, now, 0, &mut tables);
            let found: Vec<_> = (first..end).map(|cursor| *tables.entry(cursor)).collect();
            let expected = Neighbours::new(&channel, &motion.positions(now));
            assert_eq!(found, expected.of(sender), "at {now}");
        }
    }
}
