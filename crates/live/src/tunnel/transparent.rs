//! Takes connections to networks at the far site without a word from the programs that make them (Linux's TPROXY).
//!
//! A table of nftables of its own marks TCP packets to those networks, from this machine and from those it forwards for; a rule for
//! packets with that mark has them delivered here, and TPROXY hands them to a socket that takes connections for any address. The
//! table is found by its random token; rule and routes carry a number made from it and go with the table: when this is dropped,
//! or, after a kill, at the next start and by `meshpace doctor --clean`. IPv4 and IPv6 have a table, a number and a socket each.

use crate::netlink::deliver_marked;
use crate::tcp::filter::{Family, Table};
use nix::sys::socket::{setsockopt, sockopt};
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::str::FromStr;

/// Connections the kernel holds that nobody has taken yet.
const BACKLOG: i32 = 1024;

/// A network: `10.1.0.0/16` or `fd00:1::/32`, or a single address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Network {
    address: IpAddr,
    bits: u8,
}

impl Network {
    fn family(self) -> Family {
        if self.address.is_ipv4() { Family::V4 } else { Family::V6 }
    }
}

impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Network, String> {
        let wrong = || format!("{text}: expected a network, 10.1.0.0/16 or fd00:1::/32 for example");
        let (address, bits) = text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        // The address in the highest bits of a number.
        let (most, number) = match address {
            IpAddr::V4(address) => (32, u128::from(u32::from(address)) << 96),
            IpAddr::V6(address) => (128, u128::from(address)),
        };
        let bits = bits.map_or(Some(most), |bits| bits.parse().ok().filter(|bits| (1..=most).contains(bits)));
        let bits: u8 = bits.ok_or_else(wrong)?;
        if number.checked_shl(u32::from(bits)).is_some_and(|rest| rest != 0) {
            return Err(format!("{text}: has bits beyond the first {bits}"));
        }
        Ok(Network { address, bits })
    }
}

impl std::fmt::Display for Network {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

/// What takes the connections, as long as it lives.
#[derive(Debug)]
pub struct Transparent {
    _tables: Vec<Table>,
}

impl Transparent {
    /// Takes connections to `networks` from now on; where they arrive. Their local address is where they were to go.
    ///
    /// # Errors
    ///
    /// No rights (`CAP_NET_ADMIN`), no `nft`, or a kernel without TPROXY.
    pub(super) fn install(networks: &[Network]) -> io::Result<(Transparent, Vec<TcpListener>)> {
        let (mut tables, mut listeners) = (Vec::new(), Vec::new());
        for family in [Family::V4, Family::V6] {
            let own: Vec<Network> = networks.iter().copied().filter(|network| network.family() == family).collect();
            if !own.is_empty() {
                let listener = listen(family)?;
                tables.push(divert(family, &own, listener.local_addr()?)?);
                listeners.push(listener);
            }
        }
        Ok((Transparent { _tables: tables }, listeners))
    }
}

/// A socket that takes connections for any address.
fn listen(family: Family) -> io::Result<TcpListener> {
    let (kind, here) = match family {
        Family::V4 => (AddressFamily::INET, IpAddr::V4(Ipv4Addr::LOCALHOST)),
        Family::V6 => (AddressFamily::INET6, IpAddr::V6(Ipv6Addr::LOCALHOST)),
    };
    let socket = rustix::net::socket_with(kind, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    let explain = |error| io::Error::new(io::Error::from(error).kind(), format!("transparent sockets: {error}"));
    // Linux takes this option at IPv4's level for sockets of either version.
    setsockopt(&socket, sockopt::IpTransparent, &true).map_err(explain)?;
    rustix::net::bind(&socket, &SocketAddr::new(here, 0))?;
    rustix::net::listen(&socket, BACKLOG)?;
    Ok(TcpListener::from(socket))
}

/// Has packets to `networks` delivered to the socket at `here`.
fn divert(family: Family, networks: &[Network], here: SocketAddr) -> io::Result<Table> {
    let list = networks.iter().map(Network::to_string).collect::<Vec<_>>().join(", ");
    let version = family.name();
    let table = Table::install(family, |table, mark, comment| {
        format!(
            "add chain {table} prerouting {{ type filter hook prerouting priority mangle; policy accept; }}\n\
             add chain {table} output {{ type route hook output priority mangle; policy accept; }}\n\
             add rule {table} prerouting {version} daddr {{ {list} }} meta l4proto tcp meta mark set {mark} \
             tproxy to {here} accept {comment}\n\
             add rule {table} output {version} daddr {{ {list} }} meta l4proto tcp meta mark set {mark} {comment}\n"
        )
    })?;
    // From here on dropping the table removes these too.
    deliver_marked(family.any(), table.number())?;
    Ok(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_are_read_and_written() {
        for text in
            ["10.1.0.0/16", "192.168.7.0/24", "128.0.0.0/1", "10.0.0.7/32", "fd00:1::/32", "8000::/1", "::1/128"]
        {
            assert_eq!(text.parse::<Network>().map(|network| network.to_string()), Ok(text.to_owned()));
        }
        assert_eq!("10.0.0.7".parse::<Network>().map(|network| network.to_string()), Ok("10.0.0.7/32".to_owned()));
        for bad in ["", "10.0.0.0/0", "10.0.0.0/33", "10.0.0.7/24", "10.0.0/8", "::1/64", "::/0", "::/129", "host/8"] {
            assert!(bad.parse::<Network>().is_err(), "{bad}");
        }
    }
}
