//! Size of the datagrams that the path carries, once a connection is open (RFC 8899).
//!
//! The handshake has found out which size passes (`opening`). A path that becomes narrower later and does not say so is a
//! black hole: what is long is lost, and what is short arrives (section 4.3). It is told from other losses as in the handshake:
//! where a retransmission timer expires, and what leaves then is long, an escort leaves behind it, a path challenge of 41 bytes.
//! The long one counts as lost where its escort is answered, as much time again passes, and the timer expires once more with
//! nothing acknowledged. After three such losses in a row (MAX_PROBES, section 5.1.2) datagrams have the next smaller size,
//! that of an IP packet of 1280 bytes and then of 576 (over IPv6 of 1280 alone). Longer segments leave in pieces from
//! then on (`pieces`): their length cannot change any more, since TPA counts them by blocks.
//!
//! Then three probes, each as long as the datagram of a full segment and without data, ask whether the path carries that all the
//! same, and one every 600 s (PMTU_RAISE_TIMER) asks whether it does by now. Nothing waits behind them.
//!
//! All of this needs encryption. An answer counts only if it repeats an unpredictable number that the peer alone can read, so nobody else
//! makes datagrams smaller by forging. The peer itself can: it then gets pieces no shorter than those of the least size, and
//! has this end send no more segments than the transport lets it.

use super::{Connection, Stage};
use crate::tpa::session::exchange::Exchange;
use crate::tpa::session::framing::{Framing, headers_to, overhead};
use crate::tpa::session::outbox::Outbox;
use crate::tpa::session::path_frame::PathFrame;
use crate::tpa::session::pieces::Assembly;
use meshpace_core::{Duration, Time};
use std::net::SocketAddr;

/// MTUs that paths have where larger packets are lost: IPv6's least (RFC 8200, 5), and IPv4's least to be expected (RFC 791, 3.1).
pub(super) const SMALLER_PATHS: [u32; 2] = [1280, 576];

/// Long datagrams that were lost although short ones behind them were not, after which the path is taken for narrower (RFC
/// 8899, section 5.1.2: MAX_PROBES).
pub(super) const LOST: u8 = 3;

/// Interval between the first probes, and their number (RFC 8899, section 5.1: PROBE_TIMER, not below 1 s, and MAX_PROBES).
const PROBE: Duration = Duration::from_secs(2);
const PROBES: u8 = 3;

/// Interval at which it is asked later whether the path has become wider (RFC 8899, section 5.1.1: PMTU_RAISE_TIMER).
const RAISE: Duration = Duration::from_secs(600);

/// The least MTU to be expected of a path to `peer`, bytes.
pub(super) fn least_path(peer: SocketAddr) -> u32 {
    SMALLER_PATHS[usize::from(peer.is_ipv4())]
}

/// Time after which an escort without an answer is taken for lost, and no less between two that count.
const LATE: Duration = Duration::from_secs(1);
const APART: Duration = Duration::from_millis(50);

/// A challenge behind a long datagram.
#[derive(Clone, Copy, Debug)]
struct Escort {
    challenge: u64,
    sent: Time,
    /// Time that the answer took; `None` as long as there is none.
    answered: Option<Duration>,
}

impl Escort {
    /// True if another one may leave at `now`, since this one has shown what it can.
    fn is_done(&self, now: Time) -> bool {
        let wait = self.answered.map_or(LATE, |took| Duration(took.0.saturating_mul(2)) + APART);
        now.since(self.sent) >= wait
    }
}

/// Size of the path as far as it is known, and the search for it.
#[derive(Debug, Default)]
pub(super) struct PathSize {
    /// Longest IP packet that the path was found to carry, bytes; `None` while nothing says that it drops any.
    pub(super) packet: Option<u32>,
    /// Longest datagram that leaves whole, bytes of UDP payload; `None` if all do.
    limit: Option<usize>,
    /// Offset up to which the peer has acknowledged, and time-outs that the transport had counted when it was last looked.
    acknowledged: u64,
    timeouts: u64,
    /// Escort of the last long datagram since anything was acknowledged.
    escort: Option<Escort>,
    /// Long datagrams that were lost since then although their escorts were not.
    lost: u8,
    /// Number of the challenge in the last probe, and the time of the next one.
    probe: Option<u64>,
    probes_at: Time,
    /// Probes that still leave one soon after the other.
    probes: u8,
    /// Pieces of the peer's segments.
    assembly: Option<Assembly>,
}

impl PathSize {
    /// Longest datagram that may leave whole.
    pub(super) fn limit(&self) -> Option<usize> {
        self.limit
    }

    /// The path is another from now on: whether it is wider is asked soon.
    pub(super) fn on_moved(&mut self, now: Time) {
        (self.escort, self.lost, self.probes_at, self.probes) = (None, 0, now, PROBES);
    }
}

impl Connection {
    /// Longest IP packet that leaves now, bytes.
    pub(super) fn longest_packet(&self) -> u32 {
        let whole = self.flow.segment as u32 + self.headers();
        self.size.limit.map_or(whole, |limit| whole.min(limit as u32 + self.ip_and_udp()))
    }

    /// Bytes of a datagram besides the payload, with IP's header and UDP's.
    pub(super) fn headers(&self) -> u32 {
        headers_to(self.addresses.peer, self.settings.security.protection())
    }

    fn ip_and_udp(&self) -> u32 {
        self.headers() - overhead(self.settings.security.protection())
    }

    /// Datagrams have left, the longest of them with `longest` bytes. Looks for a black hole, and for a wider path.
    pub(super) fn watch_size(&mut self, now: Time, longest: usize, out: &mut Outbox) {
        let (acknowledged, timeouts) = (self.engine.acknowledged(), self.engine.stats().timeouts);
        let size = &mut self.size;
        if acknowledged != size.acknowledged {
            (size.acknowledged, size.timeouts, size.lost, size.escort) = (acknowledged, timeouts, 0, None);
        }
        let least = least_path(self.addresses.peer) as usize;
        let is_long = longest + self.ip_and_udp() as usize > least;
        let whole = self.flow.segment + overhead(self.settings.security.protection()) as usize;
        let size = &mut self.size;
        let Stage::Open(framing) = &mut self.stage else { return };
        if !framing.is_sealed() || longest == 0 {
            return;
        }
        if is_long && timeouts > size.timeouts && size.escort.is_none_or(|escort| escort.is_done(now)) {
            size.timeouts = timeouts;
            let is_lost = size.escort.is_some_and(|escort| escort.answered.is_some());
            size.lost = size.lost.saturating_add(u8::from(is_lost));
            if size.lost >= LOST {
                return self.narrow_by_a_step(now);
            }
            let challenge = self.own.unpredictable.draw();
            size.escort = Some(Escort { challenge, sent: now, answered: None });
            // In a message of its own: it must not share the fate of what is long.
            out.seal();
            framing.push_path(self.addresses, self.addresses.peer, PathFrame::Challenge(challenge), out);
            out.seal();
        }
        if size.limit.is_some() && now >= size.probes_at {
            let challenge = self.own.unpredictable.draw();
            size.probes = size.probes.saturating_sub(1);
            size.probe = Some(challenge);
            size.probes_at = now.saturating_add(if size.probes > 0 { PROBE } else { RAISE });
            framing.push_probe(self.addresses, whole, challenge, out);
        }
    }

    /// The peer answers the challenge with this number, from its address.
    pub(super) fn on_size_response(&mut self, now: Time, number: u64) {
        if self.size.probe == Some(number) {
            (self.size.probe, self.size.limit, self.size.packet) = (None, None, None);
        } else if let Some(escort) = &mut self.size.escort
            && escort.challenge == number
        {
            escort.answered.get_or_insert(now.since(escort.sent));
        }
    }

    /// The path drops what is as long as what leaves now: the next smaller size is taken, if there is one.
    fn narrow_by_a_step(&mut self, now: Time) {
        let longest = self.longest_packet();
        if let Some(mtu) = SMALLER_PATHS.into_iter().find(|mtu| *mtu < longest) {
            self.narrow(now, mtu);
        }
    }

    /// The path carries IP packets of `mtu` bytes at most; whether this end can do with that.
    pub(super) fn narrow(&mut self, now: Time, mtu: u32) -> bool {
        let is_sealed = self.stage.framing().is_some_and(Framing::is_sealed);
        let may = is_sealed && self.settings.fit_mtu;
        if !may || mtu >= self.longest_packet() || mtu < least_path(self.addresses.peer) {
            return false;
        }
        let limit = mtu.saturating_sub(self.ip_and_udp()) as usize;
        let size = &mut self.size;
        (size.limit, size.packet) = (Some(limit), Some(mtu));
        (size.escort, size.lost, size.probe) = (None, 0, None);
        (size.probes, size.probes_at) = (PROBES, now.saturating_add(PROBE));
        // What waits for a long timer leaves again soon.
        let now = self.tell_time(now);
        self.engine.on_peer_moved(now);
        self.engine_at = self.engine_at.min(now);
        true
    }

    /// A piece of a segment that the peer sent, in a datagram that arrived with `ttl`.
    pub(crate) fn on_piece(&mut self, now: Time, piece: &[u8], ttl: u8, exchange: &mut Exchange, out: &mut Outbox) {
        let assembly = self.size.assembly.get_or_insert_with(|| Assembly::new(exchange.account.clone()));
        let Some(whole) = assembly.add(piece) else { return };
        if let Some((segment, payload)) = self.engine.read(&whole) {
            self.on_opened(now, (&segment, payload), ttl, exchange, out);
        }
    }
}
