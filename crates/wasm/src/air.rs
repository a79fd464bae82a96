//! Air time by link: how long the frames of each link were on the air.

use meshpace_core::{Duration, NodeId};
use meshpace_mesh::mac::{Frame, FrameKind};
use std::collections::BTreeMap;

/// Of one link.
#[derive(Clone, Copy, Default)]
struct Share {
    /// Data frames that were sent for the first time.
    data: Duration,
    /// Data frames that were repeated.
    again: Duration,
    /// RTS, CTS, ACK, block ACK and its request.
    control: Duration,
}

/// Of all links, from time zero on. A link leads from the station that has data to the one it is for: CTS and ACK, which go the other way, belong to it, too.
#[derive(Clone, Default)]
pub struct AirTime {
    links: BTreeMap<(NodeId, NodeId), Share>,
}

impl AirTime {
    /// Numbers per link in [`AirTime::write`].
    pub const FIELDS: usize = 5;

    /// A frame is on the air.
    pub fn add<P>(&mut self, frame: &Frame<P>) {
        let link = match frame.kind {
            FrameKind::Rts | FrameKind::Data | FrameKind::BlockAckReq => (frame.from, frame.to),
            FrameKind::Cts | FrameKind::Ack | FrameKind::BlockAck => (frame.to, frame.from),
        };
        let share = self.links.entry(link).or_default();
        let part = match frame.kind {
            FrameKind::Data if frame.retry => &mut share.again,
            FrameKind::Data => &mut share.data,
            _ => &mut share.control,
        };
        *part = *part + frame.air_time;
    }

    /// Every link that was used: from, to (-1: broadcasts), then seconds of data, of data again, of RTS, CTS and ACK.
    pub fn write(&self) -> Vec<f64> {
        let numbers = self.links.iter().flat_map(|(&(from, to), share)| {
            let to = if to.is_broadcast() { -1.0 } else { f64::from(to.0) };
            let parts = [share.data, share.again, share.control].map(Duration::as_secs_f64);
            [f64::from(from.0), to, parts[0], parts[1], parts[2]]
        });
        numbers.collect()
    }
}
