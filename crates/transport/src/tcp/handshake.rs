//! The handshake of a connection: the SYN or SYN-ACK of this end, the number of times it was sent,
//! and the options agreed on.
//!
//! RFC 9293, section 3.5. The retransmission timer repeats a SYN. A timer that doubles repeats a
//! SYN-ACK, which is sent at most [`SYN_ACK_ATTEMPTS`](crate::closing::SYN_ACK_ATTEMPTS) times.
//! Under [`Profile::Ns2`](super::Profile) a SYN-ACK is repeated only when the SYN arrives again.

use meshpace_core::{Duration, Time};

/// Agreement that results from the options of the two SYNs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Agreed {
    /// Payload bytes of a full segment that both ends and the path accept, with the options
    /// subtracted; 1 or more.
    pub segment: u32,
    /// Whether segments carry time stamps (RFC 7323, section 3).
    pub timestamps: bool,
    /// Selective acknowledgements (RFC 2018, section 2). If they are agreed on, this end reports
    /// blocks. It uses the blocks of the peer only if its own configuration has selective
    /// acknowledgements too.
    pub sack: bool,
}

/// Next segment of the handshake.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Due {
    /// No segment is due.
    Nothing,
    /// The SYN, or the SYN-ACK of an end that listens.
    Syn,
    /// The ACK of the SYN-ACK. It is carried by data that is about to leave, if there is any.
    Ack,
}

/// State of the handshake.
#[derive(Clone, Debug)]
pub struct Handshake {
    /// The segment that is due.
    pub due: Due,
    /// Time at which our SYN or SYN-ACK was first sent.
    pub sent_at: Time,
    /// Number of times that the SYN or SYN-ACK was sent.
    pub times: u32,
    /// Time after which a SYN-ACK is sent for the second time.
    timeout: Duration,
}

impl Handshake {
    /// Creates the state before any segment is sent. A SYN-ACK waits for `timeout` before it is
    /// sent again.
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

    /// Time for which the SYN-ACK that was just sent waits for an answer.
    pub fn syn_ack_timeout(&self) -> Duration {
        self.timeout * (1 << (self.times.max(1) - 1).min(6))
    }
}
