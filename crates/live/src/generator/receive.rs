//! The far end: takes connections, counts what comes, closes when the peer closes.

use super::udp::{HEADER, Kind, header, understand};
use crate::clock::Clock;
use crate::tcp::{Id, Interface, Stack};
use crate::tpa::{TpaListener, TpaStream};
use meshpace_core::{Duration, Time};
use meshpace_transport::Stats;
use meshpace_transport::tcp::End;
use std::collections::BTreeMap;
use std::io::{self, Read};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;

/// A UDP run that says nothing for so long is over.
const UDP_SILENCE: Duration = Duration::from_secs(10);
/// Runs over UDP at a time.
const MOST_RUNS: usize = 1024;
/// How often somebody who waits looks whether to go on.
const LOOK: Duration = Duration::from_millis(200);

/// What one peer has sent.
#[derive(Clone, PartialEq, Debug)]
pub struct Received {
    /// Who.
    pub peer: SocketAddr,
    /// Payload bytes, in order and once; of UDP, datagrams received.
    pub bytes: u64,
    /// From the opening to the last byte.
    pub duration: Duration,
    /// Whether the peer closed in order.
    pub in_order: bool,
    /// What our own transport counted; zero of the kernel's.
    pub stats: Stats,
}

/// One connection that has ended, and so on, until the caller has enough.
pub type Look<'a> = &'a mut dyn FnMut(Option<Received>) -> bool;

/// Serves our TCP on `port` of a stack that listens there. `look` is called with every connection that has ended, and
/// now and then with none, and says whether to go on.
pub fn tcp<I: Interface>(stack: &mut Stack<I>, port: u16, look: Look<'_>) -> io::Result<()> {
    let mut open: BTreeMap<Id, (Received, Time)> = BTreeMap::new();
    let mut block = vec![0; 1 << 16];
    let mut next_look = Clock.now();
    loop {
        while let Some((id, peer)) = stack.accept(port) {
            let peer = SocketAddr::V4(peer);
            let fresh = Received { peer, bytes: 0, duration: Duration::ZERO, in_order: false, stats: Stats::default() };
            open.insert(id, (fresh, Clock.now()));
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

/// Serves the kernel's TCP.
pub fn kernel(listener: TcpListener, look: Look<'_>) -> io::Result<()> {
    streams(move || listener.accept(), TcpStream::shutdown, look)
}

/// Serves TPA.
pub fn tpa(listener: TpaListener, look: Look<'_>) -> io::Result<()> {
    streams(move || listener.accept(), TpaStream::shutdown, look)
}

/// Serves whatever is accepted, each on a thread of its own.
fn streams<S: Read + Send + 'static>(
    mut accept: impl FnMut() -> io::Result<(S, SocketAddr)> + Send + 'static,
    close: fn(&S, Shutdown) -> io::Result<()>,
    look: Look<'_>,
) -> io::Result<()> {
    let (sender, ended) = channel();
    thread::Builder::new().name("accept".into()).spawn(move || {
        loop {
            match accept() {
                Ok((stream, peer)) => {
                    let sender = sender.clone();
                    // A peer that no thread can be had for is not served.
                    let _ = thread::Builder::new().name("take".into()).spawn(move || {
                        let _ = sender.send(drain(peer, stream, close));
                    });
                }
                // The listener is closed.
                Err(error) if error.kind() == io::ErrorKind::NotConnected => return,
                // One that is gone before it was accepted, or no descriptor left: the next one may do better.
                Err(_) => {}
            }
        }
    })?;
    collect(&ended, look)
}

/// Takes all that a stream brings, and closes it.
fn drain<S: Read>(peer: SocketAddr, mut stream: S, close: fn(&S, Shutdown) -> io::Result<()>) -> Received {
    let since = Clock.now();
    let mut received = Received { peer, bytes: 0, duration: Duration::ZERO, in_order: false, stats: Stats::default() };
    let mut block = vec![0; 1 << 16];
    loop {
        match stream.read(&mut block) {
            Ok(0) => {
                received.in_order = close(&stream, Shutdown::Write).is_ok();
                return received;
            }
            Ok(taken) => {
                received.bytes += taken as u64;
                received.duration = Clock.now().since(since);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return received,
        }
    }
}

/// Hands over what the threads report.
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

/// Serves UDP: counts the datagrams of each peer, reports at the end.
pub fn udp(socket: &UdpSocket, look: Look<'_>) -> io::Result<()> {
    /// A run under way: what came, since when, when last, and the numbers it has been told the end of.
    struct Run {
        received: Received,
        since: Time,
        last: Time,
        over: bool,
    }
    socket.set_read_timeout(Some(std::time::Duration::from_nanos(LOOK.0)))?;
    let mut runs: BTreeMap<SocketAddr, Run> = BTreeMap::new();
    let mut bytes = vec![0; 1 << 16];
    loop {
        let mut ended = Vec::new();
        match socket.recv_from(&mut bytes) {
            Ok((length, peer)) => {
                let now = Clock.now();
                // What is not ours is not counted, and begins nothing.
                let has_room = runs.len() < MOST_RUNS || runs.contains_key(&peer);
                if let Some((kind, _)) = understand(&bytes[..length]).filter(|_| has_room) {
                    let run = runs.entry(peer).or_insert_with(|| Run {
                        received: Received {
                            peer,
                            bytes: 0,
                            duration: Duration::ZERO,
                            in_order: false,
                            stats: Stats::default(),
                        },
                        since: now,
                        last: now,
                        over: false,
                    });
                    run.last = now;
                    match kind {
                        Kind::Data if !run.over => {
                            run.received.bytes += length as u64;
                            run.received.duration = now.since(run.since);
                            run.received.stats.distinct_segments_received += 1;
                        }
                        Kind::End => {
                            // Repeated until the peer has it; a report that is lost costs another.
                            let report = header(Kind::Report, run.received.bytes);
                            let _ = socket.send_to(&report[..HEADER], peer);
                            if !run.over {
                                run.over = true;
                                run.received.in_order = true;
                                ended.push(run.received.clone());
                            }
                        }
                        _ => {}
                    }
                }
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            // A peer that is gone says so; the others go on.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
            Err(error) => return Err(error),
        }
        let now = Clock.now();
        runs.retain(|_, run| {
            let silent = now.since(run.last) > UDP_SILENCE;
            if silent && !run.over {
                ended.push(run.received.clone());
            }
            !silent
        });
        if ended.is_empty() && !look(None) {
            return Ok(());
        }
        for received in ended {
            if !look(Some(received)) {
                return Ok(());
            }
        }
    }
}
