//! TPA: a transport whose window is 2 or 3 segments from the start. Within a block it sends every
//! segment once before it retransmits any of them.
//!
//! Source: G. Anastasi, E. Ancillotti, M. Conti, A. Passarella, "Design and Performance Evaluation
//! of a Transport Protocol for Ad hoc Networks", The Computer Journal (cited as "TPA"). Each file
//! names the section that it implements. TPA-AP is TPA with the pacing of TCP-AP (section 5.2).

pub mod ack;
pub mod block;
pub mod congestion;
pub mod connection;
pub mod estimator;
pub mod flight;
pub mod liveness;
pub mod names;
pub mod receiver;
pub mod replay;
pub mod segment;
pub mod sender;
mod supply;
pub mod window;
pub mod wire;

pub use crate::closing::{End, State};
pub use crate::flags::Flags;
pub use connection::Connection;
pub use receiver::{Placement, Receiver};
pub use segment::{HEADER_BYTES, Segment};

use crate::pacing::{self, Measure, RateLimit};
use alloc::format;
use alloc::string::String;
use meshpace_core::parameter::{ParameterError, require};
use meshpace_core::{Duration, parameters};

parameters! {
    /// Parameters of a TPA connection; both ends need the same. The defaults are TPA-2 with the paper's table 1.
    #[derive(Clone, PartialEq, Debug)]
    pub struct Config {
        /// K, segments of a block
        block_segments: u8 = segment::BLOCK_SEGMENTS => whole("segments", 1, segment::BLOCK_SEGMENTS as u64), Basic,
            "TPA, section 3.2 and table 1";
        /// how long a block waits for more data
        fill_timeout: Duration = Duration::from_millis(100) => TIME.from(0.0), Expert;
        /// how many segments share an ACK
        ack: ack::Rule = ack::Rule::EveryOther => choice(ack::Rule::WORDS), Basic, "TPA, section 3.6";
        /// longest time for which an ACK is delayed
        ack_delay: Duration = Duration::from_millis(100) => TIME.from(0.0), Expert, "TPA, section 3.6";
    }
    parts {
        /// Window, thresholds, and what is believed about routes.
        congestion: congestion::Config = congestion::Config::default();
        /// Estimator of the RTO.
        rto in rto: estimator::Config = estimator::Config::default();
    }
    others {
        /// MSS: payload of a full segment in bytes, 1..=65495. Default 1460 (TPA, section 4.2).
        segment: u32 = 1460;
        /// Limit of outstanding segments of this end. Default cwnd_max, for which `congestion` has the number (TPA, section 3.3).
        window: window::Rule = window::Rule::Agreed;
        /// True if the last segment of a block that misses none brings about an ACK at once. The sender begins nothing before it has that, so
        /// that a short block, or one of more segments than share an ACK, otherwise costs `ack_delay`. Default false: the paper states
        /// no rule for the end of a block.
        ack_block_end: bool = false;
        /// True if a block that cannot be filled waits `fill_timeout` for more data (TPA, section 3.2). Default true; false on hosts, for
        /// the reason in `supply`.
        waits_to_fill: bool = true;
        /// True if a copy of the FIN is sent right behind the last block, before that is acknowledged: closing after fresh data then
        /// takes one round trip instead of two. Default false; true on hosts.
        fin_follows: bool = false;
        /// WinSize in segments, 1 to 255. Default 255: never limiting.
        receive_window: u8 = u8::MAX;
        /// Number of the first block, 0 to 4095. Default 0; on a real network a random one.
        first_block: u16 = 0;
        /// True if an end that listened and has written nothing closes as soon as its peer has. Default true.
        close_with_peer: bool = true;
        /// Spacing of the segments the window allows (TPA-AP, section 5.2). Default none.
        pacing: pacing::Config = pacing::Config::None;
    }
    also |config| config.check_others();
}

impl Config {
    fn check_others(&self) -> Result<(), ParameterError> {
        require((1..=65495).contains(&self.segment), "segment", self.segment, "1 to 65495 bytes")?;
        self.window.check()?;
        require(self.receive_window >= 1, "receive_window", self.receive_window, "1 to 255 segments")?;
        require(self.first_block < segment::BLOCK_NUMBERS, "first_block", self.first_block, "0 to 4095")?;
        self.pacing.check().map_err(|error| error.inside("pacing"))?;
        match &self.pacing {
            pacing::Config::None | pacing::Config::Rule(_) | pacing::Config::Custom(_) => {}
            pacing::Config::Adaptive(config) => {
                // The released TCP-AP agent drops the content of its FIFO after a loss. TPA's
                // blocks have no such queue.
                require(
                    config.limit == RateLimit::EarliestSend,
                    "pacing.limit",
                    "free-running",
                    "earliest-send: TPA keeps no queue of released segments",
                )?;
                require(
                    config.measure != Measure::OneWay,
                    "pacing.measure",
                    "one-way",
                    "another one: TPA's header has no room for an echoed delay",
                )?;
            }
            pacing::Config::Trains(_) => {
                require(false, "pacing", "trains", "none or adaptive: TPA has windows and blocks of its own")?;
            }
            pacing::Config::Window => {
                require(false, "pacing", "by-window", "none or adaptive: TPA's window has no rate")?;
            }
            pacing::Config::Dcc(_) => {
                require(false, "pacing", "dcc", "none or adaptive: TPA's header has no bit to echo a congestion mark")?;
            }
        }
        Ok(())
    }

    /// Describes the components of the configuration in one line, for people.
    pub fn describe(&self) -> String {
        let window = match self.window {
            window::Rule::Agreed => format!("{}", self.congestion.window),
            window::Rule::Fixed(window) => format!("{window}"),
            window::Rule::Auto => String::from("auto"),
        };
        let ack = match self.ack {
            ack::Rule::EveryOther => "every 2",
            ack::Rule::EveryWindow => "every window",
        };
        format!("window {window}; ACK {ack} or {} s; {}", self.ack_delay.as_secs_f64(), self.pacing.describe())
    }
}
