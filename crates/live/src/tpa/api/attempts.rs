//! Opening a connection to one of several addresses: the first that answers (RFC 8305).
//!
//! The addresses of a name are tried one after the other. The next attempt begins when the previous
//! one has failed or is 250 ms old (section 5: Connection Attempt Delay); earlier attempts continue
//! meanwhile. The first attempt that succeeds becomes the connection, and the others are abandoned.

use super::port::TpaPort;
use super::select::Selector;
use super::stream::TpaStream;
use crate::Clock;
use crate::tpa::errno::errno_of;
use meshpace_core::{Duration, Time};
use meshpace_session::failure::{Failure, Reason};
use meshpace_session::handshake::InnerTransport;
use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::task::{Context, Poll};

/// Age of an attempt at which the next attempt begins in parallel (RFC 8305, section 5).
const DELAY: Duration = Duration::from_millis(250);

/// Maximum number of addresses that are tried. A name server must not be able to make this host
/// send to any number of hosts.
const MOST: usize = 8;

/// Attempts to open one connection.
#[derive(Debug)]
pub struct Attempts {
    port: TpaPort,
    inner: InnerTransport,
    timeout: Duration,
    /// Addresses that have not been tried yet, in order.
    left: VecDeque<SocketAddr>,
    running: Vec<TpaStream>,
    /// Time at which the next attempt begins.
    next: Time,
    /// Addresses at which the attempt failed, with the error of each.
    failed: Vec<(SocketAddr, io::Error)>,
    selector: Selector,
}

/// Sorts the addresses into the order in which they are tried. The address families alternate,
/// beginning with that of the first address (RFC 8305, section 4). Duplicates are removed.
fn in_turns(addresses: impl IntoIterator<Item = SocketAddr>) -> Vec<SocketAddr> {
    let (mut first, mut other) = (Vec::new(), Vec::new());
    for address in addresses {
        let is_first = first.first().is_none_or(|known: &SocketAddr| known.is_ipv4() == address.is_ipv4());
        let list = if is_first { &mut first } else { &mut other };
        if !list.contains(&address) {
            list.push(address);
        }
    }
    let mut all = Vec::new();
    let (mut first, mut other) = (first.into_iter(), other.into_iter());
    loop {
        let before = all.len();
        all.extend(first.next());
        all.extend(other.next());
        if all.len() == before {
            return all;
        }
    }
}

impl Attempts {
    /// Prepares attempts from `port` to these addresses, each of which lasts at most `timeout`.
    pub(super) fn new(
        port: &TpaPort,
        addresses: impl IntoIterator<Item = SocketAddr>,
        timeout: Duration,
        inner: InnerTransport,
    ) -> Attempts {
        let mut left = in_turns(addresses);
        left.truncate(MOST);
        let (running, failed, selector) = Default::default();
        Attempts { port: port.clone(), inner, timeout, left: left.into(), running, next: Time::ZERO, failed, selector }
    }

    /// Waits until one of the attempts succeeds, at most until `deadline`, and returns its stream.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::WouldBlock`] at the deadline, after which the attempts may be continued. If
    /// all attempts have failed, the reason.
    pub fn wait(&mut self, deadline: Time) -> io::Result<TpaStream> {
        loop {
            if let Some(open) = self.look()? {
                return Ok(open);
            }
            let now = Clock.now();
            if now >= self.next || self.running.is_empty() {
                self.begin(now)?;
                continue;
            }
            if now >= deadline {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            let next = if self.left.is_empty() { Time::NEVER } else { self.next };
            self.selector.wait(deadline.min(next));
        }
    }

    /// Returns the stream of an attempt that has succeeded. Attempts that have failed are moved to
    /// `failed`.
    fn look(&mut self) -> io::Result<Option<TpaStream>> {
        let waker = self.selector.waker(0);
        let mut place = 0;
        while let Some(stream) = self.running.get(place) {
            match stream.poll_open(&Context::from_waker(&waker)) {
                Poll::Ready(Ok(())) => {
                    let stream = self.running.swap_remove(place);
                    stream.set_nonblocking(false)?;
                    return Ok(Some(stream));
                }
                Poll::Ready(Err(error)) => {
                    let peer = stream.peer_addr()?;
                    self.running.remove(place);
                    self.failed.push((peer, error));
                    self.next = Time::ZERO;
                }
                Poll::Pending => place += 1,
            }
        }
        Ok(None)
    }

    /// Begins the next attempt. Returns the failure if no addresses are left and no attempt is
    /// running.
    fn begin(&mut self, now: Time) -> io::Result<()> {
        let Some(peer) = self.left.pop_front() else {
            self.next = Time::NEVER;
            return if self.running.is_empty() { Err(self.failure()) } else { Ok(()) };
        };
        match self.port.begin(peer, self.timeout, self.inner) {
            Ok(stream) => {
                // Dropping an abandoned stream does not wait.
                stream.set_nonblocking(true)?;
                self.running.push(stream);
                self.next = now + DELAY;
            }
            Err(error) => {
                self.failed.push((peer, error));
                self.next = Time::ZERO;
            }
        }
        Ok(())
    }

    /// Reason why all attempts failed: the error of a single attempt, or the errors of all attempts
    /// joined.
    fn failure(&mut self) -> io::Error {
        let Some((_, last)) = self.failed.pop() else { return io::ErrorKind::NotFound.into() };
        if self.failed.is_empty() {
            return last;
        }
        let all: Vec<String> =
            self.failed.iter().map(|(_, error)| error).chain([&last]).map(ToString::to_string).collect();
        Failure::new(Reason::System(errno_of(&last)), all.join("; ")).error()
    }

    /// Reason for which the peer refuses an attempt that is still running. The sender of the
    /// refusal has not proved to be the peer ([`TpaStream::refusal`]).
    pub fn refusal(&self) -> Option<io::Error> {
        self.running.iter().find_map(TpaStream::refusal)
    }
}

impl Drop for Attempts {
    fn drop(&mut self) {
        self.running.iter().for_each(TpaStream::abort);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_take_turns_and_each_address_stands_once() {
        let list = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect::<Vec<SocketAddr>>();
        for (given, expected) in [
            (
                &["[::1]:1", "[::2]:1", "10.0.0.1:1", "10.0.0.2:1"][..],
                &["[::1]:1", "10.0.0.1:1", "[::2]:1", "10.0.0.2:1"][..],
            ),
            (
                &["10.0.0.1:1", "[::1]:1", "10.0.0.1:1", "[::2]:1", "[::3]:1"],
                &["10.0.0.1:1", "[::1]:1", "[::2]:1", "[::3]:1"],
            ),
            (&["10.0.0.1:1", "10.0.0.2:1"], &["10.0.0.1:1", "10.0.0.2:1"]),
            (&[], &[]),
        ] {
            assert_eq!(in_turns(list(given)), list(expected), "{given:?}");
        }
    }
}
