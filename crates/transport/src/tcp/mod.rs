//! TCP, composed of three pieces: the amount that may be sent (`window`), the time at which the
//! next segment may leave (`pacing`), and the time at which the receiver acknowledges (`ack`).

pub mod ack;
pub mod connection;
pub mod ecn;
pub mod flight;
pub mod handshake;
mod receiving;
pub mod recovery;
pub mod rtt;
pub mod segment;
pub mod sending;
pub mod timers;
pub mod train_wire;
pub mod window;
pub mod wire;

pub use crate::closing::{self, End};
pub use crate::flags::Flags;
pub use connection::Connection;
pub use handshake::Agreed;
pub use segment::{Extension, HEADER_BYTES, Segment};

use crate::pacing;
use alloc::format;
use alloc::string::String;
use meshpace_core::parameter::{ParameterError, require};
use meshpace_core::parameters;

/// Implementation that the connection imitates where agents of ns-2 and hosts differ.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Profile {
    /// The behaviour of agents of ns-2. The application reads data as soon as it arrives. An end
    /// that has only received data closes as soon as its peer has closed, and sends its FIN six
    /// times at most. A SYN-ACK is not timed, and not repeated before the SYN arrives again. A peer
    /// that does not answer is never given up, and answers to suspect segments are not limited.
    Ns2,
    /// The behaviour that RFC 9293 and RFC 5961 require of a host.
    Host,
}

parameters! {
    /// Parameters of a TCP connection. The defaults are those of ns-2.35's `Agent/TCP/Newreno` with a window of 64.
    #[derive(Clone, PartialEq, Debug)]
    pub struct Config {
        /// window after the handshake
        initial_window: u32 = 2 => whole("segments", 1, 65535), Basic, "RFC 5681, 3.1; ns-2, windowInit_";
        /// window at which the first slow start ends; without a number, as on hosts, it ends at a
        /// loss
        // An agent of ns-2 starts with the default of its class, and scripts that set `window_` on the agent leave that as it was. 64 is
        // what setting the default of the class to 64 gives.
        initial_ssthresh: Option<u32> = Some(20) => whole("segments", 1, 65535), Basic, "RFC 5681, 3.1; ns-2, window_";
        /// whether each of the first two duplicate ACKs releases a new segment
        limited_transmit: bool = true => FLAG, Expert, "RFC 3042";
        /// selective acknowledgements; not with synchronized clocks, whose echo takes their place
        /// in the ACK
        sack: bool = false => FLAG, Expert, "RFC 2018, RFC 6675";
    }
    parts {
        /// Retransmission timer.
        rto in rto: rtt::Config = rtt::Config::default();
    }
    others {
        /// Whose conversation it is. Default that of ns-2, as the papers' simulations have it.
        profile: Profile = Profile::Ns2;
        /// Payload of a full segment in bytes, 1..=65495. Default 1460.
        segment: u32 = 1460;
        /// Receiver window in segments, 1..=65535. Default 64 (AP10, section V).
        max_window: u32 = 64;
        /// Growth of the congestion window.
        window: window::Config = window::Config::NewReno;
        /// L of byte counting in segments, 1 or more: the window grows by what ACKs cover, in slow start by at most L segments
        /// per ACK (RFC 3465). Default none: by one step per ACK, as in ns-2.
        byte_counting: Option<u32> = None;
        /// Spacing of the segments the window allows.
        pacing: pacing::Config = pacing::Config::None;
        /// When the receiver acknowledges.
        ack: ack::Config = ack::Config::EverySegment;
        /// Explicit congestion notification. Default off.
        ecn: ecn::Config = ecn::Config::Off;
    }
    also |config| config.check_pieces();
}

impl Config {
    /// Changes the configuration for a host on a real network: it gets the host profile, and slow
    /// start lasts until the first loss.
    pub fn of_host(&self) -> Config {
        Config { profile: Profile::Host, initial_ssthresh: None, ..self.clone() }
    }

    fn check_pieces(&self) -> Result<(), ParameterError> {
        require((1..=65495).contains(&self.segment), "segment", self.segment, "1 to 65495 bytes")?;
        require((1..=65535).contains(&self.max_window), "max_window", self.max_window, "1 to 65535 segments")?;
        let one_slot = self.sack && self.pacing.needs_one_way_delay();
        require(!one_slot, "sack", self.sack, "false with synchronized clocks: their echo takes its place in the ACK")?;
        self.window.check().map_err(|error| error.inside("window"))?;
        let limit = self.byte_counting;
        require(limit != Some(0), "window.byte_counting", 0, "1 or more segments")?;
        self.pacing.check().map_err(|error| error.inside("pacing"))?;
        self.ack.check().map_err(|error| error.inside("ack"))
    }

    /// Describes the pieces in one line for people, with the parameters that distinguish the
    /// configuration from others.
    pub fn describe(&self) -> String {
        let counting = match self.byte_counting {
            Some(limit) => format!(" by bytes, L {limit}"),
            None => String::new(),
        };
        let (window, ack, pacing) = (self.window.describe(), self.ack.describe(), self.pacing.describe());
        let mut line = format!("window {window}{counting}; ACK {ack}; {pacing}");
        match self.ecn {
            ecn::Config::Off => {}
            ecn::Config::On { reaction: true, .. } => line.push_str("; ECN"),
            ecn::Config::On { reaction: false, .. } => line.push_str("; ECN without effect on the window"),
        }
        match self.initial_ssthresh {
            Some(20) => {}
            Some(segments) => line.push_str(&format!("; slow start to {segments}")),
            None => line.push_str("; slow start to the first loss"),
        }
        if self.sack {
            line.push_str("; SACK");
        }
        line
    }
}
