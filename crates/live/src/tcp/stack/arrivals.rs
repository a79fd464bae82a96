//! Arrivals at the stack: finding or creating the connection of a segment, and answering segments
//! without a connection.

use super::super::interface::Interface;
use super::super::packet::{self, Packet, Unreachable};
use super::conversation::Protocol;
use super::entry::{Entry, Key};
use super::{Id, Stack, buffers, random_number};
use crate::tpa::path::hops_travelled;
use meshpace_core::Time;
use meshpace_session::ring::Unplaced;
use meshpace_transport::tcp::wire::{self, Header, Numbers};
use meshpace_transport::tcp::{Flags, train_wire};
use meshpace_transport::{Arrival, PathInfo, Role};
use std::net::Ipv4Addr;

impl<I: Interface> Stack<I> {
    pub(super) fn on_packet(&mut self, now: Time, bytes: &[u8]) {
        match packet::decode(bytes, self.output.interface.check()) {
            Ok(Packet::Tcp { addresses, header, payload, ttl, ce }) => {
                if addresses.destination != self.output.interface.address().octets() {
                    return;
                }
                let arrival = Arrival { hops: hops_travelled(ttl).unwrap_or(0), ce, received_power_dbm: None };
                self.on_segment(now, addresses.source.into(), &header, payload, arrival);
            }
            Ok(Packet::Unreachable(error)) => self.on_unreachable(now, error),
            Err(packet::Error::IpChecksum | packet::Error::Tcp(wire::Error::Checksum)) => self.trouble.checksums += 1,
            Err(packet::Error::Other) => {}
            Err(_) => self.trouble.malformed += 1,
        }
    }

    fn on_segment(&mut self, now: Time, from: Ipv4Addr, header: &Header, payload: &[u8], arrival: Arrival) {
        let key = (from, header.source, header.destination);
        let id = match self.by_key.get(&key) {
            Some(id) => *id,
            None => match self.begin(now, key, header) {
                Some(id) => id,
                None => return self.on_stray(key, header, payload.len()),
            },
        };
        let Some(entry) = self.entries.get_mut(&id) else { return };
        let flags = header.flags;
        let was_established = entry.connection.is_established();
        let is_opening = !was_established && entry.connection.end().is_none();
        if is_opening && entry.buffers.is_some() && flags.has(Flags::SYN) && flags.has(Flags::ACK) {
            let hops = if entry.hops > 0 { entry.hops } else { self.path.hops };
            entry.on_syn_ack(now, header, PathInfo { hops, ..self.path });
        } else if !was_established
            && entry.buffers.is_none()
            && flags.has(Flags::SYN)
            && header.seq != entry.numbers.peer
        {
            // This SYN is not the one that began the connection: the peer has started over, or the
            // SYN is forged.
            return;
        }
        let expected = entry.connection.expected();
        // The decoder has already checked that the payload is not longer than a packet.
        let length = u16::try_from(payload.len()).unwrap_or(u16::MAX);
        let Some(heard) = entry.connection.understand(&entry.numbers, header, length) else { return };
        let (offset, acknowledges) = heard.offsets();
        if !was_established && flags.has(Flags::ACK) && !flags.has(Flags::RST) && acknowledges != 0 {
            // The segment acknowledges something that this connection has not sent (RFC 9293,
            // section 3.10.7.3 and 4).
            return self.on_stray(key, header, payload.len());
        }
        let tells_path = entry.is_current(flags, offset, acknowledges);
        if self.follow_time_to_live && arrival.hops > 0 && arrival.hops != entry.hops && tells_path {
            entry.hops = arrival.hops;
            entry.connection.on_path(PathInfo { hops: arrival.hops, ..self.path });
        }
        let is_taken = entry.connection.on_heard(now, &heard, arrival);
        if !was_established && entry.connection.is_established() && entry.buffers.is_none() {
            entry.buffers = Some(buffers(&self.budget, from, self.limits.send_buffer, entry.window));
            self.opening.retain(|opening| *opening != id);
            let listener = self.listeners.get_mut(&key.2);
            match listener {
                Some(listener) if listener.ready.len() < self.limits.backlog => listener.ready.push_back(id),
                _ => {
                    self.trouble.pushed_out += 1;
                    entry.released = true;
                    entry.connection.abort(now);
                }
            }
        }
        if let (true, Some((_, receive))) = (is_taken && !payload.is_empty(), &mut entry.buffers) {
            let limit = expected.saturating_add(receive.room() as u64);
            let fitting = limit.saturating_sub(offset).min(payload.len() as u64) as usize;
            let placed = receive.place(offset, &payload[..fitting]);
            debug_assert!(placed != Err(Unplaced::Beyond), "cut to what has room");
            match placed {
                Ok(()) => receive.deliver(entry.connection.delivered()),
                Err(_) => entry.connection.abort(now),
            }
        }
        self.pump(id, now);
        self.forget_if_over(id, now);
    }

    /// Creates a connection for a SYN to a port on which the stack listens.
    fn begin(&mut self, now: Time, key: Key, syn: &Header) -> Option<Id> {
        let opens = syn.flags.has(Flags::SYN) && !syn.flags.has(Flags::ACK) && !syn.flags.has(Flags::RST);
        let listener = self.listeners.get(&key.2).filter(|_| opens)?;
        let path_mss = self.path_mss().ok()?;
        let mut protocol = listener.protocol.with_segments_up_to(u32::from(path_mss));
        if protocol.offers_trains() && !train_wire::is_offered(&syn.options) {
            protocol = Protocol::Tcp(protocol.fallback());
        }
        let window = protocol.window();
        let options = protocol.options(wire::answer(path_mss, window, &syn.options));
        let agreed = wire::agreed(path_mss, &syn.options);
        let mut connection = protocol.connection(Role::Receiver);
        connection.on_path(self.path);
        connection.on_agreed(now, &agreed);
        let scaled = syn.options.window_scale.is_some();
        let numbers = Numbers {
            own: random_number().ok()?,
            peer: syn.seq,
            own_scale: options.window_scale.unwrap_or(0),
            peer_scale: if scaled { syn.options.window_scale.unwrap_or(0) } else { 0 },
            timestamps: agreed.timestamps,
        };
        while self.opening.len() >= self.limits.opening.max(1) {
            let Some(oldest) = self.opening.pop_front() else { break };
            self.trouble.pushed_out += 1;
            self.remove(oldest);
        }
        let id = self.insert(Entry {
            key,
            connection,
            protocol,
            numbers,
            syn_options: options,
            syns: (0, Time::ZERO),
            path_mss,
            buffers: None,
            window: window as usize,
            hops: 0,
            closed: false,
            accepted: false,
            claimed: false,
            released: false,
            unreachable: None,
            too_long: None,
        });
        self.opening.push_back(id);
        Some(id)
    }

    /// Answers a segment for no connection with a reset (RFC 9293, section 3.10.7.1), if the port
    /// is ours.
    fn on_stray(&mut self, key: Key, header: &Header, payload: usize) {
        self.trouble.strays += 1;
        let ours = self.output.interface.owns_address() || self.listeners.contains_key(&key.2);
        if header.flags.has(Flags::RST) || !ours {
            return;
        }
        let has_ack = header.flags.has(Flags::ACK);
        let length = payload as u32 + u32::from(header.flags.has(Flags::SYN)) + u32::from(header.flags.has(Flags::FIN));
        let reset = Header {
            source: key.2,
            destination: key.1,
            seq: if has_ack { header.ack } else { 0 },
            ack: if has_ack { 0 } else { header.seq.wrapping_add(length) },
            flags: if has_ack { Flags::RST } else { Flags::RST.with(Flags::ACK) },
            ..Header::default()
        };
        // If the reset cannot be sent, the peer will send its segment again.
        let _ = self.output.transmit(key.0, &reset, (&[], &[]), false);
    }

    fn on_unreachable(&mut self, now: Time, error: Unreachable) {
        if error.addresses.source != self.output.interface.address().octets() {
            return;
        }
        let key = (error.addresses.destination.into(), error.destination, error.source);
        let Some(id) = self.by_key.get(&key).copied() else { return };
        let Some(entry) = self.entries.get_mut(&id) else { return };
        // An ICMP error is accepted only if this connection may have sent the quoted segment (RFC
        // 5927, section 4.1).
        let connection = &entry.connection;
        let from = entry.numbers.own.wrapping_add(connection.acknowledged() as u32);
        let out = connection.outstanding_end() - connection.acknowledged() + 1;
        if u64::from(error.seq.wrapping_sub(from)) > out {
            return;
        }
        entry.unreachable = Some(error);
        if !connection.is_established() {
            entry.connection.abort(now);
        }
        self.pump(id, now);
    }
}
