//! Networks to which addresses belong, and a count per network.
//!
//! An address belongs to networks of several prefix lengths. For an IPv4 address these are 8, 16,
//! 24 and 32 bits, and for an IPv6 address 32, 48, 56 and 64 bits. With IPv6 a host's own network
//! has 64 bits, a customer's 56 or 48, and a provider's 32 (RFC 6177). A peer with many addresses
//! of a network is thus weighed by the count of the network.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// Prefix lengths of IPv4 networks, bits.
const V4: [u8; LEVELS] = [8, 16, 24, 32];
/// Prefix lengths of IPv6 networks, bits.
const V6: [u8; LEVELS] = [32, 48, 56, 64];
/// Number of prefix lengths of an address.
const LEVELS: usize = 4;

/// Flag that is added to the prefix length of an IPv4 network.
const IS_V4: u8 = 128;

/// A network: a prefix and its length.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Network {
    length: u8,
    /// The bits of the prefix. They are stored as bytes to save memory, since a listener stores
    /// thousands of networks.
    bits: [u8; 8],
}

/// Network of all addresses.
pub const ALL: Network = Network { length: 0, bits: [0; 8] };
/// Value that sorts after all networks.
const LAST: Network = Network { length: u8::MAX, bits: [u8::MAX; 8] };

impl Network {
    fn of(bits: u64, length: u8) -> Network {
        let unused = u64::MAX.checked_shr(u32::from(length & !IS_V4)).unwrap_or(0);
        Network { length, bits: (bits & !unused).to_be_bytes() }
    }

    /// Returns the networks that contain a source, the widest first; the last is the source itself.
    pub fn around(self) -> [Network; LEVELS] {
        let lengths = if self.length & IS_V4 == 0 { V6 } else { V4.map(|length| IS_V4 | length) };
        lengths.map(|length| Network::of(u64::from_be_bytes(self.bits), length))
    }
}

/// Returns the networks of an address, the widest first.
pub fn networks(address: IpAddr) -> [Network; LEVELS] {
    source_of(address).around()
}

/// Source to which an address belongs: an IPv4 address, or an IPv6 network of 64 bits.
pub fn source_of(address: IpAddr) -> Network {
    match address.to_canonical() {
        IpAddr::V4(address) => Network::of(u64::from(u32::from(address)) << 32, IS_V4 | 32),
        IpAddr::V6(address) => Network::of((u128::from(address) >> 64) as u64, 64),
    }
}

/// Count of each network, for example of places, connections or bytes.
#[derive(Clone, Debug, Default)]
pub struct Census {
    amounts: BTreeMap<Network, usize>,
    /// The same counts, sorted by the next wider network and then by count.
    weights: BTreeSet<(Network, usize, Network)>,
}

impl Census {
    /// Count of a network.
    pub fn amount(&self, network: Network) -> usize {
        self.amounts.get(&network).copied().unwrap_or(0)
    }

    /// True if all counts are zero.
    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.amounts.is_empty() && self.weights.is_empty()
    }

    /// Adds `amount` to the counts of a source and of the networks that contain it.
    pub fn add(&mut self, source: Network, amount: usize) {
        self.change(source, |before| before.saturating_add(amount));
    }

    /// Subtracts `amount` from the counts of a source and of the networks that contain it.
    pub fn remove(&mut self, source: Network, amount: usize) {
        self.change(source, |before| before.saturating_sub(amount));
    }

    fn change(&mut self, source: Network, by: impl Fn(usize) -> usize) {
        let mut around = ALL;
        for network in source.around() {
            let before = self.amount(network);
            let after = by(before);
            self.weights.remove(&(around, before, network));
            if after == 0 {
                self.amounts.remove(&network);
            } else {
                self.amounts.insert(network, after);
                self.weights.insert((around, after, network));
            }
            around = network;
        }
    }

    /// Returns the heaviest network that is directly within `around`, and its count.
    pub fn heaviest_in(&self, around: Network) -> Option<(usize, Network)> {
        let mut within = self.weights.range((around, 0, ALL)..=(around, usize::MAX, LAST));
        within.next_back().map(|(_, amount, network)| (*amount, *network))
    }

    /// Returns the heaviest source: the one that is found by descending from `around` to the
    /// heaviest network at each length.
    pub(crate) fn heaviest_source(&self, around: Network) -> Network {
        let mut network = around;
        while let Some((_, heaviest)) = self.heaviest_in(network) {
            network = heaviest;
        }
        network
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn an_ipv4_address_is_the_same_where_it_is_written_as_one_of_ipv6() {
        assert_eq!(source_of(address("::ffff:10.0.0.1")), source_of(address("10.0.0.1")));
        assert_ne!(source_of(address("::ffff:10.0.0.2")), source_of(address("10.0.0.1")));
        assert_eq!(source_of(address("2001:db8::1")), source_of(address("2001:db8::2")));
        assert_ne!(source_of(address("2001:db8:0:1::1")), source_of(address("2001:db8::1")));
    }
}
