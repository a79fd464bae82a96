//! Stations and the frames between them: a transmission from its start until every station that it is for, or that decodes it, has been told.

use super::counters::lose;
use super::packets::{Delayed, Stage};
use super::{ARP_DELAY, Engine, InLink, LARGE, LINK_DELAY, Node};
use crate::on_air::{Audience, OnAir};
use crate::probe::{Aggregate, Event, Probe, Received};
use crate::queue::Owner;
use alloc::vec::Vec;
use meshpace_core::{Duration, NodeId, Time};
use meshpace_mesh::link::discipline::Attempt;
use meshpace_mesh::mac::{Action, Arrival, AttemptReport, Category, Dcf, EndingFrame, Frame, OrderedTime, Timing};
use meshpace_mesh::radio::{Arriving, Neighbour};
use meshpace_mesh::{Body, Packet};

/// Time at which a station acts next, with categories or without. Out of line: the loop over those who sense a frame needs its registers.
#[inline(never)]
fn next_wakeup<P: Packet, const EDCA: bool>(mac: &Dcf<P>, timing: &Timing) -> Time {
    if EDCA { mac.next_wakeup_of_all(timing) } else { mac.next_wakeup(timing) }
}

impl<P: Packet, O: Probe<P>> Engine<P, O> {
    /// Transmission `id` ends at the next of its listeners, and at those after it as long as nothing else comes first.
    pub(super) fn trailing_edge(&mut self, id: u32, until: Time) {
        if let Some(air) = self.on_air.get(id) {
            self.read_ahead(air.listener, air.end, Some(air.audience));
        }
        let receptions = self.probe.interests().receptions;
        loop {
            let Some(air) = self.on_air.get_mut(id) else { return };
            let receiver = *self.neighbours.entry(air.listener);
            let ends = air.ends_at(&receiver);
            self.now = ends;
            let Node { mac, queue, .. } = &mut self.nodes[receiver.node.index()];
            if receptions || self.duties.overhears {
                mac.catch_up(OrderedTime::end(ends, air.frame.from), &self.timing);
                if mac.decodes(ends, air.number) {
                    if receptions {
                        let Neighbour { node, power, .. } = receiver;
                        self.probe.on(ends, Event::Decoded { node, frame: &air.frame, power });
                    }
                    if let Some(Body::Data(packet)) = &air.frame.body {
                        queue.on_overheard(ends, air.frame.from, packet);
                    }
                }
            }
            let heard = EndingFrame {
                id: air.number,
                power: receiver.power,
                frame: &air.frame,
                mpdus: self.mpdus.get(id as usize).map_or(&[], |mpdus| mpdus),
            };
            let mpdus = heard.mpdus;
            let collisions = if receptions { mac.collisions() } else { 0 };
            let action = mac.on_frame_end(ends, heard, &self.timing);
            if receptions && !mpdus.is_empty() {
                let received = mac.received_mpdus(ends);
                if received != 0 {
                    let reception = Some(Received { node: receiver.node, power: receiver.power, mpdus: received });
                    self.probe.on_aggregate(ends, Aggregate { frame: &air.frame, mpdus, reception });
                }
            }
            if receptions && mac.collisions() != collisions {
                self.probe.on(ends, Event::Collision { node: receiver.node, frame: &air.frame });
            }
            let next = air.next_listener(&self.neighbours);
            if matches!(action, Action::None) && !self.duties.follows_up {
                self.schedule_mac(receiver.node);
            } else {
                self.settle(receiver.node, action);
            }
            let Some(key) = next else {
                self.on_air.remove(id);
                return;
            };
            if !self.is_next(key, until) {
                self.queue.set(Owner::FrameEnd, id, key);
                return;
            }
        }
    }

    /// Carries out what a MAC asks for, feeds it, and sets its timer.
    #[inline]
    pub(super) fn settle(&mut self, node: NodeId, mut action: Action<P>) {
        if self.duties.reports_attempts
            && let Some(attempt) = self.nodes[node.index()].mac.take_attempt()
        {
            let AttemptReport { queued, air_time, acknowledged, carried } = &attempt;
            let attempt = Attempt {
                next_hop: queued.next_hop,
                body: &queued.body,
                air_time: *air_time,
                acknowledged: *acknowledged,
                carried: *carried,
            };
            self.nodes[node.index()].queue.on_attempt(self.now, attempt);
        }
        loop {
            match action {
                Action::None => {}
                Action::Sent { next_hop, retries, data_air } => {
                    self.probe.on(self.now, Event::Sent { node, retries });
                    let state = &mut self.nodes[node.index()];
                    let extra = state.queue.on_sent(self.now, next_hop, retries, data_air);
                    if extra > Duration::ZERO {
                        state.mac.extend_backoff(extra);
                    }
                }
                Action::Transmit(frame) => self.transmit(frame),
                Action::Deliver { from, .. } if self.refuses(node, from) => {}
                Action::Deliver { from, body } => match body {
                    Body::Arp { request, sender, target } => {
                        let heard = self.nodes[node.index()].arp.on_packet(request, sender, target);
                        for queued in heard.release.into_iter().chain(heard.reply) {
                            self.delay(Delayed { node, queued, next: Stage::Queue }, ARP_DELAY);
                        }
                    }
                    body => self.link.push_back((self.now + LINK_DELAY, node, InLink::Up { from, body })),
                },
                Action::Failed { queued, retries } => {
                    self.counters.mac_drops += 1;
                    self.probe.on(self.now, Event::LinkFailure { node, next_hop: queued.next_hop });
                    self.nodes[node.index()].queue.on_failed(retries);
                    self.link_failed(node, queued);
                }
            }
            if !self.duties.is_ht {
                break;
            }
            let Some(next) = self.follow_up(node) else { break };
            action = next;
        }
        self.feed(node);
    }

    /// Next request of a station's aggregates; sets the timer of its reordering buffers when that is all.
    #[cold]
    fn follow_up(&mut self, node: NodeId) -> Option<Action<P>> {
        let mac = &mut self.nodes[node.index()].mac;
        let action = mac.next_action();
        if action.is_none() {
            let at = mac.next_reorder_wakeup();
            if at != self.queue.timer(Owner::Reorder, node) {
                self.queue.set_timer(Owner::Reorder, node, at);
            }
        }
        action
    }

    /// True if the firewall of `node` drops what `from` sends.
    #[inline]
    pub(super) fn refuses(&self, node: NodeId, from: NodeId) -> bool {
        !self.firewall.is_empty() && self.firewall[node.index()].binary_search(&from).is_err()
    }

    /// Lets the MAC of `node` process all that has happened to it before a timer of now.
    #[inline]
    pub(super) fn catch_up(&mut self, node: NodeId) {
        let mac = &mut self.nodes[node.index()].mac;
        mac.catch_up(OrderedTime::timer(self.now), &self.timing);
        if self.timing.edca {
            mac.follow_nav_parked(self.now, &self.timing);
        }
    }

    /// Something new is in the queue of `node`.
    #[inline]
    pub(super) fn offer(&mut self, node: NodeId) {
        if self.nodes[node.index()].mac.wants_packet() || self.timing.edca {
            self.catch_up(node);
            self.feed(node);
        } else {
            if self.duties.aggregates {
                self.fill(node, Category::BestEffort);
            }
            self.schedule_queue(node);
        }
    }

    /// Gives the MAC, to which everything until now has happened, its next packet if it can take one.
    #[inline(always)]
    pub(super) fn feed(&mut self, node: NodeId) {
        if self.timing.edca {
            return self.feed_categories(node);
        }
        let state = &mut self.nodes[node.index()];
        if state.mac.wants_packet() {
            let lost = lose(self.now, node, &mut self.probe, &mut self.counters.queue_drops);
            match state.queue.pop(self.now, lost) {
                Some(queued) => {
                    let next_hop = queued.next_hop;
                    state.mac.send(self.now, queued, &self.timing);
                    if self.duties.tells_quality {
                        self.tell_quality(node, next_hop);
                    }
                }
                None => state.mac.note_empty_queue(),
            }
        }
        if self.duties.aggregates {
            self.fill(node, Category::BestEffort);
        }
        self.schedule_queue(node);
        self.schedule_mac(node);
    }

    /// Gives the MAC what else waits for the neighbour that it sends to, as far as its aggregate has room. After the first attempt nothing joins while the
    /// packet whose turn it is next is for another neighbour: else that one would wait until everything here is acknowledged at once.
    fn fill(&mut self, node: NodeId, category: Category) {
        let Node { mac, queue, .. } = &mut self.nodes[node.index()];
        let (now, t) = (self.now, &self.timing);
        let mut lost = lose(now, node, &mut self.probe, &mut self.counters.queue_drops);
        let has_begun = mac.has_begun(category);
        while let Some(room) = mac.room_of(category, t)
            && !(has_begun && queue.is_first_for_another(category, room.0))
            && let Some(queued) = queue.take_within(now, category, room, &mut lost)
        {
            mac.join_as(category, queued, t);
        }
    }

    /// Tells the MAC how well `next_hop` hears it, and the rate of the list of links.
    #[cold]
    fn tell_quality(&mut self, node: NodeId, next_hop: NodeId) {
        if next_hop.is_broadcast() {
            return;
        }
        let neighbour = match &mut self.motion {
            None => self.neighbours.of(node).iter().find(|neighbour| neighbour.node == next_hop).copied(),
            Some(motion) => {
                let distance = motion.position(node, self.now).distance(motion.position(next_hop, self.now));
                self.neighbours.channel().neighbour(node, next_hop, distance)
            }
        };
        if let Some(Neighbour { power, .. }) = neighbour {
            let snr = power / self.neighbours.channel().sinr().noise_w;
            self.nodes[node.index()].mac.on_link_snr(next_hop, snr, &self.timing);
            if let Some(mcs) = self.neighbours.channel().listed_mcs(node, next_hop) {
                self.nodes[node.index()].mac.on_link_mcs(next_hop, mcs, &self.timing);
            }
        }
    }

    /// Tells the MAC how well those hear it for whom it holds something: before an attempt, where nodes move.
    #[cold]
    pub(super) fn tell_qualities(&mut self, node: NodeId) {
        for category in Category::URGENT_FIRST {
            if let Some(next_hop) = self.nodes[node.index()].mac.batch_next_hop(category) {
                self.tell_quality(node, next_hop);
            }
        }
    }

    /// Gives the MAC what it can take of each category.
    #[cold]
    fn feed_categories(&mut self, node: NodeId) {
        self.nodes[node.index()].mac.update_parked(self.now, &self.timing);
        for category in Category::URGENT_FIRST {
            let Node { mac, queue, .. } = &mut self.nodes[node.index()];
            let (now, t) = (self.now, &self.timing);
            if mac.wants(category)
                && let Some(queued) =
                    queue.pop_of(now, category, lose(now, node, &mut self.probe, &mut self.counters.queue_drops))
            {
                let next_hop = queued.next_hop;
                mac.send_as(category, now, queued, t);
                if self.duties.tells_quality {
                    self.tell_quality(node, next_hop);
                }
            }
            self.fill(node, category);
        }
        self.schedule_categories(node);
    }

    pub(super) fn schedule_categories(&mut self, node: NodeId) {
        let at = self.nodes[node.index()].mac.next_wakeup_of_all(&self.timing);
        if at != self.queue.timer(Owner::Mac, node) {
            self.queue.set_timer(Owner::Mac, node, at);
        }
    }

    /// Sets the timer of a discipline that holds packets back.
    #[inline(always)]
    pub(super) fn schedule_queue(&mut self, node: NodeId) {
        if self.duties.holds_back {
            self.set_queue_timer(node);
        }
    }

    #[cold]
    fn set_queue_timer(&mut self, node: NodeId) {
        let at = self.nodes[node.index()].queue.next_wakeup();
        self.queue.set_timer(Owner::Link, node, at);
    }

    #[inline]
    pub(super) fn schedule_mac(&mut self, node: NodeId) {
        let at = self.nodes[node.index()].mac.next_wakeup(&self.timing);
        if at != self.queue.timer(Owner::Mac, node) {
            self.queue.set_timer(Owner::Mac, node, at);
        }
    }

    /// Reads what the stations under the cursors keep for a frame, so that the cache misses of a large mesh come together.
    #[inline]
    pub(super) fn read_ahead(&self, first: u32, end: u32, audience: Option<Audience>) {
        if self.nodes.len() < LARGE {
            return;
        }
        let mut sum = 0;
        for neighbour in self.neighbours.slice(first, end) {
            if audience.is_none_or(|audience| audience.has(neighbour.node, neighbour.decodable)) {
                let mac = &self.nodes[neighbour.node.index()].mac;
                // One field of each cache line that the frame will touch.
                sum ^= mac.transmitting_until().0 ^ mac.timeout().0;
                if audience.is_some() {
                    sum ^= mac.idle_since().0;
                }
                sum ^= self.queue.timer(Owner::Mac, neighbour.node).0;
            }
        }
        core::hint::black_box(sum);
    }

    /// Keeps what transmission `id` holds, if it is an aggregate, until its end.
    #[cold]
    fn keep_mpdus(&mut self, sender: NodeId, id: u32) {
        let (place, mpdus) = (id as usize, self.nodes[sender.index()].mac.take_mpdus());
        if self.mpdus.len() <= place {
            self.mpdus.resize_with(place + 1, Vec::new);
        }
        self.mpdus[place] = mpdus;
    }

    pub(super) fn transmit(&mut self, frame: Frame<P>) {
        if self.timing.edca {
            return self.transmit_with_categories(frame);
        }
        self.announce::<false>(frame);
    }

    #[cold]
    #[inline(never)]
    fn transmit_with_categories(&mut self, frame: Frame<P>) {
        self.announce::<true>(frame);
    }

    /// Puts a frame on the air, with categories or without.
    #[inline(always)]
    fn announce<const EDCA: bool>(&mut self, frame: Frame<P>) {
        let sender = frame.from;
        self.frames += 1;
        self.mix(sender, frame.kind as u64, frame.bytes);
        self.probe.on(self.now, Event::OnAir { frame: &frame });
        if self.duties.aggregates {
            let mpdus = self.nodes[sender.index()].mac.leaving_mpdus();
            if !mpdus.is_empty() {
                self.probe.on_aggregate(self.now, Aggregate { frame: &frame, mpdus, reception: None });
            }
        }
        let (first, end) = match &mut self.motion {
            None => self.neighbours.range(sender),
            // Kept under the place of the transmission, which it gets below.
            Some(motion) => motion.table(sender, self.now, self.on_air.next(), &mut self.neighbours),
        };
        self.broadcasts += u64::from(frame.to.is_broadcast());
        self.sensed += u64::from(end - first);
        let audience =
            Audience::of(&frame, self.duties.tells_everybody, self.duties.tells_decoders, &self.timing.rules);
        let Frame { nav, air_time, rate, .. } = frame;
        let (began, moment) = (self.now, OrderedTime::timer(self.now));
        // No frame is in the air for 2^32 transmissions.
        let number = self.frames as u32;
        let mut listeners = None;
        self.read_ahead(first, end, None);
        for (place, &Neighbour { node, decodable, delay, power }) in
            self.neighbours.slice(first, end).iter().enumerate()
        {
            let start = began + delay;
            let is_notified = audience.has(node, decodable);
            if is_notified {
                let place = first + place as u32;
                listeners = Some((listeners.map_or(place, |(first, _)| first), place + 1));
            }
            let frame = Arriving { id: number, power, decodable, rate, end: start + air_time };
            let arrival = Arrival { start, frame, nav_ns: nav.0 as u32, sender, is_notified };
            let mac = &mut self.nodes[node.index()].mac;
            if mac.on_departure(moment, arrival, &self.timing) || EDCA {
                // It costs less to move a timer that is not the next than to find out later that it woke for nothing.
                let due = self.queue.timer(Owner::Mac, node);
                if due <= arrival.frame.end || self.duties.tells_everybody || mac.has_later_arrivals() {
                    let at = next_wakeup::<P, EDCA>(mac, &self.timing);
                    if at != due {
                        self.queue.set_timer(Owner::Mac, node, at);
                    }
                }
            }
        }
        if let Some((listener, end)) = listeners {
            let air = OnAir { frame, number, began, audience, listener, end };
            let key = air.key(&self.neighbours);
            let id = self.on_air.insert(air);
            if self.duties.aggregates {
                self.keep_mpdus(sender, id);
            }
            self.queue.set(Owner::FrameEnd, id, key);
        } else if self.duties.aggregates {
            // Nobody is there to hear what it holds.
            self.nodes[sender.index()].mac.take_mpdus();
        }
    }
}
