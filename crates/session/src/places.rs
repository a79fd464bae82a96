//! Places for which unverified peers compete, shared out by network. A peer with many addresses in
//! one network does not get more places than a peer with a single address elsewhere.
//!
//! An address belongs to networks of several prefix lengths ([`crate::networks`]). When all places
//! are taken, a newcomer takes a place from the network that holds most of them, and within it from
//! the subnetwork that holds most. The newcomer's own network must hold fewer places than that
//! network even with one more. A newcomer never takes a place from a network that holds fewer
//! places than its own.

use crate::networks::{ALL, Census, Network, networks, source_of};
use meshpace_core::{Duration, Time};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// Answer to a request for a place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// A place is free.
    Free,
    /// The request is granted if the place with this number is given back first.
    InsteadOf(u64),
    /// The request is refused.
    Refused,
}

/// Places that are taken. Each has a number, which is higher than the numbers of all earlier
/// places.
#[derive(Clone, Debug)]
pub struct Places {
    most: usize,
    /// Taken places by number, with the source of each and the time at which it was taken.
    taken: BTreeMap<u64, (Network, Time)>,
    census: Census,
    /// Numbers of the places by source, the oldest first.
    by_source: BTreeSet<(Network, u64)>,
    /// Age from which a place may be taken over by a newcomer whose network holds no fewer places.
    patience: Duration,
}

impl Places {
    /// Creates a set of at most `most` places. For the time `patience`, a place is protected from
    /// newcomers whose network holds no fewer places.
    pub fn new(most: usize, patience: Duration) -> Places {
        Places { most, taken: BTreeMap::new(), census: Census::default(), by_source: BTreeSet::new(), patience }
    }

    /// Number of places that are taken.
    pub(crate) fn len(&self) -> usize {
        self.taken.len()
    }

    /// Number of places that a source has.
    pub(crate) fn count(&self, source: Network) -> usize {
        self.census.amount(source)
    }

    /// Takes place `number` for `address`.
    pub fn take(&mut self, now: Time, number: u64, address: IpAddr) {
        self.taken.insert(number, (source_of(address), now));
        self.by_source.insert((source_of(address), number));
        self.census.add(source_of(address), 1);
    }

    /// Gives back place `number`.
    pub fn give_back(&mut self, number: u64) {
        if let Some((source, _)) = self.taken.remove(&number) {
            self.by_source.remove(&(source, number));
            self.census.remove(source, 1);
        }
    }

    /// Gives back all places that were taken at `until` or before.
    pub(crate) fn give_back_older(&mut self, until: Time) {
        while let Some((number, (_, since))) = self.taken.first_key_value()
            && *since <= until
        {
            let number = *number;
            self.give_back(number);
        }
    }

    /// Decides about a request of `address` for a place.
    pub fn ask(&self, now: Time, address: IpAddr) -> Verdict {
        if self.taken.len() < self.most {
            return Verdict::Free;
        }
        let mut around = ALL;
        for own in networks(address) {
            let Some((most, heaviest)) = self.census.heaviest_in(around) else { break };
            let count = self.census.amount(own);
            if own != heaviest && count + 1 < most {
                return self
                    .oldest_in(self.census.heaviest_source(heaviest))
                    .map_or(Verdict::Refused, Verdict::InsteadOf);
            }
            if count == 0 {
                return self.late_in(now, self.census.heaviest_source(heaviest));
            }
            around = own;
        }
        self.late_in(now, around)
    }

    /// Returns the oldest place of a source if it is older than `patience`, and refuses otherwise.
    pub(crate) fn late_in(&self, now: Time, source: Network) -> Verdict {
        let is_late =
            |number: &u64| self.taken.get(number).is_some_and(|(_, since)| now.since(*since) >= self.patience);
        self.oldest_in(source).filter(is_late).map_or(Verdict::Refused, Verdict::InsteadOf)
    }

    fn oldest_in(&self, source: Network) -> Option<u64> {
        self.by_source.range((source, 0)..=(source, u64::MAX)).next().map(|(_, number)| *number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(1);

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    /// Lets these addresses request places in turn, a million times a second, until there were
    /// `times` requests.
    fn flood(places: &mut Places, now: &mut Time, next: &mut u64, addresses: &[IpAddr], times: usize) {
        for address in addresses.iter().cycle().take(times) {
            *now += Duration::from_micros(1);
            seat(places, *now, next, *address);
        }
    }

    /// Takes a place for the address if it is granted one, and returns the number of that place.
    fn seat(places: &mut Places, now: Time, next: &mut u64, address: IpAddr) -> Option<u64> {
        match places.ask(now, address) {
            Verdict::Free => {}
            Verdict::InsteadOf(number) => places.give_back(number),
            Verdict::Refused => return None,
        }
        *next += 1;
        places.take(now, *next, address);
        Some(*next)
    }

    /// True if a newcomer with the address gets a place at once and keeps it for three seconds
    /// while the flood goes on.
    fn is_let_in(flooding: &[IpAddr], newcomer: &str) -> bool {
        let (mut places, mut now, mut next) = (Places::new(1024, PATIENCE), Time(0), 0);
        flood(&mut places, &mut now, &mut next, flooding, 20_000);
        assert_eq!(places.len(), 1024);
        let Some(number) = seat(&mut places, now, &mut next, address(newcomer)) else { return false };
        for _ in 0..300 {
            now += Duration::from_millis(10);
            flood(&mut places, &mut now, &mut next, flooding, 200);
        }
        places.taken.contains_key(&number)
    }

    #[test]
    fn a_few_addresses_keep_nobody_out() {
        let hosts = |count: u8| (1..=count).map(|host| IpAddr::from([10, 0, 0, host])).collect::<Vec<_>>();
        for flooding in [hosts(1), hosts(5), hosts(8)] {
            for newcomer in ["10.0.0.200", "10.0.7.1", "10.9.0.1", "192.0.2.1", "2001:db8::1"] {
                assert!(is_let_in(&flooding, newcomer), "{newcomer} beside {flooding:?}");
            }
            // Who has the same address waits for its turn.
            assert!(!is_let_in(&flooding, "10.0.0.1"));
        }
    }

    #[test]
    fn a_network_keeps_nobody_out_whatever_its_length() {
        // A /58 and a /48: an address of each network of 64 bits.
        for count in [64, 65_536] {
            let first = u128::from("2001:db8:7::1".parse::<std::net::Ipv6Addr>().unwrap());
            let flooding: Vec<IpAddr> =
                (0..count).map(|net| IpAddr::from((first + (net << 64)).to_be_bytes())).collect();
            for newcomer in ["2001:db8:8::1", "2001:db9::1", "fd00::1", "10.0.0.1"] {
                assert!(is_let_in(&flooding, newcomer), "{newcomer} beside {count} networks");
            }
            let is_neighbour = count == 64;
            assert_eq!(is_let_in(&flooding, "2001:db8:7:f0::1"), is_neighbour, "in the same /48, not in the same /56");
        }
    }

    #[test]
    fn who_has_less_gives_nothing_to_who_has_more() {
        let mut places = Places::new(4, PATIENCE);
        for (number, host) in ["10.0.0.1", "10.0.0.1", "10.0.0.1", "192.0.2.1"].into_iter().enumerate() {
            places.take(Time(number as u64), number as u64, address(host));
        }
        assert_eq!(places.ask(Time(9), address("10.0.0.1")), Verdict::Refused);
        assert_eq!(places.ask(Time(9), address("198.51.100.1")), Verdict::InsteadOf(0), "of the heaviest, the oldest");
        assert_eq!(places.ask(Time(9), address("10.0.0.2")), Verdict::InsteadOf(0), "also of its own network");
        let late = Time(9 + PATIENCE.0);
        assert_eq!(places.ask(late, address("10.0.0.1")), Verdict::InsteadOf(0), "its own, after a while");
        places.give_back(0);
        assert_eq!(places.ask(Time(9), address("10.0.0.1")), Verdict::Free);
        places.take(Time(5), 5, address("198.51.100.1"));
        places.give_back(1);
        places.take(Time(6), 6, address("203.0.113.1"));
        // One each: nobody has too much, and everybody has his time.
        assert_eq!(places.ask(Time(9), address("9.9.9.9")), Verdict::Refused);
        assert!(matches!(places.ask(late, address("9.9.9.9")), Verdict::InsteadOf(_)));
        places.give_back_older(Time(5));
        assert_eq!(places.len(), 1);
        places.give_back(6);
        assert!(places.census.is_empty() && places.by_source.is_empty());
    }
}
