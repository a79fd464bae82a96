//! Receivers: they accept connections, count the received bytes, and close when the peer closes.

mod datagrams;
mod tpa_streams;

pub use datagrams::udp;
pub use tpa_streams::tpa;

use crate::accept;
use crate::clock::Clock;
use crate::tcp::{Id, Interface, Stack};
use meshpace_core::{Duration, Time};
use meshpace_transport::Stats;
use meshpace_transport::tcp::End;
use nix::sys::socket::{setsockopt, sockopt};
use std::collections::BTreeMap;
use std::io::{self, Read};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;

/// Keep-alive of the kernel's TCP: seconds of silence before the first probe, seconds between
/// probes, and the number of unanswered probes after which the peer is gone.
const KEEP_ALIVE: (u32, u32, u32) = (10, 5, 4);
/// Interval at which a waiting thread checks whether to continue.
const LOOK: Duration = Duration::from_millis(200);

/// Account of the data that one peer has sent.
#[derive(Clone, PartialEq, Debug)]
pub struct Received {
    /// Address of the peer.
    pub peer: SocketAddr,
    /// Number of payload bytes, in order and without duplicates. With UDP, number of bytes of the
    /// datagrams received.
    pub bytes: u64,
    /// Time from the opening to the last byte.
    pub duration: Duration,
    /// True if the peer closed in order, so that everything it sent has been received.
    pub in_order: bool,
    /// Reason why the peer did not close in order, if it is known.
    pub error: Option<String>,
    /// Counters of our own transport; zero for the kernel's TCP.
    pub stats: Stats,
}

impl Received {
    /// Creates an account without data.
    fn from(peer: SocketAddr) -> Received {
        let (duration, stats) = (Duration::ZERO, Stats::default());
        Received { peer, bytes: 0, duration, in_order: false, error: None, stats }
    }
}

/// Callback of the receivers. It gets a connection that has ended, or `None` from time to time, and
/// returns whether to continue.
pub type Look<'a> = &'a mut dyn FnMut(Option<Received>) -> bool;

/// Serves our TCP on `port` of a stack that listens there. `look` is called with every connection
/// that has ended, and from time to time with `None`. It returns whether to continue.
///
/// # Errors
///
/// The error of the interface.
pub fn tcp<I: Interface>(stack: &mut Stack<I>, port: u16, look: Look<'_>) -> io::Result<()> {
    let mut open: BTreeMap<Id, (Received, Time)> = BTreeMap::new();
    let mut block = vec![0; 1 << 16];
    let mut next_look = Clock.now();
    loop {
        while let Some((id, peer)) = stack.accept(port) {
            let peer = SocketAddr::V4(peer);
            open.insert(id, (Received::from(peer), Clock.now()));
        }
        let mut ended = Vec::new();
        for (id, (received, since)) in &mut open {
            loop {
                let taken = stack.read(*id, &mut block);
                if taken == 0 {
                    break;
                }
                received.bytes += taken as u64;
                received.duration = Clock.now().since(*since);
            }
            let Some(status) = stack.status(*id) else { continue };
            if status.at_end {
                stack.close(*id);
            }
            if let Some(end) = stack.status(*id).and_then(|status| status.end) {
                received.in_order = end == End::Closed;
                received.error = (end != End::Closed).then(|| format!("{end:?}"));
                received.stats = stack.connection(*id).map_or(received.stats, |connection| *connection.stats());
                ended.push(*id);
            }
        }
        for id in ended {
            stack.release(id);
            if let Some((received, _)) = open.remove(&id)
                && !look(Some(received))
            {
                return Ok(());
            }
        }
        if Clock.now() >= next_look {
            if !look(None) {
                return Ok(());
            }
            next_look = Clock.now() + LOOK;
        }
        stack.step(next_look)?;
    }
}

/// Serves the kernel's TCP, each connection on a separate thread.
///
/// # Errors
///
/// The system provides no thread.
pub fn kernel(listener: TcpListener, look: Look<'_>) -> io::Result<()> {
    let (sender, ended) = channel();
    thread::Builder::new().name("accept".into()).spawn(move || {
        // The listener is never closed.
        let is_closed = AtomicBool::new(false);
        while let Some((stream, peer)) = accept::next(&listener, &is_closed) {
            let sender = sender.clone();
            // If the system does not support keep-alive, the connection of a peer that vanishes is
            // kept.
            let (idle, interval, count) = KEEP_ALIVE;
            let _ = setsockopt(&stream, sockopt::KeepAlive, &true);
            let _ = setsockopt(&stream, sockopt::TcpKeepIdle, &idle);
            let _ = setsockopt(&stream, sockopt::TcpKeepInterval, &interval);
            let _ = setsockopt(&stream, sockopt::TcpKeepCount, &count);
            // If the system provides no thread, the peer is not served.
            let _ = thread::Builder::new().name("take".into()).spawn(move || {
                let _ = sender.send(drain(peer, stream));
            });
        }
    })?;
    collect(&ended, look)
}

/// Reads all data of a stream, and closes it.
fn drain(peer: SocketAddr, mut stream: TcpStream) -> Received {
    let since = Clock.now();
    let mut received = Received::from(peer);
    let mut block = vec![0; 1 << 16];
    loop {
        match stream.read(&mut block) {
            Ok(0) => {
                match stream.shutdown(Shutdown::Write) {
                    Ok(()) => received.in_order = true,
                    Err(error) => received.error = Some(error.to_string()),
                }
                return received;
            }
            Ok(taken) => {
                received.bytes += taken as u64;
                received.duration = Clock.now().since(since);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => {
                received.error = Some(error.to_string());
                return received;
            }
        }
    }
}

/// Passes the results of the threads to the callback.
fn collect(ended: &Receiver<Received>, look: Look<'_>) -> io::Result<()> {
    loop {
        let received = match ended.recv_timeout(std::time::Duration::from_nanos(LOOK.0)) {
            Ok(received) => Some(received),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => return Err(io::Error::other("nobody accepts any more")),
        };
        if !look(received) {
            return Ok(());
        }
    }
}
