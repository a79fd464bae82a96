//! State of a running mesh, as observers and the control socket receive it.

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
    /// Current time of the mesh.
    pub now: Time,
    /// Frames put on the air.
    pub frames: u64,
    /// Packets lost.
    pub losses: Losses,
    /// Lateness of the frames.
    pub lateness: Summary,
    /// Traffic that crossed the mesh.
    pub traffic: Traffic,
    /// Path of each stream's packets, as returned by [`Medium::path`](crate::medium::Medium::path).
    pub paths: Vec<Vec<NodeId>>,
    /// Number of packets queued at each node.
    pub queues: Vec<usize>,
}

/// Packets lost below the transports, by the place of the loss.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Losses {
    /// Losses in interface queues.
    pub queue: u64,
    /// Losses by the MAC's retry limit, by flushed queues of lost links, and by address resolution.
    pub link: u64,
    /// Losses in routing: no route, or the time to live ran out.
    pub routing: u64,
}

impl Losses {
    /// Counts a lost packet.
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
