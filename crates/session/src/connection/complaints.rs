//! Errors that this host or the network reports about a connection's datagrams: errors of the
//! socket, ICMP messages and strays.
//!
//! The rules are those of RFC 5927, applied to UDP. A report counts only if it quotes a datagram of
//! this connection, tag included; the endpoint checks that. Anybody who reads the packets can still
//! forge such a report.
//!
//! Reports that the peer is gone therefore need a confirmation. They end an open connection only if
//! several of them arrive over some time. During that time the peer is probed again and again, and
//! must give no sign of life.
//!
//! Reports that segments are too big end it only if nothing in flight is acknowledged although
//! several segments were sent over as long a time, apart from each other. While a long
//! retransmission timer runs nothing can be acknowledged, and the segment that has just left may
//! still arrive.
//!
//! An MTU is believed only if it is lower than the size of the packets being sent. While a
//! connection opens, an MTU below the least that can be expected of a path is not believed either
//! (RFC 9000, 14.2.1): the segments would stay that small for the life of the connection.

use super::Connection;
use super::path_size::least_path;
use crate::exchange::Exchange;
use crate::failure::{Failure, Reason};
use crate::framing::Framing;
use crate::outbox::Outbox;
use meshpace_core::{Duration, Time};

/// Number of reports about an open connection's datagrams that end it, without a sign of life or
/// progress in between.
const ENOUGH: u8 = 3;

/// Error that this host or the network reports about a datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Report {
    /// Nobody listens at the UDP port of the peer.
    Refused,
    /// The datagram is longer than the path carries.
    TooLong {
        /// Longest IP packet that the path carries, bytes. 0 if the report does not say.
        mtu: u32,
    },
    /// There is no route to the peer's address.
    HostUnreachable,
    /// There is no route to the network of the peer's address.
    NetworkUnreachable,
    /// The operating system reports the error with this number, which the session does not
    /// interpret.
    System(i32),
}

impl Report {
    /// Reason of a connection that fails because of this report.
    fn reason(self) -> Reason {
        match self {
            Report::Refused => Reason::Refused,
            Report::TooLong { .. } => Reason::TooLong,
            Report::HostUnreachable => Reason::HostUnreachable,
            Report::NetworkUnreachable => Reason::NetworkUnreachable,
            Report::System(number) => Reason::System(number),
        }
    }
}

/// Source of a report.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Witness {
    /// This host, which has not sent the datagram.
    Host,
    /// A node on the path, or anybody else, who quotes the datagram.
    Network,
}

/// Least time over which the reports have to arrive, without a sign of life or progress. It is
/// longer than a moving connection is silent between two packets, even where some are lost, and
/// longer than its peer needs to answer a probe.
const DOUBTED: Duration = Duration::from_secs(5);

/// Least interval between two reports of segments that are too big, for both to count. Segments
/// that leave at the same time are lost together, and each one needs time to be acknowledged.
const APART: Duration = Duration(DOUBTED.0 / ENOUGH as u64);

/// Interval between two probes of the peer during that time. Trains answer ten probes in 5 s.
const ASKS_EVERY: Duration = Duration::from_millis(500);

/// Reports of one kind that nothing has contradicted yet.
#[derive(Debug, Default)]
struct Doubt {
    count: u8,
    /// Time of the first of these reports.
    since: Time,
    /// Time of the last of these reports.
    last: Time,
}

impl Doubt {
    /// Counts one more report.
    fn add(&mut self, now: Time) {
        if self.count == 0 {
            self.since = now;
        }
        self.count = self.count.saturating_add(1);
        self.last = now;
    }

    /// True if these reports are enough to end an open connection.
    fn is_enough(&self) -> bool {
        self.count >= ENOUGH && self.last.since(self.since) >= DOUBTED
    }
}

/// Reports that were received.
#[derive(Debug)]
pub(super) struct Complaints {
    /// Reports that the peer is gone, since its last sign of life.
    gone: Doubt,
    /// Reports that segments are too big, since the last progress.
    narrow: Doubt,
    /// Number of acknowledged bytes at the last progress.
    acked: u64,
    /// Number of data segments that had been sent when the last report of too big a segment
    /// arrived.
    left: u64,
    /// Time of the last probe that was sent because of the reports. `None` if there was none.
    asked: Option<Time>,
    /// Time of the next such probe.
    asks_at: Time,
    /// Reason that the network reported last, which a failure names if the silence lasts.
    pub(super) last: Option<Reason>,
}

impl Default for Complaints {
    fn default() -> Complaints {
        let (gone, narrow) = Default::default();
        Complaints { gone, narrow, acked: 0, left: 0, asked: None, asks_at: Time::NEVER, last: None }
    }
}

impl Complaints {
    /// Forgets the reports that the peer is gone, because it gave a sign of life.
    pub(super) fn forget(&mut self) {
        self.gone.count = 0;
        self.asks_at = Time::NEVER;
    }

    /// Time of the first report that the peer is gone which no sign of life has contradicted.
    /// `None` if there is none.
    pub(super) fn doubted(&self) -> Option<Time> {
        (self.gone.count > 0).then_some(self.gone.since)
    }

    /// Counts a report that the peer is gone. Returns whether the reports are enough.
    fn add_gone(&mut self, now: Time) -> bool {
        if self.asks_at == Time::NEVER {
            self.asks_at = self.asked.map_or(now, |asked| now.max(asked + ASKS_EVERY));
        }
        self.gone.add(now);
        self.gone.is_enough()
    }

    /// Handles a report that segments are too big. `acked` is the number of bytes acknowledged so
    /// far, `left` the number of data segments sent, repeated ones included; `is_busy` says whether
    /// data may be in flight.
    ///
    /// The report counts only if another segment has left since the last report, and at least
    /// [`APART`] after the last one that counted. Returns whether the reports before it were
    /// enough.
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

    /// Time at which the peer is to be probed because of the reports.
    pub(super) fn asks_at(&self) -> Time {
        self.asks_at
    }

    /// True if the peer is to be probed now. The time of the next probe is then set.
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
    /// Handles a report about a datagram of ours.
    pub fn on_complaint(
        &mut self,
        now: Time,
        report: Report,
        witness: Witness,
        exchange: &mut Exchange,
        out: &mut Outbox,
    ) {
        let needed = self.longest_packet();
        let opening = exchange.is_opening();
        let least = least_path(self.addresses.peer);
        let mtu = if let Report::TooLong { mtu } = report { mtu } else { 0 };
        let is_doubted = opening && witness == Witness::Network && (1..least).contains(&mtu);
        let mtu = if is_doubted { least } else { mtu };
        if is_doubted && mtu >= needed {
            // The claimed MTU is not believed. If it is true all the same, the peer will not
            // answer, and the failure names this reason.
            self.complaints.last = Some(report.reason());
        }
        if (mtu >= needed && witness == Witness::Network) || (mtu > 0 && self.lower(now, mtu, exchange, out)) {
            return;
        }
        if exchange.failure().is_some() {
            return;
        }
        match report {
            Report::TooLong { .. } => {
                let stats = self.engine.stats();
                let (acked, left) = (stats.acked_bytes, stats.segments_sent);
                // Data that the peer's window has no room for are not acknowledged either, so they
                // are no reason to believe the report.
                let is_busy = self.has_data_under_way();
                if witness == Witness::Network && !opening && !self.complaints.add_narrow(now, acked, left, is_busy) {
                    return;
                }
                // An MTU below the least that paths carry is not believed if the network reports
                // it.
                let believed = if witness == Witness::Network { mtu.max(least) } else { mtu };
                if self.narrow(now, believed) {
                    return self.work(now, exchange, out);
                }
                let mtu = if mtu > 0 { mtu.to_string() } else { "less".to_owned() };
                let message = format!(
                    "segments of {} bytes need an MTU of {needed}, the way to {} has {mtu}: choose smaller ones",
                    self.flow.segment, self.addresses.peer,
                );
                exchange.fail(Failure::new(Reason::TooLong, message));
                self.engine.abort(now);
            }
            Report::Refused => {
                let enough = self.complaints.add_gone(now);
                if self.awaits_final_ack() {
                    // Our stream has arrived. The peer gets a reset only if it is certainly gone:
                    // it may still want to hear the end of our stream.
                    exchange.end();
                    if enough {
                        self.engine.abort(now);
                    }
                } else if opening || enough {
                    let message = format!("nobody listens on UDP port {}", self.addresses.peer);
                    exchange.fail(Failure::new(Reason::Refused, message));
                    self.engine.abort(now);
                }
            }
            Report::HostUnreachable | Report::NetworkUnreachable | Report::System(_) => {
                // There is no route, perhaps only for a while. Some transports use this
                // information.
                if !matches!(report, Report::System(_)) {
                    self.engine.on_route_failure(now);
                }
                let reason = report.reason();
                self.complaints.last = Some(reason);
                if opening {
                    exchange.fail(Failure::new(reason, format!("{}: {reason}", self.addresses.peer)));
                    self.engine.abort(now);
                }
            }
        }
        self.work(now, exchange, out);
    }

    /// The peer's address reports that it does not know the tag we use. Either the peer has
    /// restarted, or somebody who can read our packets lies.
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
            exchange.fail(Failure::new(Reason::Reset, "the peer does not know the connection any more"));
            self.engine.abort(now);
        }
        self.work(now, exchange, out);
    }
}
