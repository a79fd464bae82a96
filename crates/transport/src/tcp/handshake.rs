//! The handshake of a connection: the SYN or SYN-ACK of this end, how often it was sent, and what the options agree on.
//!
//! RFC 9293, section 3.5. A SYN is repeated by the retransmission timer, a SYN-ACK by a doubling one, at most
//! [`SYN_ACK_ATTEMPTS`](crate::closing::SYN_ACK_ATTEMPTS) times; under [`Profile::Ns2`](super::Profile) only when the SYN comes again.

use meshpace_core::{Duration, Time};

/// Result of the options of the two SYNs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Agreed {
    /// Payload of a full segment that both ends and the path take, in bytes, options subtracted; 1 or more.
    pub segment: u32,
    /// Time stamps (RFC 7323, section 3).
    pub timestamps: bool,
    /// Selective acknowledgements (RFC 2018, section 2). This end reports them if agreed, and uses the peer's if its own
    /// configuration says so too.
    pub sack: bool,
}

/// Next segment of the handshake.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Due {
    /// Nothing.
    Nothing,
    /// The SYN, or the SYN-ACK of an end that listens.
    Syn,
    /// The ACK of the SYN-ACK, which waits for data that is about to leave.
    Ack,
}

/// State of the handshake.
#[derive(Clone, Debug)]
pub struct Handshake {
    /// Segment that is due.
    pub due: Due,
    /// Time at which our SYN or SYN-ACK was sent first.
    pub sent_at: Time,
    /// Number of times that it was sent.
    pub times: u32,
    /// The time after which a SYN-ACK is sent again for the first time.
    timeout: Duration,
}

impl Handshake {
    /// Nothing sent yet; a SYN-ACK waits `timeout` for its answer.
    pub fn new(timeout: Duration) -> Handshake {
        Handshake { due: Due::Nothing, sent_at: Time::ZERO, times: 0, timeout }
    }

    /// Our SYN or SYN-ACK leaves.
    pub fn on_sent(&mut self, now: Time) {
        self.due = Due::Nothing;
        if self.times == 0 {
            self.sent_at = now;
        }
        self.times += 1;
    }

    /// Time for which a SYN-ACK that has just left waits for its answer.
    pub fn syn_ack_timeout(&self) -> Duration {
        self.timeout * (1 << (self.times.max(1) - 1).min(6))
    }
}
