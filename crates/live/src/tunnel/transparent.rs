//! Takes connections to networks at the far site without a word from the programs that make them (Linux's TPROXY).
//!
//! A table of nftables of its own marks TCP packets to those networks, from this machine and from those it forwards for; a rule for
//! packets with that mark has them delivered here, and TPROXY hands them to a socket that takes connections for any address. The
//! table is found by its random token; rule and routes carry a number made from it and go with the table: when this is dropped,
//! or, after a kill, at the next start and by `meshpace doctor --clean`. IPv4 only.

use crate::tcp::filter::Table;
use crate::tun::ip;
use nix::sys::socket::{setsockopt, sockopt};
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener};
use std::str::FromStr;

/// Connections the kernel holds that nobody has taken yet.
const BACKLOG: i32 = 1024;

/// An IPv4 network: `10.1.0.0/16`, or a single address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Network {
    address: Ipv4Addr,
    bits: u8,
}

impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Network, String> {
        let wrong = || format!("{text}: expected an IPv4 network, 10.1.0.0/16 for example");
        let (address, bits) = text.split_once('/').unwrap_or((text, "32"));
        let address: Ipv4Addr = address.parse().map_err(|_| wrong())?;
        let bits: u8 = bits.parse().ok().filter(|bits| (1..=32).contains(bits)).ok_or_else(wrong)?;
        if u32::from(address).checked_shl(u32::from(bits)).is_some_and(|rest| rest != 0) {
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
    _table: Table,
}

impl Transparent {
    /// Takes connections to `networks` from now on; where they arrive. Their local address is where they were to go.
    ///
    /// # Errors
    ///
    /// No rights (`CAP_NET_ADMIN`), no `nft` or `ip`, or a kernel without TPROXY.
    pub(super) fn install(networks: &[Network]) -> io::Result<(Transparent, TcpListener)> {
        let flags = SocketFlags::CLOEXEC;
        let socket = rustix::net::socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)?;
        let explain = |error| io::Error::new(io::Error::from(error).kind(), format!("transparent sockets: {error}"));
        setsockopt(&socket, sockopt::IpTransparent, &true).map_err(explain)?;
        rustix::net::bind(&socket, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0))?;
        rustix::net::listen(&socket, BACKLOG)?;
        let listener = TcpListener::from(socket);
        let port = listener.local_addr()?.port();
        let list = networks.iter().map(Network::to_string).collect::<Vec<_>>().join(", ");
        let table = Table::install(|table, mark, comment| {
            format!(
                "add chain ip {table} prerouting {{ type filter hook prerouting priority mangle; policy accept; }}\n\
                 add chain ip {table} output {{ type route hook output priority mangle; policy accept; }}\n\
                 add rule ip {table} prerouting ip daddr {{ {list} }} meta l4proto tcp meta mark set {mark} \
                 tproxy to 127.0.0.1:{port} accept {comment}\n\
                 add rule ip {table} output ip daddr {{ {list} }} meta l4proto tcp meta mark set {mark} {comment}\n"
            )
        })?;
        // From here on dropping the table removes these too.
        let number = table.number().to_string();
        ip(&["route", "add", "local", "0.0.0.0/0", "dev", "lo", "table", &number])?;
        ip(&["rule", "add", "fwmark", &number, "lookup", &number])?;
        Ok((Transparent { _table: table }, listener))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_are_read_and_written() {
        for text in ["10.1.0.0/16", "192.168.7.0/24", "128.0.0.0/1", "10.0.0.7/32"] {
            assert_eq!(text.parse::<Network>().map(|network| network.to_string()), Ok(text.to_owned()));
        }
        assert_eq!("10.0.0.7".parse::<Network>().map(|network| network.to_string()), Ok("10.0.0.7/32".to_owned()));
        for bad in ["", "10.0.0.0/0", "10.0.0.0/33", "10.0.0.7/24", "10.0.0/8", "::1/64", "host/8"] {
            assert!(bad.parse::<Network>().is_err(), "{bad}");
        }
    }
}
