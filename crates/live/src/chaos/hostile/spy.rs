//! What a hostile peer reads in the datagrams of its own connections, both ways: it has their keys.

use super::segments::Known;
use crate::tpa::cipher::Cipher;
use crate::tpa::session::engine::AnySegment;
use crate::tpa::session::handshake::{InnerTransport, Tag, tag_of};
use crate::tpa::session::path_frame::PathFrame;
use crate::tpa::session::seal::{Reader, is_piece};
use std::collections::BTreeMap;

/// Challenges that are remembered.
const KEPT: usize = 16;

/// A reader of datagrams.
#[derive(Debug, Default)]
pub(super) struct Spy {
    readers: BTreeMap<Tag, Reader>,
    known: BTreeMap<Tag, Known>,
    /// Numbers of challenges that have come.
    pub(super) challenges: Vec<u64>,
}

impl Spy {
    /// A datagram of a direction with these keys passes; it carries `inner`. Returns the direction's tag, what was known of it before,
    /// and the segment, if there is one.
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

    /// What is known of the direction whose datagrams begin with this tag.
    pub(super) fn known(&mut self, tag: Tag) -> &mut Known {
        self.known.entry(tag).or_default()
    }
}
