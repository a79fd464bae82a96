//! Invariants that hold after every event of a run with hostile peers, and at its end.
//! `docs/chaos.md` states each of them.

use super::super::stream::{Ending, compare};
use super::held::Holding;
use super::machine::User;
use super::plan::{client, key_of};
use super::world::{Deaf, LATEST, Owner, World, applications};
use meshpace_core::Duration;
use meshpace_session::Party;
use meshpace_session::failure::Reason;
use meshpace_session::handshake::InnerTransport;
use meshpace_session::ring::PAGE;
use std::collections::BTreeSet;

/// Time after its first request by which an honest client is connected. Without attacks it would
/// take four times 50 ms.
const CONNECTED: Duration = Duration::from_secs(1);

/// Maximum number of messages that wait for the kernel, as in `meshpace_session::outbox`.
const OUTBOX: usize = 4_096;

/// Bytes that a peer may send before anything was read, unless three blocks are more; see
/// `docs/wire-memory.md`.
const FIRST_WINDOW: usize = 64 << 10;
/// Window of quiet trains in segments.
const TRAINS_WINDOW: usize = 64;
/// Pages that a window occupies in addition to those that it fills: one at its beginning, one at
/// its end, and a spare one.
const MORE_PAGES: usize = 3;

/// Maximum number of steps of work for a piece of a BBR stream. The tests of `transport` allow 16
/// for an arrival and its acknowledgement (`docs/wire-memory.md`: seven searches for an arrival).
/// Here a connection is polled three times for each arrival.
const MOST_STEPS: u64 = 3 * 16;

/// Number of ranges that are kept after a gap even if the window has room for fewer full segments,
/// as in `transport`.
const LEAST_RANGES: usize = 64;

/// Bytes that may be sent in each connection of a peer that receives nothing any more, in addition
/// to [`FACTOR`] times what was sent to it before. They consist of a window that it was granted
/// before, and of retransmissions for the 120 s after which the connection ends. Quiet trains send
/// a segment of at most 1,200 bytes every 2 s.
const DEAF: u64 = 128 << 10;

/// Factor of the same limit. BBR is the sender that skips the fewest numbers: it skips one of twice
/// as many each time. A peer that acknowledges blindly is therefore detected after about twice as
/// many segments as were sent before.
const FACTOR: u64 = 3;

/// Largest window of a connection in bytes. It grows with the bytes that the application has read,
/// up to `buffer`.
fn window_of(party: &Party<User>, buffer: usize) -> usize {
    let read = party.exchange.receive.taken() as usize;
    buffer.min(match party.session.inner() {
        InnerTransport::Trains => TRAINS_WINDOW * party.session.payload() as usize,
        InnerTransport::Tpa | InnerTransport::Bbr => FIRST_WINDOW.max(4 * read),
    })
}

impl World {
    /// Checks the invariants that hold at all times. Only what the last event may have changed is
    /// checked again.
    pub(super) fn check(&mut self) {
        let touched = self.target.take_touched();
        let mut has_changed = false;
        for id in &touched {
            let place = self.target.port.parties.get(id).filter(|party| party.session.has_place());
            let place = place.map(|party| party.session.peer().ip());
            has_changed |= self.placed.note(*id, place);
            // If the endpoint has moved a place to another address, the place is missing at the
            // address of the connection.
            has_changed |=
                place.is_some_and(|at| self.target.port.endpoint.connections_of(at) != self.placed.count(at));
            if let Some((invariant, more)) = self.broken_by(*id) {
                self.breaks(invariant, more);
            }
            self.check_move(*id);
        }
        let in_use = self.target.port.endpoint.in_use();
        self.check_memory(&touched);
        self.check_lies();
        if has_changed || in_use != self.in_use {
            self.in_use = in_use;
            self.check_places();
        }
        self.check_deaf();
        self.check_clients();
        if self.target.broken {
            self.breaks("an application comes to an end", String::new());
        }
        if self.now.since(self.plan.until) > LATEST {
            let left = self.target.port.parties.len();
            self.breaks("a run comes to an end", format!(": {left} connections are left"));
        }
    }

    /// Checks that the number of waiting messages is bounded. To be called before they are sent.
    pub(super) fn check_backlog(&mut self) {
        let full = self.target.port.out.full.len();
        if full > OUTBOX {
            self.breaks("memory is bounded", format!(": {full} messages"));
        }
    }

    /// Checks one connection: its peer's address must be one that has answered, and its memory must
    /// be bounded. Returns the violated invariant with details; `None` if both hold.
    fn broken_by(&self, id: u64) -> Option<(&'static str, String)> {
        let party = self.target.port.parties.get(&id)?;
        let at = party.session.peer();
        let is_own = match self.owners.get(&party.application.opener) {
            Some(Owner::Client(index)) => at == client(*index),
            Some(Owner::Peer(index)) => self.peers[*index].own.contains(&at),
            None => false,
        };
        if !is_own || !self.traffic.has_answered(at) {
            return Some(("a connection stays at addresses that have answered", format!(": {at}")));
        }
        if let Some(failure) = party.exchange.failure()
            && failure.reason == Reason::Internal
        {
            return Some(("no end contradicts itself", format!(": {}", failure.message)));
        }
        self.excess(party).map(|excess| ("memory is bounded", excess))
    }

    /// Checks the limits on the buffers of all connections, of one source and of one key. A
    /// connection that moves takes its memory along, even if the new source then exceeds its limit.
    fn check_memory(&mut self, touched: &BTreeSet<u64>) {
        let Some(bounds) = self.plan.memory else { return };
        let before: Vec<_> = touched.iter().map(|id| self.held.note(*id, self.holding(*id))).collect();
        let mut broken = None;
        for (id, before) in touched.iter().zip(before) {
            let Some(now) = self.held.of(*id) else { continue };
            let grows = before.is_none_or(|before| before.source == now.source && before.bytes < now.bytes);
            let (all, of_source) = (self.held.all(), self.held.of_source(now.source));
            let of_key = now.key.map_or(0, |key| self.held.of_key(key));
            if all > bounds.port || of_key > bounds.key || (grows && of_source > bounds.source) {
                broken = Some(format!(": {all} bytes, {of_source} of a source and {of_key} of a key; {bounds:?}"));
            }
        }
        if let Some(more) = broken {
            self.breaks("buffers hold no more than all, a source and a key may", more);
        }
    }

    /// Memory of a connection's buffers.
    fn holding(&self, id: u64) -> Option<Holding> {
        let party = self.target.port.parties.get(&id)?;
        let key = match self.owners.get(&party.application.opener) {
            Some(Owner::Peer(index)) if self.plan.has_keys() => Some(key_of(*index)),
            _ => None,
        };
        let bytes = party.exchange.send.memory() + party.exchange.receive.memory();
        Some(Holding { bytes, source: party.session.peer().ip(), key })
    }

    /// Checks that nothing is known of the path right after a move to another host, because no
    /// answer can have arrived from there.
    fn check_move(&mut self, id: u64) {
        let Some(party) = self.target.port.parties.get(&id) else {
            self.homes.remove(&id);
            return;
        };
        let (home, is_known) = (party.session.peer().ip(), party.session.knows_round_trip());
        let before = self.homes.insert(id, home);
        if before.is_some_and(|before| before != home) && is_known {
            self.breaks("congestion control begins anew after a move", format!(": {home}"));
        }
    }

    /// Checks that the work for a piece of a stream does not depend on what arrived before.
    pub(super) fn check_work(&mut self, steps: u64) {
        if steps > MOST_STEPS {
            let more = format!(": {steps} steps for a piece, at most {MOST_STEPS}");
            self.breaks("a datagram costs a bounded number of steps", more);
        }
    }

    /// Checks that a connection ends if its peer acknowledges what was never sent, and that no peer
    /// can predict what is sent.
    fn check_lies(&mut self) {
        if let Some(index) = self.peers.iter().position(|peer| peer.foresees) {
            let inner = self.plan.peers[index].inner;
            self.breaks("nobody foresees all numbers of a connection", format!(": peer {index}, {inner:?}"));
        }
        while let Some((at, opener)) = self.lies.front().copied()
            && at <= self.now
        {
            self.lies.pop_front();
            let mut parties = self.target.port.parties.values();
            let party = parties.find(|party| party.application.opener == opener);
            let goes_on = party.filter(|party| !party.session.is_over() && party.exchange.failure().is_none());
            if let Some(party) = goes_on {
                let (inner, at) = (party.session.inner(), party.session.peer());
                let more = format!(": {inner:?}, {at}");
                self.breaks("who acknowledges what was never sent is disconnected", more);
            }
        }
    }

    /// Description of what a connection keeps beyond its limits; `None` if it is within them.
    fn excess(&self, party: &Party<User>) -> Option<String> {
        let buffers = self.plan.buffers(party.session.inner());
        let window = window_of(party, buffers.receive);
        let (kept, waits) = (party.exchange.send.len(), party.exchange.receive.available());
        let (ranges, most) = (party.session.ranges(), (window / party.session.payload() as usize).max(LEAST_RANGES));
        let (taken, room) = (party.exchange.receive.memory(), window + MORE_PAGES * PAGE);
        let is_kept = kept <= buffers.send && waits <= buffers.receive && ranges <= most && taken <= room;
        (!is_kept).then(|| {
            format!(
                ": {kept} bytes to send, {waits} to read, {ranges} ranges of {most}, {taken} bytes of memory of {room}"
            )
        })
    }

    /// Checks that places are within the limits, in total and per source, and that they belong to
    /// the addresses of the connections.
    fn check_places(&mut self) {
        let endpoint = &self.target.port.endpoint;
        let limits = self.plan.limits();
        let (unfinished, connections) = self.in_use;
        let misplaced = self.placed.counts().find(|(at, count)| endpoint.connections_of(*at) != *count);
        let crowded = self.placed.counts().find(|(_, count)| *count > limits.connections_per_source);
        let all = self.placed.all();
        let is_within = unfinished <= limits.half_open
            && endpoint.unfinished() == unfinished
            && connections <= limits.connections
            && connections == all
            && crowded.is_none();
        if let Some((at, count)) = misplaced {
            let counted = endpoint.connections_of(at);
            let more = format!(": {counted} places are those of {at}, which has {count} connections");
            return self.breaks("a place belongs to the address where the connection is", more);
        }
        if !is_within {
            let more = format!(": {unfinished} handshakes, {connections} places of {all} connections, {crowded:?}");
            self.breaks("places are within the limits", more);
        }
    }

    /// Checks that a peer that receives nothing is not sent more than the limit.
    fn check_deaf(&mut self) {
        for index in 0..self.peers.len() {
            let Some(before) = self.deaf[index] else { continue };
            let (came, left) = self.traffic_of(index);
            // Datagrams of the peer are answered like those of unknown hosts, and one handshake may
            // still become a connection.
            let most = |connections: u64| FACTOR * (before.left + came - before.came) + (connections + 1) * DEAF;
            let more = left - before.left;
            if more <= most(before.connections) {
                continue;
            }
            // Handshakes that were in progress have become connections, which end one after the
            // other.
            let connections = before.connections.max(self.connections_of(index));
            self.deaf[index] = Some(Deaf { connections, ..before });
            let most = most(connections);
            if more > most {
                let inner = self.plan.peers[index].inner;
                let had = before.left;
                return self.breaks(
                    "a peer that receives nothing is sent a bounded number of bytes",
                    format!(": {inner:?} peer {index}: {more} bytes, {had} before, at most {most}"),
                );
            }
        }
    }

    /// Checks that honest clients are connected in time.
    fn check_clients(&mut self) {
        let now = self.now;
        let late = self.clients.iter().position(|one| {
            let party = one.opened.and_then(|(id, _)| one.machine.port.parties.get(&id));
            now.since(one.opens_at) > CONNECTED && party.is_some_and(|party| party.exchange.is_opening())
        });
        if let Some(index) = late {
            self.breaks("an honest client connects within a second", format!(": client {index}"));
        }
    }

    /// Checks the invariants that hold at the end of a run.
    pub(super) fn judge(&mut self) {
        let (unfinished, connections) = self.target.port.endpoint.in_use();
        let left = self.target.port.parties.len();
        let tags = self.target.port.endpoint.connections().count();
        if (unfinished, connections, left, tags) != (0, 0, 0, 0) {
            let more = format!(": {unfinished} handshakes, {connections} places, {left} connections, {tags} tags");
            return self.breaks("in the end every place is given back", more);
        }
        for index in 0..self.clients.len() {
            let Some((_, tag)) = self.clients[index].opened else { continue };
            let ours = applications(&self.clients[index].machine).find(|(of, _)| *of == tag).map(|(_, one)| one);
            let theirs = applications(&self.target).find(|(of, _)| *of == tag).map(|(_, one)| one);
            let is_well = [ours, theirs].iter().all(|one| one.is_some_and(|one| one.ending == Ending::Well));
            let told = [ours, theirs].map(|one| one.map(|one| (one.read, one.ending.clone())));
            if let Err(invariant) = compare([ours, theirs]) {
                return self.breaks(invariant, format!(": client {index}: {told:?}"));
            }
            if !is_well {
                let more = format!(": client {index}: {told:?}");
                return self.breaks("everything arrives that honest clients send and read", more);
            }
        }
    }
}
