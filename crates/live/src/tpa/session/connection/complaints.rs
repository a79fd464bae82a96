//! Complaints of the network about a connection's datagrams.
//!
//! RFC 5927's rules for UDP: a complaint counts only if it quotes a datagram of this connection, tag included (the endpoint looks). Whoever
//! reads the packets can forge that much. So an open connection ends by complaints only if several come over a time in which the peer,
//! asked again and again for a sign of life, gives none; and for segments that are too big only if nothing of what is under way is acknowledged
//! although several left over as long a time, apart from each other: while a long retransmission timer runs nothing can be, and the segment that has just left
//! may still arrive. An MTU is believed only if it is lower than what is being sent, and while a connection opens none that is less than
//! can be expected of a path (RFC 9000, 14.2.1): its segments would stay that small for as long as it lives.

use super::Connection;
use super::path_size::least_path;
use crate::tpa::session::exchange::Exchange;
use crate::tpa::session::failure::Failure;
use crate::tpa::session::framing::Framing;
use crate::tpa::session::outbox::Outbox;
use meshpace_core::{Duration, Time};
use nix::libc;

/// Complaints about an open connection's datagrams without a sign of life, or of progress, in between that end it.
const ENOUGH: u8 = 3;

/// Source of a complaint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Witness {
    /// This host, which has not sent it.
    Host,
    /// Somebody on the way, who quotes it.
    Network,
}

/// Least time over which they have to come, without a sign of life or progress: longer than a connection that moves is silent between two packets,
/// also where some are lost, and than its peer needs to answer a question.
const DOUBTED: Duration = Duration::from_secs(5);

/// Those about segments that are too big count no more often: what leaves at the same time is lost together, and each has time to be acknowledged.
const APART: Duration = Duration(DOUBTED.0 / ENOUGH as u64);

/// Interval at which the peer is asked for a sign of life in that time: trains answer ten questions in 5 s.
const ASKS_EVERY: Duration = Duration::from_millis(500);

/// Complaints of one kind that nothing has contradicted yet.
#[derive(Debug, Default)]
struct Doubt {
    count: u8,
    /// When the first of them came, and the last.
    since: Time,
    last: Time,
}

impl Doubt {
    /// One more.
    fn add(&mut self, now: Time) {
        if self.count == 0 {
            self.since = now;
        }
        self.count = self.count.saturating_add(1);
        self.last = now;
    }

    /// True if these are enough to end an open connection.
    fn is_enough(&self) -> bool {
        self.count >= ENOUGH && self.last.since(self.since) >= DOUBTED
    }
}

/// Complaints that were heard.
#[derive(Debug)]
pub(super) struct Complaints {
    /// That the peer is not there, since its last sign of life.
    gone: Doubt,
    /// That segments are too big, since the last progress.
    narrow: Doubt,
    /// Bytes that had been acknowledged by then.
    acked: u64,
    /// Data segments that had left when the last such complaint came.
    left: u64,
    /// When the peer was last asked for a sign of life because of them, and when it is asked again.
    asked: Option<Time>,
    asks_at: Time,
    /// Errno of the last complaint of the network, in case the silence lasts.
    pub(super) last: Option<i32>,
}

impl Default for Complaints {
    fn default() -> Complaints {
        let (gone, narrow) = Default::default();
        Complaints { gone, narrow, acked: 0, left: 0, asked: None, asks_at: Time::NEVER, last: None }
    }
}

impl Complaints {
    /// The peer gave a sign of life.
    pub(super) fn forget(&mut self) {
        self.gone.count = 0;
        self.asks_at = Time::NEVER;
    }

    /// Since when somebody says so without the peer having been heard; none if nobody does.
    pub(super) fn doubted(&self) -> Option<Time> {
        (self.gone.count > 0).then_some(self.gone.since)
    }

    /// One more that the peer is not there; whether these are enough.
    fn add_gone(&mut self, now: Time) -> bool {
        if self.asks_at == Time::NEVER {
            self.asks_at = self.asked.map_or(now, |asked| now.max(asked + ASKS_EVERY));
        }
        self.gone.add(now);
        self.gone.is_enough()
    }

    /// One more, about segments that are too big, when so many bytes have been acknowledged, so many data segments have left, again or not,
    /// and some may be under way; whether those of before are enough. Only one counts of those that come before another segment has left, and in [`APART`].
    fn add_narrow(&mut self, now: Time, acked: u64, left: u64, is_busy: bool) -> bool {
        if acked != self.acked || !is_busy {
            (self.acked, self.left, self.narrow.count) = (acked, left, 0);
        }
        let is_apart = self.narrow.count == 0 || now.since(self.narrow.last) >= APART;
        let is_of_another = left > self.left && is_apart;
        self.left = left;
        let enough = is_of_another && self.narrow.is_enough();
        if is_of_another {
            self.narrow.add(now);
        }
        enough
    }

    /// When the peer is to be asked for a sign of life because of them.
    pub(super) fn asks_at(&self) -> Time {
        self.asks_at
    }

    /// True if the peer is to be asked for a sign of life now; the time of the next question is then set.
    pub(super) fn ask(&mut self, now: Time) -> bool {
        let asks = now >= self.asks_at;
        if asks {
            let is_doubted = now.since(self.gone.since) < DOUBTED;
            self.asks_at = if is_doubted { now + ASKS_EVERY } else { Time::NEVER };
            self.asked = Some(now);
        }
        asks
    }
}

impl Connection {
    /// A datagram of ours met the error `errno`; `mtu` is what the way carries, 0 if nobody says.
    pub fn on_complaint(
        &mut self,
        now: Time,
        (errno, mtu): (i32, u32),
        witness: Witness,
        exchange: &mut Exchange,
        out: &mut Outbox,
    ) {
        let needed = self.longest_packet();
        let opening = exchange.is_opening();
        let least = least_path(self.addresses.peer);
        let is_doubted = opening && witness == Witness::Network && (1..least).contains(&mtu);
        let mtu = if is_doubted { least } else { mtu };
        if is_doubted && mtu >= needed {
            // If it is true all the same, nobody answers, and this is why.
            self.complaints.last = Some(errno);
        }
        if errno == libc::EMSGSIZE
            && ((mtu >= needed && witness == Witness::Network) || (mtu > 0 && self.lower(now, mtu, exchange, out)))
        {
            return;
        }
        if exchange.failure().is_some() {
            return;
        }
        match errno {
            libc::EMSGSIZE => {
                let stats = self.engine.stats();
                let (acked, left) = (stats.acked_bytes, stats.segments_sent);
                // Whose reader is slow acknowledges nothing either.
                let is_busy = self.has_data_under_way();
                if witness == Witness::Network && !opening && !self.complaints.add_narrow(now, acked, left, is_busy) {
                    return;
                }
                // Of the network nobody believes that it carries less than paths do.
                let believed = if witness == Witness::Network { mtu.max(least) } else { mtu };
                if self.narrow(now, believed) {
                    return self.work(now, exchange, out);
                }
                let mtu = if mtu > 0 { mtu.to_string() } else { "less".to_owned() };
                let message = format!(
                    "segments of {} bytes need an MTU of {needed}, the way to {} has {mtu}: choose smaller ones",
                    self.flow.segment, self.addresses.peer,
                );
                exchange.fail(Failure::new(libc::EMSGSIZE, message));
                self.engine.abort(now);
            }
            libc::ECONNREFUSED => {
                let enough = self.complaints.add_gone(now);
                if self.awaits_final_ack() {
                    // Ours is done. The peer is told that it is over only if that is sure: it may still want to hear our end.
                    exchange.end();
                    if enough {
                        self.engine.abort(now);
                    }
                } else if opening || enough {
                    let message = format!("nobody listens on UDP port {}", self.addresses.peer);
                    exchange.fail(Failure::new(libc::ECONNREFUSED, message));
                    self.engine.abort(now);
                }
            }
            _ => {
                // No route, or none for a while. Some transports want to know.
                if matches!(errno, libc::EHOSTUNREACH | libc::ENETUNREACH) {
                    self.engine.on_route_failure(now);
                }
                self.complaints.last = Some(errno);
                if opening {
                    let reason = std::io::Error::from_raw_os_error(errno);
                    exchange.fail(Failure::new(errno, format!("{}: {reason}", self.addresses.peer)));
                    self.engine.abort(now);
                }
            }
        }
        self.work(now, exchange, out);
    }

    /// The peer's address says that it does not know the tag we use: the peer has begun anew, or somebody who can read our
    /// packets lies.
    pub fn on_stray(&mut self, now: Time, exchange: &mut Exchange, out: &mut Outbox) {
        if exchange.failure().is_some() || self.engine.is_done() {
            return;
        }
        let enough = self.complaints.add_gone(now);
        let sealed = self.stage.framing().is_some_and(Framing::is_sealed);
        let is_sure = !sealed || enough;
        if self.awaits_final_ack() {
            exchange.end();
            if is_sure {
                self.engine.abort(now);
            }
        } else if is_sure {
            exchange.fail(Failure::new(libc::ECONNRESET, "the peer does not know the connection any more"));
            self.engine.abort(now);
        }
        self.work(now, exchange, out);
    }
}
