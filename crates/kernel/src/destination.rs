//! Destinations as address prefixes. The longest prefix that matches an address is used.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// Number of bits before an IPv4 address that is mapped into IPv6 (RFC 4291, section 2.5.5.2).
const MAPPED: u32 = 96;

/// Address prefix. IPv4 prefixes lie in `::ffff:0:0/96`, as an IPv6 socket sees them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Destination {
    bits: u32,
    address: Ipv6Addr,
}

impl Destination {
    /// Prefix that matches every address.
    pub const ANY: Destination = Destination { bits: 0, address: Ipv6Addr::UNSPECIFIED };

    /// The addresses whose first `bits` bits are those of `address`. `None` if an address has fewer
    /// bits.
    pub fn new(address: IpAddr, bits: u32) -> Option<Destination> {
        let (address, bits) = match address {
            IpAddr::V4(v4) if bits <= 32 => (v4.to_ipv6_mapped(), bits + MAPPED),
            IpAddr::V6(v6) if bits <= 128 => (v6, bits),
            _ => return None,
        };
        let mask = u128::MAX.checked_shl(128 - bits).unwrap_or(0);
        Some(Destination { bits, address: Ipv6Addr::from_bits(address.to_bits() & mask) })
    }

    /// Prefix that matches one address only.
    pub fn host(address: IpAddr) -> Destination {
        let bits = if address.is_ipv4() { 32 } else { 128 };
        Destination::new(address, bits).expect("an address has its own bits")
    }

    /// Encodes the prefix as `struct destination` of the eBPF programs.
    pub fn encode(&self) -> [u8; 20] {
        let mut bytes = [0; 20];
        bytes[..4].copy_from_slice(&self.bits.to_ne_bytes());
        bytes[4..].copy_from_slice(&self.address.octets());
        bytes
    }

    /// Reverse of [`Destination::encode`]. `None` if the bytes are not a prefix.
    pub fn decode(bytes: &[u8]) -> Option<Destination> {
        let bits = u32::from_ne_bytes(*bytes.first_chunk()?);
        let address: [u8; 16] = *bytes.get(4..)?.first_chunk()?;
        (bits <= 128).then(|| Destination { bits, address: address.into() })
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.address.to_ipv4_mapped() {
            _ if self.bits == 0 => f.write_str("default"),
            Some(v4) if self.bits == MAPPED + 32 => v4.fmt(f),
            Some(v4) if self.bits >= MAPPED => write!(f, "{v4}/{}", self.bits - MAPPED),
            _ if self.bits == 128 => self.address.fmt(f),
            _ => write!(f, "{}/{}", self.address, self.bits),
        }
    }
}

impl FromStr for Destination {
    type Err = String;

    fn from_str(text: &str) -> Result<Destination, String> {
        if text == "default" {
            return Ok(Destination::ANY);
        }
        let wrong = || format!("`{text}` is no destination: an address, a prefix such as 10.0.0.0/8, or `default`");
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits.parse::<u32>().map_err(|_| wrong())?)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        match bits {
            Some(bits) => Destination::new(address, bits).ok_or_else(wrong),
            None => Ok(Destination::host(address)),
        }
    }
}

impl From<Ipv4Addr> for Destination {
    fn from(address: Ipv4Addr) -> Destination {
        Destination::host(address.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_read_and_written() {
        for text in ["10.0.0.0/8", "10.0.0.7", "0.0.0.0/0", "fd00::/64", "fd00::1", "default"] {
            let destination: Destination = text.parse().unwrap();
            assert_eq!(destination.to_string(), text);
            assert_eq!(Destination::decode(&destination.encode()), Some(destination));
        }
        assert_eq!("10.1.2.3/8".parse::<Destination>().unwrap().to_string(), "10.0.0.0/8");
        for text in ["", "10.0.0", "10.0.0.0/33", "fd00::/129", "10.0.0.0/x", "10.0.0.0/-1", "host"] {
            assert!(text.parse::<Destination>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_key_holds_what_a_lookup_compares() {
        let key = "10.0.0.0/8".parse::<Destination>().unwrap().encode();
        assert_eq!(u32::from_ne_bytes(*key.first_chunk().unwrap()), 104);
        assert_eq!(&key[4..], [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 0]);
    }
}
