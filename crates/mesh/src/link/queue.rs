//! Interface queue: drop-tail, routing packets first.
//!
//! Source: ns-2.35 as measured. Data and ARP packets join at the end and are dropped there if the
//! queue is full. Routing packets go to the front, the latest first, and displace the packet at the
//! end if the queue is full.

use crate::body::{Body, Queued};
use crate::mac::Rules;
use alloc::collections::VecDeque;
use meshpace_core::NodeId;

/// Packets waiting for the MAC.
#[derive(Clone, Debug)]
pub struct DropTail<P> {
    waiting: VecDeque<Queued<P>>,
    capacity: usize,
}

impl<P> DropTail<P> {
    /// Creates a queue of `limit` packets as the MAC counts them. With
    /// [`Rules::queue_counts_current`], one packet less waits in the queue.
    pub fn new(limit: usize, rules: &Rules) -> Self {
        let capacity = limit.saturating_sub(usize::from(rules.queue_counts_current)).max(1);
        DropTail { waiting: VecDeque::new(), capacity }
    }

    /// Number of packets waiting.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// True if no packet waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Adds a packet. Returns the packet that is dropped if the queue is full.
    #[inline]
    pub fn push(&mut self, packet: Queued<P>) -> Option<Queued<P>> {
        let full = self.waiting.len() >= self.capacity;
        if matches!(packet.body, Body::Routing(_)) {
            let pushed_out = if full { self.waiting.pop_back() } else { None };
            self.waiting.push_front(packet);
            pushed_out
        } else if full {
            Some(packet)
        } else {
            self.waiting.push_back(packet);
            None
        }
    }

    /// Removes and returns the next packet for the MAC.
    #[inline]
    pub fn pop(&mut self) -> Option<Queued<P>> {
        self.waiting.pop_front()
    }

    /// True if the next packet is for another neighbour than `next_hop`.
    pub fn is_first_for_another(&self, next_hop: NodeId) -> bool {
        self.waiting.front().is_some_and(|first| first.next_hop != next_hop)
    }

    /// Removes and returns the first packet for `next_hop`, if any.
    pub fn take_for(&mut self, next_hop: NodeId) -> Option<Queued<P>> {
        self.take_if(|q| q.next_hop == next_hop, |_| true)
    }

    /// Removes and returns the first packet that `selects` accepts, if it `fits`.
    pub fn take_if(
        &mut self,
        selects: impl Fn(&Queued<P>) -> bool,
        fits: impl Fn(&Queued<P>) -> bool,
    ) -> Option<Queued<P>> {
        let at = self.waiting.iter().position(selects)?;
        if fits(&self.waiting[at]) { self.waiting.remove(at) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::routing::aodv;
    use alloc::vec::Vec;
    use meshpace_core::Time;

    fn arp(to: u16) -> Queued<()> {
        Queued { next_hop: NodeId(to), body: Body::Arp { request: true, sender: NodeId(0), target: NodeId(to) } }
    }

    #[test]
    fn ns2_holds_49_of_50() {
        let mut queue = DropTail::new(50, &Rules::NS2);
        for i in 0..49 {
            assert!(queue.push(arp(i)).is_none());
        }
        assert_eq!(queue.push(arp(49)).map(|q| q.next_hop), Some(NodeId(49)));
        assert_eq!(queue.len(), 49);
        let mut ieee = DropTail::new(50, &Rules::IEEE);
        assert_eq!((0..60).filter(|&i| ieee.push(arp(i)).is_none()).count(), 50);
    }

    fn route_reply(to: u16) -> Queued<()> {
        let reply = aodv::Reply {
            origin: NodeId(0),
            destination: NodeId(to),
            destination_sequence: 2,
            hop_count: 1,
            ttl: 1,
            lifetime: 10,
            requested_at: Time::ZERO,
        };
        Queued { next_hop: NodeId(to), body: Body::Routing(aodv::Message::Reply(reply).into()) }
    }

    /// ns-2.35, `queue/priqueue.cc`: packets of the routing protocol go to the head, and a full
    /// queue drops its last packet for them.
    #[test]
    fn routing_packets_go_first_and_push_out_the_last() {
        let mut queue = DropTail::new(3, &Rules::IEEE);
        for to in [1, 2] {
            assert!(queue.push(arp(to)).is_none());
        }
        assert!(queue.push(route_reply(8)).is_none());
        assert_eq!(queue.push(route_reply(9)).map(|q| q.next_hop), Some(NodeId(2)));
        let order: Vec<u16> = core::iter::from_fn(|| queue.pop()).map(|q| q.next_hop.0).collect();
        assert_eq!(order, [9, 8, 1]);
    }

    #[test]
    fn packets_for_a_lost_neighbour_can_be_taken_out() {
        let mut queue = DropTail::new(50, &Rules::NS2);
        for to in [1, 2, 1] {
            queue.push(arp(to));
        }
        assert!(queue.take_for(NodeId(1)).is_some() && queue.take_for(NodeId(1)).is_some());
        assert!(queue.take_for(NodeId(1)).is_none());
        assert_eq!(queue.len(), 1);
    }
}
