//! Limits on the connections and handshakes of each source, so that neither one source nor a
//! network with many can take the places of all others.
//!
//! A source is an IPv4 address or an IPv6 network of 64 bits, because the holder of one address of
//! such a network holds them all. Unfinished handshakes, and handshakes begun in the last second,
//! are shared out among networks of several prefix lengths (`places`). The last quarter of the
//! connections is shared out too. From then on a source gets another connection only if it has no
//! more than are left, and its wider networks have at most 31 times as many. This sharing is off if
//! one source may have all connections.

use super::places::{Places, Verdict};
use super::settings::Limits;
use crate::networks::{Census, Network, networks, source_of};
use meshpace_core::{Duration, Time};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Number of remembered sources from which on a sweep removes idle ones, at most once a second.
const KEPT: usize = 4096;

/// Age at which an unfinished handshake loses its protection against newcomers that hold no fewer
/// places. Its cookie was valid, but a peer that does not continue must not keep others out.
const PATIENCE: Duration = Duration::from_secs(1);

/// Ratio of the limit on handshakes per second of all sources to that of one source. The limit
/// leaves processor time for the open connections.
const ALL_OVER_ONE: usize = 4;

/// Most connections of a wider network for each connection that is left.
const NETWORK_OVER_LEFT: usize = 31;

/// Token bucket for the handshakes that a source may still begin.
#[derive(Clone, Copy, Debug)]
struct Source {
    /// Number of handshakes that the source may begin now.
    handshakes: u32,
    /// Time up to which the source has been credited with handshakes.
    since: Time,
}

/// Sources of one port.
#[derive(Clone, Debug)]
pub(crate) struct Sources {
    limits: Limits,
    by_address: BTreeMap<Network, Source>,
    half_open: Places,
    /// Handshakes that began in the last second.
    recent: Places,
    connections: usize,
    connected: Census,
    swept: Time,
}

/// Permission to begin a handshake.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Granted {
    /// Unfinished handshake that gives its place to the new one. `None` if a place was free.
    pub(crate) instead_of: Option<u64>,
}

impl Sources {
    pub(crate) fn new(limits: Limits) -> Sources {
        let most = ALL_OVER_ONE.saturating_mul(limits.handshakes_per_second as usize);
        Sources {
            limits,
            by_address: BTreeMap::new(),
            half_open: Places::new(limits.half_open, PATIENCE),
            recent: Places::new(most, Duration::MAX),
            connections: 0,
            connected: Census::default(),
            swept: Time::ZERO,
        }
    }

    /// Begins handshake `number` with `address`, which has shown a valid cookie, and counts it.
    /// `None` if the handshake may not begin.
    pub(crate) fn begin(&mut self, now: Time, number: u64, address: IpAddr) -> Option<Granted> {
        let limits = self.limits;
        if !self.may_connect(address) {
            return None;
        }
        let source = source_of(address);
        let place = if self.half_open.count(source) >= limits.half_open_per_source {
            self.half_open.late_in(now, source)
        } else {
            self.half_open.ask(now, address)
        };
        let instead_of = match place {
            Verdict::Free => None,
            Verdict::InsteadOf(number) => Some(number),
            Verdict::Refused => return None,
        };
        if self.left(now, source).handshakes == 0 {
            return None;
        }
        self.recent.give_back_older(Time(now.0.saturating_sub(Duration::from_secs(1).0)));
        match self.recent.ask(now, address) {
            Verdict::Free => {}
            Verdict::InsteadOf(number) => self.recent.give_back(number),
            Verdict::Refused => return None,
        }
        self.left(now, source).handshakes -= 1;
        self.recent.take(now, number, address);
        self.half_open.take(now, number, address);
        Some(Granted { instead_of })
    }

    /// Ends handshake `number`. It has become a connection if `connected`.
    pub(crate) fn finish(&mut self, number: u64, address: IpAddr, connected: bool) {
        self.half_open.give_back(number);
        if connected {
            self.connections += 1;
            self.connected.add(source_of(address), 1);
        }
    }

    /// True if a finished handshake with `address` may become a connection.
    pub(crate) fn may_connect(&self, address: IpAddr) -> bool {
        let Limits { connections, connections_per_source, .. } = self.limits;
        let left = connections.saturating_sub(self.connections);
        let [wider @ .., source] = networks(address);
        let own = self.connected.amount(source);
        if left == 0 || own >= connections_per_source {
            return false;
        }
        // If one source may have all connections, there is nobody else to share them with, or the
        // other sources are trusted.
        let is_shared_out = connections_per_source < connections && left < connections / 4;
        let most = NETWORK_OVER_LEFT.saturating_mul(left);
        !is_shared_out || (own <= left && wider.iter().all(|network| self.connected.amount(*network) <= most))
    }

    /// Moves a connection from one address to another, where it counts like a new connection.
    /// `from` is `None` for a connection that this end has opened and that has not moved yet,
    /// because it is not counted. Returns false, and changes nothing, if the source of `to` has as
    /// many connections as it may have, or has begun as many handshakes in this second as it may
    /// begin.
    pub(crate) fn relocate(&mut self, now: Time, from: Option<IpAddr>, to: IpAddr) -> bool {
        let source = source_of(to);
        if from.map(source_of) == Some(source) {
            return true;
        }
        from.into_iter().for_each(|address| self.close(address));
        let is_granted = self.may_connect(to) && self.left(now, source).handshakes > 0;
        if is_granted {
            self.left(now, source).handshakes -= 1;
        }
        if let Some(address) = if is_granted { Some(to) } else { from } {
            self.connections += 1;
            self.connected.add(source_of(address), 1);
        }
        is_granted
    }

    /// Returns the token bucket of a source, credited up to `now`.
    fn left(&mut self, now: Time, source: Network) -> &mut Source {
        self.sweep(now);
        let limits = self.limits;
        let fresh = Source { handshakes: limits.handshakes_per_second, since: now };
        let own = self.by_address.entry(source).or_insert(fresh);
        own.earn(now, limits);
        own
    }

    /// Removes a connection from the counts of its source.
    pub(crate) fn close(&mut self, address: IpAddr) {
        self.connections = self.connections.saturating_sub(1);
        self.connected.remove(source_of(address), 1);
    }

    /// Numbers of unfinished handshakes and of connections.
    pub(crate) fn in_use(&self) -> (usize, usize) {
        (self.half_open.len(), self.connections)
    }

    /// Number of connections of the source of this address.
    pub(crate) fn connections_of(&self, address: IpAddr) -> usize {
        self.connected.amount(source_of(address))
    }

    fn sweep(&mut self, now: Time) {
        if self.by_address.len() >= KEPT && now.since(self.swept) >= Duration::from_secs(1) {
            self.swept = now;
            // A source that has begun no handshake for a second has a full bucket, like an unknown
            // one.
            self.by_address.retain(|_, source| now.since(source.since) < Duration::from_secs(1));
        }
    }
}

impl Source {
    fn earn(&mut self, now: Time, limits: Limits) {
        let earned = now.since(self.since).0.saturating_mul(u64::from(limits.handshakes_per_second)) / 1_000_000_000;
        if earned > 0 {
            self.since = now;
            let earned = u32::try_from(earned).unwrap_or(u32::MAX);
            self.handshakes = self.handshakes.saturating_add(earned).min(limits.handshakes_per_second);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits() -> Limits {
        Limits {
            connections: 5,
            connections_per_source: 3,
            half_open: 6,
            half_open_per_source: 4,
            handshakes_per_second: 5,
            ..Limits::default()
        }
    }

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    /// Sources, and the number of the last handshake.
    struct Scene(Sources, u64);

    impl Scene {
        fn new(limits: Limits) -> Scene {
            Scene(Sources::new(limits), 0)
        }

        /// Begins a handshake, and returns its number if it may begin.
        fn begin(&mut self, now: Time, address: IpAddr) -> Option<u64> {
            self.1 += 1;
            let granted = self.0.begin(now, self.1, address)?;
            granted.instead_of.into_iter().for_each(|number| self.0.finish(number, address, false));
            Some(self.1)
        }
    }

    #[test]
    fn who_has_moved_counts_where_it_is() {
        let mut scene = Scene::new(limits());
        let [home, away] = ["10.0.0.1", "10.0.0.2"].map(address);
        for _ in 0..3 {
            let number = scene.begin(Time(0), home).unwrap();
            scene.0.finish(number, home, true);
        }
        assert!(!scene.0.may_connect(home));
        assert!(scene.0.relocate(Time(0), Some(home), away));
        assert!(scene.0.may_connect(home));
        assert_eq!([home, away].map(|at| scene.0.connected.amount(source_of(at))), [2, 1]);
        // Once all are closed nothing is left of them.
        [home, away, home].into_iter().for_each(|at| scene.0.close(at));
        assert_eq!([home, away].map(|at| scene.0.connected.amount(source_of(at))), [0, 0]);
        assert_eq!(scene.0.in_use(), (0, 0));
    }

    #[test]
    fn a_move_counts_like_a_new_connection() {
        let [home, away] = ["10.0.0.1", "10.0.0.2"].map(address);
        let mut sources = Sources::new(limits());
        for number in 0..3 {
            assert!(sources.begin(Time(0), number, home).is_some());
            sources.finish(number, home, true);
        }
        assert!(sources.relocate(Time(0), Some(home), home), "to another port of the same address");
        // The one source has three connections and may have no more, the other begins five in this second at most.
        assert!(!sources.relocate(Time(0), None, home));
        assert_eq!(sources.in_use(), (0, 3));
        let mut sources = Sources::new(Limits { connections: 100, connections_per_source: 50, ..limits() });
        for number in 0..3 {
            assert!(sources.begin(Time(0), number, home).is_some());
            sources.finish(number, home, true);
        }
        let moved = (0..9).filter(|_| sources.relocate(Time(0), None, away)).count();
        assert_eq!(
            (moved, sources.in_use()),
            (5, (0, 8)),
            "connections that this end has opened count once they have moved"
        );
        assert!(!sources.relocate(Time(0), Some(home), away));
        assert_eq!([home, away].map(|at| sources.connected.amount(source_of(at))), [3, 5], "it stays where it was");
        assert!(sources.relocate(Time(1_000_000_000), Some(home), away));
        assert_eq!([home, away].map(|at| sources.connected.amount(source_of(at))), [2, 6]);
    }

    #[test]
    fn one_source_leaves_room_for_others() {
        let mut scene = Scene::new(limits());
        let [greedy, honest] = ["10.0.0.1", "10.0.0.2"].map(address);
        let begun: Vec<u64> = (0..9).filter_map(|_| scene.begin(Time(0), greedy)).collect();
        assert_eq!(begun.len(), 4);
        assert!(scene.begin(Time(0), honest).is_some());
        for number in &begun[..3] {
            assert!(scene.0.may_connect(greedy));
            scene.0.finish(*number, greedy, true);
        }
        assert!(!scene.0.may_connect(greedy) && scene.0.may_connect(honest));
        scene.0.finish(begun[3], greedy, false);
        assert_eq!(scene.begin(Time(0), greedy), None, "it has three connections");
        scene.0.close(greedy);
        let last = scene.begin(Time(0), greedy).unwrap();
        scene.0.finish(last, greedy, false);
        assert_eq!(scene.begin(Time(0), greedy), None, "five handshakes in this second");
        assert!(scene.begin(Time(200_000_000), greedy).is_some(), "five per second");
        assert_eq!(scene.begin(Time(200_000_000), greedy), None);
    }

    #[test]
    fn a_network_of_ipv6_is_one_source() {
        let mut scene = Scene::new(limits());
        for host in 0..4 {
            assert!(scene.begin(Time(0), address(&format!("2001:db8::{host}"))).is_some());
        }
        assert_eq!(scene.begin(Time(0), address("2001:db8::9")), None);
        assert!(scene.begin(Time(0), address("2001:db8:0:1::9")).is_some());
    }

    #[test]
    fn sources_that_use_nothing_are_forgotten() {
        let limits = Limits { half_open: 1 << 20, handshakes_per_second: 500, ..limits() };
        let mut scene = Scene::new(limits);
        for number in 0..20_000u32 {
            let source = IpAddr::from(number.to_be_bytes());
            let begun = scene.begin(Time(u64::from(number) * 1_000_000), source).unwrap();
            scene.0.finish(begun, source, false);
        }
        assert!(scene.0.by_address.len() < 6000, "{}", scene.0.by_address.len());
        assert!(scene.0.recent.len() <= 1001, "{}", scene.0.recent.len());
    }

    #[test]
    fn the_processor_is_shared_out_too() {
        // A /58: 64 sources, each with as many handshakes as it may begin in a second.
        let mut scene = Scene::new(Limits::default());
        let first = u128::from("2001:db8::1".parse::<std::net::Ipv6Addr>().unwrap());
        let mut begun = 0;
        for step in 0..200_000u64 {
            let source = IpAddr::from((first + (u128::from(step % 64) << 64)).to_be_bytes());
            let now = Time(step * 20_000);
            if let Some(number) = scene.begin(now, source) {
                scene.0.finish(number, source, false);
                begun += 1;
            }
            if step % 10_000 == 9_999 {
                let newcomer = IpAddr::from([10, 0, 0, (step / 10_000) as u8]);
                let number = scene.begin(now, newcomer).expect("it has begun none");
                scene.0.finish(number, newcomer, false);
            }
        }
        // In four seconds, and as many as may begin at once.
        assert!((4000..=6 * 1024).contains(&begun), "{begun}");
    }

    #[test]
    fn a_few_sources_leave_connections_to_others() {
        let mut scene =
            Scene::new(Limits { half_open_per_source: 9, handshakes_per_second: 1 << 20, ..Limits::default() });
        let mut connect = |address: IpAddr| {
            let begun = scene.begin(Time(0), address);
            begun.into_iter().for_each(|number| scene.0.finish(number, address, true));
            begun.is_some()
        };
        let taken: usize =
            (0..8).map(|host| (0..5000).filter(|_| connect(IpAddr::from([10, 0, 0, host]))).count()).sum();
        assert!((12_288..16_384).contains(&taken), "{taken}");
        for host in 0..20 {
            assert!(connect(IpAddr::from([192, 0, 2, host])), "{host} of another network, after {taken}");
        }
        // Who is alone, or among friends, has them all.
        let mut alone = Scene::new(Limits { connections: 10, connections_per_source: 10, half_open: 20, ..limits() });
        alone.0.limits.handshakes_per_second = 100;
        let granted = (0..20).filter(|step| {
            let source = IpAddr::from([10, 0, 0, 1]);
            let begun = alone.begin(Time(step * 1_000_000_000), source);
            begun.into_iter().for_each(|number| alone.0.finish(number, source, true));
            begun.is_some()
        });
        assert_eq!(granted.count(), 10);
    }
}
