//! Host addresses in text form: a name, an IP address, or an IP address with a zone.
//!
//! A link-local IPv6 address exists on every link, so it needs a zone (RFC 4007, section 11): the
//! name or the number of a network device, as in `fe80::1%eth0`. The standard library only parses
//! numbers of devices.

use crate::Clock;
use meshpace_core::{Duration, Time};
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV6, ToSocketAddrs};
use std::str::FromStr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// An IP address, with its zone if the text has one. The zone is resolved when a socket address is
/// made from it, so that the device may appear later.
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
    /// Returns the socket address of this address and a port.
    ///
    /// # Errors
    ///
    /// The zone is not a network device of this host.
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

/// Resolves a host name or an address. The addresses are in the resolver's order (RFC 6724).
///
/// # Errors
///
/// The name has no address, or the zone is not a network device.
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

/// Like [`host`], for a text `HOST:PORT`. IPv6 addresses are in brackets.
///
/// # Errors
///
/// The errors of [`host`]; also if the text has no port.
pub fn place(text: &str) -> io::Result<Vec<SocketAddr>> {
    let expected = || io::Error::new(io::ErrorKind::InvalidInput, "expected HOST:PORT");
    let (name, port) = text.rsplit_once(':').ok_or_else(expected)?;
    host(name, port.parse().map_err(|_| expected())?)
}

/// Parses `ADDRESS:PORT`, with an optional zone. Host names are not allowed.
///
/// # Errors
///
/// The expected format, or that the zone is not a network device.
pub fn socket_address(text: &str) -> Result<SocketAddr, String> {
    let expected = || "expected ADDRESS:PORT".to_owned();
    let (address, port) = text.rsplit_once(':').ok_or_else(expected)?;
    let port = port.parse().map_err(|_| expected())?;
    address.parse::<Address>()?.at(port).map_err(|error| error.to_string())
}

/// Age at which the addresses of a host are resolved again. A caller that opens many connections in
/// a second thus makes one lookup.
const FRESH: Duration = Duration::from_secs(1);

/// Function that resolves the addresses of a host.
type Lookup = dyn Fn() -> io::Result<Vec<SocketAddr>> + Send + Sync;

/// A host and a port whose addresses are resolved again for every session, because the addresses of
/// a name may change at any time. A clone is another handle of the same host.
#[derive(Clone)]
pub struct Host(Arc<Inner>);

struct Inner {
    /// Text for users: the name, or the address.
    words: String,
    lookup: Box<Lookup>,
    known: Mutex<Known>,
}

/// Result of the last lookup, and the address of the last session.
#[derive(Default)]
struct Known {
    at: Option<Time>,
    found: Vec<SocketAddr>,
    /// Address at which the host answered last.
    answered: Option<SocketAddr>,
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Host").field(&self.0.words).finish()
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.words)
    }
}

impl From<SocketAddr> for Host {
    fn from(address: SocketAddr) -> Host {
        Host::with(address.to_string(), move || Ok(vec![address]))
    }
}

impl Host {
    /// Creates a host from its name or address, and a port.
    pub fn new(name: &str, port: u16) -> Host {
        let own = name.to_owned();
        let words = if name.contains(':') { format!("[{name}]:{port}") } else { format!("{name}:{port}") };
        Host::with(words, move || host(&own, port))
    }

    /// Creates a host whose addresses `lookup` returns, in the order in which they are to be tried.
    pub fn with(
        words: impl Into<String>,
        lookup: impl Fn() -> io::Result<Vec<SocketAddr>> + Send + Sync + 'static,
    ) -> Host {
        Host(Arc::new(Inner { words: words.into(), lookup: Box::new(lookup), known: Mutex::default() }))
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the current addresses. The address at which the host answered last is the first. If
    /// the lookup fails, for example because there is no network, the addresses of the previous
    /// lookup are returned.
    ///
    /// # Errors
    ///
    /// No lookup has ever found an address.
    pub fn addresses(&self) -> io::Result<Vec<SocketAddr>> {
        let is_fresh = self.known().at.is_some_and(|at| Clock.now().since(at) < FRESH);
        if !is_fresh {
            // The lookup runs without the lock, because it may take long and other threads may use
            // the known addresses meanwhile.
            let looked_up = (self.0.lookup)();
            let mut known = self.known();
            match looked_up {
                Ok(found) if !found.is_empty() => (known.at, known.found) = (Some(Clock.now()), found),
                Err(error) if known.found.is_empty() => return Err(error),
                _ => {}
            }
        }
        let known = self.known();
        let mut addresses = known.found.clone();
        addresses.sort_by_key(|address| Some(*address) != known.answered);
        match addresses.is_empty() {
            true => Err(io::Error::new(io::ErrorKind::NotFound, "no address")),
            false => Ok(addresses),
        }
    }

    /// Address that is known without a lookup: the one at which the host answered last, or the
    /// first one of the last lookup.
    pub fn last(&self) -> Option<SocketAddr> {
        let known = self.known();
        known.answered.or(known.found.first().copied())
    }

    /// Records that the host has answered at this address.
    pub fn answered(&self, at: SocketAddr) {
        self.known().answered = Some(at);
    }

    /// Marks the known addresses as outdated, because no address has answered or a session has
    /// ended.
    pub fn doubt(&self) {
        self.known().at = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

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

    #[test]
    fn a_host_is_looked_up_again_and_what_answered_comes_first() {
        let at = |text: &str| text.parse::<SocketAddr>().unwrap();
        let (a, b, c) = (at("10.0.0.1:1"), at("10.0.0.2:1"), at("[::1]:1"));
        let answers = Arc::new(Mutex::new(VecDeque::from([
            Err(io::ErrorKind::TimedOut.into()),
            Ok(vec![a, b]),
            Ok(vec![c, b]),
            Ok(Vec::new()),
            Err(io::ErrorKind::TimedOut.into()),
            Ok(vec![a, c]),
        ])));
        let list = Arc::clone(&answers);
        let host = Host::with("test", move || list.lock().unwrap().pop_front().unwrap());
        assert!(host.addresses().is_err() && host.last().is_none());
        assert_eq!((host.addresses().unwrap(), host.last()), (vec![a, b], Some(a)));
        host.answered(b);
        host.doubt();
        assert_eq!((host.addresses().unwrap(), host.last()), (vec![b, c], Some(b)));
        for _ in 0..2 {
            // The resolver knows nothing, or does not answer: what was known still holds.
            host.doubt();
            assert_eq!(host.addresses().unwrap(), [b, c]);
        }
        host.doubt();
        assert_eq!(host.addresses().unwrap(), [a, c], "the name has other addresses");
        assert!(answers.lock().unwrap().is_empty());
        for (name, words) in [("mesh.example", "mesh.example:7"), ("::1", "[::1]:7"), ("fe80::1%lo", "[fe80::1%lo]:7")]
        {
            assert_eq!(Host::new(name, 7).to_string(), words);
        }
        let fixed = Host::from(c);
        assert_eq!((fixed.addresses().unwrap(), fixed.to_string()), (vec![c], "[::1]:1".to_owned()));
    }
}
