//! Where a flow of datagrams comes out: a UDP socket of its own, connected to the target, so that what the target answers belongs to the flow.

use super::counters::Counters;
use super::inlet::{IDLE, LOOK};
use super::session::{Flow, Kept, MOST, QUEUE, Sink, Store};
use crate::tpa::any_port;
use crate::{Clock, accept, hosts};
use meshpace_core::Time;
use nix::sys::socket::{MsgFlags, recv, send};
use std::collections::VecDeque;
use std::io;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The way to a target.
#[derive(Debug)]
enum Way {
    /// There is no socket yet: what has come so far, no more than waits at the end that sends.
    Sought(Waiting),
    /// This one.
    Found(Arc<UdpSocket>),
}

/// Datagrams that wait until the target's name has been looked up.
#[derive(Debug, Default)]
struct Waiting {
    datagrams: VecDeque<Kept>,
    bytes: usize,
    /// Memory for them.
    store: Store,
}

impl Waiting {
    /// One more. Where too much waits, the oldest are given up, and the new one where there is no memory for it; how many.
    fn put(&mut self, datagram: &[u8]) -> u64 {
        let mut given_up = 0;
        while self.datagrams.len() >= MOST || self.bytes + datagram.len() > QUEUE {
            let Some(oldest) = self.datagrams.pop_front() else { break };
            self.bytes -= oldest.len();
            given_up += 1;
        }
        match self.store.keep(datagram) {
            Some(datagram) => {
                self.bytes += datagram.len();
                self.datagrams.push_back(datagram);
                given_up
            }
            None => given_up + 1,
        }
    }
}

/// Where a flow comes out.
#[derive(Debug)]
pub(super) struct Outlet {
    way: Mutex<Way>,
    counters: Counters,
    /// When something passed last, nanoseconds.
    used: AtomicU64,
}

impl Sink for Outlet {
    fn deliver(&self, datagram: &[u8]) {
        self.touch();
        match &mut *self.lock() {
            // A target that is gone, or a full buffer, lose it as they would have without a tunnel.
            Way::Found(socket) => drop(send(socket.as_raw_fd(), datagram, MsgFlags::MSG_DONTWAIT)),
            Way::Sought(waiting) => self.counters.datagrams_lost(waiting.put(datagram)),
        }
    }
}

impl Outlet {
    /// Of a flow that has just begun. What waits until its target is found is kept in `store`.
    pub(super) fn new(counters: Counters, store: Store) -> Outlet {
        let way = Mutex::new(Way::Sought(Waiting { store, ..Waiting::default() }));
        Outlet { way, counters, used: AtomicU64::new(Clock.now().0) }
    }

    fn lock(&self) -> MutexGuard<'_, Way> {
        self.way.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn touch(&self) {
        self.used.store(Clock.now().0, Ordering::Relaxed);
    }

    /// Finds the target; what has come so far goes there.
    ///
    /// # Errors
    ///
    /// There is no such host or no way there, or no descriptor for it.
    pub(super) fn open(&self, target: &str) -> io::Result<Arc<UdpSocket>> {
        let socket = Arc::new(connect(target)?);
        socket.set_read_timeout(Some(LOOK))?;
        let mut way = self.lock();
        if let Way::Sought(waiting) = std::mem::replace(&mut *way, Way::Found(Arc::clone(&socket))) {
            waiting.datagrams.iter().for_each(|datagram| drop(socket.send(datagram)));
        }
        Ok(socket)
    }

    /// Carries back what the target says, until the flow is over.
    pub(super) fn carry_back(&self, flow: &Flow, socket: &UdpSocket) {
        let store = flow.store();
        loop {
            match next(socket, &store) {
                Ok(None) => self.counters.datagrams_lost(1),
                Ok(Some((datagram, _room))) => {
                    self.touch();
                    if flow.send(&datagram).is_err() {
                        return;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let idle = Clock.now().since(Time(self.used.load(Ordering::Relaxed)));
                    if idle >= IDLE || !flow.is_open() {
                        return;
                    }
                }
                // Nobody listens there at the moment: UDP has nobody wait for that.
                Err(_) if flow.is_open() => accept::pause(),
                Err(_) => return,
            }
        }
    }
}

/// Waits for the next datagram, and takes as much memory as that needs: most of many flows have nothing to say. The datagram comes with the
/// room that it has in `store` until it waits in its flow; none if there is no room, and it is lost.
fn next(socket: &UdpSocket, store: &Store) -> io::Result<Option<(Vec<u8>, Kept)>> {
    let length = recv(socket.as_raw_fd(), &mut [0], MsgFlags::MSG_PEEK | MsgFlags::MSG_TRUNC)?;
    let Some(room) = store.room(length) else {
        socket.recv(&mut [])?;
        return Ok(None);
    };
    let mut datagram = vec![0; length];
    let length = socket.recv(&mut datagram)?;
    datagram.truncate(length);
    Ok(Some((datagram, room)))
}

fn connect(target: &str) -> io::Result<UdpSocket> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "no address");
    for address in hosts::place(target)? {
        match UdpSocket::bind(any_port(address)).and_then(|socket| socket.connect(address).map(|()| socket)) {
            Ok(socket) => return Ok(socket),
            Err(error) => last = error,
        }
    }
    Err(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_before_the_target_is_found_goes_there_in_order() {
        let server = UdpSocket::bind("127.0.0.1:0").unwrap();
        let counters = Counters::default();
        let outlet = Outlet::new(counters.clone(), Store::default());
        // As many as come at once while a name is looked up, and fit the kernel's buffer then.
        (0..100_u8).for_each(|number| outlet.deliver(&[number]));
        outlet.open(&server.local_addr().unwrap().to_string()).unwrap();
        outlet.deliver(&[100]);
        server.set_read_timeout(Some(std::time::Duration::from_secs(30))).unwrap();
        for number in 0..=100 {
            let mut heard = [0; 2];
            assert_eq!((server.recv(&mut heard).unwrap(), heard[0]), (1, number));
        }
        assert_eq!(counters.totals().datagrams.dropped, 0);
    }

    #[test]
    fn no_more_waits_than_at_the_end_that_sends_and_the_oldest_go() {
        let counters = Counters::default();
        let outlet = Outlet::new(counters.clone(), Store::default());
        let dropped = || counters.totals().datagrams.dropped;
        (0..MOST + 3).for_each(|_| outlet.deliver(b"x"));
        assert_eq!(dropped(), 3);
        outlet.deliver(&[7; QUEUE]);
        assert_eq!(dropped(), 3 + MOST as u64);
        outlet.deliver(b"y");
        let Way::Sought(waiting) = &*outlet.lock() else { panic!("a way to nowhere") };
        let datagrams: Vec<&[u8]> = waiting.datagrams.iter().map(|datagram| &**datagram).collect();
        assert_eq!((datagrams, waiting.bytes), (vec![&b"y"[..]], 1));
    }
}
