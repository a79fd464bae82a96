//! A frame on the air, and the stations at which its end is an event.
//!
//! A transmission is one slab entry and one queue entry. It has a cursor over the sender's
//! neighbours, sorted by distance, which stops only at listeners. When its event is due, it
//! processes the listeners in order as long as no other event in the queue comes first.

use crate::queue::Key;
use meshpace_core::{NodeId, Time};
use meshpace_mesh::mac::{Frame, FrameKind, Rules};
use meshpace_mesh::radio::{Neighbour, Neighbours};

/// The stations at which the end of a frame is an event. All other stations process the frame at
/// their own next event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Audience {
    /// All stations that sense the frame.
    Everybody,
    /// All stations that could decode the frame.
    Decoders,
    /// The station to which the frame is addressed, if it could decode the frame.
    One(NodeId),
}

impl Audience {
    /// Audience of `frame`. `everybody` and `decoders` tell whether the ends of all frames are
    /// events at these stations.
    #[inline]
    pub fn of<P>(frame: &Frame<P>, everybody: bool, decoders: bool, rules: &Rules) -> Audience {
        // Such an RTS may shorten the NAV of a station to which it is not addressed.
        let shortens = frame.kind == FrameKind::Rts && rules.rts_nav_resets;
        if everybody {
            Audience::Everybody
        } else if decoders || shortens || frame.to.is_broadcast() {
            Audience::Decoders
        } else {
            Audience::One(frame.to)
        }
    }

    /// True if `node` belongs to the audience.
    #[inline]
    pub fn has(self, node: NodeId, decodable: bool) -> bool {
        match self {
            Audience::Everybody => true,
            Audience::Decoders => decodable,
            Audience::One(to) => decodable & (node == to),
        }
    }
}

/// A frame whose end must still be processed at some station.
#[derive(Clone, Debug)]
pub struct OnAir<P> {
    /// Transmitted frame.
    pub frame: Frame<P>,
    /// Number of the transmission.
    pub number: u32,
    /// Time at which the transmission began.
    pub began: Time,
    /// Stations at which its end is an event.
    pub audience: Audience,
    /// Cursor to the next of these stations in the sender's neighbour table.
    pub listener: u32,
    /// Cursor behind the last of these stations.
    pub end: u32,
}

impl<P> OnAir<P> {
    /// Time at which the frame ends at `receiver`.
    #[inline]
    pub fn ends_at(&self, receiver: &Neighbour) -> Time {
        self.began + self.frame.air_time + receiver.delay
    }

    /// Key of the event at the next listener.
    #[inline]
    pub fn key(&self, table: &Neighbours) -> Key {
        let receiver = table.entry(self.listener);
        Key::frame_end(self.ends_at(receiver), receiver.node, self.frame.from)
    }

    /// Advances to the next listener and returns the key of its event; `None` after the last.
    #[inline]
    pub fn next_listener(&mut self, table: &Neighbours) -> Option<Key> {
        loop {
            self.listener += 1;
            if self.listener == self.end {
                return None;
            }
            let receiver = table.entry(self.listener);
            if self.audience.has(receiver.node, receiver.decodable) {
                return Some(self.key(table));
            }
        }
    }
}
