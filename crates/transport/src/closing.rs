//! The states of a connection, the ways in which it ends, and the answers after its end.
//!
//! RFC 9293, sections 3.6 and 3.8.3. A peer that does not answer is given up after [`PATIENCE`]
//! (the RFC requires at least 100 s). After both ends have closed, late segments are answered for
//! [`TIME_WAIT`]. As on common hosts, this is shorter than the two maximum segment lifetimes of
//! section 3.4.2. Suspect segments are answered with an ACK, at most [`CHALLENGES`] times in
//! [`CHALLENGE_PERIOD`] (RFC 5961, section 7).

use crate::path::Role;
use meshpace_core::{Duration, Time};

/// Time after which a peer that answers nothing is given up.
pub const PATIENCE: Duration = Duration::from_secs(100);
/// Time for which the end that closed first answers late segments.
pub const TIME_WAIT: Duration = Duration::from_secs(60);
/// Largest number of times that a SYN-ACK is sent.
pub const SYN_ACK_ATTEMPTS: u32 = 6;
/// Largest number of ACKs that answer suspect segments in one [`CHALLENGE_PERIOD`].
pub const CHALLENGES: u32 = 10;
/// Time after which the count of these ACKs starts again.
pub const CHALLENGE_PERIOD: Duration = Duration::from_secs(5);

/// The way in which a connection ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// Both ends closed, and everything is acknowledged.
    Closed,
    /// The peer answered the SYN with a reset.
    Refused,
    /// The peer reset the connection.
    Reset,
    /// The peer answered nothing for [`PATIENCE`], or did not answer [`SYN_ACK_ATTEMPTS`] SYN-ACKs.
    TimedOut,
    /// This end reset the connection.
    Aborted,
    /// The peer acknowledged a number that this end has skipped, or echoed a value that this end
    /// never sent. It claims the arrival of data that it cannot have received (RFC 9000, section
    /// 21.4). This end reset the connection.
    Deceived,
}

/// State of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// The connection has not been opened yet.
    Closed,
    /// This end waits for a SYN.
    Listen,
    /// This end has sent a SYN.
    SynSent,
    /// This end has sent a SYN-ACK.
    SynReceived,
    /// Data may flow, until both directions are closed.
    Established,
    /// The connection has ended.
    Ended(End),
}

impl State {
    /// The first state of an end with this role.
    pub fn of(role: Role) -> State {
        match role {
            Role::Sender => State::Closed,
            Role::Receiver => State::Listen,
        }
    }

    /// End of the connection; `None` if it has not ended.
    pub fn end(self) -> Option<End> {
        match self {
            State::Ended(end) => Some(end),
            _ => None,
        }
    }

    /// True while there is a peer that has to be informed of a reset.
    pub fn has_peer(self) -> bool {
        matches!(self, State::SynReceived | State::Established)
    }
}

/// Number of suspect segments that were answered in the current period.
#[derive(Clone, Debug, Default)]
pub struct Challenges {
    count: u32,
    since: Time,
}

impl Challenges {
    /// A suspect segment arrived. Returns whether it may be answered.
    pub fn answers(&mut self, now: Time) -> bool {
        if now.since(self.since) > CHALLENGE_PERIOD {
            *self = Challenges { count: 0, since: now };
        }
        self.count += u32::from(self.count < CHALLENGES + 1);
        self.count <= CHALLENGES
    }
}
