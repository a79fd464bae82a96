//! Air time by link: how long the frames of each link occupied the medium.

use meshpace_core::{Duration, NodeId};
use meshpace_mesh::mac::{Frame, FrameKind};
use std::collections::BTreeMap;

/// Air time of one link.
#[derive(Clone, Copy, Default)]
struct Share {
    /// Data frames that were sent for the first time.
    data: Duration,
    /// Retransmitted data frames.
    again: Duration,
    /// RTS, CTS, ACK, block ACK and block ACK request.
    control: Duration,
}

/// Air time of all links since time zero. A link leads from the station that has data to the
/// addressee of the data. CTS and ACK, which are sent in the opposite direction, also count for
/// this link.
#[derive(Clone, Default)]
pub struct AirTime {
    links: BTreeMap<(NodeId, NodeId), Share>,
}

impl AirTime {
    /// Number of values per link in [`AirTime::write`].
    pub const FIELDS: usize = 5;

    /// Adds a frame that is on the air.
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

    /// Values of every link that was used: from, to (-1: broadcasts), then the seconds of data, of
    /// retransmitted data, and of control frames.
    pub fn write(&self) -> Vec<f64> {
        let numbers = self.links.iter().flat_map(|(&(from, to), share)| {
            let to = if to.is_broadcast() { -1.0 } else { f64::from(to.0) };
            let parts = [share.data, share.again, share.control].map(Duration::as_secs_f64);
            [f64::from(from.0), to, parts[0], parts[1], parts[2]]
        });
        numbers.collect()
    }
}
