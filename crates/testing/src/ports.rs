//! Ports of 127.0.0.1 that a test binds a second time, or that it leaves empty.
//!
//! The kernel picks the port of a socket that asks for any port out of `ip_local_port_range`. A test that closes such a socket and
//! binds its port again races with every other test that asks for any port meanwhile: about once in 1,600 runs the port is gone.
//! Ports below that range go only to programs that name them.

use std::net::{TcpListener, UdpSocket};
use std::sync::atomic::{AtomicU32, Ordering};

/// How many ports are tried, from [`FIRST`] on.
const PORTS: u32 = 12_000;
const FIRST: u32 = 20_000;

/// A port of 127.0.0.1 that no socket has now, neither of UDP nor of TCP, and that the kernel gives to nobody who asks for any.
/// Each call gives another one; processes that run side by side begin at different places.
pub fn spare_port() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    // 7,919 is a prime that does not divide PORTS: neighbouring process identifiers begin far apart.
    let begin = std::process::id().wrapping_mul(7_919);
    for _ in 0..PORTS {
        let number = begin.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed));
        let port = u16::try_from(FIRST + number % PORTS).expect("below 32,768");
        if UdpSocket::bind(("127.0.0.1", port)).is_ok() && TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
    panic!("ports {FIRST} to {} of 127.0.0.1 are all in use", FIRST + PORTS - 1);
}

#[test]
fn ports_differ_are_free_and_are_not_the_kernels_to_give() {
    let ports: Vec<u16> = (0..100).map(|_| spare_port()).collect();
    let sockets: Vec<_> = ports
        .iter()
        .map(|&port| (UdpSocket::bind(("127.0.0.1", port)).unwrap(), TcpListener::bind(("127.0.0.1", port)).unwrap()))
        .collect();
    assert_eq!(sockets.len(), 100);
    if let Ok(range) = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range") {
        let first: u16 = range.split_whitespace().next().unwrap().parse().unwrap();
        if first >= 32_000 {
            assert!(ports.iter().all(|&port| port < first), "{ports:?}");
        }
    }
}
