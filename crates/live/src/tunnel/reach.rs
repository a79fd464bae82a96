//! Connections from an exit to targets of streams.
//!
//! A peer chooses the target, and may have left before it answers. So all addresses of a target together have [`PATIENCE`], few of them
//! are tried, and nothing is waited for once nobody wants the stream any more.

use super::Refusal;
use crate::{Clock, accept, hosts};
use meshpace_core::{Duration, Time};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use std::io;
use std::net::{SocketAddr, TcpStream};

/// Time for a connection to a target, its addresses one after the other.
const PATIENCE: Duration = Duration::from_secs(10);
/// Addresses of a target that are tried.
const ADDRESSES: usize = 8;
/// Time after which it is looked whether the stream is still wanted: 0.2 s.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };

/// A connection to the target, as long as it is wanted. Where the process has no descriptor for it, it waits for one.
pub(super) fn connect(target: &str, is_wanted: impl Fn() -> bool) -> Result<TcpStream, (Refusal, io::Error)> {
    let until = Clock.now() + PATIENCE;
    loop {
        match connect_now(target, until, &is_wanted) {
            Err((_, error)) if accept::lacks_room(&error) && Clock.now() < until && is_wanted() => accept::pause(),
            Err((_, error)) if accept::lacks_room(&error) => return Err((Refusal::Crowded, error)),
            connected => return connected,
        }
    }
}

fn connect_now(target: &str, until: Time, is_wanted: &impl Fn() -> bool) -> Result<TcpStream, (Refusal, io::Error)> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "no address");
    let addresses = hosts::place(target).map_err(|error| (Refusal::Unreachable, error))?;
    let addresses: Vec<SocketAddr> = addresses.into_iter().take(ADDRESSES).collect();
    for (number, address) in addresses.iter().enumerate() {
        let left = until.since(Clock.now());
        let share = Duration(left.0 / (addresses.len() - number) as u64);
        match attempt(*address, Clock.now() + share, is_wanted) {
            Ok(tcp) => return Ok(tcp),
            Err(error) => last = error,
        }
        if !is_wanted() {
            break;
        }
    }
    let refused = last.kind() == io::ErrorKind::ConnectionRefused;
    Err((if refused { Refusal::Refused } else { Refusal::Unreachable }, last))
}

/// A connection to one address.
fn attempt(address: SocketAddr, until: Time, is_wanted: &impl Fn() -> bool) -> io::Result<TcpStream> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let tcp = TcpStream::from(rustix::net::socket_with(family, SocketType::STREAM, flags, None)?);
    match rustix::net::connect(&tcp, &address) {
        Err(error) if error != rustix::io::Errno::INPROGRESS => return Err(error.into()),
        _ => {}
    }
    loop {
        let ready = poll(&mut [PollFd::new(&tcp, PollFlags::OUT)], Some(&LOOK));
        if ready.is_ok_and(|ready| ready > 0) {
            break;
        }
        if !is_wanted() {
            return Err(io::Error::new(io::ErrorKind::ConnectionAborted, "the stream is not wanted any more"));
        }
        if Clock.now() >= until {
            return Err(io::ErrorKind::TimedOut.into());
        }
    }
    if let Some(error) = tcp.take_error()? {
        return Err(error);
    }
    tcp.set_nonblocking(false)?;
    Ok(tcp)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn a_listener_is_reached_and_a_closed_port_refuses() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let target = listener.local_addr().unwrap().to_string();
        assert!(connect(&target, || true).is_ok());
        drop(listener);
        let (refusal, error) = connect(&target, || true).unwrap_err();
        assert!(matches!(refusal, Refusal::Refused), "{error}");
    }

    #[test]
    fn nothing_is_waited_for_once_the_stream_is_not_wanted() {
        // A listener whose queue is full does not answer.
        let listener = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
        rustix::net::bind(&listener, &"127.0.0.1:0".parse::<SocketAddr>().unwrap()).unwrap();
        rustix::net::listen(&listener, 0).unwrap();
        let address = SocketAddr::try_from(rustix::net::getsockname(&listener).unwrap()).unwrap();
        let _first: Vec<TcpStream> =
            (0..2).map_while(|_| attempt(address, Clock.now() + Duration::from_millis(300), &|| true).ok()).collect();
        let begun = Clock.now();
        let error = attempt(address, begun + Duration::from_secs(3600), &|| false).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionAborted, "{error}");
    }
}
