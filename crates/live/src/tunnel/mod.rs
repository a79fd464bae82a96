//! Ordinary TCP connections between two sites over TPA.
//!
//! One end ([`Connector`]) takes TCP connections (on ports of its own, by SOCKS, or to whole networks) and opens a TPA connection for each; the other
//! ([`Exit`]) takes those and connects to where each is to go. Every stream is a connection of TPA with a window and buffers of
//! its own, so that none waits for another and a reader that is slow holds back its own writer alone; all of them share one UDP port at
//! either end. A direction that ends is closed in order while the other goes on; one that is broken off is broken off at the far
//! end too. What it looks like on a stream:
//!
//! ```text
//! byte 0       version, 1
//! byte 1       length of the target in bytes, 1 to 255
//! then         the target, "host:port"
//! ```
//!
//! and in the other direction one byte, 0 once the target is connected, or why not ([`Refusal`]); then the bytes of both.

mod connector;
mod counters;
mod exit;
mod pipe;
mod socks;
mod transparent;
mod within;

pub use connector::{Connector, Forward};
pub use counters::{Counters, Totals};
pub use exit::{Allowed, Exit};
pub use transparent::{Network, Transparent};

use crate::tpa::Options;
use meshpace_core::Duration;
use meshpace_transport::tpa;
use std::io::{self, Read};

/// TPA's options for a tunnel that may carry what people type: a block is begun with what there is. The paper has it wait to be filled
/// until a timeout (TPA, section 3.2), elsewhere 100 ms here, so that a keystroke and its echo would take a fifth of a second. What is
/// written while a block is under way still gathers for the next.
pub fn options(transport: tpa::Config) -> Options {
    Options {
        keep_alive: Some(Duration::from_secs(15)),
        ..Options::of(tpa::Config { fill_timeout: Duration::ZERO, ..transport })
    }
}

/// The version this is.
const VERSION: u8 = 1;

/// Why a target is not connected.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// The exit lets nobody go there.
    Forbidden = 1,
    /// There is no such host, or no way to it.
    Unreachable = 2,
    /// Nobody listens there.
    Refused = 3,
    /// The exit did not understand.
    Malformed = 4,
}

impl Refusal {
    fn of(byte: u8) -> Refusal {
        match byte {
            1 => Refusal::Forbidden,
            2 => Refusal::Unreachable,
            3 => Refusal::Refused,
            _ => Refusal::Malformed,
        }
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Refusal::Forbidden => "the far end lets nobody go there",
            Refusal::Unreachable => "the far end finds no way there",
            Refusal::Refused => "nobody listens there",
            Refusal::Malformed => "the far end does not understand",
        })
    }
}

/// What stands at the beginning of a stream to `target`; none if that is too long.
fn encode(target: &str) -> Option<Vec<u8>> {
    let length = u8::try_from(target.len()).ok().filter(|length| *length > 0)?;
    Some([&[VERSION, length], target.as_bytes()].concat())
}

/// Reads it.
///
/// # Errors
///
/// The stream's; [`io::ErrorKind::InvalidData`] if it is something else.
fn decode(stream: &mut impl Read) -> io::Result<String> {
    let invalid = || io::Error::new(io::ErrorKind::InvalidData, "not the beginning of a tunnelled stream");
    let mut head = [0; 2];
    stream.read_exact(&mut head)?;
    if head[0] != VERSION || head[1] == 0 {
        return Err(invalid());
    }
    let mut target = vec![0; usize::from(head[1])];
    stream.read_exact(&mut target)?;
    String::from_utf8(target).ok().filter(|target| target.rsplit_once(':').is_some()).ok_or_else(invalid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_read_as_they_are_written() {
        let bytes = encode("host:80").unwrap();
        assert_eq!(bytes, b"\x01\x07host:80");
        assert_eq!(decode(&mut &bytes[..]).unwrap(), "host:80");
        assert_eq!((encode(""), encode(&"x".repeat(256))), (None, None));
        for bad in [&b"\x02\x07host:80"[..], b"\x01\x00", b"\x01\x04host", b"\x01\x03\xff:1", b"\x01\x09host:80", b""] {
            assert!(decode(&mut &*bad).is_err(), "{bad:?}");
        }
        for byte in 0..=255 {
            assert!(!Refusal::of(byte).to_string().is_empty());
        }
    }
}
