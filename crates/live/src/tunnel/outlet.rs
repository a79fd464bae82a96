//! Where a flow of datagrams comes out: a UDP socket of its own, connected to the target, so that what the target answers belongs to the flow.

use super::inlet::{IDLE, LONGEST, LOOK};
use super::session::{Flow, Sink};
use crate::{Clock, accept};
use meshpace_core::Time;
use nix::sys::socket::{MsgFlags, send};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, ToSocketAddrs, UdpSocket};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Datagrams that wait until the target's name has been looked up.
const WAITING: usize = 16;

/// The way to a target.
#[derive(Debug)]
enum Way {
    /// There is no socket yet: what has come so far.
    Sought(Vec<Vec<u8>>),
    /// This one.
    Found(Arc<UdpSocket>),
}

/// Where a flow comes out.
#[derive(Debug)]
pub(super) struct Outlet {
    way: Mutex<Way>,
    /// When something passed last, nanoseconds.
    used: AtomicU64,
}

impl Sink for Outlet {
    fn deliver(&self, datagram: &[u8]) {
        self.touch();
        match &mut *self.lock() {
            // A target that is gone, or a full buffer, lose it as they would have without a tunnel.
            Way::Found(socket) => drop(send(socket.as_raw_fd(), datagram, MsgFlags::MSG_DONTWAIT)),
            Way::Sought(waiting) if waiting.len() < WAITING => waiting.push(datagram.to_vec()),
            Way::Sought(_) => {}
        }
    }
}

impl Outlet {
    pub(super) fn new() -> Outlet {
        Outlet { way: Mutex::new(Way::Sought(Vec::new())), used: AtomicU64::new(Clock.now().0) }
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
            waiting.iter().for_each(|datagram| drop(socket.send(datagram)));
        }
        Ok(socket)
    }

    /// Carries back what the target says, until the flow is over.
    pub(super) fn carry_back(&self, flow: &Flow, socket: &UdpSocket) {
        let mut buffer = vec![0; LONGEST];
        loop {
            match socket.recv(&mut buffer) {
                Ok(length) => {
                    self.touch();
                    if flow.send(&buffer[..length]).is_err() {
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

fn connect(target: &str) -> io::Result<UdpSocket> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "no address");
    for address in target.to_socket_addrs()? {
        let own: IpAddr = if address.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        match UdpSocket::bind((own, 0)).and_then(|socket| socket.connect(address).map(|()| socket)) {
            Ok(socket) => return Ok(socket),
            Err(error) => last = error,
        }
    }
    Err(last)
}
