//! A frame on the air, and the stations that must be told of its end.
//!
//! A transmission is one slab entry and one queue entry, with a cursor over the sender's neighbours by distance that stops
//! at its listeners: popped, it serves them in order as long as nothing else in the queue comes first.

use crate::queue::Key;
use meshpace_core::{NodeId, Time};
use meshpace_mesh::mac::{Frame, FrameKind, Rules};
use meshpace_mesh::radio::{Neighbour, Neighbours};

/// The stations at which the end of a frame is an event. To all others a frame is over when they are next touched.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Audience {
    /// Whoever senses it.
    Everybody,
    /// Whoever could decode it.
    Decoders,
    /// The one it is for, if that could decode it.
    One(NodeId),
}

impl Audience {
    /// Of `frame`; `everybody`, `decoders`: whether these must be told of all frames.
    #[inline]
    pub fn of<P>(frame: &Frame<P>, everybody: bool, decoders: bool, rules: &Rules) -> Audience {
        // Such an RTS may shorten the NAV of a station it is not for.
        let shortens = frame.kind == FrameKind::Rts && rules.rts_nav_resets;
        if everybody {
            Audience::Everybody
        } else if decoders || shortens || frame.to.is_broadcast() {
            Audience::Decoders
        } else {
            Audience::One(frame.to)
        }
    }

    /// True if `node` is among them.
    #[inline]
    pub fn has(self, node: NodeId, decodable: bool) -> bool {
        match self {
            Audience::Everybody => true,
            Audience::Decoders => decodable,
            Audience::One(to) => decodable & (node == to),
        }
    }
}

/// A frame of which somebody is still to be told.
#[derive(Clone, Debug)]
pub struct OnAir<P> {
    /// The frame.
    pub frame: Frame<P>,
    /// The number of its transmission.
    pub number: u32,
    /// Time at which it left its sender.
    pub began: Time,
    /// The stations that are told.
    pub audience: Audience,
    /// Cursor of the next of them in the sender's neighbour table.
    pub listener: u32,
    /// Cursor after the last.
    pub end: u32,
}

impl<P> OnAir<P> {
    /// Time at which the frame ends at `receiver`.
    #[inline]
    pub fn ends_at(&self, receiver: &Neighbour) -> Time {
        self.began + self.frame.air_time + receiver.delay
    }

    /// When the next listener is told.
    #[inline]
    pub fn key(&self, table: &Neighbours) -> Key {
        let receiver = table.entry(self.listener);
        Key::frame_end(self.ends_at(receiver), receiver.node, self.frame.from)
    }

    /// Goes on to the next listener; None after the last.
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
