//! Buffer of packets that wait for a route: at most 64 for all destinations together, each for at
//! most 30 s.
//!
//! As in ns-2.35, the oldest packet is dropped if there is no room for a new one. A packet that has
//! waited too long is dropped only when another packet is added or removed. Until then it still
//! keeps its route discovery going.

use super::message::Message;
use crate::packet::Packet;
use crate::routing::actions::{Actions, DropReason};
use alloc::collections::VecDeque;
use meshpace_core::{Duration, NodeId, Time};

/// Largest number of packets in the buffer.
const CAPACITY: usize = 64;
/// Longest wait of a packet.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Route buffer of a node.
#[derive(Clone, Debug)]
pub(super) struct Buffer<P> {
    /// Deadlines and packets in the order of arrival, which is also the order of the deadlines.
    packets: VecDeque<(Time, P)>,
}

impl<P: Packet> Buffer<P> {
    /// Creates an empty buffer.
    pub fn new() -> Self {
        Buffer { packets: VecDeque::new() }
    }

    /// Adds a packet.
    pub fn push(&mut self, now: Time, packet: P, out: &mut impl Actions<P, Message>) {
        self.purge(now, out);
        if self.packets.len() == CAPACITY
            && let Some((_, oldest)) = self.packets.pop_front()
        {
            out.drop_packet(oldest, DropReason::BufferFull);
        }
        self.packets.push_back((now + TIMEOUT, packet));
    }

    /// Removes and returns the oldest packet for `destination`.
    pub fn pop(&mut self, now: Time, destination: NodeId, out: &mut impl Actions<P, Message>) -> Option<P> {
        self.purge(now, out);
        let at = self.packets.iter().position(|(_, packet)| packet.destination() == destination)?;
        self.packets.remove(at).map(|(_, packet)| packet)
    }

    /// True if a packet for `destination` is waiting.
    pub fn waits_for(&self, destination: NodeId) -> bool {
        self.destinations().any(|waiting| waiting == destination)
    }

    /// Destinations of the waiting packets, the oldest packet first, with repetitions.
    pub fn destinations(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.packets.iter().map(|(_, packet)| packet.destination())
    }

    /// Drops the packets whose deadline has passed.
    fn purge(&mut self, now: Time, out: &mut impl Actions<P, Message>) {
        while let Some((deadline, _)) = self.packets.front()
            && *deadline < now
            && let Some((_, late)) = self.packets.pop_front()
        {
            out.drop_packet(late, DropReason::BufferTimeout);
        }
    }
}
