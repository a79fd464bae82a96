//! Flush: a transport that sends objects at the pace of the path without acknowledgement, and then
//! repairs them in rounds of NACKs until nothing is missing.
//!
//! S. Kim, R. Fonseca, P. Dutta, A. Tavakoli, D. Culler, P. Levis, S. Shenker, I. Stoica, "Flush: A
//! Reliable Bulk Transport Protocol for Multihop Wireless Networks", SenSys 2007. One object is
//! sent at a time, its packets an interval apart. Then the sink names the missing packets in a
//! NACK, the source sends them, and so on until the sink has everything. delta is the time that a
//! node takes to send a packet, and f the sending time of the nodes farther on that disturb the
//! successor:
//!
//! ```text
//! d_i = delta_i + delta_(i-1) + f_(i-1)      node i waits for its successor and for the nodes that
//!                                            disturb the successor
//! D_i = max(d_i, D_(i-1))                    node i is no faster than any node after it
//! ```
//!
//! On a path of nodes that disturb only their neighbours, this is about three packet times: a third
//! of one hop's rate over 48 hops (abstract).
//!
//! Only the sender's part of the paper's rate control is implemented. Departures:
//!
//! - Relays do not pace, nodes do not overhear each other, and nothing tells the source that a
//!   queue grows. Two flows that meet therefore lose most of what they send.
//! - Delta is the air time of an exchange at the rate of the path, and D = min(`reuse_hops`, h)
//!   delta for a path of h hops. `reuse_hops` is four, because an 802.11 node senses two hops far
//!   and a node three hops away is hidden (AP05, section 4.3). On paths of at least that length,
//!   `margin` stands for the backoff that a measured delta would contain.
//! - A NACK names up to [`segment::HOLES`] gaps of any length instead of 21 packets.
//! - The source opens the connection, as with all transports here. It asks again if no NACK
//!   arrives, and its timer is that of RFC 6298.
//! - A stream is cut into objects: each is at most `object` segments of the data written so far.

mod connection;
mod receiver;
mod segment;
mod sender;

pub use connection::Connection;
pub use segment::{HOLES, Hole, Segment};

use crate::about::Named;
use crate::train::timeout;
use alloc::format;
use alloc::string::String;
use meshpace_core::parameter::require;
use meshpace_core::{Duration, parameters};

parameters! {
    /// Parameters of a connection; both ends need the same `segment`.
    #[derive(Clone, PartialEq, Debug)]
    pub struct Config {
        /// hops after which the channel can be reused; the interval is the time of this many
        /// exchanges, or of one per hop on a shorter path
        reuse_hops: f64 = 4.0 => number(1.0, 255.0), Expert, "SenSys 2007: 3";
        /// factor on the interval on paths of at least reuse_hops hops, because nodes wait for each
        /// other there
        margin: f64 = 1.07 => number(1.0, 10.0), Expert;
        /// largest number of segments of an object
        object: u32 = 1000 => whole("segments", 1, 65535), Basic;
        /// fixed interval; replaces the one computed from the path
        interval: Option<Duration> = None => TIME.above(0.0).or("by the path"), Basic;
    }
    parts {
        /// Time after which a NACK is given up.
        timeout in rto: timeout::Config = timeout::Config::default();
    }
    others {
        /// Payload of a full segment in bytes, 1..=65495. Default 1460.
        segment: u32 = 1460;
    }
    also |config| require((1..=65495).contains(&config.segment), "segment", config.segment, "1 to 65495 bytes");
}

/// Flush with its default parameters.
pub const FLUSH: Named<Config> = Named {
    name: "flush",
    description: "objects sent at the rate of the path without ACKs, then rounds of NACKs; both ends must support it",
    source: "Kim et al., SenSys 2007",
    config: Config::default,
};

impl Config {
    /// Describes the parameters in one line, for people.
    pub fn describe(&self) -> String {
        let pace = match self.interval {
            Some(interval) => format!("a segment every {interval}"),
            None => format!("a segment in the time of up to {} hops", self.reuse_hops),
        };
        format!("objects of up to {} segments, {pace}", self.object)
    }
}
