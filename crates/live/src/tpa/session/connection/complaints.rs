//! What the network says about a connection's datagrams.
//!
//! RFC 5927's rules for UDP: a complaint counts only if it quotes a datagram of this connection, tag included (the endpoint looks), and
//! an open connection ends by complaints only if several come and nothing else does. An MTU is believed only if it is lower
//! than what is being sent.

use super::Connection;
use crate::tpa::session::cover::{Cover, headers_to};
use crate::tpa::session::exchange::Exchange;
use crate::tpa::session::failure::Failure;
use crate::tpa::session::outbox::Outbox;
use meshpace_core::Time;
use nix::libc;

/// Complaints about an open connection's datagrams without a sign of life, or of progress, in between that end it.
const ENOUGH: u8 = 3;

/// Who complains.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Witness {
    /// This host, which has not sent it.
    Host,
    /// Somebody on the way, who quotes it.
    Network,
}

/// What was heard.
#[derive(Debug, Default)]
pub(super) struct Complaints {
    /// Since the last sign of life, or of progress.
    count: u8,
    /// What the network last complained about, as errno, in case the silence lasts.
    pub(super) last: Option<i32>,
    /// Bytes that had been acknowledged when the network last said that segments are too big.
    acked: u64,
}

impl Complaints {
    /// The peer gave a sign of life.
    pub(super) fn forget(&mut self) {
        self.count = 0;
    }

    /// One more; whether these are enough to end an open connection.
    fn add(&mut self) -> bool {
        self.count = self.count.saturating_add(1);
        self.count >= ENOUGH
    }

    /// One more, about segments that are too big, when so many bytes have been acknowledged; whether these are enough.
    fn add_narrow(&mut self, acked: u64) -> bool {
        if acked != self.acked {
            (self.acked, self.count) = (acked, 0);
        }
        self.add()
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
        let needed = self.flow.segment as u32 + headers_to(self.addresses.peer, self.settings.security.protection());
        if errno == libc::EMSGSIZE
            && ((mtu >= needed && witness == Witness::Network) || (mtu > 0 && self.lower(now, mtu, exchange, out)))
        {
            return;
        }
        if exchange.failure().is_some() {
            return;
        }
        let opening = exchange.is_opening();
        match errno {
            libc::EMSGSIZE => {
                let acked = self.engine.stats().acked_bytes;
                if witness == Witness::Network && !opening && !self.complaints.add_narrow(acked) {
                    return;
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
                let enough = self.complaints.add();
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
        let enough = self.complaints.add();
        let sealed = self.stage.cover().is_some_and(Cover::is_sealed);
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
