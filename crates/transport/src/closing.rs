//! The states of a connection, how it ends, and what is answered after its end.
//!
//! RFC 9293, sections 3.6 and 3.8.3. A peer that answers nothing is given up after [`PATIENCE`] (at least 100 s are asked for).
//! Late segments, after both ends have closed, are answered for [`TIME_WAIT`], shorter than the two maximum lifetimes of section
//! 3.4.2, as common hosts do. Suspect segments are answered with an ACK, at most [`CHALLENGES`] in [`CHALLENGE_PERIOD`] (RFC
//! 5961, section 7).

use crate::path::Role;
use meshpace_core::{Duration, Time};

/// Time for which a peer may leave everything unanswered.
pub const PATIENCE: Duration = Duration::from_secs(100);
/// Time for which the end that closed first answers late segments.
pub const TIME_WAIT: Duration = Duration::from_secs(60);
/// The most times that a SYN-ACK is sent.
pub const SYN_ACK_ATTEMPTS: u32 = 6;
/// The ACKs that suspect segments may bring about in [`CHALLENGE_PERIOD`].
pub const CHALLENGES: u32 = 10;
/// The time after which they may again.
pub const CHALLENGE_PERIOD: Duration = Duration::from_secs(5);

/// End of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// Both ends closed, everything is acknowledged.
    Closed,
    /// The peer answered the SYN with a reset.
    Refused,
    /// The peer reset the connection.
    Reset,
    /// The peer answered nothing for [`PATIENCE`], or the SYN-ACK [`SYN_ACK_ATTEMPTS`] times.
    TimedOut,
    /// This end reset the connection.
    Aborted,
    /// The peer acknowledged a number that this end has skipped, or an echo that it never sent: it claims the arrival of data that
    /// it cannot have received (RFC 9000, section 21.4). This end reset the connection.
    Deceived,
}

/// State of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// Not opened yet.
    Closed,
    /// Waits for a SYN.
    Listen,
    /// A SYN is out.
    SynSent,
    /// A SYN-ACK is out.
    SynReceived,
    /// Data may flow, until both directions are closed.
    Established,
    /// It is over.
    Ended(End),
}

impl State {
    /// The first state of an end in this role.
    pub fn of(role: Role) -> State {
        match role {
            Role::Sender => State::Closed,
            Role::Receiver => State::Listen,
        }
    }

    /// End of the connection, if it has ended.
    pub fn end(self) -> Option<End> {
        match self {
            State::Ended(end) => Some(end),
            _ => None,
        }
    }

    /// True while there is a peer to be told of a reset.
    pub fn has_peer(self) -> bool {
        matches!(self, State::SynReceived | State::Established)
    }
}

/// Number of suspect segments that were answered lately.
#[derive(Clone, Debug, Default)]
pub struct Challenges {
    count: u32,
    since: Time,
}

impl Challenges {
    /// A suspect segment arrived. Whether it may be answered.
    pub fn answers(&mut self, now: Time) -> bool {
        if now.since(self.since) > CHALLENGE_PERIOD {
            *self = Challenges { count: 0, since: now };
        }
        self.count += u32::from(self.count < CHALLENGES + 1);
        self.count <= CHALLENGES
    }
}
