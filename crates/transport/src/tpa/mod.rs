//! TPA: a transport whose window is 2 or 3 segments from the start, and which repeats nothing before it has sent a block.
//!
//! G. Anastasi, E. Ancillotti, M. Conti, A. Passarella, "Design and Performance Evaluation of a Transport Protocol for Ad hoc
//! Networks", The Computer Journal (TPA). Each file names its section. TPA-AP is TPA with the pacing of TCP-AP (section 5.2).

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
pub mod window;
pub mod wire;

pub use crate::flags::Flags;
pub use connection::{Connection, State};
pub use receiver::{Placement, Receiver};
pub use segment::{HEADER_BYTES, Segment};

use crate::pacing::{self, Measure, RateLimit};
use alloc::format;
use alloc::string::String;
use meshpace_core::Duration;
use meshpace_core::parameter::{ParameterError, require};

/// Parameters of a TPA connection; both ends need the same. The defaults are TPA-2 with the paper's table 1.
#[derive(Clone, PartialEq, Debug)]
pub struct Config {
    /// MSS: payload of a full segment in bytes, 1..=65495. Default 1460 (TPA, section 4.2).
    pub segment: u32,
    /// K: segments in a block, 1 to 12. Default 12 (TPA, table 1).
    pub block_segments: u8,
    /// How long bytes wait for a block to fill. Default 100 ms (no value is stated).
    pub fill_timeout: Duration,
    /// Window, thresholds, and what is believed about routes.
    pub congestion: congestion::Config,
    /// How many segments this end lets be outstanding. Default cwnd_max, for which `congestion` has the number (TPA, section 3.3).
    pub window: window::Rule,
    /// How many segments share an ACK.
    pub ack: ack::Rule,
    /// How long an ACK may wait. Default 100 ms (TPA, section 3.6).
    pub ack_delay: Duration,
    /// Whether the last segment of a block that misses none brings about an ACK at once. The sender begins nothing before it has that, so
    /// that a short block, or one of more segments than share an ACK, otherwise costs `ack_delay`. Default false: the paper states
    /// no rule for the end of a block.
    pub ack_block_end: bool,
    /// Estimator of the RTO.
    pub rto: estimator::Config,
    /// WinSize in segments, 1 to 255. Default 255: never limiting.
    pub receive_window: u8,
    /// Number of the first block, 0 to 4095. Default 0; on a real network a random one.
    pub first_block: u16,
    /// Whether an end that listened and has written nothing closes as soon as its peer has. Default true.
    pub close_with_peer: bool,
    /// Spacing of the segments the window allows (TPA-AP, section 5.2). Default none.
    pub pacing: pacing::Config,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            segment: 1460,
            block_segments: segment::BLOCK_SEGMENTS,
            fill_timeout: Duration::from_millis(100),
            congestion: congestion::Config::default(),
            window: window::Rule::Agreed,
            ack: ack::Rule::EveryOther,
            ack_delay: Duration::from_millis(100),
            ack_block_end: false,
            rto: estimator::Config::default(),
            receive_window: u8::MAX,
            first_block: 0,
            close_with_peer: true,
            pacing: pacing::Config::None,
        }
    }
}

impl Config {
    /// Whether every parameter is in its range.
    ///
    /// # Errors
    ///
    /// Names the first parameter that is not, its value and its range.
    pub fn check(&self) -> Result<(), ParameterError> {
        require((1..=65495).contains(&self.segment), "segment", self.segment, "1 to 65495 bytes")?;
        require(
            (1..=segment::BLOCK_SEGMENTS).contains(&self.block_segments),
            "block_segments",
            self.block_segments,
            "1 to 12 segments",
        )?;
        self.congestion.check()?;
        self.window.check()?;
        self.rto.check()?;
        require(self.receive_window >= 1, "receive_window", self.receive_window, "1 to 255 segments")?;
        require(self.first_block < segment::BLOCK_NUMBERS, "first_block", self.first_block, "0 to 4095")?;
        self.pacing.check()?;
        match &self.pacing {
            pacing::Config::None | pacing::Config::Rule(_) | pacing::Config::Custom(_) => {}
            pacing::Config::Adaptive(config) => {
                // The released agent's FIFO drops what it holds at a loss; a block has no use for that.
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
            pacing::Config::Dcc(_) => {
                require(false, "pacing", "dcc", "none or adaptive: TPA's header has no bit to echo a congestion mark")?;
            }
        }
        Ok(())
    }

    /// Its pieces in one line, for people.
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
