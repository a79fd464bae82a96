//! Sends datagrams with any content, sealed with the keys of a connection, as a hostile peer can.
//! For `chaos` and tests.

use super::Connection;
use crate::engine::AnySegment;
use crate::outbox::Outbox;
use crate::path_frame::PathFrame;

/// Content of a datagram.
#[derive(Clone, Copy, Debug)]
pub enum Forgery<'a> {
    /// A segment and its payload.
    Segment(AnySegment, &'a [u8]),
    /// A path challenge, or the response to one.
    Path(PathFrame),
}

impl Connection {
    /// Puts a datagram with this content into `out`. Returns its number, or `None` without
    /// encryption. Does nothing before the connection is open.
    pub fn forge(&mut self, content: Forgery<'_>, out: &mut Outbox) -> Option<u64> {
        let framing = self.stage.framing_mut()?;
        let number = framing.next_number();
        match content {
            Forgery::Segment(segment, payload) => {
                let length = framing.length(&segment, payload.len());
                out.push(self.addresses, length, |out| framing.write(out, &segment, payload, &[]));
            }
            Forgery::Path(frame) => framing.push_path(self.addresses, self.addresses.peer, frame, out),
        }
        number
    }
}
