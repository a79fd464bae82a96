//! Ports of 127.0.0.1 that a test binds a second time, or leaves unused.
//!
//! Two things can take a port from a test that closes a socket and then binds its port again:
//!
//! - For a socket that requests any port, the kernel picks one from `ip_local_port_range`. It may
//!   give the free port to another test. Ports below that range are only used by programs that name
//!   them: [`spare_port`].
//! - A test on another thread starts a program. Between `fork` and `exec` the child holds a copy of
//!   every socket of the process, and the port stays in use for that time: [`wait_until_free`].
//!   This happens about 2 times in 1,000 closings while four threads start programs without a
//!   pause.

use std::net::{TcpListener, UdpSocket};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Number of ports that are tried, from [`FIRST`] on.
const PORTS: u32 = 12_000;
const FIRST: u32 = 20_000;

/// A port of 127.0.0.1 that no UDP or TCP socket uses now, and that the kernel does not give to
/// sockets that request any port. Each call returns another port. Processes that run at the same
/// time begin at different ports.
pub fn spare_port() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    // 7,919 is a prime that does not divide PORTS, so consecutive process identifiers begin far
    // apart.
    let begin = std::process::id().wrapping_mul(7_919);
    for _ in 0..PORTS {
        let number = begin.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed));
        let port = u16::try_from(FIRST + number % PORTS).expect("below 32,768");
        if is_free(Protocol::Udp, port) && is_free(Protocol::Tcp, port) {
            return port;
        }
    }
    panic!("ports {FIRST} to {} of 127.0.0.1 are all in use", FIRST + PORTS - 1);
}

/// Waits until the UDP port of a closed socket is free, that is until no child process holds a copy
/// of the socket any more.
///
/// # Panics
///
/// If the port is still in use after 60 s.
#[expect(clippy::disallowed_methods, reason = "other processes decide when the port is free")]
pub fn wait_until_free(port: u16) {
    let begun = Instant::now();
    while !is_free(Protocol::Udp, port) {
        assert!(begun.elapsed() < Duration::from_secs(60), "UDP port {port} is still in use");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Protocol {
    Udp,
    Tcp,
}

/// True if no socket of this network namespace uses the port. Linux's tables are read instead of
/// binding a socket, because a `fork` could copy that socket too.
fn is_free(protocol: Protocol, port: u16) -> bool {
    let tables = match protocol {
        Protocol::Udp => ["udp", "udp6"],
        Protocol::Tcp => ["tcp", "tcp6"],
    };
    let mut read = tables
        .iter()
        .filter_map(|table| std::fs::read_to_string(format!("/proc/thread-self/net/{table}")).ok())
        .peekable();
    if read.peek().is_some() {
        return !read.any(|table| has_port(&table, port));
    }
    match protocol {
        Protocol::Udp => UdpSocket::bind(("127.0.0.1", port)).is_ok(),
        Protocol::Tcp => TcpListener::bind(("127.0.0.1", port)).is_ok(),
    }
}

/// True if a table such as `/proc/net/udp` lists a socket with this local port. The second column
/// is `ADDRESS:PORT` in hexadecimal digits.
fn has_port(table: &str, port: u16) -> bool {
    let end = format!(":{port:04X}");
    table.lines().skip(1).any(|line| line.split_whitespace().nth(1).is_some_and(|local| local.ends_with(&end)))
}

#[test]
fn ports_differ_are_free_and_are_not_the_kernels_to_give() {
    let ports: Vec<u16> = (0..20).map(|_| spare_port()).collect();
    let sockets: Vec<_> = ports
        .iter()
        .map(|&port| (UdpSocket::bind(("127.0.0.1", port)).unwrap(), TcpListener::bind(("127.0.0.1", port)).unwrap()))
        .collect();
    assert_eq!(sockets.len(), 20);
    if let Ok(range) = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range") {
        let first: u16 = range.split_whitespace().next().unwrap().parse().unwrap();
        if first >= 32_000 {
            assert!(ports.iter().all(|&port| port < first), "{ports:?}");
        }
    }
}

#[test]
fn a_port_in_use_is_not_free_and_one_given_back_is() {
    for host in ["127.0.0.1", "0.0.0.0"] {
        let port = spare_port();
        let udp = UdpSocket::bind((host, port)).unwrap();
        assert!(!is_free(Protocol::Udp, port) && is_free(Protocol::Tcp, port), "{host}:{port}");
        let tcp = TcpListener::bind((host, port)).unwrap();
        assert!(!is_free(Protocol::Tcp, port), "{host}:{port}");
        drop((udp, tcp));
        wait_until_free(port);
    }
}

#[test]
fn a_port_can_be_bound_again_while_others_start_programs() {
    use std::sync::atomic::AtomicBool;
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    std::process::Command::new("true").status().unwrap();
                }
            });
        }
        let port = spare_port();
        for _ in 0..1_000 {
            let bound = UdpSocket::bind(("127.0.0.1", port));
            // The threads have to end before the scope does.
            is_over.store(bound.is_err(), Ordering::Relaxed);
            drop(bound.unwrap());
            wait_until_free(port);
        }
        is_over.store(true, Ordering::Relaxed);
    });
}
