//! Stations and the frames between them: a transmission from its start until its end has been
//! processed at all stations for which this end is an event.

use super::counters::count_loss;
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

/// Time of a station's next timer, with categories or without. The function is not inlined, because
/// the loop over the stations that sense a frame needs the registers.
#[inline(never)]
fn next_wakeup<P: Packet, const EDCA: bool>(mac: &Dcf<P>, timing: &Timing) -> Time {
    if EDCA { mac.next_wakeup_of_all(timing) } else { mac.next_wakeup(timing) }
}

impl<P: Packet, O: Probe<P>> Engine<P, O> {
    /// Processes the end of transmission `id` at its next listener, and at the following listeners
    /// as long as no other event comes first.
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
            if receptions || self.features.overhears {
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
            let ending = EndingFrame {
                id: air.number,
                power: receiver.power,
                frame: &air.frame,
                mpdus: self.mpdus.get(id as usize).map_or(&[], |mpdus| mpdus),
            };
            let mpdus = ending.mpdus;
            let collisions = if receptions { mac.collisions() } else { 0 };
            let action = mac.on_frame_end(ends, ending, &self.timing);
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
            if matches!(action, Action::None) && !self.features.processes_every_end {
                self.schedule_mac(receiver.node);
            } else {
                self.execute(receiver.node, action);
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

    /// Executes the actions of a MAC, hands it the next packet, and sets its timer.
    #[inline]
    pub(super) fn execute(&mut self, node: NodeId, mut action: Action<P>) {
        if self.features.reports_attempts
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
                Action::Deliver { from, .. } if self.firewall_drops(node, from) => {}
                Action::Deliver { from, body } => match body {
                    Body::Arp { request, sender, target } => {
                        let effects = self.nodes[node.index()].arp.on_packet(request, sender, target);
                        for queued in effects.release.into_iter().chain(effects.reply) {
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
            if !self.features.is_ht {
                break;
            }
            let Some(next) = self.follow_up(node) else { break };
            action = next;
        }
        self.feed(node);
    }

    /// Returns the next action of a station with aggregates or categories. If there is none, sets
    /// the timer of its reorder buffers.
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

    /// True if the firewall of `node` drops the frames of `from`.
    #[inline]
    pub(super) fn firewall_drops(&self, node: NodeId, from: NodeId) -> bool {
        !self.firewall.is_empty() && self.firewall[node.index()].binary_search(&from).is_err()
    }

    /// Lets the MAC of `node` process all events before a timer at the current time.
    #[inline]
    pub(super) fn catch_up(&mut self, node: NodeId) {
        let mac = &mut self.nodes[node.index()].mac;
        mac.catch_up(OrderedTime::timer(self.now), &self.timing);
        if self.timing.edca {
            mac.follow_nav_parked(self.now, &self.timing);
        }
    }

    /// Called after a packet was added to the queue of `node`.
    #[inline]
    pub(super) fn on_enqueued(&mut self, node: NodeId) {
        if self.nodes[node.index()].mac.wants_packet() || self.timing.edca {
            self.catch_up(node);
            self.feed(node);
        } else {
            if self.features.aggregates {
                self.fill(node, Category::BestEffort);
            }
            self.schedule_queue(node);
        }
    }

    /// Hands the MAC its next packet if it can take one. The MAC must have processed all events
    /// until now.
    #[inline(always)]
    pub(super) fn feed(&mut self, node: NodeId) {
        if self.timing.edca {
            return self.feed_categories(node);
        }
        let state = &mut self.nodes[node.index()];
        if state.mac.wants_packet() {
            let lost = count_loss(self.now, node, &mut self.probe, &mut self.counters.queue_drops);
            match state.queue.pop(self.now, lost) {
                Some(queued) => {
                    let next_hop = queued.next_hop;
                    state.mac.send(self.now, queued, &self.timing);
                    if self.features.reports_link_quality {
                        self.report_link_quality(node, next_hop);
                    }
                }
                None => state.mac.note_empty_queue(),
            }
        }
        if self.features.aggregates {
            self.fill(node, Category::BestEffort);
        }
        self.schedule_queue(node);
        self.schedule_mac(node);
    }

    /// Adds further packets for the neighbour of the MAC's current batch, as far as its aggregate
    /// has room. After the first attempt, no packet is added while the next packet in the queue is
    /// for another neighbour. Otherwise that packet would have to wait until the whole batch is
    /// acknowledged in one attempt.
    fn fill(&mut self, node: NodeId, category: Category) {
        let Node { mac, queue, .. } = &mut self.nodes[node.index()];
        let (now, t) = (self.now, &self.timing);
        let mut lost = count_loss(now, node, &mut self.probe, &mut self.counters.queue_drops);
        let has_begun = mac.has_begun(category);
        while let Some(room) = mac.room_of(category, t)
            && !(has_begun && queue.is_first_for_another(category, room.0))
            && let Some(queued) = queue.take_within(now, category, room, &mut lost)
        {
            mac.join_as(category, queued, t);
        }
    }

    /// Reports to the MAC the signal-to-noise ratio with which `next_hop` receives it, and the rate
    /// in the list of links.
    #[cold]
    fn report_link_quality(&mut self, node: NodeId, next_hop: NodeId) {
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

    /// Reports the link quality of all neighbours for which the MAC holds packets. Called before an
    /// attempt if nodes move.
    #[cold]
    pub(super) fn report_link_qualities(&mut self, node: NodeId) {
        for category in Category::URGENT_FIRST {
            if let Some(next_hop) = self.nodes[node.index()].mac.batch_next_hop(category) {
                self.report_link_quality(node, next_hop);
            }
        }
    }

    /// Hands the MAC the packets that it can take of each category.
    #[cold]
    fn feed_categories(&mut self, node: NodeId) {
        self.nodes[node.index()].mac.update_parked(self.now, &self.timing);
        for category in Category::URGENT_FIRST {
            let Node { mac, queue, .. } = &mut self.nodes[node.index()];
            let (now, t) = (self.now, &self.timing);
            if mac.wants(category)
                && let Some(queued) =
                    queue.pop_of(now, category, count_loss(now, node, &mut self.probe, &mut self.counters.queue_drops))
            {
                let next_hop = queued.next_hop;
                mac.send_as(category, now, queued, t);
                if self.features.reports_link_quality {
                    self.report_link_quality(node, next_hop);
                }
            }
            self.fill(node, category);
        }
        self.schedule_categories(node);
    }

    /// Sets the timer of a station with categories.
    pub(super) fn schedule_categories(&mut self, node: NodeId) {
        let at = self.nodes[node.index()].mac.next_wakeup_of_all(&self.timing);
        if at != self.queue.timer(Owner::Mac, node) {
            self.queue.set_timer(Owner::Mac, node, at);
        }
    }

    /// Sets the timer of a discipline that delays packets.
    #[inline(always)]
    pub(super) fn schedule_queue(&mut self, node: NodeId) {
        if self.features.holds_back {
            self.set_queue_timer(node);
        }
    }

    #[cold]
    fn set_queue_timer(&mut self, node: NodeId) {
        let at = self.nodes[node.index()].queue.next_wakeup();
        self.queue.set_timer(Owner::Link, node, at);
    }

    /// Sets the timer of a station without categories.
    #[inline]
    pub(super) fn schedule_mac(&mut self, node: NodeId) {
        let at = self.nodes[node.index()].mac.next_wakeup(&self.timing);
        if at != self.queue.timer(Owner::Mac, node) {
            self.queue.set_timer(Owner::Mac, node, at);
        }
    }

    /// Reads the state that the stations between two cursors use for a frame, so that the cache
    /// misses of a large mesh overlap.
    #[inline]
    pub(super) fn read_ahead(&self, first: u32, end: u32, audience: Option<Audience>) {
        if self.nodes.len() < LARGE {
            return;
        }
        let mut sum = 0;
        for neighbour in self.neighbours.slice(first, end) {
            if audience.is_none_or(|audience| audience.has(neighbour.node, neighbour.decodable)) {
                let mac = &self.nodes[neighbour.node.index()].mac;
                // One field of each cache line that the frame will use is read.
                sum ^= mac.transmitting_until().0 ^ mac.timeout().0;
                if audience.is_some() {
                    sum ^= mac.idle_since().0;
                }
                sum ^= self.queue.timer(Owner::Mac, neighbour.node).0;
            }
        }
        core::hint::black_box(sum);
    }

    /// Stores the MPDUs of transmission `id` until its end, if it is an aggregate.
    #[cold]
    fn keep_mpdus(&mut self, sender: NodeId, id: u32) {
        let (place, mpdus) = (id as usize, self.nodes[sender.index()].mac.take_mpdus());
        if self.mpdus.len() <= place {
            self.mpdus.resize_with(place + 1, Vec::new);
        }
        self.mpdus[place] = mpdus;
    }

    /// Starts the transmission of a frame.
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

    /// Starts the transmission of a frame, with categories or without.
    #[inline(always)]
    fn announce<const EDCA: bool>(&mut self, frame: Frame<P>) {
        let sender = frame.from;
        self.frames += 1;
        self.mix_fingerprint(sender, frame.kind as u64, frame.bytes);
        self.probe.on(self.now, Event::OnAir { frame: &frame });
        if self.features.aggregates {
            let mpdus = self.nodes[sender.index()].mac.leaving_mpdus();
            if !mpdus.is_empty() {
                self.probe.on_aggregate(self.now, Aggregate { frame: &frame, mpdus, reception: None });
            }
        }
        let (first, end) = match &mut self.motion {
            None => self.neighbours.range(sender),
            // The table is stored under the index that the transmission gets below.
            Some(motion) => motion.table(sender, self.now, self.on_air.next(), &mut self.neighbours),
        };
        self.broadcasts += u64::from(frame.to.is_broadcast());
        self.sensed += u64::from(end - first);
        let audience =
            Audience::of(&frame, self.features.ends_at_all, self.features.ends_at_decoders, &self.timing.rules);
        let Frame { nav, air_time, rate, .. } = frame;
        let (began, moment) = (self.now, OrderedTime::timer(self.now));
        // No frame is on the air for 2^32 transmissions.
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
                // Moving a timer that is not the next event costs less than a wake-up without
                // effect later.
                let due = self.queue.timer(Owner::Mac, node);
                if due <= arrival.frame.end || self.features.ends_at_all || mac.has_later_arrivals() {
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
            if self.features.aggregates {
                self.keep_mpdus(sender, id);
            }
            self.queue.set(Owner::FrameEnd, id, key);
        } else if self.features.aggregates {
            // No station receives the MPDUs.
            self.nodes[sender.index()].mac.take_mpdus();
        }
    }
}
