//! Size of the datagrams that the path carries, once a connection is open (RFC 8899).
//!
//! The handshake has found out which size passes (`opening`). A path that becomes narrower later
//! and does not report it is a black hole: long datagrams are lost and short ones arrive (section
//! 4.3). The search for a black hole begins when a retransmission timer expires and a long datagram
//! leaves: an escort, a path challenge of 41 bytes, leaves behind it. The long datagram counts as
//! lost if its escort is answered, as much time again passes, and the timer expires once more with
//! nothing acknowledged.
//!
//! After three such losses in a row (MAX_PROBES, section 5.1.2) datagrams have the next smaller
//! size: that of an IP packet of 1280 bytes, and then of 576 (over IPv6 of 1280 alone). Longer
//! segments leave in pieces from then on (`pieces`). Their length cannot change any more, since TPA
//! counts them by blocks.
//!
//! Then three probes check whether the path carries full segments after all. Each is as long as the
//! datagram of a full segment and has no data. Later one probe every 600 s (PMTU_RAISE_TIMER)
//! checks whether the path has become wider. Nothing waits behind the probes.
//!
//! The search and the probes need encryption. An answer counts only if it repeats an unpredictable
//! number that the peer alone can read, so nobody else can make datagrams smaller by forging
//! answers. The peer itself can. It then gets pieces no shorter than those of the least size, and
//! this end sends no more segments than the transport allows.

use super::{Connection, Stage};
use crate::exchange::Exchange;
use crate::framing::{Framing, headers_to, overhead};
use crate::outbox::Outbox;
use crate::path_frame::PathFrame;
use crate::pieces::Assembly;
use meshpace_core::{Duration, Time};
use std::net::SocketAddr;

/// MTUs of paths that lose larger packets: the least MTU of IPv6 (RFC 8200, 5), and the least to be
/// expected of IPv4 (RFC 791, 3.1).
pub(super) const SMALLER_PATHS: [u32; 2] = [1280, 576];

/// Number of lost long datagrams, whose escorts were not lost, after which the path counts as
/// narrower (RFC 8899, section 5.1.2: MAX_PROBES).
pub(super) const LOST: u8 = 3;

/// Interval between the first probes (RFC 8899, section 5.1: PROBE_TIMER, not below 1 s).
const PROBE: Duration = Duration::from_secs(2);
/// Number of the first probes (RFC 8899, section 5.1: MAX_PROBES).
const PROBES: u8 = 3;

/// Interval of the later probes, which check whether the path has become wider (RFC 8899, section
/// 5.1.1: PMTU_RAISE_TIMER).
const RAISE: Duration = Duration::from_secs(600);

/// The least MTU to be expected of a path to `peer`, bytes.
pub(super) fn least_path(peer: SocketAddr) -> u32 {
    SMALLER_PATHS[usize::from(peer.is_ipv4())]
}

/// Time after which an escort without an answer counts as lost.
const LATE: Duration = Duration::from_secs(1);
/// Least interval between two escorts that count.
const APART: Duration = Duration::from_millis(50);

/// A path challenge behind a long datagram.
#[derive(Clone, Copy, Debug)]
struct Escort {
    challenge: u64,
    sent: Time,
    /// Time that the answer took. `None` while there is no answer.
    answered: Option<Duration>,
}

impl Escort {
    /// True if another escort may leave at `now`, because this one has shown whatever it can show.
    fn is_done(&self, now: Time) -> bool {
        let wait = self.answered.map_or(LATE, |took| Duration(took.0.saturating_mul(2)) + APART);
        now.since(self.sent) >= wait
    }
}

/// Size that the path is known to carry, and state of the search for it.
#[derive(Debug, Default)]
pub(super) struct PathSize {
    /// Longest IP packet that the path was found to carry, bytes. `None` while nothing indicates
    /// that the path drops any.
    pub(super) packet: Option<u32>,
    /// Longest datagram that leaves whole, bytes of UDP payload. `None` if all datagrams do.
    limit: Option<usize>,
    /// Offset up to which the peer had acknowledged at the last check.
    acknowledged: u64,
    /// Number of the transport's retransmission time-outs that have been taken into account.
    timeouts: u64,
    /// Escort of the last long datagram since anything was acknowledged.
    escort: Option<Escort>,
    /// Number of long datagrams lost since then although their escorts were not.
    lost: u8,
    /// Number of the path challenge in the last probe. `None` if it needs no answer any more.
    probe: Option<u64>,
    /// Time of the next probe.
    probes_at: Time,
    /// Number of probes that still leave at the short interval.
    probes: u8,
    /// Reassembly of the pieces of the peer's segments.
    assembly: Option<Assembly>,
}

impl PathSize {
    /// Longest datagram that may leave whole, bytes of UDP payload. `None` if all may.
    pub(super) fn limit(&self) -> Option<usize> {
        self.limit
    }

    /// Notes that the connection uses another path from now on. Probes soon check whether that path
    /// is wider.
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

    /// Bytes of a datagram without the payload, including the headers of IP and UDP.
    pub(super) fn headers(&self) -> u32 {
        headers_to(self.addresses.peer, self.settings.security.protection())
    }

    fn ip_and_udp(&self) -> u32 {
        self.headers() - overhead(self.settings.security.protection())
    }

    /// Looks for a black hole, and for a wider path, after datagrams have left. The longest of them
    /// has `longest` bytes.
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
        let is_due = is_long && timeouts > size.timeouts && size.escort.is_none_or(|escort| escort.is_done(now));
        if is_due && self.roaming.admits_challenge(now) {
            size.timeouts = timeouts;
            let is_lost = size.escort.is_some_and(|escort| escort.answered.is_some());
            size.lost = size.lost.saturating_add(u8::from(is_lost));
            if size.lost >= LOST {
                return self.narrow_by_a_step(now);
            }
            let challenge = self.own.unpredictable.draw();
            size.escort = Some(Escort { challenge, sent: now, answered: None });
            // The escort leaves in a message of its own, so that it does not share the fate of the
            // long datagram.
            out.seal();
            framing.push_path(self.addresses, self.addresses.peer, PathFrame::Challenge(challenge), out);
            out.seal();
        }
        if size.limit.is_some() && now >= size.probes_at && self.roaming.admits_challenge(now) {
            let challenge = self.own.unpredictable.draw();
            size.probes = size.probes.saturating_sub(1);
            size.probe = Some(challenge);
            size.probes_at = now.saturating_add(if size.probes > 0 { PROBE } else { RAISE });
            framing.push_probe(self.addresses, whole, challenge, out);
        }
    }

    /// Handles the peer's response to the challenge with this number. The response came from the
    /// peer's address.
    pub(super) fn on_size_response(&mut self, now: Time, number: u64) {
        if self.size.probe == Some(number) {
            (self.size.probe, self.size.limit, self.size.packet) = (None, None, None);
        } else if let Some(escort) = &mut self.size.escort
            && escort.challenge == number
        {
            escort.answered.get_or_insert(now.since(escort.sent));
        }
    }

    /// Chooses the next smaller size, if there is one, because the path drops datagrams as long as
    /// those that leave now.
    fn narrow_by_a_step(&mut self, now: Time) {
        let longest = self.longest_packet();
        if let Some(mtu) = SMALLER_PATHS.into_iter().find(|mtu| *mtu < longest) {
            self.narrow(now, mtu);
        }
    }

    /// Limits datagrams to IP packets of `mtu` bytes, the most that the path carries. Returns
    /// whether this end can work with that.
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
        // Segments that wait for a long retransmission timer are sent again soon.
        let now = self.tell_time(now);
        self.engine.on_peer_moved(now);
        self.engine_at = self.engine_at.min(now);
        true
    }

    /// Handles a piece of a segment that the peer sent, in a datagram that arrived with IP time to
    /// live `ttl`.
    pub fn on_piece(&mut self, now: Time, piece: &[u8], ttl: u8, exchange: &mut Exchange, out: &mut Outbox) {
        let assembly = self.size.assembly.get_or_insert_with(|| Assembly::new(exchange.account.clone()));
        let Some(whole) = assembly.add(piece) else { return };
        if let Some((segment, payload)) = self.engine.read(&whole) {
            self.on_opened(now, (&segment, payload), ttl, exchange, out);
        }
    }
}
