//! The state of a running mesh, as observers and the control socket are told it.

use crate::lateness::Summary;
use crate::packet::CarriedFrame;
use crate::traffic::Traffic;
use meshpace_core::{NodeId, Time};
use meshpace_mesh::routing::DropReason;
use meshpace_mesh::{Body, Queued};
use meshpace_sim::Loss;

/// State of a running mesh.
#[derive(Clone, Debug)]
pub struct State {
    /// The mesh's time.
    pub now: Time,
    /// Frames put on the air.
    pub frames: u64,
    /// Packets lost.
    pub losses: Losses,
    /// Lateness of the frames.
    pub lateness: Summary,
    /// Traffic that crossed the mesh.
    pub traffic: Traffic,
    /// The way of each stream's packets, as [`Medium::path`](crate::medium::Medium::path).
    pub paths: Vec<Vec<NodeId>>,
    /// Packets that wait at each node.
    pub queues: Vec<usize>,
}

/// Packets lost below the transports, by what lost them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Losses {
    /// An interface queue.
    pub queue: u64,
    /// The MAC's retry limit, flushed queues of lost links, and address resolution.
    pub link: u64,
    /// Routing: no route, or the time to live ran out.
    pub routing: u64,
}

impl Losses {
    /// Counts a packet that is lost.
    pub(crate) fn count(&mut self, lost: &Queued<CarriedFrame>, why: Loss) {
        if !matches!(lost.body, Body::Data(_)) {
            return;
        }
        match why {
            Loss::Queue(_) => self.queue += 1,
            Loss::ArpDisplaced | Loss::Flushed | Loss::Routing(DropReason::LinkFailure) => self.link += 1,
            Loss::Routing(_) => self.routing += 1,
        }
    }
}
