//! Observer that sees every datagram that is sent and has the keys. It checks what the documents
//! promise: each number is used once, keys are replaced in time, and no payload is unencrypted.

use super::faults::Moment;
use crate::tpa::cipher::Cipher;
use meshpace_core::{Duration, Time};
use meshpace_session::content::shows_payload;
use meshpace_session::engine::AnySegment;
use meshpace_session::handshake::{Cookie, InnerTransport, Kind, Opening, Tag, tag_of, understand_stray};
use meshpace_session::path_frame::PathFrame;
use meshpace_session::seal::{Reader, is_piece, number_of};
use meshpace_transport::flags::Flags;
use std::collections::{BTreeMap, BTreeSet};

/// Silence of a direction after which the next datagram is [`Moment::Idle`].
const SILENCE: Duration = Duration::from_secs(5);

/// Information about the sender of a datagram.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sender {
    /// Inner transport of the connection; `None` if the connection does not exist or has ended.
    pub(crate) inner: Option<InnerTransport>,
    /// First key of the direction.
    pub(crate) key: Option<(Cipher, [u8; 32])>,
    /// Moment of the sender's tunnel since the last datagram.
    pub(crate) noted: Option<Moment>,
    /// True if a window is closed at one of the ends.
    pub(crate) is_closed: bool,
}

/// State of the observer.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    key_life: u32,
    sealed: bool,
    readers: BTreeMap<Tag, Reader>,
    numbers: BTreeSet<(Tag, u64)>,
    /// For each direction, by tag: the time of the last datagram, and whether it was lost.
    last: BTreeMap<Tag, (Time, bool)>,
}

impl Watch {
    pub(crate) fn new(sealed: bool, key_life: u32) -> Watch {
        Watch { key_life, sealed, ..Watch::default() }
    }

    /// Examines a datagram that is sent, and returns its moment.
    ///
    /// # Errors
    ///
    /// The invariant that the datagram violates.
    pub(crate) fn see(&mut self, now: Time, datagram: &[u8], sender: &Sender) -> Result<Moment, &'static str> {
        let Some(tag) = tag_of(datagram) else { return Err("a datagram without a tag") };
        if tag == 0 {
            return Ok(opening(datagram));
        }
        let (before, was_lost) = self.last.get(&tag).copied().unwrap_or((Time::NEVER, false));
        self.last.insert(tag, (now, false));
        let mut moment = if before == Time::NEVER {
            Moment::First
        } else if was_lost {
            Moment::Gap
        } else if now.since(before) >= SILENCE {
            Moment::Idle
        } else if sender.is_closed {
            Moment::ZeroWindow
        } else {
            Moment::Data
        };
        moment = sender.noted.unwrap_or(moment);
        let mut clear = datagram.to_vec();
        let mut content: Option<&[u8]> = datagram.get(8..);
        if self.sealed {
            let number = number_of(datagram).ok_or("a datagram without a number")?;
            if !self.numbers.insert((tag, number)) {
                return Err("a number of a direction serves once");
            }
            if shows_payload(&datagram[16..]) {
                return Err("payload that was to be encrypted");
            }
            content = None;
            if let Some((cipher, key)) = sender.key {
                let life = self.key_life;
                let reader = self.readers.entry(tag).or_insert_with(|| Reader::new(cipher, key).serving(life));
                let opened = reader.open(&mut clear);
                content = Some(opened.ok_or("a datagram is sealed with the key of its number")?);
            }
            let life = 1 << self.key_life;
            if (number + 1).is_multiple_of(life) {
                return Ok(Moment::LastOfKey);
            }
            if number > 0 && number.is_multiple_of(life) {
                return Ok(Moment::FirstOfKey);
            }
        }
        let (Some(inner), Some(content)) = (sender.inner, content) else { return Ok(Moment::Late) };
        if self.sealed && is_piece(datagram) {
            return Ok(moment);
        }
        if self.sealed && PathFrame::read(content).is_some() {
            return Ok(Moment::Path);
        }
        let Some((segment, _)) = AnySegment::read(inner, content) else { return Err("a segment that nobody reads") };
        let flags = segment.flags();
        Ok(match () {
            () if flags.has(Flags::RST) => Moment::Reset,
            () if flags.has(Flags::FIN) => Moment::End,
            () if flags.has(Flags::SYN) && moment != Moment::First => Moment::Question,
            () => moment,
        })
    }

    /// Records that the wire has lost the last datagram with this tag.
    pub(crate) fn on_lost(&mut self, datagram: &[u8]) {
        if let Some((_, lost)) = tag_of(datagram).and_then(|tag| self.last.get_mut(&tag)) {
            *lost = true;
        }
    }
}

fn opening(datagram: &[u8]) -> Moment {
    if understand_stray(datagram).is_some() {
        return Moment::Stray;
    }
    match Opening::decode(datagram) {
        Some((Opening { kind: Kind::Challenge, .. }, _)) => Moment::Challenge,
        Some((Opening { kind: Kind::Acceptance, .. }, _)) => Moment::Acceptance,
        Some((Opening { kind: Kind::Refusal, .. }, _)) => Moment::Refusal,
        Some((Opening { kind: Kind::Request, cookie, .. }, _)) if cookie != Cookie::default() => Moment::Shown,
        _ => Moment::Request,
    }
}
