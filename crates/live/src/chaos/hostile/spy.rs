//! What a hostile peer reads in the datagrams of its own connections, in both directions. It has
//! their keys.

use super::segments::Known;
use crate::tpa::cipher::Cipher;
use meshpace_session::engine::AnySegment;
use meshpace_session::handshake::{InnerTransport, Tag, tag_of};
use meshpace_session::path_frame::PathFrame;
use meshpace_session::seal::{Reader, is_piece};
use std::collections::BTreeMap;

/// Maximum number of challenges that are stored.
const KEPT: usize = 16;

/// Reader of the datagrams of a hostile peer's connections.
#[derive(Debug, Default)]
pub(super) struct Spy {
    readers: BTreeMap<Tag, Reader>,
    known: BTreeMap<Tag, Known>,
    /// Numbers of the challenges that have arrived, the newest first.
    pub(super) challenges: Vec<u64>,
}

impl Spy {
    /// Reads a datagram of a direction with these keys, whose inner transport is `inner`. Returns
    /// the tag of the direction, what was known of the direction before, and the segment. `None` if
    /// the datagram contains no segment.
    pub(super) fn see(
        &mut self,
        datagram: &[u8],
        inner: InnerTransport,
        keys: &BTreeMap<Tag, (Cipher, [u8; 32])>,
    ) -> Option<(Tag, Known, AnySegment)> {
        let tag = tag_of(datagram).filter(|tag| *tag != 0)?;
        let (cipher, key) = keys.get(&tag)?;
        let reader = self.readers.entry(tag).or_insert_with(|| Reader::new(*cipher, *key));
        let mut clear = datagram.to_vec();
        let content = reader.open(&mut clear).filter(|_| !is_piece(datagram))?;
        match PathFrame::read(content) {
            Some(PathFrame::Challenge(number)) => {
                self.challenges.truncate(KEPT - 1);
                self.challenges.insert(0, number);
                None
            }
            Some(PathFrame::Response(_)) => None,
            None => {
                let (segment, _) = AnySegment::read(inner, content)?;
                let known = self.known.entry(tag).or_default();
                let before = *known;
                known.see(&segment);
                Some((tag, before, segment))
            }
        }
    }

    /// Knowledge about the direction whose datagrams begin with this tag.
    pub(super) fn known(&mut self, tag: Tag) -> &mut Known {
        self.known.entry(tag).or_default()
    }
}
