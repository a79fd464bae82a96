//! UDP receiver: counts the datagrams of each run, and reports at its end.
//!
//! A run is identified by its peer's address and by a token that is sent only to that address, so
//! that no host can impersonate another: see [`udp`](super::super::udp). No state is stored for a
//! peer without a token, and the number of runs per address is limited.

use super::super::udp::{HEADER, Kind, Token, header, understand};
use super::{LOOK, Look, Received};
use crate::clock::Clock;
use meshpace_core::{Duration, Time};
use siphasher::sip::SipHasher24;
use std::collections::BTreeMap;
use std::hash::Hasher;
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};

/// Silence after which a run counts as ended.
const SILENCE: Duration = Duration::from_secs(10);
/// Maximum number of simultaneous runs.
const MOST_RUNS: usize = 1024;
/// Maximum number of simultaneous runs from one address.
const MOST_PER_SOURCE: usize = 256;

/// A run in progress: its counters, the times of its first and its last datagram, and whether its
/// end was reported.
struct Run {
    received: Received,
    since: Time,
    last: Time,
    over: bool,
}

/// All runs, and the key of their tokens.
struct Runs {
    key: [u8; 16],
    by_peer: BTreeMap<SocketAddr, Run>,
    by_source: BTreeMap<IpAddr, usize>,
}

impl Runs {
    fn token(&self, peer: SocketAddr) -> Token {
        let mut hasher = SipHasher24::new_with_key(&self.key);
        match peer.ip() {
            IpAddr::V4(address) => hasher.write(&address.octets()),
            IpAddr::V6(address) => hasher.write(&address.octets()),
        }
        hasher.write_u16(peer.port());
        hasher.finish()
    }

    /// Returns the run of `peer`, and creates it if necessary. `None` if there is no room for a new
    /// run.
    fn of(&mut self, peer: SocketAddr, now: Time) -> Option<&mut Run> {
        if !self.by_peer.contains_key(&peer) {
            let own = self.by_source.entry(peer.ip()).or_insert(0);
            if self.by_peer.len() >= MOST_RUNS || *own >= MOST_PER_SOURCE {
                return None;
            }
            *own += 1;
            let run = Run { received: Received::from(peer), since: now, last: now, over: false };
            self.by_peer.insert(peer, run);
        }
        self.by_peer.get_mut(&peer)
    }

    /// Removes runs that have been silent. Returns those of them that had not ended, each with its
    /// error.
    fn expire(&mut self, now: Time) -> Vec<Received> {
        let mut ended = Vec::new();
        let by_source = &mut self.by_source;
        self.by_peer.retain(|peer, run| {
            let silent = now.since(run.last) > SILENCE;
            if silent {
                if let Some(own) = by_source.get_mut(&peer.ip()) {
                    *own -= 1;
                }
                if !run.over {
                    run.received.error = Some(format!("nothing for {} s, and no end", SILENCE.0 / 1_000_000_000));
                    ended.push(run.received.clone());
                }
            }
            !silent
        });
        by_source.retain(|_, own| *own > 0);
        ended
    }
}

/// Serves UDP: counts the datagrams of each run, and reports at its end. `look` is called with each
/// run that has ended. It is called with `None` after every `LOOK` in which no run ended, so that
/// the caller can stop the receiver. Returns when `look` returns false.
///
/// # Errors
///
/// The error of the socket, or of the random number source.
pub fn udp(socket: &UdpSocket, look: Look<'_>) -> io::Result<()> {
    socket.set_read_timeout(Some(std::time::Duration::from_nanos(LOOK.0)))?;
    let mut key = [0; 16];
    crate::tpa::random(&mut key)?;
    let mut runs = Runs { key, by_peer: BTreeMap::new(), by_source: BTreeMap::new() };
    let mut bytes = vec![0; 1 << 16];
    let mut next_look = Clock.now();
    loop {
        let mut ended = Vec::new();
        match socket.recv_from(&mut bytes) {
            Ok((length, peer)) => ended.extend(take(&mut runs, socket, peer, &bytes[..length])),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            // An ICMP error says that one peer has gone. The other runs continue.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
            Err(error) => return Err(error),
        }
        let now = Clock.now();
        let looks = now >= next_look;
        if looks {
            next_look = now + LOOK;
            ended.extend(runs.expire(now));
        }
        if looks && ended.is_empty() && !look(None) {
            return Ok(());
        }
        for received in ended {
            if !look(Some(received)) {
                return Ok(());
            }
        }
    }
}

/// Counts or answers a datagram. Returns the run if the datagram ends it.
fn take(runs: &mut Runs, socket: &UdpSocket, peer: SocketAddr, datagram: &[u8]) -> Option<Received> {
    let (kind, number, token) = understand(datagram)?;
    let right = runs.token(peer);
    if kind == Kind::Hello {
        let _ = socket.send_to(&header(Kind::Welcome, number, right)[..HEADER], peer);
        return None;
    }
    if token != right || !matches!(kind, Kind::Data | Kind::End) {
        return None;
    }
    let now = Clock.now();
    let run = runs.of(peer, now)?;
    run.last = now;
    if kind == Kind::Data {
        if !run.over {
            run.received.bytes += datagram.len() as u64;
            run.received.duration = now.since(run.since);
            run.received.stats.distinct_segments_received += 1;
        }
        return None;
    }
    // The peer repeats its end until a report reaches it, so each end is answered.
    let _ = socket.send_to(&header(Kind::Report, run.received.bytes, right)[..HEADER], peer);
    run.received.in_order = true;
    (!std::mem::replace(&mut run.over, true)).then(|| run.received.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forged_datagrams_begin_nothing_and_end_nothing() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let mut runs = Runs { key: [1; 16], by_peer: BTreeMap::new(), by_source: BTreeMap::new() };
        let peer = |n: u16| SocketAddr::from(([127, 0, 0, 1], 1000 + n));
        let data = |token| [&header(Kind::Data, 0, token)[..], &[0; 76]].concat();
        for n in 0..2000 {
            let forged = runs.token(peer(n)) ^ 1;
            assert_eq!(take(&mut runs, &socket, peer(n), &data(forged)), None);
        }
        assert!(runs.by_peer.is_empty(), "1024 of them filled the table");
        let ours = runs.token(peer(0));
        assert_eq!(take(&mut runs, &socket, peer(0), &data(ours)), None);
        assert_eq!(take(&mut runs, &socket, peer(0), &header(Kind::End, 0, ours ^ 1)), None);
        assert_eq!(take(&mut runs, &socket, peer(0), &data(ours)), None);
        let received = take(&mut runs, &socket, peer(0), &header(Kind::End, 2, ours)).unwrap();
        assert_eq!((received.bytes, received.in_order), (200, true));
        // One source, even with valid tokens, has at most its share of the runs.
        for n in 1..2000 {
            let token = runs.token(peer(n));
            take(&mut runs, &socket, peer(n), &data(token));
        }
        assert_eq!(runs.by_peer.len(), MOST_PER_SOURCE);
        let other = SocketAddr::from(([127, 0, 0, 2], 1));
        let token = runs.token(other);
        take(&mut runs, &socket, other, &data(token));
        assert!(runs.by_peer.contains_key(&other));
    }

    #[test]
    fn a_silent_run_is_forgotten_with_its_source_and_told_unless_it_had_ended() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let mut runs = Runs { key: [1; 16], by_peer: BTreeMap::new(), by_source: BTreeMap::new() };
        let peers = [1, 2].map(|last| SocketAddr::from(([127, 0, 0, last], 1)));
        for peer in peers {
            let token = runs.token(peer);
            take(&mut runs, &socket, peer, &[&header(Kind::Data, 0, token)[..], &[0; 76]].concat());
        }
        let end = header(Kind::End, 1, runs.token(peers[0]));
        assert!(take(&mut runs, &socket, peers[0], &end).is_some());
        assert_eq!(runs.expire(Clock.now()).len(), 0, "nobody is silent yet");
        let told = runs.expire(Clock.now() + SILENCE + Duration::from_secs(1));
        assert_eq!(told.len(), 1, "the other one had its report");
        assert!(told[0].error.is_some());
        assert!(runs.by_peer.is_empty() && runs.by_source.is_empty(), "a source of no run takes no memory");
    }
}
