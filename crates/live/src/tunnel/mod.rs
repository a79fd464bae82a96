//! Ordinary TCP connections and UDP datagrams between two sites over TPA or quiet trains.
//!
//! One end ([`Connector`]) takes TCP connections (on ports of its own, by SOCKS, or to whole networks) and opens a stream for each; the other
//! ([`Exit`]) takes those and connects to where each is to go. A stream is a connection of TPA with a window and buffers of its own, or one of
//! many in a session (`session`) whose bulk goes by quiet trains; who connects decides. None waits for another, and a reader that is slow holds
//! back its own writer alone. Datagrams of UDP go in flows of a session, from `inlet` to `outlet`. A direction that ends is closed in order while
//! the other goes on; one that is broken off is broken off at the far end too. What a connection begins with:
//!
//! ```text
//! byte 0       version, 1: a stream            version, 2: a carrier of a session
//! byte 1       length of the target, 1 to 255  which: 0 express, 1 bulk
//! then         the target, "host:port"         the name of the session, 16 random bytes
//! ```
//!
//! A stream is answered by one byte, 0 once the target is connected, or why not ([`Refusal`]); then the bytes of both.

mod block;
mod carried_by;
mod connector;
mod counters;
mod dialing;
mod entrance;
mod exit;
mod far;
mod forward;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;
mod hall;
mod inlet;
mod joining;
pub mod medium;
mod outlet;
mod pipe;
mod reach;
mod room;
pub(crate) mod session;
mod socks;
mod source;
mod transparent;
mod within;

pub use carried_by::CarriedBy;
pub use connector::Connector;
pub use counters::{Counters, Event, Totals};
pub use exit::{Allowed, Exit, Service};
pub use forward::{Forward, UdpForward};
pub use session::{Class, Datagrams};
pub use transparent::{Network, Transparent};

use crate::tpa::Options;
use meshpace_core::Duration;
use meshpace_transport::tpa;
use session::{Carrier, NAME};
use std::io;

/// TPA's options for a tunnel.
pub fn options(transport: tpa::Config) -> Options {
    Options { keep_alive: Some(Duration::from_secs(15)), ..Options::of(transport) }
}

/// What a connection begins with that is a stream, and what one that is a carrier of a session.
const VERSION: u8 = 1;
const SESSION: u8 = 2;

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
    /// The exit has as many streams of this session, or of this source, as it takes.
    Crowded = 5,
}

impl Refusal {
    fn of(byte: u8) -> Refusal {
        match byte {
            1 => Refusal::Forbidden,
            2 => Refusal::Unreachable,
            3 => Refusal::Refused,
            5 => Refusal::Crowded,
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
            Refusal::Crowded => "the far end takes no more streams",
        })
    }
}

/// What stands at the beginning of a stream to `target`; none if that is too long.
fn encode(target: &str) -> Option<Vec<u8>> {
    let length = u8::try_from(target.len()).ok().filter(|length| *length > 0)?;
    Some([&[VERSION, length], target.as_bytes()].concat())
}

/// What a connection is to be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Beginning {
    /// A stream to this target.
    Stream(String),
    /// A carrier of the session of this name.
    Carrier(Carrier, [u8; NAME]),
}

/// How much more of what a connection begins with has to be read than these bytes of it, at least; 0 if that is all.
///
/// # Errors
///
/// [`io::ErrorKind::InvalidData`] if it is something else.
pub(crate) fn missing(bytes: &[u8]) -> io::Result<usize> {
    let length = match bytes {
        [] | [_] => 2,
        [VERSION, length, ..] if *length > 0 => 2 + usize::from(*length),
        [SESSION, carrier, ..] if Carrier::ALL.iter().any(|known| *known as u8 == *carrier) => 2 + NAME,
        _ => return Err(invalid()),
    };
    Ok(length.saturating_sub(bytes.len()))
}

/// Understands what a connection begins with, all of which is there.
///
/// # Errors
///
/// [`io::ErrorKind::InvalidData`] if it is something else.
pub(crate) fn decode(bytes: &[u8]) -> io::Result<Beginning> {
    let (head, rest) = bytes.split_first_chunk::<2>().ok_or_else(invalid)?;
    if missing(bytes)? > 0 {
        return Err(invalid());
    }
    if head[0] == SESSION {
        let carrier = Carrier::ALL.into_iter().find(|carrier| *carrier as u8 == head[1]).ok_or_else(invalid)?;
        return Ok(Beginning::Carrier(carrier, *rest.first_chunk().ok_or_else(invalid)?));
    }
    let target = std::str::from_utf8(rest).ok().filter(|target| target.rsplit_once(':').is_some());
    target.map(|target| Beginning::Stream(target.to_owned())).ok_or_else(invalid)
}

fn invalid() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "not the beginning of a tunnelled stream")
}

#[cfg(test)]
mod tests {
    use super::session::preamble;
    use super::*;

    #[test]
    fn targets_are_read_as_they_are_written() {
        let bytes = encode("host:80").unwrap();
        assert_eq!(bytes, b"\x01\x07host:80");
        assert_eq!(decode(&bytes).unwrap(), Beginning::Stream("host:80".into()));
        assert_eq!((encode(""), encode(&"x".repeat(256))), (None, None));
        for carrier in Carrier::ALL {
            let bytes = preamble(carrier, &[7; NAME]);
            assert_eq!(bytes[..3], [2, carrier as u8, 7]);
            assert_eq!(decode(&bytes).unwrap(), Beginning::Carrier(carrier, [7; NAME]));
        }
        for bad in [
            &b"\x02\x07host:80"[..],
            b"\x02\x02aaaaaaaaaaaaaaaa",
            b"\x02\x01aaaaaaaaaaaaaaa",
            b"\x03\x07host:80",
            b"\x01\x00",
            b"\x01\x04host",
            b"\x01\x03\xff:1",
            b"\x01\x09host:80",
            b"",
        ] {
            assert!(decode(bad).is_err(), "{bad:?}");
        }
        // No byte more is read than there is of it, and none is missing in the end.
        for whole in [encode("host:80").unwrap(), preamble(Carrier::Bulk, &[7; NAME])] {
            let mut read = 0;
            while let Some(more) = Some(missing(&whole[..read]).unwrap()).filter(|more| *more > 0) {
                read += more;
            }
            assert_eq!(read, whole.len());
        }
        for byte in 0..=255 {
            assert!(!Refusal::of(byte).to_string().is_empty());
        }
    }
}
