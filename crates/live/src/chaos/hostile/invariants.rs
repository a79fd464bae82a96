//! What is true after every event of a run with hostile peers, and at its end. `docs/chaos.md` states each.

use super::super::stream::{Ending, compare};
use super::machine::User;
use super::plan::client;
use super::world::{LATEST, Owner, World, applications};
use crate::tpa::session::port::Party;
use meshpace_core::Duration;
use nix::libc;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// An honest client is connected so long after its first request: four times 50 ms, were it alone.
const CONNECTED: Duration = Duration::from_secs(1);

/// Messages that wait for the kernel at most, as `tpa::session::outbox` has it.
const OUTBOX: usize = 4_096;

/// Ranges that are kept beyond a gap where the window has room for fewer full segments, as `transport` has it.
const LEAST_RANGES: usize = 64;

/// Bytes that may leave in each connection of a peer that hears nothing any more, beside [`FACTOR`] times what had left for it
/// before: a window that it was granted before, and what timers repeat for the 120 s after which the connection ends. Trains send
/// a segment of at most 1,200 bytes every 2 s.
const DEAF: u64 = 128 << 10;

/// Factor of the same bound. BBR, the sender that skips fewest, skips one of twice as many numbers each time: a peer that
/// acknowledges blindly is found out after about twice as many segments as had left before.
const FACTOR: u64 = 3;

impl World {
    /// What is true at all times.
    pub(super) fn check(&mut self) {
        self.check_connections();
        self.check_places();
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

    /// The messages that wait are bounded; looked at before they leave.
    pub(super) fn check_backlog(&mut self) {
        let full = self.target.port.out.full.len();
        if full > OUTBOX {
            self.breaks("memory is bounded", format!(": {full} messages"));
        }
    }

    /// Connections stay where their peer has answered, and keep what they may.
    fn check_connections(&mut self) {
        let mut broken = None;
        for party in self.target.port.parties.values() {
            let at = party.session.peer();
            let is_own = match self.owners.get(&party.application.opener) {
                Some(Owner::Client(index)) => at == client(*index),
                Some(Owner::Peer(index)) => self.peers[*index].own.contains(&at),
                None => false,
            };
            if !is_own || !self.traffic.has_answered(at) {
                broken = Some(("a connection stays at addresses that have answered", format!(": {at}")));
                break;
            }
            if let Some(failure) = party.exchange.failure()
                && failure.errno == libc::EIO
            {
                broken = Some(("no end contradicts itself", format!(": {}", failure.message)));
                break;
            }
            if let Some(excess) = self.excess(party) {
                broken = Some(("memory is bounded", excess));
                break;
            }
        }
        if let Some((invariant, more)) = broken {
            self.breaks(invariant, more);
        }
    }

    /// What a connection keeps beyond its bounds, in words.
    fn excess(&self, party: &Party<User>) -> Option<String> {
        let settings = std::sync::Arc::new(self.plan.settings.clone()).with(party.session.inner());
        let (kept, waits) = (party.exchange.send.len(), party.exchange.receive.available());
        let ranges = party.session.ranges();
        let most = (settings.receive_buffer / party.session.payload() as usize).max(LEAST_RANGES);
        let is_kept = kept <= settings.send_buffer && waits <= settings.receive_buffer && ranges <= most;
        (!is_kept).then(|| format!(": {kept} bytes to send, {waits} to read, {ranges} ranges of {most}"))
    }

    /// Places are within the limits, in all and of each source, and are where the connections are.
    fn check_places(&mut self) {
        let endpoint = &self.target.port.endpoint;
        let limits = self.plan.settings.limits;
        let (unfinished, connections) = endpoint.in_use();
        let mut at: BTreeMap<IpAddr, usize> = self.traffic.addresses().map(|at| (at.ip(), 0)).collect();
        let parties = self.target.port.parties.values();
        for party in parties.filter(|party| party.session.has_place()) {
            *at.entry(party.session.peer().ip()).or_default() += 1;
        }
        let misplaced = at.iter().find(|(at, count)| endpoint.connections_of(**at) != **count);
        let crowded = at.iter().find(|(_, count)| **count > limits.connections_per_source);
        let all: usize = at.values().sum();
        let is_within = unfinished <= limits.half_open
            && endpoint.unfinished() == unfinished
            && connections <= limits.connections
            && connections == all
            && crowded.is_none();
        if let Some((at, count)) = misplaced {
            let counted = endpoint.connections_of(*at);
            let more = format!(": {counted} places are those of {at}, which has {count} connections");
            return self.breaks("a place belongs to the address where the connection is", more);
        }
        if !is_within {
            let more = format!(": {unfinished} handshakes, {connections} places of {all} connections, {crowded:?}");
            self.breaks("places are within the limits", more);
        }
    }

    /// A peer that receives nothing is sent no more than stated.
    fn check_deaf(&mut self) {
        for index in 0..self.peers.len() {
            let Some(before) = self.deaf[index] else { continue };
            let (came, left) = self.traffic_of(index);
            // What it sends is answered as what strangers send; a handshake under way may become a connection.
            let connections = before.connections + 1;
            let most = FACTOR * (before.left + came - before.came) + connections * DEAF;
            let more = left - before.left;
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

    /// Honest clients are connected soon.
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

    /// What is true in the end.
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
