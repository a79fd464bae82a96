//! Addresses of hosts as people write them: by name, by number, or by number and zone.
//!
//! A link-local address of IPv6 exists on every link, so it needs the zone (RFC 4007, section 11): the name or the
//! number of a network device, as in `fe80::1%eth0`. The standard library reads numbers of devices alone.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV6, ToSocketAddrs};
use std::str::FromStr;

/// An IP address, with its zone if one was written. The zone is looked up when a socket address is made of it, so that
/// a device may appear later.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Address {
    ip: IpAddr,
    zone: Option<String>,
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Address, String> {
        let wrong = || "expected an IP address, as 10.0.0.1, ::, or fe80::1%eth0".to_owned();
        let bare = match text.strip_prefix('[') {
            Some(rest) => rest.strip_suffix(']').ok_or_else(wrong)?,
            None => text,
        };
        let (ip, zone) = bare.split_once('%').map_or((bare, None), |(ip, zone)| (ip, Some(zone)));
        let written: IpAddr = ip.parse().map_err(|_| wrong())?;
        let ip = written.to_canonical();
        let is_bad = |zone: &str| zone.is_empty() || zone.contains(['%', '[', ']', ':', '/']);
        if (bare.len() < text.len() && written.is_ipv4()) || zone.is_some_and(|zone| ip.is_ipv4() || is_bad(zone)) {
            return Err(wrong());
        }
        Ok(Address { ip, zone: zone.map(str::to_owned) })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.zone {
            Some(zone) => write!(f, "{}%{zone}", self.ip),
            None => self.ip.fmt(f),
        }
    }
}

impl Address {
    /// Socket address of this address and a port.
    ///
    /// # Errors
    ///
    /// The zone is no network device of this host.
    pub fn at(&self, port: u16) -> io::Result<SocketAddr> {
        match (self.ip, &self.zone) {
            (IpAddr::V6(ip), Some(zone)) => Ok(SocketAddrV6::new(ip, port, 0, index(ip, zone)?).into()),
            (ip, _) => Ok(SocketAddr::new(ip, port)),
        }
    }
}

/// Number of the network device that the zone of an address names.
fn index(ip: Ipv6Addr, zone: &str) -> io::Result<u32> {
    if let Ok(number) = zone.parse() {
        return Ok(number);
    }
    nix::net::if_::if_nametoindex(zone).map_err(|error| {
        let kind = io::Error::from(error).kind();
        io::Error::new(kind, format!("{ip}%{zone}: no network device here is called {zone}"))
    })
}

/// Addresses of a host, by name or number, in the order in which the resolver gives them (RFC 6724).
///
/// # Errors
///
/// The name has no address, or the zone is no network device.
pub fn host(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    if let Ok(address) = host.parse::<Address>() {
        return address.at(port).map(|address| vec![address]);
    }
    let mut found: Vec<SocketAddr> = Vec::new();
    for address in (host, port).to_socket_addrs()? {
        if !found.contains(&address) {
            found.push(address);
        }
    }
    match found.is_empty() {
        true => Err(io::Error::new(io::ErrorKind::NotFound, "no address")),
        false => Ok(found),
    }
}

/// The same for `HOST:PORT`; addresses of IPv6 stand in brackets.
///
/// # Errors
///
/// As [`host`]; the text has no port.
pub fn place(text: &str) -> io::Result<Vec<SocketAddr>> {
    let expected = || io::Error::new(io::ErrorKind::InvalidInput, "expected HOST:PORT");
    let (name, port) = text.rsplit_once(':').ok_or_else(expected)?;
    host(name, port.parse().map_err(|_| expected())?)
}

/// Reads `ADDRESS:PORT`, with the zone if there is one, and no names of hosts.
///
/// # Errors
///
/// What was expected, or that the zone is no network device.
pub fn socket_address(text: &str) -> Result<SocketAddr, String> {
    let expected = || "expected ADDRESS:PORT".to_owned();
    let (address, port) = text.rsplit_once(':').ok_or_else(expected)?;
    let port = port.parse().map_err(|_| expected())?;
    address.parse::<Address>()?.at(port).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_with_and_without_zones() {
        let read = |text: &str| text.parse::<Address>().map(|address| (address.ip.to_string(), address.zone));
        for (text, ip, zone) in [
            ("10.0.0.1", "10.0.0.1", None),
            ("::", "::", None),
            ("[::1]", "::1", None),
            ("::ffff:10.0.0.1", "10.0.0.1", None),
            ("fe80::1%eth0", "fe80::1", Some("eth0")),
            ("[fe80::1%br-lan.7]", "fe80::1", Some("br-lan.7")),
            ("ff02::5%3", "ff02::5", Some("3")),
        ] {
            assert_eq!(read(text), Ok((ip.to_owned(), zone.map(str::to_owned))), "{text}");
        }
        assert_eq!("[fe80::1%eth0]".parse::<Address>().unwrap().to_string(), "fe80::1%eth0");
        let wrong = ["", "%eth0", "fe80::1%", "[fe80::1%eth0", "[fe80::1]%eth0", "10.0.0.1%eth0", "[10.0.0.1]", "a%lo"];
        for text in wrong {
            assert!(read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_zone_is_the_name_or_the_number_of_a_device() {
        let lo = nix::net::if_::if_nametoindex("lo").unwrap();
        for text in ["[fe80::1%lo]:80".to_owned(), format!("[fe80::1%{lo}]:80"), "fe80::1%lo:80".to_owned()] {
            let expected = SocketAddrV6::new("fe80::1".parse().unwrap(), 80, 0, lo);
            assert_eq!(place(&text).unwrap(), [SocketAddr::from(expected)], "{text}");
        }
        let error = place("[fe80::1%nodevice]:80").unwrap_err().to_string();
        assert!(error.contains("fe80::1%nodevice") && error.contains("no network device"), "{error}");
    }

    #[test]
    fn socket_addresses_have_no_names() {
        assert_eq!(socket_address("[::]:0").unwrap(), "[::]:0".parse().unwrap());
        assert!(matches!(socket_address("[fe80::1%lo]:9").unwrap(), SocketAddr::V6(v6) if v6.scope_id() > 0));
        for text in ["localhost:80", "127.0.0.1", "127.0.0.1:x", "[fe80::1%nodevice]:80"] {
            assert!(socket_address(text).is_err(), "{text}");
        }
    }

    #[test]
    fn places_are_hosts_with_ports() {
        assert_eq!(place("[::1]:7").unwrap(), ["[::1]:7".parse().unwrap()]);
        assert_eq!(place("127.0.0.1:7").unwrap(), ["127.0.0.1:7".parse().unwrap()]);
        for text in ["", "80", "127.0.0.1", "127.0.0.1:x", "127.0.0.1:99999", ":80"] {
            assert!(place(text).is_err(), "{text}");
        }
    }
}
