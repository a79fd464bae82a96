//! What each source of connections has in use, so that one of them cannot take the places of all others.
//!
//! A source is an IPv4 address or an IPv6 network of 64 bits: whoever has one address of such a network has them all.

use super::settings::Limits;
use meshpace_core::{Duration, Time};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Sources remembered although they have nothing in use, until the next sweep.
const KEPT: usize = 4096;

#[derive(Clone, Copy, Debug)]
struct Source {
    half_open: usize,
    connections: usize,
    /// Handshakes it may still begin, and since when it has been earning more.
    handshakes: u32,
    since: Time,
}

/// The sources of one port.
#[derive(Clone, Debug)]
pub(crate) struct Sources {
    limits: Limits,
    by_address: BTreeMap<IpAddr, Source>,
    half_open: usize,
    connections: usize,
    swept: Time,
}

/// The source that an address belongs to.
pub(crate) fn source_of(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(address) => IpAddr::from((u128::from(address) >> 64 << 64).to_be_bytes()),
    }
}

impl Sources {
    pub(crate) fn new(limits: Limits) -> Sources {
        Sources { limits, by_address: BTreeMap::new(), half_open: 0, connections: 0, swept: Time::ZERO }
    }

    /// Whether a handshake with `address`, which has shown a cookie, may begin; it then counts.
    pub(crate) fn begin(&mut self, now: Time, address: IpAddr) -> bool {
        let limits = self.limits;
        if self.half_open >= limits.half_open || self.connections >= limits.connections {
            return false;
        }
        self.sweep(now);
        let fresh = Source { half_open: 0, connections: 0, handshakes: limits.handshakes_per_second, since: now };
        let source = self.by_address.entry(source_of(address)).or_insert(fresh);
        source.earn(now, limits);
        let may = source.handshakes > 0
            && source.half_open < limits.half_open_per_source
            && source.connections < limits.connections_per_source;
        if may {
            source.handshakes -= 1;
            source.half_open += 1;
            self.half_open += 1;
        }
        may
    }

    /// A handshake is over: with a connection or without.
    pub(crate) fn finish(&mut self, address: IpAddr, connected: bool) {
        self.half_open = self.half_open.saturating_sub(1);
        self.connections += usize::from(connected);
        if let Some(source) = self.by_address.get_mut(&source_of(address)) {
            source.half_open = source.half_open.saturating_sub(1);
            source.connections += usize::from(connected);
        }
    }

    /// Whether a handshake that is finished may become a connection.
    pub(crate) fn may_connect(&self, address: IpAddr) -> bool {
        let own = self.by_address.get(&source_of(address)).map_or(0, |source| source.connections);
        self.connections < self.limits.connections && own < self.limits.connections_per_source
    }

    /// A connection is forgotten.
    pub(crate) fn close(&mut self, address: IpAddr) {
        self.connections = self.connections.saturating_sub(1);
        if let Some(source) = self.by_address.get_mut(&source_of(address)) {
            source.connections = source.connections.saturating_sub(1);
        }
    }

    /// Unfinished handshakes and connections, by what is counted of each source.
    #[cfg(test)]
    pub(crate) fn in_use(&self) -> (usize, usize) {
        let sum = |of: fn(&Source) -> usize| self.by_address.values().map(of).sum();
        let each = (sum(|source| source.half_open), sum(|source| source.connections));
        assert_eq!(each, (self.half_open, self.connections), "counted twice, and differently");
        each
    }

    fn sweep(&mut self, now: Time) {
        if self.by_address.len() >= KEPT && now.since(self.swept) >= Duration::from_secs(1) {
            self.swept = now;
            self.by_address.retain(|_, source| {
                let in_use = source.half_open > 0 || source.connections > 0;
                in_use || now.since(source.since) < Duration::from_secs(1)
            });
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
        }
    }

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn one_source_leaves_room_for_others() {
        let mut sources = Sources::new(limits());
        let [greedy, honest] = ["10.0.0.1", "10.0.0.2"].map(address);
        assert_eq!((0..9).filter(|_| sources.begin(Time(0), greedy)).count(), 4);
        assert!(sources.begin(Time(0), honest));
        for _ in 0..3 {
            assert!(sources.may_connect(greedy));
            sources.finish(greedy, true);
        }
        assert!(!sources.may_connect(greedy) && sources.may_connect(honest));
        sources.finish(greedy, false);
        assert!(!sources.begin(Time(0), greedy), "it has three connections");
        sources.close(greedy);
        assert!(sources.begin(Time(0), greedy));
        sources.finish(greedy, false);
        assert!(!sources.begin(Time(0), greedy), "five handshakes in this second");
        assert!(sources.begin(Time(200_000_000), greedy), "five per second");
        assert!(!sources.begin(Time(200_000_000), greedy));
    }

    #[test]
    fn a_network_of_ipv6_is_one_source() {
        let mut sources = Sources::new(limits());
        for host in 0..4 {
            assert!(sources.begin(Time(0), address(&format!("2001:db8::{host}"))));
        }
        assert!(!sources.begin(Time(0), address("2001:db8::9")));
        assert!(sources.begin(Time(0), address("2001:db8:0:1::9")));
    }

    #[test]
    fn sources_that_use_nothing_are_forgotten() {
        let mut sources = Sources::new(Limits { half_open: 1 << 20, ..limits() });
        for number in 0..20_000u32 {
            let source = IpAddr::from(number.to_be_bytes());
            assert!(sources.begin(Time(u64::from(number) * 1_000_000), source));
            sources.finish(source, false);
        }
        assert!(sources.by_address.len() < 6000, "{}", sources.by_address.len());
    }
}
