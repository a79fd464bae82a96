//! What a hostile peer reads in the datagrams of its own connections, both ways: it has their keys.

use super::segments::Known;
use crate::tpa::cipher::Cipher;
use crate::tpa::session::engine::AnySegment;
use crate::tpa::session::handshake::{InnerTransport, Tag, tag_of};
use crate::tpa::session::path_frame::PathFrame;
use crate::tpa::session::seal::Reader;
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
    /// A datagram of a direction with these keys passes; it carries `inner`.
    pub(super) fn see(&mut self, datagram: &[u8], inner: InnerTransport, keys: &BTreeMap<Tag, (Cipher, [u8; 32])>) {
        let Some(tag) = tag_of(datagram).filter(|tag| *tag != 0) else { return };
        let Some((cipher, key)) = keys.get(&tag) else { return };
        let reader = self.readers.entry(tag).or_insert_with(|| Reader::new(*cipher, *key));
        let mut clear = datagram.to_vec();
        let Some(content) = reader.open(&mut clear) else { return };
        match PathFrame::read(content) {
            Some(PathFrame::Challenge(number)) => {
                self.challenges.truncate(KEPT - 1);
                self.challenges.insert(0, number);
            }
            Some(PathFrame::Response(_)) => {}
            None => {
                if let Some((segment, _)) = AnySegment::read(inner, content) {
                    self.known.entry(tag).or_default().see(&segment);
                }
            }
        }
    }

    /// What is known of the direction whose datagrams begin with this tag.
    pub(super) fn known(&mut self, tag: Tag) -> &mut Known {
        self.known.entry(tag).or_default()
    }
}
