//! Quiet trains: a transport that sends a train of paced segments and is then silent until the ACK
//! of the last segment arrives. docs/terms.md defines train and TAIL. The *floor* is the least
//! interval between two segments that the path allows. A *claim* is a share of the path that a
//! sender takes beside others that do not yield.
//!
//! This is a design of this project, described in docs/quiet-trains.md; no paper describes it. On a
//! path of several 802.11 hops, ACKs cost the channel as much as a third of what data cost. Jitter
//! also builds up until a collision of hidden stations looks like a broken route. With quiet
//! trains, data and ACKs do not meet: the path is empty when the ACK travels, and every train
//! begins on an empty path.
//!
//! - `sender` sends trains and retransmits missing segments, `receiver` decides when to
//!   acknowledge.
//! - `estimator` measures the path, `control` computes the interval between segments.
//! - `access` groups segments where links aggregate packets.
//! - `company` leaves half of the path to a neighbour that was detected.
//! - `competition` detects senders that fill queues.
//! - `connection` opens and closes as TCP does.
//! - `solo` is the form for receivers that do not know quiet trains: a pacing of TCP.

pub mod access;
pub mod company;
pub mod competition;
pub mod connection;
pub mod contention;
pub mod control;
pub mod datagram;
pub mod echoes;
pub mod estimator;
pub mod lossy_links;
pub mod peer_clock;
pub mod receiver;
pub mod segment;
pub mod sender;
pub mod skew;
pub mod solo;
pub mod stream;
pub mod timeout;
pub mod wire;

pub use access::Access;
pub use connection::Connection;
pub use segment::{Feedback, Segment};

use crate::about::Named;
use alloc::string::String;
use meshpace_core::parameter::require;
use meshpace_core::{Duration, parameters};

/// Kind of program that a connection belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Profile {
    /// As agents of a simulator do: the application takes arriving data at once. An end that
    /// listened and has written nothing closes as soon as its peer has. No peer is ever given up,
    /// and late segments are answered without end.
    Agent,
    /// As RFC 9293 asks of a host.
    Host,
}

parameters! {
    /// Parameters of a connection; both ends need the same `segment`.
    #[derive(Clone, PartialEq, Debug)]
    pub struct Config {
        /// how long a receiver waits for more segments before it sends an ACK
        ack_timer: Duration = Duration::from_millis(400) => TIME.above(0.0), Expert;
    }
    parts {
        /// Interval and length of a train.
        control: control::Config = control::Config::default();
        /// Estimates of the path.
        estimator: estimator::Config = estimator::Config::default();
        /// The retransmission timer.
        timeout in rto: timeout::Config = timeout::Config::default();
    }
    others {
        /// Whose conversation it is. Default that of agents.
        profile: Profile = Profile::Agent;
        /// Payload of a full segment in bytes, 1..=65495. Default 1460.
        segment: u32 = 1460;
        /// Receive window in segments, 1..=65535. Default 64.
        max_window: u16 = 64;
    }
    also |config| require((1..=65495).contains(&config.segment), "segment", config.segment, "1 to 65495 bytes")
        .and(require(config.max_window >= 1, "max_window", config.max_window, "1 to 65535 segments"));
}

/// Quiet trains.
pub const QUIET_TRAIN: Named<Config> = Named {
    name: "quiet-train",
    description: "trains of paced segments with silence between them, one ACK per train; both ends must support it",
    source: "docs/quiet-trains.md",
    config: Config::default,
};
/// Quiet trains that keep their share beside senders that fill queues, and on links that lose
/// frames.
pub const QUIET_TRAIN_COMPETITIVE: Named<Config> = Named {
    name: "quiet-train+competitive",
    description: "quiet trains that tolerate more delay while most trains lose segments; for use beside NewReno or CUBIC, and on lossy links",
    source: "docs/quiet-trains.md",
    config: Config::competing,
};
/// Quiet trains that claim half of the path beside senders that keep queues full.
pub const QUIET_TRAIN_CONTENDING: Named<Config> = Named {
    name: "quiet-train+contending",
    description: "quiet trains that claim half of the path while yielding does not end a delay; for use beside NewReno or CUBIC",
    source: "docs/quiet-trains.md",
    config: Config::contending,
};
/// Quiet trains that react to congestion marks, for links with a marker.
pub const QUIET_TRAIN_MARKS: Named<Config> = Named {
    name: "quiet-train+marks",
    description: "quiet trains that treat marks of relays as delay; for links with a marker",
    source: "docs/quiet-trains.md",
    config: Config::heeding_marks,
};

impl Config {
    /// Trains for which a marked segment counts like a delay of 6 tau.
    pub fn heeding_marks() -> Config {
        Config { control: control::Config { marks: 6.0, ..control::Config::default() }, ..Config::default() }
    }

    /// Trains that tolerate eight times the delay beside a sender that fills queues.
    pub fn competing() -> Config {
        Config { control: control::Config { competitive: 8.0, ..control::Config::default() }, ..Config::default() }
    }

    /// Trains that claim half of the path beside a sender that keeps queues full.
    pub fn contending() -> Config {
        Config { control: control::Config { claim: 0.5, ..control::Config::default() }, ..Config::default() }
    }

    /// The same parameters with the profile of a host, for a real network.
    pub fn of_host(&self) -> Config {
        Config { profile: Profile::Host, ..self.clone() }
    }

    /// Describes the parameters in one line, for people.
    pub fn describe(&self) -> String {
        self.control.describe()
    }
}
